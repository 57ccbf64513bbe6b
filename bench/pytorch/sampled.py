"""Models whose aggregation may sample edges, what a sampling leaves of a graph, and training."""

from __future__ import annotations

import copy
import math
import time
from typing import NamedTuple

import torch
from scipy.stats import rankdata
from torch import Tensor, nn
from torch.nn import functional

from bench.pytorch.datasets import Dataset
from bench.pytorch.graphs import Csr
from bench.pytorch.timing import synchronise
from warploom.torch import Graph, Sample, spmm

STRIDE = 577  # FastRand's, a prime


class SampledModel(nn.Module):
    """GCN, or GraphSAGE with the mean, on a Graph of warploom.torch.

    Both have `layers` layers and `hidden` features between them. GCN's edges are weighted as by
    Kipf and Welling; sampling them is rescaled by edges / edges used. GraphSAGE's mean is that of
    the edges used.
    """

    def __init__(self, kind: str, inputs: int, hidden: int, classes: int, layers: int) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * (layers - 1), classes]
        pairs = list(zip(widths, widths[1:]))
        self.kind = kind
        self.shapes = pairs  # inputs, outputs
        self.neighbours = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in pairs)
        self.own = nn.ModuleList(nn.Linear(a, b) for a, b in pairs) if kind == "sage" else None
        self.bias = nn.ParameterList(torch.zeros(b) for _, b in pairs)

    def aggregate(self, graph: Graph, h: Tensor, sample: Sample | None, seed: int) -> Tensor:
        if self.kind == "gcn":
            norm = None if sample is None else sample._replace(norm="unbiased")
            return spmm(graph, h, sample=norm, seed=seed)
        return spmm(graph, h, reduce="mean", message="copy_b", sample=sample, seed=seed)

    def forward(
        self,
        graph: Graph,
        x: Tensor,
        sample: Sample | None = None,
        seed: int = 0,
        dropout: float = 0.0,
    ) -> Tensor:
        for number, (neighbours, shape) in enumerate(zip(self.neighbours, self.shapes)):
            if number:
                x = x.relu()
            x = functional.dropout(x, dropout, self.training)
            narrow = shape[1] <= shape[0]
            # The product with the weights comes first where it makes the aggregation narrower.
            h = neighbours(x) if narrow else x
            h = self.aggregate(graph, h, sample, seed + number if seed else 0)
            h = h if narrow else neighbours(h)
            if self.own is not None:
                h = h + self.own[number](x)
            x = h + self.bias[number]
        return x


class DenseModel(nn.Module):
    """Two dense layers, which see the features of a node and no graph."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, classes)

    def forward(
        self, graph: Graph, x: Tensor, sample: None = None, seed: int = 0, dropout: float = 0.0
    ) -> Tensor:
        h = functional.dropout(self.first(x).relu(), dropout, self.training)
        outputs: Tensor = self.second(h)
        return outputs


def make_graph(kind: str, csr: Csr, device: torch.device) -> Graph:
    """The graph that a model of this kind multiplies by, with GCN's weights and self loops."""
    if kind != "gcn":
        pattern = (torch.from_numpy(array).int().to(device) for array in (csr.rowptr, csr.colind))
        return Graph(*pattern, cols=csr.nodes)
    edges = torch.from_numpy(csr.edges()).to(device)
    loops = torch.arange(csr.nodes, device=device)
    edges = torch.cat([edges[:, edges[0] != edges[1]], loops.expand(2, -1)], 1)
    degrees = torch.bincount(edges[1], minlength=csr.nodes).float()
    graph = Graph.from_edge_index(edges, rows=csr.nodes, cols=csr.nodes)
    scale = degrees.rsqrt()
    rows = torch.repeat_interleave(loops, graph.rowptr.diff().long())
    return Graph(
        graph.rowptr, graph.colind, scale[rows] * scale[graph.colind.long()], cols=csr.nodes
    )


# ---- what a sampling leaves ---------------------------------------------------------------------


def kept_share(rowptr: Tensor, width: int) -> float:
    """The share of the edges that a sampling keeps, an edge taken twice counting twice."""
    degrees = rowptr.diff()
    return float(degrees.clamp(max=width).sum() / degrees.sum())


def _strides(degrees: Tensor) -> Tensor:
    """From 577 on, the first that is coprime with the degree."""
    strides = torch.full_like(degrees, STRIDE)
    while True:
        divisible = torch.gcd(strides, degrees.clamp(min=1)) != 1
        if not bool(divisible.any()):
            return strides
        strides += divisible


