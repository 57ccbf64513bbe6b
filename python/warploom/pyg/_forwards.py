"""The forward of layers that are a sparse product and a linear map, in the order that pays.

The layers of FORWARDS in eager code, for sums and means. What these forwards do not serve runs in
PyG's, whose `propagate` is served in its order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import dropout, linear, normalize
from torch_geometric.nn import (
    APPNP,
    ARMAConv,
    ChebConv,
    ClusterGCNConv,
    GCNConv,
    GINConv,
    GraphConv,
    LEConv,
    MessagePassing,
    SAGEConv,
    SGConv,
    SSGConv,
    TAGConv,
)
from torch_geometric.nn.conv import appnp, arma_conv, gcn_conv, sg_conv, ssg_conv, tag_conv

from warploom.pyg import _compiled, _names, _norm, _partitioned
from warploom.pyg._checks import Refused, check_dense, check_edges, check_sum, reduction_of
from warploom.pyg._edge_lists import clustered
from warploom.pyg._kept import Operands
from warploom.pyg._orders import (
    Map,
    aggregates,
    constants,
    map_of,
    may_reorder,
    note,
    ordered,
    without_map,
)
from warploom.pyg._products import operands
from warploom.torch import _sampling
from warploom.torch._internals import any_autocast, saves_by_hooks
from warploom.torch.distributed import PartitionedGraph

_LINEAR = ("sum", "mean")
# Those that map first: under autocast A would multiply another type than in PyG.
_MAPPED = (GCNConv, LEConv, ARMAConv)


def _is_edge_list(edge_index: Any) -> bool:
    """Whether eager code got a list of edges."""
    if torch.compiler.is_compiling():
        return False
    return isinstance(edge_index, Tensor) and edge_index.layout is torch.strided


def _reduction(layer: MessagePassing, edge_index: Any) -> str | None:
    """The reduction of a layer whose order may be chosen; None where PyG's forward runs."""
    reduce = reduction_of(layer)
    if reduce not in _LINEAR or not hasattr(layer.propagate, "is_accelerated"):
        return None
    return reduce if _is_free(layer, edge_index) else None


def _is_free(layer: MessagePassing, edge_index: Any) -> bool:
    """Whether the call allows for another order."""
    if any_autocast() and type(layer) in _MAPPED:
        note(layer, "as PyG, under autocast")
    elif not torch.compiler.is_compiling() and saves_by_hooks():
        note(layer, "as PyG, in activation checkpointing")
    else:
        is_part = type(edge_index) is PartitionedGraph and type(layer) in _partitioned.LAYERS
        return is_part or isinstance(edge_index, Tensor)
    return False


def _power(call: Operands, x: Tensor, times: int) -> Tensor:
    for _ in range(times):
        x = call.multiply(x)
    return x


_Normed = Callable[..., tuple[Any, Any]]


def _operands(
    layer: Any, normed: _Normed | None, x: Tensor, edge_index: Tensor, edge_weight: Any,
    reduce: str, *arguments: Any,
) -> Operands | None:  # fmt: skip
    """The operands of a layer of one kind of nodes; normed: what makes its edges and weights."""
    if x.dim() != 2:
        return None
    added = None
    if normed is not None and _norm.is_sorted(edge_index, edge_weight, x, reduce, *arguments):
        added = x.dtype
    elif normed is not None:
        edge_index, edge_weight = normed(
            edge_index, edge_weight, x.size(layer.node_dim), *arguments, layer.flow, dtype=x.dtype
        )
    call = operands(layer, edge_index, None, reduce, x, edge_weight, added=added)
    return call if call.x is x else None


def _added(out: Tensor, bias: Tensor | None) -> Tensor:
    return out if bias is None else out + bias


# ---- GCNConv ------------------------------------------------------------------------------------


def _gcn(
    layer: GCNConv, x: Any, edge_index: Any, edge_weight: Tensor | None = None
) -> Tensor | None:
    if torch.compiler.is_compiling():
        return _gcn_compiled(layer, x, edge_index, edge_weight)
    reduce = _reduction(layer, edge_index)
    if reduce is None or not isinstance(x, Tensor):
        return None
    linear_map, normed = map_of(layer.lin, x, layer.bias), None
    if linear_map.weight is None:
        return None
    if type(edge_index) is not PartitionedGraph:  # which is normalised elsewhere
        if edge_index.layout is not torch.strided:
            return None
        cache = layer._cached_edge_index
        if cache is not None and layer.normalize:
            edge_index, edge_weight = cache
        elif layer.normalize and layer.cached:
            return None  # PyG's forward fills the cache
        elif layer.normalize:
            normed = gcn_conv.gcn_norm
    call = _operands(
        layer, normed, x, edge_index, edge_weight, reduce, layer.improved, layer.add_self_loops
    )
    if call is None:
        return None
    return _added(*ordered(layer, call, linear_map, False, ("power", 1), Operands.multiply))


