"""ES-SpMM's trade: models trained exactly, whose inference samples edges (sections III and V)."""

from __future__ import annotations

import time
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bench.pytorch.cases import Settings, Suite
from bench.pytorch.datasets import Dataset, load_dataset
from bench.pytorch.sampled import (
    DenseModel,
    Recipe,
    SampledModel,
    Trained,
    kept_share,
    make_graph,
    metric_of,
    presample,
    train,
)
from bench.pytorch.timing import Function, measure
from bench.results_file import Line, read_lines
from warploom.torch import Graph, Sample

GRAPHS = ("planted:reddit", "planted:proteins", "tolokers", "cora", "citeseer")
MODELS = ("gcn", "sage")
STRATEGIES = ("fastrand", "bucket", "fastrand_coprime")
WIDTHS = (16, 32, 64, 128, 256, 512)
LONG_WIDTHS = (1024, 1792, 2304)  # where rows are longer than 512 edges
FIRST_SEEDS = 3  # of all graphs, before the others of any
N = 128
TORCH, SUITE_SAMPLED = "torch.sparse.mm", "bench sampled"  # where times of cuSPARSE come from
# Fields of times: of the product and of inference; of what was sampled beforehand and of sampling.
EXACT, SAMPLED = ("exact_us", "exact_step_us"), ("spmm_us", "step_us")
PRESAMPLED = ("presampled_us", "presample_us", "presample_cpu_us")


# Layers are those of the paper's Table III.
RECIPES = {
    "cora": Recipe(2, 200, 0.5, 5e-4),
    "citeseer": Recipe(2, 200, 0.5, 5e-4),
    "tolokers": Recipe(2, 400, 0.2),
    "amazon-computers": Recipe(2, 100, 0.5),
    "reddit": Recipe(2, 60, 0.5),
    "proteins": Recipe(3, 300),
    "random": Recipe(2, 4, every=2),
}


Case = namedtuple("Case", "graph model strategy s seed n")


def recipe_of(graph: str) -> Recipe:
    return RECIPES[graph.replace("planted:", "").partition(",")[0].partition(":")[0]]


def graphs_and_seeds(settings: Settings) -> Iterator[tuple[str, int]]:
    """In the order of a run: what a budget leaves out are seeds, not graphs."""
    first = min(FIRST_SEEDS, settings.seeds)
    for seeds in (range(first), range(first, settings.seeds)):
        for graph in settings.graphs:
            for seed in seeds:
                yield graph, seed


def all_cases(settings: Settings, strategies: Sequence[str]) -> Iterator[Case]:
    for (graph, seed), model, strategy, s in product(
        graphs_and_seeds(settings), MODELS, strategies, settings.widths
    ):
        yield Case(graph, model, strategy, s, seed, settings.n)


def cases(settings: Settings) -> Iterator[Case]:
    """Widths above 512 only where the paper needs them: Proteins, whose rows are the longest."""
    for case in all_cases(settings, STRATEGIES):
        if case.s <= max(WIDTHS) or "proteins" in case.graph or "tolokers" in case.graph:
            yield case


def load_any(name: str, settings: Settings) -> Dataset:
    """A dataset by name; labels of two classes become one task, whose metric is ROC-AUC."""
    found = load_dataset(name, settings.data, settings.command, settings.twins)
    if name == "tolokers":
        return found._replace(labels=found.labels.float().unsqueeze(1), classes=1)
    return found


def cusparse_times(path: Path | None, n: int) -> dict[str, float]:
    """Microseconds of the fastest of cuSPARSE's ways by graph, by `warploom bench sampled`."""
    found: dict[str, float] = {}
    for line in read_lines(path) if path is not None else []:
        us = line["best_cusparse_us"]
        if line["n"] == n and us is not None:
            name = line["matrix"].replace("twin:", "planted:")
            found[name] = min(us, found.get(name, us))
    return found


