"""Recorded messages: replayed while nothing changes, and right when something does."""

import copy
import gc
import pickle
import random
import sys
import threading
import types
import weakref

import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn import MessagePassing

import warploom.pyg
from layer_cases import CASES, EDGES, NODES, WEIGHT, X, draw, graph
from test_messages import cast, compare, run, step
from warploom import _pyg_messages, _pyg_state

SCALE = 0.5


@pytest.fixture
def traces(monkeypatch):
    """Counts how often a message is traced."""
    found = []

    class Counted(_pyg_messages._Call):
        def __init__(self, *args):
            found.append(1)
            super().__init__(*args)

    monkeypatch.setattr(_pyg_messages, "_Call", Counted)
    return found


@pytest.mark.parametrize(
    "name", ["Cheb", "Edge", "FA", "FiLM", "GEN_learn", "GINE", "PNA", "ResGated", "SuperGAT"]
)
def test_a_repeated_call_is_not_traced(name, traces):
    make, inputs = CASES[name]
    layer, edge_index = make(), graph()
    with warploom.pyg.accelerate():
        for _ in range(4):  # a recording fails if a finalizer of another object runs in it
            step(layer, inputs, edge_index, torch.float32)
        traces.clear()
        for _ in range(3):
            step(layer, inputs, edge_index, torch.float32)
    assert not traces


# ---- what may change -----------------------------------------------------------------------------


class Scaled(nn.Module):
    """A module of the user, whose code names a global."""

    factor = 1.5

    def forward(self, x):
        return x * (SCALE * self.factor)


class Changing(MessagePassing):
    """Reads numbers, modules, tensors, containers, globals and attributes of the class."""

    power = 1.0

    def __init__(self):
        super().__init__(aggr="sum")
        self.source, self.target = nn.Linear(8, 6), nn.Linear(8, 6)
        self.drop, self.scaled = nn.Dropout(0.0), Scaled()
        self.steps = [1.0, 2.0]
        self.options = {"shift": 0.25}
        self.p = 0.3
        self.register_buffer("offset", torch.full((6,), 0.1))
        self.gate = None

    def forward(self, x, edge_index, w=None):
        x = x if isinstance(x, tuple) else (x, x)
        return self.propagate(edge_index, x=x, w=w)

    def message(self, x_i, x_j, w):
        out = torch.tanh(self.source(x_j) * self.power + self.target(x_i))
        out = self.scaled(out) * sum(self.steps) + self.options["shift"] + self.offset
        if w is not None:
            out = out * nn.functional.dropout(self.drop(w), self.p, self.training).unsqueeze(-1)
        return out if self.gate is None else out * self.gate


def replace_weight(layer):
    layer.source.weight = nn.Parameter(draw(6, 8, seed=9))


def replace_data(layer):
    layer.source.weight.data = draw(6, 8, seed=9)


def add_hook(layer):
    layer.source.register_forward_hook(lambda module, inputs, out: 2 * out)


def add_message_hook(layer):
    layer.register_message_forward_hook(lambda module, inputs, out: 2 * out)


def tie(layer):
    layer.target = layer.source


CHANGES = {
    "eval": lambda layer: layer.eval(),
    "p of a module": lambda layer: setattr(layer.drop, "p", 0.5),
    "p": lambda layer: setattr(layer, "p", 0.6),
    "p to an int": lambda layer: setattr(layer, "p", 0),
    "a list": lambda layer: layer.steps.append(3.0),
    "an item": lambda layer: layer.steps.__setitem__(0, 4.0),
    "a dict": lambda layer: layer.options.update(shift=0.5),
    "None to a number": lambda layer: setattr(layer, "gate", 2.0),
    "None to a tensor": lambda layer: setattr(layer, "gate", draw(6, seed=8)),
    "a tensor": lambda layer: setattr(layer, "offset", draw(6, seed=8)),
    "a tensor in place": lambda layer: layer.offset.add_(1),
    "a tensor of another shape": lambda layer: setattr(layer, "offset", draw(1, seed=8)),
    "an attribute that hides the class's": lambda layer: setattr(layer, "power", 2.0),
    "an attribute of a module's class": lambda layer: setattr(layer.scaled, "factor", 2.0),
    "a weight": replace_weight,
    "a weight's data": replace_data,
    "no gradient": lambda layer: layer.source.weight.requires_grad_(False),
    "no bias": lambda layer: setattr(layer.source, "bias", None),
    "a module": lambda layer: setattr(layer, "scaled", nn.Tanh()),
    "a module without a class of the user": lambda layer: setattr(
        layer, "source", nn.Linear(8, 6).double()
    ),
    "tied modules": tie,
    "a hook": add_hook,
    "a hook of the message": add_message_hook,
    "a parametrisation": lambda layer: nn.utils.parametrizations.weight_norm(layer.source),
    "a type": lambda layer: layer.float(),
    "a class": lambda layer: setattr(layer, "__class__", type("Other", (Changing,), {"power": 3})),
    "a replaced method": lambda layer: setattr(
        layer, "message", lambda x_i, x_j, w: 3 * x_j[:, :6]
    ),
}


