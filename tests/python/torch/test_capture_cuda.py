"""capture on a GPU."""

import warnings

import pytest
import torch
from torch.nn.functional import cross_entropy, dropout

import warploom.torch as wt
from torch_oracle import random_graph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
NODES = 500


class Training:
    """Two layers on a graph, and their step."""

    def __init__(self, optimizer=torch.optim.Adam, share=0.0, reduce="mean"):
        torch.manual_seed(0)
        self.first = torch.nn.Linear(32, 16, device="cuda")
        self.second = torch.nn.Linear(16, 8, device="cuda")
        parameters = [*self.first.parameters(), *self.second.parameters()]
        self.optimizer = optimizer(parameters, lr=0.01)
        self.share, self.reduce = share, reduce

    def step(self, graph, x, labels):
        self.optimizer.zero_grad()
        hidden = wt.spmm(graph, self.first(x), reduce=self.reduce).relu()
        hidden = wt.message(graph, "relu(b)", b=dropout(hidden, self.share))
        loss = cross_entropy(self.second(hidden), labels)
        loss.backward()
        self.optimizer.step()
        return loss


def inputs(seed=0, nodes=NODES):
    generator = torch.Generator("cuda").manual_seed(seed)
    graph = random_graph(nodes, nodes, 8 * nodes, "cuda", seed=seed)
    x = torch.randn(nodes, 32, device="cuda", generator=generator)
    return graph, x, torch.randint(8, (nodes,), device="cuda", generator=generator)


def losses(train, calls):
    return [float(train(*call).detach()) for call in calls]


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_it_trains_as_without_it(optimizer, reduce):
    graph, x, labels = inputs()
    calls = [(graph, x + 0.01 * at, labels) for at in range(20)]
    wanted = losses(Training(optimizer, reduce=reduce).step, calls)
    train = wt.capture(Training(optimizer, reduce=reduce).step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = losses(train, calls)
    assert found == pytest.approx(wanted, rel=1e-2)
    assert train.reason is None and train.captures == 1


@pytest.mark.parametrize("layer", ["GCNConv", "SAGEConv", "GATConv", "ChebConv", "AGNNConv"])
def test_layers_of_pyg(layer):
    pyg = pytest.importorskip("torch_geometric.nn")
    import warploom.pyg

    def make(inputs, outputs):
        if layer == "AGNNConv":
            return torch.nn.ModuleList([torch.nn.Linear(inputs, outputs), pyg.AGNNConv()])
        more = {"K": 3} if layer == "ChebConv" else {}
        return torch.nn.ModuleList(
            [torch.nn.Identity(), getattr(pyg, layer)(inputs, outputs, **more)]
        )

    def apply(part, x, edge_index):
        return part[1](part[0](x), edge_index)

    edges = [torch.randint(NODES, (2, 4000), device="cuda") for _ in range(2)]
    _, x, labels = inputs()
    calls = [(x, edges[at // 10 % 2]) for at in range(40)]

    def train(is_captured):
        torch.manual_seed(0)
        first, second = make(32, 16).cuda(), make(16, 8).cuda()
        optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], 0.01)

        def step(x, edge_index):
            optimizer.zero_grad()
            hidden = apply(first, x, edge_index).relu()
            loss = cross_entropy(apply(second, hidden, edge_index), labels)
            loss.backward()
            optimizer.step()
            return loss

        run = wt.capture(step) if is_captured else step
        with warploom.pyg.accelerate():
            return losses(run, calls), run

    (wanted, _), (found, run) = train(False), train(True)
    assert found == pytest.approx(wanted, rel=2e-2)
    assert run.reason is None and run.captures == 2


def test_changes_are_captured_again():
    calls = [inputs()] * 5 + [inputs(1)] * 5 + [inputs(2, 700)] * 5
    calls += calls[::5] * 3
    wanted = losses(Training().step, calls)
    train = wt.capture(Training().step)
    assert losses(train, calls) == pytest.approx(wanted, rel=1e-2)
    assert train.captures == 3


def test_dropout_stays_random():
    run = wt.capture(lambda x: dropout(x, 0.5))
    ones = torch.ones(1000, device="cuda")
    found = [run(ones).clone() for _ in range(8)]
    assert run.captures == 1
    assert not any(torch.equal(a, b) for a, b in zip(found, found[1:], strict=False))
    train = wt.capture(Training(share=0.5).step)
    found = losses(train, [inputs()] * 30)
    assert train.captures == 1 and found[-1] < found[0]


def test_a_scheduler_with_a_rate_in_a_tensor():
    training = Training(lambda p, lr: torch.optim.Adam(p, lr=torch.tensor(lr, device="cuda")))
    train = wt.capture(training.step)
    scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 5, 0.0)
    call = inputs()
    for _ in range(10):
        train(*call)
        scheduler.step()
    weight = training.first.weight.detach().clone()
    train(*call)
    assert train.captures == 1 and torch.equal(weight, training.first.weight)


@pytest.mark.parametrize("mode", ["item", "seed", "adagrad"])
def test_steps_that_are_not_captured(mode):
    training = Training(torch.optim.Adagrad if mode == "adagrad" else torch.optim.Adam)
    terms = torch.zeros(NODES, 1, device="cuda")
    total = []

    def step(graph, x, labels):
        loss = training.step(graph, x, labels)
        if mode == "item":
            total.append(loss.item())
        if mode == "seed":
            wt.gat(graph, x, terms, terms, dropout=0.5)
        return loss

    run, call = wt.capture(step), inputs()
    expected = {"item": "waits for the GPU", "seed": "random numbers", "adagrad": "on the host"}
    with pytest.warns(UserWarning, match=expected[mode]) as caught:
        found = losses(run, [call] * 8)
    wanted = losses(Training(type(training.optimizer)).step, [call] * 8)
    assert found == pytest.approx(wanted, rel=1e-2)
    assert run.captures == 0 and len(caught) == 1


def test_a_capture_that_fails():
    """The GPU, its allocator and its generator work afterwards."""
    training, calls = Training(share=0.5), []

    def step(graph, x, labels):
        calls.append(1)
        loss = training.step(graph, x, labels)
        if len(calls) == 4:  # the capture; the last eager call saw no wait
            loss.item()
        return loss

    run = wt.capture(step)
    with pytest.warns(UserWarning, match="the capture failed"):
        found = losses(run, [inputs()] * 30)
    assert run.captures == 0 and found[-1] < found[0]
