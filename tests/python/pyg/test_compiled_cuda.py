"""PyG's layers in torch.compile on a GPU: default mode, and CUDA graphs by reduce-overhead."""

import copy

import pytest
import torch

pytest.importorskip("torch_geometric")

from torch_geometric import EdgeIndex
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, GINConv, SAGEConv

import warploom.pyg
from traced_layers import MESSAGES
from warploom.pyg import _compiled
from warploom.torch import Graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
NODES = 300
LAYERS = {
    "gcn": lambda i, o: GCNConv(i, o),
    "gcn-cached": lambda i, o: GCNConv(i, o, cached=True, add_self_loops=False),
    "sage-mean": lambda i, o: SAGEConv(i, o),
    "sage-max": lambda i, o: SAGEConv(i, o, aggr="max"),
    "gin": lambda i, o: GINConv(torch.nn.Linear(i, o)),
    "gat": lambda i, o: GATConv(i, o // 4, heads=4),
    "gatv2": lambda i, o: GATv2Conv(i, o // 4, heads=4),
    **MESSAGES,
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(_compiled, "LEAST_WORK", {})
    torch.compiler.reset()
    warploom.pyg.report(reset=True)
    yield
    torch.compiler.reset()


class Model(torch.nn.Module):
    def __init__(self, make):
        super().__init__()
        self.first, self.second = make(16, 16), make(16, 8)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)


def edges_of(seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randint(0, NODES, (2, 8 * NODES), device="cuda", generator=generator)


def step(model, x, edges):
    """The result and the gradients of a step."""
    torch.compiler.cudagraph_mark_step_begin()
    model.zero_grad()
    out = model(x, edges)
    out.sin().sum().backward()
    return [out.detach().clone(), *(p.grad.clone() for p in model.parameters())]


def assert_near(found, expected):
    """Compare tensors by their largest elements, since sums of many numbers may be near 0."""
    for one, other in zip(found, expected, strict=True):
        atol = 1e-3 * max(1, other.abs().max().item())
        torch.testing.assert_close(one, other, rtol=1e-3, atol=atol)


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
@pytest.mark.parametrize("layer", LAYERS)
def test_steps(layer, mode):
    torch.manual_seed(0)
    expected = Model(LAYERS[layer]).cuda()
    converted = warploom.pyg.convert(copy.deepcopy(expected))
    edges = [edges_of(0)] if layer == "gcn-cached" else [edges_of(0), edges_of(1)]
    if layer == "gcn-cached":
        for model in (expected, converted):
            model(torch.randn(NODES, 16, device="cuda"), edges[0])
        warploom.pyg.report(reset=True)
    compiled = torch.compile(converted, fullgraph=True, mode=mode)
    for number in range(10):
        x = torch.randn(NODES, 16, device="cuda")
        used = edges[number // 5 % len(edges)]
        assert_near(step(compiled, x, used), step(expected, x, used))
    (reasons,) = warploom.pyg.report().values()
    assert set(reasons) == {"warploom"}
    if mode is not None:
        assert torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] == 0


@pytest.mark.parametrize("mode", [None, "reduce-overhead"])
@pytest.mark.parametrize("layer", ["gcn", "own"])
@pytest.mark.parametrize("kind", [Graph.from_edge_index, EdgeIndex])
def test_objects_in_the_place_of_edges(kind, layer, mode):
    torch.manual_seed(0)
    expected = Model(LAYERS[layer]).cuda()
    converted = warploom.pyg.convert(copy.deepcopy(expected))
    compiled = torch.compile(converted, fullgraph=True, mode=mode)
    edges = edges_of(0)
    given = kind(edges)
    for _ in range(5):
        x = torch.randn(NODES, 16, device="cuda")
        assert_near(step(compiled, x, given), step(expected, x, edges))
    (reasons,) = warploom.pyg.report().values()
    assert set(reasons) == {"warploom"}


def test_edges_that_are_written_under_cuda_graphs():
    torch.manual_seed(0)
    expected = Model(LAYERS["sage-mean"]).cuda()
    converted = warploom.pyg.convert(copy.deepcopy(expected))
    compiled = torch.compile(converted, fullgraph=True, mode="reduce-overhead")
    edges = edges_of(0)
    x = torch.randn(NODES, 16, device="cuda")
    for number in range(8):
        if number == 4:
            edges.copy_(edges_of(1))
        assert_near(step(compiled, x, edges), step(expected, x, edges))
