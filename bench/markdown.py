"""Markdown tables, and the means and ratios in them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

Cell = object  # None is printed as a dash


def text_of(cell: Cell, form: str = ".2f") -> str:
    """Format a float; None is a dash."""
    if cell is None:
        return "-"
    return format(cell, form) if isinstance(cell, float) else str(cell)


def markdown(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a Markdown table; floats have two digits after the decimal point."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(text_of(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def best(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


def standard_error(values: list[float]) -> float:
    """The standard error of the mean; NaN of one value."""
    if len(values) < 2:
        return math.nan
    return statistics.stdev(values) / math.sqrt(len(values))


def mean_and_error(values: list[float]) -> str:
    """The mean and its standard error, which one value does not have."""
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) < 2 else f"{mean} ± {standard_error(values):.2f}"
