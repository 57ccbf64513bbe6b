"""Summarise a results file of `warploom bench` by the rules of its suite."""

from __future__ import annotations

import json
from pathlib import Path

from bench.reports.columns import Summary, Table
from bench.reports.suites import SUITES, frame_of_suite
from bench.results_file import Line


def suite_of(path: Path, lines: list[Line]) -> str:
    """Return the suite of a results file. ValueError names a line that has no such result."""
    name = str(lines[0].get("suite", "core")) if lines else "core"
    if name not in SUITES:
        raise ValueError(f"{path}: suite {name} has no summary; try python -m bench tables")
    for number, line in enumerate(lines, 1):
        for key, values in SUITES[name][1].items():
            value = line.get(key)
            if not value or (values is not None and value not in values):
                what = ", ".join(SUITES[name][1])
                raise ValueError(f"{path}:{number}: is no line of suite {name}: it needs {what}")
    return name


def _printable(line: Line) -> Line:
    """Return the line without control characters, which a terminal would obey."""
    return {
        key: "".join(x if x.isprintable() else "?" for x in value)
        if isinstance(value, str)
        else value
        for key, value in line.items()
    }


def summarise(path: Path, lines: list[Line]) -> Summary:
    """Summarise the lines of a results file of `warploom bench`."""
    name = suite_of(path, lines)
    if not lines:
        return []
    return SUITES[name][0](frame_of_suite(name, [_printable(line) for line in lines]))


def as_json(summary: Summary) -> str:
    """Return {"tables": [{"titles": [...], "rows": [[...]]}], "lines": [...]}."""
    tables = [{"titles": x.titles(), "rows": x.rows} for x in summary if isinstance(x, Table)]
    return json.dumps({"tables": tables, "lines": [x for x in summary if isinstance(x, str)]})
