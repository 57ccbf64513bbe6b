"""Whether layers run on warploom, what wraps the functions of PyG, and the count of calls."""

from __future__ import annotations

import functools
import threading
import types
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch_geometric.nn import MessagePassing

SERVED = "warploom"


class Options(NamedTuple):
    """What `enable` was given.

    reorder: the order of products may be another than PyG's.
    keep: bytes of products that are kept; None = a quarter of the free memory.
    wait: calls wait for their kernels; else PyG computes them meanwhile.
    """

    reorder: bool = True
    keep: int | None = None
    wait: bool = True


enabled = 0  # how many times `warploom.pyg.enable` was called more than `disable`
all_options = [Options()]  # of each `enable` that was not disabled
orders: Counter[tuple[str, str]] = Counter()  # by class of layer, and the order with its reason
counts: Counter[tuple[str, str]] = Counter()  # by class of layer, and SERVED or a reason


class Running(threading.local):
    """The forward of a layer that runs in this thread.

    is_left: PyG computes it, and all that it calls.
    layer: the layer else, if its class has a forward that is wrapped.
    number: of this forward; several propagates of one are one use of their edges.
    """

    is_left = False
    layer: MessagePassing | None = None
    number: int | None = None


running = Running()


def is_active(layer: MessagePassing) -> bool:
    """Whether this layer runs on warploom where it can."""
    if enabled > 0:
        return True
    # Compiled code is guarded by what hasattr finds, and not by what a look into a dict does.
    if torch.compiler.is_compiling():
        return hasattr(layer, "_warploom")
    return "_warploom" in layer.__dict__


def options() -> Options:
    """Those of the last `enable`."""
    return all_options[-1]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def count_call(name: str, reason: str) -> None:
    counts[name, reason] += 1


def passing(
    run: Callable[..., Any], *, is_of_layers: bool = False,
    skips: Callable[[Any, Any], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:  # fmt: skip
    """What wraps a function of PyG: `run`, which gets the function and its arguments.

    is_of_layers: a forward that is left to PyG calls PyG's function at once. skips: gets the
        arguments, and says whether each call does.
    """

    known: dict[Any, Any] = {}
    state = running

    def wrap(original: Callable[..., Any]) -> Callable[..., Any]:
        if original in known:  # a function that several modules name
            return known[original]  # type: ignore[no-any-return]

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if (is_of_layers and state.is_left) or (skips is not None and skips(args, kwargs)):
                return original(*args, **kwargs)
            return run(original, *args, **kwargs)

        # torch.jit.script compiles the source of the original, and looks up its names in the
        # globals of the wrapper, which reads none itself. torch.compile limits how often it
        # compiles a code object, so each function has its own.
        code = wrapper.__code__.replace(co_name=original.__name__)
        made: Any = types.FunctionType(
            code, original.__globals__, wrapper.__name__, None, wrapper.__closure__
        )
        made.is_accelerated = True
        known[original] = functools.wraps(original)(made)
        return made  # type: ignore[no-any-return]

    return wrap


def replace(
    owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Put wrap(method) in the place of a method, for good: it passes calls on that PyG computes."""
    setattr(owner, name, wrap(getattr(owner, name)))
