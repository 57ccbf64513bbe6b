"""Layers whose message is traced: results and gradients of PyG, without tensors of edges x n."""

import copy
import re
import types
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import EdgeIndex
from torch_geometric import nn as pyg
from torch_geometric.data import Batch, Data
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.schnet import CFConv

import warploom.pyg
from layer_cases import CASES, EDGES, NODES, draw, graph
from warploom.pyg import _install, _names, _roads, _sorted, _walks

TOLERANCE = 1e-4
STEPS = 3
NARROW = 4  # columns that tensors of edges may have; the messages of the cases have 6 and more


class Sizes(TorchDispatchMode):
    """Notes the largest result of any operation."""

    def __init__(self):
        super().__init__()
        self.largest = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for part in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(part, torch.Tensor):
                self.largest = max(self.largest, part.numel())
        return out


pytestmark = pytest.mark.usefixtures("fresh")


def cast(value, dtype):
    if isinstance(value, (tuple, list)):
        return tuple(cast(part, dtype) for part in value)
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().to(dtype).requires_grad_()
    return value


def leaves_of(value):
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves_of(part)]
    return [value] if isinstance(value, torch.Tensor) and value.requires_grad else []


def run(layer, inputs, edge_index, dtype):
    """The result and all gradients of a weighted sum of it."""
    return step(copy.deepcopy(layer).to(dtype), inputs, edge_index, dtype)


def step(layer, inputs, edge_index, dtype):
    inputs = {name: cast(value, dtype) for name, value in inputs.items()}
    out = layer(edge_index=edge_index, **inputs)
    weight = torch.arange(out.numel(), dtype=torch.float64).sin().view_as(out)
    leaves = leaves_of([*inputs.values(), *layer.parameters()])
    grads = torch.autograd.grad((out * weight.to(dtype)).sum(), leaves, allow_unused=True)
    return [out.detach(), *(grad for grad in grads if grad is not None)]


def compare(found, expected, tolerance=TOLERANCE):
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        scale = max(1.0, float(want.abs().max()))
        torch.testing.assert_close(
            got.double() / scale, want / scale, rtol=tolerance, atol=tolerance
        )


def check(layer, inputs, edge_index):
    """Compare steps with PyG's in float64; returns the reports of all layers in it."""
    expected = run(layer, inputs, edge_index, torch.float64)
    layer = copy.deepcopy(layer).float()
    with warploom.pyg.accelerate():
        for _ in range(STEPS):
            compare(step(layer, inputs, edge_index, torch.float32), expected)
    return warploom.pyg.report(reset=True)


@pytest.mark.parametrize("name", CASES)
def test_layer(name):
    torch.manual_seed(1)
    make, inputs = CASES[name]
    counts = check(make(), inputs, graph())
    assert counts
    for reasons in counts.values():
        assert list(reasons) == ["warploom"]


def test_the_documented_layers_are_these():
    root = Path(__file__).parents[3]
    page = (root / "docs" / "pyg-layers.md").read_text()
    listed = page.partition("<!-- served layers")[2].partition("<!-- end of the served")[0]
    served = {type(make()).__name__ for make, _ in CASES.values()}
    assert set(re.findall(r"`(\w+)`", listed)) == served
    assert len(served) >= 32
    assert f"[{len(served)} layers of PyG]" in (root / "README.md").read_text()


@pytest.mark.parametrize(
    "name", [name for name, (_, given) in CASES.items() if "edge_attr" not in given]
)
def test_no_tensor_of_edges_and_features(name):
    torch.manual_seed(1)
    make, inputs = CASES[name]
    with warploom.pyg.accelerate(), Sizes() as sizes:
        run(make(), inputs, graph(), torch.float32)
    assert sizes.largest <= NARROW * (EDGES + NODES)


# ---- layers as users write them ------------------------------------------------------------------


class Gated(MessagePassing):
    """No layer of PyG: gates by both ends, a feature of edges, a learnt scale, and an update."""

    def __init__(self, aggr="sum", **options):
        super().__init__(aggr=aggr, **options)
        self.source, self.target = nn.Linear(8, 6), nn.Linear(8, 6, bias=False)
        self.edge = nn.Linear(5, 6)
        self.scale = nn.Parameter(torch.full((6,), 0.7))
        self.shift = nn.Parameter(torch.tensor(0.3))

    def forward(self, x, edge_index, edge_attr, size=None):
        x = x if isinstance(x, tuple) else (x, x)
        return self.propagate(edge_index, x=x, edge_attr=edge_attr, size=size)

    def message(self, x_i, x_j, edge_attr):
        gate = torch.sigmoid(self.target(x_i) + self.edge(edge_attr)) * self.scale
        return gate * torch.nn.functional.silu(self.source(x_j)) - self.shift * 0.5

    def update(self, inputs, x):
        return inputs.tanh() * (1 + x[1][:, :1])


