"""Attention with scores that are sums over the columns of a head: of GATv2, and products of rows.

The gradient of b comes from one pass over the transpose, which also stores the gradients of the
scores and, of products, that of k. From the gradients of the scores, one pass over the rows makes
that of x, and of att.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Optional

import torch

from warploom.torch import _eager
from warploom.torch._attention import (
    How,
    _attend,
    _bias,
    _check_operand,
    _dense,
    _how,
    _request,
    _run,
    needs_gradient,
    plus,
    register,
)
from warploom.torch._graph import Graph, find, need_graph, need_tensor
from warploom.torch._plan import Request, accumulator, edge_shape

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]

# Whether `attention` computes its scores in the pass of the softmax where it can: None = by
# `_is_fast`. Measurements set it.
fused: bool | None = None


def gatv2(
    graph: Graph,
    b: Tensor,
    x: Tensor,
    att: Tensor,
    values: Tensor | None = None,
    *,
    edges: Tensor | None = None,
    bias: Tensor | None = None,
    slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * b[k, h], where
    score[p, h] = <att[h], leaky_relu(x[i, h] + b[k, h])> + values[p, h]; the attention of
    GATv2Conv. Differentiable in b, x, att, values and bias.

    b: (cols, heads, features), x: (rows, heads, features), att: (heads, features); x is converted
        to b's type. Two dimensions of b and x are one head.
    edges: (nnz, heads, features) in CSR order, of b's type: features of edges, added to x[i, h] +
        b[k, h]. PyTorch computes the scores then.
    values, bias, slope, dropout, seed, and what is returned: as of `gat`.
    """
    need_graph(graph)
    need_tensor("b", b)
    b = _eager.autocast(b)
    _check_operand("x", x, graph, (graph.rows, *b.shape[1:]))
    _check_operand("att", att, graph, tuple(b.shape[1:]))
    x, att = x.to(b.dtype), att.to(accumulator(b.dtype))
    how = _how("slope", slope, dropout, seed)
    if edges is None:
        return _sum("gatv2", graph, b, x, att, values, how, _bias(graph, b, bias))
    _check_operand("edges", edges, graph, (graph.nnz, *b.shape[1:]))
    z = x.index_select(0, graph.row()) + b.index_select(0, graph.colind) + edges
    scores = torch.linalg.vecdot(torch.nn.functional.leaky_relu(z, slope).to(att.dtype), att)
    return _attend(graph, b, None, None, _add(scores, values), how, bias)


