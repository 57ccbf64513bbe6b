"""PyG's layers inside torch.compile and torch.export: equal to PyG, in one graph, on our ops."""

import copy
import gc
import io
import os
import subprocess
import sys
import weakref

import pytest
import torch

pytest.importorskip("torch_geometric")

from torch_geometric import EdgeIndex
from torch_geometric.nn import (
    FAConv,
    FiLMConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    MessagePassing,
    SAGEConv,
    SGConv,
    SuperGATConv,
    TransformerConv,
)

import warploom.pyg
from layer_cases import CASES, graph
from traced_layers import MESSAGES, Own
from warploom.pyg import _compiled
from warploom.torch import Graph, _edges

NODES, EDGES = 30, 150
LAYERS = {
    "gcn": lambda i, o: GCNConv(i, o),
    "gcn-no-loops": lambda i, o: GCNConv(i, o, add_self_loops=False),
    "gcn-not-normalised": lambda i, o: GCNConv(i, o, normalize=False),
    "sage-mean": lambda i, o: SAGEConv(i, o),
    "sage-max": lambda i, o: SAGEConv(i, o, aggr="max"),
    "sage-to-source": lambda i, o: SAGEConv(i, o, flow="target_to_source"),
    "gin": lambda i, o: GINConv(torch.nn.Linear(i, o), train_eps=True),
    "graph": lambda i, o: GraphConv(i, o),
    "gat": lambda i, o: GATConv(i, o // 2, heads=2),
    "gat-no-loops": lambda i, o: GATConv(i, o // 2, heads=2, add_self_loops=False),
    "gatv2": lambda i, o: GATv2Conv(i, o // 2, heads=2),
    "transformer": lambda i, o: TransformerConv(i, o // 2, heads=2),
}


@pytest.fixture(autouse=True)
def _fresh():
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    warploom.pyg.report(reset=True)
    torch.manual_seed(0)


@pytest.fixture(params=["plain", "graphed"])
def backend(request, monkeypatch):
    """A compiler; under "graphed" one that is said to use CUDA graphs."""
    if request.param == "graphed":
        monkeypatch.setattr(_compiled, "is_cuda_graphed", lambda: True)
    return request.param


def compiled_of(model):
    return torch.compile(model, fullgraph=True, backend="aot_eager")


class Model(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.first, self.second = make(6, 8), make(8, 4)

    def forward(self, x, edges, *weights):
        return self.second(self.first(x, edges, *weights).relu(), edges, *weights)


def models(make):
    """A model of PyG, and an equal one that is converted."""
    expected = make()
    return expected, warploom.pyg.convert(copy.deepcopy(expected))


def edges_of(seed=0, nodes=NODES, edges=EDGES):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, nodes, (2, edges), generator=generator)


def compare(found, expected, x, *others):
    """Compare results and gradients, also those by the floating-point inputs."""
    x = x.clone().requires_grad_()
    made = []
    for model, parameters in ((found, expected[1]), (expected[0], expected[0])):
        out = model(x, *others)
        inputs = [x, *(t for t in others if t.requires_grad), *parameters.parameters()]
        made.append([out.detach(), *torch.autograd.grad(out.sin().sum(), inputs)])
    torch.testing.assert_close(*made, rtol=1e-4, atol=1e-5)


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def reasons():
    (found,) = warploom.pyg.report(reset=True).values()
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer, backend):
    pair = models(lambda: Model(LAYERS[layer]))
    compiled = compiled_of(pair[1])
    for edges in (edges_of(), edges_of(1)):
        for _ in range(2):
            compare(compiled, pair, torch.randn(NODES, 6), edges)
    # Code for CUDA graphs is for one edge_index.
    count = 1 if backend == "plain" else 2
    assert (graphs(), reasons()) == (count, {"warploom": 8})


@pytest.mark.parametrize("layer", MESSAGES)
def test_messages(layer, backend):
    pair = models(lambda: Model(MESSAGES[layer]))
    compiled = compiled_of(pair[1])
    edges = edges_of()
    for _ in range(2):
        compare(compiled, pair, torch.randn(NODES, 6), edges)
    assert (graphs(), reasons()) == (1, {"warploom": 4})


@pytest.mark.parametrize("gradient", [False, True])
def test_messages_of_edge_features(gradient, backend):
    pair = models(lambda: Model(lambda i, o: GINEConv(torch.nn.Linear(i, o), edge_dim=3)))
    compiled = compiled_of(pair[1])
    edges = edges_of()
    for features in torch.randn(2, EDGES, 3):
        features = features.clone().requires_grad_(gradient)
        compare(compiled, pair, torch.randn(NODES, 6), edges, features)
    assert (graphs(), reasons()) == (1, {"warploom": 4})


def test_messages_of_other_sizes():
    pair = models(lambda: Model(MESSAGES["own"]))
    compiled = compiled_of(pair[1])
    for nodes in (20, 30, 40, 50):
        compare(compiled, pair, torch.randn(nodes, 6), edges_of(nodes, nodes, 4 * nodes))
    assert (graphs(), reasons()) == (2, {"warploom": 8})


@pytest.mark.parametrize("weights", [False, True])
def test_norm_of_other_layers(weights, backend):
    """Self loops are appended to edges that have some already."""
    pair = models(lambda: SGConv(6, 4))
    edges = edges_of()
    edges[:, :9] = edges[0, :9]
    given = (torch.rand(EDGES, requires_grad=True),) if weights else ()
    compiled = compiled_of(pair[1])
    for _ in range(2):
        compare(compiled, pair, torch.randn(NODES, 6), edges, *given)
    assert reasons() == {"warploom": 2}


def test_weights_that_a_message_stores():
    pair = models(lambda: FAConv(6))
    x, x_0, edges = torch.randn(NODES, 6), torch.randn(NODES, 6), edges_of()
    compiled = compiled_of(pair[1])
    torch.testing.assert_close(compiled(x, x_0, edges), pair[0](x, x_0, edges))
    assert (pair[1]._alpha, reasons()) == (None, {"warploom": 1})


@pytest.mark.parametrize("kind", ["MX", "SD"])
def test_supergat(kind):
    pair = models(lambda: SuperGATConv(6, 2, heads=2, attention_type=kind).eval())
    compare(compiled_of(pair[1]), pair, torch.randn(NODES, 6), edges_of())
    assert reasons() == {"warploom": 1}


def test_a_changed_message_is_compiled_again():
    pair = models(lambda: Own(6, 4))
    compiled = compiled_of(pair[1])
    for slope in (0.3, 0.1):
        for layer in pair:
            layer.slope = slope
        compare(compiled, pair, torch.randn(NODES, 6), edges_of())
    assert reasons() == {"warploom": 2}


class InPlace(MessagePassing):
    """A layer whose activation writes to its argument."""

    def __init__(self, activation):
        super().__init__()
        self.activation = activation

    def forward(self, x, edges):
        return self.propagate(edges, x=x) + x.mean()

    def message(self, x_i, x_j):
        self.activation(x_j)
        return x_i * x_j


@pytest.mark.parametrize(
    "activation",
    [
        *(torch.nn.CELU, torch.nn.ELU, torch.nn.Hardtanh, torch.nn.LeakyReLU, torch.nn.Mish),
        *(torch.nn.ReLU, torch.nn.SELU, torch.nn.SiLU),
    ],
)
def test_activations_in_place(activation):
    pair = models(lambda: InPlace(activation(inplace=True)))
    x = torch.randn(NODES, 6)
    before = x.clone()
    found = compiled_of(pair[1])(x, edges_of())
    assert torch.equal(x, before)
    torch.testing.assert_close(found, pair[0](x, edges_of()))
    assert reasons() == {"warploom": 1}


class Refusing(MessagePassing):
    """A layer whose message is PyG's to compute."""

    def __init__(self, message):
        super().__init__()
        self.of_edges = message

    def forward(self, x, edges, weight):
        return self.propagate(edges, x=x, weight=weight)

    def message(self, x_j, weight):
        return self.of_edges(x_j, weight)


def written(x_j, weight):
    weight = weight * 1
    made = x_j * weight
    weight.mul_(2)
    return made


def written_in_part(x_j, weight):
    x_j[:, 0] = 0.0
    return x_j * weight


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (written_in_part, "the message writes to some features of edges"),
        (lambda x_j, weight: x_j.sort(dim=1)[0], "the message calls sort of features of edges"),
        (lambda x_j, weight: x_j - x_j.mean(dim=0), "the message computes along the dimension of "
         "edges"),
        (written, "the message writes to a tensor"),
    ],
)  # fmt: skip
def test_messages_that_pyg_computes(message, reason):
    pair = models(lambda: Refusing(message))
    x, weight = torch.randn(NODES, 6), torch.rand(EDGES, 1)
    edges = edges_of()
    torch.testing.assert_close(compiled_of(pair[1])(x, edges, weight), pair[0](x, edges, weight))
    assert reasons() == {reason: 1}


@pytest.mark.parametrize("layer", [SAGEConv, FiLMConv])
def test_inductor(layer):
    pair = models(lambda: layer(6, 4))
    compiled = torch.compile(pair[1], fullgraph=True, mode="reduce-overhead")
    edges = edges_of()
    for _ in range(2):
        compare(compiled, pair, torch.randn(NODES, 6), edges)
    assert reasons() == {"warploom": 2}


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: SAGEConv(6, 4, aggr="powermean"), "aggregation PowerMeanAggregation"),
        (lambda: TransformerConv(6, 3), "attention that is not one pass in compiled code"),
    ],
)
def test_what_pyg_computes(make, reason):
    pair = models(make)
    compare(compiled_of(pair[1]), pair, torch.randn(NODES, 6), edges_of())
    assert reasons() == {reason: 1}


