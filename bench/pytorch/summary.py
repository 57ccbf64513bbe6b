"""Geometric means of a results file, compared with targets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from typing import NamedTuple

from bench.pytorch.sampling_tables import training_table, verdicts
from bench.results_file import Line, case_name


class Row(NamedTuple):
    """One comparison: speed-ups by case, the target of their mean, and the minimum of each."""

    what: str
    speedups: dict[str, float]
    target: float | None
    minimum: float | None

    def mean(self) -> float:
        return math.exp(
            sum(math.log(value) for value in self.speedups.values()) / len(self.speedups)
        )

    def holds(self) -> bool:
        return (self.target is None or self.mean() >= self.target) and (
            self.minimum is None or min(self.speedups.values()) >= self.minimum
        )


def _name(line: Line) -> str:
    return "/".join(
        str(line[key]) for key in ("graph", "model", "n", "reduce") if line[key] is not None
    )


def _best(line: Line) -> float | None:
    return min((us for us in line["rivals"].values() if us is not None), default=None)


def _rival(name: str) -> Callable[[Line], float | None]:
    def get(line: Line) -> float | None:
        us: float | None = line["rivals"].get(name)
        return us

    return get


def _speedups(lines: Iterable[Line], baseline: Callable[[Line], float | None]) -> dict[str, float]:
    found = {}
    for line in lines:
        us = baseline(line)
        if us is not None and line["us"]:
            found[_name(line)] = us / line["us"]
    return found


def rows(lines: list[Line]) -> list[Row]:
    """Return all comparisons for which the file has cases."""

    def pick(bench: str, mode: str, reduce: str | None = None) -> list[Line]:
        return [
            x
            for x in lines
            if x["bench"] == bench and x["mode"] == mode and reduce in (None, x["reduce"])
        ]

    pyg_eager = {_name(line): _best(line) for line in pick("step", "eager")}
    found: list[Row] = []
    for mode in ("graphed", "eager"):
        target = mode == "graphed"
        for reduce in ("sum", "mean"):
            wanted = target and reduce == "sum"
            found.append(
                Row(
                    f"spmm {reduce} {mode}, torch.sparse",
                    _speedups(pick("spmm", mode, reduce), _rival("torch_sparse")),
                    2.5 if wanted else None,
                    1.0 if wanted else None,
                )
            )
        found.append(
            Row(
                f"spmm max {mode}, scatter",
                _speedups(pick("spmm", mode, "max"), _rival("scatter")),
                20.0 if target else None,
                None,
            )
        )
        for bench in ("spmm", "backward"):
            for rival in ("cudnn", "turbo_gnn"):
                speedups = _speedups(pick(bench, mode), _rival(rival))
                found.append(Row(f"{bench} {mode}, {rival}", speedups, None, None))
        for reduce in ("sum", "mean", "max"):
            found.append(
                Row(
                    f"backward {reduce} {mode}, best",
                    _speedups(pick("backward", mode, reduce), _best),
                    None,
                    None,
                )
            )
        found.append(
            Row(
                f"step {mode}, best of PyG",
                _speedups(pick("step", mode), _best),
                1.5 if target else None,
                None if target else 0.97,
            )
        )
    found.append(
        Row(
            "step graphed, best of PyG eager",
            _speedups(pick("step", "graphed"), lambda line: pyg_eager.get(_name(line))),
            4.0,
            None,
        )
    )
    found.append(
        Row("minibatch, best of PyG", _speedups(pick("minibatch", "eager"), _best), 1.3, 1.0)
    )
    return [row for row in found if row.speedups]


def gnn_rows(lines: list[Line]) -> list[Row]:
    """Compare aggregation with PyG, and whole steps with the best baseline in the same mode."""

    def name(line: Line) -> str:
        return "/".join(str(line[key]) for key in ("graph", "model", "layers", "features"))

    def speedups(chosen: list[Line], field: str, rivals: tuple[str, ...]) -> dict[str, float]:
        found = {}
        for line in chosen:
            times = [line[f"{rival}_{field}"] for rival in rivals]
            known = [us for us in times if us is not None]
            if known and line[field]:
                found[name(line)] = min(known) / line[field]
        return found

    table = []
    for mode in ("graphed", "eager"):
        of_mode = [line for line in lines if line["mode"] == mode]
        table.append(
            Row(f"aggregation {mode}, PyG", speedups(of_mode, "spmm_us", ("pyg",)), 2, None)
        )
        for model in sorted({line["model"] for line in of_mode}):
            chosen = [line for line in of_mode if line["model"] == model]
            what = f"aggregation {model} {mode}, PyG"
            table.append(Row(what, speedups(chosen, "spmm_us", ("pyg",)), None, None))
        cuda = speedups(of_mode, "cuda_us", ("pyg",))
        table.append(Row(f"CUDA time of a step {mode}, PyG", cuda, None, None))
        steps = speedups(of_mode, "step_us", ("pyg", "torch_sparse"))
        table.append(Row(f"step {mode}, best rival", steps, None, 0.97))
    return [row for row in table if row.speedups]


_ATTENTION_TARGETS = {("gat", "forward"): 25.0, ("gat", "step"): 10.0, ("transformer", "step"): 6.0}


def attention_rows(lines: list[Line]) -> list[Row]:
    """Compare layers and their memory with PyG, and attention with a plain product."""

    def name(line: Line) -> str:
        return "/".join(str(line[key]) for key in ("graph", "layer", "heads", "dim"))

    def ratios(chosen: list[Line], baseline: str, field: str) -> dict[str, float]:
        return {
            name(line): line[baseline] / line[field]
            for line in chosen
            if line.get(baseline) and line.get(field)
        }

    def over_rival(chosen: list[Line], rival: str) -> dict[str, float]:
        times = {name(line): line.get("rivals", {}).get(rival, {}).get("us") for line in chosen}
        return {name(x): times[name(x)] / x["us"] for x in chosen if times[name(x)] and x["us"]}

    table = []
    for mode in ("graphed", "eager"):
        for layer in sorted({line["layer"] for line in lines}):
            for direction in ("forward", "step"):
                key = layer, direction
                chosen = [
                    line
                    for line in lines
                    if (line["layer"], line["direction"], line["mode"]) == (*key, mode)
                ]
                target = _ATTENTION_TARGETS.get(key) if mode == "graphed" else None
                what = f"{layer} {direction} {mode}, PyG"
                table.append(Row(what, ratios(chosen, "pyg_us", "us"), target, 1))
                table.append(
                    Row(what + ", compiled", ratios(chosen, "pyg_compiled_us", "us"), None, None)
                )
                for rival in ("cudnn", "turbo_gnn"):
                    what = f"{layer} {direction} {mode}, {rival}"
                    table.append(Row(what, over_rival(chosen, rival), None, None))
    graphed = [line for line in lines if line["mode"] == "graphed"]
    steps = [line for line in graphed if line["direction"] == "step"]
    table.append(
        Row("peak memory of a step, PyG", ratios(steps, "pyg_peak_mb", "peak_mb"), None, 1)
    )
    for layer, target in (("gat", 1 / 3), ("transformer", None)):
        chosen = [line for line in graphed if line["layer"] == layer]
        what = f"{layer} without its layer, plain product"
        table.append(Row(what, ratios(chosen, "product_us", "kernel_us"), target, None))
    return [row for row in table if row.speedups]


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


def message_rows(lines: list[Line]) -> list[Row]:
    """Compare messages and their memory with PyG's."""

    def name(line: Line) -> str:
        return "/".join(str(line[key]) for key in ("layer", "graph", "n", "mode"))

    def ratios(chosen: list[Line], field: str, *baselines: str) -> dict[str, float]:
        found = {}
        for line in chosen:
            known = [line[b] for b in baselines if line.get(b)]
            if known and line.get(field):
                found[name(line)] = min(known) / line[field]
        return found

    def of(mode: str, edges: str) -> list[Line]:
        wide = edges == "wide"
        return [x for x in lines if x["mode"] == mode and (x["layer"] in _WIDE_EDGES) == wide]

    table = []
    for (edges, mode), target in _MESSAGE_TARGETS.items():
        what = f"{mode}, {edges} edges, PyG"
        table.append(Row(what, ratios(of(mode, edges), "us", "pyg_us"), target, None))
    for mode, target in _COMPILED_TARGETS.items():
        chosen = [line for line in lines if line["mode"] == mode]
        best = ratios(chosen, "us", "pyg_us", "pyg_compiled_us")
        table.append(Row(f"{mode}, best of PyG and compiled", best, target, 1.0))
    dense = [line for line in of("step", "narrow") if line["edges"] >= 20 * line["nodes"]]
    memory = ratios(dense, "memory", "pyg_memory")
    table.append(Row("memory of a step, PyG, 20 edges a row", memory, None, 10.0))
    return [row for row in table if row.speedups]


