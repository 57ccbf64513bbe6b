"""Planned products: a problem bound to a loaded kernel and a matrix."""

from __future__ import annotations

import json as json_module
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from warploom import _arguments, _arrays, _plain
from warploom._arrays import INDEX_TYPES
from warploom._forks import renewed
from warploom._library import check, context, ffi, lib, new, own, text
from warploom._matrix import as_matrix
from warploom._problem import Options, Problem
from warploom._product import Call, Place, dense_of, place_of, read_dense

if TYPE_CHECKING:
    from typing_extensions import Unpack


def dtype_name(dtype: Any) -> str:
    """Return the name of a type, such as "float32", of a text or of NumPy's or torch's type."""
    name = str(getattr(dtype, "__name__", dtype))
    return name.rsplit(".", 1)[-1]


class Expected(NamedTuple):
    """The time that one call of a product is expected to take, in seconds.

    seconds: measured on this matrix or a similar one, or predicted by the cost model; None where
        rules alone choose the kernel.
    simple: from the bytes that the product moves and rates of memory. Compare these for several n
        where one of them has no expected time.
    """

    seconds: float | None
    simple: float


def expected_time(owner: Any, matrix: Any, problem: Any) -> Expected:
    """The time of a product, of the handles of a context and a matrix, before a plan is made."""
    found = ffi.new("double[2]")
    check(lib.wlm_expected_seconds(owner, matrix, problem, found, found + 1))
    return Expected(found[0] or None, found[1])


class Handle:
    """A wlm_plan, which is destroyed with its last reference and before its parents.

    create: the function of the C library that makes it, from the handles of a context and a matrix,
        a problem and `more`.
    kept: an object that owns the matrix.
    at_exit: see `own`.
    """

    __slots__ = ("pointer",)

    def __init__(
        self, device: str, owner: Any, matrix: Any, problem: Any, *more: Any,
        create: Callable[..., int] = lib.wlm_plan_create, kept: Any = None, at_exit: bool = True,
    ) -> None:  # fmt: skip
        made = ffi.new("wlm_plan **")
        check(create(owner, matrix, problem, *more, made))
        parents = owner, matrix, kept
        self.pointer = own(made[0], lib.wlm_plan_destroy, device, *parents, at_exit=at_exit)

    @property
    def workspace_size(self) -> int:
        """Bytes of memory that a call needs."""
        return int(lib.wlm_plan_workspace_size(self.pointer))

    @property
    def prepared_size(self) -> int:
        """Bytes of memory of the preparation; 0 without one."""
        return int(lib.wlm_plan_prepared_size(self.pointer))

    def prepare(self, memory: Any, stream: Any) -> None:
        """Enqueue the preparation into memory that outlives the plan."""
        check(lib.wlm_plan_prepare(self.pointer, memory, stream))


