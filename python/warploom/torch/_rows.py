"""Rows to which an index reduces the lines of a tensor, and the choice of what computes them.

A line is the part of a tensor that one element of an index belongs to. The library multiplies by a
matrix with a column for each line, so it walks over the lines of each row. These are sorted once
and kept for as long as the index lives. Small tensors, and what the library does not multiply, are
left to PyTorch's operators. `LEAST` has the sizes that decide.
"""

from __future__ import annotations

import atexit
import math
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from warploom.torch._eager import multiply
from warploom.torch._graph import Graph
from warploom.torch._internals import is_deterministic, is_dispatched, quick_apply
from warploom.torch._plan import (
    DENSE_TYPES,
    Request,
    convert_pair,
    current_stream,
    index_type,
    is_captured,
)
from warploom.torch._state import TensorState, used

# ---- what is kept of an index --------------------------------------------------------------------


class Known:
    """What was made of an index as it is now. It keeps copies, so that the index may end."""

    __slots__ = ("made", "stream", "uses", "version")

    def __init__(self, version: int, stream: int) -> None:
        self.version, self.stream = version, stream
        self.made: dict[Any, Any] = {}
        self.uses = 0

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """What has this key, made at its first use."""
        if key not in self.made:
            with torch.inference_mode(False), torch.no_grad():
                self.made[key] = make()
        return self.made[key]

    def graph(self, key: Any, make: Callable[[], Graph]) -> Graph:
        """The matrix of this key, measured when the index has been used often."""
        graph: Graph = self.keep(key, make)
        if graph.once and self.uses > _MEASURED and not is_captured(graph.index):
            graph = Graph(graph.rowptr, graph.colind, cols=graph.cols, perm=graph.perm)
            self.made[key] = graph
        return graph


_MOST_STORAGES, _MOST_VIEWS = 64, 8
# By the memory of an index, and by its place in it; the oldest come first.
_known: weakref.WeakKeyDictionary[Any, dict[Any, Known]] = weakref.WeakKeyDictionary()
# Graphs end while the modules that free them are still there.
atexit.register(_known.clear)


def look_up(index: Tensor) -> Known:
    """What is known of an index; nothing that is kept where the index counts no modifications, or
    where memory belongs to a CUDA graph."""
    device = index.get_device()
    stream, capturing = current_stream(device), is_captured(device)
    if index.is_inference():
        return Known(0, stream)
    storage, version = index.untyped_storage(), index._version
    views = _known.get(storage, {})
    key = index.storage_offset(), index.shape, index.stride(), index.dtype
    found = views.get(key)
    is_new = found is None or found.version != version
    if found is None or is_new or (capturing and found.stream != stream):
        found = Known(version, stream)
        if not capturing:
            views[key] = found
            _known[storage] = views
            for full, most in ((views, _MOST_VIEWS), (_known, _MOST_STORAGES)):
                if len(full) > most:
                    full.pop(next(iter(full)), None)
        return found
    if found.stream != stream:
        torch.cuda.synchronize(device)
        found.stream = stream
    if (states := used.states) is not None:
        states.append((TensorState(index), (index, found)))
    if capturing:
        kept, found = found, Known(version, stream)
        found.made, found.uses = dict(kept.made), kept.uses
    return found


def row_count(index: Tensor) -> int:
    """One more than the largest index; kept, since it waits for the device."""
    if index.numel() == 0:
        return 0
    if torch.compiler.is_compiling() or index.numel() < _SMALLEST or is_dispatched(index):
        return int(index.max()) + 1
    return look_up(index).keep("rows", lambda: int(index.max()) + 1)  # type: ignore[no-any-return]


# ---- the choice ----------------------------------------------------------------------------------


class Least(NamedTuple):
    """The size from which on the library computes.

    known: elements of src, where the index is sorted already.
    fresh: elements of src, where it must be sorted first.
    columns: elements of a line, where it must be sorted first.
    """

    known: int
    fresh: int
    columns: int


