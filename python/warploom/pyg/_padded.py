"""padded: batches of a loader, filled up with ghosts to a few sizes.

Batches of one size share a CUDA graph. Ghost nodes are copies of real ones, in graphs of their own
behind the last one, and ghost edges join ghosts only. So real nodes get what they get without
ghosts, and distances and norms of ghosts are numbers.
"""

from __future__ import annotations

import copy
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from warploom import _arguments
from warploom.pyg import _ghosts
from warploom.pyg._ghosts import PADDING, Padding
from warploom.torch._whole import EAGER, WHOLE, Layout, Whole, is_data

_MOST_SIZES = 8
_LEARNT_FROM = 16  # batches
_RATIO = 1.3  # of a size to the next smaller one
_SPREADS = 4  # standard deviations that a size lies above the mean
_ROOM = 1.03  # and at least so much above the largest batch
_CROWD = 8  # times as many edges as a node has in the mean may a ghost have
_LARGE = 1 << 20  # bytes from which on a tensor is copied to a GPU by itself
_IGNORED = -100  # by PyTorch's losses of classes


class Size(NamedTuple):
    """Nodes of each type, edges of each type, graphs (0 without a batch vector), and the nodes of
    the largest graph."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    graphs: int
    largest: int


def padded(
    loader: Iterable[Any],
    sizes: Sequence[Sequence[int]] | None = None,
    *,
    labels: Sequence[str] = ("y",),
    device: torch.device | str | None = None,
) -> Padded:
    """The batches of a loader, made alike, so that `warploom.torch.capture` replays their steps.

        train = warploom.torch.capture(step)
        loader = warploom.pyg.padded(DataLoader(dataset, batch_size=128, shuffle=True))
        for epoch in range(100):
            for batch in loader:
                loss = train(batch)

    loader: a DataLoader, NeighborLoader or LinkNeighborLoader of PyG, or another iterable of Data,
        Batch or HeteroData, in host memory or on the device.
    sizes: at most 8 times (nodes, edges) or (nodes, edges, graphs), for graphs of one type; None =
        learned from the first 16 batches.
    labels: attributes that are -100 (of integers) or NaN for ghosts. Losses of classes leave out
        -100. A loss of numbers that forgets the mask becomes NaN.
    device: where batches go, by one copy; None = the GPU if there is one. For a GPU a thread fills
        a batch during the step before it, so the loader is asked one batch ahead.

    A batch gets ghosts: copies of real nodes in graphs of their own behind the last one, and edges
    between these. `batch.node_mask`, `edge_mask` and `graph_mask` say what is real, and
    `batch.num_graphs` counts the graphs of ghosts, too. Masks and other attributes of bool are
    False for ghosts. Attributes that are neither tensors nor numbers are left out.

    In a step of `capture` the norms of PyG, BatchNorm1d, global pooling and GPSConv leave ghosts
    out. A sum or mean over nodes or graphs that you write needs the mask, and no index by it, which
    waits for the GPU:

        error = (out - batch.y).masked_fill(~batch.graph_mask, 0)
        loss = error.square().sum() / batch.graph_mask.sum()
    """
    return Padded(loader, sizes, labels, device)


class Padded:
    """An iterable of batches of a few sizes.

    sizes: those in use, known from the first batch on.
    too_large: how many batches were larger than all sizes. They have masks and no ghosts, and their
        steps run eagerly.
    """

    def __init__(
        self,
        loader: Iterable[Any],
        sizes: Sequence[Sequence[int]] | None,
        labels: Sequence[str],
        device: torch.device | str | None,
    ) -> None:
        if not hasattr(loader, "__iter__"):
            raise TypeError(
                f"warploom: loader: an iterable of batches is needed, not {type(loader).__name__}"
            )
        self.loader = loader
        self.sizes: list[Size] = [] if sizes is None else _given(sizes)
        self.too_large = 0
        self._labels = frozenset(labels)
        found = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device(found if device is None else device)
        self._lines: dict[tuple[int, str], _Lines] = {}
        self._layouts: dict[Any, Layout] = {}
        _ghosts.install()

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        if not self._lines:
            first = list(islice(batches, _LEARNT_FROM))
            self._learn(first)
            batches = chain(first, batches)
        if self.device.type == "cuda":
            placed = ((torch.cuda.current_stream(self.device), data) for data in batches)
            yield from _one_ahead(placed, self._pad_on_stream)
        else:
            yield from map(self.pad, batches)

    def _pad_on_stream(self, placed: tuple[torch.cuda.Stream, Any]) -> Any:
        """`pad` for a batch and the stream that was current where it was drawn, in any thread."""
        stream, data = placed
        with torch.cuda.stream(stream):
            return self.pad(data)

    def _learn(self, batches: list[Any]) -> None:
        """Learn sizes, and which attributes belong to nodes, edges or graphs."""
        counts = [_size_of(data) for data in batches]
        for data, size in zip(batches, counts):
            for key, found in _lines_of(data, size).items():
                known = self._lines.get(key)
                both = found if known is None else [one for one in known if one in found]
                self._lines[key] = both
        if not self.sizes and counts:
            self.sizes = _sizes_for(counts)

    def pad(self, data: Any) -> Any:
        """A batch of the smallest size that it fits in, on the device."""
        have = _size_of(data)
        size = next((size for size in self.sizes if _fits(have, size)), None)
        if size is None:
            self.too_large += 1
        made = _Filled(self, data, have, have if size is None else size).made()
        made.__dict__[EAGER] = size is None
        return made


def _one_ahead(batches: Iterator[Any], function: Callable[[Any], Any]) -> Iterator[Any]:
    """`function` of each batch, which a thread computes while the caller has the one before.

    A batch is drawn when the one before it was computed, so a loader may have one memory for all.
    """
    with ThreadPoolExecutor(1, "warploom-padded") as thread:
        waiting = [thread.submit(function, batch) for batch in islice(batches, 1)]
        while waiting:
            made, failure = waiting.pop().result(), None
            try:
                waiting = [thread.submit(function, batch) for batch in islice(batches, 1)]
            except Exception as error:  # follows the batch before it
                failure = error
            yield made
            if failure is not None:
                raise failure


# ---- sizes ---------------------------------------------------------------------------------------


def _size_of(data: Any) -> Size:
    if not is_data(data):
        raise TypeError(
            f"warploom: padded: a batch is a {type(data).__name__}; Data, Batch or HeteroData of "
            "PyG is needed"
        )
    edges = []
    for store in data.edge_stores:
        edge_index = store.get("edge_index")
        if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
            raise TypeError("warploom: padded: a batch has no edge_index; adj_t is not supported")
        edges.append(edge_index.size(1))
    nodes = tuple(int(store.num_nodes or 0) for store in data.node_stores)
    graphs = largest = 0
    for store, count in zip(data.node_stores, nodes):
        if isinstance(batch := store.get("batch"), Tensor):
            ptr = store.get("ptr")
            per_graph = np.bincount(_array(batch)) if ptr is None else np.diff(_array(ptr))
            graphs = max(graphs, len(per_graph))
            largest = max(largest, int(per_graph.max(initial=0)))
        else:
            largest = max(largest, count)
    return Size(nodes, tuple(edges), graphs, largest)


def _given(sizes: Sequence[Sequence[int]]) -> list[Size]:
    """The sizes of a caller, the smallest first."""
    if not 1 <= len(sizes) <= _MOST_SIZES:
        raise ValueError(f"warploom: sizes: {len(sizes)} of them; 1 to {_MOST_SIZES} are needed")
    made = []
    for size in sizes:
        if len(size) not in (2, 3):
            raise ValueError(
                f"warploom: sizes: {tuple(size)} is not (nodes, edges) or (nodes, edges, graphs)"
            )
        nodes, edges, graphs = (
            _arguments.integer("sizes", count, least=0) for count in (*size, 0)[:3]
        )
        made.append(Size((nodes,), (edges,), graphs, nodes))
    return sorted(made)


def _fits(have: Size, size: Size) -> bool:
    """Whether a batch has this size with its ghosts, of which no row is huge."""
    if len(have.nodes) != len(size.nodes) or len(have.edges) != len(size.edges):
        return False
    if any(a > b for a, b in zip(have.edges, size.edges)) or have.largest > size.largest:
        return False
    if (have.graphs > 0) != (size.graphs > 0) or 0 < size.graphs <= have.graphs:
        return False
    graphs = max(size.graphs - have.graphs, 1)
    more = sum(size.edges) - sum(have.edges)
    most = _CROWD * max(sum(size.edges) / max(sum(size.nodes), 1), 1)
    for nodes, all_nodes in zip(have.nodes, size.nodes):
        ghosts = all_nodes - nodes
        if ghosts < graphs or (size.graphs and ghosts > graphs * size.largest):
            return False
        if more > most * ghosts:
            return False
    return True


def _rounded(count: float) -> int:
    """A multiple of some 2 % that is not less."""
    step = max(8, 1 << max(int(count).bit_length() - 6, 0))
    return int(-(-count // step) * step)


def _sizes_for(counts: list[Size]) -> list[Size]:
    """Sizes for batches like these, each `_RATIO` times the next smaller one."""
    flat = [(*size.nodes, *size.edges) for size in counts]
    top = [max(column) or 1 for column in zip(*flat)]
    classes: list[list[Size]] = [[] for _ in range(_MOST_SIZES)]
    for row, size in zip(flat, counts):
        share = max(count / most for count, most in zip(row, top))
        at = 0
        while at + 1 < _MOST_SIZES and share * _RATIO ** (at + 1) <= 1:
            at += 1
        classes[at].append(size)
    return sorted(_size_for(members) for members in classes if members)


def _bounds(counts: Sequence[int]) -> tuple[int, int]:
    """What hardly a batch is below or above."""
    mean, spread = statistics.fmean(counts), _SPREADS * statistics.pstdev(counts)
    low = max(min(mean - 1.5 * spread, min(counts) / _ROOM), 0)
    return int(low), _rounded(max(mean + spread, _ROOM * max(counts)))


def _size_for(members: list[Size]) -> Size:
    """One size for these batches and others that are like them."""
    of_edges = [_bounds(column) for column in zip(*(size.edges for size in members))]
    of_nodes = [_bounds(column) for column in zip(*(size.nodes for size in members))]
    edges = [high for _, high in of_edges]
    largest = -(-max(size.largest for size in members) // 8) * 8
    graphs = max(size.graphs for size in members)
    # Ghosts for all edges that a batch may lack, and graphs for all ghosts.
    lacking = sum(high - low for low, high in of_edges)
    crowd = _CROWD * max(sum(edges) / max(sum(high for _, high in of_nodes), 1), 1)
    nodes = [_rounded(high + lacking / crowd + 1) for _, high in of_nodes]
    if graphs:
        most = max(high - low for high, (low, _) in zip(nodes, of_nodes))
        more = 2 + most // max(largest - 1, 1)
        nodes = [_rounded(high + more) for high in nodes]
        graphs += more
    else:
        largest = max(nodes, default=0)
    return _apart(nodes, edges, graphs, largest)


def _apart(nodes: list[int], edges: list[int], graphs: int, largest: int) -> Size:
    """The size with no number twice, since the number of lines says what they are."""
    seen = {graphs}
    for counts in (nodes, edges):
        for at, count in enumerate(counts):
            while count in seen:
                count += 8
            counts[at] = count
            seen.add(count)
    return Size(tuple(nodes), tuple(edges), graphs, largest)


# ---- what an attribute has lines for -------------------------------------------------------------

# ("node", 2): of nodes of the third type; ("graph", 0); and in which dimension.
_Line = tuple[str, int, int]
_Lines = list[_Line]


def _lines_of(data: Any, size: Size) -> dict[tuple[int, str], _Lines]:
    """What each tensor of a batch has lines for, as far as its shape says; the likeliest first."""
    found: dict[tuple[int, str], _Lines] = {}
    nodes = {id(store): at for at, store in enumerate(data.node_stores)}
    edges = {id(store): at for at, store in enumerate(data.edge_stores)}
    for number, store in enumerate(data.stores):
        for key, value in store.items():
            if not isinstance(value, Tensor) or value.layout != torch.strided or not value.dim():
                continue
            dim = data.__cat_dim__(key, value, store)
            if not isinstance(dim, int):
                continue
            count, lines = value.size(dim), []
            if id(store) in nodes and count == size.nodes[nodes[id(store)]]:
                lines.append(("node", nodes[id(store)], dim))
            if id(store) in edges and count == size.edges[edges[id(store)]]:
                lines.insert(0 if "edge" in key else 1, ("edge", edges[id(store)], dim))
            if size.graphs and count == size.graphs:
                lines.append(("graph", 0, dim))
            found[number, key] = lines
    return found


# ---- one batch -----------------------------------------------------------------------------------


def _array(tensor: Tensor) -> Any:
    """The numbers of a tensor as an array; bits where NumPy lacks the type. A call of NumPy takes a
    third of the time of one of PyTorch."""
    if not tensor.is_cpu:
        tensor = tensor.cpu()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


@cache
def _label(dtype: torch.dtype) -> Any:
    """The label of ghosts."""
    value = torch.nan if dtype.is_floating_point else _IGNORED
    return _array(torch.full((1,), value, dtype=dtype))[0]


class _Filled:
    """A batch with ghosts."""

    def __init__(self, owner: Padded, data: Any, have: Size, size: Size) -> None:
        self.owner, self.data, self.have, self.size = owner, data, have, size
        self.stores = data.stores
        self.old = {"node": have.nodes, "edge": have.edges, "graph": (have.graphs,)}
        self.new = {"node": size.nodes, "edge": size.edges, "graph": (size.graphs,)}
        self.lines: dict[tuple[int, str], _Line | None] = {}

    def made(self) -> Any:
        """The batch, whose tensors lie in one memory on the device."""
        small: list[Any] = []
        large: list[Any] = []
        for number, store in enumerate(self.stores):
            for key, value in store.items():
                if isinstance(value, Tensor) and value.layout == torch.strided:
                    name, value = (number, key), value.detach()
                    self.lines[name] = self._line(name, value)
                    is_large = value.numel() * value.dtype.itemsize >= _LARGE
                    shape = self._shape(name, value)
                    (large if is_large else small).append((name, (value.dtype, shape), value))
        for name, kind, at in self._masks():
            small.append((name, (torch.bool, (self.new[kind][at],)), self.old[kind][at]))
        names, forms, sources = zip(*small, *large)
        layouts, form = self.owner._layouts, (names, forms)
        layout = layouts.get(form) or layouts.setdefault(form, Layout(forms))
        whole, views = self._filled(names, layout, sources, len(small))
        return self._with(Whole(whole, layout, dict(zip(names, views))))

    def _line(self, name: tuple[int, str], value: Tensor) -> _Line | None:
        """What an attribute has lines for."""
        known = self.owner._lines.get(name)
        if known is None:
            known = _lines_of(self.data, self.have).get(name, [])
        for line in known:
            kind, at, dim = line
            if -value.dim() <= dim < value.dim() and value.size(dim) == self.old[kind][at]:
                return line
        return None

    def _shape(self, name: tuple[int, str], value: Tensor) -> tuple[int, ...]:
        shape, line = list(value.shape), self.lines[name]
        if line is not None:
            kind, at, dim = line
            shape[dim] = self.new[kind][at]
        elif name[1] == "ptr" and self.size.graphs:
            shape = [self.size.graphs + 1]
        return tuple(shape)

    def _masks(self) -> Iterator[tuple[tuple[int, str], str, int]]:
        """The store and name of each mask, and its kind."""
        numbers = {id(store): number for number, store in enumerate(self.stores)}
        for at, store in enumerate(self.data.node_stores):
            yield (numbers[id(store)], "node_mask"), "node", at
        for at, store in enumerate(self.data.edge_stores):
            yield (numbers[id(store)], "edge_mask"), "edge", at
        if self.size.graphs:
            yield (0, "graph_mask"), "graph", 0

    def _filled(
        self, names: Sequence[Any], layout: Layout, sources: Sequence[Any], small: int
    ) -> tuple[Tensor, list[Tensor]]:
        """The memory and its tensors. Small ones come first, and go to a GPU by one copy."""
        device = self.owner.device
        is_staged = device.type == "cuda"
        size = layout.begin(small) if is_staged else layout.size
        staged = torch.empty(size, dtype=torch.uint8, pin_memory=is_staged)
        count = small if is_staged else len(names)
        for name, out, source in zip(names, layout.arrays(staged, count), sources):
            if isinstance(source, int):  # of a mask: how many are real
                out[:source], out[source:] = True, False
            else:
                self._fill(name, out, _array(source))
        if not is_staged:
            return staged, layout.views(staged)
        whole = torch.empty(layout.size, dtype=torch.uint8, device=device)
        # The allocator of page-locked memory keeps it until the copy has ended.
        whole[:size].copy_(staged, non_blocking=True)
        views = layout.views(whole)
        for name, view, source in zip(names[small:], views[small:], sources[small:]):
            self._copy(name, view, source)
        return whole, views

    def _copy(self, name: tuple[int, str], view: Tensor, source: Tensor) -> None:
        """Copy a large tensor to its place on the GPU, and ghosts behind it."""
        line = self.lines[name]
        if line is None:
            view.copy_(source, non_blocking=True)
            return
        _, _, dim = line
        first, more = source.size(dim), view.size(dim) - source.size(dim)
        view.narrow(dim, 0, first).copy_(source, non_blocking=True)
        if more:
            place = view.narrow(dim, first, more)
            ghosts = torch.empty(place.shape, dtype=place.dtype, pin_memory=True)
            real = source.narrow(dim, 0, min(first, more))  # as many as are copied
            self._add_ghosts(name, _array(ghosts), _array(real))
            place.copy_(ghosts, non_blocking=True)

    def _fill(self, name: tuple[int, str], out: Any, source: Any) -> None:
        """The lines of an attribute, and those of ghosts behind them."""
        line = self.lines[name]
        if name[1] == "ptr" and self.size.graphs:
            nodes, graphs = self._number_of(name[0]), self.have.graphs
            out[: graphs + 1] = source
            out[graphs:] = self.have.nodes[nodes] + self._first_of_ghost_graphs(nodes)
        elif line is None:
            out[...] = source
        else:
            kind, at, dim = line
            first, along = self.old[kind][at], [slice(None)] * (dim % out.ndim)
            real, ghosts = (*along, slice(None, first)), (*along, slice(first, None))
            out[real] = source
            if first < self.new[kind][at]:
                self._add_ghosts(name, out[ghosts], source)

    def _add_ghosts(self, name: tuple[int, str], ghosts: Any, source: Any) -> None:
        line = self.lines[name]
        assert line is not None
        kind, at, dim = line
        (number, key), is_bool = name, ghosts.dtype == np.bool_
        if key == "edge_index":
            self._join(at, ghosts)
        elif key == "batch" or (key.endswith("_batch") and self.size.graphs):
            self._number(kind, at, ghosts, is_batch=key == "batch")
        elif key in self.owner._labels and not is_bool:
            ghosts[...] = _label(self.stores[number][key].dtype)
        elif is_bool:
            ghosts[...] = False
        elif dim % ghosts.ndim:
            _repeat(np.moveaxis(ghosts, dim, 0), np.moveaxis(source, dim, 0))
        else:
            _repeat(ghosts, source)

    def _number_of(self, number: int) -> int:
        """Which type of nodes a store has."""
        store = self.stores[number]
        return next(at for at, other in enumerate(self.data.node_stores) if other is store)

    def _first_of_ghost_graphs(self, nodes: int) -> Any:
        """The first ghost of each graph of ghosts, and their count."""
        ghosts = self.size.nodes[nodes] - self.have.nodes[nodes]
        graphs = self.size.graphs - self.have.graphs
        return np.arange(graphs + 1) * ghosts // max(graphs, 1)

    def _number(self, kind: str, at: int, ghosts: Any, is_batch: bool) -> None:
        """The graphs of ghosts: equal shares, or for what follows other attributes the last one."""
        if is_batch and kind == "node":
            counts = np.diff(self._first_of_ghost_graphs(at))
            ghosts[...] = np.repeat(np.arange(self.have.graphs, self.size.graphs), counts)
        else:
            ghosts[...] = self.size.graphs - 1

    def _join(self, at: int, edges: Any) -> None:
        """Edges between ghosts, each of which gets about as many; edges: (2, count)."""
        ends = self._ends_of(at)
        first = [self.have.nodes[end] for end in ends]
        counts = [self.size.nodes[end] - self.have.nodes[end] for end in ends]
        number = np.arange(edges.shape[1])
        if ends[0] != ends[1]:
            edges[0] = first[0] + (number + number // counts[1]) % counts[0]
            edges[1] = first[1] + number % counts[1]
            return
        # A ghost with one some places away: no copies of the same node, if there are others.
        count, real = counts[0], self.have.nodes[ends[0]]
        farthest = max(min(count // 2, real - 1), 1)
        target, away = number % count, 1 + number // count % farthest
        source = np.where(target + away < count, target + away, np.maximum(target - away, 0))
        edges[0], edges[1] = first[0] + source, first[1] + target

    def _ends_of(self, edges: int) -> tuple[int, int]:
        """The types of nodes at both ends of edges of a type."""
        key = self.data.edge_stores[edges]._key
        if key is None:
            return 0, 0
        kinds = [store._key for store in self.data.node_stores]
        return kinds.index(key[0]), kinds.index(key[2])

    def _with(self, whole: Whole) -> Any:
        """A batch like the one of the loader, with these tensors."""
        made = copy.copy(self.data)
        stores = made.stores
        hidden = stores[0].__dict__
        for name in ("_slice_dict", "_inc_dict"):
            hidden.pop(name, None)
        if "_num_graphs" in hidden:
            hidden["_num_graphs"] = self.size.graphs
        for store in stores:
            for key, value in list(store.items()):
                if not isinstance(value, (Tensor, bool, int, float)):
                    del store[key]
        for at, store in enumerate(made.node_stores):
            if "num_nodes" in store:
                store["num_nodes"] = self.size.nodes[at]
        for (number, key), tensor in whole.views.items():
            stores[number][key] = tensor
        made.__dict__[WHOLE] = whole
        if self.size is not self.have:
            counts = (*self.size.nodes, *self.size.edges, self.size.graphs)
            made.__dict__[PADDING] = Padding(counts, self.size.graphs, self.size.largest)
        return made


def _repeat(ghosts: Any, source: Any) -> None:
    """Copies of real lines; ones where there are none."""
    count, real = len(ghosts), len(source)
    if not real:
        ghosts[...] = ghosts.dtype.kind == "f"
        return
    for first in range(0, count, real):
        ghosts[first : first + real] = source[: count - first]
