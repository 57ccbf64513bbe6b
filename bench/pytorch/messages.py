"""The suite "messages": `propagate` of layers as one kernel and in PyG, one JSON line each.

A line has the time of a forward pass or of a step (forward and backward, with the gradients of all
operands) in microseconds, and the memory that it takes beside its inputs in MB.
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

import warploom.torch
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import compare
from bench.pytorch.graphs import by_graph
from bench.pytorch.timing import Function, call_of, measure, peak_memory
from bench.results_file import Line

GRAPHS = ("cora", "pubmed", "tolokers", "amazon-computers", "email-Enron", "twin:arxiv")
MODES = ("forward", "step")
TOLERANCE = 1e-4
# The standard deviation is a root, which float32 does not determine near 0; where it is below this,
# the gradient that comes from behind it is 0.
SMALL_DEVIATION = 0.05


class _Layer(MessagePassing):  # type: ignore[misc]
    def forward(self, edge_index: Tensor, **operands: Tensor) -> Tensor:
        return self.propagate(edge_index, **operands)  # type: ignore[no-any-return]


class Layer(NamedTuple):
    """A message of warploom and PyG's."""

    message: Callable[..., Tensor]  # PyG's
    expression: str
    operands: tuple[str, ...]
    narrow: tuple[str, ...] = ()  # those of one column
    reduce: tuple[str, ...] = ("sum",)

    def of_pyg(self) -> Any:
        self.message.__name__ = "message"  # by which PyG finds its arguments
        kind: Any = type("Layer", (_Layer,), {"message": staticmethod(self.message)})
        return kind(aggr=self.reduce[0] if len(self.reduce) == 1 else list(self.reduce))


LAYERS = {
    "gine": Layer(lambda b_j, e: (b_j + e).relu(), "relu(b+e)", ("b", "e")),
    "resgated": Layer(
        lambda x_i, k_j, b_j: (x_i + k_j).sigmoid() * b_j, "sigmoid(x+k)*b", ("x", "k", "b")
    ),
    "film": Layer(lambda x_i, b_j, y_i: (x_i * b_j + y_i).relu(), "relu(x*b+y)", ("x", "b", "y")),
    "cf": Layer(lambda b_j, e: b_j * e, "b*e", ("b", "e")),
    "fa": Layer(
        lambda x_i, k_j, a, b_j: b_j * ((x_i + k_j).tanh().squeeze(-1) * a).view(-1, 1),
        *("tanh(x+k)*a*b", ("x", "k", "a", "b"), ("x", "k", "a")),
    ),
    "pna": Layer(lambda b_j: b_j, "b", ("b",), (), ("mean", "min", "max", "std")),
}


Case = namedtuple("Case", "layer graph n mode")


def cases(settings: Settings) -> Iterator[Case]:
    for graph, layer, n, mode in product(settings.graphs, settings.layers, settings.widths, MODES):
        yield Case(layer, graph, n, mode)


class _Inputs:
    """A graph, and operands of its messages."""

    def __init__(self, name: str, settings: Settings) -> None:
        csr = settings.load(name)
        self.device = torch.device(settings.device)
        self.nodes = csr.nodes
        self.edge_index = torch.from_numpy(csr.edges()).to(self.device)
        self.graph = warploom.torch.Graph.from_edge_index(
            self.edge_index, rows=self.nodes, cols=self.nodes
        )

    def operands(self, layer: Layer, n: int) -> dict[str, Tensor]:
        generator = torch.Generator(self.device).manual_seed(4)
        made = {}
        for name in layer.operands:
            lines = self.graph.nnz if name in ("a", "e") else self.nodes
            shape = (lines,) if name == "a" else (lines, 1 if name in layer.narrow else n)
            made[name] = torch.randn(shape, generator=generator, device=self.device)
        return made

    def upstream(self, of_result: Tensor, layer: Layer) -> Tensor:
        """The gradient by a result, which is PyG's."""
        generator = torch.Generator(self.device).manual_seed(5)
        upstream = torch.rand(of_result.shape, generator=generator, device=self.device) + 0.5
        if "std" in layer.reduce:
            parts = zip(upstream.chunk(len(layer.reduce), -1), layer.reduce)
            results = of_result.chunk(len(layer.reduce), -1)
            for (part, reduce), result in zip(parts, results):
                if reduce == "std":
                    part.masked_fill_(result < SMALL_DEVIATION, 0.0)
        return upstream


