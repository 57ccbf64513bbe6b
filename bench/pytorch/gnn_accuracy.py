"""Accuracies of the models of GE-SpMM's applications, trained on warploom and twice in PyG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from bench.pytorch.cases import Suite
from bench.pytorch.datasets import Dataset
from bench.pytorch.gnn import MODELS, Workbench
from bench.pytorch.graphs import GraphSettings
from bench.pytorch.models import LAYERS, Model
from bench.pytorch.steps import run_as_in_pyg
from bench.results_file import Line
from warploom import pyg


class Case(NamedTuple):
    graph: str
    model: str
    layers: int
    features: int
    seed: int


@dataclass(frozen=True)
class Settings(GraphSettings):
    graphs: tuple[str, ...] = ("cora", "citeseer")
    models: tuple[str, ...] = MODELS
    seeds: int = 10
    epochs: int = 200


# Of models on planted graphs, whose features do not drop out: A X can be kept.
PLANTED_FEATURES, PLANTED_EPOCHS = 256, 60


def cases(settings: Settings) -> Iterator[Case]:
    settings.check_names("models", LAYERS)
    for seed, graph, model in product(range(settings.seeds), settings.graphs, settings.models):
        yield Case(graph, model, 1, PLANTED_FEATURES if graph.startswith("planted:") else 16, seed)


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


def _accuracy(name: str, case: Case, bench: Workbench, epochs: int) -> float:
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


def run_case(case: Case, bench: Workbench, epochs: int) -> Line:
    """Train warploom once and PyG twice, whose second order of edges changes only rounding."""
    ways = ("warploom", ""), ("pyg", "pyg_"), ("pyg_reordered", "pyg_reordered_")
    return {f"{prefix}accuracy": _accuracy(name, case, bench, epochs) for name, prefix in ways}


SUITE = Suite(
    Settings,
    {"graphs": ("random:60:4",), "seeds": 2, "epochs": 3},
    cases,
    lambda x: partial(run_case, bench=Workbench(x), epochs=x.epochs),
    ("accuracy", "pyg_accuracy"),
)
