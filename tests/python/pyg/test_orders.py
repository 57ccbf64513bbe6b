"""The order of a layer's products, and products of constant features: results are PyG's, after any
change of what a product is made of."""

import copy
import gc
import os
import random
import weakref

import pytest
import torch
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg

import warploom.pyg
import warploom.torch as wt
from small_graphs import edges, features
from test_capture import Cuda, cuda  # noqa: F401 (a fixture)
from warploom._plan import Expected
from warploom.pyg import _kept, _orders, _switch
from warploom.torch._state import recorded

FULL = 1000  # random schedules, of which a run without --full draws a part
SCHEDULES = random.Random(os.environ.get("WARPLOOM_SEED", "0")).sample(range(FULL), 40)
NODES, EDGES = 30, 140


def gin(inputs, outputs, **kwargs):
    linear = torch.nn.Linear
    network = torch.nn.Sequential(linear(inputs, outputs), torch.nn.ReLU(), linear(outputs, 3))
    return pyg.GINConv(network, eps=0.3, **kwargs)


LAYERS = {
    "gcn": pyg.GCNConv,
    "gcn_plain": lambda *n: pyg.GCNConv(*n, normalize=False, bias=False),
    "sage": pyg.SAGEConv,
    "sage_project": lambda *n: pyg.SAGEConv(*n, project=True, normalize=True),
    "sage_alone": lambda *n: pyg.SAGEConv(*n, aggr="sum", root_weight=False),
    "graph": pyg.GraphConv,
    "graph_mean": lambda *n: pyg.GraphConv(*n, aggr="mean"),
    "gin": gin,
    "gin_mean": lambda *n: gin(*n, aggr="mean"),
    "gin_trained": lambda *n: gin(*n, train_eps=True),
    "sg": lambda *n: pyg.SGConv(*n, K=2),
    "ssg": lambda *n: pyg.SSGConv(*n, alpha=0.1, K=3),
    "tag": lambda *n: pyg.TAGConv(*n, K=2),
    "cheb": lambda *n: pyg.ChebConv(*n, K=4),
    "cluster": lambda *n: pyg.ClusterGCNConv(*n, diag_lambda=0.5),
    "le": pyg.LEConv,
    "le_mean": lambda *n: pyg.LEConv(*n, bias=False, aggr="mean"),
    "arma": lambda *n: pyg.ARMAConv(*n, dropout=0.3),
    "arma_deep": lambda *n: pyg.ARMAConv(*n, num_stacks=2, num_layers=3, act=None, bias=False),
    "arma_shared": lambda *n: pyg.ARMAConv(*n, num_stacks=3, num_layers=2, shared_weights=True),
}
WEIGHTED = ("gcn", "gcn_plain", "graph", "graph_mean", "sg", "ssg", "tag", "cheb", "le", "le_mean")
WEIGHTED = (*WEIGHTED, "arma", "arma_deep", "arma_shared", "appnp")
# Those that PyG computes with a linear map first.
MAPPED = ("gcn", "gcn_plain", "le", "le_mean", "arma", "arma_deep", "arma_shared")
STACKS = {"arma_deep": 2, "arma_shared": 3}  # as many maps side by side


pytestmark = pytest.mark.usefixtures("fresh")


def run(layer, *inputs):
    """The result and the gradients of parameters and of inputs that want one."""
    torch.manual_seed(5)  # of dropout
    out = layer(*inputs)
    leaves = [*layer.parameters(), *(one for one in inputs if one is not None)]
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    if not out.requires_grad:
        return [out]
    weight = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weight).sum(), leaves, allow_unused=True)]


def close(found, expected, tolerance=1e-10):
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


def orders():
    """The reasons of the orders of all calls since the last look, in their order."""
    (found,) = warploom.pyg.report(reset=True, orders=True).values()
    return {text.partition(": ")[2] or text: count for text, count in found.items()}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(12, 3), (3, 12)])
