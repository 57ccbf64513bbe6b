"""Attention with the scores of GATv2, which are sums over the columns of a head.

The gradient of b comes from one pass over the transpose, which also stores the gradients of the
scores; from these, one pass over the rows makes the gradients of x and att.
"""

from __future__ import annotations

from typing import Any, Optional

import torch

from warploom.torch import _eager
from warploom.torch._attention import (
    How,
    _check_operand,
    _dense,
    _how,
    _request,
    _run,
    register,
)
from warploom.torch._graph import Graph, find
from warploom.torch._ops import _A, _library
from warploom.torch._plan import Request, accumulator, edge_shape

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]


def gatv2(
    graph: Graph,
    b: Tensor,
    x: Tensor,
    att: Tensor,
    values: Tensor | None = None,
    *,
    slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * b[k, h], where
    score[p, h] = <att[h], leaky_relu(x[i, h] + b[k, h])> + values[p, h]; the attention of
    GATv2Conv. Differentiable in b, x, att and values.

    b: (cols, heads, features), x: (rows, heads, features), att: (heads, features); x is converted
        to b's type. Two dimensions of b and x are one head.
    values, slope, dropout, seed, and what is returned: as of `gat`.
    """
    if not isinstance(b, Tensor):
        raise TypeError(f"warploom: b: a tensor is needed, not {type(b).__name__}")
    b = _eager.autocast(b)
    _check_operand("x", x, graph, (graph.rows, *b.shape[1:]))
    _check_operand("att", att, graph, tuple(b.shape[1:]))
    x, att = x.to(b.dtype), att.to(accumulator(b.dtype))
    how = _how(float(slope), dropout, seed)
    if torch.compiler.is_compiling():
        a = (graph.rowptr, graph.colind, graph.cols)
        return torch.ops.warploom.gatv2(*a, b, x, att, values, *how)[0]  # type: ignore[no-any-return]
    request = _request_of(graph, b, values, how)
    if torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (b, x, att, values)
    ):
        return _Gatv2.apply(graph, request, how, b, x, att, values)  # type: ignore[no-any-return,no-untyped-call]
    return _forward(graph, request, how, b, x, att, values, False)[0]


def _request_of(graph: Graph, b: Tensor, values: Maybe, how: How) -> Request:
    return _request(graph, b, None, values, how)._replace(attention="gatv2")


class _Gatv2(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, graph: Graph, request: Request, how: How,
        b: Tensor, x: Tensor, att: Tensor, values: Maybe,
    ) -> Tensor:  # fmt: skip
        ctx.state = graph, request, how
        c, lse = _forward(graph, request, how, b, x, att, values, True)
        ctx.save_for_backward(b, x, att, values, c, lse)
        return c

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dc: Tensor) -> tuple[Any, ...]:
        needs = ctx.needs_input_grad[3:]
        graph, request, how = ctx.state
        b, x, att, values, c, lse = ctx.saved_tensors
        needs_rows = needs[1] or needs[2]
        gradients = _backward(graph, request, how, dc, b, x, att, values, c, lse, needs_rows)
        return (None, None, None, *(g if needed else None for g, needed in zip(gradients, needs)))


def _forward(
    graph: Graph, request: Request, how: How,
    b: Tensor, x: Tensor, att: Tensor, values: Maybe, needs_lse: bool,
) -> tuple[Tensor, Maybe]:  # fmt: skip
    plan = graph.plan(request)
    c = b.new_empty(plan.shape)
    lse = None
    if needs_lse:
        lse = c.new_empty((graph.rows, request.heads), dtype=att.dtype)
    if request.n:
        _run(
            plan, b.contiguous(), c, None, _dense(values), None, None, lse, None, None, None, how,
            x.contiguous(), att.contiguous(),
        )  # fmt: skip
    return c, lse


def _backward(
    graph: Graph, request: Request, how: How, dc: Tensor,
    b: Tensor, x: Tensor, att: Tensor, values: Maybe, c: Tensor, lse: Tensor, needs_rows: bool,
) -> tuple[Tensor, Maybe, Maybe, Maybe]:  # fmt: skip
    """The gradients of b, x, att and values; those of x and att only where needed."""
    wide = att.dtype
    dc, b, x, att = dc.contiguous(), b.contiguous(), x.contiguous(), att.contiguous()
    shape = (graph.rows, request.heads, -1 if request.n else 0)
    delta = torch.linalg.vecdot(dc.to(wide).reshape(shape), c.to(wide).reshape(shape))
    db, dx, datt = torch.empty_like(b), None, None
    dterms = dc.new_empty(edge_shape(graph.nnz, request.heads), dtype=wide)
    if request.n == 0 or graph.nnz == 0:
        db.zero_()
        dterms.zero_()
        dx, datt = torch.zeros_like(x), torch.zeros_like(att)
    else:
        plan = graph.plan(request._replace(transpose=True))
        _run(
            plan, b, db, dc, _dense(values), None, None, lse, delta, dterms, None, how, x, att
        )  # fmt: skip
        if needs_rows:
            dx, parts = torch.empty_like(x), torch.empty_like(x, dtype=wide)
            rows = request._replace(attention="gatv2_rows", values=wide, dropout=False)
            _run(
                graph.plan(rows), b, dx, None, dterms, None, None, None, None, None, None,
                How(how.slope, 0.0, 0), x, att, parts,
            )  # fmt: skip
            datt = parts.sum(0)
    dvalues = None if values is None else dterms.to(values.dtype).reshape(values.shape)
    return db, dx, datt, dvalues


# ---- registered ops --------------------------------------------------------------------

for _schema in (
    f"gatv2({_A}, Tensor b, Tensor x, Tensor att, Tensor? values, float slope, float dropout,"
    " SymInt seed) -> (Tensor, Tensor)",
    f"gatv2_backward({_A}, Tensor dc, Tensor b, Tensor x, Tensor att, Tensor? values, Tensor c,"
    " Tensor lse, float slope, float dropout, SymInt seed) -> (Tensor, Tensor, Tensor, Tensor)",
):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]


def _gatv2_op(
    rowptr: Tensor, colind: Tensor, cols: int,
    b: Tensor, x: Tensor, att: Tensor, values: Maybe, *numbers: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request = _request_of(graph, b, values, how)
    c, lse = _forward(graph, request, how, b, x, att, values, True)
    assert lse is not None
    return c, lse


def _gatv2_fake(
    rowptr: Tensor, colind: Tensor, cols: int, b: Tensor, x: Tensor, att: Tensor, *rest: Any
) -> tuple[Tensor, Tensor]:
    rows, heads = rowptr.shape[0] - 1, b.shape[1] if b.dim() == 3 else 1
    return b.new_empty((rows, *b.shape[1:])), att.new_empty((rows, heads))


def _gatv2_backward_op(
    rowptr: Tensor, colind: Tensor, cols: int, dc: Tensor,
    b: Tensor, x: Tensor, att: Tensor, values: Maybe, c: Tensor, lse: Tensor, *numbers: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request = _request_of(graph, b, values, how)
    gradients = _backward(graph, request, how, dc, b, x, att, values, c, lse, True)
    return tuple(dc.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _gatv2_backward_fake(
    rowptr: Tensor, colind: Tensor, cols: int, dc: Tensor,
    b: Tensor, x: Tensor, att: Tensor, values: Maybe, *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    return tuple(
        dc.new_empty(0) if t is None else torch.empty_like(t, memory_format=torch.contiguous_format)
        for t in (b, x, att, values)
    )


register("gatv2", _gatv2_op, _gatv2_fake, _gatv2_backward_op, _gatv2_backward_fake)
