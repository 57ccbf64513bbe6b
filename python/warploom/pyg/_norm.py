"""GCN's normalisation D^-1/2 (A + I) D^-1/2 of an edge list, without a wait for the device."""

from __future__ import annotations

import torch
from torch import Tensor

from warploom.torch._internals import is_plain


def suits(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int | None,
    improved: bool,
    add_self_loops: bool,
) -> bool:
    """Whether `normalise` serves these edges."""
    if not add_self_loops or num_nodes is None:
        return False
    if edge_index.dtype is not torch.int64 or edge_index.dim() != 2:
        return False
    if edge_weight is None:
        return not improved  # which versions of PyG treat differently
    return (
        is_plain(edge_weight)
        and edge_weight.is_floating_point()
        and edge_weight.shape == edge_index.shape[1:]
    )


def is_sorted(
    edge_index: Tensor, edge_weight: Tensor | None, x: Tensor, reduce: str, improved: bool,
    add_self_loops: bool,
) -> bool:  # fmt: skip
    """Whether `find_sorted` makes the norm of these edges, of x's type, when it sorts them."""
    return (
        edge_weight is None
        and add_self_loops
        and not improved
        and reduce == "sum"
        and edge_index.dtype is torch.int64
        and edge_index.layout is torch.strided
        and edge_index.numel() > 0
        and x.dtype in (torch.float32, torch.float64)
    )


def normalise(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    num_nodes: int,
    improved: bool,
    add_self_loops: bool,
    flow: str,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Edges and weights whose weighted sum is that of PyG's gcn_norm with self loops.

    PyG removes the self loops of the list and waits to learn how many edges are left. Here they
    stay with the weight 0. Behind all edges follows one loop for each node; it has the weight of
    a removed loop of this node, or else 1 (2 if `improved`).

    The arguments are those of gcn_norm. edge_index: (2, edges) of int64; edge_weight: (edges,),
    whose gradient is recorded, or None for ones; add_self_loops: True; improved: False for ones.
    Returns (2, edges + nodes) and (edges + nodes,).
    """
    count = edge_index.size(1)
    nodes = torch.arange(num_nodes, device=edge_index.device)
    edges = torch.cat([edge_index, nodes.expand(2, num_nodes)], 1)
    source, target = edges.unbind()
    reached = target if flow == "source_to_target" else source
    if edge_weight is None:
        weight = torch.empty(count + num_nodes, dtype=dtype, device=edges.device)
        torch.ne(source, target, out=weight)
        weight[count:].fill_(1)
        degrees = weight.new_zeros(num_nodes).scatter_add_(0, reached, weight)
        by_source, by_target = degrees.rsqrt_()[edges].unbind()
        return edges, weight.mul_(by_source).mul_(by_target)
    first = edge_index[0]
    is_loop = first == edge_index[1]
    # The last one takes all other edges.
    loops = edge_weight.new_full((num_nodes + 1,), 2.0 if improved else 1.0)
    loops = loops.scatter(0, first.where(is_loop, num_nodes), edge_weight)
    weight = torch.cat([edge_weight.masked_fill(is_loop, 0), loops[:num_nodes]])
    scale = weight.new_zeros(num_nodes).scatter_add_(0, reached, weight).pow_(-0.5)
    scale = scale.masked_fill(scale == torch.inf, 0)
    return edges, scale.index_select(0, source) * weight * scale.index_select(0, target)
