"""Registered ops that get a list of edges, for layers of PyG in compiled and exported code.

NAME_of_edges and NAME_of_edges_backward of an operation find their graph when they run, so the
graph is sorted once and kept, and compiled code has neither its tensors nor their sizes. All that
is fixed when the code is compiled is one text, which is read once, because each argument of an op
costs time on each call. `warploom.pyg` says how a graph is found.
"""

from __future__ import annotations

import ast
import atexit
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional
from weakref import ref

import torch

from warploom.torch._graph import Graph
from warploom.torch._internals import call_directly, is_dispatched, is_inductor
from warploom.torch._ops import (
    Like,
    Maybe,
    Operation,
    Product,
    Size,
    Tensor,
    _define,
    _fake,
    _library,
    _op,
)
from warploom.torch._plan import index_type, is_captured

Lines = Sequence[Optional[str]]
Arrange = Callable[[Sequence[Maybe]], "list[Maybe]"]
_operations: dict[str, Operation | Listed] = {}
_calls: dict[str, Call] = {}  # by text
# Graphs end while the modules that free them are still there.
atexit.register(_calls.clear)


class Listed:
    """An operation whose op gets one list of operands and has gradients of several results.

    make, check: as of Operation. The results of such a Product count as differentiable.
    """

    name: str
    make: Callable[..., Product]
    check: Callable[..., None]

    @staticmethod
    def lines_of(options: tuple[Any, ...]) -> tuple[str | None, ...]:
        """The lines of the operands of a call with these options."""
        raise NotImplementedError


class Found(NamedTuple):
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
finder: Callable[[Call, Maybe, int, int, bool], Found] | None = None
# Calls that ran, by their keys; `warploom.pyg` puts its own here.
counts: Counter[Any] = Counter()


class _Last(NamedTuple):
    """The edges that a Call got last, with their graph and what computes its results."""

    edges: Callable[[], Maybe]
    version: int
    rows: int
    cols: int
    found: Found
    run: Callable[..., list[Tensor]]


class Call:
    """What an op of compiled code does, as its text says.

    key: under which it is counted.
    how: what is added to the edges, and whether they have their own values.
    site: the place in the compiled code, so that layers have texts of their own; of a graph that
        this code holds, its number.
    draws: whether each call draws a seed, the last of its numbers, and gives it as its last result.
    """

    __slots__ = ("_last", "draws", "how", "key", "likes", "lines", "needs", "numbers", "operation",
                 "options", "site", "text", "to_source")  # fmt: skip

    def __init__(self, text: str) -> None:
        name, key, self.how, self.to_source, self.site, *rest = ast.literal_eval(text)
        self.text = text
        self.operation = _operations[name]
        self.key = key
        self.options, self.numbers, self.needs, likes = rest
        self.lines = self.operation.lines_of(self.options)
        self.likes = [
            None if like is None else Like(like[0], getattr(torch, like[1])) for like in likes
        ]
        self.draws = None in self.numbers
        self._last: list[_Last | None] = [None, None]

    def product(self, size: Any) -> Product:
        """The product for a graph of this size, which is not checked."""
        return self.operation.make(self.operands(size), *self.options)

    def operands(self, size: Any) -> list[Like | None]:
        """What the operands are like."""
        return [
            like
            if like is None or line is None
            else Like((getattr(size, line), *like.shape), like.dtype)
            for like, line in zip(self.likes, self.lines)
        ]

    def find(
        self, edges: Maybe, rows: int, cols: int, is_backward: bool, operands: Sequence[Maybe] = ()
    ) -> Callable[..., list[Tensor]]:
        """What computes the results for these edges. operands: of the forward pass, which checks
        them."""
        if finder is None:
            raise RuntimeError("warploom: an op over an edge_index needs `import warploom.pyg`")
        found = finder(self, edges, rows, cols, is_backward)
        graph = found.graph
        arrange = found.arrange(self.lines, self.likes)
        product = graph._products.get(self.text)
        if product is None:
            if not is_backward:
                given = operands if arrange is None else arrange(operands)
                self.operation.check(graph, given, *self.options)
            product = graph._products[self.text] = self.product(graph)
        bind = self._bind_backward if is_backward else self._bind_forward
        run = bind(found, product, arrange)
        version = 0 if edges is None else edges._version
        last = _Last(_no_edges, version, rows, cols, found, run)
        if edges is not None and not graph.once and not edges.is_inference():
            self._last[is_backward] = last._replace(edges=ref(edges, self._forget))
        elif edges is None:
            self._last[is_backward] = last
        return run

    def _bind_forward(
        self, found: Found, product: Product, arrange: Arrange | None
    ) -> Callable[..., list[Tensor]]:
        """What computes the results of operands."""
        graph, needs, numbers = found.graph, self.needs, self.numbers
        if not self.draws:
            if found.prepared is None:
                return product.bind(graph, numbers, needs, arrange)
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
        self, found: Found, product: Product, arrange: Arrange | None
    ) -> Callable[..., list[Tensor]]:
        """What computes the gradients that are needed, of the result's and of what was kept."""
        graph, needs, numbers, lines = found.graph, self.needs, self.numbers, self.lines
        of_edges = any(need and line == "nnz" for need, line in zip(needs, lines))
        restores = of_edges and found.order is not None and not product.restores
        if not restores and not self.draws and found.prepared is None:
            bound = product.bind_gradients(graph, numbers, needs, arrange)
            if bound is not None:
                return bound
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
            None if last is not None and last.edges is edges else last for last in self._last
        ]

    def last(
        self, edges: Maybe, rows: int, cols: int, is_backward: bool
    ) -> Callable[..., list[Tensor]] | None:
        """What computed the results for these very edges before."""
        last = self._last[is_backward]
        if (
            last is not None
            and last.edges() is edges
            and (edges is None or last.version == edges._version)
            and last.rows == rows
            and last.cols == cols
        ):
            return last.run
        return None


