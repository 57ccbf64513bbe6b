"""Products in one call, and the check of operands that they share with plans."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from warploom import _arguments, _arrays, _plain
from warploom._arrays import DENSE_TYPES, INDEX_TYPES, Array
from warploom._library import check, context, ffi, lib, new
from warploom._matrix import Matrix, as_matrix
from warploom._problem import Options, Problem, problem

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Out(NamedTuple):
    """The caller's array for a result, and what was read of it."""

    source: Any
    array: Array


class Place(NamedTuple):
    """Where a call runs, and the array library of its results."""

    device: str
    library: str
    stream: int | None

    @property
    def pointer(self) -> Any:
        return ffi.cast("void *", self.stream or 0)

    def read(self, source: Any, name: str) -> Array:
        """Read an array of this device."""
        return _arrays.read(source, name, self.device, self.stream)

    def out(self, source: Any) -> Out | None:
        """Read the array for a result, if it is given."""
        return None if source is None else Out(source, self.read(source, "out"))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        """Allocate an array."""
        return _arrays.empty(self.library, self.device, shape, dtype, self.stream)


def place_of(matrix: Matrix, stream: Any, *sources: Any) -> Place:
    """Return the place of a call. The first given operand decides the library."""
    given = (_arrays.library(source) for source in sources if source is not None)
    of = next(given, matrix.library)
    return Place(matrix.device, of, _arrays.stream_of(stream, matrix.device, of))


class Dense(NamedTuple):
    """A dense operand: of a batch its first product's part, and the elements to the next one's."""

    array: Array
    stride: int = 0
    of_batch: bool = False

    @property
    def columns(self) -> int:
        """n, the number of columns."""
        return math.prod(self.array.shape[1:])

    @property
    def order(self) -> str:
        return _arrays.order_of(self.array)


def dense_of(array: Array, batch: int | None, *, shared: bool = True) -> Dense:
    """A dense operand of 1, 2 or 3 dimensions, with a batch in front of 2 or 3.

    shared: one of two dimensions is that of all products.
    """
    array.require(DENSE_TYPES)
    of_batch = batch is not None and (not shared or len(array.shape) > 2)
    expected = "(rows, n) or (rows, heads, n / heads)"
    if len(array.shape) not in ((3, 4) if of_batch else (1, 2, 3)):
        behind = ", behind the batch" if of_batch else ""
        raise ValueError(f"{array.name}: has shape {array.shape}; expected {expected}{behind}")
    if not of_batch or batch is None:
        return Dense(array)
    return Dense(*_arrays.first_of(array, batch), True)


def read_dense(source: Any, name: str, place: Place, batch: int | None) -> Dense | None:
    """Read a dense operand, if it is given."""
    return None if source is None else dense_of(place.read(source, name), batch)


