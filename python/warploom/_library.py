"""The C library, its errors as exceptions, and one context per device."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import json
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from warploom import _arguments
from warploom._forks import renewed
from warploom._native import ffi as ffi
from warploom._native import lib as lib

_EXCEPTIONS: dict[int, type[Exception]] = {
    lib.WLM_ERR_INVALID_ARGUMENT: ValueError,
    lib.WLM_ERR_UNSUPPORTED: ValueError,
    lib.WLM_ERR_OVERFLOW: ValueError,
    lib.WLM_ERR_PARSE: ValueError,
    lib.WLM_ERR_OUT_OF_MEMORY: MemoryError,
    lib.WLM_ERR_IO: OSError,
    lib.WLM_ERR_NOT_FOUND: LookupError,
}
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
logger = logging.getLogger("warploom")


def _in_python(detail: str) -> str:
    """Return the detail text of an operator with the name of Python's argument."""
    for prefix, name in (("op:activation", "activation"), ("op:", "operator")):
        if detail.startswith(prefix):
            return f"{name}: {detail[len(prefix) :].lstrip(' ,:')}"
    return detail


def fail(status: int) -> NoReturn:
    """Raise the exception for a status, with the detail text of this thread."""
    # A detail that is too long for its buffer may end inside a character.
    detail = ffi.string(lib.wlm_error_detail()).decode(errors="replace")
    text = _in_python(detail) or ffi.string(lib.wlm_status_message(status)).decode()
    raise _EXCEPTIONS.get(status, RuntimeError)(text)


def check(status: int) -> None:
    """Raise unless the status is WLM_OK."""
    if status:
        fail(status)


def new(struct: str) -> Any:
    """Create a struct of the C API, such as "wlm_problem", with the defaults of its INIT macro."""
    value = ffi.new(struct + " *")
    check(getattr(lib, struct + "_init")(value, ffi.sizeof(struct)))
    return value


def text(function: Callable[..., int], *arguments: Any) -> str:
    """Return the text that a function of the C API writes to its last parameter, a char **."""
    out = ffi.new("char **")
    check(function(*arguments, out))
    try:
        return str(ffi.string(out[0]).decode())
    finally:
        lib.wlm_string_free(out[0])


def own(
    handle: Any, destroy: Callable[[Any], None], device: str, *parents: Any, at_exit: bool = True
) -> Any:
    """Return the handle, which is destroyed with its last reference and before its parents.

    at_exit: whether the end of the process destroys it, too. The allocator of PyTorch is gone then.
    """

    def release(
        handle: Any,
        parents: tuple[Any, ...] = parents,
        is_ending: Callable[[], bool] = sys.is_finalizing,
        is_gone: Callable[[str], bool] = is_gone,  # modules have lost their names at the end
    ) -> None:
        if not is_gone(device) and (at_exit or not is_ending()):
            destroy(handle)

    return ffi.gc(handle, release)


def is_gone(device: str) -> bool:
    """Whether this is a child of fork, which leaves handles of a GPU alone: CUDA cannot be used."""
    return _forked and device != "host"


def _create(device: str, layers: list[Any], **fields: Any) -> Any:
    """Create a context with these fields of its options, and return its handle."""
    options = new("wlm_context_options")
    name, paths = ffi.new("char[]", device.encode()), ffi.new("char *[]", layers)
    options.device, options.layers, options.layer_count = name, paths, len(layers)
    for field, value in fields.items():
        setattr(options, field, value)
    handle = ffi.new("wlm_context **")
    check(lib.wlm_context_create(options, handle))
    return handle[0]


class Context:
    """One device with its measurements, compilers and kernel cache."""

    def __init__(self, device: str, device_allocator: Any = ffi.NULL) -> None:
        self.device = device
        self.require()
        if device != "host":
            load_nvrtc()
        handle = _create(device, _layers, device_allocator=device_allocator, **_files)
        self.handle = own(handle, lib.wlm_context_destroy, device)
        _open.add(self)

    def require(self) -> None:
        """Raise RuntimeError if this process cannot use the context, as in a child of fork."""
        if is_gone(self.device):
            raise RuntimeError(
                f"warploom: {self.device}: CUDA was used before this process was forked and cannot "
                'be used in the child; start workers with the "spawn" method'
            )

    def info(self) -> dict[str, str]:
        """Return the fields of `wlm_context_info`."""
        return dict(json.loads(text(lib.wlm_context_info, self.handle)))


_contexts: dict[str, Context] = {}
_open: weakref.WeakSet[Context] = weakref.WeakSet()  # also those of warploom.torch
_files: dict[str, Any] = {}  # fields of wlm_context_options
_layers: list[Any] = []  # paths
_lock = renewed(threading.Lock())
_forked = False


def _after_fork() -> None:
    """Mark GPUs as unusable in a child of fork, which cannot use the parent's CUDA contexts."""
    global _forked
    if any(context.device != "host" for context in _open):
        _forked = True


os.register_at_fork(after_in_child=_after_fork)


