"""The functions of torch_scatter 2.1, without a wheel for each version of torch.

    import warploom.torch.scatter as torch_scatter

src: a tensor of any type. The library computes with float32, float16, bfloat16 and float64, where
    it is large enough; PyTorch's operators do all else. 16-bit types are summed in float32.
index: int64 or int32, the row of each element of src along `dim`. One dimension stands for all
    others; more of them begin with the first one of src and are expanded to its shape.
indptr: row i has the elements from indptr[i] to indptr[i + 1] - 1 along the last dimension of
    indptr, whose other dimensions are those of src.
reduce: "sum" or "add", "mul", "mean" (of integers rounded down), "min" or "max", which give the
    result alone. Functions with a reduction in their names do the same, and those with "min" or
    "max" also return the first element along `dim` that has each extreme: `src.size(dim)` where a
    row has none, or where `out` has it.
dim_size: rows of the result; None = one more than the largest index, for which a GPU is waited for
    when the index is new.
out: is combined with the result in place, and is returned: a mean is (out + sum) / elements.
    `*_csr`, `gather_coo` and `scatter_std` overwrite it.

A row without elements is 0, or 1 for "mul". The first of equal elements alone has a maximum or
minimum, and gets its gradient. NaN propagates. Sums, means, gathers and the softmax have
derivatives of any order.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from warploom.torch._plan import accumulator
from warploom.torch._rows import Rows, by_index, by_operator, by_pointers, row_count, spread

__all__ = [
    "gather_coo", "gather_csr", "scatter", "scatter_add", "scatter_log_softmax",
    "scatter_logsumexp", "scatter_max", "scatter_mean", "scatter_min", "scatter_mul",
    "scatter_softmax", "scatter_std", "scatter_sum", "segment_add_coo", "segment_add_csr",
    "segment_coo", "segment_csr", "segment_max_coo", "segment_max_csr", "segment_mean_coo",
    "segment_mean_csr", "segment_min_coo", "segment_min_csr", "segment_sum_coo", "segment_sum_csr",
]  # fmt: skip

_Pair = tuple[Tensor, Tensor]


# ---- arguments -----------------------------------------------------------------------------------


def _check(src: Tensor, name: str, index: Tensor) -> None:
    for what, tensor in (("src", src), (name, index)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"warploom: {what}: a tensor is needed, not {type(tensor).__name__}")
    if index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"warploom: {name}: the type {index.dtype} is not supported; use int64")
    if index.device != src.device:
        raise ValueError(f"warploom: {name} is on {index.device}, src on {src.device}")
    if not 0 < index.dim() <= src.dim():
        raise ValueError(
            f"warploom: {name}: has {index.dim()} dimensions; use 1 to {src.dim()}, as src has"
        )


def _need_fit(name: str, index: Tensor, shape: torch.Size, src: Tensor) -> None:
    """Raise unless these extents of the index are those of src, or 1."""
    if any(one not in (1, other) for one, other in zip(shape, src.shape)):
        raise ValueError(
            f"warploom: {name}: the shape {tuple(index.shape)} does not fit src with the shape "
            f"{tuple(src.shape)}"
        )


def _align(
    src: Tensor, index: Tensor, dim: int | None, out: Tensor | None, dim_size: int | None
) -> tuple[Tensor, Tensor, int, int]:
    """src, its index as `spread` gives it, the dimension and the rows. dim: None = the last one of
    the index, which ascends along it."""
    _check(src, "index", index)
    at = index.dim() - 1 if dim is None else dim + src.dim() if dim < 0 else dim
    if not 0 <= at < src.dim():
        raise IndexError(f"warploom: dim: {dim} is none of the {src.dim()} dimensions of src")
    narrow = spread(index, src.shape, at)
    _need_fit("index", index, narrow.shape, src)
    if out is not None:
        dim_size = out.size(at)
    elif dim_size is None and dim is None:
        dim_size = int(index[..., -1].max()) + 1 if index.numel() else 0
    elif dim_size is None:
        dim_size = row_count(narrow)
    return src, narrow, at, dim_size


def _rows(
    src: Tensor, index: Tensor, dim: int | None, out: Tensor | None, dim_size: int | None,
    kind: str,
) -> Rows:  # fmt: skip
    return by_index(*_align(src, index, dim, out, dim_size), kind, is_sorted=dim is None)


def _segments(src: Tensor, indptr: Tensor, extent: int | None = None) -> Rows:
    """The rows of src, or of a tensor with this extent in the place of rows."""
    _check(src, "indptr", indptr)
    _need_fit("indptr", indptr, indptr.shape[:-1], src)
    found = src.shape[indptr.dim() - 1]
    return by_pointers(src, indptr, found if extent is None else extent)


# ---- reductions ----------------------------------------------------------------------------------


def _kind(src: Tensor, reduce: str, out: Tensor | None = None) -> str:
    """The kind of LEAST (_rows) of a reduction. Raises ValueError for an unknown one."""
    if reduce in ("sum", "add", "mean"):
        return "sum"
    if reduce not in ("min", "max", "mul"):
        raise ValueError(
            f"warploom: reduce: '{reduce}' is unknown, use one of sum, add, mul, mean, min, max"
        )
    needs_lines = out is not None or (src.requires_grad and torch.is_grad_enabled())
    return "several" if reduce != "mul" and needs_lines else "slow"


def _reduce(src: Tensor, rows: Rows, out: Tensor | None, reduce: str) -> Tensor:
    """A reduction without the elements that have its extremes."""
    x = rows.front(src)
    if reduce in ("min", "max"):
        return _extreme(src, rows, out, reduce, out is not None)[0]
    if reduce == "mul":
        found = rows.back(rows.product(x)).to(src.dtype)
        return found if out is None else out.mul_(found)
    is_mean = reduce == "mean"
    found = rows.back(rows.sum(x, "mean" if is_mean and out is None else "sum")).to(src.dtype)
    if out is None:
        return found
    out.add_(found)
    return out.copy_(rows.back(rows.divide(rows.lead(out)))) if is_mean else out


def _extreme(
    src: Tensor, rows: Rows, out: Tensor | None, name: str, want_lines: bool = True
) -> tuple[Tensor, Tensor | None]:
    """A maximum or minimum, and the elements that have it."""
    best, lines = rows.extreme(rows.front(src), name, want_lines)
    best = rows.back(best).to(src.dtype)
    if lines is None:
        return best, None
    places = rows.places(lines)
    if out is None:
        return best, places
    wins = (best > out if name == "max" else best < out) | (best != best)
    wins &= places != rows.count
    out.copy_(torch.where(wins, best, out))
    return out, torch.where(wins, places, rows.count)


def _pair(src: Tensor, rows: Rows, out: Tensor | None, name: str) -> _Pair:
    best, places = _extreme(src, rows, out, name)
    assert places is not None
    return best, places


def _put(found: Tensor, out: Tensor | None) -> Tensor:
    return found if out is None else out.copy_(found)


def _by_index(
    src: Tensor, index: Tensor, dim: int | None, out: Tensor | None, dim_size: int | None,
    reduce: str,
) -> Tensor:  # fmt: skip
    aligned, kind = _align(src, index, dim, out, dim_size), _kind(src, reduce, out)
    found = None if kind == "several" or out is not None else by_operator(*aligned, reduce)
    if found is not None:
        return found
    return _reduce(src, by_index(*aligned, kind, is_sorted=dim is None), out, reduce)


# ---- by an index ---------------------------------------------------------------------------------


def scatter(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, reduce: str = "sum",
) -> Tensor:  # fmt: skip
    """Reduce the elements of each row along dim."""
    return _by_index(src, index, dim, out, dim_size, reduce)


def _scatter_pair(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, *, reduce: str,
) -> _Pair:  # fmt: skip
    return _pair(src, _rows(src, index, dim, out, dim_size, "several"), out, reduce)


scatter_sum = scatter_add = partial(scatter, reduce="sum")
scatter_mul = partial(scatter, reduce="mul")
scatter_mean = partial(scatter, reduce="mean")
scatter_min = partial(_scatter_pair, reduce="min")
scatter_max = partial(_scatter_pair, reduce="max")


# ---- by an index that ascends --------------------------------------------------------------------


def segment_coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:  # fmt: skip
    """`scatter` along the last dimension of index, which ascends."""
    return _by_index(src, index, None, out, dim_size, reduce)


def _coo_pair(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None, *,
    reduce: str,
) -> _Pair:  # fmt: skip
    return _pair(src, _rows(src, index, None, out, dim_size, "several"), out, reduce)


segment_sum_coo = segment_add_coo = partial(segment_coo, reduce="sum")
segment_mean_coo = partial(segment_coo, reduce="mean")
segment_min_coo = partial(_coo_pair, reduce="min")
segment_max_coo = partial(_coo_pair, reduce="max")


def gather_coo(src: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor:
    """out[i] = src[index[i]] along the last dimension of index, which ascends."""
    _check(src, "index", index)
    dim = index.dim() - 1
    like = src.new_empty(()).expand(*src.shape[:dim], index.shape[dim], *src.shape[dim + 1 :])
    rows = _rows(like, index, None, None, src.shape[dim], "sum")
    return _put(rows.restore(rows.gather(rows.lead(src))), out)


# ---- by pointers ---------------------------------------------------------------------------------


def segment_csr(
    src: Tensor, indptr: Tensor, out: Tensor | None = None, reduce: str = "sum"
) -> Tensor:
    """Reduce the elements from one pointer to the next."""
    _kind(src, reduce)
    return _put(_reduce(src, _segments(src, indptr), None, reduce), out)


def _csr_pair(src: Tensor, indptr: Tensor, out: Tensor | None = None, *, reduce: str) -> _Pair:
    best, places = _pair(src, _segments(src, indptr), None, reduce)
    return _put(best, out), places


segment_sum_csr = segment_add_csr = partial(segment_csr, reduce="sum")
segment_mean_csr = partial(segment_csr, reduce="mean")
segment_min_csr = partial(_csr_pair, reduce="min")
segment_max_csr = partial(_csr_pair, reduce="max")


def gather_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """out[indptr[i]] to out[indptr[i + 1] - 1] = src[i] along the last dimension of indptr.

    Without `out` the last pointer says how many elements there are, for which a GPU is waited for.
    """
    _check(src, "indptr", indptr)
    dim = indptr.dim() - 1
    if src.shape[dim] != max(indptr.shape[dim] - 1, 0):
        raise ValueError(
            f"warploom: src: has {src.shape[dim]} rows, and indptr {indptr.shape[dim] - 1} segments"
        )
    extent = out.shape[dim] if out is not None else int(indptr[..., -1:].max())
    rows = _segments(src, indptr, extent)
    return _put(rows.restore(rows.gather(rows.lead(src))), out)


# ---- composite functions -------------------------------------------------------------------------


def _lines(
    name: str, src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> tuple[Rows, Tensor]:
    """The rows of src, and its lines in the type in which sums of its type are accumulated."""
    if not src.is_floating_point():
        raise ValueError(f"warploom: {name}: src is {src.dtype}; a floating-point type is needed")
    rows = _rows(src, index, dim, out, dim_size, "several")
    return rows, rows.front(src.to(accumulator(src.dtype)))


def scatter_softmax(
    src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None
) -> Tensor:
    """The softmax over the elements of each row, of src's shape."""
    rows, x = _lines("scatter_softmax", src, index, dim, None, dim_size)
    return rows.restore(rows.softmax(x)).to(src.dtype)


