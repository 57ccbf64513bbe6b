"""Runs tests of the Python package for tools/mutate --random, each request in a forked process.

What takes long to import is imported once, before the forks; the package itself is imported in each. A line of the
standard input is a request, and a line of the standard output the answer:
  {"measure": FILE, "limit": S}    runs all tests of a file with coverage.py; their seconds, and the lines they run
  {"run": [TEST...], "limit": S}   runs tests until one fails; its name, or "" if all pass
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

BEFORE = ("numpy", "scipy.sparse", "torch", "torch_geometric.nn", "torch._dynamo", "hypothesis", "coverage")
PACKAGE = Path(sys.argv[1])  # the folder of the installed copy that is changed
CACHE = sys.argv[2]  # of compiled kernels, which all runs share


class Watcher:
    """A plugin of pytest that notes seconds and failures, and names the running test to coverage.py."""

    def __init__(self, coverage: Any = None, wanted: list[str] | None = None) -> None:
        self.coverage, self.failed = coverage, ""
        self.wanted = wanted and {test: at for at, test in enumerate(wanted)}  # None: all tests
        self.seconds: dict[str, float] = defaultdict(float)
        self.bad: dict[str, bool] = {}  # the tests that do not pass; whether they fail

    def pytest_sessionstart(self) -> None:
        os.environ["XDG_CACHE_HOME"] = CACHE  # conftest.py has set it to an empty folder

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.wanted is not None:
            wanted = self.wanted
            items[:] = sorted((item for item in items if item.nodeid in wanted), key=lambda item: wanted[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self.coverage:
            self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed = self.failed or report.nodeid
        if not report.passed:
            self.bad[report.nodeid] = report.failed

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or f"{report.nodeid}, which cannot be imported"


OPTIONS = ("-q", "-p", "no:cacheprovider", "-p", "no:warnings")


def measured(file: str, folder: Path) -> dict[str, Any]:
    import coverage

    settings = folder / "settings"
    settings.write_text(f"[run]\ndata_file={folder}/data\nparallel=true\ninclude={PACKAGE}/*\npatch=subprocess,_exit\n")
    counter = coverage.Coverage(config_file=str(settings))
    counter.start()
    watcher = Watcher(counter)
    pytest.main([*OPTIONS, file], plugins=[watcher])
    counter.stop()
    counter.save()
    counter.combine()  # with the lines of processes that tests start, which have no name of a test
    data = counter.get_data()
    lines: dict[str, dict[int, list[str]]] = {}
    for path in data.measured_files():
        _, statements, _, _, _ = counter.analysis2(path)
        by_line = {line: [] for line in statements} | data.contexts_by_lineno(path)
        lines[str(Path(path).relative_to(PACKAGE))] = {
            line: [test for test in tests if test not in watcher.bad] for line, tests in by_line.items()}
    good = {test: round(time, 3) for test, time in watcher.seconds.items() if test not in watcher.bad}
    return {"seconds": good, "lines": lines, "failed": [test for test, fails in watcher.bad.items() if fails]}


def first_failure(tests: list[str]) -> str:
    watcher = Watcher(wanted=tests)
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    status = pytest.main([*OPTIONS, "-x", *files], plugins=[watcher])
    return watcher.failed or ("" if status in (0, 5) else f"pytest ends with {int(status)}")


def answer(request: dict[str, Any], path: str) -> None:
    """Writes the answer to a file; runs in a forked process."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(quiet, descriptor)
    sys.path.insert(0, str(PACKAGE.parent))
    result = measured(request["measure"], Path(path).parent) if "measure" in request else first_failure(request["run"])
    Path(path).write_text(json.dumps(result))


def serve(request: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/answer"
        child = os.fork()
        if child == 0:
            try:
                answer(request, path)
            finally:
                os._exit(0)
        until = time.monotonic() + request["limit"]
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return "a test that takes too long"
            time.sleep(0.02)
        try:
            return json.loads(Path(path).read_text())
        except OSError:
            return "a test that ends the process"


def main() -> None:
    for name in BEFORE:
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # the tests that need it are skipped
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