# By device, and by what is computed: sums; what PyTorch has a slow operator for; what it has
# several operators for.
LEAST = {
    ("cpu", "sum"): Least(1 << 14, 1 << 15, 4),
    ("cpu", "slow"): Least(1 << 13, 1 << 14, 1),
    ("cpu", "several"): Least(1 << 11, 1 << 11, 1),
    ("cuda", "sum"): Least(1 << 16, 1 << 21, 16),
    ("cuda", "slow"): Least(1 << 16, 1 << 20, 4),
    ("cuda", "several"): Least(1 << 14, 1 << 18, 1),
}
_SMALLEST = min(least.known for least in LEAST.values())
# Elements of src behind the reduced dimension from which on dimensions before it are left there.
# Below, they become columns, which copies src.
_WIDE = 16
# Uses of an index after which its matrix is measured, which waits for the device and may compile. A
# mini-batch has fewer.
_MEASURED = 16


def _least(src: Tensor, kind: str) -> Least | None:
    """The sizes for a tensor, or None where the library cannot compute."""
    if torch.compiler.is_compiling() or src.dtype not in DENSE_TYPES or not src.numel():
        return None
    least = LEAST.get((src.device.type, kind))
    if src.is_cuda and is_deterministic():  # PyTorch's operators add in any order
        least = Least(0, 0, 0)
    return None if src.layout is not torch.strided or is_dispatched(src) else least


def spread(index: Tensor, shape: Sequence[int], dim: int) -> Tensor:
    """The index with as many dimensions as src, of which those that it is expanded over are 1.

    An index of one dimension lies along dim; another one begins with the first dimension.
    """
    if index.dim() == 1:
        return index.view([1] * dim + [-1] + [1] * (len(shape) - dim - 1))
    index = index.view([*index.shape, *[1] * (len(shape) - index.dim())])
    for d, extent in enumerate(index.shape):
        if d != dim and extent > 1 and index.stride(d) == 0:
            index = index.narrow(d, 0, 1)
    return index


_OPERATORS = {
    "sum": "sum", "add": "sum", "mean": "mean", "mul": "prod", "min": "amin", "max": "amax"
}  # fmt: skip


def by_operator(src: Tensor, index: Tensor, dim: int, rows: int, reduce: str) -> Tensor | None:
    """The reduction by one operator of PyTorch, where that is enough and src is small."""
    operator, is_half = _OPERATORS.get(reduce), src.dtype in (torch.float16, torch.bfloat16)
    least = _least(src, "sum" if operator in ("sum", "mean") else "slow")
    if operator is None or is_half or (least is not None and src.numel() >= least.known):
        return None
    if operator == "mean" and (src.requires_grad or not src.is_floating_point()):
        return None  # its gradient reads the result, which callers of sums may change
    # PyTorch's gather is wrong with an index of int32 that is expanded.
    index, size = index.long().expand(src.shape), list(src.shape)
    size[dim] = rows
    if operator == "sum":
        return src.new_zeros(size).scatter_add_(dim, index, src)
    is_product = operator == "prod"
    start = src.new_full(size, is_product)
    return start.scatter_reduce(dim, index, src, operator, include_self=is_product)


def by_index(
    src: Tensor, index: Tensor, dim: int, rows: int, kind: str, is_sorted: bool = False
) -> Rows:
    """The rows that an index, as `spread` gives it, reduces a tensor like src to.

    kind: of LEAST. is_sorted: the index ascends, so that it takes no time to sort it.
    """
    shape, least, known = src.shape, _least(src, kind), None
    if least is not None and rows and src.numel() >= least.known:
        known = look_up(index)
        known.uses += 1
    parts = [d for d in range(len(shape)) if d != dim and index.shape[d] > 1]
    if known is not None and not parts and math.prod(shape[dim + 1 :]) >= _WIDE:
        parts = [d for d in range(dim) if shape[d] > 1]
    order = [*parts, dim, *(d for d in range(len(shape)) if d != dim and d not in parts)]
    extents = [shape[d] for d in order[: len(parts) + 1]]
    key = rows, *extents
    if known is not None and least is not None:
        is_fresh = not (is_sorted or known.uses > 1 or ("graph", *key) in known.made)
        is_narrow = src.numel() < least.columns * math.prod(extents)
        if is_fresh and (src.numel() < least.fresh or is_narrow):
            known = None
    index = index.permute(order).flatten(len(parts)) if dim or parts else index.flatten()
    index = index if index.shape[-1] == shape[dim] and not parts else index.expand(extents)
    if parts:
        make = partial(_number, index, rows)
        index = make() if known is None else known.keep(("index", *key), make)
    return Rows(shape, order, len(parts), rows, index.reshape(-1), None, known, key)


