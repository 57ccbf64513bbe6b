"""Cases "step" and "minibatch": forward, backward and Adam of a two-layer model."""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.index import index2ptr
from torch_geometric.nn import MessagePassing

from bench.pytorch.graphs import Csr, Indices
from bench.pytorch.models import Stack, layer
from bench.pytorch.sampler import Sampler
from warploom import pyg

_Model = TypeVar("_Model", bound=nn.Module)
MODELS = (("gcn", "sum"), ("sage", "mean"), ("sage", "max"), ("gin", "sum"))
CLASSES = 16


class Training:
    """The steps of one model with Adam. loss: of the model, and of what a step is called with."""

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Tensor],
        capturable: bool = False,
        rate: float = 1e-3,
    ) -> None:
        self.model, self._loss = model, loss
        self.optimiser = torch.optim.Adam(model.parameters(), lr=rate, capturable=capturable)

    def loss(self, *data: Any) -> Tensor:
        return self._loss(self.model, *data)

    def gradients(self) -> Tensor:
        """Return the loss and all gradients of a first step as one vector."""
        loss = self.loss()
        gradients = torch.autograd.grad(loss, list(self.model.parameters()))
        return torch.cat([part.flatten() for part in (loss.detach(), *gradients)])

    def step(self, *data: Any) -> Tensor:
        """Take a step; returns the loss before it."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(*data)
        self.differentiate(loss)
        self.optimiser.step()
        return loss.detach()

    def differentiate(self, loss: Tensor) -> None:
        """Compute the gradients, which the step takes then."""
        loss.backward()  # type: ignore[no-untyped-call]


Batches = Callable[[], tuple[Tensor, Any, Tensor]]  # x, edges, and labels of the first nodes


def classify(batches: Batches) -> Callable[[Any], Tensor]:
    """Return the loss of a model on the next batch."""

    def loss(model: Any) -> Tensor:
        x, edges, labels = batches()
        return functional.cross_entropy(model(x, edges)[: len(labels)], labels)

    return loss


def without_loops(edges: Indices) -> Indices:
    """Remove self loops: GCNConv would replace those of an edge_index and add to a matrix's."""
    return np.ascontiguousarray(edges[:, edges[0] != edges[1]])


def adjacency(edge_index: Tensor, nodes: int) -> Tensor:
    """Return the matrix with targets as rows, as PyG multiplies by it. Targets must ascend."""
    ones = torch.ones(edge_index.size(1), device=edge_index.device)
    return torch.sparse_csr_tensor(
        index2ptr(edge_index[1], nodes), edge_index[0], ones, (nodes, nodes)
    )


def run_as_in_pyg(model: nn.Module) -> None:
    """Restore PyG's own methods, because those of `pyg.convert` take extra time."""
    for module in model.modules():
        if isinstance(module, MessagePassing):
            for name in ("forward", "propagate"):
                method = getattr(type(module), name)
                original = inspect.unwrap(method)
                if original is not method:
                    module.__dict__[name] = types.MethodType(original, module)


def run_as_made(model: nn.Module) -> None:
    """Undo `run_as_in_pyg`, whose methods compiled code does not tell from those of its class."""
    for module in model.modules():
        if isinstance(module, MessagePassing):
            for name in ("forward", "propagate"):
                module.__dict__.pop(name, None)


def make_models(names: tuple[str, ...], make: Callable[[], _Model]) -> dict[str, _Model]:
    """Make models with equal parameters by name: warploom's and PyG's."""
    models: dict[str, _Model] = {}
    for name in names:
        torch.manual_seed(3)
        models[name] = make()
        if name == "warploom":
            pyg.convert(models[name])
    for name, model in models.items():
        if name != "warploom":
            run_as_in_pyg(model)
    return models


def names_of(reduce: str, device: torch.device) -> tuple[str, ...]:
    """Return the names of warploom and its baselines; torch.sparse has no max on a GPU."""
    return (
        ("warploom", "pyg")
        if reduce == "max" and device.type == "cuda"
        else ("warploom", "pyg", "torch_sparse")
    )


class _Batches:
    """Features and labels, and the trainings of warploom and its baselines on them."""

    is_cached = False  # whether GCNConv may keep its norm

    def __init__(self, nodes: int, features: int, labels: int, device: torch.device) -> None:
        self.device = device
        generator = torch.Generator(device).manual_seed(4)
        self.x = torch.randn(nodes, features, generator=generator, device=device)
        self.labels = torch.randint(CLASSES, (labels,), generator=generator, device=device)

    def batches(self, as_matrix: bool) -> Batches:
        """Return what gives the batches of a training, with a matrix or an edge_index."""
        raise NotImplementedError

    def trainings(
        self, kind: str, reduce: str, hidden: int, capturable: bool
    ) -> dict[str, Training]:
        name = f"sage-{reduce}" if kind == "sage" else kind
        options = {"cached": self.is_cached} if kind == "gcn" else {}

        def make() -> Stack:
            sizes = (self.x.size(1), hidden), (hidden, CLASSES)
            return Stack(layer(name, *size, **options) for size in sizes).to(self.device)

        models = make_models(names_of(reduce, self.device), make)
        return {
            name: Training(model, classify(self.batches(name == "torch_sparse")), capturable)
            for name, model in models.items()
        }


class FullBatch(_Batches):
    """Training on a whole graph."""

    is_cached = True

    def __init__(self, graph: Csr, features: int, device: torch.device) -> None:
        super().__init__(graph.nodes, features, graph.nodes, device)
        self.edge_index = torch.from_numpy(without_loops(graph.edges())).to(device)

    @functools.cached_property
    def adjacency(self) -> Tensor:
        return adjacency(self.edge_index, len(self.x))

    def batches(self, as_matrix: bool) -> Batches:
        edges = self.adjacency if as_matrix else self.edge_index
        return lambda: (self.x, edges, self.labels)


class MiniBatches(_Batches):
    """Training on sampled neighbours; every step has an edge_index that it has not seen."""

    def __init__(
        self, graph: Csr, features: int, seeds: int, count: int, device: torch.device
    ) -> None:
        sampler = Sampler(graph, seeds, (15, 10))
        batches = [sampler.sample(seed) for seed in range(count)]
        nodes = max(len(batch.nodes) for batch in batches)
        super().__init__(nodes, features, sampler.seed_count, device)
        self.blocks = [(self._upload(batch.edge_index), len(batch.nodes)) for batch in batches]

    def _upload(self, edges: Indices) -> Tensor:
        return torch.from_numpy(without_loops(edges)).to(self.device)

    def batches(self, as_matrix: bool) -> Batches:
        turns = itertools.cycle(self.blocks)

        def following() -> tuple[Tensor, Any, Tensor]:
            edge_index, nodes = next(turns)
            # another tensor each time
            edges = adjacency(edge_index, nodes) if as_matrix else edge_index.detach()
            return self.x[:nodes], edges, self.labels

        return following
