"""Cases "spmm" and "backward": one product of a graph and a dense matrix, and its gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import scatter

from bench.pytorch import rivals
from bench.pytorch.graphs import Csr
from bench.pytorch.timing import Function, step_of
from warploom.torch import Graph, spmm
from warploom.torch._internals import limit_recompiles

REDUCTIONS = ("sum", "mean", "max")
Product = Callable[[Tensor], Tensor]


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


def forward(product: Product, b: Tensor) -> Function:
    return lambda: product(b)


def backward(product: Product, b: Tensor, grad: Tensor) -> Function:
    """Run forward and backward; returns the gradient of B."""
    leaf = b.clone().requires_grad_()

    def run() -> Tensor:
        (result,) = torch.autograd.grad(product(leaf), leaf, grad)
        return result

    return run


def mm_step(rows: int, device: torch.device) -> Function:
    """Forward and backward of torch.mm with a weight (64, 64): what PyTorch itself takes."""
    b = torch.randn(rows, 64, device=device, requires_grad=True)
    weight = torch.randn(64, 64, device=device, requires_grad=True)
    return step_of(lambda: torch.mm(b, weight), (b, weight), torch.ones_like(b))
