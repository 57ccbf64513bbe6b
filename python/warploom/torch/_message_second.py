"""Second derivatives of messages: the message composed of functions of torch.

A backward pass with `create_graph` must be differentiable. It evaluates the expression for every
edge, so it needs tensors of edges x n, and takes its gradients by PyTorch's autograd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from warploom.torch._graph import Graph
from warploom.torch._message_parts import (
    COMPOSED,
    LEAST_VARIANCE,
    OF_EDGES,
    Operand,
    Parts,
    columns_of,
)
from warploom.torch._message_text import KEPT, evaluate

Tensor = torch.Tensor

# ---- gradients ----------------------------------------------------------------------------------


def _of_edges(graph: Graph, parts: Parts, operand: Operand, tensor: Tensor) -> Tensor:
    """An operand for every edge, (edges, heads, features), or with ones there."""
    heads = parts.heads if operand.width != "1" else 1
    if operand.place == "all":
        return tensor.reshape(1, heads, tensor.numel() // heads)
    columns = columns_of(tuple(tensor.shape[1:]))  # -1 says nothing where there are no elements
    lines = tensor.reshape(tensor.size(0), heads, columns // heads)
    if operand.place == "edge":
        return lines
    return lines.index_select(0, graph.row() if operand.place == "row" else graph.colind)


def _reduced(graph: Graph, kind: str, values: Tensor, positions: Any) -> Tensor:
    if kind == "edge":
        return values
    if kind == "edge_sum":
        return values.sum(-1)
    if kind in ("max", "min") and len(values) > 0:
        where = positions.reshape(graph.rows, *values.shape[1:])
        found = values.gather(0, where.clamp(min=0).long())
        return torch.where(where >= 0, found, torch.zeros_like(found))
    shape = (graph.rows, *values.shape[1:])
    if kind == "prod":
        into = graph.row().long()[:, None, None].expand_as(values)
        return values.new_ones(shape).scatter_reduce(0, into, values, "prod")
    total = values.new_zeros(shape).index_add(0, graph.row(), values)
    if kind == "mean":
        total = total / graph.degrees().clamp(min=1).to(values.dtype)[:, None, None]
    return total


def _weights(graph: Graph, score: Tensor) -> Tensor:
    """The softmax of the scores of each row; 0 where they all are -inf."""
    rows = graph.row()
    into = rows.long()[:, None, None].expand_as(score)
    shape = (graph.rows, *score.shape[1:])
    base = (
        score.detach().new_full(shape, -torch.inf).scatter_reduce(0, into, score.detach(), "amax")
    )
    base = torch.where(base == -torch.inf, torch.zeros_like(base), base)
    power = (score - base.index_select(0, rows)).exp()
    total = power.new_zeros(shape).index_add(0, rows, power)
    total = torch.where(total == 0, torch.ones_like(total), total)
    return power / total.index_select(0, rows)


def _composed(parts: Parts, results: list[Tensor]) -> list[Tensor]:
    found = []
    for kind, at, square in parts.composed:
        result = results[at]
        if kind in COMPOSED:
            result = results[square] - result * result
        if kind == "std":
            is_large = result > LEAST_VARIANCE
            root = torch.where(is_large, result, torch.ones_like(result)).sqrt()
            result = torch.where(is_large, root, torch.zeros_like(root))
        found.append(result)
    return found


class Call(NamedTuple):
    """A message whose gradients are asked for."""

    graph: Graph
    parts: Parts
    operands: Sequence[Operand]  # those that are tensors
    needs: Sequence[bool]
    given: Sequence[Any]  # the tensors that the gradients read
    numbers: dict[str, float]
    positions: dict[int, Any]  # of winners, by result
    likes: Sequence[tuple[Any, torch.dtype]]  # shapes and types of the operands
    kept: Tensor | None  # what dropout multiplies weights by, (edges, heads) in CSR order

    def leaf(self, tensor: Tensor | None, shape: Any, dtype: torch.dtype) -> Tensor:
        """An operand, connected to the one that was given."""
        if tensor is None:  # no gradient depends on its numbers
            tensor = torch.zeros(shape, dtype=dtype, device=self.graph.device)
        leaf = tensor.view_as(tensor)  # one for each operand, also of the same tensor
        return leaf if leaf.requires_grad else leaf.detach().requires_grad_()

    def results(self, leaves: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """What the call returned."""
        graph, parts = self.graph, self.parts
        like = torch.zeros((), dtype=dtype, device=graph.device)
        values = {name: like + number for name, number in self.numbers.items()}
        for operand, leaf in zip(self.operands, leaves):
            values[operand.name] = _of_edges(graph, parts, operand, leaf.to(dtype))
        degrees = graph.degrees().index_select(0, graph.row())
        values["degree"] = degrees.to(dtype)[:, None, None]
        if self.kept is not None:
            values[KEPT] = self.kept.to(dtype)[:, :, None]
        full = (graph.nnz, parts.heads, columns_of(parts.width) // parts.heads)
        for name, text in parts.sums:
            value = evaluate(text, values, like).expand(full)
            values[name] = value.sum(-1, keepdim=True)
        results = []
        for at, (kind, text) in enumerate(parts.results):
            value = evaluate(text, values, like)
            if kind == "score":  # one for each edge and head, and no result of the call
                weights = _weights(graph, value.expand(*full[:2], 1))
                results.append(value)
                continue
            value = value.expand(full)
            if kind == "softmax":
                kind, value = "sum", weights * value
            results.append(_reduced(graph, kind, value, self.positions.get(at)))
        places = graph.edge_places()
        return [
            result.index_select(0, places) if kind in OF_EDGES and places is not None else result
            for (kind, _, _), result in zip(parts.composed, _composed(parts, results))
        ]


def gradients(call: Call, upstream: Sequence[Any]) -> list[Any]:
    """The differentiable gradients by the operands; None where there is none."""
    dtype = call.parts.dtype
    work = dtype if dtype in (torch.float32, torch.float64) else torch.float32
    leaves = [call.leaf(tensor, *like) for tensor, like in zip(call.given, call.likes)]
    pairs = [
        (result, gradient.reshape(result.shape).to(work))
        for result, gradient in zip(call.results(leaves, work), upstream)
        if gradient is not None
    ]
    made: list[Any] = [None] * len(leaves)
    wanted = [at for at, is_needed in enumerate(call.needs) if is_needed]
    found = torch.autograd.grad(
        [result for result, _ in pairs],
        [leaves[at] for at in wanted],
        [gradient for _, gradient in pairs],
        create_graph=True,
        allow_unused=True,
    )
    for at, gradient in zip(wanted, found):
        if gradient is not None:
            shape, of_operand = call.likes[at]
            made[at] = gradient.reshape(shape).to(of_operand)
    return made
