"""Training with sampled edges beside exact training: the future work of ES-SpMM (section VI-B)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch

from bench.pytorch import accuracy
from bench.pytorch.accuracy import MODELS, Case, Workbench, graphs_and_seeds, quick, recipe_of
from bench.pytorch.cases import Output, rounded_values, run_cases
from bench.pytorch.sampled import SampledModel, kept_share
from bench.pytorch.timing import device_name
from bench.pytorch.training import Trained, train
from bench.results_file import Line
from warploom.torch import Sample

__all__ = ["Settings", "cases", "quick", "run"]

GRAPHS = ("tolokers", "planted:reddit")
WIDTHS = (16, 64)
RESULTS = ("metric", "exact_metric", "synthetic", "seconds", "exact_seconds")
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
    line: Line = {
        **case._asdict(),
        "synthetic": bench.data.synthetic,
        "metric_name": "roc_auc" if bench.data.labels.dim() == 2 else "accuracy",
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
        "device": device_name(bench.device),
    }
    return rounded_values(line)


def run(settings: Settings, output: Output) -> int:
    """Run the cases that the output does not have yet. Returns how many gave no result."""
    trainer = Trainer(Workbench(settings))
    return run_cases(cases(settings), lambda case: run_case(case, trainer), output, RESULTS)
