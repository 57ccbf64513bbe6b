"""Features of GPUs: streams, torch's allocator, CUDA graphs, several devices."""

import threading

import pytest
import torch

from torch_oracle import close, operand, product, random_graph
from warploom.torch import Graph, Sample, edge_softmax, spmm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_memory_comes_from_torch():
    def work():
        graph = random_graph(30000, 30000, 600000, "cuda")
        for reduce in ("sum", "mean"):
            b = operand(30000, 64, device="cuda", dtype=torch.float32)
            spmm(graph, b, reduce=reduce).sum().backward()
        torch.cuda.synchronize()
        return graph

    work()  # compiles and loads kernels, for which the driver allocates memory
    torch.cuda.empty_cache()
    free, reserved = torch.cuda.mem_get_info()[0], torch.cuda.memory_reserved()
    allocated = torch.cuda.memory_allocated()
    graph = work()
    kept = torch.cuda.memory_allocated() - allocated
    assert kept >= 3 * 600000 * 4  # for each edge: colind, and the index and position of A^T
    outside = free - torch.cuda.mem_get_info()[0] - (torch.cuda.memory_reserved() - reserved)
    assert outside < 4 << 20
    del graph
    assert torch.cuda.memory_allocated() - allocated < 1 << 20


@pytest.mark.parametrize("dtype, most", [(torch.float32, 10), (torch.float16, 8)])
def test_memory_of_a_step_of_max(dtype, most):
    """Bytes for each element: C, positions and dB, and half as many sums of 32 bits; besides, a
    workspace."""
    graph, n = random_graph(20000, 20000, 200000, "cuda"), 64
    b = operand(20000, n, device="cuda", dtype=dtype)
    x = torch.ones_like(b)

    def step():
        c = spmm(graph, b, reduce="max")
        return c, *torch.autograd.grad(c, b, x)

    step()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = step()
    assert torch.cuda.max_memory_allocated() - before < most * 20000 * n + (1 << 20)
    assert all(tensor.dtype == dtype for tensor in kept)


def test_current_stream():
    graph = random_graph(500, 400, 4000, "cuda")
    b = operand(400, 32, device="cuda")
    expected = product(graph, b)
    side = torch.cuda.Stream()
    spmm(graph, b)
    for _ in range(10):
        with torch.cuda.stream(side):
            torch.cuda._sleep(1_000_000)
            doubled = b * 2
            c = spmm(graph, doubled)
            c.sum().backward()
        torch.cuda.current_stream().wait_stream(side)
        close(c, 2 * expected)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_graphed_callables(once, reduce):
    graph = random_graph(500, 400, 4000, "cuda", once=once)
    b = operand(400, 32, device="cuda", dtype=torch.float32)
    values = operand(4000, device="cuda", dtype=torch.float32)

    class Product(torch.nn.Module):
        def forward(self, b, values):
            return spmm(graph, b, values, reduce=reduce)

    graphed = torch.cuda.make_graphed_callables(Product(), (b, values))
    for _ in range(3):
        new_b = operand(400, 32, device="cuda", dtype=torch.float32)
        new_values = operand(4000, device="cuda", dtype=torch.float32)
        c = graphed(new_b, new_values)
        expected = product(graph, new_b.double(), new_values.double(), reduce)
        close(c / 10, expected / 10, torch.float32)
        x = torch.rand_like(c)
        found = torch.autograd.grad(c, (new_b, new_values), x)
        wanted = torch.autograd.grad(expected, (new_b, new_values), x.double())
        for one, other in zip(found, wanted, strict=True):
            scale = 1 + float(other.abs().max())
            close(one / scale, other / scale, torch.float32)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_a_whole_training_step(reduce):
    def train(graphed):
        torch.manual_seed(0)
        graph = random_graph(500, 500, 4000, "cuda")
        features = torch.randn(500, 32, device="cuda")
        target = torch.randint(0, 8, (500,), device="cuda")
        first = torch.nn.Linear(32, 16, device="cuda")
        second = torch.nn.Linear(16, 8, device="cuda")
        parameters = [*first.parameters(), *second.parameters()]
        optimizer = torch.optim.Adam(parameters, 0.01, capturable=True)

        def step():
            optimizer.zero_grad(set_to_none=True)
            hidden = spmm(graph, first(features), reduce=reduce).relu()
            out = spmm(graph, second(hidden), reduce=reduce)
            loss = torch.nn.functional.cross_entropy(out, target)
            loss.backward()
            optimizer.step()
            return loss

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                loss = step()
        torch.cuda.current_stream().wait_stream(side)
        if graphed:
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                loss = step()
        for _ in range(17):
            if graphed:
                captured.replay()
            else:
                loss = step()
        return float(loss)

    eager, replayed = train(False), train(True)
    assert eager == pytest.approx(replayed, rel=1e-2)


def test_a_capture_needs_a_warm_up():
    graph = random_graph(50, 40, 400, "cuda")
    b = torch.ones(40, 8, device="cuda")
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="run the step a few times"), torch.cuda.graph(captured):
        spmm(graph, b)


@pytest.mark.parametrize("in_another_thread", [False, True])
def test_graphs_may_be_released_during_a_capture(in_another_thread):
    b = torch.ones(40, 8, device="cuda")
    kept, gone = random_graph(50, 40, 400, "cuda"), [random_graph(60, 40, 400, "cuda")]
    for graph in (kept, *gone):
        for _ in range(2):
            mine = b.clone().requires_grad_()
            spmm(graph, mine).sum().backward()
    del graph
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        c = spmm(kept, b)
        if in_another_thread:  # as autograd's, whose current stream is not the captured one
            thread = threading.Thread(target=gone.clear)
            thread.start()
            thread.join()
        gone.clear()
    captured.replay()
    close(c, product(kept, b.double()), torch.float32)


def test_sampling_and_softmax_on_the_gpu():
    graph = random_graph(50, 400, 40000, "cuda")
    b = torch.rand(400, 32, device="cuda")
    home = graph.cpu()
    sample = Sample(32, "fastrand_coprime", "unbiased")
    for seed in (0, 5):
        found = spmm(graph, b, sample=sample, seed=seed)
        wanted = spmm(home, b.cpu(), sample=sample, seed=seed)
        close(found / 1000, wanted / 1000, torch.float32)
    scores = torch.randn(40000, 4, device="cuda")
    close(edge_softmax(graph, scores), edge_softmax(home, scores.cpu()), torch.float32)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_second_device():
    torch.cuda.set_device(0)
    graph = random_graph(500, 400, 4000, "cuda:1")
    b = operand(400, 32, device="cuda:1")
    for reduce in ("sum", "mean", "max"):
        c = spmm(graph, b, reduce=reduce)
        c.sum().backward()
        assert c.device == b.device and torch.cuda.current_device() == 0
        close(c, product(graph, b, reduce=reduce))
    there = graph.to("cuda:0")
    assert isinstance(there, Graph) and there.device.index == 0
    with pytest.raises(ValueError, match="b is on cuda:1, the graph on cuda:0"):
        spmm(there, b)