FEATURES = {"edge_attr": draw(EDGES, 5, seed=3)}


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("aggr", ["sum", "mean", "max", ["min", "std"]])
def test_a_layer_of_the_user(aggr, flow):
    torch.manual_seed(1)
    layer = Gated(aggr, flow=flow)
    inputs = {"x": draw(NODES, 8), **FEATURES}
    assert check(layer, inputs, graph()) == {"Gated": {"warploom": STEPS}}


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_features_of_both_ends(flow):
    """PyG takes the first ones for x_j in both flows."""
    torch.manual_seed(1)
    inputs = {"x": (draw(NODES, 8), draw(NODES, 8, seed=7)), **FEATURES}
    assert check(Gated(flow=flow), inputs, graph()) == {"Gated": {"warploom": STEPS}}


@pytest.mark.parametrize("size", [None, (NODES, 20)])
def test_bipartite(size):
    torch.manual_seed(1)
    inputs = {"x": (draw(NODES, 8), draw(20, 8, seed=7)), "size": size, **FEATURES}
    assert check(Gated(), inputs, graph(targets=20)) == {"Gated": {"warploom": STEPS}}


def test_wrong_size():
    inputs = {"x": draw(NODES, 8), "size": (NODES, 20), **FEATURES}
    with warploom.pyg.accelerate(), pytest.raises(ValueError, match="expected size 20"):
        run(Gated(), inputs, graph(), torch.float32)


@pytest.mark.parametrize("order", [None, "row", "col"])
def test_edge_index_of_pyg(order):
    torch.manual_seed(1)
    edge_index = EdgeIndex(graph(), sparse_size=(NODES, NODES))
    if order is not None:
        edge_index = edge_index.sort_by(order).values
    inputs = {"x": draw(NODES, 8), **FEATURES}
    assert check(Gated(), inputs, edge_index) == {"Gated": {"warploom": STEPS}}


def own(message, aggr="sum", **options):
    """A layer with this message, which may read the layer's `lin` and `weight`."""
    # PyG looks for the name.
    message = types.FunctionType(message.__code__, message.__globals__, "message")
    layer = type("Own", (MessagePassing,), {"message": message, "forward": forward})
    layer = layer(aggr=aggr, **options)
    torch.manual_seed(1)
    layer.lin = nn.Linear(8, 8)
    layer.weight = nn.Parameter(draw(8, 3).float())
    return layer


def forward(self, x, edge_index, w=None):
    return self.propagate(edge_index, x=x, w=w)


def weighted(self, x_j, w):
    return w.view(-1, 1) * x_j


def softened(self, x_j):
    return x_j.softmax(-1)


def by_sum(self, x_j):
    return x_j * x_j.sum(-1, keepdim=True)


def by_width(self, x_j):
    return x_j * x_j.size(-1)


def by_column(self, x_j):
    return x_j * self.weight[:, 0]


def by_product(self, x_i, x_j, w):
    return (x_i * x_j).sum(-1, keepdim=True) * x_j + w.view(-1, 1)


@pytest.mark.parametrize(
    "message",
    [weighted, softened, by_sum, by_width, by_column, by_product],
    ids=lambda m: m.__name__,
)
@pytest.mark.parametrize("aggr", ["sum", "max"])
def test_several_signals(message, aggr):
    layer, edge_index, width = own(message, aggr), graph(), 8
    inputs = {"w": draw(EDGES, seed=2)}
    deep = inputs | {"x": draw(2, NODES, width)}
    assert check(layer, deep, edge_index) == {"Own": {"warploom": STEPS}}
    if message is not by_column:  # whose weights have another width
        check(layer, inputs | {"x": draw(NODES, 2 * width)}, edge_index)
        check(layer, deep, edge_index)


def relu_of_both(self, x_i, x_j):
    h = self.lin(x_i) + self.lin(x_j)
    return torch.relu_(h) + h  # h has changed


