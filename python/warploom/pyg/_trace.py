"""One message, traced.

The layer's `message` runs with stand-ins for `x_i` and `x_j`, which gives a value of each edge.
That and the aggregation become a walk over the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from warploom.pyg import _arithmetic as _arithmetic  # its rules
from warploom.pyg import _compiled, _names
from warploom.pyg import _lines as _lines  # its rules
from warploom.pyg._aggregations import reduces_columns
from warploom.pyg._checks import TYPES, Refused
from warploom.pyg._sorted import find_sorted
from warploom.pyg._stand_in import Term, term
from warploom.pyg._values import Edges, Sum, Value, columns_of, operands_of
from warploom.torch._graph import Graph
from warploom.torch._internals import is_plain

ENDS = ("_i", "_j")
_OTHER_DIMENSION = "the message has edges in another dimension than features have nodes"
_OF_EDGES = {"index": "row", "edge_index_i": "row", "edge_index_j": "column"}
Aggregate = Callable[[Edges, Value, dict[str, Any]], Tensor]
_WEIGHTS = "_alpha"  # where layers of PyG keep the weights of edges that a caller may ask for


class Trace:
    """One propagate: its edges, and the arguments of the layer's methods."""

    def __init__(
        self, layer: MessagePassing, edge_index: Tensor, size: Any, kwargs: dict[str, Any]
    ) -> None:
        self.layer, self.kwargs = layer, kwargs
        self.parameters = layer._warploom_names("message").split()
        to_source = layer.flow != "source_to_target"
        i, j = (0, 1) if to_source else (1, 0)
        nodes = {
            name: kwargs[name[:-2]]
            for name in self.parameters
            if name.endswith(ENDS) and name[:-2] in kwargs
        }
        of_ends = [(j if name.endswith("_j") else i, data) for name, data in nodes.items()]
        sizes = _names.sizes_of(layer, edge_index, size, of_ends)
        rows = sizes[i] if sizes[i] is not None else sizes[j]
        cols = sizes[j] if sizes[j] is not None else sizes[i]
        if rows is None or cols is None:
            raise Refused("the number of nodes is not given")
        if rows == 0 or cols == 0 or edge_index.size(1) == 0:
            raise Refused("empty graph or features")
        self.nodes = {name: _of_end(name, data) for name, data in nodes.items()}
        tensors = [data for data in self.nodes.values() if isinstance(data, Tensor)]
        for tensor in tensors:
            self._check_nodes(tensor, edge_index)
        widest = max([0, *(columns_of(tensor.shape[1:]) for tensor in tensors)])
        if widest == 0:
            raise Refused("empty graph or features")
        graph: Graph
        if torch.compiler.is_compiling():
            graph = _compiled.found_edges(layer, "message", edge_index, rows, cols, widest)
        else:
            graph = find_sorted(layer, edge_index, to_source, rows, cols).graph
        self.edges = Edges(graph, _names.plain_edges(edge_index), to_source, widest)
        self.special = {
            "edge_index": edge_index,
            "adj_t": None,
            "ptr": None,
            "size": sizes,
            "size_i": rows,
            "size_j": cols,
            "dim_size": rows,
        }

    def _check_nodes(self, tensor: Tensor, edge_index: Tensor) -> None:
        if not is_plain(tensor):
            raise Refused("features are not a plain tensor")
        if tensor.layout is not torch.strided or tensor.device != edge_index.device:
            raise Refused("features in unsupported memory")
        if tensor.is_floating_point() and tensor.dtype not in TYPES:
            raise Refused(f"features of type {tensor.dtype}")
        if self.layer.node_dim % tensor.dim() != 0:
            raise Refused("features without a line for each node")

    def arguments(self, names: Sequence[str]) -> dict[str, Any]:
        """What a method of the layer gets for its parameters, but for those with a default."""
        found = {}
        for name in names:
            if name in self.nodes:
                found[name] = self._of_nodes(name, self.nodes[name])
            elif name in _OF_EDGES:
                found[name] = self.edges.ends(_OF_EDGES[name])
            elif name in self.special:
                found[name] = self.special[name]
            elif name in self.kwargs:
                found[name] = self.kwargs[name]
        return found

    def _of_nodes(self, name: str, data: Any) -> Any:
        if not isinstance(data, Tensor):
            return data
        place = "row" if name.endswith("_i") else "column"
        if data.is_floating_point():
            return term(self.edges, Sum({place: data}))
        if columns_of(data.shape[1:]) > 1:
            raise Refused(f"features of type {data.dtype}")
        return data.index_select(0, self.edges.ends(place))

    def aggregated(self, aggregate: Aggregate, beside: bool = False) -> Tensor:
        """The aggregation of the message; beside: of features that hold several signals."""
        value = self._value()
        if beside:
            self._check_columns(value)
        return aggregate(self.edges, value, self.kwargs)

    def _value(self) -> Value:
        """What the layer's message computes."""
        layer = self.layer
        start = _compiled.start_of_message()
        made = layer.message(**self.arguments(self.parameters))
        self.edges.check_versions()
        if torch.compiler.is_compiling():  # which reads no keys of a module
            _compiled.check_writes(start)
            weights = getattr(layer, _WEIGHTS, None)
            if isinstance(weights, Term):
                setattr(layer, _WEIGHTS, weights.tensor())
        else:
            for name, kept in layer.__dict__.items():
                if isinstance(kept, Term):  # for a user who asks for the weights of edges
                    layer.__dict__[name] = kept.tensor()
        if isinstance(made, Term):
            if layer.node_dim not in (0, -made.dims):
                raise Refused(_OTHER_DIMENSION)
            if made.made is None:
                return made.value
            made = made.made
        if type(made) is Tensor and made.dim() > 0 and made.size(0) == self.edges.count:
            if layer.node_dim not in (0, -made.dim()):
                raise Refused(_OTHER_DIMENSION)
            return Sum({"edge": made})
        raise Refused("the message is not a tensor of edges")

    def _check_columns(self, value: Value) -> None:
        """Refuse where a column of the result may depend on other columns of the features."""
        features = {id(tensor) for tensor in self.nodes.values()}
        kwargs = [tensor for tensor in self.kwargs.values() if isinstance(tensor, Tensor)]
        of_edges = {id(tensor) for given in kwargs for tensor in (given, given._base)}
        is_simple = (
            self.layer._warploom_is_of_pyg("update")
            and reduces_columns(self.layer)
            and len(value.line) == 1
            and not self.edges.shape_is_read
        )
        for place, tensor in operands_of(self.edges, value):
            base = tensor if tensor._base is None else tensor._base
            is_narrow = columns_of(tensor.shape[1:]) == 1 and id(base) in of_edges
            is_simple = is_simple and (is_narrow if place == "edge" else id(tensor) in features)
        if not is_simple:
            raise Refused("the message combines columns of features")

    def updated(self, out: Tensor) -> Tensor:
        """The layer's update of what was aggregated."""
        if self.layer._warploom_is_of_pyg("update"):
            return out
        names = self.layer._warploom_names("update").split()
        known = {*self.special, *_OF_EDGES}
        if any(name.endswith(ENDS) and name not in known for name in names):
            raise Refused("an update that reads features of edges")
        updated: Tensor = self.layer.update(out, **self.arguments(names))
        return updated