def _gcn_compiled(
    layer: GCNConv, x: Any, edge_index: Any, edge_weight: Tensor | None
) -> Tensor | None:
    """GCNConv's forward in compiled code, which leaves the norm to an op."""
    is_tensors = isinstance(x, Tensor) and isinstance(edge_index, Tensor)
    if not layer.normalize or layer.cached or not is_tensors:
        return None
    check_sum(layer)
    check_edges(edge_index)
    nodes, dtype = x.size(-2), x.dtype
    suits = _norm.suits(edge_index, edge_weight, nodes, layer.improved, layer.add_self_loops)
    if not suits and (edge_weight is not None or layer.add_self_loops):
        raise Refused("a norm of other edges in compiled code")
    values = None
    if edge_weight is None:
        how = _compiled.norm_text(layer, dtype)
    else:
        how = _compiled.APPENDED
        _, values = _norm.normalise(
            edge_index, edge_weight, nodes, layer.improved, True, layer.flow, dtype
        )
    product = partial(_compiled.product, layer, edge_index, nodes, layer.out_channels, how=how)
    first = map_of(layer.lin, x, layer.bias)
    if (
        first.weight is not None
        and not any_autocast()
        and (values is None or values.dtype is dtype)
    ):
        call = Operands(None, check_dense(layer, x), None, values, "sum", None, product)
        return _added(*ordered(layer, call, first, False, ("power", 1), Operands.multiply))
    features = check_dense(layer, layer.lin(x))
    if values is not None:
        dtype = torch.promote_types(values.dtype, features.dtype)
        values = values.to(dtype)
    if features.dtype is not dtype:
        if torch.promote_types(features.dtype, dtype) is not dtype:
            raise Refused(f"features of type {features.dtype} and a norm of type {dtype}")
        features = features.to(dtype)
    return _added(product(features, values, "sum"), layer.bias)


# ---- SAGEConv, GraphConv and ClusterGCNConv -----------------------------------------------------


def _with_root(
    layer: Any, edge_index: Any, edge_weight: Any, x: Any, size: Any, reduce: str, module: Any,
    root: Any,
) -> Tensor | None:  # fmt: skip
    """The map of an aggregation, and another one of the targets' own features; root: its module."""
    call = operands(layer, edge_index, size, reduce, x, edge_weight)
    source, target = x
    if call.x is not source:
        return None
    out, bias = ordered(layer, call, map_of(module, source), True, ("power", 1), Operands.multiply)
    if root is None or target is None:
        return _added(out, bias)
    if bias is not None:  # one addition for both
        own = map_of(root, target, bias)
        if own.weight is not None:
            return out + linear(target, own.weight, bias)
    return _added(out + root(target), bias)


def _sage(layer: SAGEConv, x: Any, edge_index: Any, size: Any = None) -> Tensor | None:
    reduce = _reduction(layer, edge_index)
    if reduce is None:
        return None
    x = (x, x) if isinstance(x, Tensor) else x
    if layer.project:
        if map_of(layer.lin, x[0]).weight is None:
            return None
        x = layer.lin(x[0]).relu(), x[1]
    root = layer.lin_r if layer.root_weight else None
    out = _with_root(layer, edge_index, None, x, size, reduce, layer.lin_l, root)
    return normalize(out, p=2.0, dim=-1) if layer.normalize and out is not None else out


def _graph(
    layer: GraphConv, x: Any, edge_index: Any, edge_weight: Tensor | None = None, size: Any = None
) -> Tensor | None:
    reduce = _reduction(layer, edge_index)
    if reduce is None:
        return None
    x = (x, x) if isinstance(x, Tensor) else x
    return _with_root(
        layer, edge_index, edge_weight, x, size, reduce, layer.lin_rel, layer.lin_root
    )


def _cluster(layer: ClusterGCNConv, x: Any, edge_index: Any) -> Tensor | None:
    if not _is_edge_list(edge_index):
        return None
    reduce = _reduction(layer, edge_index)
    if reduce is None or not layer.add_self_loops:
        return None
    edges, weight = clustered(edge_index, x.size(0), layer.diag_lambda)
    return _with_root(layer, edges, weight, (x, x), None, reduce, layer.lin_out, layer.lin_root)


# ---- LEConv -------------------------------------------------------------------------------------


