"""The short way of a call: a product of NumPy arrays that lie row by row, with no other argument.

Reading operands of any library takes longer than a small product. Here all but B and C is checked
and filled in beforehand. What is not as expected is left to the general way, which also raises the
errors.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from warploom._library import check, context, ffi, lib, new
from warploom._matrix import Matrix
from warploom._problem import Problem, problem

_TYPES = {name: np.dtype(name) for name in ("float32", "float64", "float16")}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class Plain:
    """Products with one matrix on the host; `run` computes a wlm_execute_args."""

    __slots__ = ("_args", "_dtype", "_rows", "_run", "_shapes")

    def __init__(self, matrix: Matrix, problem: Problem, run: Callable[[Any], int]) -> None:
        self._rows, cols = matrix.shape
        self._run, self._dtype = run, _TYPES[problem.dtype]
        self._shapes = ((cols, problem.n), (cols,) if problem.n == 1 else ())
        self._args = new("wlm_execute_args")
        self._args.ldb = self._args.ldc = problem.n

    def product(self, b: Any, out: Any, workspace_size: int = 0) -> Any:
        """Compute C; returns None if this way does not take an array."""
        if type(b) is not np.ndarray or not b.flags.c_contiguous:
            return None
        dtype, given = self._dtype, b.shape
        if b.dtype is not dtype or given not in self._shapes:
            return None
        shape = (self._rows, *given[1:])
        if out is None:
            out = np.empty(shape, dtype)
        elif not (type(out) is np.ndarray and out.flags.carray and out.dtype is dtype):
            return None
        if out.shape != shape:
            return None
        args = ffi.new("wlm_execute_args *", self._args[0])
        args.b, args.c = ffi.from_buffer(b), ffi.from_buffer(out)
        if workspace_size:
            memory = ffi.from_buffer(np.empty(workspace_size + 16, np.uint8))
            args.workspace = memory + -int(ffi.cast("intptr_t", memory)) % 16
            args.workspace_size = workspace_size
        check(self._run(args))
        return out


def are_defaults(alpha: Any, beta: Any, seed: Any) -> bool:
    """Whether these arguments of a call are as if they were not given."""
    types = type(alpha) is type(beta) is float and type(seed) is int
    return types and alpha == 1 and beta == 0 and seed == 0


def of_problem(matrix: Matrix, problem: Problem, run: Callable[[Any], int]) -> Plain | None:
    """Return the short way of a problem, if it has one."""
    values = matrix.data
    parts = (matrix.indptr, matrix.indices, *(() if values is None else (values,)))
    others = (problem.sddmm, problem.transpose, problem.argmax, problem.struct.epilogue.bias)
    takes = (
        problem.dtype in _TYPES
        and problem.needs_b
        and problem.batch is None
        and problem.heads == 1
        and problem.b_order == problem.c_order == "C"
        and matrix.dtype in (None, problem.dtype)
        and 0 not in (problem.n, *matrix.shape)
        and all(type(part) is np.ndarray for part in parts)
    )
    return Plain(matrix, problem, run) if takes and not any(others) else None


# ---- one call ------------------------------------------------------------------------


_known: dict[int, tuple[weakref.ref[Any], Matrix]] = {}  # of SciPy's matrices in CSR, by their id


def _matrix_of(source: Any) -> Matrix | None:
    """Return a Matrix unchanged, or that of a SciPy matrix in CSR, which is kept as long as it.

    It is made again where the source has got other arrays.
    """
    if isinstance(source, Matrix):
        return source
    if getattr(source, "format", None) != "csr" or type(source.indptr) is not np.ndarray:
        return None
    key = id(source)
    found = _known.get(key)
    if found is not None:
        living: Any = found[0]()
        matrix = found[1]
        arrays = matrix.indptr is source.indptr and matrix.indices is source.indices
        same = arrays and matrix.data is source.data and matrix.shape == source.shape
        if living is source and same:
            return matrix
    matrix = Matrix(source)
    _known[key] = weakref.ref(source, lambda _: _known.pop(key, None)), matrix
    return matrix


def spmm(source: Any, b: Any, out: Any) -> Any:
    """Compute the product of a sum in one call; returns None if this way does not take it."""
    if type(b) is not np.ndarray or b.dtype not in _NAMES or b.ndim not in (1, 2):
        return None
    matrix = _matrix_of(source)
    if matrix is None:
        return None
    key = (b.shape[1] if b.ndim == 2 else 1, b.dtype)
    if key not in matrix.plain:
        matrix.plain[key] = _of_call(matrix, key[0], _NAMES[b.dtype])
    plain = matrix.plain[key]
    return plain and plain.product(b, out)


def _of_call(matrix: Matrix, n: int, dtype: str) -> Plain | None:
    owner, csr, made = context("host"), matrix.csr(), problem(n, dtype)
    return of_problem(
        matrix, made, lambda args: int(lib.wlm_spmm(owner.handle, csr, made.struct, args))
    )