def in_place(self, x_i, x_j):
    x_j += x_i
    return x_j * x_j


def heads(self, x_i, x_j):
    q, k = x_i.view(-1, 2, 4), self.lin(x_j).view(x_j.size(0), 2, 4)
    weight = torch.exp(-((q - k) ** 2).sum(dim=-1, keepdim=True))
    return (weight * k).flatten(1)


def halves(self, x_i, x_j):
    left, right = x_j.chunk(2, dim=-1)
    return left * x_i[:, 4:] + right


def shared(self, x_i, x_j):
    return 2 - (x_j @ self.weight) / (1 + x_i.abs()[:, :3])


def of_edges(self, x_j, w):
    return self.lin(w)


def of_one_end(self, x_i):
    return torch.softmax(self.lin(x_i), dim=-1)


def clamped(self, x_i, x_j, w):
    return (x_j - x_i).clamp(min=-0.5).pow(2) * torch.nn.functional.elu(w + x_j)


def clamped_above(self, x_i, x_j):
    return 2 - (x_j - x_i).clamp(max=0.5) * x_j


def mean_of_line(self, x_i, x_j):
    return x_j - (x_i * x_j).mean(dim=-1, keepdim=True)


def copies(self, x_i, x_j):
    h = x_i * x_j
    copy = h.clone()
    copy += 1
    return copy * h


def narrow_in_place(self, x_i, x_j):
    alpha = (x_i * x_j).sum(-1)
    beta = x_i[:, 0] + x_j[:, 0]
    alpha.clamp_(min=0)
    beta.cumsum(0)
    beta.mul_(2)
    return (alpha * beta).unsqueeze(1) * x_j


def numbers(self, x_j, w):
    return (x_j + True) * torch.nn.functional.leaky_relu(w[:, 0], 0.1).unsqueeze(-1)


def shapes(self, x_i, x_j):
    both = x_i.view(-1, 2, 2, 2) * x_j.view(-1, 2, 2, 2)
    both = torch.stack([both.flatten(1, 2).flatten(1)], 1).squeeze(1)
    return both.squeeze(1).unsqueeze(-2).squeeze() + x_j.repeat(1, 2)[..., 4:12]


def computes_with_joined(self, x_i, x_j):
    return torch.cat([x_i, x_j], -1).sigmoid()


def part_of_joined(self, x_i, x_j):
    return torch.cat([x_i, x_j.square()], -1)[..., 4:12] * x_j


def parameters(self, x_i, x_j):
    bias = self.lin.bias
    ratio = bias / (2 + x_i.abs() + x_j.abs()) - (x_i + x_j) / (2 + bias)
    return ratio + torch.maximum(bias, x_j) + torch.minimum(x_i * x_j, bias)


def one_end_twice(self, x_i, x_j):
    return x_i.sigmoid() / (1 + x_i.exp()) * torch.minimum(x_j, x_j.neg())


def map_of_a_difference(self, x_i, x_j):
    map_without_bias = torch.nn.functional.linear(x_j - x_i, self.weight.t())
    return map_without_bias + self.lin(x_i - x_j)[:, :3]


def options(self, x_i, x_j):
    functional, h = torch.nn.functional, x_i * x_j
    h = functional.dropout(functional.dropout(h, 0.5, False), 0.0)
    h = functional.softplus(h, 1, 20) + functional.elu(h, 1.0)
    return functional.leaky_relu(h, 0.3, True) * functional.celu(x_j, 0.5)


@pytest.mark.parametrize(
    "message",
    [
        *(relu_of_both, in_place, heads, halves, shared, of_edges, of_one_end, clamped),
        *(clamped_above, mean_of_line, numbers, copies, narrow_in_place, shapes, parameters),
        *(one_end_twice, map_of_a_difference, options, computes_with_joined, part_of_joined),
    ],
)
@pytest.mark.parametrize("aggr", ["sum", "max"])
def test_messages_of_users(message, aggr):
    inputs = {"x": draw(NODES, 8), "w": draw(EDGES, 8, seed=5)}
    assert check(own(message, aggr), inputs, graph()) == {"Own": {"warploom": STEPS}}


def gathered(self, x_j, w, index):
    return w.gather(0, index[:, None].expand_as(w)) * x_j


