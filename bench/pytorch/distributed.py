"""Training steps of one whole graph on one device and on all ranks of torchrun.

    torchrun --nproc-per-node 2 -m bench distributed --out distributed.jsonl

A step is forward, backward and Adam of a model of three layers without dropout. Rank 0 measures it
alone while the others wait; then all ranks share the graph (warploom.torch.distributed).
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

import warploom.torch as products
from bench.pytorch.cases import Output, Suite, describe
from bench.pytorch.graphs import GraphSettings, OneGraph
from bench.pytorch.models import Model, edges_of
from bench.pytorch.timing import Function, synchronise
from bench.results_file import Line
from warploom import pyg
from warploom.torch import distributed
from warploom.torch.distributed import PartitionedGraph

MODELS = ("gcn", "sage-mean")
HIDDEN_LAYERS, CLASSES = 2, 47
WARM_UP = 3  # steps, whose losses are compared


class Case(NamedTuple):
    graph: str
    model: str
    features: int


@dataclass(frozen=True)
class Settings(GraphSettings):
    graphs: tuple[str, ...] = ("twin:products", "twin:reddit")
    models: tuple[str, ...] = MODELS
    features: int = 256
    split: str = "auto"


def cases(settings: Settings) -> Iterator[Case]:
    settings.check_names("models", MODELS)
    for graph in settings.graphs:
        for model in settings.models:
            yield Case(graph, model, settings.features)


# ---- steps --------------------------------------------------------------------------------------


class Trainer:
    """Steps of one model on an edge_index, or on this rank's part of a graph."""

    def __init__(self, case: Case, edges: Any, x: Tensor, labels: Tensor) -> None:
        self.edges, self.x, self.labels = edges, x, labels
        torch.manual_seed(1)
        width = case.features
        model = Model(case.model, HIDDEN_LAYERS, width, width, CLASSES, dropout=0.0)
        self.model = pyg.convert(model.to(x.device))
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def step(self) -> Tensor:
        """One step; returns its loss."""
        self.optimiser.zero_grad()
        losses = functional.cross_entropy(
            self.model(self.x, self.edges), self.labels, reduction="none"
        )
        is_shared = isinstance(self.edges, PartitionedGraph)
        loss = distributed.mean(losses) if is_shared else losses.mean()
        loss.backward()  # type: ignore[no-untyped-call]
        if is_shared:
            distributed.sum_gradients(self.model.parameters())
        self.optimiser.step()
        return loss.detach()


# Of one device, or of all. peak_mb: memory of a GPU in a step, with graph and features.
FIELDS = ("us", "aggregation_us", "peak_mb", "losses")


def _median(function: Function, device: torch.device, samples: int, shared: bool) -> float:
    """Microseconds of a call, of the slowest rank where all ranks make it."""
    times = []
    for _ in range(samples):
        if shared:
            dist.barrier()
        synchronise(device)
        begin = time.perf_counter()
        function()
        synchronise(device)
        times.append(time.perf_counter() - begin)
    found = torch.tensor(times, device=device)
    if shared:
        dist.all_reduce(found, dist.ReduceOp.MAX)
    return float(found.median()) * 1e6


def _measure(
    trainer: Trainer,
    aggregation: Callable[[], Function],
    device: torch.device,
    samples: int,
    shared: bool,
) -> Line:
    """aggregation: makes the function that is timed, after the memory of a step was measured."""
    losses = [float(trainer.step()) for _ in range(WARM_UP)]
    is_gpu = device.type == "cuda"
    if is_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    us = _median(trainer.step, device, samples, shared)
    peak = torch.tensor([torch.cuda.max_memory_allocated(device) * 1e-6 if is_gpu else 0.0])
    if shared and is_gpu:
        peak = peak.to(device)
        dist.all_reduce(peak, dist.ReduceOp.MAX)
    with torch.no_grad():
        aggregate = aggregation()
        for _ in range(WARM_UP):
            aggregate()
        aggregation_us = _median(aggregate, device, samples, shared)
    return dict(zip(FIELDS, (us, aggregation_us, float(peak) if is_gpu else None, losses)))


