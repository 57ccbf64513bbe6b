"""What PyG's layers make of an edge_index in each step: computed once and found again.

These are the norms of gcn_norm and of ChebConv, edge lists with or without self loops, and those of
relations. As the same tensor at each step, such a list is sorted once (`_pyg_graphs`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import (
    APPNP,
    ChebConv,
    FAConv,
    GCN2Conv,
    GCNConv,
    MessagePassing,
    MixHopConv,
    PDNConv,
    SGConv,
    SSGConv,
)
from torch_geometric.nn.aggr import SumAggregation
from torch_geometric.nn.conv import gat_conv, gcn_conv

from warploom import _pyg_norm
from warploom._pyg_calls import is_active, refusal, replace
from warploom._pyg_graphs import Norm, Seen, is_capturing, look_up, without_graphs
from warploom._pyg_names import LAPLACIAN, LOOPS, MASKED, NORM, modules_with
from warploom.torch import Graph
from warploom.torch._internals import is_plain

# Of the layer whose forward runs in this thread. is_active: it is served; sums: it adds messages
# of a graph that it does not keep itself; masks: how many relations it has chosen edges of.
_layer = threading.local()
# Layers besides GCNConv that add features times weights which gcn_norm made.
_SUMS = (APPNP, FAConv, GCN2Conv, MixHopConv, PDNConv, SGConv, SSGConv)
# While a layer that adds messages is traced: edges with loops behind them, and of which edges.
_appended: list[tuple[Any, Any]] = []


def _remembered(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's gcn_norm without a wait, which repeats its answer for an edge_index that it has seen.

    Its result for new weights is computed again, with the edge_index of the answer before: that
    depends only on the edges, and as the same tensor it needs no new sorting.
    """

    @functools.wraps(original)
    def gcn_norm(
        edge_index: Any,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        improved: bool = False,
        add_self_loops: bool = True,
        flow: str = "source_to_target",
        dtype: torch.dtype | None = None,
    ) -> Any:
        arguments = (num_nodes, improved, add_self_loops, flow, dtype)
        compiling = torch.compiler.is_compiling()
        if compiling:
            is_own = bool(_appended) and is_plain(edge_index)
        else:
            is_own = getattr(_layer, "is_active", False) and type(edge_index) is Tensor
        if not is_own:
            return original(edge_index, edge_weight, *arguments)
        compute: Callable[..., Any] = original
        if (compiling or _layer.sums) and _pyg_norm.suits(
            edge_index, edge_weight, num_nodes, improved, add_self_loops
        ):
            compute = _pyg_norm.normalise
        seen = None if compiling else look_up(edge_index)
        if seen is None:
            made = compute(edge_index, edge_weight, *arguments)
            if compiling and compute is not original:
                _appended.append((made[0], edge_index))
            return made
        key = (compute, *arguments)
        known = seen.norm(key)
        if edge_weight is not None and (edge_weight.requires_grad or edge_weight.is_inference()):
            edges, weight = compute(edge_index, edge_weight, *arguments)
            if edges is edge_index or edges.layout is not torch.strided or edges.is_inference():
                return edges, weight
            if known is None and not is_capturing(edge_index):
                known = seen.norms[key] = Norm(None, edges, None, constant=False)
            return (edges if known is None else known.edge_index), weight
        if known is not None and known.is_of(edge_weight):
            edges = edge_index if known.edge_index is None else known.edge_index
            return edges, known.edge_weight
        with torch.inference_mode(False), torch.no_grad():
            edges, weight = compute(edge_index, edge_weight, *arguments)
        if known is not None and known.edge_index is not None and edges.layout is torch.strided:
            edges = known.edge_index
        if not is_capturing(edge_index):
            kept = None if edges is edge_index else edges
            seen.norms[key] = Norm(edge_weight, kept, weight)
        return edges, weight

    return gcn_norm


def appended_to(edges: Tensor) -> Tensor | None:
    """The edges that a traced layer has appended loops to, which gave these."""
    return next((source for made, source in _appended if made is edges), None)


