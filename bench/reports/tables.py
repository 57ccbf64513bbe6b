"""Markdown tables of results files, with the figures of the papers beside them."""

from __future__ import annotations

import csv
import functools
import importlib
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.reports.columns import (
    Cell,
    Summary,
    Table,
    as_markdown,
    markdown,
    mean_and_error,
    numbers,
    ratio,
    table,
)
from bench.results_file import Line, case_name, groups_of, read_results

PUBLISHED = Path(__file__).parents[1] / "suites" / "published.tsv"


@functools.cache
def published(table: str) -> dict[str, str]:
    """The figures of a table of the papers, by their cases. Several of one row have " | " between.

    GE-SpMM: I has the share of SpMM in the CUDA time of GCN training (DGL, GTX 1080 Ti), IX
    GraphSAGE-pool on Pubmed over DGL (GTX 1080 Ti / RTX 2080), V and VI transactions of 32 bytes
    and their efficiency at N = 512 (GTX 1080 Ti). ES-SpMM: II has the speed-up of SpMM where NumPy
    drops 20 % of the edges, and the slowdown with that; III test accuracies (ROC-AUC of Proteins)
    in percent, IV the edges kept for S = 16 to 512, and V the S, loss and speed-up over cuSPARSE
    (V100).
    """
    with PUBLISHED.open() as file:
        rows = csv.DictReader(file, delimiter="\t")
        return {row["case"]: row["figure"] for row in rows if row["table"] == table}


def _crossed(
    lines: list[Line],
    keys: Mapping[str, str],
    by: str,
    cell: Callable[[list[Line]], Cell],
    title: str = "{}",
    order: Callable[[Iterable[Any]], Sequence[Any]] = list,
) -> Table:
    """Return a table with a row for each group of lines with equal keys, and a column for each
    value of `by`. keys: by their titles; cell: of the lines with both; title: of such a column.
    """
    values = order(dict.fromkeys(line[by] for line in lines))
    rows: list[list[Cell]] = []
    for key, group in groups_of(lines, *keys.values()).items():
        parts = groups_of(group, by)
        rows.append([*key, *(cell(parts[x,]) if (x,) in parts else None for x in values)])
    return Table([*keys, *(title.format(x) for x in values)], rows)


def _same(*keys: str) -> dict[str, str]:
    return dict(zip(keys, keys))


def _pair(first: float | None, second: float | None, form: str, over: float | None = None) -> str:
    """Return for example "9.0 / 18.0 = 2.00"."""
    text = " / ".join("-" if x is None else format(x, form) for x in (first, second))
    return text if over is None else f"{text} = {over:.2f}"


# ---- GE-SpMM's applications ---------------------------------------------------------------------

GRAPHS = ("cora", "citeseer", "pubmed", "tolokers")  # in this order, before others


def _gnn_frame(lines: list[Line]) -> pd.DataFrame:
    """The measured lines in the order of tables, with columns about the paper."""
    f = pd.json_normalize([line for line in lines if line["step_us"] is not None])
    f["place"] = f["graph"].map(lambda x: GRAPHS.index(x) if x in GRAPHS else len(GRAPHS))
    f = f.sort_values(["model", "place", "layers", "features"], kind="stable")
    settings = list(zip(f["layers"], f["features"]))
    f["setting"] = [f"{layers}, {features}" for layers, features in settings]
    is_synthetic = f.reindex(columns=["synthetic"])["synthetic"].notna()
    f["name"] = f["graph"] + is_synthetic.map({True: " (random features)", False: ""})
    f["rival_us"] = numbers(f, "pyg_step_us", "torch_sparse_step_us").min(axis=1)
    for way in ("pyg_", "torch_sparse_", ""):
        f[f"{way}spmm_100us"] = 100 * numbers(f, f"{way}spmm_us")[f"{way}spmm_us"]
    f["paper_share"] = f["graph"].map(published("Table I"))
    cases = pd.Series([f"{layers}/{features}" for layers, features in settings], f.index)
    for field, what in (("paper_spmm", "SpMM-like"), ("paper_total", "total")):
        f[field] = cases.map(published(f"Table IX, {what}"))
    return f