@pytest.mark.parametrize("kind", ["min", "max", "mul", "gathered"])
def test_edges_of_int32(kind):
    """PyTorch's gather with an expanded index of int32 is wrong on the CPU, where PyG calls it."""
    layer = own(gathered, "sum") if kind == "gathered" else pyg.SimpleConv(aggr=kind)
    inputs = {"x": draw(NODES, 8)}
    if kind == "gathered":
        inputs["w"] = draw(EDGES, 8, seed=5)
    expected = run(layer, inputs, graph(), torch.float64)
    with warploom.pyg.accelerate():
        for _ in range(STEPS):
            compare(step(layer.float(), inputs, graph().int(), torch.float32), expected)


def power_of_zero(self, x_i, x_j):
    return (x_i - x_j) ** 0 + x_j


def of_equals(self, x_i, x_j):
    return torch.maximum(x_i + x_j, x_i * x_j) - torch.minimum(x_i, x_j)


@pytest.mark.parametrize("message", [power_of_zero, of_equals])
def test_equal_features(message):
    """The gradients at zero, and of ties."""
    inputs = {"x": draw(NODES, 8).round()}
    assert check(own(message), inputs, graph()) == {"Own": {"warploom": STEPS}}


def with_number(self, x_i, x_j):
    return self.number + x_i * x_j * self.number


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("number", [torch.tensor(0.5).double(), torch.tensor(True), True])
def test_numbers_change_no_type(number, dtype):
    layer = own(with_number)
    layer.number = number
    x = draw(NODES, 8).to(dtype)
    expected = layer(x, graph())
    with warploom.pyg.accelerate():
        found = layer(x, graph())
    scale = expected.abs().max()
    torch.testing.assert_close(found / scale, expected / scale, rtol=0, atol=2e-2)
    assert warploom.pyg.report() == {"Own": {"warploom": 1}}


def widened(self, x_j):
    return x_j.float() * 2


@pytest.mark.parametrize("dtype", [torch.float8_e5m2, torch.int64])
def test_features_of_a_type_that_no_kernel_reads(dtype):
    layer, x = own(widened), (4 * draw(NODES, 8)).to(dtype)
    expected = layer(x, graph())
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(x, graph()), expected)
    assert warploom.pyg.report() == {"Own": {f"features of type {dtype}": 1}}


def branches(self, x_j):
    if x_j.sum(-1).max() > 0:
        return x_j
    return -x_j


def asks(self, x_j):
    return x_j if x_j else -x_j


def over_all(self, x_j):
    return x_j - x_j.mean()


def along_edges(self, x_j):
    return x_j.cumsum(0)


def two_layers(self, x_i, x_j):
    return self.lin(torch.relu(x_i + x_j))


def joins(self, x_i, x_j):
    return self.lin(torch.cat([x_i[:, :4] * x_j[:, :4], x_j[:, 4:]], dim=-1))


def drops(self, x_j):
    return torch.nn.functional.dropout(x_j, 0.5)


def mixes(self, x_j):
    return x_j.view(-1, 4)[: x_j.size(0)]


def without_gradients(self, x_i, x_j):
    with torch.no_grad():
        gate = torch.sigmoid(x_i + x_j)
    return gate * x_j


def writes(self, x_j, w):
    gate = w.sigmoid()
    out = x_j * gate
    gate.mul_(2)
    return out


def writes_to_a_view(self, x_i, x_j):
    h = x_i * x_j
    h.view(-1, 2, 4).mul_(2)
    return h


def deeper(self, x_j):
    return x_j.view(-1, 2, 4)


def writes_to_a_part(self, x_i, x_j):
    x_j[:, 0] = 0.0
    return x_i * x_j


def other_options(self, x_i, x_j):
    return torch.nn.functional.softplus(x_i * x_j, threshold=1, beta=20)  # swapped defaults


def other_type(self, x_i, x_j):
    return x_j * (x_i * x_j).mean(-1, keepdim=True, dtype=torch.float64)


def other_sizes(self, x_i, x_j):
    return torch.split(x_j, [2, 3], dim=1)[0]  # an error in PyTorch


def transposed(self, x_j):
    return x_j.T.T


def clamps_by_edges(self, x_i, x_j, w):
    return (x_i * x_j).clamp(min=w)


def power_of_edges(self, x_i, x_j, w):
    return (x_i * x_j).square() ** w


def integers(self, x_j):
    return x_j * torch.arange(8)


