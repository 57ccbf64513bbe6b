"""Summaries of accuracies, which have verdicts in the place of ratios of times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import mean

from bench.markdown import standard_error
from bench.pytorch.sampling_tables import training_table, verdicts
from bench.reports.columns import Summary
from bench.reports.summary import without_result
from bench.results_file import Line, case_name, groups_of


def _accuracies(lines: list[Line]) -> Iterator[tuple[str, bool]]:
    """Yield the means over the seeds, and whether they are within a standard error of PyG's."""
    for name, group in groups_of(lines, "graph", "model").items():
        own, other = ([line[key] for line in group] for key in ("accuracy", "pyg_accuracy"))
        error = standard_error(other)
        text = f"{case_name(name):24} {len(group):>3} seeds {mean(own):6.2f} %, PyG "
        yield f"{text}{mean(other):6.2f} +- {error:.2f} %", abs(mean(own) - mean(other)) <= error


def _verdicts(found: Iterable[tuple[str, bool]]) -> tuple[list[str], int]:
    found = list(found)
    texts = [text + ("" if holds else "  MISSED") for text, holds in found]
    return texts, sum(not holds for _, holds in found)


# By a field that only the lines of a suite have: the field that is None where a case has no result,
# and what gives texts of the others and how many targets are missed.
_KINDS: dict[str, tuple[str, Callable[[list[Line]], tuple[list[str], int]]]] = {
    "pyg_accuracy": ("accuracy", lambda lines: _verdicts(_accuracies(lines))),
    "equal_time_metric": ("metric", lambda lines: ([training_table(lines)], 0)),
    "features_metric": ("metric", lambda lines: _verdicts(verdicts(lines))),
}


def summarise_accuracies(lines: list[Line]) -> tuple[Summary, int]:
    """As bench.reports.summary.summarise, for the lines of one of these suites."""
    kinds = (kind for field, kind in _KINDS.items() if any(field in line for line in lines))
    result, show = next(kinds)
    texts, missed = show([line for line in lines if line[result] is not None])
    missing = without_result(lines, result)
    return ["\n".join([*texts, *missing])], missed + len(missing)
