"""The fastest sampling of a model's layers whose loss stays within a budget.

Settings are timed first, and then raced: from fast to slow each gets passes with new seeds, and is
given up as soon as its mean loss is above the budget. The first that keeps the budget after all
passes is refined layer by layer. Each pass draws the validation nodes with replacement, so that the
spread of the losses is that of seeds and of nodes.

Sampling: ES-SpMM (Lin et al., 2021). Racing: successive halving (Jamieson and Talwalkar, 2016)
ordered by time, since the fastest setting that holds is wanted, not the one with the least loss.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from warploom import _arguments
from warploom._problem import SAMPLES
from warploom.torch import _later, _sampling
from warploom.torch._eager import spmm
from warploom.torch._graph import Graph
from warploom.torch._plan import Sample
from warploom.torch._sampling import Follower, LayerSampling, Sampling, Tried

Metric = Callable[[Tensor, Tensor], float]
Forward = Callable[[nn.Module, Any], Tensor]
_Show = Callable[[str, int, int], None]  # what is measured, and how much of this part is done

_WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2304)
_ROWS_NAMED = 5  # that lose most
_TIMED = 5  # runs of a setting
_TURNS = 3  # in which the setting found and all edges are timed again
_BAR = 20  # characters of the bar of progress
_GAIN = 0.95  # of the time with all edges, above which sampling does not pay


class _Product(NamedTuple):
    """Operands of a product that may sample."""

    graph: Graph
    b: Tensor
    values: Tensor | None
    reduce: str


class _Layer:
    """What a layer multiplied in the exact pass."""

    def __init__(self) -> None:
        self.graphs: dict[str, None] = {}
        self.longest = 0


class _Job:
    """A model on its data, under one setting after another."""

    def __init__(self, model: nn.Module, data: Any, forward: Forward) -> None:
        self.model, self.data, self.forward = model, data, forward
        self.samples: dict[str, Sample | None] = {}
        self.layers: dict[str, _Layer] = {}
        self.seed = 0
        self.see: Callable[[str, _Product], None] | None = None

    def run(self, samples: dict[str, Sample | None], seed: int) -> Tensor:
        """The outputs with these samples of layers."""
        with self._follow(samples):
            return self._forward(seed)

    def _follow(self, samples: dict[str, Sample | None]) -> AbstractContextManager[Any]:
        """Follow the layers where that decides anything: all edges need no sampling in use."""
        self.samples = samples
        if self.see is None and not any(samples.values()):
            return nullcontext()
        return Follower(lambda module: module is self.model, self.decide)

    def _forward(self, seed: int) -> Tensor:
        self.seed = seed
        with torch.no_grad():
            return self.forward(self.model, self.data)

    def decide(
        self, graph: Graph, b: Tensor, values: Tensor | None, reduce: str,
        layer: tuple[str, int] | None,
    ) -> tuple[Sample, int] | None:  # fmt: skip
        """What the layer that runs does."""
        if layer is None:
            return None
        name, number = layer
        if self.see is not None:
            self.see(name, _Product(graph, b, values, reduce))
        sample = self.samples.get(name)
        return None if sample is None else (sample, self.seed + number)

    def note(self, name: str, product: _Product) -> None:
        """Note a layer and its graph."""
        found = self.layers.setdefault(name, _Layer())
        found.graphs[_sampling.fingerprint_of(product.graph)] = None
        lengths = product.graph.rowptr.diff()
        found.longest = max(found.longest, int(lengths.max()) if lengths.numel() else 0)

    def seconds(self, samples: dict[str, Sample | None]) -> float:
        """The median time of one inference, after one run that compiles kernels."""
        times = []
        with self._follow(samples):
            for _ in range(1 + _TIMED):
                _wait()
                began = time.perf_counter()
                self._forward(1)
                _wait()
                times.append(time.perf_counter() - began)
        return statistics.median(times[1:])


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


# ---- the loss ------------------------------------------------------------------------------------


def accuracy(outputs: Tensor, labels: Tensor) -> float:
    """The share of rows whose largest output is that of their label."""
    return float((outputs.argmax(dim=-1) == labels).float().mean())


class _Loss:
    """The loss of outputs over those of the exact model, on nodes that each pass draws."""

    def __init__(self, exact: Tensor, labels: Tensor | None, nodes: Tensor, metric: Metric) -> None:
        self._nodes, self._metric = nodes, metric
        self._exact = exact[nodes]
        # Without labels the exact model's choice is what is right.
        self._labels = self._exact.argmax(dim=-1) if labels is None else labels[nodes]

    def of(self, outputs: Tensor, number: int) -> float:
        """The loss of the pass of this number."""
        generator = torch.Generator().manual_seed(number)
        count = self._nodes.numel()
        drawn = torch.randint(count, (count,), generator=generator).to(self._nodes.device)
        found = [
            float(self._metric(one[drawn], self._labels[drawn]))
            for one in (self._exact, outputs[self._nodes])
        ]
        if not all(map(math.isfinite, found)):
            raise ValueError(
                f"warploom: metric: gave {found[0]} for the exact model and {found[1]} with "
                "sampling; it must give finite numbers for any draw of validation nodes"
            )
        return found[0] - found[1]


def _bound(losses: list[float], confidence: float) -> float:
    """What the loss on other nodes with another seed stays below, with this confidence.

    A one-sided prediction bound of Student's t; twice the variance of one pass, which is that of
    the nodes seen and of as many others.
    """
    return statistics.fmean(losses) + _t(confidence, len(losses) - 1) * math.sqrt(2) * (
        statistics.stdev(losses)
    )


def _t(confidence: float, freedom: int) -> float:
    """A quantile of Student's t, by its expansion in 1 / freedom (Abramowitz and Stegun 26.7.5)."""
    z = statistics.NormalDist().inv_cdf(confidence)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