def inputs_of(dtype=torch.float64, **changed):
    given = {"x": draw(NODES, 8), "w": draw(EDGES, seed=5), **changed}
    return {name: cast(value, dtype) for name, value in given.items()}


def warmed(layer, edge_index, dtype=torch.float64, **changed):
    for _ in range(3):
        seeded(layer, edge_index, dtype, **changed)


def seeded(layer, edge_index, dtype=torch.float64, **changed):
    torch.manual_seed(7)
    return step(layer, inputs_of(dtype, **changed), edge_index, dtype)


def check_now(layer, edge_index, dtype=torch.float64, **changed):
    """The next calls give the results and gradients of a fresh copy in PyG."""
    expected = seeded(copy.deepcopy(layer), edge_index, dtype, **changed)
    expected = [part.double() for part in expected]
    with warploom.pyg.accelerate():
        for _ in range(4):
            compare(seeded(layer, edge_index, dtype, **changed), expected)


@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_the_layer(change):
    torch.manual_seed(1)
    layer, edge_index = Changing().double(), graph()
    before = seeded(copy.deepcopy(layer), edge_index)[0]
    with warploom.pyg.accelerate():
        warmed(layer, edge_index)
    CHANGES[change](layer)
    dtype = torch.float32 if change == "a type" else torch.float64
    check_now(layer, edge_index, dtype)
    after = seeded(copy.deepcopy(layer), edge_index, dtype)[0]
    assert change in ("a type", "no gradient", "a parametrisation") or not torch.allclose(
        before, after
    )


@pytest.mark.parametrize("change", ["global", "class", "class of a module", "global to another"])
def test_changes_outside_of_the_layer(change, monkeypatch):
    layer, edge_index = Changing().double(), graph()
    with warploom.pyg.accelerate():
        warmed(layer, edge_index)
    owner, name = {
        "class": (Changing, "power"),
        "class of a module": (Scaled, "factor"),
    }.get(change, (None, "SCALE"))
    value = 3 if change == "global to another" else 2.5
    if owner is None:
        monkeypatch.setitem(globals(), name, value)
    else:
        monkeypatch.setattr(owner, name, value)
    check_now(layer, edge_index)


@pytest.mark.parametrize(
    "changed",
    [
        {"x": draw(NODES, 8, seed=4)},
        {"x": (draw(NODES, 8), draw(NODES, 8, seed=4))},
        {"w": None},
        {"w": draw(EDGES, 1, seed=5)},
        {"x": draw(NODES + 3, 8)},
    ],
)
def test_other_arguments(changed):
    layer, edge_index = Changing().double(), graph()
    if changed.get("w") is not None and changed["w"].dim() == 2:
        layer.drop = nn.Flatten(0)
    with warploom.pyg.accelerate():
        warmed(layer, edge_index)
    check_now(layer, edge_index, **changed)
    check_now(layer, edge_index)


def test_other_relations():
    """The edges of each relation are kept while the mask that chose them is equal."""
    layer, edge_index = pyg.RGCNConv(8, 6, 3), graph()
    kinds = torch.arange(EDGES) % 3
    warploom.pyg.report(reset=True)
    for shift in (0, 0, 0, 1, 1, 2):
        inputs = X | {"edge_type": (kinds + shift) % 3}
        expected = run(layer, inputs, edge_index, torch.float64)
        with warploom.pyg.accelerate():
            compare(step(layer, inputs, edge_index, torch.float32), expected)
    assert set(warploom.pyg.report(reset=True)["RGCNConv"]) == {"warploom"}


