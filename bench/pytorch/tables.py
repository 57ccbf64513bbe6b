"""Markdown tables of results files, with the figures of the papers beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from bench.markdown import Cell, best, markdown, mean_and_error, ratio
from bench.pytorch.counters import counter_table
from bench.pytorch.sampling_tables import accuracy_tables, training_table
from bench.results_file import Line, read_results

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


def _percent(part: float | None, whole: float | None) -> str | None:
    share = ratio(part, whole)
    return None if share is None else f"{100 * share:.1f} %"


def _order(line: Line) -> tuple[object, ...]:
    graphs = ("cora", "citeseer", "pubmed", "tolokers")
    place = graphs.index(line["graph"]) if line["graph"] in graphs else len(graphs)
    return line["model"], place, line["layers"], line["features"]


def _steps(lines: list[Line], mode: str) -> str:
    head = ["model", "graph", "layers, features", "step, us", "PyG", "torch.sparse"]
    head += ["best rival over ours", "aggregation, us", "PyG", "torch.sparse"]
    head += ["PyG over ours", "CUDA time, PyG over ours"]
    rows = []
    for line in lines:
        rivals = [line["pyg_step_us"], line["torch_sparse_step_us"]]
        aggregations = [line["spmm_us"], line["pyg_spmm_us"], line["torch_sparse_spmm_us"]]
        rows.append(
            [
                line["model"],
                line["graph"] + (" (random features)" if line.get("synthetic") else ""),
                f"{line['layers']}, {line['features']}",
                *(None if us is None else f"{us:.0f}" for us in (line["step_us"], *rivals)),
                ratio(best(*rivals), line["step_us"]),
                *(None if us is None else f"{us:.1f}" for us in aggregations),
                ratio(line["pyg_spmm_us"], line["spmm_us"]),
                ratio(line["pyg_cuda_us"], line["cuda_us"]),
            ]
        )
    return f"**{mode}**\n\n{markdown(head, rows)}"


def _shares(lines: list[Line]) -> str:
    rows = [
        [
            line["graph"],
            f"{line['layers']}, {line['features']}",
            GCN_SHARES.get(line["graph"]),
            _percent(line["pyg_spmm_us"], line["pyg_cuda_us"]),
            _percent(line["torch_sparse_spmm_us"], line["torch_sparse_cuda_us"]),
            _percent(line["spmm_us"], line["cuda_us"]),
        ]
        for line in lines
        if line["model"] == "gcn"
    ]
    head = ("graph", "layers, features", "paper's Table I", "PyG", "torch.sparse", "warploom")
    return markdown(head, rows)


def _pool(lines: list[Line]) -> str:
    rows = []
    for line in lines:
        if line["model"] == "sage-pool" and line["graph"] == "pubmed":
            paper = POOL_SPEEDUPS.get((line["layers"], line["features"]), (None, None))
            aggregation = ratio(line["pyg_spmm_us"], line["spmm_us"])
            total = ratio(line["pyg_cuda_us"], line["cuda_us"])
            setting = f"{line['layers']}, {line['features']}"
            rows.append([setting, paper[0], aggregation, paper[1], total])
    head = ("layers, features", "paper: SpMM-like", "ours", "paper: total", "ours")
    return markdown(head, rows)


def gnn_tables(lines: list[Line]) -> str:
    """Return tables of steps in both modes, shares (Table I) and GraphSAGE-pool (Table IX)."""
    lines = sorted((line for line in lines if line["step_us"] is not None), key=_order)
    parts = []
    for mode in ("graphed", "eager"):
        chosen = [line for line in lines if line["mode"] == mode]
        if not chosen:
            continue
        parts.append(_steps(chosen, mode))
        if any(line["model"] == "gcn" for line in chosen):
            parts.append(f"Aggregation in the CUDA time of GCN, {mode}:\n\n{_shares(chosen)}")
        if any((line["model"], line["graph"]) == ("sage-pool", "pubmed") for line in chosen):
            parts.append(f"GraphSAGE-pool on Pubmed, PyG over ours, {mode}:\n\n{_pool(chosen)}")
    return "\n\n".join(parts)


def gnn_accuracy_table(lines: list[Line]) -> str:
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        groups.setdefault((line["graph"], line["model"]), []).append(line)
    rows: list[list[Cell]] = []
    for key, group in groups.items():
        row: list[Cell] = [*key, len(group)]
        row += [mean_and_error([line[f] for line in group]) for f in ("accuracy", "pyg_accuracy")]
        row.append(_difference(group, "accuracy"))
        rows.append([*row, _difference(group, "pyg_reordered_accuracy")])
    head = ("graph", "model", "seeds", "accuracy, %", "PyG", "warploom - PyG")
    return markdown((*head, "PyG reordered - PyG"), rows)


def _difference(lines: list[Line], field: str) -> str | None:
    """Mean difference from PyG's accuracy with the same seed."""
    found = [line[field] - line["pyg_accuracy"] for line in lines if field in line]
    return mean_and_error(found) if found else None


