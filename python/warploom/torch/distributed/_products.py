"""Operations of warploom.torch on a PartitionedGraph, the mean of losses and sums of gradients."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Callable, TypeVar

import torch
import torch.distributed as dist

from warploom import _arguments
from warploom import torch as products
from warploom.torch._eager import autocast, check_values_type
from warploom.torch._graph import need, need_tensor
from warploom.torch.distributed._graph import PartitionedGraph
from warploom.torch.distributed._ways import Sum

Tensor = torch.Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _need_part(graph: Any) -> None:
    if not isinstance(graph, PartitionedGraph):
        raise TypeError(
            f"warploom: graph: a PartitionedGraph is needed, not {type(graph).__name__}"
        )


def _partitioned(function: _Function, *by_column: str) -> _Function:
    """The function of warploom.torch for a PartitionedGraph; these operands have a row for each
    column of A."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(graph: PartitionedGraph, *args: Any, **options: Any) -> Any:
        _need_part(graph)
        given = signature.bind(graph.local, *args, **options)
        for name in by_column:
            given.arguments[name] = graph.fetch(given.arguments[name])
        return function(*given.args, **given.kwargs)

    call.__doc__ = (
        f"As warploom.torch.{function.__name__}, for a PartitionedGraph: operands and results of\n"
        "    nodes have the rows of this rank's nodes, those of edges belong to `graph.edges`."
    )
    return call  # type: ignore[return-value]


_spmm: Any = _partitioned(products.spmm, "b")
sddmm = _partitioned(products.sddmm, "b")
edge_softmax = _partitioned(products.edge_softmax)
gat = _partitioned(products.gat, "b", "right")
gatv2 = _partitioned(products.gatv2, "b")
attention = _partitioned(products.attention, "k", "v")


def _is_sum(values: Any, options: dict[str, Any]) -> bool:
    """Whether every way of sharing serves a product: a sum or mean with constant values."""
    return (
        options.keys() <= {"reduce", "message", "deterministic"}
        and options.get("reduce", "sum") in ("sum", "mean")
        and options.get("message", "mul") in ("mul", "copy_b")
        and (values is None or _is_constant(values))
    )


def _is_constant(values: Any) -> bool:
    """Whether these are values with one head that need no gradient."""
    return isinstance(values, Tensor) and values.dim() == 1 and not values.requires_grad


def spmm(
    graph: PartitionedGraph, b: Tensor, values: Tensor | None = None, **options: Any
) -> Tensor:
    """As warploom.torch.spmm, for a PartitionedGraph: operands and results of nodes have the rows
    of this rank's nodes, values belong to `graph.edges`. Sums and means with values that need no
    gradient are shared as `graph.choice` says, all others by rows."""
    _need_part(graph)
    need_tensor("b", b)
    if graph.choice.name == "rows" or b.dim() < 2 or not _is_sum(values, options):
        return _spmm(graph, b, values, **options)  # type: ignore[no-any-return]
    graph._check_rows("b", b)
    b, local = autocast(b), graph.local
    if options.get("message") == "copy_b":
        values = None
    if values is not None:
        local._check_values(values)
        check_values_type(values, b)
    same = options.get("deterministic")
    same = torch.are_deterministic_algorithms_enabled() if same is None else same
    same = _arguments.flag("deterministic", same)
    c = Sum.apply(b.flatten(1), values, graph.way, same).view(b.shape)  # type: ignore[no-untyped-call]
    return local.divide_by_degrees(c) if options.get("reduce") == "mean" else c


def message(
    graph: PartitionedGraph,
    expression: str,
    *,
    operands: Mapping[str, Any] | None = None,
    **options: Any,
) -> Tensor | tuple[Tensor, ...]:
    """As warploom.torch.message, for a PartitionedGraph: operands and results of nodes have the
    rows of this rank's nodes, those of edges belong to `graph.edges`. There is no `transpose`."""
    _need_part(graph)
    need(
        not options.get("transpose"),
        "transpose: results of columns belong to other ranks; partition the reversed edges",
    )
    for name in ("b", "k"):
        if isinstance(options.get(name), Tensor):
            options[name] = graph.fetch(options[name])
    given = {
        name: (place, graph.fetch(value)) if place == "column" else (place, value)
        for name, (place, value) in (operands or {}).items()
    }
    return products.message(graph.local, expression, operands=given, **options)


# ---- losses and gradients of weights -----------------------------------------------------------


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, losses: Tensor, group: Any) -> Tensor:
        count = torch.tensor(float(losses.numel()), device=losses.device)
        total = losses.sum()
        dist.all_reduce(count, group=group)
        dist.all_reduce(total, group=group)
        ctx.shape = losses.shape
        ctx.save_for_backward(count)
        return total / count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (count,) = ctx.saved_tensors
        return (gradient / count).expand(ctx.shape), None


def mean(losses: Tensor, group: Any = None) -> Tensor:
    """The mean of the losses of all ranks, equal on each; differentiable.

    losses: of this rank's nodes, any shape, also none at all. The gradient is that of this rank's
        part, so the gradients of weights are complete after sum_gradients.
    """
    return _Mean.apply(losses, group)  # type: ignore[no-any-return,no-untyped-call]


def sum_gradients(parameters: Iterable[Tensor], group: Any = None) -> None:
    """Add up the gradients of weights over all ranks, in place, after backward().

    parameters: the same ones in the same order on every rank. One without a gradient on this rank
        counts as zeros.
    """
    by_dtype: dict[torch.dtype, list[Tensor]] = {}
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        by_dtype.setdefault(parameter.dtype, []).append(parameter.grad)
    for gradients in by_dtype.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat, group=group)
        for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients])):
            gradient.copy_(part.view_as(gradient))
