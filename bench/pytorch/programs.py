"""The suite "programs": training steps as users of PyG write them, beside PyG, one JSON line each.

In mode "eager" each step gets another batch of another shape, as a DataLoader gives it: molecules,
sampled blocks, point clouds. Programs on one whole graph get that graph in each step, and are also
captured. Both models make the same steps in turns; a batch is on the device before a step begins.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import torch_geometric.nn as nn
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader

import warploom.torch
from bench.pytorch.cases import Suite
from bench.pytorch.graphs import GraphSettings
from bench.pytorch.timing import spread, synchronise
from bench.results_file import Line
from warploom import pyg

WARM_UP, STEPS = 10, 60  # the first steps are not timed: kernels compile in them
FIXED_STEPS = 20  # of programs on one graph
WIDE = 64


class Program(NamedTuple):
    """batches: an endless iterator, or one batch; loss: of a model and a batch."""

    model: torch.nn.Module
    batches: Any
    loss: Callable[[Any, Any], Tensor]

    def is_fixed(self) -> bool:
        return not isinstance(self.batches, Iterator)


# ---- data ---------------------------------------------------------------------------------------


def skewed(nodes: int, edges: int, generator: torch.Generator) -> Tensor:
    """Edges with more of them at the first nodes."""
    targets = (torch.rand(edges, generator=generator) ** 2 * nodes).long().clamp_(max=nodes - 1)
    return torch.stack([torch.randint(nodes, (edges,), generator=generator), targets])


def molecule(generator: torch.Generator) -> Data:
    """A chain of 12 to 29 atoms with some more bonds, each in both directions."""
    atoms = int(torch.randint(12, 30, (1,), generator=generator))
    chain = torch.stack([torch.arange(atoms - 1), torch.arange(1, atoms)])
    more = torch.randint(atoms, (2, atoms // 3), generator=generator)
    edges = torch.cat([chain, chain.flip(0), more, more.flip(0)], 1)
    return Data(
        x=torch.randn(atoms, 32, generator=generator),
        edge_index=edges,
        edge_attr=torch.randn(edges.shape[1], 8, generator=generator),
        y=torch.randint(2, (1,), generator=generator),
        z=torch.randint(1, 9, (atoms,), generator=generator),
        pos=2 * torch.randn(atoms, 3, generator=generator),
    )


def _batches(size: int, scale: float) -> Iterator[Data]:
    """Shuffled batches of molecules, another order in each epoch."""
    generator = torch.Generator().manual_seed(1)
    molecules = [molecule(generator) for _ in range(max(int(2560 * scale), 2 * size))]
    while True:
        yield from DataLoader(molecules, size, shuffle=True, drop_last=True, generator=generator)


def _blocks(scale: float) -> Iterator[Data]:
    """Blocks of some 60,000 nodes and four edges for each, as a sampler gives them."""
    generator = torch.Generator().manual_seed(1)
    while True:
        share = 0.9 + 0.2 * float(torch.rand(1, generator=generator))
        nodes = int(60_000 * scale * share)
        sources = torch.randint(nodes, (4 * nodes,), generator=generator)
        targets = torch.randint(nodes // 3, (4 * nodes,), generator=generator)
        yield Data(
            x=torch.randn(nodes, 100, generator=generator),
            edge_index=torch.stack([sources, targets]),
            y=torch.randint(40, (min(1024, nodes // 3),), generator=generator),
        )


def _clouds(scale: float) -> Iterator[Data]:
    """The 20 nearest points of each of some 8,000 points."""
    generator = torch.Generator().manual_seed(1)
    while True:
        points = int(8192 * scale) + int(torch.randint(200, (1,), generator=generator))
        pos = torch.randn(points, 3, generator=generator)
        near = torch.cdist(pos, pos).topk(20, largest=False).indices
        targets = torch.arange(points).repeat_interleave(20)
        yield Data(x=pos, edge_index=torch.stack([near.flatten(), targets]))


def _graph(nodes: int, degree: int, width: int, classes: int, scale: float) -> Data:
    generator = torch.Generator().manual_seed(1)
    nodes = int(nodes * scale)
    return Data(
        x=torch.randn(nodes, width, generator=generator),
        edge_index=skewed(nodes, nodes * degree, generator),
        y=torch.randint(classes, (nodes,), generator=generator),
    )


# ---- models -------------------------------------------------------------------------------------


class Stack(torch.nn.Module):
    """Layers with ReLU between them, and a linear map of their last result."""

    def __init__(self, layers: list[torch.nn.Module], out: int | None = None) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self.head = None if out is None else nn.Linear(-1, out)

    def forward(self, x: Tensor, edges: Tensor, *more: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = F.relu(layer(x, edges, *more))
        made: Tensor = self.layers[-1](x, edges, *more)
        return made


def mlp(inputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, WIDE), torch.nn.ReLU(), torch.nn.Linear(WIDE, WIDE)
    )


def four(make: Callable[[int], torch.nn.Module]) -> Stack:
    return Stack([make(32), make(WIDE), make(WIDE), make(WIDE)], 2)


def _of_molecules(scale: float, make: Callable[[int], torch.nn.Module], bonds: bool) -> Program:
    """Classification of batches of 128 molecules."""

    def loss(model: Any, b: Any) -> Tensor:
        more = (b.edge_attr,) if bonds else ()
        pooled = nn.global_add_pool(model(b.x, b.edge_index, *more), b.batch, b.num_graphs)
        return F.cross_entropy(model.head(pooled), b.y)

    return Program(four(make), _batches(max(int(128 * scale), 4), scale), loss)


def _of_nodes(model: torch.nn.Module, data: Any) -> Program:
    """Classification of the first nodes of a graph."""
    return Program(model, data, lambda m, b: F.cross_entropy(m(b.x, b.edge_index)[: len(b.y)], b.y))


class _Gated(nn.MessagePassing):  # type: ignore[misc]
    """A layer of a user's own: gates by both ends and a distance."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.a, self.b, self.c = (torch.nn.Linear(WIDE, WIDE) for _ in range(3))

    def forward(self, x: Tensor, edges: Tensor, distance: Tensor) -> Tensor:
        out = self.propagate(edges, x=self.a(x), g=self.b(x), k=self.c(x), distance=distance)
        return x + F.relu(out)

    def message(self, x_j: Tensor, g_i: Tensor, k_j: Tensor, distance: Tensor) -> Tensor:
        return torch.sigmoid(g_i + k_j) * x_j * torch.exp(-distance)


