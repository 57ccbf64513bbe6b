"""The models of the papers: layers of PyG with a ReLU and dropout between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv, SAGEConv

from bench.pytorch.graphs import Indices

# GraphSAGE-gcn: the mean over a node and its neighbours. GraphSAGE-pool: the maximum over a dense
# layer's outputs for the neighbours. GraphSAGE-mean: without the node, which has its own weight.
MODELS: dict[str, Callable[[int, int], Any]] = {
    "gcn": lambda inputs, outputs: GCNConv(inputs, outputs, cached=True),
    "sage-gcn": lambda inputs, outputs: SAGEConv(inputs, outputs, aggr="mean", root_weight=False),
    "sage-pool": lambda inputs, outputs: SAGEConv(inputs, outputs, aggr="max", project=True),
    "sage-mean": lambda inputs, outputs: SAGEConv(inputs, outputs, aggr="mean"),
}
REDUCTIONS = {"gcn": "sum", "sage-gcn": "mean", "sage-pool": "max", "sage-mean": "mean"}


class Model(nn.Module):
    """`layers` hidden layers of `hidden` features, and one more whose outputs are the classes."""

    def __init__(
        self, kind: str, layers: int, inputs: int, hidden: int, classes: int, dropout: float = 0.5
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers, classes]
        self.dropout = dropout
        self.layers = nn.ModuleList(
            MODELS[kind](width, following) for width, following in zip(widths, widths[1:])
        )

    def forward(self, x: Tensor, edges: Any) -> Tensor:
        for number, layer in enumerate(self.layers):
            if number:
                x = functional.dropout(x.relu(), self.dropout, self.training)
            x = layer(x, edges)
        return x


def edges_of(kind: str, edges: Indices, nodes: int) -> Indices:
    """Return the edges for a model of this kind, sorted by targets and without self loops.

    GCNConv adds self loops itself; GraphSAGE-gcn gets one at each node.
    """
    kept = edges[:, edges[0] != edges[1]]
    if kind == "sage-gcn":
        kept = np.concatenate([kept, np.tile(np.arange(nodes), (2, 1))], 1)
        kept = kept[:, np.lexsort((kept[0], kept[1]))]
    return np.ascontiguousarray(kept)
