"""ES-SpMM's trade: models trained exactly, whose inference samples edges (sections III and V)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from bench.pytorch.cases import Output, rounded_values, run_cases
from bench.pytorch.datasets import Dataset, load_dataset
from bench.pytorch.graphs import GraphSettings
from bench.pytorch.planted import load_planted
from bench.pytorch.sampled import (
    DenseModel,
    SampledModel,
    kept_share,
    make_graph,
    metric_of,
    presample,
)
from bench.pytorch.timing import Function, device_name, measure
from bench.pytorch.training import Recipe, train
from bench.results_file import Line, read_lines
from warploom.torch import Graph, Sample

GRAPHS = ("planted:reddit", "planted:proteins", "tolokers", "cora", "citeseer")
MODELS = ("gcn", "sage")
STRATEGIES = ("fastrand", "bucket", "fastrand_coprime")
WIDTHS = (16, 32, 64, 128, 256, 512)
LONG_WIDTHS = (1024, 1792, 2304)  # where rows are longer than 512 edges
FIRST_SEEDS = 3  # of all graphs, before the others of any
N = 128
RESULTS = ("metric", "exact_metric", "synthetic", "kept_share", "spmm_us", "exact_us")
TORCH, SUITE = "torch.sparse.mm", "bench sampled"  # where times of cuSPARSE come from


# Layers are those of the paper's Table III.
RECIPES = {
    "cora": Recipe(2, 200, 0.5, 5e-4),
    "citeseer": Recipe(2, 200, 0.5, 5e-4),
    "tolokers": Recipe(2, 400, 0.2),
    "reddit": Recipe(2, 60, 0.5),
    "proteins": Recipe(3, 300),
    "random": Recipe(2, 4, every=2),
}


class Case(NamedTuple):
    graph: str
    model: str
    strategy: str
    s: int
    seed: int
    n: int


@dataclass(frozen=True)
class Settings(GraphSettings):
    graphs: tuple[str, ...] = GRAPHS
    widths: tuple[int, ...] = WIDTHS + LONG_WIDTHS
    seeds: int = 10
    n: int = N
    sampled: Path | None = None  # results of `warploom bench sampled`, which has cuSPARSE's times


def quick(settings: Settings) -> Settings:
    """A small run, for a test of the command."""
    return replace(settings, graphs=("random:80:20",), widths=(8,), seeds=1, n=8, samples=1)


def recipe_of(graph: str) -> Recipe:
    return RECIPES[graph.replace("planted:", "").partition(",")[0].partition(":")[0]]


def graphs_and_seeds(settings: Settings) -> Iterator[tuple[str, int]]:
    """In the order of a run: what a budget leaves out are seeds, not graphs."""
    first = min(FIRST_SEEDS, settings.seeds)
    for seeds in (range(first), range(first, settings.seeds)):
        for graph in settings.graphs:
            for seed in seeds:
                yield graph, seed


def cases(settings: Settings) -> Iterator[Case]:
    """Widths above 512 only where the paper needs them: Proteins, whose rows are the longest."""
    for (graph, seed), model, strategy, s in product(
        graphs_and_seeds(settings), MODELS, STRATEGIES, settings.widths
    ):
        if s <= max(WIDTHS) or "proteins" in graph or "tolokers" in graph:
            yield Case(graph, model, strategy, s, seed, settings.n)


def load_any(name: str, settings: Settings) -> Dataset:
    """A dataset by name; labels of two classes become one task, whose metric is ROC-AUC."""
    if name.startswith("planted:"):
        return load_planted(name, settings.data, settings.command, settings.twins)
    found = load_dataset(name, settings.data)
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
    """The data, the model and the times at hand; one graph at a time, because twins are large.

    lines: of earlier runs, whose times are used again.
    """

    def __init__(self, settings: Settings, lines: Iterable[Line] = ()) -> None:
        self.settings = settings
        self.device = torch.device(settings.device)
        self.name = ""
        self._graphs: dict[str, Graph] = {}
        self._models: dict[tuple[str, int], tuple[SampledModel, float]] = {}
        self._times: dict[tuple[object, ...], dict[str, float | None]] = {}
        self._features_alone: float | None = None
        self._cusparse = cusparse_times(settings.sampled, settings.n)
        self._lines = [
            line
            for line in lines
            if line["metric"] is not None and line["device"] == device_name(self.device)
        ]

    def open(self, name: str) -> Dataset:
        if self.name != name:
            self._graphs.clear()
            self._models.clear()
            self._times.clear()
            self._features_alone = None
            self.data = load_any(name, self.settings).to(self.device)
            self.name = name
            for line in self._lines:
                if (line["graph"], line["n"]) == (name, self.settings.n):
                    self._remember(line)
        return self.data

    def _remember(self, line: Line) -> None:
        """Take over what is measured once for all seeds."""
        model, sample = line["model"], Sample(line["s"], line["strategy"])
        fields: dict[tuple[object, ...], dict[str, str]] = {
            (model, "exact"): {"own": "exact_us", "step": "exact_step_us"},
            (model, sample): {"own": "spmm_us", "step": "step_us"},
            (model, sample, "presampled"): {
                "own": "presampled_us",
                "made": "presample_us",
                "on_cpu": "presample_cpu_us",
            },
        }
        if line["cusparse"] == TORCH:
            fields[model, "exact"][TORCH] = "cusparse_us"
        for key, parts in fields.items():
            self._times.setdefault(key, {part: line[field] for part, field in parts.items()})
        self._features_alone = line["features_metric"]

    def graph(self, model: str) -> Graph:
        if model not in self._graphs:
            self._graphs[model] = make_graph(model, self.data.graph, self.device)
        return self._graphs[model]

    def model(self, kind: str, seed: int) -> tuple[SampledModel, float]:
        """A trained model and its exact metric."""
        key = kind, seed
        if key not in self._models:
            data, recipe = self.data, recipe_of(self.name)
            torch.manual_seed(seed)
            model = SampledModel(kind, data.x.size(1), self.settings.n, data.classes, recipe.layers)
            train(model.to(self.device), self.graph(kind), data, recipe, seed)
            model.eval()
            with torch.no_grad():
                outputs = model(self.graph(kind), data.x)
            self._models[key] = model, metric_of(outputs, data.labels, data.test)
        return self._models[key]

    # ---- times ----

    def _operand(self) -> Tensor:
        return torch.randn(self.data.graph.nodes, self.settings.n, device=self.device)

    def _infer(self, kind: str, model: SampledModel, sample: Sample | None) -> Tensor:
        with torch.no_grad():
            outputs: Tensor = model(self.graph(kind), self.data.x, sample)
            return outputs

    def _timed(
        self, key: tuple[object, ...], make: Callable[[], dict[str, Function]]
    ) -> dict[str, float | None]:
        """Times by name, on a GPU of replayed CUDA graphs; None for a rival that cannot run."""
        if key not in self._times:
            functions, graphed = make(), self.device.type == "cuda"
            found, failed = measure(functions, self.device, graphed, self.settings.samples)
            if "own" in failed:
                raise RuntimeError(failed["own"])
            self._times[key] = {name: found.get(name) for name in functions}
        return self._times[key]

    def exact_times(self, kind: str, model: SampledModel) -> dict[str, float | None]:
        """Microseconds of the exact product, of torch.sparse's (cuSPARSE), and of inference."""

        def make() -> dict[str, Function]:
            graph, b = self.graph(kind), self._operand()
            values = graph.values
            if values is None:
                values = torch.ones(len(graph.colind), device=self.device)
            matrix = torch.sparse_csr_tensor(
                graph.rowptr, graph.colind, values, (graph.rows, graph.cols)
            )
            return {
                "own": lambda: model.aggregate(graph, b, None, 0),
                TORCH: lambda: torch.sparse.mm(matrix, b),
                "step": lambda: self._infer(kind, model, None),
            }

        return self._timed((kind, "exact"), make)

    def sampled_times(
        self, kind: str, model: SampledModel, sample: Sample
    ) -> dict[str, float | None]:
        """Microseconds of the sampled product and of sampled inference."""

        def make() -> dict[str, Function]:
            graph, b = self.graph(kind), self._operand()
            return {
                "own": lambda: model.aggregate(graph, b, sample, 0),
                "step": lambda: self._infer(kind, model, sample),
            }

        return self._timed((kind, sample), make)

    def presampled_times(
        self, kind: str, model: SampledModel, sample: Sample
    ) -> dict[str, float | None]:
        """Microseconds of a product with a graph that was sampled before, and of sampling it.

        Only for the strategies of the paper; on the CPU once, for FastRand and GCN's graph, because
        it takes long.
        """
        if sample.strategy == "fastrand_coprime":
            return {}
        graph, device = self.graph(kind), self.device
        key = kind, sample, "presampled"
        if key not in self._times:
            sampled, b = presample(graph, sample), self._operand()
            self._timed(key, lambda: {"own": lambda: model.aggregate(sampled, b, None, 0)})
            made, _ = measure({"made": lambda: presample(graph, sample)}, device, False, 1)
            self._times[key].update(made)
            if kind == "gcn" and sample.strategy == "fastrand":
                if "cpu" not in self._graphs:
                    self._graphs["cpu"] = graph.cpu()
                begin = time.perf_counter()
                presample(self._graphs["cpu"], sample)
                self._times[key]["on_cpu"] = (time.perf_counter() - begin) * 1e6
        return self._times[key]

    def cusparse(self, exact: dict[str, float | None]) -> tuple[float | None, str | None]:
        """The faster of torch.sparse.mm and what `warploom bench sampled` has, and which it is."""
        times = {TORCH: exact.get(TORCH), SUITE: self._cusparse.get(self.name)}
        known = {name: us for name, us in times.items() if us is not None}
        which = min(known, key=lambda name: known[name], default=None)
        return (None, None) if which is None else (known[which], which)

    def features_alone(self) -> float:
        """The metric of a dense network of the same width that sees no graph."""
        if self._features_alone is None:
            data = self.data
            torch.manual_seed(0)
            model = DenseModel(data.x.size(1), self.settings.n, data.classes).to(self.device)
            train(model, self.graph("gcn"), data, recipe_of(self.name), 0)
            with torch.no_grad():
                outputs = model.eval()(self.graph("gcn"), data.x)
            self._features_alone = metric_of(outputs, data.labels, data.test)
        return self._features_alone


