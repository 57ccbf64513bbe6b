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
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.mean(values):.2f} ± {error:.2f}"
