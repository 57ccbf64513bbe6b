"""What arithmetic and activations make of values of edges."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from warploom.pyg._checks import Refused
from warploom.pyg._stand_in import RULES, Term, by_line, by_torch, flat, term
from warploom.pyg._values import (
    Edges,
    Expression,
    Joined,
    Sum,
    Tailed,
    Value,
    as_expression,
    broadcast,
    combine,
    deepened,
    padded,
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
    "maximum": "({0}=={1}?0.5*({0}+{1}):max({0},{1}))",  # both get half the gradient of a tie
    "minimum": "({0}=={1}?0.5*({0}+{1}):min({0},{1}))",
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
# Arguments behind the operand that change nothing, in their order.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "elu": {"alpha": 1},
    "gelu": {"approximate": "none"},
    "softplus": {"beta": 1, "threshold": 20},
}
# Functions that act on each element; those without an expression only of tensors of nodes.
_ELEMENTWISE = frozenset(
    (*_UNARY, "celu", "hardtanh", "mish", "selu", "softsign", "tan", "logsigmoid")
)


def _applied(given: Term, function: Callable[[Tensor], Tensor], form: str) -> Term:
    """A function of each element: of the tensor that gives the value, or as an expression."""
    made = by_line(given, function)
    if made is not None:
        return made
    expression = as_expression(given.edges, given.value)
    return term(given.edges, expression._replace(tree=(form, expression.tree)))


def _elementwise(name: str) -> Callable[..., Any]:
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    defaults = _DEFAULTS.get(name, {})

    def apply(given: Term, *args: Any, **kwargs: Any) -> Any:
        def of_part(part: Tensor) -> Tensor:
            return function(part, *args, **kwargs)  # type: ignore[no-any-return]

        options = {**dict(zip(defaults, args)), **kwargs}
        is_default = len(args) <= len(defaults) and all(
            option in defaults and defaults[option] == value for option, value in options.items()
        )
        if name in _UNARY and is_default:
            return _applied(given, of_part, _UNARY[name])
        made = by_line(given, of_part)
        return by_torch(name, function, (given, *args), kwargs) if made is None else made

    return apply


def _arithmetic(name: str) -> Callable[..., Any]:
    def apply(left: Any, right: Any = None, **kwargs: Any) -> Any:
        right = kwargs.pop("other", right)
        if kwargs:  # alpha, rounding_mode, out
            return by_torch(name, getattr(torch, name), (left, right), kwargs)
        return _binary(name, left, right)

    return apply


def edges_of(*values: Any) -> Edges:
    return next(value.edges for value in flat(values) if isinstance(value, Term))


def value_of(edges: Edges, known: Any, dims: int) -> Value | Known:
    """The value of an operand beside another of so many dimensions; what all edges share as is."""
    if isinstance(known, Term):
        return known.value
    if not isinstance(known, Tensor):
        if isinstance(known, (int, float)) and known == known and abs(known) != float("inf"):
            return int(known) if isinstance(known, bool) else known
        raise Refused(f"the message computes with {type(known).__name__}")
    if not known.is_floating_point():
        if known.dim() == 0 and not known.is_cuda:
            return int(known.item())
        raise Refused(f"the message computes with {known.dtype}")
    edges.watch(known)
    if known.dim() == dims and known.size(0) == edges.count:
        return Sum({"edge": known})
    if known.dim() > dims or (known.dim() == dims and known.size(0) != 1):
        raise Refused("the message computes with a tensor that does not match the edges")
    return known.squeeze(0) if known.dim() == dims and dims > 0 else known


def dims_of(part: Any) -> int:
    """The dimensions of a Term or tensor; 0 of a number."""
    if isinstance(part, Term):
        return part.dims
    return part.dim() if isinstance(part, Tensor) else 0


def _binary(name: str, left: Any, right: Any) -> Any:
    edges = left.edges if isinstance(left, Term) else right.edges
    dims, others = dims_of(left), dims_of(right)
    if dims != others:
        dims = max(dims, others)
        if any(isinstance(part, Term) and part.dims != dims for part in (left, right)):
            raise Refused("the message broadcasts edges over another dimension")
    first, second = value_of(edges, left, dims), value_of(edges, right, dims)
    if isinstance(first, Joined):
        first = padded(first)
    if isinstance(second, Joined):
        second = padded(second)
    if isinstance(first, Sum) and isinstance(second, Sum):
        if name in ("add", "sub"):
            return term(edges, added(edges, first, second, name))
        places = list(first.parts) + list(second.parts)
        if len(places) == 2 and places[0] == places[1] != "edge":
            (mine,), (other,) = first.parts.values(), second.parts.values()
            mine, other = _aligned(mine, other)
            return term(edges, Sum({places[0]: _OPERATIONS[name](mine, other)}))
    if isinstance(first, (Tensor, int, float)) or isinstance(second, (Tensor, int, float)):
        return _with_shared(edges, name, first, second)
    return term(edges, combine(edges, _BINARY[name], first, second))


def _aligned(*parts: Tensor) -> list[Tensor]:
    """Tensors of lines with as many dimensions, ones before those of a line."""
    dims = max(part.dim() for part in parts)
    return [deepened(part, dims) for part in parts]


def added(edges: Edges, first: Sum, second: Sum, name: str) -> Sum:
    parts = dict(first.parts)
    for place, part in second.parts.items():
        if place in parts:
            mine, other = _aligned(parts[place], part)
            parts[place] = mine + other if name == "add" else mine - other
        else:
            parts[place] = part if name == "add" else edges.negative(part)
    return Sum(parts)


def _with_shared(edges: Edges, name: str, first: Any, second: Any) -> Term:
    """An operation with a number or tensor that all edges share."""
    operation = _OPERATIONS[name]
    is_left = isinstance(first, (Sum, Expression, Tailed))
    value, shared = (first, second) if is_left else (second, first)
    is_factor = name == "mul" or (name == "div" and is_left)

    def act(part: Tensor) -> Tensor:
        if isinstance(shared, Tensor):
            part = deepened(part, shared.dim() + 1)
        if name in ("maximum", "minimum") and not isinstance(shared, Tensor):
            raise Refused(f"the message calls {name} with a number")
        return operation(part, shared) if is_left else operation(shared, part)

    if isinstance(value, Tailed):
        if not is_factor:
            raise Refused("the message adds to a linear map of both ends")
        line = broadcast(value.line, getattr(shared, "shape", ()))
        return term(edges, Tailed(value.inner, (*value.steps, lambda r, w: act(r)), line))
    if isinstance(value, Sum):
        nodes = [place for place in value.parts if place != "edge"]
        if len(value.parts) == 1 and (nodes or edges.is_narrow(value.line)):
            return term(edges, Sum({place: act(part) for place, part in value.parts.items()}))
        if is_factor and len(nodes) == len(value.parts):
            return term(edges, Sum({place: act(part) for place, part in value.parts.items()}))
        if name in ("add", "sub") and nodes and is_left:
            parts = dict(value.parts)
            parts[nodes[0]] = act(parts[nodes[0]])
            return term(edges, Sum(parts))
    expression = as_expression(edges, value)
    if not isinstance(shared, Tensor):
        text = repr(shared) if shared >= 0 else f"({shared!r})"
        form = _BINARY[name].format(*(("{0}", text) if is_left else (text, "{0}")))
        return term(edges, expression._replace(tree=(form, expression.tree)))
    if shared.dim() == 0:  # whose type decides nothing
        shared = shared.to(expression.dtype)
    rows = Sum({"row": shared.expand(edges.graph.rows, *shared.shape)})
    both = (expression, rows) if is_left else (rows, expression)
    return term(edges, combine(edges, _BINARY[name], *both))


def _pow(base: Any, exponent: Any) -> Any:
    if not isinstance(base, Term) or not isinstance(exponent, (int, float)):
        raise Refused("the message calls pow with an exponent that is no number")
    form = "({0}*{0})" if exponent == 2 else f"pow({{0}},{float(exponent)!r})"
    return _applied(base, lambda part: part**exponent, form)


def _leaky_relu(given: Term, negative_slope: float = 0.01, inplace: bool = False) -> Term:
    def of_part(part: Tensor) -> Tensor:
        return torch.nn.functional.leaky_relu(part, negative_slope=negative_slope)

    return _applied(given, of_part, f"leaky_relu({{0}},{float(negative_slope)!r})")


def _clamp(given: Term, min: Any = None, max: Any = None) -> Term:
    if any(isinstance(limit, (Tensor, Term)) for limit in (min, max)):
        raise Refused("the message clamps by a tensor")
    form = "{0}" if min is None else f"max({{0}},({float(min)!r}))"
    form = form if max is None else f"min({form},({float(max)!r}))"
    return _applied(given, lambda part: part.clamp(min, max), form)


def _dropout(
    given: Any, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None
) -> Any:
    training = training if train is None else train
    if not training or p == 0:
        return given
    return by_torch("dropout", torch.nn.functional.dropout, (given, p, True), {})


RULES.update({name: _elementwise(name) for name in _ELEMENTWISE})
RULES.update({name: _arithmetic(name) for name in _BINARY})
RULES.update(clamp=_clamp, dropout=_dropout, leaky_relu=_leaky_relu, pow=_pow)
