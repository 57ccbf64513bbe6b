"""Cases "attention": forward and backward of the operations of attention, without a layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch_geometric.utils import scatter, softmax

import warploom.torch
from bench.pytorch.attention import Inputs
from bench.pytorch.timing import Function, step_of

SHAPES = {"1x64": (1, 64), "8x8": (8, 8)}  # heads and features of each


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
        operands = [
            draw([sizes[name] for name in names], requires_grad=True)
            for names in operation.operands
        ]
        others = {name: rival.operation(kind) for name, rival in self.rivals.items()}
        calls: dict[str, Callable[..., Tensor]] = {
            "warploom": partial(operation.own, self.graph),
            "pyg": partial(operation.pyg, _Edges(*self.edge_index)),
            **{name: other for name, other in others.items() if other is not None},
        }
        upstream = draw([self.nodes, heads, features])
        return {
            name: step_of(partial(call, *operands), operands, upstream)
            for name, call in calls.items()
        }
