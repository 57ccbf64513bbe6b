"""The suite "attention": layers of PyTorch Geometric on warploom and in PyG, one JSON line each.

A line has the time of a forward pass or of a step (forward and backward, with the gradients of the
features and all parameters) in microseconds and the memory that it takes beside its inputs in MB.
A line of a forward pass also has the time of attention alone ("kernel_us") and that of the plain
product of the same width and heads ("product_us").
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, TransformerConv

import warploom.torch
from warploom import pyg
from warploom.bench.graphs import load
from warploom.bench.steps import run_as_in_pyg
from warploom.bench.suite import Settings
from warploom.bench.timing import Function, measure, synchronise

GRAPHS = (
    "cora",
    "pubmed",
    "amazon-computers",
    "email-Enron",
    "tolokers",
    "blogcatalog-10k",
    "twin:products,scale=0.1",
    "twin:reddit,scale=0.1",
)
LAYERS = ("gat", "transformer")
HEADS = ((1, 64), (8, 8), (4, 32))
DIRECTIONS = ("forward", "step")
TOLERANCE = 1e-3


class Case(NamedTuple):
    graph: str
    layer: str
    heads: int
    dim: int
    mode: str
    direction: str

    def name(self) -> str:
        """For example cora/gat/8/8/graphed/step."""
        return "/".join(str(part) for part in self)


def cases(settings: Settings) -> Iterator[Case]:
    modes = ("eager", "graphed") if settings.device == "cuda" else ("eager",)
    for graph in settings.graphs:
        for layer in LAYERS:
            for heads, dim in HEADS:
                for mode in modes:
                    for direction in DIRECTIONS:
                        case = Case(graph, layer, heads, dim, mode, direction)
                        if all(text in case.name() for text in settings.only):
                            yield case


class _Inputs:
    """A graph with self loops, and features."""

    def __init__(self, name: str, settings: Settings) -> None:
        graph = load(name, settings.data, settings.command)
        device = torch.device(settings.device)
        edges = torch.from_numpy(graph.edges())
        edges = edges[:, edges[0] != edges[1]]
        loops = torch.arange(graph.nodes).expand(2, -1)
        self.nodes = graph.nodes
        self.device = device
        self.edge_index = torch.cat([edges, loops], 1).to(device)
        self.products: dict[tuple[int, int], Function] = {}

    def features(self, n: int) -> Tensor:
        generator = torch.Generator(self.device).manual_seed(4)
        return torch.randn(self.nodes, n, generator=generator, device=self.device)

    def parts(self, layer: str, heads: int, dim: int) -> dict[str, Function]:
        """Attention without the linear maps of its layer, and the plain product of this width,
        with a value for each edge and head."""
        graph = warploom.torch.Graph.from_edge_index(
            self.edge_index, rows=self.nodes, cols=self.nodes
        )
        b = self.features(heads * dim).view(self.nodes, heads, dim)
        values = torch.rand(graph.nnz, heads, device=self.device)
        left, right = b.sum(-1), b.mean(-1)

        def kernel() -> Tensor:
            if layer == "gat":
                return warploom.torch.gat(graph, b, left, right)
            return warploom.torch.attention(graph, b, b, b)

        return {"kernel": kernel, "product": lambda: warploom.torch.spmm(graph, b, values)}


def _layer(case: Case, device: torch.device) -> Any:
    torch.manual_seed(3)
    n = case.heads * case.dim
    if case.layer == "gat":
        return GATConv(n, case.dim, heads=case.heads, add_self_loops=False).to(device)
    return TransformerConv(n, case.dim, heads=case.heads).to(device)


def _function(layer: Any, x: Tensor, edge_index: Tensor, direction: str) -> Function:
    if direction == "forward":

        def forward() -> Tensor:
            with torch.no_grad():
                return layer(x, edge_index)  # type: ignore[no-any-return]

        return forward
    x = x.clone().requires_grad_()
    operands = [x, *layer.parameters()]

    def step() -> Tensor:
        out = layer(x, edge_index)
        gradients = torch.autograd.grad(out, operands, torch.ones_like(out))
        return torch.cat([g.flatten() for g in gradients[:1]])

    return step


def _peak(function: Function, device: torch.device) -> float | None:
    """MB beside what is allocated before."""
    if device.type != "cuda":
        return None
    synchronise(device)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    synchronise(device)
    return round((torch.cuda.max_memory_allocated() - before) / 1e6, 3)


def _run_case(case: Case, inputs: _Inputs, settings: Settings) -> dict[str, Any]:
    device = inputs.device
    x = inputs.features(case.heads * case.dim)
    layer = _layer(case, device)
    own, plain = pyg.convert(copy.deepcopy(layer)), layer
    run_as_in_pyg(plain)
    functions = {
        "warploom": _function(own, x, inputs.edge_index, case.direction),
        "pyg": _function(plain, x, inputs.edge_index, case.direction),
    }
    if case.direction == "forward":
        functions.update(inputs.parts(case.layer, case.heads, case.dim))
    for name in ("warploom", "warploom", "pyg"):  # the second call keeps the graph
        functions[name]()
    found, wanted = functions["warploom"]().double(), functions["pyg"]().double()
    error = float((found - wanted).norm() / wanted.norm().clamp(min=1e-30))
    del found, wanted
    peaks = {name: _peak(functions[name], device) for name in ("warploom", "pyg")}
    if settings.compiled:
        compiled = torch.compile(copy.deepcopy(layer))
        functions["compiled"] = _function(compiled, x, inputs.edge_index, case.direction)
    times, failed = measure(functions, device, case.mode == "graphed", settings.samples)
    line: dict[str, Any] = {**case._asdict(), "type": "f32", "edges": inputs.edge_index.size(1)}
    line["us"] = times.get("warploom")
    line["peak_mb"] = peaks["warploom"]
    line["pyg_us"] = times.get("pyg")
    line["pyg_peak_mb"] = peaks["pyg"]
    line["pyg_compiled_us"] = times.get("compiled")
    for part in ("kernel", "product") if case.direction == "forward" else ():
        line[part + "_us"] = times.get(part)
    line["error"] = error
    line["ok"] = error <= TOLERANCE and "warploom" in times
    if failed:
        line["failed"] = failed
    return line


def run(settings: Settings, out: Path | None) -> int:
    """Run the cases that `out` lacks; the number of wrong results."""
    known = set()
    if out is not None and out.exists():
        for text in out.read_text().splitlines():
            line = json.loads(text)
            known.add(Case(*(line[field] for field in Case._fields)))
    wrong, begin = 0, time.monotonic()
    name, inputs = "", None
    for case in cases(settings):
        if case in known or time.monotonic() - begin > settings.budget:
            continue
        if case.graph != name or inputs is None:
            name, inputs = case.graph, None
            inputs = _Inputs(name, settings)
        line = _run_case(case, inputs, settings)
        wrong += not line["ok"]
        text = json.dumps(line)
        print(text, flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(text + "\n")
    if wrong:
        print(f"warploom: {wrong} results differ from PyG's", file=sys.stderr)
    return wrong