def gnn_tables(lines: list[Line]) -> str:
    """Return tables of steps in both modes, shares (Table I) and GraphSAGE-pool (Table IX)."""
    parts: Summary = []
    for mode, f in sorted(_gnn_frame(lines).groupby("mode"), reverse=True):
        steps = table(
            "model | graph=name | layers, features=setting | step, us=step_us:.0f"
            " | PyG=pyg_step_us:.0f | torch.sparse=torch_sparse_step_us:.0f"
            " | best rival over ours=rival_us / step_us:.2f | aggregation, us=spmm_us:.1f"
            " | PyG=pyg_spmm_us:.1f | torch.sparse=torch_sparse_spmm_us:.1f"
            " | PyG over ours=pyg_spmm_us / spmm_us:.2f"
            " | CUDA time, PyG over ours=pyg_cuda_us / cuda_us:.2f",
            f,
        )
        shares = table(
            "graph | layers, features=setting | paper's Table I=paper_share"
            " | PyG=pyg_spmm_100us / pyg_cuda_us:.1f %"
            " | torch.sparse=torch_sparse_spmm_100us / torch_sparse_cuda_us:.1f %"
            " | warploom=spmm_100us / cuda_us:.1f %",
            f[f["model"] == "gcn"],
        )
        pool = table(
            "layers, features=setting | paper: SpMM-like=paper_spmm"
            " | ours=pyg_spmm_us / spmm_us:.2f | paper: total=paper_total"
            " | ours=pyg_cuda_us / cuda_us:.2f",
            f[(f["model"] == "sage-pool") & (f["graph"] == "pubmed")],
        )
        parts += [f"**{mode}**", steps]
        if shares.rows:
            parts += [f"Aggregation in the CUDA time of GCN, {mode}:", shares]
        if pool.rows:
            parts += [f"GraphSAGE-pool on Pubmed, PyG over ours, {mode}:", pool]
    return as_markdown(parts)


def gnn_accuracy_table(lines: list[Line]) -> str:
    measured = [line for line in lines if line["accuracy"] is not None]
    rows = [
        [
            *(*key, len(group)),
            *(mean_and_error([line[f] for line in group]) for f in ("accuracy", "pyg_accuracy")),
            *(_difference(group, field) for field in ("accuracy", "pyg_reordered_accuracy")),
        ]
        for key, group in groups_of(measured, "graph", "model").items()
    ]
    head = ("graph", "model", "seeds", "accuracy, %", "PyG", "warploom - PyG")
    return markdown((*head, "PyG reordered - PyG"), rows)


def _difference(lines: list[Line], field: str) -> str | None:
    """Mean difference from PyG's accuracy with the same seed."""
    found = [line[field] - line["pyg_accuracy"] for line in lines if field in line]
    return mean_and_error(found) if found else None


# ---- GE-SpMM's counters -------------------------------------------------------------------------

KERNELS = {
    "algorithm1": "Algorithm 1",
    "crc": "CRC",
    **{f"cwm{columns}": f"CWM {columns}" for columns in (2, 4, 8)},
    "cusparse": "cuSPARSE",
}


def counter_table(lines: list[Line]) -> str:
    """Return a row for each kernel of a line."""
    counters = published("Tables V and VI")
    rows = [
        {
            **{name: of[kernel] if isinstance(of, dict) else of for name, of in line.items()},
            "kernel": title,
            "paper": counters.get(f"{line['rows']}/{kernel}") if line["n"] == 512 else None,
        }
        for line in ({**line, "failed": None} for line in lines if line["load_sectors"] is not None)
        for kernel, title in KERNELS.items()
    ]
    columns = (
        "matrix | N=n | kernel | load transactions=load_sectors:.2e"
        " | efficiency, %=load_efficiency:.1f | loads, GB/s=load_gbs:.1f | L2, GB/s=l2_gbs:.1f"
        " | DRAM, GB/s=dram_gbs:.1f | occupancy, %=occupancy:.1f | registers=registers:.0f | paper"
    )
    return as_markdown([table(columns, pd.DataFrame(rows))])


# ---- layers and models of PyG -------------------------------------------------------------------


def layer_tables(lines: list[Line]) -> str:
    """Return a table of layers for each graph and type of numbers."""
    f = pd.json_normalize(lines)
    by = ["served" if x["served"] else x["reason"] or "no result" for x in lines]
    parts: Summary = []
    for (graph, type_), group in f.assign(by=by).groupby(["graph", "type"], sort=False):
        columns = "step, us=us:.0f | PyG=pyg_us:.0f | PyG over ours=pyg_us / us:.2f"
        parts.append(f"**{graph}, {type_}**")
        parts.append(table(f"layer | {columns} | by warploom=by", group))
    return as_markdown(parts)


