"""`message` as registered ops, for torch.compile and torch.export; see _ops and _edges.

Its texts hold what describes a call: `names` the operands ("b:,gate:row,s": tensors with their
places, which are empty for b, e and the like, then numbers), `reduce` the reductions without
repeats. With `needs_gradient` the op also returns what gradients read, which `_split` takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from warploom.torch import _edges, _ops
from warploom.torch._graph import Graph, find
from warploom.torch._message import Kept, Maybe, Product, Tensor, prepare
from warploom.torch._message_parts import (
    COMPOSED,
    KEPT,
    SEED,
    Parts,
    Value,
    describe,
    describe_likes,
)
from warploom.torch._ops import Like, Needs, Shape, Size, _fake, _library, _op, ops
from warploom.torch._plan import accumulator, edge_shape

_POSITIONED = ("max", "min")
_CALL = (
    "Tensor rowptr, Tensor colind, Tensor? perm, SymInt cols, Tensor[] tensors, float[] numbers,"
    " str names, str expression, str reduce, SymInt heads, bool transpose, bool has_own_values,"
    " float dropout, SymInt seed"
)
for _schema in (
    f"message({_CALL}, bool needs_gradient) -> Tensor[]",
    f"message_backward({_CALL}, Tensor?[] upstream, Tensor[] positions, Tensor? mean,"
    " Tensor? root, bool[] needs) -> Tensor[]",
):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]


class _Call(NamedTuple):
    """The arguments that both ops have."""

    rowptr: Tensor
    colind: Tensor
    perm: Maybe
    cols: int
    tensors: list[Tensor]
    numbers: list[float]
    names: str
    expression: str
    reduce: str
    heads: int
    transpose: bool
    has_own_values: bool
    dropout: float
    seed: int

    @property
    def reductions(self) -> tuple[str, ...]:
        return tuple(self.reduce.split(","))

    def given(self) -> dict[str, Value]:
        """The operands by name, as `message` takes them."""
        given: dict[str, Value] = {}
        names = self.names.split(",") if self.names else []
        for text, value in zip(names, (*self.tensors, *self.numbers)):
            name, _, place = text.partition(":")
            given[name] = (place, value) if place else value  # type: ignore[assignment]
        return given

    def product(self) -> tuple[Graph, Product, dict[str, float]]:
        """The graph that is walked, the product, and the numbers."""
        graph = find(self.rowptr, self.colind, self.cols)
        if graph.perm is not self.perm:
            graph = Graph(self.rowptr, self.colind, cols=self.cols, perm=self.perm, once=True)
        graph = graph.t() if self.transpose else graph
        product, _, numbers = prepare(
            graph, self.expression, self.reductions, self.heads or None, self.transpose,
            self.given(), self.has_own_values, False,
        )  # fmt: skip
        if self.dropout:
            numbers[KEPT], numbers[SEED] = self.dropout, self.seed
        return graph, product, numbers

    def parts(self) -> Parts:
        """What the call is, of tensors without memory."""
        rowptr, cols = self.rowptr, self.cols
        if self.transpose:
            rowptr, cols = rowptr.new_empty(cols + 1), rowptr.shape[0] - 1
        return describe(
            Graph(rowptr, self.colind, cols=cols, once=True), self.expression, self.reductions,
            self.heads or None, self.transpose, self.given(),
        )  # fmt: skip


_TENSORS, _TEXTS = _Call._fields.index("tensors"), _Call._fields.index("names")


def _has_own_mean(reductions: tuple[str, ...]) -> bool:
    """Whether the mean of which "var" and "std" are made is no result itself."""
    return "mean" not in reductions and any(reduce in COMPOSED for reduce in reductions)


def _split(
    reductions: tuple[str, ...], outputs: list[Tensor]
) -> tuple[list[Tensor], list[Tensor], Maybe, Maybe]:
    """Of the outputs for gradients: those that are no results, positions, mean and root. With
    "softmax" the log of its sums and the result stand behind the positions.
    """
    by = dict(zip(reductions, outputs))
    extra = outputs[len(reductions) :]
    positions = extra[: sum(reduce in _POSITIONED for reduce in reductions)]
    mean = extra[len(positions)] if _has_own_mean(reductions) else by.get("mean")
    is_read = any(reduce in COMPOSED for reduce in reductions)
    if "softmax" in by:
        positions = [*positions, extra[-1], by["softmax"]]
    return extra, positions, mean if is_read else None, by.get("std")


def _run(
    graph: Graph,
    product: Product,
    given: dict[str, Tensor],
    numbers: dict[str, float],
    reductions: tuple[str, ...],
) -> list[Tensor]:
    """The outputs for gradients, which `_split` takes apart."""
    made, positions = product.walk(graph, True).run(graph, given, numbers)
    outputs = product.compose(graph, made) + [p for p in positions if p is not None]
    if product.mean is not None and _has_own_mean(reductions):
        outputs.append(made[product.mean])
    if "softmax" in reductions:
        outputs.append(made[0])
    return outputs


def _shapes(
    parts: Parts, reductions: tuple[str, ...], rows: int, nnz: int, needs_gradient: bool
) -> list[Shape]:
    """Shapes and types of the outputs."""
    shapes = {"edge": (nnz, *parts.width), "edge_sum": edge_shape(nnz, parts.heads)}
    of_rows = (rows, *parts.width)
    outputs = [(shapes.get(reduce, of_rows), parts.dtype) for reduce in reductions]
    if not needs_gradient:
        return outputs
    positions = torch.int32 if nnz < 2**31 else torch.int64
    outputs += [(of_rows, positions) for reduce in reductions if reduce in _POSITIONED]
    if _has_own_mean(reductions):
        outputs.append((of_rows, parts.dtype))
    if "softmax" in reductions:
        outputs.append(((rows, parts.heads), accumulator(parts.dtype)))
    return outputs


def _kept(product: Product, positions: Sequence[Maybe], mean: Maybe, root: Maybe) -> Kept:
    """What `_split` gave, as the gradients take it."""
    winners = iter(positions)
    kinds = [kind for kind, _ in product.parts.results]
    return Kept(
        [next(winners) if kind in _POSITIONED else None for kind in kinds],
        mean,
        root,
        dict(zip(product.weighed, winners)),
    )


@_op
def _message(*arguments: Any) -> list[Tensor]:
    *rest, needs_gradient = arguments
    call = _Call(*rest)
    graph, product, numbers = call.product()
    if not needs_gradient:
        with torch.no_grad():
            return list(product.compute(graph, call.tensors, numbers))
    given = product.in_csr_order(graph, dict(zip(product.names, call.tensors)))
    return _run(graph, product, given, numbers, call.reductions)


@_fake
def _message_fake(*arguments: Any) -> list[Tensor]:
    *rest, needs_gradient = arguments
    call = _Call(*rest)
    rows = call.cols if call.transpose else call.rowptr.shape[0] - 1
    made = _shapes(call.parts(), call.reductions, rows, call.colind.shape[0], needs_gradient)
    return [call.rowptr.new_empty(shape, dtype=dtype) for shape, dtype in made]


@_op
def _message_backward(*arguments: Any) -> list[Tensor]:
    *rest, upstream, positions, mean, root, needs = arguments
    call = _Call(*rest)
    graph, product, numbers = call.product()
    needs, kept = tuple(needs), _kept(product, positions, mean, root)
    read = product.read_by_gradients(graph, needs)
    given = {name: t for name, t in zip(product.names, call.tensors) if name in read}
    given = product.in_csr_order(graph, given)
    likes = [(t.shape, t.dtype) for t in call.tensors]
    found = product.backward(graph, given, numbers, needs, upstream, kept, likes)
    return [
        t.new_zeros(t.shape) if gradient is None else gradient
        for t, gradient, is_needed in zip(call.tensors, found, needs)
        if is_needed
    ]


@_fake
def _message_backward_fake(*arguments: Any) -> list[Tensor]:
    needs = arguments[-1]
    tensors = _Call(*arguments[: len(_Call._fields)]).tensors
    return [t.new_empty(t.shape) for t, is_needed in zip(tensors, needs) if is_needed]


def _setup(ctx: Any, inputs: Any, output: list[Tensor]) -> None:
    *rest, needs_gradient = inputs
    call = _Call(*rest)
    ctx.has_gradient = needs_gradient
    if not needs_gradient:
        return
    extra, positions, mean, root = _split(call.reductions, output)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*extra)
    ctx.texts = rest[_TEXTS:]
    ctx.cols, ctx.numbers, ctx.count = call.cols, call.numbers, len(call.reductions)
    ctx.save_for_backward(
        call.rowptr, call.colind, call.perm, mean, root, *call.tensors, *positions
    )  # fmt: skip


def _gradients(ctx: Any, upstream: list[Maybe]) -> tuple[Any, ...]:
    if not ctx.has_gradient:
        raise RuntimeError("warploom: message: call the op with needs_gradient for a backward pass")
    needs = ctx.needs_input_grad[_TENSORS]
    rowptr, colind, perm, mean, root, *saved = ctx.saved_tensors
    tensors, positions = saved[: len(needs)], saved[len(needs) :]
    upstream = upstream[: ctx.count]
    found: list[Maybe] = [None] * len(needs)
    if any(gradient is not None for gradient in upstream):
        made = ops.message_backward(
            rowptr, colind, perm, ctx.cols, tensors, ctx.numbers, *ctx.texts, upstream, positions,
            mean, root, needs,
        )  # fmt: skip
        of_needed = iter(made)
        found = [next(of_needed) if is_needed else None for is_needed in needs]
    gradients: list[Any] = [None] * (len(_Call._fields) + 1)
    gradients[_TENSORS] = found
    if not ctx.numbers:
        gradients[_TENSORS + 1] = []  # PyTorch takes an empty list for one of tensors
    return tuple(gradients)


torch.library.register_autograd("warploom::message", _gradients, setup_context=_setup, lib=_library)


# ---- over edges ---------------------------------------------------------------------------------

_LINES = {"row": "rows", "column": "cols", "edge": "nnz"}
_NOWHERE: Any = Size(0, 0, 0, torch.int32)  # what gradients read is the same for all graphs
_Places = tuple[tuple[str, str], ...]


class _OfEdges(_ops.Product):
    """A message of operands that are in CSR order. places: name and place of each."""

    __slots__ = ("_lines", "_message", "_reductions", "_scalars")

    restores = True

    def __init__(
        self, operands: Sequence[Like], expression: str, reductions: tuple[str, ...], heads: int,
        places: _Places, scalars: tuple[str, ...], deterministic: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        parts = describe_likes(expression, reductions, heads, places, operands, scalars)
        self._message = Product(parts, False, deterministic, ())
        self._reductions, self._scalars = reductions, scalars
        self._lines = [(_LINES.get(place), one) for (_, place), one in zip(places, operands)]
        self.results = len(reductions)

    def _given(self, graph: Graph, operands: Sequence[Maybe]) -> dict[str, Tensor]:
        names = self._message.names
        given = {name: one for name, one in zip(names, operands) if one is not None}
        return self._message.in_csr_order(graph, given, are_ordered=True)

    def run(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[Tensor, ...]:
        """See _ops.Product."""
        product, known = self._message, dict(zip(self._scalars, numbers))
        given = self._given(graph, operands)
        if True in needs:
            return tuple(_run(graph, product, given, known, self._reductions))
        made, _ = product.walk(graph, False).run(graph, given, known)
        return tuple(product.compose(graph, made))

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        """See _ops.Product."""
        parts = self._message.parts
        return _shapes(parts, self._reductions, size.rows, size.nnz, True in needs)

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """See _ops.Product: the operands that gradients read, mean, root, and positions."""
        if True not in needs:
            return ()
        read = self._message.read_by_gradients(_NOWHERE, needs)
        _, positions, mean, root = _split(self._reductions, list(made))
        names = self._message.names
        operands = [one if name in read else None for name, one in zip(names, operands)]
        return *operands, mean, root, *positions

    def gradients(
        self, graph: Graph, x: Any, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[Maybe, ...]:
        """See _ops.Product. x: the gradients by the results."""
        product = self._message
        count = len(self._lines)
        given = self._given(graph, kept[:count])
        mean, root, *positions = kept[count:]
        likes = []
        for line, one in self._lines:
            shape = one.shape if line is None else (getattr(graph, line), *one.shape[1:])
            likes.append((torch.Size(shape), one.dtype))
        found = product.backward(
            graph, given, dict(zip(self._scalars, numbers)), needs, x,
            _kept(product, positions, mean, root), likes,
        )  # fmt: skip
        return tuple(
            torch.zeros(shape, dtype=dtype, device=graph.device)
            if is_needed and gradient is None
            else gradient
            for gradient, is_needed, (shape, dtype) in zip(found, needs, likes)
        )


class _Operation(_edges.Listed):
    """`message` of a list of operands; its options are those of _OfEdges."""

    name = "message"
    make = _OfEdges

    @staticmethod
    def lines_of(options: tuple[Any, ...]) -> tuple[str | None, ...]:
        """See _edges.Listed."""
        _, _, _, places, *_ = options
        return tuple(_LINES.get(place) for _, place in places)

    @staticmethod
    def check(graph: Graph, operands: Sequence[Tensor], *options: Any) -> None:
        """See _edges.Listed."""
        expression, reductions, heads, places, scalars, _ = options
        given: dict[str, Value] = dict.fromkeys(scalars, 0.0)
        given.update((name, (place, one)) for (name, place), one in zip(places, operands))
        describe(graph, expression, reductions, heads, False, given)


_edges.register(_Operation())
