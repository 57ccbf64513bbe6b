"""Messages over rows, columns and edges, their gradients, and the softmax over edges."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import batching

from warploom._library import lib, new
from warploom._library import text as text_of
from warploom.jax._calls import (
    INDEX_SLOTS,
    Layout,
    Request,
    bind,
    edge_shape,
    layout,
    primitive,
)
from warploom.jax._graph import Graph
from warploom.jax._products import (
    batch_size,
    dense,
    edge_values,
    need_graph,
    need_one_graph,
    refuse,
    request_of,
    spmm_p,
    tiled,
)

message_p, attention_p = primitive("message"), primitive("attention")
_PER_HEAD = (lib.WLM_WIDTH_HEADS, lib.WLM_WIDTH_BASE, lib.WLM_WIDTH_SCALE)
_SHARED = lib.WLM_WIDTH_ONE
_MOST_RESULTS = 6  # WLM_MAX_RESULTS


def message(graph: Graph, text: str, *, heads: int = 1, **operands: Any) -> Any:
    """Compute the results of a message over all edges, in one kernel; differentiable.

        message(graph, "sum=relu(b+e)", b=nodes, e=edges)
        message(graph, "l:row:heads; r:column:heads; score=leaky_relu(l+r,0.2); softmax=b",
                heads=8, l=left, r=right, b=nodes)

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
    given = {k: jnp.asarray(v) for k, v in operands.items() if k not in numbers}
    request = _request("message", graph, text, heads, given, numbers)
    arranged = _arranged(layout(request), given, request, graph)
    made = _differentiable(request)(graph.arrays, arranged)
    results = _shown(request, given, made)
    return results[0] if len(results) == 1 else results


def _request(
    of: str, graph: Graph, text: str, heads: int, given: dict[str, Any], numbers: dict[str, float]
) -> Request:
    types = {str(one.dtype) for name, one in given.items() if name != "a"}
    values = str(given["a"].dtype) if "a" in given else ""
    if len(types) > 1:
        refuse(of, f"operands have the types {', '.join(sorted(types))}; convert some", TypeError)
    dtype = next(iter(types), values or "float32")
    for name, one in given.items():
        dense(of, name, one, one.shape[0] if one.ndim else 0)
    widths = [math.prod(one.shape[1:]) for name, one in given.items() if name != "a"]
    n = 0 if 0 in widths else max([heads, *widths])
    if n % heads:
        refuse(of, f"heads: {heads} heads do not divide {n} columns")
    scalars = tuple(sorted(numbers.items()))
    return request_of(graph, "message", dtype, n, heads, values=values, text=text, scalars=scalars)


def _arranged(
    arrays: Layout, given: dict[str, Any], request: Request, graph: Graph
) -> tuple[Any, ...]:
    """The operands in the order of the text. Raises for names and shapes that do not fit it."""
    for name in given:
        if name not in arrays.names:
            refuse("message", f"{name}: is no operand of {request.text!r}")
    arranged = []
    for name, like, width in zip(arrays.names, arrays.operands, arrays.widths):
        if name not in given:
            refuse("message", f"{name}: is missing, and {request.text!r} reads it")
        one = given[name]
        if one.size != math.prod(like.shape) or one.shape[0] not in (like.shape[0], one.size):
            expected = f"{like.shape[0]} lines of {like.shape[1]}"
            refuse("message", f"{name}: has shape {one.shape}; {request.text!r} needs {expected}")
        is_flat = width == _SHARED and name == "a"
        arranged.append(one.reshape(like.shape[0] if is_flat else like.shape))
    return tuple(arranged)


def _shown(request: Request, given: dict[str, Any], made: Sequence[Any]) -> tuple[Any, ...]:
    """The results that are no scores, with lines as those of the operands."""
    arrays = layout(request)
    wide = [given[n].shape[1:] for n, w in zip(arrays.names, arrays.widths) if w == lib.WLM_WIDTH_N]
    lines = {
        lib.WLM_WIDTH_N: max(wide, key=len, default=(request.n,)),
        lib.WLM_WIDTH_HEADS: edge_shape(request)[1:],
    }
    widths = arrays.widths[len(arrays.names) :]
    return tuple(one.reshape(one.shape[0], *lines[w]) for one, w in zip(made, widths) if w in lines)


