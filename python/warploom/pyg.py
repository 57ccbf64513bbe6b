"""Run the message passing of PyTorch Geometric's layers on warploom.

    with warploom.pyg.accelerate():
        out = model(x, edge_index)

`GCNConv`, `SAGEConv`, `GINConv` and `GraphConv` with the aggregations sum, mean, max and min then
compute `propagate` as one sparse product, and `GATConv`,
`GATv2Conv` and `TransformerConv` their attention.
Everything else runs in PyG as before, and `report()` counts it with the reason.

The edges of an `edge_index` are sorted once. The sorted graph is found by the identity of the
tensor and by its version, so a modified tensor is sorted again. In the second step with the same
`edge_index` the graph is measured, and from then on its transpose is kept; the graph of a
mini-batch keeps nothing.
"""

from __future__ import annotations

import functools
import operator
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    MessagePassing,
    SAGEConv,
    TransformerConv,
)
from torch_geometric.nn.aggr import MaxAggregation, MeanAggregation, MinAggregation, SumAggregation
from torch_geometric.nn.conv import gcn_conv

from warploom import _pyg_norm
from warploom.torch import Graph
from warploom.torch._eager import _transformed, multiply
from warploom.torch._plan import convert_edges, current_stream

__all__ = ["accelerate", "convert", "disable", "enable", "report"]

_Module = TypeVar("_Module", bound=torch.nn.Module)

_LAYERS: tuple[type[MessagePassing], ...] = (GCNConv, SAGEConv, GINConv, GraphConv)
# warploom/_pyg_attention.py serves them and counts their calls.
_ATTENTION: tuple[type[MessagePassing], ...] = (GATConv, GATv2Conv, TransformerConv)
_REDUCTIONS = {"add": "sum", "sum": "sum", "mean": "mean", "max": "max", "min": "min"}
_AGGREGATIONS = {
    "sum": SumAggregation,
    "mean": MeanAggregation,
    "max": MaxAggregation,
    "min": MinAggregation,
}
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
_hooks_of = operator.itemgetter(*_HOOKS)
_METHODS = ("message", "aggregate", "update", "message_and_aggregate")
_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_SERVED = "warploom"
_tracing_state = torch._C._get_tracing_state
_is_deterministic = torch._C._get_deterministic_algorithms
_REPLACED = "a method of the layer was replaced"

_lock = threading.RLock()
_enabled = 0  # how many times `enable` was called more than `disable`
_converted = False
_installed: list[tuple[Any, str, Any]] = []  # owner, attribute, original value
_counts: Counter[tuple[str, str]] = Counter()
# Of the GCNConv whose forward runs in this thread. is_active: it is served; sums: it adds messages
# of a graph that it does not keep itself.
_layer = threading.local()


class _Refused(Exception):
    """The reason why PyG computes this call."""


_REFUSALS = (_Refused, ValueError, LookupError, NotImplementedError)


# ---- graphs that were seen ----------------------------------------------------------------------


class _Values:
    """Edge weights in CSR order, and the tensor in edge order that they were made from."""

    __slots__ = ("made_from", "ordered", "version")

    def __init__(self, values: Tensor, ordered: Tensor) -> None:
        self.made_from = weakref.ref(values)
        self.version = values._version
        self.ordered = ordered


class _Sorted:
    """The graph of one edge_index for one flow and size."""

    __slots__ = ("graph", "stream", "users", "values")

    def __init__(self, graph: Graph, stream: int) -> None:
        self.graph = graph
        self.stream = stream
        self.users: set[int] = set()  # the layers that used it
        self.values: _Values | None = None


