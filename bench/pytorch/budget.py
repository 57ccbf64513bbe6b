"""Budgets of accuracy: what `calibrate` chooses on validation nodes, held against the test nodes.

The fastest setting found by trying all, for the first seed, has one strategy and S in a subset of
the layers, and loses at most the budget on the test nodes.
"""

from __future__ import annotations

import statistics
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import GCNConv, SAGEConv

import warploom.pyg
from bench.pytorch import accuracy
from bench.pytorch.accuracy import QUICK, N
from bench.pytorch.cases import Settings, Suite
from bench.pytorch.sampled import metric_of
from bench.pytorch.timing import synchronise
from bench.results_file import Line
from warploom._problem import SAMPLES
from warploom.torch import Sample, Sampling, calibrate, sampling

GRAPHS = ("tolokers", "amazon-computers", "planted:reddit", "planted:proteins")
MODELS = {"gcn": GCNConv, "sage": SAGEConv}
BUDGETS = (0.5, 1.0, 2.0)  # points
WIDTHS = (16, 32, 64, 128, 256, 512)


Case = namedtuple("Case", "graph model budget seed")


def cases(settings: Settings) -> Iterator[Case]:
    for seed, graph, model, budget in product(
        range(settings.seeds), settings.graphs, MODELS, BUDGETS
    ):
        yield Case(graph, model, budget, seed)


class Stack(nn.Module):
    """Layers of PyG, as `train` calls them."""

    def __init__(self, kind: str, inputs: int, hidden: int, classes: int, layers: int) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * (layers - 1), classes]
        self.layers = nn.ModuleList(MODELS[kind](a, b) for a, b in zip(widths, widths[1:]))

    def forward(
        self, edge_index: Tensor, x: Tensor, sample: None = None, seed: int = 0, dropout: float = 0
    ) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = x.relu() if number else x
            x = layer(functional.dropout(x, dropout, self.training), edge_index)
        return x


class Workbench(accuracy.Workbench):
    """The data and the models of layers of PyG."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._tried: dict[tuple[str, str, int], list[tuple[float, float]]] = {}

    def graph(self, model: str) -> Any:
        if "" not in self._graphs:
            self._graphs[""] = torch.from_numpy(self.data.graph.edges()).to(self.device)
        return self._graphs[""]

    def make(self, kind: str, layers: int) -> nn.Module:
        data = self.data
        return Stack(kind, data.x.size(1), self.settings.n, data.classes, layers)

    def infer(self, model: nn.Module) -> Tensor:
        with torch.no_grad():
            return model(self.graph(""), self.data.x)  # type: ignore[no-any-return]

    def test_metric(self, model: nn.Module) -> float:
        return metric_of(self.infer(model), self.data.labels, self.data.test)

    def best_us(self, case: Case, found: Sampling, exact_us: float, least: float) -> float:
        """The least time of a setting, of all, whose metric on the test nodes is at least this."""
        key, model = (self.name, case.model, case.seed), self.model(case.model, case.seed)[0]
        if key not in self._tried:
            self._tried[key] = []
            for setting in _settings(found, self.settings.widths):
                us = 1e6 * self.seconds(model, setting)[0]
                if us < exact_us:
                    with sampling(setting):
                        self._tried[key].append((us, self.test_metric(model)))
        return min((us for us, metric in self._tried[key] if metric >= least), default=exact_us)

    def seconds(self, model: nn.Module, *settings: Sampling | None) -> list[float]:
        """The median times of an inference with each setting, in turns."""
        times: list[list[float]] = [[] for _ in settings]
        for _ in range(1 + self.settings.samples):  # the first may compile kernels
            for setting, found in zip(settings, times):
                with nullcontext() if setting is None else sampling(setting):
                    synchronise(self.device)
                    began = time.perf_counter()
                    self.infer(model)
                    synchronise(self.device)
                    found.append(time.perf_counter() - began)
        return [statistics.median(found[1:]) for found in times]


def _settings(found: Sampling, widths: tuple[int, ...]) -> Iterator[Sampling]:
    """One strategy and S in each subset of the layers."""
    names = list(found.layers)
    for strategy, width, subset in product(SAMPLES, widths, product((0, 1), repeat=len(names))):
        if any(subset):
            layers = {
                name: found.layers[name]._replace(sample=Sample(width, strategy) if is_in else None)
                for name, is_in in zip(names, subset)
            }
            yield found._replace(layers=layers)


def run_case(case: Case, bench: Workbench) -> Line:
    data = bench.open(case.graph)
    with warploom.pyg.accelerate(wait=True):
        model, exact = bench.model(case.model, case.seed)
        mask = torch.zeros(data.graph.nodes, dtype=torch.bool, device=bench.device)
        mask[data.val] = True
        given = SimpleNamespace(val_mask=mask, y=data.labels)

        def metric(outputs: Tensor, labels: Tensor) -> float:
            return metric_of(outputs, labels, torch.arange(len(labels), device=labels.device)) / 100

        began = time.perf_counter()
        torch.manual_seed(case.seed)
        found = calibrate(
            model, given, case.budget / 100, metric, forward=lambda model, _: bench.infer(model)
        )
        took = time.perf_counter() - began
        exact_us, us = (1e6 * seconds for seconds in bench.seconds(model, None, found))
        with sampling(found):
            sampled = bench.test_metric(model)
        is_held, best = exact - sampled <= case.budget, None
        if case.seed == 0:  # whose settings take long to try
            best = bench.best_us(case, found, exact_us, exact - case.budget)
            best = min(best, us, exact_us) if is_held else min(best, exact_us)
    return {
        **data.facts(),
        "exact_metric": exact,
        "metric": sampled,
        "held": is_held,
        "expected_loss": 100 * found.loss,
        "bound": 100 * found.bound,
        "us": us,
        "exact_us": exact_us,
        "best_us": best,
        "calibrate_seconds": took,
        "setting": found.explain().splitlines()[4 : 4 + len(found.layers)],
        "curve": [[one.us, 100 * one.loss] for one in found.tried],
    }


SUITE = Suite(
    {"graphs": GRAPHS, "widths": WIDTHS, "n": N},
    QUICK,
    cases,
    lambda settings: partial(run_case, bench=Workbench(settings)),
    ("metric", "exact_metric", "held", "us", "exact_us", "best_us"),
)
