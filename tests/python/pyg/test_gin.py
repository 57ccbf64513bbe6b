"""GINConv with a constant eps: the product also adds (1 + eps) * x, which PyG does afterwards."""

import copy
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import GINConv

import warploom.pyg
from small_graphs import edges, features


class Sums(TorchDispatchMode):
    """Counts products, and additions and multiplications of more than one element."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name = function._schema.name.split("::")[1]
        is_sum = name.strip("_") in ("add", "mul", "addcmul")
        if name.startswith("spmm") or (is_sum and out.numel() > 1):
            self.counts[name] += 1
        return out


def make(eps=0.3, **kwargs):
    return GINConv(torch.nn.Linear(8, 5), eps=eps, **kwargs)


def step(layer, x, *arguments):
    """The result and the gradients of features and parameters."""
    leaves = [*layer.parameters(), *(x if isinstance(x, tuple) else (x,))]
    leaves = [leaf for leaf in leaves if leaf is not None and leaf.requires_grad]
    out = layer(x, *arguments)
    weight = torch.linspace(-1, 1, out.numel()).view_as(out)
    return [out.detach(), *torch.autograd.grad((out * weight).sum(), leaves)]


def compare(layer, x, *arguments, tolerance=1e-4):
    """Compare steps on warploom with PyG's; returns the counted calls."""
    expected = step(copy.deepcopy(layer), x, *arguments)
    warploom.pyg.report(reset=True)
    with warploom.pyg.accelerate():
        for _ in range(3):
            found = step(layer, x, *arguments)
            torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)
    return warploom.pyg.report(reset=True)[type(layer).__name__]


def test_operations_of_a_step():
    layer, x = GINConv(torch.nn.Identity()), features(30).requires_grad_()
    with warploom.pyg.accelerate():
        for seed in range(2):
            with Sums() as sums:
                out = layer(x, edges(120, seed=seed))
            assert sums.counts == {"spmm": 1}
            before = [node for node, _ in out.grad_fn.next_functions if node is not None]
            assert [node.name() for node in before] == ["torch::autograd::AccumulateGrad"]
            gradient = torch.ones_like(out)
            with Sums() as sums:
                torch.autograd.grad(out, x, gradient)
            assert sums.counts == {"spmm_backward": 1}
            with Sums() as sums:
                assert not layer(x.detach(), edges(120, seed=seed)).requires_grad
            assert sums.counts == {"spmm": 1}


@pytest.mark.parametrize("aggr", ["sum", "max"])
def test_gradients(aggr):
    layer, edge_index = make(aggr=aggr).double(), edges(30, 10)
    x = features(10, dtype=torch.float64).requires_grad_()
    with warploom.pyg.accelerate():
        for _ in range(3):  # the graph is kept from the second step on
            torch.autograd.gradcheck(lambda x: layer(x, edge_index), [x], fast_mode=True)
        if aggr == "sum":
            torch.autograd.gradgradcheck(
                lambda x: layer(x.tanh(), edge_index).square(), [x], fast_mode=True
            )


def of_eps(eps):
    layer = make()
    layer.eps = eps
    return layer


def frozen():
    layer = make(train_eps=True)
    layer.eps.requires_grad_(False)
    return layer


LAYERS = {
    "constant": make,
    "trained": lambda: make(train_eps=True),
    "frozen": frozen,
    "of 64 bits": lambda: of_eps(torch.tensor([0.3], dtype=torch.float64)),
    "without dimensions": lambda: of_eps(torch.tensor(0.3)),
    "for each feature": lambda: of_eps(torch.linspace(-1, 1, 8)),
    "of three dimensions": lambda: of_eps(torch.full((1, 1, 1), 0.3)),
    "target_to_source": lambda: make(flow="target_to_source"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_eps(name):
    layer, x = LAYERS[name](), features(30).requires_grad_()
    if name == "of 64 bits":
        layer.nn = layer.nn.double()
    assert compare(layer, x, edges(120)) == {"warploom": 3}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_eps_that_widens(dtype):
    """PyG adds features of 16 bits and an eps of 32 bits in 32 bits."""
    layer, x = make(), features(30, dtype=dtype).requires_grad_()
    assert compare(layer, x, edges(120), tolerance=3e-2) == {"warploom": 3}


@pytest.mark.parametrize("grads", [(True, True), (True, False), (False, True)])
def test_targets(grads):
    source, target = (features(30, seed=k).requires_grad_(grad) for k, grad in enumerate(grads))
    assert compare(make(), (source, target), edges(120)) == {"warploom": 3}


@pytest.mark.parametrize("kind", ["pair", "no target", "size"])
def test_one_kind_of_nodes(kind):
    x = features(30).requires_grad_()
    size = (30, 30) if kind == "size" else None
    given = {"pair": (x, x), "no target": (x, None), "size": x}[kind]
    layer, edge_index = make(), edges(120)
    expected = layer(given, edge_index, size)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(given, edge_index, size), expected)


def test_wrong_size():
    with warploom.pyg.accelerate(), pytest.raises(ValueError, match="expected size 31"):
        make()(features(30), edges(120), (30, 31))


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_matrix_of_one_column():
    """PyG's sum has a row for each of the matrix, and repeats x."""
    matrix = torch.ones(7, 1).to_sparse_csr()
    layer, x = make(), features(1).requires_grad_()
    assert compare(layer, x, matrix) == {"warploom": 3}


def test_eps_is_read_in_each_step():
    """PyG writes it through .data, which no version counts."""
    layer, x, edge_index = make(), features(30).requires_grad_(), edges(120)
    for eps in (0.0, 2.0, -1.0):
        layer.eps.data.fill_(eps)
        expected = layer(x, edge_index)
        with warploom.pyg.accelerate():
            found = layer(x, edge_index)
        layer.eps.data.fill_(9.0)
        torch.testing.assert_close(found, expected)
        gradients = [torch.autograd.grad(out.sum(), x)[0] for out in (found, expected)]
        torch.testing.assert_close(*gradients)


def test_deterministic():
    layer, x = make(), features(30).requires_grad_()
    torch.use_deterministic_algorithms(True)
    try:
        assert compare(layer, x, edges(120)) == {"warploom": 3}
    finally:
        torch.use_deterministic_algorithms(False)


def hooked():
    layer = make()
    layer.register_propagate_forward_hook(lambda module, inputs, out: 2 * out)
    return layer


def replaced(name, function):
    layer = make()
    setattr(layer, name, function)
    return layer


OTHERS = {
    "hooks": hooked,
    "a method of the layer was replaced": lambda: replaced("message", lambda x_j: 3 * x_j),
    "aggregation MulAggregation": lambda: make(aggr="mul"),
}


@pytest.mark.parametrize("reason", OTHERS)
def test_calls_that_are_left_to_pyg(reason):
    layer, x = OTHERS[reason](), features(30).requires_grad_()
    edge_index = edges(120)[:, edges(120)[1].argsort()]
    assert compare(layer, x, edge_index) == {reason: 3}


def test_a_replaced_propagate_is_called():
    layer = replaced("propagate", lambda edge_index, x, size: 5 * x[0])
    expected = layer(features(30), edges(120))
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(features(30), edges(120)), expected)


def test_nn_is_called_as_a_module():
    layer, seen = make(), []
    layer.nn.register_forward_hook(lambda module, inputs, out: seen.append(out))
    with warploom.pyg.accelerate():
        assert layer(features(30), edges(120)) is seen[0]