class Call:
    """The operands of one call: checks them, allocates results, and keeps the memory alive."""

    def __init__(self, matrix: Matrix, problem: Problem, place: Place, values: Any) -> None:
        self.matrix, self.problem, self.place = matrix, problem, place
        self.values, values_stride = matrix.values(
            values, problem.heads, place.stream, problem.batch
        )
        wide = "float32" if problem.dtype in ("float16", "bfloat16") else problem.dtype
        if self.values and self.values.dtype not in (problem.dtype, wide):
            found = f"{self.values.name}: has type {self.values.dtype}"
            raise TypeError(f"{found} and the dense operands {problem.dtype}; convert one")
        self.args = args = new("wlm_execute_args")
        args.stream = place.pointer
        args.values_stride = values_stride
        if values is not None and self.values:
            args.values = self.values.pointer
        self.kept = [] if self.values is None else [self.values]
        rows, cols = matrix.shape
        self.rows, self.cols = (cols, rows) if problem.transpose else (rows, cols)

    def scale(self, alpha: Any, beta: Any, out: Any, seed: Any = 0) -> None:
        """Set the numbers of the call."""
        alpha, beta = _arguments.number("alpha", alpha), _arguments.number("beta", beta)
        if beta != 0 and out is None:
            raise ValueError("beta: is not 0, so out must hold what it multiplies")
        self.args.alpha, self.args.beta = alpha, beta
        self.args.seed = _arguments.seed(seed)

    def dense(self, operand: Dense, rows: int, order: str) -> int:
        """Check a dense operand of `rows` rows in this order; returns its leading dimension."""
        array, problem = operand.array, self.problem
        if array.dtype != problem.dtype:
            raise TypeError(f"{array.name}: has type {array.dtype}; expected {problem.dtype}")
        shapes: list[tuple[int, ...]] = [(rows, problem.n)]
        if problem.n == 1:
            shapes.append((rows,))
        if problem.heads > 1 and problem.n % problem.heads == 0:
            shapes.append((rows, problem.heads, problem.n // problem.heads))
        return _arrays.leading_dimension(array.require((), *shapes), order)

    def result(self, out: Out | None, shape: tuple[int, ...], dtype: str) -> Out:
        """Return the caller's `out`, or a new array of this shape."""
        if out is None:
            by_columns = self.problem.c_order == "F" and len(shape) == 2
            if by_columns and self.problem.batch is None:
                made = self.place.empty(shape[::-1], dtype).T
            else:
                made = self.place.empty(shape, dtype)
            out = Out(made, self.place.read(made, "out"))
        out.array.require((dtype,), shape, writable=True)
        return out

    def _of_batch(self, shape: tuple[int, ...], out: Out | None, *operands: Dense | None) -> Any:
        """The shape of a result, with the batch in front."""
        batch = self.problem.batch
        if batch is None:
            return shape
        has_batch = any(one.of_batch for one in operands if one is not None)
        if not has_batch and not self.args.values_stride and out is None:
            raise ValueError("batch: no operand and no out has that dimension")
        return (batch, *shape)

    def spmm(self, b: Dense | None, out: Out | None, bias: Any) -> Any:
        """Set the operands of C = A B; returns C, or (C, argmax)."""
        args, problem, place = self.args, self.problem, self.place
        if b is None:
            if problem.needs_b or out is None:
                raise TypeError('B: is None, which needs out and the message "copy_a"')
            shape = out.array.shape
        else:
            args.b, args.ldb = b.array.pointer, self.dense(b, self.cols, problem.b_order)
            args.b_stride = b.stride
            self.kept.append(b.array)
            shape = self._of_batch((self.rows, *b.array.shape[1:]), out, b)
        if bias is not None:
            vector = place.read(bias, "bias")
            vector.require((problem.dtype,), (problem.n,), contiguous=True)
            args.bias = vector.pointer
            self.kept.append(vector)
        made, whole = self.result(out, shape, problem.dtype)
        c = dense_of(whole, problem.batch, shared=False)
        args.c, args.ldc = whole.pointer, self.dense(c, self.rows, problem.c_order)
        args.c_stride = c.stride
        self.kept.append(whole)
        if not problem.argmax:
            return made
        has_gaps = args.ldc != problem.n and self.rows > 1
        if problem.c_order == "F" or has_gaps or c.stride not in (0, self.rows * problem.n):
            raise ValueError("out: must be contiguous and row-major where argmax is wanted")
        positions = place.empty(shape, self.matrix.argmax_type)
        array = place.read(positions, "argmax")
        args.argmax = array.pointer
        self.kept.append(array)
        return made, positions

    def sddmm(self, x: Dense, b: Dense | None, out: Out | None) -> Any:
        """Set the operands of the gradient of the values; returns dvalues."""
        args, problem = self.args, self.problem
        if b is None and problem.needs_b:
            raise TypeError('B: is None, which needs the message "copy_a"')
        args.x, args.ldc = x.array.pointer, self.dense(x, self.rows, problem.c_order)
        args.c_stride = x.stride
        self.kept.append(x.array)
        if b is not None:
            args.b, args.ldb = b.array.pointer, self.dense(b, self.cols, problem.b_order)
            args.b_stride = b.stride
            self.kept.append(b.array)
        nnz, heads = self.matrix.nnz, problem.heads
        shape = self._of_batch((nnz,) if heads == 1 else (nnz, heads), out, x, b)
        made, array = self.result(out, shape, problem.dtype)
        self.kept.append(array.require(contiguous=True))
        args.dvalues, args.dvalues_stride = array.pointer, nnz * heads
        return made

    def run_once(self) -> None:
        """Enqueue through `wlm_spmm`."""
        owner = context(self.place.device)
        csr = self.matrix.csr(self.values)
        check(lib.wlm_spmm(owner.handle, csr, self.problem.struct, self.args))
        self.finish()

    def finish(self) -> None:
        """Wait for the stream if the library of the results does not know it."""
        _arrays.finish(self.place.library, self.place.device, self.place.stream)


def _batch_of(options: Options) -> int | None:
    batch = options.get("batch")
    return None if batch is None else _arguments.integer("batch", batch)


def spmm(
    A: Any,
    B: Any,
    *,
    out: Any = None,
    values: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    bias: Any = None,
    seed: int = 0,
    stream: Any = None,
    **options: Unpack[Options],
) -> Any:
    """Compute C = activation(alpha * reduce_p(message(A[i,p], B[p,:])) + beta * C + bias).

    The product runs on the device of the arrays: NumPy arrays on the host, CUDA arrays on their
    GPU, there on `stream` or on the current stream of their library (torch, CuPy). On a GPU the
    call returns once the work is enqueued.

    Args:
        A: a `Matrix` of shape (M, K), or what `Matrix` takes; make a Matrix for repeated products.
        B: dense: shape (K, n), (K,), or (K, heads, n / heads); float32, float16, bfloat16 or
            float64. Row-major, or with shape (K, n) column-major, as `numpy.asfortranarray` and
            `tensor.t()` make it; it is read where it is. With transpose, M rows. None with the
            message "copy_a" and out. With batch, shape (batch, K, n) or (batch, K, heads,
            n / heads), where each product may be anywhere, or that of all products, (K, n).
        out: the array for C, of B's type and the shape of the result, row-major or column-major
            independently of B. It shares no memory with other operands. Without it C is row-major.
        values: used instead of the values of A: shape (nnz,) or (nnz, heads) in CSR order, of B's
            type, or float32 if that is a 16-bit type; with batch also (batch, nnz) and (batch,
            nnz, heads).
        alpha, beta: factors; beta other than 0 needs out. With beta = 0, out is not read.
        bias: n elements of B's type, added to every row.
        seed: of edge sampling.
        stream: a CUDA stream: an address or a stream of torch or CuPy. Ignored on the host.
        **options: reduce, message, transpose, heads, argmax, sample, batch and others, see
            `Options`.

    Returns:
        C of shape (M, n), or B's shape with M rows, in the library of B (NumPy, torch, CuPy, JAX);
        `out` if it was given. With batch that is one dimension more in front. With argmax the tuple
        (C, argmax): positions in `A.indices`, -1 for an empty row.

    Raises:
        TypeError, ValueError: naming the argument with a wrong type, shape, layout or device.
        MemoryError: there is no memory for the result.
        RuntimeError: with the detail text of the library, such as an error of the device.
    """
    if values is None and bias is None and not options and _plain.are_defaults(alpha, beta, seed):
        result = _plain.spmm(A, B, out)
        if result is not None:
            return result
    matrix = as_matrix(A)
    place = place_of(matrix, stream, B, out)
    batch = _batch_of(options)
    dense = read_dense(B, "B", place, batch)
    given = place.out(out)
    c = None if given is None else dense_of(given.array, batch, shared=False)
    shaped = dense or c
    if shaped is None:
        raise TypeError('B: is None, which needs out and the message "copy_a"')
    argmax_type = INDEX_TYPES[matrix.argmax_type]
    fixed = {"bias": bias is not None, "argmax_type": argmax_type}
    orders = {
        "b_order": "C" if dense is None else dense.order,
        "c_order": "C" if c is None else c.order,
    }
    product = problem(shaped.columns, shaped.array.dtype, **fixed, **orders, **options)
    call = Call(matrix, product, place, values)
    call.scale(alpha, beta, out, seed)
    result = call.spmm(dense, given, bias)
    call.run_once()
    return result


def sddmm(
    A: Any,
    X: Any,
    B: Any = None,
    *,
    out: Any = None,
    values: Any = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    stream: Any = None,
    **options: Unpack[Options],
) -> Any:
    """Compute the gradient of a product by the values of A (SDDMM).

    For edge p = (i, k) it is the sum over j of X[i,j] * d message(a_p, B[k,j]) / d a_p; for the
    message "mul" that is the dot product <X[i,:], B[k,:]>. reduce is "sum", or "mean", which
    divides by the number of edges of the row.

    Args:
        A: a `Matrix` of shape (M, K), or what `Matrix` takes.
        X: the gradient dC, dense: shape (M, n), or row-major (M, heads, n / heads).
        B: dense: shape (K, n), or row-major (K, heads, n / heads), of X's type; None with the
            message "copy_a". X and B are row-major or column-major, each by itself. With batch,
            each has one dimension more in front, or is that of all products.
        out: the array for the result; `alpha`, `beta`, `values` and `stream` are as for `spmm`.
        **options: message, reduce, heads, batch and deterministic, see `Options`.

    Returns:
        An array of shape (nnz,) or (nnz, heads) and of X's type, in CSR order; with batch (batch,
        nnz) or (batch, nnz, heads).

    Raises:
        The errors of `spmm`.
    """
    matrix = as_matrix(A)
    place = place_of(matrix, stream, X)
    batch = _batch_of(options)
    x, b = dense_of(place.read(X, "X"), batch), read_dense(B, "B", place, batch)
    orders = {
        "b_order": "C" if b is None else b.order,
        "c_order": x.order,
    }
    product = problem(x.columns, x.array.dtype, operation="sddmm", **orders, **options)
    call = Call(matrix, product, place, values)
    call.scale(alpha, beta, out)
    result = call.sddmm(x, b, place.out(out))
    call.run_once()
    return result
