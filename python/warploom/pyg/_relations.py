"""RGCNConv and FastRGCNConv: all relations by two products, where PyG has one for each relation.

A pair is a target and a relation by which edges reach it. The first product reduces what the edges
of each pair bring; its rows are the pairs, those of one relation side by side. Then the rows of
each relation are multiplied by its weights. The second product adds up the pairs of each target. So
no edge is chosen by a mask, for which a GPU has to wait, and nothing is made of targets that a
relation does not reach.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch_geometric.typing
from torch import Tensor
from torch_geometric.nn import FastRGCNConv, MessagePassing, RGCNConv

from warploom.pyg._checks import Refused, check_dense, check_edges, reduction_of
from warploom.pyg._edge_lists import memory_of_layer, remembered
from warploom.pyg._kept import Operands
from warploom.pyg._sorted import find_sorted
from warploom.torch import _later, _sampling
from warploom.torch._capture import step_of_thread
from warploom.torch._internals import is_plain
from warploom.torch._memory import is_capturing


def _pairs_of(
    edge_index: Tensor, edge_type: Tensor, relations: int, rows: int, cols: int, by_relation: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Edges from sources to pairs, edges from pairs to targets, and each relation's pairs, which
    are counted on the host.

    by_relation: a source has a number of its own in each relation.
    """
    source, target = edge_index.long()
    limits = torch.stack([*edge_type.aminmax(), *source.aminmax(), *target.aminmax()]).tolist()
    if min(limits) < 0 or limits[1] >= relations or limits[3] >= cols or limits[5] >= rows:
        raise Refused("indices or relations out of range")
    kept, pair = torch.unique(edge_type * rows + target, return_inverse=True)
    if by_relation:
        source = edge_type * cols + source
    ends = torch.stack([torch.arange(len(kept), device=kept.device), kept % rows])
    counts = torch.bincount(kept // rows, minlength=relations)
    return torch.stack([source, pair]), ends, counts.cpu()


def _pairs(
    layer: Any, edge_index: Tensor, edge_type: Any, rows: int, cols: int, by_relation: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs of a call, which are found once for an edge_index and its relations."""
    check_edges(edge_index, "relations over ")
    if (
        not is_plain(edge_type)
        or edge_type.dtype is not torch.int64
        or edge_type.shape != (edge_index.size(1),)
        or edge_type.device != edge_index.device
    ):
        raise Refused("relations that are not a number for each edge")
    if edge_type.numel() == 0 or rows == 0 or cols == 0:
        raise Refused("empty graph or features")
    arguments = layer.num_relations, rows, cols, by_relation
    find = partial(_pairs_of, edge_index, edge_type, *arguments)

    def make() -> tuple[Tensor, Tensor, Tensor]:
        if step_of_thread.made is not None or is_capturing(edge_index):
            raise Refused("relations that a captured step cannot count")
        if edge_index.get_device() >= _later.FIRST_DEVICE:
            _later.need("relations", edge_index, find)
        return find()

    memory = None if edge_type.is_inference() else memory_of_layer(edge_index)
    if memory is None:
        return make()
    key = (_pairs_of, *arguments)
    return remembered(memory, key, edge_index, edge_type, make)  # type: ignore[no-any-return]


def _mapped(layer: Any, part: Tensor, weight: Tensor) -> Tensor:
    """Rows of a relation times its weights."""
    if layer.num_blocks is None:
        return part @ weight
    blocks = part.view(-1, weight.size(0), weight.size(1))
    return torch.einsum("pni,nio->pno", blocks, weight).reshape(-1, layer.out_channels)


def _nodes_of(layer: Any, x: Any) -> tuple[Any, Any] | None:
    """Features of sources and targets, None for learned features of all; None for another call."""
    if isinstance(x, tuple):
        known = len(x) == 2 and all(
            isinstance(one, Tensor) and one.is_floating_point() for one in x
        )
        return x if known else None
    if x is None:
        return (None, None) if layer.num_blocks is None else None
    return (x, x) if isinstance(x, Tensor) and x.is_floating_point() else None


def _forward(
    layer: Any, x: Any, edge_index: Any, edge_type: Any = None, is_fast: bool = False
) -> Tensor | None:
    """The layer's result; None where PyG's forward makes it."""
    if torch.compiler.is_compiling() or _sampling.chosen is not None:
        return None
    nodes, reduce = _nodes_of(layer, x), reduction_of(layer)
    if (
        nodes is None
        or reduce is None
        or (is_fast and reduce not in ("sum", "mean"))
        or type(edge_index) is not Tensor
        or layer.flow != "source_to_target"
        or not hasattr(layer.propagate, "is_accelerated")
    ):
        return None
    source, target = nodes
    # With pyg-lib RGCNConv reduces over all relations at once, so its means are others.
    is_plain_map = layer.num_bases is None and layer.num_blocks is None
    if torch_geometric.typing.WITH_SEGMM and is_plain_map and source is not None and not is_fast:
        return None
    weight = layer.weight
    if layer.num_bases is not None:
        flat = layer.comp @ weight.view(layer.num_bases, -1)
        weight = flat.view(layer.num_relations, layer.in_channels_l, layer.out_channels)
    rows, cols = (layer.in_channels_l,) * 2 if source is None else (target.size(0), source.size(0))
    features = check_dense(layer, weight.flatten(0, 1) if source is None else source)
    if features.device != edge_index.device:
        raise Refused("edges and features on different devices")
    edges, ends, counts = _pairs(layer, edge_index, edge_type, rows, cols, source is None)
    pairs = ends.size(1)
    found = find_sorted(layer, edges, False, pairs, features.size(0))
    out = Operands(found, features, None, None, reduce).multiply(features)
    if source is not None:
        parts = zip(torch.split(out, counts.tolist()), weight.unbind(0))
        out = torch.cat([_mapped(layer, part, own) for part, own in parts if len(part)])
    adding = find_sorted(layer, ends, False, rows, pairs)
    out = Operands(adding, out, None, None, "sum").multiply(out)
    if not is_fast:  # PyG adds to zeros of the default type
        out = out.to(torch.promote_types(torch.get_default_dtype(), out.dtype))
    root, bias = layer.root, layer.bias
    if root is not None:
        out = out + (root[:rows] if target is None else target @ root)
    return out if bias is None else out + bias


FORWARDS: dict[type[MessagePassing], Callable[..., Tensor | None]] = {
    RGCNConv: _forward,
    FastRGCNConv: partial(_forward, is_fast=True),
}
