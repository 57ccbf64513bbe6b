"""What linear maps, views and sums over features make of values of edges.

All act on the lines of edges; what acts along the dimension of edges is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from warploom._pyg_arithmetic import added, edges_of, value_of
from warploom._pyg_graphs import Refused
from warploom._pyg_stand_in import RULES, Term, by_line, by_torch
from warploom._pyg_terms import (
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
    summed,
)

# ---- linear maps --------------------------------------------------------------------------------


def _linear(term: Any, weight: Any, bias: Tensor | None = None) -> Any:
    """A linear map of the last dimension, taken out of the message where it can be."""
    if not isinstance(term, Term) or isinstance(weight, Term) or term.dim() < 2:
        raise Refused("the message multiplies features of edges by a matrix for each edge")
    linear = torch.nn.functional.linear
    value = term.value
    line = (*value.line[:-1], weight.size(0))
    if isinstance(value, Joined) and all(isinstance(piece, Sum) for piece in value.pieces):
        return Term(term.edges, _linear_of_joined(term.edges, value, weight, bias))
    if isinstance(value, Joined):
        raise Refused("the message joins computed values")
    if isinstance(value, Sum):
        return Term(term.edges, _linear_of_sum(term.edges, value, weight, bias))

    def step(result: Tensor, weights: Tensor) -> Tensor:
        result = linear(result, weight)
        if bias is None:
            return result
        weights = weights.reshape(-1, *(1,) * (result.dim() - 1))
        return torch.addcmul(result, weights, bias.to(result.dtype))

    return _tailed(term, step, line)


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


def _tailed(term: Term, step: Step, line: Line) -> Term:
    value = term.value
    if isinstance(value, Tailed):
        return Term(term.edges, Tailed(value.inner, (*value.steps, step), line))
    return Term(term.edges, Tailed(simple(value), (step,), line))


def _matmul(left: Any, right: Any) -> Any:
    if not isinstance(right, Tensor) or right.dim() != 2:
        raise Refused("the message multiplies features of edges by a matrix for each edge")
    return _linear(left, right.t())


# ---- shapes -------------------------------------------------------------------------------------


def _sizes(given: Sequence[Any]) -> list[int]:
    first = given[0] if given else ()
    return list(first) if isinstance(first, (tuple, list)) else [int(size) for size in given]


def _view(term: Term, *shape: Any, **named: Any) -> Term:
    sizes = _sizes(shape or tuple(named.values()))
    edges, old = term.edges, term.value
    total = edges.count * columns_of(old.line)
    if -1 in sizes:
        rest = columns_of([size for size in sizes if size != -1])
        sizes[sizes.index(-1)] = total // rest if rest else 0
    if columns_of(sizes) != total or not sizes or sizes[0] != edges.count:
        raise Refused("the message mixes edges and features in a view")
    return _viewed(term, tuple(sizes[1:]))


def _viewed(term: Term, line: Line) -> Term:
    """The term with another shape of its lines."""
    edges, value = term.edges, term.value
    if isinstance(value, Joined):
        value = padded(value)
    if isinstance(value, Tailed):
        return _tailed(term, lambda result, weights: result.reshape(-1, *line), line)
    term.has_views = True
    if isinstance(value, Expression):
        return Term(edges, value._replace(line=line), is_view=True)
    parts = {place: part.reshape(part.size(0), *line) for place, part in value.full(edges).items()}
    return Term(edges, Sum(parts), is_view=True)


def _dim(term: Term, dim: int, extra: int = 0) -> int:
    """A dimension of the term as one of its line."""
    dim = dim + term.dim() + extra if dim < 0 else dim
    if dim == 0:
        raise Refused("the message computes along the dimension of edges")
    return dim - 1


def _unsqueeze(term: Term, dim: int) -> Term:
    line = list(term.value.line)
    line.insert(_dim(term, dim, 1), 1)
    return _viewed(term, tuple(line))


def _squeeze(term: Term, dim: int | None = None) -> Term:
    line = list(term.value.line)
    if dim is None:
        line = [size for size in line if size != 1]
    elif line[_dim(term, dim)] == 1:
        del line[_dim(term, dim)]
    return _viewed(term, tuple(line))


def _flatten(term: Term, start_dim: int = 0, end_dim: int = -1) -> Term:
    line = term.value.line
    start, end = _dim(term, start_dim), _dim(term, end_dim)
    merged = columns_of(line[start : end + 1])
    return _viewed(term, (*line[:start], merged, *line[end + 1 :]))


def _getitem(term: Any, index: Any) -> Any:
    if not isinstance(term, Term):
        raise Refused("the message gathers by features of edges")
    index = index if isinstance(index, tuple) else (index,)
    edges, value = term.edges, term.value
    whole = index[0] is Ellipsis or (isinstance(index[0], slice) and index[0] == slice(None))
    if not whole or isinstance(value, (Expression, Tailed)):
        return by_torch("getitem", Tensor.__getitem__, (term, index), {})
    term.has_views = True
    if isinstance(value, Joined):
        if index[0] is Ellipsis or len(index) >= term.dim():
            value = padded(value)
        else:
            pieces = tuple(_taken(edges, simple(piece), index) for piece in value.pieces)
            return Term(edges, Joined(pieces), is_view=True)
    return Term(edges, _taken(edges, value, index), is_view=True)


def _taken(edges: Edges, value: Sum | Expression, index: tuple[Any, ...]) -> Sum:
    if isinstance(value, Expression):
        raise Refused("the message joins computed values")
    return Sum({place: part[index] for place, part in value.full(edges).items()})


def _chunk(term: Term, chunks: int, dim: int = 0) -> tuple[Term, ...]:
    at, extent = _dim(term, dim), term.value.line[_dim(term, dim)]
    return _split(term, -(-extent // chunks), at + 1)


def _split(term: Term, size: int | Sequence[int], dim: int = 0) -> tuple[Term, ...]:
    at = _dim(term, dim)
    extent = term.value.line[at]
    if isinstance(size, int):
        size = [min(size, extent - start) for start in range(0, extent, size)]
    if sum(size) != extent:
        raise Refused("the message splits features into parts of another sum")
    parts, start = [], 0
    for width in size:
        index = (slice(None),) * (at + 1) + (slice(start, start + width),)
        parts.append(_getitem(term, index))
        start += width
    return tuple(parts)


def _as_values(terms: Sequence[Any]) -> tuple[Edges, list[Sum | Expression]]:
    edges = edges_of(terms)
    dims = _edges_dims(terms)
    values = []
    for term in terms:
        value = value_of(edges, term, dims)
        if isinstance(value, (Tensor, int, float)):
            raise Refused("the message joins features of edges with a tensor of other lines")
        values.append(simple(value))
    return edges, values


def _edges_dims(terms: Sequence[Any]) -> int:
    return next(term.dim() for term in terms if isinstance(term, Term))


def _cat(tensors: Sequence[Any], dim: int = 0, **named: Any) -> Term:
    edges, values = _as_values(tensors)
    first = next(term for term in tensors if isinstance(term, Term))
    if _dim(first, dim) != len(values[0].line) - 1:
        raise Refused("the message joins features of edges, but not in the last dimension")
    return Term(edges, Joined(tuple(values)))


def _stack(tensors: Sequence[Any], dim: int = 0, **named: Any) -> Term:
    edges, values = _as_values(tensors)
    first = next(term for term in tensors if isinstance(term, Term))
    at = _dim(first, dim, 1)
    if len(values) == 1:
        return _unsqueeze(first, dim)
    return Term(edges, beside(values, lambda blocks: torch.stack(blocks, at + 1)))


def _repeat(term: Term, *sizes: Any) -> Term:
    sizes, value = tuple(_sizes(sizes)), term.value
    is_known = len(sizes) == term.dim() and sizes[0] == 1
    if not is_known or not isinstance(value, Sum) or "edge" in value.parts:
        raise Refused("the message repeats features of edges")
    parts = {place: part.repeat(sizes) for place, part in value.full(term.edges).items()}
    return Term(term.edges, Sum(parts))


# ---- along the line -----------------------------------------------------------------------------


def _along(term: Term, dim: Any, dtype: Any = None) -> tuple[int, ...]:
    if dim is None:
        raise Refused("the message reduces over all edges")
    if dtype not in (None, term.dtype):
        raise Refused("the message reduces features in another type")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(_dim(term, one) + 1 for one in dims)


def _sum(term: Term, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return _total(term, _along(term, dim, dtype), keepdim)


def _mean(term: Term, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    dims = _along(term, dim, dtype)
    return _total(term, dims, keepdim) / columns_of([term.shape[at] for at in dims])


def _total(term: Term, dims: tuple[int, ...], keepdim: bool) -> Any:
    edges, value = term.edges, term.value
    line = tuple(
        1 if at in dims else size for at, size in enumerate(term.shape) if at not in dims or keepdim
    )[1:]
    if isinstance(value, Joined):
        value = padded(value)
    if isinstance(value, Sum):
        parts = {place: part.sum(dims, keepdim) for place, part in value.full(edges).items()}
        return Term(edges, Sum(parts))
    if (
        isinstance(value, Expression)
        and value.line == value.frame
        and dims == (len(value.line),)
        and edges.is_narrow(value.line[:-1])
    ):
        return summed(edges, value).reshape(edges.count, *line)
    return _tailed(term, lambda result, weights: result.sum(dims, keepdim), line)


def _softmax(term: Term, dim: int | None = None, dtype: Any = None, **named: Any) -> Any:
    dim = _along(term, dim)[0]
    made = by_line(term, lambda part: torch.softmax(part, dim, dtype=dtype))
    if made is not None:
        return made
    return by_torch("softmax", torch.softmax, (term, dim), {"dtype": dtype})


def _layer_norm(term: Term, *args: Any, **kwargs: Any) -> Any:
    made = by_line(term, lambda part: torch.nn.functional.layer_norm(part, *args, **kwargs))
    if made is None:
        raise Refused("the message normalises values of both ends")
    return made


def _clone(term: Term, **named: Any) -> Term:
    return Term(term.edges, term.value)


def _contiguous(term: Term, **named: Any) -> Term:
    term.has_views = True
    return Term(term.edges, term.value, is_view=True)


def _new(name: str) -> Callable[..., Tensor]:
    def make(term: Term, *args: Any, **kwargs: Any) -> Tensor:
        like = torch.empty((), dtype=term.dtype, device=term.device)
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