def scatter_log_softmax(
    src: Tensor, index: Tensor, dim: int = -1, eps: float = 1e-12, dim_size: int | None = None
) -> Tensor:
    """The logarithm of the softmax over the elements of each row, of src's shape.

    eps: is added to the sums of exponentials before their logarithm.
    """
    rows, x = _lines("scatter_log_softmax", src, index, dim, None, dim_size)
    x, _ = rows.recentre(x)
    return rows.restore(x - rows.gather((rows.sum(x.exp()) + eps).log())).to(src.dtype)


def scatter_logsumexp(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, eps: float = 1e-12,
) -> Tensor:  # fmt: skip
    """log(sum(exp(src[i]))) of the elements of each row, and of `out`; 0 of an empty row.

    eps: is added to the sums of exponentials before their logarithm.
    """
    rows, x = _lines("scatter_logsumexp", src, index, dim, out, dim_size)
    x, top = rows.recentre(x)
    sums = rows.sum(x.exp())
    is_empty = sums == 0
    found = (sums.masked_fill(is_empty, 1) + eps).log() + top
    if out is None:
        return rows.back(found.masked_fill(is_empty, 0)).to(src.dtype)
    found = rows.back(found.masked_fill(is_empty, float("-inf")))
    return out.copy_(torch.logaddexp(out.to(found.dtype), found))


def scatter_std(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, unbiased: bool = True,
) -> Tensor:  # fmt: skip
    """The standard deviation of each row; 0, with a gradient of 0, where all elements are equal.

    unbiased: whether the sum of squares is divided by one less than the number of elements.
    """
    rows, x = _lines("scatter_std", src, index, dim, out, dim_size)
    x = x - rows.gather(rows.sum(x, "mean"))
    counts = rows.counts(x.dtype)
    variance = rows.sum(x * x) / ((counts - 1).clamp(1) if unbiased else counts)
    is_flat = variance == 0
    found = variance.masked_fill(is_flat, 1).sqrt().masked_fill(is_flat, 0)
    return _put(rows.back(found).to(src.dtype), out)