# ---- layers and models of PyG -------------------------------------------------------------------


def layer_tables(lines: list[Line]) -> str:
    """Return a table of layers for each graph and type of numbers."""
    parts = []
    for graph, type_ in dict.fromkeys((line["graph"], line["type"]) for line in lines):
        rows = [
            [
                line["layer"],
                *(None if us is None else f"{us:.0f}" for us in (line["us"], line["pyg_us"])),
                ratio(line["pyg_us"], line["us"]),
                "served" if line["served"] else line["reason"] or "no result",
            ]
            for line in lines
            if (line["graph"], line["type"]) == (graph, type_)
        ]
        head = ("layer", "step, us", "PyG", "PyG over ours", "by warploom")
        parts.append(f"**{graph}, {type_}**\n\n{markdown(head, rows)}")
    return "\n\n".join(parts)


def compiled_table(lines: list[Line]) -> str:
    """Return a table of steps: in each mode ours, PyG's and the quotient."""
    modes = list(dict.fromkeys(line["mode"] for line in lines))
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for line in lines:
        own, other = ("-" if us is None else f"{us:.0f}" for us in (line["us"], line["pyg_us"]))
        over = ratio(line["pyg_us"], line["us"])
        text = f"{own} / {other}" + ("" if over is None else f" = {over:.2f}")
        cells.setdefault((line["model"], line["graph"]), {})[line["mode"]] = text
    rows = [[*key, *(found.get(mode) for mode in modes)] for key, found in cells.items()]
    head = ("model", "graph", *(f"{mode}: ours / PyG, us" for mode in modes))
    return markdown(head, rows)


# ---- several GPUs -------------------------------------------------------------------------------


def model_tables(lines: list[Line]) -> str:
    """The model of a step (step_model.py): its check with two GPUs, and what it expects."""
    ways = tuple(dict.fromkeys(line["way"] for line in lines if "model_ms" in line))
    checked: dict[tuple[int, int], list[str]] = {}
    expected = []
    for line in lines:
        key = line["nodes"], line["columns"]
        if "model_ms" in line:
            cell = f"{line['measured_ms']} / {line['model_ms']} ({100 * line['error']:+.0f} %)"
            checked.setdefault(key, []).append(cell)
        else:
            products = (line["product_ms"][way] for way in ways)
            rest = (line["way"], line["step_ms"], line["speedup"], line["memory_gb"])
            expected.append([*key, line["gpus"], *products, *rest])
    head = ["nodes", "columns"]
    check = markdown([*head, *ways], [[*key, *cells] for key, cells in checked.items()])
    head += ["GPUs", *(f"{way}, ms" for way in ways)]
    head += ["quickest", "step, ms", "over one", "GB a GPU"]
    return (
        f"**A product with two GPUs, ms: measured / model**\n\n{check}\n\n"
        f"**Calculated**\n\n{markdown(head, expected)}"
    )


def shared_table(lines: list[Line]) -> str:
    """Steps and the aggregation on one device and on all."""
    head = ("model", "graph", "GPUs", "split", "step, ms: one / all", "aggregation, ms: one / all")
    rows = []
    for line in lines:
        cells = []
        for field in ("us", "aggregation_us"):
            one, found = line[f"one_{field}"], line[field]
            over = ratio(one, found)
            text = " / ".join("-" if us is None else f"{us / 1e3:.2f}" for us in (one, found))
            cells.append(text if over is None else f"{text} = {over:.2f}")
        memory = " / ".join(
            "-" if mb is None else f"{mb / 1e3:.1f}"
            for mb in (line["one_peak_mb"], line["peak_mb"])
        )
        rows.append([line["model"], line["graph"], line["ranks"], line["split"], *cells, memory])
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
        if lines and field in lines[0]:
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
