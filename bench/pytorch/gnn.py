"""GE-SpMM's applications: training steps of GCN and GraphSAGE, and the aggregation inside them.

Figures 13 and 14 and Tables I and IX of the paper. Its (layers, features) are hidden layers and
their width.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import MessagePassing

from bench.pytorch.cases import Settings, Suite
from bench.pytorch.compare import compare
from bench.pytorch.datasets import Dataset, load_dataset
from bench.pytorch.models import LAYERS, REDUCTIONS, Model, edges_of
from bench.pytorch.steps import (
    Batches,
    Training,
    adjacency,
    classify,
    make_models,
    names_of,
    run_as_in_pyg,
)
from bench.pytorch.timing import (
    Function,
    Timer,
    make_timers,
    profile_kernels,
    sample_in_turns,
)
from bench.results_file import Line
from warploom import pyg

GRAPHS = ("cora", "citeseer", "pubmed", "tolokers")
SETTINGS = ((1, 16), (2, 256), (1, 256), (2, 64), (1, 64), (2, 16))  # most informative first
MODELS = ("gcn", "sage-gcn", "sage-pool")
PREFIXES = {"warploom": "", "pyg": "pyg_", "torch_sparse": "torch_sparse_"}  # of fields
PROFILED_STEPS = 10


Case = namedtuple("Case", "graph model layers features mode")
AccuracyCase = namedtuple("AccuracyCase", "graph model layers features seed")


def cases(settings: Settings) -> Iterator[Case]:
    modes = settings.timed_modes()[::-1]
    for (layers, features), graph, model, mode in product(
        settings.sizes, settings.graphs, settings.models, modes
    ):
        yield Case(graph, model, layers, features, mode)


class Workbench:
    """The data sets and the edges of models, which are kept on the device."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self._datasets: dict[str, Dataset] = {}
        self._edges: dict[tuple[str, str], dict[str, Any]] = {}

    def dataset(self, name: str) -> Dataset:
        if name not in self._datasets:
            s = self.settings
            data = load_dataset(name, s.data, s.command, s.twins)
            self._datasets[name] = data.to(self.device)
        return self._datasets[name]

    def edges(self, graph: str, model: str) -> dict[str, Any]:
        """Return the edges as the models of warploom, PyG and torch.sparse take them."""
        key = graph, model if model == "sage-gcn" else ""
        if key not in self._edges:
            csr = self.dataset(graph).graph
            edge_index = torch.from_numpy(edges_of(model, csr.edges(), csr.nodes)).to(self.device)
            matrix = adjacency(edge_index, csr.nodes)
            order = torch.randperm(edge_index.size(1), generator=torch.Generator().manual_seed(6))
            self._edges[key] = {
                "warploom": edge_index,
                "pyg": edge_index,
                "pyg_reordered": edge_index[:, order.to(self.device)].contiguous(),
                "torch_sparse": matrix,
            }
        return self._edges[key]


# ---- one case -----------------------------------------------------------------------------------


def _trainings(case: Case, bench: Workbench) -> dict[str, Training]:
    data, edges = bench.dataset(case.graph), bench.edges(case.graph, case.model)

    def make() -> Model:
        inputs = data.x.size(1)
        model = Model(case.model, case.layers, inputs, case.features, data.classes)
        return model.to(bench.device)

    models = make_models(names_of(REDUCTIONS[case.model], bench.device), make)

    def batches(name: str) -> Batches:
        return lambda: (data.x, edges[name], data.labels)

    return {
        name: Training(model, classify(batches(name)), case.mode == "graphed")
        for name, model in models.items()
    }


class _Call(NamedTuple):
    """A call of a layer's propagate."""

    layer: Any
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


