"""Columns of numbers and texts from the lines of a results file, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

import numpy as np
import pandas as pd

from bench.markdown import Cell
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


def table(head: str, f: pd.DataFrame, *columns: tuple[str, str] | Sequence[Cell]) -> Table:
    """Return a table of all lines.

    columns: the cells, or the name of a column of the frame and its form, such as "{:.1f}" for
        numbers, "" for other members, and "`{}`" for code.
    """
    cells: list[Sequence[Cell]] = []
    for column in columns:
        if not isinstance(column, tuple):
            cells.append(column)
        elif "." in column[1]:
            cells.append(texts(numbers(f, column[0])[column[0]], column[1]))
        else:
            found = f.reindex(columns=[column[0]])[column[0]].astype(object)
            known = found.where(found.notna(), "-").tolist()
            cells.append([column[1].format(x) for x in known] if column[1] else known)
    return Table(head, list(zip(*cells)))


def best_of(times: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """Return the least time of each line, and that as a text with the name of its column."""
    times = times.where(times > 0, np.inf)
    least, names = times.min(axis=1), times.idxmin(axis=1).str.rpartition(".")[2]
    cells = [f"{us:.1f} ({name})" if np.isfinite(us) else "-" for us, name in zip(least, names)]
    return least.where(np.isfinite(least)), cells
