"""Geometric means of a results file, compared with targets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import pandas as pd

from bench.pytorch.sampling_tables import training_table, verdicts
from bench.reports.columns import numbers
from bench.reports.figure import Figure, figures_of
from bench.results_file import Line, case_name

LIBRARIES = ("cudnn", "turbo_gnn")


def _frame(lines: list[Line], name: Sequence[str], *fields: str) -> pd.DataFrame:
    """The lines by the names of their cases, which consist of the values of `name`.

    Fields are numbers, NaN where a line has none.
    """
    index = pd.Index([case_name(line[field] for field in name) for line in lines])
    frame = pd.DataFrame(lines, index)
    frame[list(fields)] = numbers(lines, *fields).set_index(index)
    return frame


def _over(frame: pd.DataFrame, field: str, *others: str) -> pd.Series:
    """The least of the other fields over this one."""
    return frame[list(others)].min(axis=1) / frame[field]


def rows(lines: list[Line]) -> list[Figure]:
    """Return all comparisons of suite torch for which the file has cases."""
    f = _frame(lines, ("graph", "model", "n", "reduce"), "us")
    rivals = pd.DataFrame([line["rivals"] for line in lines], f.index, dtype=float)
    best = rivals.min(axis=1)
    over = rivals.div(f["us"], axis=0).reindex(columns=["torch_sparse", "scatter", *LIBRARIES])
    over["best"] = best / f["us"]

    def pick(bench: str, mode: str, reduce: str | None = None) -> pd.Series:
        chosen = (f["bench"] == bench) & (f["mode"] == mode)
        return chosen if reduce is None else chosen & (f["reduce"] == reduce)

    def row(
        what: str,
        rival: str,
        chosen: pd.Series,
        target: float | None = None,
        least: float | None = None,
    ) -> Figure:
        return Figure(what, over.loc[chosen, rival], target, least)

    found = []
    for mode in ("graphed", "eager"):
        is_graphed = mode == "graphed"
        target, least = (2.5, 1.0) if is_graphed else (None, None)
        sums, means, maxima = (pick("spmm", mode, reduce) for reduce in ("sum", "mean", "max"))
        found += [
            row(f"spmm sum {mode}, torch.sparse", "torch_sparse", sums, target, least),
            row(f"spmm mean {mode}, torch.sparse", "torch_sparse", means),
            row(f"spmm max {mode}, scatter", "scatter", maxima, 20.0 if is_graphed else None),
        ]
        for bench in ("spmm", "backward"):
            for rival in LIBRARIES:
                found.append(row(f"{bench} {mode}, {rival}", rival, pick(bench, mode)))
        for reduce in ("sum", "mean", "max"):
            chosen = pick("backward", mode, reduce)
            found.append(row(f"backward {reduce} {mode}, best", "best", chosen))
        target, least = (1.5, None) if is_graphed else (None, 0.97)
        what = f"step {mode}, best of PyG"
        found.append(row(what, "best", pick("step", mode), target, least))
    graphed, eager = f["us"][pick("step", "graphed")], best[pick("step", "eager")]
    over_eager = eager.reindex(graphed.index) / graphed
    found.append(Figure("step graphed, best of PyG eager", over_eager, 4.0))
    found.append(row("minibatch, best of PyG", "best", pick("minibatch", "eager"), 1.3, 1.0))
    return figures_of(found)


def gnn_rows(lines: list[Line]) -> list[Figure]:
    """Compare aggregation with PyG, and whole steps with the best baseline in the same mode."""
    times = [
        f"{way}{of}_us" for way in ("", "pyg_", "torch_sparse_") for of in ("step", "spmm", "cuda")
    ]
    f = _frame(lines, ("graph", "model", "layers", "features"), *times)
    table = []
    for mode in ("graphed", "eager"):
        of_mode = f[f["mode"] == mode]
        aggregation = _over(of_mode, "spmm_us", "pyg_spmm_us")
        table.append(Figure(f"aggregation {mode}, PyG", aggregation, 2))
        for model in sorted(set(of_mode["model"])):
            of_model = aggregation[of_mode["model"] == model]
            table.append(Figure(f"aggregation {model} {mode}, PyG", of_model))
        cuda = _over(of_mode, "cuda_us", "pyg_cuda_us")
        table.append(Figure(f"CUDA time of a step {mode}, PyG", cuda))
        steps = _over(of_mode, "step_us", "pyg_step_us", "torch_sparse_step_us")
        table.append(Figure(f"step {mode}, best rival", steps, None, 0.97))
    return figures_of(table)


_ATTENTION_TARGETS = {("gat", "forward"): 25.0, ("gat", "step"): 10.0, ("transformer", "step"): 6.0}


def attention_rows(lines: list[Line]) -> list[Figure]:
    """Compare layers and their memory with PyG, and attention with a plain product."""
    memory = ("peak_mb", "pyg_peak_mb")
    times = ("us", "pyg_us", "pyg_compiled_us", "kernel_us", "product_us")
    f = _frame(lines, ("graph", "layer", "heads", "dim"), *times, *memory)
    for rival in LIBRARIES:
        of_rival = [line.get("rivals", {}).get(rival, {}) for line in lines]
        f[rival] = numbers(of_rival, "us").set_index(f.index)
    table = []
    for mode in ("graphed", "eager"):
        for layer in sorted(set(f["layer"])):
            for direction in ("forward", "step"):
                chosen = f[
                    f[["layer", "direction", "mode"]].eq((layer, direction, mode)).all(axis=1)
                ]
                target = _ATTENTION_TARGETS.get((layer, direction)) if mode == "graphed" else None
                what = f"{layer} {direction} {mode}"
                table.append(Figure(f"{what}, PyG", _over(chosen, "us", "pyg_us"), target, 1))
                compiled = _over(chosen, "us", "pyg_compiled_us")
                table.append(Figure(f"{what}, PyG, compiled", compiled))
                for rival in LIBRARIES:
                    table.append(Figure(f"{what}, {rival}", _over(chosen, "us", rival)))
    graphed = f[f["mode"] == "graphed"]
    steps = _over(graphed[graphed["direction"] == "step"], *memory)
    table.append(Figure("peak memory of a step, PyG", steps, None, 1))
    for layer, target in (("gat", 1 / 3), ("transformer", None)):
        kernels = _over(graphed[graphed["layer"] == layer], "kernel_us", "product_us")
        table.append(Figure(f"{layer} without its layer, plain product", kernels, target))
    return figures_of(table)


# Over PyG, and over the faster of PyG and PyG compiled: of messages with n numbers of an edge, and
# of the others.
_MESSAGE_TARGETS = {
    ("wide", "forward"): 4.0,
    ("wide", "step"): 3.0,
    ("narrow", "forward"): 8.0,
    ("narrow", "step"): 5.0,
}
_COMPILED_TARGETS = {"forward": 2.5, "step": 2.0}
_WIDE_EDGES = ("gine", "cf")


def message_rows(lines: list[Line]) -> list[Figure]:
    """Compare messages and their memory with PyG's."""
    fields = ("us", "pyg_us", "pyg_compiled_us", "memory", "pyg_memory")
    f = _frame(lines, ("layer", "graph", "n", "mode"), *fields)
    edges = f["layer"].isin(_WIDE_EDGES).map({True: "wide", False: "narrow"})
    table = []
    for (kind, mode), target in _MESSAGE_TARGETS.items():
        chosen = f[(f["mode"] == mode) & (edges == kind)]
        over_pyg = _over(chosen, "us", "pyg_us")
        table.append(Figure(f"{mode}, {kind} edges, PyG", over_pyg, target))
    for mode, target in _COMPILED_TARGETS.items():
        best = _over(f[f["mode"] == mode], "us", "pyg_us", "pyg_compiled_us")
        table.append(Figure(f"{mode}, best of PyG and compiled", best, target, 1.0))
    dense = f[(f["mode"] == "step") & (edges == "narrow") & (f["edges"] >= 20 * f["nodes"])]
    memory = _over(dense, "memory", "pyg_memory")
    table.append(Figure("memory of a step, PyG, 20 edges a row", memory, None, 10.0))
    return figures_of(table)