def _no_edges() -> None:
    return None


def _call(text: str) -> Call:
    call = _calls.get(text)
    if call is None:
        call = _calls[text] = Call(text)
    return call


# ---- the ops ------------------------------------------------------------------------------------

_GRAPH = "Tensor? edges, SymInt rows, SymInt cols, SymInt nnz, str call"
_GIVEN = 5


def _forward(edges: Maybe, rows: int, cols: int, nnz: int, text: str, *operands: Any) -> Any:
    return _forward_list(edges, rows, cols, nnz, text, operands)


def _forward_list(
    edges: Maybe, rows: int, cols: int, nnz: int, text: str, operands: Sequence[Maybe]
) -> Any:
    call = _calls.get(text) or _call(text)
    counts[call.key] += 1
    run = call.last(edges, rows, cols, False) or call.find(edges, rows, cols, False, operands)
    return run(*operands)


def _forward_fake(edges: Maybe, rows: int, cols: int, nnz: int, text: str, *operands: Any) -> Any:
    call, size = _call(text), Size(rows, cols, nnz, index_type(rows, cols, nnz))
    made = call.product(size).outputs(size, call.needs)
    outputs = [operands[0].new_empty(shape, dtype=dtype) for shape, dtype in made]
    return [*outputs, torch.empty((), dtype=torch.int64)] if call.draws else outputs


def _backward(
    edges: Maybe, rows: int, cols: int, nnz: int, text: str, x: Any, kept: Sequence[Maybe]
) -> list[Tensor]:
    call = _calls.get(text) or _call(text)
    run = call.last(edges, rows, cols, True) or call.find(edges, rows, cols, True)
    return run(x, kept)


def _backward_fake(
    edges: Maybe, rows: int, cols: int, nnz: int, text: str, x: Any, kept: Sequence[Maybe]
) -> list[Tensor]:
    call, size = _call(text), Size(rows, cols, nnz, index_type(rows, cols, nnz))
    if not isinstance(x, Tensor):
        x = next(one for one in x if one is not None)
    return [
        x.new_empty(like.shape, dtype=like.dtype)
        for like, is_needed in zip(call.operands(size), call.needs)
        if is_needed and like is not None
    ]


def _setup(ctx: Any, inputs: Any, output: list[Tensor]) -> None:
    edges, ctx.rows, ctx.cols, ctx.nnz, ctx.text, *operands = inputs
    call = _call(ctx.text)
    if isinstance(call.operation, Listed):
        (operands,) = operands
        ctx.set_materialize_grads(False)
    product = call.product(Size(ctx.rows, ctx.cols, ctx.nnz, torch.int32))
    ctx.results = product.results
    ctx.mark_non_differentiable(*output[ctx.results :])
    seed = output[len(output) - call.draws :]
    made = output[: len(output) - call.draws]
    ctx.save_for_backward(edges, *product.kept(operands, made, call.needs), *seed)


def _gradients(ctx: Any, upstream: list[Maybe]) -> tuple[Any, ...]:
    call = _call(ctx.text)
    needs, name = call.needs, call.operation.name
    is_listed = isinstance(call.operation, Listed)
    asked = ctx.needs_input_grad[_GIVEN] if is_listed else ctx.needs_input_grad[_GIVEN:]
    if any(is_asked and not is_needed for is_asked, is_needed in zip(asked, needs)):
        raise RuntimeError(f"warploom: {name}: the op was compiled without this gradient")
    edges, *kept = ctx.saved_tensors
    backward = getattr(torch.ops.warploom, f"{name}_of_edges_backward")
    x = upstream[: ctx.results] if is_listed else upstream[0]
    made = iter(backward(edges, ctx.rows, ctx.cols, ctx.nnz, ctx.text, x, kept))
    found = [next(made) if is_needed else None for is_needed in needs]
    return (*(None,) * _GIVEN, *([found] if is_listed else found))


