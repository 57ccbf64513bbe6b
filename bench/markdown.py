"""Markdown tables, and the means and ratios in them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

Cell = object  # None is printed as a dash


def texts_of(line: Mapping[str, float | None], form: str, *fields: str) -> list[str]:
    """Format numbers of a line; None is a dash."""
    return ["-" if line[field] is None else format(line[field], form) for field in fields]


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def markdown(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a Markdown table; floats have two digits after the decimal point."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows]
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
