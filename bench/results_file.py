"""Results files: a line of JSON for each case."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

Line = dict[str, Any]


def case_name(case: Iterable[Any]) -> str:
    """Return for example step/cora/sage/64/max/eager; fields that are None are left out."""
    return "/".join(str(part) for part in case if part is not None)


def groups_of(lines: Iterable[Line], *fields: str) -> dict[tuple[Any, ...], list[Line]]:
    """Return the lines by the values of these fields, in the order of the first ones."""
    found: dict[tuple[Any, ...], list[Line]] = {}
    for line in lines:
        found.setdefault(tuple(line[field] for field in fields), []).append(line)
    return found


def read_lines(path: Path) -> list[Line]:
    """Read the lines of a results file; none if it does not exist."""
    return read_results(path) if path.is_file() else []


def read_results(path: Path) -> list[Line]:
    """Read the lines of a results file or a pipe. Raises OSError, and ValueError for other text."""
    lines = []
    for number, line in enumerate(_whole_lines(path, path.read_text()).splitlines(), 1):
        try:
            lines.append(dict(json.loads(line)))
        except (TypeError, ValueError):
            raise ValueError(f"{path}:{number}: is no line of a results file") from None
    return lines


def _whole_lines(path: Path, text: str) -> str:
    """Return the text of a results file without the half line of a run that was killed."""
    before, _, last = text.rpartition("\n")
    try:
        json.loads(last)
    except ValueError:
        if not '{"'.startswith(last[:2]):
            message = f"{path}: has lines that are no results of bench; name another file"
            raise ValueError(message) from None
        return f"{before}\n" if before else ""
    return f"{text}\n"


def open_results(path: Path) -> TextIO:
    """Open a file to append to, and cut off a half line at its end; a pipe is written as it is."""
    whole = len(_whole_lines(path, path.read_text() if path.is_file() else "").encode())
    stream = path.open("a")
    if path.is_file():
        if whole > stream.tell():
            stream.write("\n")
        else:
            stream.truncate(whole)
    return stream