class _Norm:
    """What PyG's gcn_norm made of an edge_index and of edge weights, if these are constant.

    edge_index: None where that is the given one, whose life must not depend on this object.
    """

    __slots__ = ("constant", "edge_index", "edge_weight", "versions", "weight", "weight_version")

    def __init__(
        self,
        given: Tensor | None,
        edge_index: Tensor | None,
        edge_weight: Tensor | None,
        constant: bool = True,
    ) -> None:
        self.constant = constant
        self.weight = None if given is None else weakref.ref(given)
        self.weight_version = None if given is None else given._version
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.versions = self._versions()

    def _versions(self) -> list[int]:
        made = (self.edge_index, self.edge_weight)
        return [_version(tensor) for tensor in made if tensor is not None]

    def is_intact(self) -> bool:
        return self.versions == self._versions()

    def is_of(self, given: Tensor | None) -> bool:
        if given is None or self.weight is None:
            return self.constant and given is None and self.weight is None
        return self.weight() is given and self.weight_version == given._version


class _Seen:
    """The graphs and norms of one edge_index; valid until the tensor is modified."""

    __slots__ = ("__weakref__", "norms", "ref", "sorted", "version")

    def __init__(self, edge_index: Tensor, version: int) -> None:
        self.ref = weakref.ref(edge_index, functools.partial(_forget, id(edge_index)))
        self.version = version
        self.sorted: dict[tuple[bool, int, int], _Sorted] = {}
        self.norms: dict[tuple[Any, ...], _Norm] = {}


_MOST_SEEN = 64
_seen: dict[int, _Seen] = {}  # by id of the tensor; the oldest come first


def _forget(key: int, ref: Any) -> None:
    found = _seen.get(key)
    if found is not None and found.ref is ref:
        del _seen[key]


def _version(tensor: Tensor) -> int:
    """A number that grows with every modification in place; inference tensors have none."""
    version: int = tensor._version
    return version + tensor._data._version if isinstance(tensor, EdgeIndex) else version


def _look_up(edge_index: Tensor) -> _Seen | None:
    """The entry of this tensor, a new one if it was modified; None where that cannot be known."""
    if edge_index.is_inference():
        return None
    version = _version(edge_index)
    found = _seen.get(id(edge_index))
    if found is not None and found.version == version and found.ref() is edge_index:
        return found
    if _is_capturing(edge_index):
        return None  # what is computed now lies in the memory of the captured graph
    with _lock:
        found = _seen[id(edge_index)] = _Seen(edge_index, version)
        while len(_seen) > _MOST_SEEN:
            _seen.pop(next(iter(_seen)), None)
    return found


def _is_capturing(tensor: Tensor) -> bool:
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()


# ---- from PyG's inputs to a graph ---------------------------------------------------------------


def _make_graph(edge_index: Tensor, to_source: bool, rows: int, cols: int) -> Graph:
    """The graph of a first use: nothing waits for the device."""
    if torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return _make_graph(edge_index, to_source, rows, cols)
    if edge_index.layout is torch.sparse_csr:
        return Graph(edge_index.crow_indices(), edge_index.col_indices(), cols=cols, once=True)
    if edge_index.layout is torch.sparse_coo:
        edges, to_source = edge_index._indices(), True
    elif edge_index.layout is torch.sparse_csc:
        sources = torch.arange(cols, device=edge_index.device)
        sources = sources.repeat_interleave(
            edge_index.ccol_indices().diff(), output_size=edge_index._nnz()
        )
        edges = torch.stack([sources, edge_index.row_indices()])
    else:
        edges = edge_index.as_tensor() if isinstance(edge_index, EdgeIndex) else edge_index
    rowptr, colind, perm = convert_edges(edges, rows, cols, to_source)
    if not edges.is_cuda:  # on a GPU the check would wait
        _check_range(rowptr, edges)
    return Graph._sorted_once(rowptr, colind, perm, rows, cols)


def _check_range(rowptr: Tensor, edges: Tensor) -> None:
    if int(rowptr[-1]) != edges.size(1):
        raise _Refused("indices out of range")


def _keep_graph(graph: Graph) -> Graph:
    """The same graph for many steps, on any stream."""
    if graph.rowptr.is_cuda:
        torch.cuda.current_stream(graph.device).synchronize()
    return Graph(graph.rowptr, graph.colind, cols=graph.cols, perm=graph.perm)


