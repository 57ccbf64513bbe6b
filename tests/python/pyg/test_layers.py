"""Layers of PyG on warploom give PyG's results and gradients."""

import copy
import warnings

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric import EdgeIndex
from torch_geometric.nn import GCNConv, GINConv, GraphConv, SAGEConv

import warploom.pyg
from small_graphs import edges, features

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 2e-2, torch.bfloat16: 1e-1}
warnings.filterwarnings("ignore", message="Sparse")


def gin(inputs, outputs, train_eps=True, **kwargs):
    return GINConv(torch.nn.Linear(inputs, outputs), eps=0.3, train_eps=train_eps, **kwargs)


LAYERS = {
    "gcn": (GCNConv, {}),
    "gcn_cached": (GCNConv, {"cached": True}),
    "gcn_improved": (GCNConv, {"improved": True}),
    "gcn_without_loops": (GCNConv, {"add_self_loops": False}),
    "gcn_without_norm": (GCNConv, {"normalize": False}),
    "gcn_max": (GCNConv, {"aggr": "max"}),
    "sage_mean": (SAGEConv, {}),
    "sage_max": (SAGEConv, {"aggr": "max"}),
    "sage_sum": (SAGEConv, {"aggr": "sum"}),
    "sage_project": (SAGEConv, {"project": True, "normalize": True}),
    "gin": (gin, {}),
    "gin_min": (gin, {"aggr": "min"}),
    "gin_constant": (gin, {"train_eps": False}),
    "gin_constant_max": (gin, {"train_eps": False, "aggr": "max"}),
    "graph": (GraphConv, {}),
    "graph_mean": (GraphConv, {"aggr": "mean"}),
    "graph_max": (GraphConv, {"aggr": "max"}),
}


def run(layer, x, *arguments):
    """Return the result and the gradients of features, weights and parameters."""
    leaves = [part for part in (x if isinstance(x, tuple) else (x,)) if part is not None]
    leaves += [part for part in arguments if isinstance(part, torch.Tensor) and part.requires_grad]
    leaves = [leaf.requires_grad_() for leaf in leaves] + list(layer.parameters())
    out = layer(x, *arguments)
    weights = torch.linspace(-1, 1, out.numel(), device=out.device, dtype=out.dtype).view_as(out)
    grads = torch.autograd.grad((out * weights).sum(), leaves, allow_unused=True)
    return [out.detach(), *(grad for grad in grads if grad is not None)]