def infinite(self, x_i, x_j):
    return (x_i * x_j) * float("inf")


def other_lines(self, x_i, x_j):
    return x_i * x_j + torch.ones(7, 8)  # an error in PyTorch


def more_dimensions(self, x_i, x_j):
    return (x_i * x_j + torch.ones(2, 1, 8))[0]


def joins_other_lines(self, x_i, x_j):
    return torch.cat([x_i * x_j, torch.ones(1, 8)], -1)  # an error in PyTorch


def joins_within_lines(self, x_i, x_j):
    return torch.cat([x_i.view(-1, 2, 4), x_j.view(-1, 2, 4)], 1).flatten(1)


def repeats(self, x_i, x_j):
    return (x_i * x_j).repeat(1, 2)


def normalises(self, x_i, x_j):
    return torch.nn.functional.layer_norm(x_i * x_j, (8,))


def matrix_of_each_edge(self, x_j, w):
    return (x_j.unsqueeze(1) @ w.view(-1, 8, 1)).flatten(1) * x_j


def adds_to_a_map(self, x_i, x_j):
    return self.lin(x_i * x_j) + 1.0


def uses_a_map(self, x_i, x_j):
    return torch.relu(self.lin(x_i * x_j))


def gathers(self, x_j):
    return self.weight[x_j]  # an error in PyTorch


def several_results(self, x_j):
    return x_j, x_j  # an error in PyTorch


def sum_over_edges(self, x_i, x_j):
    return (x_i * x_j).sum(0, keepdim=True).expand(x_j.size(0), -1)


def with_factor(self, x_i, x_j):
    return torch.add(x_i, x_j, alpha=2)


REASONS = {
    deeper: "the message has edges in another dimension than features have nodes",
    asks: "the message's control flow depends on features of edges",
    over_all: "the message reduces over all edges",
    along_edges: "the message calls cumsum of features of edges",
    two_layers: "the message ends with a linear map of both ends before its max",
    joins: "the message joins computed values",
    drops: "the message calls dropout of features of edges",
    mixes: "the message mixes edges and features in a view",
    without_gradients: "the message turns gradients on or off",
    writes: "the message writes to a tensor that it has read",
    writes_to_a_part: "the message writes to some features of edges",
    other_options: "the message calls softplus of features of edges",
    other_type: "the message reduces features in another type",
    other_sizes: "the message splits features into parts of another sum",
    writes_to_a_view: "the message writes features of edges in place (mul)",
    transposed: "the message reads the attribute T of features of edges",
    clamps_by_edges: "the message clamps by a tensor",
    power_of_edges: "the message calls pow with an exponent that is no number",
    integers: "the message computes with torch.int64",
    infinite: "the message computes with float",
    other_lines: "the message computes with a tensor that does not match the edges",
    more_dimensions: "the message broadcasts edges over another dimension",
    joins_other_lines: "the message joins features of edges with a tensor of other lines",
    joins_within_lines: "the message joins features of edges, but not in the last dimension",
    repeats: "the message repeats features of edges",
    normalises: "the message normalises values of both ends",
    matrix_of_each_edge: "the message multiplies features of edges by a matrix for each edge",
    adds_to_a_map: "the message adds to a linear map of both ends",
    uses_a_map: "the message uses a linear map of both ends further",
    gathers: "the message gathers by features of edges",
    several_results: "the message is not a tensor of edges",
    sum_over_edges: "the message computes along the dimension of edges",
    with_factor: "the message calls add of features of edges",
}


@pytest.mark.parametrize("message", REASONS)
def test_messages_that_are_left_to_pyg(message):
    layer, x = own(message, "max"), draw(NODES, 8).float()

    def step():
        torch.manual_seed(3)
        try:
            return layer(x, graph(), draw(EDGES, 8, seed=5).float())
        except Exception as error:  # of PyG itself
            return str(error)

    expected = step()
    with warploom.pyg.accelerate():
        for _ in range(3):
            found = step()
            if isinstance(expected, str):
                assert found == expected
            else:
                torch.testing.assert_close(found, expected, equal_nan=True)
    assert warploom.pyg.report() == {"Own": {REASONS[message]: 3}}


