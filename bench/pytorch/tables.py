"""Markdown tables of results files, with the figures of the papers beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from bench.markdown import markdown, mean_and_error, ratio, texts_of
from bench.pytorch.counters import counter_table
from bench.pytorch.sampling_tables import accuracy_tables, training_table
from bench.reports.columns import Summary, as_markdown, numbers, table
from bench.results_file import Line, groups_of, read_results

# ---- GE-SpMM's applications ---------------------------------------------------------------------

# Table I: share of SpMM in the CUDA time of GCN training, DGL on a GTX 1080 Ti.
GCN_SHARES = {"cora": "33.1 %", "citeseer": "29.3 %", "pubmed": "29.8 %"}
# Table IX: GraphSAGE-pool on Pubmed, SpMM-like and total over DGL, GTX 1080 Ti and RTX 2080.
POOL_SPEEDUPS = {
    (1, 16): ("2.89 / 3.24", "1.10 / 1.11"),
    (1, 64): ("3.92 / 3.44", "1.14 / 1.11"),
    (1, 256): ("4.04 / 3.46", "1.14 / 1.09"),
    (2, 16): ("2.39 / 3.03", "1.11 / 1.09"),
    (2, 64): ("3.09 / 3.37", "1.09 / 1.11"),
    (2, 256): ("6.15 / 3.51", "1.12 / 1.09"),
}


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
    f["paper_share"] = f["graph"].map(GCN_SHARES)
    papers = [POOL_SPEEDUPS.get(setting, (None, None)) for setting in settings]
    f["paper_spmm"], f["paper_total"] = [list(part) for part in zip(*papers)]
    return f


def gnn_tables(lines: list[Line]) -> str:
    """Return tables of steps in both modes, shares (Table I) and GraphSAGE-pool (Table IX)."""
    parts: Summary = []
    for mode, f in sorted(_gnn_frame(lines).groupby("mode"), reverse=True):
        steps = table(
            "model | graph | layers, features | step, us | PyG | torch.sparse"
            " | best rival over ours | aggregation, us | PyG | torch.sparse | PyG over ours"
            " | CUDA time, PyG over ours",
            "model | name | setting | step_us:.0f | pyg_step_us:.0f | torch_sparse_step_us:.0f"
            " | rival_us / step_us:.2f | spmm_us:.1f | pyg_spmm_us:.1f | torch_sparse_spmm_us:.1f"
            " | pyg_spmm_us / spmm_us:.2f | pyg_cuda_us / cuda_us:.2f",
            f,
        )
        shares = table(
            "graph | layers, features | paper's Table I | PyG | torch.sparse | warploom",
            "graph | setting | paper_share | pyg_spmm_100us / pyg_cuda_us:.1f %"
            " | torch_sparse_spmm_100us / torch_sparse_cuda_us:.1f % | spmm_100us / cuda_us:.1f %",
            f[f["model"] == "gcn"],
        )
        pool = table(
            "layers, features | paper: SpMM-like | ours | paper: total | ours",
            "setting | paper_spmm | pyg_spmm_us / spmm_us:.2f | paper_total"
            " | pyg_cuda_us / cuda_us:.2f",
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


# ---- layers and models of PyG -------------------------------------------------------------------


def layer_tables(lines: list[Line]) -> str:
    """Return a table of layers for each graph and type of numbers."""
    f = pd.json_normalize(lines)
    by = ["served" if x["served"] else x["reason"] or "no result" for x in lines]
    parts: Summary = []
    for (graph, type_), group in f.assign(by=by).groupby(["graph", "type"], sort=False):
        head = "layer | step, us | PyG | PyG over ours | by warploom"
        columns = "layer | us:.0f | pyg_us:.0f | pyg_us / us:.2f | by"
        parts += [f"**{graph}, {type_}**", table(head, columns, group)]
    return as_markdown(parts)


def _pair(line: Line, fields: tuple[str, str], form: str, over: float | None = None) -> str:
    """Return for example "9.0 / 18.0 = 2.00"."""
    text = " / ".join(texts_of(line, form, *fields))
    return text if over is None else f"{text} = {over:.2f}"


def compiled_table(lines: list[Line]) -> str:
    """Return a table of steps: in each mode ours, PyG's and the quotient."""
    modes = list(dict.fromkeys(line["mode"] for line in lines))
    rows = []
    for key, group in groups_of(lines, "model", "graph").items():
        cells = {
            x["mode"]: _pair(x, ("us", "pyg_us"), ".0f", ratio(x["pyg_us"], x["us"])) for x in group
        }
        rows.append([*key, *(cells.get(mode) for mode in modes)])
    head = ("model", "graph", *(f"{mode}: ours / PyG, us" for mode in modes))
    return markdown(head, rows)


