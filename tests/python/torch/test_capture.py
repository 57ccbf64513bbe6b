"""capture: the same training as without it; when it captures, and when it says why it does not.

Without a GPU, recorded_cuda stands for torch.cuda and captures operators on the CPU.
"""

import importlib
import random
import threading
import warnings

import pytest
import torch
from torch.nn.functional import cross_entropy

import warploom.torch as wt
from recorded_cuda import Cuda
from warploom.torch import _capture
from warploom.torch._capture import step_of_thread
from warploom.torch._state import Made

NODES = 12


@pytest.fixture
def cuda(monkeypatch):
    cuda = Cuda()
    monkeypatch.setattr(_capture, "cuda", cuda)
    monkeypatch.setattr(_capture, "DEVICE", "cpu")
    monkeypatch.setattr(_capture, "leave_pool", lambda *pool: cuda.left.append(pool))
    for name in ("adam", "adamw", "nadam"):
        module = importlib.import_module(f"torch.optim.{name}")
        devices = "_get_capturable_supported_devices"
        monkeypatch.setattr(module, devices, lambda *a: ["cpu"], raising=False)
    return cuda


class Training:
    """A model on a graph, and its step."""

    def __init__(self, optimizer=torch.optim.Adam, **options):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        self.last = torch.nn.Linear(8, 3)
        parameters = [*self.model.parameters(), *self.last.parameters()]
        self.optimizer = optimizer(parameters, **{"lr": 0.05, **options})

    def step(self, x, edge_index, labels):
        self.optimizer.zero_grad()
        hidden = self.model(x)
        mixed = torch.zeros_like(hidden).index_add(0, edge_index[1], hidden[edge_index[0]])
        loss = cross_entropy(self.last(mixed), labels)
        loss.backward()
        self.optimizer.step()
        return loss


def inputs(seed=0, nodes=NODES, edges=30):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(nodes, 4, generator=generator),
        torch.randint(nodes, (2, edges), generator=generator),
        torch.randint(3, (nodes,), generator=generator),
    )


def losses(train, calls):
    return [float(train(*call).detach()) for call in calls]


@pytest.mark.parametrize(
    "optimizer, options",
    [
        (torch.optim.Adam, {}),
        (torch.optim.AdamW, {"amsgrad": True}),
        (torch.optim.NAdam, {}),
        (torch.optim.SGD, {"momentum": 0.9}),
    ],
)
@pytest.mark.parametrize("warmup", [1, 3])
def test_it_trains_as_without_it(optimizer, options, warmup, cuda):
    x, edge_index, labels = inputs()
    calls = [(x + at, edge_index, labels) for at in range(10)]  # other numbers in each call
    wanted = losses(Training(optimizer, **options).step, calls)
    train = wt.capture(Training(optimizer, **options).step, warmup)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = losses(train, calls)
    assert found == pytest.approx(wanted, rel=1e-4)
    assert train.reason is None and train.captures == 1
    assert [graph.replays for graph in cuda.graphs] == [10 - warmup]
    assert len(cuda.streams) == warmup and cuda.current is cuda.default


def test_changes_are_captured_again(cuda):
    x, edge_index, labels = inputs()
    same, other = (x, edge_index, labels), (x, edge_index.flip(0), labels)
    larger = inputs(1, nodes=15, edges=40)
    calls = [same] * 5 + [other] * 5 + [larger] * 5 + [same, other, larger] * 3
    wanted = losses(Training().step, calls)
    train = wt.capture(Training().step)
    assert losses(train, calls) == pytest.approx(wanted, rel=1e-4)
    assert train.captures == 3 and [graph.replays for graph in cuda.graphs] == [5, 5, 5]
    assert cuda.pools == {"the pool"}
    edge_index.copy_(edge_index.roll(1, 1))  # in place
    losses(train, [same] * 4)
    assert train.captures == 4
    views = [(x, edge_index[:], labels) for _ in range(4)]  # of the same memory
    losses(train, views)
    assert train.captures == 4


