"""GCNConv, SAGEConv, GINConv and GraphConv of PyTorch Geometric on warploom.

Their `propagate` becomes one sparse product. `warploom.pyg` installs them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv, GINConv, GraphConv, MessagePassing, SAGEConv

from warploom import _pyg_compiled, _pyg_messages, _pyg_norm, _pyg_partitioned
from warploom._pyg_calls import (
    REFUSALS,
    SERVED,
    TYPES,
    OtherAggregation,
    check_dense,
    check_layer,
    count,
    counts,
    is_active,
    replace,
)
from warploom._pyg_graphs import (
    Refused,
    edges_of,
    find_sorted,
    order_values,
)
from warploom._pyg_names import PROPAGATES
from warploom.torch import Graph
from warploom.torch._eager import multiply
from warploom.torch._internals import is_deterministic, is_plain
from warploom.torch.distributed import PartitionedGraph

LAYERS: tuple[type[MessagePassing], ...] = (GCNConv, SAGEConv, GINConv, GraphConv)


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
    values = edge_index._values() if edge_index.layout is torch.sparse_coo else edge_index.values()
    if values.dim() != 1:
        raise Refused("sparse matrix of blocks")
    return values


def _rows(layer: MessagePassing, edge_index: Tensor, x: Any, size: Any, i: int, j: int) -> int:
    """Rows of the result, with the checks and messages of PyG."""
    rows: Any  # which an export may not make an int
    if size is None and type(edge_index) is Tensor and edge_index.size(0) == 2:
        if not isinstance(x, (tuple, list)):
            rows = x.size(0)
            return rows  # type: ignore[no-any-return]
        if x[0] is x[1]:  # a graph of one kind of nodes, where PyG finds no fault either
            rows = x[0].size(0)
            return rows  # type: ignore[no-any-return]
    sizes = layer._check_input(edge_index, size)
    if isinstance(x, (tuple, list)):
        for dim in (0, 1):
            if isinstance(x[dim], Tensor):
                layer._set_size(sizes, dim, x[dim])
    else:
        layer._set_size(sizes, j, x)
    rows = sizes[i] if sizes[i] is not None else sizes[j]
    return rows  # type: ignore[no-any-return]


def _weights(
    edge_weight: Tensor | None, edge_index: Tensor, x: Tensor
) -> tuple[Tensor | None, Tensor]:
    """Edge weights (nnz,) and features of one type, as PyTorch's promotion makes it."""
    if edge_weight is None:
        return None, x
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


def _propagate(
    layer: MessagePassing,
    edge_index: Any,
    x: Any,
    edge_weight: Tensor | None,
    size: Any,
    root: Tensor | None = None,
) -> Tensor:
    reduce = check_layer(layer)
    to_source = layer.flow != "source_to_target"
    i, j = (0, 1) if to_source else (1, 0)
    features = check_dense(layer, x[0] if isinstance(x, (tuple, list)) else x)
    if not isinstance(edge_index, Tensor) or (
        not is_plain(edge_index) and type(edge_index) is not EdgeIndex
    ):
        raise Refused(f"edges as {type(edge_index).__name__}")
    if edge_index.device != features.device:
        raise Refused("edges and features on different devices")
    if edge_index.layout is not torch.strided and torch.compiler.is_compiling():
        raise Refused("a sparse matrix in compiled code")
    if edge_index.layout is not torch.strided:
        if to_source:
            raise Refused("a sparse matrix with flow target_to_source")
        values: Tensor | None = _check_sparse(edge_index, features)
        rows, cols, edges = edge_index.size(0), edge_index.size(1), edge_index._nnz()
        if root is not None and rows != cols:
            raise Refused("a matrix that is not square")
    else:
        if edge_index.dtype not in (torch.int64, torch.int32) or edge_index.dim() != 2:
            raise Refused("edge_index is not an integer matrix of 2 rows")
        if to_source and isinstance(edge_index, EdgeIndex):
            raise Refused("EdgeIndex with flow target_to_source")
        rows, cols = _rows(layer, edge_index, x, size, i, j), features.size(0)
        edges = edge_index.size(1)
        values, features = _weights(edge_weight, edge_index, features)
    if edges == 0 or rows == 0 or features.size(1) == 0:
        raise Refused("empty graph or features")
    if torch.compiler.is_compiling():
        return _pyg_compiled.product(layer, edge_index, features, values, rows, reduce)
    found = find_sorted(layer, edge_index, to_source, rows, cols)
    ordered = None if values is None else order_values(found, values)
    message = "copy_b" if ordered is None else "mul"
    # In the types that are given also under autocast, as PyG gathers and scatters.
    return multiply(found.graph, features, ordered, reduce, message, is_deterministic(), root=root)


