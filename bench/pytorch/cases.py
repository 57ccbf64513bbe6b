"""Run the cases that a results file lacks, and append a line for each."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bench.results_file import Line, case_name, open_results, read_lines


class Output(NamedTuple):
    """The results file, and limits on the cases that are run."""

    path: Path | None  # None = standard output
    budget: float = float("inf")  # no case starts after this many seconds
    only: tuple[str, ...] = ()  # texts that the name of a case must contain


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


def rounded_values(line: Line) -> Line:
    """Return the line, and the dicts in it, with 3 digits after the decimal point."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return rounded_values(value)
        return round(value, 3) if isinstance(value, float) else value

    return {key: rounded(value) for key, value in line.items()}


def _text(line: Line, fields: Sequence[str]) -> str:
    """Return these fields of a line, and why a method has none, for the log."""
    parts = [f"{name} {line[name]}" for name in fields if line.get(name) is not None]
    if line.get("failed"):
        parts.append(f"failed {line['failed']}")
    return ", ".join(parts)


def run_cases(
    cases: Iterable[Any],
    measure: Callable[[Any], Line],
    output: Output,
    results: Sequence[str],
) -> int:
    """Measure the cases without a result in the output, and append a line for each.

    cases: NamedTuples of one kind, whose fields are the first ones of a line.
    measure: returns the line of a case. If it raises, the error is the reason of a line without a
        result.
    results: the other fields of such a line, where they are None. The first one is None there and
        never elsewhere.

    A case that runs out of memory has a line only if it was the first one: after others it may have
    missed their memory, so the run ends and the next one repeats it.

    Returns how many cases gave no result.
    """
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
    warnings.filterwarnings("ignore", message=r"The usage of `scatter")
    names = {case_name(case): case for case in cases}
    fields = next(iter(names.values()))._fields if names else ()
    finished = {
        case_name(line[field] for field in fields)
        for line in (read_lines(output.path) if output.path else [])
        if line[results[0]] is not None
    }
    todo = [
        name for name in names if name not in finished and all(part in name for part in output.only)
    ]
    begin, failures = time.monotonic(), 0
    stream = sys.stdout if output.path is None else open_results(output.path)
    try:
        for number, name in enumerate(todo, 1):
            left = f"warploom: bench: {len(todo) - number + 1} cases are left; run it again"
            if time.monotonic() - begin > output.budget:
                print(left, file=sys.stderr)
                break
            start = time.monotonic()
            try:
                line = measure(names[name])
            except Exception as error:
                if _device_is_lost():
                    reason = f"{describe(error)}; run it again"
                    print(f"warploom: bench: {name}: {reason}", file=sys.stderr)
                    failures += 1
                    break
                failed = {"failed": {"warploom": describe(error)}}
                line = {**names[name]._asdict(), **dict.fromkeys(results), **failed}
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
    finally:
        if output.path is not None:
            stream.close()
    return failures
