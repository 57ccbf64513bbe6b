"""What ranks send each other: checks that they agree, and the exchanges of rows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Union

import torch
import torch.distributed as dist

from warploom import torch as products
from warploom.torch._graph import Graph, need
from warploom.torch._internals import for_each_of_batch

Tensor = torch.Tensor
EXCHANGES = ("auto", "all", "needed")


def agree(group: Any, device: torch.device, numbers: dict[str, int]) -> None:
    """Raise ValueError on every rank if these numbers differ between ranks."""
    own = torch.tensor(list(numbers.values()), device=device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, own, group=group)
    for rank, other in enumerate(found):
        for name, first, value in zip(numbers, found[0].tolist(), other.tolist()):
            need(first == value, f"{name}: rank 0 has {first}, rank {rank} has {value}")


def reduce_number(group: Any, device: torch.device, value: float, operation: Any) -> float:
    """The reduction of a number over all ranks, equal on each."""
    number = torch.tensor([value], device=device, dtype=torch.float64)
    dist.all_reduce(number, operation, group=group)
    return float(number)


class Pending:
    """Rows that may still travel. `wait` lets the current stream wait for them.

    kept: what is sent, which must live until then.
    """

    def __init__(self, rows: Tensor, work: Any = None, kept: Tensor | None = None) -> None:
        self._rows, self._work, self._kept = rows, work, kept

    def wait(self) -> Tensor:
        """The rows."""
        if self._work is not None:
            self._work.wait()
            self._work = self._kept = None
        return self._rows


def swap(group: Any, sent: Tensor, out: list[int], back: list[int]) -> Pending:
    """Send out[r] rows of `sent` to rank r, and get the back[r] rows that come from it."""
    sent = sent.contiguous()
    received = sent.new_empty((sum(back), *sent.shape[1:]))
    work = dist.all_to_all_single(received, sent, back, out, group=group, async_op=True)
    return Pending(received, work, sent)


# ---- the ways to fetch rows --------------------------------------------------------------------


class OwnRows:
    """One rank owns all nodes, so that nothing travels."""

    name = "own"
    received = 0

    def __init__(self, group: Any, own: int) -> None:
        self.group, self.columns = group, own

    def start(self, b: Tensor) -> Pending:
        """The rows of all columns, which travel from now on."""
        return Pending(b)

    def start_back(self, gradient: Tensor) -> Pending:
        """The gradients of rows, on their way to the rows' owners."""
        return Pending(gradient)

    def add(self, arrived: Tensor) -> Tensor:
        """The gradient of this rank's rows from what `start_back` brought."""
        return arrived


class AllRows:
    """Each rank gets all rows: rank r's begin at r * widest."""

    name = "all"

    def __init__(self, group: Any, own: int, widest: int) -> None:
        self.group, self.own, self.widest = group, own, widest
        self.ranks = dist.get_world_size(group)
        self.columns = self.ranks * widest
        self.received = self.columns - widest

    def _widened(self, b: Tensor) -> Tensor:
        """As many rows as any rank has."""
        if self.own < self.widest:
            rest = b.new_zeros((self.widest - self.own, *b.shape[1:]))
            b = torch.cat([b, rest])
        return b.contiguous()

    def start(self, b: Tensor) -> Pending:
        b = self._widened(b)
        found = b.new_empty((self.columns, *b.shape[1:]))
        work = dist.all_gather_into_tensor(found, b, group=self.group, async_op=True)
        return Pending(found, work, b)

    def start_back(self, gradient: Tensor) -> Pending:
        gradient = gradient.contiguous()
        own = gradient.new_empty((self.widest, *gradient.shape[1:]))
        work = dist.reduce_scatter_tensor(own, gradient, group=self.group, async_op=True)
        return Pending(own, work, gradient)

    def add(self, arrived: Tensor) -> Tensor:
        """See OwnRows: the ranks' gradients were added on the way."""
        return arrived[: self.own]


class NeededRows:
    """Each rank gets the rows that its edges read, by owner and place."""

    name = "needed"

    def __init__(self, group: Any, own: int, widest: int, keys: Tensor) -> None:
        ranks = dist.get_world_size(group)
        counts = torch.bincount(keys // widest, minlength=ranks)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts, group=group)
        self.group = group
        self.columns = keys.shape[0]
        self.get, self.send = counts.tolist(), asked.tolist()
        self.places = swap(group, keys % widest, self.get, self.send).wait()
        rank = dist.get_rank(group)
        self.received = self.columns - self.get[rank]
        lines = torch.arange(self.places.shape[0], device=keys.device)
        # Adds what the ranks send back in an order that is always the same.
        self.adding = Graph.from_edge_index(
            torch.stack([lines, self.places]), rows=own, cols=lines.shape[0]
        )

    def start(self, b: Tensor) -> Pending:
        return swap(self.group, b.index_select(0, self.places), self.send, self.get)

    def start_back(self, gradient: Tensor) -> Pending:
        return swap(self.group, gradient, self.get, self.send)

    def add(self, arrived: Tensor) -> Tensor:
        flat = arrived.reshape(arrived.shape[0], math.prod(arrived.shape[1:]))
        added = products.spmm(self.adding, flat, message="copy_b")
        return added.reshape(added.shape[0], *arrived.shape[1:])


class Parts:
    """Tensors of which rank r has counts[r] rows, gathered one rank after the other."""

    def __init__(self, group: Any, counts: list[int]) -> None:
        self.counts = counts
        own = counts[dist.get_rank(group)]
        self._rows = AllRows(group, own, max(1, *counts))

    @classmethod
    def of(cls, group: Any, x: Tensor) -> Parts:
        """Those of this rank's tensor. All ranks call it."""
        counts = torch.zeros(dist.get_world_size(group), device=x.device, dtype=torch.int64)
        counts[dist.get_rank(group)] = x.shape[0]
        dist.all_reduce(counts, group=group)
        return cls(group, counts.tolist())

    def gather(self, x: Tensor) -> Tensor:
        """The rows of all ranks, on each."""
        parts = torch.split(self._rows.start(x).wait(), self._rows.widest)
        return torch.cat([part[:count] for part, count in zip(parts, self.counts)])


Exchange = Union[OwnRows, AllRows, NeededRows]


class Fetch(torch.autograd.Function):
    """The rows of all columns; the backward pass adds their gradients at the owners."""

    @staticmethod
    def forward(ctx: Any, b: Tensor, exchange: Exchange, wire: torch.dtype | None) -> Tensor:
        ctx.exchange, ctx.wire, ctx.dtype = exchange, wire, b.dtype
        return exchange.start(b if wire is None else b.to(wire)).wait().to(b.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        exchange, wire = ctx.exchange, ctx.wire

        def add_up(given: Sequence[Tensor]) -> list[Tensor]:
            sent = given[0] if wire is None else given[0].to(wire)
            return [exchange.add(exchange.start_back(sent).wait()).to(ctx.dtype)]

        (found,) = for_each_of_batch(add_up, [gradient])
        return found, None, None


# ---- trials ------------------------------------------------------------------------------------

_TRIALS = 3


def time_of(group: Any, device: torch.device, call: Callable[[], Any]) -> float:
    """Seconds that the slowest rank takes for a call; the least of some calls."""
    times = []
    for _ in range(1 + _TRIALS):  # the first one opens connections and makes plans
        # A barrier on this device. dist.barrier uses the current one, and warns with NCCL.
        reduce_number(group, device, 0, dist.ReduceOp.SUM)
        begin = time.perf_counter()
        call()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - begin)
    return reduce_number(group, device, min(times[1:]), dist.ReduceOp.MAX)
