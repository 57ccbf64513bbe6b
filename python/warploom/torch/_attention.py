"""Attention over the edges of a graph: softmax and weighted sum in one pass.

Forward, nothing of size edges x heads is written; the log of each row's sum of exp(score) is kept.
Backward, one pass over the transpose makes the weights again from it and gives the gradients of b,
of the edges' terms and of `right`; that of `left` is a sum over the edges of each row.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import torch

from warploom import _arguments
from warploom._library import fail
from warploom._native import lib
from warploom.torch import _eager
from warploom.torch._graph import Graph, find, need_graph, need_tensor
from warploom.torch._ops import _A, _library
from warploom.torch._plan import (
    Plan,
    Request,
    accumulator,
    address_of,
    current_stream,
    edge_shape,
)

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]
_Gradients = tuple[Tensor, Maybe, Maybe, Maybe]


class How(NamedTuple):
    """The numbers of a call."""

    factor: float  # the slope of leaky_relu, or the scale of products
    dropout: float
    seed: int


def gat(
    graph: Graph,
    b: Tensor,
    left: Tensor,
    right: Tensor,
    values: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * b[k, h], where
    score[p, h] = leaky_relu(left[i, h] + right[k, h] + values[p, h]); the attention of GATConv.
    Differentiable in b, left, right, values and bias.

    b: (cols, heads, features), float32, float16, bfloat16 or float64; (cols, n) is one head.
    left: (rows, heads), right: (cols, heads). Scores and sums are in float32, or in float64 where
        b is float64.
    values: (nnz, heads) in CSR order, of b's type, or float32 beside 16-bit types; None = 0. A
        value of -inf leaves the edge out.
    bias: (heads, features), added to each row of C in b's type; None = 0. Without gradients that is
        part of the same pass.
    slope: of leaky_relu, for negative arguments.
    dropout: the share of weights that are left out at random, after the softmax; the others count
        1 / (1 - dropout) times as much. `seed` says which; None = a new one for each call, from
        torch's generator of the CPU. A CUDA graph repeats the seed that it captured.

    Returns (rows, heads, features) of b's type. A row without edges, or with -inf for all of them,
    gives 0. The result and its gradients have the same bits every time. Under autocast b is
    converted to autocast's type. Raises TypeError or ValueError that name the argument.
    """
    need_graph(graph)
    heads = b.shape[1] if isinstance(b, Tensor) and b.dim() == 3 else 1
    for name, term, rows in (("left", left, graph.rows), ("right", right, graph.cols)):
        _check_operand(name, term, graph, (rows, heads), (rows,) if heads == 1 else ())
    return _attend(graph, b, left, right, values, _how("slope", slope, dropout, seed), bias)


def _how(name: str, factor: Any, dropout: Any, seed: int | None) -> How:
    """The numbers of a call; `name` is that of the factor."""
    if not torch.compiler.is_compiling():
        factor, dropout = _arguments.number(name, factor), _arguments.number("dropout", dropout)
        seed = None if seed is None else _arguments.seed(seed)
    if not 0 <= dropout < 1:
        raise ValueError(f"warploom: dropout: {dropout} is not at least 0 and below 1")
    if dropout == 0:
        return How(factor, 0.0, 0)
    return How(factor, float(dropout), _eager.draw_seed() if seed is None else seed)


def _check_operand(
    name: str, term: Tensor, graph: Graph, shape: tuple[int, ...], also: tuple[int, ...] = ()
) -> None:
    need_tensor(name, term)
    if term.device != graph.device:
        raise ValueError(f"warploom: {name} is on {term.device}, the graph on {graph.device}")
    if tuple(term.shape) not in (shape, also or shape):
        raise ValueError(f"warploom: {name}: the shape is {tuple(term.shape)}, {shape} is needed")


def _request(graph: Graph, b: Tensor, left: Maybe, values: Maybe, how: How) -> Request:
    """Check the operands and say what the plan of the forward pass needs."""
    _eager.check_dense("b", b, graph, graph.cols)
    heads = b.shape[1] if b.dim() == 3 else 1
    if values is not None:
        graph._check_values(values)
        if (values.shape[1] if values.dim() == 2 else 1) != heads:
            raise ValueError(
                f"warploom: values: the shape is {tuple(values.shape)}, "
                f"({graph.nnz}, {heads}) is needed"
            )
        halves = b.dtype in (torch.float16, torch.bfloat16)
        if values.dtype != b.dtype and not (halves and values.dtype == torch.float32):
            raise TypeError(
                f"warploom: values are {values.dtype}, and b is {b.dtype}; convert one of them"
            )
    return Request(
        tuple(b.shape[1:]),
        b.dtype,
        None if values is None else values.dtype,
        max(heads, 1),
        attention="edge" if left is None else "gat",
        dropout=how.dropout > 0,
    )