@pytest.mark.parametrize("name", LAYERS)
def test_constant_features(name, shape, weighted):
    """From the second call on the product is kept, in training, evaluation and inference mode."""
    if weighted and name not in WEIGHTED:
        return
    layer, x, edge_index = (
        LAYERS[name](*shape).double(),
        features(NODES, shape[0]).double(),
        edges(EDGES),
    )
    inputs = [x, edge_index, torch.rand(EDGES, dtype=torch.float64)][: 2 + weighted]
    expected = run(layer, *inputs)
    with warploom.pyg.accelerate():
        for _ in range(4):
            close(run(layer, *inputs), expected)
        with torch.no_grad():
            close(run(layer, *inputs), expected[:1])
        with torch.inference_mode():
            close(run(layer, *inputs), expected[:1])
    if name != "sage_project":
        assert orders()["(A X) W, A X is kept"] == 5


def by_columns(monkeypatch, kind):
    """Let times be proportional to columns, which they are not on a small graph."""

    def expected(self, request):
        return Expected(**{"seconds": None, "simple": 1.0, kind: 1e-6 * request.n})

    monkeypatch.setattr("warploom.torch._graph.Graph.expected_of", expected)


@pytest.mark.parametrize("times", ["simple", "seconds"])
@pytest.mark.parametrize("shape", [(12, 3), (3, 12), (6, 6)])
@pytest.mark.parametrize("name", LAYERS)
def test_the_narrow_side_is_multiplied(name, shape, times, monkeypatch):
    """Of features with a gradient nothing is kept, and the order follows the expected times."""
    by_columns(monkeypatch, times)
    layer, edge_index = LAYERS[name](*shape).double(), edges(EDGES)
    x = features(NODES, shape[0]).double().requires_grad_()
    expected = run(layer, x, edge_index)
    with warploom.pyg.accelerate():
        for _ in range(3):
            close(run(layer, x, edge_index), expected)
    text = list(orders())[-1]
    of_pyg = "A (X W)" if name in MAPPED else "(A X) W"
    inputs, outputs = shape[0], shape[1] * STACKS.get(name, 1)
    cheap = of_pyg
    if inputs != outputs:
        cheap = "A (X W)" if inputs > outputs else "(A X) W"
    assert text.startswith(cheap)
    assert ("as PyG" in text) == (cheap == of_pyg)


@pytest.mark.parametrize("weighted", [False, True])
def test_steps_without_a_map(weighted):
    """What is kept of APPNP is copied, since the caller gets it; not of weights that drop out."""
    layer = pyg.APPNP(K=3, alpha=0.2, dropout=0.4)
    inputs = [features(NODES, 6), edges(EDGES), torch.rand(EDGES)][: 2 + weighted]
    expected, dropped = copy.deepcopy(layer).eval()(*inputs), run(layer, *inputs)[0]
    with warploom.pyg.accelerate():
        close(run(layer, *inputs)[0], dropped, 1e-5)
        assert warploom.pyg.report(orders=True) == {}
        layer.eval()
        for _ in range(4):
            out = layer(*inputs)
            close(out, expected, 1e-5)
            out.zero_()
        assert warploom.pyg.report(orders=True) == {"APPNP": {"6: A X": 1, "6: A X is kept": 3}}
        close(*(run(layer, inputs[0].clone().requires_grad_(), *inputs[1:])[1:] for _ in "ab"))


def test_a_chain_of_powers_is_kept():
    """As in SIGN: each hop's product of the same features."""
    layers = [pyg.SGConv(12, 3, K=hops).double() for hops in (1, 2, 3)]
    x, edge_index = features(NODES, 12).double(), edges(EDGES)
    expected = torch.cat([layer(x, edge_index) for layer in layers], 1)
    with warploom.pyg.accelerate():
        for _ in range(3):
            close(torch.cat([layer(x, edge_index) for layer in layers], 1), expected)
    assert orders()["(A X) W, A X is kept"] == 6 and len(kept()) == 3


def test_differences_in_16_bits_have_pygs_message():
    """Two sums of LEConv would be rounded before their difference."""
    layer, x, edge_index = pyg.LEConv(12, 40).half(), features(NODES, 12).half(), edges(EDGES)
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(x, edge_index)
    assert warploom.pyg.report(orders=True) == {}


