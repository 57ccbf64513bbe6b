"""The ways in which ranks share a sum of products, by the names of `split`.

    rows       fetch the rows of B, then one product: any reduction, message and gradient
    near       the product with edges from own nodes while rows travel; that with the other edges is
               added to it
    features   columns of B for rows by an all-to-all, a product of the whole graph with 1 / ranks
               of all columns, and an all-to-all back

All but the first serve sums and means with values that need no gradient.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist

from warploom import torch as products
from warploom.torch._graph import Graph
from warploom.torch._internals import for_each_of_batch
from warploom.torch._plan import Request, index_type
from warploom.torch._state import Made
from warploom.torch.distributed._exchange import (
    Exchange,
    Parts,
    Pending,
    reduce_number,
    swap,
    time_of,
)

Tensor = torch.Tensor
SPLITS = ("auto", "rows", "near", "features")


class Part(NamedTuple):
    """What a way knows of a partitioned graph. counts: nodes of each rank."""

    group: Any
    local: Graph
    exchange: Exchange
    wire: torch.dtype | None
    counts: list[int]

    @property
    def own(self) -> int:
        """Nodes of this rank."""
        return self.local.rows

    @property
    def first(self) -> int:
        """The place of this rank's first node where all nodes are in the order of ranks."""
        return sum(self.counts[: dist.get_rank(self.group)])

    def sources(self) -> Tensor:
        """The places of the edges' sources in that order. All ranks call it."""
        kind = index_type(sum(self.counts), 0, 0)
        own = torch.arange(self.own, device=self.local.device, dtype=kind) + self.first
        return self.exchange.start(own).wait().index_select(0, self.local.colind)


class Kept:
    """What was made of the values of the last product."""

    def __init__(self) -> None:
        self._known: Made | None = None

    def of(self, values: Tensor, make: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Any, ...]:
        """What is made of these; kept for the next product, unless it has other values."""
        if values.is_inference():  # counts no modifications
            return make(values)
        known = self._known
        if known is None or not known.is_of(values):
            known = self._known = None  # not both at the same time
            known = self._known = Made(make(values.detach()), values)
        return known.tensors


class Way(Protocol):
    """Computes sums of products of B (own, n) and their gradients; `values` are in CSR order."""

    def multiply(self, b: Tensor, values: Tensor | None, deterministic: bool) -> Tensor: ...

    def multiply_transposed(
        self, x: Tensor, values: Tensor | None, deterministic: bool
    ) -> Tensor: ...


class Sum(torch.autograd.Function):
    """A sum of products by a way, differentiable in b."""

    @staticmethod
    def forward(ctx: Any, b: Tensor, values: Tensor | None, way: Way, same: bool) -> Tensor:
        ctx.way, ctx.same = way, same
        ctx.save_for_backward(values)
        return way.multiply(b, values, same)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, x: Tensor) -> tuple[Tensor, None, None, None]:
        (values,), way = ctx.saved_tensors, ctx.way
        (found,) = for_each_of_batch(
            lambda given: [way.multiply_transposed(*given, values, ctx.same)], [x]
        )
        return found, None, None, None


def _transposed(graph: Graph, x: Tensor, values: Tensor | None, same: bool) -> Tensor:
    """The product with the transpose; without gradients."""
    kind = None if values is None else values.dtype
    request = Request(tuple(x.shape[1:]), x.dtype, kind, deterministic=same, transpose=True)
    return graph.plan(request).multiply(x, values)


class _Wired:
    """An exchange whose rows travel in the wire's type."""

    def __init__(self, part: Part) -> None:
        self.exchange, self.wire = part.exchange, part.wire

    def _start(self, b: Tensor) -> Pending:
        return self.exchange.start(b if self.wire is None else b.to(self.wire))

    def _start_back(self, gradient: Tensor) -> Pending:
        return self.exchange.start_back(gradient if self.wire is None else gradient.to(self.wire))

    def _add(self, pending: Pending, dtype: torch.dtype) -> Tensor:
        return self.exchange.add(pending.wait()).to(dtype)