@pytest.mark.parametrize("change", ["in place", "another"])
def test_other_features_of_edges(change):
    """Constant features of edges are kept in the order of sorted edges."""
    layer, edge_index = CASES["GINE"][0](), graph()
    inputs = {"x": draw(NODES, 8).float(), "edge_attr": draw(EDGES, 8, seed=3).float()}
    copy_of = copy.deepcopy(layer).float()
    with warploom.pyg.accelerate():
        for _ in range(3):
            before = copy_of(edge_index=edge_index, **inputs)
        if change == "in place":
            inputs["edge_attr"].mul_(2)
        else:
            inputs["edge_attr"] = 2 * inputs["edge_attr"]
        found = copy_of(edge_index=edge_index, **inputs)
    expected = copy_of(edge_index=edge_index, **inputs)
    assert not torch.allclose(found, before)
    torch.testing.assert_close(found, expected)


def test_other_widths():
    layer, edge_index = pyg.GINEConv(nn.Identity()), graph()
    for n in (4, 6, 1):
        inputs = {"x": draw(NODES, n), "edge_attr": draw(EDGES, n, seed=3)}
        expected = step(layer, inputs, edge_index, torch.float64)
        with warploom.pyg.accelerate():
            for _ in range(3):
                compare(step(layer, inputs, edge_index, torch.float64), expected)


def test_other_edges():
    layer, edge_index = Changing().double(), graph()
    with warploom.pyg.accelerate():
        warmed(layer, edge_index)
    check_now(layer, graph(seed=9))
    check_now(layer, graph(edges=400), w=draw(400, seed=5))
    edge_index.copy_(graph(seed=9))
    check_now(layer, edge_index)


def test_modes_of_the_thread():
    layer, edge_index = Changing(), graph()
    x, w = draw(NODES, 8).float(), draw(EDGES, seed=5).float()

    def call():
        torch.manual_seed(7)
        return layer(x, edge_index, w)

    def bfloat16():
        with torch.autocast("cpu", torch.bfloat16):
            return call()

    def without_gradients():
        with torch.no_grad():
            return call()

    def inference():
        with torch.inference_mode():
            return call()

    ways = (call, bfloat16, without_gradients, inference)
    expected = [way() for way in ways]
    with warploom.pyg.accelerate():
        for _ in range(4):
            for way, want in zip(ways, expected, strict=True):
                found = way()
                assert (found.dtype, found.requires_grad, found.is_inference()) == (
                    want.dtype,
                    want.requires_grad,
                    want.is_inference(),
                )
                close = 0.05 if way is bfloat16 else 1e-4
                torch.testing.assert_close(found, want, rtol=close, atol=20 * close)


def test_dropout_is_drawn_at_each_call():
    layer, edge_index, x = pyg.FAConv(8, dropout=0.5), graph(), draw(NODES, 8).float()
    with warploom.pyg.accelerate():
        found = [layer(x, x, edge_index) for _ in range(5)]
    for at, one in enumerate(found):
        assert not any(torch.equal(one, other) for other in found[:at])


def test_written_attributes_are_written_in_each_replay():
    """FAConv keeps its weights of edges for the caller."""
    layer, edge_index = pyg.FAConv(8).eval(), graph()
    with warploom.pyg.accelerate():
        for seed in range(4):
            x = draw(NODES, 8, seed=seed).float()
            found = layer(x, x, edge_index, return_attention_weights=True)[1][1]
    torch.testing.assert_close(found, layer(x, x, edge_index, return_attention_weights=True)[1][1])


# ---- what is not recorded ------------------------------------------------------------------------


CONFIG = {"scale": 0.5}
SETTINGS = type("Settings", (), {"scale": 0.5})
CALLS = []
TENSOR = torch.full((1,), 2.0)


class Own(MessagePassing):
    def __init__(self):
        super().__init__(aggr="sum")
        self.calls = 0

    def forward(self, x, edge_index, w=None):
        return self.propagate(edge_index, x=x, w=w)


def random_number(self, x_j):
    return x_j * random.random()


