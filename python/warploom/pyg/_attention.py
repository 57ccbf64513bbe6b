"""Attention layers of PyTorch Geometric on warploom.

Scores, softmax and weighted sum of a layer become one pass over the edges. GATConv and GATv2Conv
get another `forward`, because PyG computes the weights of all edges before it calls `propagate`;
their linear maps, self loops and bias are PyG's own. The other layers get another `propagate`.
SuperGATConv and AGNNConv are messages with a score.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    AGNNConv,
    GATConv,
    GATv2Conv,
    MessagePassing,
    SuperGATConv,
    TransformerConv,
)

from warploom.pyg import _compiled, _partitioned
from warploom.pyg._checks import Refused, check_dense, check_dropout, check_edges, check_sum
from warploom.pyg._names import EDGE_HOOKS, has_hooks_of, plain_edges
from warploom.pyg._sorted import LOOPS, find_sorted, order_values, with_loops
from warploom.pyg._switch import passing, replace
from warploom.torch import Graph, _later, attention, distributed, gat, gatv2, message
from warploom.torch._attention import is_fast, needs_gradient
from warploom.torch._eager import row_products
from warploom.torch._internals import recordable, without_autocast
from warploom.torch.distributed import PartitionedGraph


def _check_layer(layer: Any, x: Any, edge_index: Any) -> None:
    """Raise why the layer, or this call of it, cannot be served."""
    check_sum(layer)
    if any(layer.__dict__[hooks] for hooks in EDGE_HOOKS):
        raise Refused("hooks")
    if layer.flow != "source_to_target":
        raise Refused("attention with flow target_to_source")
    for part in x if isinstance(x, (tuple, list)) else (x,):
        if part is not None:
            check_dense(layer, part)
    if type(edge_index) is not PartitionedGraph or type(layer) is not GATConv:
        check_edges(edge_index, "attention with ")


def _check_weights(return_attention_weights: bool | None) -> None:
    if return_attention_weights is not None:
        raise Refused("attention weights are returned")


def _edges(
    layer: Any, edge_index: Tensor, edge_attr: Tensor | None, rows: int, cols: int, *, loops: bool
) -> tuple[Graph, Tensor | None]:
    """The graph of the edges with PyG's self loops, if they get any, and their features with those
    of the loops."""
    if edge_index.size(1) == 0 or rows == 0 or cols == 0:
        raise Refused("empty graph or features")
    if torch.compiler.is_compiling():
        return _traced_edges(layer, edge_index, edge_attr, rows, cols, loops), edge_attr
    edges = plain_edges(edge_index)
    if loops and edge_attr is not None:
        edge_attr = with_loops(edges, min(rows, cols), edge_attr, layer.fill_value)[1]
    found = find_sorted(layer, edges, False, rows, cols, LOOPS if loops else None)
    return found.graph, edge_attr


def _traced_edges(
    layer: Any, edge_index: Tensor, edge_attr: Tensor | None, rows: int, cols: int, loops: bool
) -> Graph:
    if layer.training and getattr(layer, "dropout", 0) > 0 and _compiled.is_held():
        raise Refused("dropout of attention under CUDA graphs")
    if edge_attr is not None and (loops or type(layer) is not GATConv):
        raise Refused("edge features in compiled code")
    how = LOOPS if loops else ""
    columns = int(getattr(layer, "heads", 1)) * int(getattr(layer, "out_channels", 1))
    kind = type(layer).__name__
    return _compiled.found_edges(layer, kind, edge_index, rows, cols, columns, how)


# ---- GATConv ------------------------------------------------------------------------------------


def _project(layer: GATConv, x: Any) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Features of sources and targets, (nodes, heads, channels), and the residual."""
    shape = (-1, layer.heads, layer.out_channels)
    source, target = x if isinstance(x, (tuple, list)) else (x, x)
    residual = None if layer.res is None or target is None else layer.res(target)
    if layer.lin is None:
        made = layer.lin_src(source).view(shape)
        return made, None if target is None else layer.lin_dst(target).view(shape), residual
    made = layer.lin(source).view(shape)
    if target is source:
        return made, made, residual
    return made, None if target is None else layer.lin(target).view(shape), residual


