"""gradcheck and second derivatives, sddmm and edge_softmax, dispatch modes, Python's calls."""

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import gradcheck, gradgradcheck

from torch_oracle import Noted, close, count_calls, gradients, operand, product, random_graph
from warploom.torch import Graph, attention, edge_softmax, gat, gatv2, message, sddmm, spmm
from warploom.torch._internals import for_each_of_batch


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


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_quotients_whose_parts_are_out_of_range(reduce, once, device):
    """1 / b and b * b leave the range of float32 where the gradients of a / b do not. Products of
    dC and a stay in it: atomics, which sum them for a graph of one use, drop denormals."""
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [0, 1, 2]], device=device), once=once)
    entries = [1e-40, 1e20, 1e-25]  # the first is denormal
    values = torch.tensor([1e-30, 1e10, 1e-20], device=device, requires_grad=True)
    b = torch.tensor([[one] * 2 for one in entries], device=device, requires_grad=True)
    x = torch.tensor([[0.0] * 2, [1.0] * 2, [1e-10] * 2], device=device)
    c = spmm(graph, b, values, reduce=reduce, message="rdiv")
    db, dvalues = gradients(c, x, b, values)
    a, y, z = (one.detach().double() for one in (values[:, None], b, x))
    torch.testing.assert_close(db, (-z * a / y / y).float(), rtol=1e-5, atol=0)
    torch.testing.assert_close(dvalues, (z / y).sum(1).float(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_later_steps_look_up_no_plan(reduce, device, monkeypatch):
    graph = random_graph(6, 5, 14, device)
    b = operand(5, 4, device=device)
    spmm(graph, b, reduce=reduce, message="copy_b").sum().backward()
    monkeypatch.setattr(graph, "plan", None)
    spmm(graph, b, reduce=reduce, message="copy_b").sum().backward()


def distinct(*shape, device, dtype):
    """Different multiples of 1/32 in each column, exact in 16 bits and above 0."""
    lines = torch.rand(shape).argsort(0) + 1
    return (lines / 32).to(device, dtype).requires_grad_()


@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("width", [(6,), (2, 3), (5,)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradients_of_max_in_16_bits(dtype, width, reduce, device):
    graph = random_graph(60, 50, 300, device)
    assert not graph.degrees().all()
    b = distinct(50, *width, device=device, dtype=dtype)
    c, wide = spmm(graph, b, reduce=reduce), b.detach().double().requires_grad_()
    x = torch.randint(-4, 5, c.shape, device=device).to(dtype)
    expected = product(graph, wide, reduce=reduce)
    close(c, expected, torch.float64)
    (found,) = gradients(c, x, b)
    assert found.dtype == dtype and found.is_contiguous()
    close(found, gradients(expected, x.double(), wide)[0], torch.float64)


def saved_types(c):
    return [tensor.dtype for tensor in c.grad_fn.saved_tensors if tensor is not None]


@pytest.mark.parametrize("longest, index, positions", [
    (65536, torch.int32, torch.int16), (65536, torch.int64, torch.int16),
    (65537, torch.int32, torch.int32), (65537, torch.int64, torch.int64),
])  # fmt: skip
def test_positions_are_as_narrow_as_rows_allow(longest, index, positions, device):
    rowptr = torch.tensor([0, 3, 3, 3 + longest], dtype=index, device=device)
    colind = torch.randint(0, 64, (3 + longest,), device=device).to(index)
    graph = Graph(rowptr, colind, cols=64)
    b = distinct(64, 4, device=device, dtype=torch.float32)
    c, expected = spmm(graph, b, reduce="max"), product(graph, b, reduce="max")
    assert saved_types(c) == [positions]
    x = torch.tensor([[1.0], [2.0], [4.0]], device=device).expand(3, 4)
    close(gradients(c, x, b)[0], gradients(expected, x, b)[0], torch.float32)


def test_positions_of_a_graph_that_is_used_once(device):
    graph = random_graph(6, 5, 14, device, once=True)
    assert saved_types(spmm(graph, operand(5, 4, device=device), reduce="min")) == [torch.int32]


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


@pytest.mark.parametrize("is_dispatched", [False, True])
def test_missing_second_derivatives_are_no_zeros(is_dispatched, device):
    """Where the upstream gradient is a constant, too, and other parts of a model have them."""
    graph = random_graph(6, 5, 14, device)
    for name, (_, call, operands) in every_operation(graph, device).items():
        if name not in ("gat", "gatv2", "dot", "edge", "softmax"):
            continue
        with Noted() if is_dispatched else contextlib.nullcontext():
            x, *rest = operands
            c = call(x * x, *rest)
            wanted = torch.autograd.grad(c.sum(), x, retain_graph=True)
            first = torch.autograd.grad(c.sum(), x, create_graph=True)
            torch.testing.assert_close(first, wanted)
            with pytest.raises(NotImplementedError, match="no second derivatives of"):
                torch.autograd.grad(first[0].square().sum(), x)


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
    nothing = operand(14, 0, device=device)
    edge_softmax(graph, nothing).sum().backward()
    assert nothing.grad.shape == (14, 0)


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


def every_operation(graph, device):
    """Calls of each operation, by the name of its op, and its operands."""
    heads, other, left, right, att, values, scores, b, x = (
        operand(*shape, device=device, dtype=torch.float32)
        for shape in (
            (5, 2, 4), (6, 2, 4), (6, 2), (5, 2), (2, 4), (14,), (14, 2), (5, 4), (6, 4),
        )
    )  # fmt: skip
    calls = {
        "sum": ("spmm", lambda b: spmm(graph, b), b),
        "mean": ("spmm", lambda b, a: spmm(graph, b, a, reduce="mean"), b, values),
        "max": ("spmm", lambda b: spmm(graph, b, reduce="max"), b),
        "sddmm": ("sddmm", lambda x, b: sddmm(graph, x, b), x, b),
        "softmax": ("edge_softmax", lambda s: edge_softmax(graph, s), scores),
        "gat": ("attend_gat", lambda *t: gat(graph, *t), heads, left, right, scores),
        "gatv2": ("attend_gatv2", lambda *t: gatv2(graph, *t), heads, other, att),
        "dot": ("attend_dot", lambda *t: attention(graph, *t), other, heads, heads),
        "edge": (
            "attend_edge", lambda v, s: attention(graph, other.detach(), heads.detach(), v, s),
            operand(5, 2, 3, device=device, dtype=torch.float32), scores,
        ),
    }  # fmt: skip
    return {name: (op, call, operands) for name, (op, call, *operands) in calls.items()}


def test_dispatch_modes_see_the_ops(device):
    for op, call, operands in every_operation(random_graph(6, 5, 14, device), device).values():
        expected = call(*operands)
        assert expected.grad_fn.name() == f"{op}Backward"
        x = torch.rand_like(expected)
        wanted = gradients(expected, x, *operands)
        with Noted() as noted:
            found = call(*operands)
            grads = gradients(found, x, *operands)
        ops = {function._schema.name.split("::")[1] for function, _ in noted.calls}
        assert {op, f"{op}_backward"} <= ops
        torch.testing.assert_close((found, *grads), (expected, *wanted))


def test_fake_tensors(device):
    graph = random_graph(6, 5, 14, device)
    for _, call, operands in every_operation(graph, device).values():
        real = call(*operands)
        wanted = gradients(real, torch.ones_like(real), *operands)
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fakes = [mode.from_tensor(t) for t in operands]
            fake = call(*fakes)
            grads = gradients(fake, torch.ones_like(fake), *fakes)
        for one, other in zip((fake, *grads), (real, *wanted), strict=True):
            assert (one.shape, one.dtype, one.device) == (other.shape, other.dtype, other.device)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_second_derivatives_in_dispatch_modes(reduce, device):
    graph = random_graph(6, 5, 14, device)
    b, values = operand(5, 4, device=device), operand(14, device=device)

    def second():
        c = spmm(graph, b, values, reduce=reduce)
        first = torch.autograd.grad(c.square().sum(), (b, values), create_graph=True)
        return torch.autograd.grad(sum(one.square().sum() for one in first), (b, values))

    wanted = second()
    with Noted() as noted:
        found = second()
    assert noted.calls
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


def test_a_gradient_that_was_not_asked_for(device):
    graph, b = random_graph(6, 5, 14, device), operand(5, 4, device=device)
    with torch.no_grad(), Noted() as noted:
        spmm(graph, b)
    ((op, arguments),) = noted.calls
    (c,) = op(*arguments)
    with pytest.raises(RuntimeError, match="spmm: the op was compiled without this gradient"):
        c.sum().backward()


# Of a call without gradients, with gradients, and of the backward pass.
@pytest.mark.parametrize("once", [False, True])
def test_results_that_are_changed_in_place(once, device):
    """Attention reads its result in the backward pass, and is computed again where that changed."""
    graph = random_graph(6, 5, 14, device, once=once)
    operations = every_operation(graph, device)
    b, x = operations["sum"][2][0], operations["sddmm"][2][0]
    spread = lambda b, x: message(graph, "b+x", reduce="std", b=b, x=("row", x))  # noqa: E731
    share = lambda b, a: message(graph, "b", reduce="softmax", score="a", b=b, a=a)  # noqa: E731
    operations["std"] = ("message", spread, (b, x))
    operations["softmax"] = ("message", share, (b, operations["mean"][2][1]))
    for name in ("gat", "gatv2", "dot", "edge", "std", "softmax"):
        _, call, operands = operations[name]
        c = call(*operands)
        x = torch.rand_like(c)
        expected = torch.autograd.grad(c * 2, operands, x)
        for change in (lambda c: c.mul_(2), lambda c: c[:].mul_(2)):
            c = call(*operands)
            change(c)
            found = torch.autograd.grad(c, operands, x)
            torch.testing.assert_close(found, expected)


MOST_CALLS = {
    "sum": (12, 14, 26),
    "max": (12, 18, 35),
    "mean": (13, 16, 45),
    "gat": (22, 25, 44),
    "gatv2": (21, 24, 45),
    "dot": (23, 26, 43),
}


@pytest.mark.parametrize("name", MOST_CALLS)
def test_python_calls_of_a_step(name, device):
    """They make up the host's time of small graphs."""
    _, call, operands = every_operation(random_graph(6, 5, 14, device), device)[name]
    x = torch.ones_like(call(*operands))
    torch.autograd.backward(call(*operands), x)
    with torch.no_grad():
        call(*operands)
        plain, _ = count_calls(lambda: call(*operands))
    forward, c = count_calls(lambda: call(*operands))
    backward, _ = count_calls(lambda: torch.autograd.backward(c, x))
    calls = plain, forward, backward
    assert all(one <= most for one, most in zip(calls, MOST_CALLS[name], strict=True)), calls


def test_forward_mode_is_refused():
    """Its derivatives were 0."""
    graph = random_graph(4, 4, 9, "cpu")
    b = torch.rand(4, 3, dtype=torch.float64)
    calls = lambda t: spmm(graph, t), lambda t: message(graph, "b*b", b=t)
    for call in calls:
        with torch.autograd.forward_ad.dual_level():
            close(call(b), call(b.clone()))
            with pytest.raises(NotImplementedError, match="no forward-mode derivatives"):
                call(torch.autograd.forward_ad.make_dual(b, b))
    with pytest.raises(NotImplementedError, match="no forward-mode derivatives"):
        torch.func.jvp(calls[0], (b,), (b,))


@pytest.mark.parametrize("compiles", [False, True])
def test_batches_of_gradients(compiles, device):
    """In vmap, where PyTorch computes is_grads_batched: as one backward pass after the other."""
    graph = random_graph(6, 5, 14, device)
    operations = every_operation(graph, device)
    sigmoid = lambda b: message(graph, "sigmoid(b)", reduce=["sum", "max"], b=b)[1]  # noqa: E731
    operations["message"] = ("message", sigmoid, operations["sum"][2])
    if compiles:
        operations = {name: operations[name] for name in ("max", "gat", "message")}
    for _, call, operands in operations.values():
        if compiles:
            torch._dynamo.reset()
            call = torch.compile(call, backend="eager")
        c = call(*operands)
        x = torch.rand(3, *c.shape, device=device)

        def backward(x, c=c, operands=operands, **options):
            return torch.autograd.grad(c, operands, x, retain_graph=True, **options)

        expected = [torch.stack(one) for one in zip(*map(backward, x), strict=True)]
        for found in (backward(x, is_grads_batched=True), torch.func.vmap(backward)(x)):
            torch.testing.assert_close(found, expected)
        for one, other in zip(torch.func.vmap(backward)(x[:0]), operands, strict=True):
            assert one.shape == (0, *other.shape)


def test_batches_of_gradients_in_another_thread():
    """As in backward passes on a GPU, whose thread does not know the levels of vmap."""
    given = torch.rand(3, 2, 4)
    outer, inner = (torch._C._vmapmode_increment_nesting() for _ in range(2))
    try:
        x = torch._add_batch_dim(torch._add_batch_dim(given, 0, outer), 0, inner)
        y = torch._add_batch_dim(given[:, 0], 0, outer)
        with ThreadPoolExecutor(1) as threads:
            both = lambda tensors: [tensors[0] + tensors[1], None]  # noqa: E731
            sums, nothing = threads.submit(for_each_of_batch, both, [x, y]).result()
        sums = torch._remove_batch_dim(torch._remove_batch_dim(sums, inner, 2, 0), outer, 3, 0)
    finally:
        for _ in range(2):
            torch._C._vmapmode_decrement_nesting()
    assert nothing is None
    torch.testing.assert_close(sums, given + given[:, :1])


def test_the_level_of_a_batch_is_found_at_once(monkeypatch):
    """Not by a search of all levels, in each backward pass and for each tensor."""
    given, calls, remove = torch.rand(3, 4), [], torch._remove_batch_dim
    level = torch._C._vmapmode_increment_nesting()
    torch._C._vmapmode_decrement_nesting()
    x = torch._add_batch_dim(given, 0, level)
    monkeypatch.setattr(
        torch, "_remove_batch_dim", lambda *call: calls.append(call) or remove(*call)
    )
    (doubled,) = for_each_of_batch(lambda tensors: [2 * tensors[0]], [x])
    assert len(calls) < 8
    torch.testing.assert_close(remove(doubled, level, 3, 0), 2 * given)


def test_batches_of_second_derivatives():
    graph = random_graph(4, 4, 9, "cpu")
    b, values = operand(4, 2), operand(9)
    assert torch.autograd.gradcheck(
        lambda *t: spmm(graph, *t), (b, values), check_batched_grad=True
    )
    assert torch.autograd.gradgradcheck(
        lambda *t: spmm(graph, *t), (b, values), check_batched_grad=True
    )
    for call in (lambda t: spmm(graph, t * t), lambda t: message(graph, "b*b*b", b=t)):
        found, expected = (
            torch.autograd.functional.hessian(lambda t: call(t).sum(), b, vectorize=batched)  # noqa: B023
            for batched in (True, False)
        )
        close(found, expected)
        c, x = call(b), torch.rand(2, 3, 4, 2, dtype=torch.float64)
        backward = lambda x, c=c: torch.autograd.grad(c, b, x, retain_graph=True)[0]  # noqa: E731
        nested = torch.func.vmap(torch.func.vmap(backward))
        right = [backward(one) for one in x.flatten(0, 1)]
        close(nested(x).flatten(0, 1), torch.stack(right))


@pytest.mark.parametrize(
    "transform",
    [
        lambda call, b: torch.func.grad(lambda t: call(t).sum())(b),
        lambda call, b: torch.func.vjp(call, b)[1](b),
        lambda call, b: torch.func.vmap(call)(b[None]),
    ],
)
def test_transforms_are_refused(transform):
    """PyTorch's own errors speak of what only this package could change."""
    graph = random_graph(4, 4, 9, "cpu")
    b = torch.rand(4, 3, dtype=torch.float64)
    for call in (lambda t: spmm(graph, t), lambda t: message(graph, "b*b", b=t)):
        with pytest.raises(NotImplementedError, match="does not run in transforms"):
            transform(call, b)
    constant = torch.func.grad(lambda t: t.sum() + spmm(graph, b).sum())(b)
    close(constant, torch.ones_like(b))