def test_sampled_differences_have_pygs_message(monkeypatch):
    """Two sums of LEConv might have other edges each."""
    layer, x, edge_index = pyg.LEConv(3, 12), features(NODES, 3), edges(EDGES)
    with warploom.pyg.accelerate():
        layer(x, edge_index)
        assert list(orders()) == ["(A X) W, by the columns"]
        monkeypatch.setattr("warploom.torch._sampling.chosen", lambda *product: None)
        layer(x, edge_index)
        assert warploom.pyg.report(orders=True) == {}


def test_gradients_count(monkeypatch):
    """Features without a gradient make (A X) W cheaper, since nothing flows back through A."""
    by_columns(monkeypatch, "simple")
    layer, x, edge_index = pyg.GCNConv(12, 8), features(NODES, 12), edges(EDGES)
    with warploom.pyg.accelerate(keep=0):
        for _ in range(3):
            layer(x, edge_index)
        assert {text[:7] for text in orders()} == {"(A X) W"}
        for _ in range(2):
            layer(x.requires_grad_(), edge_index)
        with torch.no_grad():
            layer(x, edge_index)
        assert {text[:7] for text in orders()} == {"A (X W)"}


def test_more_sources_than_targets_are_mapped_last():
    """A (X W) would map each source of a mini-batch."""
    layer, x = pyg.SAGEConv(16, 8), features(4000, 16).requires_grad_()
    edge_index = torch.stack([torch.arange(4000), torch.arange(4000) % 10])
    with warploom.pyg.accelerate():
        layer((x, x[:10]), edge_index)
    (text,) = orders()
    assert text == "(A X) W, as PyG"


def hooked(layer):
    seen = []
    layer.lin.register_forward_hook(lambda *given: seen.append(1))
    return seen


def test_what_keeps_the_order_of_pyg():
    x, edge_index = features(NODES, 3).requires_grad_(), edges(EDGES)
    layer = pyg.GCNConv(3, 12)

    def reason(*arguments, **options):
        with warploom.pyg.accelerate(**options):
            layer(*(arguments or (x, edge_index)))
        return orders()

    assert list(reason()) == ["(A X) W, by the columns"]
    assert list(reason(reorder=False)) == ["A (X W), as PyG, reorder=False"]
    torch.use_deterministic_algorithms(True)
    try:
        assert list(reason()) == ["A (X W), as PyG, deterministic"]
    finally:
        torch.use_deterministic_algorithms(False)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        reason()
    close(checkpoint(layer, x, edge_index, use_reentrant=False), layer(x, edge_index), 1e-5)
    seen = hooked(layer)
    with warploom.pyg.accelerate():
        layer(x, edge_index)
    assert len(seen) == 1 and warploom.pyg.report(orders=True) == {}


@pytest.mark.parametrize("name", ["gcn", "sage", "gin"])
def test_a_parametrization_sees_each_call(name):
    layer, x, edge_index = LAYERS[name](12, 3), features(NODES, 12), edges(EDGES)
    linear = {"gcn": "lin", "sage": "lin_l", "gin": "nn"}[name]
    module = getattr(layer, linear)
    parametrizations.spectral_norm(module[0] if name == "gin" else module)
    layer.eval()
    expected = run(layer, x, edge_index)
    with warploom.pyg.accelerate():
        for _ in range(3):
            close(run(layer, x, edge_index), expected, 1e-5)


class Adapter(torch.nn.Module):
    """A low-rank addition to a linear map."""

    def __init__(self, linear):
        super().__init__()
        self.linear, self.weight, self.bias = linear, linear.weight, linear.bias
        self.more = torch.nn.Linear(linear.in_channels, linear.out_channels, bias=False)

    def forward(self, x):
        return self.linear(x) + self.more(x)