def _gated(scale: float) -> Program:
    data = _graph(60_000, 16, WIDE, 2, scale)
    data.distance = torch.rand(data.edge_index.shape[1], 1)
    model = Stack([_Gated() for _ in range(3)])
    return Program(model, data, lambda m, b: m(b.x, b.edge_index, b.distance).pow(2).mean())


def _light_gcn(scale: float) -> Program:
    users, items, count = (int(scale * number) for number in (50_000, 20_000, 2_000_000))
    generator = torch.Generator().manual_seed(2)
    user = torch.randint(users, (count,), generator=generator)
    item = (torch.rand(count, generator=generator) ** 2 * items).long() + users
    edges = torch.cat([torch.stack([user, item]), torch.stack([item, user])], 1)
    chosen = torch.randint(count, (4096,), generator=generator)
    other = torch.randint(items, (4096,), generator=generator) + users
    asked = torch.cat([torch.stack([user, item])[:, chosen], torch.stack([user[chosen], other])], 1)

    def loss(model: Any, b: Any) -> Tensor:
        ranks = model(b.edge_index, b.asked)
        made: Tensor = model.recommendation_loss(ranks[:4096], ranks[4096:], node_id=b.nodes)
        return made

    data = Data(edge_index=edges, asked=asked, nodes=torch.unique(asked))
    return Program(nn.LightGCN(users + items, WIDE, 3), data, loss)


class _Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.SAGEConv((-1, -1), WIDE), nn.SAGEConv((-1, -1), 16)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


def _hetero(scale: float) -> Program:
    """Three types of nodes and six relations, through to_hetero."""
    nodes, data = int(20_000 * scale), HeteroData()
    generator = torch.Generator().manual_seed(1)
    for kind in "abc":
        data[kind].x = torch.randn(nodes, WIDE, generator=generator)
    for source, target in ((s, t) for s in "abc" for t in "abc" if s != t):
        edges = torch.randint(nodes, (2, 8 * nodes), generator=generator)
        data[source, "to", target].edge_index = edges
    data["a"].y = torch.randint(16, (nodes,), generator=generator)
    model = nn.to_hetero(_Two(), data.metadata())

    def loss(m: Any, b: Any) -> Tensor:
        return F.cross_entropy(m(b.x_dict, b.edge_index_dict)["a"], b["a"].y)

    return Program(model, data, loss)