def _of_end(name: str, data: Any) -> Any:
    """What an argument gets of features of sources and targets: sources for x_j, in both flows."""
    if isinstance(data, (tuple, list)):
        return data[0] if name.endswith("_j") else data[1]
    return data


# ---- features of several signals -----------------------------------------------------------------


def deep_features(layer: MessagePassing, kwargs: dict[str, Any]) -> list[str]:
    """The names of features that have a dimension of signals before that of nodes."""
    if layer.node_dim != -2:
        return []
    return [name for name, v in kwargs.items() if isinstance(v, Tensor) and v.dim() == 3]


def of_signals(
    layer: MessagePassing, kwargs: dict[str, Any], deep: list[str], run: Callable[..., Tensor]
) -> Tensor:
    """The call for features (signals, nodes, n): all signals side by side in one walk where that
    gives the same, or else one after the other. run: gets arguments, and whether they are beside.
    """
    shapes = {kwargs[name].shape for name in deep}
    if len(shapes) == 1:
        ((signals, _, n),) = shapes
        beside = {name: kwargs[name].transpose(0, 1).flatten(1) for name in deep}
        with suppress(Refused):
            return run({**kwargs, **beside}, True).view(-1, signals, n).transpose(0, 1)
    names = layer._warploom_names("message").split()
    ends = {name[:-2] for name in names if name.endswith(ENDS)}
    if not ends.issuperset(deep) or len({shape[0] for shape in shapes}) > 1:
        raise Refused("features without a line for each node")
    parts = zip(*(kwargs[name].unbind() for name in deep))
    return torch.stack([run({**kwargs, **dict(zip(deep, one))}) for one in parts])