def context(device: str) -> Context:
    """Return the process-wide context of a device, for example "host" or "cuda:0"."""
    found = _contexts.get(device)
    if found is None:
        with _lock:
            found = _contexts.get(device)
            if found is None:
                found = _contexts[device] = Context(device)
    found.require()
    return found


def configure(
    *,
    database: str | os.PathLike[str] | None = None,
    system_database: str | os.PathLike[str] | None = None,
    kernel_cache: str | os.PathLike[str] | None = None,
    kernel_archive: str | os.PathLike[str] | None = None,
    compile_in_background: bool | None = None,
) -> None:
    """Name the files that this process uses, and say how it compiles; call it before any product.

    Args:
        database: the user database, in which `tune` keeps its results and from which kernels are
            chosen; by default that of the command `warploom`. It is created if it is missing.
        system_database: the measurements that are read besides; by default the shipped ones.
        kernel_cache: where compiled kernels are kept.
        kernel_archive: compiled kernels that are used instead of compiling, as `warploom kernels
            build` makes them; by default those beside the shipped measurements.

        compile_in_background: run the best kernel that needs no compiling until a thread has
            compiled the chosen one, instead of waiting. Results may then change in the last bits.

        For a file "" means none; None leaves a setting as it is.

    Raises:
        RuntimeError: a device is open already, because a matrix, product or plan was made.
        TypeError, ValueError: naming the argument.
    """
    given = {
        "database": database,
        "system_database": system_database,
        "kernel_cache": kernel_cache,
        "kernel_archive": kernel_archive,
    }
    files: dict[str, Any] = {}
    for name, file in given.items():
        if file is not None:
            path = _arguments.path(name, file)
            files[name] = ffi.new("char[]", os.path.abspath(path) if path else path)
    if compile_in_background is not None:
        files["compile_in_background"] = int(compile_in_background)
    with _lock:
        _require_closed("configure")
        _files.update(files)


def use(*paths: str | os.PathLike[str]) -> None:
    """Choose by exported data, too; call it before any product.

    Args:
        *paths: JSON lines of `export_db` or `warploom export`, tuning databases and kernel
            archives, or folders, which stand for their files that end in .jsonl, .db and .archive,
            ordered by name.

    The files are only read. A later one counts before an earlier one, also over several calls, all
    count before what ships with warploom, and the user database counts before all.

    Raises:
        FileNotFoundError: there is no such file or folder.
        LookupError: a folder has no such file.
        RuntimeError: a device is open already, because a matrix, product or plan was made; or a
            database or archive is damaged or of another version.
        OSError: a file cannot be read, or another user can write it.
        TypeError, ValueError: naming the argument, or a file that is no exported data.
    """
    if not paths:
        raise TypeError("paths: name a file or a folder")
    layers = []
    for path in paths:
        file = os.path.abspath(_arguments.existing_path("paths", path))
        layers.append(ffi.new("char[]", file))
    with _lock:
        _require_closed("use")
        none = ffi.new("char[]", b"")
        files = ("database", "system_database", "kernel_cache", "kernel_archive")
        trial = _create("host", layers, **dict.fromkeys(files, none))  # raises for what is wrong
        lib.wlm_context_destroy(trial)
        _layers.extend(layers)


def _require_closed(call: str) -> None:
    """Raise RuntimeError after a device was opened."""
    if _open:
        raise RuntimeError(
            f"warploom: {call}: a device is open already; call it before the first product"
        )


def refresh_others(owner: Context) -> None:
    """Let the other open contexts, such as those of warploom.torch, read the databases again."""
    for other in list(_open):
        if other is not owner and not is_gone(other.device):
            check(lib.wlm_context_refresh(other.handle))


def existing(device: str) -> Context | None:
    """Return the context of a device if it is already open."""
    return context(device) if device in _contexts else None


# ---- NVRTC of Python's packages ------------------------------------------------------


def nvrtc_files() -> Iterator[str]:
    """List files that may be NVRTC: on the loader's path, in toolkits, in Python's packages."""
    toolkits = [os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"]
    folders = [""] + [f"{toolkit}/lib64/" for toolkit in toolkits if toolkit]
    nvidia = importlib.util.find_spec("nvidia")
    for packages in (nvidia.submodule_search_locations or []) if nvidia else []:
        folders += [f"{packages}/cu13/lib/", f"{packages}/cuda_nvrtc/lib/"]
    for folder, version in itertools.product(folders, ("13", "12")):
        yield f"{folder}libnvrtc.so.{version}"


def load_nvrtc() -> None:
    """Load NVRTC unless WARPLOOM_NVRTC names it; the C library finds a loaded one by its name."""
    if os.environ.get("WARPLOOM_NVRTC"):
        return
    for file in nvrtc_files():
        try:
            ctypes.CDLL(file)
            return
        except OSError:
            continue


# ---- the log -------------------------------------------------------------------------


@ffi.def_extern()  # type: ignore[untyped-decorator]
def warploom_log(user: Any, level: int, message: Any) -> None:
    """Pass a message of the C library to the logger "warploom"."""
    logger.log(_LEVELS[level], "%s", ffi.string(message).decode(errors="replace"))


lib.wlm_set_log(lib.warploom_log, ffi.NULL, lib.WLM_LOG_WARNING)
