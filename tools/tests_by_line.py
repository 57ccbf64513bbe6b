"""Which tests run each line, and which of them fails after a change: for tools/mutate --random.

gcov counts the lines of C, coverage.py those of the Python package. The lines of each test are kept in a file, so an
interrupted map continues with the next test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

LABELS = ("unit", "db", "emit", "host", "cli")
LONGEST = 1800.0  # seconds of a test of C while it is measured
LONGEST_FILE = 600.0  # and of a file of tests of Python
FLAGS = "-O1 -DNDEBUG --coverage -Wno-maybe-uninitialized -Wno-format-truncation"

# A change may send signals to all processes that it may reach.
ALONE = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child")


class Test(NamedTuple):
    name: str
    command: list[str]
    environment: dict[str, str]

    @property
    def target(self) -> str:
        return Path(self.command[0]).name

    def run(self, limit: float, counters: Path) -> int:
        """The exit status, and 1 where the test takes longer than `limit` seconds; counters go to a folder."""
        environment = {**os.environ, **self.environment, "GCOV_PREFIX": str(counters), "GCOV_ERROR_FILE": os.devnull}
        with subprocess.Popen([*ALONE, *self.command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL, env=environment) as process:
            try:
                return process.wait(limit)
            except subprocess.TimeoutExpired:
                process.kill()  # and with it all processes in its namespace
                return 1


def configure(tree: Path, build: Path) -> None:
    launcher = os.environ.get("CMAKE_C_COMPILER_LAUNCHER", "")
    subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=None",
                    f"-DCMAKE_C_FLAGS={FLAGS}", f"-DCMAKE_C_COMPILER_LAUNCHER={launcher}"],
                   check=True, stdout=subprocess.DEVNULL)


def all_tests(build: Path) -> dict[str, Test]:
    listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1", "--label-regex",
                             f"^({'|'.join(LABELS)})$", "--label-exclude", "^covering$"],
                            check=True, capture_output=True, text=True).stdout
    found = {}
    for one in json.loads(listed)["tests"]:
        values = {entry["name"]: entry["value"] for entry in one["properties"]}
        environment = dict(text.split("=", 1) for text in values.get("ENVIRONMENT", []))
        found[one["name"]] = Test(one["name"], one["command"], environment)
    return found


def _lines_run(build: Path, counters: Path, tree: Path) -> dict[str, dict[int, bool]]:
    """Of each file the lines with code, and whether one test ran them."""
    data = [path for path in counters.rglob("*.gcda") if "/warploom_objects.dir/" in str(path)]
    for path in data:
        notes = build / path.relative_to(counters / build.relative_to("/")).with_suffix(".gcno")
        path.with_suffix(".gcno").symlink_to(notes)
    if not data:
        return {}
    report = subprocess.run(["gcov", "--json-format", "--stdout", *map(str, data)], cwd=build, check=True,
                            capture_output=True, text=True).stdout
    found: dict[str, dict[int, bool]] = defaultdict(dict)
    for text in report.splitlines():
        for file in json.loads(text)["files"]:
            path = (build / file["file"]).resolve()
            if path.is_relative_to(tree) and path.suffix == ".c":
                lines = found[str(path.relative_to(tree))]
                for one in file["lines"]:
                    lines[one["line_number"]] = lines.get(one["line_number"], False) or one["count"] > 0
    return found


class Tests:
    """Tests of one language: the seconds of those that pass, and the tests of a line, the quickest first."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.ran: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def sort(self) -> None:
        for lines in self.ran.values():
            for tests in lines.values():
                tests.sort(key=self.seconds.__getitem__)

    def of(self, file: str, line: int) -> list[str]:
        """A line without code belongs to the statement before it, or, as data, to all of its file."""
        lines = self.ran[file]
        for first in range(line, max(line - 20, 0), -1):
            if str(first) in lines:
                return lines[str(first)]
        return sorted({test for tests in lines.values() for test in tests}, key=self.seconds.__getitem__)

    def fate(self, file: str, tests: list[str]) -> str:
        """The first of the tests that notices how a file was changed, "the compiler", or "" if nothing does."""
        raise NotImplementedError


