"""Steps whose edge_index is new: they wait for no device, and give PyG's results and gradients."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import GCNConv, GINConv, GraphConv, SAGEConv
from torch_geometric.nn.conv import gcn_conv
from torch_geometric.utils import loop

import warploom.pyg
from small_graphs import edges, features
from warploom._native import lib
from warploom.pyg import _norm, _sorted
from warploom.torch import _plan
from warploom.torch._graph import OnceGraph

WAITS = ("_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "masked_select", "is_nonzero")


class NoWaits(TorchDispatchMode):
    """Refuses operations that wait for a GPU; on the CPU they can be counted, too."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.split("::")[1]
        indices = args[1] if name in ("index", "index_put_") else ()
        masked = any(index is not None and index.dtype is torch.bool for index in indices)
        assert name not in WAITS and not masked, f"{name} waits for the device"
        return function(*args, **(kwargs or {}))


LAYERS = {
    "gcn": lambda: GCNConv(8, 5),
    "gcn_improved": lambda: GCNConv(8, 5, improved=True, flow="target_to_source"),
    "gcn_reversed": lambda: GCNConv(8, 5, flow="target_to_source"),
    "sage_mean": lambda: SAGEConv(8, 5),
    "sage_max": lambda: SAGEConv(8, 5, aggr="max"),
    "gin": lambda: GINConv(torch.nn.Linear(8, 5)),
    "graph": lambda: GraphConv(8, 5),
}


def weights(count, has_grad=False, dtype=torch.float32):
    generator = torch.Generator().manual_seed(2)
    return (torch.rand(count, generator=generator, dtype=dtype) + 0.5).requires_grad_(has_grad)


def steps(model, batches, arguments=()):
    """Results and gradients of a step for each batch."""
    found = []
    for edge_index in batches:
        x = features(30).requires_grad_()
        out = model(x, edge_index, *arguments)
        leaves = [part for part in arguments if part.requires_grad]
        leaves += [x, *model.parameters()]
        weight = torch.linspace(-1, 1, out.numel()).view_as(out)
        found += [out.detach(), *torch.autograd.grad((out * weight).sum(), leaves)]
    return found


@pytest.mark.parametrize("weight", ["none", "constant", "trained"])
@pytest.mark.parametrize("name", LAYERS)
def test_waits_for_nothing(name, weight):
    if weight != "none" and not name.startswith(("gcn", "graph")):
        pytest.skip("a layer without edge weights")
    model = LAYERS[name]()
    if weight == "none" and name == "gcn_improved":
        pytest.skip("left to PyG's gcn_norm")
    arguments = () if weight == "none" else (weights(120, weight == "trained"),)
    expected = steps(copy.deepcopy(model), [edges(120, seed=seed) for seed in range(3)], arguments)
    with warploom.pyg.accelerate(), NoWaits():
        found = steps(model, [edges(120, seed=seed) for seed in range(3)], arguments)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_waits_are_found():
    with pytest.raises(AssertionError, match="waits for the device"), NoWaits():
        GCNConv(8, 5)(features(30), edges(120))


def as_matrix(normalised, nodes):
    edge_index, weight = normalised
    matrix = weight.new_zeros((nodes, nodes))
    return matrix.index_put((edge_index[1], edge_index[0]), weight, accumulate=True)


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(1, 12),
    count=st.integers(0, 40),
    loops=st.sampled_from(["none", "some", "all"]),
    improved=st.booleans(),
    flow=st.sampled_from(["source_to_target", "target_to_source"]),
    weight=st.sampled_from(["none", "positive", "any sign"]),
)
def test_normalise_is_gcn_norm(seed, nodes, count, loops, improved, flow, weight):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, count), generator=generator)
    if loops == "none":
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]
    elif loops == "all":
        edge_index = torch.cat([edge_index, torch.arange(nodes).repeat(2, 1)], 1)
    values = None
    if weight != "none":
        values = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64)
        values = (values - 0.3 * (weight == "any sign")).requires_grad_()
    arguments = (edge_index, values, nodes, improved, True, flow, torch.float64)
    if not _norm.suits(edge_index, values, nodes, improved, True):
        assert improved and values is None
        return
    found = as_matrix(_norm.normalise(*arguments), nodes)
    expected = as_matrix(gcn_conv.gcn_norm(*arguments), nodes)
    torch.testing.assert_close(found, expected, equal_nan=True)
    if values is not None:
        x = torch.rand((nodes, nodes), generator=generator, dtype=torch.float64)
        gradients = [torch.autograd.grad(c, values, x)[0] for c in (found, expected)]
        torch.testing.assert_close(*gradients, equal_nan=True)


