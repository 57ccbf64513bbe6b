"""The stand-in for features of edges in a message, and the call of torch's functions on it.

A message runs as it is, with Terms in the place of `x_i` and `x_j`: torch calls
`Term.__torch_function__` for each function of a Term, as it does for the proxies of `torch.fx`.
Unlike these a Term knows its shape, the state of its layer is never out of date, and what a message
computes of tensors alone runs as usual. `RULES` says what a function makes of a Term. A value that
is narrow beside the features becomes a tensor where a function has no rule; another one is refused,
and PyG computes the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import torch
from torch import Tensor

from warploom._pyg_graphs import Refused
from warploom._pyg_terms import Edges, Sum, Value, gathered

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


class Term:
    """A value of each edge of a call, which behaves as a tensor (edges, *line).

    It has no __slots__, which torch.compile cannot trace beside __getattr__.
    """

    def __init__(self, edges: Edges, value: Value, *, is_view: bool = False) -> None:
        self.edges = edges
        self.value = value
        self.has_views = is_view  # shares memory with another tensor of the message
        self._made: Tensor | None = None

    @property
    def shape(self) -> torch.Size:
        self.edges.shape_is_read = True
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

    def __bool__(self) -> NoReturn:
        raise Refused("the message's control flow depends on features of edges")

    __int__ = __float__ = __index__ = __bool__

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise Refused("the message writes to some features of edges")

    def __iter__(self) -> NoReturn:
        raise Refused("the message iterates over edges")


def _operator(name: str) -> Any:
    method = getattr(Tensor, name)
    return lambda *args: apply(method, args, {})


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul"),
    *("pow", "rpow", "neg", "pos", "abs", "getitem", "lt", "le", "gt", "ge", "eq", "ne"),
    *("iadd", "isub", "imul", "itruediv"),
):
    setattr(Term, f"__{_name}__", _operator(f"__{_name}__"))


# ---- one function -------------------------------------------------------------------------------


def apply(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of torch with Terms among its arguments."""
    written: str = function.__name__
    name = written.strip("_")
    at = _INPLACE_AT.get(name)
    if at is not None and len(args) > at:
        args, kwargs = args[:at], {**kwargs, "inplace": args[at]}
    in_place = kwargs.get("inplace", False) or (
        written.endswith("_") and not written.startswith("__")
    )
    in_place = in_place or written in ("__iadd__", "__isub__", "__imul__", "__itruediv__")
    terms = [arg for arg in flat((args, kwargs)) if isinstance(arg, Term)]
    if terms[0].edges.has_gradients != torch.is_grad_enabled():
        raise Refused("the message turns gradients on or off")
    if in_place and any(term.has_views for term in terms):
        raise Refused(f"the message writes features of edges in place ({name})")
    args, kwargs = _with_made(args), _with_made(kwargs)
    if not any(isinstance(arg, Term) for arg in flat((args, kwargs))):
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


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (tuple, list)):
        return [value]
    found = []
    for part in value:
        if isinstance(part, (tuple, list, dict)):
            found += flat(part)
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
    rule = RULES.get(name)
    if rule is None:
        return by_torch(name, function, args, kwargs)
    options = {key: value for key, value in kwargs.items() if key != "inplace"}
    return rule(*args, **options)


def by_torch(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """The function of tensors, where the Terms are narrow."""
    terms = [leaf for leaf in flat((args, kwargs)) if isinstance(leaf, Term)]
    if not all(term.edges.is_narrow(term.value.line) for term in terms):
        raise Refused(f"the message calls {name} of features of edges")
    for term in terms:
        term.tensor()
    return function(*_with_made(args), **_with_made(kwargs))


def one_place(term: Term) -> tuple[str, Tensor] | None:
    """The place and tensor of a value that a tensor of nodes (or a narrow one of edges) gives."""
    value = term.value
    if not isinstance(value, Sum) or len(value.parts) != 1:
        return None
    ((place, part),) = value.parts.items()
    return None if place == "edge" and not term.edges.is_narrow(value.line) else (place, part)


def by_line(term: Term, function: Callable[[Tensor], Tensor]) -> Term | None:
    """A function that acts on each line alone, applied before the gather."""
    one = one_place(term)
    return None if one is None else Term(term.edges, Sum({one[0]: function(one[1])}))