def test_an_adapter_is_called():
    x, edge_index = features(NODES, 12), edges(EDGES)
    for name in ("gcn", "sage"):
        layer = LAYERS[name](12, 3)
        part = "lin" if name == "gcn" else "lin_l"
        setattr(layer, part, Adapter(getattr(layer, part)))
        expected = run(layer, x, edge_index)
        with warploom.pyg.accelerate():
            for _ in range(3):
                close(run(layer, x, edge_index), expected, 1e-5)


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "graph", "sg", "tag"])
def test_fifty_steps_have_pygs_losses(name, monkeypatch):
    """In float64; the first layer's product is kept, and the second layer has another order."""
    by_columns(monkeypatch, "simple")
    x, edge_index, labels = features(NODES, 9).double(), edges(EDGES), torch.arange(NODES) % 3
    sizes = (3, 8) if name in MAPPED else (12, 4)  # of the second layer

    def losses():
        torch.manual_seed(7)
        outputs = 3 if name == "gin" else 12
        between = torch.nn.Linear(outputs, sizes[0])
        layers = [LAYERS[name](9, 12).double(), between.double(), LAYERS[name](*sizes).double()]
        parameters = [one for layer in layers for one in layer.parameters()]
        optimizer, found = torch.optim.Adam(parameters, lr=0.01), []
        for _ in range(50):
            optimizer.zero_grad()
            hidden = layers[1](layers[0](x, edge_index).relu()).tanh()
            loss = torch.nn.functional.cross_entropy(layers[2](hidden, edge_index), labels)
            loss.backward()
            optimizer.step()
            found.append(loss.detach())
        return torch.stack(found)

    expected = losses()
    with warploom.pyg.accelerate():
        torch.testing.assert_close(losses(), expected, rtol=1e-9, atol=0)
    texts = orders()
    assert texts["(A X) W, A X is kept"] == 49
    assert sum(count for text, count in texts.items() if "expected to take" in text) >= 49
    assert expected[-1] < expected[0]


# ---- what is kept --------------------------------------------------------------------------------


def kept():
    gc.collect()
    return list(_kept._all)


def test_it_ends_with_its_tensors():
    layer = pyg.GraphConv(12, 3)
    given = [features(NODES, 12), edges(EDGES), torch.rand(EDGES)]
    for dies in range(3):
        inputs = [one.clone() for one in given]
        with warploom.pyg.accelerate():
            for _ in range(3):
                layer(*inputs)
        (out,) = [weakref.ref(one.out) for one in kept()]
        del inputs[dies]
        assert not kept() and out() is None


def test_the_limit_holds_and_the_largest_gains_stay():
    layer, edge_index = pyg.SAGEConv(12, 3), edges(EDGES)
    few, many = features(NODES, 12), features(NODES, 12)
    small, large = pyg.SAGEConv(12, 3), pyg.SGConv(12, 3, K=3)
    size = few.numel() * few.element_size()
    with warploom.pyg.accelerate(keep=size):
        for _ in range(3):
            small(few, edge_index)
        assert [one.size for one in kept()] == [size]
        for _ in range(3):
            large(many, edge_index)  # three products saved
            layer(few, edge_index)
        (one,) = kept()
        assert one.tensor() is many
        del one
    with warploom.pyg.accelerate(keep=size - 1):
        few.mul_(1), many.mul_(1)
        for _ in range(3):
            small(few, edge_index), large(many, edge_index)
        assert not kept()
    with warploom.pyg.accelerate(keep=0):
        warploom.pyg.report(reset=True)
        for _ in range(3):
            small(few, edge_index)
        assert not any("kept" in text for text in orders())


