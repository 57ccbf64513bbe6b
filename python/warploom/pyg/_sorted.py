"""The graphs of PyG's edge lists: each `edge_index` is sorted once and found again.

In the second step with the same `edge_index` the graph is measured, and from then on its transpose
is kept; the graph of a mini-batch keeps nothing.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.conv import gat_conv

from warploom.pyg import _norm
from warploom.pyg._checks import Refused
from warploom.pyg._names import plain_edges
from warploom.pyg._switch import running
from warploom.torch import Graph, _later
from warploom.torch._capture import step_of_thread
from warploom.torch._graph import OnceGraph, find
from warploom.torch._internals import recordable, saves_by_hooks
from warploom.torch._memory import is_capturing, memory_of
from warploom.torch._plan import NO_LOOPS, current_stream, ends_of

# Edges from which on the graph is measured in the first step of a checkpointed layer.
MEASURED_AT_ONCE = 2**20


class Sorted:
    """The graph of one edge_index for one flow and size, and weights that its edges have."""

    __slots__ = ("__weakref__", "graph", "kept", "orders", "seen", "stream", "users", "weights")

    def __init__(self, graph: Graph, stream: int) -> None:
        self.graph = graph
        self.weights: Tensor | None = getattr(graph, "weights", None)
        self.stream = stream
        self.users: dict[int, int | None] = {}  # by id() of a layer: its last forward, if known
        self.kept: dict[Any, Any] = {}  # products of constant features (_kept)
        self.seen: dict[Any, Any] = {}  # features that may be constant
        self.orders: dict[Any, Any] = {}  # choices of `_orders`


# What is added to edges: in the place of all self loops one for each node. A type: the same for
# sums, with the weights of GCN's norm in this type.
LOOPS = "loops"


def find_sorted(
    layer: Any, edge_index: Tensor, to_source: bool, rows: int, cols: int, added: Any = None
) -> Sorted:
    """The graph of an edge_index, kept from the second step on, when a layer uses it again.

    Without a layer it is kept at once, and a step whose edges change keeps none. Where hooks save
    tensors, as in activation checkpointing, the number of edges alone decides whether it is kept,
    since forward and recomputation must save tensors of the same types.
    """
    memory = memory_of(edge_index)
    is_checkpointed = saves_by_hooks()
    key = (to_source, rows, cols, added, is_checkpointed)
    found: Sorted | None = None if memory is None else memory.made.get(key)
    if found is not None and not found.graph.once:
        return found
    is_of_step = memory is not None and memory.of_step
    capturing = edge_index.is_cuda and is_capturing(edge_index) and not is_of_step
    stream = current_stream(edge_index.get_device()) if edge_index.is_cuda else 0
    is_used_again = layer is None
    if found is not None and is_of_step:  # whose graphs are used once, by as many layers as it has
        return found
    if found is None or (found.stream != stream and capturing):
        found = Sorted(_make_graph(edge_index, to_source, rows, cols, added), stream)
        if memory is not None and not capturing:
            memory.made[key] = found
    elif found.stream != stream:
        torch.cuda.synchronize(edge_index.device)
        is_used_again = True
    if is_checkpointed:
        is_used_again = found.graph.nnz >= MEASURED_AT_ONCE
    else:
        forward, users = running.number, found.users
        is_other_use = forward is None or users.get(id(layer)) != forward
        is_used_again = is_used_again or (id(layer) in users and is_other_use)
    if not capturing and is_used_again and not is_of_step:
        found.graph = _kept(found.graph)
    found.users[id(layer)] = running.number
    return found


def peek(
    edge_index: Tensor, to_source: bool, rows: int, cols: int, added: Any = None
) -> Sorted | None:
    """The graph of an edge_index, if it has one; not counted as a use."""
    memory = memory_of(edge_index)
    if memory is None:
        return None
    return memory.made.get((to_source, rows, cols, added, saves_by_hooks()))


def _make_graph(edge_index: Tensor, to_source: bool, rows: int, cols: int, added: Any) -> Graph:
    """The graph of a first use: nothing waits for the device."""
    if edge_index.get_device() >= _later.FIRST_DEVICE:
        first = partial(_make_graph, edge_index, to_source, rows, cols, added)
        _later.need("sorting", edge_index, first)
    if edge_index.layout is torch.sparse_csr:
        with recordable():
            return Graph(edge_index.crow_indices(), edge_index.col_indices(), cols=cols, once=True)
    if edge_index.layout is torch.sparse_coo:
        edges, to_source = edge_index._indices(), True
    elif edge_index.layout is torch.sparse_csc:
        sources = torch.arange(cols, device=edge_index.device)
        sources = sources.repeat_interleave(
            edge_index.ccol_indices().diff(), output_size=edge_index._nnz()
        )
        edges = torch.stack([sources, edge_index.row_indices()])
    else:
        edges = edge_index if type(edge_index) is Tensor else plain_edges(edge_index)
    # A captured step has a fixed number of edges, for which PyG's functions are wrapped (_ghosts).
    if added is not None and (edges.is_cuda or step_of_thread.made is not None):
        return _sorted_by_torch(edges, to_source, rows, cols, added)
    loops = NO_LOOPS if added is None else min(rows, cols)
    weights = None if added is LOOPS else added
    graph = OnceGraph(*ends_of(edges, to_source), rows, cols, loops, weights)
    if not graph.is_whole:
        raise Refused("indices out of range")
    return graph


def _sorted_by_torch(edges: Tensor, to_source: bool, rows: int, cols: int, added: Any) -> OnceGraph:
    """The same where functions of PyTorch add something."""
    with recordable(), torch.no_grad():
        weights = None
        if added is LOOPS:
            edges, _ = with_loops(edges, min(rows, cols))
        else:
            flow = "target_to_source" if to_source else "source_to_target"
            edges, weights = _norm.normalise(edges, None, rows, False, True, flow, added)
        graph = OnceGraph(*ends_of(edges, to_source), rows, cols)
        if weights is not None and graph.perm is not None:
            graph.weights = weights.index_select(0, graph.perm)
    return graph


def with_loops(
    edges: Tensor, nodes: int, edge_attr: Tensor | None = None, fill_value: Any = None
) -> tuple[Tensor, Tensor | None]:
    """The edges of GATConv with its self loops, and their features."""
    with recordable():
        edges, edge_attr = gat_conv.remove_self_loops(edges, edge_attr)
        return gat_conv.add_self_loops(edges, edge_attr, fill_value, nodes)  # type: ignore[no-any-return]


def _kept(graph: Graph) -> Graph:
    """The same graph for many steps; itself while the kernels of that one compile."""
    made = graph.successor or _keep_graph(graph)
    if not _later.may_refuse(graph.rowptr) or _later.is_ready(made):
        return made
    graph.successor = made
    return graph


def _keep_graph(graph: Graph) -> Graph:
    """The same graph for many steps, on any stream."""
    if graph.rowptr.is_cuda:
        torch.cuda.current_stream(graph.device).synchronize()
    return Graph(graph.rowptr, graph.colind, cols=graph.cols, perm=graph.perm)


def order_values(graph: Graph, values: Tensor) -> Tensor:
    """Values of edges in CSR order; those of constant weights are kept."""
    return values if graph.perm is None else graph.order_edges(values, graph.perm)


# ---- a Graph in the place of an edge_index -------------------------------------------------------


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _make_edges(rowptr: Tensor, colind: Tensor, cols: int) -> bool:
    find(rowptr, colind, cols).edge_index()
    return True


def _edges_of(edges: Any) -> Any:
    """The edge_index of a Graph; other edges as they are."""
    if type(edges) is not Graph:
        return edges
    if edges.values is not None:
        raise ValueError(
            "warploom: a Graph with values in the place of an edge_index; pass them as edge_weight"
        )
    if not torch.compiler.is_compiling():
        return edges.edge_index()
    if edges.once:
        raise ValueError(
            "warploom: a Graph with once=True in compiled code; pass the edge_index instead"
        )
    _make_edges(edges.rowptr, edges.colind, edges.cols)
    return edges._edge_index  # an input of the code, which is guarded


def without_graphs(args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments of a layer, with the edge_index of each Graph."""
    return (
        tuple([_edges_of(part) for part in args]),
        {name: _edges_of(part) for name, part in kwargs.items()},
    )