class Workbench:
    """What a rank does for a case; all ranks do it at the same time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.rank = dist.get_rank()
        index = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device(settings.device)
        if settings.device == "cuda":
            self.device = torch.device("cuda", index)
            torch.cuda.set_device(self.device)
        self._edges = OneGraph(self._load)

    def _load(self, name: str) -> tuple[Tensor, int]:
        """The edges of a graph in host memory, and the number of nodes, all from rank 0."""
        sizes, edges = [0, 0], torch.empty(0)
        if self.rank == 0:
            graph = self.settings.load(name)
            edges = torch.from_numpy(edges_of("gcn", graph.edges(), graph.nodes)).to(self.device)
            sizes = [graph.nodes, edges.shape[1]]
        dist.broadcast_object_list(sizes, 0, device=self.device)
        if self.rank:
            edges = torch.empty((2, sizes[1]), dtype=torch.int64, device=self.device)
        dist.broadcast(edges, 0)
        return edges.cpu(), sizes[0]

    def inputs(self, case: Case, nodes: int) -> tuple[Tensor, Tensor]:
        """Random features and labels of all nodes, equal on all ranks."""
        torch.manual_seed(0)
        x = torch.randn(nodes, case.features, device=self.device)
        return x, torch.randint(CLASSES, (nodes,), device=self.device)

    def one(self, case: Case) -> Line:
        """The case on this rank's device alone."""
        edges, nodes = self._edges.of(case.graph)
        trainer = Trainer(case, edges.to(self.device), *self.inputs(case, nodes))

        def aggregation() -> Function:
            graph = products.Graph.from_edge_index(trainer.edges, rows=nodes, cols=nodes)
            return functools.partial(products.spmm, graph, trainer.x, reduce="mean")

        return _measure(trainer, aggregation, self.device, self.settings.samples, False)

    def all(self, case: Case) -> tuple[Line, PartitionedGraph]:
        """The case on all ranks."""
        edges, nodes = self._edges.of(case.graph)
        graph = PartitionedGraph.from_edge_index(
            edges.to(self.device), nodes, columns=case.features, split=self.settings.split
        )
        own = [graph.scatter(tensor) for tensor in self.inputs(case, nodes)]
        self._empty()
        trainer = Trainer(case, graph, *own)

        def aggregation() -> Function:
            return functools.partial(distributed.spmm, graph, trainer.x, reduce="mean")

        found = _measure(trainer, aggregation, self.device, self.settings.samples, True)
        return found, graph

    def _empty(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def measure(self, case: Case) -> Line:
        """One device, then all. Returns the line, which only rank 0 needs."""
        one: Line = dict.fromkeys(FIELDS)
        failed = {}
        self._edges.of(case.graph)
        if self.rank == 0:
            try:
                one = self.one(case)
            except Exception as error:
                failed["one device"] = describe(error)
        self._empty()
        dist.barrier()
        found, graph = self.all(case)
        ranks, choice, exchange = dist.get_world_size(), graph.choice, graph.exchange
        return {
            "ranks": ranks,
            **found,
            **{f"one_{field}": value for field, value in one.items()},
            "exchange": exchange.name,
            "split": choice.name,
            "exchange_us": {name: 1e6 * seconds for name, seconds in graph.times.items()},
            "split_us": {name: 1e6 * seconds for name, seconds in choice.times.items()},
            "product_us": 1e6 * choice.alone / ranks,
            "too_small": exchange.name == "own",
            "explain": graph.explain(),
            "failed": failed,
        }

    def measure_on_all(self, case: Case) -> Line:
        """Pass the case to the other ranks and measure it with them."""
        _send(case)
        return self.measure(case)


# ---- the command --------------------------------------------------------------------------------


def _send(case: Case | None) -> Case | None:
    """What rank 0 passes, on every rank."""
    sent = [case]
    dist.broadcast_object_list(sent, 0)
    return sent[0]


class _Suite(Suite):
    """Rank 0 writes the lines; the others measure what it passes."""

    def run(self, settings: Settings, output: Output) -> int:
        if "RANK" not in os.environ:
            what = "there are no ranks; start it with torchrun --nproc-per-node 2 -m bench"
            raise ValueError(f"distributed: {what}")
        dist.init_process_group("nccl" if settings.device == "cuda" else "gloo")
        try:
            if dist.get_rank() == 0:
                return super().run(settings, output)
            bench = Workbench(settings)
            while (case := _send(None)) is not None:
                bench.measure(case)
            return 0
        finally:
            if dist.get_rank() == 0:
                _send(None)
            dist.destroy_process_group()


SUITE = _Suite(
    Settings,
    {"graphs": ("random:300:6",), "features": 12, "samples": 2, "device": "cpu"},
    cases,
    lambda settings: Workbench(settings).measure_on_all,
    ("us", "one_us", "explain"),
)
