"""Ratios of many cases: their geometric mean, their worst cases, and their targets.

bench/suites/figures.tsv lists the figures of each suite: the least of the fields `time`, or the
number there, divided by the field `over`, of the lines for which the expression `lines` (of
`DataFrame.query`) holds. A text such as "step {mode}, PyG" stands for a figure for each mode; a row
does not repeat a text of the rows before it. `worst` says whether the least ratio is the worst one
(of a speed-up) or the most (of a cost), and `target` and `limit` what the mean and the worst ratio
must reach.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.reports.columns import numbers

FIGURES = Path(__file__).parents[1] / "suites" / "figures.tsv"


def geometric_mean(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


class Figure(NamedTuple):
    """A comparison over many cases."""

    what: str
    ratios: pd.Series  # by case: "cora, N = 32"
    is_cost: bool = False  # our time over another: the greatest is the worst
    target: float | None = None  # of the geometric mean
    limit: float | None = None  # of each ratio

    def mean(self) -> float:
        return geometric_mean(self.ratios)

    def holds(self) -> bool:
        """Whether the mean and the worst case of a speed-up reach their targets."""
        return self.mean() >= (self.target or 0) and self.worst() >= (self.limit or 0)

    def target_text(self, value: float, target: float | None) -> str:
        """Return for example "at least 1.50x, met"."""
        if target is None:
            return "-"
        holds = value <= target if self.is_cost else value >= target
        least = "most" if self.is_cost else "least"
        return f"at {least} {target:.2f}x, {'met' if holds else 'missed'}"

    def worst(self) -> float:
        return float(self.ratios.max() if self.is_cost else self.ratios.min())

    def worst_cases(self, count: int) -> str:
        ranked = self.ratios.sort_values(ascending=not self.is_cost, kind="stable")[:count]
        return ", ".join(f"{value:.2f}x ({case})" for case, value in ranked.items())


def _least(f: pd.DataFrame, fields: str) -> pd.Series:
    """Return the least of the fields of each line, or the number that stands in their place."""
    if fields.isdigit():
        return pd.Series(float(fields), f.index)
    return numbers(f, *fields.split()).min(axis=1)


def _figures_of(row: dict[str, str], f: pd.DataFrame) -> Iterator[Figure]:
    """Yield the figures of a row of the list."""
    what, is_cost = row["figure"], row["worst"] == "most"
    target, limit = (float(row[key]) if row[key] else None for key in ("target", "limit"))
    chosen = f.query(row["lines"]) if row["lines"] else f
    ratios = _least(chosen, row["time"]) / numbers(chosen, row["over"])[row["over"]]
    lines = chosen.to_dict("records") if "{" in what else [{}] * len(chosen)
    names = np.array([what.format(**line) for line in lines], dtype=object)
    usable = (ratios > 0).to_numpy()  # others lack one of the times
    for name in dict.fromkeys(names[usable]):
        yield Figure(name, ratios[usable & (names == name)], is_cost, target, limit)


def figures(suite: str, f: pd.DataFrame) -> list[Figure]:
    """Return the figures of a suite that have cases; `f` has its lines, by the names of cases."""
    found: dict[str, Figure] = {}
    with FIGURES.open() as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for figure in _figures_of(row, f) if row["suite"] == suite else ():
                found.setdefault(figure.what, figure)
    return list(found.values())


def frame_of_figures(found: Sequence[Figure], worst: int) -> pd.DataFrame:
    """Return a line for each figure, with so many of its worst cases."""
    lines = [
        {
            "what": x.what,
            "cases": len(x.ratios),
            "mean": x.mean(),
            "target": x.target_text(x.mean(), x.target),
            "worst": x.worst_cases(worst),
            "limit": x.target_text(x.worst(), x.limit),
        }
        for x in found
    ]
    return pd.DataFrame(lines, columns=["what", "cases", "mean", "target", "worst", "limit"])