# ---- several GPUs -------------------------------------------------------------------------------


def model_tables(lines: list[Line]) -> str:
    """The model of a step (step_model.py): its check with two GPUs, and what it expects."""
    checks = [line for line in lines if "model_ms" in line]
    compared = tuple(dict.fromkeys(line["way"] for line in checks))
    checked = []
    for key, group in groups_of(checks, "nodes", "columns", "gpus").items():
        cells = {
            x["way"]: f"{x['measured_ms']} / {x['model_ms']} ({100 * x['error']:+.0f} %)"
            for x in group
        }
        checked.append([*key, *(cells.get(way) for way in compared)])
    rest = ("way", "step_ms", "speedup", "memory_gb")
    calculated = [line for line in lines if "model_ms" not in line]
    ways = tuple(calculated[0]["product_ms"])
    expected = [
        [
            *(line["nodes"], line["columns"], line["gpus"]),
            *(line["product_ms"][way] for way in ways),
            *(line[field] for field in rest),
        ]
        for line in calculated
    ]
    head = ["nodes", "columns", "GPUs", *(f"{way}, ms" for way in ways)]
    head += ["quickest", "step, ms", "over one", "GB a GPU"]
    return (
        "**Products and steps, ms: measured / model**\n\n"
        f"{markdown(['nodes', 'columns', 'GPUs', *compared], checked)}\n\n"
        f"**Calculated**\n\n{markdown(head, expected)}"
    )


def shared_table(lines: list[Line]) -> str:
    """Steps and the aggregation on one device and on several."""
    head = ("model", "graph", "GPUs", "asked", "exchange", "split", "step, ms: one / all")
    rows = []
    for line in lines:
        row = [line["model"], line["graph"], line["ranks"], line.get("asked", "auto")]
        row += [line["exchange"], line["split"]]
        for field, form in (("us", ".2f"), ("aggregation_us", ".2f"), ("peak_mb", ".1f")):
            pair = f"one_{field}", field
            thousands = {name: line[name] and line[name] / 1e3 for name in pair}
            over = ratio(*thousands.values()) if field != "peak_mb" else None
            row.append(_pair(thousands, pair, form, over))
        rows.append(row)
    return markdown((*head, "aggregation, ms: one / all", "GB a GPU: one / all"), rows)


# ---- the command --------------------------------------------------------------------------------

# The function that makes the tables of a results file, by a field that only its lines have.
TABLES: tuple[tuple[str, Callable[[list[Line]], str]], ...] = (
    ("pyg_step_us", gnn_tables),
    ("pyg_accuracy", gnn_accuracy_table),
    ("equal_time_metric", training_table),
    ("features_metric", accuracy_tables),
    ("load_sectors", counter_table),
    ("served", layer_tables),
    ("pyg_spread", compiled_table),
    ("model_ms", model_tables),
    ("one_us", shared_table),
)


def tables_of(path: Path) -> str:
    """Return the tables of a results file as Markdown. Raises ValueError if it has none."""
    lines = read_results(path)
    for field, make in TABLES:
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