def norm_of(
    edge_index: Tensor, nodes: int, improved: bool, add_self_loops: bool, flow: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """What gcn_norm makes of the edges of a GCNConv that runs on warploom."""
    before = dict(vars(_layer))
    _layer.is_active = _layer.sums = True
    try:
        return gcn_conv.gcn_norm(  # type: ignore[no-any-return]
            edge_index, None, nodes, improved, add_self_loops, flow, dtype
        )
    finally:
        _layer.is_active = False
        vars(_layer).update(before)


def add_loops(
    fill_value: Any, edge_index: Tensor, edge_attr: Tensor | None, nodes: int
) -> tuple[Tensor, Tensor | None]:
    """GATConv's self loops; the edges are those of the first call with the same edge_index."""

    seen = look_up(edge_index)
    key = ("attention", nodes)
    known = None if seen is None else seen.norm(key)
    if known is not None and edge_attr is None:
        return known.edge_index, None  # type: ignore[return-value]
    with torch.inference_mode(False):
        edges, attr = gat_conv.remove_self_loops(edge_index, edge_attr)
        edges, attr = gat_conv.add_self_loops(edges, attr, fill_value=fill_value, num_nodes=nodes)
    if known is not None:
        return known.edge_index, attr  # type: ignore[return-value]
    if seen is not None and not is_capturing(edge_index):
        seen.norms[key] = Norm(None, edges, None)
    return edges, attr


def loops_of(edge_index: Tensor, nodes: int) -> Tensor:
    """The edges with the self loops of a GATConv."""
    return add_loops(None, edge_index, None, nodes)[0]


def _sums(layer: MessagePassing, classes: tuple[type, ...] = (GCNConv,)) -> bool:
    """Whether an edge of weight 0 adds nothing; derived layers may have other messages."""
    sums = type(layer._modules["aggr_module"]) is SumAggregation
    return sums and type(layer) in classes and refusal(layer) is None


def _repeated(
    seen: Seen,
    edge_index: Tensor,
    weight: Tensor | None,
    key: tuple[Any, ...],
    compute: Callable[[], tuple[Tensor, Tensor | None]],
) -> tuple[Tensor, Tensor | None]:
    """The edges and weights that `compute` makes, or has made, of edges and constant weights."""
    known = seen.norm(key)
    if known is not None and known.is_of(weight) and known.edge_index is not None:
        return known.edge_index, known.edge_weight
    with torch.inference_mode(False), torch.no_grad():
        made = compute()
    if made[0] is not edge_index and not is_capturing(edge_index):
        seen.norms[key] = Norm(weight, *made)
    return made


def _kept(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's function that adds or removes self loops, which keeps its answer for an edge_index."""

    @functools.wraps(original)
    def function(edge_index: Any, edge_attr: Any = None, *args: Any, **kwargs: Any) -> Any:
        seen = None
        if (
            getattr(_layer, "is_active", False)
            and type(edge_index) is Tensor
            and edge_attr is None
            and not any(isinstance(value, Tensor) for value in (*args, *kwargs.values()))
        ):
            seen = look_up(edge_index)
        compute = functools.partial(original, edge_index, edge_attr, *args, **kwargs)
        if seen is None:
            return compute()
        return _repeated(seen, edge_index, None, (original, args, *kwargs.items()), compute)

    return function


def _kept_relation(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's function that chooses edges by a mask, which keeps its answer while the mask is equal.

    Both wait for the device. A layer asks for its relations in the same order at each call.
    """

    @functools.wraps(original)
    def function(edge_index: Any, edge_mask: Tensor) -> Any:
        seen = None
        if (
            getattr(_layer, "is_active", False)
            and type(edge_index) is Tensor
            and not edge_mask.is_inference()
            and not is_capturing(edge_index)
        ):
            seen = look_up(edge_index)
        if seen is None:
            return original(edge_index, edge_mask)
        key = (original, _layer.masks)
        _layer.masks += 1
        known = seen.norm(key)
        if known is not None and torch.equal(known.edge_weight, edge_mask):  # type: ignore[arg-type]
            return known.edge_index
        with torch.inference_mode(False):
            edges = original(edge_index, edge_mask)
        seen.norms[key] = Norm(None, edges, edge_mask)
        return edges

    return function


def _kept_laplacian(original: Callable[..., Any]) -> Callable[..., Any]:
    """ChebConv's scaled Laplacian, which keeps its answer for constant edges and weights."""

    @functools.wraps(original)
    def norm(
        self: MessagePassing,
        edge_index: Any,
        num_nodes: int | None,
        edge_weight: Tensor | None,
        normalization: str | None,
        lambda_max: Any = None,
        dtype: torch.dtype | None = None,
        batch: Tensor | None = None,
    ) -> Any:
        seen = None
        if (
            is_active(self)
            and not torch.compiler.is_compiling()
            and type(edge_index) is Tensor
            and batch is None
            and not isinstance(lambda_max, Tensor)
            and (
                edge_weight is None or not (edge_weight.requires_grad or edge_weight.is_inference())
            )
        ):
            seen = look_up(edge_index)
        arguments = (num_nodes, edge_weight, normalization, lambda_max, dtype, batch)
        compute = functools.partial(original, self, edge_index, *arguments)
        if seen is None:
            return compute()
        key = (original, num_nodes, normalization, lambda_max, dtype)
        return _repeated(seen, edge_index, edge_weight, key, compute)

    return norm


def _remembering(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A layer's forward, which tells these functions whether the layer runs on warploom."""

    @functools.wraps(original)
    def forward(self: MessagePassing, *args: Any, **kwargs: Any) -> Tensor:
        if not is_active(self):
            return original(self, *args, **kwargs)
        if Graph in tuple(map(type, (*args, *kwargs.values()))):  # no call of a Python function
            args, kwargs = without_graphs(args, kwargs)
        if torch.compiler.is_compiling():
            if not _sums(self, _SUMS) or getattr(self, "cached", False):
                return original(self, *args, **kwargs)
            start = len(_appended)
            _appended.append((None, None))
            try:
                return original(self, *args, **kwargs)
            finally:
                del _appended[start:]
        _layer.is_active = True
        _layer.masks = 0
        _layer.sums = _sums(self) and not self.cached
        try:
            return original(self, *args, **kwargs)
        finally:
            _layer.is_active = False

    return forward


def install() -> None:
    """Wrap these functions in the modules that use them, and the layers of these modules."""
    classes: dict[type, None] = {}
    for name in (NORM, MASKED, *LOOPS):
        wrap = {NORM: _remembered, MASKED: _kept_relation}.get(name, _kept)
        for module in modules_with(name):
            replace(module, name, wrap)
            classes.update(
                (part, None)
                for part in vars(module).values()
                if isinstance(part, type)
                and issubclass(part, MessagePassing)
                and part.__module__ == module.__name__
            )
    for cls in classes:
        replace(cls, "forward", _remembering)
    replace(ChebConv, LAPLACIAN, _kept_laplacian)
