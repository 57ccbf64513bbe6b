"""The suite "torch": products, attention and training steps beside PyTorch and PyG, one JSON line
each."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter, softmax

import warploom.torch
from bench.pytorch import rivals, steps
from bench.pytorch.attention import PUBLISHED, Inputs
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import compare
from bench.pytorch.graphs import Csr, OneGraph, by_graph
from bench.pytorch.timing import Function, call_of, first_calls, measure, peak_memory
from bench.results_file import Line
from warploom.torch import Graph, spmm
from warploom.torch._internals import limit_recompiles

RIVALS = ("torch_sparse", "pyg", "scatter", "scatter_compiled", "cudnn", "turbo_gnn")
# Neighbours of the last one are sampled.
GRAPHS = (*PUBLISHED, "twin:reddit,scale=0.1", "twin:products,scale=0.1")
ATTENTION = ("cora", "pubmed", "random:300:6")  # small ones
REDUCTIONS = ("sum", "mean", "max")
SHAPES = {"1x64": (1, 64), "8x8": (8, 8)}  # heads and features of attention
Product = Callable[[Tensor], Tensor]


# ---- one product and its gradient ---------------------------------------------------------------


class _Layer(MessagePassing):  # type: ignore[misc]
    """A layer with PyG's message passing only."""

    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor | None) -> Tensor:
        out: Tensor = self.propagate(edge_index, x=x, weight=weight)
        return out

    def message(self, x_j: Tensor, weight: Tensor | None) -> Tensor:
        return x_j if weight is None else weight.view(-1, 1) * x_j


def _gather_scatter(
    b: Tensor, sources: Tensor, targets: Tensor, weight: Tensor | None, rows: int, reduce: str
) -> Tensor:
    messages = b.index_select(0, sources)
    if weight is not None:
        messages = weight.view(-1, 1) * messages
    result: Tensor = scatter(messages, targets, 0, rows, reduce)
    return result


@functools.cache
def _compiled() -> Any:
    """One gather and scatter for all sizes."""
    limit_recompiles(64)  # for each reduction, with and without gradient
    return torch.compile(_gather_scatter, dynamic=True)


class Products:
    """Products with one graph by warploom and baselines; only sums have edge weights."""

    def __init__(self, graph: Csr, device: torch.device) -> None:
        self.device = device
        self.rows = graph.nodes
        self.rowptr = torch.from_numpy(graph.rowptr).to(device)
        self.colind = torch.from_numpy(graph.colind).to(device)
        self.edge_index = torch.from_numpy(graph.edges()).to(device)
        generator = torch.Generator().manual_seed(1)
        self.weight = (torch.rand(len(graph.colind), generator=generator) + 0.5).to(device)
        pattern = self.rowptr.int(), self.colind.int()
        self.graph = Graph(*pattern, cols=self.rows)
        self.rivals = rivals.make(*pattern)
        inverse = self.rowptr.diff().clamp(min=1).float().reciprocal()
        self.mean_weight = inverse[self.edge_index[1]]

    def ways(self, reduce: str, compiled: bool) -> dict[str, Product]:
        """Return the product by warploom and by those baselines that support it."""
        weight = self.weight if reduce == "sum" else None
        sources, targets = self.edge_index
        layer = _Layer(aggr=reduce)
        found: dict[str, Product] = {}
        if weight is None:
            found["warploom"] = lambda b: spmm(self.graph, b, reduce=reduce, message="copy_b")
        else:
            found["warploom"] = lambda b: spmm(self.graph, b, weight)
        if reduce != "max":
            values = self.weight if reduce == "sum" else self.mean_weight
            matrix = torch.sparse_csr_tensor(
                self.rowptr.int(), self.colind.int(), values, (self.rows, self.rows)
            )
            found["torch_sparse"] = lambda b: torch.sparse.mm(matrix, b)
        found["pyg"] = lambda b: layer(b, self.edge_index, weight)
        found["scatter"] = lambda b: _gather_scatter(b, sources, targets, weight, self.rows, reduce)
        if weight is None:
            found.update((name, rival.product(reduce)) for name, rival in self.rivals.items())
        if compiled:
            function = _compiled()
            found["scatter_compiled"] = lambda b: function(
                b, sources, targets, weight, self.rows, reduce
            )
        return found

    def operand(self, n: int) -> Tensor:
        """Make B (rows, n) without equal elements, so that max has one winner."""
        generator = torch.Generator(self.device).manual_seed(2)
        return torch.randn(self.rows, n, generator=generator, device=self.device)


def mm_step(rows: int, device: torch.device) -> Function:
    """Forward and backward of torch.mm with a weight (64, 64): what PyTorch itself takes."""
    b, weight = torch.randn(rows, 64, device=device), torch.randn(64, 64, device=device)
    return call_of(torch.mm, [b, weight], torch.ones_like(b))


# ---- operations of attention, without a layer ---------------------------------------------------


