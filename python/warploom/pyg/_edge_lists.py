"""What PyG's layers make of an edge_index in each step: computed once and found again.

These are the norms of gcn_norm and of ChebConv, and edge lists with or without self loops. As the
same tensor at each step, such a list is sorted once (`_sorted`). Layers whose message is left to
PyG make them as PyG does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    FAConv,
    GatedGraphConv,
    GCN2Conv,
    GCNConv,
    LEConv,
    MessagePassing,
    MixHopConv,
    PDNConv,
    SGConv,
    SSGConv,
)
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.conv.gcn_conv import gcn_norm as _gcn_norm
from torch_geometric.utils import add_self_loops, degree, remove_self_loops

from warploom.pyg import _norm
from warploom.pyg._checks import Refused, check_layer
from warploom.pyg._names import LAPLACIAN, LOOPS, NORM, modules_with
from warploom.pyg._switch import passing, replace, running
from warploom.torch._internals import is_plain, recordable
from warploom.torch._memory import Memory, memory_of

# Layers besides GCNConv that add features times weights which gcn_norm made.
_SUMS = (APPNP, FAConv, GCN2Conv, MixHopConv, PDNConv, SGConv, SSGConv)
# While a layer that adds messages is traced: edges with loops behind them, and of which edges.
_appended: list[tuple[Any, Any]] = []


# ---- the layer ----------------------------------------------------------------------------------


def _sums(layer: MessagePassing, classes: tuple[type, ...] = (GCNConv,)) -> bool:
    """Whether an edge of weight 0 adds nothing; derived layers may have other messages."""
    if type(layer) not in classes or getattr(layer, "cached", False):
        return False
    try:
        check_layer(layer)
    except Refused:
        return False
    return type(layer._modules.get("aggr_module")) is SumAggregation


def with_loops_noted(layer: MessagePassing, run: Callable[..., Any], *args: Any) -> Any:
    """What `run` gives in compiled code, where the norm of a layer may append loops."""
    if not _sums(layer, _SUMS):
        return run(*args)
    start = len(_appended)
    _appended.append((None, None))
    try:
        return run(*args)
    finally:
        del _appended[start:]


def memory_of_layer(edge_index: Any) -> Memory | None:
    """What a layer that runs on warploom has made of its edges."""
    return memory_of(edge_index) if _is_own(edge_index) else None


def remembered(
    memory: Memory, key: Any, edge_index: Tensor, weight: Tensor | None, compute: Callable[[], Any]
) -> Any:
    """The edges and weights that `compute` makes, or has made, of edges and constant weights."""
    known = memory.get(key, weight)
    if known is not None:
        return known
    with recordable(), torch.no_grad():
        made = compute()
    if made[0] is not edge_index:
        memory.keep(key, made, weight)
    return made


# ---- norms ---------------------------------------------------------------------------------------


def _normed(
    original: Callable[..., Any],
    edge_index: Any,
    edge_weight: Tensor | None = None,
    num_nodes: int | None = None,
    improved: bool = False,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: torch.dtype | None = None,
) -> Any:
    """PyG's gcn_norm without a wait, which repeats its answer for edges that it has seen."""
    arguments: Any = (num_nodes, improved, add_self_loops, flow, dtype)
    compiling = torch.compiler.is_compiling()
    if not (bool(_appended) and is_plain(edge_index) if compiling else _is_own(edge_index)):
        return original(edge_index, edge_weight, *arguments)
    suits = _norm.suits(edge_index, edge_weight, num_nodes, improved, add_self_loops)
    if compiling:
        if not suits:
            return original(edge_index, edge_weight, *arguments)
        made = _norm.normalise(edge_index, edge_weight, *arguments)
        _appended.append((made[0], edge_index))
        return made
    compute = _norm.normalise if suits and _sums(running.layer) else original
    return _repeated_norm(compute, edge_index, edge_weight, *arguments)


def _repeated_norm(
    compute: Callable[..., Any], edge_index: Tensor, edge_weight: Tensor | None, *arguments: Any
) -> Any:
    """The norm that `compute` makes, or has made.

    That of new weights is computed again, with the edge_index of the answer before: this depends
    only on the edges, and as the same tensor it needs no new sorting.
    """
    memory = memory_of(edge_index)
    if memory is None:
        return compute(edge_index, edge_weight, *arguments)
    key = (compute, *arguments)
    is_constant = edge_weight is None or not (
        edge_weight.requires_grad or edge_weight.is_inference()
    )
    if is_constant:
        known = memory.get((key, "weights"), edge_weight)
        edges = memory.get((key, "edges"))
        if known is not None and edges is not None:
            return edges[0] if edges[0] is not None else edge_index, known[0]
        with recordable(), torch.no_grad():
            made = compute(edge_index, edge_weight, *arguments)
        memory.keep((key, "weights"), (made[1],), edge_weight)
    else:
        made = compute(edge_index, edge_weight, *arguments)
    return _first(memory, (key, "edges"), edge_index, made[0]), made[1]


