"""Plans of the C library for products with a graph, and functions that enqueue them."""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import torch

from warploom import _library
from warploom._forks import renewed
from warploom._library import check, fail, new
from warploom._native import ffi, lib
from warploom._plan import Expected, Handle, expected_time
from warploom._problem import MESSAGES, NORMS, REDUCTIONS, SAMPLES
from warploom.torch._internals import raw_stream
from warploom.torch._state import TensorState, used

DENSE_TYPES = {
    torch.float32: lib.WLM_F32,
    torch.float16: lib.WLM_F16,
    torch.bfloat16: lib.WLM_BF16,
    torch.float64: lib.WLM_F64,
}
SCORES = {
    "gat": lib.WLM_SCORE_GAT,
    "edge": lib.WLM_SCORE_EDGE,
    "gatv2": lib.WLM_SCORE_GATV2,
    "gatv2_rows": lib.WLM_SCORE_GATV2,
    "dot": lib.WLM_SCORE_DOT,
    "dot_rows": lib.WLM_SCORE_DOT,
}
INDEX_TYPES = {torch.int32: lib.WLM_I32, torch.int64: lib.WLM_I64}
POSITION_TYPES = {**INDEX_TYPES, torch.int16: lib.WLM_I16}
LONGEST_OF_INT16 = 65536  # edges of a row whose positions may be of 16 bits

# A plan of a kept graph is expected to be executed this often, so that a preparation of its kernel
# pays.
EXPECTED_CALLS = 1000


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
    """The key of a plan: the problem, the shape of a row of B, and the type of the values."""

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
    gradient: bool = False  # of max and min, by argmax
    # the kind of scores: "gat", "edge", "gatv2" or "dot"; with transpose its gradient, and
    # "gatv2_rows" or "dot_rows": what that sums over rows
    attention: str = ""
    dropout: bool = False  # of attention
    bias: bool = False  # added to each row of C, of attention
    custom: str = ""  # the text of a message (warploom_message.h)
    positions: torch.dtype = torch.int64  # the type of argmax

    @property
    def n(self) -> int:
        """Columns of B and C."""
        n = 1
        for extent in self.width:
            n *= extent
        return n


# The texts that problems point to.
_texts: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


@functools.lru_cache(maxsize=1024)
def problem(request: Request, expected_calls: int) -> Any:
    """Make the wlm_problem of a request."""
    p = new("wlm_problem")
    p.n = request.n
    p.operation = lib.WLM_SDDMM if request.sddmm else lib.WLM_SPMM
    if request.gradient:
        p.operation = lib.WLM_ARGMAX_GRADIENT
    if request.attention:
        of_rows = request.attention.endswith("_rows")
        p.operation = lib.WLM_ATTENTION_ROWS if of_rows else lib.WLM_ATTENTION
        p.dropout = request.dropout
        p.epilogue.bias = request.bias
        p.score = SCORES[request.attention]
    p.message = MESSAGES[request.message]
    p.reduce = REDUCTIONS[request.reduce]
    p.dense_type = DENSE_TYPES[request.dtype]
    p.transpose = request.transpose
    p.heads = request.heads
    p.want_argmax = request.argmax
    p.argmax_type = POSITION_TYPES[request.positions]
    if request.custom:
        p.operation = lib.WLM_MESSAGE
        p.reduce = lib.WLM_CUSTOM
        p.custom = _texts[p] = ffi.new("char[]", request.custom.encode())
    p.policy.deterministic = request.deterministic
    p.policy.expected_calls = expected_calls
    if request.sample is not None:
        p.sampling.sample = SAMPLES[request.sample.strategy]
        p.sampling.norm = NORMS[request.sample.norm]
        p.sampling.width = request.sample.width
    return p


# ---- contexts ------------------------------------------------------------------------


@ffi.def_extern(error=ffi.NULL)  # type: ignore[untyped-decorator]
def warploom_allocate(user: Any, device: int, size: int, stream: Any) -> Any:
    """Allocate device memory from torch's caching allocator, for work on the stream."""
    try:
        address = torch.cuda.caching_allocator_alloc(
            size, device, int(ffi.cast("uintptr_t", stream))
        )
    except RuntimeError:  # torch.OutOfMemoryError, and in older versions others
        return ffi.NULL
    return ffi.cast("void *", address)


