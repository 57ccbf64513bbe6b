"""PyG computes the first calls of a layer, until their kernels were compiled on other threads."""

import contextlib
import gc
import weakref
from concurrent import futures

import pytest
import torch
from torch.utils.checkpoint import checkpoint
from torch_geometric import nn as pyg

import warploom.pyg
import warploom.torch as wt
from layer_cases import NODES, draw, graph
from warploom.pyg import _propagate, _relations, _sorted
from warploom.torch import _capture, _graph, _later, _plan

COMPILING = "its kernels are being compiled"
SERVED = "warploom"
LAYERS = {
    "SAGE": lambda: pyg.SAGEConv(8, 5, aggr="max"),
    "GAT": lambda: pyg.GATConv(8, 5, heads=2),
    "ResGated": lambda: pyg.ResGatedGraphConv(8, 5),
    "PNA": lambda: pyg.PNAConv(8, 5, ["max", "std"], ["identity"], torch.ones(9, dtype=torch.long)),
    "GEN": lambda: pyg.GENConv(8, 5, norm="layer"),
    "ARMA": lambda: pyg.ARMAConv(8, 5),
}


class Held(futures.Executor):
    """Keeps what it is given until `run`."""

    def __init__(self):
        self.given = []

    def submit(self, function, *args):
        found = futures.Future()
        self.given.append((found, function, args))
        return found

    def run(self):
        for found, function, args in self.given:
            try:
                found.set_result(function(*args))
            except Exception as error:
                found.set_exception(error)
        self.given.clear()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing is ready."""
    monkeypatch.setattr(_later, "FIRST_DEVICE", -1)
    monkeypatch.setattr(_graph, "_once", {})
    monkeypatch.setattr(_later, "_first_uses", {(-1, "sorting"): (), (-1, "relations"): ()})
    warploom.pyg.report(reset=True)
    yield
    warploom.pyg.report(reset=True)


@pytest.fixture
def held(monkeypatch):
    """Jobs end when this runs them, or when something waits for them."""
    pool = Held()
    monkeypatch.setattr(_later, "_pool", pool)
    monkeypatch.setattr(_later.futures, "wait", lambda job: pool.run())
    return pool


@pytest.fixture
def plans(monkeypatch):
    """Plans that are made: each may compile."""
    made = []
    init = _plan.KeptPlan.__init__

    def note(self, *args):
        made.append(args)
        init(self, *args)

    monkeypatch.setattr(_plan.KeptPlan, "__init__", note)
    return made


def step(layer, edge_index):
    x = draw(NODES, 8).float().requires_grad_()
    out = layer(x, edge_index)
    (gradient,) = torch.autograd.grad(out.square().sum(), x)
    return out.detach(), gradient


def counts(layer):
    return warploom.pyg.report(reset=True)[type(layer).__name__]


@pytest.mark.parametrize("name", LAYERS)
def test_pyg_computes_until_all_kernels_are_there(name, held, plans):
    """Those of gradients, too; what was compiled for a first use serves until the better one is
    ready."""
    layer, edge_index = LAYERS[name](), graph()
    expected = step(layer, edge_index)
    with warploom.pyg.accelerate(wait=False):
        for _ in range(3):
            found = step(layer, edge_index)
            assert all(map(torch.equal, found, expected))
        assert counts(layer) == {COMPILING: 3} and not plans
        for _ in range(3):  # the last one finds all kernels of the kept graph
            assert held.given or plans
            held.run()
            before = len(plans)
            for _ in range(2):
                found = step(layer, edge_index)
                torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
            assert counts(layer) == {"warploom": 2} and len(plans) == before
    assert plans and not held.given


def test_a_device_is_opened_meanwhile(held, monkeypatch):
    sorts = []

    def sort(*args):
        sorts.append(args)
        return once_graph(*args)

    once_graph = _sorted.OnceGraph
    monkeypatch.setattr(_sorted, "OnceGraph", sort)
    monkeypatch.setattr(_later, "_first_uses", {})
    layer, edge_index = pyg.SAGEConv(8, 5), graph()
    with warploom.pyg.accelerate():
        for _ in range(2):
            step(layer, edge_index)
        assert not sorts and len(held.given) == 1
        held.run()
        assert len(sorts) == 1 and not held.given
        step(layer, edge_index)
        assert len(sorts) == 2 and held.given  # of the kernels
    assert counts(layer) == {COMPILING: 3}


def test_relations_are_found_meanwhile(held, monkeypatch):
    calls, find = [], _relations._pairs_of
    monkeypatch.setattr(_relations, "_pairs_of", lambda *given: calls.append(1) or find(*given))
    monkeypatch.setattr(_later, "_first_uses", {(-1, "sorting"): ()})
    layer, edge_index = pyg.RGCNConv(8, 5, 3), graph()
    given = torch.rand(NODES, 8), edge_index, torch.arange(edge_index.size(1)) % 3
    expected = layer(*given)
    with warploom.pyg.accelerate():
        torch.testing.assert_close(layer(*given), expected)
        assert not calls and len(held.given) == 1
        held.run()
        layer(*given)
        assert len(calls) == 2 and held.given  # of the kernels
        for _ in range(4):  # of both products, at their first and second use
            held.run()
            torch.testing.assert_close(layer(*given), expected)
    assert counts(layer)[SERVED] >= 1


@pytest.mark.parametrize("wait", [None, False, True])
def test_accelerate_does_not_wait_by_default(wait, held):
    layer = warploom.pyg.convert(pyg.SAGEConv(8, 5))
    with warploom.pyg.accelerate(wait=wait), warploom.pyg.accelerate():
        step(layer, graph())
    assert counts(layer) == {SERVED if wait else COMPILING: 1}
    step(layer, graph())
    assert counts(layer) == {SERVED: 1}


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def saved_by_hooks():
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)


WAITS = {
    "wait": lambda: warploom.pyg.accelerate(wait=True),
    "deterministic": deterministic,
    "hooks": saved_by_hooks,
    "captured": lambda: _capture._replayed(False),
    "timed": _later.timed,
}


@pytest.mark.parametrize("waits", WAITS)
def test_where_a_switch_would_be_felt_calls_wait(waits, held):
    layer, edge_index = pyg.SAGEConv(8, 5), graph()
    with warploom.pyg.accelerate(wait=False), WAITS[waits]():
        for _ in range(3):
            step(layer, edge_index)
    assert counts(layer) == {"warploom": 3} and not held.given


@pytest.mark.parametrize("waits", WAITS)
def test_a_job_that_runs_is_waited_for(waits, held):
    layer, edge_index = pyg.ResGatedGraphConv(8, 5), graph()
    with warploom.pyg.accelerate(wait=False):
        step(layer, edge_index)
        with WAITS[waits]():
            step(layer, edge_index)
    of_second = "a message in activation checkpointing" if waits == "hooks" else "warploom"
    assert counts(layer) == {COMPILING: 1, of_second: 1}


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_activation_checkpointing(is_reentrant, held):
    layer, edge_index = pyg.SAGEConv(8, 5, aggr="max"), graph()
    x = draw(NODES, 8).float().requires_grad_()
    layer(x, edge_index).square().sum().backward()
    expected, x.grad = x.grad, None
    with warploom.pyg.accelerate(wait=False):
        layer(x, edge_index)  # starts to compile
        checkpoint(layer, x, edge_index, use_reentrant=is_reentrant).square().sum().backward()
    torch.testing.assert_close(x.grad, expected)


def test_a_kernel_that_does_not_compile_is_no_hang(held, monkeypatch):
    """The call itself reports what is wrong."""
    layer, edge_index = pyg.SAGEConv(8, 5), graph()

    def fail(*args):
        raise RuntimeError("no compiler")

    with warploom.pyg.accelerate(wait=False):
        step(layer, edge_index)
        held.given = [(found, fail, ()) for found, _, _ in held.given]
        held.run()
        step(layer, edge_index)
    assert counts(layer) == {COMPILING: 1, "warploom": 1}


def test_hooks_see_each_call_once(held):
    """A linear map runs before attention, which is not ready."""
    layer, edge_index, seen = pyg.GATConv(8, 5), graph(), []
    layer.lin.register_forward_hook(lambda *args: seen.append(1))
    with warploom.pyg.accelerate(wait=False):
        for _ in range(3):
            step(layer, edge_index)
    assert len(seen) == 3 and counts(layer) == {"warploom": 3}


def test_a_size_that_is_new_compiles_meanwhile(held):
    layer = pyg.SAGEConv(8, 5)
    with warploom.pyg.accelerate(wait=False):
        for edges in (100, 101, 1000):
            for _ in range(2):
                step(layer, graph(edges=edges))
            held.run()
    assert counts(layer) == {COMPILING: 4, "warploom": 2}


def test_threads_of_the_pool():
    layer, edge_index = pyg.PNAConv(8, 5, ["max"], ["identity"], torch.ones(9).long()), graph()
    expected = step(layer, edge_index)
    with warploom.pyg.accelerate(wait=False):
        for _ in range(2):
            found = step(layer, edge_index)
            futures.wait(_propagate._compiling.get(layer, ()))
    assert counts(layer)["warploom"] >= 1
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_jobs_keep_no_layer(held):
    layer = pyg.SAGEConv(8, 5)
    with warploom.pyg.accelerate(wait=False):
        step(layer, graph())
    alive = weakref.ref(layer)
    del layer
    gc.collect()
    assert alive() is None


class Failing(pyg.MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def update(self, out):
        raise RuntimeError("a fault of the user's")


def test_only_layers_are_refused(held):
    """A product of the user's own waits, also after a layer that has raised an error."""
    made = wt.Graph.from_edge_index(graph(), rows=NODES, cols=NODES)
    with warploom.pyg.accelerate(wait=False):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="user's"):
                Failing()(draw(NODES, 8).float(), graph())
            wt.spmm(made, draw(NODES, 8).float())
            held.run()


def test_threads_with_new_edges_in_each_step():
    """The pool compiles for both while they go on."""
    runs = [
        [(layer, graph(edges=edges, seed=edges)) for edges in (90, 91, 300, 301, 1200, 1201)]
        for layer in (LAYERS["PNA"](), LAYERS["ResGated"]())
    ]
    expected = [[step(*one) for one in run] for run in runs]
    with warploom.pyg.accelerate(wait=False), futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda run: [step(*one) for one in run], runs))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
