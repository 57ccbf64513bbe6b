"""PyG's aggregations as reductions of a message: all that one layer has in one walk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import EGConv, MessagePassing
from torch_geometric.nn.aggr import (
    DegreeScalerAggregation,
    MultiAggregation,
    SoftmaxAggregation,
)

from warploom.pyg._checks import REDUCTIONS, Refused
from warploom.pyg._values import Edges, Sum, Value, as_expression, combine
from warploom.pyg._walks import PRODUCT, reduced, softmax

_LEAST_VARIANCE = 1e-5  # of EGConv's std

# From the results of the walk to what the layer aggregates.
_Finish = Callable[[Edges, Sequence[Tensor]], Tensor]


class _Summed:
    """What PyG's own scaling reads of its module, where the sum is already there."""

    def __init__(self, module: DegreeScalerAggregation, out: Tensor) -> None:
        self.avg_deg_lin, self.avg_deg_log = module.avg_deg_lin, module.avg_deg_log
        self.scaler = module.scaler
        self._out = out

    def aggr(self, *given: Any) -> Tensor:
        return self._out

    def assert_index_present(self, index: Tensor) -> None:
        pass


def _plan(module: Any) -> tuple[tuple[str, ...], _Finish]:
    """The reductions that an aggregation needs, and what makes its result of theirs."""
    kind = type(module)
    if kind in REDUCTIONS:
        variance = getattr(module, "var_aggr", module)
        if getattr(variance, "semi_grad", False):
            raise Refused("aggregation with semi_grad")
        return (REDUCTIONS[kind],), lambda edges, results: results[0]
    if kind is MultiAggregation:
        return _plan_of_several(module)
    if kind is DegreeScalerAggregation:
        reductions, finish = _plan(module.aggr)

        def scale(edges: Edges, results: Sequence[Tensor]) -> Tensor:
            summed = _Summed(module, finish(edges, results))
            index, rows = edges.ends("row"), edges.graph.rows
            scaled: Tensor = DegreeScalerAggregation.forward(summed, None, index, None, rows, 0)
            return scaled

        return reductions, scale
    raise Refused(f"aggregation {kind.__name__}")


def _plan_of_several(module: MultiAggregation) -> tuple[tuple[str, ...], _Finish]:
    plans = [_plan(part) for part in module.aggrs]
    reductions = tuple(kind for kinds, _ in plans for kind in kinds)

    def join(edges: Edges, results: Sequence[Tensor]) -> Tensor:
        parts, start = [], 0
        for kinds, finish in plans:
            parts.append(finish(edges, results[start : start + len(kinds)]))
            start += len(kinds)
        joined: Tensor = module.combine(parts)
        return joined

    return reductions, join


def _softmax(edges: Edges, value: Value, module: SoftmaxAggregation) -> Tensor:
    """The sum of the messages m, weighted by the softmax of t m in each column."""
    if module.semi_grad and torch.is_grad_enabled():
        raise Refused("aggregation with semi_grad")
    message = as_expression(edges, value)
    scale = module.t
    scaled = message
    if isinstance(scale, Tensor):
        rows = scale.reshape(-1).expand(edges.graph.rows, scale.numel())
        scaled = combine(edges, PRODUCT, message, Sum({"row": rows}))
    elif scale != 1:
        scaled = message._replace(tree=(f"({{0}}*({scale!r}))", message.tree))
    return softmax(edges, message, scaled)


def _aggregate_eg(edges: Edges, layer: EGConv, value: Value, given: dict[str, Any]) -> Tensor:
    """EGConv's own aggregations, in one walk but for the weighted one."""
    kinds = [kind for kind in layer.aggregators if kind != "symnorm"]
    wanted = ["var" if kind == "std" else kind for kind in kinds]
    found = dict(zip(kinds, reduced(edges, value, wanted))) if kinds else {}
    if "std" in found:
        found["std"] = found["std"].clamp(min=_LEAST_VARIANCE).sqrt()
    if "symnorm" in layer.aggregators:
        weights = Sum({"edge": given["symnorm_weight"].view(-1, 1)})
        (found["symnorm"],) = reduced(edges, combine(edges, PRODUCT, value, weights), ("sum",))
    outs = [found[kind] for kind in layer.aggregators]
    return torch.stack(outs, dim=1) if len(outs) > 1 else outs[0]


def reduces_columns(layer: MessagePassing) -> bool:
    """Whether a layer's aggregation is one reduction, which acts on each column alone."""
    return type(layer).aggregate is MessagePassing.aggregate and (
        type(layer._modules.get("aggr_module")) in REDUCTIONS
    )


def aggregation_of(layer: MessagePassing) -> Callable[[Edges, Value, dict[str, Any]], Tensor]:
    """What aggregates a message of this layer: of what `propagate` was given, a tensor of rows."""
    own = type(layer).aggregate
    if own is EGConv.aggregate:
        return lambda edges, value, given: _aggregate_eg(edges, layer, value, given)
    if own is not MessagePassing.aggregate:
        raise Refused("a layer with an aggregate of its own")
    module = layer._modules.get("aggr_module")
    if type(module) is SoftmaxAggregation:
        return lambda edges, value, given: _softmax(edges, value, module)
    reductions, finish = _plan(module)

    def aggregate(edges: Edges, value: Value, given: dict[str, Any]) -> Tensor:
        return finish(edges, reduced(edges, value, reductions))

    return aggregate
