"""Messages over rows, columns and edges, attention, and the softmax over edges."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from warploom._library import lib, new
from warploom._library import text as text_of
from warploom.jax._calls import Request, bind, layout, primitive
from warploom.jax._graph import Graph
from warploom.jax._products import dense, edge_values, flat, need_graph, refuse, request_of, spmm_p

message_p, attention_p = primitive("message"), primitive("attention")
_PAIRS = lib.WLM_WIDTH_BASE, lib.WLM_WIDTH_SCALE  # the numbers of a score
_MOST_RESULTS = 6  # WLM_MAX_RESULTS


def message(graph: Graph, text: str, *, heads: int = 1, **operands: Any) -> Any:
    """Compute the results of a message over all edges, in one kernel; differentiable.

        message(graph, "sum=relu(b+e)", b=nodes, e=edges)
        message(graph, "t:edge_sum=x*k; score=t/8; softmax=b", heads=8, x=q, k=k, b=v)

    text: as docs/operators.md describes. Its operands stand for rows (x, y), columns (b, k) and
        edges (e; a: values), or are declared with a place and a width.
    heads: how many heads the n columns are divided into.
    operands: arrays by name: (lines, n), (lines, heads, n / heads), (lines, heads) or (lines, 1);
        those of edges in the order of `graph.colind`. A number is a constant.

    Returns an array with the lines of the operands, or a tuple of several. A score is no result:
    for weights of edges there is `edge_softmax`. Derivatives are those of reverse mode, of the
    first order.
    """
    need_graph("message", graph)
    if not isinstance(text, str):
        refuse("message", f"text: is a {type(text).__name__}, not a str", TypeError)
    numbers = {k: float(v) for k, v in operands.items() if isinstance(v, (int, float))}
    given = {k: dense("message", k, v) for k, v in operands.items() if k not in numbers}
    request = _request(graph, text, heads, given, numbers)
    made = _differentiable(request)(graph.arrays, _arranged(request, given))
    columns = [given[one.name].shape[1:] for one in layout(request).operands if not one.width]
    lines = {
        lib.WLM_WIDTH_N: max(columns, key=len, default=(request.n,)),
        lib.WLM_WIDTH_HEADS: request.of_edges[1:],
    }
    shown = [
        one.reshape(len(one), *lines[like.width])
        for one, like in zip(made, layout(request).results)
        if like.width in lines
    ]
    return shown[0] if len(shown) == 1 else tuple(shown)


def _request(
    graph: Graph, text: str, heads: int, given: dict[str, Any], numbers: dict[str, float]
) -> Request:
    others = {name: one for name, one in given.items() if name != "a"}
    types = sorted({str(one.dtype) for one in others.values()})
    values = str(given["a"].dtype) if "a" in given else ""
    if len(types) > 1:
        refuse("message", f"operands have the types {', '.join(types)}; convert some", TypeError)
    widths = [math.prod(one.shape[1:]) for one in others.values()]
    n = 0 if 0 in widths else max([heads, *widths])
    if n % heads:
        refuse("message", f"heads: {heads} heads do not divide {n} columns")
    dtype, scalars = (*types, values or "float32")[0], tuple(sorted(numbers.items()))
    return request_of(graph, "message", dtype, n, heads, values=values, text=text, scalars=scalars)


def _arranged(request: Request, given: dict[str, Any]) -> tuple[Any, ...]:
    """The operands in the order of the text. Raises for names and shapes that do not fit it."""
    operands, text = layout(request).operands, repr(request.text)
    for name in given.keys() - {one.name for one in operands}:
        refuse("message", f"{name}: is no operand of {text}")
    for like in operands:
        one = given.get(like.name)
        if one is None:
            refuse("message", f"{like.name}: is missing, and {text} reads it")
        elif like.place == lib.WLM_PLACE_ALL and like.width == lib.WLM_WIDTH_ONE:
            refuse("message", f"{like.name}: is one number of {text}; pass a float", TypeError)
        elif one.size != math.prod(like.shape) or one.shape[0] not in (like.shape[0], one.size):
            expected = f"{like.shape[0]} lines of {like.shape[1]}"
            refuse("message", f"{like.name}: has shape {one.shape}; {text} needs {expected}")
    return tuple(given[like.name].reshape(like.shape) for like in operands)


# ---- gradients -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _differentiable(request: Request) -> Any:
    """The results of a message as a function of the arrays of a graph and the operands."""
    results = layout(request).results
    extremes = lib.WLM_MAX, lib.WLM_MIN
    with_winners = request._replace(argmax=any(one.reduce in extremes for one in results))

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def run(indices: Any, operands: Any) -> Any:
        return bind(message_p, request, *indices, *operands)

    def forward(indices: Any, operands: Any) -> Any:
        made = bind(message_p, with_winners, *indices, *operands)
        return made[: len(results)], (indices, operands, made)

    def backward(kept: Any, cts: Any) -> Any:
        indices, operands, made = kept
        winners = iter(made[len(results) :])
        by_edge = [next(winners) if one.reduce in extremes else None for one in results]
        known = {"d": cts, "c": made, "l": made, "s": made, "w": by_edge}
        return None, _gradients(request, indices, operands, known)

    run.defvjp(forward, backward)
    return run


def _gradients(
    request: Request, indices: Any, operands: Sequence[Any], known: dict[str, Sequence[Any]]
) -> tuple[Any, ...]:
    """known: what gradients read of the results, by the letter that names it in their texts."""
    arrays = layout(request)
    if any(one.reduce == lib.WLM_PROD for one in arrays.results):
        refuse("message", "prod has no gradient in JAX", NotImplementedError)
    sides: list[list[int]] = [[], [], []]  # rows, columns, edges
    for i, one in enumerate(arrays.operands):
        if one.place == lib.WLM_PLACE_ALL:
            continue
        sides[one.place].append(i)
    sides[1 if sides[1] and not sides[0] else 0] += sides.pop()  # edges come with either
    found = [jnp.zeros_like(one) for one in operands]
    given = {like.name: one for like, one in zip(arrays.operands, operands)}
    own = set(given)
    walks = [
        side[at : at + _MOST_RESULTS] for side in sides for at in range(0, len(side), _MOST_RESULTS)
    ]
    for by in walks:
        walk = _gradient(request, tuple(arrays.operands[i].name for i in by))
        names = [one.name for one in layout(walk).operands]
        for name in names:
            part = re.fullmatch(r"(d+|w+|c+|l+|s+)(\d+)", name)
            if part and name not in own:
                given[name] = known[name[0]][int(part[2])]
        made = bind(message_p, walk, *indices, *(given[name] for name in names))
        for i, one in zip(by, made):
            parts = request.heads if arrays.operands[i].width == lib.WLM_WIDTH_HEADS else 1
            if one.size != operands[i].size:  # columns that share a number
                one = one.reshape(len(one), parts, -1).sum(-1)
            found[i] = one.reshape(operands[i].shape).astype(operands[i].dtype)
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _gradient(request: Request, by: tuple[str, ...]) -> Request:
    """The message that computes the gradients by these operands."""
    gradient, (problem, _kept) = new("wlm_problem"), request.problem()
    text = text_of(lib.wlm_message_gradient, problem, ",".join(by).encode(), gradient)
    walk = request._replace(text=text, transpose=bool(gradient.transpose))
    reads_values = any(one.name == "a" for one in layout(walk).operands)
    return walk if reads_values else walk._replace(values="")


# ---- attention -----------------------------------------------------------------------------------


def gat(graph: Graph, b: Any, left: Any, right: Any, *, slope: float = 0.2) -> jax.Array:
    """Attention of GAT in one pass over the edges; differentiable.

    C[i] is the sum of b[k] over the edges k -> i, weighted by the softmax of leaky_relu(left[i] +
    right[k], slope) over the edges of row i.

    b: (cols, heads, features), or (cols, n) for one head.
    left: (rows, heads); right: (cols, heads).
    """
    need_graph("gat", graph)
    b = dense("gat", "b", b, graph.cols)
    heads = b.shape[1] if b.ndim == 3 else 1
    request = request_of(
        graph,
        "attention",
        b.dtype,
        math.prod(b.shape[1:]),
        heads,
        scalars=(("slope", float(slope)),),
    )
    terms = []
    for name, given, lines in (("left", left, graph.rows), ("right", right, graph.cols)):
        term = dense("gat", name, given, lines, 2)
        if term.size != lines * heads:
            refuse("gat", f"{name}: has shape {term.shape}; expected ({lines}, {heads})")
        terms.append(term.reshape(lines, heads).astype(request.accumulator))
    return _attend(request, graph.arrays, *terms, flat(b)).reshape(graph.rows, *b.shape[1:])


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(request: Request, indices: Any, *operands: Any) -> Any:
    return bind(attention_p, request, *indices, *operands)[0]


def _attend_forward(request: Request, indices: Any, *operands: Any) -> Any:
    c, pairs = bind(attention_p, request, *indices, *operands)
    return c, (indices, operands, c, pairs)


def _attend_backward(request: Request, kept: Any, ct: Any) -> Any:
    indices, operands, c, pairs = kept
    wide, heads = request.accumulator, request.heads
    delta = (ct.astype(wide) * c.astype(wide)).reshape(len(c), heads, -1).sum(-1)
    turned = request._replace(transpose=True)
    dscores, dright, db = bind(attention_p, turned, *indices, *operands, ct, pairs, delta)
    sums = request._replace(
        operation="spmm", message="copy_a", dtype=wide, values=wide, n=heads, scalars=()
    )
    return None, bind(spmm_p, sums, *indices, dscores)[0], dright, db


_attend.defvjp(_attend_forward, _attend_backward)


# ---- softmax -------------------------------------------------------------------------------------


def edge_softmax(graph: Graph, scores: Any) -> jax.Array:
    """Softmax over the edges of each row; differentiable.

    scores: (nnz,) or (nnz, heads) in the order of `graph.colind`.
    """
    need_graph("edge_softmax", graph)
    given, heads = edge_values("edge_softmax", "scores", scores, graph)
    return _softmax(graph, given.reshape(graph.nnz, heads)).reshape(jnp.shape(scores))


def _walk(graph: Graph, text: str, like: Any, **operands: Any) -> Any:
    """The result of a message in which each column has a head of its own."""
    heads = like.shape[1]
    request = request_of(graph, "message", like.dtype, heads, heads, text=text)
    given = [operands[one.name] for one in layout(request).operands]
    return bind(message_p, request, *graph.arrays, *given)[0]


@jax.custom_vjp  # type: ignore[untyped-decorator]
def _softmax(graph: Graph, scores: Any) -> Any:
    pairs = _walk(graph, "s:edge:heads; score=s", scores, s=scores)
    text = "s:edge:heads; m:row:base; f:row:scale; edge=expscale(s,m,f)"
    return _walk(graph, text, scores, s=scores, m=pairs, f=pairs)


def _softmax_forward(graph: Graph, scores: Any) -> Any:
    weights = _softmax(graph, scores)
    return weights, (graph, weights)


def _softmax_backward(kept: Any, ct: Any) -> Any:
    graph, weights = kept
    product = ct * weights
    sums = _walk(graph, "sum=e", weights, e=product)
    return None, _walk(graph, "w:edge; edge=e-w*x", weights, e=product, w=weights, x=sums)


_softmax.defvjp(_softmax_forward, _softmax_backward)