@ffi.def_extern()  # type: ignore[untyped-decorator]
def warploom_release(user: Any, device: int, memory: Any, size: int, stream: Any) -> None:
    """Release memory to torch's caching allocator, which knows its stream."""
    torch.cuda.caching_allocator_delete(int(ffi.cast("uintptr_t", memory)))  # type: ignore[no-untyped-call]


_allocator = ffi.new(
    "wlm_device_allocator *", {"allocate": lib.warploom_allocate, "release": lib.warploom_release}
)


@functools.cache
def _gpu_context(index: int) -> Any:
    context = _library.Context(f"cuda:{index}", _allocator)
    ffi.gc(
        context.handle, None
    )  # never destroyed: at the end of the process torch's allocator is gone before
    return context


def context(index: int) -> Any:
    """Return the context of GPU `index`, with torch's memory, or of the host for -1."""
    if index < 0:
        return _library.context("host")
    with lock:
        return _gpu_context(index)


def current_stream(index: int) -> int:
    """Return the address of the current CUDA stream of a device; 0 on the host."""
    return raw_stream(index) if index >= 0 else 0


def is_captured(index: int) -> bool:
    """Whether the current stream is being captured into a CUDA graph."""
    return index >= 0 and torch.cuda.is_current_stream_capturing()


def refuse_capture(index: int) -> None:
    """Raise RuntimeError where a plan is to be made while a stream is captured."""
    if is_captured(index):
        raise RuntimeError(
            "warploom: the first product of a kind measures and compiles, which a CUDA graph "
            "cannot capture; run the step a few times before you capture it"
        )


_empty_like = torch.empty_like
_new = ffi.new
_bind_like = lib.warploom_bind_like
_run = lib.warploom_run
_steps = lib.warploom_steps
# Held while contexts, matrices, and plans of moved ones are created.
lock = renewed(threading.RLock())
_locks: dict[Any, Any] = {}  # by matrices and request, while threads make this plan


@contextmanager
def lock_of(matrices: Any, request: Any) -> Iterator[None]:
    """Held while one plan is created; others compile at the same time."""
    key = id(matrices), request
    try:
        with _locks.setdefault(key, threading.RLock()):
            yield
    finally:
        _locks.pop(key, None)


os.register_at_fork(after_in_child=_locks.clear)


# ---- matrices and plans --------------------------------------------------------------


class Pattern(Protocol):
    """The pattern of a graph."""

    rowptr: torch.Tensor
    colind: torch.Tensor
    rows: int
    cols: int
    nnz: int
    index: int  # of the GPU; -1 = the host


class HeldPattern(Pattern, Protocol):
    """The same with the addresses of its memory."""

    def held(self) -> tuple[Any, int, int]:
        """What holds the memory of rowptr and colind, and their addresses."""


_CALL = ffi.typeof("warploom_call *")
_MOST_APART = (2**32 - 1) // 8  # elements of any type that rows of B may lie apart


def _bind(
    call: Any, context_: Any, problem_: Any, pattern: Pattern, values: torch.dtype | None
) -> None:
    """Describe a pattern to a call; values of this type (if any) are passed when it runs."""
    rowptr, colind = pattern.rowptr, pattern.colind
    lib.warploom_bind(
        call,
        context_.handle,
        problem_,
        [
            pattern.rows,
            pattern.cols,
            pattern.nnz,
            rowptr.data_ptr(),
            colind.data_ptr(),
            INDEX_TYPES[rowptr.dtype],
            INDEX_TYPES[colind.dtype],
        ],
        values is not None,
        lib.WLM_F32 if values is None else DENSE_TYPES[values],
    )


# Matrices that lost their last reference where a stream may be captured: to destroy one waits for
# the device, which ends each capture. Threads of autograd run inside captures of other threads.
_given_up: list[Any] = []


