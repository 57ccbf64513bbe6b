"""The registered ops: opcheck, torch.compile without graph breaks, torch.export."""

import pytest
import torch

from torch_oracle import check_ops, close, gradients, operand, product, random_graph
from warploom.torch import Graph, Sample, edge_softmax, sddmm, spmm
from warploom.torch._eager import multiply, spmm_of_edges
from warploom.torch._edges import EdgeList


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("kept", [True, False])
def test_opcheck(kept, device):
    graph = random_graph(6, 5, 14, device, once=not kept)
    b, values = operand(5, 4, device=device), operand(14, device=device)
    x = operand(6, 4, device=device)
    check_ops(lambda: spmm(graph, b, values), b, values)
    check_ops(lambda: spmm(graph, b, reduce="mean", message="copy_b"), b)
    heads = operand(5, 2, 3, device=device), operand(14, 2, device=device)
    check_ops(lambda: spmm(graph, *heads), *heads)
    for reduce in ("max", "prod"):
        check_ops(lambda reduce=reduce: spmm(graph, b, values, reduce=reduce), b, values)
    check_ops(lambda: spmm(graph, b.detach(), values.detach(), reduce="max"))
    check_ops(lambda: sddmm(graph, x, b), x, b)
    check_ops(lambda: edge_softmax(graph, values), values)
    edges = torch.stack([graph.colind, graph.row()]).long()
    torch.library.opcheck(torch.ops.warploom.csr_from_edges.default, (edges, 6, 5))
    if kept:
        square = random_graph(5, 5, 14, device)
        root = torch.full((), 0.5, device=device, dtype=b.dtype)
        check_ops(lambda: multiply(square, b, None, "sum", "mul", False, root), b)


def check_compiled(function, operands, backend="aot_eager"):
    expected = function(*operands)
    x = torch.rand_like(expected)
    wanted = gradients(expected, x, *operands)
    compiled = torch.compile(function, fullgraph=True, backend=backend)
    for _ in range(2):
        found = compiled(*operands)
        close(found, expected, torch.float32)
        for one, other in zip(gradients(found, x, *operands), wanted, strict=True):
            close(one, other, torch.float32)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("once", [False, True])
def test_compile(reduce, once, device):
    graph = random_graph(9, 7, 25, device, once=once)
    b, values = operand(7, 4, device=device), operand(25, device=device)

    def step(b, values):
        return spmm(graph, b.sin(), values * 2, reduce=reduce).relu()

    check_compiled(step, (b, values))


def test_compile_other_products(device):
    graph = random_graph(9, 7, 25, device)
    x, b = operand(9, 4, device=device), operand(7, 4, device=device)
    check_compiled(lambda x, b: edge_softmax(graph, sddmm(graph, x, b)), (x, b))
    check_compiled(lambda b: spmm(graph, b, reduce="mean", message="rdiv"), (b,))

    def sampled(b):
        return spmm(graph, b, sample=Sample(8, "bucket"), seed=3, reduce="max")

    check_compiled(sampled, (b,))


def test_compile_with_inductor():
    graph = random_graph(9, 7, 25)
    check_compiled(
        lambda b, values: spmm(graph, b.relu(), values).sin(),
        (operand(7, 4), operand(25)),
        "inductor",
    )


def test_compile_a_module_with_its_graph(device):
    class Net(torch.nn.Module):
        def __init__(self, graph):
            super().__init__()
            self.graph = graph
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, b):
            return spmm(self.graph, self.linear(b), reduce="mean")

    net = Net(random_graph(7, 7, 25, device)).to(device)
    b = operand(7, 4, device=device, dtype=torch.float32)
    check_compiled(net, (b,))


def test_compile_under_autocast_and_without_gradients(device):
    graph = random_graph(9, 7, 25, device)
    b = operand(7, 4, device=device, dtype=torch.float32)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(b):
        with torch.autocast(device.type, torch.bfloat16):
            return spmm(graph, b)

    assert step(b).dtype == torch.bfloat16
    with torch.no_grad():
        close(step(b), product(graph, b), torch.bfloat16)


def test_a_graph_given_as_an_argument(device):
    @torch.compile(fullgraph=True, backend="aot_eager", dynamic=True)
    def step(graph, b):
        return spmm(graph, b) * 2

    for rows, nnz in ((9, 25), (12, 40), (15, 61)):
        graph = random_graph(rows, 7, nnz, device)
        b = operand(7, 4, device=device)
        close(step(graph, b), 2 * product(graph, b))


def test_a_graph_made_of_edges(device):
    @torch.compile(fullgraph=True, backend="aot_eager")
    def step(edges, b):
        return spmm(Graph.from_edge_index(edges, rows=9, cols=7, once=True), b)

    graph = random_graph(9, 7, 25, device)
    edges = torch.stack([graph.colind, graph.row()]).long().flip(1)
    b = operand(7, 4, device=device)
    close(step(edges, b), product(graph, b))


def test_export(device):
    graph = random_graph(9, 7, 25, device)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("rowptr", graph.rowptr)
            self.register_buffer("colind", graph.colind)

        def forward(self, b, values):
            return spmm(Graph(self.rowptr, self.colind, cols=7), b, values)

    b, values = operand(7, 4, device=device, grad=False), operand(25, device=device, grad=False)
    for strict in (False, True):
        program = torch.export.export(Net(), (b, values), strict=strict)
        assert "warploom.spmm" in str(program.graph)
        close(program.module()(b, values), product(graph, b, values))


def by_op(graph, b):
    return spmm_of_edges(EdgeList.of(graph), b, None, "sum", "mul")


def test_ops_do_not_mix_up_graphs_at_one_address(device):
    b = operand(7, 4, device=device, grad=False)
    for seed in range(20):
        graph = random_graph(9, 7, 25, device, seed=seed)
        close(by_op(graph, b), product(graph, b))
        del graph


def test_ops_take_changed_tensors(device):
    graph, other = random_graph(9, 7, 25, device), random_graph(9, 7, 25, device, seed=1)
    b = operand(7, 4, device=device, grad=False)
    close(by_op(graph, b), product(graph, b))
    expected = product(other, b)
    graph.rowptr.copy_(other.rowptr)
    graph.colind.copy_(other.colind)
    close(by_op(graph, b), expected)


def test_ops_check_the_lines_of_each_call(device):
    """Also where a call of the same kind was checked."""
    graph = random_graph(9, 7, 25, device)
    b = operand(7, 4, device=device, grad=False)
    by_op(graph, b)
    with pytest.raises(ValueError, match="b: the shape is"):
        by_op(graph, b[:5])