class Workbench:
    """The data, the models and the times at hand; one graph at a time, because twins are large.

    Times are fields of lines. What does not depend on the seed is measured once, and taken over
    from the lines of earlier runs.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self.name = ""
        self._graphs: dict[str, Any] = {}
        self._models: dict[tuple[str, int], tuple[nn.Module, float]] = {}
        self._times: dict[tuple[object, ...], Line] = {}
        self._cusparse = cusparse_times(settings.sampled, settings.n)
        name = settings.device_name()
        lines = read_lines(settings.out) if settings.out else []
        self._lines = [x for x in lines if x["metric"] is not None and x["device"] == name]

    def open(self, name: str) -> Dataset:
        if self.name != name:
            for kept in (self._graphs, self._models, self._times):
                kept.clear()
            self.data = load_any(name, self.settings).to(self.device)
            self.name = name
            for line in self._lines:
                if (line["graph"], line.get("n")) == (name, self.settings.n):
                    self._remember(line)
        return self.data

    def _remember(self, line: Line) -> None:
        model, sample = line["model"], Sample(line["s"], line["strategy"])
        exact = {field: line[field] for field in EXACT}
        if line["cusparse"] == TORCH:
            exact[TORCH] = line["cusparse_us"]
        self._times.setdefault((model, None), exact)
        self._times.setdefault((model, sample), {field: line[field] for field in SAMPLED})
        presampled = {field: line[field] for field in PRESAMPLED}
        self._times.setdefault((model, sample, "presampled"), presampled)
        self._times.setdefault(("features",), {"features_metric": line["features_metric"]})

    def graph(self, model: str) -> Any:
        if model not in self._graphs:
            self._graphs[model] = make_graph(model, self.data.graph, self.device)
        return self._graphs[model]

    def _trained(self, kind: str, seed: int, make: Callable[[int], nn.Module]) -> Any:
        """A trained model and its exact metric. make: of the number of layers."""
        data, recipe, graph = self.data, recipe_of(self.name), self.graph(kind)
        torch.manual_seed(seed)
        model = make(recipe.layers).to(self.device)
        train(model, graph, data, recipe, seed)
        with torch.no_grad():
            outputs = model.eval()(graph, data.x)
        return model, metric_of(outputs, data.labels, data.test)

    def make(self, kind: str, layers: int) -> nn.Module:
        data = self.data
        return SampledModel(kind, data.x.size(1), self.settings.n, data.classes, layers)

    def model(self, kind: str, seed: int) -> Any:
        """A model that was trained with all edges, and its metric."""
        if (kind, seed) not in self._models:
            self._models[kind, seed] = self._trained(kind, seed, partial(self.make, kind))
        return self._models[kind, seed]

    def features_alone(self) -> Line:
        """The metric of a dense network of the same width that sees no graph."""
        data = self.data
        if ("features",) not in self._times:
            _, metric = self._trained(
                "gcn", 0, lambda _: DenseModel(data.x.size(1), self.settings.n, data.classes)
            )
            self._times["features",] = {"features_metric": metric}
        return self._times["features",]

    # ---- times ----

    def _operand(self) -> Tensor:
        return torch.randn(self.data.graph.nodes, self.settings.n, device=self.device)

    def _infer(self, kind: str, model: Any, sample: Sample | None) -> Tensor:
        with torch.no_grad():
            return model(self.graph(kind), self.data.x, sample)  # type: ignore[no-any-return]

    def _timed(self, functions: dict[str, Function]) -> Line:
        """Microseconds by name, on a GPU of replayed CUDA graphs; None for TORCH if it cannot."""
        graphed = self.device.type == "cuda"
        found, failed = measure(functions, self.device, graphed, self.settings.samples)
        for name in failed.keys() - {TORCH}:
            raise RuntimeError(failed[name])
        return {name: found.get(name) for name in functions}

    def _multiply_by_torch(self, graph: Graph, b: Tensor) -> Function:
        values = graph.values
        if values is None:
            values = torch.ones(len(graph.colind), device=self.device)
        shape = graph.rows, graph.cols
        matrix = torch.sparse_csr_tensor(graph.rowptr, graph.colind, values, shape)
        return lambda: torch.sparse.mm(matrix, b)

    def times(self, kind: str, model: Any, sample: Sample | None) -> Line:
        """The times of the product and of inference; of the exact product also by TORCH."""
        if (kind, sample) not in self._times:
            graph, b = self.graph(kind), self._operand()
            functions = (
                lambda: model.aggregate(graph, b, sample, 0),
                lambda: self._infer(kind, model, sample),
            )
            named = dict(zip(EXACT if sample is None else SAMPLED, functions))
            if sample is None:
                named[TORCH] = self._multiply_by_torch(graph, b)
            self._times[kind, sample] = self._timed(named)
        return self._times[kind, sample]

    def presampled_times(self, kind: str, model: Any, sample: Sample) -> Line:
        """The times of a product with a graph that was sampled before, and of sampling it.

        Only for the strategies of the paper; on the CPU once, for FastRand and GCN's graph, because
        it takes long.
        """
        key, graph = (kind, sample, "presampled"), self.graph(kind)
        if sample.strategy == "fastrand_coprime":
            return dict.fromkeys(PRESAMPLED)
        if key not in self._times:
            sampled, b = presample(graph, sample), self._operand()
            product, made, on_cpu = PRESAMPLED
            found = self._timed({product: lambda: model.aggregate(sampled, b, None, 0)})
            found |= measure({made: lambda: presample(graph, sample)}, self.device, False, 1)[0]
            found[on_cpu] = None
            if kind == "gcn" and sample.strategy == "fastrand":
                if "cpu" not in self._graphs:
                    self._graphs["cpu"] = graph.cpu()
                begin = time.perf_counter()
                presample(self._graphs["cpu"], sample)
                found[on_cpu] = (time.perf_counter() - begin) * 1e6
            self._times[key] = found
        return self._times[key]

    def cusparse(self, exact: Line) -> Line:
        """The faster of torch.sparse.mm and what `warploom bench sampled` has, and which it is."""
        times = {TORCH: exact.get(TORCH), SUITE_SAMPLED: self._cusparse.get(self.name)}
        known = {name: us for name, us in times.items() if us is not None}
        which = min(known, key=lambda name: known[name], default=None)
        return {"cusparse_us": which and known[which], "cusparse": which}


def run_case(case: Case, bench: Workbench) -> Line:
    """Sampled inference of a model that was trained exactly, and the times of one seed."""
    data = bench.open(case.graph)
    model, exact_metric = bench.model(case.model, case.seed)
    graph = bench.graph(case.model)
    sample = Sample(case.s, case.strategy)
    with torch.no_grad():  # the strategies of the paper have no seed
        seed = case.seed + 1 if case.strategy == "fastrand_coprime" else 0
        outputs = model(graph, data.x, sample, seed)
    exact = bench.times(case.model, model, None)
    return {
        **data.facts(),
        **bench.features_alone(),
        "exact_metric": exact_metric,
        "metric": metric_of(outputs, data.labels, data.test),
        "kept_share": kept_share(graph.rowptr, case.s),
        **{field: exact[field] for field in EXACT},
        **bench.cusparse(exact),
        **bench.times(case.model, model, sample),
        **bench.presampled_times(case.model, model, sample),
    }


# ---- training with sampled edges, the future work of section VI-B -------------------------------


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
        model = bench.make(case.model, recipe.layers).to(bench.device)
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


def train_case(case: Case, trainer: Trainer) -> Line:
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


QUICK = {"graphs": ("random:80:20",), "widths": (8,), "seeds": 1, "n": 8, "samples": 1}
SUITE = Suite(
    {"graphs": GRAPHS, "widths": WIDTHS + LONG_WIDTHS, "n": N},
    QUICK,
    cases,
    lambda settings: partial(run_case, bench=Workbench(settings)),
    ("metric", "exact_metric", "synthetic", "kept_share", "spmm_us", "exact_us"),
)
TRAINING = Suite(
    {"graphs": ("tolokers", "planted:reddit"), "widths": (16, 64), "n": N},
    QUICK,
    # The edges are others at each step, and always the same ones.
    lambda settings: all_cases(settings, ("fastrand_coprime", "fastrand")),
    lambda settings: partial(train_case, trainer=Trainer(Workbench(settings))),
    ("metric", "exact_metric", "synthetic", "seconds", "exact_seconds"),
)