class _Edges(NamedTuple):
    """Attention by functions of PyTorch and PyG, which write tensors of edges."""

    sources: Tensor
    targets: Tensor

    def of_sources(self, x: Tensor) -> Tensor:
        return x.index_select(0, self.sources)

    def of_targets(self, x: Tensor) -> Tensor:
        return x.index_select(0, self.targets)

    def attend(self, scores: Tensor, values: Tensor) -> Tensor:
        weights = softmax(scores, self.targets, num_nodes=len(values))
        messages = weights.unsqueeze(-1) * self.of_sources(values)
        result: Tensor = scatter(messages, self.targets, 0, len(values))
        return result

    def gat(self, b: Tensor, left: Tensor, right: Tensor) -> Tensor:
        return self.attend(leaky_relu(self.of_targets(left) + self.of_sources(right), 0.2), b)

    def gatv2(self, b: Tensor, x: Tensor, att: Tensor) -> Tensor:
        both = leaky_relu(self.of_targets(x) + self.of_sources(b), 0.2)
        return self.attend((both * att).sum(-1), b)

    def dot(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        products = self.of_targets(q) * self.of_sources(k)
        return self.attend(products.sum(-1) * q.size(-1) ** -0.5, v)


class _Operation(NamedTuple):
    """An operation of warploom.torch, and the same by functions of PyTorch and PyG."""

    own: Callable[..., Tensor]  # of a graph and the operands
    pyg: Callable[..., Tensor]  # of the edges and the operands
    operands: tuple[str, ...]  # the dimensions of each: nodes, heads and features


OPERATIONS = {
    "gat": _Operation(warploom.torch.gat, _Edges.gat, ("nhf", "nh", "nh")),
    "gatv2": _Operation(warploom.torch.gatv2, _Edges.gatv2, ("nhf", "nhf", "hf")),
    "dot": _Operation(warploom.torch.attention, _Edges.dot, ("nhf", "nhf", "nhf")),
}


class AttentionSteps(Inputs):
    """Steps of the operations on one graph."""

    def functions(self, kind: str, shape: str) -> dict[str, Function]:
        """Return a step of each way: it returns the result and the gradients of all operands."""
        operation = OPERATIONS[kind]
        heads, features = SHAPES[shape]
        sizes = {"n": self.nodes, "h": heads, "f": features}
        generator = torch.Generator(self.device).manual_seed(3)
        draw = partial(torch.randn, generator=generator, device=self.device)
        operands = [draw([sizes[name] for name in names]) for names in operation.operands]
        others = {name: rival.operation(kind) for name, rival in self.rivals.items()}
        calls: dict[str, Callable[..., Tensor]] = {
            "warploom": partial(operation.own, self.graph),
            "pyg": partial(operation.pyg, _Edges(*self.edge_index)),
            **{name: other for name, other in others.items() if other is not None},
        }
        upstream = draw([self.nodes, heads, features])
        return {name: call_of(call, operands, upstream) for name, call in calls.items()}


# ---- the cases ----------------------------------------------------------------------------------

# n: columns, or heads and features of attention: "8x8".
Case = namedtuple("Case", "bench graph model n reduce mode")


def cases(settings: Settings) -> Iterator[Case]:
    modes = settings.timed_modes()
    for graph in settings.graphs:
        for bench, reduce, n, mode in product(
            ("spmm", "backward"), REDUCTIONS, settings.widths, modes
        ):
            yield Case(bench, graph, None, n, reduce, mode)
        for (model, reduce), n, mode in product(steps.MODELS, settings.widths, modes):
            yield Case("step", graph, model, n, reduce, mode)
    for graph, kind, shape in product(
        [graph for graph in settings.graphs if graph in ATTENTION],
        OPERATIONS,
        SHAPES,
    ):
        yield Case("attention", graph, kind, shape, None, "eager")
    for (model, reduce), n in product(steps.MODELS, settings.widths):
        yield Case("minibatch", settings.graphs[-1], model, n, reduce, "eager")


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
            return AttentionSteps(self.graph, self.device)
        return Products(self.graph, self.device)


def _functions(
    case: Case, kept: Kept
) -> tuple[dict[str, Function], dict[str, Callable[[], Tensor | Sequence[Tensor]]]]:
    """Return the functions to time, and the results to compare before."""
    timed: dict[str, Any]
    if case.bench in ("spmm", "backward"):
        ways = kept.data.of("products")
        b = ways.operand(case.n)
        upstream = None if case.bench == "spmm" else ways.operand(case.n).flip(0)
        timed = {
            name: partial(way, b) if upstream is None else call_of(way, [b], upstream)
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
    failed = compare(compared)[1]
    wanted = {name: function for name, function in timed.items() if name not in failed}
    if case.mode == "eager" and case.bench in ("backward", "attention"):
        wanted["mm"] = mm_step(kept.graph.nodes, kept.device)
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


SUITE = Suite(
    {"graphs": GRAPHS, "widths": (16, 64, 256), "features": 512, "seeds": 1024, "batches": 16},
    {"graphs": ("random:300:6",), "widths": (16,), "compiled": False, "samples": 2}
    | {"features": 32, "seeds": 20, "batches": 2},
    cases,
    by_graph(Kept, _run_case),
    ("us", "rivals"),
)
