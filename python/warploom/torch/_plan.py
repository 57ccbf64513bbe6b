"""Plans: what the C library keeps for one product with one graph, and how a product is enqueued."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any, NamedTuple

import torch

from warploom import _library
from warploom._library import check, fail, new
from warploom._native import ffi, lib
from warploom._problem import MESSAGES, NORMS, REDUCTIONS, SAMPLES

DENSE_TYPES = {
    torch.float32: lib.WLM_F32,
    torch.float16: lib.WLM_F16,
    torch.bfloat16: lib.WLM_BF16,
    torch.float64: lib.WLM_F64,
}
INDEX_TYPES = {torch.int32: lib.WLM_I32, torch.int64: lib.WLM_I64}

# A plan of a kept graph is expected to be executed this often, so that a preparation of its kernel
# pays.
EXPECTED_CALLS = 1000
# Values come with each call; their address in a matrix only says that there are some.
VALUES_PER_CALL = 256


class Sample(NamedTuple):
    """ES-SpMM edge sampling: a row with more than `width` edges uses `width` of them.

    strategy: "bucket", "fastrand" or "fastrand_coprime".
    norm: of a sum: "none", "kept" (divide by the edges used) or "unbiased" (scale by edges / edges
        used).
    """

    width: int
    strategy: str = "fastrand"
    norm: str = "none"


class Request(NamedTuple):
    """What is fixed for a plan: the problem, the shape of a row of B, and the value type."""

    width: tuple[int, ...]  # shape of a row of B and of C
    dtype: torch.dtype
    values: torch.dtype | None = None
    heads: int = 1
    reduce: str = "sum"
    message: str = "mul"
    deterministic: bool = False
    sample: Sample | None = None
    transpose: bool = False
    argmax: bool = False
    sddmm: bool = False
    attention: str = ""  # "gat" or "edge": where its scores come from; with transpose its gradient
    dropout: bool = False  # of attention

    @property
    def n(self) -> int:
        """Columns of B and C."""
        n = 1
        for extent in self.width:
            n *= extent
        return n


@functools.lru_cache(maxsize=1024)
def problem(request: Request, expected_calls: int) -> Any:
    """The wlm_problem of a request."""
    p = new("wlm_problem")
    p.n = request.n
    p.operation = lib.WLM_SDDMM if request.sddmm else lib.WLM_SPMM
    if request.attention:
        p.operation = lib.WLM_ATTENTION
        p.dropout = request.dropout
        p.score = lib.WLM_SCORE_GAT if request.attention == "gat" else lib.WLM_SCORE_EDGE
    p.message = MESSAGES[request.message]
    p.reduce = REDUCTIONS[request.reduce]
    p.dense_type = DENSE_TYPES[request.dtype]
    p.transpose = request.transpose
    p.heads = request.heads
    p.want_argmax = request.argmax
    p.argmax_type = lib.WLM_I64
    p.policy.deterministic = request.deterministic
    p.policy.expected_calls = expected_calls
    if request.sample is not None:
        p.sampling.sample = SAMPLES[request.sample.strategy]
        p.sampling.norm = NORMS[request.sample.norm]
        p.sampling.width = request.sample.width
    return p


def how(deterministic: bool, sample: Sample | None, seed: int) -> tuple[bool, str, int, str, int]:
    """The last arguments of a product's registered op."""
    if sample is None:
        return deterministic, "", 0, "", 0
    return deterministic, sample.strategy, sample.width, sample.norm, seed


# ---- contexts ------------------------------------------------------------------------


@ffi.def_extern(error=ffi.NULL)  # type: ignore[untyped-decorator]
def warploom_allocate(user: Any, device: int, size: int, stream: Any) -> Any:
    """Device memory from torch's caching allocator, for work on the stream."""
    try:
        address = torch.cuda.caching_allocator_alloc(
            size, device, int(ffi.cast("uintptr_t", stream))
        )
    except RuntimeError:  # torch.OutOfMemoryError, and in older versions others
        return ffi.NULL
    return ffi.cast("void *", address)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def warploom_release(user: Any, device: int, memory: Any, size: int, stream: Any) -> None:
    """Give memory back to torch's caching allocator, which knows its stream."""
    torch.cuda.caching_allocator_delete(int(ffi.cast("uintptr_t", memory)))  # type: ignore[no-untyped-call]


_allocator = ffi.new(
    "wlm_device_allocator *", {"allocate": lib.warploom_allocate, "release": lib.warploom_release}
)


_opened: set[int] = set()


@functools.cache
def _gpu_context(index: int) -> Any:
    context = _library.Context(f"cuda:{index}", _allocator)
    ffi.gc(
        context.handle, None
    )  # it lives as long as the process: at its end torch's allocator goes first
    return context


def context(index: int) -> Any:
    """The context of a device: GPU `index`, with torch's memory, or the host for -1."""
    return _library.context("host") if index < 0 else _gpu_context(index)


def current_stream(index: int) -> int:
    """The address of the current CUDA stream of a device; 0 on the host."""
    return torch._C._cuda_getCurrentRawStream(index) if index >= 0 else 0