class _Halves(torch.autograd.Function):
    """The left and right half of the columns, whose gradients are put together by one kernel."""

    @staticmethod
    def forward(ctx: Any, both: Tensor) -> tuple[Tensor, Tensor]:
        left, right = both.chunk(2, 1)
        return left, right

    @staticmethod
    def backward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        return torch.cat([left, right], 1)


@functools.lru_cache(maxsize=64)
def _eye(heads: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    with recordable():
        return torch.eye(heads, dtype=dtype, device=device)[:, None, None]


def _node_terms(
    layer: GATConv, graph: Graph, source: Tensor, target: Tensor | None
) -> tuple[Tensor, Tensor]:
    """What target and source add to scores, (nodes, heads).

    Where both are the same features, one SDDMM multiplies each row by both parts of `att`. With
    gradients it is a product with a matrix that has a block for each head.
    """
    att_src, att_dst, heads = layer.att_src, layer.att_dst, layer.heads
    alike = target is source and source.dtype == att_src.dtype == att_dst.dtype
    if alike and not torch.compiler.is_compiling():
        with without_autocast(source.device):
            if not graph.once and not needs_gradient(source, att_dst, att_src):
                return row_products(graph, source, att_dst[0], att_src[0])
            both = torch.cat([att_dst, att_src])
            both = both.permute(1, 2, 0).unsqueeze(-1)
            blocks = (both * _eye(heads, source.dtype, source.device)).reshape(-1, 2 * heads)
            return _Halves.apply(source.flatten(1) @ blocks)  # type: ignore[no-any-return,no-untyped-call]
    right = (source * att_src).sum(-1)
    if target is None:
        return right.new_zeros((graph.rows, heads)), right
    return (target * att_dst).sum(-1), right


def _edge_features(layer: Any, graph: Graph, edge_attr: Tensor) -> Tensor:
    """The features of edges, (edges, heads, channels) in CSR order."""
    if layer.lin_edge is None:
        raise Refused("edge features and no edge_dim")
    if has_hooks_of(layer.lin_edge):  # which would see edges in another order
        raise Refused("hooks")
    if edge_attr.size(0) != graph.nnz:
        raise Refused("edge features do not match the edges")
    edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
    ordered = order_values(graph, edge_attr)
    return layer.lin_edge(ordered).view(-1, layer.heads, layer.out_channels)  # type: ignore[no-any-return]


def _run_gat(
    layer: GATConv, x: Any, edge_index: Any, edge_attr: Tensor | None = None, size: Any = None,
    return_attention_weights: bool | None = None,
) -> Tensor:  # fmt: skip
    _check_weights(return_attention_weights)
    _check_layer(layer, x, edge_index)
    check_dropout(layer, edge_index)
    source, target, residual = _project(layer, x)
    cols = source.size(0)
    rows = cols if target is None else target.size(0)
    if size is not None:
        if size[0] != cols or (target is not None and size[1] != rows):
            raise Refused("sizes that do not match the features")
        rows = size[1]
    attend: Any = gat
    attended: Any
    terms = None
    if isinstance(edge_index, PartitionedGraph):
        _later.thread.module = None  # PyG's code cannot compute the call
        if edge_attr is not None or size is not None or target is not source:
            raise Refused("edge features or two kinds of nodes on a PartitionedGraph")
        part = _partitioned.with_loops(edge_index)[0] if layer.add_self_loops else edge_index
        graph, attend, attended = part.local, distributed.gat, part
    else:
        graph, edge_attr = _edges(
            layer, edge_index, edge_attr, rows, cols, loops=layer.add_self_loops
        )
        attended = graph
        if edge_attr is not None and layer.lin_edge is not None:
            features = _edge_features(layer, graph, edge_attr)
            terms = (features * layer.att_edge).sum(-1)
    left, right = _node_terms(layer, graph, source, target)
    bias = _fused_bias(layer, source)
    with without_autocast(source.device):
        out = attend(
            attended,
            source,
            left,
            right,
            terms,
            bias=bias,
            slope=layer.negative_slope,
            dropout=layer.dropout if layer.training else 0.0,
        )
    return _finish(layer, out, residual, has_bias=bias is not None)


def _fused_bias(layer: Any, b: Tensor) -> Tensor | None:
    """The bias if attention adds it: where the heads stay apart."""
    if layer.bias is None or not layer.concat or layer.bias.dtype != b.dtype:
        return None
    return layer.bias.view(b.shape[1:])  # type: ignore[no-any-return]


def _widened(out: Tensor) -> Tensor:
    """The type of PyG's result: autocast computes a softmax in float32 on a GPU."""
    is_narrow = out.is_cuda and out.dtype in (torch.float16, torch.bfloat16)
    return out.float() if is_narrow and torch.is_autocast_enabled("cuda") else out


def _finish(layer: Any, out: Tensor, residual: Tensor | None, *, has_bias: bool) -> Tensor:
    out = _widened(out)
    out = out.flatten(1) if layer.concat else out.mean(dim=1)
    if residual is not None:
        out = out + residual
    return out if layer.bias is None or has_bias else out + layer.bias


# ---- GATv2Conv ----------------------------------------------------------------------------------


def _run_gatv2(
    layer: GATv2Conv, x: Any, edge_index: Any, edge_attr: Tensor | None = None,
    return_attention_weights: bool | None = None,
) -> Tensor:  # fmt: skip
    _check_weights(return_attention_weights)
    _check_layer(layer, x, edge_index)
    check_dropout(layer, edge_index)
    shape = (-1, layer.heads, layer.out_channels)
    source, target = x if isinstance(x, (tuple, list)) else (x, x)
    if target is None:
        raise Refused("no features of targets")
    residual = None if layer.res is None else layer.res(target)
    left = layer.lin_l(source).view(shape)
    shared = target is source and layer.share_weights
    right = left if shared else layer.lin_r(target).view(shape)
    cols, rows = left.size(0), right.size(0)
    graph, edge_attr = _edges(layer, edge_index, edge_attr, rows, cols, loops=layer.add_self_loops)
    edges = None
    if edge_attr is not None:
        edges = _edge_features(layer, graph, edge_attr)
    dropout = layer.dropout if layer.training else 0.0
    bias = _fused_bias(layer, left)
    with without_autocast(left.device):
        att = layer.att.view(shape[1:])
        out = gatv2(
            graph, left, right, att, edges=edges, bias=bias, slope=layer.negative_slope,
            dropout=dropout,
        )  # fmt: skip
    return _finish(layer, out, residual, has_bias=bias is not None)


# ---- TransformerConv ----------------------------------------------------------------------------


def _run_transformer(
    layer: TransformerConv, edge_index: Any, size: Any = None, *, query: Tensor, key: Tensor,
    value: Tensor, edge_attr: Tensor | None = None,
) -> Tensor:  # fmt: skip
    _check_layer(layer, None, edge_index)
    check_dropout(layer, edge_index)
    if "_warploom_off" in layer.__dict__:
        raise Refused("attention weights are returned")
    if edge_attr is None and layer.lin_edge is not None:
        raise Refused("no edge features")
    for part in (query, key, value):
        check_dense(layer, part, 3)
    rows, cols = query.size(0), key.size(0)
    if size is not None and tuple(size) != (cols, rows):
        raise Refused("sizes that do not match the features")
    graph, edge_attr = _edges(layer, edge_index, edge_attr, rows, cols, loops=False)
    is_pass = query.shape[1:] == value.shape[1:] and is_fast(query.size(2))
    if torch.compiler.is_compiling() and not is_pass:
        raise Refused("attention that is not one pass in compiled code")
    edges = None
    if edge_attr is not None:
        edges = _edge_features(layer, graph, edge_attr)
    with without_autocast(value.device):
        dropout = layer.dropout if layer.training else 0.0
        out = attention(graph, query, key, value, edges=edges, dropout=dropout)
    return _widened(out)


# ---- SuperGATConv and AGNNConv ------------------------------------------------------------------


def _graph_of(layer: Any, edge_index: Any, size: Any, x: Tensor, loops: bool) -> Graph:
    """The graph of a call whose sources and targets are the lines of x."""
    _check_layer(layer, None, edge_index)
    check_dense(layer, x.flatten(1))
    if size is not None and tuple(size) != (x.size(0), x.size(0)):
        raise Refused("sizes that do not match the features")
    nodes = x.size(0)
    return _edges(layer, edge_index, None, nodes, nodes, loops=loops)[0]


def _run_supergat(
    layer: SuperGATConv, edge_index: Any, size: Any = None, *, x: Tensor, loops: bool = False
) -> Tensor:
    if torch.compiler.is_compiling() and layer.training and layer.dropout > 0:
        raise Refused("dropout of a score of its own in compiled code")
    graph = _graph_of(layer, edge_index, size, x, loops)
    terms: dict[str, Any] = {}
    score = f"leaky_relu(t*{layer.out_channels**-0.5!r},slope)"
    if layer.attention_type == "MX":
        score = "leaky_relu((l+r)*sigmoid(t),slope)"
        terms["l"] = "row", (x * layer.att_r).sum(-1).to(x.dtype)
        terms["r"] = "column", (x * layer.att_l).sum(-1).to(x.dtype)
    with without_autocast(x.device):
        out = message(
            graph, "b", reduce="softmax", score=score, sums={"t": "x*b"}, x=x, b=x,
            slope=layer.negative_slope, operands=terms,
            dropout=layer.dropout if layer.training else 0.0,
        )  # fmt: skip
    return _widened(out)  # type: ignore[arg-type]


def _run_agnn(
    layer: AGNNConv, edge_index: Any, size: Any = None, *, x: Tensor, x_norm: Tensor,
    loops: bool = False,
) -> Tensor:  # fmt: skip
    check_dense(layer, x)  # not several signals
    graph = _graph_of(layer, edge_index, size, x, loops)
    with without_autocast(x.device):
        out = message(
            graph, "b", reduce="softmax", score="t", sums={"t": "x*k"}, b=x, x=x_norm,
            k=x_norm * layer.beta.to(x_norm.dtype),
        )  # fmt: skip
    return _widened(out)  # type: ignore[arg-type]


# In compiled code these forwards leave the self loops to an op.


def _supergat_with_loops(
    layer: SuperGATConv, x: Tensor, edge_index: Tensor, *rest: Any, **named: Any
) -> Tensor | None:
    if not (torch.compiler.is_compiling() and layer.add_self_loops):
        return None
    if layer.training:
        raise Refused("a loss of edges in compiled code")
    heads = layer.lin(x).view(-1, layer.heads, layer.out_channels)
    out = _run_supergat(layer, edge_index, x=heads, loops=True)
    return _finish(layer, out, None, has_bias=False)


def _agnn_with_loops(layer: AGNNConv, x: Tensor, edge_index: Tensor) -> Tensor | None:
    if not (torch.compiler.is_compiling() and layer.add_self_loops):
        return None
    x_norm = torch.nn.functional.normalize(x, p=2.0, dim=-1)
    return _run_agnn(layer, edge_index, x=x, x_norm=x_norm, loops=True)


def _transformer_forward(
    original: Callable[..., Any],
    self: TransformerConv,
    x: Any,
    edge_index: Any,
    edge_attr: Tensor | None = None,
    return_attention_weights: bool | None = None,
) -> Any:
    """TransformerConv's forward: PyG computes where weights of edges are to be returned."""
    if not isinstance(return_attention_weights, bool) or "_warploom_off" in self.__dict__:
        return original(self, x, edge_index, edge_attr, return_attention_weights)
    self.__dict__["_warploom_off"] = True
    try:
        return original(self, x, edge_index, edge_attr, return_attention_weights)
    finally:
        del self.__dict__["_warploom_off"]


# What the last two refuse, `propagate` counts.
FORWARDS: dict[type[MessagePassing], Callable[..., Tensor | None]] = {
    GATConv: _run_gat,
    GATv2Conv: _run_gatv2,
    SuperGATConv: _supergat_with_loops,
    AGNNConv: _agnn_with_loops,
}
PROPAGATES: dict[type[MessagePassing], Callable[..., Tensor]] = {
    TransformerConv: _run_transformer,
    SuperGATConv: _run_supergat,
    AGNNConv: _run_agnn,
}
LAYERS = frozenset((*FORWARDS, *PROPAGATES))


def install() -> None:
    """Let TransformerConv's propagate know whether weights are returned."""
    replace(TransformerConv, "forward", passing(_transformer_forward))