def compiled_table(lines: list[Line]) -> str:
    """Return a table of steps: in each mode ours, PyG's and the quotient."""

    def cell(group: list[Line]) -> str:
        us, pyg_us = group[-1]["us"], group[-1]["pyg_us"]
        return _pair(us, pyg_us, ".0f", ratio(pyg_us, us))

    keys = _same("model", "graph")
    return as_markdown([_crossed(lines, keys, "mode", cell, "{}: ours / PyG, us")])


# ---- several GPUs -------------------------------------------------------------------------------


def model_tables(lines: list[Line]) -> str:
    """The model of a step (step_model.py): its check with two GPUs, and what it expects."""

    def cell(group: list[Line]) -> str:
        line = group[-1]
        return f"{line['measured_ms']} / {line['model_ms']} ({100 * line['error']:+.0f} %)"

    keys = {"nodes": "nodes", "columns": "columns", "GPUs": "gpus"}
    checked = _crossed([line for line in lines if "model_ms" in line], keys, "way", cell)
    calculated = [line for line in lines if "model_ms" not in line]
    ways = "".join(f" | {way}, ms=product_ms.{way}" for way in calculated[0]["product_ms"])
    expected = table(
        f"nodes | columns | GPUs=gpus{ways} | quickest=way | step, ms=step_ms | over one=speedup"
        " | GB a GPU=memory_gb",
        pd.json_normalize(calculated),
    )
    titles = ("**Products and steps, ms: measured / model**", "**Calculated**")
    return as_markdown([titles[0], checked, titles[1], expected])


def shared_table(lines: list[Line]) -> str:
    """Steps and the aggregation on one device and on several."""
    head = ("model", "graph", "GPUs", "asked", "exchange", "split", "step, ms: one / all")
    rows = []
    for line in lines:
        row = [line["model"], line["graph"], line["ranks"], line.get("asked", "auto")]
        row += [line["exchange"], line["split"]]
        for field, form in (("us", ".2f"), ("aggregation_us", ".2f"), ("peak_mb", ".1f")):
            found = (line[name] and line[name] / 1e3 for name in (f"one_{field}", field))
            one, several = found
            over = ratio(one, several) if field != "peak_mb" else None
            row.append(_pair(one, several, form, over))
        rows.append(row)
    return markdown((*head, "aggregation, ms: one / all", "GB a GPU: one / all"), rows)


# ---- ES-SpMM's trade ----------------------------------------------------------------------------

LOSS = 1.0  # the largest loss in points in Table V


def _mean(lines: list[Line], field: str) -> float | None:
    values = [line[field] for line in lines if line[field] is not None]
    return statistics.mean(values) if values else None


def _loss(lines: list[Line]) -> float:
    return float(statistics.mean(line["exact_metric"] - line["metric"] for line in lines))


def _progress(lines: list[Line], suite: str) -> str:
    """Which graphs and models have lines of all cases of a suite. A case begins with these two."""
    module: Any = importlib.import_module("bench.pytorch.accuracy")  # which needs torch
    wanted = getattr(module, suite)
    names = {case_name(line[field] for field in module.Case._fields) for line in lines}
    counts: dict[tuple[object, object], list[bool]] = {}
    for case in wanted.cases(wanted.settings(Path())):
        counts.setdefault((case[0], case[1]), []).append(case_name(case) in names)
    rows = [[*key, sum(found), len(found)] for key, found in counts.items() if not all(found)]
    if not rows:
        return f"All {sum(map(len, counts.values()))} cases are measured."
    missing = markdown(("graph", "model", "cases measured", "of"), rows)
    return f"Not measured completely yet; the tables below have what is there:\n\n{missing}"


def _exact(lines: list[Line]) -> Table:
    rows: list[list[Cell]] = []
    for key, group in groups_of(lines, "graph", "model").items():
        seeds = {line["seed"]: line["exact_metric"] for line in group}
        exact = mean_and_error(list(seeds.values()))
        alone = _mean(group, "features_metric")
        rows.append(
            [
                *key,
                group[0]["metric_name"],
                len(seeds),
                exact,
                published("Table III").get("/".join(key)),
                alone,
            ]
        )
    return Table(("graph", "model", "metric", "seeds", "exact, %", "paper", "features alone"), rows)


