"""gradcheck and second derivatives, sddmm and edge_softmax."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from torch_oracle import close, gradients, operand, product, random_graph
from warploom.torch import Graph, edge_softmax, sddmm, spmm


@pytest.mark.parametrize("once", [False, True])
def test_gradcheck(once, device):
    graph = random_graph(6, 5, 14, device, once=once)
    b, values = operand(5, 4, device=device), operand(14, device=device)
    atomic = {"nondet_tol": 1e-12}  # some gradients on a GPU are sums in any order
    for reduce in ("sum", "mean"):

        def multiply(b, values, reduce=reduce):
            return spmm(graph, b, values, reduce=reduce)

        assert gradcheck(multiply, (b, values), **atomic)
        assert gradgradcheck(multiply, (b, values), **atomic)
    assert gradcheck(lambda b, values: spmm(graph, b, values, reduce="max"), (b, values), **atomic)
    heads = operand(5, 2, 3, device=device), operand(14, 2, device=device)
    assert gradcheck(lambda b, values: spmm(graph, b, values), heads, **atomic)
    assert gradgradcheck(lambda b, values: spmm(graph, b, values), heads, **atomic)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("message", ["mul", "copy_b", "add"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("has_values", [False, True])
def test_gradients_of_later_steps(has_values, reduce, message, once, device):
    """Later steps use the plans of the first step."""
    graph = random_graph(6, 5, 14, device, once=once)
    for step in range(4):
        b, x = operand(5, 4, device=device), operand(6, 4, device=device, grad=False)
        values = operand(14, device=device, grad=step == 2) if has_values else None
        wanted = (b, values) if step == 2 else (b,)
        c = spmm(graph, b, values, reduce=reduce, message=message)
        expected = product(graph, b, values, reduce, message)
        close(c, expected)
        for found, right in zip(
            gradients(c, x, *wanted), gradients(expected, x, *wanted), strict=True
        ):
            close(found, right)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_later_steps_look_up_no_plan(reduce, device, monkeypatch):
    graph = random_graph(6, 5, 14, device)
    b = operand(5, 4, device=device)
    spmm(graph, b, reduce=reduce, message="copy_b").sum().backward()
    monkeypatch.setattr(graph, "plan", None)
    spmm(graph, b, reduce=reduce, message="copy_b").sum().backward()


def test_second_derivatives_with_values_of_the_graph(device):
    pattern = random_graph(6, 5, 14, device)
    values = operand(14, device=device)
    graph = Graph(pattern.rowptr, pattern.colind, values, cols=5)
    b = operand(5, 4, device=device)
    assert gradgradcheck(lambda b, values: spmm(graph, b), (b, values), nondet_tol=1e-12)


def test_missing_second_derivatives_raise(device):
    graph = random_graph(6, 5, 14, device)
    b = operand(5, 4, device=device)
    c = spmm(graph, b, reduce="max")
    with pytest.raises(NotImplementedError, match="no second derivatives of reduce='max'"):
        torch.autograd.grad(c.sum(), b, create_graph=True)


@pytest.mark.parametrize("width", [(4,), (2, 3)])
def test_sddmm(width, device):
    graph = random_graph(6, 5, 14, device)
    x, b = operand(6, *width, device=device), operand(5, *width, device=device)
    expected = (x[graph.row().long()] * b[graph.colind.long()]).sum(-1)
    close(sddmm(graph, x, b), expected)
    assert gradcheck(lambda x, b: sddmm(graph, x, b), (x, b), nondet_tol=1e-12)
    assert gradgradcheck(lambda x, b: sddmm(graph, x, b), (x, b), nondet_tol=1e-12)
    if len(width) == 2:
        close(sddmm(graph, x, b, heads=1), expected.sum(-1))
    nothing = sddmm(graph, x[:, :0], b[:, :0]) if len(width) == 1 else x.new_zeros(14)
    assert nothing.shape == (14,) and not nothing.any()


@pytest.mark.parametrize("shape", [(14,), (14, 3)])
def test_edge_softmax(shape, device):
    graph = random_graph(6, 5, 14, device)
    scores = operand(*shape, device=device)
    result = edge_softmax(graph, scores)
    sums = torch.zeros(6, *shape[1:], dtype=torch.float64, device=device)
    sums.index_add_(0, graph.row(), result.detach())
    close(sums[graph.degrees() > 0], torch.ones_like(sums)[graph.degrees() > 0])
    powers = scores.exp()
    expected = powers / sums.zero_().index_add(0, graph.row(), powers)[graph.row().long()]
    close(result, expected)
    assert gradcheck(lambda scores: edge_softmax(graph, scores), scores)
    large = edge_softmax(graph, scores.detach().float() * 1e4)
    assert torch.isfinite(large).all() and large.dtype == torch.float32
    half = scores.detach().half().requires_grad_()
    edge_softmax(graph, half).sum().backward()
    assert half.grad.dtype == torch.float16


def test_attention_layer(device):
    """A GAT layer: scores per head, a softmax, a weighted sum."""
    graph = random_graph(30, 30, 200, device)
    x, attention = operand(30, 4, 8, device=device), operand(4, 8, device=device)

    def layer(softmax, multiply):
        scores = torch.nn.functional.leaky_relu((x * attention).sum(-1))
        edges = scores[graph.colind.long()] + scores[graph.row().long()]
        return multiply(x, softmax(edges))

    def plain_softmax(scores):
        powers = (scores - scores.max()).exp()
        sums = powers.new_zeros(30, 4).index_add(0, graph.row(), powers)
        return powers / sums[graph.row().long()]

    ours = layer(lambda s: edge_softmax(graph, s), lambda b, a: spmm(graph, b, a))
    plain = layer(plain_softmax, lambda b, a: product(graph, b, a))
    close(ours, plain)
    weights = torch.rand_like(ours)
    for found, wanted in zip(
        gradients(ours, weights, x, attention), gradients(plain, weights, x, attention), strict=True
    ):
        close(found, wanted)