def test_options_are_those_of_the_last_enable():
    def now():
        return _switch.options()[:2]

    assert now() == (True, None)
    with warploom.pyg.accelerate(reorder=False):
        with warploom.pyg.accelerate(keep=5):
            assert now() == (False, 5)
        assert now() == (False, None)
    assert now() == (True, None)
    for wrong in ({"keep": -1}, {"keep": 0.5}, {"reorder": "no"}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            warploom.pyg.enable(**wrong)
    assert now() == (True, None)


def test_new_features_in_each_step_are_not_kept():
    layer, x, edge_index = pyg.GCNConv(12, 3), features(NODES, 12), edges(EDGES)
    with warploom.pyg.accelerate():
        for _ in range(4):
            layer(torch.nn.functional.dropout(x), edge_index)
        for _ in range(4):
            layer(x, edge_index)
            assert not kept()
            x.add_(1)


def test_a_result_that_was_changed_is_computed_again():
    layer, x, edge_index = pyg.SAGEConv(12, 3), features(NODES, 12), edges(EDGES)
    expected = layer(x, edge_index)
    with warploom.pyg.accelerate():
        for _ in range(2):
            layer(x, edge_index)
        kept()[0].out.zero_()
        close(layer(x, edge_index), expected, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_intermediate_results_have_pygs_types(dtype):
    layer, x = pyg.GCNConv(12, 40).to(dtype), features(NODES, 12).to(dtype)
    with warploom.pyg.accelerate():
        for _ in range(3):
            assert layer(x, edges(EDGES)).dtype is dtype
            layer(x, edge_index := edges(EDGES))
            layer(x, edge_index)
        assert kept()[0].out.dtype is dtype


# Columns of X and of the layer, the types of what is kept, and the orders of five calls. Of layers
# that aggregate first, A multiplies the features as they are, and the map casts: so A X has PyG's
# type and may be kept.
AUTOCAST = {
    "aggregates first": (
        (12, 3),
        {torch.float32},
        {"(A X) W, as PyG, under autocast": 2, "(A X) W, A X is kept": 3},
    ),
    "maps first": ((3, 12), set(), {"as PyG, under autocast": 5}),
}


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "sage_project"])
def test_autocast_has_pygs_types_and_keeps_the_order_of_maps(name):
    widths, types, expected_orders = AUTOCAST[
        "maps first" if name in MAPPED else "aggregates first"
    ]
    layer, x, edge_index = LAYERS[name](*widths), features(NODES, widths[0]), edges(EDGES)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = run(layer, x, edge_index)
        with warploom.pyg.accelerate():
            for _ in range(4):
                found = run(layer, x, edge_index)
                for one, other in zip(found, expected, strict=True):
                    if other is None:  # a parameter that nothing reads
                        assert one is None
                        continue
                    torch.testing.assert_close(  # which compares types, too
                        one, other, rtol=0.03, atol=0.03 * float(other.abs().max())
                    )
            assert {one.out.dtype for one in kept()} == types
            layer(x.requires_grad_(), edge_index)
    assert orders() == expected_orders


# ---- compiled code -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(12, 3), (3, 12)])
@pytest.mark.parametrize("name", ["gcn", "sage", "sage_project", "graph", "gin", "gin_trained"])
def test_compiled_code_has_the_order_of_fewer_columns(name, shape, monkeypatch):
    columns = shape[name in MAPPED]  # of PyG's product, for which an op pays
    least = dict.fromkeys(("sum", "mean"), EDGES * columns)
    monkeypatch.setattr("warploom.pyg._compiled.LEAST_WORK", {"cpu": least})
    layer, edge_index = LAYERS[name](*shape).double(), edges(EDGES)
    x = features(NODES, shape[0]).double().requires_grad_()
    expected = run(layer, x, edge_index)
    torch.compiler.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    texts = []
    for options in ({}, {"reorder": False}, {}):
        with warploom.pyg.accelerate(**options):
            close(run(compiled, x, edge_index), expected)
        texts.append(list(warploom.pyg.report(orders=True).get(type(layer).__name__, [])))
        assert list(warploom.pyg.report(reset=True)[type(layer).__name__]) == ["warploom"]
    of_pyg, width = "A (X W)" if name in MAPPED else "(A X) W", f"{shape[0]} -> {shape[1]}: "
    cheap = "A (X W)" if shape[0] > shape[1] else "(A X) W"
    first = f"{width}{cheap}, {'as PyG' if cheap == of_pyg else 'by the columns'}"
    # The code of the first call serves the last one.
    assert texts == [[first], [f"{width}{of_pyg}, as PyG, reorder=False"], []]


# ---- captured steps ------------------------------------------------------------------------------


