"""Training on a whole graph, exactly or with sampled edges."""

from __future__ import annotations

import copy
import time
from typing import NamedTuple

import torch
from torch import nn

from bench.pytorch.datasets import Dataset
from bench.pytorch.sampled import loss_of, metric_of
from bench.pytorch.timing import synchronise
from warploom.torch import Graph, Sample


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