class TestsOfC(Tests):
    def __init__(self, tree: Path, folder: Path) -> None:
        super().__init__()
        self.build = folder / "counted"
        self.nowhere = folder / "nowhere"  # a file: counters cannot be written below it
        self.nowhere.touch()
        configure(tree, self.build)
        if not self._make([f"tests-{label}" for label in LABELS]):
            sys.exit("mutate: without any change the tests do not compile; mend that first")
        self.all = all_tests(self.build)
        left_out = []
        (folder / "map").mkdir(exist_ok=True)
        for name in self.all:
            kept = folder / "map" / f"{name}.json"
            if not kept.exists():
                kept.write_text(json.dumps(self._measured(name, tree, folder / "counters")))
            one = json.loads(kept.read_text())
            if one["status"]:
                left_out.append(name)
                continue
            self.seconds[name] = one["seconds"]
            for file, lines in one["lines"].items():
                for line, is_run in lines.items():
                    self.ran[file][line] += [name] if is_run else []
        self.sort()
        if left_out:
            print(f"mutate: skipped or failing with counters, and left out: {' '.join(left_out)}", flush=True)

    def _make(self, targets: list[str]) -> bool:
        return subprocess.run(["cmake", "--build", self.build, "--parallel", str(os.cpu_count()), "--target", *targets],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def _measured(self, name: str, tree: Path, counters: Path) -> dict[str, object]:
        shutil.rmtree(counters, ignore_errors=True)
        began = time.monotonic()
        status = self.all[name].run(LONGEST, counters)
        seconds = round(time.monotonic() - began, 2)
        lines = {} if status else _lines_run(self.build, counters, tree)
        return {"status": status, "seconds": seconds, "lines": lines}

    def fate(self, file: str, tests: list[str]) -> str:
        counts = self.build / "CMakeFiles" / "warploom_objects.dir" / f"{file}.gcda"
        counts.unlink(missing_ok=True)  # of other code, about which the next process would complain
        begin = 0
        while begin < len(tests):  # only a few programs are linked at first, since they notice most changes
            batch = tests[begin : 2 * begin + 2]
            if not self._make(sorted({self.all[name].target for name in batch})):
                return "the compiler"
            for name in batch:
                if self.all[name].run(60 + 5 * self.seconds[name], self.nowhere):
                    return name
            begin += len(batch)
        return ""


class TestsOfPython(Tests):
    """Changes an installed copy of the package, which has the compiled part that `python` finds installed."""

    def __init__(self, tree: Path, folder: Path, python: str) -> None:
        super().__init__()
        self.tree, self.package = tree, folder / "site" / "warploom"
        installed = subprocess.run([python, "-c", "import warploom; print(warploom.__path__[0])"], check=True,
                                   capture_output=True, text=True, cwd="/").stdout.strip()
        shutil.rmtree(self.package, ignore_errors=True)
        shutil.copytree(installed, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(tree / "python" / "warploom", self.package, dirs_exist_ok=True)
        paths = [str(self.package.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        program = [python, Path(__file__).with_name("python_tests.py"), self.package, folder / "cache"]
        self.server = subprocess.Popen(program, cwd=tree, env=environment, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        (folder / "map").mkdir(exist_ok=True)
        bad: list[str] = []
        unnamed: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(tree.glob("tests/python/**/test_*.py")):
            file = str(path.relative_to(tree))
            kept = folder / "map" / f"{file.replace('/', '.')}.json"
            if not kept.exists():
                kept.write_text(json.dumps(self._asked({"measure": file, "limit": LONGEST_FILE})))
            one = json.loads(kept.read_text())
            if isinstance(one, str):
                bad.append(f"{file} ({one})")
                continue
            self.seconds.update(one["seconds"])
            bad += one["failed"]
            for name, lines in one["lines"].items():
                for line, tests in lines.items():
                    # What runs while the file is imported, or in a process of a test, every test of it may need.
                    unnamed[f"python/warploom/{name}"][line] += list(one["seconds"]) if "" in tests else []
                    self.ran[f"python/warploom/{name}"][line] += filter(None, tests)
        for file, lines in self.ran.items():
            for line, tests in lines.items():
                tests += unnamed[file][line] if not tests else []
        self.sort()
        if bad:
            print(f"mutate: failing with counters, and left out: {' '.join(bad)}", flush=True)

    def _asked(self, request: dict[str, object]) -> object:
        assert self.server.stdin and self.server.stdout
        print(json.dumps(request), file=self.server.stdin, flush=True)
        return json.loads(self.server.stdout.readline())

    def fate(self, file: str, tests: list[str]) -> str:
        target = self.package / Path(file).relative_to("python/warploom")
        before = target.read_text()
        target.write_text((self.tree / file).read_text())
        limit = 60 + 5 * sum(self.seconds[name] for name in tests)
        try:
            found = str(self._asked({"run": tests, "limit": limit}))
        finally:
            target.write_text(before)
        if found and self._asked({"run": [found] if found in tests else tests, "limit": limit}):
            # It fails without the change, too: a test beside others, or a file that is not imported beside others.
            culprit = found.partition(", which")[0]
            rest = [name for name in tests if not name.startswith(culprit)]
            return self.fate(file, rest) if len(rest) < len(tests) else ""
        return found
