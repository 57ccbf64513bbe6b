"""Small changes at random places of the C code and of the Python package: for tools/mutate --random.

A change replaces one token (== by !=, < by <=, + by -, && by ||, a number by the next one, a status by another) or
deletes one statement.
"""

from __future__ import annotations

import ast
import io
import keyword
import random
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILES = {
    "c": tuple(f"{room}/*.c" for room in ("core", "select", "db", "runtime", "tuner", "exported", "generator")),
    "py": ("python/warploom/*.py", ":!python/warploom/_build.py"),  # _build.py is not installed
}

# A pattern of one token with its surroundings, and what takes the place of the token.
SWAPS = (
    (r"(?<= )==(?= )", "!="), (r"(?<= )!=(?= )", "=="), (r"(?<= )<(?= )", "<="), (r"(?<= )<=(?= )", "<"),
    (r"(?<= )>(?= )", ">="), (r"(?<= )>=(?= )", ">"), (r"(?<= )\+(?= )", "-"), (r"(?<= )-(?= )", "+"),
    (r"(?<= )&&(?= )", "||"), (r"(?<= )\|\|(?= )", "&&"), (r"\bWLM_ERR_IO\b", "WLM_ERR_INVALID_ARGUMENT"),
    (r"\bWLM_ERR_(?!IO\b|MISMATCH\b)[A-Z_]+\b", "WLM_ERR_IO"), (r"\breturn WLM_OK;", "return WLM_ERR_IO;"),
)
NUMBER = re.compile(r"(?<![\w.\"%])\d+(?![\w.\"])")
# An assignment or a call without a result, on one line.
STATEMENT = re.compile(r"^ +(?!return\b|break|continue|case\b|goto\b|else\b|default\b)"
                       r"(?:\w+(?:->\w+|\.\w+|\[[^]]*\])* [-+*/|&]?= [^;]*|\w+\([^;]*\)"
                       r"|[-+]{2}[\w>.-]+|[\w>.-]+[-+]{2});$")
SKIPPED = re.compile(r"^\s*(?:#|/\*|\*|//|static const|const |enum |typedef |_Static_assert)")

PYTHON_SWAPS = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "and": "or", "or": "and",
    "True": "False", "False": "True", "is": "is not", "not": "",
}


class Site(NamedTuple):
    """A change: the characters from `begin` to `end` of a line become `new`."""

    file: str
    line: int
    begin: int
    end: int
    old: str
    new: str

    def applied_to(self, text: str) -> str:
        lines = text.split("\n")
        before = lines[self.line - 1]
        lines[self.line - 1] = before[: self.begin] + self.new + before[self.end :]
        return "\n".join(lines)

    @property
    def row(self) -> str:
        """Names the change in a table; the column tells changes of equal tokens of a line apart."""
        return f"{self.file}:{self.line}:{self.begin + 1}\t{self.old.strip()}\t{self.new}"


def _changes_of_c(line: str) -> Iterator[tuple[int, int, str]]:
    """Yields where the changes of a line of code begin and end, and what they put there."""
    code = re.sub(r'"(?:\\.|[^"\\])*"', lambda text: '"' * len(text[0]), line)  # texts do not count
    code = re.sub(r"/\*.*", "", code)
    for pattern, new in SWAPS:
        for found in re.finditer(pattern, code):
            yield found.start(), found.end(), new
    for found in NUMBER.finditer(code):
        yield found.start(), found.end(), str(int(found[0]) + 1)
    if STATEMENT.match(code):
        yield len(code) - len(code.lstrip()), len(code), ";"


def _sites_of_c(name: str, text: str) -> Iterator[Site]:
    inside_comment = False
    for number, line in enumerate(text.split("\n"), 1):
        is_comment = inside_comment or SKIPPED.match(line)
        inside_comment = (inside_comment or "/*" in line) and "*/" not in line.rsplit("/*", 1)[-1]
        for begin, end, new in () if is_comment else _changes_of_c(line):
            yield Site(name, number, begin, end, line[begin:end], new)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that may be deleted: calls, assignments and raises on one line."""
    for node in ast.walk(tree):
        simple = isinstance(node, (ast.Assign, ast.AugAssign, ast.Raise)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        if simple and node.lineno == node.end_lineno:
            yield node


def _sites_of_python(name: str, text: str) -> Iterator[Site]:
    lines = text.split("\n")
    before = tokenize.TokenInfo(tokenize.NEWLINE, "", (0, 0), (0, 0), "")
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type != tokenize.NL]
    for token, after in zip(tokens, tokens[1:]):
        new = PYTHON_SWAPS.get(token.string)
        # "-1" and "*, +" have no left operand; "is not" and "not in" are one operator.
        signed = token.string in "+-" and (before.type == tokenize.OP and before.string not in ")]}"
                                           or keyword.iskeyword(before.string))
        double = token.string == "is" and after.string == "not" or token.string == "not" and (
            before.string == "is" or after.string == "in")
        if token.type == tokenize.NUMBER and token.string.isdigit():
            new = str(int(token.string) + 1)
        if token.type in (tokenize.OP, tokenize.NAME, tokenize.NUMBER) and new is not None and not signed | double:
            line, begin = token.start
            yield Site(name, line, begin, token.end[1], token.string, new)
        before = token
    for node in _statements(ast.parse(text)):
        line = lines[node.lineno - 1]
        begin = node.col_offset
        if line[:begin].isspace() and len(line.encode()) == len(line):  # offsets of ast count bytes
            yield Site(name, node.lineno, begin, node.end_col_offset, line[begin : node.end_col_offset], "pass")


def drawn(root: Path, patterns: tuple[str, ...], seed: str) -> tuple[list[Site], int]:
    """The sites of some files in an order that the seed gives, and the number of lines of the files."""
    names = subprocess.run(["git", "ls-files", *patterns], cwd=root, check=True, capture_output=True,
                           text=True).stdout.split()
    sites, lines = [], 0
    for name in names:
        text = (root / name).read_text()
        lines += text.count("\n")
        sites += (_sites_of_c if name.endswith(".c") else _sites_of_python)(name, text)
    random.Random(seed).shuffle(sites)
    return sites, lines
