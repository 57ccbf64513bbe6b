"""The first training steps of a layer, in a new process with empty caches, beside PyG's.

A step is that of suite "layers". PyG takes its steps first, and before them those of another layer
of the kind, so that CUDA, PyTorch and PyG are up.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor

import warploom
from bench.pytorch.cases import Settings, Suite, describe
from bench.pytorch.layer_cases import CASES
from bench.pytorch.layers import call_of, make_step, served, shape_of
from bench.pytorch.timing import synchronise
from bench.results_file import Line
from warploom import pyg
from warploom.pyg._propagate import COMPILING

STEPS = 200  # at most so many of PyG, and so many of ours are listed
SETTLED = 20  # steps in a row for which nothing compiles
SECONDS = 2.0  # of steps at least, since kernels that were measured come later
LIMIT = 20.0  # seconds of steps at most
CALLS = ("later", "wait")
AHEAD = 3  # processes that import what they need while another one measures


# calls: "wait" for their kernels, or PyG computes them until their kernels are there. archive:
# "shipped" or "none". compiler: "nvrtc", the host's "cc", or "none".
Case = namedtuple("Case", "layer graph calls archive compiler")


def cases(settings: Settings) -> Iterator[Case]:
    kernels = [("none", "cc")]
    if settings.device != "cpu":
        kernels = [("none", "nvrtc"), ("shipped", "nvrtc"), ("shipped", "none")]
    for (archive, compiler), graph, calls, layer in product(
        kernels, settings.graphs, settings.modes, settings.layers
    ):
        yield Case(layer, graph, calls, archive, compiler)


# ---- the process of a case ----------------------------------------------------------------------


def _milliseconds(step: Callable[[], object], device: torch.device) -> float:
    begin = time.perf_counter()
    step()
    synchronise(device)
    return 1e3 * (time.perf_counter() - begin)


def _steps_of_pyg(step: Callable[[], object], device: torch.device, seconds: float) -> list[float]:
    times: list[float] = []
    begin = time.perf_counter()
    while not times or (len(times) < STEPS and time.perf_counter() - begin < seconds):
        times.append(_milliseconds(step, device))
    return times


def own_steps(
    step: Callable[[], object], device: torch.device, least: float
) -> tuple[list[float], list[str | None]]:
    """The time of each step, and why PyG computed it, until nothing compiles any more."""
    times: list[float] = []
    reasons: list[str | None] = []
    begin = time.perf_counter()
    pyg.report(reset=True)
    while True:
        times.append(_milliseconds(step, device))
        reasons.append(served()[1])
        passed = time.perf_counter() - begin
        is_settled = len(times) >= SETTLED and not any(
            COMPILING in (reason or "") for reason in reasons[-SETTLED:]
        )
        if passed > LIMIT or (is_settled and passed > least):
            return times, reasons


def _run_process(case: Case, settings: Settings) -> Line:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder}
        if case.compiler == "none":
            os.environ["WARPLOOM_NVRTC"] = os.path.join(folder, "hidden")
        if case.archive == "none":
            warploom.configure(kernel_archive="")
        return _train(case, settings)


def _train(case: Case, settings: Settings) -> Line:
    shape = shape_of(case.graph, settings, settings.n)
    device = shape.device
    torch.manual_seed(3)
    plain = CASES[case.layer].make(shape).to(device, torch.float32)
    call = call_of(case.layer, case.graph, shape)
    with torch.no_grad():
        upstream = torch.randn_like(call.of(plain))

    def new_step(options: dict[str, Any] | None) -> Callable[[], list[Tensor]]:
        return make_step(copy.deepcopy(plain), call.counted(), upstream, options)

    for _ in range(2):  # of which the first brings all up
        other = _steps_of_pyg(new_step(None), device, settings.seconds / 2)
    own = new_step({"wait": case.calls == "wait"})
    times, reasons = own_steps(own, device, settings.seconds)
    slowest = max(times)
    compiling = [number for number, reason in enumerate(reasons) if COMPILING in (reason or "")]
    return {
        "first_ms": times[0],
        "slowest_ms": slowest,
        "slowest_step": times.index(slowest),
        "last_ms": statistics.median(times[-SETTLED:]),
        "over_ms": slowest - max(other),
        "served_from": compiling[-1] + 1 if compiling else 0,
        "reason": reasons[-1],
        "pyg_first_ms": other[0],
        "pyg_slowest_ms": max(other),
        "pyg_ms": statistics.median(other),
        "steps_ms": [round(one, 2) for one in times[:STEPS]],
    }


# ---- the cases ----------------------------------------------------------------------------------


class Processes:
    """New processes for one case each. Some are started ahead, since their imports take seconds.

    A forked process could not use CUDA, which the import of PyG begins to use.
    """

    def __init__(self, ahead: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._ready = deque(self._start() for _ in range(ahead))

    def _start(self) -> Connection:
        own, other = self._context.Pipe()
        self._context.Process(target=_serve, args=(other,), daemon=True).start()
        other.close()
        return own

    def run(self, case: Case, settings: Settings) -> Line:
        self._ready.append(self._start())
        with self._ready.popleft() as process:
            process.send((case, settings))
            try:
                found: Line | Exception = process.recv()
            except EOFError:
                found = RuntimeError("the process ended without an answer")
        if isinstance(found, Exception):
            raise found
        return found

    def measure(self, case: Case, settings: Settings) -> Line:
        """The line of a case: that of the sample whose slowest step is the median."""
        lines = [self.run(case, settings) for _ in range(settings.samples)]
        return sorted(lines, key=_slowest)[len(lines) // 2]


def _slowest(line: Line) -> Any:
    return line["slowest_ms"]


def _serve(given: Connection) -> None:
    found: Line | Exception
    try:
        found = _run_process(*given.recv())
    except EOFError:  # no case was left for this process
        return
    except Exception as error:
        found = RuntimeError(describe(error))
    given.send(found)


def _start(settings: Settings) -> Callable[[Case], Line]:
    processes = Processes(0 if settings.device == "cpu" else AHEAD)
    return partial(processes.measure, settings=settings)


SUITE = Suite(
    {"graphs": ("pubmed", "random:3300:2/new"), "layers": tuple(CASES), "modes": CALLS}
    | {"seconds": SECONDS},
    {"graphs": ("random:60:4",), "layers": ("GCN", "GAT"), "samples": 1, "n": 8, "seconds": 0.2},
    cases,
    _start,
    ("first_ms", "slowest_ms", "last_ms", "served_from", "pyg_first_ms", "pyg_slowest_ms"),
    {"layers": CASES, "modes": CALLS},
)
