"""The first training step of models in a new process with empty caches, beside their third.

Every case runs in a process of its own, in which GCN, SAGE max, GAT, GATv2 and Transformer train
one after the other, first all of them with PyG alone, so that CUDA and PyTorch are up.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import warploom
from bench.pytorch.cases import Suite
from bench.pytorch.datasets import load_dataset
from bench.pytorch.graphs import GraphSettings
from bench.pytorch.models import layer
from bench.pytorch.steps import Model, Training
from bench.pytorch.timing import synchronise
from bench.results_file import Line
from warploom import pyg

STEPS = 3
HEADS = 4
FEATURES = 64  # between the two layers, and out
KINDS = ("gcn", "sage-max", "gat", "gatv2", "transformer")
LAYERS = {kind: partial(layer, kind, heads=HEADS) for kind in KINDS}  # of inputs and outputs


class Case(NamedTuple):
    graph: str
    archive: str  # "shipped" or "none"
    compiler: str  # "nvrtc", the host's "cc", or "none"


@dataclass(frozen=True)
class Settings(GraphSettings):
    graphs: tuple[str, ...] = ("cora",)


def cases(settings: Settings) -> Iterator[Case]:
    for graph in settings.graphs:
        if settings.device == "cpu":
            yield Case(graph, "none", "cc")
            continue
        yield Case(graph, "none", "nvrtc")
        yield Case(graph, "shipped", "nvrtc")
        yield Case(graph, "shipped", "none")


# ---- the process of a case ----------------------------------------------------------------------


def _times(kind: str, x: Tensor, edges: Tensor, labels: Tensor, accelerated: bool) -> list[float]:
    """Return the milliseconds of the first steps of a new model."""
    torch.manual_seed(3)
    model = Model(LAYERS[kind](x.size(1), FEATURES), LAYERS[kind](FEATURES, FEATURES)).to(x.device)
    training = Training(model, lambda: (x, edges, labels), False)
    times = []
    with pyg.accelerate() if accelerated else nullcontext():
        for _ in range(STEPS):
            synchronise(x.device)
            begin = time.perf_counter()
            training.step()
            synchronise(x.device)
            times.append(1e3 * (time.perf_counter() - begin))
    return times


def _run_process(graph: str, data: str, device: str, archive: str) -> None:
    """Train all models and print their times as JSON."""
    if archive == "none":
        warploom.configure(kernel_archive="")
    dataset = load_dataset(graph, Path(data)).to(torch.device(device))
    coo = torch.from_numpy(dataset.graph.edges()).to(device)
    labels = dataset.labels.clamp(0, FEATURES - 1)
    for kind in LAYERS:
        _times(kind, dataset.x, coo, labels, accelerated=False)
    found = {kind: _times(kind, dataset.x, coo, labels, accelerated=True) for kind in LAYERS}
    print(json.dumps(found))


# ---- the cases ----------------------------------------------------------------------------------


def _sample(case: Case, settings: Settings) -> dict[str, list[float]]:
    """Return the times of a new process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder, "XDG_DATA_HOME": folder}
        if case.compiler == "none":
            environment["WARPLOOM_NVRTC"] = os.path.join(folder, "hidden")
        arguments = [case.graph, str(settings.data), settings.device, case.archive]
        done = subprocess.run(
            [sys.executable, "-m", "bench.pytorch.first_step", *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"the process ended with {done.returncode}: {last[0]}")
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def measure(case: Case, settings: Settings) -> Line:
    """Return the line of a case: medians of the samples, in milliseconds."""
    samples = [_sample(case, settings) for _ in range(settings.samples)]

    def median(of: Callable[[list[float]], float]) -> dict[str, float]:
        return {k: round(statistics.median(of(s[k]) for s in samples), 3) for k in LAYERS}

    return {
        "first_ms": median(lambda times: times[0]),
        "third_ms": median(lambda times: times[2]),
        "extra_ms": median(lambda times: times[0] - times[2]),
        "samples": settings.samples,
    }


SUITE = Suite(
    Settings,
    {"graphs": ("random:60:4",), "samples": 1},
    cases,
    lambda settings: partial(measure, settings=settings),
    ("first_ms", "third_ms", "extra_ms"),
)


if __name__ == "__main__":
    _run_process(*sys.argv[1:])