def _of_paper(head: list[str], figures: Mapping[str, str], lines: list[Line]) -> list[Table]:
    """Return a table of the paper's figures by graph, if there are lines of one of these."""
    graphs = figures.keys() & {line["graph"] for line in lines}
    rows = [[x.removeprefix("planted:"), *figures[x].split(" | ")] for x in figures if x in graphs]
    return [Table(head, rows)] if rows else []


def _by_width(lines: list[Line], cell: Callable[[list[Line]], Cell], *keys: str) -> Table:
    return _crossed(lines, _same(*keys), "s", cell, "S = {}", sorted)


def _kept(lines: list[Line]) -> list[Table]:
    def cell(group: list[Line]) -> str:
        return f"{100 * group[0]['kept_share']:.1f} %"

    plain = [line for line in lines if line["model"] == "sage"]  # GCN's graph has self loops
    head = ["paper's Table IV", *(f"S = {16 << i}" for i in range(6))]
    return [
        _by_width(plain or lines, cell, "graph"),
        *_of_paper(head, published("Table IV"), lines),
    ]


def _best(lines: list[Line]) -> Table:
    """Return the fastest width whose mean loss is below one point."""
    rows = []
    cusparse = {
        graph: min((x["cusparse_us"] for x in group if x["cusparse_us"] is not None), default=None)
        for (graph,), group in groups_of(lines, "graph").items()
    }
    for (graph, model, strategy), group in groups_of(lines, "graph", "model", "strategy").items():
        accepted = [part for part in groups_of(group, "s").values() if _loss(part) < LOSS]
        row: list[Cell] = [graph, model, strategy]
        if accepted:
            part = min(accepted, key=lambda part: float(part[0]["spmm_us"]))
            line = part[0]
            row += [line["s"], mean_and_error([x["metric"] for x in part]), _loss(part)]
            row += [f"{line['spmm_us']:.0f}", f"{cusparse[graph] or 0:.0f}"]
            row += [ratio(cusparse[graph], line["spmm_us"])]
            row += [ratio(line["exact_us"], line["spmm_us"])]
            row += [ratio(line["exact_step_us"], line["step_us"])]
        else:
            row += [None] * 8
        rows.append([*row, published("Table V").get(f"{graph}/{model}/{strategy}")])
    head = ["graph", "model", "strategy", "S", "metric, %", "loss", "us", "cuSPARSE, us"]
    head += ["over cuSPARSE", "over our exact product", "inference over exact", "paper's Table V"]
    return Table(head, rows)


def _presampled(lines: list[Line]) -> list[Table]:
    """The paper's Table II for what FastRand leaves of GCN's graph, and the sampled product."""
    chosen = [line for line in lines if (line["model"], line["strategy"]) == ("gcn", "fastrand")]
    firsts = [group[0] for group in groups_of(chosen, "graph", "s").values()]
    f = pd.DataFrame([line for line in firsts if line["presampled_us"] is not None])
    t = numbers(f, "kept_share", "presampled_us", "presample_cpu_us", "presample_us")
    f["kept"] = 100 * t["kept_share"]
    f["cpu_us"] = t["presample_cpu_us"] + t["presampled_us"]
    f["gpu_us"] = t["presample_us"] + t["presampled_us"]
    columns = (
        "graph | S=s | edges kept=kept:.1f % | exact, us=exact_us:.0f"
        " | of what was sampled, us=presampled_us:.0f | speed-up=exact_us / presampled_us:.2f"
        " | sampling on the CPU, us=presample_cpu_us:.0f | both over exact=cpu_us / exact_us:.2f"
        " | sampling on the GPU, us=presample_us:.0f | both over exact=gpu_us / exact_us:.2f"
        " | sampled while multiplying, over exact=spmm_us / exact_us:.2f"
    )
    head = ["paper's Table II: 80 % of the edges kept", "speed-up", "both over exact, on the CPU"]
    return [table(columns, f), *_of_paper(head, published("Table II"), chosen)]


