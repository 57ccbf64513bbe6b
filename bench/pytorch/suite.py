"""The suite "torch": its cases in their order, their checks, and one JSON line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.pytorch import products, rivals, steps
from bench.pytorch.cases import Suite
from bench.pytorch.compare import compare
from bench.pytorch.graphs import Csr, GraphSettings
from bench.pytorch.timing import Function, first_calls, measure, peak_memory
from bench.results_file import Line

RIVALS = ("torch_sparse", "pyg", "scatter", "scatter_compiled", "cudnn", "turbo_gnn")
GRAPHS = (
    "cora",
    "pubmed",
    "amazon-computers",
    "email-Enron",
    "tolokers",
    "twin:reddit,scale=0.1",
    "twin:products,scale=0.1",
)


class Case(NamedTuple):
    bench: str
    graph: str
    model: str | None
    n: int
    reduce: str
    mode: str


@dataclass(frozen=True)
class Settings(GraphSettings):
    """The settings of a run: graphs and sizes."""

    graphs: tuple[str, ...] = GRAPHS
    sampled: str = "twin:products,scale=0.1"
    widths: tuple[int, ...] = (16, 64, 256)
    features: int = 512
    seeds: int = 1024
    batches: int = 16
    compiled: bool = True


def cases(settings: Settings) -> Iterator[Case]:
    modes = settings.timed_modes()
    for graph in settings.graphs:
        for bench, reduce, n, mode in product(
            ("spmm", "backward"), products.REDUCTIONS, settings.widths, modes
        ):
            yield Case(bench, graph, None, n, reduce, mode)
        for (model, reduce), n, mode in product(steps.MODELS, settings.widths, modes):
            yield Case("step", graph, model, n, reduce, mode)
    for (model, reduce), n in product(steps.MODELS, settings.widths):
        yield Case("minibatch", settings.sampled, model, n, reduce, "eager")


class Workbench:
    """The current graph with the data of its cases; one at a time, since large ones fill a GPU."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self._graph: Csr | None = None
        self._made: dict[type, Any] = {}

    def graph(self, name: str) -> Csr:
        if self._graph is None or self._graph.name != name:
            self._made.clear()
            self._graph = self.settings.load(name)
        return self._graph

    def get(self, kind: type, *arguments: Any) -> Any:
        if kind not in self._made:
            self._made.clear()
            self._free()
            self._made[kind] = kind(*arguments, self.device)
        return self._made[kind]

    def _free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _functions(
    case: Case, bench: Workbench
) -> tuple[dict[str, Function], dict[str, Callable[[], Tensor]]]:
    """Return the functions to time, and the results to compare before."""
    settings = bench.settings
    graph = bench.graph(case.graph)
    if case.bench in ("spmm", "backward"):
        ways = bench.get(products.Products, graph)
        b = ways.operand(case.n)
        grad = ways.operand(case.n).flip(0)
        timed = {
            name: products.forward(way, b)
            if case.bench == "spmm"
            else products.backward(way, b, grad)
            for name, way in ways.ways(case.reduce, settings.compiled).items()
            if rivals.takes_part(name, case.mode)
        }
        return timed, timed
    if case.bench == "step":
        whole = bench.get(steps.FullBatch, graph, settings.features)
    else:
        whole = bench.get(
            steps.MiniBatches, graph, settings.features, settings.seeds, settings.batches
        )
    assert case.model is not None
    trainings = whole.trainings(case.model, case.reduce, case.n, case.mode == "graphed")
    return steps.functions(trainings), {
        name: training.gradients for name, training in trainings.items()
    }


def run_case(case: Case, bench: Workbench) -> Line:
    """Check and time one case."""
    timed, compared = _functions(case, bench)
    is_product = case.bench in ("spmm", "backward")
    first = first_calls(timed, bench.device) if is_product else None
    failed = compare(compared)
    wanted = {name: function for name, function in timed.items() if name not in failed}
    times, refused = measure(wanted, bench.device, case.mode == "graphed", bench.settings.samples)
    failed.update(refused)
    peaks = (
        {name: peak_memory(wanted[name], bench.device) for name in times} if is_product else None
    )
    return {
        "us": times.get("warploom"),
        "rivals": {name: times.get(name) for name in RIVALS},
        "first_ms": first,
        "peak_mb": peaks,
        "failed": failed,
    }


_SMALL = "random:300:6"
SUITE = Suite(
    Settings,
    {"graphs": (_SMALL,), "sampled": _SMALL, "compiled": False, "widths": (16,)}
    | {"features": 32, "seeds": 20, "batches": 2, "samples": 2},
    cases,
    lambda settings: partial(run_case, bench=Workbench(settings)),
    ("us", "rivals"),
)
