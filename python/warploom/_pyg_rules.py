"""What torch's functions make of a `Term`, the stand-in for features of edges in a message.

A message runs as it is, at each call, with Terms in the place of `x_i` and `x_j`: torch calls
`Term.__torch_function__` for each function of a Term, as it does for the proxies of `torch.fx`.
Unlike these a Term knows its shape, its layer's state is never out of date, and what a message
computes of tensors alone runs as usual. A value that is narrow beside the features becomes a tensor
where a function has no rule here; another one is refused, and PyG computes the call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Union

import torch
from torch import Tensor

from warploom._pyg_graphs import Refused
from warploom._pyg_terms import (
    Edges,
    Expression,
    Joined,
    Line,
    Step,
    Sum,
    Tailed,
    Value,
    as_expression,
    broadcast,
    columns_of,
    combine,
    gathered,
    padded,
    simple,
    spread,
    summed,
)

Known = Union[Tensor, float, int]

# In the language of warploom.torch.message; {0} is the operand.
_UNARY = {
    "abs": "fabs({0})",
    "cos": "cos({0})",
    "elu": "({0}>0?{0}:expm1({0}))",
    "erf": "erf({0})",
    "exp": "exp({0})",
    "expm1": "expm1({0})",
    "gelu": "(0.5*{0}*(1+erf({0}*0.70710678118654752)))",
    "log": "log({0})",
    "log1p": "log1p({0})",
    "neg": "(-{0})",
    "positive": "{0}",
    "reciprocal": "(1/{0})",
    "relu": "relu({0})",
    "rsqrt": "(1/sqrt({0}))",
    "sigmoid": "sigmoid({0})",
    "silu": "({0}*sigmoid({0}))",
    "sin": "sin({0})",
    "softplus": "({0}>20?{0}:log1p(exp({0})))",
    "sqrt": "sqrt({0})",
    "square": "({0}*{0})",
    "tanh": "tanh({0})",
}
_BINARY = {
    "add": "({0}+{1})",
    "div": "({0}/{1})",
    "maximum": "max({0},{1})",
    "minimum": "min({0},{1})",
    "mul": "({0}*{1})",
    "sub": "({0}-{1})",
}
_OPERATIONS: dict[str, Callable[[Any, Any], Tensor]] = {
    "add": operator.add,
    "div": operator.truediv,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "mul": operator.mul,
    "sub": operator.sub,
}
# Arguments behind the operand that change nothing.
_DEFAULTS: dict[str, tuple[Any, ...]] = {"elu": (1,), "gelu": ("none",), "softplus": (1, 20)}
_ALIASES = {
    "absolute": "abs",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "iadd": "add",
    "imul": "mul",
    "isub": "sub",
    "itruediv": "div",
    "mm": "matmul",
    "multiply": "mul",
    "negative": "neg",
    "pos": "positive",
    "radd": "add",
    "reshape": "view",
    "rmul": "mul",
    "subtract": "sub",
    "true_divide": "div",
    "truediv": "div",
}
_SWAPPED = {"rsub": "sub", "rtruediv": "div", "rdiv": "div"}
# Functions that have no rule of their own and act on the lines of a tensor of nodes alone.
_BY_LINE = frozenset((*_UNARY, "celu", "hardtanh", "mish", "selu", "softsign", "tan", "logsigmoid"))


class Term:
    """A value of each edge of a call, which behaves as a tensor (edges, *line)."""

    __slots__ = ("_made", "edges", "has_views", "value")

    def __init__(self, edges: Edges, value: Value, *, is_view: bool = False) -> None:
        self.edges = edges
        self.value = value
        self.has_views = is_view  # shares memory with another tensor of the message
        self._made: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        return torch.Size((self.edges.count, *self.value.line))

    @property
    def dtype(self) -> torch.dtype:
        return self.value.dtype

    @property
    def device(self) -> torch.device:
        return self.edges.edge_index.device

    @property
    def ndim(self) -> int:
        return 1 + len(self.value.line)

    @property
    def is_cuda(self) -> bool:
        return self.edges.edge_index.is_cuda

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.ndim

    def numel(self) -> int:
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        return True

    def tensor(self) -> Tensor:
        """The value as a tensor, made once; refused where it is as wide as features."""
        if self._made is None:
            if not self.edges.is_narrow(self.value.line):
                raise Refused("the message needs features of edges in memory")
            self._made = gathered(self.edges, self.value)
        return self._made

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return _apply(function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        method = getattr(Tensor, name)
        if not callable(method):
            raise Refused(f"the message reads the attribute {name} of features of edges")
        return lambda *args, **kwargs: _apply(method, (self, *args), kwargs)

    def __len__(self) -> int:
        return self.edges.count

    def __bool__(self) -> NoReturn:
        raise Refused("the message's control flow depends on features of edges")

    __int__ = __float__ = __index__ = __bool__

    def __iter__(self) -> NoReturn:
        raise Refused("the message iterates over edges")


def _operator(name: str) -> Any:
    method = getattr(Tensor, name)
    return lambda *args: _apply(method, args, {})


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul"),
    *("pow", "rpow", "neg", "pos", "abs", "getitem", "lt", "le", "gt", "ge", "eq", "ne"),
    *("iadd", "isub", "imul", "itruediv"),
):
    setattr(Term, f"__{_name}__", _operator(f"__{_name}__"))


# ---- one function -------------------------------------------------------------------------------


def _apply(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    written: str = function.__name__
    name = written.strip("_")
    in_place = kwargs.get("inplace", False) or (
        written.endswith("_") and not written.startswith("__")
    )
    in_place = in_place or written in ("__iadd__", "__isub__", "__imul__", "__itruediv__")
    terms = [arg for arg in _flat((args, kwargs)) if isinstance(arg, Term)]
    if terms[0].edges.has_gradients != torch.is_grad_enabled():
        raise Refused("the message turns gradients on or off")
    if in_place and any(term.has_views for term in terms):
        raise Refused(f"the message writes features of edges in place ({name})")
    args, kwargs = _with_made(args), _with_made(kwargs)
    if not any(isinstance(arg, Term) for arg in _flat((args, kwargs))):
        return function(*args, **kwargs)
    if name in _SWAPPED:
        name, args = _SWAPPED[name], args[::-1]
    made = _rule(_ALIASES.get(name, name), function, args, kwargs)
    if not in_place:
        return made
    target = args[0]
    if not isinstance(target, Term) or not isinstance(made, Term):
        raise Refused(f"the message writes features of edges in place ({name})")
    target.value = made.value
    return target


def _flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [value]
    found = []
    for part in value:
        if isinstance(part, (tuple, list, dict)):
            found += _flat(part)
        else:
            found.append(part)
    return found


def _with_made(value: Any) -> Any:
    """The arguments, with the tensor of each Term that has one."""
    if isinstance(value, Term):
        return value if value._made is None else value._made
    if type(value) in (tuple, list):
        return type(value)(_with_made(part) for part in value)
    if type(value) is dict:
        return {name: _with_made(part) for name, part in value.items()}
    return value


def _rule(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rule = _RULES.get(name)
    if rule is not None:
        return rule(*args, **kwargs)
    first = args[0] if args else None
    options = {key: value for key, value in kwargs.items() if key != "inplace"}
    if name in _BINARY and set(options) <= {"other"}:
        return _binary(name, *args, *options.values())
    if name in _BY_LINE and isinstance(first, Term):
        by_line = _by_line(first, lambda part: function(part, *args[1:], **options))
        if by_line is not None:
            return by_line
        rest = (*args[1:], *options.values())
        if name in _UNARY and rest in ((), _DEFAULTS.get(name)):
            return _unary(first, _UNARY[name])
    return _by_torch(name, function, args, kwargs)


def _by_torch(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """The function of tensors, where the Terms are narrow."""
    terms = [leaf for leaf in _flat((args, kwargs)) if isinstance(leaf, Term)]
    if not all(term.edges.is_narrow(term.value.line) for term in terms):
        raise Refused(f"the message calls {name} of features of edges")
    for term in terms:
        term.tensor()
    return function(*_with_made(args), **_with_made(kwargs))


def _one(term: Term) -> tuple[str, Tensor] | None:
    """The place and tensor of a value that a tensor of nodes (or a narrow one of edges) gives."""
    value = term.value
    if not isinstance(value, Sum) or len(value.parts) != 1:
        return None
    ((place, part),) = value.parts.items()
    return None if place == "edge" and not term.edges.is_narrow(value.line) else (place, part)


def _by_line(term: Term, function: Callable[[Tensor], Tensor]) -> Term | None:
    """A function that acts on each line alone, applied before the gather."""
    one = _one(term)
    return None if one is None else Term(term.edges, Sum({one[0]: function(one[1])}))


def _unary(term: Term, form: str) -> Term:
    expression = as_expression(term.edges, term.value)
    return Term(term.edges, expression._replace(text=form.format(expression.text)))


# ---- arithmetic ---------------------------------------------------------------------------------


def _edges_of(*values: Any) -> Edges:
    return next(value.edges for value in _flat(values) if isinstance(value, Term))


def _value_of(edges: Edges, known: Any, dims: int) -> Value | Known:
    """The value of an operand beside another of so many dimensions; what all edges share as is."""
    if isinstance(known, Term):
        return known.value
    if not isinstance(known, Tensor):
        if isinstance(known, (int, float)) and known == known and abs(known) != float("inf"):
            return known
        raise Refused(f"the message computes with {type(known).__name__}")
    if not known.is_floating_point():
        if known.dim() == 0 and not known.is_cuda:
            return known.item()
        raise Refused(f"the message computes with {known.dtype}")
    edges.watch(known)
    if known.dim() == dims and known.size(0) == edges.count:
        return Sum({"edge": known})
    if known.dim() > dims or (known.dim() == dims and known.size(0) != 1):
        raise Refused("the message computes with a tensor that does not match the edges")
    return known.squeeze(0) if known.dim() == dims and dims > 0 else known


def _binary(name: str, left: Any, right: Any) -> Term:
    edges = _edges_of(left, right)
    dims = max(part.dim() for part in (left, right) if isinstance(part, (Term, Tensor)))
    values = [_value_of(edges, _deepened(part, dims), dims) for part in (left, right)]
    first, second = values
    if isinstance(first, Joined):
        first = padded(first)
    if isinstance(second, Joined):
        second = padded(second)
    if name in ("add", "sub") and isinstance(first, Sum) and isinstance(second, Sum):
        return Term(edges, _added(first, second, name))
    if isinstance(first, Sum) and isinstance(second, Sum):
        places = list(first.parts) + list(second.parts)
        if len(places) == 2 and places[0] == places[1] != "edge":
            (mine,), (other,) = first.parts.values(), second.parts.values()
            mine, other = _aligned(mine, other)
            return Term(edges, Sum({places[0]: _OPERATIONS[name](mine, other)}))
    if isinstance(first, (Tensor, int, float)) or isinstance(second, (Tensor, int, float)):
        return _with_shared(edges, name, first, second)
    return Term(edges, combine(edges, _BINARY[name], first, second))


def _deepened(part: Any, dims: int) -> Any:
    """A Term with as many dimensions as it is broadcast to would have edges elsewhere."""
    if isinstance(part, Term) and part.dim() != dims:
        raise Refused("the message broadcasts edges over another dimension")
    return part


def _aligned(*parts: Tensor) -> list[Tensor]:
    """Tensors of lines with as many dimensions, ones before those of a line."""
    dims = max(part.dim() for part in parts)
    return [
        part.reshape(part.size(0), *(1,) * (dims - part.dim()), *part.shape[1:]) for part in parts
    ]


def _added(first: Sum, second: Sum, name: str) -> Sum:
    parts = dict(first.parts)
    for place, part in second.parts.items():
        if place in parts:
            mine, other = _aligned(parts[place], part)
            parts[place] = mine + other if name == "add" else mine - other
        else:
            parts[place] = part if name == "add" else -part
    return Sum(parts)


def _with_shared(edges: Edges, name: str, first: Any, second: Any) -> Term:
    """An operation with a number or tensor that all edges share."""
    operation = _OPERATIONS[name]
    is_left = isinstance(first, (Sum, Expression, Tailed))
    value, shared = (first, second) if is_left else (second, first)
    is_factor = name == "mul" or (name == "div" and is_left)

    def act(part: Tensor) -> Tensor:
        if isinstance(shared, Tensor):
            missing = max(0, shared.dim() + 1 - part.dim())
            part = part.reshape(part.size(0), *(1,) * missing, *part.shape[1:])
        if name in ("maximum", "minimum") and not isinstance(shared, Tensor):
            raise Refused(f"the message calls {name} with a number")
        return operation(part, shared) if is_left else operation(shared, part)

    if isinstance(value, Tailed):
        if not is_factor:
            raise Refused("the message adds to a linear map of both ends")
        line = broadcast(value.line, getattr(shared, "shape", ()))
        return Term(edges, Tailed(value.inner, (*value.steps, lambda r, w: act(r)), line))
    if isinstance(value, Sum):
        nodes = [place for place in value.parts if place != "edge"]
        if len(value.parts) == 1 and (nodes or edges.is_narrow(value.line)):
            return Term(edges, Sum({place: act(part) for place, part in value.parts.items()}))
        if is_factor and len(nodes) == len(value.parts):
            return Term(edges, Sum({place: act(part) for place, part in value.parts.items()}))
        if name in ("add", "sub") and nodes and is_left:
            parts = dict(value.parts)
            parts[nodes[0]] = act(parts[nodes[0]])
            return Term(edges, Sum(parts))
    expression = as_expression(edges, value)
    if not isinstance(shared, Tensor):
        text = repr(shared) if shared >= 0 else f"({shared!r})"
        texts = (expression.text, text) if is_left else (text, expression.text)
        return Term(edges, expression._replace(text=_BINARY[name].format(*texts)))
    rows = Sum({"row": shared.expand(edges.graph.rows, *shared.shape)})
    both = (expression, rows) if is_left else (rows, expression)
    return Term(edges, combine(edges, _BINARY[name], *both))


def _pow(base: Any, exponent: Any) -> Any:
    if not isinstance(base, Term) or not isinstance(exponent, (int, float)):
        raise Refused("the message calls pow with an exponent that is no number")
    by_line = _by_line(base, lambda part: part**exponent)
    if by_line is not None:
        return by_line
    return _unary(base, "({0}*{0})" if exponent == 2 else f"pow({{0}},{float(exponent)!r})")


def _leaky_relu(term: Term, negative_slope: float = 0.01, inplace: bool = False) -> Term:
    by_line = _by_line(
        term, lambda part: torch.nn.functional.leaky_relu(part, negative_slope=negative_slope)
    )
    if by_line is not None:
        return by_line
    return _unary(term, f"leaky_relu({{0}},{float(negative_slope)!r})")


def _clamp(term: Term, min: Any = None, max: Any = None) -> Term:
    if any(isinstance(limit, (Tensor, Term)) for limit in (min, max)):
        raise Refused("the message clamps by a tensor")
    by_line = _by_line(term, lambda part: part.clamp(min, max))
    if by_line is not None:
        return by_line
    form = "{0}" if min is None else f"max({{0}},({float(min)!r}))"
    return _unary(term, form if max is None else f"min({form},({float(max)!r}))")


def _dropout(
    term: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None
) -> Any:
    training = training if train is None else train
    if not training or p == 0:
        return term
    return _by_torch("dropout", torch.nn.functional.dropout, (term, p, True), {})


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
        parts = {place: linear(part, weight) for place, part in value.full(term.edges).items()}
        return Term(term.edges, _with_bias(parts, bias))

    def step(result: Tensor, weights: Tensor) -> Tensor:
        result = linear(result, weight)
        if bias is None:
            return result
        weights = weights.reshape(-1, *(1,) * (result.dim() - 1))
        return torch.addcmul(result, weights, bias)

    return _tailed(term, step, line)


def _linear_of_joined(edges: Edges, joined: Joined, weight: Tensor, bias: Tensor | None) -> Sum:
    total: Sum | None = None
    start = 0
    for piece in joined.pieces:
        assert isinstance(piece, Sum)
        columns = weight[:, start : start + piece.line[-1]]
        start += piece.line[-1]
        parts = {p: torch.nn.functional.linear(t, columns) for p, t in piece.full(edges).items()}
        total = Sum(parts) if total is None else _added(total, Sum(parts), "add")
    assert total is not None
    return _with_bias(total.parts, bias)


def _with_bias(parts: dict[str, Tensor], bias: Tensor | None) -> Sum:
    if bias is not None:
        nodes = [place for place in parts if place != "edge"]
        place = (nodes or list(parts))[0]
        parts = {**parts, place: parts[place] + bias}
    return Sum(parts)


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
        return _by_torch("getitem", Tensor.__getitem__, (term, index), {})
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
    parts, start = [], 0
    for width in size:
        index = (slice(None),) * (at + 1) + (slice(start, start + width),)
        parts.append(_getitem(term, index))
        start += width
    return tuple(parts)


def _as_values(terms: Sequence[Any]) -> tuple[Edges, list[Sum | Expression]]:
    edges = _edges_of(terms)
    dims = _edges_dims(terms)
    values = []
    for term in terms:
        value = _value_of(edges, term, dims)
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
    parts = {}
    for place in dict.fromkeys(place for value in values for place in _parts(value)):
        like = next(_parts(value)[place] for value in values if place in _parts(value))
        zeros = like.new_zeros(()).expand(like.size(0), *values[0].line)
        blocks = [
            spread(edges, place, _parts(value)[place], value.line)
            if place in _parts(value)
            else zeros
            for value in values
        ]
        parts[place] = torch.stack(blocks, at + 1)
    return Term(edges, Sum(parts))


def _parts(value: Sum | Expression) -> dict[str, Tensor]:
    if isinstance(value, Expression):
        raise Refused("the message joins computed values")
    return value.parts


def _repeat(term: Term, *sizes: Any) -> Term:
    sizes = tuple(_sizes(sizes))
    if not isinstance(term.value, Sum) or len(sizes) != term.dim() or sizes[0] != 1:
        raise Refused("the message repeats features of edges")
    if "edge" in term.value.parts:
        raise Refused("the message repeats features of edges")
    parts = {place: part.repeat(sizes) for place, part in term.value.full(term.edges).items()}
    return Term(term.edges, Sum(parts))


# ---- along the line -----------------------------------------------------------------------------


def _along(term: Term, dim: Any) -> tuple[int, ...]:
    if dim is None:
        raise Refused("the message reduces over all edges")
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(_dim(term, one) + 1 for one in dims)


def _sum(term: Term, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
    return _total(term, _along(term, dim), keepdim)


def _mean(term: Term, dim: Any = None, keepdim: bool = False, **named: Any) -> Any:
    dims = _along(term, dim)
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
    by_line = _by_line(_spread_out(term), lambda part: torch.softmax(part, dim, dtype=dtype))
    if by_line is not None:
        return by_line
    return _by_torch("softmax", torch.softmax, (term, dim), {"dtype": dtype})


def _spread_out(term: Term) -> Term:
    if not isinstance(term.value, Sum):
        return term
    return Term(term.edges, Sum(term.value.full(term.edges)))


def _layer_norm(term: Term, *args: Any, **kwargs: Any) -> Any:
    by_line = _by_line(
        _spread_out(term), lambda part: torch.nn.functional.layer_norm(part, *args, **kwargs)
    )
    if by_line is None:
        raise Refused("the message normalises values of both ends")
    return by_line


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


_RULES: dict[str, Callable[..., Any]] = {
    "cat": _cat,
    "chunk": _chunk,
    "clamp": _clamp,
    "clone": _clone,
    "contiguous": _contiguous,
    "dropout": _dropout,
    "flatten": _flatten,
    "getitem": _getitem,
    "layer_norm": _layer_norm,
    "leaky_relu": _leaky_relu,
    "linear": _linear,
    "matmul": _matmul,
    "mean": _mean,
    "pow": _pow,
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
