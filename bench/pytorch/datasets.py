"""Node classification: graphs with features, labels and a split into training and test nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bench.pytorch.graphs import Csr, load
from bench.results_file import Line

CLASSES = {"cora": 7, "citeseer": 6, "pubmed": 3, "tolokers": 2}
NORMALISED = ("cora", "citeseer")  # rows of features are divided by their sums
PUBMED_FEATURES = 500
UNLABELED = -100  # ignored by cross_entropy; 15 nodes of Citeseer have no label


class Dataset(NamedTuple):
    """Nodes with features and labels. Labels are classes, or (nodes, tasks) of 0 and 1."""

    graph: Csr
    x: Tensor  # (nodes, features)
    labels: Tensor
    classes: int  # outputs of a model
    train: Tensor  # nodes
    val: Tensor
    test: Tensor
    synthetic: str | None  # which data are synthetic: None, "features" or "all"

    def to(self, device: torch.device) -> Dataset:
        parts: dict[str, Any] = {
            name: value.to(device)
            for name, value in self._asdict().items()
            if isinstance(value, Tensor)
        }
        return self._replace(**parts)

    def facts(self) -> Line:
        """The fields of a line about the data."""
        name = "roc_auc" if self.labels.dim() == 2 else "accuracy"
        return {"synthetic": self.synthetic, "metric_name": name}


def _read_features(path: Path, normalised: bool) -> Tensor:
    from scipy.io import mmread

    features = mmread(path).toarray().astype(np.float32)
    if normalised:
        features /= np.maximum(features.sum(1, keepdims=True), 1)
    return torch.from_numpy(features)


def load_dataset(name: str, data: Path) -> Dataset:
    """Load Cora, Citeseer, Pubmed or tolokers from the folder of this name inside `data`.

    Features of Pubmed are random, because only parts of the real ones are available.
    `random:NODES:DEGREE` is a random graph with random features and labels, for tests.
    """
    graph = load(name, data)
    generator = torch.Generator().manual_seed(5)
    if name.startswith("random:"):
        x = torch.rand(graph.nodes, 24, generator=generator)
        labels = torch.randint(4, (graph.nodes,), generator=generator)
        train, val, test = torch.randperm(graph.nodes, generator=generator).tensor_split(3)
        return Dataset(graph, x, labels, 4, train, val, test, "all")
    folder = data / name
    labels, train, val, test = (
        torch.from_numpy(np.loadtxt(folder / f"{name}.{part}.txt", np.int64))
        for part in ("labels", "train", "val", "test")
    )
    labels[labels < 0] = UNLABELED
    path = folder / f"{name}.features.mtx.gz"
    is_real = path.exists()
    if is_real:
        x = _read_features(path, name in NORMALISED)
    else:
        x = torch.rand(graph.nodes, PUBMED_FEATURES, generator=generator) / PUBMED_FEATURES
    synthetic = None if is_real else "features"
    return Dataset(graph, x, labels, CLASSES[name], train, val, test, synthetic)
