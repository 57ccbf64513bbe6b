"""Gradients of a product, in terms of products.

With C[i] = reduce over p = (i, k) of message(a_p, b_k) and x = dC:

    dB of a sum      another sum, over the transpose, with x in the place of b
    da of a sum      an SDDMM
    mean             as a sum, of x divided by the edges of its row
    max and min      from the positions of the edges that won
    prod             edge by edge, by torch: takes nnz x n elements
"""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch

from warploom.torch._graph import Graph
from warploom.torch._plan import KeptPlan, Launcher, OnceKind, Request, accumulator, edge_shape

Pair = tuple[Optional[torch.Tensor], Optional[torch.Tensor]]


def saved(request: Request, need_b: bool, need_values: bool) -> tuple[bool, bool]:
    """Whether b and whether values must be kept for the backward pass."""
    message, has_values = request.message, request.values is not None
    multiplies = message in ("mul", "div", "rdiv")
    if request.reduce == "prod":
        return True, has_values
    if request.reduce in ("max", "min"):
        return multiplies and (has_values or message == "rdiv"), has_values
    b = (need_values and multiplies) or (need_b and message == "rdiv")
    return b, has_values and ((need_b and multiplies) or (need_values and message == "div"))


def argmax_request(request: Request, positions: torch.dtype) -> Request:
    """The request that also gives positions.

    Without values a * b and b / a are b, whose gradient needs no b.
    """
    copies = request.values is None and request.message in ("mul", "div")
    message = "copy_b" if copies else request.message
    return request._replace(argmax=True, message=message, positions=positions)


# ---- sums ----------------------------------------------------------------------------


class Transposed(NamedTuple):
    """dB of a sum or mean: one product with the transpose."""

    kind: KeptPlan | OnceKind
    weights: torch.Tensor | None  # in the place of A's values
    divides: bool  # rows of dC are divided by their edges
    alpha: float


def transposed(graph: Graph, request: Request) -> Transposed:
    """How dB of a request is computed."""
    message, sample = request.message, request.sample
    has_values = request.values is not None and message in ("mul", "div", "rdiv")
    weights, divides = None, False
    if request.reduce == "mean":
        if sample is not None:
            sample = sample._replace(norm="kept")
        elif has_values or graph.once:
            divides = True
        else:
            weights = graph.mean_weights(accumulator(request.dtype))
    kind = graph.kind(
        Request(
            request.width,
            request.dtype,
            request.values if has_values else None if weights is None else weights.dtype,
            request.heads if has_values else 1,
            "sum",
            "div" if message == "div" and has_values else "mul",
            request.deterministic,
            sample,
            transpose=True,
        )
    )
    return Transposed(kind, weights, divides, -1.0 if message in ("rsub", "rdiv") else 1.0)


def values_request(request: Request) -> Request:
    """What gives the gradient of a sum or mean by the values; it reads them of "div" alone."""
    values = request.values if request.message == "div" else None
    return request._replace(values=values, sddmm=True)


def edge_products(
    graph: Graph,
    request: Request,
    x: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    seed: int = 0,
) -> torch.Tensor:
    """SDDMM. The library refuses a sum over no columns."""
    if request.n == 0:
        return x.new_zeros(edge_shape(graph.nnz, request.heads))
    return graph.plan(request).edge_products(x, b, values, seed)


# ---- max and min ---------------------------------------------------------------------


def of_winners(
    graph: Graph,
    plan: Launcher,
    x: torch.Tensor,
    argmax: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    need_b: bool,
    need_values: bool,
) -> Pair:
    """Gradients from the plan that gave the positions, of x's or the accumulator's type."""
    request, sums = plan.request, accumulator(x.dtype)
    ordered = request.deterministic and x.is_cuda
    is_alone = b is None and values is None and need_b
    can_halve = not (graph.once or ordered or request.n % 2)
    if is_alone and sums != x.dtype and can_halve and x.numel():
        return in_halves(graph, request, x.contiguous(), argmax), None
    db = x.new_empty((graph.cols, *request.width), dtype=sums) if need_b else None
    dvalues = None
    if need_values:
        dvalues = x.new_empty(edge_shape(graph.nnz, request.heads), dtype=sums)
    if x.numel() == 0:  # the library writes nothing then
        return None if db is None else db.zero_(), None if dvalues is None else dvalues.zero_()
    if ordered:
        in_order(graph, request, x, argmax, b, values, db, dvalues)
    else:
        plan.argmax_gradients(x, argmax, b, values, db, dvalues)
    return db, dvalues


