"""Calls of the library inside of compiled programs, through XLA's FFI.

An operation is a primitive of JAX whose one parameter is a Request: all that is static. When a
program is lowered, a plan is made for the sizes of the request on each GPU, or on the host. The
call of the program names it by a key and passes arrays alone; `python/binding/jax_handler.c` runs
it. Workspaces are results of the call, so XLA gives their memory.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir

from warploom._arrays import DENSE_TYPES, INDEX_TYPES
from warploom._library import check, context, ffi, lib, logger, new
from warploom._problem import Problem

INDEX_SLOTS = tuple(
    ("csr", name) for name in ("rowptr", "colind", "t_rowptr", "t_colind", "t_order")
)
_CALL = "warploom_jax_call"
_PLATFORMS = {"cpu": "warploom_host", "cuda": "warploom_gpu"}  # and the target of each


class Request(NamedTuple):
    """What a call computes: a problem and the size of its matrix."""

    operation: str  # "spmm", "sddmm", "attention" or "message"
    rows: int
    cols: int
    nnz: int
    indices: str  # type of the graph's arrays
    dtype: str
    n: int
    heads: int = 1
    values: str = ""  # their type; "" = none
    transpose: bool = False
    reduce: str = "sum"
    message: str = "mul"
    argmax: bool = False
    text: str = ""  # of a message
    scalars: tuple[tuple[str, float], ...] = ()  # of a message, by name; of attention the slope

    def problem(self) -> tuple[Any, Any]:
        """The wlm_problem, and what keeps its texts alive."""
        made = Problem(
            self.n, self.dtype, reduce=self.reduce, message=self.message, heads=self.heads,
            transpose=self.transpose, argmax=self.argmax, argmax_type=INDEX_TYPES[self.indices],
            operation="spmm",
        )  # fmt: skip
        struct, text = made.struct, ffi.new("char[]", self.text.encode())
        struct.operation = getattr(lib, "WLM_" + self.operation.upper())
        if self.operation == "message":
            struct.reduce, struct.custom = lib.WLM_CUSTOM, text
        return struct, (made, text)

    @property
    def accumulator(self) -> str:
        """The type in which sums are made."""
        return "float64" if self.dtype == "float64" else "float32"

    @property
    def lines(self) -> tuple[int, int]:
        """The number of lines of B and of C."""
        return (self.rows, self.cols) if self.transpose else (self.cols, self.rows)


class Array(NamedTuple):
    """An array of a call."""

    slot: tuple[Any, ...]  # where its address goes in a warploom_jax_call
    shape: tuple[int, ...]
    dtype: str


class Layout(NamedTuple):
    """The arrays of a call behind those of the graph, and its results."""

    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    names: tuple[str, ...] = ()  # of the operands of a message
    widths: tuple[int, ...] = ()  # wlm_width of the operands and then the results of a message
    kinds: tuple[int, ...] = ()  # wlm_reduce of the results of a message
    places: tuple[int, ...] = ()  # wlm_place, like widths


def edge_shape(request: Request) -> tuple[int, ...]:
    """The shape of values: (nnz,), or (nnz, heads) for several heads."""
    return (request.nnz,) if request.heads == 1 else (request.nnz, request.heads)


@functools.lru_cache(maxsize=4096)
def layout(request: Request) -> Layout:
    """The arrays of a request. Raises what the library says of a wrong message."""
    if request.operation == "message":
        return _message_layout(request)
    if request.operation == "attention":
        return _attention_layout(request)
    of_b, of_c = ((count, request.n) for count in request.lines)
    b = Array(("args", "b"), of_b, request.dtype)
    values = Array(("csr", "values"), edge_shape(request), request.values)
    if request.operation == "sddmm":
        x = Array(("args", "x"), of_c, request.dtype)
        made = Array(("args", "dvalues"), edge_shape(request), request.dtype)
        return Layout((x, b), (made,))
    results = [Array(("args", "c"), of_c, request.dtype)]
    if request.argmax:
        results.append(Array(("args", "argmax"), of_c, request.indices))
    operands = ([values] if request.values else []) + ([b] if request.message != "copy_a" else [])
    return Layout(tuple(operands), tuple(results))


def _attention_layout(request: Request) -> Layout:
    """Of scores as GAT's; with transpose the gradient."""
    rows, cols, heads = request.rows, request.cols, request.heads

    def terms(name: str, count: int, width: int) -> Array:
        return Array(("attention", name), (count, width), request.accumulator)

    def lines(name: str, count: int) -> Array:
        return Array(("args", name), (count, request.n), request.dtype)

    pairs = terms("softmax", rows, 2 * heads)
    given = terms("left", rows, heads), terms("right", cols, heads), lines("b", cols)
    if not request.transpose:
        return Layout(given, (lines("c", rows), pairs))
    return Layout(
        (*given, lines("x", rows), pairs, terms("delta", rows, heads)),
        (terms("dscores", request.nnz, heads), terms("dright", cols, heads), lines("db", cols)),
    )


