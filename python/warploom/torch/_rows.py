"""Rows to which an index reduces the lines of a tensor, and the choice of what computes them.

A line is the part of a tensor that one element of an index belongs to. Either PyTorch's operators
compute (Rows), or the library multiplies by the matrix of the index, which is sorted once and
kept for as long as the index lives (Walks). `LEAST` has the sizes that decide.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from warploom.torch._eager import multiply
from warploom.torch._graph import Graph, OnceGraph
from warploom.torch._internals import assert_on_device, is_deterministic, is_dispatched, quick_apply
from warploom.torch._memory import memory_of
from warploom.torch._plan import (
    DENSE_TYPES,
    Request,
    current_stream,
    index_type,
    is_captured,
)


class Least(NamedTuple):
    """The sizes from which on the library computes: elements of src, and columns."""

    sums: int
    steps: int  # sums with a gradient
    columns_of_sums: int
    others: int
    columns: int  # of others, where the index is new and must be sorted first


# By device. On the H200 one call takes as long both ways at these sizes, or longer below.
LEAST = {
    "cpu": Least(1 << 14, 1 << 14, 1, 1 << 12, 4),
    "cuda": Least(1 << 16, 1 << 22, 2, 1 << 14, 64),
}
_HALVES = (torch.float16, torch.bfloat16)
# Elements of src behind the reduced dimension from which on dimensions before it are left there.
# Below, they become columns, which copies src.
_WIDE = 16
# Uses of an index after which its matrix is measured, which waits for the device and may compile. A
# mini-batch has fewer.
_MEASURED = 16


# ---- what is kept of an index --------------------------------------------------------------------


class Kept:
    """The matrices of an index: that which sums has a row for each row, and a column for each line;
    its transpose gathers. They are copies, so that the index may end."""

    __slots__ = ("made", "stream", "uses")

    def __init__(self, stream: int) -> None:
        self.made: dict[Any, Any] = {}  # by whether the matrix gathers; "places"
        self.stream, self.uses = stream, 0

    def graph(self, gathers: bool = False) -> Graph:
        """One of the matrices, measured when the index has been used often."""
        graph: Graph | None = self.made.get(gathers)
        if graph is None:
            other: Graph = self.made[not gathers]
            if gathers:  # the lines ascend
                graph = Graph(other._count(other.cols + 1), other.row(), cols=other.rows, once=True)
            else:
                _, rowptr, colind = other.held()  # a line in each row
                graph = OnceGraph(other.colind, colind, rowptr, other.nnz, other.cols, other.rows)
            self.made[gathers] = graph
        if graph.once and self.uses > _MEASURED and not is_captured(graph.index):
            graph = Graph(graph.rowptr, graph.colind, cols=graph.cols, perm=graph.perm)
            self.made[gathers] = graph
        return graph

    def places(self, count: int) -> Tensor:
        """The line of each position in the matrix which sums, in parts of this many, and behind
        them the number."""
        if "places" not in self.made:
            lines = self.graph().colind.long() % count
            self.made["places"] = pad(lines, (0, 1), value=count)
        return self.made["places"]  # type: ignore[no-any-return]


def find(index: Tensor, key: Any) -> Kept:
    """What is kept of an index under a key, which counts as a use."""
    memory, device = memory_of(index), index.get_device()
    stream, capturing = current_stream(device), is_captured(device)
    kept: Kept | None = None if memory is None else memory.made.get(key)
    if kept is None or capturing:  # what is made now may lie in the memory of a CUDA graph
        known, kept = kept, Kept(stream)
        if known is not None:
            kept.made, kept.uses = dict(known.made), known.uses
        if memory is not None and not capturing:
            memory.made[key] = kept
    elif kept.stream != stream:
        torch.cuda.synchronize(device)
        kept.stream = stream
    kept.uses += 1
    return kept


def row_count(index: Tensor) -> int:
    """One more than the largest index; kept, since it waits for the device."""
    memory = None if torch.compiler.is_compiling() or is_dispatched(index) else memory_of(index)
    made = {} if memory is None else memory.made
    if "rows" not in made:
        made["rows"] = int(index.max()) + 1 if index.numel() else 0
    return int(made["rows"])


# ---- the choice ----------------------------------------------------------------------------------


def _is_walked(src: Tensor, reduce: str, lines: int, is_known: bool) -> bool:
    """Whether the library computes. lines: of src; is_known: nothing must be sorted."""
    if torch.compiler.is_compiling() or src.dtype not in DENSE_TYPES or not src.numel():
        return False
    least = LEAST.get(src.device.type)
    if least is None or src.layout is not torch.strided or is_dispatched(src):
        return False
    if src.is_cuda and is_deterministic():  # PyTorch's operators add in any order
        return True
    if reduce in ("sum", "add"):
        if not is_known or src.numel() < least.columns_of_sums * lines:
            return False
        return src.numel() >= (least.steps if src.requires_grad else least.sums)
    # PyTorch's product is up to 1000 times slower where many lines have the same row.
    is_sorted_now = reduce == "mul" or src.numel() >= least.columns * lines
    return src.numel() >= least.others and (is_known or is_sorted_now)


def by_index(
    src: Tensor, index: Tensor, dim: int, rows: int, reduce: str, is_sorted: bool = False
) -> Rows:
    """The rows that an index reduces a tensor like src to along dim.

    index: lies along dim, or begins with the first dimension of src and is expanded to its shape.
    is_sorted: the index ascends, so that it takes no time to sort it.
    """
    shape, index = src.shape, _narrow(index, dim)
    to = dim if index.dim() in (1, dim + 1) else len(shape) - 1
    lines = math.prod(shape[: index.dim()]) if index.dim() > 1 else shape[dim]
    if rows and _is_walked(src, reduce, lines, True):
        is_narrow = index.dim() == 1 and math.prod(shape[dim + 1 :]) < _WIDE
        walks = Walks(shape, dim, 0 if is_narrow else to, rows, index)
        kept = walks.kept = find(index, (rows, *walks.layout))
        if kept.uses > 1 or is_sorted or _is_walked(src, reduce, lines, False):
            if not kept.made:
                kept.made[not is_sorted] = walks.of_index(is_sorted)
            return walks
    return Rows(shape, dim, to, rows, index)


def _narrow(index: Tensor, dim: int) -> Tensor:
    """The index without dimensions that it is expanded over: a line, where that is enough."""
    if index.dim() == 1:
        return index
    index = index.view(*index.shape, *[1] * (dim + 1 - index.dim()))
    for d, extent in enumerate(index.shape):
        if d != dim and extent > 1 and index.stride(d) == 0:
            index = index.narrow(d, 0, 1)
    if index.numel() == index.shape[dim]:
        return index.view(-1)
    return index.flatten(dim) if math.prod(index.shape[dim + 1 :]) == 1 else index


def by_pointers(src: Tensor, indptr: Tensor, extent: int, reduce: str) -> Rows:
    """The rows whose lines indptr separates, of a tensor like src. The first and the last row have
    the lines that lie before and behind all pointers.

    extent: of the lines along the last dimension of indptr.
    """
    dim = indptr.dim() - 1
    shape, rows = [*src.shape[:dim], extent, *src.shape[dim + 1 :]], indptr.shape[dim] + 1
    if math.prod(shape) and _is_walked(src, reduce, math.prod(shape[: dim + 1]), True):
        walks = Walks(shape, dim, dim, rows, indptr)
        kept = walks.kept = find(indptr, ("pointers", *walks.layout))
        if not kept.made:
            kept.made[False] = walks.of_pointers()
        return walks
    if torch.compiler.is_compiling() or is_dispatched(indptr):
        return Rows(shape, dim, dim, rows, _index_of(indptr, shape[: dim + 1]))
    kept = find(indptr, ("index", *shape[: dim + 1]))
    if "index" not in kept.made:
        kept.made["index"] = _index_of(indptr, shape[: dim + 1])
    return Rows(shape, dim, dim, rows, kept.made["index"])


def _index_of(indptr: Tensor, shape: Sequence[int]) -> Tensor:
    """The row of each line between pointers, in this shape."""
    places = torch.arange(shape[-1], device=indptr.device, dtype=indptr.dtype)
    bounds, places = (one.expand(*shape[:-1], -1).contiguous() for one in (indptr, places))
    return torch.searchsorted(bounds, places, right=True)


# ---- gradients of walks --------------------------------------------------------------------------


class _Linear(torch.autograd.Function):
    """Sums or means of lines, or of each line its row; differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Walks, reduce: str) -> Tensor:
        ctx.call = rows, reduce
        return rows.walk(x, reduce)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        rows, reduce = ctx.call
        if reduce == "mean":
            upstream = rows.divide(upstream)
        return _linear(upstream, rows, "sum" if reduce == "gather" else "gather"), None, None


