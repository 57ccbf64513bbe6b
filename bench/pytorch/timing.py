"""Measure functions in turns, on a GPU eagerly or as CUDA graphs."""

from __future__ import annotations

import gc
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import torch

from bench.pytorch.cases import describe
from bench.results_file import Line

Function = Callable[[], Any]

# Seconds that a sample lasts at least; eager ones also measure the host, whose times vary.
GRAPHED_SAMPLE, EAGER_SAMPLE = 2e-3, 2e-2
CALLS_IN_GRAPH = 8
SLOW = 0.2  # calls of at least so many seconds are sampled less often


def synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def capture(function: Function, calls: int = 1) -> Function:
    """Capture `calls` calls as a CUDA graph; returns its replay. The function has run before."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    torch.cuda.set_sync_debug_mode(
        "error"
    )  # after a failed capture the allocator would be in an invalid state
    try:
        with torch.cuda.stream(side):
            function()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            function()
    return graph.replay


class Timer:
    """Samples one function: the mean time of enough calls in a row, in microseconds. wait: until
    what a call has returned is there."""

    def __init__(
        self, function: Function, wait: Callable[[Any], object], graphed: bool, least: float
    ) -> None:
        self.wait = wait
        self.graphed = graphed
        self.inner = 1
        self.function = function
        for _ in range(3):
            once = self._run(function, 1)
        if graphed:
            self.inner = CALLS_IN_GRAPH if once * CALLS_IN_GRAPH < GRAPHED_SAMPLE else 1
            self.function = capture(function, self.inner)
            self._run(self.function, 1)
            once = self._run(self.function, 1)
        self.is_slow = once > SLOW
        self.calls = max(1, min(1000, math.ceil(least / max(once, 1e-7))))

    def _run(self, function: Function, calls: int) -> float:
        """Return the seconds of one call."""
        self.wait(None)
        if self.graphed:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            start.record()
            for _ in range(calls):
                function()
            end.record()
            end.synchronize()
            return float(start.elapsed_time(end)) * 1e-3 / calls
        begin = time.perf_counter()
        for _ in range(calls - 1):
            function()
        self.wait(function())
        return (time.perf_counter() - begin) / calls

    def sample(self) -> float:
        return self._run(self.function, self.calls) / self.inner * 1e6


def make_timers(
    functions: dict[str, Function],
    device: torch.device | Callable[[Any], object],
    graphed: bool,
    least: float | None = None,
) -> tuple[dict[str, Timer], dict[str, str]]:
    """Return timers of functions that could run and be captured, and why others could not.

    device: that of torch, or what waits for a result. least: seconds that a sample lasts at least.
    """
    timers: dict[str, Timer] = {}
    failed: dict[str, str] = {}
    wait = device if callable(device) else lambda _: synchronise(device)
    least = least or (GRAPHED_SAMPLE if graphed else EAGER_SAMPLE)
    for name, function in functions.items():
        try:
            timers[name] = Timer(function, wait, graphed, least)
        except Exception as error:  # a baseline that cannot run or be captured has no time
            failed[name] = describe(error)
    return timers, failed


def samples_in_turns(timers: dict[str, Timer], samples: int) -> dict[str, list[float]]:
    """Sample the functions in turns; returns all samples in microseconds.

    Each turn begins with another function, so that none always follows the same one.
    """
    names = list(timers)
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for turn in range(samples):
            first = turn % len(names) if names else 0
            for name in names[first:] + names[:first]:
                if turn < 3 or not timers[name].is_slow:
                    times[name].append(timers[name].sample())
    finally:
        gc.enable()
    return times


def sample_in_turns(timers: dict[str, Timer], samples: int) -> dict[str, float]:
    """`samples_in_turns`, and of each function the median."""
    times = samples_in_turns(timers, samples)
    return {name: statistics.median(values) for name, values in times.items()}


def spread(samples: list[float]) -> float:
    """The interquartile range over the median; 0 of one sample."""
    if len(samples) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / middle


def measure(
    functions: dict[str, Function], device: torch.device, graphed: bool, samples: int
) -> tuple[dict[str, float], dict[str, str]]:
    """Measure functions: returns medians in microseconds, and why others could not run."""
    timers, failed = make_timers(functions, device, graphed)
    return sample_in_turns(timers, samples), failed


def time_beside_pyg(
    functions: dict[str, Function],
    device: torch.device,
    samples: int,
    least: float | None = None,
) -> Line:
    """Time "warploom" and "pyg" eagerly; returns their medians and spreads, as fields of a line.

    least: as of `make_timers`. `failed` has the reasons of those that could not run.
    """
    timers, failed = make_timers(functions, device, False, least)
    times = samples_in_turns(timers, samples)
    line: Line = {}
    for name, prefix in (("warploom", ""), ("pyg", "pyg_")):
        values = times.get(name)
        line[f"{prefix}us"] = None if values is None else statistics.median(values)
        line[f"{prefix}spread"] = None if values is None else spread(values)
    return {**line, "failed": failed}


def call_of(
    call: Callable[..., torch.Tensor],
    operands: Iterable[torch.Tensor],
    upstream: torch.Tensor | None,
    fixed: Sequence[int] = (),
) -> Callable[[], list[torch.Tensor]]:
    """A call, or with the gradient of its result a step, forward and backward: returns the result
    and the gradients of all operands. fixed: numbers of operands that have none.
    """
    operands = [x.detach() for x in operands]
    if upstream is None:

        def forward() -> list[torch.Tensor]:
            with torch.no_grad():
                return [call(*operands)]

        return forward
    for number, operand in enumerate(operands):
        operand.requires_grad_(operand.is_floating_point() and number not in fixed)
    return step_of(lambda: call(*operands), operands, upstream)


def step_of(
    call: Callable[[], torch.Tensor], operands: Iterable[torch.Tensor], upstream: torch.Tensor
) -> Callable[[], list[torch.Tensor]]:
    """Forward and backward: returns the result and the gradients of operands that want one."""
    wanted = [operand for operand in operands if operand.requires_grad]

    def step() -> list[torch.Tensor]:
        out = call()
        gradients = torch.autograd.grad(out, wanted, upstream, allow_unused=True)
        return [out, *(gradient for gradient in gradients if gradient is not None)]

    return step


def first_calls(functions: dict[str, Function], device: torch.device) -> dict[str, float]:
    """Return the milliseconds of one call of each; those that raise are left out."""
    times = {}
    for name, function in functions.items():
        with suppress(Exception):
            synchronise(device)
            begin = time.perf_counter()
            function()
            synchronise(device)
            times[name] = (time.perf_counter() - begin) * 1e3
    return times


def peak_memory(function: Function, device: torch.device) -> float | None:
    """Return the MB that a call takes beside what is allocated before; None on a CPU."""
    if device.type != "cuda":
        return None
    synchronise(device)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    synchronise(device)
    return round((torch.cuda.max_memory_allocated() - before) / 1e6, 3)


def profile_kernels(function: Function, calls: int) -> float | None:
    """Return the microseconds of GPU work (kernels, copies, clears) in one call, by torch.profiler.

    Returns None if the profiler reports nothing, for example because the driver forbids it.
    """
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
            for _ in range(calls):
                function()
            torch.cuda.synchronize()
    assert profiler.profiler is not None
    results = profiler.profiler.kineto_results
    assert results is not None
    cuda = torch.autograd.DeviceType.CUDA  # type: ignore[attr-defined]
    nanoseconds = sum(
        event.duration_ns()
        for event in results.events()
        if event.device_type() == cuda and not event.is_user_annotation()
    )
    return nanoseconds * 1e-3 / calls or None