class Matrix:
    """A wlm_matrix: a pattern with its stats and, once it is built, its transpose.

    It has the addresses of rowptr and colind, whose memory PyTorch moves into shared memory where a
    program sends these tensors themselves to another process or calls `share_memory_`.
    """

    __slots__ = ("addresses", "context", "handle", "index", "tensors")

    def __init__(self, pattern: Pattern, values: torch.dtype | None) -> None:
        self.handle = ffi.NULL
        self.index = pattern.index
        self.tensors = rowptr, colind = pattern.rowptr, pattern.colind
        self.addresses = rowptr.data_ptr(), colind.data_ptr()
        self.context = context(pattern.index)
        call = ffi.new(_CALL)
        _bind(call, self.context, ffi.NULL, pattern, values)
        options = new("wlm_matrix_options")
        options.stream = ffi.cast("void *", current_stream(pattern.index))
        handle = ffi.new("wlm_matrix **")
        csr = ffi.addressof(call, "csr")
        check(lib.wlm_matrix_create(self.context.handle, csr, options, handle))
        self.handle = handle[0]
        while _given_up:
            lib.wlm_matrix_destroy(_given_up.pop())

    def __del__(
        self, destroy: Any = lib.wlm_matrix_destroy, at_exit: Any = sys.is_finalizing
    ) -> None:
        if at_exit() or _library.is_gone("host" if self.index < 0 else f"cuda:{self.index}"):
            return
        in_main_thread = threading.get_ident() == threading.main_thread().ident
        if self.index < 0 or (in_main_thread and not is_captured(self.index)):
            destroy(self.handle)
        else:
            _given_up.append(self.handle)

    def is_moved(self) -> bool:
        """Whether the memory of the pattern is elsewhere now, so that this must not be used."""
        rowptr, colind = self.tensors
        return (rowptr.data_ptr(), colind.data_ptr()) != self.addresses

    def longest(self) -> int:
        """Return the number of edges of the longest row."""
        return int(lib.wlm_matrix_stats(self.handle).longest)


class Matrices:
    """The matrices of a pattern, made at their first use and again where its memory was moved.

    It is a Pattern that keeps no Graph alive.
    """

    __slots__ = ("_made", "colind", "cols", "index", "nnz", "rowptr", "rows")

    def __init__(self, pattern: Pattern) -> None:
        self.rowptr, self.colind, self.index = pattern.rowptr, pattern.colind, pattern.index
        self.rows, self.cols, self.nnz = pattern.rows, pattern.cols, pattern.nnz
        self._made: dict[torch.dtype | None, Matrix] = {}  # by the type of values

    def __len__(self) -> int:
        return len(self._made)

    def of(self, values: torch.dtype | None) -> Matrix:
        """The matrix for values of this type. The first one checks the columns."""
        matrix = self._made.get(values)
        is_moved = matrix is not None and matrix.is_moved()
        if matrix is None or is_moved:
            with lock:
                known = self._made.get(values)
                if known is not matrix:  # made by another thread
                    return known  # type: ignore[return-value]
                if self.nnz and (is_moved or not self._made):
                    self._check()
                matrix = self._made[values] = Matrix(self, values)
        return matrix

    def expected(self, request: Request) -> Expected:
        """The expected time of a plan of this request, before it is made."""
        matrix = self.of(request.values)
        return expected_time(matrix.context.handle, matrix.handle, problem(request, EXPECTED_CALLS))

    def _check(self) -> None:
        if (self.rowptr.shape[0], self.colind.shape[0]) != (self.rows + 1, self.nnz):
            raise ValueError("warploom: rowptr, colind: their sizes changed; make a new Graph")
        least, most = (int(value) for value in torch.aminmax(self.colind))
        if least < 0 or most >= self.cols:
            raise ValueError(
                f"warploom: colind: {least} to {most} lie outside the {self.cols} columns"
            )


