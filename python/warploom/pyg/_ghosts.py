"""Norms, pooling and attention of PyG over padded batches: they leave ghosts out and do not wait.

Ghosts are the nodes, edges and graphs that `_padded` adds. A layer that passes messages needs to
know nothing of them, since they are not connected to what is real. What computes over all nodes
does. It knows the batch of the step that runs, and what is real by the number of lines.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch_geometric.nn.conv.gat_conv as gat_module
import torch_geometric.nn.conv.gatv2_conv as gatv2_module
import torch_geometric.nn.conv.gps_conv as gps_module
import torch_geometric.nn.pool.glob as pool_module
from torch import Tensor
from torch.nn.modules.batchnorm import SyncBatchNorm, _BatchNorm
from torch.overrides import TorchFunctionMode
from torch_geometric.nn import (
    GPSConv,
    GraphNorm,
    GraphSizeNorm,
    HeteroBatchNorm,
    InstanceNorm,
    LayerNorm,
    MeanSubtractionNorm,
    PairNorm,
)
from torch_geometric.nn.aggr import Aggregation

from warploom.pyg import _names
from warploom.pyg._switch import passing, replace
from warploom.torch import _capture
from warploom.torch._memory import memory_of
from warploom.torch._whole import is_data

# ---- the batch of a step -------------------------------------------------------------------------

# Of a padded batch, in its __dict__.
PADDING = "_warploom_padding"


class Padding:
    """How a batch was padded. counts: lines of its nodes, edges and graphs. largest: nodes that a
    graph has at most, ghosts included."""

    __slots__ = ("__weakref__", "counts", "graphs", "largest")

    def __init__(self, counts: tuple[int, ...], graphs: int, largest: int) -> None:
        self.counts, self.graphs, self.largest = counts, graphs, largest
        _unused.add(self)


class Ghosts:
    """What a step knows of its padded batches.

    real: which lines are real, by their number; None where two kinds have as many.
    nodes: how many there are of each type, ghosts included.
    batches: the tensors that give the graph of each node, with the number of graphs and the nodes
        that a graph has at most.
    """

    def __init__(self) -> None:
        self.real: dict[int, Tensor | None] = {}
        self.nodes: list[int] = []
        self.batches: list[tuple[Tensor, int, int]] = []

    def add(self, data: Any, padding: Padding) -> None:
        """Note a padded batch."""
        for store in data.stores:
            for name in MASKS:
                mask = store.get(name)
                if isinstance(mask, Tensor):
                    count = mask.size(0)
                    self.real[count] = None if count in self.real else mask
                    if name == MASKS[0]:
                        self.nodes.append(count)
            if isinstance(batch := store.get("batch"), Tensor):
                self.batches.append((batch, padding.graphs, padding.largest))

    def graphs_of(self, batch: Any) -> tuple[int, int] | None:
        """How many graphs there are, and nodes in one, if this is a batch vector of the step."""
        return next((sizes for known, *sizes in self.batches if known is batch), None)  # type: ignore[return-value]


MASKS = ("node_mask", "edge_mask", "graph_mask")
# Of batches that live and that no step got: a norm outside of steps may be over one of them.
_unused: weakref.WeakSet[Padding] = weakref.WeakSet()
_now = threading.local()


def now() -> Ghosts | None:
    """What the step that runs in this thread knows of ghosts."""
    return getattr(_now, "ghosts", None)


def _surround(arguments: Any) -> AbstractContextManager[Any]:
    """The context of a step with these arguments; a batch without ghosts has one, too."""
    ghosts = None
    for data in _data_in(arguments):
        ghosts = ghosts or Ghosts()
        if (padding := data.__dict__.get(PADDING)) is not None:
            ghosts.add(data, padding)
            _unused.discard(padding)
    return nullcontext() if ghosts is None else _in_step(ghosts)


def _data_in(value: Any) -> Iterator[Any]:
    if is_data(value):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _data_in(item)
    elif isinstance(value, dict):
        yield from _data_in(list(value.values()))


@contextmanager
def _in_step(ghosts: Ghosts) -> Iterator[None]:
    before = now()
    _now.ghosts = ghosts
    try:
        yield
    finally:
        _now.ghosts = before


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _knows_ghosts() -> bool:
    return now() is not None


def _real_lines(what: Any, x: Tensor) -> Tensor | None:
    """Which lines of x are real; None where all are. Raises where that is not known."""
    name = type(what).__name__
    if torch.compiler.is_compiling():
        if _knows_ghosts():
            raise ValueError(
                f"warploom: {name}: compiled code does not leave out the ghosts of a padded batch; "
                "do not compile the model, or use a norm of each graph"
            )
        return None
    count, ghosts = x.size(0), now()
    if ghosts is None:
        if any(count in padding.counts for padding in _unused):
            raise ValueError(
                f"warploom: {name}: its {count} lines may be those of a padded batch, and it does "
                "not know which are ghosts; pass the batch as an argument to a step of "
                "warploom.torch.capture"
            )
        return None
    if count not in ghosts.real:
        return None
    real = ghosts.real[count]
    if real is None:
        raise ValueError(
            f"warploom: {name}: two kinds of lines of the padded batches are {count}, so that it "
            "does not know which are ghosts; give `padded` other sizes"
        )
    return real


# ---- norms ---------------------------------------------------------------------------------------


# By masked_fill, which takes a number without copying it to the GPU.
def _masked_mean(x: Tensor, ghosts: Tensor, count: Tensor) -> Tensor:
    return x.masked_fill(ghosts, 0).sum(0) / count


def _batch_norm(original: Callable[..., Any], self: Any, x: Tensor) -> Any:
    """BatchNorm with the statistics of real lines."""
    uses_lines = self.training or self.running_mean is None
    real = _real_lines(self, x) if uses_lines else None
    if real is None:
        return original(self, x)
    if x.dim() != 2 or isinstance(self, SyncBatchNorm):
        raise ValueError(
            f"warploom: {type(self).__name__}: it does not leave out the ghosts of a padded batch; "
            "use BatchNorm1d of features with a line for each node"
        )
    ghosts, wide = ~real.unsqueeze(1), x.float() if x.dtype.itemsize < 4 else x
    count = real.sum().to(wide.dtype)
    mean = _masked_mean(wide, ghosts, count)
    centred = wide - mean
    variance = _masked_mean(centred.square(), ghosts, count)
    if self.training and self.track_running_stats:
        _keep_statistics(self, mean.detach(), variance.detach() * (count / (count - 1).clamp(1)))
    out = centred * (variance + self.eps).rsqrt()
    if self.weight is not None:
        out = out * self.weight + self.bias
    return out.to(x.dtype)


@torch.no_grad()
def _keep_statistics(norm: Any, mean: Tensor, variance: Tensor) -> None:
    norm.num_batches_tracked.add_(1)
    for kept, new in ((norm.running_mean, mean), (norm.running_var, variance)):
        share: Any = norm.momentum
        if share is None:
            share = 1 / norm.num_batches_tracked.to(kept.dtype)
        kept.add_(share * (new.to(kept.dtype) - kept))


def _norm(
    original: Callable[..., Any], self: Any, x: Tensor, batch: Any = None, batch_size: Any = None
) -> Any:
    """A norm over the nodes of each graph, or of the whole batch."""
    ghosts = now()
    if batch is not None:
        sizes = None if ghosts is None else ghosts.graphs_of(batch)
        if sizes is None:
            return original(self, x, batch, batch_size)
        if self.training and getattr(self, "running_mean", None) is not None:
            _refuse_statistics(self)
        return original(self, x, batch, sizes[0])
    if isinstance(self, LayerNorm) and self.mode == "node":
        return original(self, x)
    real = _real_lines(self, x)
    if real is None:
        return original(self, x)
    if getattr(self, "running_mean", None) is not None:
        _refuse_statistics(self)
    if isinstance(self, LayerNorm):  # whose formula for several graphs is another one
        return _graph_norm(self, x, real)
    return original(self, x, (~real).long(), 2)  # ghosts are a graph of their own


def _refuse_statistics(norm: Any) -> None:
    raise ValueError(
        f"warploom: {type(norm).__name__}: its running statistics would count the ghosts of a "
        "padded batch; use track_running_stats=False"
    )


def _graph_norm(norm: LayerNorm, x: Tensor, real: Tensor) -> Tensor:
    """PyG's LayerNorm over all features of all real nodes."""
    count, ghosts = real.sum() * x.size(1), ~real.unsqueeze(1)
    x = x - x.masked_fill(ghosts, 0).sum() / count
    variance = x.masked_fill(ghosts, 0).square().sum() / count
    out = x / (variance.sqrt() + norm.eps)
    return out if norm.weight is None else out * norm.weight + norm.bias  # type: ignore[no-any-return]


