"""The suite "jax": training steps of GCN and GAT in JAX, jitted, one JSON line each.

`us` is the step with warploom.jax. Its rivals are what JAX has for the aggregation: `segment_sum`
over sorted edges, as jraph's models have it; `BCOO @`, with the lowering to cuSPARSE where that
runs; and a product with a dense matrix, where that fits. All get the same weights, edges and
features, and losses and gradients are compared with segment_sum's first.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import sparse

from bench.pytorch.cases import Settings, Suite, describe
from bench.pytorch.graphs import Csr, by_graph
from bench.pytorch.timing import make_timers, sample_in_turns
from bench.results_file import Line
from warploom.jax import Graph, gat, spmm

Function = Callable[..., Any]
GRAPHS = ("cora", "pubmed", "twin:arxiv")
# With hidden columns, and heads x columns of GAT.
MODELS = ("gcn/64", "gcn/16", "gcn/256", "gat/8x8", "gat/4x64")
RIVALS = ("segment_sum", "bcoo", "dense")
CLASSES, LARGEST_DENSE = 16, 20_000
TOLERANCE = 2e-3


Case = namedtuple("Case", "graph model n")


def cases(settings: Settings) -> Iterator[Case]:
    for graph, model in product(settings.graphs, settings.models):
        yield Case(graph, *model.split("/"))


class Edges:
    """A graph with loops in the forms that the ways take; each is an argument of the step."""

    def __init__(self, csr: Csr, features: int) -> None:
        nodes = self.nodes = csr.nodes
        loops = np.arange(nodes)
        senders, receivers = np.concatenate([csr.edges(), np.stack([loops, loops])], axis=1)
        order = np.argsort(receivers, kind="stable")
        self.senders, self.receivers = (
            jnp.asarray(one[order], jnp.int32) for one in (senders, receivers)
        )
        self.nnz = len(order)
        self.graph = Graph.from_edges(self.senders, self.receivers, nodes)
        degree = np.bincount(receivers, minlength=nodes)
        norm = 1 / np.sqrt(degree[senders[order]] * degree[receivers[order]])
        self.values = jnp.asarray(norm, jnp.float32)
        rng = np.random.default_rng(3)
        self.x = jnp.asarray(rng.standard_normal((nodes, features)), jnp.float32)
        self.labels = jnp.asarray(rng.integers(0, CLASSES, nodes))

    def of(self, way: str, model: str) -> Any:
        """The edges of a way; None where it has none."""
        if way == "warploom":
            return self.graph, self.values
        if way == "segment_sum":
            return self.senders, self.receivers, self.values
        if model == "gat":
            return None
        if way == "bcoo":
            places = jnp.stack([self.receivers, self.senders], 1)
            shape = self.nodes, self.nodes
            return sparse.BCOO((self.values, places), shape=shape, indices_sorted=True)
        if self.nodes > LARGEST_DENSE:
            return None
        full = jnp.zeros((self.nodes, self.nodes), jnp.float32)
        return full.at[self.receivers, self.senders].add(self.values)


# ---- the models ----------------------------------------------------------------------------------


def _sum(edges: Any, nodes: int, x: Any) -> Any:
    """The aggregation of GCN."""
    if not isinstance(edges, tuple):
        return edges @ x
    if len(edges) == 2:
        return spmm(edges[0], x, edges[1])
    senders, receivers, values = edges
    terms = values[:, None] * x[senders]
    return jax.ops.segment_sum(terms, receivers, nodes, indices_are_sorted=True)


def _attend(edges: Any, nodes: int, left: Any, right: Any, b: Any) -> Any:
    """The aggregation of GAT."""
    if len(edges) == 2:
        return gat(edges[0], b, left, right)
    senders, receivers, _ = edges
    reduce = partial(jax.ops.segment_sum, num_segments=nodes, indices_are_sorted=True)
    scores = jax.nn.leaky_relu(left[receivers] + right[senders], 0.2)
    most = jax.ops.segment_max(scores, receivers, nodes, indices_are_sorted=True)
    powers = jnp.exp(scores - most[receivers])
    weights = powers / reduce(powers, receivers)[receivers]
    return reduce(weights[..., None] * b[senders], receivers)


def _gat_layer(edges: Any, x: Any, weights: Any, left: Any, right: Any) -> Any:
    heads, width = left.shape
    b = (x @ weights).reshape(-1, heads, width)
    return _attend(edges, len(x), (b * left).sum(-1), (b * right).sum(-1), b)


def _logits(model: str, edges: Any, x: Any, params: Any) -> Any:
    nodes = len(x)
    if model == "gcn":
        first, second = params
        return _sum(edges, nodes, jax.nn.relu(_sum(edges, nodes, x @ first)) @ second)
    first, second = params
    hidden = jax.nn.elu(_gat_layer(edges, x, *first)).reshape(nodes, -1)
    return _gat_layer(edges, hidden, *second).mean(1)


def _loss(params: Any, model: str, edges: Any, x: Any, labels: Any) -> Any:
    logits = jax.nn.log_softmax(_logits(model, edges, x, params))
    return -jnp.take_along_axis(logits, labels[:, None], 1).mean()


@partial(jax.jit, static_argnums=1)
def step(params: Any, model: str, edges: Any, x: Any, labels: Any) -> Any:
    """The weights after a step, and its loss and gradients."""
    loss, found = jax.value_and_grad(_loss)(params, model, edges, x, labels)
    return jax.tree.map(lambda one, by: one - 0.01 * by, params, found), (loss, found)


def _params(model: str, n: str, features: int) -> Any:
    rng = np.random.default_rng(4)

    def draw(*shape: int) -> Any:
        return jnp.asarray(rng.standard_normal(shape) / np.sqrt(shape[0]), jnp.float32)

    if model == "gcn":
        return draw(features, int(n)), draw(int(n), CLASSES)
    heads, width = map(int, n.split("x"))
    layers = ((features, heads, width), (heads * width, heads, CLASSES))
    return tuple((draw(f, h * w), draw(h, w), draw(h, w)) for f, h, w in layers)


# ---- times ---------------------------------------------------------------------------------------


def _difference(found: Any, expected: Any) -> float:
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(expected))
    return max(float(jnp.abs(a - b).max() / (jnp.abs(b).max() + 1e-9)) for a, b in pairs)


def _taken(function: Function, params: Any) -> Function:
    """Steps one after another, each with the weights of the one before."""

    def take() -> Any:
        nonlocal params
        params, _ = function(params)
        return params

    return take


def _run_case(case: Case, edges: Edges, settings: Settings) -> Line:
    params = _params(case.model, case.n, settings.features)
    functions: dict[str, Function] = {}
    failed: dict[str, str] = {}
    expected, errors = None, {}
    for way in ("segment_sum", "warploom", "bcoo", "dense"):
        jax.config.update("jax_bcoo_cusparse_lowering", way == "bcoo" and settings.device == "cuda")
        try:
            given = edges.of(way, case.model)
            if given is None:
                continue
            function = partial(
                lambda params, given, model: step(params, model, given, edges.x, edges.labels),
                given=given,
                model=case.model,
            )
            with jax.default_matmul_precision("highest"):  # TF32 would hide what a way does
                call = function(params)[1]
            expected = expected or call
            errors[way] = _difference(call, expected)
            if not errors[way] <= TOLERANCE:
                failed[way] = f"differs by {errors[way]:.2g}"
                continue
            functions[way] = function
        except Exception as error:
            failed[way] = describe(error)
    taken = {way: _taken(function, params) for way, function in functions.items()}
    timers, refused = make_timers(taken, jax.block_until_ready, False)
    times = sample_in_turns(timers, settings.samples)
    return {
        "us": times.get("warploom"),
        "rivals": {name: times.get(name) for name in RIVALS},
        "max_rel_err": errors.get("warploom"),
        "nodes": edges.nodes,
        "edges": edges.nnz,
        "jax": jax.__version__,
        "failed": failed | refused,
    }


SUITE = Suite(
    {"graphs": GRAPHS, "models": MODELS, "features": 128},
    {"graphs": ("random:300:6",), "models": ("gcn/16", "gat/2x8"), "features": 32, "samples": 2},
    cases,
    by_graph(lambda name, s: Edges(s.load(name), s.features), _run_case),
    ("us", "rivals"),
)
