"""Products and gradients against dense float64: operators, types, shapes and layouts."""

import functools
import threading

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torch_oracle import MESSAGES, REDUCTIONS, close, gradients, operand, product, random_graph
from warploom.torch import Graph, Sample, sddmm, spmm


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_every_operator(reduce, message, device):
    if (
        device.type == "cuda"
        and reduce in ("mean", "min", "prod")
        and message not in ("mul", "div")
    ):
        pytest.skip("compiles for minutes; tests/gpu runs these kernels")
    graph = random_graph(9, 7, 25, device)
    for heads, has_values in ((1, False), (1, True), (2, True)):
        b = operand(7, 2, 3, device=device) if heads == 2 else operand(7, 5, device=device)
        shape = (graph.nnz, 2) if heads == 2 else (graph.nnz,)
        values = operand(*shape, device=device) if has_values else None
        c = spmm(graph, b, values, reduce=reduce, message=message)
        expected = product(graph, b, values, reduce, message)
        close(c, expected)
        used = None if message == "copy_b" else values
        x = torch.rand_like(c)
        pairs = zip(gradients(c, x, b, used), gradients(expected, x, b, used), strict=True)
        for found, wanted in pairs:
            close(found, wanted)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    rows=st.integers(0, 30),
    cols=st.integers(0, 30),
    nnz=st.integers(0, 120),
    n=st.sampled_from([0, 1, 3, 16]),
    reduce=st.sampled_from(REDUCTIONS),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.float16, torch.bfloat16]),
    index=st.sampled_from([torch.int32, torch.int64]),
    has_values=st.booleans(),
    once=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_shape(device, rows, cols, nnz, n, reduce, dtype, index, has_values, once, seed):
    nnz = nnz if rows and cols else 0
    if reduce == "prod":
        nnz = min(nnz, 2 * rows)  # products of many numbers overflow in 16-bit types
    graph = random_graph(rows, cols, nnz, device, index, once, seed)
    b = operand(cols, n, device=device, dtype=dtype)
    values = operand(nnz, device=device, dtype=dtype) if has_values else None
    c = spmm(graph, b, values, reduce=reduce)
    assert c.shape == (rows, n) and c.dtype == dtype and c.device == b.device
    wide_b = b.detach().double().requires_grad_()
    wide_values = None if values is None else values.detach().double().requires_grad_()
    expected = product(graph, wide_b, wide_values, reduce)
    scale = 1 + max(nnz / max(rows, 1), 1)
    close(c / scale, expected / scale, dtype)
    found = gradients(c, torch.ones_like(c), b, values)
    if reduce in ("max", "min") and dtype in (torch.float16, torch.bfloat16):
        return  # messages that are equal after rounding may have another winner
    wanted = gradients(expected, torch.ones_like(expected), wide_b, wide_values)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == dtype
        scale = 1 + float(other.abs().max()) if other.numel() else 1
        close(one / scale, other / scale, dtype)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("once", [False, True])
def test_into_a_tensor(device, reduce, dtype, once):
    """C = alpha * A B + beta * C, in some columns of a wider tensor; without beta C is not read."""
    graph = random_graph(9, 7, 25, device, once=once)
    b = operand(7, 2, 3, device=device, dtype=dtype, grad=False)
    values = operand(graph.nnz, 2, device=device, dtype=dtype, grad=False)
    right = product(graph, b.double(), values.double(), reduce)
    wide = torch.full((9, 20), torch.nan, dtype=dtype, device=device)
    out = wide[:, 4:10].view(9, 2, 3)
    assert spmm(graph, b, values, reduce=reduce, out=out, alpha=2) is out
    close(out / 8, right / 4, dtype)
    before = out.clone().double()
    spmm(graph, b, values, reduce=reduce, out=out, alpha=-1, beta=0.5)
    close(out / 8, (before / 2 - right) / 8, dtype)
    assert wide.isnan().sum() == 9 * 14


