"""The suite "programs": training steps as users of PyG write them, beside PyG, one JSON line each.

In mode "eager" each step gets another batch of another shape, as a DataLoader gives it: molecules,
sampled blocks, point clouds. Programs on one whole graph get that graph in each step, and are also
captured. Both models make the same steps in turns; a batch is on the device before a step begins.
"""

from __future__ import annotations

import statistics
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import lru_cache, partial
from itertools import islice, repeat
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
import torch_geometric.nn as nn
from torch import Tensor
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import DataLoader

import warploom.torch
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import largest_error
from bench.pytorch.models import Stack
from bench.pytorch.steps import Training
from bench.pytorch.timing import spread, synchronise
from bench.results_file import Line
from warploom import pyg

WARM_UP, STEPS = 10, 60  # the first steps are not timed: kernels compile in them
FIXED_STEPS = 20  # of programs on one graph
WIDE = 64


class Program(NamedTuple):
    """model: of the first batch. batches: of a scale, an endless iterator, or one batch for all
    steps. loss: of a model and a batch, whose parameters a first call may make."""

    model: Callable[[Any], torch.nn.Module]
    batches: Callable[[float], Any]
    loss: Callable[[Any, Any], Tensor]


# ---- data ---------------------------------------------------------------------------------------


def skewed(nodes: int, edges: int, generator: torch.Generator) -> Tensor:
    """Edges with more of them at the first nodes."""
    targets = (torch.rand(edges, generator=generator) ** 2 * nodes).long().clamp_(max=nodes - 1)
    return torch.stack([torch.randint(nodes, (edges,), generator=generator), targets])


def _molecule(generator: torch.Generator) -> Data:
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


@lru_cache(maxsize=1)
def molecules(count: int) -> list[Data]:
    generator = torch.Generator().manual_seed(1)
    return [_molecule(generator) for _ in range(count)]


def _batches(size: int, scale: float) -> Iterator[Data]:
    """Shuffled batches of molecules, another order in each epoch."""
    size = max(int(size * scale), 4)
    data, generator = molecules(max(int(5120 * scale), 2 * size)), torch.Generator().manual_seed(2)
    while True:
        yield from DataLoader(data, size, shuffle=True, drop_last=True, generator=generator)


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
            y=torch.randint(40, (nodes,), generator=generator),
            batch_size=min(1024, nodes // 3),
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
    edges = skewed(nodes, nodes * degree, generator)
    return Data(
        x=torch.randn(nodes, width, generator=generator),
        edge_index=edges,
        y=torch.randint(classes, (nodes,), generator=generator),
        batch_size=nodes,
        distance=torch.rand(edges.shape[1], 1, generator=generator),
        kinds=torch.randint(90, (edges.shape[1],), generator=generator),
    )


def _purchases(scale: float) -> Data:
    """Edges between users and items in both directions, and some to be ranked above others."""
    users, items, count = (int(scale * number) for number in (50_000, 20_000, 2_000_000))
    generator = torch.Generator().manual_seed(2)
    user = torch.randint(users, (count,), generator=generator)
    item = (torch.rand(count, generator=generator) ** 2 * items).long() + users
    edges = torch.cat([torch.stack([user, item]), torch.stack([item, user])], 1)
    chosen = torch.randint(count, (4096,), generator=generator)
    other = torch.randint(items, (4096,), generator=generator) + users
    asked = torch.cat([torch.stack([user, item])[:, chosen], torch.stack([user[chosen], other])], 1)
    return Data(edge_index=edges, asked=asked, nodes=torch.unique(asked), num_nodes=users + items)


def _relations(scale: float) -> HeteroData:
    """Three types of nodes and six relations."""
    nodes, data = int(20_000 * scale), HeteroData()
    generator = torch.Generator().manual_seed(1)
    for kind in "abc":
        data[kind].x = torch.randn(nodes, WIDE, generator=generator)
    for source, target in ((s, t) for s in "abc" for t in "abc" if s != t):
        edges = torch.randint(nodes, (2, 8 * nodes), generator=generator)
        data[source, "to", target].edge_index = edges
    data["a"].y = torch.randint(16, (nodes,), generator=generator)
    return data


# ---- models -------------------------------------------------------------------------------------


def mlp(inputs: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, WIDE), torch.nn.ReLU(), torch.nn.Linear(WIDE, WIDE)
    )


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


