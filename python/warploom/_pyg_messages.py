"""The `propagate` of any layer of PyG whose message is in the language of `warploom.torch.message`.

Its `message` runs with stand-ins for `x_i` and `x_j` (`_pyg_stand_in`), which gives an expression;
that and the aggregation become a walk over the graph. Repeated calls replay what was recorded in
the second one (`_pyg_recipes`). Where a message or an aggregation cannot be said so, PyG computes
the call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from warploom import _pyg_compiled, _pyg_names
from warploom import _pyg_lines as _pyg_lines  # its rules
from warploom._pyg_aggregations import aggregation_of, reduces_columns
from warploom._pyg_calls import (
    TYPES,
    check_call,
    check_edges,
    refusal,
    replace,
    serving,
)
from warploom._pyg_graphs import Refused, find_sorted
from warploom._pyg_recipes import Given, Recipes, Recorder, recipes_of
from warploom._pyg_stand_in import Term, apply
from warploom._pyg_state import Unrepeatable
from warploom._pyg_terms import Edges, Site, Sum, Value, columns_of, operands_of
from warploom.torch._capture import is_replayed
from warploom.torch._internals import is_plain

_skipped: tuple[type, ...] = ()  # layers that run on warploom in another way
_ENDS = ("_i", "_j")
_WEIGHTS = "_alpha"  # where layers of PyG keep the weights of edges that a caller may ask for
# Edges times columns from which on a walk saves more than the host takes to trace a message that is
# not replayed. Tried on two cores; for GPUs calculated, as PyG moves each number some six times, at
# 3 TB/s.
LEAST_WORK = {"cpu": 2**19, "cuda": 2**24}
# Reasons by layer and by the kinds of arguments, so that a message is not tried at each step.
_known_reasons: WeakKeyDictionary[MessagePassing, dict[Any, str]] = WeakKeyDictionary()


# ---- arguments ----------------------------------------------------------------------------------


def _check_nodes(layer: MessagePassing, tensor: Tensor, edge_index: Tensor) -> None:
    if not is_plain(tensor):
        raise Refused("features are not a plain tensor")
    if tensor.layout is not torch.strided or tensor.device != edge_index.device:
        raise Refused("features in unsupported memory")
    if tensor.is_floating_point() and tensor.dtype not in TYPES:
        raise Refused(f"features of type {tensor.dtype}")
    if layer.node_dim % tensor.dim() != 0:
        raise Refused("features without a line for each node")


def _of_end(name: str, data: Any) -> Any:
    """What an argument gets of features of sources and targets: sources for x_j, in both flows."""
    if isinstance(data, (tuple, list)):
        return data[0] if name.endswith("_j") else data[1]
    return data


class _Call:
    """One propagate: its edges, and the arguments of the layer's methods."""

    def __init__(
        self,
        layer: MessagePassing,
        edge_index: Tensor,
        size: Any,
        kwargs: dict[str, Any],
        recorder: Recorder | None,
    ) -> None:
        self.parameters = layer._warploom_names("message").split()
        self.kwargs = kwargs
        to_source = layer.flow != "source_to_target"
        i, j = (0, 1) if to_source else (1, 0)
        nodes = {
            name: kwargs[name[:-2]]
            for name in self.parameters
            if name.endswith(_ENDS) and name[:-2] in kwargs
        }
        of_ends = [(j if name.endswith("_j") else i, data) for name, data in nodes.items()]
        sizes = _pyg_names.sizes_of(layer, edge_index, size, of_ends)
        rows = sizes[i] if sizes[i] is not None else sizes[j]
        cols = sizes[j] if sizes[j] is not None else sizes[i]
        if rows is None or cols is None:
            raise Refused("the number of nodes is not given")
        if rows == 0 or cols == 0 or edge_index.size(1) == 0:
            raise Refused("empty graph or features")
        self.nodes = {name: _of_end(name, data) for name, data in nodes.items()}
        tensors = [data for data in self.nodes.values() if isinstance(data, Tensor)]
        for tensor in tensors:
            _check_nodes(layer, tensor, edge_index)
        plain = _pyg_names.plain_edges(edge_index)
        self.ends = {
            name: _pyg_names.for_pyg(plain[end]) for name, end in (("row", i), ("column", j))
        }
        self.special = {
            "edge_index": edge_index,
            "edge_index_i": self.ends["row"],
            "edge_index_j": self.ends["column"],
            "index": self.ends["row"],
            "adj_t": None,
            "ptr": None,
            "size": sizes,
            "size_i": rows,
            "size_j": cols,
            "dim_size": rows,
        }
        widest = max([0, *(columns_of(tensor.shape[1:]) for tensor in tensors)])
        if widest == 0:
            raise Refused("empty graph or features")
        found: Any
        if torch.compiler.is_compiling():
            found = _pyg_compiled.found_edges(layer, "message", edge_index, rows, cols, widest)
        else:
            least = LEAST_WORK.get(edge_index.device.type, 0)
            if recorder is None and edge_index.size(1) * widest < least and not is_replayed():
                raise Refused("too little work to trace a message for")
            found = find_sorted(layer, edge_index, to_source, rows, cols)
        self.sizes = rows, cols
        self.edges = Edges(Site(found, plain, to_source), self.ends, widest)
        if recorder is not None:
            self.edges.recorder = recorder
            for name, end in self.ends.items():
                recorder.add_end(end, name)

    def arguments(self, names: Sequence[str]) -> dict[str, Any]:
        """What a method of the layer gets for its parameters, but for those with a default."""
        known = (self.nodes, self.special, self.kwargs)
        return {name: self._argument(name) for name in names if any(name in of for of in known)}

    def _argument(self, name: str) -> Any:
        if name in self.nodes:
            data = self.nodes[name]
            if not isinstance(data, Tensor):
                return data
            place = "row" if name.endswith("_i") else "column"
            if data.is_floating_point():
                return Term(self.edges, Sum({place: data}))
            if columns_of(data.shape[1:]) > 1:
                raise Refused(f"features of type {data.dtype}")
            return data.index_select(0, self.ends[place])
        if name in self.special:
            return self.special[name]
        return self.kwargs[name]

    def check_columns(self, layer: MessagePassing, value: Value) -> None:
        """Refuse where a column of the result may depend on other columns of the features."""
        features = {id(tensor) for tensor in self.nodes.values()}
        kwargs = [tensor for tensor in self.kwargs.values() if isinstance(tensor, Tensor)]
        of_edges = {id(tensor) for given in kwargs for tensor in (given, given._base)}
        is_simple = (
            layer._warploom_is_of_pyg("update")
            and reduces_columns(layer)
            and len(value.line) == 1
            and not self.edges.shape_is_read
        )
        for place, tensor in operands_of(self.edges, value):
            base = tensor if tensor._base is None else tensor._base
            is_narrow = columns_of(tensor.shape[1:]) == 1 and id(base) in of_edges
            is_simple = is_simple and (is_narrow if place == "edge" else id(tensor) in features)
        if not is_simple:
            raise Refused("the message combines columns of features")


