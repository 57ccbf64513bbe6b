"""The suite "attention": layers of PyTorch Geometric on warploom and in PyG, one JSON line each.

A line has the time of a forward pass or of a step (forward and backward, with the gradients of the
features and all parameters) in microseconds and the memory that it takes beside its inputs in MB.
A line of a forward pass also has the time of attention alone ("kernel_us") and that of the plain
product of the same width and heads ("product_us").
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor

import warploom.torch
from bench.pytorch import rivals
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import compare
from bench.pytorch.graphs import Csr, by_graph
from bench.pytorch.models import layer
from bench.pytorch.steps import run_as_in_pyg
from bench.pytorch.timing import Function, call_of, first_calls, measure, peak_memory, step_of
from bench.results_file import Line
from warploom import pyg
from warploom.torch import _attention

PUBLISHED = ("cora", "pubmed", "amazon-computers", "email-Enron", "tolokers")
GRAPHS = (*PUBLISHED, "blogcatalog-10k", "twin:products,scale=0.1", "twin:reddit,scale=0.1")
LAYERS = ("gat", "gatv2", "transformer")
HEADS = ((1, 64), (8, 8), (4, 32))
DIRECTIONS = ("forward", "step")


Case = namedtuple("Case", "graph layer heads dim mode direction")


def cases(settings: Settings) -> Iterator[Case]:
    for graph, kind, (heads, dim), mode, direction in product(
        settings.graphs, LAYERS, HEADS, settings.timed_modes(), DIRECTIONS
    ):
        yield Case(graph, kind, heads, dim, mode, direction)


class Inputs:
    """A graph with self loops, and features."""

    def __init__(self, graph: Csr, device: torch.device) -> None:
        edges = torch.from_numpy(graph.edges())
        edges = edges[:, edges[0] != edges[1]]
        loops = torch.arange(graph.nodes).expand(2, -1)
        self.nodes = graph.nodes
        self.device = device
        self.edge_index = torch.cat([edges, loops], 1).to(device)
        self.graph = warploom.torch.Graph.from_edge_index(
            self.edge_index, rows=self.nodes, cols=self.nodes
        )
        self.rivals = rivals.make(self.graph.rowptr.int(), self.graph.colind.int())

    def features(self, n: int) -> Tensor:
        generator = torch.Generator(self.device).manual_seed(4)
        return torch.randn(self.nodes, n, generator=generator, device=self.device)

    def parts(self, layer: str, heads: int, dim: int) -> dict[str, Function]:
        """Attention without the linear maps of its layer, and the plain product of this width,
        with a value for each edge and head."""
        graph, b = self.graph, self.features(heads * dim).view(self.nodes, heads, dim)
        values = torch.rand(graph.nnz, heads, device=self.device)
        left, right, att = b.sum(-1), b.mean(-1), b[0] / dim

        def kernel() -> Tensor:
            if layer == "gat":
                return warploom.torch.gat(graph, b, left, right)
            if layer == "gatv2":
                return warploom.torch.gatv2(graph, b, b, att)
            return warploom.torch.attention(graph, b, b, b)

        return {"kernel": kernel, "product": lambda: warploom.torch.spmm(graph, b, values)}


def _layer(case: Case, device: torch.device) -> Any:
    torch.manual_seed(3)
    n = case.heads * case.dim
    options = {} if case.layer == "transformer" else {"add_self_loops": False}
    return layer(case.layer, n, n, case.heads, **options).to(device)


def _function(made: Any, x: Tensor, edge_index: Tensor, direction: str) -> Function:
    """A forward pass, or a step whose gradient of the features is compared."""
    if direction == "forward":
        return call_of(lambda x: made(x, edge_index), [x], None)
    x = x.clone().requires_grad_()
    step = step_of(lambda: made(x, edge_index), [x, *made.parameters()], torch.ones_like(x))
    return lambda: step()[1]


def _rivals(case: Case, inputs: Inputs, plain: Any, x: Tensor) -> dict[str, Function]:
    """The layer with the attention of other libraries, where they are installed."""
    found = {}
    for name, rival in inputs.rivals.items():
        other = copy.deepcopy(plain)
        attend = rival.attention(case.layer, other)
        if attend is not None and rivals.takes_part(name, case.mode):
            made = rivals.Layer(other, attend)
            found[name] = _function(made, x, inputs.edge_index, case.direction)
    return found


def _run_case(case: Case, inputs: Inputs, settings: Settings) -> Line:
    device = inputs.device
    x = inputs.features(case.heads * case.dim)
    plain = _layer(case, device)
    own = pyg.convert(copy.deepcopy(plain))
    run_as_in_pyg(plain)
    functions = {
        "warploom": _function(own, x, inputs.edge_index, case.direction),
        "pyg": _function(plain, x, inputs.edge_index, case.direction),
    }
    others = _rivals(case, inputs, plain, x)
    first = first_calls({**functions, **others}, device)
    for name in ("warploom", "pyg"):  # the second call keeps the graph
        functions[name]()
    errors, wrong = compare({**functions, **others})
    functions.update({name: other for name, other in others.items() if name not in wrong})
    peaks = {name: peak_memory(function, device) for name, function in functions.items()}
    if case.direction == "forward":
        functions.update(inputs.parts(case.layer, case.heads, case.dim))
    if settings.compiled:
        torch.compiler.reset()  # it gives up on a function after 8 shapes
        compiled = torch.compile(copy.deepcopy(plain))
        functions["compiled"] = _function(compiled, x, inputs.edge_index, case.direction)
    times, failed = measure(functions, device, case.mode == "graphed", settings.samples)
    parts = ("kernel", "product") if case.direction == "forward" else ()
    return {
        "type": "f32",
        "edges": inputs.edge_index.size(1),
        "us": times.get("warploom"),
        "peak_mb": peaks["warploom"],
        "pyg_us": times.get("pyg"),
        "pyg_peak_mb": peaks["pyg"],
        "pyg_compiled_us": times.get("compiled"),
        **{f"{part}_us": times.get(part) for part in parts},
        "error": errors["warploom"],
        "first_ms": first,
        "rivals": {name: {"us": times.get(name), "peak_mb": peaks.get(name)} for name in others},
        "failed": wrong | failed,
    }


def _measure(case: Case, inputs: Inputs, settings: Settings) -> Line:
    _attention.fused = not settings.unfused
    try:
        return _run_case(case, inputs, settings)
    finally:
        _attention.fused = None


SUITE = Suite(
    {"graphs": GRAPHS},
    {"graphs": ("random:300:6",), "compiled": False, "samples": 2},
    cases,
    by_graph(lambda name, s: Inputs(s.load(name), torch.device(s.device)), _measure),
    ("us", "peak_mb", "pyg_us", "pyg_peak_mb", "pyg_compiled_us", "error"),
)
