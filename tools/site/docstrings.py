"""A griffe extension: lists of `name: text` in docstrings become lists of Markdown."""

from __future__ import annotations

import re
from typing import Any

import griffe

ITEM = re.compile(
    r"( *)([a-z_0-9`]+(?:, [a-z_0-9`]+)*): (.*)"
)  # as tests/python/core/test_docstrings.py


def with_lists(text: str) -> str:
    """Make items of lines such as `rows: how many`, and their other lines belong to them."""
    out: list[str] = []
    in_list = False
    for line in text.split("\n"):
        item = ITEM.fullmatch(line)
        if item and not item[1]:
            if not in_list and out and out[-1].strip():
                out.append("")
            names = ", ".join(f"`{name.strip('`')}`" for name in item[2].split(", "))
            out.append(f"- {names}: {item[3]}")
            in_list = True
        else:
            if in_list and line.strip() and not line.startswith(" "):
                in_list = False
                out.append("")
            out.append(line)
    return "\n".join(out)


class Lists(griffe.Extension):
    """Applies `with_lists` to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that griffe has read."""
        if obj.docstring:
            obj.docstring.value = with_lists(obj.docstring.value)
