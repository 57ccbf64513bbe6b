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


def numbers(lines: list[Line], *keys: str) -> pd.DataFrame:
    """Return members of the lines, NaN where a line has no such number."""
    return pd.DataFrame(lines).reindex(columns=list(keys)).astype(float)


def members(lines: list[Line], key: str, names: Sequence[str]) -> pd.DataFrame:
    """Return members of an object in each line."""
    return numbers([line.get(key) or {} for line in lines], *names)


def case_names(lines: list[Line], key: str = "matrix") -> list[str]:
    return [f"{line[key]}, N = {line['n']}" for line in lines]


def code_of(lines: list[Line], key: str) -> list[str]:
    return [f"`{line.get(key) or '-'}`" for line in lines]


def values_of(lines: list[Line], *keys: str) -> list[list[Cell]]:
    return [[line.get(key, "-") for line in lines] for key in keys]


def table(head: str, *columns: Sequence[Cell]) -> Table:
    return Table(head, list(zip(*columns)))


def best_of(times: pd.DataFrame) -> tuple[pd.Series, list[str]]:
    """Return the least time of each line, and that as a text with the name of its column."""
    times = times.where(times > 0, np.inf)
    least, names = times.min(axis=1), times.idxmin(axis=1)
    cells = [f"{us:.1f} ({name})" if np.isfinite(us) else "-" for us, name in zip(least, names)]
    return least.where(np.isfinite(least)), cells