def _find_sorted(
    layer: MessagePassing, edge_index: Tensor, to_source: bool, rows: int, cols: int
) -> _Sorted:
    """The graph of an edge_index, kept from the second step on, when a layer uses it again."""
    seen = _look_up(edge_index)
    key = (to_source, rows, cols)
    found = None if seen is None else seen.sorted.get(key)
    if found is not None and not found.graph.once:
        return found
    capturing = _is_capturing(edge_index)
    stream = current_stream(edge_index.get_device())
    if found is None or (found.stream != stream and capturing):
        found = _Sorted(_make_graph(edge_index, to_source, rows, cols), stream)
        if seen is not None and not capturing:
            seen.sorted[key] = found
    elif not capturing and (id(layer) in found.users or found.stream != stream):
        if found.stream != stream:
            torch.cuda.synchronize(edge_index.device)
        found.graph = _keep_graph(found.graph)
    found.users.add(id(layer))
    return found


def _order_values(found: _Sorted, values: Tensor, edge_index: Tensor) -> Tensor:
    """Values in CSR order; those of constant weights are kept."""
    perm = found.graph.perm
    if perm is None:
        return values
    if values.requires_grad or values.is_inference():
        return values.index_select(0, perm)
    known = found.values
    if known is not None and known.made_from() is values and known.version == values._version:
        return known.ordered
    with torch.inference_mode(False), torch.no_grad():
        ordered = values.index_select(0, perm)
    if not _is_capturing(edge_index):
        found.values = _Values(values, ordered)
    return ordered


# ---- one call -----------------------------------------------------------------------------------


def _state(layer: MessagePassing) -> str | None:
    """Why the layer as it is cannot be served."""
    state = layer.__dict__
    if state["_explain"]:
        return "explain mode"
    if state["_decomposed_layers"] > 1:
        return "decomposed layers"
    if any(_hooks_of(state)):
        return "hooks"
    return None if state.keys().isdisjoint(_METHODS) else _REPLACED


def _check_layer(layer: MessagePassing) -> str:
    """The reduction of a layer that can be served."""
    reason = _state(layer)
    if reason is not None:
        raise _Refused(reason)
    reduce = _REDUCTIONS.get(layer.aggr) if isinstance(layer.aggr, str) else None
    # Not layer.aggr_module: torch finds a module's attribute only after all others.
    if reduce is None or type(layer._modules["aggr_module"]) is not _AGGREGATIONS[reduce]:
        raise _Refused(f"aggregation {layer.aggr}")
    return reduce


def _check_dense(layer: MessagePassing, x: Any) -> Tensor:
    if type(x) is not Tensor and type(x) is not torch.nn.Parameter:
        raise _Refused("features are not a plain tensor")
    if x.dim() != 2 or layer.node_dim not in (-2, 0):
        raise _Refused("features are not a matrix with a row for each node")
    if x.dtype not in _TYPES:
        raise _Refused(f"features of type {x.dtype}")
    if not (x.is_cuda or x.is_cpu) or x.layout is not torch.strided:
        raise _Refused("features in unsupported memory")
    if _transformed() or _tracing_state() is not None:
        raise _Refused("function transform or tracing")
    return x


def _check_sparse(edge_index: Tensor, x: Tensor) -> Tensor:
    """The values of a matrix that can be served."""
    if edge_index.layout not in (torch.sparse_csr, torch.sparse_csc, torch.sparse_coo):
        raise _Refused(f"layout {edge_index.layout}")
    if edge_index.requires_grad or edge_index.is_inference():
        raise _Refused("sparse matrix with a gradient or made in inference mode")
    if edge_index.layout is torch.sparse_coo and not edge_index.is_coalesced():
        raise _Refused("sparse matrix is not coalesced")
    if edge_index.dim() != 2 or edge_index.dtype is not x.dtype or edge_index.size(1) != x.size(0):
        raise _Refused("sparse matrix and features do not match")
    values = edge_index._values() if edge_index.layout is torch.sparse_coo else edge_index.values()
    if values.dim() != 1:
        raise _Refused("sparse matrix of blocks")
    return values


