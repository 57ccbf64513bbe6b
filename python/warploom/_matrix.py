"""Sparse matrices in CSR: the operand A of all products."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from warploom import _arrays
from warploom._arguments import flag, integer
from warploom._arrays import DENSE_TYPES, INDEX_TYPES, Array
from warploom._forks import renewed
from warploom._library import check, context, ffi, lib, new, own


class Stats(NamedTuple):
    """Row statistics of a matrix, from which kernels are chosen."""

    rows: int
    cols: int
    nnz: int
    longest: int  #: non-zeros of the longest row
    empty_rows: int
    rows_le_4: int  #: rows with at most 4 non-zeros, empty ones included
    rows_le_16: int
    mean: float  #: nnz / rows
    cv: float  #: standard deviation / mean of the row lengths
    top_share: float  #: share of nnz in the longest 1 % of the rows
    fingerprint: str  #: "" = not computed, because no matrix of this size was tuned


class Matrix:
    """A sparse matrix of shape (rows, cols) in CSR, on the host or on a GPU.

    The matrix uses the arrays in place: it copies nothing and keeps them alive. `indptr`
    and `indices` must not change afterwards; `data` may change in place. Columns of a row may be
    unsorted and repeated.

    Args:
        source: a SciPy or CuPy sparse matrix of any format, a torch.sparse_csr tensor, or a tuple
            (indptr, indices) or (indptr, indices, data). indptr has rows + 1 elements and indices
            nnz, each int32 or int64. data has shape (nnz,), or (nnz, heads), of float32, float16,
            bfloat16 or float64; without it every edge is 1.
        shape: (rows, cols) of a tuple; without it cols is the largest index + 1, which reads the
            indices.
        check: verify on the host that indptr and indices are in range, which takes one pass over
            them. Arrays on a GPU are not checked here.
        perm: the edge at each CSR position, kept as `Matrix.perm`.
        base: 1 where indptr and indices count from 1, as in Fortran, Julia and Matlab. Positions,
            such as those of argmax, count from 0.

    Raises:
        TypeError, ValueError: naming the array with a wrong type, shape, layout, device or content.
    """

    def __init__(
        self,
        source: Any,
        *,
        shape: tuple[int, int] | None = None,
        check: bool = True,
        perm: Any = None,
        base: int = 0,
    ) -> None:
        self.base = integer("base", base, most=1)
        indptr, indices, data, shape = _parts(source, shape)
        self.device = _arrays.device_of(indptr, "indptr")
        self.library = _arrays.library(indptr)
        stream = _arrays.stream_of(None, self.device, self.library)
        self.indptr, self.indices, self.data = indptr, indices, data
        #: Of a matrix made from edges: the edge at each CSR position, data = edge_data[perm].
        self.perm = perm
        self._indptr = self._index_array(indptr, "indptr", stream)
        self._indices = self._index_array(indices, "indices", stream)
        if self._indptr.shape == (0,):
            raise ValueError("indptr: is empty; it has rows + 1 elements")
        self.nnz = self._indices.shape[0]
        rows = self._indptr.shape[0] - 1
        if shape is None:
            shape = rows, _largest(indices) + 1 - base if self.nnz else 0
        self.shape = _shape(shape)
        if self.shape[0] != rows:
            raise ValueError(f"shape: has {self.shape[0]} rows and indptr {rows}")
        self._data = self._value_array(data, "data", stream)
        if flag("check", check) and self.device == "host":
            _check_pattern(np_view(indptr), np_view(indices), self.nnz, self.shape[1], base)
        self._lock = renewed(threading.Lock())
        self._handle: Any = None
        self.plain: dict[Any, Any] = {}  # of `_plain`

    @classmethod
    def from_coo(
        cls,
        row: Any,
        col: Any,
        data: Any = None,
        *,
        shape: tuple[int, int] | None = None,
        check: bool = True,
    ) -> Matrix:
        """Make a matrix from coordinates: row and col (nnz,), data (nnz,) or (nnz, heads).

        Repeated coordinates remain separate edges, in their order. `perm` of the result has the
        edge at each CSR position. On the host the arrays may be of any library; on a GPU this
        needs CuPy.
        """
        row, numeric = _edge_array(row, "row")
        col, _ = _edge_array(col, "col")
        nnz, shape = _check_edges(row, col, shape)
        index_type = numeric.int32 if max(nnz, *shape) < 2**31 else numeric.int64
        try:
            indptr = numeric.zeros(shape[0] + 1, index_type)
        except ValueError:
            raise MemoryError(f"shape: no memory for the offsets of {shape[0]} rows") from None
        row = row.astype(numeric.int64, copy=False)
        perm = numeric.argsort(row, kind="stable")
        numeric.cumsum(numeric.bincount(row, minlength=shape[0]), out=indptr[1:])
        indices = col[perm].astype(index_type)
        if data is not None:
            edge_data, _ = _edge_array(data, "data")
            if edge_data.shape[:1] != (nnz,):
                found = f"data: has shape {edge_data.shape}"
                raise ValueError(f"{found}; expected ({nnz},) or (nnz, heads)")
            data = edge_data[perm]
        return cls((indptr, indices, data), shape=shape, check=check, perm=perm)

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Any,
        data: Any = None,
        *,
        shape: tuple[int, int] | None = None,
        check: bool = True,
    ) -> Matrix:
        """Make a matrix from PyTorch Geometric's edge_index of shape (2, nnz).

        edge_index[0] are the sources, which become columns, and edge_index[1] the targets, which
        become rows. shape is (targets, sources); without it both are the largest node + 1. All
        else is as for `from_coo`.
        """
        edge_index, _ = _edge_array(edge_index, "edge_index")
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index: has shape {edge_index.shape}; expected (2, nnz)")
        _check_integers(edge_index, "edge_index")
        if shape is None:
            nodes = 1 + max(int(edge_index.max()), -1) if edge_index.shape[1] else 0
            shape = (nodes, nodes)
        return cls.from_coo(edge_index[1], edge_index[0], data, shape=shape, check=check)

    @classmethod
    def from_bsr(
        cls, source: Any, *, shape: tuple[int, int] | None = None, check: bool = True
    ) -> Matrix:
        """Make a matrix of dense blocks (BSR), whose elements all become edges, zeros included.

        source: a SciPy matrix or array in BSR, or (indptr, indices, data) of any library, with data
            of shape (blocks, R, C); each block is row-major or column-major. On a GPU its library
            is torch, CuPy or JAX.
        shape: of the matrix, multiples of R and C; without it columns are those that the blocks
            need.

        Indices keep their types, which must hold the number of elements.
        """
        indptr, indices, data, shape = _blocks(source, shape)
        device, library = _arrays.device_of(indptr, "indptr"), _arrays.library(indptr)
        stream = _arrays.stream_of(None, device, library)
        parts = {"indptr": indptr, "indices": indices, "data": data}
        arrays = {name: _arrays.read(part, name, device, stream) for name, part in parts.items()}
        values = arrays["data"].require(DENSE_TYPES)
        for name, dimensions in (("indptr", 1), ("indices", 1), ("data", 3)):
            if len(arrays[name].shape) != dimensions:
                found = f"{name}: has shape {arrays[name].shape}"
                raise ValueError(
                    f"{found}; expected {dimensions} dimension{'s' * (dimensions > 1)}"
                )
        offsets = arrays["indptr"].require(INDEX_TYPES, contiguous=True)
        columns = arrays["indices"].require(INDEX_TYPES, values.shape[:1], contiguous=True)
        if not offsets.shape[0]:
            raise ValueError("indptr: is empty; it has rows + 1 elements")
        blocks, height, width = values.shape
        rows, order = offsets.shape[0] - 1, _block_order(values)
        if shape is None:
            shape = rows * height, (_largest(indices) + 1) * width if blocks else 0
        shape = _shape(shape)
        if height < 1 or width < 1 or shape[0] != rows * height or shape[1] % width:
            raise ValueError(f"shape: is {shape}, and {rows} rows of blocks are {height} x {width}")
        if flag("check", check) and device == "host":
            _check_pattern(np_view(indptr), np_view(indices), blocks, shape[1] // width, 0)
        made = _expand(offsets, columns, values, order, shape[1] // width, library, stream)
        return cls(made, shape=shape, check=False)

    @classmethod
    def block_diagonal(cls, blocks: Iterable[Any], *, check: bool = True) -> Matrix:
        """Make one matrix of many, whose product computes theirs in one call.

        Rows and columns of a block follow those of the blocks before it. So B has the blocks'
        operands below each other, and C their results. The blocks are what `Matrix` takes; their
        arrays are copied. On the host they may be of any library; on a GPU this needs CuPy.

        ValueError, TypeError: some blocks have values and others none, or values of other types.
        """
        matrices = [as_matrix(block) for block in blocks]
        if not matrices:
            raise ValueError("blocks: is empty")
        rows, cols = (sum(matrix.shape[i] for matrix in matrices) for i in range(2))
        nnz = sum(matrix.nnz for matrix in matrices)
        wide = max(rows, cols, nnz) >= 2**31
        parts: list[list[Any]] = [[], [], []]
        first_edge = first_column = 0
        for matrix in matrices:
            indptr, numeric = _edge_array(matrix.indptr, "indptr")
            indices, _ = _edge_array(matrix.indices, "indices")
            index_type = numeric.int64 if wide else numeric.int32
            end = None if matrix is matrices[-1] else -1
            offsets = indptr[:end].astype(numeric.int64) + (first_edge - matrix.base)
            parts[0].append(offsets.astype(index_type))
            columns = indices.astype(numeric.int64) + (first_column - matrix.base)
            parts[1].append(columns.astype(index_type))
            if matrix.data is not None:
                parts[2].append(_edge_array(matrix.data, "data")[0])
            first_edge, first_column = first_edge + matrix.nnz, first_column + matrix.shape[1]
        if 0 < len(parts[2]) < len(matrices):
            raise ValueError("blocks: some have values and others none")
        if len({(array.dtype, array.shape[1:]) for array in parts[2]}) > 1:
            raise TypeError("blocks: their values have several types, or numbers of heads")
        indptr, indices, data = (numeric.concatenate(part) if part else None for part in parts)
        return cls((indptr, indices, data), shape=(rows, cols), check=check)

    @property
    def dtype(self) -> str | None:
        """The type of the values, such as "float32"; None without values."""
        return self._data.dtype if self._data else None

    def stats(self) -> Stats:
        """Return the row statistics, which are measured once."""
        found = lib.wlm_matrix_stats(self.handle())
        fingerprint = "".join(f"{half:016x}" for half in found.fingerprint)
        numbers = [getattr(found, field) for field in Stats._fields[:-1]]
        return Stats._make([*numbers, fingerprint.strip("0") and fingerprint])

    def validate(self, stream: Any = None) -> None:
        """Check indptr and indices on their device, for arrays that you do not trust.

        Kernels do not check them: with an invalid matrix they access memory out of bounds.
        Raises ValueError, which names the first wrong row. Waits for the stream.
        """
        address = _arrays.stream_of(stream, self.device, self.library)
        stream_pointer = ffi.cast("void *", address or 0)
        check(lib.wlm_matrix_validate(self.handle(address), stream_pointer, ffi.NULL))

    def csr(self, values: Array | None = None) -> Any:
        """Return a `wlm_csr` with these values, or the matrix's; both must outlive its use."""
        self.require_unmoved()
        struct = new("wlm_csr")
        struct.rows, struct.cols = self.shape
        struct.nnz, struct.base = self.nnz, self.base
        struct.rowptr, struct.rowptr_type = self._indptr.pointer, INDEX_TYPES[self._indptr.dtype]
        struct.colind, struct.colind_type = self._indices.pointer, INDEX_TYPES[self._indices.dtype]
        values = values or self._data
        if values:
            struct.values, struct.value_type = values.pointer, DENSE_TYPES[values.dtype]
        return struct

    def handle(self, stream: int | None = None) -> Any:
        """Return the `wlm_matrix`. The first call measures the stats on the stream and waits."""
        owner = context(self.device)
        self.require_unmoved()
        with self._lock:
            if self._handle is None:
                options = new("wlm_matrix_options")
                options.stream = ffi.cast("void *", stream or 0)
                handle = ffi.new("wlm_matrix **")
                check(lib.wlm_matrix_create(owner.handle, self.csr(), options, handle))
                parents = owner.handle, self._indptr, self._indices, self._data
                self._handle = own(handle[0], lib.wlm_matrix_destroy, self.device, *parents)
            return self._handle

    def values(
        self, source: Any, heads: int, stream: int | None, batch: int | None = None
    ) -> tuple[Array | None, int]:
        """Return the values of a call, or for None the matrix's, and the stride of a batch.

        Raises if their shape is wrong.
        """
        shapes = [(self.nnz, heads)] + ([(self.nnz,)] if heads == 1 else [])
        if batch is not None and source is not None:
            array = _arrays.read(source, "values", self.device, stream).require(DENSE_TYPES)
            if array.shape[1:] in shapes:
                first, stride = _arrays.first_of(array, batch)
                return first.require(contiguous=True), stride
        values = self._data if source is None else self._value_array(source, "values", stream)
        return values and values.require((), *shapes), 0

    def require_unmoved(self) -> None:
        """Raise RuntimeError if PyTorch moved the memory of an array of the matrix."""
        _arrays.require_unmoved(self._indptr, self._indices, self._data)

    @property
    def argmax_type(self) -> str:
        """The type of argmax indices: that of indptr."""
        return self._indptr.dtype

    def _index_array(self, source: Any, name: str, stream: int | None) -> Array:
        array = _arrays.read(source, name, self.device, stream).require(INDEX_TYPES)
        if len(array.shape) != 1:
            raise ValueError(f"{name}: has shape {array.shape}; expected one dimension")
        return array.require(contiguous=True)

    def _value_array(self, source: Any, name: str, stream: int | None) -> Array | None:
        if source is None:
            return None
        array = _arrays.read(source, name, self.device, stream).require(DENSE_TYPES)
        if array.shape[:1] != (self.nnz,) or len(array.shape) > 2:
            expected = f"({self.nnz},) or ({self.nnz}, heads)"
            raise ValueError(f"{name}: has shape {array.shape}; expected {expected}")
        return array.require(contiguous=True)

    def __repr__(self) -> str:
        values = self.dtype or "no values"
        return f"Matrix({self.shape[0]} x {self.shape[1]}, nnz={self.nnz}, {values}, {self.device})"