def _attend(
    graph: Graph,
    b: Tensor,
    left: Maybe,
    right: Maybe,
    values: Maybe,
    how: How,
    bias: Maybe = None,
) -> Tensor:
    b = _eager.autocast(b)
    bias = _bias(graph, b, bias)
    wide = accumulator(b.dtype)
    left = None if left is None else left.to(wide)
    right = None if right is None else right.to(wide)
    if torch.compiler.is_compiling():
        a = (graph.rowptr, graph.colind, graph.cols)
        return plus(torch.ops.warploom.attend(*a, b, left, right, values, *how)[0], bias)
    request = _request(graph, b, left, values, how)
    if needs_gradient(b, left, right, values, bias):
        out = _Attend.apply(graph, request, how, b, left, right, values)  # type: ignore[no-untyped-call]
        return plus(out, bias)
    return _forward(graph, request, b, left, right, values, how, False, bias)[0]


def _bias(graph: Graph, b: Tensor, bias: Maybe) -> Maybe:
    if bias is None:
        return None
    _check_operand("bias", bias, graph, tuple(b.shape[1:]))
    return bias.to(b.dtype)


def plus(out: Tensor, bias: Maybe) -> Tensor:
    """Add the bias. The gradient needs the result without it."""
    return out if bias is None else out + bias