def _is_own(edge_index: Any) -> bool:
    return running.layer is not None and type(edge_index) is Tensor


def _first(memory: Memory, key: Any, edge_index: Tensor, edges: Tensor) -> Tensor:
    """The edges of the first call, which are sorted already; these if it is the first.

    Kept as None where they are the edge_index, whose life must not depend on its memory.
    """
    known = memory.get(key)
    if known is not None:
        return edge_index if known[0] is None else known[0]
    if edges.layout is torch.strided and not edges.is_inference():
        memory.keep(key, (None if edges is edge_index else edges,))
    return edges


def appended_to(edges: Tensor) -> Tensor | None:
    """The edges that a traced layer has appended loops to, which gave these."""
    return next((source for made, source in _appended if made is edges), None)


def norm_of(
    edge_index: Tensor, nodes: int, improved: bool, add_self_loops: bool, flow: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """What gcn_norm makes of the edges of a GCNConv."""
    arguments = nodes, improved, add_self_loops, flow, dtype
    suits = _norm.suits(edge_index, None, nodes, improved, add_self_loops)
    compute = _norm.normalise if suits else _gcn_norm
    return _repeated_norm(compute, edge_index, None, *arguments)  # type: ignore[no-any-return]


def _laplacian(
    original: Callable[..., Any],
    self: MessagePassing,
    edge_index: Any,
    num_nodes: int | None,
    edge_weight: Tensor | None,
    normalization: str | None,
    lambda_max: Any = None,
    dtype: torch.dtype | None = None,
    batch: Tensor | None = None,
) -> Any:
    """ChebConv's scaled Laplacian, which keeps its answer for constant edges and weights."""
    memory = None
    if (
        not torch.compiler.is_compiling()
        and batch is None
        and not isinstance(lambda_max, Tensor)
        and (edge_weight is None or not (edge_weight.requires_grad or edge_weight.is_inference()))
    ):
        memory = memory_of_layer(edge_index)
    arguments = (num_nodes, edge_weight, normalization, lambda_max, dtype, batch)
    compute = functools.partial(original, self, edge_index, *arguments)
    if memory is None:
        return compute()
    key = (original, num_nodes, normalization, lambda_max, dtype)
    return remembered(memory, key, edge_index, edge_weight, compute)


# ---- self loops ----------------------------------------------------------------------------------


def _looped(
    original: Callable[..., Any], edge_index: Any, edge_attr: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """PyG's function that adds or removes self loops, which keeps its answer for an edge_index."""
    memory = None
    if edge_attr is None and not any(
        isinstance(value, Tensor) for value in (*args, *kwargs.values())
    ):
        memory = memory_of_layer(edge_index)
    compute = functools.partial(original, edge_index, edge_attr, *args, **kwargs)
    if memory is None:
        return compute()
    return remembered(memory, (original, args, *kwargs.items()), edge_index, None, compute)


def clustered(edge_index: Tensor, nodes: int, diagonal: float) -> tuple[Tensor, Tensor]:
    """The edges of a ClusterGCNConv, with self loops, and their weights; kept for an edge_index.

    diagonal: how much more a loop weighs.
    """

    def make() -> tuple[Tensor, Tensor]:
        edges, _ = remove_self_loops(edge_index)
        count = edges.size(1)
        edges, _ = add_self_loops(edges, num_nodes=nodes)
        inverse = 1.0 / degree(edges[1], num_nodes=nodes).clamp_(1.0)
        weight = inverse[edges[1]]
        weight[count:] += diagonal * inverse
        return edges, weight

    memory = memory_of_layer(edge_index)
    if memory is None:
        return make()
    key = (clustered, nodes, diagonal)
    return remembered(memory, key, edge_index, None, make)  # type: ignore[no-any-return]


def install() -> dict[type, None]:
    """Wrap these functions in the modules that use them. Returns the layers of these modules."""
    classes: dict[type, None] = dict.fromkeys((ChebConv, GatedGraphConv, LEConv))
    for name in (NORM, *LOOPS):
        wrap = passing(_normed if name is NORM else _looped, is_of_layers=True)
        for module in modules_with(name):
            replace(module, name, wrap)
            classes.update(
                (part, None)
                for part in vars(module).values()
                if isinstance(part, type)
                and issubclass(part, MessagePassing)
                and part.__module__ == module.__name__
            )
    replace(ChebConv, LAPLACIAN, passing(_laplacian, is_of_layers=True))
    return classes