def as_matrix(source: Any) -> Matrix:
    """Return a Matrix unchanged, or make one from any source that Matrix takes."""
    return source if isinstance(source, Matrix) else Matrix(source)


def np_view(source: Any) -> np.ndarray[Any, Any]:
    """Return a NumPy array over the memory of a host array."""
    return source if isinstance(source, np.ndarray) else np.from_dlpack(source)


def _parts(
    source: Any, shape: tuple[int, int] | None
) -> tuple[Any, Any, Any, tuple[int, int] | None]:
    if isinstance(source, (tuple, list)):
        if len(source) not in (2, 3):
            raise ValueError(f"A: a tuple has indptr, indices and data, not {len(source)} parts")
        indptr, indices, data = (*source, None)[:3]
        return indptr, indices, data, shape
    if hasattr(source, "tocsr"):
        source = source.tocsr()
        parts = source.indptr, source.indices, source.data
    elif hasattr(source, "crow_indices") and "sparse_csr" in str(source.layout):
        parts = source.crow_indices(), source.col_indices(), source.values()
    else:
        raise TypeError(
            f"A: a {type(source).__name__} is no sparse matrix; use Matrix, a SciPy sparse matrix "
            "or (indptr, indices, data)"
        )
    if shape is not None and _shape(shape) != tuple(source.shape):
        raise ValueError(f"shape: is {shape}, and A has the shape {tuple(source.shape)}")
    return (*parts, tuple(source.shape))