def random_number_of_numpy(self, x_j):
    import numpy

    return x_j * float(numpy.random.rand())


def counts(self, x_j):
    self.calls += 1
    return x_j * self.calls


def appends(self, x_j):
    CALLS.append(1)
    return x_j * len(CALLS)


def reads_a_number(self, x_j):
    return x_j * float(x_j[:, 0].max())


def reads_a_tensor(self, x_j):
    return x_j * TENSOR


def reads_a_list(self, x_j):
    return x_j * x_j[:, 0].tolist()[0]


def selects(self, x_j):
    weight = x_j[:, :1]
    return x_j * weight[weight[:, 0] > 0].size(0)


def prints(self, x_j):
    print("message")
    return x_j


class Rounded(torch.autograd.Function):
    """Rounds, with the gradient of what was rounded."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def rounds(self, x_j, w):
    return x_j * Rounded.apply(3 * w).unsqueeze(-1)


def casts(self, x_j, w):
    with torch.autocast("cpu", torch.bfloat16):
        w = (w[:, None] @ w.new_ones(1, 1)).float()
    return x_j * w


def stops(self, x_j, w):
    with torch.no_grad():
        scale = w.abs() + 1
    return x_j * (w * scale).unsqueeze(-1)


@pytest.mark.parametrize("message, times", [(rounds, 4), (casts, 4), (stops, 2)])
def test_functions_with_a_gradient_of_their_own(message, times, traces):
    """They are traced at each call; a part without gradients is recorded."""
    layer, edge_index = own(message), graph()
    dtype = torch.float32 if message is casts else torch.float64
    inputs = {"x": draw(NODES, 8), "w": draw(EDGES, seed=5)}
    expected = [part.double() for part in step(layer, inputs, edge_index, dtype)]
    with warploom.pyg.accelerate():
        for _ in range(4):
            compare(step(layer, inputs, edge_index, dtype), expected)
    assert len(traces) == times


def made_with(scale):
    scales = [scale]

    def message(self, x_j):
        return x_j * scales[0]

    return message, scales


REFUSED = [
    *(random_number, random_number_of_numpy, counts, appends, reads_a_number, reads_a_tensor),
    *(reads_a_list, selects, prints),
]


def own(message):
    # PyG looks for the name.
    message = types.FunctionType(
        message.__code__, message.__globals__, "message", None, message.__closure__
    )
    return type("Own", (Own,), {"message": message})()


@pytest.mark.parametrize("message", REFUSED)
def test_what_may_differ_is_traced_at_each_call(message, traces, capsys):
    layer, x, edge_index = own(message), draw(NODES, 8).float(), graph()
    with warploom.pyg.accelerate():
        for _ in range(4):
            layer(x, edge_index)
    assert len(traces) == 4
    assert capsys.readouterr().out.count("message\n") in (0, 4)


def by_name(self, x_j):
    return x_j * self.part.scale


def by_children(self, x_j):
    return x_j * list(self.children())[-1].scale


def by_modules(self, x_j):
    return x_j * self._modules["part"].scale


def by_attributes(self, x_j):
    return x_j * self.__dict__["_modules"]["part"].scale


@pytest.mark.parametrize("message", [by_name, by_children, by_modules, by_attributes])
def test_modules_that_a_message_reaches(message, traces):
    layer, x, edge_index = own(message), draw(NODES, 8).float(), graph()
    layer.part, layer.other = nn.Module(), nn.Module()
    if message is by_children:
        del layer.other
    layer.part.scale = 1.0
    with warploom.pyg.accelerate():
        for _ in range(4):
            first = layer(x, edge_index)
        layer.part.scale = 2.0
        torch.testing.assert_close(layer(x, edge_index), 2 * first)
        if message is by_name:
            for _ in range(3):
                layer(x, edge_index)
            traces.clear()
            layer.other.scale = 2.0  # which the message cannot have read
            torch.testing.assert_close(layer(x, edge_index), 2 * first)
            assert not traces


def test_variables_of_an_enclosing_function():
    message, scales = made_with(2.0)
    layer, x, edge_index = own(message), draw(NODES, 8).float(), graph()
    with warploom.pyg.accelerate():
        for _ in range(3):
            first = layer(x, edge_index)
        scales[0] = 4.0
        torch.testing.assert_close(layer(x, edge_index), 2 * first)


@pytest.mark.parametrize("holder", ["CONFIG", "SETTINGS"])
def test_contents_of_globals(holder, monkeypatch):
    def of_config(self, x_j):
        return x_j * CONFIG["scale"]

    def of_settings(self, x_j):
        return x_j * SETTINGS.scale

    layer = own(of_config if holder == "CONFIG" else of_settings)
    x, edge_index = draw(NODES, 8).float(), graph()
    with warploom.pyg.accelerate():
        for _ in range(3):
            first = layer(x, edge_index)
        monkeypatch.setitem(CONFIG, "scale", 1.0)
        monkeypatch.setattr(SETTINGS, "scale", 1.0)
        torch.testing.assert_close(layer(x, edge_index), 2 * first)


def test_a_profiler_sees_all_calls(traces):
    layer, edge_index = CASES["GINE"][0](), graph()
    events = []
    sys.setprofile(lambda *args: events.append(1))
    try:
        with warploom.pyg.accelerate():
            for _ in range(3):
                step(layer, CASES["GINE"][1], edge_index, torch.float32)
        kept = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert kept is not None and len(traces) == 3


# ---- lives ---------------------------------------------------------------------------------------


def recorded(name="PNA"):
    make, inputs = CASES[name]
    layer, edge_index = make(), graph()
    with warploom.pyg.accelerate():
        for _ in range(3):
            step(layer, inputs, edge_index, torch.float32)
    return layer


def test_layers_are_freed():
    gc.collect()
    gc.disable()
    try:
        layer = recorded()
        found = [weakref.ref(part) for part in (layer, layer.lin.weight)]
        del layer
        assert [ref() for ref in found] == [None, None]
    finally:
        gc.enable()


def test_copies_and_pickles():
    layer = recorded()
    assert b"warploom." not in pickle.dumps(layer)
    for other in (copy.deepcopy(layer), copy.copy(layer), pickle.loads(pickle.dumps(layer))):
        with torch.no_grad():
            for parameter in other.pre_nns.parameters():
                parameter.add_(0.1)
        expected = step(copy.deepcopy(other).double(), X, graph(), torch.float64)
        with warploom.pyg.accelerate():
            for _ in range(3):
                compare(step(other, X, graph(), torch.float32), expected)


def test_recordings_are_bounded(monkeypatch, traces):
    """A layer whose state changes at each call is recorded a few times."""
    made = []
    original = _pyg_messages.Recorder.finish

    def counted(*args):
        made.append(original(*args))  # which raises where a recording failed
        return made[-1]

    monkeypatch.setattr(_pyg_messages.Recorder, "finish", counted)
    layer, edge_index = Changing(), graph()
    with warploom.pyg.accelerate():
        for at in range(30):
            layer.p = at / 100
            seeded(layer, edge_index, torch.float32)
    assert len(made) <= 8


def test_training_and_evaluation_take_turns(traces):
    """Each has a recording of its own."""
    layer, edge_index = Changing(), graph()
    with warploom.pyg.accelerate():
        for _ in range(12):
            seeded(layer.train(), edge_index, torch.float32)
            seeded(layer.eval(), edge_index, torch.float32)
    assert 4 <= len(traces) <= 8


def test_a_hook_of_all_modules():
    layer, edge_index = Changing().double().eval(), graph()
    with warploom.pyg.accelerate():
        warmed(layer, edge_index)
    hook = nn.modules.module.register_module_forward_hook(
        lambda module, inputs, out: 2 * out if type(module) is nn.Linear else None
    )
    try:
        check_now(layer, edge_index)
    finally:
        hook.remove()


def test_threads():
    layer, edge_index = CASES["LE"][0](), graph()
    inputs = X | WEIGHT
    expected = step(layer.double(), inputs, edge_index, torch.float64)
    layer.float()
    found = []

    def work():
        for _ in range(20):
            found.append(step(layer, inputs, edge_index, torch.float32))

    with warploom.pyg.accelerate():
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 60
    for one in found:
        compare(one, expected)


def test_layers_with_many_attributes(monkeypatch, traces):
    monkeypatch.setattr(_pyg_state, "_MOST_ENTRIES", 20)
    recorded("GINE")
    assert len(traces) == 3