def in_halves(
    graph: Graph, request: Request, x: torch.Tensor, argmax: torch.Tensor
) -> torch.Tensor:
    """dB of 16 bits. Its sums in 32 bits take half of the columns at a time, and as much memory."""
    n, dtype = request.n // 2, accumulator(x.dtype)
    plan = graph.plan(request._replace(width=(n,), heads=1))
    db = x.new_empty((graph.cols, *request.width))
    halves, sums = db.view(graph.cols, 2, n), x.new_empty((graph.cols, n), dtype=dtype)
    for half in range(2):
        plan.argmax_gradients(x, argmax, None, None, sums, None, half * n, 2 * n)
        halves[:, half].copy_(sums)
    return db


def in_order(
    graph: Graph,
    request: Request,
    x: torch.Tensor,
    argmax: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    db: torch.Tensor | None,
    dvalues: torch.Tensor | None,
) -> None:
    """The same with torch, which sorts the terms: kernels of a GPU add them in any order."""
    width = torch.arange(request.n, device=x.device)
    won = argmax.reshape(-1, request.n).long()
    used = won >= 0
    edge = won.clamp(min=0)
    column = graph.colind.long()[edge]
    sums = accumulator(x.dtype)
    grad = x.reshape(won.shape).to(sums)
    flat = torch.ones_like(grad) if b is None else b.reshape(-1, request.n).to(sums)[column, width]
    head = width // (request.n // request.heads)
    if values is None:
        a = torch.ones_like(grad)
    else:
        a = values.to(sums).reshape(-1, request.heads)[edge, head]
    _, by_b, by_a = derivatives(request.message, a, flat)
    for into, columns, line, at, by in (
        (db, request.n, column, width, by_b),
        (dvalues, request.heads, edge, head, by_a),
    ):
        if into is not None:
            into.zero_().reshape(-1, columns).index_put_(
                (line, at.expand_as(line)), torch.where(used, grad * by, 0), accumulate=True
            )


# ---- prod ----------------------------------------------------------------------------


def of_product(
    graph: Graph,
    message: str,
    x: torch.Tensor,
    b: torch.Tensor,
    values: torch.Tensor | None,
    need_b: bool,
    need_values: bool,
) -> Pair:
    """Each edge gets x times the product of the other messages of its row.

    Zeros count as in torch.scatter_reduce.
    """
    row, column = graph.row().long(), graph.colind.long()
    widened = torch.float64 if b.dtype == torch.float64 else torch.float32
    x, gathered = x.to(widened), b.to(widened).index_select(0, column)
    if values is None:
        a = gathered.new_ones(()).expand_as(gathered)
    else:
        a = (
            values.to(widened)
            .reshape(values.shape + (1,) * (b.dim() - values.dim()))
            .expand_as(gathered)
        )
    m, by_b, by_a = derivatives(message, a, gathered)
    zero = m == 0
    zeros = torch.zeros_like(x).index_add(0, row, zero.to(widened)).index_select(0, row)
    target = row.reshape((-1,) + (1,) * (b.dim() - 1)).expand_as(m)
    product = (
        torch.ones_like(x)
        .scatter_reduce(0, target, m.masked_fill(zero, 1), "prod")
        .index_select(0, row)
    )
    others = torch.where(zero, product * (zeros == 1), product / m * (zeros == 0))
    dm = x.index_select(0, row) * others
    db = dvalues = None
    if need_b:
        db = torch.zeros_like(b, dtype=widened).index_add(0, column, dm * by_b).to(b.dtype)
    if need_values:
        assert values is not None
        dvalues = (dm * by_a).sum(tuple(range(values.dim(), b.dim())))
    return db, dvalues


def derivatives(
    message: str, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A message and its derivatives by b and by a."""
    one = torch.ones_like(b)
    if message == "mul":
        return a * b, a, b
    if message == "copy_b":
        return b, one, 0 * one
    if message == "copy_a":
        return a, 0 * one, one
    if message == "add":
        return a + b, one, one
    if message == "sub":
        return b - a, one, -one
    if message == "rsub":
        return a - b, -one, one
    if message == "div":
        return b / a, 1 / a, -b / (a * a)
    return a / b, -a / (b * b), 1 / b
