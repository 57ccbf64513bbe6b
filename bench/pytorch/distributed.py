"""Training steps of one whole graph on one device and on all ranks of torchrun.

    torchrun --nproc-per-node 4 -m bench distributed --ranks 2,4 --split auto,rows --out FILE

A step is forward, backward and Adam of a model of three layers without dropout. Rank 0 measures it
alone, once for a model; then the first ranks share the graph (warploom.torch.distributed) in each
of the ways that are asked for. The other ranks wait.
"""

from __future__ import annotations

import functools
import gc
import os
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import functional

import warploom.torch as products
from bench.pytorch.cases import Output, Settings, Suite, describe
from bench.pytorch.graphs import OneGraph
from bench.pytorch.models import Model, edges_of
from bench.pytorch.steps import Training
from bench.pytorch.timing import Function, synchronise
from bench.results_file import Line
from warploom import pyg
from warploom.torch import distributed
from warploom.torch.distributed import PartitionedGraph

MODELS = ("gcn", "sage-mean")
HIDDEN_LAYERS, CLASSES = 2, 47
WARM_UP = 3  # steps, whose losses are compared


# asked: the split that is asked for.
Case = namedtuple("Case", "graph model features ranks asked")


def cases(settings: Settings) -> Iterator[Case]:
    for part in product(
        settings.graphs,
        settings.models,
        (settings.features,),
        settings.ranks or (int(os.environ.get("WORLD_SIZE", "2")),),
        settings.splits,
    ):
        yield Case(*part)


# ---- steps --------------------------------------------------------------------------------------


def _mean_loss(model: Any, edges: Any, x: Tensor, labels: Tensor) -> Tensor:
    losses = functional.cross_entropy(model(x, edges), labels, reduction="none")
    is_shared = isinstance(edges, PartitionedGraph)
    return distributed.mean(losses, edges.group) if is_shared else losses.mean()


class Trainer(Training):
    """Steps of one model on an edge_index, or on this rank's part of a graph."""

    def __init__(self, case: Case, edges: Any, x: Tensor, labels: Tensor) -> None:
        self.edges, self.x, self.labels = edges, x, labels
        torch.manual_seed(1)
        width = case.features
        model = Model(case.model, HIDDEN_LAYERS, width, width, CLASSES, dropout=0.0)
        super().__init__(pyg.convert(model.to(x.device)), _mean_loss, rate=0.01)

    def loss(self) -> Tensor:
        return super().loss(self.edges, self.x, self.labels)

    def differentiate(self, loss: Tensor) -> None:
        super().differentiate(loss)
        if isinstance(self.edges, PartitionedGraph):
            distributed.sum_gradients(self.model.parameters(), self.edges.group)


# Of one device, or of several. peak_mb: memory of a GPU in a step, with graph and features.
# kept_mb: what of it stays between steps.
FIELDS = ("us", "aggregation_us", "peak_mb", "kept_mb", "losses")


def _most(numbers: list[float], device: torch.device, group: Any) -> Tensor:
    """The largest of each number over the ranks of a group; group: None = this rank alone."""
    found = torch.tensor(numbers, device=device)
    if group is not None:
        dist.all_reduce(found, dist.ReduceOp.MAX, group=group)
    return found


def _median(function: Function, device: torch.device, samples: int, group: Any) -> float:
    """Microseconds of a call, of the slowest rank of a group."""
    times = []
    for _ in range(samples):
        if group is not None:
            dist.barrier(group)
        synchronise(device)
        begin = time.perf_counter()
        function()
        synchronise(device)
        times.append(time.perf_counter() - begin)
    return float(_most(times, device, group).median()) * 1e6