class Rows(_Wired):
    """See the table above; here for sums only, to be tried beside the others."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.local = part.local

    def multiply(self, b: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        rows = self._start(b).wait().to(b.dtype)
        return products.spmm(self.local, rows, values, deterministic=deterministic)

    def multiply_transposed(self, x: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        gradient = _transposed(self.local, x, values, deterministic)
        return self._add(self._start_back(gradient), x.dtype)


class Near(_Wired):
    """Edges from own nodes, whose columns are places of nodes, and the others."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        local, own = part.local, part.own
        place = part.sources() - part.first
        self._is_near = is_near = (place >= 0) & (place < own)
        before = torch.nn.functional.pad(is_near.cumsum(0, dtype=local.rowptr.dtype), (1, 0))
        rowptr = before.index_select(0, local.rowptr)
        near, far = place[is_near].to(local.colind.dtype), local.colind[~is_near]
        self.near = Graph(rowptr, near, cols=own)
        self.far = Graph(local.rowptr - rowptr, far, cols=part.exchange.columns)
        self._values = Kept()

    def _divide(self, values: Tensor) -> tuple[Tensor, ...]:
        return values[self._is_near], values[~self._is_near]

    def _parts(self, values: Tensor | None) -> tuple[Tensor | None, ...]:
        return (None, None) if values is None else self._values.of(values, self._divide)

    def multiply(self, b: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        near, far = self._parts(values)
        pending = self._start(b)
        out = products.spmm(self.near, b, near, deterministic=deterministic)
        rows = pending.wait().to(b.dtype)
        return products.spmm(self.far, rows, far, deterministic=deterministic, out=out, beta=1.0)

    def multiply_transposed(self, x: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        near, far = self._parts(values)
        pending = self._start_back(_transposed(self.far, x, far, deterministic))
        return _transposed(self.near, x, near, deterministic).add_(self._add(pending, x.dtype))


class Features:
    """The whole graph on each rank, and 1 / ranks of all columns."""

    def __init__(self, part: Part) -> None:
        self.group, self.wire, self.counts = part.group, part.wire, part.counts
        self.ranks, self.own, nodes = len(part.counts), part.own, sum(part.counts)
        sources = part.sources()
        self._edges = edges = Parts.of(part.group, sources)
        kind = index_type(nodes, nodes, sum(edges.counts))
        degrees = Parts(part.group, part.counts).gather(part.local.degrees())
        rowptr = torch.nn.functional.pad(degrees.cumsum(0, dtype=kind), (1, 0))
        self.whole = Graph(rowptr, edges.gather(sources).to(kind), cols=nodes)
        self._kept = Kept()

    def _values(self, values: Tensor | None) -> Tensor | None:
        """The values of the whole graph, whose edges are those of one rank after the other."""
        if values is None:
            return None
        (whole,) = self._kept.of(values, lambda given: (self._edges.gather(given),))
        return whole  # type: ignore[no-any-return]

    def turn(self, b: Tensor) -> Tensor:
        """This rank's columns of all nodes' rows, from all columns of its own rows."""
        width = -(-b.shape[1] // self.ranks)
        sent = b if self.wire is None else b.to(self.wire)
        sent = torch.nn.functional.pad(sent, (0, width * self.ranks - b.shape[1]))
        sent = sent.view(self.own, self.ranks, width).transpose(0, 1)
        sent = sent.reshape(self.ranks * self.own, width)
        return swap(self.group, sent, [self.own] * self.ranks, self.counts).wait().to(b.dtype)

    def turn_back(self, c: Tensor, columns: int) -> Tensor:
        """The reverse."""
        sent = c if self.wire is None else c.to(self.wire)
        found = swap(self.group, sent, self.counts, [self.own] * self.ranks).wait()
        found = found.view(self.ranks, self.own, c.shape[1]).transpose(0, 1)
        return found.reshape(self.own, self.ranks * c.shape[1])[:, :columns].to(c.dtype)

    def multiply(self, b: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        whole = self._values(values)
        c = products.spmm(self.whole, self.turn(b), whole, deterministic=deterministic)
        return self.turn_back(c, b.shape[1])

    def multiply_transposed(self, x: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        whole = self._values(values)
        c = _transposed(self.whole, self.turn(x), whole, deterministic)
        return self.turn_back(c, x.shape[1])


# ---- choosing ----------------------------------------------------------------------------------

WAYS: dict[str, Callable[[Part], Way]] = {"rows": Rows, "near": Near, "features": Features}
_BYTES = 32  # of an edge of a graph with its transpose
_OPERANDS = 16  # tensors of nodes that a training step keeps


class Choice(NamedTuple):
    """The name of a way, and what decided for it. All ranks have equal ones.

    times: seconds of a product, by the names of the ways that were tried.
    expected: the same by the model.
    alone: what one device is expected to take.
    fits: whether one device holds the whole graph.
    small: why all nodes were given to rank 0.
    """

    name: str
    times: dict[str, float]
    expected: dict[str, float]
    alone: float = 0.0
    fits: bool = False
    columns: int = 0
    small: str = ""

    @property
    def is_too_small(self) -> bool:
        """Whether one device is expected to be quicker than all."""
        return self.fits and bool(self.times) and self.times[self.name] >= self.alone

    def explain(self) -> str:
        """Why."""
        if self.small:
            return f"all nodes are on rank 0: {self.small}"
        if not self.times:
            return f"split by {self.name}, as asked for"
        tried = [f"{name} {1e6 * t:.0f} us" for name, t in self.times.items()]
        tried += [
            f"{name} expected {1e6 * t:.0f} us"
            for name, t in self.expected.items()
            if name not in self.times
        ]
        text = f"split by {self.name} (for {self.columns} columns of float32: {', '.join(tried)}"
        text += f", one device expected {1e6 * self.alone:.0f} us)"
        return text + ("; too small for a gain" if self.is_too_small else "")


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def choose(part: Part, wanted: str, columns: int) -> Choice:
    """The way of this name. For "auto" the quickest of those tried with `columns` columns.

    The split by features is tried where the model expects a gain: two all-to-alls, at the speed
    that is measured here, and the product of the slowest rank. It needs memory for the whole graph.
    """
    if wanted != "auto":
        return Choice(wanted, {}, {})
    group, device, ranks = part.group, part.local.device, len(part.counts)
    b = torch.zeros((part.own, columns), device=device)

    def seconds(name: str) -> float:
        way = WAYS[name](part)
        return time_of(group, device, lambda: way.multiply(b, None, False))

    times = {name: seconds(name) for name in ("rows", "near")}

    operand = torch.zeros((part.local.cols, columns), device=device)
    product = time_of(group, device, lambda: products.spmm(part.local, operand))
    alone = ranks * product
    edges = reduce_number(group, device, part.local.nnz, dist.ReduceOp.SUM)
    free = reduce_number(group, device, _free_bytes(device), dist.ReduceOp.MIN)
    whole = _BYTES * edges
    expected = {}
    if whole <= free / 4:
        width = -(-columns // ranks)
        sent = torch.zeros((ranks * part.own, width), device=device)
        counts = [part.own] * ranks
        turn = time_of(group, device, lambda: swap(group, sent, counts, part.counts).wait())
        expected["features"] = 2 * turn + product
        if expected["features"] < min(times.values()):
            times["features"] = seconds("features")
    name = min(times, key=lambda key: times[key])
    fits = whole + _OPERANDS * 4 * columns * sum(part.counts) <= free / 2
    return Choice(name, times, expected, alone, fits, columns)
