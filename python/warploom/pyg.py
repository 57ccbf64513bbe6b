"""Run the message passing of PyTorch Geometric's layers on warploom.

    with warploom.pyg.accelerate():
        out = model(x, edge_index)

`GCNConv`, `SAGEConv`, `GINConv` and `GraphConv` with the aggregations sum, mean, max and min then
compute `propagate` as one sparse product, and `GATConv`, `GATv2Conv` and `TransformerConv` their
attention. Everything else runs in PyG as before, and `report()` counts it with the reason.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch_geometric.nn import MessagePassing

from warploom import _pyg_attention, _pyg_calls, _pyg_layers
from warploom._pyg_attention import LAYERS as _ATTENTION
from warploom._pyg_calls import REPLACED, counts, refusal
from warploom._pyg_layers import LAYERS as _LAYERS

__all__ = ["accelerate", "convert", "disable", "enable", "report"]

_Module = TypeVar("_Module", bound=torch.nn.Module)

_lock = threading.RLock()
_installed = False


def _counting(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's check of every propagate, which counts the calls that warploom does not serve."""

    @functools.wraps(original)
    def _check_input(self: MessagePassing, edge_index: Any, size: Any) -> Any:
        layer = type(self)
        if _pyg_calls.enabled and layer not in _ATTENTION and not torch.compiler.is_compiling():
            if layer not in _LAYERS:
                counts[layer.__name__, "layer without acceleration"] += 1
            # A layer that was in explain mode keeps a propagate of its own.
            elif not hasattr(self.propagate, "is_accelerated"):
                counts[layer.__name__, refusal(self) or REPLACED] += 1
        return original(self, edge_index, size)

    return _check_input


def _install() -> None:
    global _installed
    if not _installed:
        _installed = True
        _pyg_layers.install()
        _pyg_calls.replace(MessagePassing, "_check_input", _counting)
        _pyg_attention.install()


def enable() -> None:
    """Run PyG's layers on warploom, in all threads, until `disable` was called as often.

    The first call wraps methods of PyG, which stay wrapped and pass calls on while acceleration is
    off; later calls only count.
    """
    with _lock:
        _install()
        _pyg_calls.enabled += 1


def disable() -> None:
    """End one `enable`. Graphs, norms and kernels are kept for the next one."""
    with _lock:
        if _pyg_calls.enabled == 0:
            raise RuntimeError("warploom: disable: acceleration is not enabled; call enable first")
        _pyg_calls.enabled -= 1


@contextmanager
def accelerate() -> Iterator[None]:
    """`enable` for the body of a with statement. Its backward may run later."""
    enable()
    try:
        yield
    finally:
        disable()


def convert(module: _Module) -> _Module:
    """Run the layers of this module on warploom from now on. Returns the module.

    Copies and pickles stay converted in processes that have called `convert` or `enable`.
    """
    with _lock:
        _install()
    for layer in module.modules():
        if type(layer) in _LAYERS + _ATTENTION:
            layer.__dict__["_warploom"] = True
    return module


def report(*, reset: bool = False) -> dict[str, dict[str, int]]:
    """Calls by class of layer: under "warploom" those served, under a reason those left to PyG.

    Calls inside `torch.compile` are not counted. `reset` sets all counts back to 0 afterwards.
    """
    with _lock:
        calls: dict[str, dict[str, int]] = {}
        for (name, reason), count in sorted(counts.items()):
            calls.setdefault(name, {})[reason] = count
        if reset:
            counts.clear()
    return calls