def is_captured(index: int) -> bool:
    """Whether the current stream is being captured into a CUDA graph."""
    return index >= 0 and torch.cuda.is_current_stream_capturing()


_empty_like = torch.empty_like
_run = lib.warploom_run
lock = threading.RLock()  # held while plans are created
_lost: set[int] = (
    set()
)  # GPUs that a parent process used: a child of fork leaves their objects alone


def _after_fork() -> None:
    global lock
    lock = threading.RLock()
    _lost.update(_opened)


os.register_at_fork(after_in_child=_after_fork)


# ---- matrices and plans --------------------------------------------------------------


def describe(
    rowptr: torch.Tensor, colind: torch.Tensor, cols: int, values: torch.dtype | None
) -> Any:
    """The wlm_csr of a pattern, whose values (of this type, if any) come with each call."""
    csr = new("wlm_csr")
    csr.rows = rowptr.shape[0] - 1
    csr.cols = cols
    csr.nnz = colind.shape[0]
    csr.rowptr = ffi.cast("void *", rowptr.data_ptr())
    csr.colind = ffi.cast("void *", colind.data_ptr())
    csr.rowptr_type = INDEX_TYPES[rowptr.dtype]
    csr.colind_type = INDEX_TYPES[colind.dtype]
    if values is not None:
        csr.values = ffi.cast("void *", VALUES_PER_CALL)
        csr.value_type = DENSE_TYPES[values]
    return csr


# Matrices that were given up while a stream was captured, when nothing may wait for the device.
_given_up: list[Any] = []


class Matrix:
    """A wlm_matrix: a kept pattern, measured, whose transpose stays once it was built."""

    __slots__ = ("context", "handle", "index", "tensors")

    def __init__(self, csr: Any, index: int, tensors: tuple[torch.Tensor, ...]) -> None:
        self.handle = ffi.NULL
        self.index = index
        self.tensors = tensors
        self.context = context(index)
        options = new("wlm_matrix_options")
        options.stream = ffi.cast("void *", current_stream(index))
        handle = ffi.new("wlm_matrix **")
        check(lib.wlm_matrix_create(self.context.handle, csr, options, handle))
        self.handle = handle[0]
        while _given_up:
            lib.wlm_matrix_destroy(_given_up.pop())

    def __del__(
        self, destroy: Any = lib.wlm_matrix_destroy, at_exit: Any = sys.is_finalizing
    ) -> None:
        if at_exit() or self.index in _lost:  # the device may be gone
            return
        if is_captured(self.index):
            _given_up.append(self.handle)
        else:
            destroy(self.handle)