# ---- one propagate ------------------------------------------------------------------------------


def _message_of(layer: MessagePassing, call: _Call) -> Value:
    """What the layer's message computes."""
    start = _pyg_compiled.start_of_message()
    made = layer.message(**call.arguments(call.parameters))
    call.edges.check_versions()
    if torch.compiler.is_compiling():  # which reads no keys of a module
        _pyg_compiled.check_writes(start)
        weights = getattr(layer, _WEIGHTS, None)
        if isinstance(weights, Term):
            setattr(layer, _WEIGHTS, weights.tensor())
    else:
        for name, kept in layer.__dict__.items():
            if isinstance(kept, Term):  # for a user who asks for the weights of edges
                layer.__dict__[name] = kept.tensor()
    if isinstance(made, (Term, Tensor)) and layer.node_dim not in (0, -made.dim()):
        raise Refused("the message has edges in another dimension than features have nodes")
    if isinstance(made, Term) and made._made is None:
        return made.value
    made = made.tensor() if isinstance(made, Term) else made
    if type(made) is Tensor and made.dim() > 0 and made.size(0) == call.edges.count:
        return Sum({"edge": made})
    raise Refused("the message is not a tensor of edges")


def _kinds(layer: MessagePassing, edge_index: Tensor, kwargs: dict[str, Any], beside: bool) -> Any:
    """What decides whether a message can be said."""
    found: list[Any] = [layer.training, torch.is_grad_enabled(), edge_index.device, beside]
    for name, value in kwargs.items():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, Tensor):
                found.append((name, part.shape[1:], part.dtype, part.device, part.requires_grad))
            else:
                found.append((name, part is None))
    return tuple(found)


@contextmanager
def _noting(reasons: dict[Any, str], kinds: Any) -> Iterator[None]:
    """Keep the reason why a message or an aggregation is refused."""
    try:
        yield
    except Refused as reason:
        reasons[kinds] = str(reason)
        raise
    except (MemoryError, torch.cuda.OutOfMemoryError):
        raise
    # A message may do anything; what it cannot do with a Term is shown by many errors.
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        reasons[kinds] = f"the message cannot be traced ({type(error).__name__}: {first_line})"
        raise Refused(reasons[kinds]) from error


def _updated(layer: MessagePassing, call: _Call, out: Tensor) -> Tensor:
    if layer._warploom_is_of_pyg("update"):
        return out
    names = layer._warploom_names("update").split()
    if any(name.endswith(_ENDS) and name not in call.special for name in names):
        raise Refused("an update that reads features of edges")
    updated: Tensor = layer.update(out, **call.arguments(names))
    return updated


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
            out = _compute(layer, edge_index, size, {**kwargs, **beside}, True)
            return out.view(-1, signals, n).transpose(0, 1)
    names = layer._warploom_names("message").split()
    ends = {name[:-2] for name in names if name.endswith(_ENDS)}
    if not ends.issuperset(deep) or len({shape[0] for shape in shapes}) > 1:
        raise Refused("features without a line for each node")
    parts = zip(*(kwargs[name].unbind() for name in deep))
    return torch.stack(
        [_compute(layer, edge_index, size, {**kwargs, **dict(zip(deep, one))}) for one in parts]
    )


