"""The suite "layers": steps of PyG's layers on warploom and in PyG, one JSON line each.

A step is forward and backward with the gradients of the nodes' features and of all parameters, from
the third one on with the same edge_index. With a graph named `pubmed/new` each step has a new
edge_index with another number of edges. A line has its time on the host's clock, its GPU work,
whether warploom serves the layer, and the reason if not.
"""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, product, repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import TOLERANCE, difference
from bench.pytorch.graphs import by_graph
from bench.pytorch.layer_cases import CASES, Shape
from bench.pytorch.steps import run_as_in_pyg
from bench.pytorch.timing import profile_kernels, step_of, time_beside_pyg
from bench.results_file import Line
from warploom import pyg

GRAPHS = ("pubmed", "twin:arxiv")
NEW = "/new"  # at the end of a graph's name
SPAN = 997  # steps after which the number of edges is the same again
EDGE_FEATURES = 16
# A gradient that is 0 but for rounding, as by a bias before a softmax, is compared with this part
# of the largest gradient's norm.
LEAST_GRADIENT = 1e-3
# Of parameters and inputs; under autocast operations choose bfloat16.
TYPES = {
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "autocast": torch.float32,
}
PROFILED_CALLS = 5
MOST_OVER_PYG = 1.5  # of an error in 16 bits


Case = namedtuple("Case", "layer graph n type")


def cases(settings: Settings) -> Iterator[Case]:
    for graph, layer, of_numbers in product(settings.graphs, settings.layers, settings.types):
        yield Case(layer, graph, settings.n, of_numbers)


