"""Small changes at random places of the C code, and the tests that run each line: for tools/mutate --random."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOMS = ("core", "select", "db", "runtime", "tuner", "exported", "generator")
LABELS = ("unit", "db", "emit", "host", "cli")

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


def changes_of(line: str) -> Iterator[tuple[int, int, str]]:
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


def all_sites(root: Path) -> list[Site]:
    names = subprocess.run(["git", "ls-files", *(f"{room}/*.c" for room in ROOMS)], cwd=root, check=True,
                           capture_output=True, text=True).stdout.split()
    found = []
    for name in names:
        inside_comment = False
        for number, line in enumerate((root / name).read_text().split("\n"), 1):
            is_comment = inside_comment or SKIPPED.match(line)
            inside_comment = (inside_comment or "/*" in line) and "*/" not in line.rsplit("/*", 1)[-1]
            for begin, end, new in () if is_comment else changes_of(line):
                found.append(Site(name, number, begin, end, line[begin:end], new))
    return found


def drawn(root: Path, seed: str) -> list[Site]:
    """All sites of the tree in an order that the seed gives."""
    sites = all_sites(root)
    random.Random(seed).shuffle(sites)
    return sites


# ---- which tests run a line -------------------------------------------------------------------------------


def _tests(build: Path) -> list[dict[str, object]]:
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", "--label-regex",
                             f"^({'|'.join(LABELS)})$", "--label-exclude", "^covering$"],
                            check=True, capture_output=True, text=True).stdout
    return json.loads(listed)["tests"]


def _lines_run(build: Path, data: Path, root: Path) -> dict[str, list[int]]:
    """Of each file the lines that one test ran; its counters lie under `data`."""
    counters = [path for path in data.rglob("*.gcda") if "/warploom_objects.dir/" in str(path)]
    for path in counters:
        notes = build / path.relative_to(data / build.relative_to("/")).with_suffix(".gcno")
        path.with_suffix(".gcno").symlink_to(notes)
    if not counters:
        return {}
    report = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, counters)], cwd=build, check=True,
                            capture_output=True, text=True).stdout
    found: dict[str, list[int]] = {}
    for text in report.splitlines():
        for file in json.loads(text)["files"]:
            path = (build / file["file"]).resolve()
            if path.is_relative_to(root) and path.suffix == ".c":
                found[str(path.relative_to(root))] = [one["line_number"] for one in file["lines"] if one["count"]]
    return found


def tests_by_line(tree: Path, folder: Path) -> dict[str, dict[str, list[str]]]:
    """For each file and line number (as a text) the tests that run it, the quickest first; kept in `folder`."""
    kept = folder / "coverage.json"
    if kept.exists():
        return json.loads(kept.read_text())
    build = folder / "coverage"
    jobs = str(os.cpu_count() or 1)
    subprocess.run(["cmake", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Debug",
                    "-DCMAKE_C_FLAGS=--coverage -fprofile-update=atomic"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--parallel", jobs, "--target", *(f"tests-{label}" for label in LABELS)],
                   check=True, stdout=subprocess.DEVNULL)
    times: dict[str, float] = {}
    ran: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for test in _tests(build):
        name = str(test["name"])
        data = folder / "counters"
        shutil.rmtree(data, ignore_errors=True)
        done = subprocess.run(["ctest", "--test-dir", str(build), "--tests-regex", f"^{re.escape(name)}$"],
                              capture_output=True, text=True, env=dict(os.environ, GCOV_PREFIX=str(data)))
        seconds = re.search(r"Passed +([\d.]+) sec", done.stdout)
        if not seconds:
            continue  # skipped, or it does not pass with counters
        times[name] = float(seconds[1])
        for file, lines in _lines_run(build, data, tree).items():
            for line in lines:
                ran[file][str(line)].add(name)
    result = {file: {line: sorted(tests, key=times.__getitem__) for line, tests in lines.items()}
              for file, lines in ran.items()}
    kept.write_text(json.dumps(result))
    return result
