"""The suite "batches": training on mini-batches that are never seen twice, one JSON line each.

A step begins with a collated batch in page-locked host memory and ends when the GPU has finished:
its copy, and for captured steps its padding, are part of the time. Each epoch draws other batches
of molecules; blocks are those of a neighbour sampler.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as nn
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import warploom.torch
from bench.pytorch.cases import Suite
from bench.pytorch.graphs import Csr, GraphSettings
from bench.pytorch.programs import WIDE, Gps, Stack, four, mlp, molecule, skewed
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


class Program(NamedTuple):
    """batches: of a number, in host memory; loss: of a model and a batch, padded or not."""

    model: Callable[[], torch.nn.Module]
    batches: Callable[[int, float], list[Data]]
    loss: Callable[[Any, Any], Tensor]


def _dataset(count: int) -> list[Data]:
    generator = torch.Generator().manual_seed(1)
    return [molecule(generator) for _ in range(count)]


@lru_cache(maxsize=1)
def _molecules(size: int, count: int, scale: float) -> list[Data]:
    """Shuffled batches of molecules, another order in each epoch."""
    size = max(int(size * scale), 2)
    data, generator = _dataset(max(int(5120 * scale), 2 * size)), torch.Generator().manual_seed(2)

    def epochs() -> Iterator[Data]:
        while True:
            yield from DataLoader(data, size, shuffle=True, drop_last=True, generator=generator)

    return list(islice(epochs(), count))


@lru_cache(maxsize=1)
def _blocks(count: int, scale: float) -> list[Data]:
    """Blocks of 1,024 seeds with fanouts of 15, 10 and 5, on a graph with 25 edges a node."""
    generator = torch.Generator().manual_seed(3)
    nodes = int(400_000 * scale)
    sources, targets = skewed(nodes, 25 * nodes, generator).numpy()
    order = np.argsort(targets, kind="stable")
    rowptr = np.searchsorted(targets[order], np.arange(nodes + 1))
    sampler = Sampler(Csr("skewed", rowptr, sources[order]), max(int(1024 * scale), 4), (15, 10, 5))
    features = torch.randn(nodes, 100, generator=generator)
    labels = torch.randint(40, (nodes,), generator=generator)
    made = []
    for seed in range(min(count, BLOCKS)):
        block = sampler.sample(seed)
        ids = torch.from_numpy(block.nodes)
        data = Data(x=features[ids], edge_index=torch.from_numpy(block.edge_index), y=labels[ids])
        data.batch_size = block.seeds
        made.append(data)
    return list(islice(cycle(made), count))


def _loss_of_graphs(takes_bonds: bool, model: Any, b: Any) -> Tensor:
    more = (b.edge_attr,) if takes_bonds else ()
    pooled = nn.global_add_pool(model(b.x, b.edge_index, *more), b.batch, b.num_graphs)
    return F.cross_entropy(model.head(pooled), b.y)


class _GpsOfGraphs(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = Gps(), torch.nn.Linear(WIDE, 2)

    def forward(self, b: Any) -> Tensor:
        made: Tensor = self.head(nn.global_mean_pool(self.body(b), b.batch, b.num_graphs))
        return made


def _of_graphs(make: Callable[[int], torch.nn.Module], size: int, bonds: bool = False) -> Program:
    return Program(partial(four, make), partial(_molecules, size), partial(_loss_of_graphs, bonds))


def _of_nodes(make: Callable[[int, int], torch.nn.Module]) -> Program:
    model = lambda: Stack([make(100, 256), make(256, 256), make(256, 40)])  # noqa: E731
    return Program(
        model,
        _blocks,
        lambda m, b: F.cross_entropy(m(b.x, b.edge_index)[: b.batch_size], b.y[: b.batch_size]),
    )


def _gat(inputs: int, outputs: int) -> torch.nn.Module:
    made: torch.nn.Module = nn.GATConv(inputs, outputs // 4, 4)
    return made


def _programs() -> dict[str, Program]:
    made: dict[str, Program] = {}
    for size in SIZES:
        of = partial(_of_graphs, size=size)
        made |= {
            f"gin_{size}": of(lambda n: nn.GINConv(mlp(n))),
            f"gine_{size}": of(lambda n: nn.GINEConv(mlp(n), edge_dim=8), bonds=True),
            f"gcn_{size}": of(lambda n: nn.GCNConv(n, WIDE)),
            f"sage_{size}": of(lambda n: nn.SAGEConv(n, WIDE)),
            f"gat_{size}": of(lambda n: _gat(n, WIDE)),
            f"gps_{size}": Program(
                _GpsOfGraphs, partial(_molecules, size), lambda m, b: F.cross_entropy(m(b), b.y)
            ),
        }
    return made | {"sage_blocks": _of_nodes(nn.SAGEConv), "gat_blocks": _of_nodes(_gat)}


PROGRAMS = _programs()


# ---- training ------------------------------------------------------------------------------------


class _Training:
    """A model with Adam in one mode, whose steps are timed one by one."""

    def __init__(self, program: Program, batches: list[Data], mode: str, device: torch.device):
        torch.manual_seed(3)
        self.device, self.program = device, program
        self.model: Any = program.model().to(device)
        with torch.no_grad():
            program.loss(self.model, batches[0].clone().to(device))  # makes lazy parameters
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-3, capturable=device.type == "cuda"
        )
        self.eager_steps = 0
        self.times: list[float] = []
        self.losses: list[float] = []
        self.step: Any = self._train
        self.loader: Any = None
        if mode == "pyg_compiled":
            self._loss: Any = torch.compile(program.loss, dynamic=True)
        else:
            self._loss = program.loss
        if mode == "captured":
            self.step = warploom.torch.capture(self._train)
            self.loader = pyg.padded(batches, device=device)

    def _train(self, data: Any) -> Tensor:
        self.eager_steps += 1
        self.optimizer.zero_grad(set_to_none=True)
        loss: Tensor = self._loss(self.model, data)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def run(self, batches: list[Data], warm_up: int) -> None:
        """A step for each batch; eager ones are counted after those of the warm-up."""
        moved = self.loader or (one.clone().to(self.device, non_blocking=True) for one in batches)
        given = iter(moved)
        for _ in batches:
            synchronise(self.device)
            begin = time.perf_counter()
            loss = self.step(next(given))
            synchronise(self.device)
            self.times.append(1e3 * (time.perf_counter() - begin))
            self.losses.append(float(loss))
            if len(self.times) == warm_up:
                self.eager_steps = 0


# ---- the cases ----------------------------------------------------------------------------------


class Case(NamedTuple):
    program: str
    mode: str  # one of MODES, or "epoch"


@dataclass(frozen=True)
class Settings(GraphSettings):
    """scale: of batches and graphs. warm_up: steps before those that are timed."""

    scale: float = 1.0
    warm_up: int = WARM_UP
    steps: int = STEPS
    compiled: bool = True


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
            self._batches = program.batches(
                self.settings.warm_up + self.settings.steps, self.settings.scale
            )
            if self.device.type == "cuda":
                pinned = {id(one): one.clone().pin_memory() for one in self._batches}
                self._batches = [pinned[id(one)] for one in self._batches]
            pyg_alone = _Training(program, self._batches, "pyg", self.device)
            pyg_alone.run(self._batches[:COMPARED], 0)
            self._losses = pyg_alone.losses
        return self._batches, self._losses


def _memory(device: torch.device) -> float | None:
    if device.type != "cuda":
        return None
    return round(torch.cuda.max_memory_reserved() / 1e6, 1)


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
    timed = training.times[kept.settings.warm_up :]
    captured = training.step if case.mode == "captured" else None
    pairs = zip(training.losses, wanted)
    return {
        "ms": statistics.median(timed),
        "spread": spread(timed),
        "slowest_ms": max(timed),
        "captures": 0 if captured is None else captured.captures,
        "eager_share": training.eager_steps / len(timed),
        "loss_diff": max(abs(a - b) / max(abs(b), 1e-12) for a, b in pairs),
        "reserved_mb": _memory(device),
        "why": None if captured is None else captured.reason,
        "report": pyg.report(reset=True),
    }


def _epochs(case: Case, kept: _Kept) -> Line:
    """A whole epoch of a loader with workers, alone and with captured steps; medians of 5."""
    scale, device, program = kept.settings.scale, kept.device, PROGRAMS[case.program]
    size = max(int(128 * scale), 2)
    workers = WORKERS if device.type == "cuda" else 0
    loader = DataLoader(
        _dataset(max(int(20480 * scale), 4 * size)), size, shuffle=True, num_workers=workers,
        persistent_workers=workers > 0,
    )  # fmt: skip
    with pyg.accelerate(wait=True):
        training = _Training(program, list(islice(loader, 2)), "captured", device)
        training.loader = pyg.padded(loader, device=device)

        def epoch(batches: Any, step: Callable[[Any], Any]) -> float:
            synchronise(device)
            begin = time.perf_counter()
            for batch in batches:
                step(batch)
            synchronise(device)
            return 1e3 * (time.perf_counter() - begin)

        for _ in range(2):
            epoch(training.loader, training.step)
        training.eager_steps = 0
        alone, times = [], []
        for _ in range(min(5, kept.settings.steps)):
            alone.append(epoch(loader, lambda batch: None))
            times.append(epoch(training.loader, training.step))
    return {
        "ms": statistics.median(times),
        "spread": spread(times),
        "loader_ms": statistics.median(alone),
        "captures": training.step.captures,
        "eager_share": training.eager_steps / (len(times) * len(loader)),
    }


def _start(settings: Settings) -> Callable[[Case], Line]:
    return partial(measure, kept=_Kept(settings))


SUITE = Suite(
    Settings, {"scale": 0.02, "warm_up": 1, "steps": 1, "compiled": False}, cases, _start, ("ms",)
)
