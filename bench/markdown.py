"""Markdown tables, and the means and ratios in them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

Cell = object  # None is printed as a dash


def _text(cell: Cell, digits: int = 2) -> str:
    if cell is None:
        return "-"
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)


def markdown(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a Markdown table; floats have two digits after the decimal point."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def best(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


def mean_and_error(values: list[float]) -> str:
    """The mean and its standard error, which one value does not have."""
    mean = f"{statistics.mean(values):.2f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {statistics.stdev(values) / math.sqrt(len(values)):.2f}"