def shape_of(name: str, settings: Settings, n: int) -> Shape:
    """The sizes of a graph and of a layer with n columns."""
    graph = settings.load(name.removesuffix(NEW))
    edge_index = torch.from_numpy(graph.edges()).to(settings.device)
    return Shape(edge_index, graph.nodes, n, n, n // 2, EDGE_FEATURES, torch.float32)


class Call(NamedTuple):
    """What a layer is called with. steps: their numbers, each of which leaves out as many of the
    first edges; None: all steps have the same edge_index."""

    inputs: dict[str, Tensor]
    edge_index: Tensor
    is_autocast: bool
    steps: Iterator[int] | None = None

    def of(self, layer: Any) -> Tensor:
        edges, inputs = self.edge_index, self.inputs
        if self.steps is not None:
            first = next(self.steps) % min(SPAN, edges.size(1) // 2)
            edges = edges[:, first:].clone(memory_format=torch.contiguous_format)
            inputs = {
                name: given[first:] if name.startswith("edge_") else given
                for name, given in inputs.items()
            }
        with torch.autocast(edges.device.type, torch.bfloat16, enabled=self.is_autocast):
            return layer(edge_index=edges, **inputs)  # type: ignore[no-any-return]

    def counted(self) -> Call:
        """The same for steps that are counted from 0 on."""
        return self if self.steps is None else self._replace(steps=count())


def call_of(layer: str, graph: str, shape: Shape) -> Call:
    """What a layer on a graph is called with, whose first step has all edges."""
    inputs = CASES[layer].inputs(shape)
    for name in ("x", "x_0"):
        if name in inputs:
            inputs[name].requires_grad_()
    return Call(inputs, shape.edge_index, False, count() if graph.endswith(NEW) else None)


def make_step(
    layer: Any, call: Call, upstream: Tensor, options: dict[str, Any] | None
) -> Callable[[], list[Tensor]]:
    """A function that returns the result and all gradients. options: of `accelerate`; None: PyG."""

    def forward() -> Tensor:
        with nullcontext() if options is None else pyg.accelerate(**options):
            return call.of(layer)

    return step_of(forward, (*call.inputs.values(), *layer.parameters()), upstream)


def _error(found: list[Tensor], expected: list[Tensor]) -> float:
    """The largest difference of the result or a gradient, by norms."""
    least = LEAST_GRADIENT * max(float(gradient.norm()) for gradient in expected[1:])
    gradients = zip(found[1:], expected[1:])
    return max(
        difference(found[0], expected[0]),
        *(difference(one, other, least) for one, other in gradients),
    )


def served() -> tuple[bool, str | None]:
    """Whether warploom served all calls since the last report, and the reasons of the others."""
    calls = pyg.report(reset=True)
    reasons = {reason for counts in calls.values() for reason in counts} - {"warploom"}
    return bool(calls) and not reasons, "; ".join(sorted(reasons)) or None


def _in_float64(layer: Any, call: Call, upstream: Tensor) -> list[Tensor]:
    """The step of a copy of a layer of PyG with the same numbers in float64."""
    wide = copy.deepcopy(layer).double()
    inputs = {
        name: x.detach().double().requires_grad_(x.requires_grad) if x.is_floating_point() else x
        for name, x in call.inputs.items()
    }
    wide_call = call._replace(inputs=inputs, is_autocast=False)
    return make_step(wide, wide_call, upstream.double(), None)()


def _errors(case: Case, found: list[Tensor], other: list[Tensor], exact: list[Tensor]) -> Line:
    """The fields of a line for the errors. Raises ArithmeticError where ours is too large.

    PyG's f32 is exact enough. In 16 bits rounding decides about maxima and signs, and PyG adds up
    in 16 bits. So both are compared with float64, and ours may be MOST_OVER_PYG times PyG's.
    """
    error = _error(found, exact)
    allowed = TOLERANCE
    line: Line = {"max_rel_err": error}
    if case.type != "f32":
        of_pyg = _error(other, exact)
        line["pyg_max_rel_err"] = of_pyg
        allowed = max(allowed, MOST_OVER_PYG * of_pyg)
    if not error <= allowed:
        raise ArithmeticError(f"the error is {error:.1e}, and {allowed:.1e} is allowed")
    return line


def _run_case(case: Case, shape: Shape, settings: Settings) -> Line:
    shape = replace(shape, dtype=TYPES[case.type])
    torch.manual_seed(3)
    plain = CASES[case.layer].make(shape).to(shape.device, shape.dtype)
    call = call_of(case.layer, case.graph, shape)._replace(is_autocast=case.type == "autocast")
    if call.steps is not None:  # what is compared has these edges
        call = call._replace(steps=repeat(1))
    with torch.no_grad():
        upstream = torch.randn_like(call.of(plain))
    layer = copy.deepcopy(plain)
    own = make_step(layer, call, upstream, {"wait": True})
    for _ in range(2):
        own()
    pyg.report(reset=True)
    found = own()
    is_served, reason = served()
    run_as_in_pyg(plain)
    other = make_step(plain, call, upstream, None)
    expected = other()
    exact = expected if case.type == "f32" else _in_float64(plain, call, upstream)
    errors = _errors(case, found, expected, exact)
    del found, expected, exact
    own = make_step(layer, call.counted(), upstream, {"wait": True})
    other = make_step(plain, call.counted(), upstream, None)
    times = time_beside_pyg({"warploom": own, "pyg": other}, shape.device, settings.samples)
    line: Line = {"served": is_served, "reason": reason, **times, **errors}
    if shape.device.type == "cuda":
        line["gpu_us"] = profile_kernels(own, PROFILED_CALLS)
        line["pyg_gpu_us"] = profile_kernels(other, PROFILED_CALLS)
    return {**line, "nodes": shape.nodes, "edges": shape.edges}


SUITE = Suite(
    {"graphs": GRAPHS, "layers": tuple(CASES)},
    {"graphs": ("random:300:6",), "n": 8, "samples": 2},
    cases,
    by_graph(lambda name, settings: shape_of(name, settings, settings.n), _run_case),
    ("us", "spread", "pyg_us", "pyg_spread", "served", "reason", "max_rel_err"),
    {"layers": CASES, "types": TYPES},
)