def _message_layout(request: Request) -> Layout:
    problem, _kept = request.problem()
    table = new("wlm_message_table")
    check(lib.wlm_message_describe(problem, table))
    lines = {lib.WLM_PLACE_ROW: request.rows, lib.WLM_PLACE_COLUMN: request.cols,
             lib.WLM_PLACE_EDGE: request.nnz, lib.WLM_PLACE_ALL: 1}  # fmt: skip
    pairs = 2 * request.heads  # of a score
    columns = {lib.WLM_WIDTH_N: request.n, lib.WLM_WIDTH_HEADS: request.heads, lib.WLM_WIDTH_ONE: 1,
               lib.WLM_WIDTH_WINS: request.n, lib.WLM_WIDTH_BASE: pairs,
               lib.WLM_WIDTH_SCALE: pairs}  # fmt: skip
    types = {lib.WLM_WIDTH_WINS: request.indices, lib.WLM_WIDTH_BASE: request.accumulator,
             lib.WLM_WIDTH_SCALE: request.accumulator}  # fmt: skip
    operands, names, results, positions = [], [], [], []
    widths, kinds, places = [], [], []
    for i in range(table.operands):
        of, name = table.operand[i], ffi.string(table.operand[i].name).decode()
        is_scalar = of.place == lib.WLM_PLACE_ALL and of.width == lib.WLM_WIDTH_ONE
        if name in ("degree", "kept") or is_scalar:
            continue
        slot = ("csr", "values") if name == "a" else ("message", "operands", i)
        dtype = request.values if name == "a" else types.get(of.width, request.dtype)
        operands.append(Array(slot, (lines[of.place], columns[of.width]), dtype))
        names.append(name)
        widths.append(of.width)
        places.append(of.place)
    for i in range(table.results):
        of = table.result[i]
        shape = (lines[of.place], columns[of.width])
        dtype = types.get(of.width, request.dtype)
        results.append(Array(("message", "results", i), shape, dtype))
        widths.append(of.width)
        kinds.append(of.reduce)
        places.append(of.place)
        if request.argmax and of.reduce in (lib.WLM_MAX, lib.WLM_MIN):
            positions.append(Array(("message", "positions", i), shape, request.indices))
    return Layout(
        tuple(operands), (*results, *positions), tuple(names), tuple(widths), tuple(kinds),
        tuple(places),
    )  # fmt: skip


# ---- plans ---------------------------------------------------------------------------------------


_lock = threading.Lock()


def _graph_slots(request: Request) -> tuple[tuple[Any, ...], ...]:
    return INDEX_SLOTS if request.transpose else INDEX_SLOTS[:2]


