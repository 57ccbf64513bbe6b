"""Which calls of layers are left to PyG in eager code: decided by class and sizes, once a call.

A forward that is wrapped decides for all that it calls; the propagate of any other layer decides
for itself. Nothing is made or asked but sizes.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    APPNP,
    AGNNConv,
    ARMAConv,
    ChebConv,
    ClusterGCNConv,
    FastRGCNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    MessagePassing,
    RGCNConv,
    SAGEConv,
    SGConv,
    SSGConv,
    SuperGATConv,
    TAGConv,
    TransformerConv,
)

from warploom.torch._capture import step_of_thread
from warploom.torch._internals import is_deterministic, saves_by_hooks

# Whose code takes less of the host's time than PyG's; whose one walk or several do where the edges
# were sorted before, or where the work is large; all other layers, where the work is large.
ALWAYS, ONE, SEVERAL, OTHERS = "always", "one walk", "several walks", "others"
ROADS: dict[type[MessagePassing], str] = {
    **dict.fromkeys((GCNConv, SGConv, SSGConv, APPNP), ALWAYS),
    **dict.fromkeys((GATConv, GATv2Conv, TransformerConv), ALWAYS),
    **dict.fromkeys((AGNNConv, GINConv, GraphConv, SAGEConv, SuperGATConv), ONE),
    **dict.fromkeys((FastRGCNConv, RGCNConv), ONE),
    **dict.fromkeys((ARMAConv, ChebConv, ClusterGCNConv, TAGConv), SEVERAL),
}
# Edges times columns from which on work is large: a walk then saves more than the host takes to
# sort edges, or to trace a message. Tried on two cores, and with batches of molecules on an H200;
# 2^24 is calculated, as PyG moves each number some six times, at 3 TB/s.
LEAST_WORK = {
    (ONE, "cpu"): 2**17,
    (ONE, "cuda"): 2**20,
    (SEVERAL, "cpu"): 2**17,
    (SEVERAL, "cuda"): 2**24,
    (OTHERS, "cpu"): 2**19,
    (OTHERS, "cuda"): 2**24,
}
SMALL = "too little work to trace a message for"

_MOST_MET = 256
# By layer and edges: the edges of a call that was left to PyG.
_met: dict[tuple[int, int], weakref.ref[Tensor]] = {}


def is_small(
    edge_index: Tensor, features: Iterable[Any], dim: int, road: str = OTHERS, columns: int = 0,
    relations: int = 1,
) -> bool:  # fmt: skip
    """Whether a walk over these edges takes longer than PyG.

    In a step that is replayed a walk never does.

    dim: of the features' nodes.
    columns: what a layer is known to make of them.
    relations: how many times PyG does what one walk does.
    """
    if step_of_thread.is_replayed:
        return False
    least = LEAST_WORK.get((road, "cuda" if edge_index.is_cuda else "cpu"), 0) // relations
    edges = edge_index.shape[-1]
    if edges * columns >= least:
        return False
    for given in features:
        if isinstance(given, Tensor):
            if edges * given.numel() >= least and _has_work(given, edge_index, dim, least):
                return False
        elif type(given) is tuple or type(given) is list:
            for part in given:
                if (
                    isinstance(part, Tensor)
                    and edges * part.numel() >= least
                    and _has_work(part, edge_index, dim, least)
                ):
                    return False
    return True


def _has_work(features: Tensor, edge_index: Tensor, dim: int, least: int) -> bool:
    numbers, edges = features.numel(), edge_index.shape[-1]
    lines = features.shape[dim] if features.dim() > 1 else numbers
    return features is not edge_index and edges * numbers >= least * lines


def is_left(layer: MessagePassing, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether PyG computes this call of a layer's forward, with all that it calls."""
    road = ROADS.get(type(layer), OTHERS)
    if road is ALWAYS:
        return False
    given = (*args, *kwargs.values()) if kwargs else args
    for edges in given:
        # PyG computes with others where `propagate` has converted them.
        if isinstance(edges, Tensor) and edges.dtype is torch.int64 and edges.dim() == 2:
            state = layer.__dict__
            columns, relations = state.get("out_channels"), state.get("num_relations", 1)
            columns = columns if type(columns) is int else 0  # a derived layer may have several
            if not is_small(edges, given, state["node_dim"], road, columns, relations):
                return False
            return road is OTHERS or not _is_met_again(layer, edges)
    return False


def _is_met_again(layer: MessagePassing, edges: Tensor) -> bool:
    """Whether the layer got these edges before, and may take another road than it took then."""
    key = id(layer), id(edges)
    known = _met.get(key)
    if known is not None and known() is edges:
        # A recomputation takes the road of the first run; steps with one result take one road.
        return not (saves_by_hooks() or is_deterministic())
    if len(_met) >= _MOST_MET:
        _met.clear()
    _met[key] = weakref.ref(edges)
    return False