class _Direct:
    """Registers what PyTorch makes for autograd, without a second dispatch where compiled code
    runs: that records nothing itself."""

    def __init__(self, forward: Any, is_listed: bool) -> None:
        self._forward = forward
        self._is_listed = is_listed

    def impl(self, name: str, recorded: Any, key: str, *, with_keyset: bool) -> None:
        forward, is_listed = self._forward, self._is_listed

        def call(keyset: Any, *arguments: Any) -> Any:
            first = arguments[_GIVEN][0] if is_listed else arguments[_GIVEN]
            if torch.is_grad_enabled() or is_dispatched(first):
                return recorded(keyset, *arguments)
            return forward(*arguments)

        _library.impl(name, call, key, with_keyset=with_keyset)  # type: ignore[no-untyped-call]


def _listed(function: Any) -> Any:
    """The function of several operands, for one list of them."""
    return lambda *given: function(*given[:_GIVEN], *given[_GIVEN])


def register(operation: Operation | Listed) -> None:
    """Register the ops of an operation, whose first operand is a tensor. Those of edges are in
    the order of these."""
    name = f"{operation.name}_of_edges"
    _operations[operation.name] = operation
    forward: Any = _forward
    forward_fake: Any = _forward_fake
    is_listed = isinstance(operation, Listed)
    if isinstance(operation, Listed):
        forward, forward_fake = _forward_list, _listed(forward_fake)
        operands, x = "Tensor[] operands", "Tensor?[] x"
    else:
        operands, x = operation.operands, "Tensor x"
    for ending, schema, function, fake in (
        ("", operands, forward, forward_fake),
        ("_backward", f"{x}, Tensor?[] kept", _backward, _backward_fake),
    ):
        _define(
            f"{name}{ending}({_GRAPH}, {schema}) -> Tensor[]", torch.Tag.nondeterministic_seeded
        )
        _op(function, name + ending)
        _fake(fake, name + ending)
        setattr(torch.ops.warploom, f"run_{name}{ending}", function)
    direct: Any = _Direct(forward, is_listed)
    torch.library.register_autograd(
        f"warploom::{name}", _gradients, setup_context=_setup, lib=direct
    )


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
    """A graph in code that is traced, known by its edges.

    edges: (2, edges), or None, where `site` is the number of a graph that compiled code holds.
    key, how, to_source, site: as of a Call.
    has_values: whether the edges have their own values.
    """

    def __init__(
        self, edges: Maybe, size: tuple[int, int, int], device: torch.device, key: tuple[str, str],
        how: str, to_source: bool, site: int, has_values: bool,
    ) -> None:  # fmt: skip
        self.rows, self.cols, self.nnz = size
        self.values = self.perm = None
        self._edges = edges
        self._device = device
        self._fixed = key, how, to_source, site
        self._has_values = has_values

    @property
    def device(self) -> torch.device:
        """Where the edges are."""
        return self._device

    def call_op(
        self, operation: Operation, operands: Sequence[Maybe], options: tuple[Any, ...],
        numbers: tuple[Any, ...], needs: Sequence[bool],
    ) -> Tensor:  # fmt: skip
        """See Graph."""
        made = self._call(
            operation.name, operands, operands, operation.lines, options, numbers, needs
        )
        return made[0]  # type: ignore[no-any-return]

    def call_list(
        self,
        name: str,
        operands: Sequence[Tensor],
        lines: Sequence[str | None],
        options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Any:
        """The results of a Listed operation."""
        needs = [torch.is_grad_enabled() and one.requires_grad for one in operands]
        return self._call(name, (operands,), operands, lines, options, numbers, needs)

    def _call(
        self, name: str, given: Sequence[Any], operands: Sequence[Maybe],
        lines: Sequence[str | None], options: tuple[Any, ...], numbers: tuple[Any, ...],
        needs: Sequence[bool],
    ) -> Any:  # fmt: skip
        """The op's results. given: the operands as its schema has them."""
        likes: list[Any] = []
        for one, line in zip(operands, lines):
            if one is not None:
                shape = one.shape if line is None else one.shape[1:]
                likes.append((tuple([int(extent) for extent in shape]), str(one.dtype)[6:]))
            elif line == "nnz" and self._has_values:
                likes.append(((), str(operands[0].dtype)[6:]))  # type: ignore[union-attr]
            else:
                likes.append(None)
        text = _write(
            name, *self._fixed, tuple(options), tuple(numbers), tuple(needs), tuple(likes)
        )
        name = f"{name}_of_edges"
        if torch.compiler.is_dynamo_compiling():
            _prepare(name)
        op = getattr(torch.ops.warploom, name)
        return op(self._edges, self.rows, self.cols, self.nnz, text, *given)
