"""The stand-in for features of edges in a message, and the call of torch's functions on it.

A message runs as it is, with Terms in the place of `x_i` and `x_j`: torch calls
`__torch_function__` for each function of a Term, as it does for the proxies of `torch.fx`. What a
message computes of tensors alone runs as usual. `RULES` says what a function makes of a Term. A
value that is narrow beside the features becomes a tensor where a function has no rule; another one
is refused, and PyG computes the call.

In eager code a Term is a tensor without memory, so `isinstance` sees a Tensor, and what PyTorch
computes in C++ without `__torch_function__` is refused. Code of `torch.compile` and `torch.export`
cannot make such a tensor; there a Term is an object that behaves like one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

from warploom.pyg._checks import Refused
from warploom.pyg._values import Edges, Sum, Value
from warploom.pyg._walks import gathered
from warploom.torch._internals import tensor_without_memory, without_overrides

# By the name of a function, without the underscores of operators.
RULES: dict[str, Callable[..., Any]] = {}

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
# Where functions of torch.nn.functional have their `inplace`, which torch.compile does not name.
_INPLACE_AT = {
    "celu": 2,
    "dropout": 3,
    "elu": 2,
    "hardtanh": 3,
    "leaky_relu": 2,
    "mish": 1,
    "relu": 1,
    "selu": 1,
    "silu": 1,
}
_SWAPPED = {"rsub": "sub", "rtruediv": "div", "rdiv": "div"}
_REASONS = {
    **dict.fromkeys(
        ("bool", "float", "index", "int", "item", "tolist"),
        "the message's control flow depends on features of edges",
    ),
    "setitem": "the message writes to some features of edges",
}
# What a tensor says of itself, and whether that depends on its shape.
_SHAPES = ("shape", "size", "numel", "nelement", "__len__", "nbytes")
_KINDS = (
    *("dtype", "device", "ndim", "dim", "ndimension", "is_cuda", "is_cpu", "layout", "is_sparse"),
    *("is_floating_point", "is_complex", "element_size", "itemsize", "get_device", "is_quantized"),
)


def _getter(name: str) -> Any:
    """The function that PyTorch calls for a method or an attribute of a tensor."""
    found = getattr(Tensor, name)
    return found if callable(found) else found.__get__


_FACTS = {_getter(name): name in _SHAPES for name in (*_SHAPES, *_KINDS)}


class Term:
    """A value of each edge of a call, which behaves as a tensor (edges, *line)."""

    edges: Edges
    value: Value
    has_views: bool  # shares memory with another tensor of the message
    made: Tensor | None

    @property
    def dims(self) -> int:
        return 1 + len(self.value.line)

    def tensor(self) -> Tensor:
        """The value as a tensor, made once; refused where it is as wide as features."""
        if self.made is None:
            if not self.edges.is_narrow(self.value.line):
                raise Refused("the message needs features of edges in memory")
            self.made = gathered(self.edges, self.value)
        return self.made


class _Tensor(Term, Tensor):
    """A Term in eager code."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        reads_shape = _FACTS.get(function)
        if reads_shape is None:
            return apply(function, args, kwargs or {})
        if reads_shape:
            args[0].edges.shape_is_read = True
        with without_overrides():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        raise Refused(f"the message calls {function} of features of edges")


class _Traced(Term):
    """A Term in compiled code. It has no __slots__, which PyTorch cannot trace with __getattr__."""

    def __init__(self, edges: Edges, value: Value, is_view: bool) -> None:
        self.edges, self.value, self.has_views = edges, value, is_view
        self.made = None

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
        return self.dims

    @property
    def is_cuda(self) -> bool:
        return self.edges.edge_index.is_cuda

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return self.dims

    def numel(self) -> int:
        return self.shape.numel()

    def is_floating_point(self) -> bool:
        return True

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return apply(function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(Tensor, name)
        if not callable(method):
            raise Refused(f"the message reads the attribute {name} of features of edges")
        return lambda *args, **kwargs: apply(method, (self, *args), kwargs)

    def __len__(self) -> int:
        return self.edges.count


def _operator(name: str) -> Any:
    method = getattr(Tensor, name)
    return lambda *args: apply(method, args, {})


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul"),
    *("pow", "rpow", "neg", "pos", "abs", "getitem", "lt", "le", "gt", "ge", "eq", "ne"),
    *("iadd", "isub", "imul", "itruediv", "setitem", "bool", "int", "float", "index", "iter"),
):
    setattr(_Traced, f"__{_name}__", _operator(f"__{_name}__"))