def _replay(
    layer: MessagePassing, edge_index: Tensor, given: Given, recipes: Recipes
) -> Tensor | None:
    """What a recording of the call computes, if there is one."""
    found = recipes.find(layer, given)
    if found is None:
        return None
    recipe, tensors = found
    to_source = layer.flow != "source_to_target"
    found_edges = recipe.last.find(layer, edge_index, to_source, *recipe.sizes)
    return recipe.run(layer, Site(found_edges, edge_index, to_source), given, tensors)


def _compute(
    layer: MessagePassing,
    edge_index: Any,
    size: Any,
    kwargs: dict[str, Any],
    beside: bool = False,
) -> Tensor:
    """beside: of features that hold several signals side by side."""
    check_call()
    if layer.node_dim == -2:
        deep = [name for name, v in kwargs.items() if isinstance(v, Tensor) and v.dim() == 3]
        if deep:
            return _of_signals(layer, edge_index, size, kwargs, deep)
    given = recipes = None
    if type(edge_index) is Tensor:
        given = Given(layer.training, edge_index, size, kwargs, beside)
        if given.kinds is not None:
            recipes = recipes_of(layer)
            out = _replay(layer, edge_index, given, recipes)
            if out is not None:
                return out
    reason = refusal(layer)
    if reason is not None:
        raise Refused(reason)
    check_edges(edge_index, "a message over ")
    reasons = _known_reasons.setdefault(layer, {})
    kinds = _kinds(layer, edge_index, kwargs, beside)
    if kinds in reasons:
        raise Refused(reasons[kinds])
    with _noting(reasons, kinds):
        aggregate = aggregation_of(layer)

    def trace(recorder: Recorder | None) -> tuple[_Call, Tensor]:
        call = _Call(layer, edge_index, size, kwargs, recorder)
        with nullcontext() if recorder is None else recorder.running():
            with _noting(reasons, kinds):
                value = _message_of(layer, call)
                if beside:
                    call.check_columns(layer, value)
                out = aggregate(call.edges, value, kwargs)
            return call, _updated(layer, call, out)

    if recipes is None or given is None or not recipes.wants(given):
        return trace(None)[1]
    try:
        recorder = Recorder(layer, given, apply, Term)
    except Unrepeatable:
        recipes.keep(given, None)
        return trace(None)[1]
    call, out = trace(recorder)
    recipe = None
    with suppress(Unrepeatable):
        recipe = recorder.finish(layer, out, call.sizes)
    recipes.keep(given, recipe)
    return out


def _compute_traced(
    layer: MessagePassing, edge_index: Any, size: Any, kwargs: dict[str, Any]
) -> Tensor:
    """The call in code of torch.compile or torch.export."""
    reason = refusal(layer)
    if reason is not None:
        raise Refused(reason)
    check_edges(edge_index, "a message over ")
    if layer.node_dim == -2 and any(
        isinstance(v, Tensor) and v.dim() == 3 for v in kwargs.values()
    ):
        raise Refused("several signals in compiled code")
    aggregate = aggregation_of(layer)
    call = _Call(layer, edge_index, size, kwargs, None)
    value = _message_of(layer, call)
    return _updated(layer, call, aggregate(call.edges, value, kwargs))


def propagate(layer: MessagePassing, /, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
    """The layer's propagate on warploom; raises where PyG must compute it."""
    compute = _compute_traced if torch.compiler.is_compiling() else _compute
    return compute(layer, edge_index, size, kwargs)


# ---- classes ------------------------------------------------------------------------------------


def _wrap_class(cls: type) -> None:
    for name in _pyg_names.PROPAGATES:
        found = vars(cls).get(name)
        if found is None or hasattr(found, "is_accelerated"):
            continue
        if _pyg_names.is_made_by_pyg(cls, found):
            setattr(cls, name, serving(propagate, but=_skipped)(found))


def _wrapping(original: Callable[..., None]) -> Callable[..., None]:
    """What PyG calls when it makes a layer, where the class may get its propagate."""

    @functools.wraps(original)
    def made(self: MessagePassing, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _wrap_class(type(self))

    return made


def install(skipped: tuple[type, ...]) -> None:
    """Wrap the propagate of all classes of layers but some, and of those that are made later."""
    global _skipped
    _skipped = skipped
    classes = [MessagePassing]
    for cls in classes:
        classes += cls.__subclasses__()
        _wrap_class(cls)
    replace(MessagePassing, _pyg_names.MAKES_PROPAGATE, _wrapping)