@pytest.mark.parametrize("reduce", ["sum", "max"])
def test_a_vector(device, reduce):
    """b of one dimension, as `warploom.spmm` takes it."""
    graph = random_graph(9, 7, 25, device)
    b, values = operand(7, device=device), operand(25, device=device)
    found = spmm(graph, b, values, reduce=reduce)
    right = product(graph, b[:, None], values, reduce)[:, 0]
    assert found.shape == (9,)
    close(found, right)
    for one, other in zip(
        torch.autograd.grad(found.sum(), (b, values)),
        torch.autograd.grad(right.sum(), (b, values)),
        strict=True,
    ):
        close(one, other)
    out = b.new_ones(9)
    with torch.no_grad():
        assert spmm(graph, b, values, reduce=reduce, out=out, beta=2) is out
    close(out, right + 2)


def test_into_adds_parts(device):
    """Two products of parts of the edges add up to that of all edges; odd shapes, too."""
    for rows, cols, n in ((9, 7, 5), (0, 4, 3), (4, 3, 0), (1, 1, 1)):
        first, second = (random_graph(rows, cols, 12 * bool(rows), device, seed=k) for k in (1, 2))
        b = operand(cols, n, device=device)
        with torch.no_grad():
            out = spmm(first, b, out=b.new_empty(rows, n))
            spmm(second, b, out=out, beta=1)
        close(out, product(first, b) + product(second, b))


def test_prod_with_zeros(device):
    graph = random_graph(6, 5, 18, device)
    b = operand(5, 3, device=device).detach()
    b[1] = 0
    b[2, 1] = 0
    b.requires_grad_()
    c, expected = spmm(graph, b, reduce="prod"), product(graph, b, reduce="prod")
    close(c, expected)
    x = torch.rand_like(c)
    close(gradients(c, x, b)[0], gradients(expected, x, b)[0])


def test_gradient_of_prod_without_columns(device):
    graph = random_graph(6, 5, 18, device)
    b, values = operand(5, 2, 0, device=device), operand(18, 2, device=device)
    c = spmm(graph, b, values, reduce="prod")
    assert c.shape == (6, 2, 0)
    db, dvalues = torch.autograd.grad(c.sum(), [b, values])
    assert db.shape == b.shape and not dvalues.any()


def test_against_torch_sparse(device):
    graph = random_graph(40, 30, 200, device)
    values, b = operand(200, device=device), operand(30, 8, device=device)
    with torch.no_grad():
        a = torch.sparse_csr_tensor(graph.rowptr, graph.colind, values, (40, 30))
        close(spmm(graph, b, values), torch.sparse.mm(a, b))


@pytest.mark.parametrize("wide", [torch.float16, torch.bfloat16])
def test_values_in_float32_beside_halves(wide, device):
    graph = random_graph(9, 7, 25, device)
    b, values = operand(7, 8, device=device, dtype=wide), operand(25, device=device)
    values = values.detach().float().requires_grad_()
    c = spmm(graph, b, values)
    c.sum().backward()
    assert c.dtype == wide and b.grad.dtype == wide and values.grad.dtype == torch.float32


def test_layouts(device):
    graph = random_graph(9, 7, 25, device)
    wide = operand(7, 20, device=device).detach()
    values = operand(25, device=device)
    for b in (
        wide[:, 3:11],  # rows with a gap
        wide[:, ::2],  # strided columns
        wide.t().contiguous().t(),  # column-major
        wide[:1].expand(7, 20),  # rows that share memory
        wide[:, 2:14].unflatten(1, (2, 6)),
    ):
        for reduce in ("sum", "max"):
            b = b.detach().requires_grad_()
            c, expected = spmm(graph, b, values, reduce=reduce), product(graph, b, values, reduce)
            close(c, expected)
            x = torch.rand_like(c).transpose(0, -1).contiguous().transpose(0, -1)
            pairs = zip(gradients(c, x, b, values), gradients(expected, x, b, values), strict=True)
            for found, wanted in pairs:
                close(found, wanted)
            spmm(graph, b, values, reduce=reduce).sum().backward()  # an expanded gradient
    strided = operand(50, device=device)[::2]
    close(spmm(graph, wide, strided), product(graph, wide, strided))


