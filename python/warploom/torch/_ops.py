"""Differentiable operations, each defined once, for eager mode and for compiled code.

A Product is a checked call of an operation: it computes the result and the gradients. Eager mode
runs it within one autograd function, because the dispatch of a registered op costs more than a
product of a small graph. torch.compile, torch.export and dispatch modes get registered ops, NAME
and NAME_backward, which run the same Product: tensors and plain values in, tensors out. An op finds
the plans of a Graph by the identity of its tensors; other tensors are multiplied as a matrix that
is used once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Optional, Union

import torch

from warploom.torch._graph import Graph, find
from warploom.torch._internals import is_dispatched, quick_apply
from warploom.torch._plan import (
    DENSE_TYPES,
    KeptPlan,
    Launcher,
    OnceKind,
    Request,
    convert_edges,
    index_type,
)

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]
Gradients = tuple[Maybe, ...]
Needs = tuple[bool, ...]
Shape = tuple[tuple[int, ...], torch.dtype]

_A = "Tensor rowptr, Tensor colind, SymInt cols"
_TYPES = tuple(DENSE_TYPES)
_library = torch.library.Library("warploom", "DEF")  # type: ignore[no-untyped-call]
ops = torch.ops.warploom


def _define(schema: str, *tags: torch.Tag) -> None:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, *tags))  # type: ignore[no-untyped-call]


def _op(function: Any, name: str | None = None) -> Any:
    """Register a function under a name, by default its own without the underscore."""
    name = name or function.__name__[1:]
    _library.impl(name, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    return function


def _fake(function: Any, name: str | None = None) -> Any:
    """Register what makes empty results of an op for tracing, by default NAME_fake of NAME."""
    name = name or function.__name__[1 : -len("_fake")]
    torch.library.register_fake(f"warploom::{name}", function, lib=_library)
    return function


# ---- graphs ------------------------------------------------------------------------------

_define("csr_from_edges(Tensor edge_index, SymInt rows, SymInt cols) -> (Tensor, Tensor, Tensor)")


@_op
def _csr_from_edges(edge_index: Tensor, rows: int, cols: int) -> tuple[Tensor, Tensor, Tensor]:
    return convert_edges(edge_index, rows, cols)


@_fake
def _csr_from_edges_fake(edge_index: Tensor, rows: int, cols: int) -> tuple[Tensor, Tensor, Tensor]:
    edges = edge_index.shape[1]
    dtype = index_type(rows, cols, edges)
    rowptr, colind, perm = (
        edge_index.new_empty(count, dtype=dtype) for count in (rows + 1, edges, edges)
    )
    return rowptr, colind, perm


# ---- products ------------------------------------------------------------------------


class Size(NamedTuple):
    """What the shapes and types of results depend on."""

    rows: int
    cols: int
    nnz: int
    indices: torch.dtype


class Like(NamedTuple):
    """What a Product needs to know of an operand, of which there may be no tensor."""

    shape: tuple[int, ...]
    dtype: torch.dtype


Likes = Sequence[Union[Tensor, Like, None]]


class Product:
    """A checked call of an operation of a graph, or of all graphs that are used once.

    It depends on the options, the types of the operands and the shape of their lines. `numbers` are
    those of one call, such as a seed; `needs` says of each operand whether it needs a gradient.
    """

    __slots__ = ("kinds", "request", "results")

    request: Request
    restores = False  # whether results and gradients of edges are in the order of the edge_index

    def __init__(self) -> None:
        self.results = 1  # of what `run` gives
        self.kinds: dict[str, KeptPlan | OnceKind] = {}

    def plan(self, graph: Graph, name: str) -> Launcher:
        """The plan of `request_of(name)`, made at its first use."""
        kind = self.kinds.get(name)
        if kind is None:
            kind = self.kinds[name] = graph.kind(self.request_of(graph, name))
        return kind.of(graph)

    def request_of(self, graph: Graph, name: str) -> Request:
        """What the plan of this name computes."""
        raise NotImplementedError

    def run(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[Tensor, ...]:
        """The result, and with a gradient that is needed what else the gradients read."""
        raise NotImplementedError

    def run_as_declared(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[Tensor, ...]:
        """The same of the types that `outputs` says, for the registered op."""
        return self.run(graph, operands, numbers, needs)

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        """Shapes and types of what `run` gives."""
        raise NotImplementedError

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """What the gradients read, of the operands and of what `run` gave."""
        return *operands, *made

    def gradients(
        self, graph: Graph, x: Tensor, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients:
        """The gradients by the operands, of their shapes and types, where they are needed."""
        raise NotImplementedError

    def bind(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[Tensor]]:
        """`run_as_declared` of operands, for many calls with one graph.

        arrange: puts them into CSR order; None: they are.
        """

        def run(*operands: Maybe) -> list[Tensor]:
            given = operands if arrange is None else arrange(operands)
            return list(self.run_as_declared(graph, given, numbers, needs))

        return run

    def bind_gradients(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[Tensor]] | None:
        """The gradients that are needed, of x and kept operands, for many calls with one graph;
        None where they have no shorter way than `gradients`."""
        return None

    def differentiable(
        self, graph: Graph, x: Tensor, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients | None:
        """The same with gradients of their own; None = there are no second derivatives."""
        return None


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Any, *operands: Maybe) -> Tensor:
        ctx.call = call
        graph, product, numbers = call
        needs = ctx.needs_input_grad[1:]
        made = product.run(graph, operands, numbers, needs)
        kept = product.kept(operands, made, needs)
        if kept:
            ctx.save_for_backward(*kept)
        return made[0]  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, x: Tensor) -> tuple[Maybe, ...]:
        graph, product, numbers = ctx.call
        needs = ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():
            found = product.differentiable(graph, x, ctx.saved_tensors, numbers, needs)
            return _backward_once(ctx, x) if found is None else _NONE + found
        return _NONE + product.gradients(graph, x, ctx.saved_tensors, numbers, needs)  # type: ignore[no-any-return]


_NONE = (None,)
_backward_once = torch.autograd.function.once_differentiable(_Eager.backward)


def _write_likes(operands: Sequence[Maybe]) -> list[int]:
    """Shapes and types of operands, as the backward op takes them."""
    sizes = []
    for operand in operands:
        if operand is None:
            sizes.append(-1)
        else:
            sizes += [operand.dim(), _TYPES.index(operand.dtype), *operand.shape]
    return sizes


def _read_likes(sizes: Sequence[int]) -> Iterator[Like | None]:
    at = 0
    while at < len(sizes):
        if sizes[at] < 0:
            yield None
            at += 1
        else:
            end = at + 2 + sizes[at]
            yield Like(tuple(sizes[at + 2 : end]), _TYPES[sizes[at + 1]])
            at = end


class Operation:
    """An operation over a graph, and its registered ops.

    operands, options, numbers: as the schema of the op has them, which begins with the graph and
        ends with the gradients that are needed. A Product depends on the options.
    lines: of each operand the attribute of Graph that says how many lines it has; None = any.
    make: the Product of operands and options, which it does not check.
    check: raises what is wrong with operands and options.
    """

    def __init__(
        self,
        name: str,
        operands: str,
        lines: tuple[str | None, ...],
        options: str,
        numbers: str,
        make: Callable[..., Product],
        check: Callable[..., None],
    ) -> None:
        self.name = name
        self.operands = operands
        self.lines = lines
        self._numbers = numbers.count(",") + 1 if numbers else 0
        self.make = make
        self.check = check
        self._apply = quick_apply(type(name, (_Eager,), {}))  # nodes of autograd have its name
        values = "".join(f"{part}, " for part in (options, numbers) if part)
        _define(f"{name}({_A}, {operands}, {values}bool[] needs) -> Tensor[]")
        _define(
            f"{name}_backward({_A}, Tensor x, Tensor?[] kept, {values}SymInt[] likes,"
            " bool[] needs) -> Tensor[]"
        )
        _op(self._forward, name)
        _fake(self._forward_fake, name)
        _op(self._backward, f"{name}_backward")
        _fake(self._backward_fake, f"{name}_backward")
        torch.library.register_autograd(
            f"warploom::{name}", self._gradients, setup_context=self._setup, lib=_library
        )

    def lines_of(self, options: tuple[Any, ...]) -> tuple[str | None, ...]:
        """The lines of the operands of a call with these options."""
        return self.lines

    def dispatch(
        self,
        graph: Graph,
        operands: tuple[Maybe, ...],
        options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Tensor:
        """The result by the registered op; differentiable."""
        needs = [torch.is_grad_enabled() and t is not None and t.requires_grad for t in operands]
        return graph.call_op(self, operands, options, numbers, needs)

    def __call__(
        self,
        graph: Graph,
        operands: tuple[Maybe, ...],
        options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Tensor:
        """The result outside of compiled code; differentiable."""
        if is_dispatched(operands[0]):
            return self.dispatch(graph, operands, options, numbers)
        key: Any = [self.name, options]
        product: Product | None = None
        differentiates = False
        try:
            for operand in operands:
                if operand is None:
                    key.append(None)
                    continue
                key += operand.shape, operand.dtype, operand.get_device()
                if operand.requires_grad:
                    differentiates = True
            key = tuple(key)
            product = graph._products.get(key)
        except (AttributeError, TypeError):  # of wrong arguments, for which the check raises
            pass
        if product is None:
            product = self.product(graph, operands, options)
            if not graph.once:
                graph._products[key] = product
        if differentiates and torch.is_grad_enabled():
            return self._apply((graph, product, numbers), *operands)  # type: ignore[no-any-return]
        return product.run(graph, operands, numbers, ())[0]

    def product(self, graph: Graph, operands: Sequence[Maybe], options: tuple[Any, ...]) -> Product:
        """The checked call, which the graph keeps.

        Its key has no number of lines, so that all graphs that are used once share it.
        """
        key: Any = None
        product: Product | None = None
        try:
            parts: list[Any] = [self.name, options]
            fits = True
            for operand, lines in zip(operands, self.lines):
                if operand is None:
                    parts.append(None)
                    continue
                line = operand.shape
                if lines is not None:
                    fits = fits and line[0] == getattr(graph, lines)
                    line = line[1:]
                parts += lines, line, operand.dtype, operand.get_device()
            key = tuple(parts)
            product = graph._products.get(key) if fits else None
        except (AttributeError, IndexError, TypeError):
            pass
        if product is None:
            self.check(graph, operands, *options)
            product = graph._products[key] = self.make(operands, *options)
        return product

    # ---- registered ops ------------------------------------------------------------------

    def _split(self, values: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The options and the numbers of a call."""
        end = len(values) - self._numbers
        return tuple(values[:end]), tuple(values[end:])

    def _forward(self, rowptr: Tensor, colind: Tensor, cols: int, *rest: Any) -> list[Tensor]:
        count = len(self.lines)
        operands, values, needs = rest[:count], rest[count:-1], rest[-1]
        options, numbers = self._split(values)
        graph = find(rowptr, colind, cols)
        product = self.product(graph, operands, options)
        return list(product.run_as_declared(graph, operands, numbers, tuple(needs)))

    def _forward_fake(self, rowptr: Tensor, colind: Tensor, cols: int, *rest: Any) -> list[Tensor]:
        count = len(self.lines)
        product = self.make(rest[:count], *self._split(rest[count:-1])[0])
        size = Size(rowptr.shape[0] - 1, cols, colind.shape[0], rowptr.dtype)
        made = product.outputs(size, tuple(rest[-1]))
        return [rowptr.new_empty(shape, dtype=dtype) for shape, dtype in made]

    def _backward(
        self, rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, kept: list[Maybe], *rest: Any
    ) -> list[Tensor]:
        *values, likes, needs = rest
        options, numbers = self._split(values)
        product = self.make(tuple(_read_likes(likes)), *options)
        found = product.gradients(find(rowptr, colind, cols), x, kept, numbers, tuple(needs))
        return [gradient for gradient, is_needed in zip(found, needs) if is_needed]  # type: ignore[misc]

    def _backward_fake(
        self, rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, kept: list[Maybe], *rest: Any
    ) -> list[Tensor]:
        *_, likes, needs = rest
        return [
            x.new_empty(like.shape, dtype=like.dtype)
            for like, is_needed in zip(_read_likes(likes), needs)
            if is_needed and like is not None
        ]

    def _setup(self, ctx: Any, inputs: Any, output: list[Tensor]) -> None:
        rowptr, colind, ctx.cols, *rest = inputs
        count = len(self.lines)
        operands, ctx.values, asked = rest[:count], rest[count:-1], rest[-1]
        ctx.needs = tuple(ctx.needs_input_grad[3 : 3 + count])
        ctx.has_gradient = True in asked
        ctx.likes = _write_likes(operands)
        ctx.mark_non_differentiable(*output[1:])
        product = self.make(operands, *self._split(ctx.values)[0])
        ctx.save_for_backward(rowptr, colind, *product.kept(operands, output, ctx.needs))

    def _gradients(self, ctx: Any, upstream: list[Tensor]) -> tuple[Any, ...]:
        if not ctx.has_gradient:
            raise RuntimeError(
                f"warploom: {self.name}: call the op with the `needs` of its gradients"
            )
        rowptr, colind, *kept = ctx.saved_tensors
        made = iter(
            getattr(ops, f"{self.name}_backward")(
                rowptr, colind, ctx.cols, upstream[0], kept, *ctx.values, ctx.likes, ctx.needs
            )
        )
        found = [next(made) if is_needed else None for is_needed in ctx.needs]
        return (None, None, None, *found, *(None for _ in ctx.values), None)
