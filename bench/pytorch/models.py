"""The models of the papers: layers of PyG with a ReLU and dropout between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    SAGEConv,
    SGConv,
    TAGConv,
    TransformerConv,
)

from bench.pytorch.graphs import Indices


def gin(inputs: int, outputs: int) -> GINConv:
    """GINConv with a network of two layers."""
    hidden = nn.Linear(inputs, outputs)
    return GINConv(nn.Sequential(hidden, nn.ReLU(), nn.Linear(outputs, outputs)))


# GraphSAGE-gcn: the mean over a node and its neighbours. GraphSAGE-pool: the maximum over a dense
# layer's outputs for the neighbours. GraphSAGE-mean: without the node, which has its own weight.
LAYERS: dict[str, Callable[..., Any]] = {
    "gcn": GCNConv,
    "sage-gcn": partial(SAGEConv, aggr="mean", root_weight=False),
    "sage-pool": partial(SAGEConv, aggr="max", project=True),
    "sage-mean": partial(SAGEConv, aggr="mean"),
    "sage-max": partial(SAGEConv, aggr="max"),
    "gin": gin,
    "graph": GraphConv,
    "sg": partial(SGConv, K=2),
    "tag": TAGConv,
}
ATTENTION = {"gat": GATConv, "gatv2": GATv2Conv, "transformer": TransformerConv}
REDUCTIONS = {"gcn": "sum", "sage-gcn": "mean", "sage-pool": "max"}


def layer(kind: str, inputs: int, outputs: int, heads: int = 1, **options: bool) -> Any:
    """Make a layer. outputs: of all heads, which attention has; options: those of its class."""
    if kind in ATTENTION:
        return ATTENTION[kind](inputs, outputs // heads, heads=heads, **options)
    return LAYERS[kind](inputs, outputs, **options)


class Stack(nn.Module):
    """Layers with a ReLU between them."""

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: Tensor, edges: Any, *more: Any) -> Tensor:
        for number, one in enumerate(self.layers):
            x = one(self.between(x) if number else x, edges, *more)
        return x

    def between(self, x: Tensor) -> Tensor:
        return x.relu()


class Model(Stack):
    """`layers` hidden layers of `hidden` features, and one more whose outputs are the classes."""

    def __init__(
        self, kind: str, layers: int, inputs: int, hidden: int, classes: int, dropout: float = 0.5
    ) -> None:
        widths, options = [inputs, *[hidden] * layers, classes], {"cached": True}
        super().__init__(
            layer(kind, *size, **(options if kind == "gcn" else {}))
            for size in zip(widths, widths[1:])
        )
        self.dropout = dropout

    def between(self, x: Tensor) -> Tensor:
        return functional.dropout(x.relu(), self.dropout, self.training)


def edges_of(kind: str, edges: Indices, nodes: int) -> Indices:
    """Return the edges for a model of this kind, sorted by targets and without self loops.

    GCNConv adds self loops itself; GraphSAGE-gcn gets one at each node.
    """
    kept = edges[:, edges[0] != edges[1]]
    if kind == "sage-gcn":
        kept = np.concatenate([kept, np.tile(np.arange(nodes), (2, 1))], 1)
        kept = kept[:, np.lexsort((kept[0], kept[1]))]
    return np.ascontiguousarray(kept)