def check(layer, x, *arguments, calls=3, served=True, tolerance=None):
    """Compare results with and without warploom, in the first step and in later ones."""
    expected = run(copy.deepcopy(layer), x, *arguments)
    warploom.pyg.report(reset=True)
    with warploom.pyg.accelerate():
        for _ in range(calls):
            found = run(layer, x, *arguments)
            assert len(found) == len(expected)
            for left, right in zip(found, expected, strict=True):
                assert left.dtype == right.dtype
                limit = TOLERANCE[right.dtype] if tolerance is None else tolerance
                torch.testing.assert_close(left, right, rtol=limit, atol=limit)
    counts = warploom.pyg.report()[type(layer).__name__]
    assert counts == {"warploom": calls} if served else "warploom" not in counts


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("name", LAYERS)
def test_edge_index(name, flow, device):
    make, kwargs = LAYERS[name]
    layer = make(8, 5, flow=flow, **kwargs).to(device)
    check(layer, features(30, device=device), edges(120, device=device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("has_grad", [False, True])
@pytest.mark.parametrize(
    "name", ["gcn", "gcn_cached", "gcn_without_norm", "graph", "graph_mean", "graph_max"]
)
def test_edge_weights(name, has_grad, device):
    make, kwargs = LAYERS[name]
    if has_grad and kwargs.get("cached"):
        pytest.skip("PyG keeps the autograd graph of the first step")
    weight = (torch.rand(120, generator=torch.Generator().manual_seed(2)) + 0.5).to(device)
    layer = make(8, 5, **kwargs).to(device)
    check(
        layer,
        features(30, device=device),
        edges(120, device=device),
        weight.requires_grad_(has_grad),
    )


@pytest.mark.parametrize("shape", [(120, 1), (120,)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_weights_of_another_type(shape, dtype):
    weight = torch.randint(1, 5, shape).to(dtype)
    layer = GraphConv(8, 5).to(torch.float64 if dtype is torch.float64 else torch.float32)
    check(layer, features(30, dtype=layer.lin_rel.weight.dtype), edges(120), weight)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["gcn", "sage_mean", "sage_max", "gin", "gin_constant"])
def test_types(name, dtype, device):
    make, kwargs = LAYERS[name]
    check(
        make(8, 5, **kwargs).to(device, dtype),
        features(30, device=device, dtype=dtype),
        edges(120, device=device),
    )


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("name", ["sage_mean", "sage_max", "gin", "gin_constant", "graph"])
def test_index_types(name, index):
    make, kwargs = LAYERS[name]
    layer, x = make(8, 5, **kwargs), features(30)
    expected = run(copy.deepcopy(layer), x, edges(120))
    with warploom.pyg.accelerate():
        torch.testing.assert_close(
            run(layer, x, edges(120, dtype=index)), expected, rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [None, (40, 20)])
@pytest.mark.parametrize("has_target", [True, False])
@pytest.mark.parametrize("name", ["sage_mean", "sage_max", "gin", "gin_constant", "graph"])
def test_bipartite(name, has_target, size, device):
    make, kwargs = LAYERS[name]
    layer = make(8 if make is gin else (8, 6), 5, **kwargs)
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.stack(
        [
            torch.randint(40, (90,), generator=generator),
            torch.randint(20, (90,), generator=generator),
        ]
    )
    x = (
        features(40, device=device),
        features(20, 8 if make is gin else 6, device) if has_target else None,
    )
    arguments = (edge_index.to(device), *([None] if name == "graph" else []), size)
    check(layer.to(device), x, *arguments)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    "name",
    [
        *("gcn", "gcn_without_norm", "sage_mean", "sage_sum", "sage_max"),
        *("gin", "gin_constant", "graph"),
    ],
)
def test_torch_sparse(name, layout, device):
    if name == "gcn" and layout == "csc":
        pytest.skip("PyG's gcn_norm refuses CSC")
    if device == "cuda" and name == "sage_max":
        pytest.skip("PyG has no max of a sparse matrix on a GPU")
    edge_index = edges(120)
    values = torch.rand(120, generator=torch.Generator().manual_seed(4)) + 0.5
    matrix = torch.sparse_coo_tensor(edge_index.flip(0), values, (30, 30)).coalesce().to(device)
    matrix = {"csr": matrix.to_sparse_csr, "csc": matrix.to_sparse_csc, "coo": lambda: matrix}[
        layout
    ]()
    make, kwargs = LAYERS[name]
    check(make(8, 5, **kwargs).to(device), features(30, device=device), matrix)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", [None, "row", "col"])
@pytest.mark.parametrize(
    "name", ["gcn", "sage_mean", "sage_max", "gin", "gin_constant", "graph", "graph_max"]
)
def test_pyg_edge_index(name, order, device):
    edge_index = EdgeIndex(edges(120), sparse_size=(30, 30)).to(device)
    if order is not None:
        edge_index = edge_index.sort_by(order).values
    make, kwargs = LAYERS[name]
    weight = [] if name != "graph" else [torch.rand(120, device=device) + 0.5]
    check(make(8, 5, **kwargs).to(device), features(30, device=device), edge_index, *weight)


@given(
    seed=st.integers(0, 2**32),
    nodes=st.integers(1, 40),
    count=st.integers(1, 200),
    n=st.integers(1, 20),
    reduce=st.sampled_from(["sum", "mean", "max", "min"]),
    has_weight=st.booleans(),
)
def test_random_graphs(seed, nodes, count, n, reduce, has_weight):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(nodes, (2, count), generator=generator)
    weight = torch.rand(count, generator=generator) + 0.5 if has_weight else None
    if has_weight and reduce in ("max", "min"):
        edge_index = edge_index.unique(
            dim=1
        )  # equal messages would tie, so repeated edges have different weights
        weight = weight[: edge_index.size(1)]
    check(GraphConv(n, 3, aggr=reduce), features(nodes, n, seed=seed), edge_index, weight, calls=2)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["gcn", "sage_mean", "sage_max", "gin_constant"])
def test_autocast(name, device):
    make, kwargs = LAYERS[name]
    layer, x, edge_index = (
        make(8, 5, **kwargs).to(device),
        features(30, device=device),
        edges(120, device=device),
    )
    with torch.autocast(device, dtype=torch.bfloat16):
        check(layer, x, edge_index, tolerance=3e-2)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "name", ["gcn", "gcn_cached", "sage_mean", "sage_max", "gin", "gin_constant"]
)
def test_without_gradients(name, mode):
    make, kwargs = LAYERS[name]
    layer, x, edge_index = make(8, 5, **kwargs), features(30), edges(120)
    with mode():
        expected = copy.deepcopy(layer)(x, edge_index)
        with warploom.pyg.accelerate():
            for _ in range(3):
                torch.testing.assert_close(layer(x, edge_index), expected)
    check(layer, x, edge_index)  # the kept graph also serves training


def test_edges_made_in_inference_mode():
    layer, x = SAGEConv(8, 5), features(30)
    with torch.inference_mode(), warploom.pyg.accelerate():
        edge_index = edges(120)
        first = layer(x, edge_index)
        edge_index[1] = edge_index[1].flip(0)
        second = layer(x, edge_index)
    torch.testing.assert_close(first, layer(x, edges(120)))
    torch.testing.assert_close(second, layer(x, edge_index.clone()))


def test_second_derivative():
    layer, x, edge_index = (
        SAGEConv(8, 1),
        features(30, dtype=torch.float64).requires_grad_(),
        edges(120),
    )
    layer = layer.double()
    with warploom.pyg.accelerate():
        torch.autograd.gradgradcheck(lambda x: layer(x.tanh(), edge_index).square(), [x])


@pytest.mark.parametrize("device", DEVICES)
def test_training(device):
    """Twenty steps with Adam end at the same parameters."""
    x, edge_index = features(30, device=device), edges(120, device=device)
    labels = torch.arange(30, device=device) % 3

    def train(model):
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        for _ in range(20):
            optimiser.zero_grad()
            hidden = model[0](x, edge_index).relu()
            loss = torch.nn.functional.cross_entropy(model[1](hidden, edge_index), labels)
            loss.backward()
            optimiser.step()
        return loss.detach()

    torch.manual_seed(5)
    model = torch.nn.ModuleList([GCNConv(8, 16), SAGEConv(16, 3)]).to(device)
    expected = train(copy.deepcopy(model))
    torch.testing.assert_close(train(warploom.pyg.convert(model)), expected, rtol=1e-3, atol=1e-3)
