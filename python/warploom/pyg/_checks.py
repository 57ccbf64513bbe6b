"""What a call of a layer must be to be served: the layer, its arguments, and PyTorch's modes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import (
    MaxAggregation,
    MeanAggregation,
    MinAggregation,
    StdAggregation,
    SumAggregation,
    VarAggregation,
)

from warploom.pyg import _roads
from warploom.pyg._names import METHODS, mode_of
from warploom.torch._capture import step_of_thread
from warploom.torch._internals import (
    is_forward_differentiated,
    is_plain,
    is_transformed,
    tracing_state,
)

REDUCTIONS: dict[type, str] = {
    SumAggregation: "sum",
    MeanAggregation: "mean",
    MaxAggregation: "max",
    MinAggregation: "min",
    VarAggregation: "var",
    StdAggregation: "std",
}
PRODUCTS = ("sum", "mean", "max", "min")  # reductions of products with a sparse matrix
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
REPLACED = "a method of the layer was replaced"


class Refused(Exception):
    """The reason why PyG computes this call."""


def check_layer(layer: MessagePassing) -> None:
    """Raise why the layer as it is cannot be served."""
    mode = mode_of(layer)
    if mode is not None:
        raise Refused(mode)
    state = layer.__dict__
    if torch.compiler.is_compiling():  # which reads no keys of a module
        replaced = any(name in state for name in METHODS)
    else:
        replaced = not state.keys().isdisjoint(METHODS)
    if replaced or layer._warploom_is_replaced():
        raise Refused(REPLACED)


def reduction_of(layer: MessagePassing) -> str | None:
    """The reduction of a layer that can be served; None for an aggregation that is no product."""
    check_layer(layer)
    # Not layer.aggr_module: torch finds a module's attribute only after all others.
    reduce = REDUCTIONS.get(type(layer._modules.get("aggr_module")))
    return reduce if reduce in PRODUCTS else None


def check_sum(layer: MessagePassing) -> None:
    """Raise unless the layer can be served and adds messages."""
    if reduction_of(layer) != "sum":
        raise Refused(f"aggregation {layer.aggr}")


def check_edges(edges: Any, what: str = "") -> None:
    """Raise unless these are the edges of a call that can be served; what: the call."""
    if type(edges) is not Tensor and type(edges) is not EdgeIndex and not is_plain(edges):
        raise Refused(f"{what}edges as {type(edges).__name__}")
    if edges.layout is not torch.strided:
        raise Refused(f"{what}a sparse matrix")
    if edges.dtype not in (torch.int64, torch.int32) or edges.dim() != 2 or edges.shape[0] != 2:
        raise Refused("edge_index is not an integer matrix of 2 rows")


def check_call() -> None:
    """Raise where a call is not computed now, or not differentiated backward."""
    if torch.compiler.is_compiling():
        return
    if is_transformed() or tracing_state() is not None:
        raise Refused("function transform or tracing")
    if is_forward_differentiated():
        raise Refused("forward-mode derivatives")


def check_dense(layer: MessagePassing, x: Any, dim: int = 2) -> Tensor:
    """The features of a call that can be served; dim: their dimensions."""
    if type(x) is not Tensor and not is_plain(x):
        raise Refused("features are not a plain tensor")
    if x.dim() != dim or layer.node_dim not in (-2, 0):
        raise Refused("features are not a matrix with a row for each node")
    if x.dtype not in TYPES:
        raise Refused(f"features of type {x.dtype}")
    if not (x.is_cuda or x.is_cpu) or x.layout is not torch.strided:
        raise Refused("features in unsupported memory")
    check_call()
    return x  # type: ignore[no-any-return]


def check_dropout(layer: MessagePassing, edge_index: Any) -> None:
    """Raise in small steps that are captured, where dropout must draw no seed on the CPU."""
    if (
        layer.training
        and layer.dropout
        and step_of_thread.is_replayed
        and isinstance(edge_index, Tensor)
    ):
        work = edge_index.size(1) * int(layer.heads) * int(layer.out_channels)
        if work < _roads.LEAST_WORK.get((_roads.OTHERS, edge_index.device.type), 0):
            raise Refused("dropout of attention in a small captured step")
