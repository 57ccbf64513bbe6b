"""Run the cases that a results file lacks, and append a line for each."""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bench.pytorch.graphs import Csr, load
from bench.results_file import Line, case_name, open_results, read_lines


class Output(NamedTuple):
    """The results file, and limits on the cases that are run."""

    path: Path | None  # None = standard output
    budget: float = float("inf")  # no case starts after this many seconds
    only: tuple[str, ...] = ()  # texts that the name of a case must contain

    def wants(self, name: str) -> bool:
        return all(part in name for part in self.only)


@dataclass(frozen=True)
class Settings:
    """What is measured on which graphs. A suite has values of its own for the fields that it reads,
    and an option of the command sets the field of its name."""

    data: Path
    command: str = "warploom"  # makes twins
    twins: Path | None = None  # where made twins are kept
    samples: int = 7  # of each time
    device: str = "cuda" if torch.cuda.is_available() else "cpu"
    out: Path | None = None  # the results file
    graphs: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    modes: tuple[str, ...] = ()
    types: tuple[str, ...] = ("f32",)
    widths: tuple[int, ...] = ()  # columns, or edges of a sampling
    sizes: tuple[tuple[int, int], ...] = ()
    ranks: tuple[int, ...] = ()  # () = all of torchrun
    splits: tuple[str, ...] = ("auto",)
    n: int = 64  # columns of features and results
    features: int = 0
    seeds: int = 10  # of trainings, or the first nodes of a batch
    batches: int = 0
    warm_up: int = 0  # steps before those that are timed
    steps: int = 0
    epochs: int = 0
    scale: float = 1.0  # of nodes and edges
    seconds: float = 0.0  # of steps, at least
    limit: float = 0.0  # seconds in which a model must be ready and checked
    compiled: bool = True  # torch.compile takes part
    unfused: bool = False  # the scores of TransformerConv are computed apart
    sampled: Path | None = None  # results of `warploom bench sampled`, which has cuSPARSE's times

    def load(self, name: str) -> Csr:
        """Load a graph, as the function `load` does."""
        return load(name, self.data, self.command, self.twins)

    def timed_modes(self) -> tuple[str, ...]:
        """In which modes a function is timed."""
        return ("eager", "graphed") if self.device == "cuda" else ("eager",)

    def device_name(self) -> str:
        return torch.cuda.get_device_name() if self.device == "cuda" else "cpu"


class DeviceLostError(RuntimeError):
    """A kernel has left the GPU unusable for this process."""


def describe(error: Exception) -> str:
    """Return the type and the first line of an error."""
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _device_is_lost() -> bool:
    """Return whether an error of a kernel has left the GPU unusable for this process."""
    try:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _wants_memory(line: Line) -> bool:
    """Return whether a way of the line lacked memory; a failed capture does not release its own."""
    reasons = (line.get("failed") or {}).values()
    return any("OutOfMemory" in reason or "during capture" in reason for reason in reasons)


def _rounded(value: Any) -> Any:
    """Return a value of a line with 3 digits after the point, or 6 digits if it is below 1."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if not isinstance(value, float):
        return value
    return round(value, 3) if abs(value) >= 1 else float(f"{value:.6g}")


def _text(line: Line, fields: Sequence[str]) -> str:
    """Return these fields of a line, and why a method has none, for the log."""
    parts = [f"{name} {line[name]}" for name in fields if line.get(name) is not None]
    if line.get("failed"):
        parts.append(f"failed {line['failed']}")
    return ", ".join(parts)


def _missing(cases: Iterable[NamedTuple], output: Output, result: str) -> dict[str, NamedTuple]:
    """Return the cases that have no result in the output, by their names."""
    names = {case_name(case): case for case in cases}
    fields = next(iter(names.values()))._fields if names else ()
    lines = read_lines(output.path) if output.path else []
    if any(not {*fields, result} <= line.keys() for line in lines):
        raise ValueError(f"{output.path}: has lines of another suite; name another file")
    finished = {
        case_name(line[field] for field in fields) for line in lines if line[result] is not None
    }
    return {
        name: case for name, case in names.items() if name not in finished and output.wants(name)
    }


def _line_of(case: NamedTuple, measure: Callable[[Any], Line], results: Sequence[str]) -> Line:
    """Return the line of a case. Raises DeviceLostError."""
    try:
        line: Line = _rounded(case._asdict() | measure(case))
    except Exception as error:
        if _device_is_lost():
            raise DeviceLostError(f"{describe(error)}; run it again") from error
        failed = {"failed": {"warploom": describe(error)}}
        return {**case._asdict(), **dict.fromkeys(results), **failed}
    if not line.get("failed", True):
        del line["failed"]
    return line


def run_cases(
    cases: Iterable[Any],
    measure: Callable[[Any], Line],
    output: Output,
    results: Sequence[str],
) -> int:
    """Measure the cases without a result in the output, and append a line for each.

    cases: NamedTuples of one kind, whose fields are the first ones of a line.
    measure: returns the other fields of a case. If it raises, the error is the reason of a line
        without a result.
    results: the other fields of such a line, where they are None. The first one is None there and
        never elsewhere.

    A case that runs out of memory has a line only if it was the first one: after others it may have
    missed their memory, so the run ends and the next one repeats it.

    Returns how many cases gave no result.
    """
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
    warnings.filterwarnings("ignore", message=r"The usage of `scatter")
    todo = _missing(cases, output, results[0])
    begin, failures = time.monotonic(), 0
    with nullcontext(sys.stdout) if output.path is None else open_results(output.path) as stream:
        for number, (name, case) in enumerate(todo.items(), 1):
            left = f"warploom: bench: {len(todo) - number + 1} cases are left; run it again"
            if time.monotonic() - begin > output.budget:
                print(left, file=sys.stderr)
                break
            start = time.monotonic()
            gc.collect()  # what the last case left in cycles, such as a step that was captured
            try:
                line = _line_of(case, measure, results)
            except DeviceLostError as error:
                print(f"warploom: bench: {name}: {error}", file=sys.stderr)
                return failures + 1
            if number > 1 and _wants_memory(line):
                print(f"{left} ({name} needs the memory of those before it)", file=sys.stderr)
                break
            failures += line[results[0]] is None
            stream.write(json.dumps(line) + "\n")
            stream.flush()
            seconds = time.monotonic() - start
            print(
                f"[{number}/{len(todo)}] {name}: {_text(line, results)} in {seconds:.1f} s",
                file=sys.stderr,
            )
    return failures


class Suite(NamedTuple):
    """A suite: its cases, and what measures one of them."""

    defaults: dict[str, Any]  # settings
    quick: dict[str, Any]  # those of a small run, for a test of the command
    cases: Callable[[Settings], Iterable[Any]]
    start: Callable[[Settings], Callable[[Any], Line]]  # the function that measures
    results: tuple[str, ...]  # as of run_cases
    known: Mapping[str, Collection[str]] = {}  # by a setting: what it may name

    def settings(self, data: Path, **given: Any) -> Settings:
        """The suite's settings with others in their place. Raises ValueError for unknown names."""
        for field, known in self.known.items():
            for name in given.get(field, ()):
                if name not in known:
                    raise ValueError(
                        f"warploom: --{field}: {name} is unknown; use {', '.join(known)}"
                    )
        return Settings(data, **{**self.defaults, **given})

    def run(self, settings: Settings, output: Output) -> int:
        """Measure the cases that the output lacks. Returns how many gave no result."""
        cases, measure = list(self.cases(settings)), self.start(settings)
        device = {"device": settings.device_name()}
        return run_cases(cases, lambda case: device | measure(case), output, self.results)
