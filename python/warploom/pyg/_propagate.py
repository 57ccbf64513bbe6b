"""What happens when a layer of PyG computes: one of two roads.

`serving` stands in the place of a method of PyG. It runs the method where acceleration is off, and
where the call is refused. Otherwise the call is served:

    eager      Layers whose message is a product (`_products`) and those of attention have code of
               their own, which takes no more time of the host than PyG's. Any other message is
               traced where the edges times the columns of its features make that pay; their sizes
               alone decide.
    captured   In a step of `warploom.torch.capture` all that can be said is served: a replay takes
               no time of the host.

Code of `torch.compile` and `torch.export` is served by ops (`_compiled`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from warploom.pyg import _names, _switch
from warploom.pyg._aggregations import aggregation_of
from warploom.pyg._checks import Refused, check_call, check_edges, check_layer, pays
from warploom.pyg._sorted import without_graphs
from warploom.pyg._switch import SERVED, count_call, is_active, passing, replace
from warploom.pyg._trace import ENDS, Trace
from warploom.torch import _later
from warploom.torch._internals import saves_by_hooks

COMPILING = "its kernels are being compiled"
_SMALL = "too little work to trace a message for"
# What a call raises that PyG then computes: its own errors are raised there again.
_FAILURES = (Refused, ValueError, TypeError, LookupError, NotImplementedError)


# ---- 1. a method of a layer is called ------------------------------------------------------------


def serving(
    run: Callable[..., Any],
    only: type | None = None,
    *,
    but: tuple[type, ...] = (),
    left: Callable[[Any, Any, dict[str, Any]], str | None] | None = None,
    counts_refusals: bool = True,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """What wraps a method of layers: `run`, which gets the method's arguments, or PyG's method
    where `run` raises why it cannot serve the call, or returns None; counted.

    only, but: the class of layers that is served, or those that are not.
    left: says at once why PyG computes a call, or None; an exception takes longer.
    counts_refusals: False where another method of the layer counts them.

    In compiled code an op counts a call that is served, whenever it runs.
    """

    def serve(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        kind = type(self)
        if kind in but or (only is not None and kind is not only) or not is_active(self):
            return original(self, *args, **kwargs)
        out = reason = None
        is_eager = not torch.compiler.is_compiling()
        if is_eager:
            reason = None if left is None else left(self, args, kwargs)
            if _compiling and reason is None:
                reason = _compiled_meanwhile(self)
        if reason is None:
            args, kwargs = without_graphs(args, kwargs)
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
            count_call(kind.__name__, reason)
        if out is None:
            return _by_pyg(original, self, args, kwargs)
        if is_eager:
            count_call(kind.__name__, SERVED)
        return out

    return passing(serve)


# The layers whose kernels are being compiled.
_compiling: WeakKeyDictionary[MessagePassing, _later.Job] = WeakKeyDictionary()


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


# ---- 2. any message: sizes and known reasons decide ----------------------------------------------


def left_to_pyg(layer: MessagePassing, args: Any, kwargs: dict[str, Any]) -> str | None:
    """Why PyG computes a propagate in eager code, as far as that needs no look at the call."""
    edge_index = args[0] if args else kwargs.get("edge_index")
    if not pays(layer, edge_index, kwargs.values()):
        return _SMALL
    reasons = _reasons.get(layer)
    return None if reasons is None else reasons.get(_key_of(layer, kwargs))


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
    deep = _deep(layer, kwargs)
    if deep:
        return _of_signals(layer, edge_index, size, kwargs, deep)
    return _traced(layer, edge_index, size, kwargs)


# ---- 3. reasons that were found before -----------------------------------------------------------

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


# ---- 4. the message is traced --------------------------------------------------------------------


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


def _of_signals(
    layer: MessagePassing, edge_index: Any, size: Any, kwargs: dict[str, Any], deep: list[str]
) -> Tensor:
    """The call for features (signals, nodes, n): all signals side by side in one walk where that
    gives the same, or else one after the other."""
    shapes = {kwargs[name].shape for name in deep}
    if len(shapes) == 1:
        ((signals, _, n),) = shapes
        beside = {name: kwargs[name].transpose(0, 1).flatten(1) for name in deep}
        with suppress(Refused):
            out = _traced(layer, edge_index, size, {**kwargs, **beside}, True)
            return out.view(-1, signals, n).transpose(0, 1)
    names = layer._warploom_names("message").split()
    ends = {name[:-2] for name in names if name.endswith(ENDS)}
    if not ends.issuperset(deep) or len({shape[0] for shape in shapes}) > 1:
        raise Refused("features without a line for each node")
    parts = zip(*(kwargs[name].unbind() for name in deep))
    return torch.stack(
        [_traced(layer, edge_index, size, {**kwargs, **dict(zip(deep, one))}) for one in parts]
    )


def _deep(layer: MessagePassing, kwargs: dict[str, Any]) -> list[str]:
    """The names of features that have a dimension of signals before that of nodes."""
    if layer.node_dim != -2:
        return []
    return [name for name, v in kwargs.items() if isinstance(v, Tensor) and v.dim() == 3]


def _in_compiled_code(
    layer: MessagePassing, edge_index: Any, size: Any, kwargs: dict[str, Any]
) -> Tensor:
    """The call in code of torch.compile or torch.export."""
    check_edges(edge_index, "a message over ")
    if _deep(layer, kwargs):
        raise Refused("several signals in compiled code")
    if layer._warploom_asks_types():
        raise Refused("a message that asks for types in compiled code")
    aggregate = aggregation_of(layer)
    trace = Trace(layer, edge_index, size, kwargs)
    return trace.updated(trace.aggregated(aggregate))


# ---- the classes whose propagate is wrapped ------------------------------------------------------


_Wraps = dict[type, Callable[..., Any]]


def _wrap_class(cls: type, but: tuple[type, ...], own: _Wraps) -> None:
    wrap = own.get(cls) or serving(propagate, but=but, left=left_to_pyg)
    for name in _names.PROPAGATES:
        found = vars(cls).get(name)
        if found is None or hasattr(found, "is_accelerated"):
            continue
        if _names.is_made_by_pyg(cls, found):
            setattr(cls, name, wrap(found))


def install(but: tuple[type, ...], own: _Wraps) -> None:
    """Wrap the propagate of all classes of layers, and of those that are made later.

    but: classes that are wrapped elsewhere. own: what wraps the propagate of a class that has its
        own code.
    """

    def wrapping(original: Callable[..., None]) -> Callable[..., None]:
        """What PyG calls when it makes a layer, where the class may get its propagate."""

        @functools.wraps(original)
        def made(self: MessagePassing, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            _wrap_class(type(self), but, own)

        return made

    classes = [MessagePassing]
    for cls in classes:
        classes += cls.__subclasses__()
        _wrap_class(cls, but, own)
    replace(MessagePassing, _names.MAKES_PROPAGATE, wrapping)
