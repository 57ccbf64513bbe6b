"""`message` as a registered op, for torch.compile and torch.export; see _ops.

Its texts hold what describes a call: `names` the operands ("b:,gate:row,s": tensors with their
places, which are empty for b, e and the like, then numbers), `reduce` the reductions without
repeats. With `needs_gradient` the op also returns what gradients read, which `_split` takes apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from warploom.torch._graph import Graph, find
from warploom.torch._message import Kept, Maybe, Product, Tensor, prepare
from warploom.torch._message_parts import COMPOSED, KEPT, SEED, Parts, Value, describe
from warploom.torch._ops import _fake, _library, _op, ops
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


@_op
def _message(*arguments: Any) -> list[Tensor]:
    *rest, needs_gradient = arguments
    call = _Call(*rest)
    graph, product, numbers = call.product()
    if not needs_gradient:
        with torch.no_grad():
            return list(product.compute(graph, call.tensors, numbers))
    given = product.in_csr_order(graph, dict(zip(product.names, call.tensors)))
    made, positions = product.walk(graph, True).run(graph, given, numbers)
    outputs = product.compose(graph, made) + [p for p in positions if p is not None]
    if product.mean is not None and _has_own_mean(call.reductions):
        outputs.append(made[product.mean])
    if "softmax" in call.reductions:
        outputs.append(made[0])
    return outputs


@_fake
def _message_fake(*arguments: Any) -> list[Tensor]:
    *rest, needs_gradient = arguments
    call = _Call(*rest)
    parts = call.parts()
    nnz = call.colind.shape[0]
    rows = call.cols if call.transpose else call.rowptr.shape[0] - 1
    shapes = {"edge": (nnz, *parts.width), "edge_sum": edge_shape(nnz, parts.heads)}
    of_rows = (rows, *parts.width)

    def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return call.rowptr.new_empty(shape, dtype=dtype)

    outputs = [empty(shapes.get(reduce, of_rows), parts.dtype) for reduce in call.reductions]
    if not needs_gradient:
        return outputs
    positions = torch.int32 if nnz < 2**31 else torch.int64
    outputs += [empty(of_rows, positions) for reduce in call.reductions if reduce in _POSITIONED]
    if _has_own_mean(call.reductions):
        outputs.append(empty(of_rows, parts.dtype))
    if "softmax" in call.reductions:
        outputs.append(empty((rows, parts.heads), accumulator(parts.dtype)))
    return outputs


@_op
def _message_backward(*arguments: Any) -> list[Tensor]:
    *rest, upstream, positions, mean, root, needs = arguments
    call = _Call(*rest)
    graph, product, numbers = call.product()
    needs, winners = tuple(needs), iter(positions)
    kinds = [kind for kind, _ in product.parts.results]
    kept = Kept(
        [next(winners) if kind in _POSITIONED else None for kind in kinds],
        mean,
        root,
        dict(zip(product.weighed, winners)),
    )
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
