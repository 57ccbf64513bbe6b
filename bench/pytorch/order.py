"""The order of a layer's products, and products of features that never change.

Whole training steps with Adam of models in full batches: PyG's, those on warploom in PyG's order
with nothing kept, and those in the order that pays with the first layer's product kept. The widths
are those with which the graphs were published; features are random.
"""

from __future__ import annotations

import gc
import statistics
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

import warploom.torch
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import largest_error
from bench.pytorch.graphs import by_graph
from bench.pytorch.models import Stack, layer
from bench.pytorch.steps import Training
from bench.pytorch.timing import make_timers, samples_in_turns, spread
from bench.results_file import Line
from warploom import pyg

# Features, hidden width and classes.
WIDTHS = {
    "twin:reddit": (602, 128, 41),
    "twin:products": (100, 256, 47),
    "twin:arxiv": (128, 256, 40),
    "tolokers": (10, 256, 2),
    "pubmed": (500, 16, 3),
}
MODELS = ("gcn", "sage", "gin", "graph", "sg", "tag")
WAYS: dict[str, dict[str, Any] | None] = {
    "pyg": None,
    "before": {"reorder": False, "keep": 0},
    "now": {},
}
DROPOUT = 0.5
STEPS_BEFORE = 6  # graphs are sorted and measured, and steps captured


# inputs: "constant", or "dropout" of the features in each step. mode: "eager" or "captured".
Case = namedtuple("Case", "graph model inputs mode")


def cases(settings: Settings) -> Iterator[Case]:
    modes = ("eager",) if settings.device == "cpu" else ("eager", "captured")
    for graph in settings.graphs:
        for model in settings.models:
            for mode in modes:
                yield Case(graph, model, "constant", mode)
        for model in ("gcn", "sage"):
            yield Case(graph, model, "dropout", modes[-1])


class Data:
    """A graph on the device, with features and labels."""

    def __init__(self, name: str, settings: Settings) -> None:
        graph = settings.load(name)
        generator = torch.Generator().manual_seed(3)
        self.device = torch.device(settings.device)
        self.widths = WIDTHS.get(name, (24, 8, 4))
        self.edges = torch.from_numpy(graph.edges()).to(self.device)
        x = torch.randn(graph.nodes, self.widths[0], generator=generator)
        labels = torch.randint(self.widths[2], (graph.nodes,), generator=generator)
        self.x, self.labels = x.to(self.device), labels.to(self.device)


def _training(case: Case, data: Data, way: str) -> Callable[[], Tensor]:
    """The step of a new model; way: how it runs."""
    torch.manual_seed(1)
    options = WAYS[way]
    features = data.x.clone()  # what is kept of them ends with the training
    inputs, hidden, classes = data.widths
    sizes = [(inputs, classes)] if case.model == "sg" else [(inputs, hidden), (hidden, classes)]
    name = "sage-mean" if case.model == "sage" else case.model
    model = Stack(layer(name, *size) for size in sizes).to(data.device)

    def loss(model: Any) -> Tensor:
        x = functional.dropout(features, DROPOUT) if case.inputs == "dropout" else features
        return functional.cross_entropy(model(x, data.edges), data.labels)

    training = Training(model, loss, data.device.type == "cuda", 0.01)
    captures = case.mode == "captured" and options is not None
    step = warploom.torch.capture(training.step) if captures else training.step

    def run() -> Tensor:
        with nullcontext() if options is None else pyg.accelerate(wait=True, **options):
            return step()

    return run


def _peak(training: Callable[[], Any], device: torch.device) -> float | None:
    """What the allocator has reserved at the peak of a step, in MB."""
    if device.type != "cuda":
        return None
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    training()
    torch.cuda.synchronize()
    return round(torch.cuda.max_memory_reserved() / 1e6, 3)


def _release() -> None:
    """Free what ended trainings held, and the workspaces of cuBLAS, one of each stream. A captured
    step reads them in each replay, so none must be left."""
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()


def _measure_way(case: Case, data: Data, way: str) -> dict[str, Any]:
    """First losses, orders, and the memory of a step."""
    training = _training(case, data, way)
    pyg.report(reset=True)
    losses = [float(training()) for _ in range(STEPS_BEFORE)]
    orders = pyg.report(orders=True, reset=True)
    return {"losses": losses, "orders": orders, "peak_mb": _peak(training, data.device)}


def _times(case: Case, data: Data, ways: Sequence[str], samples: int) -> dict[str, list[float]]:
    """Times of these ways in turns, in microseconds."""
    trainings = {way: _training(case, data, way) for way in ways}
    for training in trainings.values():
        for _ in range(STEPS_BEFORE):
            training()
    timers, _ = make_timers(dict(trainings), data.device, False)
    return samples_in_turns(timers, samples)


def measure(case: Case, data: Data, settings: Settings) -> Line:
    """Return the line of a case: medians of whole steps in microseconds.

    peak_mb: what is reserved at the peak of a step, with the data and the sorted graph.
    max_rel_err: of the losses of the first steps.
    """
    found: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {}
    failed: dict[str, str] = {}
    for way in WAYS:  # one after the other, so that each has all of the memory
        if data.device.type == "cuda":
            _release()
        try:
            found[way] = _measure_way(case, data, way)
            if way == "pyg":
                times |= _times(case, data, [way], settings.samples)
        except torch.cuda.OutOfMemoryError:
            failed[way] = "out of memory"
    times |= _times(case, data, ["now", "before"], settings.samples)
    medians = {way: statistics.median(samples) for way, samples in times.items()}
    own = found["now"]["losses"]
    return {
        "us": medians["now"],
        "before_us": medians["before"],
        "pyg_us": medians.get("pyg"),
        "spread": {way: spread(samples) for way, samples in times.items()},
        "peak_mb": {way: of["peak_mb"] for way, of in found.items()},
        "max_rel_err": {
            way: largest_error(own, of["losses"]) for way, of in found.items() if way != "now"
        },
        "orders": found["now"]["orders"],
        "failed": failed,
    }


SUITE = Suite(
    {"graphs": tuple(WIDTHS), "models": MODELS, "samples": 5},
    {"graphs": ("random:300:6",), "samples": 2},
    cases,
    by_graph(Data, measure),
    ("us", "before_us", "pyg_us"),
)
