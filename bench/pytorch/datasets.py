"""Node classification: graphs with features, labels and a split into training and test nodes.

Features are published, random, or planted:

The pattern of a twin (core/synth/twin.c) has 50 communities, and 70 % of the edges of a node
lead into its own. A community c has a centre m_c of length 1, and a node in it has the features
scale (m_c + noise * N(0, 1)).

- reddit: 41 classes. The class of a node is its community's (c mod 41); `wrong` of the nodes have
  another one, drawn at random. So a model that knows all communities is right in 1 - wrong of the
  cases.
- arxiv: the same with 40 classes.
- proteins: 112 tasks. Task t of a node is 1 with the probability
  1 / (1 + exp(-(offset_t + by_community m_c u_t + by_role r g_c w_t))). u_t and w_t are normal, and
  r = +1 or -1 is the node's role, which is its last feature (times scale). g_c is the sign of
  the first coordinate of m_c. So a role says nothing without the community, and the mean over the
  neighbours loses it: GraphSAGE, whose layers see the node itself, can use it, and GCN cannot.
- amazon-computers: pattern and labels are the published ones, and a node's community is its class.
  The published features are not in the data, and neither is a split.

The numbers were chosen by exact results, not by those of sampling; docs/sampling.md says how.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bench.pytorch.graphs import Csr, Indices, from_edges, load
from bench.pytorch.sampler import Random
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


# ---- planted features and labels ----------------------------------------------------------------

COMMUNITIES = 50
_STREAM_NAMES = 12
_SEED = 1

Floats = npt.NDArray[np.float32]


class Plan(NamedTuple):
    """The numbers of a generator."""

    features: int
    classes: int
    noise: float
    scale: float = 1.0
    wrong: float = 0.0
    by_community: float = 0.0
    by_role: float = 0.0


PLANS = {
    "reddit": Plan(features=602, classes=41, noise=0.35, wrong=0.04),
    "arxiv": Plan(features=128, classes=40, noise=0.35, wrong=0.04),
    "proteins": Plan(
        features=8, classes=112, noise=2.2, scale=2.0, by_community=1.03, by_role=0.80
    ),
    "amazon-computers": Plan(features=767, classes=10, noise=0.5),
}
# Shares of training and validation nodes; the others are the test nodes.
SPLITS = {
    "reddit": (0.66, 0.10),
    "arxiv": (0.54, 0.18),
    "proteins": (0.65, 0.16),
    "amazon-computers": (0.6, 0.2),
}
LABELLED = ("amazon-computers",)  # published graphs with their own labels


def communities_of(rows: int, communities: int, seed: int = _SEED) -> Indices:
    """The community of each row of a scattered twin, as core/synth/twin.c makes it."""
    limits = np.arange(rows, 1, -1)  # of the numbers that the shuffle draws, one after the other
    with np.errstate(over="ignore"):
        others = Random(seed, _STREAM_NAMES, np.zeros(1, np.int64)).below_each(limits)
    names = list(range(rows))
    for i, other in zip(range(rows - 1, 0, -1), others.tolist()):
        names[i], names[other] = names[other], names[i]
    found = np.empty(rows, np.int64)
    found[names] = np.arange(rows) * communities // rows
    return found


def plant(
    plan: Plan, community: Indices, seed: int = _SEED
) -> tuple[Floats, npt.NDArray[np.generic]]:
    """Features (nodes, features) and labels: classes, or (nodes, classes) of 0 and 1."""
    rng = np.random.default_rng(seed)
    nodes, count = len(community), int(community.max()) + 1
    centres = rng.standard_normal((count, plan.features)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    x = rng.standard_normal((nodes, plan.features), np.float32)
    x *= plan.noise
    x += centres[community]
    x *= plan.scale
    if plan.by_community == 0:
        labels = community % plan.classes
        wrong = rng.random(nodes) < plan.wrong
        other = (labels + rng.integers(1, plan.classes, nodes)) % plan.classes
        return x, np.where(wrong, other, labels)
    role = (rng.integers(0, 2, nodes) * 2 - 1).astype(np.float32)
    x = np.concatenate([x, plan.scale * role[:, None]], 1)
    u = rng.standard_normal((plan.features, plan.classes)).astype(np.float32)
    offsets = rng.normal(-1, 1, plan.classes).astype(np.float32)
    w = rng.standard_normal(plan.classes).astype(np.float32)
    logits = offsets + plan.by_community * (centres @ u)[community]
    logits += plan.by_role * (role * np.sign(centres[community, 0]))[:, None] * w
    return x, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)


def split(nodes: int, shares: tuple[float, float], seed: int = _SEED) -> list[torch.Tensor]:
    """Training, validation and test nodes, in ascending order."""
    order = np.random.default_rng(seed + 1).permutation(nodes)
    ends = [math.floor(shares[0] * nodes), math.floor(sum(shares) * nodes)]
    return [torch.from_numpy(np.sort(part)) for part in np.split(order, ends)]


def _planted(kind: str, graph: Csr, community: Indices, synthetic: str) -> Dataset:
    plan = PLANS[kind]
    x, labels = (torch.from_numpy(array) for array in plant(plan, community))
    train, val, test = split(graph.nodes, SPLITS[kind])
    return Dataset(graph, x, labels, plan.classes, train, val, test, synthetic)


def make_planted(kind: str, graph: Csr, communities: int = COMMUNITIES) -> Dataset:
    """Features and labels on a graph whose communities are those of a scattered twin."""
    return _planted(kind, graph, communities_of(graph.nodes, communities), "all")


def _symmetric(graph: Csr) -> Csr:
    """The pattern with each edge in both directions."""
    sources, targets = graph.edges()
    places = np.concatenate([targets, sources]) * graph.nodes + np.concatenate([sources, targets])
    places = np.unique(places)
    return from_edges(graph.name, graph.nodes, places // graph.nodes, places % graph.nodes)


# ---- all of them ---------------------------------------------------------------------------------


def load_dataset(
    name: str, data: Path, command: str = "warploom", keep: Path | None = None
) -> Dataset:
    """Load Cora, Citeseer, Pubmed, tolokers or amazon-computers from the folder of this name inside
    `data`, or a twin with planted features, `planted:` and a name of PLANS with options of the
    twin: `planted:reddit,scale=0.1`. command, keep: as of graphs.load.

    Features of Pubmed are random, because only parts of the real ones are available.
    `random:NODES:DEGREE` is a random graph with random features and labels, for tests.
    """
    if name.startswith("planted:"):
        twin = name.partition(":")[2]
        graph = load(f"twin:{twin}", data, command, keep)
        return make_planted(twin.partition(",")[0], graph._replace(name=name))
    graph = load(name, data)
    if name in LABELLED:
        classes = np.loadtxt(data / name / f"{name}.labels.txt", np.int64)
        return _planted(name, _symmetric(graph), classes, "features")
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