def _rows(layer: MessagePassing, edge_index: Tensor, x: Any, size: Any, i: int, j: int) -> int:
    """Rows of the result, with the checks and messages of PyG."""
    if size is None and type(edge_index) is Tensor and edge_index.size(0) == 2:
        if not isinstance(x, (tuple, list)):
            return int(x.size(0))
        if x[0] is x[1]:  # a graph of one kind of nodes, where PyG finds no fault either
            return int(x[0].size(0))
    sizes = layer._check_input(edge_index, size)
    if isinstance(x, (tuple, list)):
        for dim in (0, 1):
            if isinstance(x[dim], Tensor):
                layer._set_size(sizes, dim, x[dim])
    else:
        layer._set_size(sizes, j, x)
    return int(sizes[i] if sizes[i] is not None else sizes[j])


def _weights(
    edge_weight: Tensor | None, edge_index: Tensor, x: Tensor
) -> tuple[Tensor | None, Tensor]:
    """Edge weights (nnz,) and features of one type, as PyTorch's promotion makes it."""
    if edge_weight is None:
        return None, x
    if type(edge_weight) is not Tensor and type(edge_weight) is not torch.nn.Parameter:
        raise _Refused("edge weights are not a plain tensor")
    if edge_weight.numel() != edge_index.size(1) or edge_weight.device != x.device:
        raise _Refused("edge weights do not match the edges")
    values = edge_weight if edge_weight.dim() == 1 else edge_weight.reshape(-1)
    if values.dtype is x.dtype:
        return values, x
    common = torch.promote_types(values.dtype, x.dtype)
    if common not in _TYPES:
        raise _Refused(f"edge weights of type {values.dtype}")
    return values.to(common), x.to(common)


def _propagate(
    layer: MessagePassing,
    edge_index: Any,
    x: Any,
    edge_weight: Tensor | None,
    size: Any,
    root: Tensor | None = None,
) -> Tensor:
    reduce = _check_layer(layer)
    to_source = layer.flow != "source_to_target"
    i, j = (0, 1) if to_source else (1, 0)
    features = _check_dense(layer, x[0] if isinstance(x, (tuple, list)) else x)
    if not isinstance(edge_index, Tensor) or (
        type(edge_index) is not Tensor and type(edge_index) is not EdgeIndex
    ):
        raise _Refused(f"edges as {type(edge_index).__name__}")
    if edge_index.device != features.device:
        raise _Refused("edges and features on different devices")
    if edge_index.layout is not torch.strided:
        if to_source:
            raise _Refused("a sparse matrix with flow target_to_source")
        values: Tensor | None = _check_sparse(edge_index, features)
        rows, cols, edges = edge_index.size(0), edge_index.size(1), edge_index._nnz()
        if root is not None and rows != cols:
            raise _Refused("a matrix that is not square")
    else:
        if edge_index.dtype not in (torch.int64, torch.int32) or edge_index.dim() != 2:
            raise _Refused("edge_index is not an integer matrix of 2 rows")
        if to_source and isinstance(edge_index, EdgeIndex):
            raise _Refused("EdgeIndex with flow target_to_source")
        rows, cols = _rows(layer, edge_index, x, size, i, j), features.size(0)
        edges = edge_index.size(1)
        values, features = _weights(edge_weight, edge_index, features)
    if edges == 0 or rows == 0 or features.size(1) == 0:
        raise _Refused("empty graph or features")
    found = _find_sorted(layer, edge_index, to_source, rows, cols)
    ordered = None if values is None else _order_values(found, values, edge_index)
    message = "copy_b" if ordered is None else "mul"
    # In the types that are given also under autocast, as PyG gathers and scatters.
    return multiply(found.graph, features, ordered, reduce, message, _is_deterministic(), root=root)