def _blocks(source: Any, shape: Any) -> tuple[Any, Any, Any, Any]:
    if hasattr(source, "blocksize"):
        if shape is not None and _shape(shape) != tuple(source.shape):
            raise ValueError(f"shape: is {shape}, and the blocks have the shape {source.shape}")
        return source.indptr, source.indices, source.data, tuple(source.shape)
    if not isinstance(source, (tuple, list)) or len(source) != 3:
        raise TypeError("source: is no matrix in BSR; use SciPy's or (indptr, indices, data)")
    return (*source, shape)


def _expand(
    offsets: Array,
    columns: Array,
    values: Array,
    order: int,
    block_columns: int,
    of: str,
    stream: int | None,
) -> tuple[Any, Any, Any]:
    """Return the arrays of the CSR matrix of these blocks."""
    blocks, height, width = values.shape
    device, nnz, struct = offsets.device, blocks * height * width, new("wlm_bsr")
    struct.rows, struct.cols, struct.blocks = offsets.shape[0] - 1, block_columns, blocks
    struct.block_rows, struct.block_cols, struct.order = height, width, order
    struct.rowptr, struct.rowptr_type = offsets.pointer, INDEX_TYPES[offsets.dtype]
    struct.colind, struct.colind_type = columns.pointer, INDEX_TYPES[columns.dtype]
    struct.values, struct.value_type = values.pointer, DENSE_TYPES[values.dtype]
    rows = struct.rows * height
    extents = ((rows + 1, offsets.dtype), (nnz, columns.dtype), (nnz, values.dtype))
    made = [_arrays.empty(of, device, (size,), dtype, stream) for size, dtype in extents]
    to = [_arrays.read(array, "the result", device, stream) for array in made]
    struct.to_rowptr, struct.to_colind, struct.to_values = (array.pointer for array in to)
    struct.stream = ffi.cast("void *", stream or 0)
    check(lib.wlm_csr_from_bsr(context(device).handle, struct))
    _arrays.finish(of, device, stream)
    return made[0], made[1], made[2]


