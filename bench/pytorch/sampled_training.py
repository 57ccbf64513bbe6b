"""Training with sampled edges beside exact training: the future work of ES-SpMM (section VI-B)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch

from bench.pytorch import accuracy
from bench.pytorch.accuracy import MODELS, QUICK, Case, Workbench, graphs_and_seeds, recipe_of
from bench.pytorch.cases import Suite
from bench.pytorch.sampled import SampledModel, kept_share
from bench.pytorch.training import Trained, train
from bench.results_file import Line
from warploom.torch import Sample

GRAPHS = ("tolokers", "planted:reddit")
WIDTHS = (16, 64)
STRATEGIES = ("fastrand_coprime", "fastrand")  # other edges at each step; always the same ones


@dataclass(frozen=True)
class Settings(accuracy.Settings):
    graphs: tuple[str, ...] = GRAPHS
    widths: tuple[int, ...] = WIDTHS


def cases(settings: Settings) -> Iterator[Case]:
    for (graph, seed), model, strategy, s in product(
        graphs_and_seeds(settings), MODELS, STRATEGIES, settings.widths
    ):
        yield Case(graph, model, strategy, s, seed, settings.n)


class Trainer:
    """Trains models on the graph of a workbench; exact trainings and first steps once."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self._exact: dict[tuple[str, str, int], Trained] = {}
        self._warm: set[tuple[object, ...]] = set()

    def _train(self, case: Case, sample: Sample | None, seconds: float | None = None) -> Trained:
        bench = self.bench
        data, recipe = bench.open(case.graph), recipe_of(case.graph)
        torch.manual_seed(case.seed)
        model = SampledModel(case.model, data.x.size(1), case.n, data.classes, recipe.layers)
        model.to(bench.device)
        graph = bench.graph(case.model)
        key = case.graph, case.model, sample
        if key not in self._warm:  # compiles kernels and makes plans
            start = {name: value.clone() for name, value in model.state_dict().items()}
            train(model, graph, data, recipe._replace(epochs=1, every=1), case.seed, sample)
            model.load_state_dict(start)
            self._warm.add(key)
        return train(model, graph, data, recipe, case.seed, sample, seconds)

    def exact(self, case: Case) -> Trained:
        key = case.graph, case.model, case.seed
        if key not in self._exact:
            self._exact[key] = self._train(case, None)
        return self._exact[key]

    def sampled(self, case: Case, seconds: float | None = None) -> Trained:
        return self._train(case, Sample(case.s, case.strategy), seconds)


def run_case(case: Case, trainer: Trainer) -> Line:
    """Sampled training for as many epochs as exact training, and for as many seconds."""
    exact = trainer.exact(case)
    epochs = trainer.sampled(case)
    longer = trainer.sampled(case, exact.seconds)
    bench = trainer.bench
    return {
        **bench.data.facts(),
        "kept_share": kept_share(bench.graph(case.model).rowptr, case.s),
        "epochs": exact.epochs,
        "exact_metric": exact.metric,
        "exact_seconds": exact.seconds,
        "exact_best_seconds": exact.best_seconds,
        "metric": epochs.metric,
        "seconds": epochs.seconds,
        "best_seconds": epochs.best_seconds,
        "equal_time_metric": longer.metric,
        "equal_time_epochs": longer.epochs,
        "equal_time_best_seconds": longer.best_seconds,
    }


SUITE = Suite(
    Settings,
    QUICK,
    cases,
    lambda settings: partial(run_case, trainer=Trainer(Workbench(settings))),
    ("metric", "exact_metric", "synthetic", "seconds", "exact_seconds"),
)