@pytest.mark.parametrize("need_b", [False, True])
@pytest.mark.parametrize("need_values", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_what_requires_a_gradient(need_b, need_values, reduce, device):
    graph = random_graph(9, 7, 25, device)
    b = operand(7, 4, device=device, grad=need_b)
    values = operand(25, device=device, grad=need_values)
    c = spmm(graph, b, values, reduce=reduce)
    assert c.requires_grad == (need_b or need_values)
    if c.requires_grad:
        c.sum().backward()
    assert (b.grad is not None) == need_b and (values.grad is not None) == need_values
    with torch.no_grad():
        assert not spmm(graph, b, values, reduce=reduce).requires_grad


def test_saves_no_more_than_it_needs():
    graph = random_graph(9, 7, 25)
    b, values = operand(7, 4), operand(25, grad=False)
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        spmm(graph, b)
        assert not saved
        spmm(graph, b, values)
        assert len(saved) == 1 and saved[0].shape == values.shape


def test_values_of_the_graph_and_of_the_call(device):
    pattern = random_graph(9, 7, 25, device)
    kept, other = operand(25, device=device), operand(25, device=device)
    graph = Graph(pattern.rowptr, pattern.colind, kept, cols=7)
    b = operand(7, 4, device=device)
    close(spmm(graph, b), product(graph, b, kept))
    close(spmm(graph, b, other), product(graph, b, other))
    close(spmm(graph, b, message="copy_b"), product(graph, b))
    close(spmm(graph, b, other.unsqueeze(1)), product(graph, b, other))
    spmm(graph, b).sum().backward()
    assert kept.grad.shape == (25,)
    with torch.no_grad():
        kept.mul_(2)  # values are read at each call
        close(spmm(graph, b), product(graph, b, kept))


def test_sampled_forward(device):
    graph = random_graph(4, 50, 400, device)
    b = operand(50, 8, device=device, grad=False)
    sample = Sample(16, "fastrand_coprime", "unbiased")
    published = spmm(graph, b, sample=sample, seed=0)
    assert torch.equal(published, spmm(graph, b, sample=sample, seed=0))
    torch.manual_seed(5)
    first = spmm(graph, b, sample=sample)
    second = spmm(graph, b, sample=sample)
    torch.manual_seed(5)
    assert torch.equal(first, spmm(graph, b, sample=sample))
    assert not torch.equal(first, second) and not torch.equal(first, published)
    close(spmm(graph, b, sample=Sample(500)), spmm(graph, b))
    c = spmm(graph, b.clone().requires_grad_(), sample=Sample(16), reduce="max")
    c.sum().backward()


@pytest.mark.parametrize("once", [False, True])
def test_sampled_gradients(once, device):
    graph = random_graph(4, 50, 400, device, once=once)
    values = operand(400, device=device)
    b = operand(50, 8, device=device)
    kinds = [("sum", norm) for norm in ("none", "kept", "unbiased")]
    for reduce, norm in (*kinds, ("mean", "none"), ("prod", "none")):
        sample = Sample(16, "fastrand_coprime", norm)

        def sampled(b, values, reduce=reduce, sample=sample):
            return spmm(graph, b, values, reduce=reduce, sample=sample, seed=7)

        assert torch.autograd.gradcheck(sampled, (b, values))


def test_deterministic_twice_the_same(device):
    graph = random_graph(50, 40, 2000, device)
    values = operand(2000, device=device, dtype=torch.float32)
    b = operand(40, 64, device=device, dtype=torch.float32)
    home_b, home_values = (tensor.detach().cpu().requires_grad_() for tensor in (b, values))
    torch.use_deterministic_algorithms(True)
    try:
        for reduce in ("sum", "mean", "max"):
            runs = []
            for _ in range(2):
                c = spmm(graph, b, values, reduce=reduce)
                runs.append((c, *gradients(c, torch.ones_like(c), b, values)))
            assert all(torch.equal(*pair) for pair in zip(*runs, strict=True))
            c = product(graph.cpu(), home_b, home_values, reduce)
            wanted_grads = gradients(c, torch.ones_like(c), home_b, home_values)
            for found, wanted in zip(runs[0][1:], wanted_grads, strict=True):
                scale = float(wanted.abs().max())
                close(found / scale, wanted / scale, torch.float32)
    finally:
        torch.use_deterministic_algorithms(False)


def test_argmax_gradients_in_order():
    """Run the code of deterministic results on GPUs on the CPU."""
    from warploom.torch import _eager, _gradients

    graph = random_graph(11, 7, 30)
    for message in MESSAGES:
        b, values = operand(7, 2, 3, grad=False), operand(30, 2, grad=False)
        if message == "copy_b":
            values = None
        options = "max", message, True, 0, "", ""
        product = _eager._spmm.product(graph, (b, values, None), options)
        plan = product.plan(graph, "argmax")
        c, argmax = plan.multiply_argmax(b, values)
        keep_b, _ = _gradients.saved(product.request, True, True)
        operands = (b if keep_b else None, values)
        x = torch.rand_like(c)
        needs = True, values is not None
        gradient = functools.partial(product.plan, graph, "argmax_gradient")
        expected = _gradients.of_winners(
            graph, product.request, gradient, x, argmax, *operands, needs
        )
        request = plan.request._replace(argmax=False)
        found = _gradients.of_message(graph, request, x, *operands, argmax, needs)
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                close(one, other)


def test_autocast(device):
    graph = random_graph(9, 7, 25, device)
    b = operand(7, 8, device=device, dtype=torch.float32)
    values = operand(25, device=device, dtype=torch.float32)
    with torch.autocast(device.type, torch.bfloat16):
        c = spmm(graph, b, values)
        assert c.dtype == torch.bfloat16
        assert spmm(graph, b.double(), values.double()).dtype == torch.float64
        assert sddmm(graph, c, b).dtype == torch.bfloat16
    c.sum().backward()
    assert b.grad.dtype == torch.float32 and values.grad.dtype == torch.float32
    close(
        b.grad, gradients(product(graph, b, values), torch.ones(9, 8, device=device), b)[0], c.dtype
    )


def test_threads_share_a_graph(device):
    graph = random_graph(60, 50, 400, device)
    b = operand(50, 16, device=device, grad=False)
    expected = {reduce: product(graph, b, reduce=reduce) for reduce in REDUCTIONS[:4]}
    errors = []

    def work(reduce):
        try:
            for _ in range(20):
                mine = b.clone().requires_grad_()
                c = spmm(graph, mine, reduce=reduce)
                c.sum().backward()
                close(c, expected[reduce])
        except Exception as error:  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(reduce,)) for reduce in [*expected] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_errors_name_the_argument(device):
    graph = random_graph(9, 7, 25, device)
    b, values = operand(7, 4, device=device), operand(25, device=device)
    bad = [
        (ValueError, "b: the shape", lambda: spmm(graph, operand(8, 4, device=device))),
        (ValueError, "b: the shape", lambda: spmm(graph, operand(8, device=device))),
        (ValueError, "out: is", lambda: spmm(graph, b[:, 0].detach(), out=b.new_empty(9, 2))),
        (TypeError, "b: the type torch.int64", lambda: spmm(graph, b.long())),
        (TypeError, "b: a dense tensor", lambda: spmm(graph, b.detach().to_sparse())),
        (TypeError, "b: a tensor", lambda: sddmm(graph, operand(9, 4, device=device), [1])),
        (ValueError, "b is on meta", lambda: spmm(graph, b.to("meta"))),
        (ValueError, "values: the shape", lambda: spmm(graph, b, values[1:])),
        (ValueError, "values are on meta", lambda: spmm(graph, b, values.to("meta"))),
        (TypeError, "values are torch.float32", lambda: spmm(graph, b, values.float())),
        (TypeError, "values: the type", lambda: spmm(graph, b, values.to(torch.complex64))),
        (ValueError, "b: the shape", lambda: spmm(graph, b, torch.stack([values] * 2, 1))),
        (ValueError, "reduce: 'median'", lambda: spmm(graph, b, reduce="median")),
        (ValueError, "message: 'pow'", lambda: spmm(graph, b, message="pow")),
        (ValueError, "sample: strategy", lambda: spmm(graph, b, sample=Sample(16, "x"))),
        (ValueError, "x: the shape", lambda: sddmm(graph, b, b)),
        (TypeError, "x is torch.float32", lambda: sddmm(graph, b.new_ones(9, 4).float(), b)),
    ]
    for error, text, call in bad:
        with pytest.raises(error) as caught:
            call()
        assert text in str(caught.value), str(caught.value)