def _block_order(data: Array) -> int:
    blocks, height, width = data.shape
    swapped = data._replace(
        shape=(blocks, width, height), strides=(data.strides[0], data.strides[2], data.strides[1])
    )
    if not data.is_contiguous and swapped.is_contiguous:
        return int(lib.WLM_COLUMN_MAJOR)
    data.require(contiguous=True)
    return int(lib.WLM_ROW_MAJOR)


def _shape(shape: Any) -> tuple[int, int]:
    try:
        rows, cols = shape
    except (TypeError, ValueError):
        raise ValueError(f"shape: {shape!r} is not (rows, cols)") from None
    return integer("shape", rows), integer("shape", cols)


def _largest(indices: Any) -> int:
    on_host = _arrays.device_of(indices, "indices") == "host"
    return int((np_view(indices) if on_host else indices).max())


def _check_pattern(indptr: Any, indices: Any, nnz: int, cols: int, base: int) -> None:
    if indptr[0] != base or indptr[-1] - base != nnz:
        end = f"nnz + 1 = {nnz + 1}" if base else f"nnz = {nnz}"
        hint = "" if indptr[0] != 1 - base else f"; is base {1 - base}?"
        raise ValueError(
            f"indptr: goes from {indptr[0]} to {indptr[-1]}, not from {base} to {end}{hint}"
        )
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError("indptr: decreases")
    first, last = base, cols - 1 + base
    if nnz and (indices.min() < first or indices.max() > last):
        found = f"{indices.min()} to {indices.max()}"
        raise ValueError(f"indices: {found} are not in {first} to {last}")


