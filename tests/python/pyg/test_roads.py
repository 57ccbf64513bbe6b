"""Which of two roads a call takes, and that what PyTorch and PyG promise holds on both."""

import os
import random
import sys
import types

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

import warploom.pyg
from layer_cases import CASES, NODES, draw, graph
from test_messages import compare, own, step
from warploom.pyg import _ghosts, _products, _propagate, _roads, _sorted, _trace

LAYERS = 24  # random ones of a run
FEW = dict.fromkeys(_roads.LEAST_WORK, 2**40)  # edges times columns that no test has


pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def traces(monkeypatch):
    """Counts how often a message is traced."""
    found = []

    class Counted(_trace.Trace):
        def __init__(self, *args):
            found.append(1)
            super().__init__(*args)

    monkeypatch.setattr(_propagate, "Trace", Counted)
    return found


def in_both(run):
    """The results of a function in PyG and on warploom, twice: a first use and a second one."""
    expected = run()
    with warploom.pyg.accelerate():
        return expected, [run(), run()]


def reasons(layer):
    return list(warploom.pyg.report()[type(layer).__name__])


# ---- sizes decide --------------------------------------------------------------------------------


def calls_of_package(run):
    """Functions of the package that a call enters."""
    folder, found = warploom.__path__[0], 0

    def see(frame, event, argument):
        nonlocal found
        found += event == "call" and frame.f_code.co_filename.startswith(folder)

    sys.setprofile(see)
    try:
        run()
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    "name", ["CF", "Edge", "GINE", "LE", "PNA", "RGCN", "ResGated", "SAGE", "TAG"]
)
def test_a_call_that_is_left_costs_the_same_for_all_shapes(name, monkeypatch, traces):
    """Nothing is asked but sizes, and nothing is made or kept, also where padded batches have
    wrapped functions of PyG."""
    _ghosts.install()
    monkeypatch.setattr(_roads, "LEAST_WORK", FEW)
    make, inputs = CASES[name]
    layer = make()
    given = {
        key: value.float() if isinstance(value, Tensor) and value.is_floating_point() else value
        for key, value in inputs.items()
    }
    counts = []
    with warploom.pyg.accelerate():
        for edges in (801, 700, 600):
            edge_index = graph(edges=edges)
            of_call = {
                key: value[:edges] if isinstance(value, Tensor) and len(value) == 801 else value
                for key, value in given.items()
            }
            warploom.pyg.report(reset=True)
            counts.append(calls_of_package(lambda: layer(edge_index=edge_index, **of_call)))  # noqa: B023
            (calls,) = warploom.pyg.report(reset=True)[type(layer).__name__].values()
    assert not traces
    # Of what decides, then one for each function of PyG that is wrapped: with aggregations.
    most = {"LE": 6, "PNA": 11, "RGCN": 13, "SAGE": 7, "TAG": 12}.get(name, 5)
    assert counts == [counts[0]] * 3 and counts[0] <= most
    assert calls == 1


def test_sizes_of_other_arguments():
    """A number as a tensor has one column, and a derived layer may name its columns otherwise."""
    edge_index, number, x = graph(), torch.tensor(2.0), draw(NODES, 8).float()
    least = {(_roads.OTHERS, "cpu"): edge_index.size(1)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_roads, "LEAST_WORK", least)
        assert not _roads.is_small(edge_index, (None, number), -2)
        least[_roads.OTHERS, "cpu"] += 1
        assert _roads.is_small(edge_index, (None, number), -2)
    layer = type("Derived", (pyg.TAGConv,), {})(8, 8)
    layer.out_channels = None
    expected = layer(x, edge_index)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(x, edge_index), expected)


def test_a_reason_holds_for_all_shapes(traces):
    layer = own(lambda self, x_j: x_j.cumsum(0))
    with warploom.pyg.accelerate():
        for edges in (100, 200, 300):
            layer(draw(NODES, 8).float(), graph(edges=edges))
    assert len(traces) == 1 and list(warploom.pyg.report()["Own"].values()) == [3]


@pytest.mark.parametrize("edges", [0, 1])
def test_an_empty_graph_is_no_reason_for_later_calls(edges):
    layer, x = own(lambda self, x_i, x_j: x_i * x_j), draw(NODES, 8).float()
    with warploom.pyg.accelerate():
        layer(x, graph()[:, :edges])
        layer(x, graph())
    assert warploom.pyg.report()["Own"]["warploom"] == 1 + edges


