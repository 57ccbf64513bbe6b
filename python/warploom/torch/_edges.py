"""How registered ops are given their graph: as the tensors of a CSR, or as a list of edges.

An op that gets an edge list finds its graph when it runs, so the graph is sorted once and kept, and
compiled code has neither its tensors nor their sizes. `warploom.pyg` says how it is found.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import torch

from warploom.torch._graph import Graph, find
from warploom.torch._plan import index_type, is_captured

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]
Lines = Sequence[Optional[str]]


class Size(NamedTuple):
    """What the shapes and types of results depend on."""

    rows: int
    cols: int
    nnz: int
    indices: torch.dtype


class Found(NamedTuple):
    """The graph of one call of an op.

    values: in CSR order, if the edges have their own, which the op was not given.
    order: brings operands of edges into CSR order; None: they are.
    prepared: what has run already of a graph whose calls are captured; None: of another one.
    """

    graph: Graph
    values: Maybe = None
    order: Callable[[Tensor], Tensor] | None = None
    prepared: set[Any] | None = None

    def filled(self, operands: Sequence[Any], lines: Lines) -> list[Any]:
        """The operands with the edges' own values, (edges,), in their place."""
        own = self.values
        if own is None:
            return list(operands)
        return [own if line == "nnz" else one for one, line in zip(operands, lines)]

    def ordered(self, operands: Sequence[Maybe], lines: Lines) -> list[Maybe]:
        """The operands as a product takes them."""
        order = self.order
        if self.values is not None or order is None:
            return self.filled(operands, lines)
        return [
            order(one) if line == "nnz" and one is not None else one
            for one, line in zip(operands, lines)
        ]

    def restored(self, gradients: Sequence[Maybe], lines: Lines) -> list[Maybe]:
        """Gradients in the order of what the op was given."""
        places = None if self.order is None else self.graph.edge_places()
        if places is None:
            return list(gradients)
        return [
            one.index_select(0, places) if line == "nnz" and one is not None else one
            for one, line in zip(gradients, lines)
        ]

    def run(self, key: Any, function: Callable[[], Any]) -> Any:
        """What the function computes with the graph. key: says which calls are alike.

        The first of such calls makes what the graph keeps. PyTorch runs it with the memory of a
        CUDA graph, which may hold nothing that stays; that of another thread is not from there.
        """
        prepared, device = self.prepared, self.graph.index
        if prepared is None or key in prepared or device < 0 or is_captured(device):
            return function()
        failures: list[BaseException] = []

        def prepare() -> None:
            try:
                with torch.no_grad(), torch.cuda.device(device):
                    function()
                    torch.cuda.synchronize()
            except BaseException as error:
                failures.append(error)

        torch.cuda.synchronize(device)
        thread = threading.Thread(target=prepare)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        prepared.add(key)
        return function()


class Form(NamedTuple):
    """A way to give a graph to an op, as the first arguments.

    ending: of the op's name.
    tensors, given: how many of these are tensors, which come first, and how many there are.
    find: from the arguments, and whether this is a backward pass, the graph.
    has_values: whether the edges have their own values.
    """

    ending: str
    schema: str
    tensors: int
    given: int
    size: Callable[..., Size]
    find: Callable[..., Found]
    has_values: Callable[..., bool]


# ---- CSR ----------------------------------------------------------------------------------------

CSR = Form(
    "",
    "Tensor rowptr, Tensor colind, SymInt cols",
    2,
    3,
    lambda rowptr, colind, cols: Size(rowptr.shape[0] - 1, cols, colind.shape[0], rowptr.dtype),
    lambda rowptr, colind, cols, is_backward: Found(find(rowptr, colind, cols)),
    lambda *given: False,
)


# ---- edge lists ---------------------------------------------------------------------------------

OWN = "norm"  # begins `how` of edges that have their own values


class EdgeList(Graph):
    """A graph in code that is traced, known by its edges.

    edges: (2, edges), or None, where `site` is the number of a graph that compiled code is for.
    how: what is added to the edges, and whether they have their own values.
    site: the place in the code, whose calls are those of one layer.
    """

    def __init__(
        self, edges: Maybe, rows: int, cols: int, nnz: int, how: str, to_source: bool, site: int,
        device: torch.device,
    ) -> None:  # fmt: skip
        self.rows = rows
        self.cols = cols
        self.nnz = nnz
        self.values = self.perm = None
        self.on = device
        self.arguments = (edges, rows, cols, nnz, how, to_source, site)

    def form(self) -> tuple[str, tuple[Any, ...]]:
        """See Graph."""
        return EDGES.ending, self.arguments

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self.on


# Finds the graph of an op's arguments; set by `warploom.pyg`.
finder: Callable[..., Found] | None = None


def _find_by_edges(*given: Any) -> Found:
    if finder is None:
        raise RuntimeError("warploom: an op over an edge_index needs `import warploom.pyg`")
    return finder(*given)


def _size_of_edges(edges: Maybe, rows: int, cols: int, nnz: int, *how: Any) -> Size:
    return Size(rows, cols, nnz, index_type(rows, cols, nnz))


EDGES = Form(
    "_of_edges",
    "Tensor? edges, SymInt rows, SymInt cols, SymInt nnz, str how, bool to_source, int site",
    1,
    7,
    _size_of_edges,
    _find_by_edges,
    lambda edges, rows, cols, nnz, how, *place: how.startswith(OWN),
)