def _edge_array(source: Any, name: str) -> tuple[Any, Any]:
    """Return an array and its module, numpy or cupy."""
    on_host = _arrays.device_of(source, name) == "host"
    try:
        if on_host:
            return np_view(source), np
        cupy = importlib.import_module("cupy")
        return cupy.from_dlpack(source), cupy
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from error
    except ImportError:
        text = (
            f"{name}: edges on a GPU are sorted with CuPy; install it or use warploom.torch.Graph"
        )
        raise TypeError(text) from None


def _check_integers(array: Any, name: str) -> None:
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name}: has type {array.dtype}; use int32 or int64")


def _check_edges(row: Any, col: Any, shape: Any) -> tuple[int, tuple[int, int]]:
    """Return the number of edges, and the shape of the matrix, by default that which they need."""
    nnz = row.shape[0] if row.ndim else 0
    for array, name in ((row, "row"), (col, "col")):
        if array.ndim != 1 or array.shape != (nnz,):
            raise ValueError(f"{name}: has shape {array.shape}; row and col have one shape, (nnz,)")
        _check_integers(array, name)
    if shape is None:
        shape = (int(row.max()) + 1, int(col.max()) + 1) if nnz else (0, 0)
    rows, cols = _shape(shape)
    for array, name, extent in ((row, "row", rows), (col, "col", cols)):
        first, last = (int(array.min()), int(array.max())) if nnz else (0, -1)
        if first < 0 or last >= extent:
            raise ValueError(f"{name}: {first} to {last} are not in 0 to {extent - 1}")
    return nnz, (rows, cols)
