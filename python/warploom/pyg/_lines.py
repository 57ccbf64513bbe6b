"""What linear maps, views and sums over features make of values of edges.

All act on the lines of edges; what acts along the dimension of edges is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warploom.pyg._arithmetic import added, edges_of, value_of
from warploom.pyg._checks import Refused
from warploom.pyg._stand_in import RULES, Term, by_line, by_torch, term
from warploom.pyg._values import (
    Edges,
    Expression,
    Joined,
    Line,
    Step,
    Sum,
    Tailed,
    beside,
    columns_of,
    padded,
    simple,
)
from warploom.pyg._walks import summed

# ---- linear maps --------------------------------------------------------------------------------


def _linear(given: Any, weight: Any, bias: Tensor | None = None) -> Any:
    """A linear map of the last dimension, taken out of the message where it can be."""
    if not isinstance(given, Term) or isinstance(weight, Term) or given.dims < 2:
        raise Refused("the message multiplies features of edges by a matrix for each edge")
    linear = torch.nn.functional.linear
    value = given.value
    line = (*value.line[:-1], weight.size(0))
    if isinstance(value, Joined) and all(isinstance(piece, Sum) for piece in value.pieces):
        return term(given.edges, _linear_of_joined(given.edges, value, weight, bias))
    if isinstance(value, Joined):
        raise Refused("the message joins computed values")
    if isinstance(value, Sum):
        return term(given.edges, _linear_of_sum(given.edges, value, weight, bias))

    def step(result: Tensor, weights: Tensor) -> Tensor:
        result = linear(result, weight)
        if bias is None:
            return result
        weights = weights.reshape(-1, *(1,) * (result.dim() - 1))
        return torch.addcmul(result, weights, bias.to(result.dtype))

    return _tailed(given, step, line)


def _linear_of_sum(edges: Edges, value: Sum, weight: Tensor, bias: Tensor | None) -> Sum:
    linear = torch.nn.functional.linear
    full = value.full(edges)
    for place, part in full.items():
        of = edges.negated(part)
        first = next((known for known, one in full.items() if one is of), None)
        if first is not None and len(full) == 2:  # x_j - x_i, of one matrix
            once = linear(full[first], weight)
            second = edges.negative(once) if bias is None else bias - once
            return Sum({first: once, place: second})
    nodes = [place for place in full if place != "edge"]
    with_bias = (nodes or list(full))[0]
    return Sum(
        {
            place: linear(part, weight, bias if place == with_bias else None)
            for place, part in full.items()
        }
    )


def _linear_of_joined(edges: Edges, joined: Joined, weight: Tensor, bias: Tensor | None) -> Sum:
    total: Sum | None = None
    start = 0
    for piece in joined.pieces:
        assert isinstance(piece, Sum)
        columns = weight[:, start : start + piece.line[-1]]
        start += piece.line[-1]
        part = _linear_of_sum(edges, piece, columns, bias if total is None else None)
        total = part if total is None else added(edges, total, part, "add")
    assert total is not None
    return total


def _tailed(given: Term, step: Step, line: Line) -> Term:
    value = given.value
    if isinstance(value, Tailed):
        return term(given.edges, Tailed(value.inner, (*value.steps, step), line))
    return term(given.edges, Tailed(simple(value), (step,), line))


def _matmul(left: Any, right: Any) -> Any:
    if isinstance(right, Term) or not isinstance(right, Tensor) or right.dim() != 2:
        raise Refused("the message multiplies features of edges by a matrix for each edge")
    return _linear(left, right.t())


# ---- shapes -------------------------------------------------------------------------------------


def _sizes(given: Sequence[Any]) -> list[int]:
    first = given[0] if given else ()
    return list(first) if isinstance(first, (tuple, list)) else [int(size) for size in given]


def _view(given: Term, *shape: Any, **named: Any) -> Term:
    sizes = _sizes(shape or tuple(named.values()))
    edges, old = given.edges, given.value
    total = edges.count * columns_of(old.line)
    if -1 in sizes:
        rest = columns_of([size for size in sizes if size != -1])
        sizes[sizes.index(-1)] = total // rest if rest else 0
    if columns_of(sizes) != total or not sizes or sizes[0] != edges.count:
        raise Refused("the message mixes edges and features in a view")
    return _viewed(given, tuple(sizes[1:]))


def _viewed(given: Term, line: Line) -> Term:
    """The Term with another shape of its lines."""
    edges, value = given.edges, given.value
    if isinstance(value, Joined):
        value = padded(value)
    if isinstance(value, Tailed):
        return _tailed(given, lambda result, weights: result.reshape(-1, *line), line)
    given.has_views = True
    if isinstance(value, Expression):
        return term(edges, value._replace(line=line), is_view=True)
    parts = {place: part.reshape(part.size(0), *line) for place, part in value.full(edges).items()}
    return term(edges, Sum(parts), is_view=True)


def _dim(given: Term, dim: int, extra: int = 0) -> int:
    """A dimension of the Term as one of its line."""
    dim = dim + given.dims + extra if dim < 0 else dim
    if dim == 0:
        raise Refused("the message computes along the dimension of edges")
    return dim - 1


def _unsqueeze(given: Term, dim: int) -> Term:
    line = list(given.value.line)
    line.insert(_dim(given, dim, 1), 1)
    return _viewed(given, tuple(line))


def _squeeze(given: Term, dim: int | None = None) -> Term:
    line = list(given.value.line)
    if dim is None:
        line = [size for size in line if size != 1]
    elif line[_dim(given, dim)] == 1:
        del line[_dim(given, dim)]
    return _viewed(given, tuple(line))


def _flatten(given: Term, start_dim: int = 0, end_dim: int = -1) -> Term:
    line = given.value.line
    start, end = _dim(given, start_dim), _dim(given, end_dim)
    merged = columns_of(line[start : end + 1])
    return _viewed(given, (*line[:start], merged, *line[end + 1 :]))


def _getitem(given: Any, index: Any) -> Any:
    if not isinstance(given, Term):
        raise Refused("the message gathers by features of edges")
    index = index if isinstance(index, tuple) else (index,)
    edges, value = given.edges, given.value
    whole = index[0] is Ellipsis or (isinstance(index[0], slice) and index[0] == slice(None))
    if not whole or isinstance(value, (Expression, Tailed)):
        return by_torch("getitem", Tensor.__getitem__, (given, index), {})
    given.has_views = True
    if isinstance(value, Joined):
        if index[0] is Ellipsis or len(index) >= given.dims:
            value = padded(value)
        else:
            pieces = tuple(_taken(edges, simple(piece), index) for piece in value.pieces)
            return term(edges, Joined(pieces), is_view=True)
    return term(edges, _taken(edges, value, index), is_view=True)


def _taken(edges: Edges, value: Sum | Expression, index: tuple[Any, ...]) -> Sum:
    if isinstance(value, Expression):
        raise Refused("the message joins computed values")
    return Sum({place: part[index] for place, part in value.full(edges).items()})


def _chunk(given: Term, chunks: int, dim: int = 0) -> tuple[Term, ...]:
    at, extent = _dim(given, dim), given.value.line[_dim(given, dim)]
    return _split(given, -(-extent // chunks), at + 1)


def _split(given: Term, size: int | Sequence[int], dim: int = 0) -> tuple[Term, ...]:
    at = _dim(given, dim)
    extent = given.value.line[at]
    if isinstance(size, int):
        size = [min(size, extent - start) for start in range(0, extent, size)]
    if sum(size) != extent:
        raise Refused("the message splits features into parts of another sum")
    parts, start = [], 0
    for width in size:
        index = (slice(None),) * (at + 1) + (slice(start, start + width),)
        parts.append(_getitem(given, index))
        start += width
    return tuple(parts)


def _as_values(terms: Sequence[Any]) -> tuple[Edges, list[Sum | Expression]]:
    edges = edges_of(terms)
    dims = _edges_dims(terms)
    values = []
    for one in terms:
        value = value_of(edges, one, dims)
        if isinstance(value, (Tensor, int, float)):
            raise Refused("the message joins features of edges with a tensor of other lines")
        values.append(simple(value))
    return edges, values


def _edges_dims(terms: Sequence[Any]) -> int:
    return next(one.dims for one in terms if isinstance(one, Term))


def _cat(tensors: Sequence[Any], dim: int = 0, **named: Any) -> Term:
    edges, values = _as_values(tensors)
    first = next(one for one in tensors if isinstance(one, Term))
    if _dim(first, dim) != len(values[0].line) - 1:
        raise Refused("the message joins features of edges, but not in the last dimension")
    return term(edges, Joined(tuple(values)))


def _stack(tensors: Sequence[Any], dim: int = 0, **named: Any) -> Term:
    edges, values = _as_values(tensors)
    first = next(one for one in tensors if isinstance(one, Term))
    at = _dim(first, dim, 1)
    if len(values) == 1:
        return _unsqueeze(first, dim)
    return term(edges, beside(values, lambda blocks: torch.stack(blocks, at + 1)))


def _repeat(given: Term, *sizes: Any) -> Term:
    sizes, value = tuple(_sizes(sizes)), given.value
    is_known = len(sizes) == given.dims and sizes[0] == 1
    if not is_known or not isinstance(value, Sum) or "edge" in value.parts:
        raise Refused("the message repeats features of edges")
    parts = {place: part.repeat(sizes) for place, part in value.full(given.edges).items()}
    return term(given.edges, Sum(parts))


# ---- along the line -----------------------------------------------------------------------------


def _along(given: Term, dim: Any, dtype: Any = None) -> tuple[int, ...]:
    if dim is None:
        raise Refused("the message reduces over all edges")
    if dtype not in (None, given.value.dtype):
        raise Refused("the message reduces features in another type")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(_dim(given, one) + 1 for one in dims)


def _sum(given: Term, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _total(given, _along(given, dim, dtype), keepdim)


def _mean(given: Term, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dims = _along(given, dim, dtype)
    return _total(given, dims, keepdim) / columns_of([given.value.line[at - 1] for at in dims])


def _total(given: Term, dims: tuple[int, ...], keepdim: bool) -> Any:
    edges, value = given.edges, given.value
    line = tuple(
        1 if at in dims else size
        for at, size in enumerate(value.line, 1)
        if at not in dims or keepdim
    )
    if isinstance(value, Joined):
        value = padded(value)
    if isinstance(value, Sum):
        parts = {place: part.sum(dims, keepdim) for place, part in value.full(edges).items()}
        return term(edges, Sum(parts))
    if (
        isinstance(value, Expression)
        and value.line == value.frame
        and dims == (len(value.line),)
        and edges.is_narrow(value.line[:-1])
    ):
        return summed(edges, value).reshape(edges.count, *line)
    return _tailed(given, lambda result, weights: result.sum(dims, keepdim), line)


def _softmax(given: Term, dim: int | None = None, dtype: Any = None, **named: Any) -> Any:
    dim = _along(given, dim)[0]
    made = by_line(given, lambda part: torch.softmax(part, dim, dtype=dtype))
    if made is not None:
        return made
    return by_torch("softmax", torch.softmax, (given, dim), {"dtype": dtype})


def _layer_norm(given: Term, *args: Any, **kwargs: Any) -> Any:
    made = by_line(given, lambda part: torch.nn.functional.layer_norm(part, *args, **kwargs))
    if made is None:
        raise Refused("the message normalises values of both ends")
    return made


def _clone(given: Term, **named: Any) -> Term:
    return term(given.edges, given.value)


def _contiguous(given: Term, **named: Any) -> Term:
    given.has_views = True
    return term(given.edges, given.value, is_view=True)


def _new(name: str) -> Callable[..., Tensor]:
    def make(given: Term, *args: Any, **kwargs: Any) -> Tensor:
        like = torch.empty((), dtype=given.value.dtype, device=given.edges.device)
        return getattr(like, name)(*args, **kwargs)  # type: ignore[no-any-return]

    return make


RULES.update(
    {
        "cat": _cat,
        "chunk": _chunk,
        "clone": _clone,
        "contiguous": _contiguous,
        "flatten": _flatten,
        "getitem": _getitem,
        "layer_norm": _layer_norm,
        "linear": _linear,
        "matmul": _matmul,
        "mean": _mean,
        "repeat": _repeat,
        "softmax": _softmax,
        "split": _split,
        "squeeze": _squeeze,
        "stack": _stack,
        "sum": _sum,
        "unsqueeze": _unsqueeze,
        "view": _view,
        **{name: _new(name) for name in ("new_empty", "new_full", "new_ones", "new_zeros")},
    }
)
