"""Which calls of PyG's layers run on warploom, and the count of all others with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import MaxAggregation, MeanAggregation, MinAggregation, SumAggregation

from warploom import _pyg_names
from warploom._pyg_graphs import Refused
from warploom.torch._internals import is_plain, is_transformed, tracing_state

_REDUCTIONS = {"add": "sum", "sum": "sum", "mean": "mean", "max": "max", "min": "min"}
_AGGREGATIONS = {
    "sum": SumAggregation,
    "mean": MeanAggregation,
    "max": MaxAggregation,
    "min": MinAggregation,
}
_METHODS = ("message", "aggregate", "update", "message_and_aggregate")
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
SERVED = "warploom"
REPLACED = "a method of the layer was replaced"
REFUSALS = (Refused, ValueError, LookupError, NotImplementedError)

enabled = 0  # how many times `warploom.pyg.enable` was called more than `disable`
counts: Counter[tuple[str, str]] = Counter()  # by class of layer, and SERVED or a reason


class OtherAggregation(Refused):
    """The layer's aggregation is not one product."""


def is_active(layer: MessagePassing) -> bool:
    """Whether this layer runs on warploom where it can."""
    # Compiled code is guarded by what hasattr finds, and not by what a look into a dict does.
    if torch.compiler.is_compiling():
        return enabled > 0 or hasattr(layer, "_warploom")
    return enabled > 0 or "_warploom" in layer.__dict__


def refusal(layer: MessagePassing) -> str | None:
    """Why the layer as it is cannot be served."""
    if _pyg_names.is_explained(layer):
        return "explain mode"
    if _pyg_names.is_decomposed(layer):
        return "decomposed layers"
    if _pyg_names.has_hooks(layer):
        return "hooks"
    state = layer.__dict__
    if torch.compiler.is_compiling():  # which reads no keys of a module
        replaced = any(name in state for name in _METHODS)
    else:
        replaced = not state.keys().isdisjoint(_METHODS)
    return REPLACED if replaced else None


def count(name: str, reason: str) -> None:
    """Count a call: one in compiled code that is left to PyG when it is compiled; an op counts one
    that is served whenever it runs."""
    if reason != SERVED or not torch.compiler.is_compiling():
        _count(name, reason)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _count(name: str, reason: str) -> None:
    counts[name, reason] += 1


def check_layer(layer: MessagePassing) -> str:
    """The reduction of a layer that can be served."""
    reason = refusal(layer)
    if reason is not None:
        raise Refused(reason)
    reduce = _REDUCTIONS.get(layer.aggr) if isinstance(layer.aggr, str) else None
    # Not layer.aggr_module: torch finds a module's attribute only after all others.
    if reduce is None or type(layer._modules["aggr_module"]) is not _AGGREGATIONS[reduce]:
        raise OtherAggregation(f"aggregation {layer.aggr}")
    return reduce


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