def _refused_norm(original: Callable[..., Any], self: Any, x: Tensor, *rest: Any) -> Any:
    if self.training and _real_lines(self, x) is not None:
        raise ValueError(
            f"warploom: {type(self).__name__}: it does not leave out the ghosts of a padded batch; "
            "use a norm of each graph, or BatchNorm"
        )
    return original(self, x, *rest)


# ---- reductions to graphs ------------------------------------------------------------------------


def _scatter(
    original: Callable[..., Any], x: Tensor, index: Any, dim: int = 0, dim_size: Any = None,
    reduce: str = "sum",
) -> Any:  # fmt: skip
    """What global_*_pool calls, with the number of graphs."""
    if dim_size is None and not torch.compiler.is_compiling():
        dim_size = _graph_count(index)
    return original(x, index, dim=dim, dim_size=dim_size, reduce=reduce)


def _aggregating(original: Callable[..., Any]) -> Callable[..., Any]:
    """An aggregation, which as the readout of a model gets the number of graphs.

    Each layer that PyG computes calls one, so this is one function.
    """

    @functools.wraps(original)
    def call(
        self: Any, x: Tensor, index: Any = None, ptr: Any = None, dim_size: Any = None,
        *args: Any, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if not torch.compiler.is_compiling() and getattr(_now, "ghosts", None) is not None:
            dim_size = _graph_count(index) if dim_size is None else dim_size
        return original(self, x, index, ptr, dim_size, *args, **kwargs)

    return call


def _graph_count(index: Any) -> int | None:
    ghosts = now()
    sizes = None if ghosts is None else ghosts.graphs_of(index)
    return None if sizes is None else sizes[0]


# ---- attention within graphs ---------------------------------------------------------------------


class _Gathers(TorchFunctionMode):
    """Reads a dense batch at the places of nodes where it is indexed by the mask of that batch."""

    def __init__(self) -> None:
        super().__init__()
        self.mask: Tensor | None = None
        self.places: Any = None

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is Tensor.__getitem__ and self.mask is not None and args[1] is self.mask:
            return args[0].flatten(0, 1).index_select(0, self.places)
        return function(*args, **(kwargs or {}))


def _gps(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """GPSConv, which would wait where it goes from dense batches back to nodes."""
    if torch.compiler.is_compiling() or now() is None:
        return original(self, *args, **kwargs)
    before = getattr(_now, "gathers", None)
    _now.gathers = _Gathers()
    try:
        with _now.gathers:
            return original(self, *args, **kwargs)
    finally:
        _now.gathers = before


def _dense(original: Callable[..., Any], x: Tensor, batch: Any = None, **kwargs: Any) -> Any:
    """to_dense_batch with the sizes of the padded batch."""
    gathers, ghosts = getattr(_now, "gathers", None), now()
    if gathers is None or ghosts is None or kwargs:
        return original(x, batch, **kwargs)
    sizes = ghosts.graphs_of(batch)
    if sizes is None:
        return original(x, batch)
    graphs, largest = sizes
    counts = batch.new_zeros(graphs).index_add_(0, batch, torch.ones_like(batch))
    first = counts.cumsum(0) - counts
    nodes = torch.arange(batch.size(0), device=batch.device)
    gathers.places = nodes - first[batch] + batch * largest
    gathers.mask = torch.arange(largest, device=batch.device) < counts.unsqueeze(1)
    out = x.new_zeros((graphs * largest, *x.shape[1:])).index_copy(0, gathers.places, x)
    return out.view(graphs, largest, *x.shape[1:]), gathers.mask


# ---- self loops ----------------------------------------------------------------------------------


def _without_loops(
    original: Callable[..., Any], edge_index: Any, edge_attr: Tensor | None = None
) -> Any:
    """PyG's function that removes self loops, which waits to learn how many edges are left.

    In a step that is captured, loops of the last ghost take their places.
    """
    ghosts = None if torch.compiler.is_compiling() else now()
    if (
        ghosts is None
        or len(ghosts.nodes) != 1
        or type(edge_index) is not Tensor
        or _capture.step_of_thread.made is None
    ):
        return original(edge_index, edge_attr)
    memory = memory_of(edge_index)
    known = None if memory is None else memory.get(_without_loops)
    if known is None:
        is_loop = edge_index[0] == edge_index[1]
        known = (edge_index.masked_fill(is_loop, ghosts.nodes[0] - 1),)
        if memory is not None:
            memory.keep(_without_loops, known)
    return known[0], edge_attr


_installed = False


def install() -> None:
    """Wrap these norms and reductions, which pass calls on where no batch is padded."""
    global _installed
    if _installed:
        return
    _installed = True
    replace(_BatchNorm, "forward", passing(_batch_norm))
    replace(SyncBatchNorm, "forward", passing(_batch_norm))
    for norm in (GraphNorm, GraphSizeNorm, InstanceNorm, LayerNorm, MeanSubtractionNorm, PairNorm):
        replace(norm, "forward", passing(_norm))
    replace(HeteroBatchNorm, "forward", passing(_refused_norm))
    replace(pool_module, "scatter", passing(_scatter))
    replace(Aggregation, "__call__", _aggregating)
    for module in (*_names.modules_with(_names.LOOPS[0]), gat_module, gatv2_module):
        replace(module, _names.LOOPS[0], passing(_without_loops))
    replace(gps_module, "to_dense_batch", passing(_dense))
    replace(GPSConv, "forward", passing(_gps))
    _capture.surroundings.append(_surround)
