"""spmm, sddmm and their derivatives.

A product is linear in the values and in b, and its transposes are products again, so derivatives of
any order and in both modes are these two primitives.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching

from warploom._arrays import DENSE_TYPES
from warploom.jax._calls import INDEX_SLOTS, Request, bind, edge_shape, primitive
from warploom.jax._graph import Graph

_INDICES = len(INDEX_SLOTS)
spmm_p, sddmm_p, extreme_p = (primitive(name) for name in ("spmm", "sddmm", "extreme"))


# ---- checks, which both functions and messages share ---------------------------------------------


def refuse(of: str, why: str, error: type[Exception] = ValueError) -> Any:
    """Raise what is wrong with a call."""
    raise error(f"warploom.jax.{of}: {why}")


def need_graph(of: str, graph: Any) -> None:
    """Raise TypeError unless this is a Graph."""
    if not isinstance(graph, Graph):
        refuse(of, f"graph: is a {type(graph).__name__}; make a Graph.from_edges", TypeError)


def dense(of: str, name: str, given: Any, lines: int, most: int = 3) -> jax.Array:
    """An operand of this many lines. Raises for a wrong type or shape."""
    array = jnp.asarray(given)
    if str(array.dtype) not in DENSE_TYPES:
        served = "float32, float16, bfloat16 or float64"
        refuse(of, f"{name}: has type {array.dtype}; use {served}", TypeError)
    if not 1 <= array.ndim <= most or array.shape[0] != lines:
        refuse(
            of, f"{name}: has shape {array.shape}; expected {lines} lines of 1 to {most} dimensions"
        )
    return array


def edge_values(of: str, name: str, given: Any, graph: Graph) -> tuple[jax.Array, int]:
    """Values of edges, (nnz,) or (nnz, heads), and the number of heads."""
    array = dense(of, name, given, graph.nnz, 2)
    heads = array.shape[1] if array.ndim == 2 else 1
    return (array.reshape(graph.nnz) if heads == 1 else array), heads


def request_of(
    graph: Graph, operation: str, dtype: Any, n: int, heads: int, **more: Any
) -> Request:
    """A request for a graph."""
    return Request(
        operation, graph.rows, graph.cols, graph.nnz, str(graph.colind.dtype), str(dtype), n, heads,
        **more,
    )  # fmt: skip


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
    heads, of_values = 1, ""
    if values is not None:
        values, heads = edge_values("spmm", "values", values, graph)
        of_values = str(values.dtype)
        if of_values != str(b.dtype) and not (b.dtype.itemsize == 2 and of_values == "float32"):
            refuse("spmm", f"values: has type {of_values} and b {b.dtype}; convert one", TypeError)
        if math.prod(b.shape[1:]) % heads or (b.ndim == 3 and heads not in (1, b.shape[1])):
            refuse("spmm", f"values: {heads} heads do not divide the {b.shape[1:]} columns of b")
    flat = b.reshape(b.shape[0], math.prod(b.shape[1:]))
    given = [flat] if values is None else [values, flat]
    request = request_of(
        graph, "spmm", b.dtype, flat.shape[1], heads, values=of_values, transpose=bool(transpose)
    )
    if reduce in ("max", "min"):
        request = request._replace(reduce=reduce, argmax=True)
        c = _extreme(request, graph.arrays, *given)
    else:
        (c,) = bind(spmm_p, request, *graph.arrays, *given)
    if reduce == "mean":
        c = c / jnp.maximum(graph.degrees(), 1).astype(c.dtype)[:, None]
    return c.reshape(c.shape[0], *b.shape[1:])


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
    flat = [one.reshape(one.shape[0], math.prod(one.shape[1:])) for one in (x, y)]
    request = request_of(graph, "sddmm", x.dtype, flat[0].shape[1], heads)
    (made,) = bind(sddmm_p, request, *graph.arrays, *flat)
    return made.reshape(graph.nnz, heads) if x.ndim == 3 else made


# ---- derivatives ---------------------------------------------------------------------------------


def _jvp(of: Any, primals: Any, tangents: Any, *, request: Request) -> Any:
    """Of a primitive that is linear in each operand."""
    terms = []
    for at in range(_INDICES, len(primals)):
        if not isinstance(tangents[at], ad.Zero):
            moved = [*primals[:at], tangents[at], *primals[at + 1 :]]
            terms.append(of.bind(*moved, request=request)[0])
    made = of.bind(*primals, request=request)
    if not terms:
        return made, [ad.Zero.from_primal_value(one) for one in made]
    return made, [functools.reduce(jnp.add, terms)]


def _by_values(request: Request, indices: Any, ct: Any, b: Any) -> Any:
    """The gradient of the values of a product."""
    x, y = (b, ct) if request.transpose else (ct, b)
    of = request._replace(operation="sddmm", values="", transpose=False)
    return bind(sddmm_p, of, *indices, x, y)[0].astype(request.values)


def _by_b(request: Request, indices: Any, values: Sequence[Any], ct: Any) -> Any:
    turned = request._replace(transpose=not request.transpose)
    return bind(spmm_p, turned, *indices, *values, ct)[0]


def _transpose_spmm(cts: Any, *operands: Any, request: Request) -> Any:
    (ct,), indices, given = cts, operands[:_INDICES], operands[_INDICES:]
    none: list[Any] = [None] * len(operands)
    if isinstance(ct, ad.Zero):
        return none
    if ad.is_undefined_primal(given[-1]):
        none[-1] = _by_b(request, indices, given[:-1], ct)
    else:
        none[-2] = _by_values(request, indices, ct, given[-1])
    return none


def _transpose_sddmm(cts: Any, *operands: Any, request: Request) -> Any:
    (ct,), indices, (x, y) = cts, operands[:_INDICES], operands[_INDICES:]
    none: list[Any] = [None] * _INDICES
    if isinstance(ct, ad.Zero):
        return [*none, None, None]
    product = request._replace(operation="spmm", values=str(ct.dtype))
    if ad.is_undefined_primal(x):
        return [*none, bind(spmm_p, product, *indices, ct, y)[0], None]
    return [*none, None, _by_b(product._replace(transpose=False), indices, [ct], x)]


for _of, _transpose in ((spmm_p, _transpose_spmm), (sddmm_p, _transpose_sddmm)):
    ad.primitive_jvps[_of] = functools.partial(_jvp, _of)
    ad.primitive_transposes[_of] = _transpose


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _extreme(request: Request, indices: Any, *given: Any) -> Any:
    return bind(extreme_p, request, *indices, *given)[0]


@_extreme.defjvp  # type: ignore[untyped-decorator]
def _extreme_jvp(request: Request, primals: Any, tangents: Any) -> Any:
    """The derivative follows the edge of each element."""
    indices, *given = primals
    _, *moved = tangents
    c, edge = bind(extreme_p, request, *indices, *given)
    if not c.size or not request.nnz:
        return c, jnp.zeros_like(c)
    column = indices[1][edge]
    head = jnp.arange(request.n) // (request.n // request.heads)

    def of_b(b: Any) -> Any:
        return jnp.take_along_axis(b, column, axis=0)

    def of_values(values: Any) -> Any:
        return (values[edge] if request.heads == 1 else values[edge, head]).astype(c.dtype)

    moves = of_b(moved[-1])
    if request.values:
        moves = of_values(given[0]) * moves + of_values(moved[0]) * of_b(given[1])
    return c, jnp.where(edge >= 0, moves, 0).astype(c.dtype)


# ---- vmap: a batch becomes columns ---------------------------------------------------------------


def need_one_graph(dims: Sequence[Any]) -> None:
    """Raise where the arrays of a graph are batched."""
    if any(dim is not None for dim in dims[:_INDICES]):
        refuse("vmap", "a batch of graphs is one graph of all their nodes; see jraph.batch")


def tiled(array: Any, dim: int | None, size: int) -> Any:
    """(lines, size, ...): the batch behind the lines."""
    if dim is None:
        return jnp.broadcast_to(array[:, None], (array.shape[0], size, *array.shape[1:]))
    return jnp.moveaxis(array, dim, 1)


def batch_size(arrays: Sequence[Any], dims: Sequence[Any]) -> int:
    """How many calls a batch stands for."""
    return int(next(one.shape[dim] for one, dim in zip(arrays, dims) if dim is not None))


def _as_heads(of: Any, arrays: Any, dims: Any, *, request: Request) -> Any:
    """Each call of the batch has heads of its own."""
    need_one_graph(dims)
    size = batch_size(arrays, dims)
    wide = request._replace(n=size * request.n, heads=size * request.heads)
    given = []
    for one, dim in zip(arrays[_INDICES:], dims[_INDICES:]):
        given.append(tiled(one, dim, size).reshape(one.shape[1 if dim == 0 else 0], -1))
    if request.values and wide.heads == 1:
        given[0] = given[0].reshape(-1)
    made = bind(of, wide, *arrays[:_INDICES], *given)
    line = edge_shape(request)[1:] if request.operation == "sddmm" else (request.n,)
    return [one.reshape(one.shape[0], size, *line) for one in made], [1] * len(made)


def _as_columns(of: Any, arrays: Any, dims: Any, *, request: Request) -> Any:
    """All calls of the batch share the values, so its columns lie beside each other in a head."""
    if request.values and dims[_INDICES] is not None:
        return _as_heads(of, arrays, dims, request=request)
    need_one_graph(dims)
    size, heads = batch_size(arrays, dims), request.heads
    b = tiled(arrays[-1], dims[-1], size).reshape(-1, size, heads, request.n // heads)
    wide = request._replace(n=size * request.n)
    made = bind(of, wide, *arrays[:-1], jnp.swapaxes(b, 1, 2).reshape(b.shape[0], -1))
    apart = [one.reshape(one.shape[0], heads, size, -1).swapaxes(1, 2) for one in made]
    return [one.reshape(one.shape[0], size, request.n) for one in apart], [1] * len(made)


_batch: Callable[..., Any]
for _of, _batch in ((spmm_p, _as_columns), (extreme_p, _as_columns), (sddmm_p, _as_heads)):
    batching.primitive_batchers[_of] = functools.partial(_batch, _of)