def layer_rows(lines: list[Line]) -> list[Row]:
    """Compare steps of layers with PyG's, of those that warploom serves and of the others, and
    the GPU work of those in 16 bits with ours in f32."""
    in_f32 = {
        (x["layer"], x["graph"], x["n"]): x.get("gpu_us") for x in lines if x["type"] == "f32"
    }

    def speedups(
        chosen: list[Line], baseline: Callable[[Line], float | None], field: str = "us"
    ) -> dict[str, float]:
        times = [
            (f"{line['layer']}/{line['graph']}", line.get(field), baseline(line)) for line in chosen
        ]
        return {name: other / us for name, us, other in times if us and other}

    table = []
    for graph, type_ in dict.fromkeys((line["graph"], line["type"]) for line in lines):
        of_case = [x for x in lines if (x["graph"], x["type"]) == (graph, type_)]
        served = [line for line in of_case if line["served"]]
        others = [line for line in of_case if not line["served"]]
        for what, chosen in (("served layers", served), ("layers left to PyG", others)):
            over_pyg = speedups(chosen, lambda line: line["pyg_us"])
            table.append(Row(f"{what}, {graph}, {type_}, PyG", over_pyg, None, 0.97))
        if type_ != "f32":
            large = [x for x in served if x["edges"] >= 1_000_000 and x["n"] >= 64]
            over_f32 = speedups(
                large, lambda x: in_f32.get((x["layer"], x["graph"], x["n"])), "gpu_us"
            )
            what = f"GPU work of served layers, {graph}, {type_}, our f32"
            table.append(Row(what, over_f32, None, 1.0))
    return [row for row in table if row.speedups]


