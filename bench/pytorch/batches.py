"""The suite "batches": training on mini-batches that are never seen twice, one JSON line each.

A step begins with a collated batch in page-locked host memory and ends when the GPU has finished:
its copy, and for captured steps its padding, are part of the time. Each epoch draws other batches
of molecules; blocks are those of a neighbour sampler.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import cycle, islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as nn
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import warploom.torch
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import largest_error
from bench.pytorch.graphs import Csr
from bench.pytorch.programs import (
    LAYERS,
    WIDE,
    Gps,
    Program,
    TimedTraining,
    molecules,
    of_molecules,
    of_nodes,
    skewed,
    three,
)
from bench.pytorch.sampler import Sampler
from bench.pytorch.timing import spread, synchronise
from bench.results_file import Line
from warploom import pyg

MODES = ("pyg", "pyg_compiled", "eager", "captured")
SIZES = (32, 128, 512)
WARM_UP = 24  # steps that are not timed: kernels compile, and sizes are captured
STEPS = 100
BLOCKS = 32  # that are sampled, and used again, since each takes half a second
COMPARED = 8  # steps whose losses are compared with PyG's
WORKERS = 4


@lru_cache(maxsize=1)
def _sampler(scale: float) -> tuple[Sampler, Tensor, Tensor]:
    """Of 1,024 seeds with fanouts of 15, 10 and 5, with features and labels of the nodes, on a
    graph with 25 edges a node."""
    generator = torch.Generator().manual_seed(3)
    nodes = int(400_000 * scale)
    sources, targets = skewed(nodes, 25 * nodes, generator).numpy()
    order = np.argsort(targets, kind="stable")
    rowptr = np.searchsorted(targets[order], np.arange(nodes + 1))
    sampler = Sampler(Csr("skewed", rowptr, sources[order]), max(int(1024 * scale), 4), (15, 10, 5))
    x = torch.randn(nodes, 100, generator=generator)
    return sampler, x, torch.randint(40, (nodes,), generator=generator)


@lru_cache(maxsize=BLOCKS)
def _block(scale: float, seed: int) -> Data:
    sampler, x, labels = _sampler(scale)
    block = sampler.sample(seed)
    ids, edges = torch.from_numpy(block.nodes), torch.from_numpy(block.edge_index)
    return Data(x=x[ids], edge_index=edges, y=labels[ids], batch_size=block.seeds)


def _blocks(scale: float) -> Iterator[Data]:
    return map(partial(_block, scale), cycle(range(BLOCKS)))


class _GpsOfGraphs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = Gps(), torch.nn.Linear(WIDE, 2)

    def forward(self, b: Any) -> Tensor:
        made: Tensor = self.head(nn.global_mean_pool(self.body(b), b.batch, b.num_graphs))
        return made


def _gps(size: int) -> Program:
    loss = lambda m, b: F.cross_entropy(m(b), b.y)  # noqa: E731
    return Program(lambda _: _GpsOfGraphs(), of_molecules("gin", size).batches, loss)


def _gat(inputs: int, outputs: int) -> torch.nn.Module:
    made: torch.nn.Module = nn.GATConv(inputs, outputs // 4, 4)
    return made


def _programs() -> dict[str, Program]:
    made: dict[str, Program] = {}
    for size in SIZES:
        made |= {f"{name}_{size}": of_molecules(name, size) for name in LAYERS}
        made[f"gps_{size}"] = _gps(size)
    for name, layer in (("sage", nn.SAGEConv), ("gat", _gat)):
        made[f"{name}_blocks"] = of_nodes(_blocks, *three(layer, 100))
    return made


PROGRAMS = _programs()


# ---- training ------------------------------------------------------------------------------------


class _Training(TimedTraining):
    """A model in one mode, whose eager steps are counted."""

    def __init__(self, program: Program, batches: list[Data], mode: str, device: torch.device):
        super().__init__(program, batches[0].clone().to(device), device)
        self.eager_steps = 0
        self.loader: Any = None
        if mode == "pyg_compiled":
            self._loss = torch.compile(program.loss, dynamic=True)
        if mode == "captured":
            self.taken = warploom.torch.capture(self.step)
            self.loader = pyg.padded(batches, device=device)

    def step(self, *data: Any) -> Tensor:
        self.eager_steps += 1
        return super().step(*data)

    def run(self, batches: list[Data], warm_up: int) -> None:
        """A step for each batch; eager ones are counted after those of the warm-up."""
        moved = self.loader or (one.clone().to(self.device, non_blocking=True) for one in batches)
        given = iter(moved)
        for _ in batches:
            self.take(islice(given, 1))  # which copies it
            if len(self.times) == warm_up:
                self.eager_steps = 0


# ---- the cases ----------------------------------------------------------------------------------


Case = namedtuple("Case", "program mode")  # one of MODES, or "epoch"


def cases(settings: Settings) -> Iterator[Case]:
    for program in PROGRAMS:
        for mode in MODES:
            if settings.compiled or mode != "pyg_compiled":
                yield Case(program, mode)
    yield Case("gin_128", "epoch")


class _Kept:
    """The batches of the program at hand, and PyG's first losses."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.device = settings, torch.device(settings.device)
        self._name = ""

    def of(self, name: str) -> tuple[list[Data], list[float]]:
        if name != self._name:
            self._name, program = name, PROGRAMS[name]
            count = self.settings.warm_up + self.settings.steps
            self._batches = list(islice(program.batches(self.settings.scale), count))
            if self.device.type == "cuda":
                pinned = {id(one): one.clone().pin_memory() for one in self._batches}
                self._batches = [pinned[id(one)] for one in self._batches]
            pyg_alone = _Training(program, self._batches, "pyg", self.device)
            pyg_alone.run(self._batches[:COMPARED], 0)
            self._losses = pyg_alone.losses
        return self._batches, self._losses


