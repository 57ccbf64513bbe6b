"""Run the message passing of PyTorch Geometric's layers on warploom.

    with warploom.pyg.accelerate():
        out = model(x, edge_index)

The message of a layer, PyG's or your own, is traced into an expression over features of sources,
targets and edges, which is computed with its aggregation in one walk over the graph, forward and
backward. `GATConv`, `GATv2Conv` and `TransformerConv` compute their attention so. Everything else
runs in PyG as before, and `report()` counts it with the reason. Dropout of attention draws other
numbers than PyG after the same `torch.manual_seed`.
"""

from __future__ import annotations

import os
import threading
import warnings
from contextlib import ContextDecorator
from typing import Any, TypeVar

import torch
import torch_geometric
from torch_geometric.nn import MessagePassing

from warploom import _arguments
from warploom._forks import renewed
from warploom.pyg import _compiled, _install, _names, _switch
from warploom.pyg._padded import padded
from warploom.torch import Sampling
from warploom.torch import sampling as torch_sampling

__all__ = ["accelerate", "convert", "disable", "enable", "padded", "report"]

_Module = TypeVar("_Module", bound=torch.nn.Module)

_lock = renewed(threading.RLock())
_installed = False
_sampled: list[torch_sampling | None] = []  # of each `enable` that was not disabled


def _install_once() -> None:
    global _installed
    if _installed:
        return
    _installed = True
    tried = ", ".join(_names.TRIED)
    if not _names.is_tried():
        warnings.warn(
            f"warploom: pyg: PyG {torch_geometric.__version__} was not tried; if results or "
            f"report() are not as expected, use PyG {tried}",
            stacklevel=4,
        )
    try:
        _install.install()
    except AttributeError as error:
        warnings.warn(
            f"warploom: pyg: PyG {torch_geometric.__version__} computes some layers itself "
            f"({error}); use PyG {tried}",
            stacklevel=4,
        )


def enable(
    *, reorder: bool | None = None, keep: int | None = None, wait: bool | None = None,
    sampling: Sampling | str | os.PathLike[str] | None = None,
) -> None:  # fmt: skip
    """Run PyG's layers on warploom, in all threads, until `disable` was called as often.

    reorder: False keeps PyG's order of products where another takes less time.
    keep: bytes that products of constant features may take; 0 keeps none. By default they take at
        most a quarter of the free memory.
    wait: True lets the first calls of a layer on a GPU wait until their kernels are compiled. By
        default PyG computes them meanwhile.
    sampling: as of `warploom.torch.sampling`: layers sample edges as the setting or file says.

    None = as the `enable` before. The first call wraps methods of PyG, which stay wrapped and pass
    calls on while acceleration is off; later calls only count.
    """
    given: dict[str, Any] = {
        "reorder": None if reorder is None else _arguments.flag("reorder", reorder),
        "keep": None if keep is None else _arguments.integer("keep", keep),
        "wait": None if wait is None else _arguments.flag("wait", wait),
    }
    sampled = None if sampling is None else torch_sampling(sampling)
    with _lock:
        _install_once()
        last = _switch.options()
        new = {name: value for name, value in given.items() if value is not None}
        if _switch.enabled == 0:
            new.setdefault("wait", False)
        _switch.all_options.append(last._replace(**new))
        _switch.enabled += 1
        _sampled.append(sampled)
        if sampled is not None:
            sampled.__enter__()


def disable() -> None:
    """End one `enable`. Graphs, norms and kernels are kept for the next one."""
    with _lock:
        if _switch.enabled == 0:
            raise RuntimeError("warploom: disable: acceleration is not enabled; call enable first")
        _switch.enabled -= 1
        _switch.all_options.pop()
        sampled = _sampled.pop()
        if sampled is not None:
            sampled.__exit__()


class _Accelerated(ContextDecorator):
    def __init__(self, **options: Any) -> None:
        self._options: dict[str, Any] = options

    def __enter__(self) -> None:
        enable(**self._options)

    def __exit__(self, *error: object) -> None:
        disable()


def accelerate(
    *, reorder: bool | None = None, keep: int | None = None, wait: bool | None = None,
    sampling: Sampling | str | os.PathLike[str] | None = None,
) -> _Accelerated:  # fmt: skip
    """`enable` for the body of a with statement. Its backward may run later."""
    return _Accelerated(reorder=reorder, keep=keep, wait=wait, sampling=sampling)


def convert(module: _Module) -> _Module:
    """Run the layers of this module on warploom from now on. Returns the module.

    Its calls wait for their kernels, unless they are inside of `accelerate()`.
    Copies and pickles stay converted in processes that have called `convert` or `enable`.
    """
    with _lock:
        _install_once()
    for layer in module.modules():
        if isinstance(layer, MessagePassing):
            layer.__dict__["_warploom"] = True
    return module


def report(*, reset: bool = False, orders: bool = False) -> dict[str, dict[str, int]]:
    """Calls by class of layer: under "warploom" those served, under a reason those left to PyG.

    orders: calls of layers whose order of products is chosen, by order and reason.

    In code of `torch.compile`, calls that are served are counted when they run, but for those that
    a CUDA graph repeats, and calls left to PyG when they are compiled. `reset` sets all counts back
    to 0 afterwards.
    """
    with _lock:
        calls: dict[str, dict[str, int]] = {}
        counts = _switch.orders if orders else _switch.counts
        for (name, reason), count in sorted(counts.items()):
            calls.setdefault(name, {})[reason] = count
        if reset:
            _switch.counts.clear()
            _switch.orders.clear()
    return calls


_compiled.find_graphs()  # an exported program runs without a call of `enable`
_compiled.leave_alone()  # here and not in the first step, since it takes milliseconds