# ---- the variance --------------------------------------------------------------------------------


class _Variance:
    """Expected and measured variance of the products of one layer."""

    def __init__(self, sample: Sample, passes: int) -> None:
        self._sample, self._passes = sample, passes
        self.expected = self.measured = 0.0
        self.worst: list[tuple[int, int, float]] = []

    def add(self, product: _Product) -> None:
        """Take the variance of one product; that of a layer's last product counts."""
        graph, b, values, reduce = product
        width = float(self._sample.width)
        kind = "copy_b" if values is None else "mul"
        squares = None if values is None else values * values
        with _sampling.exact():
            exact = spmm(graph, b, values, reduce=reduce, message=kind).double()
            mean = spmm(graph, b, values, reduce="mean", message=kind).double()
            square = spmm(graph, b * b, squares, reduce="mean", message=kind).double()
        degree = graph.rowptr.diff().double()
        spread = (square - mean * mean).clamp_(min=0).flatten(1).mean(dim=1)
        spread *= degree / (degree - 1).clamp(min=1)
        of_row = spread / width * (1 - width / degree.clamp(min=1)).clamp(min=0)
        if reduce == "sum":
            of_row *= degree * degree
        self.expected = float(of_row.mean())
        most = of_row.topk(min(_ROWS_NAMED, of_row.numel()))
        self.worst = [
            (row, int(degree[row]), value)
            for row, value in zip(most.indices.tolist(), most.values.tolist())
            if value > 0
        ]
        sample = self._sample._replace(norm=_sampling.NORM_OF[reduce])
        self.measured = statistics.fmean(
            float(
                (
                    spmm(graph, b, values, reduce=reduce, message=kind, sample=sample, seed=seed)
                    - exact
                )
                .square()
                .mean()
            )
            for seed in range(1, self._passes + 1)
        )


# ---- the search ----------------------------------------------------------------------------------


