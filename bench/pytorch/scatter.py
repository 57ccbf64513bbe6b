"""The suite "scatter": reductions by an index beside PyTorch's operators, one JSON line each.

A line has the times of eager calls, forward or with the gradient by src, in microseconds. The times
by the library and by PyTorch's operators alone show whether the sizes in `LEAST`
(warploom/torch/_rows.py) are right for a device.
"""

from __future__ import annotations

import importlib
from collections import namedtuple
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import Tensor

from bench.pytorch.cases import Settings, Suite, describe
from bench.pytorch.compare import largest_difference
from bench.pytorch.timing import call_of, measure, peak_memory
from bench.results_file import Line
from warploom.torch import _rows, scatter

TOLERANCE = 1e-4
# Lines and columns.
SIZES = (
    *((1_000, n) for n in (4, 64)),
    *((10_000, n) for n in (1, 64)),
    *((100_000, n) for n in (1, 16, 64)),
    *((1_000_000, n) for n in (1, 16, 64)),
    *((10_000_000, n) for n in (1, 16)),
)
LINES_OF_A_ROW = 16
# Random indices name all rows equally often; skewed ones name the first rows most often.
ORDERS = ("sorted", "random", "skewed")
MODES = ("forward", "step")
REDUCTIONS = {"sum": "sum", "last": "sum", "mean": "mean", "mul": "prod", "max": "amax"}
FUNCTIONS = (*REDUCTIONS, "max_arg", "softmax", "csr_sum", "csr_max")


Case = namedtuple("Case", "function lines n order mode")


def cases(settings: Settings) -> Iterator[Case]:
    for (lines, n), function, order, mode in product(settings.sizes, FUNCTIONS, ORDERS, MODES):
        if order == "sorted" or not function.startswith("csr"):
            yield Case(function, lines, n, order, mode)