def verdicts(lines: list[Line]) -> list[tuple[str, bool]]:
    """Return what the planted twins must reach, and whether they do."""
    found = []
    accuracies = published("Table III")
    planted = [line for line in lines if f"{line['graph']}/{line['model']}" in accuracies]
    for key, group in groups_of(planted, "graph", "model").items():
        paper = float(accuracies["/".join(key)])
        exact = _mean(group, "exact_metric") or 0.0
        alone = _mean(group, "features_metric") or 0.0
        name = f"{key[0]} {key[1]}: exact {exact:.2f} %"
        found.append((f"{name}, paper {paper} %, at most 2 apart", abs(exact - paper) <= 2))
        found.append((f"{name}, features alone {alone:.2f} %, 15 less", exact - alone >= 15))
    reddit = [line for line in planted if line["graph"] == "planted:reddit"]
    for key, group in groups_of(reddit, "model").items():
        speedups = [
            ratio(part[0]["cusparse_us"], part[0]["spmm_us"]) or 0.0
            for part in groups_of(group, "strategy", "s").values()
            if _loss(part) < LOSS
        ]
        best = max(speedups, default=0.0)
        text = f"planted:reddit {key[0]}: {best:.1f}x over cuSPARSE below a point of loss, 12x"
        found.append((text, best >= 12))
    return found


def accuracy_tables(lines: list[Line]) -> str:
    lines = [line for line in lines if line["metric"] is not None]
    losses = _by_width(lines, _loss, "graph", "model", "strategy")
    parts: Summary = [_progress(lines, "SUITE"), "Exact training:", _exact(lines)]
    parts += ["Edges kept:", *_kept(lines), "Loss in points, mean of the seeds:", losses]
    parts += ["The fastest S that loses less than a point:", _best(lines)]
    parts += ["Sampling beforehand, by FastRand for GCN:", *_presampled(lines)]
    return as_markdown(parts)


def training_table(lines: list[Line]) -> str:
    rows = []
    kept = [line for line in lines if line["metric"] is not None]
    for key, group in groups_of(kept, "graph", "model", "strategy", "s").items():
        row: list[Cell] = [*key, len(group)]
        for prefix, seconds in (("exact_", "exact_seconds"), ("", "seconds"), ("equal_time_", "")):
            row.append(mean_and_error([line[f"{prefix}metric"] for line in group]))
            row += [_mean(group, seconds)] if seconds else []
        rows.append([*row, _mean(group, "equal_time_epochs")])
    head = ["graph", "model", "strategy", "S", "seeds", "exact, %", "seconds"]
    head += ["sampled, same epochs", "seconds", "sampled, same seconds", "epochs"]
    return as_markdown([_progress(kept, "TRAINING"), Table(head, rows)])


# ---- the command --------------------------------------------------------------------------------

# The function that makes the tables of a results file, by a field that only its lines have.
TABLES: dict[str, Callable[[list[Line]], str]] = {
    "pyg_step_us": gnn_tables,
    "pyg_accuracy": gnn_accuracy_table,
    "equal_time_metric": training_table,
    "features_metric": accuracy_tables,
    "load_sectors": counter_table,
    "served": layer_tables,
    "pyg_spread": compiled_table,
    "model_ms": model_tables,
    "one_us": shared_table,
}


def tables_of(path: Path) -> str:
    """Return the tables of a results file as Markdown. Raises ValueError if it has none."""
    lines = read_results(path)
    for field, make in TABLES.items():
        if any(field in line for line in lines):
            return make(lines)
    raise ValueError(f"warploom: {path}: is no results file that has tables")


def put_tables(path: Path, page: Path) -> None:
    """Replace the tables between `<!-- tables: FOLDER/NAME -->` and `<!-- end -->` on a page.

    FOLDER is where the results file NAME lies below bench/results; it may be left out. If the file
    does not exist, the page says so.
    """
    text, end = page.read_text(), "<!-- end -->"
    begin = re.search(f"<!-- tables: (.*/)?{re.escape(path.name)} -->\n", text)
    if begin is None or end not in text[begin.end() :]:
        marker = f"<!-- tables: {path.name} -->"
        raise ValueError(f"warploom: {page}: has no lines '{marker}' and '{end}'")
    after = text[begin.end() :].partition(end)[2]
    tables = tables_of(path) if path.exists() else "Not measured yet."
    page.write_text(f"{text[: begin.end()]}\n{tables}\n\n{end}{after}")
