"""Columns of numbers and texts from the lines of a results file, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

import numpy as np
import pandas as pd

from bench.markdown import Cell, markdown
from bench.results_file import Line


class Table(NamedTuple):
    head: str  # "matrix | N | us"
    rows: Sequence[Sequence[Cell]]

    def titles(self) -> list[str]:
        return self.head.split(" | ")


Summary = list[Union[Table, str]]


def frame_of(lines: list[Line], names: Sequence[str]) -> pd.DataFrame:
    """Return the lines by the names of their cases; a member of an object is "object.member"."""
    return pd.json_normalize(lines).set_axis(pd.Index(names, dtype=object), axis=0)


def numbers(f: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Return columns as numbers, NaN where a line has none."""
    return f.reindex(columns=list(keys)).astype(float)


def texts(values: pd.Series, form: str) -> list[str]:
    """Format the numbers; a dash stands for what a line does not have."""
    return [form.format(value) if np.isfinite(value) else "-" for value in values]


def _cells(f: pd.DataFrame, column: str) -> list[Cell]:
    name, _, form = column.partition(":")
    if form.startswith("."):
        columns = numbers(f, *name.split(" / ")).to_numpy().T
        digits, _, unit = form.partition("f")
        with np.errstate(divide="ignore", invalid="ignore"):
            values = columns[0] if len(columns) == 1 else columns[0] / columns[1]
        return list(texts(pd.Series(values), f"{{:{digits}f}}{unit}"))
    found = f.reindex(columns=[name])[name].astype(object)
    known: list[Cell] = found.where(found.notna(), "-").tolist()
    return [f"`{x}`" for x in known] if form else known


def table(head: str, columns: str, f: pd.DataFrame) -> Table:
    """Return a table of all lines, in which a dash stands for what a line does not have.

    columns: of the frame, such as "n | us:.1f | us / best_us:.2fx | variant:`", where the second
        one has a digit after the point, the third one is a quotient, and the last one code.
    """
    cells = [_cells(f, column) for column in columns.split(" | ")]
    return Table(head, [list(row) for row in zip(*cells)])


def as_markdown(summary: Summary) -> str:
    return "\n\n".join(
        part if isinstance(part, str) else markdown(part.titles(), part.rows) for part in summary
    )


def best_of(times: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """Return the least time of each line, and that as a text with the name of its column."""
    times = times.where(times > 0, np.inf)
    least, names = times.min(axis=1), times.idxmin(axis=1).str.rpartition(".")[2]
    cells = [f"{us:.1f} ({name})" if np.isfinite(us) else "-" for us, name in zip(least, names)]
    return least.where(np.isfinite(least)), cells