@pytest.mark.parametrize("name", ["GCN", "GAT", "GATv2", "Transformer", "SG", "SSG", "APPNP"])
def test_layers_with_code_of_their_own_are_always_served(name, monkeypatch):
    monkeypatch.setattr(_roads, "LEAST_WORK", FEW)
    make, inputs = CASES[name]
    layer = make()
    with warploom.pyg.accelerate():
        step(layer, inputs, graph(), torch.float32)
    assert reasons(layer) == ["warploom"]


AGAIN = (
    *("AGNN", "ARMA", "Cheb", "ClusterGCN", "FastRGCN", "GIN", "Graph", "RGCN", "SAGE"),
    *("SuperGAT", "TAG"),
)


@pytest.mark.parametrize("name", AGAIN)
def test_layers_are_served_from_the_second_use_of_edges_on(name, monkeypatch):
    monkeypatch.setattr(_roads, "LEAST_WORK", FEW)
    make, inputs = CASES[name]
    layer = make()
    x, edges, others = inputs["x"].float(), graph(), graph()
    more = [inputs["edge_type"]] if "edge_type" in inputs else []
    with warploom.pyg.accelerate():
        expected = layer(x, edges, *more)
        assert "warploom" not in reasons(layer)
        for each in (edges, edges, others):
            warploom.pyg.report(reset=True)
            torch.testing.assert_close(layer(x, each, *more), expected)
            assert (reasons(layer) == ["warploom"]) == (each is edges)
        for _ in range(2):  # forward and recomputation take one road
            warploom.pyg.report(reset=True)
            checkpoint(
                layer, x.requires_grad_(), edges, *more, use_reentrant=False
            ).sum().backward()
            assert "warploom" not in reasons(layer)
        monkeypatch.setattr(_roads, "is_deterministic", lambda: True)
        warploom.pyg.report(reset=True)
        layer(x, edges, *more)  # has the bits of its first call
        assert "warploom" not in reasons(layer)


@pytest.mark.parametrize("cls", _products.LAYERS, ids=lambda cls: cls.__name__)
def test_products_are_not_traced(cls, traces):
    make, inputs = CASES[cls.__name__.removesuffix("Conv")]
    with warploom.pyg.accelerate():
        for _ in range(2):
            step(make().double(), inputs, graph(), torch.float64)
    assert not traces and list(warploom.pyg.report()[cls.__name__]) == ["warploom"]


# ---- random layers -------------------------------------------------------------------------------


UNARY = ("relu", "tanh", "sigmoid", "sin", "silu", "abs", "exp")
BINARY = (torch.add, torch.sub, torch.mul, torch.maximum)


class Drawn(MessagePassing):
    """A random message of both ends, features of edges and parameters."""

    def __init__(self, seed):
        draws = random.Random(seed)
        aggr = draws.choice(["sum", "mean", "max", "min", "std", ["mean", "max"]])
        super().__init__(aggr=aggr, flow=draws.choice(["source_to_target", "target_to_source"]))
        torch.manual_seed(seed)
        self.linears = nn.ModuleList([nn.Linear(6, 6) for _ in range(2)])
        self.scale = nn.Parameter(torch.rand(6))
        self.choices = [draws.random() for _ in range(64)]
        self.depth = draws.randint(1, 3)

    def forward(self, x, edge_index, w):
        return self.propagate(edge_index, x=x, w=w)

    def message(self, x_i, x_j, w):
        left = iter(self.choices)

        def choose(among):
            return among[int(next(left) * len(among))]

        def value(depth):
            kind = choose(["leaf", "unary", "binary"] if depth else ["leaf"])
            if kind == "leaf":
                one = choose(["x_i", "x_j", "w", "lin", "scaled", "half"])
                if one == "lin":
                    return choose(self.linears)(choose([x_i, x_j]))
                if one == "scaled":
                    return x_j * self.scale
                if one == "half":
                    return 0.5 * x_i - 0.25
                return {"x_i": x_i, "x_j": x_j, "w": w.view(-1, 1) * x_j}[one]
            if kind == "unary":
                return getattr(torch, choose(UNARY), nn.functional.silu)(0.3 * value(depth - 1))
            return choose(BINARY)(value(depth - 1), value(depth - 1))

        return value(self.depth)