def run_case(case: Case, bench: Workbench) -> Line:
    """Sampled inference of a model that was trained exactly, and the times of one seed."""
    data = bench.open(case.graph)
    model, exact_metric = bench.model(case.model, case.seed)
    graph = bench.graph(case.model)
    sample = Sample(case.s, case.strategy)
    with torch.no_grad():  # the strategies of the paper have no seed
        seed = case.seed + 1 if case.strategy == "fastrand_coprime" else 0
        outputs = model(graph, data.x, sample, seed)
    exact = bench.exact_times(case.model, model)
    times = bench.sampled_times(case.model, model, sample)
    presampled = bench.presampled_times(case.model, model, sample)
    cusparse_us, cusparse = bench.cusparse(exact)
    line: Line = {
        **case._asdict(),
        "synthetic": data.synthetic,
        "metric_name": "roc_auc" if data.labels.dim() == 2 else "accuracy",
        "features_metric": bench.features_alone(),
        "exact_metric": exact_metric,
        "metric": metric_of(outputs, data.labels, data.test),
        "kept_share": kept_share(graph.rowptr, case.s),
        "spmm_us": times["own"],
        "exact_us": exact["own"],
        "cusparse_us": cusparse_us,
        "cusparse": cusparse,
        "step_us": times["step"],
        "exact_step_us": exact["step"],
        "presampled_us": presampled.get("own"),
        "presample_us": presampled.get("made"),
        "presample_cpu_us": presampled.get("on_cpu"),
        "device": device_name(bench.device),
    }
    rounded = rounded_values(line)
    rounded["kept_share"] = round(line["kept_share"], 6)
    return rounded


def run(settings: Settings, output: Output) -> int:
    """Run the cases that the output does not have yet. Returns how many gave no result."""
    bench = Workbench(settings, read_lines(output.path) if output.path else [])
    return run_cases(cases(settings), lambda case: run_case(case, bench), output, RESULTS)
