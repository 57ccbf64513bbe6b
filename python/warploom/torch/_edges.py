"""Calls of registered ops: how compiled code names them, and how their graphs are found.

An op gets a graph, or a list of edges, of which `warploom.pyg` says how their graph is found when
the op runs, so the graph is sorted once and kept. All that is fixed when the code is compiled is
one text, which a Call reads.
"""

from __future__ import annotations

import ast
import atexit
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Optional

import torch

from warploom.torch._graph import Graph, find
from warploom.torch._internals import call_directly, is_inductor
from warploom.torch._plan import index_type, is_captured
from warploom.torch._state import TensorState

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]
Needs = Sequence[bool]
Lines = Sequence[Optional[str]]
Arrange = Callable[[Sequence[Maybe]], "list[Maybe]"]
Run = Callable[..., Sequence[Tensor]]
Numbers = tuple[Sequence[float], int]  # of a call, with its seed

operations: dict[str, Any] = {}  # by name; each an Operation of _ops, which stands above
calls: dict[str, Call] = {}  # by text
# Graphs end while the modules that free them are still there.
atexit.register(calls.clear)


class Size(NamedTuple):
    """What the shapes and types of results depend on."""

    rows: int
    cols: int
    nnz: int
    indices: torch.dtype

    @property
    def stored(self) -> int:
        return self.nnz