def _key(request: Request) -> int:
    """A number that is the same in each process, because JAX keeps compiled programs in files."""
    digest = hashlib.blake2b(repr(tuple(request)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


@functools.cache
def _register() -> None:
    for is_gpu, (platform, target) in enumerate(_PLATFORMS.items()):
        address = int(ffi.cast("uintptr_t", lib.warploom_jax_handler(is_gpu)))
        capsule = jax.ffi.pycapsule(_Function(address))
        jax.ffi.register_ffi_target(target, capsule, platform=platform)


class _Function:
    """A function of C, as jax.ffi.pycapsule takes one of ctypes."""

    def __init__(self, address: int) -> None:
        self._as_parameter_ = address


@functools.cache
def plan(request: Request, platform: str) -> int:
    """Make the plans of a request on all devices of a platform; returns the bytes of workspace."""
    _register()
    if platform == "cpu":
        devices = {-1: "host"}
    else:
        ordinals = [one.local_hardware_id for one in jax.local_devices(backend=platform)]
        devices = {ordinal: f"cuda:{ordinal}" for ordinal in ordinals}
    with _lock:
        return max(_plan_on(request, ordinal, name) for ordinal, name in devices.items())


def _plan_on(request: Request, ordinal: int, name: str) -> int:
    owner = context(name)
    call = ffi.new(_CALL + " *")
    csr = call.csr = new("wlm_csr")[0]
    csr = call.csr
    csr.rows, csr.cols, csr.nnz = request.rows, request.cols, request.nnz
    csr.rowptr_type = csr.colind_type = INDEX_TYPES[request.indices]
    if request.values:
        csr.has_values, csr.value_type = 1, DENSE_TYPES[request.values]
    call.args = new("wlm_execute_args")[0]
    call.message = new("wlm_message_args")[0]
    call.attention = new("wlm_attention_operands")[0]
    problem, kept = request.problem()
    options = new("wlm_matrix_options")
    options.grade = lib.WLM_STATS_ESTIMATED
    matrix, made = ffi.new("wlm_matrix **"), ffi.new("wlm_plan **")
    check(lib.wlm_matrix_create(owner.handle, ffi.addressof(call, "csr"), options, matrix))
    try:
        check(lib.wlm_plan_create(owner.handle, matrix[0], problem, made))
    finally:
        lib.wlm_matrix_destroy(matrix[0])
    if request.operation == "attention":
        call.attention.slope = dict(request.scalars)["slope"]
    elif request.scalars:
        _set_scalars(problem, dict(request.scalars), call.message)
    size = call.args.workspace_size = lib.wlm_plan_workspace_size(made[0])
    logger.info("%s: %s", request, ffi.string(lib.wlm_plan_variant(made[0])).decode())
    arrays = layout(request)
    slots = [*_graph_slots(request), *(one.slot for one in arrays.operands)]
    results = [one.slot for one in arrays.results] + ([("args", "workspace")] if size else [])
    offsets = [ffi.offsetof(_CALL, *slot) for slot in [*slots, *results]]
    check(lib.warploom_jax_add(
        _key(request), ordinal, made[0], call, offsets, len(slots), len(results)
    ))  # fmt: skip
    del kept
    return int(size)


def _set_scalars(problem: Any, scalars: dict[str, float], message: Any) -> None:
    table = new("wlm_message_table")
    check(lib.wlm_message_describe(problem, table))
    for i in range(table.operands):
        message.scalars[i] = scalars.get(ffi.string(table.operand[i].name).decode(), 0.0)


# ---- primitives ----------------------------------------------------------------------------------


def _lower(platform: str, ctx: Any, *arrays: Any, request: Request) -> Any:
    size = plan(request, platform)
    made = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in layout(request).results]
    types = made + ([jax.ShapeDtypeStruct((size,), np.uint8)] if size else [])
    call = jax.ffi.ffi_call(_PLATFORMS[platform], types)

    def run(*operands: Any) -> Any:
        used = [*operands[: len(_graph_slots(request))], *operands[len(INDEX_SLOTS) :]]
        return call(*used, key=np.int64(_key(request)))[: len(made)]

    return mlir.lower_fun(run, multiple_results=True)(ctx, *arrays)


def primitive(name: str) -> Primitive:
    """A primitive of the arrays of a graph and the operands of a request."""
    made = Primitive("warploom_" + name)
    made.multiple_results = True

    @functools.lru_cache(maxsize=1024)
    def compiled(request: Request) -> Any:
        return jax.jit(functools.partial(made.bind, request=request))

    made.def_impl(lambda *arrays, request: compiled(request)(*arrays))
    made.def_abstract_eval(
        lambda *_, request: [
            jax.core.ShapedArray(one.shape, jnp.dtype(one.dtype)) for one in layout(request).results
        ]
    )
    for platform in _PLATFORMS:
        mlir.register_lowering(made, functools.partial(_lower, platform), platform=platform)
    return made


def bind(of: Primitive, request: Request, *arrays: Any) -> Sequence[Any]:
    """The results of a request. Nothing is computed where there are no edges or columns."""
    if request.n and request.nnz:
        return of.bind(*arrays, request=request)  # type: ignore[no-any-return]
    return [
        jnp.full(one.shape, -1 if one.dtype == request.indices else 0, one.dtype)
        for one in layout(request).results
    ]
