"""What all parts of the package share: the C library, its errors, and one context per device."""

from __future__ import annotations

import os
import threading
from typing import Any, NoReturn

from warploom._native import ffi, lib

_EXCEPTIONS: dict[int, type[Exception]] = {
    lib.WLM_ERR_INVALID_ARGUMENT: ValueError,
    lib.WLM_ERR_UNSUPPORTED: ValueError,
    lib.WLM_ERR_OVERFLOW: ValueError,
    lib.WLM_ERR_PARSE: ValueError,
    lib.WLM_ERR_OUT_OF_MEMORY: MemoryError,
    lib.WLM_ERR_IO: OSError,
    lib.WLM_ERR_NOT_FOUND: LookupError,
}


def fail(status: int) -> NoReturn:
    """Raise the exception that stands for a status, with the detail text of this thread."""
    detail = ffi.string(lib.wlm_error_detail()).decode()
    text = detail or ffi.string(lib.wlm_status_message(status)).decode()
    raise _EXCEPTIONS.get(status, RuntimeError)(text)


def check(status: int) -> None:
    """Raise unless the status is WLM_OK."""
    if status:
        fail(status)


def new(struct: str) -> Any:
    """A struct of the C interface with the defaults of its INIT macro, for example `new("wlm_problem")`."""
    value = ffi.new(struct + " *")
    check(getattr(lib, struct + "_init")(value, ffi.sizeof(struct)))
    return value


class Context:
    """One device with its measurements, compilers and kernel cache."""

    def __init__(self, device: str, device_allocator: Any = ffi.NULL) -> None:
        options = new("wlm_context_options")
        name = ffi.new("char[]", device.encode())
        options.device = name
        options.device_allocator = device_allocator
        handle = ffi.new("wlm_context **")
        check(lib.wlm_context_create(options, handle))
        self.device = device
        self.handle = ffi.gc(handle[0], lib.wlm_context_destroy)


_contexts: dict[str, Context] = {}
_lock = threading.Lock()
_forked = False


def _after_fork() -> None:
    """A child of fork cannot use the CUDA contexts of its parent."""
    global _forked, _lock
    _lock = threading.Lock()
    if any(device != "host" for device in _contexts):
        _forked = True


os.register_at_fork(after_in_child=_after_fork)


def context(device: str) -> Context:
    """The process-wide context of a device: "host", "cuda:0"."""
    if _forked and device != "host":
        raise RuntimeError(
            f"warploom: {device}: CUDA was used before this process was forked and cannot be used in the child; "
            'start workers with the "spawn" method'
        )
    found = _contexts.get(device)
    if found is None:
        with _lock:
            found = _contexts.get(device)
            if found is None:
                found = _contexts[device] = Context(device)
    return found
