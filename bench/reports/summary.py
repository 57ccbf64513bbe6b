"""Summarise a results file by the rules of its suite: tables, means, worst cases and targets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean, mean
from typing import NamedTuple

import pandas as pd

from bench.reports.columns import Summary, Table, frame_of, numbers, standard_error, table
from bench.reports.figure import Figure, figures, frame_of_figures
from bench.reports.suites import SUITES, frame_of_suite
from bench.reports.tables import training_table, verdicts
from bench.results_file import Line, case_name, groups_of


def suite_of(path: Path, lines: list[Line]) -> str:
    """Return the suite of a results file. ValueError names a line that has no such result."""
    name = str(lines[0].get("suite", "core")) if lines else "core"
    if name not in SUITES:
        raise ValueError(f"{path}: suite {name} has no summary; try python -m bench tables")
    for number, line in enumerate(lines, 1):
        for key, values in SUITES[name][1].items():
            value = line.get(key)
            if not value or (values is not None and value not in values):
                what = ", ".join(SUITES[name][1])
                raise ValueError(f"{path}:{number}: is no line of suite {name}: it needs {what}")
    return name


def _printable(line: Line) -> Line:
    """Return the line without control characters, which a terminal would obey."""
    return {
        key: "".join(x if x.isprintable() else "?" for x in value)
        if isinstance(value, str)
        else value
        for key, value in line.items()
    }


# ---- columns beside those of the lines ----------------------------------------------------------


def _best(f: pd.DataFrame) -> None:
    f["best"] = numbers(f, *(name for name in f if name.startswith("rivals."))).min(axis=1)


def _best_rival(f: pd.DataFrame) -> None:
    _best(f)
    eager = f.query("bench == 'step' and mode == 'eager'")
    f["eager_best"] = eager["best"].reindex(f.index)


def _in_f32(f: pd.DataFrame) -> None:
    times = numbers(f[f["type"] == "f32"].set_index("n", append=True), "gpu_us")["gpu_us"]
    f["f32_gpu_us"] = times.reindex(pd.MultiIndex.from_arrays([f.index, f["n"]])).to_numpy()


def _asked(f: pd.DataFrame) -> None:
    f["asked"] = f.reindex(columns=["asked"])["asked"].fillna("auto")


def _eager(f: pd.DataFrame) -> None:
    f["eager_us"] = f["us"][f["mode"] == "eager"].reindex(f.index)


# ---- verdicts in the place of ratios of times ---------------------------------------------------

Verdicts = Iterator[tuple[str, bool]]  # what was found, and whether it is good enough


def _accuracies(lines: list[Line]) -> Verdicts:
    """Yield the means over the seeds, and whether they are within a standard error of PyG's."""
    for name, group in groups_of(lines, "graph", "model").items():
        own, other = ([line[key] for line in group] for key in ("accuracy", "pyg_accuracy"))
        error = standard_error(other)
        text = f"{case_name(name):24} {len(group):>3} seeds {mean(own):6.2f} %, PyG "
        yield f"{text}{mean(other):6.2f} +- {error:.2f} %", abs(mean(own) - mean(other)) <= error


HELD, OF_BEST, REDDIT = 0.9, 0.85, 5.0  # the least that budgets shall reach


def _budgets(lines: list[Line]) -> Verdicts:
    """Yield how often budgets were kept on the test nodes, and speeds, of all lines and by case."""
    for name, group in groups_of(lines, "graph", "model", "budget").items():
        held = sum(line["held"] for line in group)
        loss = mean(line["exact_metric"] - line["metric"] for line in group)
        gain = geometric_mean(line["exact_us"] / line["us"] for line in group)
        text = f"{case_name(name):28} {held:>2} of {len(group):>2} held, {loss:5.2f} points lost, "
        is_reddit = name[0].startswith("planted:reddit") and name[2] == 1
        yield f"{text}{gain:5.2f}x of exact inference", not is_reddit or gain >= REDDIT
    share = mean(line["held"] for line in lines)
    yield f"held on test nodes: {share:.1%} of all runs, at least {HELD:.0%}", share >= HELD
    ratios = [line["best_us"] / line["us"] for line in lines if line["best_us"] is not None]
    if ratios:
        text = f"of the best setting's speed: {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}"
        yield f"{text}, at least {OF_BEST}", geometric_mean(ratios) >= OF_BEST


