"""Tuning, explaining choices, export and import of measurements, and devices."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from warploom import _arguments, _library
from warploom._arrays import INDEX_TYPES, stream_of
from warploom._library import Context, check, context, ffi, lib, new, text
from warploom._matrix import Stats, as_matrix
from warploom._plan import Plan, dtype_name
from warploom._problem import Options, Problem

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Candidate(NamedTuple):
    """A measured kernel; a failed one has a reason and no times."""

    variant: str
    failed: bool
    reason: str
    seconds: float
    spread: float
    gather_gbs: float
    max_rel_err: float
    prepare_seconds: float
    samples: int
    cold_seconds: float


Progress = Callable[[int, int, "Candidate | None"], object]


class _Listener:
    """Collects measurements and calls the user's function, which stops tuning by a true result or
    an exception."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.found: dict[str, Candidate] = {}
        self.error: BaseException | None = None

    def report(self, done: int, total: int, last: Any) -> bool:
        candidate = _candidate(last) if last else None
        if candidate:
            self.found[candidate.variant] = candidate
        # Measurements that arrive after the function failed are stored, too, so they are collected.
        return bool(self.progress and not self.error and self.progress(done, total, candidate))

    def fail(self, kind: Any, error: BaseException, traceback: Any) -> int:
        self.error = error
        return 1


def _string(text: Any) -> str:
    return str(ffi.string(text).decode()) if text else ""


def _candidate(found: Any) -> Candidate:
    numbers = [getattr(found, field) for field in Candidate._fields[3:]]
    return Candidate(_string(found.variant), bool(found.failed), _string(found.reason), *numbers)


def _report_failure(kind: Any, error: BaseException, traceback: Any) -> int:
    user = traceback.tb_frame.f_locals["user"]
    return int(ffi.from_handle(user).fail(kind, error, traceback))


@ffi.def_extern(onerror=_report_failure)  # type: ignore[untyped-decorator]
def warploom_progress(user: Any, done: int, total: int, last: Any) -> int:
    """Report the progress of a tuning to its listener."""
    return ffi.from_handle(user).report(done, total, last)  # type: ignore[no-any-return]


def tune(
    A: Any,
    n: int,
    *,
    dtype: Any = "float32",
    operation: str = "spmm",
    budget: float = 0.0,
    progress: Progress | None = None,
    name: str | None = None,
    seed: int = 1,
    again: bool = False,
    **options: Unpack[Options],
) -> list[Candidate]:
    """Measure the kernels for a problem on this matrix and store the results.

    Later plans and products with this matrix and similar ones use the results from the user
    database. Kernels that were already measured are skipped. The call blocks, and needs device
    memory for B and C.

    Args:
        A: a `Matrix`, or what `Matrix` takes.
        n: columns of B and C.
        dtype, operation: as for `Plan`.
        budget: a limit in seconds; 0 = measure all kernels.
        progress: called as progress(done, total, candidate or None); a true result stops, and
            the measurements so far are kept.
        name: the matrix name to store with the measurements.
        seed: of the order of kernels and of the operands.
        again: also measure kernels that were already measured.
        **options: see `Options`.

    Returns:
        The measurements of this call, the fastest first, failed kernels last.

    Raises:
        RuntimeError: there is no compiler or no user database.
        TypeError, ValueError: naming the argument.
        An exception of `progress` stops tuning and is raised again.
    """
    matrix = as_matrix(A)
    problem = Problem(
        n,
        dtype_name(dtype),
        operation=operation,
        argmax_type=INDEX_TYPES[matrix.argmax_type],
        **options,
    )
    if progress is not None and not callable(progress):
        raise TypeError(f"progress: a {type(progress).__name__} is no function")
    listener = _Listener(progress)
    user = ffi.new_handle(listener)
    settings = new("wlm_tune_options")
    settings.budget_seconds = _arguments.number("budget", budget)
    settings.seed, settings.again = _arguments.seed(seed), _arguments.flag("again", again)
    settings.progress, settings.user = lib.warploom_progress, user
    title = _arguments.text("name", name) if name is not None else ffi.NULL
    settings.matrix_name = title
    owner = context(matrix.device)
    handle = matrix.handle(stream_of(None, matrix.device, matrix.library))
    status = lib.wlm_tune(owner.handle, handle, problem.struct, ffi.NULL, settings)
    if listener.error:
        raise listener.error
    if status != lib.WLM_ERR_CANCELLED:
        check(status)
    _library.refresh_others(owner)
    return sorted(
        listener.found.values(), key=lambda candidate: (candidate.failed, candidate.seconds)
    )


