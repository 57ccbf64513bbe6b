"""The ways in which ranks share a sum of products, by the names of `split`.

    rows       fetch the rows of B, then one product: any reduction, message and gradient
    near       the product with edges from own nodes while rows travel; that with the other edges is
               added to it
    columns    groups of columns of B, of which one travels while the one before is multiplied
    features   columns of B for rows by an all-to-all, a product of the whole graph with 1 / ranks
               of all columns, and an all-to-all back

All but the first serve sums and means with values that need no gradient.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Protocol

import torch
import torch.distributed as dist

from warploom import torch as products
from warploom.torch._graph import Graph
from warploom.torch._plan import Request
from warploom.torch._state import TensorState
from warploom.torch.distributed._exchange import (
    Exchange,
    Parts,
    Pending,
    reduce_number,
    swap,
    time_of,
)

Tensor = torch.Tensor
SPLITS = ("auto", "rows", "near", "columns", "features")


class Part(NamedTuple):
    """What a way knows of a partitioned graph.

    counts: nodes of each rank.
    position: of each node where nodes are in the order of ranks.
    edges: the whole graph's edge_index, or None where a rank has only its own edges.
    numbers: of the edges of `local` among those that the rank passed, in CSR order.
    """

    group: Any
    local: Graph
    exchange: Exchange
    wire: torch.dtype | None
    counts: list[int]
    position: Tensor
    edges: Tensor | None
    numbers: Tensor

    @property
    def own(self) -> int:
        """Nodes of this rank."""
        return self.local.rows


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
        (values,) = ctx.saved_tensors
        return ctx.way.multiply_transposed(x, values, ctx.same), None, None, None


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
        place = torch.arange(own, device=local.device, dtype=torch.int64).unsqueeze(1)
        rank = dist.get_rank(part.group)
        marked = torch.cat([place, torch.full_like(place, rank)], 1)
        found = part.exchange.start(marked).wait()
        place, owner = found[local.colind.long()].unbind(1)
        is_near = owner == rank
        before = torch.nn.functional.pad(is_near.cumsum(0), (1, 0))
        rowptr = before[local.rowptr.long()].to(local.rowptr.dtype)
        self.near_at, self.far_at = is_near.nonzero().squeeze(1), (~is_near).nonzero().squeeze(1)
        near = place[self.near_at].to(local.colind.dtype)
        self.near = Graph(rowptr, near, cols=own)
        far = local.colind[self.far_at]
        self.far = Graph(local.rowptr - rowptr, far, cols=part.exchange.columns)

    def _parts(self, values: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        if values is None:
            return None, None
        return values[self.near_at], values[self.far_at]

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


GROUPS = 4  # of columns
_LEAST = 16  # columns of a group


class Columns(Rows):
    """The product of `local`, a group of columns after the other."""

    def _slices(self, n: int) -> list[slice]:
        width = max(-(-n // GROUPS), _LEAST)
        return [slice(begin, min(begin + width, n)) for begin in range(0, n, width)]

    def multiply(self, b: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        out = b.new_empty((self.local.rows, b.shape[1]))
        slices = self._slices(b.shape[1])
        pending = [self._start(b[:, slices[0]])] if slices else []
        for at, columns in enumerate(slices):
            if at + 1 < len(slices):
                pending.append(self._start(b[:, slices[at + 1]]))
            rows = pending.pop(0).wait().to(b.dtype)
            products.spmm(
                self.local, rows, values, deterministic=deterministic, out=out[:, columns]
            )
        return out

    def multiply_transposed(self, x: Tensor, values: Tensor | None, deterministic: bool) -> Tensor:
        out = torch.empty_like(x)
        before: tuple[slice, Pending] | None = None
        for columns in self._slices(x.shape[1]):
            gradient = _transposed(self.local, x[:, columns], values, deterministic)
            pending = self._start_back(gradient)
            if before is not None:
                out[:, before[0]] = self._add(before[1], x.dtype)
            before = columns, pending
        if before is not None:
            out[:, before[0]] = self._add(before[1], x.dtype)
        return out


class Features:
    """The whole graph on each rank, and 1 / ranks of all columns."""

    def __init__(self, part: Part) -> None:
        assert part.edges is not None
        self.group, self.wire, self.counts = part.group, part.wire, part.counts
        self.ranks, self.own, nodes = len(part.counts), part.own, sum(part.counts)
        self.whole = Graph.from_edge_index(part.position[part.edges], rows=nodes, cols=nodes)
        self._parts = Parts.of(part.group, part.numbers)
        numbers = self._parts.gather(part.numbers)
        place = torch.empty_like(numbers)
        place[numbers] = torch.arange(numbers.shape[0], device=numbers.device)
        assert self.whole.perm is not None
        self.places = place[self.whole.perm.long()]  # of the whole graph's edges in _parts
        self._known: tuple[TensorState, Tensor] | None = None

    def _values(self, values: Tensor | None) -> Tensor | None:
        """The values of the whole graph; those of the last tensor are kept."""
        if values is None:
            return None
        known = self._known
        if known is None or not known[0].is_of(values, known[1]):
            found = self._parts.gather(values.detach()).index_select(0, self.places)
            known = self._known = TensorState(values), found
        return known[1]

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

_WAYS: dict[str, Any] = {"rows": Rows, "near": Near, "columns": Columns, "features": Features}
_BYTES = 32  # of an edge of a graph with its transpose
_OPERANDS = 16  # tensors of nodes that a training step keeps


class Choice(NamedTuple):
    """A way, and what decided for it. All ranks have equal ones.

    times: seconds of a product, by the names of the ways that were tried.
    expected: the same by the model.
    alone: what one device is expected to take.
    fits: whether one device holds the whole graph.
    small: why all nodes were given to rank 0.
    """

    name: str
    way: Way
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
        return Choice(wanted, _WAYS[wanted](part), {}, {})
    group, device, ranks = part.group, part.local.device, len(part.counts)
    b = torch.zeros((part.own, columns), device=device)

    def seconds(way: Way) -> float:
        return time_of(group, device, lambda: way.multiply(b, None, False))

    ways: dict[str, Way] = {name: _WAYS[name](part) for name in ("rows", "near", "columns")}
    times = {name: seconds(way) for name, way in ways.items()}

    operand = torch.zeros((part.local.cols, columns), device=device)
    product = time_of(group, device, lambda: products.spmm(part.local, operand))
    alone = ranks * product
    edges = reduce_number(group, device, part.local.nnz, dist.ReduceOp.SUM)
    free = reduce_number(group, device, _free_bytes(device), dist.ReduceOp.MIN)
    whole = _BYTES * edges
    expected = {}
    if part.edges is not None and whole <= free / 4:
        width = -(-columns // ranks)
        sent = torch.zeros((ranks * part.own, width), device=device)
        counts = [part.own] * ranks
        turn = time_of(group, device, lambda: swap(group, sent, counts, part.counts).wait())
        expected["features"] = 2 * turn + product
        if expected["features"] < min(times.values()):
            ways["features"] = Features(part)
            times["features"] = seconds(ways["features"])
    name = min(times, key=lambda key: times[key])
    fits = whole + _OPERANDS * 4 * columns * sum(part.counts) <= free / 2
    return Choice(name, ways[name], times, expected, alone, fits, columns)
