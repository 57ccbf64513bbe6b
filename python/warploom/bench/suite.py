"""The suite "torch": its cases in their order, their checks, and one JSON line for each."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import torch
from torch import Tensor

from warploom.bench import products, steps
from warploom.bench.graphs import Csr, load
from warploom.bench.timing import Function, measure

RIVALS = ("torch_sparse", "pyg", "scatter", "scatter_compiled")
GRAPHS = (
    "cora",
    "pubmed",
    "amazon-computers",
    "email-Enron",
    "tolokers",
    "twin:reddit,scale=0.1",
    "twin:products,scale=0.1",
)
TOLERANCE = 1e-3  # of the norm of the difference to that of the baseline's result


class Case(NamedTuple):
    bench: str
    graph: str
    model: str | None
    n: int
    reduce: str
    mode: str

    def name(self) -> str:
        """For example step/cora/sage/64/max/eager."""
        return "/".join(str(part) for part in self if part is not None)


@dataclass(frozen=True)
class Settings:
    """What a run does: sizes, where graphs are, and for how long."""

    data: Path
    command: str = "warploom"
    only: tuple[str, ...] = ()
    budget: float = float("inf")
    samples: int = 7
    graphs: tuple[str, ...] = GRAPHS
    sampled: str = "twin:products,scale=0.1"
    widths: tuple[int, ...] = (16, 64, 256)
    features: int = 512
    seeds: int = 1024
    batches: int = 16
    compiled: bool = True
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


def quick(settings: Settings) -> Settings:
    """A small run, for a test of the command."""
    small = "random:300:6"
    settings = replace(settings, graphs=(small,), sampled=small, compiled=False, widths=(16,))
    return replace(settings, features=32, seeds=20, batches=2, samples=2)


def cases(settings: Settings) -> Iterator[Case]:
    modes = ("eager", "graphed") if settings.device == "cuda" else ("eager",)
    for graph in settings.graphs:
        for bench in ("spmm", "backward"):
            for reduce in products.REDUCTIONS:
                for n in settings.widths:
                    for mode in modes:
                        yield Case(bench, graph, None, n, reduce, mode)
        for model, reduce in steps.MODELS:
            for n in settings.widths:
                for mode in modes:
                    yield Case("step", graph, model, n, reduce, mode)
    for model, reduce in steps.MODELS:
        for n in settings.widths:
            yield Case("minibatch", settings.sampled, model, n, reduce, "eager")


class Workbench:
    """The graph at hand with what its cases need; one at a time, because large ones fill a GPU."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self._graph: Csr | None = None
        self._made: dict[type, Any] = {}

    def graph(self, name: str) -> Csr:
        if self._graph is None or self._graph.name != name:
            self._made.clear()
            self._graph = load(name, self.settings.data, self.settings.command)
        return self._graph

    def get(self, kind: type, *arguments: Any) -> Any:
        if kind not in self._made:
            self._made.clear()
            self._free()
            self._made[kind] = kind(*arguments, self.device)
        return self._made[kind]

    def _free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def _difference(result: Tensor, expected: Tensor) -> float:
    return float((result - expected).norm() / expected.norm().clamp(min=1e-30))


def _check(results: dict[str, Callable[[], Tensor]]) -> dict[str, str]:
    """Compare with PyG: why baselines fail. Raises ArithmeticError where warploom differs."""
    expected = results["pyg"]()
    failed: dict[str, str] = {}
    for name, function in results.items():
        if name == "pyg":
            continue
        try:
            difference = _difference(function(), expected)
        except Exception as error:
            if name == "warploom":
                raise
            failed[name] = (
                f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            )
            continue
        if not difference <= TOLERANCE:
            if name == "warploom":
                raise ArithmeticError(
                    f"the result differs from PyG's by {difference:.2g} of its norm"
                )
            failed[name] = f"the result differs from PyG's by {difference:.2g} of its norm"
    return failed