class Plan:
    """A product with a matrix that is used often: the kernel is chosen, compiled and prepared once.

        with warploom.Plan(A, n=64) as plan:  # or without with, and plan.close() at the end
            C = plan(B)

    Several threads may call one plan at once; `rebind`, `prepare` and `close` must not run
    meanwhile. A plan with online tuning is for one thread. The plan keeps the matrix and its memory
    alive; on a GPU, keep the plan until its work has ended.

    Args:
        A: a `Matrix`, or what `Matrix` takes.
        n: columns of B and C.
        dtype: type of B and C: "float32", "float16", "bfloat16" or "float64", or a type of NumPy
            or torch.
        operation: "spmm", or "sddmm" for the gradient of the values.
        bias: each call passes a bias.
        b_order, c_order: "C", the default, for row-major or "F" for column-major B, and C or X, of
            all calls.
        expected_calls: about how often the plan will be called. With 1, kernels that need
            preparation are left out, as a plan for `rebind` requires.
        variant: the name of the kernel to use, instead of a choice.
        online: try alternative kernels on a small share of the calls: True, or a dict with share,
            slowdown, abandon, challengers, first and matrix_name of warploom_tune.h.
        prepare: prepare the kernel now, if it needs that.
        stream: the stream on which a GPU measures and prepares.
        **options: see `Options`.

    Raises:
        TypeError, ValueError: naming the argument.
        LookupError: no kernel supports the problem on this device.
        MemoryError, RuntimeError: with the detail text of the library.
    """

    def __init__(
        self,
        A: Any,
        n: int,
        *,
        dtype: Any = "float32",
        operation: str = "spmm",
        bias: bool = False,
        b_order: str = "C",
        c_order: str = "C",
        expected_calls: int = 100,
        variant: str | None = None,
        online: bool | dict[str, Any] = False,
        prepare: bool = True,
        stream: Any = None,
        **options: Unpack[Options],
    ) -> None:
        self.matrix = as_matrix(A)
        self._bias = _arguments.flag("bias", bias)
        self._problem = Problem(
            n,
            dtype_name(dtype),
            operation=operation,
            bias=self._bias,
            expected_calls=expected_calls,
            argmax_type=INDEX_TYPES[self.matrix.argmax_type],
            b_order=b_order,
            c_order=c_order,
            **options,
        )
        place = place_of(self.matrix, stream)
        device = self.matrix.device
        of = device, context(device).handle, self.matrix.handle(place.stream), self._problem.struct
        given, kept = _online_options(online)
        if variant is not None and given:
            raise ValueError("variant: cannot be given with online; give online={'first': variant}")
        self._open: Handle | None
        if given:
            self._open = Handle(*of, given, create=lib.wlm_plan_create_online)
            del kept
        elif variant is not None:
            name = _arguments.text("variant", variant)
            try:
                self._open = Handle(*of, name, create=lib.wlm_plan_create_variant)
            except (ValueError, LookupError) as error:
                raise type(error)(f"variant: {error}") from None
        else:
            self._open = Handle(*of)
        self._online = given is not None
        self._plain = self._short_way(self._open)
        self._runs = _Runs()
        self._prepared: _arrays.Array | None = None
        if _arguments.flag("prepare", prepare):
            self.prepare(stream=stream)

    @property
    def _handle(self) -> Handle:
        if self._open is None:
            raise ValueError("the plan is closed; make a new one")
        return self._open

    @property
    def n(self) -> int:
        """Columns of B and C."""
        return self._problem.n

    @property
    def variant(self) -> str:
        """The name of the kernel, such as "row_vec/lanes=8,..."."""
        return str(ffi.string(lib.wlm_plan_variant(self._handle.pointer)).decode())

    @property
    def workspace_size(self) -> int:
        """Bytes of device memory that a call needs."""
        return self._handle.workspace_size

    @property
    def prepared_size(self) -> int:
        """Bytes of device memory for the preparation; if above 0, a call needs a prepared plan."""
        return self._handle.prepared_size

    def prepare(self, memory: Any = None, *, stream: Any = None) -> None:
        """Enqueue the preparation.

        Does nothing for a plan that needs none. Calls on other streams must wait for it.

        memory: uint8, `prepared_size` elements, aligned to 16; without it new memory is made.
        """
        size = self.prepared_size
        if size == 0:
            return
        place = place_of(self.matrix, stream)
        with self._runs.exclusive("prepare"):
            array = _buffer(memory, "memory", size, place)
            self._handle.prepare(array.pointer, place.pointer)
            self._prepared = array._replace(name="the memory of prepare")

    def execute(
        self,
        B: Any = None,
        *,
        X: Any = None,
        out: Any = None,
        values: Any = None,
        alpha: float = 1.0,
        beta: float = 0.0,
        bias: Any = None,
        seed: int = 0,
        workspace: Any = None,
        stream: Any = None,
    ) -> Any:
        """Enqueue the product. Arguments, result and errors are as for `spmm`, or `sddmm` with X.

        workspace: uint8, `workspace_size` elements, aligned to 16; without it new memory is made
            if the kernel needs some.
        """
        problem = self._problem
        if (bias is not None) != self._bias:
            raise ValueError(f"bias: the plan was made with bias={self._bias}")
        if (X is not None) != problem.sddmm:
            raise TypeError("X: is given for the operation sddmm, and only for that")
        with self._runs:
            others = values is not None or workspace is not None or self._prepared is not None
            if self._plain and not others and _plain.are_defaults(alpha, beta, seed):
                result = self._plain.product(B, out, self.workspace_size)
                if result is not None:
                    return result
            place = place_of(self.matrix, stream, B, X, out)
            self.matrix.require_unmoved()
            call = Call(self.matrix, problem, place, values)
            if self._prepared is not None:
                _arrays.require_unmoved(self._prepared)
                call.kept.append(self._prepared)
            call.scale(alpha, beta, out, seed)
            dense, given = read_dense(B, "B", place, problem.batch), place.out(out)
            if problem.sddmm:
                x = dense_of(place.read(X, "X"), problem.batch)
                result = call.sddmm(x, dense, given)
            else:
                result = call.spmm(dense, given, bias)
            size = self.workspace_size
            if size:
                memory = _buffer(workspace, "workspace", size, place)
                call.kept.append(memory)
                call.args.workspace, call.args.workspace_size = memory.pointer, size
            context(place.device)  # raises in a child of fork
            check(lib.wlm_plan_execute(self._handle.pointer, call.args))
            call.finish()
        return result

    __call__ = execute

    def rebind(self, A: Any) -> None:
        """Bind another matrix with the same types of indptr, indices and data; the kernel stays.

        Raises ValueError for plans that are prepared, tune online or keep A^T; make plans for
        rebind with expected_calls=1.
        """
        matrix = as_matrix(A)
        if matrix.device != self.matrix.device:
            raise ValueError(f"A: is on {matrix.device} and the plan on {self.matrix.device}")
        with self._runs.exclusive("rebind"):
            check(lib.wlm_plan_rebind(self._handle.pointer, matrix.csr()))
            self.matrix = matrix
            self._plain = self._short_way(self._handle)

    def explain(self, *, json: bool = False) -> Any:
        """Explain why the plan runs its kernel: a text, or with json a dict."""
        json = _arguments.flag("json", json)
        found = text(lib.wlm_plan_explain, self._handle.pointer, int(json))
        return json_module.loads(found) if json else found

    def expected(self, n: int | None = None) -> Expected:
        """The expected time of one call, also with another n, for which nothing is compiled."""
        problem = self._problem.struct
        if n is not None:
            other = new("wlm_problem")
            ffi.memmove(other, problem, ffi.sizeof("wlm_problem"))
            other.n = _arguments.integer("n", n, least=1)
            problem = other
        device = self.matrix.device
        matrix = self.matrix.handle(place_of(self.matrix, None).stream)
        return expected_time(context(device).handle, matrix, problem)

    def online_state(self) -> dict[str, Any]:
        """Return the state of online tuning: the fields of wlm_online_state in warploom_tune.h."""
        state = new("wlm_online_state")
        check(lib.wlm_plan_online_state(self._handle.pointer, state))
        found = {name: getattr(state, name) for name in dir(state) if name != "size"}
        found["variant"] = ffi.string(state.variant).decode()
        found["settled"] = bool(state.settled)
        return found

    def close(self) -> None:
        """Release the kernel and the memory of the plan, which cannot be used afterwards.

        Online tuning ends, and its result is stored in the user database. On a GPU this waits for
        the device's work. A second close does nothing. `with` closes the plan at its end.
        """
        with self._runs.exclusive("close"):
            handle, self._open = self._open, None
            if handle is None:
                return
            try:
                context(self.matrix.device)  # raises in a child of fork
                if self._online:
                    check(lib.wlm_plan_online_close(handle.pointer))
                _arrays.synchronize(self.matrix.device)
            finally:
                ffi.release(handle.pointer)
                self._prepared = None

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _short_way(self, handle: Handle) -> _plain.Plain | None:
        run = lib.wlm_plan_execute
        return _plain.of_problem(self.matrix, self._problem, lambda args: run(handle.pointer, args))

    def __repr__(self) -> str:
        variant = "closed" if self._open is None else self.variant
        return f"Plan({variant}, n={self.n}, {self.matrix!r})"


