"""Gradients of a product, in terms of products; the same for eager mode and for the registered ops.

With C[i] = reduce over p = (i, k) of message(a_p, b_k) and x = dC:

    dB of a sum      another sum, over the transpose, with x in the place of b
    da of a sum      an SDDMM
    mean             as a sum, of x divided by the edges of its row
    max and min      from the positions of the edges that won
    prod             edge by edge, by torch: takes nnz x n elements
"""

from __future__ import annotations

import functools
from typing import Optional, Protocol

import torch

Gradients = tuple[Optional[torch.Tensor], Optional[torch.Tensor]]


class Engine(Protocol):
    """The products that gradients consist of."""

    def transposed(
        self, x: torch.Tensor, values: torch.Tensor | None, message: str, alpha: float, mean: bool
    ) -> torch.Tensor:
        """alpha * the sum over the transpose; with mean, of x / edges of its row."""

    def sddmm(
        self,
        x: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        message: str,
        mean: bool,
    ) -> torch.Tensor:
        """The gradient by the values."""

    def argmax(
        self,
        x: torch.Tensor,
        argmax: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        need_b: bool,
        need_values: bool,
    ) -> Gradients:
        """Gradients of the accumulator's type."""

    def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and column of each edge."""


def saved(
    reduce: str, message: str, has_values: bool, need_b: bool, need_values: bool
) -> tuple[bool, bool]:
    """Whether b and whether values must be kept for the backward pass."""
    multiplies = message in ("mul", "div", "rdiv")
    if reduce == "prod":
        return True, has_values
    if reduce in ("max", "min"):
        return multiplies and (has_values or message == "rdiv"), has_values
    b = (need_values and multiplies) or (need_b and message == "rdiv")
    return b, has_values and ((need_b and multiplies) or (need_values and message == "div"))


@functools.cache
def saved_table(
    reduce: str, message: str, has_values: bool
) -> dict[tuple[bool, bool], tuple[bool, bool]]:
    """What saved() says, by the gradients that are needed."""
    either = (False, True)
    return {(b, v): saved(reduce, message, has_values, b, v) for b in either for v in either}


def gradients(
    engine: Engine,
    reduce: str,
    message: str,
    x: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    winners: torch.Tensor | None,
    need_b: bool,
    need_values: bool,
) -> Gradients:
    """dB and dvalues, where needed, from what saved() names and the argmax of max and min."""
    if winners is not None:
        return engine.argmax(x, winners, b, values, need_b, need_values)
    if reduce == "prod":
        assert b is not None
        return _prod(engine, message, x, b, values, need_b, need_values)
    mean = reduce == "mean"
    db = dvalues = None
    if need_values:
        dvalues = engine.sddmm(x, b, values if message == "div" else None, message, mean)
    if need_b and message in ("mul", "div"):
        db = engine.transposed(x, values, message if values is not None else "mul", 1.0, mean)
    elif need_b and message == "rdiv":
        assert b is not None
        db = engine.transposed(x, values, "mul", -1.0, mean) / (b * b)
    elif need_b and message != "copy_a":
        db = engine.transposed(x, None, "mul", -1.0 if message == "rsub" else 1.0, mean)
    return db, dvalues


def _prod(
    engine: Engine,
    message: str,
    x: torch.Tensor,
    b: torch.Tensor,
    values: torch.Tensor | None,
    need_b: bool,
    need_values: bool,
) -> Gradients:
    """Each edge gets x times the product of the other messages of its row.

    Zeros count as in torch.scatter_reduce.
    """
    row, column = (part.long() for part in engine.edges())
    widened = torch.float64 if b.dtype == torch.float64 else torch.float32
    x, gathered = x.to(widened), b.to(widened).index_select(0, column)
    if values is None:
        a = gathered.new_ones(()).expand_as(gathered)
    else:
        a = (
            values.to(widened)
            .reshape(values.shape + (1,) * (b.dim() - values.dim()))
            .expand_as(gathered)
        )
    m, by_b, by_a = derivatives(message, a, gathered)
    zero = m == 0
    zeros = torch.zeros_like(x).index_add(0, row, zero.to(widened)).index_select(0, row)
    target = row.reshape((-1,) + (1,) * (b.dim() - 1)).expand_as(m)
    product = (
        torch.ones_like(x)
        .scatter_reduce(0, target, m.masked_fill(zero, 1), "prod")
        .index_select(0, row)
    )
    others = torch.where(zero, product * (zeros == 1), product / m * (zeros == 0))
    dm = x.index_select(0, row) * others
    db = dvalues = None
    if need_b:
        db = torch.zeros_like(b, dtype=widened).index_add(0, column, dm * by_b).to(b.dtype)
    if need_values:
        assert values is not None
        dvalues = (dm * by_a).sum(tuple(range(values.dim(), b.dim())))
    return db, dvalues


def derivatives(
    message: str, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A message and its derivatives by b and by a."""
    one = torch.ones_like(b)
    if message == "mul":
        return a * b, a, b
    if message == "copy_b":
        return b, one, 0 * one
    if message == "copy_a":
        return a, 0 * one, one
    if message == "add":
        return a + b, one, one
    if message == "sub":
        return b - a, one, -one
    if message == "rsub":
        return a - b, -one, one
    if message == "div":
        return b / a, 1 / a, -b / (a * a)
    return a / b, -a / (b * b), 1 / b
