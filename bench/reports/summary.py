"""Summarise a results file by the rules of its suite: tables, means, worst cases and targets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.reports.columns import Summary, Table, frame_of, numbers
from bench.reports.figure import Figure, figures
from bench.reports.suites import SUITES, frame_of_suite
from bench.results_file import Line, case_name


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


# ---- suites of `python -m bench`, whose lines do not name them ----------------------------------


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


class _Suite(NamedTuple):
    """How the figures of a suite (bench/suites/figures.tsv) are made of its lines."""

    field: str  # which only its lines have
    case: tuple[str, ...]  # the fields that name a case
    complete: Callable[[pd.DataFrame], object] = len  # adds columns
    result: str = "us"


_FIGURES = {
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
    suite = _FIGURES[name]
    f = frame_of(lines, [case_name(line.get(field) for field in suite.case) for line in lines])
    suite.complete(f)
    return figures(name, f)


def without_result(lines: list[Line], result: str) -> list[str]:
    """Return a text for each line whose field `result` is None."""
    return [
        f"no result: {case_name(x for x in line.values() if isinstance(x, (str, int)))}: "
        f"{line.get('failed')}"
        for line in lines
        if line[result] is None
    ]


def _with_targets(name: str, lines: list[Line]) -> tuple[Summary, int]:
    result = _FIGURES[name].result
    measured = [line for line in lines if line[result] is not None]
    found = figures_of(name, measured) if measured else []
    missing = without_result(lines, result)
    rows = [
        [
            *(x.what, len(x.ratios), f"{x.mean():.2f}x", x.target_text()),
            *(x.worst_cases(1), x.limit_text()),
        ]
        for x in found
    ]
    head = "speed-up over | cases | geometric mean | target | worst | target"
    missed = sum(not x.holds() for x in found)
    return [Table(head, rows), *missing], missed + len(missing)


# ---- all of them ---------------------------------------------------------------------------------


def summarise(path: Path, lines: list[Line]) -> tuple[Summary, int]:
    """Summarise the lines of a results file. Returns how many targets of a suite of `python -m
    bench` are missed, and how many of its cases have no result, besides."""
    lines = [_printable(line) for line in lines]
    if lines and "suite" not in lines[0]:
        for name, suite in _FIGURES.items():
            if any(suite.field in line for line in lines):
                return _with_targets(name, lines)
        raise ValueError(f"{path}: has no summary")
    name = suite_of(path, lines)
    return (SUITES[name][0](frame_of_suite(name, lines)), 0) if lines else ([], 0)


def as_json(summary: Summary) -> str:
    """Return {"tables": [{"titles": [...], "rows": [[...]]}], "lines": [...]}."""
    tables = [{"titles": x.titles(), "rows": x.rows} for x in summary if isinstance(x, Table)]
    return json.dumps({"tables": tables, "lines": [x for x in summary if isinstance(x, str)]})
