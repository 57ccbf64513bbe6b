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
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from warploom.torch._graph import need_tensor
from warploom.torch._plan import INDEX_TYPES, accumulator
from warploom.torch._rows import Rows, by_index, by_pointers, row_count

__all__ = [
    "gather_coo",
    "gather_csr",
    "scatter",
    "scatter_add",
    "scatter_log_softmax",
    "scatter_logsumexp",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_mul",
    "scatter_softmax",
    "scatter_std",
    "scatter_sum",
    "segment_add_coo",
    "segment_add_csr",
    "segment_coo",
    "segment_csr",
    "segment_max_coo",
    "segment_max_csr",
    "segment_mean_coo",
    "segment_mean_csr",
    "segment_min_coo",
    "segment_min_csr",
    "segment_sum_coo",
    "segment_sum_csr",
]

_REDUCTIONS = ("sum", "add", "mul", "mean", "min", "max")


# ---- arguments -----------------------------------------------------------------------------------


def _check(src: Tensor, name: str, index: Tensor, dim: int = 0, end: int = 0) -> int:
    """Raise unless index fits src: its extents up to `end` are those of src, or 1, and one
    dimension lies along dim. Returns dim as a positive number."""
    need_tensor("src", src)
    need_tensor(name, index)
    if index.dtype not in INDEX_TYPES:
        raise TypeError(f"warploom: {name}: the type {index.dtype} is not supported; use int64")
    if index.device != src.device:
        raise ValueError(f"warploom: {name} is on {index.device}, src on {src.device}")
    if not 0 < index.dim() <= src.dim():
        raise ValueError(
            f"warploom: {name}: has {index.dim()} dimensions; use 1 to {src.dim()}, as src has"
        )
    at = dim + src.dim() if dim < 0 else dim
    if not 0 <= at < src.dim():
        raise IndexError(f"warploom: dim: {dim} is none of the {src.dim()} dimensions of src")
    for one, other in zip(index.shape[:end], src.shape[at if index.dim() == 1 else 0 :]):
        if one not in (1, other):
            raise ValueError(
                f"warploom: {name}: the shape {tuple(index.shape)} does not fit src with the shape "
                f"{tuple(src.shape)}"
            )
    return at


def _rows(
    src: Tensor, index: Tensor, dim: int | None, out: Tensor | None, dim_size: int | None,
    reduce: str,
) -> Rows:  # fmt: skip
    """The rows of src. dim: None = the last one of the index, which ascends along it."""
    ndim = index.dim() if isinstance(index, Tensor) else 0
    at = _check(src, "index", index, ndim - 1 if dim is None else dim, ndim)
    if out is not None:
        dim_size = out.size(at)
    rows = row_count(index) if dim_size is None else dim_size
    return by_index(src, index, at, rows, reduce, is_sorted=dim is None)


# ---- reductions ----------------------------------------------------------------------------------


def _reduce(src: Tensor, rows: Rows, out: Tensor | None, reduce: str, want_places: bool) -> Any:
    """A reduction, and of a maximum or minimum the places that are wanted."""
    if out is None and reduce in ("sum", "add"):
        found = rows.sum_of_line(src)
        if found is not None:
            return found, None
    x = rows.front(src)
    if reduce in ("min", "max"):
        found, places = rows.extreme(x, reduce, want_places or out is not None)
        found = rows.back(found).to(src.dtype)
        if places is None:
            return found, None
        places = rows.back(places)
        if out is None:
            return found, places
        wins = (found > out if reduce == "max" else found < out) | (found != found)
        wins &= places != rows.count
        return out.copy_(torch.where(wins, found, out)), torch.where(wins, places, rows.count)
    name = {"mul": "prod", "mean": "mean" if out is None else "sum"}.get(reduce, "sum")
    found = rows.back(rows.reduce(x, name)).to(src.dtype)
    if out is None:
        return found, None
    (out.mul_ if reduce == "mul" else out.add_)(found)
    if reduce == "mean":
        out.copy_(rows.back(rows.divide(rows.front(out))))
    return out, None


def _scatter(
    src: Tensor, index: Tensor, dim: int | None = -1, out: Tensor | None = None,
    dim_size: int | None = None, reduce: str = "sum", want_places: bool = True,
) -> Any:  # fmt: skip
    _check_reduce(reduce)
    return _reduce(src, _rows(src, index, dim, out, dim_size, reduce), out, reduce, want_places)


def _coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None,
    reduce: str = "sum", want_places: bool = True,
) -> Any:  # fmt: skip
    return _scatter(src, index, None, out, dim_size, reduce, want_places)


def _csr(
    src: Tensor, indptr: Tensor, out: Tensor | None = None, reduce: str = "sum",
    want_places: bool = True,
) -> Any:  # fmt: skip
    _check_reduce(reduce)
    _check(src, "indptr", indptr, end=-1)
    dim = indptr.dim() - 1

    def within(one: Any) -> Any:
        return None if one is None else one.narrow(dim, 1, one.shape[dim] - 2).contiguous()

    rows = by_pointers(src, indptr, src.shape[dim], reduce)
    found, places = _reduce(src, rows, None, reduce, want_places)
    return _put(within(found), out), within(places)


def _check_reduce(reduce: str) -> None:
    if reduce not in _REDUCTIONS:
        raise ValueError(
            f"warploom: reduce: '{reduce}' is unknown, use one of {', '.join(_REDUCTIONS)}"
        )


def _put(found: Tensor, out: Tensor | None) -> Tensor:
    return found if out is None else out.copy_(found)


# ---- functions -----------------------------------------------------------------------------------


