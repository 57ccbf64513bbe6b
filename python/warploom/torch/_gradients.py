"""Gradients of a product, in terms of products.

With C[i] = reduce over p = (i, k) of message(a_p, b_k) and x = dC:

    dB of a sum      another sum, over the transpose, with x in the place of b
    da of a sum      an SDDMM
    mean             as a sum, of x divided by the edges of its row
    max and min      from the positions of the edges that won
    prod             those of the message that says the same (_message_walks)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Optional

import torch

from warploom.torch._edges import Shaped
from warploom.torch._graph import Graph
from warploom.torch._message_parts import OWN
from warploom.torch._message_walks import Message
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


def gradient_request(request: Request, positions: torch.dtype) -> Request:
    """The request of the gradients by positions of this type."""
    return argmax_request(request, positions)._replace(argmax=False, gradient=True)


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


# ---- max and min ---------------------------------------------------------------------


def of_winners(
    graph: Graph,
    request: Request,
    plan: Callable[[], Launcher],
    x: torch.Tensor,
    argmax: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    need: tuple[bool, bool],
) -> Pair:
    """Gradients of the product of a request, of x's or the accumulator's type.

    plan: gives the plan of `gradient_request`, which is not made where it is not used.
    need: whether b's and values' gradients are needed.
    """
    need_b, need_values = need
    sums = accumulator(x.dtype)
    ordered = request.deterministic and x.is_cuda
    is_alone = b is None and values is None and need_b
    can_halve = not (graph.once or ordered or request.n % 2)
    if is_alone and sums != x.dtype and can_halve and x.numel():
        return in_halves(graph, request, x.contiguous(), argmax), None
    if ordered and x.numel():  # kernels of a GPU add terms in any order
        request = argmax_request(request, argmax.dtype)._replace(argmax=False)
        return of_message(graph, request, x, b, values, argmax, need)
    db = x.new_empty((graph.cols, *request.width), dtype=sums) if need_b else None
    dvalues = None
    if need_values:
        dvalues = x.new_empty(edge_shape(graph.nnz, request.heads), dtype=sums)
    if x.numel() == 0:  # the library writes nothing then
        return None if db is None else db.zero_(), None if dvalues is None else dvalues.zero_()
    plan().argmax_gradients(x, argmax, b, values, db, dvalues)
    return db, dvalues


def in_halves(
    graph: Graph, request: Request, x: torch.Tensor, argmax: torch.Tensor
) -> torch.Tensor:
    """dB of 16 bits. Its sums in 32 bits take half of the columns at a time, and as much memory."""
    n, dtype = request.n // 2, accumulator(x.dtype)
    plan = graph.plan(gradient_request(request, argmax.dtype)._replace(width=(n,), heads=1))
    db = x.new_empty((graph.cols, *request.width))
    halves, sums = db.view(graph.cols, 2, n), x.new_empty((graph.cols, n), dtype=dtype)
    for half in range(2):
        plan.argmax_gradients(x, argmax, None, None, sums, None, half * n, 2 * n)
        halves[:, half].copy_(sums)
    return db


# ---- by a message --------------------------------------------------------------------

_TEXTS = {
    "mul": "{a}*b", "copy_b": "b", "copy_a": "b==b?{a}:{a}", "add": "{a}+b", "sub": "b-{a}",
    "rsub": "{a}-b", "div": "b/{a}", "rdiv": "{a}/b",
}  # fmt: skip


def of_sampled(
    graph: Graph, request: Request, x: torch.Tensor, b: torch.Tensor | None,
    values: torch.Tensor | None, needs: tuple[bool, bool], seed: int,
) -> Pair:  # fmt: skip
    """`of_message` with sampling: of the graph of the edges that were used, as often as they were.

    It waits for the device.
    """
    sample, dtype = request.sample, torch.float32
    assert sample is not None
    counting = Request((1,), dtype, sample=sample._replace(norm="none"), sddmm=True)
    rows, cols = (x.new_ones((n, 1), dtype=dtype) for n in (graph.rows, graph.cols))
    counts = graph.plan(counting).edge_products(rows, cols, None, seed).long()
    ends = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    used = graph._count(graph.nnz).repeat_interleave(counts)
    rowptr = ends[graph.rowptr.long()].to(graph.rowptr.dtype)
    sampled = Graph(rowptr, graph.colind[used], cols=graph.cols, once=True)
    there = None if values is None else values[used]
    db, dvalues = of_message(sampled, request._replace(sample=None), x, b, there, None, needs)
    if dvalues is not None:
        zeros = dvalues.new_zeros((graph.nnz, *dvalues.shape[1:]))
        dvalues = zeros.index_add(0, used, dvalues)
    return db, dvalues


def of_message(
    graph: Graph, request: Request, x: torch.Tensor, b: torch.Tensor | None,
    values: torch.Tensor | None, argmax: torch.Tensor | None, needs: tuple[bool, bool],
) -> Pair:  # fmt: skip
    """Gradients of the product as a message, whose walks add terms in a fixed order."""
    has_values = request.values is not None
    width = request.width if request.heads > 1 else (request.n,)
    key = "message", request, graph.nnz < 2**31
    product = graph._products.get(key)
    if product is None:
        likes = [Shaped((graph.cols, *width), request.dtype)]
        places: tuple[tuple[str, str], ...] = (("b", "column"),)
        if request.values is not None:
            likes.append(Shaped(edge_shape(graph.nnz, request.heads), request.values))
            places += (("a", OWN),)
        text = _TEXTS[request.message].format(a="a" if has_values else "1")
        product = graph._products[key] = Message(
            likes, text, (request.reduce,), request.heads, places, (), False, request.deterministic
        )
    if argmax is not None:
        argmax = argmax.to(torch.int32 if graph.nnz < 2**31 else torch.int64)
    if b is None and request.message == "copy_a":
        b = x.new_zeros((graph.cols, request.n))  # its text reads b for the number of columns
    kept = [None if b is None else b.reshape(graph.cols, *width), values][: 1 + has_values]
    x = x.reshape(graph.rows, *width)
    extra = [] if argmax is None else [argmax]
    found = product.gradients(graph, (x,), [*kept, None, None, *extra], (), needs[: len(kept)])
    db = None if found[0] is None else found[0].reshape(graph.cols, *request.width)
    return db, found[1] if has_values else None