def explain(
    A: Any,
    n: int,
    *,
    dtype: Any = "float32",
    operation: str = "spmm",
    expected_calls: int = 1,
    json: bool = False,
    **options: Unpack[Options],
) -> Any:
    """Explain which kernel a plan for this problem and matrix runs, and why.

    Arguments and errors are those of `Plan`. Returns a text, or with json a dict.
    """
    plan = Plan(
        A,
        n,
        dtype=dtype,
        operation=operation,
        expected_calls=expected_calls,
        prepare=False,
        **options,
    )
    return plan.explain(json=json)


def stats(A: Any) -> Stats:
    """Return the row statistics of a `Matrix`, or of any source that `Matrix` takes."""
    return as_matrix(A).stats()


def export_db(path: str | os.PathLike[str] | None = None) -> str | None:
    """Export all measurements and pins of the user database as JSON lines.

    Writes them to the file, or returns them as a text without a path. Raises LookupError if there
    is no user database, and OSError if the file cannot be written.
    """
    file = None if path is None else _arguments.path("path", path)
    owner = context("host")
    if file is None:
        return text(lib.wlm_export_string, owner.handle)
    check(lib.wlm_export_path(owner.handle, file))
    return None


def import_db(path: str | os.PathLike[str] | None = None, *, text: str | None = None) -> int:
    """Import measurements and pins from JSON lines in a file or text: all of them or none.

    They are added to the user database. Returns the number of measurements that it did not have.
    Raises ValueError with the number of an invalid line, LookupError if there is no user database,
    and OSError if the file cannot be read.
    """
    if (path is None) == (text is None):
        raise TypeError("path, text: give one of them")
    added = ffi.new("int64_t *")
    if path is not None:
        load, source = lib.wlm_import_path, _arguments.existing_path("path", path)
    else:
        load, source = lib.wlm_import_string, _arguments.text("text", text)
    owner = context("host")
    check(load(owner.handle, source, added))
    _library.refresh_others(owner)
    return int(added[0])


class Device(NamedTuple):
    """A device, its compiler, and the databases that it uses."""

    device: str  #: "host", "cuda:0"
    name: str  #: "NVIDIA H200"
    arch: str
    driver: str
    compiler: str  #: "" = none
    limits: str  #: what can run without a compiler; "" = everything can run
    database: str  #: the user's
    system_database: str  #: the shipped one


_LIMITS = {
    "host": "no C compiler: only unsampled sums of a * b in float32 with int32 indices run; "
    "install gcc or clang, or let WARPLOOM_CC name one",
    "cuda": "no NVRTC: only unsampled sums of a * b in float32 with int32 indices run, and what a "
    "kernel archive contains; "
    "pip install nvidia-cuda-nvrtc, or let WARPLOOM_NVRTC name the library",
}


def _describe(owner: Context) -> Device:
    info = owner.info()
    info["name"], info["device"] = info["device"], owner.device
    info["limits"] = "" if info["compiler"] else _LIMITS[info["kind"]]
    return Device(*(info[field] for field in Device._fields))


def devices() -> list[Device]:
    """List the devices of this machine: GPUs first, then the host.

    If a compiler is missing, `limits` says which products can still run. The logger "warploom"
    reports at level INFO why there is no GPU, or no further one.
    """
    found: list[Device] = []
    while True:
        name = f"cuda:{len(found)}"
        try:
            owner = _library.existing(name) or Context(name)
        except RuntimeError as error:
            _library.logger.info("%s: %s", name, error)
            break
        found.append(_describe(owner))
    return [*found, _describe(context("host"))]