def _number(index: Tensor, rows: int) -> Tensor:
    """The row of each line where each part of src has rows of its own."""
    own = index.long().flatten(0, -2)
    end = own.shape[0] * rows
    first = torch.arange(own.shape[0], device=own.device).unsqueeze(1) * rows
    return (own + first).masked_fill_((own < 0) | (own >= rows), end)


def by_pointers(src: Tensor, indptr: Tensor, extent: int) -> Rows:
    """The rows whose lines indptr separates, of a tensor like src.

    extent: of the lines along the last dimension of indptr.
    """
    dim = indptr.dim() - 1
    shape, rows = [*src.shape[:dim], extent, *src.shape[dim + 1 :]], max(indptr.shape[dim] - 1, 0)
    least, known = _least(src, "several"), None  # operators would need an index first
    key = rows, *shape[: dim + 1]
    if least is not None and rows and math.prod(shape) >= max(least.known, 1):
        known = look_up(indptr)
        known.uses += 1
    make = partial(_separate, indptr, shape[: dim + 1])
    rowptr = make() if known is None else known.keep(("rowptr", *key), make)
    return Rows(shape, range(len(shape)), dim, rows, None, rowptr, known, key)


def _separate(indptr: Tensor, extents: Sequence[int]) -> Tensor:
    """The rowptr of segments. Lines before, between and behind those of each part of src belong to
    rows that are not the caller's."""
    *parts, extent = extents
    count = math.prod(extents)
    first = torch.arange(math.prod(parts), device=indptr.device).unsqueeze(1) * extent
    bounds = indptr.clamp(0, extent).expand(*parts, -1).reshape(-1, indptr.shape[-1]) + first
    rowptr = bounds.to(index_type(count + 1, count, count)).view(-1)
    return pad(pad(rowptr, (1, 0)), (0, 1), value=count)


# ---- gradients -----------------------------------------------------------------------------------


class _Sum(torch.autograd.Function):
    """The sums or means of lines; differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Rows, reduce: str) -> Tensor:
        ctx.call = rows, reduce
        ctx.save_for_backward(rows.given)
        return rows.walk(x, reduce)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        rows, reduce = ctx.call
        _ = ctx.saved_tensors  # raises where the index was modified
        if reduce == "mean":
            upstream = rows.graph.divide_by_degrees(upstream)
        return _gather(upstream, rows), None, None


class _Gather(torch.autograd.Function):
    """Of each line its row; differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, rows: Rows) -> Tensor:
        ctx.rows = rows
        ctx.save_for_backward(rows.given)
        return y.index_select(0, rows.index)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        _ = ctx.saved_tensors  # raises where the index was modified
        return _sum(upstream, ctx.rows, "sum"), None


class _Extreme(torch.autograd.Function):
    """See Rows.extreme; the line that is returned gets the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Rows, name: str) -> tuple[Tensor, Tensor]:
        graph, columns = rows.graph, (x.shape[1],)
        request = Request(columns, x.dtype, None, 1, name, "copy_b", is_deterministic())
        request = request._replace(argmax=True, positions=graph.rowptr.dtype)
        best, positions = graph.plan(request).multiply_argmax(x, None)
        lines = rows.line_of[positions.long()]  # -1 of an empty row finds the last element
        ctx.save_for_backward(lines)
        ctx.mark_non_differentiable(lines)
        ctx.count = x.shape[0]
        return best, lines

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor, None, None]:
        (lines,) = ctx.saved_tensors
        zeros = upstream.new_zeros(ctx.count + 1, upstream.shape[1])
        return zeros.scatter_(0, lines, upstream)[:-1], None, None


class _Softmax(torch.autograd.Function):
    """See Rows.softmax; keeps nothing but its result. Differentiable any number of times."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Rows) -> Tensor:
        powers = rows.recentre(x)[0].exp_()
        result = powers.div_(rows.gather(rows.sum(powers)))
        ctx.rows = rows
        ctx.save_for_backward(result, rows.given)
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        result, _ = ctx.saved_tensors
        product = upstream * result
        return product - result * ctx.rows.gather(ctx.rows.sum(product)), None


