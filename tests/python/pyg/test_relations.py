"""Layers with relations beside PyG: pairs, learned features, and edges that change."""

import itertools

import pytest
import torch
from torch_geometric import nn as pyg

import warploom.pyg
from layer_cases import graph
from warploom.pyg import _relations

NODES, TARGETS, RELATIONS = 37, 29, 6
LAYERS = (pyg.RGCNConv, pyg.FastRGCNConv)
VARIANTS = ({}, {"num_bases": 2}, {"num_blocks": 2}, {"root_weight": False, "bias": False})

pytestmark = pytest.mark.usefixtures("fresh")


def relations(edges=801, empty=3):
    """A relation for each edge; one relation has none."""
    drawn = torch.randint(RELATIONS, (edges,), generator=torch.Generator().manual_seed(1))
    return torch.where(drawn == empty, 0, drawn)


def draw(rows, columns, dtype=torch.float64):
    generator = torch.Generator().manual_seed(2)
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64).to(dtype)


def gradients(layer, nodes, *edges):
    """The result and all gradients of a call."""
    features = [x for x in (nodes if isinstance(nodes, tuple) else (nodes,)) if x is not None]
    wanted = [p for p in (*layer.parameters(), *features) if p.requires_grad]
    out = layer(nodes, *edges)
    torch.manual_seed(3)
    of = torch.autograd.grad((out * torch.rand_like(out)).sum(), wanted, allow_unused=True)
    return [out, *of]


def compare(layer, nodes, *edges, **tolerance):
    """Results of three calls, which are served, beside PyG's, with their types."""
    expected = gradients(layer, nodes, *edges)
    with warploom.pyg.accelerate():
        for _ in range(3):
            torch.testing.assert_close(gradients(layer, nodes, *edges), expected, **tolerance)
    assert warploom.pyg.report(reset=True) == {type(layer).__name__: {"warploom": 3}}


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("cls", LAYERS)
def test_features_of_two_kinds_of_nodes(cls, variant):
    layer = cls((8, 8), 6, RELATIONS, **variant).double()
    nodes = draw(NODES, 8).requires_grad_(), draw(TARGETS, 8).requires_grad_()
    compare(layer, nodes, graph(targets=TARGETS), relations())


@pytest.mark.parametrize("cls, bases", list(itertools.product(LAYERS, (None, 2))))
def test_learned_features(cls, bases):
    """Without features each node has a row of the weights in each relation."""
    layer = cls(NODES, 6, RELATIONS, num_bases=bases).double()
    compare(layer, None, graph(), relations())


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "min"])
def test_reductions(aggr):
    """No edge of a relation adds zero, whatever reaches the others."""
    layer = pyg.RGCNConv(8, 6, RELATIONS, aggr=aggr).double()
    compare(layer, draw(NODES, 8).requires_grad_(), graph(), relations())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("cls", LAYERS)
def test_types_of_results(cls, dtype):
    """RGCNConv adds to zeros of PyTorch's default type."""
    tolerance = {"rtol": 0.05, "atol": 0.05} if dtype is not torch.float32 else {}
    layer = cls(8, 6, RELATIONS).to(dtype)
    compare(layer, draw(NODES, 8, dtype).requires_grad_(), graph(), relations(), **tolerance)


def test_autocast():
    layer = pyg.RGCNConv(8, 6, RELATIONS)
    with torch.autocast("cpu", torch.bfloat16):
        compare(
            layer,
            draw(NODES, 8, torch.float32).requires_grad_(),
            graph(),
            relations(),
            rtol=0.05,
            atol=0.05,
        )


def test_second_derivatives():
    layer = pyg.RGCNConv(3, 2, RELATIONS).double()
    edges = graph(9, 20), relations(20)
    with warploom.pyg.accelerate():
        assert torch.autograd.gradgradcheck(lambda x: layer(x, *edges), draw(9, 3).requires_grad_())


@pytest.mark.parametrize("changed", [0, 1], ids=["edges", "relations"])
def test_changes_in_place(changed):
    """What was found of edges and relations ends when one of them is modified."""
    layer, x = pyg.RGCNConv(8, 6, RELATIONS).double(), draw(NODES, 8)
    edges = graph(), relations()
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(x, *edges)
        edges[changed].copy_(edges[changed].flip(-1))
        made = layer(x, *edges)
    torch.testing.assert_close(made, layer(x, *edges))