def drawn_of_pyg(seed):
    """A layer with code of its own, and what it is called with besides x: of each edge."""
    draws = random.Random(seed)
    torch.manual_seed(seed)
    name = draws.choice(["GCN", "SAGE", "Graph", "GIN", "GAT", "GATv2", "Transformer"])
    one, other, third, fourth = (draws.random() < 0.5 for _ in range(4))
    aggr = draws.choice(["sum", "mean", "max", "min"])
    flow = draws.choice(["source_to_target", "target_to_source"])
    heads, given = draws.randint(1, 3), {}
    edges = draws.choice([None, 1, 4])
    if name in ("GCN", "Graph") and one:
        given["edge_weight"] = lambda count, at: draw(count, seed=at).abs() + 0.5
    if name in ("GAT", "GATv2", "Transformer") and edges is not None:
        given["edge_attr"] = lambda count, at: draw(count, edges, seed=at)
    if name == "GCN":
        options = {"improved": other, "add_self_loops": third, "normalize": fourth or third}
        layer = pyg.GCNConv(6, 5, flow=flow, aggr=draws.choice(["sum", aggr]), **options)
    elif name == "SAGE":
        options = {"normalize": one, "root_weight": other, "project": third}
        layer = pyg.SAGEConv(6, draws.choice([2, 9]), aggr=aggr, flow=flow, **options)
    elif name == "Graph":
        layer = pyg.GraphConv(6, draws.choice([2, 9]), aggr=aggr, flow=flow, bias=other)
    elif name == "GIN":
        network = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
        layer = pyg.GINConv(network, eps=0.3, train_eps=one, flow=flow)
    else:
        options = {"heads": heads, "concat": one, "edge_dim": edges, "bias": other}
        if name == "Transformer":
            options.update(beta=third, root_weight=fourth or third)
        else:
            fill = draws.choice(["mean", "max", 0.5])
            options.update(add_self_loops=third, residual=fourth, fill_value=fill)
        layer = getattr(pyg, f"{name}Conv")(6, 4, **options)
    return layer, given


FULL = 1000  # random layers, of which a run without --full draws a part
SEEDS = random.Random(os.environ.get("WARPLOOM_SEED", "0")).sample(range(FULL), LAYERS)


@pytest.mark.parametrize("seed", range(FULL) if os.environ.get("WARPLOOM_FULL") else [*SEEDS, 30])
def test_random_layers(seed):
    """Each step has other numbers of nodes and edges. Of the layers with even numbers the message
    is random; that of number 30 has too long a gradient."""
    draws = random.Random(seed)
    layer, given = drawn_of_pyg(seed)
    if seed % 2 == 0:
        layer, given = Drawn(seed), {"w": lambda count, at: draw(count, seed=at)}
    layer = layer.double()
    for at in range(3):
        nodes, edges = draws.randint(5, 40), draws.randint(1, 300)
        edge_index = graph(nodes=nodes, edges=edges, seed=100 * seed + at)
        inputs = {"x": draw(nodes, 6, seed=at)}
        inputs.update((name, drawn(edges, at + 7)) for name, drawn in given.items())
        expected = step(layer, inputs, edge_index, torch.float64)
        with warploom.pyg.accelerate():
            found = step(layer, inputs, edge_index, torch.float64)
        compare(found, expected, 1e-9)


# ---- what a message sees -------------------------------------------------------------------------


def asks_isinstance(self, x_j):
    return x_j if isinstance(x_j, Tensor) else 2 * x_j


def asks_torch(self, x_j):
    return x_j if torch.is_tensor(x_j) else 2 * x_j


def asks_facts(self, x_i, x_j):
    is_known = x_j.dtype == x_i.dtype and x_j.device.type == "cpu" and x_j.ndim == x_j.dim() == 2
    is_known = is_known and x_j.shape == (x_i.size(0), 8) and len(x_j) == x_j.numel() // 8
    return x_i * x_j if is_known and x_j.is_floating_point() and not x_j.is_cuda else x_j


@pytest.mark.parametrize("message", [asks_isinstance, asks_torch, asks_facts])
def test_features_of_edges_are_a_tensor(message):
    layer, x = own(message), draw(NODES, 8)
    expected, found = in_both(lambda: layer(x, graph()))
    for one in found:
        torch.testing.assert_close(one, expected)
    assert reasons(layer) == ["warploom"]


