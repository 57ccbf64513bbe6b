"""Markdown tables of results files, with the figures of the papers beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from bench.markdown import best, markdown, mean_and_error, ratio, texts_of
from bench.pytorch.counters import counter_table
from bench.pytorch.sampling_tables import accuracy_tables, training_table
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


def _percent(line: Line, way: str) -> str | None:
    """The aggregation's share in the CUDA time of PyG or, for "", of warploom."""
    share = ratio(line[f"{way}spmm_us"], line[f"{way}cuda_us"])
    return None if share is None else f"{100 * share:.1f} %"


def _order(line: Line) -> tuple[object, ...]:
    graphs = ("cora", "citeseer", "pubmed", "tolokers")
    place = graphs.index(line["graph"]) if line["graph"] in graphs else len(graphs)
    return line["model"], place, line["layers"], line["features"]


def _setting(line: Line) -> str:
    return f"{line['layers']}, {line['features']}"


def _steps(lines: list[Line], mode: str) -> str:
    head = ["model", "graph", "layers, features", "step, us", "PyG", "torch.sparse"]
    head += ["best rival over ours", "aggregation, us", "PyG", "torch.sparse"]
    head += ["PyG over ours", "CUDA time, PyG over ours"]
    ways = ("", "pyg_", "torch_sparse_")
    rows = [
        [
            line["model"],
            line["graph"] + (" (random features)" if line.get("synthetic") else ""),
            _setting(line),
            *texts_of(line, ".0f", *(f"{way}step_us" for way in ways)),
            ratio(best(line["pyg_step_us"], line["torch_sparse_step_us"]), line["step_us"]),
            *texts_of(line, ".1f", *(f"{way}spmm_us" for way in ways)),
            ratio(line["pyg_spmm_us"], line["spmm_us"]),
            ratio(line["pyg_cuda_us"], line["cuda_us"]),
        ]
        for line in lines
    ]
    return f"**{mode}**\n\n{markdown(head, rows)}"


def _shares(lines: list[Line]) -> str:
    rows = [
        [
            *(line["graph"], _setting(line), GCN_SHARES.get(line["graph"])),
            *(_percent(line, way) for way in ("pyg_", "torch_sparse_", "")),
        ]
        for line in lines
    ]
    head = ("graph", "layers, features", "paper's Table I", "PyG", "torch.sparse", "warploom")
    return markdown(head, rows)


def _pool(lines: list[Line]) -> str:
    rows = []
    for line in lines:
        part, whole = POOL_SPEEDUPS.get((line["layers"], line["features"]), (None, None))
        aggregation = ratio(line["pyg_spmm_us"], line["spmm_us"])
        total = ratio(line["pyg_cuda_us"], line["cuda_us"])
        rows.append([_setting(line), part, aggregation, whole, total])
    head = ("layers, features", "paper: SpMM-like", "ours", "paper: total", "ours")
    return markdown(head, rows)


def gnn_tables(lines: list[Line]) -> str:
    """Return tables of steps in both modes, shares (Table I) and GraphSAGE-pool (Table IX)."""
    lines = sorted((line for line in lines if line["step_us"] is not None), key=_order)
    parts = []
    for (mode,), chosen in sorted(groups_of(lines, "mode").items(), reverse=True):
        gcn = [line for line in chosen if line["model"] == "gcn"]
        pool = [x for x in chosen if (x["model"], x["graph"]) == ("sage-pool", "pubmed")]
        parts.append(_steps(chosen, mode))
        if gcn:
            parts.append(f"Aggregation in the CUDA time of GCN, {mode}:\n\n{_shares(gcn)}")
        if pool:
            parts.append(f"GraphSAGE-pool on Pubmed, PyG over ours, {mode}:\n\n{_pool(pool)}")
    return "\n\n".join(parts)


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
    head = ("layer", "step, us", "PyG", "PyG over ours", "by warploom")
    parts = []
    for (graph, type_), group in groups_of(lines, "graph", "type").items():
        rows = [
            [
                line["layer"],
                *texts_of(line, ".0f", "us", "pyg_us"),
                ratio(line["pyg_us"], line["us"]),
                "served" if line["served"] else line["reason"] or "no result",
            ]
            for line in group
        ]
        parts.append(f"**{graph}, {type_}**\n\n{markdown(head, rows)}")
    return "\n\n".join(parts)


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
    ways = tuple(dict.fromkeys(line["way"] for line in checks))
    checked = [
        [
            *key,
            *(f"{x['measured_ms']} / {x['model_ms']} ({100 * x['error']:+.0f} %)" for x in group),
        ]
        for key, group in groups_of(checks, "nodes", "columns").items()
    ]
    rest = ("way", "step_ms", "speedup", "memory_gb")
    expected = [
        [
            *(line["nodes"], line["columns"], line["gpus"]),
            *(line["product_ms"][way] for way in ways),
            *(line[field] for field in rest),
        ]
        for line in lines
        if "model_ms" not in line
    ]
    head = ["nodes", "columns", "GPUs", *(f"{way}, ms" for way in ways)]
    head += ["quickest", "step, ms", "over one", "GB a GPU"]
    return (
        "**A product with two GPUs, ms: measured / model**\n\n"
        f"{markdown(['nodes', 'columns', *ways], checked)}\n\n"
        f"**Calculated**\n\n{markdown(head, expected)}"
    )


def shared_table(lines: list[Line]) -> str:
    """Steps and the aggregation on one device and on all."""
    head = ("model", "graph", "GPUs", "split", "step, ms: one / all", "aggregation, ms: one / all")
    rows = []
    for line in lines:
        row = [line["model"], line["graph"], line["ranks"], line["split"]]
        for field, form in (("us", ".2f"), ("aggregation_us", ".2f"), ("peak_mb", ".1f")):
            pair = f"one_{field}", field
            thousands = {name: line[name] and line[name] / 1e3 for name in pair}
            over = ratio(*thousands.values()) if field != "peak_mb" else None
            row.append(_pair(thousands, pair, form, over))
        rows.append(row)
    return markdown((*head, "GB a GPU: one / all"), rows)


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
