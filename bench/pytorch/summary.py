"""Geometric means of a results file, compared with targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pandas as pd

from bench.markdown import standard_error
from bench.pytorch.sampling_tables import training_table, verdicts
from bench.reports.columns import frame_of, numbers
from bench.reports.figure import Figure, figures
from bench.results_file import Line, case_name, groups_of


def _best_rival(f: pd.DataFrame) -> None:
    f["best"] = numbers(f, *(name for name in f if name.startswith("rivals."))).min(axis=1)
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


_SUITES = {
    "gnn": _Suite("pyg_step_us", ("graph", "model", "layers", "features"), result="step_us"),
    "attention": _Suite("heads", ("graph", "layer", "heads", "dim")),
    "messages": _Suite("gbs", ("layer", "graph", "n", "mode")),
    "layers": _Suite("served", ("layer", "graph"), _in_f32),
    "compiled": _Suite("pyg_spread", ("model", "graph"), _eager),
    "distributed": _Suite("one_us", ("model", "graph", "ranks", "asked"), _asked),
    "torch": _Suite("rivals", ("graph", "model", "n", "reduce"), _best_rival),
}
_FORMAT = "{:46} {:>5} {:>7} {:>7} {:>7} {:>7}  {}"


def figures_of(name: str, lines: list[Line]) -> list[Figure]:
    """Return the comparisons of a suite for which its lines have cases."""
    suite = _SUITES[name]
    f = frame_of(lines, [case_name(line.get(field) for field in suite.case) for line in lines])
    suite.complete(f)
    return figures(name, f)


def _print_figures(name: str, lines: list[Line]) -> int:
    table = figures_of(name, lines) if lines else []
    print(
        _FORMAT.format("speedup over", "cases", "mean", "target", "worst", "minimum", "worst case")
    )
    for row in table:
        limits = (row.mean(), row.target, row.worst(), row.limit)
        texts = ["-" if number is None else f"{number:.2f}" for number in limits]
        verdict = row.ratios.idxmin() + ("" if row.holds() else "  MISSED")
        print(_FORMAT.format(row.what, len(row.ratios), *texts, verdict))
    return sum(not row.holds() for row in table)


def _accuracies(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    """Yield the means over the seeds, and whether they are within a standard error of PyG's."""
    for name, group in groups_of(lines, "graph", "model").items():
        own, other = ([line[key] for line in group] for key in ("accuracy", "pyg_accuracy"))
        error = standard_error(other)
        text = f"{case_name(name):24} {len(group):>3} seeds {mean(own):6.2f} %, PyG "
        yield f"{text}{mean(other):6.2f} +- {error:.2f} %", abs(mean(own) - mean(other)) <= error


def _print_verdicts(found: Iterable[tuple[str, bool]]) -> int:
    missed = 0
    for text, holds in found:
        print(text + ("" if holds else "  MISSED"))
        missed += not holds
    return missed


def _print_trainings(lines: list[Line]) -> int:
    print(training_table(lines))
    return 0  # there is no target


# By a field that only the lines of a suite have: the field that is None where a case has no result,
# and what prints the others and returns how many comparisons miss their target or minimum.
_KINDS: dict[str, tuple[str, Callable[[list[Line]], int]]] = {
    **{suite.field: (suite.result, partial(_print_figures, x)) for x, suite in _SUITES.items()},
    "pyg_accuracy": ("accuracy", lambda lines: _print_verdicts(_accuracies(lines))),
    "equal_time_metric": ("metric", _print_trainings),
    "features_metric": ("metric", lambda lines: _print_verdicts(verdicts(lines))),
}


def print_summary(path: Path, lines: list[Line]) -> int:
    """Print the table; returns how many comparisons miss their target or minimum, and how many
    cases have no result. Raises ValueError for lines that have no summary.
    """
    kinds = (kind for field, kind in _KINDS.items() if any(field in line for line in lines))
    result, show = next(kinds, (None, None))
    if result is None or show is None:
        raise ValueError(f"{path}: has no summary")
    missed = show([line for line in lines if line[result] is not None])
    missing = [line for line in lines if line[result] is None]
    for line in missing:
        case = case_name(value for value in line.values() if isinstance(value, (str, int)))
        print(f"no result: {case}: {line.get('failed')}")
    return missed + len(missing)
