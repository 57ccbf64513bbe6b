"""Registered ops for torch.compile and torch.export: tensors and plain values in, tensors out.

Eager mode does not use them, because the dispatch of a registered op costs more than a product of
a small graph. An op finds the plans of a Graph by the identity of its tensors; other tensors are
multiplied as a matrix that is used once.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from warploom.torch import _eager, _gradients
from warploom.torch._graph import Graph, find
from warploom.torch._plan import (
    Request,
    Sample,
    accumulator,
    convert_edges,
    edge_shape,
    how,
    index_type,
)

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]

_A = "Tensor rowptr, Tensor colind, SymInt cols"
_HOW = "bool deterministic, str strategy, int width, str norm, SymInt seed"
_library = torch.library.Library("warploom", "DEF")  # type: ignore[no-untyped-call]
for _schema in (
    "csr_from_edges(Tensor edge_index, SymInt rows, SymInt cols) -> (Tensor, Tensor, Tensor)",
    f"spmm({_A}, Tensor b, Tensor? values, str reduce, str message, {_HOW}) -> Tensor",
    f"spmm_argmax({_A}, Tensor b, Tensor? values, str reduce, str message, {_HOW})"
    " -> (Tensor, Tensor)",
    f"spmm_transposed({_A}, Tensor x, Tensor? values, str message, float alpha, bool mean, {_HOW})"
    " -> Tensor",
    f"spmm_values({_A}, Tensor x, Tensor? b, Tensor? values, int heads, str message, bool mean,"
    f" {_HOW}) -> Tensor",
    f"argmax_gradients({_A}, Tensor x, Tensor argmax, Tensor? b, Tensor? values, int heads,"
    f" str reduce, str message,"
    f" bool need_b, bool need_values, {_HOW}) -> (Tensor, Tensor)",
    f"sddmm({_A}, Tensor x, Tensor b, int heads, bool deterministic) -> Tensor",
    f"edge_softmax({_A}, Tensor scores) -> Tensor",
    f"edge_softmax_backward({_A}, Tensor g, Tensor result) -> Tensor",
):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
ops = torch.ops.warploom


def _op(function: Any) -> Any:
    """Register a function under its name without the underscore."""
    _library.impl(function.__name__[1:], function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    return function


def _fake(function: Any) -> Any:
    """Register NAME_fake, which makes empty results of the op NAME for tracing."""
    name = function.__name__[1 : -len("_fake")]
    torch.library.register_fake(f"warploom::{name}", function, lib=_library)
    return function


def _sample(strategy: str, width: int, norm: str) -> Sample | None:
    return Sample(width, strategy, norm) if strategy else None


def _heads(values: Maybe) -> int:
    return values.shape[1] if values is not None and values.dim() == 2 else 1


def _engine(
    graph: Graph,
    x: Tensor,
    values: Maybe,
    heads: int,
    reduce: str,
    message: str,
    rest: tuple[Any, ...],
) -> _eager.Eager:
    deterministic, strategy, width, norm, seed = rest
    kind = None if values is None else values.dtype
    sample = _sample(strategy, width, norm)
    request = Request(
        tuple(x.shape[1:]), x.dtype, kind, heads, reduce, message, deterministic, sample
    )
    return _eager.Eager(graph, request, seed)


# ---- graphs ------------------------------------------------------------------------------


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


# ---- forward -------------------------------------------------------------------------


def _forward(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    b: Tensor,
    values: Maybe,
    reduce: str,
    message: str,
    rest: Any,
) -> tuple[Graph, Request, int]:
    graph = find(rowptr, colind, cols)
    deterministic, strategy, width, norm, seed = rest
    request = _eager.request_of(
        graph, b, values, reduce, message, _sample(strategy, width, norm), deterministic
    )
    return graph, request, seed


@_op
def _spmm(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    b: Tensor,
    values: Maybe,
    reduce: str,
    message: str,
    *rest: Any,
) -> Tensor:
    graph, request, seed = _forward(rowptr, colind, cols, b, values, reduce, message, rest)
    return graph.plan(request).multiply(b, values, seed)


@_fake
def _spmm_fake(rowptr: Tensor, colind: Tensor, cols: int, b: Tensor, *rest: Any) -> Tensor:
    return b.new_empty((rowptr.shape[0] - 1, *b.shape[1:]))


@_op
def _spmm_argmax(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    b: Tensor,
    values: Maybe,
    reduce: str,
    message: str,
    *rest: Any,
) -> tuple[Tensor, Tensor]:
    graph, request, seed = _forward(rowptr, colind, cols, b, values, reduce, message, rest)
    return graph.plan(_eager.argmax_request(request)).multiply_argmax(b, values, seed)


@_fake
def _spmm_argmax_fake(
    rowptr: Tensor, colind: Tensor, cols: int, b: Tensor, *rest: Any
) -> tuple[Tensor, Tensor]:
    c = _spmm_fake(rowptr, colind, cols, b)
    return c, torch.empty_like(c, dtype=torch.int64)


@_op
def _sddmm(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, b: Tensor, heads: int, deterministic: bool
) -> Tensor:
    graph = find(rowptr, colind, cols)
    return _eager.edge_products(
        graph, _eager.sddmm_request(graph, x, b, heads, deterministic), x, b, None
    )


@_fake
def _sddmm_fake(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, b: Tensor, heads: int, deterministic: bool
) -> Tensor:
    return x.new_empty(edge_shape(colind.shape[0], heads))


@_op
def _edge_softmax(rowptr: Tensor, colind: Tensor, cols: int, scores: Tensor) -> Tensor:
    return _eager.softmax(find(rowptr, colind, cols), scores)


@_fake
def _edge_softmax_fake(rowptr: Tensor, colind: Tensor, cols: int, scores: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


# ---- backward ------------------------------------------------------------------------


@_op
def _spmm_transposed(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    x: Tensor,
    values: Maybe,
    message: str,
    alpha: float,
    mean: bool,
    *rest: Any,
) -> Tensor:
    engine = _engine(find(rowptr, colind, cols), x, values, _heads(values), "sum", message, rest)
    return engine.transposed(x, values, message, alpha, mean)


@_fake
def _spmm_transposed_fake(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, *rest: Any
) -> Tensor:
    return x.new_empty((cols, *x.shape[1:]))


@_op
def _spmm_values(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, b: Maybe, values: Maybe, heads: int,
    message: str, mean: bool, *rest: Any,
) -> Tensor:  # fmt: skip
    engine = _engine(find(rowptr, colind, cols), x, values, heads, "sum", message, rest)
    return engine.sddmm(x, b, values, message, mean)


@_fake
def _spmm_values_fake(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    x: Tensor,
    b: Maybe,
    values: Maybe,
    heads: int,
    *rest: Any,
) -> Tensor:
    return x.new_empty(edge_shape(colind.shape[0], heads))


@_op
def _argmax_gradients(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, argmax: Tensor, b: Maybe, values: Maybe,
    heads: int, reduce: str, message: str, need_b: bool, need_values: bool, *rest: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    engine = _engine(find(rowptr, colind, cols), x, values, heads, reduce, message, rest)
    db, dvalues = engine.argmax(x, argmax, b, values, need_b, need_values)
    return x.new_empty(0) if db is None else db, x.new_empty(0) if dvalues is None else dvalues


@_fake
def _argmax_gradients_fake(
    rowptr: Tensor, colind: Tensor, cols: int, x: Tensor, argmax: Tensor, b: Maybe, values: Maybe,
    heads: int, reduce: str, message: str, need_b: bool, need_values: bool, *rest: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    sums = accumulator(x.dtype)
    db = x.new_empty((cols, *x.shape[1:]), dtype=sums) if need_b else x.new_empty(0)
    return db, x.new_empty(
        edge_shape(colind.shape[0], heads), dtype=sums
    ) if need_values else x.new_empty(0)


@_op
def _edge_softmax_backward(
    rowptr: Tensor, colind: Tensor, cols: int, g: Tensor, result: Tensor
) -> Tensor:
    return _eager.softmax_gradient(find(rowptr, colind, cols), g, result)


@_fake
def _edge_softmax_backward_fake(
    rowptr: Tensor, colind: Tensor, cols: int, g: Tensor, result: Tensor
) -> Tensor:
    return torch.empty_like(result, memory_format=torch.contiguous_format)


# ---- autograd ------------------------------------------------------------------------


class _Ops:
    """The Engine of gradients (see there) that calls registered ops."""

    def __init__(self, ctx: Any, rowptr: Tensor, colind: Tensor) -> None:
        self.a = (rowptr, colind, ctx.cols)
        self.heads: int = ctx.heads
        self.reduce: str = ctx.reduce
        self.message: str = ctx.message
        self.rest = ctx.rest

    def transposed(
        self, x: Tensor, values: Maybe, message: str, alpha: float, mean: bool
    ) -> Tensor:
        """See Engine."""
        return ops.spmm_transposed(*self.a, x, values, message, alpha, mean, *self.rest)  # type: ignore[no-any-return]

    def sddmm(self, x: Tensor, b: Maybe, values: Maybe, message: str, mean: bool) -> Tensor:
        """See Engine."""
        return ops.spmm_values(  # type: ignore[no-any-return]
            *self.a, x, b, values, self.heads, message, mean, *self.rest
        )

    def argmax(
        self, x: Tensor, argmax: Tensor, b: Maybe, values: Maybe, need_b: bool, need_values: bool
    ) -> _gradients.Gradients:
        """See Engine."""
        db, dvalues = ops.argmax_gradients(
            *self.a,
            x,
            argmax,
            b,
            values,
            self.heads,
            self.reduce,
            self.message,
            need_b,
            need_values,
            *self.rest,
        )
        return db if need_b else None, dvalues if need_values else None

    def edges(self) -> tuple[Tensor, Tensor]:
        """See Engine."""
        rowptr, colind, _ = self.a
        rows = torch.arange(rowptr.shape[0] - 1, device=rowptr.device)
        return rows.repeat_interleave(rowptr.diff(), output_size=colind.shape[0]), colind


def _setup(ctx: Any, inputs: Any, output: Any) -> None:
    rowptr, colind, ctx.cols, b, values, ctx.reduce, ctx.message, *rest = inputs
    ctx.rest = tuple(rest)
    ctx.heads = _heads(values)
    ctx.values_shape = None if values is None else values.shape
    ctx.values_type = None if values is None else values.dtype
    needs = ctx.needs_input_grad
    keep_b, keep_values = _gradients.saved(
        ctx.reduce, ctx.message, values is not None, needs[3], needs[4]
    )
    argmax = None
    if isinstance(output, tuple):
        argmax = output[1]
        ctx.mark_non_differentiable(argmax)
        keep_values = values is not None
    ctx.b_shape = b.shape
    ctx.save_for_backward(
        rowptr, colind, b if keep_b else None, values if keep_values else None, argmax
    )


def _backward(ctx: Any, x: Tensor, *unused: Any) -> tuple[Maybe, ...]:
    rowptr, colind, b, values, argmax = ctx.saved_tensors
    need_b, need_values = ctx.needs_input_grad[3:5]
    db, dvalues = _gradients.gradients(
        _Ops(ctx, rowptr, colind),
        ctx.reduce,
        ctx.message,
        x,
        b,
        values,
        argmax,
        need_b,
        need_values,
    )
    if need_b:
        db = x.new_zeros(ctx.b_shape) if db is None else db.to(x.dtype)
    if dvalues is not None:
        dvalues = dvalues.reshape(ctx.values_shape).to(ctx.values_type)
    return None, None, None, db, dvalues, None, None, *(None for _ in ctx.rest)


def _setup_sddmm(ctx: Any, inputs: Any, output: Any) -> None:
    rowptr, colind, ctx.cols, x, b, ctx.heads, ctx.deterministic = inputs
    ctx.save_for_backward(rowptr, colind, x, b)


def _backward_sddmm(ctx: Any, g: Tensor) -> tuple[Maybe, ...]:
    rowptr, colind, x, b = ctx.saved_tensors
    rest = how(ctx.deterministic, None, 0)
    dx = ops.spmm(rowptr, colind, ctx.cols, b, g, "sum", "mul", *rest)
    db = ops.spmm_transposed(rowptr, colind, ctx.cols, x, g, "mul", 1.0, False, *rest)
    return None, None, None, dx, db, None, None


def _setup_softmax(ctx: Any, inputs: Any, output: Tensor) -> None:
    rowptr, colind, ctx.cols, _ = inputs
    ctx.save_for_backward(rowptr, colind, output)


def _backward_softmax(ctx: Any, g: Tensor) -> tuple[Maybe, ...]:
    rowptr, colind, result = ctx.saved_tensors
    return None, None, None, ops.edge_softmax_backward(rowptr, colind, ctx.cols, g, result)


for _name, _of_op, _setup_of_op in (
    ("spmm", _backward, _setup),
    ("spmm_argmax", _backward, _setup),
    ("sddmm", _backward_sddmm, _setup_sddmm),
    ("edge_softmax", _backward_softmax, _setup_softmax),
):
    torch.library.register_autograd(
        f"warploom::{_name}", _of_op, setup_context=_setup_of_op, lib=_library
    )