class _Relations(torch.nn.Module):
    def __init__(self, nodes: int, relations: int) -> None:
        super().__init__()
        self.nodes = torch.nn.Embedding(nodes, WIDE)
        self.first = nn.RGCNConv(WIDE, WIDE, relations, num_bases=30)
        self.second = nn.RGCNConv(WIDE, 4, relations, num_bases=30)

    def forward(self, edges: Tensor, kinds: Tensor) -> Tensor:
        hidden = F.relu(self.first(self.nodes.weight, edges, kinds))
        made: Tensor = self.second(hidden, edges, kinds)
        return made


def _rgcn(scale: float) -> Program:
    """Classification of 30,000 entities with 90 relations."""
    data = _graph(30_000, 20, 1, 4, scale)
    data.kinds = torch.randint(90, (data.edge_index.shape[1],))
    model = _Relations(len(data.y), 90)
    return Program(model, data, lambda m, b: F.cross_entropy(m(b.edge_index, b.kinds), b.y))


class _Potential(torch.nn.Module):
    """Interaction blocks of SchNet, trained on energies and forces."""

    def __init__(self) -> None:
        from torch_geometric.nn.models import schnet

        super().__init__()
        self.atoms = torch.nn.Embedding(10, WIDE)
        self.distances = schnet.GaussianSmearing(0, 5, 50)
        blocks = [schnet.InteractionBlock(WIDE, 50, WIDE, 5.0) for _ in range(3)]
        self.blocks = torch.nn.ModuleList(blocks)
        self.out = torch.nn.Linear(WIDE, 1)

    def forward(self, b: Any, pos: Tensor) -> Tensor:
        distance = (pos[b.edge_index[0]] - pos[b.edge_index[1]]).norm(dim=-1) + 1e-3
        hidden, of_edges = self.atoms(b.z), self.distances(distance)
        for block in self.blocks:
            hidden = hidden + block(hidden, b.edge_index, distance, of_edges)
        made: Tensor = nn.global_add_pool(self.out(hidden), b.batch, b.num_graphs)
        return made


def _schnet(scale: float) -> Program:
    def loss(model: Any, b: Any) -> Tensor:
        pos = b.pos.clone().requires_grad_()
        energy = model(b, pos)
        (force,) = torch.autograd.grad(energy.sum(), pos, create_graph=True)
        made: Tensor = energy.pow(2).mean() + force.pow(2).mean()
        return made

    return Program(_Potential(), _batches(max(int(64 * scale), 4), scale), loss)


class Gps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(32, WIDE)
        make = partial(nn.GINEConv, edge_dim=8)
        layers = [nn.GPSConv(WIDE, make(mlp(WIDE)), heads=4) for _ in range(3)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, b: Any) -> Tensor:
        x = self.first(b.x)
        for layer in self.layers:
            x = layer(x, b.edge_index, b.batch, edge_attr=b.edge_attr)
        return torch.relu(x)


def _gps(scale: float) -> Program:
    batches = _batches(max(int(64 * scale), 4), scale)
    return Program(Gps(), batches, lambda m, b: m(b).pow(2).mean())


def _edge_conv(scale: float) -> Program:
    layers = [nn.EdgeConv(mlp(6), "max"), nn.EdgeConv(mlp(2 * WIDE), "max")]
    loss = lambda m, b: m(b.x, b.edge_index).pow(2).mean()  # noqa: E731
    return Program(Stack(list(layers)), _clouds(scale), loss)


