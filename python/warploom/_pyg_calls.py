"""Which calls of PyG's layers run on warploom, and the count of all others with the reason."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import (
    MaxAggregation,
    MeanAggregation,
    MinAggregation,
    StdAggregation,
    SumAggregation,
    VarAggregation,
)

from warploom._pyg_graphs import Refused, without_graphs
from warploom._pyg_names import for_pyg, mode_of
from warploom._pyg_terms import PRODUCTS
from warploom.torch import Graph
from warploom.torch._internals import is_plain, is_transformed, tracing_state

REDUCTIONS: dict[type, str] = {
    SumAggregation: "sum",
    MeanAggregation: "mean",
    MaxAggregation: "max",
    MinAggregation: "min",
    VarAggregation: "var",
    StdAggregation: "std",
}
_METHODS = ("message", "aggregate", "update", "message_and_aggregate")
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
SERVED = "warploom"
REPLACED = "a method of the layer was replaced"
# What a call raises that PyG then computes: its own errors are raised there again.
_FAILURES = (Refused, ValueError, TypeError, LookupError, NotImplementedError)

enabled = 0  # how many times `warploom.pyg.enable` was called more than `disable`
counts: Counter[tuple[str, str]] = Counter()  # by class of layer, and SERVED or a reason


def is_active(layer: MessagePassing) -> bool:
    """Whether this layer runs on warploom where it can."""
    # Compiled code is guarded by what hasattr finds, and not by what a look into a dict does.
    if torch.compiler.is_compiling():
        return enabled > 0 or hasattr(layer, "_warploom")
    return enabled > 0 or "_warploom" in layer.__dict__


def refusal(layer: MessagePassing) -> str | None:
    """Why the layer as it is cannot be served."""
    mode = mode_of(layer)
    if mode is not None:
        return mode
    state = layer.__dict__
    if torch.compiler.is_compiling():  # which reads no keys of a module
        replaced = any(name in state for name in _METHODS)
    else:
        replaced = not state.keys().isdisjoint(_METHODS)
    return REPLACED if replaced else None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _count(name: str, reason: str) -> None:
    counts[name, reason] += 1


def serving(
    run: Callable[..., Any],
    only: type | None = None,
    *,
    but: tuple[type, ...] = (),
    counts_refusals: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What wraps a method of layers: `run`, which gets the method's arguments, or PyG's method
    where `run` raises why it cannot serve the call, or returns None; counted.

    only, but: the class of layers that is served, or those that are not.
    counts_refusals: False where another method of the layer counts them.

    In compiled code an op counts a call that is served, whenever it runs.
    """

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def method(self: MessagePassing, *args: Any, **kwargs: Any) -> Any:
            kind = type(self)
            if kind in but or (only is not None and kind is not only) or not is_active(self):
                return original(self, *args, **kwargs)
            if Graph in tuple(map(type, (*args, *kwargs.values()))):  # no call of a function
                args, kwargs = without_graphs(args, kwargs)
            try:
                out = run(self, *args, **kwargs)
            except _FAILURES as reason:
                if counts_refusals:
                    _count(kind.__name__, _text_of(reason))
                out = None
            if out is None:
                kwargs = {name: for_pyg(value) for name, value in kwargs.items()}
                return original(self, *[for_pyg(value) for value in args], **kwargs)
            if not torch.compiler.is_compiling():
                counts[kind.__name__, SERVED] += 1
            return out

        method.is_accelerated = True  # type: ignore[attr-defined]
        return method

    return wrap


def _text_of(reason: Exception) -> str:
    if torch.compiler.is_compiling():  # which reads no text of an exception
        return str(reason.args[0]) if reason.args else ""
    return str(reason)


def reduction_of(layer: MessagePassing) -> str | None:
    """The reduction of a layer that can be served; None for an aggregation that is no product."""
    reason = refusal(layer)
    if reason is not None:
        raise Refused(reason)
    # Not layer.aggr_module: torch finds a module's attribute only after all others.
    reduce = REDUCTIONS.get(type(layer._modules["aggr_module"]))
    return reduce if reduce in PRODUCTS else None


def check_sum(layer: MessagePassing) -> None:
    """Raise unless the layer can be served and adds messages."""
    if reduction_of(layer) != "sum":
        raise Refused(f"aggregation {layer.aggr}")


def check_edges(edges: Any, what: str = "") -> None:
    """Raise unless these are the edges of a call that can be served; what: the call."""
    if not is_plain(edges) and type(edges) is not EdgeIndex:
        raise Refused(f"{what}edges as {type(edges).__name__}")
    if edges.layout is not torch.strided:
        raise Refused(f"{what}a sparse matrix")
    if edges.dtype not in (torch.int64, torch.int32) or edges.dim() != 2 or edges.shape[0] != 2:
        raise Refused("edge_index is not an integer matrix of 2 rows")


def check_call() -> None:
    """Raise where a call is not computed now."""
    if not torch.compiler.is_compiling() and (is_transformed() or tracing_state() is not None):
        raise Refused("function transform or tracing")


def check_dense(layer: MessagePassing, x: Any) -> Tensor:
    """The features of a call that can be served."""
    if not is_plain(x):
        raise Refused("features are not a plain tensor")
    if x.dim() != 2 or layer.node_dim not in (-2, 0):
        raise Refused("features are not a matrix with a row for each node")
    if x.dtype not in TYPES:
        raise Refused(f"features of type {x.dtype}")
    if not (x.is_cuda or x.is_cpu) or x.layout is not torch.strided:
        raise Refused("features in unsupported memory")
    check_call()
    return x  # type: ignore[no-any-return]


def replace(
    owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Put wrap(method) in the place of a method, for good: it passes calls on that PyG computes."""
    setattr(owner, name, wrap(getattr(owner, name)))