# ---- gradients -----------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _differentiable(request: Request) -> Any:
    """The results of a message as a function of the arrays of a graph and the operands."""

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def run(indices: Any, operands: Any) -> Any:
        return bind(message_p, request, *indices, *operands)

    def forward(indices: Any, operands: Any) -> Any:
        kinds, count = layout(request).kinds, len(layout(request).results)
        has_winners = lib.WLM_MAX in kinds or lib.WLM_MIN in kinds
        made = bind(message_p, request._replace(argmax=has_winners), *indices, *operands)
        return made[:count], (indices, operands, made)

    def backward(kept: Any, cts: Any) -> Any:
        indices, operands, made = kept
        return None, _gradients(request, indices, operands, made, cts)

    run.defvjp(forward, backward)
    return run


def _gradients(
    request: Request, indices: Any, operands: Sequence[Any], made: Sequence[Any], cts: Any
) -> tuple[Any, ...]:
    arrays = layout(request)
    if lib.WLM_PROD in arrays.kinds:
        refuse("message", "prod has no gradient in JAX", NotImplementedError)
    widths, count = arrays.widths, len(arrays.names)
    winners = iter(made[len(arrays.results) :])
    is_won = [kind in (lib.WLM_MAX, lib.WLM_MIN) for kind in arrays.kinds]
    known = {"d": list(cts), "c": made, "l": made, "s": made,
             "w": [next(winners) if won else None for won in is_won]}  # fmt: skip
    sides: dict[int, list[int]] = {lib.WLM_PLACE_ROW: [], lib.WLM_PLACE_COLUMN: []}
    of_edges = [i for i in range(count) if arrays.places[i] == lib.WLM_PLACE_EDGE]
    for place, side in sides.items():
        side += [i for i in range(count) if arrays.places[i] == place]
    sides[lib.WLM_PLACE_ROW if sides[lib.WLM_PLACE_ROW] or not sides[lib.WLM_PLACE_COLUMN]
          else lib.WLM_PLACE_COLUMN] += of_edges  # fmt: skip
    found: list[Any] = [jnp.zeros_like(one) for one in operands]
    by_name = dict(zip(arrays.names, operands))
    for side in sides.values():
        for at in range(0, len(side), _MOST_RESULTS):
            by = side[at : at + _MOST_RESULTS]
            walk = _gradient(request, tuple(arrays.names[i] for i in by))
            for name in layout(walk).names:
                part = re.fullmatch(r"(d+|w+|c+|l+|s+)(\d+)", name)
                if part and name not in arrays.names:
                    by_name[name] = known[name[0]][int(part[2])]
            given = [by_name[name] for name in layout(walk).names]
            for i, one in zip(by, bind(message_p, walk, *indices, *given)):
                found[i] = _narrowed(request, widths[i], one, operands[i])
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def _gradient(request: Request, by: tuple[str, ...]) -> Request:
    """The message that computes the gradients by these operands."""
    gradient = new("wlm_problem")
    problem, _kept = request.problem()
    text = text_of(lib.wlm_message_gradient, problem, ",".join(by).encode(), gradient)
    walk = request._replace(text=text, transpose=bool(gradient.transpose))
    return (
        walk
        if "a" in layout(walk._replace(values=walk.values or "float32")).names
        else (walk._replace(values=""))
    )


def _narrowed(request: Request, width: int, gradient: Any, operand: Any) -> Any:
    """The gradient by an operand from what a walk gave: sums over columns that share a number."""
    if gradient.size != operand.size:
        parts = request.heads if width in _PER_HEAD else 1
        gradient = gradient.reshape(gradient.shape[0], parts, -1).sum(-1)
    return gradient.reshape(operand.shape).astype(operand.dtype)


