"""The suite "torch": its cases in their order, their checks, and one JSON line for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.pytorch import attention_steps, products, rivals, steps
from bench.pytorch.cases import Suite
from bench.pytorch.compare import compare
from bench.pytorch.graphs import GraphSettings, OneGraph, by_graph
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
    n: int | str  # columns, or heads and features of attention: "8x8"
    reduce: str | None
    mode: str


@dataclass(frozen=True)
class Settings(GraphSettings):
    """The settings of a run: graphs and sizes."""

    graphs: tuple[str, ...] = GRAPHS
    small: tuple[str, ...] = ("cora", "pubmed")  # where attention is timed
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
    for graph, kind, shape in product(
        settings.small, attention_steps.OPERATIONS, attention_steps.SHAPES
    ):
        yield Case("attention", graph, kind, shape, None, "eager")
    for (model, reduce), n in product(steps.MODELS, settings.widths):
        yield Case("minibatch", settings.sampled, model, n, reduce, "eager")


class Kept:
    """A graph with the data of its last cases; one kind at a time, since large ones fill a GPU."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self.graph = settings.load(name)
        self.data = OneGraph(self._make)

    def _make(self, kind: str) -> Any:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        s = self.settings
        if kind == "step":
            return steps.FullBatch(self.graph, s.features, self.device)
        if kind == "minibatch":
            return steps.MiniBatches(self.graph, s.features, s.seeds, s.batches, self.device)
        if kind == "attention":
            return attention_steps.AttentionSteps(self.graph, self.device)
        return products.Products(self.graph, self.device)


def _functions(
    case: Case, kept: Kept
) -> tuple[dict[str, Function], dict[str, Callable[[], Tensor | Sequence[Tensor]]]]:
    """Return the functions to time, and the results to compare before."""
    if case.bench in ("spmm", "backward"):
        ways = kept.data.of("products")
        b = ways.operand(case.n)
        grad = ways.operand(case.n).flip(0)
        timed = {
            name: products.forward(way, b)
            if case.bench == "spmm"
            else products.backward(way, b, grad)
            for name, way in ways.ways(case.reduce, kept.settings.compiled).items()
            if rivals.takes_part(name, case.mode)
        }
        return timed, timed
    if case.bench == "attention":
        timed = kept.data.of("attention").functions(case.model, case.n)
        return timed, timed
    trainings = kept.data.of(case.bench).trainings(
        case.model, case.reduce, case.n, case.mode == "graphed"
    )
    return (
        {name: training.step for name, training in trainings.items()},
        {name: training.gradients for name, training in trainings.items()},
    )


def _run_case(case: Case, kept: Kept, settings: Settings) -> Line:
    """Check and time one case."""
    timed, compared = _functions(case, kept)
    is_alone = case.bench not in ("step", "minibatch")
    first = first_calls(timed, kept.device) if is_alone else None
    failed = compare(compared)
    wanted = {name: function for name, function in timed.items() if name not in failed}
    if case.mode == "eager" and case.bench in ("backward", "attention"):
        wanted["mm"] = products.mm_step(kept.graph.nodes, kept.device)
    times, refused = measure(wanted, kept.device, case.mode == "graphed", settings.samples)
    failed.update(refused)
    mm_us = times.pop("mm", None)
    peaks = {name: peak_memory(wanted[name], kept.device) for name in times} if is_alone else None
    return {
        "us": times.get("warploom"),
        "rivals": {name: times.get(name) for name in RIVALS},
        "mm_us": mm_us,
        "first_ms": first,
        "peak_mb": peaks,
        "failed": failed,
    }


_SMALL = "random:300:6"
SUITE = Suite(
    Settings,
    {"graphs": (_SMALL,), "small": (_SMALL,), "sampled": _SMALL, "compiled": False, "widths": (16,)}
    | {"features": 32, "seeds": 20, "batches": 2, "samples": 2},
    cases,
    by_graph(Kept, _run_case),
    ("us", "rivals"),
)