# The mean over PyG in the same mode, and the minimum.
_MODE_TARGETS = {"compile": (1.4, 1.0), "reduce-overhead": (1.6, 1.0)}
_CAPTURED_GRAPHS = ("cora", "pubmed")
_CAPTURED_MODELS = ("gcn", "sage-mean", "sage-max", "gat")


def compiled_rows(lines: list[Line]) -> list[Row]:
    """Compare steps with PyG's in the same mode, and with our eager ones."""
    times = {(line["model"], line["graph"], line["mode"]): line["us"] for line in lines}

    def over_eager(mode: str) -> dict[tuple[str, str], float]:
        return {
            (model, graph): times[model, graph, "eager"] / us
            for (model, graph, of), us in times.items()
            if of == mode and (model, graph, "eager") in times
        }

    table = []
    for mode in dict.fromkeys(line["mode"] for line in lines):
        speedups = {
            f"{line['model']}/{line['graph']}": line["pyg_us"] / line["us"]
            for line in lines
            if line["mode"] == mode and line["pyg_us"]
        }
        table.append(Row(f"step {mode}, PyG", speedups, *_MODE_TARGETS.get(mode, (None, None))))
    compiled = {"/".join(key): ratio for key, ratio in over_eager("compile").items()}
    table.append(Row("step compile, our eager", compiled, None, 1 / 1.15))
    captured = {
        f"{model}/{graph}": ratio
        for (model, graph), ratio in over_eager("captured").items()
        if graph in _CAPTURED_GRAPHS and model in _CAPTURED_MODELS
    }
    table.append(Row("step captured, our eager", captured, None, 3.0))
    return [row for row in table if row.speedups]


_SHARED_TARGETS = {"twin:products": 1.55, "twin:reddit": 1.6}


def shared_rows(lines: list[Line]) -> list[Row]:
    """All ranks over one device: steps, the aggregation alone, and memory."""

    def over_one(field: str, graph: str) -> dict[str, float]:
        return {
            f"{line['model']}/{line['graph']}": line[f"one_{field}"] / line[field]
            for line in lines
            if line["graph"] == graph and line[field] and line[f"one_{field}"]
        }

    table = []
    for graph in dict.fromkeys(line["graph"] for line in lines):
        target = _SHARED_TARGETS.get(graph)
        table.append(Row(f"{graph}: step, one device", over_one("us", graph), target, target))
        least = 1.5 if target else None
        aggregation = over_one("aggregation_us", graph)
        table.append(Row(f"{graph}: aggregation, one device", aggregation, least, least))
        least = 1 / 0.7 if target else None
        table.append(Row(f"{graph}: memory, one device", over_one("peak_mb", graph), least, least))
    return [row for row in table if row.speedups]


# The comparisons of a results file, by a field that only its lines have.
_ROWS: tuple[tuple[str, Callable[[list[Line]], list[Row]]], ...] = (
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
    table = make([line for line in lines if line[result] is not None])
    print(
        _FORMAT.format("speedup over", "cases", "mean", "target", "worst", "minimum", "worst case")
    )
    for row in table:
        worst = min(row.speedups, key=lambda name: row.speedups[name])
        numbers = (row.mean(), row.target, row.speedups[worst], row.minimum)
        texts = ["-" if number is None else f"{number:.2f}" for number in numbers]
        verdict = worst if row.holds() else worst + "  MISSED"
        print(_FORMAT.format(row.what, len(row.speedups), *texts, verdict))
    for line in missing:
        case = case_name(value for value in line.values() if isinstance(value, (str, int)))
        print(f"no result: {case}: {line.get('failed')}")
    return sum(not row.holds() for row in table) + len(missing)
