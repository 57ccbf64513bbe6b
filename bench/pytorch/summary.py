"""Summaries of accuracies and of budgets of them, which have verdicts in the place of ratios of
times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from statistics import geometric_mean, mean

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


HELD, OF_BEST, REDDIT = 0.9, 0.85, 5.0  # the least that budgets shall reach


def _budgets(lines: list[Line]) -> Iterator[tuple[str, bool]]:
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


# By a field that only the lines of a suite have: the field that is None where a case has no result,
# and what gives texts of the others and how many targets are missed.
_KINDS: dict[str, tuple[str, Callable[[list[Line]], tuple[list[str], int]]]] = {
    "pyg_accuracy": ("accuracy", lambda lines: _verdicts(_accuracies(lines))),
    "calibrate_seconds": ("us", lambda lines: _verdicts(_budgets(lines))),
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
