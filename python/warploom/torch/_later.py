"""Kernels that compile on other threads, while the caller's own code computes.

A thread that may refuse a call gets NotReady for one whose kernels were not run yet, once for each
product, and for each size of a matrix that is used once. Meanwhile other threads run the call and
its gradients with the same operands, on streams of their own, which chooses, compiles and loads the
kernels of both; their results are dropped.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager, suppress
from typing import Any

import torch

from warploom.torch._capture import step_of_thread
from warploom.torch._internals import has_global_hooks, is_deterministic, saves_by_hooks
from warploom.torch._plan import is_captured

# The least index of a device whose kernels compile while other code computes; that of a host is -1.
FIRST_DEVICE = 0
THREADS = 8
# Calls with more memory for a value of each edge and column, as parts of that of a GPU, wait: the
# other code may need several times as much.
MOST_OF_MEMORY = 1 / 32

Job = Sequence["futures.Future[None]"]


class NotReady(Exception):
    """Kernels of a call are being compiled; the job ends with them."""

    def __init__(self, job: Job) -> None:
        super().__init__("its kernels are being compiled")
        self.job = job


class _Thread(threading.local):
    """What this thread runs.

    module: one that has other code for calls that are not ready; None: each call waits.
    is_timed: calls wait as well, since what they take is measured.
    """

    module: torch.nn.Module | None = None
    is_timed = False


thread = _Thread()
_pool: futures.Executor | None = None
_first_uses: dict[tuple[int, str], Job] = {}  # by the index of a device, and what is used


def _after_fork() -> None:
    global _pool
    _pool = None
    _first_uses.clear()


os.register_at_fork(after_in_child=_after_fork)


def is_done(job: Job) -> bool:
    """Whether all kernels of a job are there, or failed, which the call itself will report."""
    return all(one.done() for one in job)


def must_wait() -> bool:
    """Whether a switch between two codes would be felt.

    A recomputation takes the road of its forward pass, a deterministic result has the same bits in
    each step, a step that is captured is warmed up with the kernels that it replays, and hooks
    would see a call twice that is refused behind them.
    """
    if thread.is_timed or saves_by_hooks() or is_deterministic():
        return True
    if step_of_thread.is_replayed or has_global_hooks():
        return True
    module = thread.module
    return module is not None and any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks
        for part in module.modules()
    )


def may_refuse(tensor: torch.Tensor) -> bool:
    """Whether a call on the device of this tensor may be refused."""
    return thread.module is not None and tensor.get_device() >= FIRST_DEVICE and not must_wait()


@contextmanager
def timed() -> Iterator[None]:
    """Let the calls of this thread wait for their kernels."""
    before, thread.is_timed = thread.is_timed, True
    try:
        yield
    finally:
        thread.is_timed = before


def need(what: str, tensor: torch.Tensor, first: Callable[[], Any]) -> None:
    """Raise NotReady while another thread runs `first`, the first use of something on the tensor's
    device: it opens the device, reads databases, and loads compilers and kernels."""
    key = tensor.get_device(), what
    job = _first_uses.get(key)
    if (job is None or not is_done(job)) and may_refuse(tensor):
        if job is None:
            job = _first_uses[key] = _start(key[0], [first])
        raise NotReady(job)


def is_ready(graph: Any) -> bool:
    """Whether the calls that were made with a graph are ready."""
    products = list(graph._products.values())  # other threads may add some
    jobs = [job for product in products for job in list(product.jobs.values())]
    return bool(jobs) and all(map(is_done, jobs))


def chosen(
    operation: Any, graph: Any, product: Any, operands: Sequence[Any], options: Any, numbers: Any,
    needs: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """The graph and product of a call: those of the graph's successor as soon as they are ready.

    Raises NotReady unless the kernels of the call and of its gradients were run before.
    """
    if graph.successor is not None:
        better = operation.product(graph.successor, operands, options)
        if not _job(graph.successor, better, operands, numbers, needs):
            return graph.successor, better
    job = _job(graph, product, operands, numbers, needs)
    if job:
        raise NotReady(job)
    return graph, product


def _job(graph: Any, product: Any, operands: Sequence[Any], numbers: Any, needs: Any) -> Job:
    """What compiles the kernels of a call; empty where they are there."""
    key = needs
    if graph.once:  # whose kernels the library chooses by the size
        sizes = graph.rows.bit_length(), graph.cols.bit_length(), graph.nnz.bit_length()
        key = needs, sizes
    job: Job | None = product.jobs.get(key)
    if job is None:
        if must_wait() or _is_large(graph, operands):
            job = ()
        elif is_captured(graph.index):
            raise NotReady(())
        else:
            given = [None if one is None else one.detach() for one in operands]
            job = _start(graph.index, product.rehearsals(graph, given, numbers, needs))
        product.jobs[key] = job
    if job:
        if must_wait():
            futures.wait(job)
        if is_done(job):
            product.jobs[key] = job = ()
    return job


def _is_large(graph: Any, operands: Sequence[Any]) -> bool:
    if graph.index < 0:
        return False
    lines = [one[0] for one in operands if one is not None and one.dim() > 1 and len(one)]
    widest = max([line.numel() * line.element_size() for line in lines], default=0)
    memory = torch.cuda.get_device_properties(graph.index).total_memory
    return bool(graph.nnz * widest > memory * MOST_OF_MEMORY)


def _start(index: int, parts: Sequence[Callable[[], Any]]) -> Job:
    global _pool
    if _pool is None:
        _pool = futures.ThreadPoolExecutor(THREADS, "warploom-compile", _leave_captures)
    ready = torch.cuda.current_stream(index).record_event() if index >= 0 else None
    return tuple([_pool.submit(_run, part, index, ready) for part in parts])


def _leave_captures() -> None:
    """Let this thread allocate memory while another one captures a CUDA graph."""
    with suppress(OSError, AttributeError):
        mode = ctypes.c_int(1)  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        ctypes.CDLL("libcuda.so.1").cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))


def _run(part: Callable[[], Any], index: int, ready: Any) -> None:
    with torch.no_grad():
        if index < 0:
            part()
            return
        stream = torch.cuda.Stream(index)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            stream.wait_event(ready)
            part()
            stream.synchronize()  # before the operands may go