def scatter(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, reduce: str = "sum",
) -> Tensor:  # fmt: skip
    """Reduce the elements of each row along dim."""
    return _scatter(src, index, dim, out, dim_size, reduce, False)[0]  # type: ignore[no-any-return]


def segment_coo(
    src: Tensor, index: Tensor, out: Tensor | None = None, dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:  # fmt: skip
    """`scatter` along the last dimension of index, which ascends."""
    return _coo(src, index, out, dim_size, reduce, False)[0]  # type: ignore[no-any-return]


def segment_csr(
    src: Tensor, indptr: Tensor, out: Tensor | None = None, reduce: str = "sum"
) -> Tensor:
    """Reduce the elements from one pointer to the next."""
    return _csr(src, indptr, out, reduce, False)[0]  # type: ignore[no-any-return]


scatter_sum = scatter_add = partial(scatter, reduce="sum")
scatter_mul = partial(scatter, reduce="mul")
scatter_mean = partial(scatter, reduce="mean")
scatter_min = partial(_scatter, reduce="min")
scatter_max = partial(_scatter, reduce="max")
segment_sum_coo = segment_add_coo = partial(segment_coo, reduce="sum")
segment_mean_coo = partial(segment_coo, reduce="mean")
segment_min_coo = partial(_coo, reduce="min")
segment_max_coo = partial(_coo, reduce="max")
segment_sum_csr = segment_add_csr = partial(segment_csr, reduce="sum")
segment_mean_csr = partial(segment_csr, reduce="mean")
segment_min_csr = partial(_csr, reduce="min")
segment_max_csr = partial(_csr, reduce="max")


def gather_coo(src: Tensor, index: Tensor, out: Tensor | None = None) -> Tensor:
    """out[i] = src[index[i]] along the last dimension of index, which ascends."""
    _check(src, "index", index)
    dim = index.dim() - 1
    like = src.new_empty(()).expand(*src.shape[:dim], index.shape[dim], *src.shape[dim + 1 :])
    rows = _rows(like, index, None, None, src.shape[dim], "sum")
    return _put(rows.back(rows.reduce(rows.front(src), "gather")).to(src.dtype), out)


def gather_csr(src: Tensor, indptr: Tensor, out: Tensor | None = None) -> Tensor:
    """out[indptr[i]] to out[indptr[i + 1] - 1] = src[i] along the last dimension of indptr.

    Without `out` the last pointer says how many elements there are, for which a GPU is waited for.
    """
    _check(src, "indptr", indptr, end=-1)
    dim = indptr.dim() - 1
    if src.shape[dim] != max(indptr.shape[dim] - 1, 0):
        raise ValueError(
            f"warploom: src: has {src.shape[dim]} rows, and indptr {indptr.shape[dim] - 1} segments"
        )
    extent = out.shape[dim] if out is not None else int(indptr[..., -1:].max())
    rows = by_pointers(src, indptr, extent, "gather")
    padded = pad(src, [0, 0] * (src.dim() - 1 - dim) + [1, 1])
    return _put(rows.back(rows.reduce(rows.front(padded), "gather")).to(src.dtype), out)


# ---- composite functions -------------------------------------------------------------------------


def _lines(
    name: str, src: Tensor, index: Tensor, dim: int, out: Tensor | None, dim_size: int | None
) -> tuple[Rows, Tensor]:
    """The rows of src, and its lines in the type in which sums of its type are accumulated."""
    if not src.is_floating_point():
        raise ValueError(f"warploom: {name}: src is {src.dtype}; a floating-point type is needed")
    rows = _rows(src, index, dim, out, dim_size, "")
    return rows, rows.front(src.to(accumulator(src.dtype)))


def scatter_softmax(
    src: Tensor, index: Tensor, dim: int = -1, dim_size: int | None = None
) -> Tensor:
    """The softmax over the elements of each row, of src's shape."""
    rows, x = _lines("scatter_softmax", src, index, dim, None, dim_size)
    return rows.back(rows.softmax(x)).to(src.dtype)


def scatter_log_softmax(
    src: Tensor, index: Tensor, dim: int = -1, eps: float = 1e-12, dim_size: int | None = None
) -> Tensor:
    """The logarithm of the softmax over the elements of each row, of src's shape.

    eps: is added to the sums of exponentials before their logarithm.
    """
    rows, x = _lines("scatter_log_softmax", src, index, dim, None, dim_size)
    x, _ = rows.recentre(x)
    return rows.back(x - rows.reduce((rows.reduce(x.exp(), "sum") + eps).log(), "gather")).to(
        src.dtype
    )


def scatter_logsumexp(
    src: Tensor, index: Tensor, dim: int = -1, out: Tensor | None = None,
    dim_size: int | None = None, eps: float = 1e-12,
) -> Tensor:  # fmt: skip
    """log(sum(exp(src[i]))) of the elements of each row, and of `out`; 0 of an empty row.

    eps: is added to the sums of exponentials before their logarithm.
    """
    rows, x = _lines("scatter_logsumexp", src, index, dim, out, dim_size)
    x, top = rows.recentre(x)
    sums = rows.reduce(x.exp(), "sum")
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
    x = x - rows.reduce(rows.reduce(x, "mean"), "gather")
    counts = rows.counts()
    variance = rows.reduce(x * x, "sum") / ((counts - 1).clamp(1) if unbiased else counts)
    is_flat = variance == 0
    found = variance.masked_fill(is_flat, 1).sqrt().masked_fill(is_flat, 0)
    return _put(rows.back(found).to(src.dtype), out)