PROGRAMS: dict[str, Callable[[float], Program]] = {
    "gcn_nodes": lambda s: _of_nodes(
        Stack([nn.GCNConv(128, 256), nn.GCNConv(256, 256), nn.GCNConv(256, 40)]),
        _graph(169_000, 14, 128, 40, s),
    ),
    "gat_nodes": lambda s: _of_nodes(
        Stack([nn.GATConv(128, 32, 8), nn.GATConv(256, 40)]), _graph(169_000, 14, 128, 40, s)
    ),
    "light_gcn": _light_gcn,
    "own_layer": _gated,
    "hetero_sage": _hetero,
    "rgcn": _rgcn,
    "sage_blocks": lambda s: _of_nodes(
        Stack([nn.SAGEConv(100, 256), nn.SAGEConv(256, 256), nn.SAGEConv(256, 40)]), _blocks(s)
    ),
    "gin_molecules": lambda s: _of_molecules(s, lambda n: nn.GINConv(mlp(n)), False),
    "gine_molecules": lambda s: _of_molecules(s, lambda n: nn.GINEConv(mlp(n), edge_dim=8), True),
    "gcn_molecules": lambda s: _of_molecules(s, lambda n: nn.GCNConv(n, WIDE), False),
    "sage_molecules": lambda s: _of_molecules(s, lambda n: nn.SAGEConv(n, WIDE), False),
    "gat_molecules": lambda s: _of_molecules(s, lambda n: nn.GATConv(n, WIDE // 4, 4), False),
    "schnet_forces": _schnet,
    "gps_molecules": _gps,
    "edge_conv": _edge_conv,
}
FIXED = ("gcn_nodes", "gat_nodes", "light_gcn", "own_layer", "hetero_sage", "rgcn")


# ---- the cases ----------------------------------------------------------------------------------


class Case(NamedTuple):
    program: str
    mode: str  # "eager" or "captured"


@dataclass(frozen=True)
class Settings(GraphSettings):
    """scale: of nodes and edges. steps: that are timed."""

    scale: float = 1.0
    steps: int = STEPS


def cases(settings: Settings) -> Iterator[Case]:
    for program in PROGRAMS:
        yield Case(program, "eager")
        if program in FIXED and settings.device != "cpu":
            yield Case(program, "captured")


class _Training:
    """A model with Adam, whose steps are timed one by one."""

    def __init__(self, program: Program, data: Any, device: torch.device, captures: bool) -> None:
        self.device = device
        self.model = program.model.to(device)
        program.loss(self.model, data)  # makes lazy parameters
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=1e-3, capturable=device.type == "cuda"
        )
        self.losses: list[float] = []
        self.times: list[float] = []
        self._loss = program.loss
        self._step: Callable[..., Tensor] = self._train
        if captures:
            self._step = warploom.torch.capture(lambda: self._train(data))

    def _train(self, data: Any) -> Tensor:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self.model, data)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def step(self, *data: Any) -> None:
        synchronise(self.device)
        begin = time.perf_counter()
        loss = self._step(*data)
        synchronise(self.device)
        self.times.append(1e6 * (time.perf_counter() - begin))
        self.losses.append(float(loss))


def measure(case: Case, settings: Settings) -> Line:
    """Return the line of a case: medians of the steps after the first ones, in microseconds."""
    device = torch.device(settings.device)
    captures = case.mode == "captured"

    def start(accelerated: bool) -> tuple[_Training, Iterator[Any]]:
        torch.manual_seed(3)
        program = PROGRAMS[case.program](settings.scale)
        fixed = program.is_fixed()
        batches = cycle([program.batches.to(device)]) if fixed else program.batches
        with pyg.accelerate(wait=True) if accelerated else nullcontext():
            first = next(batches) if fixed else next(program.batches).to(device)
            if not fixed:  # both models get the same batches
                batches = PROGRAMS[case.program](settings.scale).batches
            return _Training(program, first, device, accelerated and captures), batches

    own, batches = start(True)
    other, _ = start(False)
    pyg.report(reset=True)
    steps = min(settings.steps, FIXED_STEPS if case.program in FIXED else STEPS)
    for number, batch in enumerate(islice(batches, WARM_UP + steps)):
        data = batch.to(device)
        # The first of both meets shapes for which the allocator has no memory.
        for training in (own, other) if number % 2 else (other, own):
            with pyg.accelerate(wait=True) if training is own else nullcontext():
                training.step(*(() if captures and training is own else (data,)))
    times, pyg_times = own.times[WARM_UP:], other.times[WARM_UP:]
    pairs = list(zip(own.losses, other.losses))[:5]
    return {
        "us": statistics.median(times),
        "spread": spread(times),
        "pyg_us": statistics.median(pyg_times),
        "pyg_spread": spread(pyg_times),
        "slowest_us": max(times),
        "pyg_p99_us": sorted(pyg_times)[int(0.99 * (len(pyg_times) - 1))],
        "max_rel_err": max(abs(a - b) / max(abs(b), 1e-12) for a, b in pairs),
        "report": pyg.report(reset=True),
    }


SUITE = Suite(
    Settings,
    {"scale": 0.01, "steps": 2},
    cases,
    lambda settings: partial(measure, settings=settings),
    ("us", "pyg_us"),
)