@functools.cache
def _element(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(1, dtype=dtype, device=device)


class Plan:
    """One product with one graph; enqueues it on the current stream."""

    __slots__ = (
        "_keep",
        "call",
        "handle",
        "index",
        "like",
        "like_argmax",
        "nnz",
        "prepared",
        "request",
        "workspace",
    )

    def __init__(
        self, request: Request, csr: Any, matrix: Matrix | torch.Tensor, index: int
    ) -> None:
        rows = csr.cols if request.transpose else csr.rows
        device = torch.device("cpu") if index < 0 else torch.device("cuda", index)
        self.handle = ffi.NULL
        self.request = request
        self.index = index
        self.nnz = csr.nnz
        # Shape and type of C without its memory: empty_like() is the quickest way to make a tensor.
        self.like = _element(request.dtype, device).expand(rows, *request.width)
        self.like_argmax = self.like
        self.workspace = 0
        self.prepared: torch.Tensor | None = None
        self.call = ffi.new("warploom_call *")
        if request.argmax:
            self.like_argmax = _element(torch.int64, device).expand(rows, *request.width)
        if isinstance(matrix, Matrix):
            self._keep: Any = matrix
            self._create(matrix)
        else:
            context_ = context(index)
            problem_ = problem(request, 1)
            self._keep = (context_, csr, problem_, matrix)
            self.call.context = context_.handle
            self.call.csr = csr
            self.call.problem = problem_

    def _create(self, matrix: Matrix) -> None:
        handle = ffi.new("wlm_plan **")
        check(
            lib.wlm_plan_create(
                matrix.context.handle, matrix.handle, problem(self.request, EXPECTED_CALLS), handle
            )
        )
        self.handle = self.call.plan = handle[0]
        self.workspace = lib.wlm_plan_workspace_size(self.handle)
        size = lib.wlm_plan_prepared_size(self.handle)
        if size:
            self.prepared = torch.empty(size, dtype=torch.uint8, device=self.like.device)
            address = ffi.cast("void *", self.prepared.data_ptr())
            check(
                lib.wlm_plan_prepare(
                    self.handle, address, ffi.cast("void *", current_stream(self.index))
                )
            )
            if self.index >= 0:
                torch.cuda.current_stream(
                    self.index
                ).synchronize()  # executes may come on any stream

    def __del__(
        self, destroy: Any = lib.wlm_plan_destroy, at_exit: Any = sys.is_finalizing
    ) -> None:
        if not at_exit() and self.index not in _lost:
            destroy(self.handle)

    def _run(
        self,
        b: int = 0,
        c: int = 0,
        x: int = 0,
        values: int = 0,
        argmax: int = 0,
        db: int = 0,
        dvalues: int = 0,
        ldb: int = 0,
        ldc: int = 0,
        alpha: float = 1.0,
        seed: int = 0,
    ) -> None:
        size = self.workspace
        work = torch.empty(size, dtype=torch.uint8, device=self.like.device) if size else None
        status = lib.warploom_run(
            self.call,
            b,
            c,
            x,
            values,
            argmax,
            db,
            dvalues,
            ldb,
            ldc,
            alpha,
            seed,
            0 if work is None else work.data_ptr(),
            size,
            current_stream(self.index),
        )
        if status:
            fail(status)

    def multiply(
        self, b: torch.Tensor, values: torch.Tensor | None, seed: int = 0, alpha: float = 1.0
    ) -> torch.Tensor:
        """C = alpha * A * B."""
        c = _empty_like(self.like)
        ldb = 0
        if not b.is_contiguous():
            b, ldb = rows_apart(b)
        if values is None:
            address = 0
        else:
            if not values.is_contiguous():
                values = values.contiguous()
            address = values.data_ptr()
        size = self.workspace
        index = self.index
        if size:
            work = torch.empty(size, dtype=torch.uint8, device=self.like.device)
            status = _run(
                self.call, b.data_ptr(), c.data_ptr(), 0, address, 0, 0, 0, ldb, 0, alpha, seed,
                work.data_ptr(), size, current_stream(index),
            )  # fmt: skip
        else:
            status = _run(
                self.call, b.data_ptr(), c.data_ptr(), 0, address, 0, 0, 0, ldb, 0, alpha, seed,
                0, 0,
                torch._C._cuda_getCurrentRawStream(index) if index >= 0 else 0,
            )  # fmt: skip
        if status:
            fail(status)
        return c

    def reduce_values(self, values: torch.Tensor) -> torch.Tensor:
        """C of a message that has no b."""
        c = torch.empty_like(self.like)
        values = values.contiguous()
        self._run(c=c.data_ptr(), values=values.data_ptr())
        return c

    def multiply_argmax(
        self, b: torch.Tensor, values: torch.Tensor | None, seed: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """C and the position of the edge that each element comes from; -1 in an empty row."""
        c = torch.empty_like(self.like)
        argmax = torch.empty_like(self.like_argmax)
        b, ldb = rows_apart(b)
        values = None if values is None else values.contiguous()
        self._run(
            b.data_ptr(), c.data_ptr(), 0, address_of(values), argmax.data_ptr(), ldb=ldb, seed=seed
        )
        return c, argmax

    def argmax_gradients(
        self,
        x: torch.Tensor,
        argmax: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        db: torch.Tensor | None,
        dvalues: torch.Tensor | None,
    ) -> None:
        """Fill db and dvalues, of the accumulator's type and contiguous, from x = dC."""
        x = x.contiguous()  # ldc is that of argmax, too
        b = None if b is None else b.contiguous()  # ldb is that of db, too
        values = None if values is None else values.contiguous()
        self._run(
            b=address_of(b),
            x=x.data_ptr(),
            values=address_of(values),
            argmax=argmax.data_ptr(),
            db=address_of(db),
            dvalues=address_of(dvalues),
        )

    def edge_products(
        self, x: torch.Tensor, b: torch.Tensor | None, values: torch.Tensor | None, seed: int
    ) -> torch.Tensor:
        """SDDMM: the gradient of C by the values, (nnz,) or (nnz, heads), from x = dC."""
        dvalues = x.new_empty(edge_shape(self.nnz, self.request.heads))
        x, ldx = rows_apart(x)
        ldb = 0
        if b is not None:
            b, ldb = rows_apart(b)
        values = None if values is None else values.contiguous()
        self._run(
            b=address_of(b),
            x=x.data_ptr(),
            values=address_of(values),
            dvalues=dvalues.data_ptr(),
            ldb=ldb,
            ldc=ldx,
            seed=seed,
        )
        return dvalues


def edge_shape(nnz: int, heads: int) -> tuple[int, ...]:
    """The shape of a tensor with one element, or one for each head, for each edge."""
    return (nnz,) if heads == 1 else (nnz, heads)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """The type in which products of a type are summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def address_of(tensor: torch.Tensor | None) -> int:
    """The address of a tensor's memory; 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def rows_apart(b: torch.Tensor) -> tuple[torch.Tensor, int]:
    """The tensor and the distance of its rows in elements, 0 where it is contiguous.

    It is a copy where the elements of a row do not lie side by side or rows overlap.
    """
    if b.is_contiguous():
        return b, 0
    n = 1
    for extent, stride in zip(reversed(b.shape[1:]), reversed(b.stride()[1:])):
        if stride != n and extent != 1:
            return b.contiguous(), 0
        n *= extent
    distance = b.stride(0)
    return (b, distance) if distance >= n else (b.contiguous(), 0)
