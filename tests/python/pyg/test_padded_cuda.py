"""Padded batches on a GPU: captured training on warploom beside PyG's on batches as they are."""

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy

pytest.importorskip("torch_geometric")


import warploom.pyg
from test_padded import CASES, CHANNELS, OPTIMIZERS, Model, batches, molecules, train
from warploom.pyg import padded
from warploom.torch import capture

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


class Moved:
    """The batches of a loader on the GPU."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        return (batch.to("cuda") for batch in self.loader)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[conv for conv, _ in CASES])
def test_equal_training(number):
    """All of them are captured, and train as PyG does."""
    conv, options = CASES[number]
    torch.manual_seed(0)
    model = Model(conv, **options).double().cuda()
    other, steps = copy.deepcopy(model), []

    def captured(step):
        steps.append(capture(step))
        return steps[0]

    arguments = 50, OPTIMIZERS[2], 1.0
    warploom.pyg.report(reset=True)
    losses, state = train(model, Moved(batches()), lambda step: step, *arguments)
    loader = padded(batches())
    with warploom.pyg.accelerate():
        found, found_state = train(other, loader, captured, *arguments)
    assert steps[0].reason is None and 1 <= steps[0].captures <= len(loader.sizes)
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
    for one, two in zip(found_state, state, strict=True):  # PyG's sums have any order
        torch.testing.assert_close(one, two, rtol=0, atol=1e-9)
    counts = warploom.pyg.report(reset=True)
    assert all(set(reasons) == {"warploom"} for reasons in counts.values()), counts


def test_modes_and_types_in_the_middle():
    """train and eval between calls, another type, and an exception in a step."""
    torch.manual_seed(0)
    model = Model("sage-mean", norm="batch").double().cuda()
    other, failing = copy.deepcopy(model), []

    def loss_of(which):
        def step(batch):
            if failing:
                raise KeyError("mine")
            return cross_entropy(which(batch), batch.y)

        return step

    run, loader = capture(loss_of(model)), padded(batches())
    plainly = capture(loss_of(other), warmup=1000)
    with warploom.pyg.accelerate():
        for epoch in range(12):
            for module in (model, other):
                module.train(epoch % 2 == 0)
            for at, batch in enumerate(loader):
                plain = batch.clone().to("cuda")
                if at == 1 and epoch < 2:
                    failing.append(1)
                    with pytest.raises(KeyError, match="mine"):
                        run(batch)
                    failing.clear()
                wanted = plainly(plain)
                torch.testing.assert_close(run(batch), wanted, rtol=0, atol=1e-9)
    assert run.reason is None and 2 <= run.captures <= 2 * len(loader.sizes)


@pytest.mark.parametrize("conv", ["gcn", "sage-max", "gin"])
def test_edges_that_change(conv):
    """Of one shape, without ghosts: also rows without edges, and one row with all of them."""
    torch.manual_seed(0)
    nodes, edges = 40, 300
    model = Model(conv, pool=lambda x, batch: x).double().cuda()
    data = molecules()[0].to("cuda")
    data.x = torch.randn(nodes, CHANNELS, dtype=torch.float64, device="cuda")
    run = capture(lambda one: model(one).sum())
    with warploom.pyg.accelerate():
        for at in range(12):
            data = copy.copy(data)
            data.edge_index = torch.randint(nodes, (2, edges), device="cuda")
            if at % 4 == 3:
                data.edge_index[1] = at
            found = run(data).detach().clone()
            with torch.no_grad():
                wanted = sum_by_pyg(model, data)
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    assert run.reason is None and run.captures == 1


def sum_by_pyg(model, data):
    """The same without warploom."""
    warploom.pyg.disable()
    try:
        return model(data).sum()
    finally:
        warploom.pyg.enable()


def test_a_step_that_takes_its_batch_itself():
    model = Model("gin").cuda().double()
    optimizer = torch.optim.Adam(model.parameters())
    kept = [batch.to("cuda") for batch in batches()]
    left = iter(kept * 9)

    def step():
        batch = next(left)
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), batch.y)
        loss.backward()
        optimizer.step()
        return loss

    run = capture(step)
    with warploom.pyg.accelerate(), pytest.warns(UserWarning, match="reads another tensor|waits"):
        for _ in range(10):
            run()
    assert run.captures == 0


def test_dropout_over_many_steps():
    """Its share is that of the eager steps, and each replay draws other numbers."""
    (batch,) = padded([next(iter(batches()))])
    run = capture(lambda b: torch.nn.functional.dropout(torch.ones_like(b.x), 0.3)[:4])
    drawn = torch.stack([run(batch).clone() for _ in range(1000)])
    assert float(drawn.mean()) == pytest.approx(1, abs=0.02)
    assert (drawn[-1] != drawn[-2]).any() or (drawn[-2] != drawn[-3]).any()
    assert run.captures == 1