def _measure(
    trainer: Trainer,
    aggregation: Callable[[], Function],
    device: torch.device,
    samples: int,
    group: Any = None,
) -> Line:
    """aggregation: makes the function that is timed, after the memory of a step was measured."""
    losses = [float(trainer.step()) for _ in range(WARM_UP)]
    is_gpu = device.type == "cuda"
    memory: list[float | None] = [None, None]
    if is_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    us = _median(trainer.step, device, samples, group)
    if is_gpu:
        trainer.optimiser.zero_grad()
        used = torch.cuda.max_memory_allocated(device), torch.cuda.memory_allocated(device)
        memory = (_most(list(used), device, group) * 1e-6).tolist()
    with torch.no_grad():
        aggregate = aggregation()
        for _ in range(WARM_UP):
            aggregate()
        aggregation_us = _median(aggregate, device, samples, group)
    return dict(zip(FIELDS, (us, aggregation_us, *memory, losses)))


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
        self._groups = {dist.get_world_size(): dist.group.WORLD}  # by their ranks
        self._alone: dict[tuple[str, str, int], tuple[Line, dict[str, str]]] = {}

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

    def _group(self, ranks: int) -> Any:
        """The group of the first ranks; all ranks call it."""
        if ranks not in self._groups:
            self._groups[ranks] = dist.new_group(list(range(ranks)))
        return self._groups[ranks]

    def one(self, case: Case) -> Line:
        """The case on this rank's device alone."""
        edges, nodes = self._edges.of(case.graph)
        trainer = Trainer(case, edges.to(self.device), *self.inputs(case, nodes))

        def aggregation() -> Function:
            graph = products.Graph.from_edge_index(trainer.edges, rows=nodes, cols=nodes)
            return functools.partial(products.spmm, graph, trainer.x, reduce="mean")

        return _measure(trainer, aggregation, self.device, self.settings.samples)

    def alone(self, case: Case) -> tuple[Line, dict[str, str]]:
        """The case on rank 0 alone, which is measured once for all splits and numbers of ranks; and
        why there is no result."""
        key = case.graph, case.model, case.features
        if key not in self._alone:
            try:
                self._alone[key] = self.one(case), {}
            except Exception as error:
                self._alone[key] = dict.fromkeys(FIELDS), {"one device": describe(error)}
        return self._alone[key]

    def several(self, case: Case, group: Any) -> tuple[Line, PartitionedGraph]:
        """The case on the ranks of a group."""
        edges, nodes = self._edges.of(case.graph)
        graph = PartitionedGraph.from_edge_index(
            edges.to(self.device), nodes, columns=case.features, split=case.asked, group=group
        )
        own = [graph.scatter(tensor) for tensor in self.inputs(case, nodes)]
        self._empty()
        trainer = Trainer(case, graph, *own)

        def aggregation() -> Function:
            return functools.partial(distributed.spmm, graph, trainer.x, reduce="mean")

        return _measure(trainer, aggregation, self.device, self.settings.samples, group), graph

    def _empty(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def measure(self, case: Case) -> Line:
        """One device, then several. Returns the line, which only rank 0 needs."""
        self._edges.of(case.graph)
        one, failed = self.alone(case) if self.rank == 0 else ({}, {})
        self._empty()
        dist.barrier()
        group = self._group(case.ranks)
        if self.rank >= case.ranks:
            dist.barrier()
            return {}
        found, graph = self.several(case, group)
        dist.barrier()
        choice, exchange = graph.choice, graph.exchange
        return {
            **found,
            **{f"one_{field}": value for field, value in one.items()},
            "exchange": exchange.name,
            "split": choice.name,
            "exchange_us": {name: 1e6 * seconds for name, seconds in graph.times.items()},
            "split_us": {name: 1e6 * seconds for name, seconds in choice.times.items()},
            "product_us": 1e6 * choice.alone / case.ranks,
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
            _measure_sent(Workbench(settings))
            return 0
        finally:
            if dist.get_rank() == 0:
                _send(None)
            dist.destroy_process_group()
            gc.collect()  # threads of a group that a cycle keeps may abort a process at its end


def _measure_sent(bench: Workbench) -> None:
    while (case := _send(None)) is not None:
        bench.measure(case)


SUITE = _Suite(
    {"graphs": ("twin:products", "twin:reddit"), "models": MODELS, "features": 256},
    {"graphs": ("random:300:6",), "features": 12, "samples": 2, "device": "cpu"},
    cases,
    lambda settings: Workbench(settings).measure_on_all,
    ("us", "one_us", "explain"),
    {"models": MODELS},
)