class _Search:
    """Measures settings until one is found or the time is over."""

    def __init__(
        self, job: _Job, loss: _Loss, budget: float, confidence: float, passes: int, seconds: float
    ) -> None:
        self._job, self._loss = job, loss
        self._budget, self._confidence, self._passes = budget, confidence, passes
        self._ends = time.monotonic() + seconds
        self.tried: dict[Any, Tried] = {}

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._ends

    def timed(self, samples: dict[str, Sample | None]) -> float:
        """Microseconds of one inference."""
        return self._job.seconds(samples) * 1e6

    def holds(self, samples: dict[str, Sample | None], us: float) -> bool:
        """Whether a setting keeps the budget; gives up early where its mean loss does not."""
        key = tuple(samples.values())
        known = self.tried.get(key)
        if known is None:
            losses: list[float] = []
            for number in range(1, self._passes + 1):
                losses.append(self._loss.of(self._job.run(samples, 1000 * number), number))
                if number in (2, self._passes // 2) and statistics.fmean(losses) > self._budget:
                    break
            ended = len(losses) < self._passes
            bound = None if ended else _bound(losses, self._confidence)
            known = Tried(samples, us, statistics.fmean(losses), bound, len(losses))
            self.tried[key] = known
        return known.bound is not None and known.bound <= self._budget

    def run(self, show: _Show) -> dict[str, Sample | None]:
        """The fastest setting that keeps the budget."""
        layers = self._job.layers
        best: dict[str, Sample | None] = dict.fromkeys(layers)
        fastest = self.timed(best)
        self.tried[tuple(best.values())] = Tried(best, fastest, 0.0, 0.0, self._passes)
        found = []
        longest = max(layer.longest for layer in layers.values())
        uniform = [(name, width) for name in SAMPLES for width in _WIDTHS if width < longest]
        for number, (strategy, width) in enumerate(uniform):
            if self.is_over:
                break
            show(f"time of {strategy}, S = {width}", number, len(uniform))
            samples = {
                name: Sample(width, strategy) if width < layer.longest else None
                for name, layer in layers.items()
            }
            found.append((self.timed(samples), samples))
        found = [one for one in found if one[0] <= _GAIN * fastest]
        for number, (us, samples) in enumerate(sorted(found, key=lambda one: one[0])):
            if self.is_over:
                break
            show(f"loss of {_text_of(samples)}", number, len(found))
            if self.holds(samples, us):
                best, fastest = samples, us
                break
        best = self._refined(best, fastest, show)
        return best if any(best.values()) and self._pays(best) else dict.fromkeys(layers)

    def _pays(self, best: dict[str, Sample | None]) -> bool:
        """Whether a setting is quicker than all edges when both are timed again, in turns."""
        exact: dict[str, Sample | None] = dict.fromkeys(best)
        times = [(self.timed(best), self.timed(exact)) for _ in range(_TURNS)]
        of_best, of_exact = map(statistics.median, zip(*times))
        for samples, us in ((best, of_best), (exact, of_exact)):
            key = tuple(samples.values())
            self.tried[key] = self.tried[key]._replace(us=us)
        return bool(of_best < _GAIN * of_exact)

    def _refined(
        self, best: dict[str, Sample | None], fastest: float, show: _Show
    ) -> dict[str, Sample | None]:
        """The best setting that differs in one layer from a better one, as long as there is one."""
        layers = self._job.layers
        improved = len(best) > 1
        while improved and not self.is_over:
            improved = False
            for number, (name, layer) in enumerate(layers.items()):
                for other in self._neighbours(best[name], layer):
                    samples = {**best, name: other}
                    if self.is_over or tuple(samples.values()) in self.tried:
                        continue
                    show(f"loss of {_text_of(samples)}", number, len(layers))
                    us = self.timed(samples)
                    if us < fastest and self.holds(samples, us):
                        best, fastest, improved = samples, us, True
        return best

    def _neighbours(self, sample: Sample | None, layer: _Layer) -> list[Sample | None]:
        """The next smaller sample of a layer, and all edges."""
        if sample is None:
            fitting = [width for width in _WIDTHS if width < layer.longest]
            return [Sample(max(fitting), name) for name in SAMPLES] if fitting else []
        at = _WIDTHS.index(sample.width)
        return [None, *([sample._replace(width=_WIDTHS[at - 1])] if at else [])]


def _text_of(samples: dict[str, Sample | None]) -> str:
    return ", ".join(
        f"{name or 'the model'}: {_sampling.text_of(one)}" for name, one in samples.items()
    )


# ---- the call ------------------------------------------------------------------------------------


def _run_model(model: nn.Module, data: Any) -> Tensor:
    """A model of PyG on its data."""
    weight = getattr(data, "edge_weight", None)
    if weight is None:
        return model(data.x, data.edge_index)  # type: ignore[no-any-return]
    return model(data.x, data.edge_index, weight)  # type: ignore[no-any-return]


def _progress(is_shown: bool) -> _Show:
    def show(text: str, done: int, total: int) -> None:
        bar = f"[{'#' * (_BAR * done // total):.<{_BAR}}] {done}/{total}  " if text else ""
        print(f"\r\033[K{bar}{text}"[:80], end="", file=sys.stderr, flush=True)

    return show if is_shown else lambda text, done, total: None


def _nodes_of(data: Any) -> Tensor:
    mask = getattr(data, "val_mask", None)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool or mask.dim() != 1:
        raise ValueError(
            "warploom: data: has no val_mask, a bool for each node; the loss is measured on "
            "validation nodes"
        )
    nodes = mask.nonzero().flatten()
    if nodes.numel() == 0:
        raise ValueError("warploom: data: val_mask chooses no node; the loss is measured on these")
    return nodes


@_later.timed()
def calibrate(
    model: nn.Module,
    data: Any,
    budget: float = 0.01,
    metric: Metric | None = None,
    confidence: float = 0.95,
    passes: int = 10,
    *,
    forward: Forward | None = None,
    seconds: float = 120.0,
    progress: bool | None = None,
) -> Sampling:
    """Find the fastest sampling of the model's layers whose loss stays within the budget.

        with warploom.pyg.accelerate():
            setting = warploom.torch.calibrate(model, data, budget=0.01)
        setting.save("sampling.json")

    model: its sums and means over neighbours may sample, in layers of PyG under
        `warploom.pyg.accelerate` and in `warploom.torch.spmm`. It runs in eval mode, without
        gradients.
    data: has `x`, `edge_index`, `val_mask`, and `y` where there are labels, as PyG's Data. The
        test nodes are never read.
    budget: how much of the metric may be lost, above 0 and at most 1; 0.01 is one point.
    metric: a function of outputs and labels that is better the larger it is; None = accuracy.
        Without labels the share of nodes whose largest output is that of the exact model.
    confidence: with which the loss on as many other nodes with another seed stays in the budget.
    passes: seeds of each setting, at least 4. More passes give narrower bounds.
    forward: runs the model on the data; None = model(data.x, data.edge_index), and
        data.edge_weight where there is one.
    seconds: after which no new setting is begun.
    progress: whether a line on stderr shows the setting at hand with a bar of how many of its kind
        were measured; None = where that is a terminal.

    Returns a Sampling, which may say that all edges are the fastest: `is_exact`. Raises TypeError
    or ValueError that name the argument. Source: ES-SpMM (Lin et al., 2021) for the strategies.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"warploom: model: a {type(model).__name__} is no torch.nn.Module")
    budget = _arguments.number("budget", budget)
    if not 0 < budget <= 1:
        raise ValueError(f"warploom: budget: {budget} is not above 0 and at most 1")
    confidence = _arguments.number("confidence", confidence)
    if not 0.5 <= confidence < 1:
        raise ValueError(f"warploom: confidence: {confidence} is not at least 0.5 and below 1")
    passes = _arguments.integer("passes", passes, 4, 10_000)
    seconds = _arguments.number("seconds", seconds)
    nodes = _nodes_of(data)
    labels = getattr(data, "y", None)
    name = "accuracy" if metric is None else getattr(metric, "__name__", "metric")
    if labels is None:
        name = "agreement"
    job = _Job(model, data, _run_model if forward is None else forward)
    show = _progress(sys.stderr.isatty() if progress is None else progress)
    was_training = model.training
    model.eval()
    try:
        job.see = job.note
        exact = job.run({}, 0)
        job.see = None
        if not job.layers:
            raise ValueError(
                "warploom: model: has no sum or mean over neighbours on warploom; run layers of "
                "PyG inside warploom.pyg.accelerate()"
            )
        loss = _Loss(exact, labels, nodes, accuracy if metric is None else metric)
        search = _Search(job, loss, budget, confidence, passes, seconds)
        best = search.run(show)
        layers = _described(job, best, passes)
    finally:
        model.train(was_training)
        show("", 0, 1)
    found, all_edges = search.tried[tuple(best.values())], dict.fromkeys(job.layers)
    return Sampling(
        layers=layers,
        model=_sampling.hash_of(model),
        budget=budget,
        confidence=confidence,
        metric=name,
        device=_device_name(exact.device),
        loss=found.loss,
        bound=found.bound or 0.0,
        us=found.us,
        exact_us=search.tried[tuple(all_edges.values())].us,
        tried=tuple(sorted(search.tried.values(), key=lambda one: one.us)),
    )


def _described(job: _Job, best: dict[str, Sample | None], passes: int) -> dict[str, LayerSampling]:
    """The layers of a setting, with the variance that sampling causes in each."""
    variances = {
        name: _Variance(sample, passes) for name, sample in best.items() if sample is not None
    }

    def see(name: str, product: _Product) -> None:
        if name in variances:
            variances[name].add(product)

    job.see = see
    job.run({}, 0)
    job.see = None
    layers = {}
    for name, sample in best.items():
        graphs, found = tuple(job.layers[name].graphs), variances.get(name)
        layers[name] = LayerSampling(sample, graphs)
        if found is not None:
            layers[name] = LayerSampling(
                sample, graphs, found.expected, found.measured, tuple(found.worst)
            )
    return layers


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