def _le(layer: LEConv, x: Any, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor | None:
    """(A X) W less, for each edge, what the target has: PyG's own order is that of its message."""
    if not _is_edge_list(edge_index):
        return None
    reduce = _reduction(layer, edge_index)
    if reduce is None or not may_reorder() or _sampling.chosen is not None:
        return None
    source, target = (x, x) if isinstance(x, Tensor) else x
    first = map_of(layer.lin1, source)
    if (
        first.weight is None
        or source.element_size() < 4  # both sums would be rounded before their difference
        or (source is not target and layer.flow != "source_to_target")
    ):
        return None
    call = operands(layer, edge_index, None, reduce, (source, target), edge_weight)
    if call.x is not source:
        return None
    terms = constants(layer, call, first, 1, "power", _power)
    if terms is None and not aggregates(layer, call, first, 1, False):
        return None
    product = call.multiply(source) if terms is None else terms[0]
    own = layer.lin2(target)
    if first.bias is not None:
        own = own - first.bias
    count = call.multiply(source.new_ones(source.size(0), 1))  # the sum of the weights, or 1 or 0
    out: Tensor = linear(product, first.weight) - count * own + layer.lin3(target)
    return out


# ---- GINConv ------------------------------------------------------------------------------------


def _eps_of(layer: GINConv, x: Tensor) -> Tensor | None:
    """The eps whose (1 + eps) * x a product can add with PyG's types and gradients."""
    eps: Tensor | None = layer._buffers.get("eps")
    if eps is None:
        eps = layer._parameters.get("eps")
    if (
        eps is not None
        and type(eps) in (Tensor, torch.nn.Parameter)
        and eps.dtype is x.dtype
        and eps.device == x.device
        and eps.shape == (1,)
    ):
        return eps
    return None


def _gin(layer: GINConv, x: Any, edge_index: Any, size: Any = None) -> Tensor | None:
    if not isinstance(x, Tensor):
        return None
    eps, reduce = _eps_of(layer, x), reduction_of(layer)
    if eps is None or reduce is None or not hasattr(layer.propagate, "is_accelerated"):
        return None
    call = operands(layer, edge_index, size, reduce, (x, x), None, True)
    # eps stays on the device, and PyG writes it through .data, which no version counts
    call = call._replace(root=1 + eps)
    network, first = layer.nn, layer.nn
    rest: list[Any] = []
    if type(network) is torch.nn.Sequential and len(network) and not _names.has_hooks_of(network):
        first, *rest = network
    if reduce not in _LINEAR or call.x is not x or not _is_free(layer, edge_index):
        return network(call.multiply(call.x))  # type: ignore[no-any-return]
    out = _added(*ordered(layer, call, map_of(first, x), True, ("power", 1), Operands.multiply))
    for module in rest:
        out = module(out)
    return out


# ---- SGConv, SSGConv, APPNP and ARMAConv --------------------------------------------------------


def _normed_call(
    layer: Any, module: Any, x: Any, edge_index: Any, edge_weight: Any, loops: bool
) -> Operands | None:
    """The operands of a layer of these, where it may have code of its own."""
    if not _is_edge_list(edge_index):
        return None
    reduce = _reduction(layer, edge_index)
    if reduce is None or not isinstance(x, Tensor) or getattr(layer, "cached", False):
        return None
    normed = module.gcn_norm if getattr(layer, "normalize", True) else None
    return _operands(layer, normed, x, edge_index, edge_weight, reduce, False, loops)


def _sg(layer: SGConv, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor | None:
    call = _normed_call(layer, sg_conv, x, edge_index, edge_weight, layer.add_self_loops)
    if call is None or layer.K < 1:
        return None
    name, run = ("power", layer.K), partial(_power, times=layer.K)
    return _added(*ordered(layer, call, map_of(layer.lin, x), True, name, run, layer.K))


def _mixed(call: Operands, x: Tensor, times: int, alpha: float) -> Tensor:
    """SSGConv's sum over powers of A."""
    out = x * alpha
    for _ in range(times):
        x = call.multiply(x)
        out = out + (1 - alpha) / times * x
    return out


def _ssg(layer: SSGConv, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor | None:
    call = _normed_call(layer, ssg_conv, x, edge_index, edge_weight, layer.add_self_loops)
    if call is None or layer.K < 1:
        return None
    name = "mixed", layer.K, layer.alpha
    run = partial(_mixed, times=layer.K, alpha=layer.alpha)
    return _added(*ordered(layer, call, map_of(layer.lin, x), True, name, run, layer.K))


def _teleported(call: Operands, x: Tensor, times: int, alpha: float) -> Tensor:
    """APPNP's steps, which return to the features."""
    out = x
    for _ in range(times):
        out = call.multiply(out) * (1 - alpha) + alpha * x
    return out


def _appnp(layer: APPNP, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor | None:
    if layer.K < 1 or (layer.dropout > 0 and layer.training):  # of the weights, in each step
        return None
    call = _normed_call(layer, appnp, x, edge_index, edge_weight, layer.add_self_loops)
    if call is None:
        return None
    run = partial(_teleported, times=layer.K, alpha=layer.alpha)
    return without_map(layer, call, ("teleported", layer.K, layer.alpha), run, layer.K)


def _arma(layer: ARMAConv, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor | None:
    """All stacks side by side."""
    call = _normed_call(layer, arma_conv, x, edge_index, edge_weight, False)
    first = layer._parameters.get("init_weight")
    if call is None or type(first) is not torch.nn.Parameter or first.dtype is not x.dtype:
        return None
    stacks, _, outputs = first.shape
    weight = first.transpose(1, 2).flatten(0, 1)
    out = ordered(layer, call, Map(None, weight, None), False, ("power", 1), Operands.multiply).out
    for number in range(layer.num_layers):
        at = 0 if layer.shared_weights else number
        if number:
            mapped = out @ layer.weight[0 if layer.shared_weights else number - 1]
            out = call.multiply(mapped.transpose(0, 1).flatten(1))
        root = dropout(x.unsqueeze(0), layer.dropout, layer.training) @ layer.root_weight[at]
        out = out.view(-1, stacks, outputs).transpose(0, 1) + root
        if layer.bias is not None:
            out = out + layer.bias[at]
        if layer.act is not None:
            out = layer.act(out)
    return out.mean(dim=0)


# ---- TAGConv and ChebConv: a map of each term of a recurrence ----------------------------------


def _term(call: Operands, x: Tensor, times: int, is_cheb: bool) -> Tensor:
    """The power of A times X, or the polynomial of Chebyshev of A."""
    before, now = x, call.multiply(x)
    for _ in range(times - 1):
        before, now = now, _next(call, now, before if is_cheb else None)
    return now


def _next(call: Operands, x: Tensor, before: Tensor | None) -> Tensor:
    return call.multiply(x) if before is None else 2.0 * call.multiply(x) - before


def _sum_of_terms(layer: Any, call: Operands, is_cheb: bool) -> Tensor | None:
    """The sum of a map of X and one of each term after it."""
    x, count = call.x, len(layer.lins) - 1
    maps = [map_of(module, x) for module in layer.lins]
    weights = [one.weight for one in maps if one.weight is not None and one.bias is None]
    if len(weights) <= count:
        return None
    terms = constants(
        layer, call, maps[0], count, ("terms", is_cheb), partial(_term, is_cheb=is_cheb)
    )
    if terms is None and not aggregates(layer, call, maps[0], count):
        return _added(_by_last_term(call, weights, is_cheb), layer.bias)
    out = linear(x, weights[0])
    before, now = x, x
    for number, weight in enumerate(weights[1:]):
        if terms is not None:
            now = terms[number]
        else:
            before, now = now, _next(call, now, before if is_cheb and number else None)
        out = out + linear(now, weight)
    return _added(out, layer.bias)


def _by_last_term(call: Operands, weights: Sequence[Tensor], is_cheb: bool) -> Tensor:
    """The same sum by the schemes of Horner or Clenshaw, which begin with the last term."""
    x, *others = call.x, *weights
    now, before = linear(x, others.pop()), None
    while others:
        out = linear(x, others.pop())
        factor = 2.0 if is_cheb and others else 1.0
        mapped = out + (call.multiply(now) if factor == 1.0 else factor * call.multiply(now))
        if is_cheb and before is not None:
            mapped = mapped - before
        before, now = now, mapped
    return now


def _tag(layer: TAGConv, x: Any, edge_index: Any, edge_weight: Any = None) -> Tensor | None:
    call = _normed_call(layer, tag_conv, x, edge_index, edge_weight, False)
    if call is None or len(layer.lins) < 2:
        return None
    return _sum_of_terms(layer, call, False)


def _cheb(
    layer: ChebConv, x: Any, edge_index: Any, edge_weight: Any = None, batch: Any = None,
    lambda_max: Any = None,
) -> Tensor | None:  # fmt: skip
    if not _is_edge_list(edge_index):
        return None
    reduce = _reduction(layer, edge_index)
    if reduce is None or not isinstance(x, Tensor) or x.dim() != 2 or len(layer.lins) < 2:
        return None
    edges, norm = layer.__norm__(
        edge_index, x.size(0), edge_weight, layer.normalization, lambda_max, dtype=x.dtype,
        batch=batch,
    )  # fmt: skip
    call = operands(layer, edges, None, reduce, x, norm)
    return _sum_of_terms(layer, call, True) if call.x is x else None


FORWARDS: dict[type[MessagePassing], Callable[..., Tensor | None]] = {
    GCNConv: _gcn,
    SAGEConv: _sage,
    GraphConv: _graph,
    ClusterGCNConv: _cluster,
    LEConv: _le,
    GINConv: _gin,
    SGConv: _sg,
    SSGConv: _ssg,
    APPNP: _appnp,
    ARMAConv: _arma,
    TAGConv: _tag,
    ChebConv: _cheb,
}