def _accelerated(
    cls: type[MessagePassing], original: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """PyG's propagate of one class, which runs on warploom where it can."""

    @functools.wraps(original)
    def propagate(self: MessagePassing, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
        if type(self) is not cls or not is_active(self):
            return original(self, edge_index, size=size, **kwargs)
        if type(edge_index) is Graph:
            edge_index = edges_of(edge_index)
        try:
            if type(edge_index) is PartitionedGraph:
                out = _pyg_partitioned.propagate(
                    self, edge_index, kwargs["x"], kwargs.get("edge_weight")
                )
            else:
                out = _propagate(self, edge_index, kwargs["x"], kwargs.get("edge_weight"), size)
        except OtherAggregation:
            return _pyg_messages.propagate(self, original, edge_index, size, kwargs)
        except REFUSALS as reason:
            count(cls.__name__, reason.args[0])
            return original(self, edge_index, size=size, **kwargs)
        count(cls.__name__, SERVED)
        return out

    propagate.is_accelerated = True  # type: ignore[attr-defined]
    return propagate


# ---- GINConv's own features ---------------------------------------------------------------------


def _constant_eps(layer: GINConv, x: Any) -> Tensor | None:
    """The eps whose (1 + eps) * x a product can add with PyG's types and gradients."""
    eps = layer._buffers.get("eps")
    if (
        type(eps) is Tensor
        and isinstance(x, Tensor)
        and eps.dtype is x.dtype
        and eps.device == x.device
        and eps.shape == (1,)
        and not eps.requires_grad
        and hasattr(layer.propagate, "is_accelerated")
    ):
        return eps
    return None


def _adding_root(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """GINConv's forward, whose product also adds (1 + eps) * x where it can."""

    @functools.wraps(original)
    def forward(self: GINConv, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        if torch.compiler.is_compiling() or type(self) is not GINConv or not is_active(self):
            return original(self, x, edge_index, size)
        eps = _constant_eps(self, x)
        if eps is None or type(edge_index) is PartitionedGraph:
            return original(self, x, edge_index, size)
        try:  # eps stays on the device, and PyG writes it through .data, which no version counts
            out = _propagate(self, edge_index, (x, x), None, size, 1 + eps)
        except REFUSALS:  # counted by `propagate`
            return original(self, x, edge_index, size)
        counts["GINConv", SERVED] += 1
        return self.nn(out)  # type: ignore[no-any-return]

    return forward


# ---- GCNConv's norm in compiled code ------------------------------------------------------------


def _with_norm(layer: GCNConv, x: Any, edge_index: Any, edge_weight: Tensor | None) -> Tensor:
    """GCNConv's forward, whose op makes or finds the norm."""
    if check_layer(layer) != "sum" or edge_index.layout is not torch.strided:
        raise Refused("edges or an aggregation without a norm in compiled code")
    nodes, dtype = x.size(-2), x.dtype
    suits = _pyg_norm.suits(edge_index, edge_weight, nodes, layer.improved, layer.add_self_loops)
    if not suits and (edge_weight is not None or layer.add_self_loops):
        raise Refused("a norm of other edges in compiled code")
    features = layer.lin(x)
    check_dense(layer, features)
    values = None
    if edge_weight is None:
        how = _pyg_compiled.norm_text(layer, dtype)
    else:
        how = _pyg_compiled.APPENDED
        _, values = _pyg_norm.normalise(
            edge_index, edge_weight, nodes, layer.improved, True, layer.flow, dtype
        )
        dtype = torch.promote_types(values.dtype, features.dtype)
        values = values.to(dtype)
    if features.dtype is not dtype:
        if torch.promote_types(features.dtype, dtype) is not dtype:
            raise Refused(f"features of type {features.dtype} and a norm of type {dtype}")
        features = features.to(dtype)
    out = _pyg_compiled.product(layer, edge_index, features, values, nodes, "sum", how)
    return out if layer.bias is None else out + layer.bias


def _norming(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """GCNConv's forward, which in compiled code leaves the norm to an op."""

    @functools.wraps(original)
    def forward(
        self: GCNConv, x: Any, edge_index: Any, edge_weight: Tensor | None = None
    ) -> Tensor:
        if (
            not torch.compiler.is_compiling()
            or type(self) is not GCNConv
            or not is_active(self)
            or not self.normalize
            or self.cached
            or not (is_plain(edge_index) or type(edge_index) is EdgeIndex)
            or not isinstance(x, Tensor)
        ):
            return original(self, x, edge_index, edge_weight)
        try:
            out = _with_norm(self, x, edge_index, edge_weight)
        except REFUSALS:  # counted by `propagate`
            return original(self, x, edge_index, edge_weight)
        count("GCNConv", SERVED)
        return out

    return forward


def install() -> None:
    """Wrap the methods of these layers."""
    _pyg_compiled.install()
    with torch.device("meta"):  # PyG writes the `propagate` of a class when its first layer is made
        for cls, argument in ((GCNConv, 1), (SAGEConv, 1), (GraphConv, 1)):
            cls(argument, argument)
        GINConv(torch.nn.Identity())
    for cls in LAYERS:
        for name in PROPAGATES:
            replace(cls, name, functools.partial(_accelerated, cls))
    replace(GINConv, "forward", _adding_root)
    replace(GCNConv, "forward", _norming)