_sum, _gather, _extreme, _softmax = map(quick_apply, (_Sum, _Gather, _Extreme, _Softmax))


# ---- rows ----------------------------------------------------------------------------------------


class Rows:
    """Reduces lines (lines, columns) to rows (rows, columns), and gives each line its row.

    order: the dimensions of src: those of its parts, which have rows of their own, the dimension
        that is reduced, and those of the columns.
    rows: of each part.
    given: the row of each line, or None where rowptr says it. rowptr has one more row before each
        part, and one behind all.
    known: keeps the matrix under this key; None: PyTorch's operators compute.
    """

    def __init__(
        self, shape: Sequence[int], order: Sequence[int], depth: int, rows: int,
        given: Tensor | None, rowptr: Tensor | None, known: Known | None, key: Any,
    ) -> None:  # fmt: skip
        self.parts, self.columns = [
            [shape[d] for d in ds] for ds in (order[:depth], order[depth + 1 :])
        ]
        self.count, self.rows = shape[order[depth]], rows
        self.lines = math.prod(self.parts) * self.count
        self.total = math.prod(self.parts) * rows if rowptr is None else rowptr.shape[0] - 1
        self.given, self.rowptr, self._known, self._key = given, rowptr, known, key
        self._order = None if list(order) == sorted(order) else order

    def _reorder(self, x: Tensor) -> Tensor:
        return x if self._order is None else x.permute(*self._order)

    def _shape(self, x: Tensor, extent: int) -> Tensor:
        x = x.reshape(*self.parts, extent, *self.columns)
        if self._order is None:
            return x
        inverse = sorted(range(len(self._order)), key=self._order.__getitem__)
        return x.permute(*inverse).contiguous()

    def front(self, src: Tensor) -> Tensor:
        """The lines of src; for PyTorch's operators in the type in which these add up."""
        x = self._reorder(src).reshape(self.lines, math.prod(self.columns))
        is_half = src.dtype in (torch.float16, torch.bfloat16)
        return x.float() if is_half and self._known is None else x

    def restore(self, x: Tensor) -> Tensor:
        """Lines in the shape of src."""
        return self._shape(x, self.count)

    def back(self, y: Tensor) -> Tensor:
        """Rows in the shape of a result."""
        if self.rowptr is not None:
            y = y[:-1].reshape(math.prod(self.parts), self.rows + 1, y.shape[1])[:, 1:]
        return self._shape(y, self.rows)

    def lead(self, out: Tensor) -> Tensor:
        """The rows of a tensor with the shape of a result."""
        y = self._reorder(out).reshape(math.prod(self.parts), self.rows, math.prod(self.columns))
        if self.rowptr is not None:
            y = pad(pad(y, (0, 0, 1, 0)).flatten(0, 1), (0, 0, 0, 1)).unsqueeze(0)
        return y.flatten(0, 1)

    def places(self, lines: Tensor) -> Tensor:
        """Lines as places along the dimension that is reduced, in the shape of a result."""
        if self.parts:
            lines = torch.where(lines == self.lines, self.count, lines % max(self.count, 1))
        return self.back(lines)

    @property
    def graph(self) -> Graph:
        """The matrix of a reduction that the library computes."""
        assert self._known is not None
        return self._known.graph(("graph", *self._key), self._make_graph)

    def _make_graph(self) -> Graph:
        if self.rowptr is not None:
            lines = torch.arange(self.lines, device=self.rowptr.device, dtype=self.rowptr.dtype)
            return Graph(self.rowptr, lines, cols=self.lines, once=True)
        assert self.given is not None
        index = self.given.contiguous()
        lines = torch.arange(self.lines, device=index.device, dtype=index.dtype)
        made = convert_pair(index, lines, self.total, self.lines)
        if not index.is_cuda and int(made[0][-1]) != self.lines:  # a GPU would wait
            raise IndexError("warploom: index: is outside of the rows; use a larger dim_size")
        return Graph._sorted_once(*made, self.total, self.lines)

    @property
    def index(self) -> Tensor:
        """The row of each line."""
        if self.given is not None:
            return self.given
        rowptr = self.rowptr
        assert rowptr is not None

        def make() -> Tensor:
            ends = rowptr[1:-1].long()
            passed = ends.new_zeros(self.lines + 1).index_add_(0, ends, torch.ones_like(ends))
            return passed.cumsum(0)[:-1]

        return make() if self._known is None else self._known.keep(("row", *self._key), make)

    @property
    def line_of(self) -> Tensor:
        """The line of each position in the graph, and the number of lines; of int64."""
        assert self._known is not None
        return self._known.keep(  # type: ignore[no-any-return]
            ("line", *self._key), lambda: pad(self.graph.colind.long(), (0, 1), value=self.lines)
        )

    def counts(self, dtype: torch.dtype) -> Tensor:
        """The lines of each row, at least 1, of shape (rows, 1)."""
        if self._known is not None:
            counts = self.graph.degrees()
        elif self.rowptr is not None:
            counts = self.rowptr.diff()
        else:
            ones = torch.ones_like(self.index)
            counts = ones.new_zeros(self.total).index_add_(0, self.index, ones)
        return counts.clamp(1).to(dtype).unsqueeze(1)

    def walk(self, x: Tensor, reduce: str) -> Tensor:
        """The reduction of each row that the library computes."""
        return multiply(self.graph, x, None, reduce, "copy_b", is_deterministic())

    def sum(self, x: Tensor, reduce: str = "sum") -> Tensor:
        """The sum or mean of each row."""
        if self._known is not None:
            return _sum(x, self, reduce) if x.requires_grad else self.walk(x, reduce)
        y = x.new_zeros(self.total, x.shape[1]).index_add_(0, self.index, x)
        return self.divide(y) if reduce == "mean" else y

    def divide(self, y: Tensor) -> Tensor:
        """Sums divided by the lines of each row; of integers rounded down."""
        if y.is_floating_point() or y.is_complex():
            return y / self.counts(torch.float64).to(y.dtype)
        return y.div(self.counts(torch.int64), rounding_mode="floor").to(y.dtype)

    def product(self, x: Tensor) -> Tensor:
        """The product of each row."""
        if self._known is not None:
            return self.walk(x, "prod")
        ones = x.new_ones(self.total, x.shape[1])
        return ones.scatter_reduce(0, self.index.long().unsqueeze(1).expand_as(x), x, "prod")

    def gather(self, y: Tensor) -> Tensor:
        """Of each line its row."""
        return y.index_select(0, self.index) if self._known is None else _gather(y, self)

    def extreme(self, x: Tensor, name: str, want_lines: bool) -> tuple[Tensor, Tensor | None]:
        """The maximum or minimum of each row, and the first line that has it: the number of lines
        where there is none, and None where neither the caller nor a gradient wants it."""
        want_lines = want_lines or (x.requires_grad and torch.is_grad_enabled())
        if self._known is not None and want_lines:
            return _extreme(x, self, name)  # type: ignore[no-any-return]
        if self._known is not None:
            return self.walk(x, name), None
        index, constant = self.index.long().unsqueeze(1).expand_as(x), x.detach()
        best = x.new_zeros(self.total, x.shape[1])
        best = best.scatter_reduce(0, index, constant, "a" + name, include_self=False)
        if not want_lines:
            return best, None
        is_best = (constant == best.index_select(0, self.index)) | (constant != constant)
        lines = torch.arange(self.lines, device=x.device).unsqueeze(1)
        lines = torch.where(is_best, lines, self.lines)
        first = lines.new_full((self.total, x.shape[1]), self.lines)
        first = first.scatter_reduce(0, index, lines, "amin")
        return (pad(x, (0, 0, 0, 1)).gather(0, first) if x.requires_grad else best), first

    def recentre(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Lines less the maximum of their row, where that is finite, and these maxima."""
        top, _ = self.extreme(x.detach(), "max", False)
        top = torch.where(top.isfinite(), top, 0)
        return x - self.gather(top), top

    def softmax(self, x: Tensor) -> Tensor:
        """The softmax over the lines of each row."""
        if self._known is not None:
            return _softmax(x, self)  # type: ignore[no-any-return]
        powers = self.recentre(x)[0].exp()
        return powers / self.gather(self.sum(powers))