def test_pairs_are_found_once(monkeypatch):
    calls, find = [], _relations._pairs_of
    monkeypatch.setattr(_relations, "_pairs_of", lambda *given: calls.append(1) or find(*given))
    model = [pyg.RGCNConv(8, 8, RELATIONS).double() for _ in range(3)]
    x, edges, kinds = draw(NODES, 8), graph(), relations()
    with warploom.pyg.accelerate():
        for _ in range(3):
            for layer in model:
                x = layer(x, edges, kinds)
    assert len(calls) == 1


def test_wrong_indices_raise_what_pyg_raises():
    """Also where a wrong target would be another pair's."""
    layer, x = pyg.RGCNConv(8, 6, RELATIONS), draw(NODES, 8, torch.float32)
    for row, value in ((0, NODES), (1, NODES), (1, -1)):
        edges = graph()
        edges[row, 5] = value
        for _ in range(2):
            with warploom.pyg.accelerate(), pytest.raises((IndexError, RuntimeError, ValueError)):
                layer(x, edges, relations())


@pytest.mark.parametrize("wrong", [RELATIONS, -1])
def test_a_relation_that_is_none_is_left_to_pyg(wrong):
    """With blocks PyG's masks leave out the edge."""
    layer, nodes = pyg.RGCNConv(8, 6, RELATIONS, num_blocks=2).double(), draw(NODES, 8)
    edges, kinds = graph(), relations()
    kinds[7] = wrong
    expected = layer(nodes, edges, kinds)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(nodes, edges, kinds), expected)
    assert warploom.pyg.report()["RGCNConv"] != {"warploom": 1}


@pytest.mark.parametrize(
    "make, nodes",
    [
        (lambda: pyg.RGCNConv(8, 6, RELATIONS, aggr="mul"), draw(NODES, 8)),
        (lambda: pyg.RGCNConv(8, 6, RELATIONS, flow="target_to_source"), draw(NODES, 8)),
        (lambda: pyg.RGCNConv(NODES, 6, RELATIONS), torch.arange(NODES).flip(0)),
        (lambda: type("Own", (pyg.RGCNConv,), {})(8, 6, RELATIONS), draw(NODES, 8)),
    ],
    ids=["mul", "flow", "numbers", "derived"],
)
def test_other_calls_have_the_results_of_pyg(make, nodes):
    layer, edges = make().double(), (graph(), relations())
    expected = layer(nodes, *edges)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(nodes, *edges), expected)


@pytest.mark.parametrize("nodes", [0, NODES])
def test_no_edges(nodes):
    layer, none = pyg.RGCNConv(8, 6, RELATIONS), torch.empty(0, dtype=torch.int64)
    given = torch.randn(nodes, 8), torch.stack([none, none]), none
    expected = layer(*given)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(*given), expected)


def test_means_of_pyg_lib_are_others(monkeypatch):
    """With it PyG reduces over the edges of all relations at once."""
    monkeypatch.setattr("torch_geometric.typing.WITH_SEGMM", True)
    monkeypatch.setattr("torch_geometric.backend.use_segment_matmul", False)
    nodes, edges = draw(NODES, 8).requires_grad_(), (graph(), relations())
    layer = pyg.RGCNConv(8, 6, RELATIONS).double()
    with warploom.pyg.accelerate():
        layer(nodes, *edges)
    assert warploom.pyg.report(reset=True)["RGCNConv"]["warploom"] > 1  # PyG's loop over relations
    compare(pyg.RGCNConv(8, 6, RELATIONS, num_bases=2).double(), nodes, *edges)


@pytest.mark.parametrize("cls", [pyg.RGCNConv, pyg.ARMAConv, pyg.GCNConv])
def test_a_method_that_is_replaced_in_the_class(cls, monkeypatch):
    """Also in a class whose forward alone has code of its own."""
    is_relational = cls is pyg.RGCNConv
    layer = cls(8, 6, RELATIONS) if is_relational else cls(8, 6)
    given = draw(NODES, 8, torch.float32), graph(), *((relations(),) if is_relational else ())
    with warploom.pyg.accelerate():
        layer(*given)
    own = cls.message
    monkeypatch.setattr(cls, "message", lambda *args, **kwargs: 2 * own(*args, **kwargs))
    fuse, layer.fuse = layer.fuse, False
    expected = layer(*given)
    layer.fuse = fuse
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(*given), expected)
