"""Layers of PyTorch Geometric on a PartitionedGraph in the place of `edge_index`.

GCNConv's norm needs the degrees of all nodes. Each rank has all edges to its nodes, so it knows
their degrees and fetches those of its edges' sources.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, GINConv, GraphConv, MessagePassing, SAGEConv

from warploom import torch as products
from warploom.pyg._checks import Refused, check_dense
from warploom.pyg._kept import Operands
from warploom.torch import _later, distributed
from warploom.torch._state import Made
from warploom.torch.distributed import PartitionedGraph
from warploom.torch.distributed._exchange import Fetch

# Those whose aggregation is a product of one graph.
LAYERS = (GCNConv, SAGEConv, GINConv, GraphConv)
# What was made of each graph: other graphs and norms.
_made: weakref.WeakKeyDictionary[PartitionedGraph, dict[Any, Any]] = weakref.WeakKeyDictionary()


def with_loops(graph: PartitionedGraph) -> tuple[PartitionedGraph, Tensor]:
    """The graph with one loop at each node, and which edges of `local` are loops, instead of which
    it has these; kept."""
    made = _made.setdefault(graph, {})
    if "loops" not in made:
        edges = graph.edge_index()
        is_loop = edges[0] == edges[1]
        loops = graph.nodes.expand(2, -1)
        made["loops"] = graph.with_edges(torch.cat([edges[:, ~is_loop], loops], 1)), is_loop
    return made["loops"]  # type: ignore[no-any-return]


def _loop_weights(graph: PartitionedGraph, weights: Tensor) -> Tensor:
    """The weights of edges without loops, and one for each node: that of its loop, or 1."""
    is_loop = with_loops(graph)[1]
    loops = weights.new_ones(graph.nodes.shape[0])
    loops = loops.index_put((graph.local.row()[is_loop].long(),), weights[is_loop])
    return torch.cat([weights[~is_loop], loops])


def _normalise(
    layer: GCNConv, graph: PartitionedGraph, weight: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """PyG's gcn_norm: the values of the edges of `graph`, or with loops of those of with_loops."""
    values = None if weight is None else weight[graph.local.perm]
    if layer.add_self_loops:
        loops = with_loops(graph)[0]
        if values is not None:
            values = _loop_weights(graph, values)[loops.local.perm]
        graph = loops
    local = graph.local
    if values is None:
        values = torch.ones(local.nnz, dtype=dtype, device=local.device)
    ones = values.new_ones((local.cols, 1))
    scale = products.spmm(local, ones, values).pow(-0.5)
    scale = scale.masked_fill(scale == torch.inf, 0)
    sources = Fetch.apply(scale, graph.exchange, None)  # type: ignore[no-untyped-call]
    by_source = sources.squeeze(1).index_select(0, local.colind)
    by_target = scale.squeeze(1).repeat_interleave(local.degrees(), output_size=local.nnz)
    return by_source * values * by_target  # type: ignore[no-any-return]


def _normalised(
    layer: GCNConv, graph: PartitionedGraph, weight: Tensor | None, dtype: torch.dtype
) -> tuple[PartitionedGraph, Tensor]:
    """The graph and the values that a GCNConv multiplies with; values of constant weights are
    kept."""
    if layer.improved:
        raise Refused("improved GCNConv on a PartitionedGraph")
    made, key = _made.setdefault(graph, {}), (layer.add_self_loops, dtype)
    known: Any
    used = with_loops(graph)[0] if layer.add_self_loops else graph
    if weight is not None and weight.requires_grad:
        return used, _normalise(layer, graph, weight, dtype)
    known = made.get(key)
    if known is None or not known.is_of(weight):
        with torch.inference_mode(False), torch.no_grad():
            values = _normalise(layer, graph, weight, dtype)
        known = made[key] = Made((values,), weight)
    return used, known.tensors[0]


def operands(
    layer: MessagePassing,
    graph: PartitionedGraph,
    reduce: str,
    x: Any,
    edge_weight: Tensor | None,
) -> Operands:
    """The operands of a layer's aggregation for this rank's nodes."""
    _later.thread.module = None  # PyG's code cannot compute the call
    if layer.flow != "source_to_target":
        raise Refused("a PartitionedGraph with flow target_to_source")
    features = check_dense(layer, x[0] if isinstance(x, (tuple, list)) else x)
    values = None
    if edge_weight is not None and (
        edge_weight.shape != graph.edges.shape or edge_weight.dtype is not features.dtype
    ):
        raise Refused("edge weights that do not match the PartitionedGraph and the features")
    with torch.autocast(features.device.type, enabled=False):
        if isinstance(layer, GCNConv) and layer.normalize:
            graph, values = _normalised(layer, graph, edge_weight, features.dtype)
        elif edge_weight is not None:
            values = edge_weight[graph.local.perm]

    def product(x: Tensor, values: Tensor | None, reduce: str) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            return distributed.spmm(graph, x, values, reduce=reduce)

    return Operands(None, features, edge_weight, values, reduce, None, product)