def presample(graph: Graph, sample: Sample) -> Graph:
    """The sampled graph as published (seed 0), made by torch where the graph is.

    Weights of GCN are rescaled as in the sampled product.
    """
    rowptr, width = graph.rowptr.long(), sample.width
    degrees = rowptr.diff()
    kept = degrees.clamp(max=width)
    starts = torch.zeros_like(rowptr)
    torch.cumsum(kept, 0, out=starts[1:])
    count = int(starts[-1])
    rows = torch.repeat_interleave(
        torch.arange(len(degrees), device=rowptr.device), kept, output_size=count
    )
    k = torch.arange(count, device=rowptr.device) - starts[rows]
    if sample.strategy != "bucket":
        strides = (
            _strides(degrees)
            if sample.strategy == "fastrand_coprime"
            else torch.full_like(degrees, STRIDE)
        )
        long = degrees > width
        strided = strides[rows] * k % degrees[rows].clamp(min=1)
        k = torch.where(long[rows], strided, k)
    edges = rowptr[:-1][rows] + k
    values = graph.values
    if values is not None:
        scale = degrees.float() / kept.clamp(min=1)
        values = values[edges] * scale[rows]
    index_type = graph.rowptr.dtype
    return Graph(starts.to(index_type), graph.colind[edges], values, cols=graph.cols)


# ---- metrics ------------------------------------------------------------------------------------


def roc_auc(scores: Tensor, labels: Tensor) -> float:
    """Area under the ROC curve in percent, the mean over tasks (columns) that have both labels."""
    ranks = torch.from_numpy(rankdata(scores.cpu().numpy(), axis=0)).to(scores.device)
    positive = labels.double().sum(0)
    negative = len(labels) - positive
    above = (ranks * labels).sum(0) - positive * (positive + 1) / 2
    defined = (positive > 0) & (negative > 0)
    areas = above[defined] / (positive * negative)[defined]
    return float(100 * areas.mean()) if len(areas) else math.nan


def metric_of(outputs: Tensor, labels: Tensor, nodes: Tensor) -> float:
    """Accuracy in percent for classes, ROC-AUC for tasks."""
    outputs, labels = outputs[nodes], labels[nodes]
    if labels.dim() == 2:
        return roc_auc(outputs.double(), labels)
    return float(100 * (outputs.argmax(1) == labels).float().mean())


def loss_of(outputs: Tensor, labels: Tensor, nodes: Tensor) -> Tensor:
    outputs, labels = outputs[nodes], labels[nodes]
    if labels.dim() == 2:
        return functional.binary_cross_entropy_with_logits(outputs, labels)
    return functional.cross_entropy(outputs, labels)


# ---- training on a whole graph, exactly or with sampled edges ------------------------------------


class Recipe(NamedTuple):
    """The settings of a training."""

    layers: int
    epochs: int
    dropout: float = 0.0
    decay: float = 0.0
    rate: float = 0.01
    every: int = 5  # epochs between evaluations


class Trained(NamedTuple):
    """The result of a training. The model keeps the state of the epoch with the best validation."""

    epochs: int  # the number that was run
    seconds: float  # of all training steps, without evaluations
    best_epoch: int
    best_seconds: float
    metric: float  # of the test nodes at that epoch, in exact inference


def train(
    model: nn.Module,
    graph: Graph,
    data: Dataset,
    recipe: Recipe,
    seed: int,
    sample: Sample | None = None,
    seconds: float | None = None,
) -> Trained:
    """Train for the recipe's epochs, or for `seconds` of training steps.

    sample: forward and backward products of a step use the same sampled edges. With a strategy
        that has seeds (fastrand_coprime) each step has other edges, otherwise all have the same.
    """
    device = data.x.device
    torch.manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    seeded = sample is not None and sample.strategy == "fastrand_coprime"
    spent, best, epoch = 0.0, -1.0, 0
    state = copy.deepcopy(model.state_dict())
    found = Trained(0, 0.0, 0, 0.0, best)
    while epoch < recipe.epochs if seconds is None else spent < seconds:
        model.train()
        synchronise(device)
        begin = time.perf_counter()
        for _ in range(recipe.every):
            epoch += 1
            optimiser.zero_grad()
            step_seed = 1 + recipe.layers * (epoch + 100_000 * seed) if seeded else 0
            outputs = model(graph, data.x, sample, step_seed, recipe.dropout)
            loss_of(outputs, data.labels, data.train).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        synchronise(device)
        spent += time.perf_counter() - begin
        model.eval()
        with torch.no_grad():
            outputs = model(graph, data.x)
        value = metric_of(outputs, data.labels, data.val)
        if value > best:
            best, state = value, copy.deepcopy(model.state_dict())
            found = Trained(0, 0.0, epoch, spent, metric_of(outputs, data.labels, data.test))
    model.load_state_dict(state)
    return found._replace(epochs=epoch, seconds=spent)
