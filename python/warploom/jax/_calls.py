"""Calls of the library inside of compiled programs, through XLA's FFI.

An operation is a primitive of JAX whose one parameter is a Request: all that is static. When a
program is lowered, a plan is made for the sizes of the request on each GPU, or on the host. The
call of the program names it by a key and passes arrays alone; `python/binding/jax_handler.c` runs
it. Workspaces are results of the call, so XLA gives their memory.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from warploom._arrays import DENSE_TYPES, INDEX_TYPES
from warploom._forks import renewed
from warploom._library import check, context, ffi, lib, logger, new
from warploom._problem import Problem

_INDEX_SLOTS = [("csr", name) for name in ("rowptr", "colind", "t_rowptr", "t_colind", "t_order")]
INDICES = len(_INDEX_SLOTS)  # arrays of a graph, which come before the operands of a call
_CALL = "warploom_jax_call"
_TARGETS = {"cpu": "warploom_host", "cuda": "warploom_gpu"}  # by platform


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
    scalars: tuple[tuple[str, float], ...] = ()  # by name: of a message, and the slope of attention

    def problem(self) -> tuple[Any, Any]:
        """The wlm_problem, and what keeps its texts alive."""
        made = Problem(
            self.n, self.dtype, reduce=self.reduce, message=self.message, heads=self.heads,
            transpose=self.transpose, argmax=self.argmax, argmax_type=INDEX_TYPES[self.indices],
        )  # fmt: skip
        struct, text = made.struct, ffi.new("char[]", self.text.encode())
        struct.operation = getattr(lib, "WLM_" + self.operation.upper())
        if self.text:
            struct.reduce, struct.custom = lib.WLM_CUSTOM, text
        return struct, (made, text)

    def table(self) -> Any:
        """The wlm_message_table. Raises what the library says of a wrong message."""
        table, (problem, _kept) = new("wlm_message_table"), self.problem()
        check(lib.wlm_message_describe(problem, table))
        return table

    @property
    def accumulator(self) -> str:
        """The type in which sums are made."""
        return "float64" if self.dtype == "float64" else "float32"

    @property
    def of_edges(self) -> tuple[int, ...]:
        """The shape of values: (nnz,), or (nnz, heads) for several heads."""
        return (self.nnz,) if self.heads == 1 else (self.nnz, self.heads)

    def per_call(self, size: int) -> Request:
        """The request in which each call of a batch has heads of its own."""
        return self._replace(n=size * self.n, heads=size * self.heads)


class Array(NamedTuple):
    """An array of a call. The last four are of messages."""

    slot: tuple[Any, ...]  # where its address goes in a warploom_jax_call
    shape: tuple[int, ...]
    dtype: str
    name: str = ""
    place: int = lib.WLM_PLACE_ROW
    width: int = lib.WLM_WIDTH_N
    reduce: int = lib.WLM_SUM


class Layout(NamedTuple):
    """The arrays of a call behind those of the graph, and its results."""

    operands: tuple[Array, ...]
    results: tuple[Array, ...]


@functools.lru_cache(maxsize=4096)
def layout(request: Request) -> Layout:
    """The arrays of a request."""
    rows, cols, heads, n = request.rows, request.cols, request.heads, request.n
    if request.operation == "message":
        return _message_layout(request)
    if request.operation == "attention":  # with scores as GAT's; with transpose its gradient
        x, b, c, db = (
            Array(("args", name), (lines, n), request.dtype)
            for name, lines in (("x", rows), ("b", cols), ("c", rows), ("db", cols))
        )
        left, right, pairs, delta, dscores, dright = (
            Array(("attention", name), shape, request.accumulator)
            for name, shape in (
                ("left", (rows, heads)), ("right", (cols, heads)), ("softmax", (rows, 2 * heads)),
                ("delta", (rows, heads)), ("dscores", request.of_edges), ("dright", (cols, heads)),
            )
        )  # fmt: skip
        if request.transpose:
            return Layout((left, right, b, x, pairs, delta), (dscores, dright, db))
        return Layout((left, right, b), (c, pairs))
    of_b, of_c = ((rows, n), (cols, n)) if request.transpose else ((cols, n), (rows, n))
    b = Array(("args", "b"), of_b, request.dtype)
    if request.operation == "sddmm":
        x = Array(("args", "x"), of_c, request.dtype)
        return Layout((x, b), (Array(("args", "dvalues"), request.of_edges, request.dtype),))
    values = Array(("csr", "values"), request.of_edges, request.values)
    results = [Array(("args", "c"), of_c, request.dtype)]
    if request.argmax:
        results.append(Array(("args", "argmax"), of_c, request.indices))
    operands = ([values] if request.values else []) + ([b] if request.message != "copy_a" else [])
    return Layout(tuple(operands), tuple(results))


def _message_layout(request: Request) -> Layout:
    table, numbers = request.table(), dict(request.scalars)
    lines = request.rows, request.cols, request.nnz, 1  # by place
    n, heads, wide = request.n, request.heads, request.accumulator
    columns = (n, heads, 1, n, 2 * heads, 2 * heads)  # by width
    types = (*3 * [request.dtype], request.indices, wide, wide)
    operands, results, positions = [], [], []
    for i in range(table.operands):
        of, name = table.operand[i], ffi.string(table.operand[i].name).decode()
        shape, dtype = (lines[of.place], columns[of.width]), types[of.width]
        if name == "a":
            operands.append(
                Array(("csr", "values"), shape, request.values, name, of.place, of.width)
            )
        elif name not in ("degree", "kept") and name not in numbers:
            slot = "message", "operands", i
            operands.append(Array(slot, shape, dtype, name, of.place, of.width))
    for i in range(table.results):
        of = table.result[i]
        shape, dtype = (lines[of.place], columns[of.width]), types[of.width]
        rest = "", of.place, of.width, of.reduce
        results.append(Array(("message", "results", i), shape, dtype, *rest))
        if request.argmax and of.reduce in (lib.WLM_MAX, lib.WLM_MIN):
            positions.append(Array(("message", "positions", i), shape, request.indices, *rest))
    return Layout(tuple(operands), (*results, *positions))


# ---- plans ---------------------------------------------------------------------------------------


@functools.cache
def _register() -> None:
    for is_gpu, (platform, target) in enumerate(zip(("cpu", "CUDA"), _TARGETS.values())):
        address = int(ffi.cast("uintptr_t", lib.warploom_jax_handler(is_gpu)))
        capsule = jax.ffi.pycapsule(ctypes.c_void_p(address))
        jax.ffi.register_ffi_target(target, capsule, platform)


_lock = renewed(threading.Lock())


def _key(request: Request) -> int:
    """A number that is the same in each process, because JAX keeps compiled programs in files."""
    digest = hashlib.blake2b(repr(tuple(request)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _index_slots(request: Request) -> list[tuple[str, str]]:
    return _INDEX_SLOTS if request.transpose else _INDEX_SLOTS[:2]


@functools.cache
def _plan(request: Request, platform: str) -> int:
    """Make the plans of a request on all devices of a platform; returns the bytes of workspace."""
    devices = {-1: "host"}
    if platform != "cpu":
        ordinals = [one.local_hardware_id for one in jax.local_devices(backend=platform)]
        devices = {ordinal: f"cuda:{ordinal}" for ordinal in ordinals}
    with _lock:
        _register()
        return max(_plan_on(request, ordinal, name) for ordinal, name in devices.items())


def _plan_on(request: Request, ordinal: int, device: str) -> int:
    owner, call = context(device), ffi.new(_CALL + " *")
    for field, struct in (
        ("csr", "csr"), ("args", "execute_args"), ("message", "message_args"),
        ("attention", "attention_operands"),
    ):  # fmt: skip
        setattr(call, field, new("wlm_" + struct)[0])
    csr, numbers = call.csr, dict(request.scalars)
    csr.rows, csr.cols, csr.nnz = request.rows, request.cols, request.nnz
    csr.rowptr_type = csr.colind_type = INDEX_TYPES[request.indices]
    if request.values:
        csr.has_values, csr.value_type = 1, DENSE_TYPES[request.values]
    call.attention.slope = numbers.get("slope", 0)
    if request.text:
        table = request.table()
        for i in range(table.operands):
            name = ffi.string(table.operand[i].name).decode()
            call.message.scalars[i] = numbers.get(name, 0)
    options, (problem, _kept) = new("wlm_matrix_options"), request.problem()
    options.grade = lib.WLM_STATS_ESTIMATED
    matrix, made = ffi.new("wlm_matrix **"), ffi.new("wlm_plan **")
    check(lib.wlm_matrix_create(owner.handle, ffi.addressof(csr), options, matrix))
    try:
        check(lib.wlm_plan_create(owner.handle, matrix[0], problem, made))
    finally:
        lib.wlm_matrix_destroy(matrix[0])
    logger.info("%s on %s: %s", request, device, ffi.string(lib.wlm_plan_variant(made[0])).decode())
    call.args.workspace_size = lib.wlm_plan_workspace_size(made[0])
    operands, results = ([one.slot for one in arrays] for arrays in layout(request))
    slots = [*_index_slots(request), *operands, *results, ("args", "workspace")]
    offsets = [ffi.offsetof(_CALL, *slot) for slot in slots]
    counts = len(slots) - len(results) - 1, len(results) + 1
    check(lib.warploom_jax_add(_key(request), ordinal, made[0], call, offsets, *counts))
    return int(call.args.workspace_size)


# ---- primitives ----------------------------------------------------------------------------------


def _lower(platform: str, ctx: Any, *arrays: Any, request: Request) -> Any:
    made = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in layout(request).results]
    workspace = jax.ShapeDtypeStruct((max(_plan(request, platform), 16),), np.uint8)
    call = jax.ffi.ffi_call(_TARGETS[platform], [*made, workspace])

    def run(*given: Any) -> Any:
        used = [*given[: len(_index_slots(request))], *given[INDICES:]]
        return call(*used, key=np.int64(_key(request)))[:-1]

    return mlir.lower_fun(run, multiple_results=True)(ctx, *arrays)


def primitive(name: str) -> Primitive:
    """A primitive of the arrays of a graph and the operands of a request."""
    made = Primitive("warploom_" + name)
    made.multiple_results = True

    @functools.lru_cache(maxsize=1024)
    def compiled(request: Request) -> Any:
        return jax.jit(functools.partial(made.bind, request=request))

    def shapes(*_: Any, request: Request) -> list[Any]:
        results = layout(request).results
        return [jax.core.ShapedArray(one.shape, jnp.dtype(one.dtype)) for one in results]

    made.def_impl(lambda *arrays, request: compiled(request)(*arrays))
    made.def_abstract_eval(shapes)
    batching.primitive_batchers[made] = functools.partial(batch_as_heads, made)
    for platform in _TARGETS:
        mlir.register_lowering(made, functools.partial(_lower, platform), platform=platform)
    return made


def bind(of: Primitive, request: Request, *arrays: Any) -> Sequence[Any]:
    """The results of a request. Nothing is computed where there are no edges or columns."""
    if request.n and request.nnz:
        return of.bind(*arrays, request=request)  # type: ignore[no-any-return]
    results = layout(request).results
    return [jnp.full(r.shape, -1 if r.dtype == request.indices else 0, r.dtype) for r in results]


# ---- vmap: a batch becomes columns ---------------------------------------------------------------


def batch_size(arrays: Sequence[Any], dims: Sequence[Any]) -> int:
    """How many calls a batch stands for. Raises where the arrays of the graph are batched."""
    if any(dim is not None for dim in dims[:INDICES]):
        raise ValueError(
            "warploom.jax: vmap over graphs: a batch of graphs is one graph of all their nodes, "
            "as jraph.batch makes it"
        )
    return int(next(one.shape[dim] for one, dim in zip(arrays, dims) if dim is not None))


def tiled(array: Any, dim: int | None, size: int) -> Any:
    """(lines, size, ...): the batch behind the lines."""
    if dim is not None:
        return jnp.moveaxis(array, dim, 1)
    return jnp.broadcast_to(array[:, None], (array.shape[0], size, *array.shape[1:]))


def batch_as_heads(of: Any, arrays: Any, dims: Any, *, request: Request) -> Any:
    """Each call of a batch has heads of its own; operands with a number that all columns share
    take turns."""
    size, wide, small = batch_size(arrays, dims), Request.per_call, layout(request)
    indices, operands, dims = arrays[:INDICES], arrays[INDICES:], dims[INDICES:]
    shared = [
        one.width == lib.WLM_WIDTH_ONE or one.place == lib.WLM_PLACE_ALL for one in small.operands
    ]
    if any(is_shared and dim is not None for is_shared, dim in zip(shared, dims)):

        def turn(i: Any) -> Any:
            taken = [
                one if dim is None else jax.lax.dynamic_index_in_dim(one, i, dim, False)
                for one, dim in zip(operands, dims)
            ]
            return tuple(bind(of, request, *indices, *taken))

        made = jax.lax.map(turn, jnp.arange(size))
        return list(made), [0] * len(made)
    request = wide(request, size)
    given = [
        one if is_shared else tiled(one, dim, size).reshape(like.shape)
        for one, dim, is_shared, like in zip(operands, dims, shared, layout(request).operands)
    ]
    made = bind(of, request, *indices, *given)
    apart = zip(made, small.results)
    return [one.reshape(len(one), size, *like.shape[1:]) for one, like in apart], [1] * len(made)