def _functions(
    case: Case, bench: Workbench
) -> tuple[dict[str, Function], dict[str, Callable[[], Tensor]]]:
    """What is timed, and what is compared before."""
    settings = bench.settings
    graph = bench.graph(case.graph)
    if case.bench in ("spmm", "backward"):
        ways = bench.get(products.Products, graph)
        b = ways.operand(case.n)
        grad = ways.operand(case.n).flip(0)
        timed = {
            name: products.forward(way, b)
            if case.bench == "spmm"
            else products.backward(way, b, grad)
            for name, way in ways.ways(case.reduce, settings.compiled).items()
        }
        return timed, timed
    if case.bench == "step":
        whole = bench.get(steps.FullBatch, graph, settings.features)
    else:
        whole = bench.get(
            steps.MiniBatches, graph, settings.features, settings.seeds, settings.batches
        )
    assert case.model is not None
    trainings = whole.trainings(case.model, case.reduce, case.n, case.mode == "graphed")
    return steps.functions(trainings), {
        name: training.gradients for name, training in trainings.items()
    }


def run_case(case: Case, bench: Workbench) -> dict[str, Any]:
    """Check and time one case."""
    timed, compared = _functions(case, bench)
    failed = _check(compared)
    wanted = {name: function for name, function in timed.items() if name not in failed}
    times, refused = measure(wanted, bench.device, case.mode == "graphed", bench.settings.samples)
    failed.update(refused)
    line: dict[str, Any] = case._asdict()
    line["us"] = times.get("warploom")
    line["rivals"] = {name: times.get(name) for name in RIVALS}
    line["device"] = torch.cuda.get_device_name() if bench.device.type == "cuda" else "cpu"
    if failed:
        line["failed"] = failed
    return line


def _finished(path: Path | None) -> set[str]:
    if path is None or not path.exists():
        return set()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {
        Case(*(line[field] for field in Case._fields)).name()
        for line in lines
        if line["us"] is not None
    }


def _write(stream: TextIO, line: dict[str, Any]) -> None:
    short = {
        key: round(value, 3) if isinstance(value, float) else value for key, value in line.items()
    }
    short["rivals"] = {
        key: None if value is None else round(value, 3) for key, value in line["rivals"].items()
    }
    stream.write(json.dumps(short) + "\n")
    stream.flush()


def _describe(line: dict[str, Any]) -> str:
    name = Case(*(line[field] for field in Case._fields)).name()
    own = "no result" if line["us"] is None else f"{line['us']:.1f} us"
    rivals = [f"{rival} {us:.1f}" for rival, us in line["rivals"].items() if us is not None]
    return f"{name}: {own}; {', '.join(rivals)} {line.get('failed', '')}"


def run(settings: Settings, out: Path | None) -> int:
    """Run the cases that `out` does not have yet. Returns how many gave no result."""
    warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
    warnings.filterwarnings("ignore", message=r"The usage of `scatter")
    bench = Workbench(settings)
    finished = _finished(out)
    todo = [
        case
        for case in cases(settings)
        if case.name() not in finished and all(part in case.name() for part in settings.only)
    ]
    begin, failures = time.monotonic(), 0
    stream = sys.stdout if out is None else out.open("a")
    try:
        for number, case in enumerate(todo, 1):
            if time.monotonic() - begin > settings.budget:
                print(
                    f"warploom: bench: {len(todo) - number + 1} cases are left; run it again",
                    file=sys.stderr,
                )
                break
            start = time.monotonic()
            try:
                line = run_case(case, bench)
            except Exception as error:
                line = {**case._asdict(), "us": None, "rivals": dict.fromkeys(RIVALS)}
                line["failed"] = {"warploom": f"{type(error).__name__}: {error}"}
            failures += line["us"] is None
            _write(stream, line)
            seconds = time.monotonic() - start
            print(f"[{number}/{len(todo)}] {_describe(line)} in {seconds:.1f} s", file=sys.stderr)
    finally:
        if out is not None:
            stream.close()
    return failures
