"""Docstrings keep the form of their lists: an item is `name: text`, its other lines indented."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "python" / "warploom"
ITEM = re.compile(r"( *)[a-z_0-9`, *]+: ")


def run_together(docstring: str) -> Iterator[str]:
    """The lines that follow an item as if they were another one."""
    indent = None  # of the item above, while its lines go on
    for line in docstring.splitlines()[1:]:
        item = ITEM.match(line)
        here = len(line) - len(line.lstrip())
        if not line.strip():
            indent = None
        elif indent is not None and here <= indent and not item:
            yield line.strip()
        elif item and (indent is None or here <= indent):
            indent = here


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield text


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.name)
def test_lists_are_whole(path: Path) -> None:
    assert [line for text in docstrings(path) for line in run_together(text)] == []


def test_a_list_that_was_run_together_is_found() -> None:
    text = "Does it.\n\nvalues: in order, so\nthis goes on at the margin.\nrows: how many"
    assert list(run_together(text)) == ["this goes on at the margin."]
    whole = "Does it.\n\nrows: how many,\n    or None\ncols: the same\n\nThen more."
    assert not list(run_together(whole))