def test_a_reason_is_that_of_the_call(monkeypatch):
    """A message that is refused is not tried again with arguments of the same kinds."""
    calls = []
    monkeypatch.setitem(globals(), "note", calls.append)
    layer, x = own(sometimes, "max"), draw(NODES, 8).float()
    with warploom.pyg.accelerate():
        for _ in range(3):
            layer(x, graph())
        assert len(calls) == 4  # once more in the first call
        layer.eval()
        layer(x, graph())
    assert list(warploom.pyg.report()["Own"].values()) == [3, 1]


def sometimes(self, x_j):
    note(self.training)  # noqa: F821
    return x_j.cumsum(0) if self.training else x_j


@pytest.mark.parametrize("name", ["LE", "Edge", "Edge_two_layers", "FiLM", "GINE", "PNA"])
def test_autocast(name):
    torch.manual_seed(1)
    make, inputs = CASES[name]
    layer, inputs = make(), {name: cast(value, torch.float32) for name, value in inputs.items()}
    with torch.autocast("cpu", torch.bfloat16):
        expected = layer(edge_index=graph(), **inputs)
        with warploom.pyg.accelerate():
            found = layer(edge_index=graph(), **inputs)
    assert found.dtype == expected.dtype
    close = 0.05 * float(expected.detach().abs().max())
    torch.testing.assert_close(found, expected, rtol=0.05, atol=close)
    assert list(warploom.pyg.report()[type(layer).__name__]) == ["warploom"]


def test_no_number_of_nodes():
    layer = own(lambda self, w: w)
    inputs = {"x": draw(NODES, 8), "w": draw(EDGES, 8, seed=5)}
    assert check(layer, inputs, graph()) == {"Own": {"the number of nodes is not given": STEPS}}


@pytest.mark.parametrize("edges", [0, 1])
def test_few_edges(edges):
    layer = own(in_place)
    counts = check(layer, {"x": draw(NODES, 8)}, graph()[:, :edges])
    assert counts == {"Own": {"warploom" if edges else "empty graph or features": STEPS}}


