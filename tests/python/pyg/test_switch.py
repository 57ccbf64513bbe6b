"""enable and disable: which calls run on warploom, and what is kept."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import threading
import warnings
from concurrent import futures

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    AGNNConv,
    ChebConv,
    ClusterGCNConv,
    GATConv,
    GatedGraphConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    MessagePassing,
    SAGEConv,
    SimpleConv,
    TransformerConv,
)
from torch_geometric.nn.conv import cheb_conv, gcn_conv

import warploom.pyg
from forked import in_a_child, in_another_thread
from small_graphs import edges, features
from warploom.pyg import _norm, _propagate, _sorted
from warploom.torch import Graph, _memory, _sampling, _state, spmm
from warploom.torch._memory import memory_of


@pytest.fixture(autouse=True)
def fresh():
    """Start and end each test without graphs and counts."""
    _memory.entries.clear()
    warploom.pyg.report(reset=True)
    yield
    _memory.entries.clear()
    warploom.pyg.report(reset=True)


@pytest.fixture
def sorts(monkeypatch):
    """Count how often edges are sorted."""
    count = []
    original = _sorted.OnceGraph

    def counting(*args):
        count.append(1)
        return original(*args)

    monkeypatch.setattr(_sorted, "OnceGraph", counting)
    return count


def sorted_graphs(memory):
    return [made.graph for made in memory.made.values() if isinstance(made, _sorted.Sorted)]


def gin(inputs, outputs):
    return GINConv(torch.nn.Linear(inputs, outputs))


def reasons(name):
    return warploom.pyg.report().get(name, {})


def test_outside_pyg_computes(sorts):
    layer, x, edge_index = SAGEConv(8, 5), features(30), edges(120)
    expected = layer(x, edge_index)
    with warploom.pyg.accelerate():
        with warploom.pyg.accelerate():
            layer(x, edge_index)
        layer(x, edge_index)
        assert reasons("SAGEConv") == {"warploom": 2}
    sorts.clear()
    assert torch.equal(layer(x, edge_index), expected)
    assert reasons("SAGEConv") == {"warploom": 2}
    assert not sorts


def test_methods_are_wrapped_once():
    with warploom.pyg.accelerate():
        pass
    owners = (GCNConv, SAGEConv, GINConv, GraphConv, MessagePassing, gcn_conv)
    wrapped = [dict(vars(owner)) for owner in owners]
    for _ in range(2):
        with warploom.pyg.accelerate():
            assert [dict(vars(owner)) for owner in owners] == wrapped
    assert [dict(vars(owner)) for owner in owners] == wrapped


def test_what_was_made_is_kept(sorts):
    """Each step of a loop enters and leaves; the graph stays, and so do its kernels."""
    layer, edge_index, graphs = SAGEConv(8, 5), edges(120), []
    for _ in range(4):
        with warploom.pyg.accelerate():
            layer(features(30), edge_index)
        graphs += sorted_graphs(memory_of(edge_index))
    assert len(sorts) == 1
    assert graphs[0].once and not graphs[1].once
    assert graphs[1] is graphs[2] is graphs[3]


def test_views_find_their_graph(sorts):
    layer, edge_index = SAGEConv(8, 5), edges(120)
    alike = (
        lambda: edge_index.detach(),
        lambda: edge_index[:],
        lambda: edge_index.view(2, 120),
        lambda: edge_index.view(-1).view(2, -1),
    )
    with warploom.pyg.accelerate():
        expected = layer(features(30), edge_index)
        for view in alike:
            assert torch.equal(layer(features(30), view()), expected)
    assert len(sorts) == 1
    assert len(_memory.entries) == 1


@pytest.mark.parametrize(
    "view", [lambda e: e[:, 1:], lambda e: e[:, ::2], lambda e: e.flip(0), lambda e: e.int()]
)
def test_other_views_are_other_graphs(view):
    layer, edge_index = SAGEConv(8, 5), edges(120)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(features(30), edge_index)
            found = layer(features(30), view(edge_index))
    torch.testing.assert_close(found, layer(features(30), view(edge_index).clone().long()))


def test_a_view_sees_modifications():
    layer, edge_index, other = SAGEConv(8, 5), edges(120), edges(120, seed=9)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(features(30), edge_index)
        edge_index.detach().copy_(other)
        torch.testing.assert_close(layer(features(30), edge_index), layer(features(30), other))


@pytest.mark.parametrize("kind", [SAGEConv, GCNConv, GATConv, GraphConv])
@pytest.mark.parametrize("compiles", [False, True])
def test_writes_through_numpy_are_seen(kind, compiles):
    """In small tensors each of them, without a warning."""
    layer, edge_index = kind(8, 5), edges(120)
    weights = torch.rand(120)
    given = (edge_index, weights) if kind in (GCNConv, GraphConv) else (edge_index,)
    x = features(30)
    run = torch.compile(layer, backend="eager") if compiles else layer
    with warploom.pyg.accelerate(), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            run(x, *given)
        for write in (
            lambda: edge_index.numpy().__setitem__((0, 7), 29),
            lambda: edge_index.data.copy_(edges(120, seed=5)),
            lambda: weights.numpy().__imul__(2),
        ):
            write()
            fresh = [one.clone() for one in given]
            torch.testing.assert_close(run(x, *given), layer(x, *fresh))


def test_an_address_is_no_identity(sorts):
    """Edges that get the memory of others that died are sorted again."""
    layer = SAGEConv(8, 5)
    with warploom.pyg.accelerate():
        for seed in range(5):
            edge_index = edges(120, seed=seed)
            found = layer(features(30), edge_index)
            warploom.pyg.disable()
            torch.testing.assert_close(found, layer(features(30), edge_index))
            warploom.pyg.enable()
            del edge_index
            gc.collect()
            assert not _memory.entries
    assert len(sorts) == 5


def test_disable_without_enable():
    with pytest.raises(RuntimeError, match="call enable first"):
        warploom.pyg.disable()


def test_random_numbers_are_unchanged():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    with warploom.pyg.accelerate():
        assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    "make", [lambda: [SAGEConv(8, 8), SAGEConv(8, 8)], lambda: [GatedGraphConv(8, 3)]]
)
def test_sorts_once(make, sorts):
    """A graph is kept from the second step on, also where a layer uses it three times in each."""
    model, edge_index = torch.nn.ModuleList(make()), edges(120)
    with warploom.pyg.accelerate():
        for step in range(4):
            hidden = features(30)
            for layer in model:
                hidden = layer(hidden, edge_index)
            (found,) = _memory.entries.values()
            (made,) = sorted_graphs(found)
            assert made.once == (step == 0)
    assert len(sorts) == 1


@pytest.mark.parametrize("weight", [None, torch.ones(120), torch.ones(120, requires_grad=True)])
def test_sorts_once_with_self_loops(sorts, weight):
    layer, edge_index = GCNConv(8, 5), edges(120)
    with warploom.pyg.accelerate():
        for _ in range(4):
            layer(features(30), edge_index, weight).sum().backward()
    assert len(sorts) == 1


@pytest.fixture
def norms(monkeypatch):
    """Count how often a norm is computed, by PyG or by warploom."""
    calls = []
    scatter, own = gcn_conv.scatter, _norm.normalise
    monkeypatch.setattr(gcn_conv, "scatter", lambda *a, **k: calls.append(1) or scatter(*a, **k))
    monkeypatch.setattr(_norm, "normalise", lambda *args: calls.append(1) or own(*args))
    return calls


def test_norm_is_computed_once(norms):
    layer, edge_index = GCNConv(8, 5), edges(120)
    weight = torch.rand(120)
    expected = layer(features(30), edge_index, weight * 2)
    norms.clear()
    for _ in range(3):
        with warploom.pyg.accelerate():
            layer(features(30), edge_index, weight)
    assert len(norms) == 1
    with warploom.pyg.accelerate():
        layer(features(30), edge_index)  # the library makes the norm of ones
        weight.mul_(2)
        torch.testing.assert_close(layer(features(30), edge_index, weight), expected)
        assert len(norms) == 2
        with torch.no_grad():
            GCNConv(8, 5, improved=True)(features(30), edge_index)
        assert len(norms) == 3
    layer(features(30), edge_index)
    layer(features(30), edge_index)
    assert len(norms) == 5


def test_the_laplacian_is_computed_once(monkeypatch):
    calls, original = [], cheb_conv.get_laplacian
    monkeypatch.setattr(
        cheb_conv, "get_laplacian", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    layer, edge_index, weight = ChebConv(8, 5, 3), edges(120), torch.rand(120) + 0.5
    wide, batch = torch.tensor([2.0, 3.0]), torch.arange(30) % 2
    cases = (
        {},
        {"edge_weight": weight},
        {"lambda_max": 3.0},
        {"edge_weight": weight, "lambda_max": wide, "batch": batch},
    )
    for case in cases:
        expected = layer(features(30), edge_index, **case)
        calls.clear()
        for _ in range(3):
            with warploom.pyg.accelerate():
                torch.testing.assert_close(layer(features(30), edge_index, **case), expected)
        assert len(calls) == (3 if "batch" in case else 1)
    with warploom.pyg.accelerate():
        weight.mul_(2)
        found = layer(features(30), edge_index, weight)
        gradient = weight.clone().requires_grad_()
        layer(features(30), edge_index, gradient).sum().backward()
    torch.testing.assert_close(found, layer(features(30), edge_index, weight))
    again = weight.clone().requires_grad_()
    layer(features(30), edge_index, again).sum().backward()
    torch.testing.assert_close(gradient.grad, again.grad, rtol=1e-4, atol=1e-4)


def test_a_capture_uses_what_is_kept(monkeypatch):
    """PyG removes self loops by a mask, whose result has a size that the host would wait for."""
    layer, edge_index = AGNNConv(), edges(120)
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            masks = args[1] if function is torch.ops.aten.index.Tensor else ()
            seen.extend(mask for mask in masks if mask is not None and mask.dtype is torch.bool)
            return function(*args, **(kwargs or {}))

    def masks():
        seen.clear()
        with Watch():
            layer(features(30), edge_index)
        return len(seen)

    with warploom.pyg.accelerate():
        assert masks() == 1
        for module in (_memory, _sorted):
            monkeypatch.setattr(module, "is_capturing", lambda tensor: True)
        assert masks() == 0


@pytest.mark.parametrize("make", [GCNConv, SAGEConv])
def test_modified_edges(make):
    layer, edge_index, other = make(8, 5), edges(120), edges(120, seed=9)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(features(30), edge_index)
        edge_index.copy_(other)
        torch.testing.assert_close(layer(features(30), edge_index), layer(features(30), other))


def test_modified_matrix():
    layer, x = SAGEConv(8, 5, aggr="sum"), features(30)
    matrix = torch.sparse_coo_tensor(edges(120).flip(0), torch.ones(120), (30, 30)).to_sparse_csr()
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(x, matrix)
        matrix.values().mul_(2)
        found = layer(x, matrix)
    torch.testing.assert_close(found, layer.lin_l(matrix @ x) + layer.lin_r(x))


def test_modified_weights():
    layer, edge_index, weight = GraphConv(8, 5), edges(120), torch.rand(120)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(features(30), edge_index, weight)
        weight.mul_(3)
        found = layer(features(30), edge_index, weight)
    torch.testing.assert_close(found, layer(features(30), edge_index, weight))


@pytest.mark.parametrize("make", [GCNConv, GraphConv, lambda *size: ChebConv(*size, 3)])
def test_weights_of_another_storage(make):
    """No version counts `weight.data = ...`, by which modules move their parameters."""
    layer, edge_index, weight = make(8, 5), edges(120), torch.rand(120)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(features(30), edge_index, weight)
        weight.data = torch.rand(120)
        found = layer(features(30), edge_index, weight)
    torch.testing.assert_close(found, layer(features(30), edge_index, weight))


@pytest.mark.parametrize("make", [GCNConv, GraphConv, lambda *size: ChebConv(*size, 3)])
def test_weights_of_another_part_of_a_storage(make):
    layer, edge_index, weight = make(8, 5), edges(120), torch.rand(120)
    for part in torch.rand(2, 120):
        weight.data = part
        with warploom.pyg.accelerate():
            found = [layer(features(30), edge_index, weight) for _ in range(3)][-1]
        torch.testing.assert_close(found, layer(features(30), edge_index, weight))


def test_several_signals_of_agnn():
    """PyG takes the last dimension but one for the nodes, not the first."""
    layer, x, edge_index = AGNNConv(), features(2)[:, None], torch.zeros(2, 5, dtype=torch.int64)
    expected = layer(x, edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(x, edge_index), expected)


def test_sizes_of_one_edge_index():
    layer, edge_index = SAGEConv((8, 8), 5), edges(60)
    with warploom.pyg.accelerate():
        for rows in (30, 50, 30):
            assert layer((features(40), None), edge_index, (40, rows)).shape == (rows, 5)


@pytest.mark.parametrize("add_self_loops", [True, False])
def test_mini_batches_keep_nothing(add_self_loops):
    layer = GCNConv(8, 5, add_self_loops=add_self_loops)
    with warploom.pyg.accelerate():
        for seed in range(5):
            edge_index = edges(120, seed=seed)
            layer(features(30), edge_index).sum().backward()
        del edge_index
        gc.collect()
        assert not _memory.entries


def test_kept_graphs_are_bounded():
    layer = SAGEConv(8, 5)
    many = [edges(20, seed=seed) for seed in range(80)]
    with warploom.pyg.accelerate():
        for edge_index in many:
            layer(features(30), edge_index)
        assert len(_memory.entries) == _memory.MOST_ENTRIES
        torch.testing.assert_close(
            layer(features(30), many[0]), layer(features(30), many[0].clone())
        )


class Halved(SAGEConv):
    def aggregate(self, inputs, index, dim_size=None):
        return super().aggregate(inputs / 2, index, dim_size=dim_size)


def fallbacks():
    def hooked():
        layer = SAGEConv(8, 5)
        layer.register_message_forward_hook(lambda module, inputs, out: 2 * out)
        return layer

    def explained():
        layer = SAGEConv(8, 5)
        layer.explain = True
        layer._edge_mask = torch.rand(120)
        layer._loop_mask = torch.ones(120, dtype=torch.bool)
        return layer

    def replaced():
        layer = SAGEConv(8, 5)
        layer.message = lambda x_j: 3 * x_j
        return layer

    return {
        "hooks": hooked,
        "explain mode": explained,
        "a method of the layer was replaced": replaced,
        "decomposed layers": lambda: GCNConv(8, 5, decomposed_layers=2),
        "aggregation MulAggregation": lambda: SAGEConv(8, 5, aggr=["mean", "mul"]),
        "a layer with an aggregate of its own": lambda: Halved(8, 5),
    }


@pytest.mark.parametrize("reason", fallbacks())
def test_other_calls_run_in_pyg(reason):
    layer = fallbacks()[reason]()
    edge_index = edges(120)[:, edges(120)[1].argsort()]
    expected = layer(features(30), edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(features(30), edge_index), expected)
    assert reasons(type(layer).__name__) == {reason: 1}


def test_explain_mode_ends():
    layer = SAGEConv(8, 5)
    with warploom.pyg.accelerate():
        layer.explain = True
        layer._edge_mask, layer._loop_mask = torch.rand(120), torch.ones(120, dtype=torch.bool)
        layer(features(30), edges(120))
        layer.explain = False
        layer(features(30), edges(120))
    assert reasons("SAGEConv") == {"explain mode": 1, "warploom": 1}


def with_edge_hook(kind):
    layer = kind(8, 5, edge_dim=3, add_self_loops=False)
    layer.lin_edge.register_forward_hook(lambda module, inputs, out: 2 * out)
    return layer


X, EDGES, ATTRIBUTES = features(30), edges(120), features(120, 3)
MATRIX = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(120), (30, 30)).coalesce()
REPEATED = torch.sparse_coo_tensor(EDGES.flip(0), torch.ones(120), (30, 30))
TO_SOURCE = SimpleConv(flow="target_to_source")
UNUSUAL = {
    "features are not a matrix with a row for each node": [(SAGEConv(8, 5), X[None], EDGES)],
    "empty graph or features": [
        (SAGEConv(8, 5), X, edges(0)),
        (GATConv(8, 5), X, edges(0)),
        (SimpleConv(), X[:, :0], EDGES),
    ],
    "features of type torch.int32": [(SimpleConv(), X.int(), EDGES)],
    "edge_index is not an integer matrix of 2 rows": [
        (SAGEConv(8, 5), X, EDGES.short()),
        (SAGEConv(8, 5), X, EDGES[[0, 1, 1]]),
        (SAGEConv(8, 5), X, EDGES[0]),
    ],
    "edge weights do not match the edges": [
        (SimpleConv(), X, EDGES, torch.ones(119)),
        (GraphConv(8, 5), X, EDGES, torch.ones(1)),
    ],
    "edge weights of type torch.complex64": [
        (SimpleConv(), X, EDGES, torch.ones(120, dtype=torch.complex64))
    ],
    "EdgeIndex with flow target_to_source": [
        (TO_SOURCE, X, EdgeIndex(EDGES, sparse_size=(30, 30)))
    ],
    "a sparse matrix with flow target_to_source": [(TO_SOURCE, X, MATRIX)],
    "sparse matrix is not coalesced": [(SimpleConv(), X, REPEATED)],
    "sparse matrix with a gradient or made in inference mode": [
        (SimpleConv(), X, MATRIX.detach().requires_grad_())
    ],
    "sparse matrix and features do not match": [
        (SimpleConv(), X, MATRIX.double()),
        (SimpleConv(), X[:29], MATRIX),
    ],
    "layout torch.sparse_bsr": [(SimpleConv(), X, MATRIX.to_dense().to_sparse_bsr((2, 2)))],
    "sizes that do not match the features": [
        (GATConv(8, 5), (X, X), EDGES, None, (31, 30)),
        (GATConv(8, 5), (X, X), EDGES, None, (30, 31)),
    ],
    "attention weights are returned": [(GATConv(8, 5), X, EDGES, None, None, True)],
    "edge features do not match the edges": [
        (GATConv(8, 5, edge_dim=3, add_self_loops=False), X, EDGES, ATTRIBUTES[1:])
    ],
    "hooks": [
        (with_edge_hook(GATConv), X, EDGES, ATTRIBUTES),
        (with_edge_hook(GATv2Conv), X, EDGES, ATTRIBUTES),
    ],
    "edge features and no edge_dim": [(GATv2Conv(8, 5), X, EDGES, ATTRIBUTES)],
    "no features of targets": [(GATv2Conv(8, 5), (X, None), EDGES)],
    "no edge features": [(TransformerConv(8, 5, edge_dim=3), X, EDGES)],
}


@pytest.mark.parametrize(
    "reason, layer, inputs",
    [(reason, layer, inputs) for reason, calls in UNUSUAL.items() for layer, *inputs in calls],
    ids=[f"{reason}-{at}" for reason, calls in UNUSUAL.items() for at in range(len(calls))],
)
def test_unusual_inputs(reason, layer, inputs):
    """PyG computes them, or refuses them with its own words."""

    def result():
        try:
            return layer(*inputs)
        except Exception as error:
            return type(error), str(error)

    expected = result()
    with warploom.pyg.accelerate():
        found = result()
    if isinstance(expected[0], type):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected)
    assert reasons(type(layer).__name__) == {reason: 1}


@pytest.mark.parametrize("wrong", [-1, 30])
@pytest.mark.parametrize("part", [0, 1])
def test_errors_are_those_of_pyg(wrong, part):
    layer, edge_index = SAGEConv(8, 5), edges(120)
    edge_index[part, 7] = wrong
    with pytest.raises(Exception) as expected:
        layer(features(30), edge_index)
    with warploom.pyg.accelerate(), pytest.raises(type(expected.value)) as found:
        layer(features(30), edge_index)
    assert str(found.value) == str(expected.value)


def test_wrong_size():
    with warploom.pyg.accelerate(), pytest.raises(ValueError, match="expected size 31"):
        SAGEConv(8, 5)((features(30), features(30)), edges(120), (31, 30))


HEADS = X[:, None, :5]


@pytest.mark.parametrize(
    "layer, inputs",
    [
        (AGNNConv(), {"x": X, "x_norm": X}),
        (
            TransformerConv(8, 5),
            {"query": HEADS, "key": HEADS, "value": HEADS, "edge_attr": None},
        ),
    ],
)
def test_wrong_size_of_a_propagate(layer, inputs):
    with warploom.pyg.accelerate(), pytest.raises(ValueError, match="expected size 31"):
        layer.propagate(EDGES, size=(31, 30), **inputs)


def test_code_objects():
    """torch.compile limits how often it compiles one, so classes must not share it."""
    functions = [cls.forward for cls in (GCNConv, SAGEConv, GINConv)] + [SAGEConv.propagate]
    assert all(function.is_accelerated for function in functions)
    assert len({id(function.__code__) for function in functions}) == len(functions)


@pytest.mark.parametrize("make", [GCNConv, SAGEConv, gin])
def test_compiled(make):
    torch._dynamo.reset()  # what other tests compiled counts, too
    layer, edge_index = make(8, 5), edges(120)
    expected = layer(features(30), edge_index)
    with warploom.pyg.accelerate():
        compiled = torch.compile(layer, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(features(30), edge_index), expected)
        torch.testing.assert_close(layer(features(30), edge_index), expected)
    assert reasons(type(layer).__name__) == {"warploom": 2}


@pytest.mark.parametrize("make", [SAGEConv, gin])
def test_function_transforms(make):
    layer, edge_index = make(8, 5), edges(120)
    expected = torch.func.jacrev(lambda x: layer(x, edge_index).sum(0))(features(30))
    with warploom.pyg.accelerate():
        found = torch.func.jacrev(lambda x: layer(x, edge_index).sum(0))(features(30))
    torch.testing.assert_close(found, expected)
    assert reasons(type(layer).__name__) == {"function transform or tracing": 1}


@pytest.mark.parametrize("make", [AGNNConv, lambda: ClusterGCNConv(8, 5)])
def test_function_transforms_of_edges(make):
    """Layers that add loops of their own, which are tensors of the transform there."""
    layer, edge_index, x = make(), edges(120), features(30)

    def loss(x):
        return layer(x, edge_index).square().sum()

    expected = torch.func.grad(loss)(x), layer(x, edge_index)
    with warploom.pyg.accelerate():
        for _ in range(2):
            torch.testing.assert_close((torch.func.grad(loss)(x), layer(x, edge_index)), expected)


def test_convert():
    model = torch.nn.Sequential(SAGEConv(8, 5), torch.nn.ReLU(), SAGEConv(5, 5))
    assert warploom.pyg.convert(model) is model
    for layer in (model[0], copy.deepcopy(model)[0], pickle.loads(pickle.dumps(model))[0]):
        layer(features(30), edges(120))
    SAGEConv(8, 5)(features(30), edges(120))
    GATv2Conv(8, 5)(features(30), edges(120))
    assert warploom.pyg.report() == {"SAGEConv": {"warploom": 3}}
    with warploom.pyg.accelerate():
        SAGEConv(8, 5)(features(30), edges(120))
    model[0](features(30), edges(120))
    assert warploom.pyg.report(reset=True) == {"SAGEConv": {"warploom": 5}}
    assert warploom.pyg.report() == {}


def test_convert_leaves_other_norms(norms):
    converted = warploom.pyg.convert(GCNConv(8, 5, add_self_loops=False))
    other, edge_index = GCNConv(8, 5), edges(120)
    for _ in range(2):
        other(features(30), edge_index)
    assert len(norms) == 2
    for _ in range(2):
        converted(features(30), edge_index)
    assert len(norms) == 3


def test_neighbour_loader():
    typing = pytest.importorskip("torch_geometric.typing")
    if not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE):
        pytest.skip("NeighborLoader needs pyg-lib or torch-sparse")
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    data = Data(x=features(30), edge_index=edges(120))
    layer = SAGEConv(8, 5)
    for batch in NeighborLoader(data, [4, 3], batch_size=6):
        expected = layer(batch.x, batch.edge_index)
        with warploom.pyg.accelerate():
            torch.testing.assert_close(
                layer(batch.x, batch.edge_index), expected, rtol=1e-4, atol=1e-4
            )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "make",
    [
        lambda: GCNConv(8, 5, cached=True),
        lambda: SAGEConv(8, 5, aggr="max"),
        lambda: GINConv(torch.nn.Linear(8, 5)),
    ],
)
def test_captured_step(make):
    layer = make().cuda()
    reference = copy.deepcopy(layer)
    x, edge_index = features(30, device="cuda"), edges(120, device="cuda")
    warploom.pyg.convert(layer)
    step = torch.cuda.make_graphed_callables(
        lambda x: layer(x, edge_index), (x.clone().requires_grad_(),)
    )
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    out, expected = step(leaves[0]), reference(leaves[1], edge_index)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)
    out.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(leaves[0].grad, leaves[1].grad, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "make", [lambda: GCNConv(8, 5), lambda: SAGEConv(8, 5), lambda: SAGEConv(8, 5, aggr="max")]
)
def test_mini_batch_waits_for_nothing(make):
    layer = warploom.pyg.convert(make()).cuda()
    batches = [edges(120, device="cuda", seed=seed) for seed in range(6)]
    x = features(30, device="cuda").requires_grad_()
    for edge_index in batches[:3]:
        layer(x, edge_index).sum().backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for edge_index in batches[3:]:
            layer(x, edge_index).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_another_stream():
    layer, x, edge_index = (
        SAGEConv(8, 5).cuda(),
        features(30, device="cuda"),
        edges(120, device="cuda"),
    )
    expected = layer(x, edge_index)
    torch.cuda.synchronize()
    with warploom.pyg.accelerate():
        for _ in range(3):
            with torch.cuda.stream(torch.cuda.Stream()):
                found = layer(x, edge_index)
            torch.cuda.synchronize()
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


LOCKS = {
    f"{module}.{name}": (module, name)
    for module in sorted(sys.modules)
    if module.partition(".")[0] == "warploom"
    for name, value in vars(sys.modules[module]).items()
    if isinstance(value, (type(threading.Lock()), type(threading.RLock())))
}


@pytest.mark.parametrize("lock", [*LOCKS, "a recorded step"])
def test_a_child_of_fork_waits_for_no_other_thread(lock):
    layer, (x, edge_index) = GCNConv(8, 3), (features(30), edges(120))
    graph = Graph.from_edge_index(edge_index, rows=30, cols=30)
    expected = layer(x, edge_index).detach()
    spmm(graph, x)

    def work():
        torch.set_num_threads(1)  # PyTorch itself would wait for threads of OpenMP
        with warploom.pyg.accelerate(), torch.no_grad():
            for given in (edge_index, edge_index.clone()):
                assert torch.allclose(layer(x, given), expected, atol=1e-5)
        spmm(graph, torch.cat([x, x], 1))
        spmm(Graph.from_edge_index(edge_index.clone(), rows=30, cols=30), x)
        assert _state.used.states is None
        with _state.recorded(), _sampling.Follower(bool, bool):
            return str(warploom.pyg.report()["GCNConv"]["warploom"])

    module, name = LOCKS.get(lock, (None, None))
    held = _state.recorded() if module is None else getattr(sys.modules[module], name)
    with in_another_thread(held):
        assert in_a_child(work) == "2"


def test_a_child_of_fork_waits_for_no_kernel_of_its_parent():
    layer = SimpleConv()
    _propagate._compiling[layer] = (futures.Future(),)  # compiles for a GPU

    def work():
        torch.set_num_threads(1)
        with warploom.pyg.accelerate():
            layer(features(30), edges(120))
        return str(warploom.pyg.report()["SimpleConv"])

    assert in_a_child(work) == "{'warploom': 1}"


def test_the_interpreter_ends_in_silence():
    code = """
import builtins
import torch, warploom.pyg
from torch_geometric.nn import GCNConv
warploom.pyg.enable()
builtins.edges = torch.tensor([[0, 1, 2], [1, 2, 0]])  # dies after warploom.pyg
GCNConv(4, 4)(torch.ones(3, 4), builtins.edges)
assert warploom.pyg.report()["GCNConv"]["warploom"] == 1
"""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(command, env=found, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