@pytest.mark.parametrize("is_tensor", [False, True])
def test_learning_rates(is_tensor, cuda):
    call = inputs()

    def train(is_captured):
        training = Training(lr=torch.tensor(0.1) if is_tensor else 0.1, foreach=False)
        step = wt.capture(training.step) if is_captured else training.step
        scheduler = torch.optim.lr_scheduler.StepLR(training.optimizer, 5, 0.5)
        found = []
        for _ in range(15):
            found.append(float(step(*call).detach()))
            scheduler.step()
        return found, step

    (wanted, _), (found, step) = train(False), train(True)
    assert found == pytest.approx(wanted, rel=1e-4)
    assert step.captures == (1 if is_tensor else 3)


@pytest.mark.parametrize("zeroes", [1, 3])
def test_gradients_that_are_zeroed_outside(zeroes, cuda):
    """The captures of an assigned and of an added gradient are two."""

    def train(is_captured):
        training = Training(torch.optim.SGD, lr=0.01)
        x, _, labels = inputs()

        def step():
            loss = cross_entropy(training.last(training.model(x)), labels)
            loss.backward()
            training.optimizer.step()
            return loss

        run = wt.capture(step) if is_captured else step
        found = []
        for at in range(24):
            if at % zeroes == 0:
                training.optimizer.zero_grad()
            found.append(float(run().detach()))
            found.append(float(training.last.weight.grad.sum()))
        return found, run

    (wanted, _), (found, run) = train(False), train(True)
    assert found == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    assert run.captures == min(zeroes, 2)


def test_arguments_of_all_kinds(cuda):
    x, edge_index, labels = inputs()
    seen = []

    def step(batch, scale=1.0, *, options):
        seen.append(scale)
        return {"sum": batch["x"].sum() * scale, "same": [batch["y"].cumsum(0)]}, options[1]

    run = wt.capture(step, warmup=1)
    for scale in (1.0, 1.0, 2.0, 2.0, 1.0):
        x = x + 1
        found, name = run({"x": x, "y": labels}, scale, options=(edge_index, "name"))
        torch.testing.assert_close(found["sum"], x.sum() * scale)
        torch.testing.assert_close(found["same"][0], labels.cumsum(0))
        assert name == "name"
    assert seen == [1.0, 1.0, 2.0, 2.0] and run.captures == 2
    assert run.__name__ == "step"


@pytest.mark.parametrize("shape, dtype", [(12, "int64"), ((3, 4), "int64"), ((2, 6), "float32")])
def test_only_an_edge_index_is_part_of_the_capture(shape, dtype, cuda):
    first = torch.arange(12).reshape(shape).to(getattr(torch, dtype))
    run = wt.capture(lambda given: given * 2, warmup=1)
    others = [first + at for at in range(5)]  # all alive, so that no two have the same address
    for given in others:
        torch.testing.assert_close(run(given), given * 2)
    assert [graph.replays for graph in cuda.graphs] == [4]


def test_graphs_are_known_by_their_values(cuda):
    edge_index = inputs()[1]
    graph = wt.Graph.from_edge_index(edge_index, torch.ones(30), rows=NODES, cols=NODES)
    run = wt.capture(lambda graph, x: x * graph.values.sum(), warmup=1)
    x = torch.ones(3)
    for values in (graph.values, graph.values, torch.zeros(30), None):
        graph.values = torch.full((30,), 2.0) if values is None else values
        for _ in range(2):
            torch.testing.assert_close(run(graph, x), x * graph.values.sum())
    assert run.captures == 3
    graph.colind.data = graph.colind.clone()
    run(graph, x), run(graph, x)
    assert run.captures == 4


