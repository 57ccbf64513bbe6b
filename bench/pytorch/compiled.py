"""The suite "compiled": training steps of two-layer models, eager, compiled and captured.

A line has the time of a whole step (forward, cross entropy, backward and Adam) on the host's clock,
on warploom and in PyG. Both run in the same way. PyG has what lets it be captured: `cached=True`,
and self loops in the edges. A model named `gcn-default` has its layers as they are made by default.
"""

from __future__ import annotations

import gc
import signal
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from types import FrameType

import torch

import warploom.torch
from bench.pytorch.cases import Settings, Suite, describe
from bench.pytorch.compare import largest_error
from bench.pytorch.graphs import by_graph
from bench.pytorch.models import Stack, layer
from bench.pytorch.steps import (
    CLASSES,
    FullBatch,
    Training,
    classify,
    make_models,
    run_as_made,
)
from bench.pytorch.timing import Function, capture, time_beside_pyg
from bench.results_file import Line

GRAPHS = ("cora", "pubmed", "tolokers", "twin:arxiv", "twin:products,scale=0.2")
MODES: tuple[str, ...] = ("eager", "compile")
if torch.cuda.is_available():
    MODES += ("reduce-overhead", "captured")
HEADS = 4  # of attention in the first layer; the second one has 1
STEPS = 8  # whose losses are compared, of which captured ones take the last by a replay
# Seconds of a sample: the first of these steps also finds its code among that of two models.
SAMPLE = 0.2
TOLERANCE = 1e-3  # of a loss, relative to that of PyG's eager steps

# The options of layers. Where PyG would add self loops, the edges have them.
OPTIONS = {
    "gcn": {"cached": True, "add_self_loops": False},
    "gat": {"add_self_loops": False},
    "gatv2": {"add_self_loops": False},
}
DEFAULT = "-default"  # at the end of a model's name
MODELS = (
    *("gcn", "sage-mean", "sage-max", "gin", "gat", "gatv2"),
    *(kind + DEFAULT for kind in OPTIONS),
)


Case = namedtuple("Case", "model graph mode")


def cases(settings: Settings) -> Iterator[Case]:
    for graph, model, mode in product(settings.graphs, settings.models, settings.modes):
        yield Case(model, graph, mode)


class _Inputs(FullBatch):
    """A graph without and with self loops, features and labels."""

    def __init__(self, name: str, settings: Settings) -> None:
        super().__init__(settings.load(name), settings.n, torch.device(settings.device))
        loops = torch.arange(len(self.x), device=self.device).expand(2, -1)
        self.with_loops = torch.cat([self.edge_index, loops], 1)

    def training(self, name: str, model: Stack, capturable: bool) -> Training:
        edges = self.with_loops if name in OPTIONS else self.edge_index
        return Training(model, classify(lambda: (self.x, edges, self.labels)), capturable)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so many seconds of the body, but not within an import, which would
    leave half a module to this process."""
    late: list[TimeoutError] = []

    def stop(_: int, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith("<frozen importlib"):
                signal.setitimer(signal.ITIMER_REAL, 0.01, 1)
                return
            frame = frame.f_back
        late.append(TimeoutError(f"not ready after {seconds:g} s"))
        raise late[0]

    before = signal.signal(signal.SIGALRM, stop)
    # Once more each second, since an error within a destructor is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    except Exception as error:  # torch.compile may have made another one of it
        if late:
            raise late[0] from error
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _compiled(training: Training, mode: str) -> Function:
    """The step of a model that torch.compile compiles."""
    run_as_made(training.model)
    with torch.no_grad():
        training.loss()  # PyG's caches of norms are filled before
    is_captured = mode == "reduce-overhead"
    training.model = torch.compile(training.model, mode=mode if is_captured else None)  # type: ignore[assignment]

    def step() -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
        return training.step()

    return step if is_captured else training.step


def _replayed(training: Training) -> tuple[Function, list[float]]:
    """A replay of the step, and the losses of the steps that came before it."""
    losses: list[torch.Tensor] = []

    def step() -> None:
        losses.append(training.step())

    step()
    step()
    replay = capture(step)  # which takes a step before

    def run() -> torch.Tensor:
        replay()
        return losses[-1]

    return run, [float(loss) for loss in losses[:-1]]


def _ready(name: str, training: Training, mode: str) -> tuple[Function, list[float]]:
    """The step in a mode, and its first losses."""
    first: list[float] = []
    if mode == "eager":
        step: Function = training.step
    elif mode != "captured":
        step = _compiled(training, mode)
    elif name == "warploom":
        step = warploom.torch.capture(training.step)
    else:
        step, first = _replayed(training)
    losses = first + [float(step()) for _ in range(STEPS - len(first))]
    reason = getattr(step, "reason", None)
    if reason is not None:
        raise RuntimeError(f"not captured: {reason}")
    return step, losses


def _run_case(case: Case, inputs: _Inputs, settings: Settings) -> Line:
    torch.compiler.reset()  # it gives up on a function after 8 models
    gc.collect()  # captures that hold memory
    if inputs.device.type == "cuda":
        torch.cuda.empty_cache()

    def make() -> Stack:
        n, options = settings.n, OPTIONS.get(case.model, {})
        kind = case.model.removesuffix(DEFAULT)
        first = layer(kind, n, n, HEADS, **options)
        return Stack([first, layer(kind, n, CLASSES, **options)]).to(inputs.device)

    models = make_models(("warploom", "pyg", "expected"), make)
    expected = inputs.training(case.model, models.pop("expected"), False)
    losses = [float(expected.step()) for _ in range(STEPS)]
    functions: dict[str, Function] = {}
    failed: dict[str, str] = {}
    errors: dict[str, float] = {}
    for name, model in models.items():
        training = inputs.training(case.model, model, case.mode == "captured" and name == "pyg")
        try:
            with _limited(settings.limit):
                step, found = _ready(name, training, case.mode)
        except Exception as error:
            failed[name] = describe(error)
            continue
        errors[name] = largest_error(found, losses)
        if errors[name] <= TOLERANCE:
            functions[name] = step
        else:
            failed[name] = f"a loss differs from that of PyG's eager steps by {errors[name]:.1e}"
    line = time_beside_pyg(functions, inputs.device, settings.samples, SAMPLE)
    failed |= line.get("failed", {})
    return {**line, "max_rel_err": errors.get("warploom"), "n": settings.n, "failed": failed}


SUITE = Suite(
    {"graphs": GRAPHS, "models": MODELS, "modes": MODES, "limit": 120.0},
    {"graphs": ("random:300:6",), "n": 8, "samples": 2},
    cases,
    by_graph(_Inputs, _run_case),
    ("us", "spread", "pyg_us", "pyg_spread", "max_rel_err"),
    {"models": MODELS, "modes": MODES},
)