def _record(training: Training) -> list[_Call]:
    """Record the aggregations of one forward pass."""
    calls: list[_Call] = []
    layers = [layer for layer in training.model.modules() if isinstance(layer, MessagePassing)]
    replaced = {layer: layer.__dict__.get("propagate") for layer in layers}

    def recorder(layer: Any, original: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def propagate(*arguments: Any, **keywords: Any) -> Tensor:
            calls.append(_Call(layer, arguments, keywords))
            return original(*arguments, **keywords)

        return propagate

    for layer in layers:
        layer.__dict__["propagate"] = recorder(layer, layer.propagate)
    try:
        training.loss()
    finally:
        for layer, original in replaced.items():
            del layer.__dict__["propagate"]
            if original is not None:
                layer.__dict__["propagate"] = original
    return calls


def _repeated(call: _Call) -> Function:
    """Return a function that makes the call again, forward and backward."""
    given = call.keywords["x"]
    operand = given[0] if isinstance(given, tuple) else given
    leaf = operand.detach().clone().requires_grad_(operand.requires_grad)
    keywords = {**call.keywords, "x": (leaf, leaf) if isinstance(given, tuple) else leaf}
    with torch.no_grad():
        gradient = torch.randn_like(call.layer.propagate(*call.arguments, **keywords))

    def run() -> None:
        result = call.layer.propagate(*call.arguments, **keywords)
        if leaf.requires_grad:
            torch.autograd.grad(result, leaf, gradient)

    return run


def _aggregation(training: Training) -> Function:
    """Return a function that runs only the aggregations of a step, forward and backward."""
    runs = [_repeated(call) for call in _record(training)]

    def run_all() -> None:
        for run in runs:
            run()

    return run_all


def _times_of_kernels(
    timers: dict[str, Timer], device: torch.device, failed: dict[str, str]
) -> dict[str, float | None]:
    """Return the microseconds of GPU work in one call, or on a CPU the time of the call.

    If the profiler reports nothing, the time of a replay is used instead.
    """
    if device.type == "cpu":
        return {name: timer.sample() for name, timer in timers.items()}
    times: dict[str, float | None] = {}
    for name, timer in timers.items():
        found = profile_kernels(timer.function, max(1, PROFILED_STEPS // timer.inner))
        if found is None:
            failed["profiler"] = "torch.profiler reported no kernels"
            times[name] = timer.sample() if timer.graphed else None
        else:
            times[name] = found / timer.inner
    return times


def run_case(case: Case, bench: Workbench) -> Line:
    """Compare with PyG, then time steps, their kernels, and the kernels of the aggregation."""
    device, graphed = bench.device, case.mode == "graphed"
    trainings = _trainings(case, bench)
    for training in trainings.values():
        training.model.eval()
    _, failed = compare({name: training.gradients for name, training in trainings.items()})
    kept = {name: training for name, training in trainings.items() if name not in failed}
    for training in kept.values():
        training.model.train()
    timers, refused = make_timers(
        {name: training.step for name, training in kept.items()}, device, graphed
    )
    failed.update(refused)
    step = sample_in_turns(timers, bench.settings.samples)
    cuda = _times_of_kernels(timers, device, failed)
    timers, refused = make_timers(
        {name: _aggregation(kept[name]) for name in timers}, device, graphed
    )
    failed.update({f"{name} aggregation": reason for name, reason in refused.items()})
    spmm = _times_of_kernels(timers, device, failed)
    line: Line = {"synthetic": bench.dataset(case.graph).synthetic, "failed": failed}
    for name, prefix in PREFIXES.items():
        times = step.get(name), spmm.get(name), cuda.get(name)
        line |= {f"{prefix}{field}_us": us for field, us in zip(("step", "spmm", "cuda"), times)}
    return line


# ---- accuracies ---------------------------------------------------------------------------------

# Of models on planted graphs, whose features do not drop out: A X can be kept.
PLANTED_FEATURES, PLANTED_EPOCHS = 256, 60


def accuracy_cases(settings: Settings) -> Iterator[AccuracyCase]:
    for seed, graph, model in product(range(settings.seeds), settings.graphs, settings.models):
        yield AccuracyCase(
            graph, model, 1, PLANTED_FEATURES if graph.startswith("planted:") else 16, seed
        )


def train(model: Model, data: Dataset, edges: Any, epochs: int) -> None:
    """Train as Kipf and Welling do: Adam with weight decay in the first layer."""
    is_planted = data.graph.name.startswith("planted:")
    groups: list[dict[str, Any]] = [{"params": layer.parameters()} for layer in model.layers]
    groups[0]["weight_decay"] = 5e-4
    optimiser = torch.optim.Adam(groups, lr=0.01)
    model.train()
    for _ in range(min(epochs, PLANTED_EPOCHS) if is_planted else epochs):
        optimiser.zero_grad()
        inputs = data.x if is_planted else functional.dropout(data.x, 0.5)
        loss = functional.cross_entropy(model(inputs, edges)[data.train], data.labels[data.train])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    model.eval()


def _accuracy(name: str, case: AccuracyCase, bench: Workbench, epochs: int) -> float:
    """Return the test accuracy in percent after training."""
    data, edges = bench.dataset(case.graph), bench.edges(case.graph, case.model)[name]
    torch.manual_seed(case.seed)
    model = Model(case.model, case.layers, data.x.size(1), case.features, data.classes)
    model = model.to(bench.device)
    if name == "warploom":
        pyg.convert(model)
    else:
        run_as_in_pyg(model)
    train(model, data, edges, epochs)
    with torch.no_grad():
        right = model(data.x, edges).argmax(1) == data.labels
    return float(100 * right[data.test].float().mean())


def accuracies(case: AccuracyCase, bench: Workbench, epochs: int) -> Line:
    """Train warploom once and PyG twice, whose second order of edges changes only rounding."""
    ways = ("warploom", ""), ("pyg", "pyg_"), ("pyg_reordered", "pyg_reordered_")
    return {f"{prefix}accuracy": _accuracy(name, case, bench, epochs) for name, prefix in ways}


SUITE = Suite(
    {"graphs": GRAPHS, "sizes": SETTINGS, "models": MODELS},
    {"graphs": ("random:60:4",), "sizes": ((1, 16),), "samples": 1},
    cases,
    lambda settings: partial(run_case, bench=Workbench(settings)),
    tuple(f"{way}{of}_us" for way in PREFIXES.values() for of in ("step", "spmm", "cuda")),
    {"models": MODELS},
)
ACCURACY = Suite(
    {"graphs": ("cora", "citeseer"), "models": MODELS, "epochs": 200},
    {"graphs": ("random:60:4",), "seeds": 2, "epochs": 3},
    accuracy_cases,
    lambda settings: partial(accuracies, bench=Workbench(settings), epochs=settings.epochs),
    ("accuracy", "pyg_accuracy"),
    {"models": LAYERS},
)