def test_memory_of_a_graph_without_an_argument_moves(cuda):
    graph = wt.Graph.from_edge_index(inputs()[1], rows=NODES, cols=NODES)
    b, x = torch.ones(NODES, 1), torch.ones(3)

    def step(x):
        wt.spmm(graph, b)
        return x * graph.colind.sum()

    run = wt.capture(step, warmup=1)
    for change in (0, 1):
        graph.colind.data = (graph.colind + change) % NODES
        for _ in range(3):
            torch.testing.assert_close(run(x), step(x))
    assert run.captures == 2


def in_another_thread(function):
    """As PyTorch computes gradients on a GPU."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("kind", ["ordered", "transposed", "norm"])
def test_values_of_edges_without_an_argument(kind, cuda):
    """They are changed, and what was made of them before the capture is not used again."""
    edge_index, weights = inputs()[1], torch.rand(30)
    graph = wt.Graph.from_edge_index(edge_index, rows=NODES, cols=NODES)
    weighted = wt.Graph(graph.rowptr, graph.colind, weights, cols=NODES)
    norms = []

    def step(x):
        if kind == "ordered":
            return x * in_another_thread(lambda: graph.order_edges(weights, graph.perm))
        if kind == "transposed":
            return x * weighted.t().values
        if not norms or not norms[-1].is_of(weights):
            norms.append(Made((weights * 2,), weights))
        return x * norms[-1].tensors[0]

    run, x = wt.capture(step, warmup=1), torch.ones(30)
    for change in (None, weights.neg_, lambda: setattr(weights, "data", torch.ones(30))):
        if change is not None:
            change()
        for _ in range(3):
            torch.testing.assert_close(run(x), step(x))
    assert run.captures == 3


@pytest.mark.parametrize("is_view", [False, True])
def test_edges_without_an_argument(is_view, cuda):
    """As above, of an edge_index that PyG's layers look up."""
    find_sorted = pytest.importorskip("warploom.pyg._sorted").find_sorted
    edge_index, x = inputs()[1], torch.ones(30)

    def step(x):
        edges = edge_index.detach() if is_view else edge_index
        return x * find_sorted(None, edges, False, NODES, NODES).graph.colind

    run = wt.capture(step, warmup=2)  # the first of these calls sorts the edges
    for shift in (0, 1):
        if shift:
            edge_index.add_(shift).remainder_(NODES)
        for _ in range(4):
            torch.testing.assert_close(run(x), step(x))
    assert run.captures == 2


def test_a_replay_counts_its_writes(cuda):
    """What is made of a tensor is made again where the tensor has another version."""
    sums, ones = torch.zeros(3), torch.ones(3)
    run = wt.capture(lambda x: sums.add_(x).clone(), warmup=1)
    for calls in range(1, 5):
        before = sums._version
        torch.testing.assert_close(run(ones), calls * ones)
        assert sums._version > before
    assert run.captures == 1


def test_dropout_stays_random(cuda):
    generator = torch.Generator()  # a GPU has one of its own

    def step(x):
        return x * torch.empty_like(x).bernoulli_(0.5, generator=generator)

    run = wt.capture(step, warmup=2)
    ones = torch.ones(1000)
    found = [run(ones).clone() for _ in range(5)]
    assert run.captures == 1
    assert not any(torch.equal(a, b) for a, b in zip(found, found[1:], strict=False))


def reason_of(step, *call, calls=6, warmup=3):
    """Run a step as often as it runs by itself; returns why it is not captured."""
    run = wt.capture(step, warmup)
    with pytest.warns(UserWarning) as caught:
        for _ in range(calls):
            run(*call)
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("warploom: capture: ") and text.endswith("; it runs eagerly")
    assert "\n" not in text and run.reason in text and warning.filename == __file__
    return run.reason


def test_a_step_that_waits(cuda):
    ran = []

    def step(x):
        ran.append(x.sum().item())

    assert "waits for the GPU" in reason_of(step, torch.ones(3))
    assert len(ran) == 6 and cuda.sync_debug_mode == "default" and not cuda.graphs