class _Runs:
    """Counts the calls of a plan that are running: within `with` one more."""

    def __init__(self) -> None:
        self._at_fork_reinit()
        renewed(self)

    def _at_fork_reinit(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def __enter__(self) -> None:
        with self._lock:
            self._count += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._count -= 1

    @contextmanager
    def exclusive(self, what: str) -> Iterator[None]:
        """Within this no call begins; RuntimeError if one is running."""
        with self._lock:
            if self._count:
                raise RuntimeError(f"{what}: another thread executes the plan")
            yield


def _buffer(given: Any, name: str, size: int, place: Place) -> _arrays.Array:
    """Return the caller's device memory, once it is checked, or new memory."""
    if given is None:
        return _arrays.scratch(place.library, place.device, size, place.stream)
    array = place.read(given, name).require(("uint8",), contiguous=True, writable=True)
    if len(array.shape) != 1 or array.shape[0] < size or array.address % 16:
        raise ValueError(f"{name}: needs {size} elements and an address that is a multiple of 16")
    return array


_ONLINE: dict[str, Callable[[str, Any], Any]] = {
    "share": _arguments.number,
    "slowdown": _arguments.number,
    "abandon": _arguments.number,
    "challengers": lambda name, value: _arguments.integer(name, value, most=2**31 - 1),
    "first": _arguments.text,
    "matrix_name": _arguments.text,
}


def _online_options(online: Any) -> tuple[Any, list[Any]]:
    """Return the wlm_online_options, None without online tuning, and the texts that they use."""
    if not isinstance(online, dict) and not _arguments.flag("online", online):
        return None, []
    options, kept = new("wlm_online_options"), []
    for name, value in (online if isinstance(online, dict) else {}).items():
        if name not in _ONLINE:
            raise TypeError(f"online: {name!r} is no option; the options are {', '.join(_ONLINE)}")
        if value is not None:
            kept.append(_ONLINE[name](f"online: {name}", value))
            setattr(options, name, kept[-1])
    return options, kept