def attention(
    graph: Graph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    values: Tensor | None = None,
    *,
    edges: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * v[k, h], where
    score[p, h] = scale * <q[i, h], k[k, h]> + values[p, h]; the attention of TransformerConv
    and of sparse transformers. Differentiable in q, k, v and values.

    q: (rows, heads, features), k: (cols, heads, features), v: (cols, heads, other features).
    values: (nnz, heads) in CSR order; None = 0.
    edges: (nnz, heads, features) in CSR order: features of edges, added to k[k, h] and v[k, h].
    scale: None = 1 / sqrt(features).
    dropout, seed: as of `gat`.

    Where q, k and v have one type and as many features, a power of two up to 256, and there are no
    `edges`, all is one pass. Otherwise the products of rows are written for each edge and head, in
    float32 (float64), and softmax and sum are one pass. Returns (rows, heads, other features) of
    v's type.
    """
    need_graph(graph)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor) or tensor.dim() != 3:
            raise ValueError(f"warploom: {name}: the shape (nodes, heads, features) is needed")
    if values is not None:
        one_head = (graph.nnz,) if v.shape[1] == 1 else ()
        _check_operand("values", values, graph, (graph.nnz, v.shape[1]), one_head)
    v = _eager.autocast(v)
    wide = accumulator(v.dtype)
    how = _how("scale", max(q.shape[2], 1) ** -0.5 if scale is None else scale, dropout, seed)
    alike = q.dtype == k.dtype == v.dtype and q.shape[1:] == k.shape[1:] == v.shape[1:]
    if alike and edges is None and (_is_fast(v.shape[2]) if fused is None else fused):
        _check_operand("q", q, graph, (graph.rows, *v.shape[1:]))
        _check_operand("k", k, graph, (graph.cols, *v.shape[1:]))
        if values is not None:
            values = values.to(wide).reshape(edge_shape(graph.nnz, v.shape[1]))
        return _sum("dot", graph, v, q, k, values, how)
    scale, how = how.factor, how._replace(factor=0.2)
    with torch.autocast(v.device.type, enabled=False):
        q = q.to(wide) * scale
        scores = _add(_eager.sddmm(graph, q, k.to(wide)), values)
        if edges is None:
            return _attend(graph, v, None, None, scores, how)
        _check_operand("edges", edges, graph, (graph.nnz, *v.shape[1:]))
        incidence = graph.incidence()
        scores = scores + _eager.sddmm(incidence, q, edges.to(wide))
        # Both have the same weights: dropout depends on the position of an edge in its graph.
        of_edges = _attend(incidence, edges.to(v.dtype), None, None, scores, how)
        return _attend(graph, v, None, None, scores, how) + of_edges


def _add(scores: Tensor, values: Maybe) -> Tensor:
    return scores if values is None else scores + values.to(scores.dtype).reshape(scores.shape)


def _is_fast(features: int) -> bool:
    """Whether the lanes of a head share its score, so that none loads pieces of a row again."""
    return features & (features - 1) == 0 and 0 < features <= 256


def _sum(
    score: str, graph: Graph, b: Tensor, x: Tensor, other: Tensor, values: Maybe, how: How,
    bias: Maybe = None,
) -> Tensor:  # fmt: skip
    """Attention with a score of x and `other`, which is att (gatv2) or k (dot)."""
    if torch.compiler.is_compiling():
        a = (graph.rowptr, graph.colind, graph.cols)
        return plus(getattr(torch.ops.warploom, score)(*a, b, x, other, values, *how)[0], bias)
    request = _request_of(score, graph, b, values, how)
    if needs_gradient(b, x, other, values, bias):
        return plus(_Sum.apply(graph, request, how, b, x, other, values), bias)  # type: ignore[no-untyped-call]
    return _forward(graph, request, how, b, x, other, values, False, bias)[0]


def _request_of(score: str, graph: Graph, b: Tensor, values: Maybe, how: How) -> Request:
    return _request(graph, b, None, values, how)._replace(attention=score)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, graph: Graph, request: Request, how: How,
        b: Tensor, x: Tensor, other: Tensor, values: Maybe,
    ) -> Tensor:  # fmt: skip
        ctx.state = graph, request, how
        c, lse = _forward(graph, request, how, b, x, other, values, True)
        ctx.save_for_backward(b, x, other, values, c, lse)
        return c

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dc: Tensor) -> tuple[Any, ...]:
        needs = ctx.needs_input_grad[3:]
        graph, request, how = ctx.state
        b, x, other, values, c, lse = ctx.saved_tensors
        gradients = _backward(graph, request, how, dc, b, x, other, values, c, lse, needs)
        return (None, None, None, *(g if needed else None for g, needed in zip(gradients, needs)))


def _forward(
    graph: Graph, request: Request, how: How,
    b: Tensor, x: Tensor, other: Tensor, values: Maybe, needs_lse: bool, bias: Maybe = None,
) -> tuple[Tensor, Maybe]:  # fmt: skip
    plan = graph.plan(request if bias is None else request._replace(bias=True))
    c = b.new_empty(plan.shape)
    lse = None
    if needs_lse:
        lse = c.new_empty((graph.rows, request.heads), dtype=accumulator(b.dtype))
    if request.n:
        _run(
            plan, b.contiguous(), c, how, values=_dense(values), lse=lse, q=x.contiguous(),
            bias=_dense(bias), **{_name(request): other.contiguous()},
        )  # fmt: skip
    return c, lse


def _name(request: Request) -> str:
    return "k" if request.attention == "dot" else "att"


def _backward(
    graph: Graph, request: Request, how: How, dc: Tensor,
    b: Tensor, x: Tensor, other: Tensor, values: Maybe, c: Tensor, lse: Tensor,
    needs: tuple[bool, ...],
) -> tuple[Tensor, Maybe, Maybe, Maybe]:  # fmt: skip
    """The gradients of b, x, `other` and values; those of x and `other` only where needed."""
    wide = accumulator(b.dtype)
    dc, b, x, other = dc.contiguous(), b.contiguous(), x.contiguous(), other.contiguous()
    shape = (graph.rows, request.heads, request.n // request.heads)
    delta = torch.linalg.vecdot(dc.to(wide).reshape(shape), c.to(wide).reshape(shape))
    db, dx, dother = torch.empty_like(b), None, None
    dterms = dc.new_empty(edge_shape(graph.nnz, request.heads), dtype=wide)
    if request.n == 0 or graph.nnz == 0:
        db.zero_()
        dterms.zero_()
        dx, dother = torch.zeros_like(x), torch.zeros_like(other)
    else:
        is_dot = request.attention == "dot"
        dk = torch.empty_like(other) if is_dot and needs[2] else None
        _run(
            graph.plan(request._replace(transpose=True)), b, db, how, x=dc, values=_dense(values),
            lse=lse, delta=delta, dvalues=dterms, q=x, dk=dk, **{_name(request): other},
        )  # fmt: skip
        if is_dot:
            dx = _gradient_of_q(graph, request, other, dterms, how) if needs[1] else None
            dother = dk
        elif needs[1] or needs[2]:
            dx, dother = _gradients_of_rows(graph, request, b, x, other, dterms, how)
    dvalues = None if values is None else dterms.to(values.dtype).reshape(values.shape)
    return db, dx, dother, dvalues


def _gradient_of_q(graph: Graph, request: Request, k: Tensor, dterms: Tensor, how: How) -> Tensor:
    product = Request(request.width, request.dtype, dterms.dtype, request.heads, deterministic=True)
    return graph.plan(product).multiply(k, dterms, alpha=how.factor)


def _gradients_of_rows(
    graph: Graph, request: Request, b: Tensor, x: Tensor, att: Tensor, dterms: Tensor, how: How
) -> tuple[Tensor, Tensor]:
    dx, parts = torch.empty_like(x), torch.empty_like(x, dtype=att.dtype)
    rows = request._replace(attention="gatv2_rows", values=att.dtype, dropout=False)
    how = How(how.factor, 0.0, 0)
    _run(graph.plan(rows), b, dx, how, values=dterms, q=x, att=att, datt=parts)
    return dx, parts.sum(0)


# ---- registered ops --------------------------------------------------------------------


def _op(
    score: str, rowptr: Tensor, colind: Tensor, cols: int,
    b: Tensor, x: Tensor, other: Tensor, values: Maybe, *numbers: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request = _request_of(score, graph, b, values, how)
    c, lse = _forward(graph, request, how, b, x, other, values, True)
    assert lse is not None
    return c, lse


def _backward_op(
    score: str, rowptr: Tensor, colind: Tensor, cols: int, dc: Tensor,
    b: Tensor, x: Tensor, other: Tensor, values: Maybe, c: Tensor, lse: Tensor, *numbers: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    graph, how = find(rowptr, colind, cols), How(*numbers)
    request, needs = _request_of(score, graph, b, values, how), (True,) * 4
    gradients = _backward(graph, request, how, dc, b, x, other, values, c, lse, needs)
    return tuple(dc.new_empty(0) if gradient is None else gradient for gradient in gradients)


for _score, _three, _factor in (
    ("gatv2", "Tensor b, Tensor x, Tensor att", "slope"),
    ("dot", "Tensor v, Tensor q, Tensor k", "scale"),
):
    _ops = partial(_op, _score), partial(_backward_op, _score)
    register(_score, f"{_three}, Tensor? values", _factor, *_ops)