class _Extreme(torch.autograd.Function):
    """See Rows.extreme; the line that is returned gets the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Walks, name: str) -> tuple[Tensor, Tensor]:
        graph = rows.kept.graph()
        request = Request((x.shape[1],), x.dtype, None, 1, name, "copy_b", is_deterministic())
        request = request._replace(argmax=True, positions=graph.rowptr.dtype)
        best, positions = graph.plan(request).multiply_argmax(x, None)
        places = rows.kept.places(rows.count)[positions.long()]  # of an empty row -1: the last one
        ctx.save_for_backward(places)
        ctx.mark_non_differentiable(places)
        ctx.shape = rows.parts, -1, x.shape[1]
        ctx.count = rows.count
        return best, places

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor, None, None]:
        places, upstream = ctx.saved_tensors[0].view(ctx.shape), upstream.reshape(ctx.shape)
        zeros = upstream.new_zeros(ctx.shape[0], ctx.count + 1, ctx.shape[2])
        lines = zeros.scatter_(1, places, upstream)[:, :-1]
        return lines.reshape(-1, ctx.shape[2]), None, None


class _Softmax(torch.autograd.Function):
    """See Rows.softmax; keeps nothing but its result. Differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Walks) -> Tensor:
        powers = rows.recentre(x)[0].exp_()
        result = powers.div_(rows.reduce(rows.reduce(powers, "sum"), "gather"))
        ctx.rows = rows
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (result,) = ctx.saved_tensors
        product = upstream * result
        return product - result * ctx.rows.reduce(ctx.rows.reduce(product, "sum"), "gather"), None


