"""Layers of PyTorch Geometric whose message is a feature of the source, times a weight of the edge.

Their `propagate` becomes one sparse product.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    APPNP,
    ClusterGCNConv,
    GatedGraphConv,
    GCN2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    LGConv,
    MessagePassing,
    MFConv,
    MixHopConv,
    PDNConv,
    SAGEConv,
    SGConv,
    SimpleConv,
    SSGConv,
    TAGConv,
)

from warploom.pyg import _compiled, _partitioned
from warploom.pyg._checks import TYPES, Refused, check_dense, check_edges, reduction_of
from warploom.pyg._kept import Operands
from warploom.pyg._names import sizes_of
from warploom.pyg._propagate import left_to_pyg, propagate
from warploom.pyg._sorted import find_sorted, order_values
from warploom.torch._internals import is_plain
from warploom.torch.distributed import PartitionedGraph

LAYERS: tuple[type[MessagePassing], ...] = (
    *(APPNP, ClusterGCNConv, GatedGraphConv, GCN2Conv, GCNConv, GINConv, GraphConv, LGConv, MFConv),
    *(MixHopConv, PDNConv, SAGEConv, SGConv, SimpleConv, SSGConv, TAGConv),
)


def _check_sparse(edge_index: Tensor, x: Tensor) -> Tensor:
    """The values of a matrix that can be served."""
    if edge_index.layout not in (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo):
        raise Refused(f"layout {edge_index.layout}")
    if edge_index.requires_grad or edge_index.is_inference():
        raise Refused("sparse matrix with a gradient or made in inference mode")
    if edge_index.layout is torch.sparse_coo and not edge_index.is_coalesced():
        raise Refused("sparse matrix is not coalesced")
    if edge_index.dim() != 2 or edge_index.dtype is not x.dtype or edge_index.size(1) != x.size(0):
        raise Refused("sparse matrix and features do not match")
    return edge_index._values() if edge_index.layout is torch.sparse_coo else edge_index.values()


def _rows(layer: MessagePassing, edge_index: Tensor, x: Any, size: Any, i: int, j: int) -> Any:
    """Rows of the result, with the checks and messages of PyG; an export may not make it an int."""
    if size is None and type(edge_index) is Tensor and edge_index.size(0) == 2:
        first, second = x if isinstance(x, (tuple, list)) else (x, x)
        if first is second:  # a graph of one kind of nodes, where PyG finds no fault either
            return first.size(0)
    sizes = sizes_of(layer, edge_index, size, ((j, x),))
    return sizes[i] if sizes[i] is not None else sizes[j]


def _weights(edge_weight: Tensor, edge_index: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Edge weights (nnz,) and features of one type, as PyTorch's promotion makes it."""
    if not is_plain(edge_weight):
        raise Refused("edge weights are not a plain tensor")
    if edge_weight.numel() != edge_index.size(1) or edge_weight.device != x.device:
        raise Refused("edge weights do not match the edges")
    values = edge_weight if edge_weight.dim() == 1 else edge_weight.reshape(-1)
    if values.dtype is x.dtype:
        return values, x
    common = torch.promote_types(values.dtype, x.dtype)
    if common not in TYPES:
        raise Refused(f"edge weights of type {values.dtype}")
    return values.to(common), x.to(common)


class _Aggregation(NamedTuple):
    """What a layer aggregates, checked."""

    features: Tensor
    weight: Tensor | None  # of edges, as it was given
    values: Tensor | None  # the same, (nnz,) and of the features' type
    rows: Any
    cols: Any


def _aggregation(
    layer: MessagePassing, edge_index: Any, size: Any, x: Any, edge_weight: Any, is_square: bool
) -> _Aggregation:
    to_source = layer.flow != "source_to_target"
    i, j = (0, 1) if to_source else (1, 0)
    features = check_dense(layer, x[0] if isinstance(x, (tuple, list)) else x)
    is_sparse = isinstance(edge_index, Tensor) and edge_index.layout is not torch.strided
    if is_sparse and torch.compiler.is_compiling():
        raise Refused("a sparse matrix in compiled code")
    if not is_sparse:
        check_edges(edge_index)
    if edge_index.device != features.device:
        raise Refused("edges and features on different devices")
    if is_sparse:
        if to_source:
            raise Refused("a sparse matrix with flow target_to_source")
        values: Tensor | None = _check_sparse(edge_index, features)
        edge_weight = values
        rows, cols, edges = edge_index.size(0), edge_index.size(1), edge_index._nnz()
        if is_square and rows != cols:
            raise Refused("a matrix that is not square")
    else:
        if to_source and isinstance(edge_index, EdgeIndex):
            raise Refused("EdgeIndex with flow target_to_source")
        rows, cols = _rows(layer, edge_index, x, size, i, j), features.size(0)
        edges = edge_index.size(1)
        values = None
        if edge_weight is not None:
            values, features = _weights(edge_weight, edge_index, features)
    if edges == 0 or rows == 0 or features.size(1) == 0:
        raise Refused("empty graph or features")
    return _Aggregation(features, edge_weight, values, rows, cols)


def operands(
    layer: MessagePassing, edge_index: Any, size: Any, reduce: str, x: Any, edge_weight: Any,
    is_square: bool = False, added: Any = None,
) -> Operands:  # fmt: skip
    """The operands of an aggregation. is_square: A must be a square matrix. added: see
    `find_sorted`."""
    if type(edge_index) is PartitionedGraph:
        if (
            type(layer) not in _partitioned.LAYERS
        ):  # PyG's forward would leave out its norm or self loops
            raise Refused(f"{type(layer).__name__} on a PartitionedGraph")
        return _partitioned.operands(layer, edge_index, reduce, x, edge_weight)
    features, weight, values, rows, cols = _aggregation(
        layer, edge_index, size, x, edge_weight, is_square
    )
    if torch.compiler.is_compiling():
        product = partial(_compiled.product, layer, edge_index, rows, features.size(1))
        return Operands(None, features, weight, values, reduce, None, product)
    found = find_sorted(layer, edge_index, layer.flow != "source_to_target", rows, cols, added)
    ordered = found.weights if values is None else order_values(found.graph, values)
    return Operands(found, features, weight, ordered, reduce)


def _propagate(
    layer: MessagePassing, /, edge_index: Any, size: Any = None, **kwargs: Any
) -> Tensor:
    """The propagate of one of LAYERS; traced where it is no product of two matrices."""
    reduce, x = reduction_of(layer), kwargs["x"]
    if reduce is None or (isinstance(x, Tensor) and x.dim() == 3):  # several signals
        left = None if torch.compiler.is_compiling() else left_to_pyg(layer, edge_index, kwargs)
        if left is not None:
            raise Refused(left)
        return propagate(layer, edge_index, size, **kwargs)
    call = operands(layer, edge_index, size, reduce, x, kwargs.get("edge_weight"))
    return call.multiply(call.x)


PROPAGATES: dict[type[MessagePassing], Callable[..., Tensor]] = dict.fromkeys(LAYERS, _propagate)