class Shaped(NamedTuple):
    """What a Product needs to know of an operand, of which there may be no tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


class Place(NamedTuple):
    """Where the graph of a call is: in `edges` (2, edges), or in rowptr, which `edges` is then,
    colind and perm. None of them: compiled code has its number. The size is that of the matrix
    that is multiplied.
    """

    edges: Maybe
    colind: Maybe
    perm: Maybe
    rows: int
    cols: int
    nnz: int

    def size(self) -> Size:
        """What results depend on."""
        if self.colind is not None and self.edges is not None:
            return Size(*self[3:], self.edges.dtype)
        return Size(*self[3:], index_type(*self[3:]))


class OpGraph(NamedTuple):
    """The graph of an op's edges.

    values: in CSR order, if the edges have their own, which the op was not given.
    order: brings operands of edges into CSR order; None: they are.
    prepared: what has run already of a graph whose calls are captured; None: of another one.
    """

    graph: Graph
    values: Maybe = None
    order: Callable[[Tensor], Tensor] | None = None
    prepared: set[Any] | None = None

    def arrange(self, lines: Lines, likes: Sequence[Any]) -> Arrange | None:
        """What puts operands into CSR order, or the edges' own values in their place; None where
        nothing is to do."""
        places = [n for n, line in enumerate(lines) if line == "nnz" and likes[n] is not None]
        own, order = self.values, self.order
        if not places or (own is None and order is None):
            return None

        def arrange(operands: Sequence[Maybe]) -> list[Maybe]:
            given = list(operands)
            for place in places:
                if own is not None:
                    given[place] = own
                elif given[place] is not None:
                    given[place] = order(given[place])  # type: ignore[misc, arg-type]
            return given

        return arrange

    def restored(self, gradients: Sequence[Maybe], lines: Lines) -> Sequence[Maybe]:
        """Gradients in the order of what the op was given."""
        places = self.graph.edge_places()
        if places is None:
            return gradients
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


# Finds the graph of a Call, its edges, rows and columns; set by `warploom.pyg`.
finder: Callable[[Call, Maybe, int, int, bool], OpGraph] | None = None


class _Bound(NamedTuple):
    """The edges that a Call got last, with their graph and what computes its results."""

    edges: TensorState | None  # None: of an op without edges
    rows: int
    cols: int
    numbers: Numbers
    found: OpGraph
    run: Run


class Call:
    """What an op of compiled code does, as its text says.

    key: under which it is counted; empty: it is not.
    how: what is added to the edges, and whether they have their own values.
    site: the place in the compiled code, so that layers have texts of their own; of a graph that
        this code holds, its number.
    draws: whether each call draws a seed, and gives it as its last result.
    """

    __slots__ = ("_last", "draws", "how", "key", "likes", "lines", "needs", "operation", "options",
                 "site", "text", "to_source")  # fmt: skip

    def __init__(self, text: str) -> None:
        name, key, self.how, self.to_source, self.site, *rest = ast.literal_eval(text)
        self.text, self.key = text, key
        self.operation = operations[name]
        self.options, self.draws, self.needs, likes = rest
        self.lines = self.operation.lines_of(self.options)
        self.likes = [
            None if like is None else Shaped(like[0], getattr(torch, like[1])) for like in likes
        ]
        self._last: list[_Bound | None] = [None, None]

    def product(self, size: Any) -> Any:
        """The Product (_ops) for a graph of this size, which is not checked."""
        return self.operation.make(self.operands(size), *self.options)

    def operands(self, size: Any) -> list[Shaped | None]:
        """What the operands are like."""
        return [
            like
            if like is None or line is None
            else Shaped((getattr(size, line), *like.shape), like.dtype)
            for like, line in zip(self.likes, self.lines)
        ]

    def _fits(self, graph: Graph, operands: Sequence[Maybe]) -> bool:
        """Whether these are as many lines as the graph has, on its device."""
        return all(
            one is None
            or (
                one.get_device() == graph.index
                and (line is None or one.shape[:1] == (getattr(graph, line),))
            )
            for one, line in zip(operands, self.lines)
        )

    def _found(self, place: Place, is_backward: bool) -> OpGraph:
        rowptr, colind, perm, rows, cols, _ = place
        if colind is None:
            if finder is None:
                raise RuntimeError("warploom: an op over an edge_index needs `import warploom.pyg`")
            return finder(self, rowptr, rows, cols, is_backward)
        assert rowptr is not None
        cols = rows if self.to_source else cols
        graph = find(rowptr, colind, cols)
        if graph.perm is not perm:
            graph = Graph(rowptr, colind, cols=cols, perm=perm, once=True)
        graph = graph.t() if self.to_source else graph
        order = graph.edge_order() if self.operation.by_edges else None
        if order is None:
            return OpGraph(graph)
        return OpGraph(graph, None, partial(graph.order_edges, order=order))

    def find(
        self, place: Place, numbers: Numbers, is_backward: bool, operands: Sequence[Maybe] = ()
    ) -> Run:
        """What computes the results for these edges. operands: of the forward pass, which checks
        them."""
        found = self._found(place, is_backward)
        graph, edges = found.graph, place.edges
        arrange = found.arrange(self.lines, self.likes)
        product = graph._products.get(self.text)
        if product is None or not self._fits(graph, operands):
            if not is_backward:
                given = operands if arrange is None else arrange(operands)
                self.operation.check(graph, given, *self.options)
            product = graph._products[self.text] = self.product(graph)
        bind = self._bind_backward if is_backward else self._bind_forward
        run = bind(found, product, arrange, numbers)
        last = _Bound(None, place.rows, place.cols, numbers, found, run)
        if edges is None:
            self._last[is_backward] = last
        elif place.colind is None and not graph.once and not edges.is_inference():
            self._last[is_backward] = last._replace(edges=TensorState(edges, self._forget))
        return run

    def differentiable(
        self, place: Place, numbers: Numbers, x: Any, kept: Sequence[Maybe]
    ) -> Sequence[Maybe] | None:
        """Gradients that have gradients of their own, of operands that are as the graph has them;
        None where there are none."""
        found = self._found(place, True)
        graph = found.graph
        if found.order is not None or found.values is not None or self.draws:
            return None
        product = graph._products.get(self.text) or self.product(graph)
        return product.differentiable(graph, x, kept, (*numbers[0], numbers[1]), self.needs)  # type: ignore[no-any-return]

    def _bind_forward(
        self, found: OpGraph, product: Any, arrange: Arrange | None, given: Numbers
    ) -> Run:
        """What computes the results of operands."""
        graph, needs, numbers = found.graph, self.needs, (*given[0], given[1])
        if not self.draws:
            if found.prepared is None:
                return product.bind(graph, numbers, needs, arrange)  # type: ignore[no-any-return]
            bound: list[Any] = []  # made in `found.run`, as that makes plans

            def run_bound(*operands: Maybe) -> list[Tensor]:
                bound[:] = bound or [product.bind(graph, numbers, needs, arrange)]
                return bound[0](*operands)  # type: ignore[no-any-return]

            return lambda *operands: found.run(self.text, lambda: run_bound(*operands))

        def run(*operands: Maybe) -> list[Tensor]:
            given = operands if arrange is None else arrange(operands)
            seed = torch.randint(1, 2**62, ())
            drawn = *numbers[:-1], int(seed)
            made = found.run(self.text, lambda: product.run_as_declared(graph, given, drawn, needs))
            return [*made, seed]

        return run

    def _bind_backward(
        self, found: OpGraph, product: Any, arrange: Arrange | None, given: Numbers
    ) -> Run:
        """What computes the gradients that are needed, of the result's and of what was kept."""
        graph, needs, lines, numbers = found.graph, self.needs, self.lines, (*given[0], given[1])
        of_edges = any(need and line == "nnz" for need, line in zip(needs, lines))
        restores = of_edges and found.order is not None
        if not restores and not self.draws and found.prepared is None:
            bound = product.bind_gradients(graph, numbers, needs, arrange)
            if bound is not None:
                return bound  # type: ignore[no-any-return]
        key, count, draws = (self.text, "backward"), len(lines), self.draws

        def run(x: Any, kept: Sequence[Maybe]) -> list[Tensor]:
            used = numbers
            if draws:
                *kept, seed = kept
                used = *numbers[:-1], int(seed)  # type: ignore[arg-type]

            def compute() -> list[Tensor]:
                saved = kept
                if kept and arrange is not None:
                    saved = [*arrange(kept[:count]), *kept[count:]]
                made: Sequence[Maybe] = product.gradients(graph, x, saved, used, needs)
                if restores:
                    made = found.restored(made, lines)
                return [one for one, need in zip(made, needs) if need and one is not None]

            return compute() if found.prepared is None else found.run(key, compute)

        return run

    def _forget(self, edges: Any) -> None:
        self._last = [
            None if last and last.edges and last.edges.tensor is edges else last
            for last in self._last
        ]

    def last(
        self, edges: Maybe, rows: int, cols: int, numbers: Numbers, is_backward: bool
    ) -> Run | None:
        """What computed the results for these very edges and numbers before."""
        last = self._last[is_backward]
        if (
            last is None
            or last.rows != rows
            or last.cols != cols
            or last.numbers != numbers
            or (last.edges is None) != (edges is None)
        ):
            return None
        state = last.edges
        if state is None or edges is None:
            return last.run
        return last.run if state.is_of(edges, last) else None