def test_a_step_that_draws_on_the_cpu(cuda):
    assert "random numbers" in reason_of(lambda x: x + torch.rand(3), torch.ones(3))
    assert "random numbers" in reason_of(lambda x: x * random.random(), torch.ones(3))


def test_a_capture_that_fails(cuda):
    """It is undone: gradients, the stream and the generator."""
    call = inputs()
    wanted = losses(Training().step, [call] * 8)
    training = Training()

    def step(*call):
        loss = training.step(*call)
        if cuda.graphs:
            torch.rand(1)
            loss.item()
        return loss

    run = wt.capture(step)
    torch.manual_seed(5)
    with pytest.warns(UserWarning, match="the capture failed .CUDA error: operation not") as caught:
        found = losses(run, [call] * 8)
    assert len(caught) == 1 and "More" not in run.reason
    assert found == pytest.approx(wanted, rel=1e-4)
    assert cuda.current is cuda.default and cuda.left == [(0, "the pool")]
    assert [len(graph.calls) > 0 for graph in cuda.graphs] == [True, True]  # one cleans up
    drawn = torch.rand(1)
    torch.manual_seed(5)
    torch.rand(5)  # of the calls that ran eagerly
    torch.testing.assert_close(drawn, torch.rand(1))


def test_optimizers_that_count_on_the_host(cuda):
    class Counting(torch.optim.SGD):
        def step(self):
            super().step()
            for group in self.param_groups:
                for p in group["params"]:
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1

    reason = reason_of(Training(Counting).step, *inputs())
    assert "Counting keeps its 'count' on the host; use" in reason


def test_a_scheduler_in_the_step(cuda):
    training = Training()
    scheduler = torch.optim.lr_scheduler.ExponentialLR(training.optimizer, 0.9)

    def step(*call):
        loss = training.step(*call)
        scheduler.step()
        return loss

    assert "learning rate" in reason_of(step, *inputs())


def test_steps_without_work_or_with_other_devices(cuda, monkeypatch):
    assert "does nothing" in reason_of(lambda: None)
    monkeypatch.setattr(_capture, "DEVICE", "cuda")
    assert "returns a tensor on the cpu" in reason_of(lambda x: x + 1, torch.ones(3))
    run = wt.capture(Training().step)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses(run, [inputs()] * 6)
    assert run.reason == "its parameters are on the cpu" and not run.captures


def test_autocast_around_it(cuda):
    with torch.autocast("cpu", torch.bfloat16):
        assert "autocast" in reason_of(lambda x: x @ x, torch.ones(3, 3))


def test_many_kinds(cuda):
    """Mini-batches of other shapes run eagerly, and the captures of the last kinds are kept."""
    train = wt.capture(Training().step)
    losses(train, [inputs()] * 4)
    batches = [inputs(seed, edges=31 + seed) for seed in range(50)]
    with pytest.warns(UserWarning, match=r"no call was replayed, since argument 1") as caught:
        losses(train, batches)
    assert len(caught) == 1 and train.reason is None and train.captures == 1
    assert len(train._kinds) <= 16


@pytest.mark.parametrize("edges", [None, "changing"])
def test_edges_that_change(edges, cuda):
    """One capture serves all edges of a shape, from the third one on where nothing says so."""
    calls = [inputs(seed) for seed in range(12)]
    wanted = losses(Training().step, calls)
    train = wt.capture(Training().step, edges=edges)
    assert losses(train, calls) == pytest.approx(wanted, rel=1e-4)
    assert train.reason is None and train.captures == 1
    assert [graph.replays for graph in cuda.graphs] == [9 if edges else 7]


