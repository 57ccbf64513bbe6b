"""The names of PyG that it does not document, and the versions that they were tried with.

Tried: PyG 2.8 with torch 2.11. Not tried: 2.6 and 2.7, and later versions.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch
import torch_geometric
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing, conv

from warploom.torch._internals import has_global_hooks, has_no_elements
from warploom.torch._sampling import has_other_hooks

TRIED = ("2.8",)

# `propagate` of a class: PyG writes one from a template when it makes the first layer of a class,
# in a module of this name's end, and keeps the ones that a layer in another mode gets.
PROPAGATES = ("propagate", "_jinja_propagate", "_orig_propagate")
MAKES_PROPAGATE = "_set_jittable_templates"

# Functions that layers call in their forward, as names of their modules.
NORM = "gcn_norm"
LOOPS = ("remove_self_loops", "add_self_loops", "add_remaining_self_loops")
LAPLACIAN = "__norm__"  # a method of ChebConv
# GAT and GATv2 have a road of their own, and gcn_norm has its own self loops.
_WITHOUT_LOOPS = ("gat_conv", "gatv2_conv", "gcn_conv")

_HOOKS = (
    "_propagate_forward_pre_hooks",
    "_propagate_forward_hooks",
    "_message_forward_pre_hooks",
    "_message_forward_hooks",
    "_aggregate_forward_pre_hooks",
    "_aggregate_forward_hooks",
    "_message_and_aggregate_forward_pre_hooks",
    "_message_and_aggregate_forward_hooks",
)
EDGE_HOOKS = ("_edge_update_forward_pre_hooks", "_edge_update_forward_hooks")
_hooks_of = operator.itemgetter(*_HOOKS)
_HOOKS_OF_MODULE = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"
)  # fmt: skip
_hooks_of_module = operator.itemgetter(*_HOOKS_OF_MODULE)

# Methods whose work a served call does itself.
_COMPARED = ("message", "aggregate", "update", "message_and_aggregate", "edge_update")
METHODS = (*_COMPARED, "edge_updater")
_methods: dict[type, list[Any]] = {}  # those of PyG, by class of layer with code of its own


def is_tried() -> bool:
    version: str = torch_geometric.__version__
    return version.startswith(tuple(f"{tried}." for tried in TRIED))


def modules_with(function: str) -> list[ModuleType]:
    """The modules of PyG's layers that call one of these functions."""
    left_out = _WITHOUT_LOOPS if function in LOOPS else ()
    return [
        module
        for name, module in vars(conv).items()
        if isinstance(module, ModuleType) and name not in left_out and hasattr(module, function)
    ]


def mode_of(layer: MessagePassing) -> str | None:
    """What makes a layer call more than its methods."""
    state = layer.__dict__
    if state["_explain"]:
        return "explain mode"
    if state["_decomposed_layers"] > 1:
        return "decomposed layers"
    if torch.compiler.is_compiling():  # which does not read an itemgetter
        has_hooks = any(state[name] for name in _HOOKS)
    else:
        has_hooks = any(_hooks_of(state)) or (has_global_hooks() and has_other_hooks())
    return "hooks" if has_hooks or has_hooks_of(layer._modules.get("aggr_module")) else None


def has_hooks_of(module: torch.nn.Module | None) -> bool:
    """Whether hooks of this module, or of one within it, see each call."""
    if module is None:
        return False
    if torch.compiler.is_compiling():
        return any(getattr(module, name) for name in _HOOKS_OF_MODULE)
    if any(_hooks_of_module(module.__dict__)):
        return True
    return any(map(has_hooks_of, module._modules.values())) if module._modules else False


def note_methods(cls: type) -> None:
    """Note the methods that a class of PyG has, to see when one is replaced."""
    found = [getattr(cls, name, None) for name in _COMPARED]
    package = f"{torch_geometric.__name__}."
    _methods[cls] = [m if m is None or m.__module__.startswith(package) else None for m in found]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warploom_is_replaced(layer: MessagePassing) -> bool:
    """Whether a method of a class with code of its own is not that of PyG."""
    cls = type(layer)
    known = _methods.get(cls)
    return known is not None and known != [getattr(cls, name, None) for name in _COMPARED]


def is_made_by_pyg(cls: type, propagate: Any) -> bool:
    """Whether a `propagate` of a class is PyG's own, not that of the user's class."""
    if propagate.__qualname__ == "MessagePassing.propagate":
        return True
    return bool(propagate.__module__.endswith(f"_{cls.__name__}_propagate"))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warploom_names(layer: MessagePassing, method: str) -> str:
    """The parameters of `message` or `update` of a layer's class."""
    return " ".join(layer.inspector.get_param_dict(method))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warploom_is_of_pyg(layer: MessagePassing, method: str) -> bool:
    """Whether a layer's class has the method of MessagePassing."""
    return getattr(type(layer), method) is getattr(MessagePassing, method)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warploom_asks_types(layer: MessagePassing) -> bool:
    """Whether `message` asks for types, of which a stand-in in compiled code has another one."""
    code = getattr(type(layer).message, "__code__", None)
    return code is None or not {"isinstance", "is_tensor"}.isdisjoint(code.co_names)


def sizes_of(
    layer: MessagePassing, edge_index: Tensor, size: Any, nodes: Iterable[tuple[int, Any]]
) -> list[int | None]:
    """Sources and targets, where `size`, the edges or features say how many; PyG's errors.

    nodes: features of sources (0) or targets (1), or of both in a tuple.
    """
    sizes: list[int | None] = layer._check_input(edge_index, size)
    for dim, data in nodes:
        if isinstance(data, (tuple, list)):
            if isinstance(data[1 - dim], Tensor):
                layer._set_size(sizes, 1 - dim, data[1 - dim])
            data = data[dim]
        if isinstance(data, Tensor):
            layer._set_size(sizes, dim, data)
    return sizes


def print_without_elements() -> None:
    """Let an EdgeIndex be printed where it has no elements, as when inductor compiles for one.

    PyTorch then prints its arguments for its log, whether it is on or not, and PyG's text reads the
    elements, which ends the compilation.
    """
    whole = EdgeIndex.__repr__

    def text(edges: EdgeIndex) -> str:
        return f"EdgeIndex({edges._data})" if has_no_elements(edges._data) else whole(edges)

    if whole.__module__ != __name__:
        EdgeIndex.__repr__ = text


def for_pyg(value: Any) -> Any:
    """An argument as PyG's code gets it: indices of edges on the CPU are int64, since PyTorch's
    gather with an expanded index of int32 is wrong there."""
    if isinstance(value, Tensor) and value.dtype is torch.int32 and value.is_cpu:
        return value.long() if value.dim() == 1 or value.shape[0] == 2 else value
    return value


def plain_edges(edge_index: Tensor) -> Tensor:
    """The tensor within an EdgeIndex, whose storage and version are those of the edges."""
    if not isinstance(edge_index, EdgeIndex):
        return edge_index
    traced = torch.compiler.is_compiling()
    data: Tensor = edge_index.as_tensor() if traced else edge_index._data
    return data


def install() -> None:
    """Give layers the methods that compiled code calls for constants."""
    MessagePassing._warploom_names = _warploom_names
    MessagePassing._warploom_is_of_pyg = _warploom_is_of_pyg
    MessagePassing._warploom_asks_types = _warploom_asks_types
    MessagePassing._warploom_is_replaced = _warploom_is_replaced