def measure(case: Case, kept: _Kept) -> Line:
    """Return the line of a case; times in milliseconds."""
    if case.mode == "epoch":
        return _epochs(case, kept)
    device, program = kept.device, PROGRAMS[case.program]
    batches, wanted = kept.of(case.program)
    if device.type == "cuda":
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    pyg.report(reset=True)
    with nullcontext() if case.mode.startswith("pyg") else pyg.accelerate(wait=True):
        training = _Training(program, batches, case.mode, device)
        training.run(batches, kept.settings.warm_up)
    torch.compiler.reset()
    timed = [us / 1e3 for us in training.times[kept.settings.warm_up :]]
    captured: Any = training.taken if case.mode == "captured" else None
    memory = torch.cuda.max_memory_reserved() if device.type == "cuda" else None
    return {
        "ms": statistics.median(timed),
        "spread": spread(timed),
        "slowest_ms": max(timed),
        "captures": 0 if captured is None else captured.captures,
        "eager_share": training.eager_steps / len(timed),
        "loss_diff": largest_error(training.losses, wanted),
        "reserved_mb": memory and round(memory / 1e6, 1),
        "why": None if captured is None else captured.reason,
        "report": pyg.report(reset=True),
    }


def _epochs(case: Case, kept: _Kept) -> Line:
    """A whole epoch of a loader with workers, alone and with captured steps; medians of 5."""
    scale, device, program = kept.settings.scale, kept.device, PROGRAMS[case.program]
    size = max(int(128 * scale), 2)
    workers = WORKERS if device.type == "cuda" else 0
    data = molecules(max(int(20480 * scale), 4 * size))
    loader = DataLoader(
        data, size, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    with pyg.accelerate(wait=True):
        training: Any = _Training(program, list(islice(loader, 2)), "captured", device)
        padded = pyg.padded(loader, device=device)

        def epoch(batches: Any, step: Callable[[Any], Any]) -> float:
            synchronise(device)
            begin = time.perf_counter()
            for batch in batches:
                step(batch)
            synchronise(device)
            return 1e3 * (time.perf_counter() - begin)

        for _ in range(2):
            epoch(padded, training.taken)
        training.eager_steps = 0
        alone, times = [], []
        for _ in range(min(5, kept.settings.steps)):
            alone.append(epoch(loader, lambda batch: None))
            times.append(epoch(padded, training.taken))
    return {
        "ms": statistics.median(times),
        "spread": spread(times),
        "loader_ms": statistics.median(alone),
        "captures": training.taken.captures,
        "eager_share": training.eager_steps / (len(times) * len(loader)),
    }


SUITE = Suite(
    {"warm_up": WARM_UP, "steps": STEPS},
    {"scale": 0.02, "warm_up": 1, "steps": 1, "compiled": False},
    cases,
    lambda settings: partial(measure, kept=_Kept(settings)),
    ("ms",),
)