# ---- suites of `python -m bench`, whose lines do not name them ----------------------------------


class _Suite(NamedTuple):
    """What the lines of a suite are compared by: its figures (bench/suites/figures.tsv), or
    verdicts."""

    field: str  # which only its lines have
    case: tuple[str, ...] = ()  # the fields that name a case
    complete: Callable[[pd.DataFrame], object] = len  # adds columns
    result: str = "us"  # the field that is None where a case has no result
    verdicts: Callable[[list[Line]], Verdicts] | None = None


_SUITES = {
    "gnn_accuracy": _Suite("pyg_accuracy", result="accuracy", verdicts=_accuracies),
    "budget": _Suite("calibrate_seconds", verdicts=_budgets),
    "training": _Suite(
        "equal_time_metric", result="metric", verdicts=lambda x: iter([(training_table(x), True)])
    ),
    "accuracy": _Suite("features_metric", result="metric", verdicts=lambda x: iter(verdicts(x))),
    "gnn": _Suite("pyg_step_us", ("graph", "model", "layers", "features"), result="step_us"),
    "attention": _Suite("heads", ("graph", "layer", "heads", "dim")),
    "messages": _Suite("gbs", ("layer", "graph", "n", "mode")),
    "scatter": _Suite("fresh_us", ("function", "lines", "n", "order", "mode")),
    "layers": _Suite("served", ("layer", "graph"), _in_f32),
    "compiled": _Suite("pyg_spread", ("model", "graph"), _eager),
    "distributed": _Suite("one_us", ("model", "graph", "ranks", "asked"), _asked),
    "jax": _Suite("jax", ("graph", "model", "n"), _best),
    "torch": _Suite("rivals", ("graph", "model", "n", "reduce"), _best_rival),
}


def figures_of(name: str, lines: list[Line]) -> list[Figure]:
    """Return the comparisons of such a suite for which its lines have cases."""
    suite = _SUITES[name]
    f = frame_of(lines, [case_name(line.get(field) for field in suite.case) for line in lines])
    suite.complete(f)
    return figures(name, f)


def _summarise(name: str, lines: list[Line]) -> tuple[Summary, int]:
    suite = _SUITES[name]
    measured = [line for line in lines if line[suite.result] is not None]
    missing = [
        f"no result: {case_name(x for x in line.values() if isinstance(x, (str, int)))}: "
        f"{line.get('failed')}"
        for line in lines
        if line[suite.result] is None
    ]
    if suite.verdicts:
        found = list(suite.verdicts(measured))
        texts = [text + ("" if holds else "  MISSED") for text, holds in found]
        missed = sum(not holds for _, holds in found)
        return ["\n".join([*texts, *missing])], missed + len(missing)
    ratios = figures_of(name, measured) if measured else []
    columns = "speed-up over=what | cases | geometric mean=mean:.2fx | target | worst"
    means = table(f"{columns} | target=limit", frame_of_figures(ratios, 1))
    return [means, *missing], sum(not x.holds() for x in ratios) + len(missing)


# ---- all of them ---------------------------------------------------------------------------------


def summarise(path: Path, lines: list[Line]) -> tuple[Summary, int]:
    """Summarise the lines of a results file. Returns how many targets of a suite of `python -m
    bench` are missed, and how many of its cases have no result, besides."""
    lines = [_printable(line) for line in lines]
    if lines and "suite" not in lines[0]:
        for name, suite in _SUITES.items():
            if any(suite.field in line for line in lines):
                return _summarise(name, lines)
        raise ValueError(f"{path}: has no summary")
    name = suite_of(path, lines)
    return (SUITES[name][0](frame_of_suite(name, lines)), 0) if lines else ([], 0)


def as_json(summary: Summary) -> str:
    """Return {"tables": [{"titles": [...], "rows": [[...]]}], "lines": [...]}."""
    tables = [x._asdict() for x in summary if isinstance(x, Table)]
    return json.dumps({"tables": tables, "lines": [x for x in summary if isinstance(x, str)]})
