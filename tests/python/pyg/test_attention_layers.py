"""Attention layers: results and gradients of PyG, and what is left to it."""

import pytest
import torch
from torch_geometric.nn import (
    AGNNConv,
    GATConv,
    GATv2Conv,
    GENConv,
    SuperGATConv,
    TransformerConv,
)

import warploom.pyg
from small_graphs import edges, features

LAYERS = {
    "gat": lambda: GATConv(8, 5, heads=3),
    "gat_mean": lambda: GATConv(8, 5, heads=2, concat=False, residual=True),
    "gat_without_loops": lambda: GATConv(8, 5, heads=2, add_self_loops=False),
    "gat_edges": lambda: GATConv(8, 4, heads=2, edge_dim=3),
    "gat_scalar_edges": lambda: GATConv(8, 4, heads=2, edge_dim=1),
    "gat_bipartite": lambda: GATConv((8, 8), 4, heads=2, add_self_loops=False),
    "gatv2": lambda: GATv2Conv(8, 5, heads=3),
    "gatv2_mean": lambda: GATv2Conv(8, 4, heads=2, concat=False, residual=True, share_weights=True),
    "gatv2_bipartite": lambda: GATv2Conv((8, 8), 4, heads=2, add_self_loops=False),
    "gatv2_edges": lambda: GATv2Conv(8, 4, heads=2, edge_dim=3),
    "gatv2_scalar_edges": lambda: GATv2Conv(8, 4, heads=2, edge_dim=1),
    "transformer_edges": lambda: TransformerConv(8, 4, heads=2, edge_dim=3),
    "transformer": lambda: TransformerConv(8, 5, heads=3),
    "transformer_fused": lambda: TransformerConv(8, 4, heads=3),
    "supergat": lambda: SuperGATConv(8, 5, heads=3).eval(),
    "supergat_dot": lambda: SuperGATConv(8, 5, heads=2, concat=False, attention_type="SD").eval(),
    "supergat_sampled": lambda: SuperGATConv(8, 4, heads=2, edge_sample_ratio=0.5),
    "agnn": lambda: AGNNConv(),
    "agnn_without_loops": lambda: AGNNConv(requires_grad=False, add_self_loops=False),
    "transformer_mean": lambda: TransformerConv(8, 5, heads=2, concat=False, beta=True),
}


pytestmark = pytest.mark.usefixtures("fresh")