def layer_rows(lines: list[Line]) -> list[Figure]:
    """Compare steps of layers with PyG's, of those that warploom serves and of the others, and
    the GPU work of those in 16 bits with ours in f32."""
    f = _frame(lines, ("layer", "graph"), "us", "pyg_us", "gpu_us")
    in_f32 = f[f["type"] == "f32"].set_index("n", append=True)["gpu_us"]
    f["f32_gpu_us"] = in_f32.reindex(pd.MultiIndex.from_arrays([f.index, f["n"]])).to_numpy()
    table = []
    for (graph, type_), of_case in f.groupby(["graph", "type"], sort=False):
        is_served = of_case["served"].astype(bool)
        for what, chosen in (("served layers", is_served), ("layers left to PyG", ~is_served)):
            over_pyg = _over(of_case[chosen], "us", "pyg_us")
            table.append(Figure(f"{what}, {graph}, {type_}, PyG", over_pyg, None, 0.97))
        if type_ != "f32":
            is_large = (of_case["edges"] >= 1_000_000) & (of_case["n"] >= 64)
            over_f32 = _over(of_case[is_served & is_large], "gpu_us", "f32_gpu_us")
            what = f"GPU work of served layers, {graph}, {type_}, our f32"
            table.append(Figure(what, over_f32, None, 1.0))
    return figures_of(table)


# The mean over PyG in the same mode, and the minimum.
_MODE_TARGETS = {"compile": (1.4, 1.0), "reduce-overhead": (1.6, 1.0)}
_CAPTURED_GRAPHS = ("cora", "pubmed")
_CAPTURED_MODELS = ("gcn", "sage-mean", "sage-max", "gat")