def test_what_is_made_of_edges_that_change(cuda):
    """A step keeps what layers make of such edges, and the next one makes it again."""
    find_sorted = pytest.importorskip("warploom.pyg._sorted").find_sorted
    found, calls = [], [inputs(seed)[1] for seed in range(4)]

    def step(edges):
        # A layer uses them twice, and so does another one.
        graphs = [find_sorted(layer, edges, False, NODES, NODES).graph for layer in (1, 1, 2)]
        found.append(graphs)
        return graphs[0].colind + 0

    run = wt.capture(step, warmup=len(calls), edges="changing")
    for edges in calls:
        run(edges)
    for graphs, edges in zip(found, calls, strict=True):
        order = torch.argsort(edges[1], stable=True)
        assert graphs[0] is graphs[1] is graphs[2] and graphs[0].once
        assert torch.equal(graphs[0].colind.long(), edges[0][order])


def test_a_step_that_takes_its_batch_itself(cuda):
    """It would be replayed with one batch for ever."""
    batches = [inputs(seed) for seed in range(2)]  # kept, and used again
    for warmup in (1, 2, 3):
        training, left = Training(), iter(batches * 5)
        reason = reason_of(lambda t=training, i=left: t.step(*next(i)), warmup=warmup)
        assert "test_capture.py:" in reason and "float32 (12, 4), at each call; pass" in reason
    kept, cached = [torch.ones(3), torch.zeros(3)], []

    def step(x):  # what one call brings is the same in the next ones
        cached.append(kept[min(len(cached), 1)])
        return x + cached[-1]

    run = wt.capture(step)
    for _ in range(6):
        run(torch.ones(1))
    assert run.reason is None and run.captures == 1


def test_modes_of_modules(cuda):
    """train and eval between the calls."""
    training, call = Training(), inputs()
    training.model.append(torch.nn.Dropout(1.0))
    run = wt.capture(lambda x: training.model(x))
    for _ in range(2):
        for mode in (True, False):
            training.model.train(mode)
            for _ in range(4):
                found = run(call[0])
                assert (found == 0).all() == mode
    assert run.captures == 2


def test_an_exception_in_a_step(cuda):
    """The next call works, also where the capture met it."""
    call, failing = inputs(), []

    def step(x):
        if failing:
            raise KeyError("mine")
        return x * 2

    run = wt.capture(step)
    for at in range(12):
        failing[:] = [1] if at in (1, 4) else []  # warming up, and the capture
        if failing:
            with pytest.raises(KeyError, match="mine"):
                run(call[0])
        else:
            torch.testing.assert_close(run(call[0] + at), 2 * (call[0] + at))
    assert run.captures == 1 and run.reason is None


def test_a_step_knows_that_it_is_replayed(cuda):
    seen = []

    def step(x):
        seen.append(step_of_thread.is_replayed)
        return x + 1

    train = wt.capture(step, warmup=2)
    for _ in range(5):
        train(torch.ones(3))
    assert seen == [True] * 3 and not step_of_thread.is_replayed


def test_errors_are_those_of_the_step(cuda):
    def step(x):
        raise KeyError("mine")

    run = wt.capture(step)
    for _ in range(6):
        with pytest.raises(KeyError, match="mine"):
            run(torch.ones(1))


def test_without_a_gpu_it_runs_eagerly():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    train = wt.capture(Training().step)
    call = inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = losses(train, [call] * 5)
    assert found == losses(Training().step, [call] * 5)
    assert train.reason == "there is no GPU" and train.captures == 0


def test_bad_input():
    with pytest.raises(TypeError, match="step: a function is needed, not int"):
        wt.capture(3)
    with pytest.raises(ValueError, match="warmup: 0 is not in 1"):
        wt.capture(print, 0)
    with pytest.raises(ValueError, match="edges: 'sorted' is not 'changing' or None"):
        wt.capture(print, edges="sorted")


@pytest.mark.parametrize("waits", [False, True])
def test_waits_of_other_threads(cuda, waits):
    """A thread that fills a batch meanwhile may wait for the GPU."""

    def wait():
        warnings.warn(_capture._WAITS, stacklevel=1)

    watch = _capture._Watch(cuda)
    with watch:
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        assert watch.reason is None
        if waits:
            wait()
    assert bool(watch.reason) == waits
