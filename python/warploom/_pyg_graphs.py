"""The graphs of PyG's edge lists: each `edge_index` is sorted once and found again.

It is found by its storage, its layout in the storage and its version, so `detach()` and whole views
find the graph of their base, and a modified tensor is sorted again. In the second step with the
same `edge_index` the graph is measured, and from then on its transpose is kept; the graph of a
mini-batch keeps nothing.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing

from warploom._pyg_names import plain_edges
from warploom.torch import Graph
from warploom.torch._graph import find
from warploom.torch._internals import is_transformed
from warploom.torch._plan import convert_edges, current_stream
from warploom.torch._state import Content, TensorState, used


class Refused(Exception):
    """The reason why PyG computes this call."""


# ---- graphs that were seen ----------------------------------------------------------------------

_Key = tuple[Any, ...]


class Sorted:
    """The graph of one edge_index for one flow and size."""

    __slots__ = ("__weakref__", "graph", "state", "stream", "users")

    def __init__(self, graph: Graph, stream: int) -> None:
        self.graph = graph
        self.state: TensorState | None = None  # of the edge_index that it was found for last
        self.stream = stream
        self.users: set[int] = set()  # the layers that used it


class Norm:
    """What was made of an edge_index, and of edge weights if these are constant.

    edge_index: None where that is the given one, whose life must not depend on this object.
    """

    __slots__ = ("constant", "edge_index", "edge_weight", "versions", "weight")

    def __init__(
        self,
        given: Tensor | None,
        edge_index: Tensor | None,
        edge_weight: Tensor | None,
        constant: bool = True,
    ) -> None:
        self.constant = constant
        self.weight = None if given is None else TensorState(given)
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.versions = [
            None if made is None else made._version for made in (edge_index, edge_weight)
        ]

    def is_of(self, given: Tensor | None) -> bool:
        if given is None or self.weight is None:
            return self.constant and given is None and self.weight is None
        return self.weight.is_of(given, self)


class Seen:
    """The graphs and norms of one edge_index; valid until the tensor is modified."""

    __slots__ = ("__weakref__", "content", "norms", "owner", "sorted", "version")

    def __init__(self, key: _Key, owner: Any, version: int, content: Content | None) -> None:
        self.owner = weakref.ref(owner, partial(_forget, entries, key))
        self.version = version
        self.content = content
        self.sorted: dict[tuple[bool, int, int], Sorted] = {}
        self.norms: dict[tuple[Any, ...], Norm] = {}

    def norm(self, key: tuple[Any, ...]) -> Norm | None:
        """What is kept under this key, unless it was modified."""
        found = self.norms.get(key)
        if found is None:
            return None
        edges, weight = found.edge_index, found.edge_weight
        of_edges, of_weight = found.versions
        if edges is not None and edges._version != of_edges:
            return None
        return None if weight is not None and weight._version != of_weight else found


MOST_ENTRIES = 64
entries: dict[_Key, Seen] = {}  # the oldest come first
_lock = threading.Lock()
# Graphs end while the modules that free them are still there.
atexit.register(entries.clear)


# Gets `entries` as an argument, because a tensor may die when the interpreter has cleared this
# module's names.
def _forget(entries: dict[_Key, Seen], key: _Key, owner: Any) -> None:
    found = entries.get(key)
    if found is not None and found.owner is owner:
        entries.pop(key, None)


def _identity(edge_index: Tensor) -> tuple[_Key, Any]:
    """What all tensors with these edges share, and the object that lives as long as they do.

    The key has an address, which counts only while the object lives. A sparse matrix has several
    storages and is known by itself.
    """
    if edge_index.layout is not torch.strided:
        return (id(edge_index),), edge_index
    plain = plain_edges(edge_index)
    storage = plain.untyped_storage()
    layout = (plain.storage_offset(), plain.shape, plain.stride(), plain.dtype)
    return (id(storage), type(edge_index), *layout), storage


def _version(tensor: Tensor) -> int:
    """A number that grows with every modification in place; inference tensors have none."""
    version: int = tensor._version
    if type(tensor) is Tensor:
        return version
    plain = plain_edges(tensor)
    return version if plain is tensor else version + plain._version


def look_up(edge_index: Tensor) -> Seen | None:
    """The entry of these edges, a new one if they were modified; None where this is unknown, and
    in transforms of torch.func, whose tensors end with them."""
    if edge_index.is_inference() or is_transformed():
        return None
    version = _version(edge_index)
    key, owner = _identity(edge_index)
    is_strided = edge_index.layout is torch.strided
    found = entries.get(key)
    if (
        found is not None
        and found.version == version
        and found.owner() is owner
        and (found.content is None or found.content.is_same(plain_edges(edge_index)))
    ):
        if (states := used.states) is not None and is_strided:
            plain = plain_edges(edge_index)  # kept, as it may be a view that ends with the step
            states.append((TensorState(plain), (plain, found)))
        return found
    if is_capturing(edge_index):
        return None  # what is computed now lies in the memory of the captured graph
    with _lock:
        content = Content(plain_edges(edge_index)) if is_strided else None
        found = entries[key] = Seen(key, owner, version, content)
        while len(entries) > MOST_ENTRIES:
            entries.pop(next(iter(entries)), None)
    return found


def is_capturing(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


# ---- graphs in the place of an edge_index -------------------------------------------------------


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _make_edges(rowptr: Tensor, colind: Tensor, cols: int) -> bool:
    find(rowptr, colind, cols).edge_index()
    return True


def edges_of(edges: Any) -> Any:
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
        tuple([edges_of(part) for part in args]),
        {name: edges_of(part) for name, part in kwargs.items()},
    )


# ---- from PyG's inputs to a graph ---------------------------------------------------------------


def _make_graph(edge_index: Tensor, to_source: bool, rows: int, cols: int) -> Graph:
    """The graph of a first use: nothing waits for the device."""
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return _make_graph(edge_index, to_source, rows, cols)
    if edge_index.layout is torch.sparse_csr:
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
        edges = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
    rowptr, colind, perm = convert_edges(edges, rows, cols, to_source)
    if not edges.is_cuda:  # on a GPU the check would wait
        _check_range(rowptr, edges)
    return Graph._sorted_once(rowptr, colind, perm, rows, cols)


def _check_range(rowptr: Tensor, edges: Tensor) -> None:
    if int(rowptr[-1]) != edges.size(1):
        raise Refused("indices out of range")


def _keep_graph(graph: Graph) -> Graph:
    """The same graph for many steps, on any stream."""
    if graph.rowptr.is_cuda:
        torch.cuda.current_stream(graph.device).synchronize()
    return Graph(graph.rowptr, graph.colind, cols=graph.cols, perm=graph.perm)


def find_sorted(
    layer: MessagePassing | None, edge_index: Tensor, to_source: bool, rows: int, cols: int
) -> Sorted:
    """The graph of an edge_index, kept from the second step on, when a layer uses it again.

    Without a layer it is kept at once.
    """
    seen = look_up(edge_index)
    key = (to_source, rows, cols)
    found = None if seen is None else seen.sorted.get(key)
    if found is not None and not found.graph.once:
        return found
    capturing = is_capturing(edge_index)
    stream = current_stream(edge_index.get_device())
    is_used_again = layer is None
    if found is None or (found.stream != stream and capturing):
        found = Sorted(_make_graph(edge_index, to_source, rows, cols), stream)
        if seen is not None and not capturing:
            seen.sorted[key] = found
    elif found.stream != stream:
        torch.cuda.synchronize(edge_index.device)
        is_used_again = True
    if not capturing and (is_used_again or id(layer) in found.users):
        found.graph = _keep_graph(found.graph)
    found.users.add(id(layer))
    return found


def peek(edge_index: Tensor, to_source: bool, rows: int, cols: int) -> Sorted | None:
    """The graph of an edge_index, if it has one; not counted as a use."""
    seen = look_up(edge_index)
    return None if seen is None else seen.sorted.get((to_source, rows, cols))


class Last:
    """The edges that one caller used last, by which their graph is found again at once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: tuple[TensorState, Any] | None = None

    def find(
        self, layer: MessagePassing, edge_index: Tensor, to_source: bool, rows: int, cols: int
    ) -> Sorted:
        """As find_sorted, always of one flow and size."""
        known = self._known
        if known is not None:
            state, found = known
            of_edges: Sorted | None = found()
            if of_edges is not None and state.is_of(edge_index, of_edges):
                return of_edges
        made = find_sorted(layer, edge_index, to_source, rows, cols)
        if not made.graph.once:
            if made.state is None or made.state.tensor() is not edge_index:
                made.state = TensorState(edge_index)
            self._known = made.state, weakref.ref(made)
        return made


def order_values(found: Sorted, values: Tensor) -> Tensor:
    """Values of edges in CSR order; those of constant weights are kept."""
    order = found.graph.perm
    return values if order is None else found.graph.order_edges(values, order)