LEFT_TO_PYG = {"ARMA": "several signals in compiled code"}
for _layer in ("Cheb", "ClusterGCN", "DirGNN", "EG", "FeaSt", "PointNet"):
    LEFT_TO_PYG[_layer] = "edges that compiled code makes"


@pytest.mark.parametrize("layer", LEFT_TO_PYG)
def test_layers_that_pyg_computes(layer):
    make, given = CASES[layer]
    pair = models(lambda: make().double())
    compiled = torch.compile(pair[1], fullgraph=True, backend="eager")
    found = compiled(**given, edge_index=graph())
    torch.testing.assert_close(found, pair[0](**given, edge_index=graph()))
    assert LEFT_TO_PYG[layer] in reasons()


@pytest.mark.parametrize("make", [GATConv, GATv2Conv, TransformerConv])
def test_dropout_of_attention(make):
    converted = warploom.pyg.convert(Model(lambda i, o: make(i, o // 2, heads=2, dropout=0.5)))
    compiled = compiled_of(converted)
    x, edges = torch.randn(NODES, 6, requires_grad=True), edges_of()
    found = []
    for seed in (1, 2):
        made = []
        for model in (compiled, converted):
            torch.manual_seed(seed)
            out = model(x, edges)
            inputs = [x, *converted.parameters()]
            made.append([out.detach(), *torch.autograd.grad(out.sin().sum(), inputs)])
        torch.testing.assert_close(*made)
        found.append(made[0][0])
    assert not torch.equal(*found)
    assert (graphs(), reasons()) == (1, {"warploom": 8})
    converted.eval()
    torch.testing.assert_close(compiled(x, edges), converted(x, edges))


def test_dropout_of_attention_under_cuda_graphs(monkeypatch):
    monkeypatch.setattr(_compiled, "is_cuda_graphed", lambda: True)
    layer = warploom.pyg.convert(GATConv(6, 4, dropout=0.5, add_self_loops=False))
    assert compiled_of(layer)(torch.randn(NODES, 6), edges_of()).shape == (NODES, 4)
    assert reasons() == {"dropout of attention under CUDA graphs": 1}


def test_edge_features_of_attention():
    pair = models(lambda: GATConv(6, 4, edge_dim=3, add_self_loops=False))
    features = torch.randn(EDGES, 3, requires_grad=True)
    compare(compiled_of(pair[1]), pair, torch.randn(NODES, 6), edges_of(), features)
    assert reasons() == {"warploom": 1}


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("layer", ["gcn", "gcn-no-loops", "graph"])
def test_edge_weights(layer, gradient, backend):
    pair = models(lambda: Model(LAYERS[layer]))
    compiled = compiled_of(pair[1])
    edges = edges_of()
    for weights in torch.rand(2, EDGES):
        weights = weights.clone().requires_grad_(gradient)
        for _ in range(2):
            compare(compiled, pair, torch.randn(NODES, 6), edges, weights)
    assert set(reasons()) == {"warploom"}


def test_cached_norm(backend):
    pair = models(lambda: Model(lambda i, o: GCNConv(i, o, cached=True)))
    edges = edges_of()
    for model in pair:
        model(torch.randn(NODES, 6), edges)
    compiled = compiled_of(pair[1])
    for _ in range(2):
        compare(compiled, pair, torch.randn(NODES, 6), edges)
    assert reasons() == {"warploom": 6}


@pytest.mark.parametrize("layer", ["gcn", "gat", "sage-max"])
def test_edges_that_are_written(layer, backend):
    pair = models(lambda: Model(LAYERS[layer]))
    compiled = compiled_of(pair[1])
    edges = edges_of()
    for seed in range(3):
        edges.copy_(edges_of(seed))
        compare(compiled, pair, torch.randn(NODES, 6), edges)


@pytest.mark.parametrize("layer", ["gcn", "sage-max"])
def test_edges_of_another_storage(layer):
    """No version counts `edges.data = ...`."""
    pair = models(lambda: Model(LAYERS[layer]))
    compiled = torch.compile(pair[1], backend="eager", fullgraph=True)
    edges = edges_of()
    for seed in (0, 0, 0, 1, 2):
        if seed > 0:
            edges.data = edges_of(seed)
        compare(compiled, pair, torch.randn(NODES, 6), edges)
    for part in torch.stack([edges_of(3), edges_of(4)]):
        edges.data = part
        for _ in range(3):
            compare(compiled, pair, torch.randn(NODES, 6), edges)


def test_many_edges_under_cuda_graphs(monkeypatch):
    monkeypatch.setattr(_compiled, "is_cuda_graphed", lambda: True)
    pair = models(lambda: Model(LAYERS["sage-mean"]))
    compiled = compiled_of(pair[1])
    kept = [edges_of(seed) for seed in range(_compiled.MOST_HELD + 2)]
    for edges in kept + kept:
        compare(compiled, pair, torch.randn(NODES, 6), edges)
    assert graphs() == _compiled.MOST_HELD + 1
    assert reasons() == {
        "warploom": 2 * _compiled.MOST_HELD,
        "many edge lists under CUDA graphs": 2,
    }


def test_graphs_under_cuda_graphs_end_with_their_edges(monkeypatch):
    monkeypatch.setattr(_compiled, "is_cuda_graphed", lambda: True)
    layer = warploom.pyg.convert(SAGEConv(6, 4))
    compiled = compiled_of(layer)
    for seed in range(_compiled.MOST_HELD + 2):
        compiled(torch.randn(NODES, 6), edges_of(seed))
    assert set(reasons()) == {"warploom"}
    assert len(_compiled._held_by[layer]) == 1
    numbers = set(_compiled._held_by[layer])
    assert numbers <= set(_compiled._held)
    torch.compiler.reset()
    del layer, compiled
    gc.collect()
    assert not numbers & set(_compiled._held)


def test_graphs_end_with_their_edges():
    layer = warploom.pyg.convert(SAGEConv(6, 4))
    compiled = compiled_of(layer)
    before = set(_edges.calls)
    edges = edges_of()
    for _ in range(3):
        compiled(torch.randn(NODES, 6), edges)
    (made,) = set(_edges.calls) - before
    graph = weakref.ref(_edges.calls[made]._last[False].found.graph)
    del edges
    gc.collect()
    assert graph() is None


def test_graphs_of_other_sizes():
    pair = models(lambda: Model(LAYERS["sage-mean"]))
    compiled = compiled_of(pair[1])
    for nodes in (20, 30, 40, 50):
        compare(compiled, pair, torch.randn(nodes, 6), edges_of(nodes, nodes, 4 * nodes))
    assert graphs() == 2  # the second one is for all sizes
    assert reasons() == {"warploom": 8}


def test_a_graph_is_kept_from_the_second_step_on(monkeypatch):
    found = []
    finder = _edges.finder

    def note(*given):
        found.append(finder(*given))
        return found[-1]

    monkeypatch.setattr(_edges, "finder", note)
    pair = models(lambda: Model(LAYERS["sage-mean"]))
    compiled = compiled_of(pair[1])
    edges = edges_of()
    for _ in range(2):
        compiled(torch.randn(NODES, 6), edges).sum().backward()
    # Of both layers, and of the second one backward: the features have no gradient.
    assert [one.graph.once for one in found] == [True] * 3 + [False] * 3
    assert found[-1].graph is found[-2].graph


OBJECTS = {
    "graph": lambda edges: Graph.from_edge_index(edges, rows=NODES, cols=NODES),
    "edge-index": lambda edges: EdgeIndex(edges, sparse_size=(NODES, NODES)),
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("layer", ["gcn", "sage-max", "gat", "own", "agnn"])
def test_objects_in_the_place_of_edges(layer, kind, backend):
    pair = models(lambda: Model((LAYERS | MESSAGES)[layer]))
    compiled, edges = compiled_of(pair[1]), edges_of()
    given = OBJECTS[kind](edges)
    for model in (pair[1], compiled):
        for _ in range(2):
            x = torch.randn(NODES, 6)
            found = [model(x, given), *torch.autograd.grad(model(x, given).sin().sum(),
                                                           list(pair[1].parameters()))]  # fmt: skip
            out = pair[0](x, edges)
            wanted = [out, *torch.autograd.grad(out.sin().sum(), list(pair[0].parameters()))]
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    assert (graphs(), set(reasons())) == (1, {"warploom"})


def test_edge_index_objects_in_inductor():
    """PyTorch prints its arguments for its log, and PyG's text of an EdgeIndex reads elements."""
    pair = models(lambda: Model(LAYERS["gcn"]))
    compiled, edges, x = torch.compile(pair[1], fullgraph=True), edges_of(), torch.randn(NODES, 6)
    given = EdgeIndex(edges, sparse_size=(NODES, NODES))
    out = compiled(x, given)
    out.sum().backward()
    torch.testing.assert_close(out, pair[0](x, edges), rtol=1e-4, atol=1e-5)
    assert reasons() == {"warploom": 2}
    assert repr(given).startswith("EdgeIndex([[")


def test_features_of_edges_with_a_graph():
    pair = models(lambda: GINEConv(torch.nn.Linear(6, 4), edge_dim=3))
    x, edges, features = torch.randn(NODES, 6), edges_of(), torch.randn(EDGES, 3)
    graph = Graph.from_edge_index(edges, rows=NODES, cols=NODES)
    expected = pair[0](x, edges, features)
    for model in (pair[1], compiled_of(pair[1])):
        torch.testing.assert_close(model(x, graph, features), expected, rtol=1e-4, atol=1e-5)


def test_a_graph_that_cannot_stand_for_edges():
    layer = warploom.pyg.convert(SAGEConv(6, 4))
    x, edges = torch.randn(NODES, 6), edges_of()
    with pytest.raises(ValueError, match="pass them as edge_weight"):
        layer(x, Graph.from_edge_index(edges, torch.rand(EDGES)))
    with pytest.raises(Exception, match="pass the edge_index instead"):
        compiled_of(layer)(x, Graph.from_edge_index(edges, once=True))


def test_edges_that_compiled_code_makes():
    class Flipped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = SAGEConv(6, 4)

        def forward(self, x, edges):
            return self.layer(x, edges.flip(0))

    pair = models(Flipped)
    compiled = compiled_of(pair[1])
    compare(compiled, pair, torch.randn(NODES, 6), edges_of())
    assert reasons() == {"edges that compiled code makes": 1}


@pytest.mark.parametrize("kind", ["max", "GATConv"])
def test_small_graphs_are_left_to_pyg(kind, backend, monkeypatch):
    """An op costs host time; CUDA graphs repeat none of it."""
    monkeypatch.setattr(_compiled, "LEAST_WORK", {"cpu": {kind: EDGES * 8}})
    make = LAYERS["sage-max"] if kind == "max" else LAYERS["gat-no-loops"]
    pair = models(lambda: make(6, 8) if kind == "GATConv" else make(8, 8))
    width = 6 if kind == "GATConv" else 8
    few = "too little work for an op in compiled code"
    for count, reason in ((EDGES, "warploom"), (EDGES - 1, few)):
        compiled = compiled_of(pair[1])
        compare(compiled, pair, torch.randn(NODES, width), edges_of(edges=count))
        assert reasons() == {reason if backend == "plain" else "warploom": 1}
        torch.compiler.reset()


@pytest.mark.parametrize("name", ["gcn", "gat", "gatv2"])
def test_small_graphs_are_served_where_pyg_would_add_self_loops(name, monkeypatch):
    least = dict.fromkeys(("sum", "GATConv", "GATv2Conv"), 2**40)
    monkeypatch.setattr(_compiled, "LEAST_WORK", {"cpu": least})
    pair = models(lambda: LAYERS[name](6, 8))
    compare(compiled_of(pair[1]), pair, torch.randn(NODES, 6), edges_of())
    assert reasons() == {"warploom": 1}


def test_bipartite():
    pair = models(lambda: SAGEConv((6, 5), 4))
    compiled = compiled_of(pair[1])
    edges = torch.stack([edges_of()[0], edges_of()[1] % 11])
    x = torch.randn(NODES, 6), torch.randn(11, 5)
    torch.testing.assert_close(compiled(x, edges), pair[0](x, edges))
    assert reasons() == {"warploom": 1}


def test_only_while_enabled():
    layer, x, edges = SAGEConv(6, 4), torch.randn(NODES, 6), edges_of()
    expected = layer(x, edges)
    with warploom.pyg.accelerate():
        compiled = compiled_of(layer)
        torch.testing.assert_close(compiled(x, edges), expected)
    assert reasons() == {"warploom": 1}
    torch.testing.assert_close(compiled(x, edges), expected)
    assert warploom.pyg.report() == {}


@pytest.mark.parametrize("converted_first", [False, True])
def test_models_of_one_class(converted_first):
    """Code of a layer that is left alone does not serve a converted one, nor the reverse."""
    pair = models(lambda: Model(LAYERS["sage-mean"]))
    for model in reversed(pair) if converted_first else pair:
        compiled_of(model)(torch.randn(NODES, 6), edges_of())
        assert warploom.pyg.report(reset=True) == (
            {"SAGEConv": {"warploom": 2}} if model is pair[1] else {}
        )


def test_a_changed_layer_is_compiled_again():
    pair = models(lambda: SAGEConv(6, 4))
    compiled = compiled_of(pair[1])
    for aggr in ("mean", "max"):
        for layer in pair:
            layer.aggr, layer.aggr_module = aggr, SAGEConv(6, 4, aggr=aggr).aggr_module
        compare(compiled, pair, torch.randn(NODES, 6), edges_of())


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("layer", ["gcn", "sage-max", "gat", "agnn", "own"])
def test_export(layer, strict):
    expected, converted = models(lambda: Model((LAYERS | MESSAGES)[layer]).eval())
    n, e = torch.export.Dim("n", min=2, max=1000), torch.export.Dim("e", min=2, max=10000)
    with torch.no_grad():
        program = torch.export.export(
            converted,
            (torch.randn(NODES, 6), edges_of()),
            dynamic_shapes=({0: n}, {1: e}),
            strict=strict,
        )
    assert warploom.pyg.report() == {}  # calls are counted when they run
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for nodes in (NODES, 47):
        x, edges = torch.randn(nodes, 6), edges_of(nodes, nodes, 5 * nodes)
        torch.testing.assert_close(loaded(x, edges), expected(x, edges), rtol=1e-4, atol=1e-5)
    assert reasons() == {"warploom": 4}


def test_an_exported_program_needs_only_the_import(tmp_path):
    expected, converted = models(lambda: Model(LAYERS["gcn"]).eval())
    given = torch.randn(NODES, 6), edges_of()
    with torch.no_grad():
        torch.export.save(torch.export.export(converted, given), tmp_path / "model.pt2")
        torch.save((given, expected(*given)), tmp_path / "tensors.pt")
    code = """
import torch, warploom.pyg
given, expected = torch.load("tensors.pt")
out = torch.export.load("model.pt2").module()(*given)
torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
assert warploom.pyg.report() == {"GCNConv": {"warploom": 2}}, warploom.pyg.report()
"""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "ignore", "-c", code]
    ended = subprocess.run(command, env=found, cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def check_op(operation, how, to_source, options, numbers, operands):
    """opcheck of an op with gradients by all operands."""
    needs = tuple(one is not None and one.requires_grad for one in operands)
    lines = _edges.operations[operation].lines_of(options)
    likes = [
        None if one is None else (tuple(one.shape if line is None else one.shape[1:]), "float32")
        for one, line in zip(operands, lines)
    ]
    if how.startswith("norm"):
        likes[lines.index("nnz")] = ((), "float32")
    key = "Layer", "warploom"
    text = repr((operation, key, how, to_source, 1, options, False, needs, tuple(likes)))
    op = getattr(torch.ops.warploom, operation)
    given = (list(operands),) if operation == "message" else operands
    place = edges_of(), None, None, NODES, NODES, EDGES
    torch.library.opcheck(op.default, (*place, text, list(numbers), 0, *given))


@pytest.mark.parametrize("how", ["", "norm 0 1 float32"])
def test_opcheck_of_products(how):
    x = torch.randn(NODES, 6, requires_grad=True)
    values = None if how else torch.rand(EDGES, requires_grad=True)
    options = "sum", "mul", False, 0, "", ""
    check_op("spmm", how, False, options, (), (x, values, None))


def test_opcheck_of_attention():
    b, left, right = (torch.randn(NODES, 2, *line, requires_grad=True) for line in ((3,), (), ()))
    operands = b, left, right, None, None
    check_op("attend_gat", "loops", False, (False,), (0.2, 0.0), operands)


@pytest.mark.parametrize("reduce", [("sum",), ("max", "var", "edge"), ("softmax",)])
def test_opcheck_of_messages(reduce):
    b, x, e = (torch.randn(n, 6, requires_grad=True) for n in (NODES, NODES, EDGES))
    text = "s:edge_sum=b*e;score=s;b*tanh(x+e)" if reduce == ("softmax",) else "b*tanh(x+e)*t"
    scalars, numbers = ((), ()) if reduce == ("softmax",) else (("t",), (0.5,))
    places = ("b", "column"), ("x", "row"), ("e", "edge")
    options = text, reduce, 1, places, scalars, False, False
    check_op("message", "", False, options, numbers, (b, x, e))


def product_without_gradients(x):
    key = "Layer", "warploom"
    options = "sum", "copy_b", False, 0, "", ""
    likes = (((6,), "float32"), None, None)
    text = repr(("spmm", key, "", False, 1, options, False, (False,) * 3, likes))
    place = edges_of(), None, None, NODES, NODES, EDGES
    return torch.ops.warploom.spmm(*place, text, [], 0, x, None, None)


def test_ops_need_pyg(monkeypatch):
    monkeypatch.setattr(_edges, "finder", None)
    with pytest.raises(RuntimeError, match="needs `import warploom"):
        product_without_gradients(torch.randn(NODES, 6))


def test_a_gradient_that_was_not_compiled():
    (out,) = product_without_gradients(torch.randn(NODES, 6, requires_grad=True))
    with pytest.raises(RuntimeError, match="spmm: the op was compiled without this gradient"):
        out.sum().backward()
