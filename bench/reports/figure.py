"""Ratios of many cases: their geometric mean, their worst cases, and their target."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd


def texts(values: pd.Series, form: str) -> list[str]:
    """Format the numbers; a dash stands for what a line does not have."""
    return [form.format(value) if np.isfinite(value) else "-" for value in values]


def target_text(value: float, target: float | None, is_limit: bool) -> str:
    """Return for example "at least 1.50x, met"; is_limit: the target is an upper bound."""
    if target is None:
        return "-"
    holds = value <= target if is_limit else value >= target
    return f"at {'most' if is_limit else 'least'} {target:.2f}x, {'met' if holds else 'missed'}"


def geometric_mean(ratios: pd.Series) -> float:
    return float(np.exp(np.log(ratios).mean()))


class Figure(NamedTuple):
    """A comparison over many cases. Ratios that are not above 0 are left out."""

    what: str
    ratios: pd.Series  # by case: "cora, N = 32"
    target: float | None = None  # of the geometric mean
    least: float | None = None  # of each ratio
    is_limit: bool = False  # our time over another: the greatest is the worst

    def mean(self) -> float:
        return geometric_mean(self.ratios)

    def holds(self) -> bool:
        """Whether the mean and the worst case of a speed-up reach their targets."""
        return self.mean() >= (self.target or 0) and self.worst() >= (self.least or 0)

    def target_text(self) -> str:
        return target_text(self.mean(), self.target, self.is_limit)

    def worst(self) -> float:
        return float(self.ratios.max() if self.is_limit else self.ratios.min())

    def worst_cases(self, count: int) -> str:
        ranked = self.ratios.sort_values(ascending=not self.is_limit, kind="stable")[:count]
        return ", ".join(f"{value:.2f}x ({case})" for case, value in ranked.items())


def figures_of(figures: Iterable[Figure]) -> list[Figure]:
    """Return the figures that have cases, with these cases only."""
    kept = (figure._replace(ratios=figure.ratios[figure.ratios > 0]) for figure in figures)
    return [figure for figure in kept if len(figure.ratios)]