class _Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.SAGEConv((-1, -1), WIDE), nn.SAGEConv((-1, -1), 16)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class _Entities(torch.nn.Module):
    """Layers with 90 relations on embeddings of nodes."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.nodes = torch.nn.Embedding(nodes, WIDE)
        self.layers = Stack(nn.RGCNConv(WIDE, width, 90, num_bases=30) for width in (WIDE, 4))

    def forward(self, b: Any) -> Tensor:
        made: Tensor = self.layers(self.nodes.weight, b.edge_index, b.kinds)
        return made


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


# ---- losses -------------------------------------------------------------------------------------


def _loss_of_nodes(model: Any, b: Any) -> Tensor:
    return F.cross_entropy(model(b.x, b.edge_index)[: b.batch_size], b.y[: b.batch_size])


def _loss_of_graphs(takes_bonds: bool, model: Any, b: Any) -> Tensor:
    more = (b.edge_attr,) if takes_bonds else ()
    pooled = nn.global_add_pool(model(b.x, b.edge_index, *more), b.batch, b.num_graphs)
    return F.cross_entropy(model.head(pooled), b.y)


def _loss_of_ranks(model: Any, b: Any) -> Tensor:
    ranks = model(b.edge_index, b.asked)
    made: Tensor = model.recommendation_loss(ranks[:4096], ranks[4096:], node_id=b.nodes)
    return made


def _loss_of_forces(model: Any, b: Any) -> Tensor:
    pos = b.pos.clone().requires_grad_()
    energy = model(b, pos)
    (force,) = torch.autograd.grad(energy.sum(), pos, create_graph=True)
    made: Tensor = energy.pow(2).mean() + force.pow(2).mean()
    return made


# ---- programs -----------------------------------------------------------------------------------

LAYERS: dict[str, Callable[[int], torch.nn.Module]] = {
    "gin": lambda n: nn.GINConv(mlp(n)),
    "gine": lambda n: nn.GINEConv(mlp(n), edge_dim=8),
    "gcn": lambda n: nn.GCNConv(n, WIDE),
    "sage": lambda n: nn.SAGEConv(n, WIDE),
    "gat": lambda n: nn.GATConv(n, WIDE // 4, 4),
}


def of_nodes(batches: Callable[[float], Any], *layers: Callable[[], torch.nn.Module]) -> Program:
    """Classification of the first nodes of a graph."""
    return Program(lambda _: Stack(make() for make in layers), batches, _loss_of_nodes)


def of_molecules(name: str, size: int) -> Program:
    """Classification of molecules by four layers."""

    def model(_: Any) -> torch.nn.Module:
        made = Stack(LAYERS[name](inputs) for inputs in (32, WIDE, WIDE, WIDE))
        made.head = nn.Linear(-1, 2)
        return made

    return Program(model, partial(_batches, size), partial(_loss_of_graphs, name == "gine"))


def three(make: Callable[[int, int], torch.nn.Module], inputs: int) -> list[Any]:
    return [partial(make, *size) for size in ((inputs, 256), (256, 256), (256, 40))]


_LARGE = partial(_graph, 169_000, 14, 128, 40)
PROGRAMS: dict[str, Program] = {
    "gcn_nodes": of_nodes(_LARGE, *three(nn.GCNConv, 128)),
    "gat_nodes": of_nodes(_LARGE, partial(nn.GATConv, 128, 32, 8), partial(nn.GATConv, 256, 40)),
    "light_gcn": Program(lambda b: nn.LightGCN(b.num_nodes, WIDE, 3), _purchases, _loss_of_ranks),
    "own_layer": Program(
        lambda _: Stack(_Gated() for _ in range(3)),
        partial(_graph, 60_000, 16, WIDE, 2),
        lambda m, b: m(b.x, b.edge_index, b.distance).pow(2).mean(),
    ),
    "hetero_sage": Program(
        lambda b: nn.to_hetero(_Two(), b.metadata()),
        _relations,
        lambda m, b: F.cross_entropy(m(b.x_dict, b.edge_index_dict)["a"], b["a"].y),
    ),
    "rgcn": Program(
        lambda b: _Entities(len(b.y)),
        partial(_graph, 30_000, 20, 1, 4),
        lambda m, b: F.cross_entropy(m(b), b.y),
    ),
    "sage_blocks": of_nodes(_blocks, *three(nn.SAGEConv, 100)),
    **{f"{name}_molecules": of_molecules(name, 128) for name in LAYERS},
    "schnet_forces": Program(lambda _: _Potential(), partial(_batches, 64), _loss_of_forces),
    "gps_molecules": Program(
        lambda _: Gps(), partial(_batches, 64), lambda m, b: m(b).pow(2).mean()
    ),
    "edge_conv": Program(
        lambda _: Stack(nn.EdgeConv(mlp(inputs), "max") for inputs in (6, 2 * WIDE)),
        _clouds,
        lambda m, b: m(b.x, b.edge_index).pow(2).mean(),
    ),
}
FIXED = ("gcn_nodes", "gat_nodes", "light_gcn", "own_layer", "hetero_sage", "rgcn")


# ---- the cases ----------------------------------------------------------------------------------

Case = namedtuple("Case", "program mode")  # "eager" or "captured"


def cases(settings: Settings) -> Iterator[Case]:
    for program in PROGRAMS:
        yield Case(program, "eager")
        if program in FIXED and settings.device != "cpu":
            yield Case(program, "captured")


class TimedTraining(Training):
    """A model whose steps are timed one by one, in microseconds. taken: another form of a step."""

    def __init__(self, program: Program, first: Any, device: torch.device) -> None:
        torch.manual_seed(3)
        model = program.model(first).to(device)
        program.loss(model, first)  # makes lazy parameters
        super().__init__(model, program.loss, device.type == "cuda")
        self.device = device
        self.taken: Callable[..., Tensor] = self.step
        self.losses: list[float] = []
        self.times: list[float] = []

    def take(self, data: Iterable[Any]) -> None:
        synchronise(self.device)
        begin = time.perf_counter()
        loss = self.taken(*data)
        synchronise(self.device)
        self.times.append(1e6 * (time.perf_counter() - begin))
        self.losses.append(float(loss))


def measure(case: Case, settings: Settings) -> Line:
    """Return the line of a case: medians of the steps after the first ones, in microseconds."""
    device, program = torch.device(settings.device), PROGRAMS[case.program]
    made = program.batches(settings.scale)
    is_fixed = not isinstance(made, Iterator)
    batches = repeat(made.to(device)) if is_fixed else (one.to(device) for one in made)
    first = next(batches)
    other = TimedTraining(program, first, device)
    with pyg.accelerate(wait=True):
        own = TimedTraining(program, first, device)
        if case.mode == "captured":
            own.taken = warploom.torch.capture(lambda: own.step(first))
    pyg.report(reset=True)
    steps = min(settings.steps, FIXED_STEPS if is_fixed else STEPS)
    for number, batch in enumerate(islice(batches, WARM_UP + steps)):
        # The first of both meets shapes for which the allocator has no memory.
        for training in (own, other) if number % 2 else (other, own):
            with pyg.accelerate(wait=True) if training is own else nullcontext():
                training.take(() if case.mode == "captured" and training is own else (batch,))
    times, pyg_times = own.times[WARM_UP:], other.times[WARM_UP:]
    return {
        "us": statistics.median(times),
        "spread": spread(times),
        "pyg_us": statistics.median(pyg_times),
        "pyg_spread": spread(pyg_times),
        "slowest_us": max(times),
        "pyg_p99_us": sorted(pyg_times)[int(0.99 * (len(pyg_times) - 1))],
        "max_rel_err": largest_error(own.losses[:5], other.losses),
        "report": pyg.report(reset=True),
    }


SUITE = Suite(
    {"steps": STEPS},
    {"scale": 0.01, "steps": 2},
    cases,
    lambda settings: partial(measure, settings=settings),
    ("us", "pyg_us"),
)
