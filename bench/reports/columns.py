"""Tables of numbers and texts from the lines of a results file, in Markdown."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Union

import numpy as np
import pandas as pd

from bench.results_file import Line

Cell = object  # None is printed as a dash, and a float with two digits after the point


class Table(NamedTuple):
    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]


Summary = list[Union[Table, str]]


def _text(cell: Cell) -> str:
    if cell is None:
        return "-"
    return f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def markdown(head: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(_text, row)) + " |" for row in rows]
    return "\n".join(lines)


def as_markdown(summary: Summary) -> str:
    return "\n\n".join(part if isinstance(part, str) else markdown(*part) for part in summary)


# ---- numbers ------------------------------------------------------------------------------------


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return None if numerator is None or not denominator else numerator / denominator


def standard_error(values: list[float]) -> float:
    """The standard error of the mean; NaN of one value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def mean_and_error(values: list[float]) -> str:
    """The mean and its standard error, which one value does not have."""
    mean = f"{statistics.mean(values):.2f}"
    return mean if len(values) < 2 else f"{mean} ± {standard_error(values):.2f}"


# ---- columns of lines ---------------------------------------------------------------------------


def frame_of(lines: list[Line], names: Sequence[str]) -> pd.DataFrame:
    """Return the lines by the names of their cases; a member of an object is "object.member"."""
    return pd.json_normalize(lines).set_axis(pd.Index(names, dtype=object), axis=0)


def numbers(f: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return columns as numbers, NaN where a line has none."""
    return f.reindex(columns=list(keys)).astype(float)


def texts(values: pd.Series, form: str) -> list[str]:
    """Format the numbers; a dash stands for what a line does not have."""
    return [form.format(value) if np.isfinite(value) else "-" for value in values]


def best_of(times: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """Return the least time of each line, and that as a text with the name of its column."""
    times = times.where(times > 0, np.inf)
    least, names = times.min(axis=1), times.idxmin(axis=1).str.rpartition(".")[2]
    cells = [f"{us:.1f} ({name})" if np.isfinite(us) else "-" for us, name in zip(least, names)]
    return least.where(np.isfinite(least)), cells


def _cells(f: pd.DataFrame, column: str) -> list[Cell]:
    name, _, form = column.partition(":")
    if form.startswith("."):
        columns = numbers(f, *name.split(" / ")).to_numpy().T
        digits, letter, unit = form[:2], form[2:3], form[3:]
        with np.errstate(divide="ignore", invalid="ignore"):
            values = columns[0] if len(columns) == 1 else columns[0] / columns[1]
        return list(texts(pd.Series(values), f"{{:{digits}{letter}}}{unit}"))
    found = f.reindex(columns=[name])[name].astype(object)
    known: list[Cell] = found.where(found.notna(), "-").tolist()
    return [f"`{x}`" for x in known] if form else known


def table(columns: str, f: pd.DataFrame) -> Table:
    """Return a table of all lines, in which a dash stands for what a line does not have.

    columns: titles and columns of the frame, such as "n | time=us:.1f | over the best=us /
        best_us:.2fx | kernel=variant:`". The first one has one name for both, the second one has a
        digit after the point, the third one is a quotient, and the last one is code.
    """
    parts = [column.partition("=") for column in columns.split(" | ")]
    cells = [_cells(f, column or title) for title, _, column in parts]
    return Table([title for title, _, _ in parts], [list(row) for row in zip(*cells)])
