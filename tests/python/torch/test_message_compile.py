"""message as a registered op: opcheck, torch.compile without graph breaks, torch.export."""

import pytest
import torch

import warploom.torch as wt
from test_message import COLS, EDGES, LAYERS, ROWS, compare, draw, edges_of, graph_of, operands_of
from torch_oracle import check_ops
from warploom.torch import Graph


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


def check_compiled(graph, expression, operands, backend="aot_eager", dynamic=None, **options):
    """Compare a compiled function, twice, with the same function that is not compiled."""
    names = list(operands)

    def function(*tensors):
        scaled = dict(zip(names, (2 * t for t in tensors), strict=True))
        made = wt.message(graph, expression, **scaled, **options)
        return made.sin() if isinstance(made, torch.Tensor) else tuple(t.sin() for t in made)

    wanted = function(*operands.values())
    compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=dynamic)
    for _ in range(2):
        compare(compiled(*operands.values()), wanted, operands, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer, order, once, device):
    operands = operands_of(LAYERS[layer], device=device)
    check_compiled(graph_of(edges_of(order), device, once=once), LAYERS[layer], operands)


@pytest.mark.parametrize(
    "reduce", ["sum", "mean", "max", "min", "prod", "var", "std", "edge", "edge_sum"]
)
def test_reductions(reduce):
    check_compiled(graph_of(edges_of()), "x*b+e", operands_of("x*b+e"), reduce=reduce)


@pytest.mark.parametrize(
    "reductions",
    [
        ("mean", "min", "max", "std"),
        ("std", "var", "sum"),
        ("max", "std", "min"),
        ("edge_sum", "edge", "sum", "edge"),
    ],
)
def test_several_reductions(reductions):
    check_compiled(graph_of(edges_of()), "x*b+e", operands_of("x*b+e"), reduce=reductions)


def test_one_of_several_results_is_used():
    graph, b = graph_of(edges_of()), draw(COLS, 4)

    def least(b):
        return wt.message(graph, "b", b=b, reduce=("mean", "min", "std"))[1]

    compare(torch.compile(least, fullgraph=True, backend="aot_eager")(b), least(b), {"b": b})


@pytest.mark.parametrize("values", [(), (1,), (3,)])
def test_heads_and_transpose(values):
    narrow = {"x": (3,), "k": (3, 1), "a": values, "e": (3,), "y": ()}
    expression = "tanh(x+k)*a*b+e*y"
    operands = operands_of(expression, (3, 4), narrow)
    for transpose in (False, True):
        check_compiled(
            graph_of(edges_of()), expression, operands, transpose=transpose,
            reduce=("sum", "edge", "max"),
        )  # fmt: skip


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_values_of_the_graph_and_places(order, transpose):
    b, gate, values = draw(COLS, 6), draw(ROWS, 6, seed=3), draw(EDGES, seed=5)
    graph = graph_of(edges_of(order), values=values)

    def function(b, gate):
        given = {"b": b, "scale": 0.5, "gate": ("row", gate)}
        return wt.message(graph, "a*gate*b*scale", transpose=transpose, operands=given)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    operands = {"b": b, "gate": gate, "values": values}
    compare(compiled(b, gate), function(b, gate), operands)


def test_numbers_may_change():
    graph, b = graph_of(edges_of()), draw(COLS, 4)
    compiled = torch.compile(
        lambda b, s: wt.message(graph, "b*s", b=b, s=s), fullgraph=True, backend="aot_eager"
    )
    for s in (1, 0.5, 0.25, 0.125):
        compare(compiled(b, s), wt.message(graph, "b*s", b=b, s=s), {"b": b})


def test_no_gradients_and_autocast(device):
    graph = graph_of(edges_of(), device)
    b = draw(COLS, 4, dtype=torch.float32, device=device)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(b):
        with torch.autocast(device.type, torch.bfloat16):
            return wt.message(graph, "relu(b)", b=b, reduce=("max", "std"))

    wanted = wt.message(graph, "relu(b)", b=b.bfloat16(), reduce=("max", "std"))
    for got, want in zip(step(b), wanted, strict=True):
        assert got.dtype == torch.bfloat16
        torch.testing.assert_close(got, want)
    with torch.no_grad():
        assert not step(b)[0].requires_grad
        torch.testing.assert_close(step(b), wanted)


def test_other_sizes():
    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def step(graph, b, e):
        return wt.message(graph, "relu(b+e)", b=b, e=e, reduce=("mean", "max", "edge"))

    for rows, nnz, n in ((9, 25, 4), (12, 40, 4), (15, 61, 6)):
        edges = torch.stack([torch.randint(7, (nnz,)), torch.randint(rows, (nnz,))])
        graph = Graph.from_edge_index(edges, rows=rows, cols=7)
        b, e = draw(7, n), draw(nnz, n)
        wanted = wt.message(graph, "relu(b+e)", reduce=("mean", "max", "edge"), b=b, e=e)
        found = step(graph, b, e)
        gradients = (torch.autograd.grad(sum(t.sum() for t in c), (b, e)) for c in (found, wanted))
        torch.testing.assert_close(found, wanted)
        torch.testing.assert_close(*gradients)


def test_with_inductor():
    graph = graph_of(edges_of())
    check_compiled(
        graph, "relu(b+e)", operands_of("relu(b+e)"), "inductor", reduce=("mean", "std", "edge")
    )


def test_export():
    graph = graph_of(edges_of())

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("rowptr", "colind", "perm"):
                self.register_buffer(name, getattr(graph, name))
            self.scale = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

        def forward(self, b, e):
            made = Graph(self.rowptr, self.colind, cols=COLS, perm=self.perm)
            return wt.message(made, "relu(b+e)", b=b * self.scale, e=e, reduce=("sum", "std"))

    net, b, e = Net(), draw(COLS, 4, grad=False), draw(EDGES, 4, seed=2, grad=False)
    wanted = net(b, e)
    for strict in (False, True):
        with torch.no_grad():
            program = torch.export.export(net, (b, e), strict=strict)
            assert "warploom.message" in str(program.graph)
            torch.testing.assert_close(program.module()(b, e), wanted)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(
    "names, expression, options",
    [
        ("be", "relu(b+e)", {}),
        ("be", "relu(b+e)", {"reduce": ("max", "std"), "transpose": True}),
        ("bxe", "relu(b+e)*x*s", {"reduce": ("max", "std", "edge"), "s": 0.5}),
        ("xb", "x*b", {"reduce": ("mean", "var", "edge_sum", "min")}),
        ("xb", "b", {"reduce": "softmax", "score": "t", "sums": {"t": "x*b"}}),
    ],
)
def test_opcheck(names, expression, options, needs_gradient, once, device, monkeypatch):
    graph = graph_of(edges_of(), device, once=once)
    lines = {"b": COLS, "e": EDGES, "x": ROWS}
    given = {
        name: draw(lines[name], 6, seed=seed, device=device, grad=needs_gradient)
        for seed, name in enumerate(names)
    }

    def call():
        with monkeypatch.context() as patch:  # as in code that is compiled
            patch.setattr(torch.compiler, "is_compiling", lambda: True)
            return wt.message(graph, expression, **given, **options)

    check_ops(call, *given.values())


def test_bad_input_is_refused_while_it_is_compiled():
    graph, b = graph_of(edges_of()), draw(COLS, 4)
    compiled = torch.compile(
        lambda b: wt.message(graph, "b+e", b=b), fullgraph=True, backend="aot_eager"
    )
    with pytest.raises(Exception, match="operand e is missing"):
        compiled(b)