def ends_of(graph, to_source):
    """Its edges in CSR order, sources first."""
    ends = [graph.colind.long(), graph.row().long()]
    return torch.stack(ends[::-1] if to_source else ends)


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(1, 12),
    count=st.integers(0, 40),
    to_source=st.booleans(),
    index=st.sampled_from([torch.int32, torch.int64]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_edges_that_are_sorted_with_loops(seed, nodes, count, to_source, index, dtype):
    """They are those of PyG's functions, in its order, with the weights of gcn_norm."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, count), generator=generator)
    ends = _plan.ends_of(edge_index.to(index), to_source)
    made = OnceGraph(*ends, nodes, nodes, loops=nodes, weights=dtype)
    edges = loop.add_self_loops(loop.remove_self_loops(edge_index)[0], num_nodes=nodes)[0]
    assert made.is_whole and torch.equal(edges[:, made.perm.long()], ends_of(made, to_source))
    flow = "target_to_source" if to_source else "source_to_target"
    norm = gcn_conv.gcn_norm(edge_index, None, nodes, False, True, flow, dtype)
    expected = as_matrix(norm, nodes)
    torch.testing.assert_close(as_matrix((ends_of(made, to_source), made.weights), nodes), expected)
    other = _sorted._sorted_by_torch(edge_index, to_source, nodes, nodes, dtype)  # as on a GPU
    torch.testing.assert_close(
        as_matrix((ends_of(other, to_source), other.weights), nodes), expected
    )
    other = _sorted._sorted_by_torch(edge_index, to_source, nodes, nodes, _sorted.LOOPS)
    assert torch.equal(ends_of(other, to_source), ends_of(made, to_source))


@pytest.mark.parametrize("loops", [_plan.NO_LOOPS, 5])
def test_edges_outside_are_seen(loops):
    for wrong in (5, -1):
        edge_index = torch.tensor([[0, 1], [2, wrong]])
        assert not OnceGraph(*_plan.ends_of(edge_index, False), 5, 5, loops).is_whole


def test_nodes_whose_weights_add_up_to_0():
    edge_index, weight = torch.tensor([[0, 1], [1, 2]]), torch.tensor([-1.0, 0.5])
    arguments = (edge_index, weight, 3, False, True, "source_to_target", torch.float32)
    found = as_matrix(_norm.normalise(*arguments), 3)
    assert found.isfinite().all()
    torch.testing.assert_close(found, as_matrix(gcn_conv.gcn_norm(*arguments), 3))


def test_maxima_keep_pygs_norm():
    """An edge of weight 0 is none only in a sum."""
    layer, x = GCNConv(8, 5, aggr="max"), -features(30).abs()
    edge_index = torch.arange(30).repeat(2, 1)
    expected = layer(x, edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(x, edge_index), expected)


class WithoutWeights(GCNConv):
    def message(self, x_j, edge_weight):
        return x_j


def test_derived_layers_keep_pygs_norm():
    layer, edge_index = WithoutWeights(8, 5), edges(120)
    expected = layer(features(30), edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(features(30), edge_index), expected)


@pytest.mark.parametrize(
    ("make", "products"),
    [
        (lambda inputs: SAGEConv(inputs, 8), 3),  # two forward, and dB of the second layer
        (lambda inputs: SAGEConv(inputs, 8, aggr="max"), 3),
        (lambda inputs: GCNConv(inputs, 8), 3),  # the first layer as (A X) W
    ],
)
def test_calls_of_a_step(make, products, monkeypatch):
    """A step sorts its edges once, and computes no gradient of features that need none."""
    counts = {"convert": 0, "run": 0}

    class Library:
        def __getattr__(self, name):
            return getattr(lib, name)

    def counting(name, function):
        def call(*arguments):
            counts[name] += 1
            return function(*arguments)

        return call

    library = Library()
    library.warploom_run = counting("run", lib.warploom_run)
    library.warploom_convert = counting("convert", lib.warploom_convert)
    monkeypatch.setattr(_plan, "lib", library)
    monkeypatch.setattr(_plan, "_run", library.warploom_run)
    model = torch.nn.ModuleList([make(6), make(8)])
    with warploom.pyg.accelerate():
        for seed in range(2):
            counts.update(convert=0, run=0)
            edge_index = edges(120, seed=seed)
            hidden = model[0](features(30, 6), edge_index).relu()
            model[1](hidden, edge_index).sum().backward()
            assert counts == {"convert": 1, "run": products}