def test_a_captured_step_reads_the_product_and_a_change_renews_it(cuda):  # noqa: F811
    layer, x, edge_index = pyg.GCNConv(12, 3), features(NODES, 12), edges(EDGES)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)

    def step():
        optimizer.zero_grad()
        loss = layer(x, edge_index).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    other, losses = copy.deepcopy(layer), []
    captured = wt.capture(step)
    with warploom.pyg.accelerate():
        for number in range(9):
            if number in (5, 7):
                x.mul_(0.5)
            losses.append(float(captured().detach()))
    assert captured.captures == 1 and captured.reason is None
    layer, optimizer = other, torch.optim.SGD(other.parameters(), 0.1)
    x.mul_(4)
    for number, found in enumerate(losses):
        if number in (5, 7):
            x.mul_(0.5)
        close(torch.tensor(found), step().detach(), 1e-3)


def test_products_that_others_keep_are_no_new_inputs_of_a_step(cuda):  # noqa: F811
    layer, x, edge_index = pyg.SAGEConv(12, 3), features(NODES, 12), edges(EDGES)
    captured = wt.capture(lambda: layer(x, edge_index).sum())
    with warploom.pyg.accelerate():
        for _ in range(5):
            for _ in range(2):
                layer(x, edge_index)  # is kept, and read by the step
            captured()
            x.mul_(0.5)
    assert captured.reason is None


def test_features_that_a_replay_changes_are_not_kept(cuda, monkeypatch):  # noqa: F811
    monkeypatch.setattr("warploom.torch._state.Content.is_same", lambda *tensor: True)  # on a GPU
    layer, x, edge_index = pyg.SAGEConv(12, 3), features(NODES, 12), edges(EDGES)
    captured = wt.capture(lambda: x.mul_(0.5).sum())
    for _ in range(5):
        captured()
        with warploom.pyg.accelerate(), torch.no_grad():
            layer(x, edge_index)
    assert captured.captures == 1
    for _ in range(4):
        captured()
        expected = layer(x, edge_index)
        with warploom.pyg.accelerate(), torch.no_grad():
            for _ in range(2):
                close(layer(x, edge_index), expected.detach(), 1e-5)


def test_a_graph_of_the_user_computes_the_product(monkeypatch):
    """Its replays see no change of X; captures of `capture` look for one before."""
    layer, x, edge_index = pyg.GCNConv(12, 3), features(NODES, 12), edges(EDGES)
    with warploom.pyg.accelerate():
        for _ in range(2):
            layer(x, edge_index)
        monkeypatch.setattr(_kept, "is_capturing", lambda tensor: True)
        orders()
        layer(x, edge_index)
        assert not any("kept" in text for text in orders())
        with recorded() as states:
            layer(x, edge_index)
        assert any("kept" in text for text in orders())
        assert any(state is kept()[0] for state, _ in states)


def test_a_graph_of_the_user_takes_the_cheaper_order(monkeypatch):
    """Its products were kept before, so no eager call has chosen an order by expected times."""
    layer, x, edge_index = pyg.SAGEConv(12, 3), features(NODES, 12), edges(EDGES)
    with warploom.pyg.accelerate():
        for _ in range(3):
            expected = layer(x, edge_index)
        for module in (_kept, _orders):
            monkeypatch.setattr(module, "is_capturing", lambda tensor: True)
        orders()
        close(layer(x, edge_index), expected, 1e-5)
        assert list(orders()) == ["A (X W), by the columns"]


def test_features_in_the_memory_of_a_graph_are_not_kept(monkeypatch):
    x = features(NODES, 12)
    place = x.untyped_storage().data_ptr()
    assert not _kept._lies_in_graph(x)
    on_gpu = type("Features", (), {"is_cuda": True, "untyped_storage": x.untyped_storage})()
    for pool, expected in (((0, 0), False), ((0, 1), True)):
        segment = {"address": place - 64, "total_size": 128, "segment_pool_id": pool}
        monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: [segment])  # noqa: B023
        assert _kept._lies_in_graph(on_gpu) is expected


# ---- random schedules ----------------------------------------------------------------------------