def read(text: str) -> Call:
    """The call that a text describes."""
    call = calls.get(text)
    if call is None:
        call = calls[text] = Call(text)
    return call


# ---- edge lists ---------------------------------------------------------------------------------


_called: set[str] = set()  # ops that code of inductor calls directly


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _write(*parts: Any) -> str:
    return repr(parts)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _prepare(name: str) -> None:
    """Let the code that is compiled now call the functions of the ops of this name."""
    if not is_inductor():
        return
    for op in (name, f"{name}_backward"):
        if op not in _called:
            _called.add(op)
            call_directly(getattr(torch.ops.warploom, op).default, f"torch.ops.warploom.run_{op}")


class EdgeList(Graph):
    """A graph in code that is traced, as an op gets it.

    where: the first three of a Place.
    key, how, to_source, site: as of a Call.
    has_values: whether the edges have their own values.
    """

    def __init__(
        self, where: tuple[Maybe, Maybe, Maybe], size: tuple[int, int, int], device: torch.device,
        key: tuple[str, ...], how: str, to_source: bool, site: int, has_values: bool,
    ) -> None:  # fmt: skip
        self.rows, self.cols, self.nnz = size
        self.values = self.perm = None
        self._where = where
        self._device = device
        self._fixed = key, how, to_source, site
        self._has_values = has_values

    @classmethod
    def of(cls, graph: Graph, transpose: bool = False) -> EdgeList:
        """A graph, or its transpose."""
        where = graph.rowptr, graph.colind, graph.perm
        rows, cols = (graph.cols, graph.rows) if transpose else (graph.rows, graph.cols)
        return cls(where, (rows, cols, graph.nnz), graph.device, (), "", transpose, 0, False)

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self._device

    def call(
        self, operation: Any, operands: Sequence[Maybe], options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Sequence[Tensor]:  # fmt: skip
        """The results of an operation by its registered op."""
        likes: list[Any] = []
        needs = []
        for one, line in zip(operands, operation.lines_of(options)):
            needs.append(torch.is_grad_enabled() and one is not None and one.requires_grad)
            if one is not None:
                shape = one.shape if line is None else one.shape[1:]
                # len(range(n)) is a plain number also where the code is compiled for all n.
                fixed = tuple([len(range(extent)) for extent in shape])
                likes.append((fixed, str(one.dtype)[6:]))
            elif line == "nnz" and self._has_values:
                likes.append(((), str(operands[0].dtype)[6:]))  # type: ignore[union-attr]
            else:
                likes.append(None)
        draws = len(numbers) > 0 and numbers[-1] is None
        name = operation.name
        text = _write(name, *self._fixed, tuple(options), draws, tuple(needs), tuple(likes))
        if torch.compiler.is_dynamo_compiling():
            _prepare(name)
        seed = numbers[-1] if len(numbers) > 0 and not draws else 0
        how = text, [float(number) for number in numbers[:-1]], seed
        given = (list(operands),) if operation.operands is None else operands
        op = getattr(torch.ops.warploom, name)
        made = op(*self._where, self.rows, self.cols, self.nnz, *how, *given)
        return made  # type: ignore[no-any-return]