def test_types_in_compiled_code():
    """A stand-in there is no tensor."""
    layer, x = own(asks_torch), draw(NODES, 8).float()
    expected = layer(x, graph())
    with warploom.pyg.accelerate():
        found = torch.compile(layer, backend="eager")(x, graph())
    torch.testing.assert_close(found, expected)
    assert reasons(layer) == ["a message that asks for types in compiled code"]


class Twice(torch.autograd.Function):
    """Another gradient than that of what it computes."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


def by_a_function(self, x_j):
    return Twice.apply(x_j)


def by_numpy(self, x_j):
    return x_j * torch.from_numpy(x_j.detach().numpy()).clone()


def by_data(self, x_j):
    return x_j * x_j.data


@torch.jit.script
def scripted(x):
    return 2 * x


def by_script(self, x_j):
    return scripted(x_j)


@pytest.mark.parametrize("message", [by_a_function, by_numpy, by_data, by_script])
def test_what_pytorch_computes_beside_its_functions(message):
    layer = own(message)
    expected, found = in_both(lambda: step(layer, {"x": draw(NODES, 8)}, graph(), torch.float64))
    for one in found:
        compare(one, expected)


# ---- hooks and methods ---------------------------------------------------------------------------


class Linear(MessagePassing):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j):
        return self.lin(x_j)


def doubled(module, inputs, out):
    return 2 * out


HOOKS = {
    "aggregation": lambda layer: layer.aggr_module.register_forward_hook(doubled),
    "message": lambda layer: layer.register_message_forward_hook(doubled),
    "aggregate": lambda layer: layer.register_aggregate_forward_hook(doubled),
    "propagate": lambda layer: layer.register_propagate_forward_hook(doubled),
    "all": lambda layer: nn.modules.module.register_module_forward_hook(
        lambda module, inputs, out: 2 * out if module is layer.aggr_module else None
    ),
}


@pytest.mark.parametrize("make", [lambda: pyg.GCNConv(8, 5), Linear], ids=["own", "traced"])
@pytest.mark.parametrize("hook", HOOKS)
def test_hooks_run(hook, make):
    layer, x = make(), draw(NODES, 8).float()
    handle = HOOKS[hook](layer)
    try:
        expected, found = in_both(lambda: layer(x, graph()))
    finally:
        handle.remove()
    for one in found:
        torch.testing.assert_close(one, expected)
    assert reasons(layer) == ["hooks"]
    with warploom.pyg.accelerate():
        layer(x, graph())
    assert "warploom" in reasons(layer)


def test_hooks_of_modules_of_a_message():
    layer, x, seen = Linear(), draw(NODES, 8).float(), []
    layer.lin.register_forward_hook(lambda module, inputs, out: seen.append(out.shape))
    expected, found = in_both(lambda: layer(x, graph()))
    for one in found:
        torch.testing.assert_close(one, expected)
    assert seen == [(801, 8)] * 3


@pytest.mark.parametrize("cls", [pyg.GATConv, pyg.GATv2Conv, pyg.TransformerConv])
def test_hooks_of_features_of_edges(cls):
    """They see the edges in their order."""
    layer, got = cls(8, 2, edge_dim=4), []
    layer.lin_edge.register_forward_hook(lambda module, inputs, out: got.append(out.detach()))
    x, features = draw(NODES, 8).float(), draw(801, 4).float()
    in_both(lambda: layer(x, graph(), features))
    assert len(got) == 3 and torch.equal(got[0], got[1]) and torch.equal(got[0], got[2])


@pytest.mark.parametrize(
    "make",
    [lambda: pyg.GCNConv(8, 5), lambda: pyg.SAGEConv(8, 5), Linear],
    ids=["GCNConv", "SAGEConv", "Linear"],
)
def test_a_method_of_the_class_is_replaced(make, monkeypatch):
    layer, x = make(), draw(NODES, 8).float()
    with warploom.pyg.accelerate():
        before = layer(x, graph())
    message = types.FunctionType(tripled.__code__, tripled.__globals__, "message")
    monkeypatch.setattr(type(layer), "message", message)
    expected, found = in_both(lambda: layer(x, graph()))
    for one in found:
        torch.testing.assert_close(one, expected)
    assert not torch.allclose(before, expected)


def tripled(self, x_j, **kwargs):
    return 3 * x_j[:, :5] if x_j.size(-1) == 5 else 3 * x_j


def test_what_a_layer_has_may_change():
    """Each call traces the layer as it is."""
    layer, x = Linear(), draw(NODES, 8)
    changes = (
        lambda: layer.double(),
        lambda: setattr(layer, "lin", nn.Sequential(nn.Linear(8, 8), nn.Tanh()).double()),
        lambda: layer.lin[0].weight.data.mul_(2),
        lambda: layer.lin[0].weight.requires_grad_(False),
        lambda: nn.utils.parametrizations.weight_norm(layer.lin[0]),
        lambda: layer.eval(),
    )
    for change in changes:
        change()
        expected, found = in_both(lambda: step(layer, {"x": x}, graph(), torch.float64))
        for one in found:
            compare(one, expected)
    assert reasons(layer) == ["warploom"]


# ---- other ways to differentiate, and to save ----------------------------------------------------

MAKES = {
    "GCN": lambda: pyg.GCNConv(8, 5),
    "SAGE": lambda: pyg.SAGEConv(8, 5, aggr="max"),
    "GAT": lambda: pyg.GATConv(8, 5),
    "Transformer": lambda: pyg.TransformerConv(8, 5),
    "AGNN": lambda: pyg.AGNNConv(),
    "ResGated": lambda: pyg.ResGatedGraphConv(8, 5),
    "PNA": lambda: pyg.PNAConv(8, 5, ["max"], ["identity"], torch.ones(9, dtype=torch.long)),
}


@pytest.mark.parametrize("name", MAKES)
def test_forward_mode_derivatives(name):
    layer, x, edge_index = MAKES[name](), draw(NODES, 8).float(), graph()

    def tangent():
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            return forward_ad.unpack_dual(layer(dual, edge_index)).tangent

    expected, found = in_both(tangent)
    for one in found:
        torch.testing.assert_close(one, expected)
    assert reasons(layer) == ["forward-mode derivatives"]


@pytest.mark.parametrize("is_reentrant", [False, True])
@pytest.mark.parametrize("name", MAKES)
def test_activation_checkpointing(name, is_reentrant, monkeypatch):
    """Forward and recomputation save tensors of the same types, in each step and for each graph."""
    layer, edges = MAKES[name](), [graph(), graph(seed=1), graph()]
    for limit in (1, 2**20):
        monkeypatch.setattr(_sorted, "MEASURED_AT_ONCE", limit)
        for edge_index in (edges[0], *edges):
            x = draw(NODES, 8).float().requires_grad_()
            layer(x, edge_index).square().sum().backward()
            expected, x.grad = x.grad, None
            with warploom.pyg.accelerate():
                layer(x, edge_index)  # a use without checkpointing does not matter
                out = checkpoint(layer, x, edge_index, use_reentrant=is_reentrant)
                layer(x, edge_index)
                out.square().sum().backward()
            torch.testing.assert_close(x.grad, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pyg.AGNNConv(),
        lambda: pyg.GATConv(8, 5, bias=False),
        lambda: pyg.GATConv(8, 5),
        lambda: pyg.GATv2Conv(8, 5, bias=False),
        lambda: pyg.TransformerConv(8, 5, root_weight=False),
        lambda: pyg.SuperGATConv(8, 5, bias=False),
        lambda: pyg.SimpleConv(aggr="std"),
        lambda: pyg.SimpleConv(aggr="softmax"),
    ],
)
def test_results_may_be_modified_in_place(make):
    layer, edge_index = make(), graph()

    def gradient():
        x = draw(NODES, 8).float().requires_grad_()
        layer(x, edge_index).mul_(2).square().sum().backward()
        return x.grad

    expected, found = in_both(gradient)
    for one in found:
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("is_enabled", [False, True])
@pytest.mark.parametrize("make", [lambda: pyg.GCNConv(8, 5), lambda: pyg.SGConv(8, 5)])
def test_scripts(make, is_enabled):
    """torch.jit.script compiles PyG's code, whether layers run on warploom or not."""
    layer, x = make(), draw(NODES, 8).float()
    expected = layer(x, graph())
    with warploom.pyg.accelerate():
        script = torch.jit.script(layer) if is_enabled else None
    script = script or torch.jit.script(layer)
    torch.testing.assert_close(script(x, graph()), expected)