def run(layer, name, x, edge_index, attr):
    x = x.clone().requires_grad_()
    attr = attr[:, 0] if "scalar" in name else attr
    rest = {"edge_attr": attr} if name.endswith("edges") else {}
    inputs = (x, x[:20]) if name.endswith("bipartite") else x
    if name.endswith("bipartite"):
        edge_index = edge_index[:, edge_index[1] < 20]
    out = layer(inputs, edge_index, **rest)
    weight = torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape).sin()
    return [out, *torch.autograd.grad((out * weight).sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_results_and_gradients(name, dtype):
    torch.manual_seed(1)
    layer = LAYERS[name]().to(dtype)
    x, edge_index, attr = features(30, dtype=dtype), edges(120), features(120, 3, dtype=dtype)
    expected = run(layer, name, x, edge_index, attr)
    with warploom.pyg.accelerate():
        for _ in range(3):  # a first use, the second, for which the graph is kept, and a third
            for found, wanted in zip(run(layer, name, x, edge_index, attr), expected):
                close = 1e-10 if dtype == torch.float64 else 2e-5
                torch.testing.assert_close(found, wanted, rtol=close, atol=close)
    assert warploom.pyg.report()[type(layer).__name__] == {"warploom": 3}


@pytest.mark.parametrize("options", [{}, {"t": 0.5}, {"learn_t": True, "edge_dim": 3}])
def test_softmax_of_messages_is_one_walk(options, monkeypatch):
    """GENConv has a softmax for each column, whose scores are the messages."""
    from warploom.pyg import _walks

    walks = []
    call = _walks.message_of_operands

    def counted(graph, text, reductions, *given):
        walks.append(reductions)
        return call(graph, text, reductions, *given)

    monkeypatch.setattr(_walks, "message_of_operands", counted)
    torch.manual_seed(1)
    layer = GENConv(8, 6, norm="layer", **options).double()
    name = "gen_edges" if "edge_dim" in options else "gen"
    x, edge_index = features(30, dtype=torch.float64), edges(120)
    attr = features(120, 3, dtype=torch.float64)
    expected = run(layer, name, x, edge_index, attr)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(
            run(layer, name, x, edge_index, attr), expected, rtol=1e-9, atol=1e-9
        )
    assert warploom.pyg.report()["GENConv"] == {"warploom": 1}
    assert walks == [("softmax",)]


@pytest.mark.parametrize("name", ["gat", "gat_mean", "gat_without_loops", "gatv2", "gatv2_mean"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_results_without_gradients(name, dtype):
    torch.manual_seed(1)
    layer = LAYERS[name]().to(dtype).eval()
    torch.nn.init.normal_(layer.bias)
    x, edge_index = features(30, dtype=dtype), edges(120)
    close = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 4e-2}[dtype]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            expected = layer(x, edge_index)
            with warploom.pyg.accelerate():
                for _ in range(3):
                    found = layer(x, edge_index)
                    assert found.dtype == expected.dtype
                    torch.testing.assert_close(found, expected, rtol=close, atol=close)
    # What was kept without gradients serves with them.
    with warploom.pyg.accelerate():
        layer(x, edge_index).sum().backward()
    assert warploom.pyg.report()[type(layer).__name__] == {"warploom": 7}


def reasons(make, *args, train=True, **kwargs):
    with warploom.pyg.accelerate():
        make.train(train)(*args, **kwargs)
    return list(warploom.pyg.report(reset=True)[type(make).__name__])


def test_what_is_left_to_pyg():
    x, edge_index = features(30), edges(120)
    for make in (GATConv(8, 5), GATv2Conv(8, 5), TransformerConv(8, 5)):
        assert reasons(make, x, edge_index, return_attention_weights=True) == [
            "attention weights are returned"
        ]
    with pytest.raises(AssertionError):
        reasons(TransformerConv(8, 5, edge_dim=3), x, edge_index)
    counts = warploom.pyg.report(reset=True)["TransformerConv"]
    assert list(counts) == ["no edge features"]
    assert reasons(GATConv(8, 5, flow="target_to_source"), x, edge_index) == [
        "attention with flow target_to_source"
    ]


def test_edges_of_three_rows():
    """PyG refuses them, where it looks at them."""
    x, edge_index = features(30), torch.randint(0, 30, (3, 60))
    for make in (GATv2Conv(8, 5, add_self_loops=False), TransformerConv(8, 5)):
        with warploom.pyg.accelerate(), pytest.raises(ValueError, match="to have size '2'"):
            make(x, edge_index)
        assert list(warploom.pyg.report(reset=True)[type(make).__name__]) == [
            "edge_index is not an integer matrix of 2 rows"
        ]


@pytest.mark.parametrize("make", [GATConv, GATv2Conv, TransformerConv, SuperGATConv])
def test_dropout(make):
    torch.manual_seed(1)
    layer, x, edge_index = make(8, 5, heads=2, dropout=0.25), features(30), edges(120)
    expected = layer.eval()(x, edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(x, edge_index), expected)
        layer.train()
        drawn = torch.stack([layer(x, edge_index) for _ in range(400)])
        assert (drawn[0] != drawn[1]).any()
        torch.manual_seed(2)
        first = layer(x, edge_index)
        torch.manual_seed(2)
        torch.testing.assert_close(layer(x, edge_index), first, rtol=0, atol=0)
    spread = drawn.std(0) / 20
    assert ((drawn.mean(0) - expected).abs() <= 5 * spread + 1e-5).all()
    assert warploom.pyg.report()[make.__name__] == {"warploom": 403}


def test_self_loops_are_added_once(monkeypatch):
    calls = []
    from torch_geometric.nn.conv import gat_conv

    original = gat_conv.add_self_loops
    monkeypatch.setattr(
        gat_conv, "add_self_loops", lambda *a, **k: calls.append(1) or original(*a, **k)
    )
    layer, x, edge_index = GATConv(8, 5), features(30), edges(120)
    expected = layer(x, edge_index)
    calls.clear()
    with warploom.pyg.accelerate():
        for _ in range(3):
            torch.testing.assert_close(layer(x, edge_index), expected)
    assert not calls  # of PyG's function: on the CPU edges get loops when they are sorted