def _own(layer: Layer, graph: warploom.torch.Graph) -> Any:
    """`propagate` as one kernel. Several reductions lie side by side, as in PyG."""

    def propagate(edge_index: Tensor, **operands: Tensor) -> Tensor:
        results = warploom.torch.message(
            graph, layer.expression, reduce=layer.reduce, operands=operands
        )
        return results[0] if len(results) == 1 else torch.cat(tuple(results), -1)

    return propagate


def _function(
    propagate: Any, edge_index: Tensor, operands: dict[str, Tensor], upstream: Tensor | None
) -> Function:
    """A forward pass, or with upstream a step; returns the results and all gradients."""
    names = list(operands)
    fixed = [names.index("a")] if "a" in names else []  # FAConv computes its norm once
    return call_of(
        lambda *given: propagate(edge_index, **dict(zip(names, given))),
        operands.values(),
        upstream,
        fixed,
    )


def _bytes(inputs: _Inputs, operands: dict[str, Tensor], out: Tensor, mode: str) -> int:
    """What must be moved: the pattern, the operands and the results once; in a step the same again,
    and the gradients by the operands."""
    pattern = sum(t.nbytes for t in (inputs.graph.rowptr, inputs.graph.colind))
    read = sum(t.nbytes for t in operands.values())
    forward = pattern + read + out.nbytes
    gradients = sum(t.nbytes for name, t in operands.items() if name != "a")
    return forward if mode == "forward" else 2 * forward + gradients


def _run_case(case: Case, inputs: _Inputs, settings: Settings) -> Line:
    device, layer = inputs.device, LAYERS[case.layer]
    operands = inputs.operands(layer, case.n)
    plain = layer.of_pyg().to(device)
    own, edge_index = _own(layer, inputs.graph), inputs.edge_index
    with torch.no_grad():
        out = plain(edge_index, **operands)
    upstream = inputs.upstream(out, layer) if case.mode == "step" else None
    moved = _bytes(inputs, operands, out, case.mode)
    del out
    functions = {
        "warploom": _function(own, edge_index, operands, upstream),
        "pyg": _function(plain, edge_index, operands, upstream),
    }
    errors, _ = compare(functions, TOLERANCE)
    memory = {name: peak_memory(function, device) for name, function in functions.items()}
    if settings.compiled:
        torch.compiler.reset()  # it gives up on a function after 8 shapes
        compiled = torch.compile(copy.deepcopy(plain))
        functions["compiled"] = _function(compiled, edge_index, operands, upstream)
    times, failed = measure(functions, device, device.type == "cuda", settings.samples)
    us = times.get("warploom")
    return {
        "us": us,
        "pyg_us": times.get("pyg"),
        "pyg_compiled_us": times.get("compiled"),
        "gbs": us and moved / us / 1e3,
        "memory": memory["warploom"],
        "pyg_memory": memory["pyg"],
        "max_rel_err": errors["warploom"],
        "nodes": inputs.nodes,
        "edges": inputs.graph.nnz,
        "failed": failed,
    }


SUITE = Suite(
    {"graphs": GRAPHS, "layers": tuple(LAYERS), "widths": (64, 128)},
    {"graphs": ("random:300:6",), "widths": (16,), "compiled": False, "samples": 2},
    cases,
    by_graph(_Inputs, _run_case),
    ("us", "pyg_us", "pyg_compiled_us", "gbs", "memory", "pyg_memory", "max_rel_err"),
    {"layers": LAYERS},
)