class Relations(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = pyg.SAGEConv((8, 8), 8), pyg.GeneralConv((8, 8), 8)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def hetero_inputs(dtype):
    x = {"a": draw(NODES, 8).to(dtype), "b": draw(20, 8, seed=7).to(dtype)}
    edges = {("a", "to", "b"): graph(targets=20), ("b", "back", "a"): graph(20, targets=NODES)}
    return x, edges | {("a", "own", "a"): graph(seed=5)}


@pytest.mark.parametrize("kind", ["to_hetero", "HeteroConv"])
def test_kinds_of_nodes(kind):
    torch.manual_seed(1)
    x, edges = hetero_inputs(torch.float64)
    if kind == "to_hetero":
        model = pyg.to_hetero(Relations(), (list(x), list(edges))).double()
    else:
        model = pyg.HeteroConv({name: pyg.LEConv((8, 8), 6) for name in edges}).double()
    expected = model(x, edges)
    x, edges = hetero_inputs(torch.float32)
    with warploom.pyg.accelerate():
        found = model.float()(x, edges)
    for name, want in expected.items():
        compare([found[name]], [want.detach()])
    for reasons in warploom.pyg.report().values():
        assert list(reasons) == ["warploom"]


def test_batches_of_small_graphs():
    torch.manual_seed(1)
    parts = [Data(x=draw(n, 8, seed=n), edge_index=graph(n, 3 * n, seed=n)) for n in (5, 9, 13)]
    batch = Batch.from_data_list(parts)
    layer = pyg.ResGatedGraphConv(8, 6)
    counts = check(layer, {"x": batch.x}, batch.edge_index)
    assert counts == {"ResGatedGraphConv": {"warploom": STEPS}}


def test_control_flow_that_is_followed():
    """A branch over numbers of edges is the one of the call."""
    layer = own(branches)
    for x in (draw(NODES, 8), -draw(NODES, 8).abs()):
        assert check(layer, {"x": x}, graph()) == {"Own": {"warploom": STEPS}}


@pytest.mark.parametrize(
    "name",
    [
        *("AGNN", "APPNP", "ARMA", "ClusterGCN", "EG", "FA", "FeaSt", "GCN2", "MixHop", "PDN"),
        *("PointNet", "SG", "SSG", "Simple", "SuperGAT", "TAG"),
    ],
)
def test_edges_are_sorted_once(name, monkeypatch):
    """Also those that a layer makes of its edge_index in each step."""
    sorts, original = [], _sorted.OnceGraph
    monkeypatch.setattr(_sorted, "OnceGraph", lambda *args: sorts.append(1) or original(*args))
    make, inputs = CASES[name]
    layer, edge_index = make(), graph()
    for _ in range(3):
        with warploom.pyg.accelerate():
            run(layer, inputs, edge_index, torch.float32)
    assert len(sorts) == 1


class Potential(nn.Module):
    """The energy of atoms by their distances, as in SchNet."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 8)
        self.first = CFConv(8, 6, 7, nn.Sequential(nn.Linear(3, 7), nn.Softplus()), 10.0)
        self.second = pyg.ResGatedGraphConv(6, 5, edge_dim=3)

    def forward(self, kinds, positions, edge_index):
        away = positions[edge_index[0]] - positions[edge_index[1]]
        distance = (away.square().sum(-1) + 0.1).sqrt()
        powers = torch.stack([distance, distance.square(), distance.reciprocal()], -1)
        hidden = self.first(self.embed(kinds), edge_index, distance, powers)
        return self.second(hidden.tanh(), edge_index, powers).sum()


def test_training_on_forces():
    """The gradient of a gradient."""
    torch.manual_seed(1)
    model, edge_index = Potential().double(), graph()

    def gradients():
        positions = draw(NODES, 3, seed=4).requires_grad_()
        energy = model(draw(NODES, 4), positions, edge_index)
        (force,) = torch.autograd.grad(energy, positions, create_graph=True)
        loss = energy + force.square().sum()
        return [force.detach(), *torch.autograd.grad(loss, list(model.parameters()))]

    expected = gradients()
    with warploom.pyg.accelerate():
        for _ in range(STEPS):
            torch.testing.assert_close(gradients(), expected)
    for reasons in warploom.pyg.report().values():
        assert reasons == {"warploom": STEPS}


def test_a_version_that_was_not_tried(monkeypatch):
    monkeypatch.setattr(_names, "TRIED", ("1.0",))
    monkeypatch.setattr(_names, "PROPAGATES", ())
    monkeypatch.setattr(_names, "MAKES_PROPAGATE", "_no_such_method")
    monkeypatch.setattr(_install, "_FORWARDS", {})
    for part in ("_attention", "_compiled", "_edge_lists"):
        monkeypatch.setattr(getattr(_install, part), "install", lambda: ())
    monkeypatch.setattr(warploom.pyg, "_installed", False)
    layer, x = own(in_place), draw(NODES, 8).float()
    expected = layer(x, graph())
    with pytest.warns(UserWarning, match="was not tried|computes some layers itself") as warned:
        warploom.pyg.enable()
    try:
        torch.testing.assert_close(layer(x, graph()), expected)
    finally:
        warploom.pyg.disable()
    assert [str(warning.message).count("\n") for warning in warned] == [0, 0]


def test_little_work_stays_with_pyg(monkeypatch):
    """Unless the step is captured, where the host's time is spent once."""
    layer, x, edge_index = pyg.LEConv(5, 8), draw(NODES, 5).float(), graph()
    key = (_roads.OTHERS, "cpu")
    least = {key: edge_index.size(1) * 8}
    monkeypatch.setattr(_roads, "LEAST_WORK", least)

    def report_of_a_call():
        warploom.pyg.report(reset=True)
        with warploom.pyg.accelerate():
            layer(x, edge_index)
        return warploom.pyg.report()["LEConv"]

    assert report_of_a_call() == {"warploom": 1}
    least[key] += 1
    for _ in range(2):
        assert report_of_a_call() == {"too little work to trace a message for": 1}
    monkeypatch.setattr(_roads.step_of_thread, "is_replayed", True)
    assert report_of_a_call() == {"warploom": 1}


def test_functions_of_an_edge_stay_with_pyg_on_the_cpu(monkeypatch):
    """Each column would compute them again."""
    monkeypatch.setattr(_walks, "SLOW_REPEATS", ("cpu",))
    x, edge_index = draw(NODES, 6).float(), graph()
    with warploom.pyg.accelerate():
        for _ in range(2):
            pyg.FAConv(6)(x, x, edge_index)
            pyg.ResGatedGraphConv(6, 8)(x, edge_index)
    report = warploom.pyg.report()
    assert report["FAConv"] == {"a function that PyG computes once for all columns of an edge": 2}
    assert list(report["ResGatedGraphConv"]) == ["warploom"]