def term(edges: Edges, value: Value, *, is_view: bool = False) -> Term:
    """The stand-in for a value."""
    if edges.is_traced:
        return _Traced(edges, value, is_view)
    made: Term = tensor_without_memory(
        _Tensor, (edges.count, *value.line), value.dtype, edges.device
    )
    made.edges, made.value, made.has_views, made.made = edges, value, is_view, None
    return made


# ---- one function -------------------------------------------------------------------------------


def apply(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of torch with Terms among its arguments."""
    written: str = function.__name__
    if written == "__get__":
        name = function.__self__.__name__
        raise Refused(f"the message reads the attribute {name} of features of edges")
    name = written.strip("_")
    at = _INPLACE_AT.get(name)
    if at is not None and len(args) > at:
        args, kwargs = args[:at], {**kwargs, "inplace": args[at]}
    in_place = kwargs.get("inplace", False) or (
        written.endswith("_") and not written.startswith("__")
    )
    in_place = in_place or written in ("__iadd__", "__isub__", "__imul__", "__itruediv__")
    leaves = flat(args) + flat(kwargs) if kwargs else flat(args)
    terms = [leaf for leaf in leaves if isinstance(leaf, Term)]
    if terms[0].edges.has_gradients != torch.is_grad_enabled():
        raise Refused("the message turns gradients on or off")
    if name in _REASONS:
        raise Refused(_REASONS[name])
    if in_place and any(one.has_views for one in terms):
        raise Refused(f"the message writes features of edges in place ({name})")
    made = [one for one in terms if one.made is not None]
    if made:
        args, kwargs = _with_made(args), _with_made(kwargs)
        if len(made) == len(terms):
            return function(*args, **kwargs)
    if name in _SWAPPED:
        name, args = _SWAPPED[name], args[::-1]
    result = _rule(_ALIASES.get(name, name), function, args, kwargs)
    if not in_place:
        return result
    target = args[0]
    is_like = (
        isinstance(target, Term)
        and isinstance(result, Term)
        and (result.value.line, result.value.dtype) == (target.value.line, target.value.dtype)
    )
    if not is_like:
        raise Refused(f"the message writes features of edges in place ({name})")
    target.value = result.value
    return target


_NESTED = (tuple, list, dict)


def flat(value: Any) -> list[Any]:
    """The leaves of nested arguments."""
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return [value]
    found = []
    for part in value:
        if type(part) in _NESTED or isinstance(part, (tuple, list)):
            found += flat(part)
        else:
            found.append(part)
    return found


def _with_made(value: Any) -> Any:
    """The arguments, with the tensor of each Term that has one."""
    if isinstance(value, Term):
        return value if value.made is None else value.made
    if type(value) in (tuple, list):
        return type(value)(_with_made(part) for part in value)
    if type(value) is dict:
        return {name: _with_made(part) for name, part in value.items()}
    return value


def _rule(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    rule = RULES.get(name)
    if rule is None:
        return by_torch(name, function, args, kwargs)
    if "inplace" in kwargs:
        kwargs = {key: value for key, value in kwargs.items() if key != "inplace"}
    return rule(*args, **kwargs)


def by_torch(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """The function of tensors, where the Terms are narrow."""
    terms = [leaf for leaf in flat((args, kwargs)) if isinstance(leaf, Term)]
    if not all(one.edges.is_narrow(one.value.line) for one in terms):
        raise Refused(f"the message calls {name} of features of edges")
    for one in terms:
        one.tensor()
    return function(*_with_made(args), **_with_made(kwargs))


def by_line(given: Term, function: Callable[[Tensor], Tensor]) -> Term | None:
    """A function that acts on each line alone, applied before the gather: where one tensor, of
    nodes or a narrow one of edges, gives the value."""
    value = given.value
    if not isinstance(value, Sum) or len(value.parts) != 1:
        return None
    ((place, part),) = value.parts.items()
    if place == "edge" and not given.edges.is_narrow(value.line):
        return None
    return term(given.edges, Sum({place: function(part)}))