_linear, _extreme, _softmax = map(quick_apply, (_Linear, _Extreme, _Softmax))


# ---- rows ----------------------------------------------------------------------------------------


class Rows:
    """Reduces lines (parts, lines, columns) to rows (parts, rows, columns) by PyTorch's operators,
    and gives each line its row. Without parts there is one dimension less, as these are quicker.

    The dimension `dim` of `shape` is reduced. It moves to `to`: those before it are parts, which
    have rows of their own, and those behind it columns. index: of each line its row.
    """

    def __init__(self, shape: Sequence[int], dim: int, to: int, rows: int, index: Tensor) -> None:
        others = [*shape[:dim], *shape[dim + 1 :]]
        self._shape, self._columns = others[:to], others[to:]
        self.parts, self.count, self.rows = math.prod(self._shape), shape[dim], rows
        self._dims, self._given = (dim, to), index
        self.layout = (dim, to, self.count, *self._shape)
        self._axis = 1 if to else 0

    def _moved(self, x: Tensor) -> Tensor:
        dim, to = self._dims
        return x if dim == to else x.movedim(dim, to)

    def front(self, x: Tensor) -> Tensor:
        """The lines of src, or the rows of a result, in a type in which they may be added up."""
        x, parts = self._moved(x), [self.parts] if self._axis else []
        x = x.reshape(*parts, x.shape[self._dims[1]], math.prod(self._columns))
        return x.float() if x.dtype in _HALVES else x

    def back(self, x: Tensor) -> Tensor:
        """Lines in the shape of src, or rows in that of a result; contiguous."""
        dim, to = self._dims
        extent = x.shape[1] if x.dim() == 3 else x.shape[0] // self.parts
        x = x.reshape(*self._shape, extent, *self._columns)
        return x if dim == to else x.movedim(to, dim).contiguous()

    def _in_parts(self) -> Tensor:
        """The row of each line in its part, (lines,) or (parts, lines)."""
        index, (dim, to) = self._given, self._dims
        if index.dim() == 1:
            return index if index.shape[0] == self.count else index.expand(self.count)
        shape = [*self._shape]
        shape.insert(dim, self.count)
        return index.expand(shape).movedim(dim, to).reshape(self.parts, self.count)

    def _of(self, x: Tensor) -> Tensor:
        """The row of each element of lines; PyTorch's gather is wrong with an int32 that is
        expanded."""
        index = self._in_parts().long().unsqueeze(-1)
        return index.expand(*x.shape[: self._axis], -1, x.shape[-1])

    def _new(self, x: Tensor, number: int) -> Tensor:
        return x.new_full((*x.shape[: self._axis], self.rows, x.shape[-1]), number)

    def counts(self) -> Tensor:
        """The lines of each row, at least 1; one column."""
        ones = self._given.new_ones((*[self.parts] * self._axis, self.count, 1), dtype=torch.int64)
        return self._new(ones, 0).scatter_add_(self._axis, self._of(ones), ones).clamp_(1)

    def divide(self, y: Tensor) -> Tensor:
        """Sums divided by the lines of each row; of integers rounded down."""
        is_whole = not (y.is_floating_point() or y.is_complex())
        wide = y.float() if y.dtype in _HALVES else y
        return wide.div(self.counts(), rounding_mode="floor" if is_whole else None).to(y.dtype)

    def reduce(self, x: Tensor, name: str) -> Tensor:
        """The "sum", "mean" or "prod" of each row, or with "gather" of each line its row."""
        if name == "gather":
            return x.gather(self._axis, self._of(x))
        if name == "prod":
            return self._new(x, 1).scatter_reduce(self._axis, self._of(x), x, "prod")
        y = self._new(x, 0).scatter_add_(self._axis, self._of(x), x)
        return self.divide(y) if name == "mean" else y

    def sum_of_line(self, src: Tensor) -> Tensor | None:
        """The sum of each row of a src with one column, which needs none of the views that take as
        long as a small sum does; None where it has more, or the library computes."""
        dim, index = self._dims[0], self._given
        if type(self) is not Rows or src.numel() != index.numel() or index.dim() > 1:
            return None
        if src.dtype in _HALVES:
            return None
        shape = [*src.shape]
        shape[dim] = self.rows
        return src.new_zeros(shape).scatter_add_(dim, index.long().view(src.shape), src)

    def extreme(self, x: Tensor, name: str, want_places: bool) -> tuple[Tensor, Tensor | None]:
        """The maximum or minimum of each row, and the first line of the part that has it: the
        number of lines where there is none, and None where neither the caller nor a gradient wants
        it."""
        constant, index = x.detach(), self._of(x)
        best = self._new(constant, 0)
        best = best.scatter_reduce(self._axis, index, constant, "a" + name, include_self=False)
        if not (want_places or _is_differentiated(x)):
            return best, None
        is_best = (constant == best.gather(self._axis, index)) | (constant != constant)
        places = torch.arange(self.count, device=x.device).unsqueeze(1)
        places = torch.where(is_best, places, self.count)
        first = self._new(places, self.count).scatter_reduce(self._axis, index, places, "amin")
        if _is_differentiated(x):
            best = pad(x, (0, 0, 0, 1)).gather(self._axis, first)
        return best, first

    def recentre(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Lines less the maximum of their row, where that is finite, and these maxima."""
        top, _ = self.extreme(x.detach(), "max", False)
        top = torch.where(top.isfinite(), top, 0)
        return x - self.reduce(top, "gather"), top

    def softmax(self, x: Tensor) -> Tensor:
        """The softmax over the lines of each row."""
        powers = self.recentre(x)[0].exp()
        return powers / self.reduce(self.reduce(powers, "sum"), "gather")


def _is_differentiated(x: Tensor) -> bool:
    return x.requires_grad and torch.is_grad_enabled()


class Walks(Rows):
    """The same by the library, over the matrices of an index. Lines and rows of all parts are those
    of one matrix, (lines, columns) and (rows, columns)."""

    kept: Kept

    def of_index(self, is_sorted: bool) -> Graph:
        """The matrix that gives each line its row, or of an index that ascends that which sums."""
        index, total, lines = self._in_parts(), self.parts * self.rows, self.parts * self.count
        least, most = torch.aminmax(index)
        if index.is_cuda:
            assert_on_device((least >= 0) & (most < self.rows))
        elif not 0 <= int(least) <= int(most) < self.rows:
            raise IndexError("warploom: index: is outside of the rows; use a larger dim_size")
        if is_sorted:
            rows = torch.arange(self.rows, device=index.device, dtype=index.dtype)
            rows = rows.expand(*index.shape[:-1], -1).contiguous()
            return self._summing(torch.searchsorted(index.contiguous(), rows))
        dtype = index_type(lines, total, lines)
        row = (index + self._first(self.rows)).to(dtype).reshape(-1)  # a copy
        ends = torch.arange(lines + 1, device=index.device, dtype=dtype)
        return Graph(ends, row, cols=total, once=True)

    def of_pointers(self) -> Graph:
        """The matrix that sums the lines between pointers, and before and behind them."""
        first = pad(self._given.clamp(0, self.count), (1, 0))
        return self._summing(first.expand(*self._shape, -1).reshape(self.parts, -1))

    def _summing(self, first: Tensor) -> Graph:
        """The matrix that sums lines from the first one of each row in its part on."""
        lines = self.parts * self.count
        dtype = index_type(lines + 1, lines, lines)
        first = (first + self._first(self.count)).to(dtype).view(-1)
        columns = torch.arange(lines, device=first.device, dtype=dtype)
        return Graph(pad(first, (0, 1), value=lines), columns, cols=lines, once=True)

    def _first(self, extent: int) -> Tensor | int:
        """The first line or row of each part, (parts, 1)."""
        if self.parts == 1:
            return 0
        return torch.arange(self.parts, device=self._given.device).unsqueeze(1) * extent

    def front(self, x: Tensor) -> Tensor:
        return self._moved(x).reshape(-1, math.prod(self._columns))

    def counts(self) -> Tensor:
        return self.kept.graph().degrees().clamp(1).unsqueeze(1)

    def walk(self, x: Tensor, name: str) -> Tensor:
        """The same, or an extreme of each row; of linear ones without a gradient."""
        gathers = name == "gather"
        graph, name = self.kept.graph(gathers), "sum" if gathers else name
        return multiply(graph, x, None, name, "copy_b", is_deterministic())

    def reduce(self, x: Tensor, name: str) -> Tensor:
        is_linear = x.requires_grad and name != "prod"
        return _linear(x, self, name) if is_linear else self.walk(x, name)

    def extreme(self, x: Tensor, name: str, want_places: bool) -> tuple[Tensor, Tensor | None]:
        if want_places or _is_differentiated(x):
            return _extreme(x, self, name)  # type: ignore[no-any-return]
        return self.walk(x, name), None

    def softmax(self, x: Tensor) -> Tensor:
        return _softmax(x, self)  # type: ignore[no-any-return]