def needs_gradient(*tensors: Maybe) -> bool:
    """Whether autograd records an operation on these tensors."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        graph: Graph,
        request: Request,
        how: How,
        b: Tensor,
        left: Maybe,
        right: Maybe,
        values: Maybe,
    ) -> Tensor:
        ctx.state = graph, request, how
        c, lse = _forward(graph, request, b, left, right, values, how, True)
        ctx.save_for_backward(b, left, right, values, c, lse)
        return c

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, x: Tensor) -> tuple[Any, ...]:
        needs = ctx.needs_input_grad[3:]
        graph, request, how = ctx.state
        b, left, right, values, c, lse = ctx.saved_tensors
        gradients = _backward(graph, request, how, x, b, left, right, values, c, lse, needs[1])
        return (
            None,
            None,
            None,
            *(gradient if needed else None for gradient, needed in zip(gradients, needs)),
        )


def _run(
    plan: Plan,
    b: Tensor,
    c: Tensor,
    how: How,
    *,
    x: Maybe = None,
    values: Maybe = None,
    left: Maybe = None,
    right: Maybe = None,
    lse: Maybe = None,
    delta: Maybe = None,
    dvalues: Maybe = None,
    dright: Maybe = None,
    q: Maybe = None,
    att: Maybe = None,
    datt: Maybe = None,
    k: Maybe = None,
    dk: Maybe = None,
    bias: Maybe = None,
) -> None:
    size = plan.workspace
    work = torch.empty(size, dtype=torch.uint8, device=b.device) if size else None
    status = lib.warploom_attend(
        plan.call,
        address_of(b),
        address_of(c),
        address_of(x),
        address_of(values),
        address_of(left),
        address_of(right),
        address_of(lse),
        address_of(delta),
        address_of(dvalues),
        address_of(dright),
        how.factor,
        _stride(left),
        how.dropout,
        how.seed,
        address_of(q),
        address_of(att),
        address_of(datt),
        address_of(k),
        address_of(dk),
        address_of(bias),
        address_of(work),
        size,
        current_stream(plan.index),
    )
    if status:
        fail(status)


def _stride(term: Maybe) -> int:
    """Elements from row to row of left and right."""
    return 0 if term is None or term.dim() == 1 else term.stride(0)


def _alike(left: Maybe, right: Maybe) -> tuple[Maybe, Maybe]:
    """Left and right as the library takes them: heads side by side, and rows equally far apart."""
    if left is None or right is None:
        return left, right
    if (
        left.dim() == 2
        and left.stride() == right.stride()
        and left.stride(1) == 1
        and left.stride(0) >= left.shape[1]
    ):
        return left, right
    return left.contiguous(), right.contiguous()


def _dense(tensor: Maybe) -> Maybe:
    return None if tensor is None else tensor.contiguous()


def _forward(
    graph: Graph,
    request: Request,
    b: Tensor,
    left: Maybe,
    right: Maybe,
    values: Maybe,
    how: How,
    needs_lse: bool,
    bias: Maybe = None,
) -> tuple[Tensor, Maybe]:
    plan = graph.plan(request if bias is None else request._replace(bias=True))
    c = b.new_empty(plan.shape)
    lse = None
    if needs_lse:
        lse = c.new_empty((graph.rows, request.heads), dtype=accumulator(request.dtype))
    left, right = _alike(left, right)
    if request.n:
        values = _dense(values)
        bias = _dense(bias)
        _run(
            plan, b.contiguous(), c, how, values=values, left=left, right=right, lse=lse, bias=bias
        )  # fmt: skip
    return c, lse


def _backward(
    graph: Graph,
    request: Request,
    how: How,
    x: Tensor,
    b: Tensor,
    left: Maybe,
    right: Maybe,
    values: Maybe,
    c: Tensor,
    lse: Tensor,
    needs_left: bool,
) -> _Gradients:
    """The gradients of b, left, right and values."""
    wide = accumulator(request.dtype)
    x, b = x.contiguous(), b.contiguous()
    left, right = _alike(left, right)
    shape = (graph.rows, request.heads, request.n // request.heads)
    delta = torch.linalg.vecdot(x.to(wide).reshape(shape), c.to(wide).reshape(shape))
    db = torch.empty_like(b)
    dterms = x.new_empty(edge_shape(graph.nnz, request.heads), dtype=wide)
    dright = (
        None if right is None else torch.empty_like(right, memory_format=torch.contiguous_format)
    )
    dleft = None
    if request.n == 0 or graph.nnz == 0:
        db.zero_()
        dterms.zero_()
        dright = None if dright is None else dright.zero_()
        dleft = None if left is None else torch.zeros_like(left)
    else:
        plan = graph.plan(request._replace(transpose=True))
        _run(
            plan, b, db, how, x=x, values=_dense(values), left=left, right=right, lse=lse,
            delta=delta, dvalues=dterms, dright=dright,
        )  # fmt: skip
        if left is not None and needs_left:
            dleft = _eager._reduce_edges(graph, dterms, "sum").reshape(left.shape)
    dvalues = None if values is None else dterms.to(values.dtype).reshape(values.shape)
    return db, dleft, dright, dvalues


# ---- registered ops --------------------------------------------------------------------


def _attend_op(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    b: Tensor,
    left: Maybe,
    right: Maybe,
    values: Maybe,
    *numbers: Any,
) -> tuple[Tensor, Tensor]:
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request = _request(graph, b, left, values, how)
    c, lse = _forward(graph, request, b, left, right, values, how, True)
    assert lse is not None
    return c, lse


def _attend_backward_op(
    rowptr: Tensor,
    colind: Tensor,
    cols: int,
    x: Tensor,
    b: Tensor,
    left: Maybe,
    right: Maybe,
    values: Maybe,
    c: Tensor,
    lse: Tensor,
    *numbers: Any,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request = _request(graph, b, left, values, how)
    gradients = _backward(graph, request, how, x, b, left, right, values, c, lse, True)
    db, *rest = (x.new_empty(0) if gradient is None else gradient for gradient in gradients)
    return db, *rest  # type: ignore[return-value]


def _fake(
    rowptr: Tensor, colind: Tensor, cols: int, b: Tensor, *rest: Any
) -> tuple[Tensor, Tensor]:
    rows, heads = rowptr.shape[0] - 1, b.shape[1] if b.dim() == 3 else 1
    return b.new_empty((rows, *b.shape[1:])), b.new_empty((rows, heads), dtype=accumulator(b.dtype))


def _backward_fake(
    rowptr: Tensor, colind: Tensor, cols: int, dc: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    return tuple(
        dc.new_empty(0) if t is None else torch.empty_like(t, memory_format=torch.contiguous_format)
        for t in rest[:4]
    )


def register(name: str, tensors: str, factor: str, forward: Any, backward: Any) -> None:
    """Register an op of attention and its gradient, the op of this name with "_backward".

    The arguments of the op are rowptr, colind, cols, four tensors, of which b is the first, and
    three numbers, of which `factor` names the first.
    """
    numbers = f"float {factor}, float dropout, SymInt seed"
    gradients_of = f"Tensor dc, {tensors}, Tensor c, Tensor lse"
    for op, schema, function, fake in (
        (name, f"{tensors}, {numbers}) -> (Tensor, Tensor)", forward, _fake),
        (
            f"{name}_backward",
            f"{gradients_of}, {numbers}) -> (Tensor, Tensor, Tensor, Tensor)",
            backward,
            _backward_fake,
        ),
    ):
        _library.define(f"{op}({_A}, {schema}", tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
        _library.impl(op, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"warploom::{op}", fake, lib=_library)

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        rowptr, colind, ctx.cols, *rest = inputs
        tensors, ctx.numbers = rest[:4], rest[4:]
        c, lse = output
        ctx.mark_non_differentiable(lse)
        ctx.save_for_backward(rowptr, colind, *tensors, c, lse)

    def gradients(ctx: Any, dc: Tensor, *unused: Any) -> tuple[Any, ...]:
        rowptr, colind, *tensors = ctx.saved_tensors
        made = getattr(torch.ops.warploom, f"{name}_backward")(
            rowptr, colind, ctx.cols, dc.contiguous(), *tensors, *ctx.numbers
        )
        needs = ctx.needs_input_grad[3:7]
        found = (gradient if needed else None for gradient, needed in zip(made, needs))
        return (None, None, None, *found, None, None, None)

    torch.library.register_autograd(
        f"warploom::{name}", gradients, setup_context=setup, lib=_library
    )


register(
    "attend",
    "Tensor b, Tensor? left, Tensor? right, Tensor? values",
    "slope",
    _attend_op,
    _attend_backward_op,
)