class Schedule:
    """A model of two layers, and changes of what its step uses."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        torch.manual_seed(seed)
        sizes = [self.random.choice((2, 5, 9)) for _ in range(3)]
        names = [
            self.random.choice([name for name in LAYERS if not name.startswith("gin")]),
            self.random.choice(list(LAYERS)),
        ]
        layers = [LAYERS[name](*size) for name, size in zip(names, (sizes[:2], sizes[1:]))]
        if self.random.random() < 0.2:
            names.insert(at := self.random.choice((0, 1)), "appnp")
            layers.insert(at, pyg.APPNP(K=2, alpha=0.1, dropout=self.random.choice((0.0, 0.3))))
        self.weighted = [name in WEIGHTED for name in names]
        self.layers = torch.nn.ModuleList(layers).double()
        self.inputs = sizes[0]
        self.dropout = self.random.choice((0.0, 0.0, 0.3))
        self.new_x(), self.new_edges(), self.new_weights()
        self.options = {}

    def forward(self):
        x, dropped = self.x, torch.nn.functional.dropout
        if self.random.random() < 0.1:
            x = dropped(x, self.dropout, self.layers.training)
        for layer, weighted in zip(self.layers, self.weighted):
            x = layer(x, self.edges, *([self.weights] if weighted else []))
            x = dropped(x.relu(), self.dropout, self.layers.training)
        return x

    def step(self, is_accelerated):
        torch.manual_seed(5)
        state = self.random.getstate()
        mode = {"grad": torch.enable_grad, "none": torch.no_grad, "inference": torch.inference_mode}
        mode = mode[self.random.choice(("grad", "grad", "grad", "none", "inference"))]
        with mode():
            out = self.forward()
            leaves = [*self.layers.parameters(), self.x, self.weights]
            leaves = [leaf for leaf in leaves if leaf.requires_grad]
            found = [out.detach()]
            if out.requires_grad:
                found += torch.autograd.grad(out.pow(2).sum(), leaves, allow_unused=True)
        if not is_accelerated:
            self.random.setstate(state)
        return found

    # What may change at any moment.

    def new_x(self):
        self.x = torch.randn(NODES, self.inputs, dtype=torch.float64)

    def new_edges(self):
        self.edges = edges(EDGES, NODES, seed=self.random.randrange(9))

    def new_weights(self):
        self.weights = torch.rand(EDGES, dtype=torch.float64)

    def change_x(self):
        with torch.no_grad():
            self.x[self.random.randrange(NODES)] += 1

    def change_edges(self):
        self.edges[1, self.random.randrange(EDGES)] = self.random.randrange(NODES)

    def change_weights(self):
        with torch.no_grad():
            self.weights[self.random.randrange(EDGES)] += 1

    def move_x(self):
        self.x.data = self.x.data + 1

    def change_parameters(self):
        with torch.no_grad():
            for parameter in self.layers.parameters():
                parameter += 0.01

    def switch_training(self):
        self.layers.train(not self.layers.training)

    def switch_gradient(self):
        one = self.random.choice((self.x, self.weights))
        one.requires_grad_(not one.requires_grad)

    def switch_options(self):
        self.options = {
            "reorder": self.random.random() < 0.7, "keep": self.random.choice((0, 500, 2**30))
        }  # fmt: skip

    def nothing(self):
        pass

    CHANGES = (
        new_x, new_edges, new_weights, change_x, change_edges, change_weights, move_x,
        change_parameters, switch_training, switch_gradient, switch_options,
        *[nothing] * 12,
    )  # fmt: skip


def test_results_are_pygs_after_any_change(monkeypatch):
    """In random schedules of steps and changes."""
    by_columns(monkeypatch, "simple")
    found_orders = set()
    for seed in range(FULL) if os.environ.get("WARPLOOM_FULL") else SCHEDULES:
        schedule = Schedule(seed)
        for _ in range(10):
            schedule.random.choice(Schedule.CHANGES)(schedule)
            expected = schedule.step(False)
            with warploom.pyg.accelerate(**schedule.options):
                found = schedule.step(True)
            for left, right in zip(found, expected, strict=True):
                assert (left is None) == (right is None), seed
                if left is not None:
                    scale = float(right.abs().max()) + 1
                    assert float((left - right).abs().max()) <= 1e-9 * scale, seed
        for texts in warploom.pyg.report(reset=True, orders=True).values():
            found_orders |= {text.partition(": ")[2][:12] for text in texts}
    assert {"(A X) W, A X", "A (X W), exp", "(A X) W, exp"} <= found_orders