@functools.cache
def element(dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.empty(1, dtype=dtype, device=device)


class Launcher:
    """One product with one graph; enqueues it on the current stream."""

    __slots__ = (
        "call",
        "device",
        "index",
        "like",
        "nnz",
        "prepared",
        "request",
        "shape",
        "workspace",
    )

    def __init__(self, request: Request, pattern: Pattern) -> None:
        rows = pattern.cols if request.transpose else pattern.rows
        self.request = request
        self.device = pattern.rowptr.device
        self.index = pattern.index
        self.nnz = pattern.nnz
        self.shape = (rows, *request.width)
        self.workspace = 0
        self.prepared: torch.Tensor | None = None
        self.call = ffi.new(_CALL)
        # Has the shape and type of C, but no memory: empty_like() of it allocates C fastest.
        self.like: torch.Tensor | None = None

    def empty(self, b: torch.Tensor) -> torch.Tensor:
        """Memory for C, beside b."""
        like = self.like
        return b.new_empty(self.shape) if like is None else _empty_like(like)

    def renew(self) -> bool:
        """Make the plan again if the memory of its pattern was moved; returns whether it was.

        Each call asks before it reads `call` and `workspace`.
        """
        return False

    def _run(self, arrays: list[int], seed: int = 0) -> None:
        """Enqueue a product; see warploom_run."""
        self.renew()
        size, index = self.workspace, self.index
        work = torch.empty(size, dtype=torch.uint8, device=self.device) if size else None
        status = _run(
            self.call, arrays, 1.0, 0.0, seed,
            0 if work is None else work.data_ptr(), size, raw_stream(index) if index >= 0 else 0,
        )  # fmt: skip
        if status:
            fail(status)

    def multiply(
        self, b: torch.Tensor, values: torch.Tensor | None, seed: int = 0, alpha: float = 1.0,
        beta: float = 0.0, out: torch.Tensor | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """C = alpha * A * B + beta * C, in `out` or in new memory."""
        ldb = ldc = 0
        if out is None:
            like = self.like
            c = b.new_empty(self.shape) if like is None else _empty_like(like)
        else:
            c = out
            ldc = rows_apart(out)[1]
        if not b.is_contiguous():
            b, ldb = rows_apart(b)
        address = 0
        if values is not None:
            values = values.contiguous()
            address = values.data_ptr()
        if self.like is not None:  # of a kept plan
            self.renew()
        size, index = self.workspace, self.index
        work = torch.empty(size, dtype=torch.uint8, device=self.device) if size else None
        status = _run(
            self.call, [b.data_ptr(), c.data_ptr(), 0, address, 0, 0, 0, ldb, ldc],
            alpha, beta, seed,
            0 if work is None else work.data_ptr(), size, raw_stream(index) if index >= 0 else 0,
        )  # fmt: skip
        if status:
            if b.is_meta:  # whose number of a device is the CPU's
                raise ValueError("warploom: b is on meta, and the graph is not")
            fail(status)
        return c

    def reduce_values(self, values: torch.Tensor) -> torch.Tensor:
        """Compute C for a message without b."""
        c = self.empty(values)
        values = values.contiguous()
        self._run([0, c.data_ptr(), 0, values.data_ptr(), 0, 0, 0, 0, 0])
        return c

    def multiply_argmax(
        self, b: torch.Tensor, values: torch.Tensor | None, seed: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute C and the position of the edge of each element; -1 in an empty row."""
        c = self.empty(b)
        argmax = _empty_like(c, dtype=self.request.positions)
        ldb = address = 0
        if not b.is_contiguous():
            b, ldb = rows_apart(b)
        if values is not None:
            values = values.contiguous()
            address = values.data_ptr()
        self._run([b.data_ptr(), c.data_ptr(), 0, address, argmax.data_ptr(), 0, 0, ldb, 0], seed)
        return c, argmax

    def argmax_gradients(
        self,
        x: torch.Tensor,
        argmax: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        db: torch.Tensor | None,
        dvalues: torch.Tensor | None,
        first: int = 0,
        apart: int = 0,
    ) -> None:
        """Fill db and dvalues, of the accumulator's type and contiguous, from x = dC.

        first: the first column of x and argmax that is read. apart: the columns that they have, if
            these are more than the plan's.
        """
        x = x.contiguous()  # argmax has the same leading dimension
        b = None if b is None else b.contiguous()  # db has the same leading dimension
        values = None if values is None else values.contiguous()
        self._run(
            [address_of(b), 0, x.data_ptr() + first * x.element_size(), address_of(values),
             argmax.data_ptr() + first * argmax.element_size(),
             address_of(db), address_of(dvalues), 0, apart]
        )  # fmt: skip

    def edge_products(
        self, x: torch.Tensor, b: torch.Tensor | None, values: torch.Tensor | None, seed: int
    ) -> torch.Tensor:
        """Compute the gradient of C by the values (SDDMM), (nnz,) or (nnz, heads), from x = dC."""
        place = ldb = 0
        if b is not None:
            if not b.is_contiguous():
                b, ldb = rows_apart(b)
            place = b.data_ptr()
        return self._edge_products(x, place, ldb, values, seed)

    def row_products(
        self, x: torch.Tensor, first: torch.Tensor, second: torch.Tensor
    ) -> torch.Tensor:
        """SDDMM with a B of two rows, which lie anywhere: the rows' distance is its leading
        dimension. So nothing is copied, which would take about as long as the products."""
        first, second = first.contiguous(), second.contiguous()
        place, distance = first.data_ptr(), second.data_ptr() - first.data_ptr()
        ldb, rest = divmod(distance, x.element_size())
        if rest or not self.request.n <= ldb <= _MOST_APART:
            return self.edge_products(x, torch.stack([first, second]), None, 0)
        return self._edge_products(x, place, ldb, None, 0)

    def _edge_products(
        self, x: torch.Tensor, b: int, ldb: int, values: torch.Tensor | None, seed: int
    ) -> torch.Tensor:
        dvalues = x.new_empty(edge_shape(self.nnz, self.request.heads))
        ldx = 0
        if not x.is_contiguous():
            x, ldx = rows_apart(x)
        values = None if values is None else values.contiguous()
        self._run(
            [b, 0, x.data_ptr(), address_of(values), 0, 0, dvalues.data_ptr(), ldb, ldx], seed
        )
        return dvalues


class Steps:
    """Plans of attention that are enqueued together; see warploom_steps."""

    __slots__ = ("_plans", "calls", "device", "index", "size")

    def __init__(self, plans: list[Launcher]) -> None:
        self._plans = plans
        self.calls = ffi.new("warploom_call *[]", [*(plan.call for plan in plans), ffi.NULL])
        self.index = plans[0].index
        self._measure()

    def _measure(self) -> None:
        self.size = max(plan.workspace for plan in self._plans)
        self.device = self._plans[0].device if self.size else None

    def run(self, numbers: tuple[Any, ...], arrays: list[int]) -> None:
        """Enqueue all of them. numbers: the slope of leaky_relu or the scale of products, the
        dropout and its seed."""
        for plan in self._plans:
            if plan.renew():
                self._measure()
        size, index = self.size, self.index
        work = torch.empty(size, dtype=torch.uint8, device=self.device) if size else None
        status = _steps(
            self.calls, arrays, *numbers,
            0 if work is None else work.data_ptr(), size, raw_stream(index) if index >= 0 else 0,
        )  # fmt: skip
        if status:
            fail(status)


class OnceKind:
    """What the plans of one request have in common where each matrix is used once.

    It serves patterns of one device and of equal index types.
    """

    __slots__ = ("_keep", "like", "request", "transpose", "width")

    def __init__(self, request: Request, pattern: Pattern) -> None:
        self.request = request
        self.transpose = request.transpose
        self.width = request.width
        self.like = ffi.new(_CALL)
        self._keep = context(pattern.index), problem(request, 1)
        _bind(self.like, *self._keep, pattern, request.values)

    def of(self, pattern: HeldPattern) -> Launcher:
        """The plan of a pattern."""
        return OncePlan(self, pattern)


class OncePlan(Launcher):
    """A plan for a matrix that is used once: wlm_spmm chooses the kernel by its size."""

    __slots__ = ("_keep",)

    # Each mini-batch makes several, so the attributes of Launcher are set here alone.
    def __init__(self, kind: OnceKind, pattern: HeldPattern) -> None:
        self._keep, rowptr, colind = pattern.held()
        rows, cols, nnz = pattern.rows, pattern.cols, pattern.nnz
        self.request = kind.request
        self.index = pattern.index
        self.nnz = nnz
        self.shape = (cols if kind.transpose else rows, *kind.width)
        self.workspace = 0
        self.like = None
        self.call = call = _new(_CALL)
        _bind_like(call, kind.like, rows, cols, nnz, rowptr, colind)


class KeptPlan(Launcher):
    """A plan for a matrix that is used often."""

    __slots__ = ("_handle", "_matrices", "_matrix")

    def __init__(self, request: Request, matrices: Matrices) -> None:
        super().__init__(request, matrices)
        self.like = element(request.dtype, self.device).expand(self.shape)
        self._matrices = matrices
        self._make()

    def _make(self) -> None:
        refuse_capture(self.index)
        self._matrix = matrix = self._matrices.of(self.request.values)
        context_ = matrix.context
        self._handle = handle = Handle(
            context_.device, context_.handle, matrix.handle, problem(self.request, EXPECTED_CALLS),
            kept=matrix, at_exit=False,
        )  # fmt: skip
        self.workspace = handle.workspace_size
        size = handle.prepared_size
        if size:
            self.prepared = torch.empty(size, dtype=torch.uint8, device=self.device)
            memory, stream = self.prepared.data_ptr(), current_stream(self.index)
            handle.prepare(ffi.cast("void *", memory), ffi.cast("void *", stream))
            if self.index >= 0:  # later calls may be on any stream
                torch.cuda.current_stream(self.index).synchronize()
        self.call.plan = handle.pointer

    def renew(self) -> bool:
        """See Launcher."""
        matrix = self._matrix
        rowptr, colind = matrix.tensors
        if (rowptr.data_ptr(), colind.data_ptr()) == matrix.addresses:  # what is_moved does
            if (states := used.states) is not None:
                states += [(TensorState(one), self) for one in matrix.tensors]
            return False
        with lock:
            if self._matrix.is_moved():
                self._make()
        return True

    def of(self, pattern: Pattern) -> Launcher:
        """This plan, which is that of its pattern alone."""
        return self


# ---- edge lists ----------------------------------------------------------------------


def index_type(rows: int, cols: int, nnz: int) -> torch.dtype:
    """Return the index type of a pattern: int32 if its sizes fit."""
    fits = rows < 2**31 and cols < 2**31 and nnz < 2**31  # max() would compare traced sizes
    return torch.int32 if fits else torch.int64


OUTSIDE = -100  # what warploom_convert returns on the host where edges lie outside
NO_LOOPS = -1  # how many nodes get self loops


def convert(
    edges: torch.Tensor, row: int, col: int, nnz: int, rows: int, cols: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Convert edges, whose rows and columns lie at these addresses, to rowptr, colind and perm.

    edges: a tensor with their type and device.

    The result is int32 if that fits. Edges with an index outside of the matrix come behind the
    last row.
    """
    dtype = index_type(rows, cols, nnz)
    rowptr, colind, perm = (
        torch.empty(n, dtype=dtype, device=edges.device) for n in (rows + 1, nnz, nnz)
    )
    of, into = INDEX_TYPES[edges.dtype], INDEX_TYPES[dtype]
    addresses = [rowptr.data_ptr(), colind.data_ptr(), perm.data_ptr()]
    given, index = [rows, cols, nnz, row, col, of, NO_LOOPS], edges.get_device()
    place_edges(context(index), given, [*addresses, into, 0, 0], index)
    return rowptr, colind, perm


def place_edges(context_: Any, given: list[int], csr: list[int], index: int) -> int:
    """warploom_convert on the device with this index; raises its errors."""
    stream = raw_stream(index) if index >= 0 else 0
    count: int = lib.warploom_convert(context_.handle, given, csr, index < 0, stream)
    if count < 0 and count != OUTSIDE:
        fail(-count)
    return count


def convert_edges(
    edges: torch.Tensor, rows: int, cols: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Convert an edge_index (2, edges), whose targets are rows."""
    edges, row, col, nnz = ends_of(edges, False)
    return convert(edges, row, col, nnz, rows, cols)


def ends_of(edges: torch.Tensor, to_source: bool) -> tuple[torch.Tensor, int, int, int]:
    """An edge_index as `convert` takes it: rows are its targets, or with to_source its sources."""
    if edges.stride(1) != 1:
        edges = edges.contiguous()
    first = edges.data_ptr()
    second = first + edges.stride(0) * edges.element_size()
    nnz = edges.shape[1]
    return (edges, first, second, nnz) if to_source else (edges, second, first, nnz)


def edge_shape(nnz: int, heads: int) -> tuple[int, ...]:
    """Return the shape of a tensor of edges: (nnz,), or (nnz, heads) for several heads."""
    return (nnz,) if heads == 1 else (nnz, heads)


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """Return the type in which products of this type are summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def address_of(tensor: torch.Tensor | None) -> int:
    """Return the address of a tensor's memory; 0 for None."""
    return 0 if tensor is None else tensor.data_ptr()


def side_by_side(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Terms of rows and columns as the library takes them, and the distance of their rows.

    Heads lie side by side, and rows of both are equally far apart.
    """
    if left.dim() == 1:
        return left.contiguous(), right.contiguous(), 0
    stride = left.stride()
    if stride != right.stride() or stride[1] != 1 or stride[0] < left.shape[1]:
        left, right = left.contiguous(), right.contiguous()
        return left, right, left.shape[1]
    return left, right, stride[0]


def rows_apart(b: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Return the tensor and the distance of its rows in elements, 0 if it is contiguous.

    The tensor is a copy if the elements of a row are not neighbours or rows overlap.
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
