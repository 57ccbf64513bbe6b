"""spmm, sddmm and their derivatives.

A product is linear in the values and in b, and its transposes are products again, so derivatives of
any order and in both modes are these two primitives.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching

from warploom._arrays import DENSE_TYPES
from warploom.jax._calls import INDICES, Request, batch_as_heads, batch_size, bind, primitive, tiled
from warploom.jax._graph import Graph

spmm_p, sddmm_p, extreme_p = (primitive(name) for name in ("spmm", "sddmm", "extreme"))


# ---- checks, which both functions and messages share ---------------------------------------------


def refuse(of: str, why: str, error: type[Exception] = ValueError) -> Any:
    """Raise what is wrong with a call."""
    raise error(f"warploom.jax.{of}: {why}")


def need_graph(of: str, graph: Any) -> None:
    """Raise TypeError unless this is a Graph."""
    if not isinstance(graph, Graph):
        refuse(of, f"graph: is a {type(graph).__name__}; make a Graph.from_edges", TypeError)


def dense(of: str, name: str, given: Any, lines: int | None = None, most: int = 3) -> jax.Array:
    """An operand of this many lines. Raises for a wrong type or shape."""
    array = jnp.asarray(given)
    if str(array.dtype) not in DENSE_TYPES:
        served = "float32, float16, bfloat16 or float64"
        refuse(of, f"{name}: has type {array.dtype}; use {served}", TypeError)
    if not 1 <= array.ndim <= most or lines not in (None, array.shape[0]):
        expected = f"{lines} lines and at most {most} dimensions"
        refuse(of, f"{name}: has shape {array.shape}; expected {expected}")
    return array


def edge_values(of: str, name: str, given: Any, graph: Graph) -> tuple[jax.Array, int]:
    """Values of edges, (nnz,) or (nnz, heads), and the number of heads."""
    array = dense(of, name, given, graph.nnz, 2)
    heads = array.shape[1] if array.ndim == 2 else 1
    return (array.reshape(graph.nnz) if heads == 1 else array), heads


def flat(array: jax.Array) -> jax.Array:
    """An operand as lines of columns."""
    return array.reshape(array.shape[0], math.prod(array.shape[1:]))


def request_of(
    graph: Graph, operation: str, dtype: Any, n: int, heads: int, **more: Any
) -> Request:
    """A request for a graph."""
    sizes = graph.rows, graph.cols, graph.nnz, str(graph.colind.dtype)
    return Request(operation, *sizes, str(dtype), n, heads, **more)


# ---- functions -----------------------------------------------------------------------------------


def spmm(
    graph: Graph, b: Any, values: Any = None, *, reduce: str = "sum", transpose: bool = False
) -> jax.Array:
    """C[i] = reduce over the edges k -> i of values * b[k]; differentiable in b and values.

    b: (cols,), (cols, n) or (cols, heads, n / heads) of float32, float16, bfloat16 or float64.
    values: (nnz,), or (nnz, heads), in the order of `graph.colind`; None = 1. They have the type of
        b, or are float32 beside a 16-bit type.
    reduce: "sum", "mean", "max" or "min"; a row without edges is 0. A maximum passes its gradient
        to the first of the equal edges.
    transpose: multiply by A^T: b has rows lines, and the result cols. Sums alone.
    """
    need_graph("spmm", graph)
    if reduce not in ("sum", "mean", "max", "min"):
        refuse("spmm", f"reduce: is {reduce!r}; use sum, mean, max or min")
    if transpose and reduce != "sum":
        refuse("spmm", f"transpose: is of sums, not of {reduce}")
    b = dense("spmm", "b", b, graph.rows if transpose else graph.cols)
    line, heads, given, of_values = b.shape[1:], 1, [flat(b)], ""
    if values is not None:
        values, heads = edge_values("spmm", "values", values, graph)
        of_values = str(values.dtype)
        if of_values != str(b.dtype) and not (b.dtype.itemsize == 2 and of_values == "float32"):
            refuse("spmm", f"values: has type {of_values} and b {b.dtype}; convert one", TypeError)
        if math.prod(line) % heads or (len(line) == 2 and heads not in (1, line[0])):
            refuse("spmm", f"values: {heads} heads do not divide the {line} columns of b")
        given = [values, *given]
    request = request_of(graph, "spmm", b.dtype, math.prod(line), heads, values=of_values)
    if reduce in ("max", "min"):
        request = request._replace(reduce=reduce, argmax=True)
        c = _extreme(request, graph.arrays, *given)
    else:
        request = request._replace(transpose=bool(transpose))
        (c,) = bind(spmm_p, request, *graph.arrays, *given)
    if reduce == "mean":
        c = c / jnp.maximum(graph.degrees(), 1).astype(c.dtype)[:, None]
    return c.reshape(c.shape[0], *line)


def sddmm(graph: Graph, x: Any, y: Any) -> jax.Array:
    """<x[i], y[k]> for each edge k -> i, in the order of `graph.colind`; differentiable.

    x: (rows, n) or (rows, heads, n / heads); y: (cols, ...) of the same type and line.

    Returns (nnz,), or (nnz, heads) of operands with heads.
    """
    need_graph("sddmm", graph)
    x, y = dense("sddmm", "x", x, graph.rows), dense("sddmm", "y", y, graph.cols)
    if x.dtype != y.dtype:
        refuse("sddmm", f"y: has type {y.dtype}, and x {x.dtype}; convert one", TypeError)
    if x.shape[1:] != y.shape[1:]:
        refuse("sddmm", f"y: has lines of shape {y.shape[1:]}, and x of {x.shape[1:]}")
    heads = x.shape[1] if x.ndim == 3 else 1
    request = request_of(graph, "sddmm", x.dtype, math.prod(x.shape[1:]), heads)
    (made,) = bind(sddmm_p, request, *graph.arrays, flat(x), flat(y))
    return made.reshape(graph.nnz, heads) if x.ndim == 3 else made


# ---- derivatives ---------------------------------------------------------------------------------


def _jvp(of: Any, primals: Any, tangents: Any, *, request: Request) -> Any:
    """Of a primitive that is linear in each operand."""
    made = of.bind(*primals, request=request)
    terms = [
        of.bind(*primals[:at], tangents[at], *primals[at + 1 :], request=request)[0]
        for at in range(INDICES, len(primals))
        if not isinstance(tangents[at], ad.Zero)
    ]
    return made, [functools.reduce(jnp.add, terms) if terms else ad.Zero.from_primal_value(made[0])]


def _by_b(request: Request, indices: Any, values: Sequence[Any], ct: Any) -> Any:
    """The gradient of b of a product."""
    turned = request._replace(transpose=not request.transpose)
    return bind(spmm_p, turned, *indices, *values, ct)[0]


def _by_values(request: Request, indices: Any, ct: Any, b: Any) -> Any:
    """The gradient of the values of a product."""
    x, y = (b, ct) if request.transpose else (ct, b)
    of = request._replace(operation="sddmm", values="", transpose=False)
    return bind(sddmm_p, of, *indices, x, y)[0].astype(request.values)


def _transpose_spmm(cts: Any, *operands: Any, request: Request) -> Any:
    (ct,), indices, given = cts, operands[:INDICES], operands[INDICES:]
    found: list[Any] = [None] * len(operands)
    if isinstance(ct, ad.Zero):
        return found
    if ad.is_undefined_primal(given[-1]):
        found[-1] = _by_b(request, indices, given[:-1], ct)
    else:
        found[-2] = _by_values(request, indices, ct, given[-1])
    return found


def _transpose_sddmm(cts: Any, *operands: Any, request: Request) -> Any:
    (ct,), indices, (x, y) = cts, operands[:INDICES], operands[INDICES:]
    found: list[Any] = [None] * len(operands)
    if isinstance(ct, ad.Zero):
        return found
    product = request._replace(operation="spmm", values=str(ct.dtype))
    if ad.is_undefined_primal(x):
        (found[-2],) = bind(spmm_p, product, *indices, ct, y)
    else:
        found[-1] = _by_b(product, indices, [ct], x)
    return found


for _of, _transpose in ((spmm_p, _transpose_spmm), (sddmm_p, _transpose_sddmm)):
    ad.primitive_jvps[_of] = functools.partial(_jvp, _of)
    ad.primitive_transposes[_of] = _transpose


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _extreme(request: Request, indices: Any, *given: Any) -> Any:
    return bind(extreme_p, request, *indices, *given)[0]


@_extreme.defjvp  # type: ignore[untyped-decorator]
def _extreme_jvp(request: Request, primals: Any, tangents: Any) -> Any:
    """The derivative follows the edge of each element."""
    (indices, *given), (_, *moved) = primals, tangents
    c, edge = bind(extreme_p, request, *indices, *given)
    if not c.size or not request.nnz:
        return c, jnp.zeros_like(c)
    column = indices[1][edge]
    head = jnp.arange(request.n) // (request.n // request.heads)

    def of_values(values: Any) -> Any:
        return (values[edge] if request.heads == 1 else values[edge, head]).astype(c.dtype)

    moves = jnp.take_along_axis(moved[-1], column, 0)
    if request.values:
        b = jnp.take_along_axis(given[1], column, 0)
        moves = of_values(given[0]) * moves + of_values(moved[0]) * b
    return c, jnp.where(edge >= 0, moves, 0).astype(c.dtype)


def _as_columns(of: Any, arrays: Any, dims: Any, *, request: Request) -> Any:
    """All calls of a batch share the values, so its columns lie beside each other in a head."""
    if request.values and dims[INDICES] is not None:
        return batch_as_heads(of, arrays, dims, request=request)
    size, heads = batch_size(arrays, dims), request.heads
    b = tiled(arrays[-1], dims[-1], size)
    b = b.reshape(len(b), size, heads, request.n // heads).swapaxes(1, 2)
    wide = request._replace(n=size * request.n)
    made = bind(of, wide, *arrays[:-1], b.reshape(len(b), wide.n))
    apart = [one.reshape(len(one), *b.shape[1:]).swapaxes(1, 2) for one in made]
    return [one.reshape(len(one), size, request.n) for one in apart], [1] * len(made)


for _of in (spmm_p, extreme_p):
    batching.primitive_batchers[_of] = functools.partial(_as_columns, _of)