def compiled_rows(lines: list[Line]) -> list[Figure]:
    """Compare steps with PyG's in the same mode, and with our eager ones."""
    f = _frame(lines, ("model", "graph"), "us", "pyg_us")
    table = []
    for mode, of_mode in f.groupby("mode", sort=False):
        limits = _MODE_TARGETS.get(str(mode), ())
        table.append(Figure(f"step {mode}, PyG", _over(of_mode, "us", "pyg_us"), *limits))
    eager = f["us"][f["mode"] == "eager"]
    over_eager = eager.reindex(f.index) / f["us"]
    compiled = over_eager[f["mode"] == "compile"]
    table.append(Figure("step compile, our eager", compiled, None, 1 / 1.15))
    known = f["graph"].isin(_CAPTURED_GRAPHS) & f["model"].isin(_CAPTURED_MODELS)
    captured = over_eager[known & (f["mode"] == "captured")]
    table.append(Figure("step captured, our eager", captured, None, 3.0))
    return figures_of(table)


_SHARED_TARGETS = {"twin:products": 1.55, "twin:reddit": 1.6}


def shared_rows(lines: list[Line]) -> list[Figure]:
    """All ranks over one device: steps, the aggregation alone, and memory."""
    fields = ("us", "aggregation_us", "peak_mb")
    f = _frame(lines, ("model", "graph"), *fields, *(f"one_{field}" for field in fields))
    table = []
    for graph, of_graph in f.groupby("graph", sort=False):
        step = _SHARED_TARGETS.get(str(graph))
        targets = (step, step and 1.5, step and 1 / 0.7)
        for what, field, target in zip(("step", "aggregation", "memory"), fields, targets):
            over_one = _over(of_graph, field, f"one_{field}")
            table.append(Figure(f"{graph}: {what}, one device", over_one, target, target))
    return figures_of(table)


# The comparisons of a results file, by a field that only its lines have.
_ROWS: tuple[tuple[str, Callable[[list[Line]], list[Figure]]], ...] = (
    ("pyg_step_us", gnn_rows),
    ("heads", attention_rows),
    ("gbs", message_rows),
    ("served", layer_rows),
    ("pyg_spread", compiled_rows),
    ("one_us", shared_rows),
    ("rivals", rows),
)


def _print_accuracies(lines: list[Line]) -> int:
    """Print means over the seeds; returns how many are over a standard error from PyG's."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        groups.setdefault(f"{line['graph']}/{line['model']}", []).append(line)
    missed = 0
    for name, group in groups.items():
        own, other = ([line[key] for line in group] for key in ("accuracy", "pyg_accuracy"))
        error = statistics.stdev(other) / math.sqrt(len(other)) if len(other) > 1 else math.nan
        holds = abs(statistics.mean(own) - statistics.mean(other)) <= error
        missed += not holds
        print(
            f"{name:24} {len(group):>3} seeds {statistics.mean(own):6.2f} %, PyG "
            f"{statistics.mean(other):6.2f} +- {error:.2f} %{'' if holds else '  MISSED'}"
        )
    return missed


def _print_verdicts(lines: list[Line]) -> int:
    found = verdicts(lines)
    for text, holds in found:
        print(text + ("" if holds else "  MISSED"))
    return sum(not holds for _, holds in found)


_FORMAT = "{:46} {:>5} {:>7} {:>7} {:>7} {:>7}  {}"


def print_summary(lines: list[Line]) -> int:
    """Print the table; returns how many comparisons miss their target or minimum."""
    if lines and "pyg_accuracy" in lines[0]:
        return _print_accuracies(lines)
    if lines and "equal_time_metric" in lines[0]:
        print(training_table(lines))  # there is no target
        return sum(line["metric"] is None for line in lines)
    if any("features_metric" in line for line in lines):
        return _print_verdicts([line for line in lines if line["metric"] is not None])
    field, make = next((of for of in _ROWS if lines and of[0] in lines[0]), _ROWS[-1])
    result = "step_us" if field == "pyg_step_us" else "us"
    missing = [line for line in lines if line[result] is None]
    measured = [line for line in lines if line[result] is not None]
    table = make(measured) if measured else []
    print(
        _FORMAT.format("speedup over", "cases", "mean", "target", "worst", "minimum", "worst case")
    )
    for row in table:
        limits = (row.mean(), row.target, row.worst(), row.least)
        texts = ["-" if number is None else f"{number:.2f}" for number in limits]
        verdict = row.ratios.idxmin() + ("" if row.holds() else "  MISSED")
        print(_FORMAT.format(row.what, len(row.ratios), *texts, verdict))
    for line in missing:
        case = case_name(value for value in line.values() if isinstance(value, (str, int)))
        print(f"no result: {case}: {line.get('failed')}")
    return sum(not row.holds() for row in table) + len(missing)