def _accelerated(
    cls: type[MessagePassing], original: Callable[..., Tensor]
) -> Callable[..., Tensor]:
    """PyG's propagate of one class, which runs on warploom where it can."""

    @functools.wraps(original)
    def propagate(self: MessagePassing, edge_index: Any, size: Any = None, **kwargs: Any) -> Tensor:
        if torch.compiler.is_compiling() or type(self) is not cls or not _is_active(self):
            return original(self, edge_index, size=size, **kwargs)
        try:
            out = _propagate(self, edge_index, kwargs["x"], kwargs.get("edge_weight"), size)
        except _REFUSALS as reason:
            _counts[cls.__name__, str(reason)] += 1
            return original(self, edge_index, size=size, **kwargs)
        _counts[cls.__name__, _SERVED] += 1
        return out

    propagate.is_accelerated = True  # type: ignore[attr-defined]
    return propagate


def _is_active(layer: MessagePassing) -> bool:
    return _enabled > 0 or "_warploom" in layer.__dict__


# ---- GCN's normalisation ------------------------------------------------------------------------


def _remembered(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's gcn_norm without a wait, which repeats its answer for an edge_index that it has seen.

    Its result for new weights is computed anew, with the edge_index of the answer before: that
    depends only on the edges, and as the same tensor it needs no new sorting.
    """

    @functools.wraps(original)
    def gcn_norm(
        edge_index: Any,
        edge_weight: Tensor | None = None,
        num_nodes: int | None = None,
        improved: bool = False,
        add_self_loops: bool = True,
        flow: str = "source_to_target",
        dtype: torch.dtype | None = None,
    ) -> Any:
        arguments = (num_nodes, improved, add_self_loops, flow, dtype)
        if (
            not getattr(_layer, "is_active", False)
            or type(edge_index) is not Tensor
            or edge_index.requires_grad
        ):
            return original(edge_index, edge_weight, *arguments)
        compute: Callable[..., Any] = original
        if _layer.sums and _pyg_norm.suits(
            edge_index, edge_weight, num_nodes, improved, add_self_loops
        ):
            compute = _pyg_norm.normalise
        seen = _look_up(edge_index)
        if seen is None:
            return compute(edge_index, edge_weight, *arguments)
        key = (compute, *arguments)
        known = seen.norms.get(key)
        if known is not None and not known.is_intact():
            known = None
        if edge_weight is not None and (edge_weight.requires_grad or edge_weight.is_inference()):
            edges, weight = compute(edge_index, edge_weight, *arguments)
            if edges is edge_index or edges.layout is not torch.strided or edges.is_inference():
                return edges, weight
            if known is None and not _is_capturing(edge_index):
                known = seen.norms[key] = _Norm(None, edges, None, constant=False)
            return (edges if known is None else known.edge_index), weight
        if known is not None and known.is_of(edge_weight):
            edges = edge_index if known.edge_index is None else known.edge_index
            return edges, known.edge_weight
        with torch.inference_mode(False), torch.no_grad():
            edges, weight = compute(edge_index, edge_weight, *arguments)
        if known is not None and known.edge_index is not None and edges.layout is torch.strided:
            edges = known.edge_index
        if not _is_capturing(edge_index):
            made = None if edges is edge_index else edges
            seen.norms[key] = _Norm(edge_weight, made, weight)
        return edges, weight

    return gcn_norm


def _sums(layer: MessagePassing) -> bool:
    """Whether an edge of weight 0 adds nothing; derived layers may have other messages."""
    sums = type(layer._modules["aggr_module"]) is SumAggregation
    return sums and type(layer) is GCNConv and _state(layer) is None


def _remembering(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """GCNConv's forward, which tells gcn_norm whether its layer runs on warploom."""

    @functools.wraps(original)
    def forward(self: GCNConv, *args: Any, **kwargs: Any) -> Tensor:
        if torch.compiler.is_compiling() or not _is_active(self):
            return original(self, *args, **kwargs)
        _layer.is_active = True
        _layer.sums = not self.cached and _sums(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _layer.is_active = False

    return forward


# ---- GINConv's own features ---------------------------------------------------------------------


def _constant_eps(layer: GINConv, x: Any) -> Tensor | None:
    """The eps whose (1 + eps) * x a product can add with PyG's types and gradients."""
    eps = layer._buffers.get("eps")
    if (
        type(eps) is Tensor
        and isinstance(x, Tensor)
        and eps.dtype is x.dtype
        and eps.device == x.device
        and eps.shape == (1,)
        and not eps.requires_grad
        and hasattr(layer.propagate, "is_accelerated")
    ):
        return eps
    return None


def _adding_root(original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """GINConv's forward, whose product also adds (1 + eps) * x where it can."""

    @functools.wraps(original)
    def forward(self: GINConv, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        if torch.compiler.is_compiling() or type(self) is not GINConv or not _is_active(self):
            return original(self, x, edge_index, size)
        eps = _constant_eps(self, x)
        if eps is None:
            return original(self, x, edge_index, size)
        try:  # eps stays on the device, and PyG writes it through .data, which no version counts
            out = _propagate(self, edge_index, (x, x), None, size, 1 + eps)
        except _REFUSALS:  # counted by `propagate`
            return original(self, x, edge_index, size)
        _counts["GINConv", _SERVED] += 1
        return self.nn(out)  # type: ignore[no-any-return]

    return forward


# ---- the switch ---------------------------------------------------------------------------------


def _counting(original: Callable[..., Any]) -> Callable[..., Any]:
    """PyG's check of every propagate, which counts the calls that pass by `_accelerated`."""

    @functools.wraps(original)
    def _check_input(self: MessagePassing, edge_index: Any, size: Any) -> Any:
        if not torch.compiler.is_compiling() and _enabled and type(self) not in _ATTENTION:
            if type(self) not in _LAYERS:
                _counts[type(self).__name__, "layer without acceleration"] += 1
            elif not hasattr(
                self.propagate, "is_accelerated"
            ):  # kept by a layer that was in explain mode
                _counts[type(self).__name__, _state(self) or _REPLACED] += 1
        return original(self, edge_index, size)

    return _check_input


def _replace(
    owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    original = getattr(owner, name)
    _installed.append((owner, name, original if name in vars(owner) else None))
    setattr(owner, name, wrap(original))


def _install() -> None:
    if _installed:
        return
    with torch.device("meta"):  # PyG writes the `propagate` of a class when its first layer is made
        for cls, argument in ((GCNConv, 1), (SAGEConv, 1), (GraphConv, 1)):
            cls(argument, argument)
        GINConv(torch.nn.Identity())
    for cls in _LAYERS:
        for name in ("propagate", "_jinja_propagate", "_orig_propagate"):
            _replace(cls, name, functools.partial(_accelerated, cls))
    _replace(MessagePassing, "_check_input", _counting)
    _replace(gcn_conv, "gcn_norm", _remembered)
    _replace(GCNConv, "forward", _remembering)
    _replace(GINConv, "forward", _adding_root)
    from warploom import _pyg_attention  # it imports this module

    _pyg_attention.install()


def _uninstall() -> None:
    while _installed:
        owner, name, original = _installed.pop()
        if original is None:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
    _seen.clear()


def enable() -> None:
    """Run PyG's layers on warploom, in all threads, until `disable` was called as often."""
    global _enabled
    with _lock:
        _install()
        _enabled += 1


def disable() -> None:
    """End one `enable`. After the last one PyG is as before, unless a module was converted."""
    global _enabled
    with _lock:
        if _enabled == 0:
            raise RuntimeError("warploom: disable: acceleration is not enabled; call enable first")
        _enabled -= 1
        if _enabled == 0 and not _converted:
            _uninstall()


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
    global _converted
    with _lock:
        _install()
        _converted = True
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
        for (name, reason), count in sorted(_counts.items()):
            calls.setdefault(name, {})[reason] = count
        if reset:
            _counts.clear()
    return calls
