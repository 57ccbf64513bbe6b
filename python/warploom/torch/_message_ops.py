"""`message` as a registered op, for torch.compile and torch.export; see _ops.

Its texts hold what describes a call: `names` the operands ("b:,gate:row,s": tensors with their
places, which are empty for b, e and the like, then numbers), `reduce` the reductions without
repeats. With `needs_gradient` the op also returns what gradients read, which `_split` takes apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from warploom.torch._edges import CSR, EDGES, Form, Found, Size
from warploom.torch._graph import Graph, find
from warploom.torch._message import Kept, Maybe, Product, Tensor, prepare
from warploom.torch._message_parts import COMPOSED, Parts, Value, describe
from warploom.torch._ops import ops, register
from warploom.torch._plan import accumulator, edge_shape

_POSITIONED = ("max", "min")
_CALL = (
    "Tensor[] tensors, float[] numbers, str names, str expression, str reduce, SymInt heads,"
    " bool transpose, bool has_own_values"
)
_CSR = CSR._replace(
    schema="Tensor rowptr, Tensor colind, Tensor? perm, SymInt cols",
    tensors=3,
    given=4,
    size=lambda rowptr, colind, perm, cols: CSR.size(rowptr, colind, cols),
    find=lambda rowptr, colind, perm, cols, is_backward: Found(_find(rowptr, colind, perm, cols)),
)


def _find(rowptr: Tensor, colind: Tensor, perm: Maybe, cols: int) -> Graph:
    graph = find(rowptr, colind, cols)
    return graph if graph.perm is perm else Graph(rowptr, colind, cols=cols, perm=perm, once=True)


class _Call(NamedTuple):
    """The arguments that both ops have; `graph` are those of a form."""

    form: Form
    graph: tuple[Any, ...]
    tensors: list[Tensor]
    numbers: list[float]
    names: str
    expression: str
    reduce: str
    heads: int
    transpose: bool
    has_own_values: bool

    @classmethod
    def of(cls, form: Form, arguments: Sequence[Any]) -> tuple[_Call, Sequence[Any]]:
        """The call, and the arguments behind it."""
        end = form.given + len(cls._fields) - 2
        made = cls(form, tuple(arguments[: form.given]), *arguments[form.given : end])
        return made, arguments[end:]

    @property
    def reductions(self) -> tuple[str, ...]:
        return tuple(self.reduce.split(","))

    def operands(self) -> dict[str, Value]:
        """The operands by name, as `message` takes them."""
        given: dict[str, Value] = {}
        names = self.names.split(",") if self.names else []
        for text, value in zip(names, (*self.tensors, *self.numbers)):
            name, _, place = text.partition(":")
            given[name] = (place, value) if place else value  # type: ignore[assignment]
        return given

    def product(self, is_backward: bool) -> tuple[Found, Graph, Product, dict[str, float]]:
        """What was found, the graph that is walked, the product, and the numbers."""
        found = self.form.find(*self.graph, is_backward)
        graph = found.graph.t() if self.transpose else found.graph
        product, _, numbers = prepare(
            graph, self.expression, self.reductions, self.heads or None, self.transpose,
            self.operands(), self.has_own_values, False,
        )  # fmt: skip
        return found, graph, product, numbers

    def size(self) -> Size:
        """That of the graph that is walked."""
        size = self.form.size(*self.graph)
        return size._replace(rows=size.cols, cols=size.rows) if self.transpose else size

    def parts(self) -> Parts:
        """What the call is, of tensors without memory."""
        size = self.size()
        graph: Any = SimpleNamespace(
            rows=size.rows, cols=size.cols, nnz=size.nnz, device=self.tensors[0].device
        )
        return describe(
            graph, self.expression, self.reductions, self.heads or None, self.transpose,
            self.operands(),
        )  # fmt: skip


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


def _message(form: Form, *arguments: Any) -> list[Tensor]:
    call, (needs_gradient,) = _Call.of(form, arguments)
    found, graph, product, numbers = call.product(False)

    def run() -> list[Tensor]:
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

    return found.run((product, needs_gradient), run)  # type: ignore[no-any-return]


def _message_fake(form: Form, *arguments: Any) -> list[Tensor]:
    call, (needs_gradient,) = _Call.of(form, arguments)
    parts, size = call.parts(), call.size()
    nnz, of_rows = size.nnz, (size.rows, *parts.width)
    shapes = {"edge": (nnz, *parts.width), "edge_sum": edge_shape(nnz, parts.heads)}

    def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return call.tensors[0].new_empty(shape, dtype=dtype)

    outputs = [empty(shapes.get(reduce, of_rows), parts.dtype) for reduce in call.reductions]
    if not needs_gradient:
        return outputs
    positions = torch.int32 if nnz < 2**31 else torch.int64
    outputs += [empty(of_rows, positions) for reduce in call.reductions if reduce in _POSITIONED]
    if _has_own_mean(call.reductions):
        outputs.append(empty(of_rows, parts.dtype))
    if "softmax" in call.reductions:
        outputs.append(empty((size.rows, parts.heads), accumulator(parts.dtype)))
    return outputs


def _message_backward(form: Form, *arguments: Any) -> list[Tensor]:
    call, (upstream, positions, mean, root, needs) = _Call.of(form, arguments)
    source, graph, product, numbers = call.product(True)
    needs = tuple(needs)

    def run() -> list[Maybe]:
        winners = iter(positions)
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
        return product.backward(graph, given, numbers, needs, upstream, kept, likes)

    present = tuple(gradient is not None for gradient in upstream)
    found = source.run((product, needs, present), run)
    return [
        t.new_zeros(t.shape) if gradient is None else gradient
        for t, gradient, is_needed in zip(call.tensors, found, needs)
        if is_needed
    ]


def _message_backward_fake(form: Form, *arguments: Any) -> list[Tensor]:
    call, (*_, needs) = _Call.of(form, arguments)
    return [t.new_empty(t.shape) for t, is_needed in zip(call.tensors, needs) if is_needed]


def _setup(form: Form, ctx: Any, inputs: Any, output: list[Tensor]) -> None:
    call, (needs_gradient,) = _Call.of(form, inputs)
    ctx.has_gradient = needs_gradient
    if not needs_gradient:
        return
    extra, positions, mean, root = _split(call.reductions, output)
    ctx.set_materialize_grads(False)
    ctx.mark_non_differentiable(*extra)
    ctx.graph = call.graph[form.tensors :]
    ctx.numbers, ctx.texts, ctx.count = call.numbers, call[4:], len(call.reductions)
    tensors = call.graph[: form.tensors]
    ctx.save_for_backward(*tensors, mean, root, *call.tensors, *positions)


def _gradients(form: Form, ctx: Any, upstream: list[Maybe]) -> tuple[Any, ...]:
    if not ctx.has_gradient:
        raise RuntimeError("warploom: message: call the op with needs_gradient for a backward pass")
    needs = ctx.needs_input_grad[form.given]
    of_graph, (mean, root, *saved) = (
        ctx.saved_tensors[: form.tensors],
        ctx.saved_tensors[form.tensors :],
    )
    tensors, positions = saved[: len(needs)], saved[len(needs) :]
    upstream = upstream[: ctx.count]
    found: list[Maybe] = [None] * len(needs)
    if any(gradient is not None for gradient in upstream):
        backward = getattr(ops, f"message{form.ending}_backward")
        made = backward(
            *of_graph, *ctx.graph, tensors, ctx.numbers, *ctx.texts, upstream, positions, mean,
            root, needs,
        )  # fmt: skip
        of_needed = iter(made)
        found = [next(of_needed) if is_needed else None for is_needed in needs]
    gradients: list[Any] = [None] * (form.given + len(_Call._fields) - 1)
    gradients[form.given] = found
    if not ctx.numbers:
        gradients[form.given + 1] = []  # PyTorch takes an empty list for one of tensors
    return tuple(gradients)


for _form in (_CSR, EDGES):
    register(
        f"message{_form.ending}",
        f"{_form.schema}, {_CALL}, bool needs_gradient",
        f"{_form.schema}, {_CALL}, Tensor?[] upstream, Tensor[] positions, Tensor? mean,"
        " Tensor? root, bool[] needs",
        *(
            partial(function, _form)
            for function in (
                *(_message, _message_fake, _message_backward, _message_backward_fake),
                *(_setup, _gradients),
            )
        ),
    )
