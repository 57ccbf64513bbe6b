"""What happens when a layer of PyG computes: one of two roads.

A forward that makes lists of edges or has code of its own is wrapped, and so is each propagate. The
wrapper runs PyG's method where acceleration is off, and where the call is refused. Otherwise the
call is served:

    eager      `_roads` leaves small calls to PyG, by their sizes alone. Layers whose message is a
               product (`_products`) and those of attention have code of their own, which takes no
               more time of the host than PyG's. Any other message is traced.
    captured   In a step of `warploom.torch.capture` all that can be said is served: a replay takes
               no time of the host.

Code of `torch.compile` and `torch.export` is served by ops (`_compiled`).
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from warploom.pyg import _names, _switch
from warploom.pyg._aggregations import aggregation_of
from warploom.pyg._checks import Refused, check_call, check_edges, check_layer
from warploom.pyg._edge_lists import with_loops_noted
from warploom.pyg._roads import ROADS, SMALL, is_left, is_small
from warploom.pyg._sorted import without_graphs
from warploom.pyg._switch import SERVED, count_call, is_active, passing, running
from warploom.pyg._trace import Trace, deep_features, of_signals
from warploom.torch import Graph, _later
from warploom.torch._internals import saves_by_hooks

COMPILING = "its kernels are being compiled"
# What a call raises that PyG then computes: its own errors are raised there again.
_FAILURES = (Refused, ValueError, TypeError, LookupError, NotImplementedError)


# ---- 1. a forward begins -------------------------------------------------------------------------


_numbers = itertools.count(1)  # of forwards


def forwarding(
    cls: type, run: Callable[..., Any] | None, counts_refusals: bool
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What wraps the forward of a class that makes lists of edges or has code of its own, `run`:
    where sizes leave the call to PyG, its propagates are PyG's as well."""

    def forward(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        if not (_switch.enabled or is_active(self)):
            return original(self, *args, **kwargs)
        own = run if type(self) is cls else None
        if torch.compiler.is_compiling():
            given = own, original, self, args, kwargs, counts_refusals
            return with_loops_noted(self, _served, *given)
        if is_left(self, args, kwargs):
            _switch.counts[type(self).__name__, SMALL] += 1
            running.is_left = True
            try:
                return original(self, *args, **kwargs)
            finally:
                running.is_left = False
        outer = running.layer, running.number
        running.layer, running.number = self, next(_numbers)
        try:
            return _served(own, original, self, args, kwargs, counts_refusals)
        finally:
            running.layer, running.number = outer

    return passing(forward)


# ---- 2. a propagate: sizes and known reasons decide ----------------------------------------------


def serving(
    run: Callable[..., Any], only: type | None, but: frozenset[type]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What wraps a propagate: `run`, which gets its arguments, or PyG's where `run` raises why it
    cannot serve the call.

    only: the class that is served; None: all but some.
    """
    is_decided = only in ROADS  # by the layer's forward

    def skips(args: Any, kwargs: dict[str, Any]) -> bool:
        layer = args[0]
        kind = type(layer)
        if kind in but if only is None else kind is not only:
            return True
        if not (_switch.enabled or is_active(layer)):
            return True
        if is_decided or torch.compiler.is_compiling():
            return False
        reason = left_to_pyg(layer, args[1] if len(args) > 1 else None, kwargs)
        if reason is not None:
            _switch.counts[kind.__name__, reason] += 1
        return reason is not None

    def serve(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        return _served(run, original, self, args, kwargs)

    return passing(serve, is_of_layers=True, skips=skips)


def left_to_pyg(layer: MessagePassing, edge_index: Any, kwargs: dict[str, Any]) -> str | None:
    """Why PyG computes a propagate in eager code, as far as that needs no look at the call."""
    if edge_index is None:
        edge_index = kwargs.get("edge_index")
    # What PyG shall not get is converted below.
    if not isinstance(edge_index, Tensor) or edge_index.dtype is torch.int32:
        return None
    if is_small(edge_index, kwargs.values(), layer.node_dim):
        return (_compiled_meanwhile(layer) if _compiling else None) or SMALL
    reasons = _reasons.get(layer)
    return None if reasons is None else reasons.get(_key_of(layer, kwargs))


# ---- 3. the code that serves a call --------------------------------------------------------------


def _served(
    run: Callable[..., Any] | None, original: Callable[..., Any], self: Any, args: Any,
    kwargs: dict[str, Any], counts_refusals: bool = True,
) -> Any:  # fmt: skip
    """The result of `run`; that of PyG's method where `run` raises why it cannot serve the call,
    or returns None; counted. In compiled code an op counts a call that is served, whenever it runs.

    counts_refusals: False where another method of the layer counts them.
    """
    if Graph in tuple(map(type, (*args, *kwargs.values()))):
        args, kwargs = without_graphs(args, kwargs)
    if run is None:
        return original(self, *args, **kwargs)
    name, is_eager = type(self).__name__, not torch.compiler.is_compiling()
    out = reason = None
    if is_eager and _compiling:
        reason = _compiled_meanwhile(self)
    if reason is None:
        if is_eager:
            outer = _later.thread.module
            _later.thread.module = None if _switch.all_options[-1].wait else self
        try:
            out = run(self, *args, **kwargs)
        except _FAILURES as failure:
            reason = _text_of(failure)
        except _later.NotReady as failure:
            _compiling[self], reason = failure.job, COMPILING
        finally:
            if is_eager:
                _later.thread.module = outer
    if reason is not None and counts_refusals:
        count_call(name, reason)
    if out is None:
        return _by_pyg(original, self, args, kwargs)
    if is_eager:
        _switch.counts[name, SERVED] += 1
    return out


# The layers whose kernels are being compiled.
_compiling: WeakKeyDictionary[MessagePassing, _later.Job] = WeakKeyDictionary()
os.register_at_fork(after_in_child=_compiling.clear)  # a child does not have those threads


def _compiled_meanwhile(layer: MessagePassing) -> str | None:
    """Why PyG computes a call of a layer, if its kernels are not there yet."""
    job = _compiling.get(layer)
    if job is None:
        return None
    if not _later.is_done(job) and not _switch.options().wait and not _later.must_wait():
        return COMPILING
    del _compiling[layer]
    return None


def _by_pyg(original: Callable[..., Any], self: Any, args: Any, kwargs: Any) -> Any:
    for one in (*args, kwargs.get("edge_index")):
        if isinstance(one, Tensor) and one.dtype is torch.int32:
            args = [_names.for_pyg(one) for one in args]
            kwargs = {name: _names.for_pyg(one) for name, one in kwargs.items()}
            break
    return original(self, *args, **kwargs)


def _text_of(reason: Exception) -> str:
    if torch.compiler.is_compiling():  # which reads no text of an exception
        return str(reason.args[0]) if reason.args else ""
    return str(reason)


# ---- 4. any message ------------------------------------------------------------------------------


def propagate(layer: MessagePassing, /, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
    """The layer's propagate on warploom; raises where PyG must compute it."""
    check_layer(layer)
    if torch.compiler.is_compiling():
        return _in_compiled_code(layer, edge_index, size, kwargs)
    check_call()
    if saves_by_hooks():  # a recomputation must save what the first run saved, and traces may fail
        raise Refused("a message in activation checkpointing")
    if any(map(_names.has_hooks_of, layer._modules.values())):
        raise Refused("hooks")
    check_edges(edge_index, "a message over ")
    deep = deep_features(layer, kwargs)
    if deep:
        return of_signals(layer, kwargs, deep, functools.partial(_traced, layer, edge_index, size))
    return _traced(layer, edge_index, size, kwargs)


# ---- 5. reasons that were found before -----------------------------------------------------------

# By layer and by what decides whether its message can be said; not by shapes.
_reasons: WeakKeyDictionary[MessagePassing, dict[Any, str]] = WeakKeyDictionary()


def _key_of(layer: MessagePassing, kwargs: dict[str, Any], beside: bool = False) -> Any:
    is_none = tuple([name for name, value in kwargs.items() if value is None and name != "size"])
    return layer.training, torch.is_grad_enabled(), is_none, beside


def _noting(layer: MessagePassing, key: Any, run: Callable[..., Any], *args: Any) -> Any:
    """What `run` gives; the reason why it refuses a message or an aggregation is kept."""
    try:
        return run(*args)
    except (MemoryError, torch.cuda.OutOfMemoryError, _later.NotReady):
        raise
    # A message may do anything; what it cannot do with a Term is shown by many errors.
    except Exception as error:
        reason = str(error)
        if not isinstance(error, Refused):
            first_line = reason.partition("\n")[0]
            reason = f"the message cannot be traced ({type(error).__name__}: {first_line})"
        _reasons.setdefault(layer, {})[key] = reason
        raise Refused(reason) from error


# ---- 6. the message is traced --------------------------------------------------------------------


def _traced(
    layer: MessagePassing, edge_index: Any, size: Any, kwargs: dict[str, Any], beside: bool = False
) -> Tensor:
    """beside: of features that hold several signals side by side."""
    key = _key_of(layer, kwargs, beside)
    reasons = _reasons.get(layer)
    if reasons is not None and key in reasons:
        raise Refused(reasons[key])
    aggregate = _noting(layer, key, aggregation_of, layer)
    trace = Trace(layer, edge_index, size, kwargs)
    return trace.updated(_noting(layer, key, trace.aggregated, aggregate, beside))


def _in_compiled_code(
    layer: MessagePassing, edge_index: Any, size: Any, kwargs: dict[str, Any]
) -> Tensor:
    """The call in code of torch.compile or torch.export."""
    check_edges(edge_index, "a message over ")
    if deep_features(layer, kwargs):
        raise Refused("several signals in compiled code")
    if layer._warploom_asks_types():
        raise Refused("a message that asks for types in compiled code")
    aggregate = aggregation_of(layer)
    trace = Trace(layer, edge_index, size, kwargs)
    return trace.updated(trace.aggregated(aggregate))