def _batch(arrays: Any, dims: Any, *, request: Request) -> Any:
    """A batch becomes columns, each call with heads of its own; operands of which all columns share
    a number take turns."""
    need_one_graph(dims)
    count = len(INDEX_SLOTS)
    described, size = layout(request), batch_size(arrays, dims)
    operands, dims = arrays[count:], dims[count:]
    shared = [width == _SHARED or place == lib.WLM_PLACE_ALL
              for width, place in zip(described.widths, described.places)]  # fmt: skip
    if any(is_shared and dim is not None for is_shared, dim in zip(shared, dims)):

        def turn(i: Any) -> Any:
            taken = [one if dim is None else jax.lax.dynamic_index_in_dim(one, i, dim, False)
                     for one, dim in zip(operands, dims)]  # fmt: skip
            return tuple(bind(message_p, request, *arrays[:count], *taken))

        made = jax.lax.map(turn, jnp.arange(size))
        return list(made), [0] * len(made)
    wide = request._replace(n=size * request.n, heads=size * request.heads)
    given = [
        one if is_shared else tiled(one, dim, size).reshape(like.shape)
        for one, dim, is_shared, like in zip(operands, dims, shared, layout(wide).operands)
    ]
    made = bind(message_p, wide, *arrays[:count], *given)
    return [one.reshape(one.shape[0], size, -1) for one in made], [1] * len(made)


def _batch_attention(arrays: Any, dims: Any, *, request: Request) -> Any:
    need_one_graph(dims)
    count, size = len(INDEX_SLOTS), batch_size(arrays, dims)
    wide = request._replace(n=size * request.n, heads=size * request.heads)
    given = [
        tiled(one, dim, size).reshape(like.shape)
        for one, dim, like in zip(arrays[count:], dims[count:], layout(wide).operands)
    ]
    made = bind(attention_p, wide, *arrays[:count], *given)
    return [one.reshape(one.shape[0], size, -1) for one in made], [1] * len(made)


batching.primitive_batchers[message_p] = _batch
batching.primitive_batchers[attention_p] = _batch_attention


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
    request = request_of(graph, "attention", b.dtype, math.prod(b.shape[1:]), heads)
    request = request._replace(scalars=(("slope", float(slope)),))
    terms = []
    for name, one, lines in (("left", left, graph.rows), ("right", right, graph.cols)):
        term = dense("gat", name, one, lines, 2)
        if term.size != lines * heads:
            refuse("gat", f"{name}: has shape {term.shape}; expected ({lines}, {heads})")
        terms.append(term.reshape(lines, heads).astype(request.accumulator))
    c = _attend(request, graph.arrays, *terms, b.reshape(graph.cols, request.n))
    return c.reshape(graph.rows, *b.shape[1:])


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _attend(request: Request, indices: Any, left: Any, right: Any, b: Any) -> Any:
    return bind(attention_p, request, *indices, left, right, b)[0]


def _attend_forward(request: Request, indices: Any, *operands: Any) -> Any:
    c, pairs = bind(attention_p, request, *indices, *operands)
    return c, (indices, operands, c, pairs)


def _attend_backward(request: Request, kept: Any, ct: Any) -> Any:
    indices, operands, c, pairs = kept
    heads, wide = request.heads, request.accumulator
    products = (ct.astype(wide) * c.astype(wide)).reshape(c.shape[0], heads, -1)
    found = bind(
        attention_p, request._replace(transpose=True), *indices, *operands, ct, pairs,
        products.sum(-1),
    )  # fmt: skip
    dscores, dright, db = found
    sums = request._replace(
        operation="spmm", message="copy_a", dtype=wide, values=wide, n=heads, scalars=()
    )
    dscores = dscores.reshape(edge_shape(sums))
    return None, bind(spmm_p, sums, *indices, dscores)[0], dright, db


_attend.defvjp(_attend_forward, _attend_backward)


# ---- softmax -------------------------------------------------------------------------------------


def edge_softmax(graph: Graph, scores: Any) -> jax.Array:
    """Softmax over the edges of each row; differentiable.

    scores: (nnz,) or (nnz, heads) in the order of `graph.colind`.
    """
    need_graph("edge_softmax", graph)
    flat, heads = edge_values("edge_softmax", "scores", scores, graph)
    return _softmax(graph, flat.reshape(graph.nnz, heads)).reshape(jnp.shape(scores))


def _walk(graph: Graph, text: str, like: Any, **operands: Any) -> Any:
    heads = like.shape[1]
    request = request_of(graph, "message", like.dtype, heads, heads, text=text)
    names = layout(request).names
    return bind(message_p, request, *graph.arrays, *(operands[name] for name in names))[0]


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