class _Inputs:
    """src (lines, n), or for "last" (n, lines), and the index of its lines."""

    def __init__(self, case: Case, device: torch.device) -> None:
        generator = torch.Generator(device).manual_seed(7)
        self.rows = max(case.lines // LINES_OF_A_ROW, 1)
        share = torch.rand(case.lines, generator=generator, device=device)
        if case.order == "skewed":
            share = share**3
        index = (share * self.rows).long().clamp_(max=self.rows - 1)
        self.index = index.sort()[0] if case.order == "sorted" else index
        ends = torch.bincount(index, minlength=self.rows).cumsum(0)
        self.indptr = torch.nn.functional.pad(ends, (1, 0))
        self.dim = 1 if case.function == "last" else 0
        shape = (case.n, case.lines) if self.dim else (case.lines, case.n)
        # Products of more numbers are too small for float32.
        self.src = torch.randn(shape, generator=generator, device=device)
        if case.function == "mul":
            self.src = self.src * 0.01 + 1


Reduce = Callable[[Tensor], Tensor]


def _own(function: str, inputs: _Inputs, is_fresh: bool = False) -> Reduce:
    """The call of our function; is_fresh: with an index that it has not seen."""

    def index() -> Tensor:
        given = inputs.indptr if function.startswith("csr") else inputs.index
        return given.clone() if is_fresh else given

    rows, dim = inputs.rows, inputs.dim
    if function == "softmax":
        return lambda src: scatter.scatter_softmax(src, index(), 0, rows)
    if function == "max_arg":
        return lambda src: scatter.scatter_max(src, index(), 0, None, rows)[0]
    if function.startswith("csr"):
        return lambda src: scatter.segment_csr(src, index(), None, function.removeprefix("csr_"))
    name = "sum" if function == "last" else function
    return lambda src: scatter.scatter(src, index(), dim, None, rows, name)


def _sized(reduce: Reduce, least: int) -> Reduce:
    """The same where the library computes from so many elements on, also of new indices."""
    sizes = dict.fromkeys(_rows.LEAST, _rows.Least(least, least, 0, least, 0))
    original = _rows._is_walked

    def is_walked(src: Tensor, reduce: str, lines: int, is_known: bool) -> bool:
        return original(src, "mul", lines, is_known)  # whose indices are sorted at once

    def call(src: Tensor) -> Tensor:
        before, _rows.LEAST, _rows._is_walked = _rows.LEAST, sizes, is_walked
        try:
            return reduce(src)
        finally:
            _rows.LEAST, _rows._is_walked = before, original

    return call


def _operators(case: Case, inputs: _Inputs) -> dict[str, Reduce]:
    """PyTorch's ways. What takes several operators is our own code without the library."""
    index, rows, dim = inputs.index, inputs.rows, inputs.dim
    name = case.function.removeprefix("csr_")
    if name not in REDUCTIONS:
        return {"operators": _sized(_own(case.function, inputs), 1 << 62)}
    operator = REDUCTIONS[name]
    wide = (index.unsqueeze(1 - dim)).expand_as(inputs.src)
    shape = (case.n, rows) if dim else (rows, case.n)

    def start(src: Tensor) -> Tensor:
        return src.new_full(shape, float(operator == "prod"))

    def scatter_reduce(src: Tensor) -> Tensor:
        return start(src).scatter_reduce(dim, wide, src, operator, include_self=operator == "prod")

    ways: dict[str, Reduce] = {"scatter_reduce": scatter_reduce}
    if operator == "sum":
        ways["scatter_add"] = lambda src: start(src).scatter_add_(dim, wide, src)
        ways["index_add"] = lambda src: start(src).index_add_(dim, index, src)
    if case.order == "sorted" and dim == 0:
        segments: Any = torch.segment_reduce
        kind = operator.removeprefix("a")
        ways["segment_reduce"] = lambda src: segments(
            src, kind, offsets=inputs.indptr, axis=0, initial=float(kind == "prod")
        ) if kind != "max" else segments(src, kind, offsets=inputs.indptr, axis=0)  # fmt: skip
    return ways


def _torch_scatter(case: Case, inputs: _Inputs) -> Reduce | None:
    """The same function of torch_scatter, where it is installed."""
    try:
        module: Any = importlib.import_module("torch_scatter")
    except Exception:  # a wheel for another version of torch
        return None
    own = _own(case.function, inputs)

    def call(src: Tensor) -> Tensor:
        global scatter
        before, scatter = scatter, module
        try:
            return own(src)
        finally:
            scatter = before

    return call


def _exact(case: Case, inputs: _Inputs, upstream: Tensor | None) -> list[Tensor]:
    """The results in float64 by PyTorch's operators.

    These divide the gradient of an extreme among equal elements, and ours gives it to the first. So
    each element is a little less than those before it, by less than what float32 can tell apart.
    """
    upstream = None if upstream is None else upstream.double()
    way, src = next(iter(_operators(case, inputs).values())), inputs.src.double()
    if REDUCTIONS.get(case.function.removeprefix("csr_")) == "amax":
        src -= torch.arange(case.lines, device=src.device).double().unsqueeze(1) * 1e-15
    made: list[Tensor] = call_of(way, [src], upstream)()
    return made


def _run_case(case: Case, settings: Settings) -> Line:
    device = torch.device(settings.device)
    inputs = _Inputs(case, device)
    own = _own(case.function, inputs)
    with torch.no_grad():
        upstream = torch.rand_like(own(inputs.src)) if case.mode == "step" else None
    ways = {
        "us": own,
        "fresh_us": _own(case.function, inputs, is_fresh=True),
        "walk_us": _sized(own, 0),
        "walk_fresh_us": _sized(_own(case.function, inputs, is_fresh=True), 0),
        "torch_scatter_us": _torch_scatter(case, inputs),
        **_operators(case, inputs),
    }
    functions = {
        name: call_of(way, [inputs.src], upstream) for name, way in ways.items() if way is not None
    }
    expected = _exact(case, inputs, upstream)
    errors, failed = {}, {}
    for name, function in list(functions.items()):
        try:
            errors[name] = largest_difference(function(), expected)
        except Exception as error:
            failed[name] = describe(error)
            del functions[name]
    worst = max(errors.get(name, 0.0) for name in ("us", "fresh_us", "walk_us", "walk_fresh_us"))
    if not worst <= TOLERANCE:
        raise ValueError(f"a result differs from that in float64 by {worst:.1e}")
    del expected
    times, refused = measure(functions, device, False, settings.samples)
    torch_times = {name: times[name] for name in times if not name.endswith("us")}
    best = min(torch_times, key=torch_times.__getitem__, default=None)
    plain = "operators" if "operators" in torch_times else "scatter_reduce"
    names = ("us", "fresh_us", "walk_us", "walk_fresh_us", "torch_scatter_us")
    return {
        **{name: times.get(name) for name in names},
        "scatter_reduce_us": times.get(plain),
        "torch_us": None if best is None else torch_times[best],
        "torch": best,
        "memory": peak_memory(functions["us"], device) if "us" in functions else None,
        "max_rel_err": worst,
        "rows": inputs.rows,
        "failed": failed | refused,
    }


SUITE = Suite(
    {"sizes": SIZES},
    {"sizes": ((300, 4),), "samples": 2},
    cases,
    lambda settings: lambda case: _run_case(case, settings),
    ("us", "fresh_us", "walk_us", "walk_fresh_us", "scatter_reduce_us", "torch_us", "max_rel_err"),
)
