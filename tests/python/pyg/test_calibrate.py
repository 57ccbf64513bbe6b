"""The sampling that keeps a budget of accuracy: how it is found, kept and used."""

import json
import shutil
import subprocess
from types import SimpleNamespace

import pytest
import torch
from scipy import stats
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

import warploom.pyg
import warploom.torch as wt
from bench.__main__ import main
from bench.pytorch.sampled import roc_auc
from warploom.torch import _calibrate, _sampling

NODES, CLASSES = 600, 4


class Model(nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.first, self.last = conv(16, 32), conv(32, CLASSES)

    def forward(self, x, edge_index):
        return self.last(self.first(x, edge_index).relu(), edge_index)


class Own(nn.Module):
    """Two layers of a user, on a Graph."""

    class Layer(nn.Module):
        def __init__(self, inputs, outputs):
            super().__init__()
            self.map = nn.Linear(inputs, outputs)

        def forward(self, graph, x):
            return wt.spmm(graph, self.map(x), reduce="mean")

    def __init__(self):
        super().__init__()
        self.first, self.last = self.Layer(16, 32), self.Layer(32, CLASSES)

    def forward(self, graph, x):
        return self.last(graph, self.first(graph, x).relu())


@pytest.fixture(scope="module")
def data():
    """Communities, which neighbours show better than features; about 60 edges a node."""
    generator = torch.Generator().manual_seed(3)
    y = torch.randint(CLASSES, (NODES,), generator=generator)
    source, target = torch.randint(NODES, (2, 100 * NODES), generator=generator)
    is_kept = (y[source] == y[target]) | (torch.rand(source.shape, generator=generator) < 0.4)
    x = torch.randn(NODES, 16, generator=generator) + nn.functional.one_hot(y, 16)
    part = torch.rand(NODES, generator=generator)
    edge_index = torch.stack([source, target])[:, is_kept]
    return SimpleNamespace(
        x=x, edge_index=edge_index, y=y, val_mask=part < 0.5, test_mask=part > 0.5
    )


@pytest.fixture(scope="module", params=[GCNConv, SAGEConv])
def model(request, data):
    torch.manual_seed(1)
    made = Model(request.param)
    optimiser = torch.optim.Adam(made.parameters(), lr=1e-2)
    for _ in range(60):
        optimiser.zero_grad()
        out = made(data.x, data.edge_index)
        nn.functional.cross_entropy(out[data.val_mask], data.y[data.val_mask]).backward()
        optimiser.step()
    return made.eval()


TIMED_BY_A_CLOCK = _calibrate._Job.seconds


def cost_of(samples):
    """Seconds of a setting, as if time were proportional to the edges used."""
    return sum(1.0 if one is None else min(one.width, 60) / 60 for one in samples.values())


@pytest.fixture(autouse=True)
def edges_are_time(monkeypatch):
    """No test depends on the machine's time."""
    monkeypatch.setattr(_calibrate._Job, "seconds", lambda self, samples: cost_of(samples))


def calibrate(model, data, **options):
    with warploom.pyg.accelerate():
        return wt.calibrate(model, data, **options)


def infer(model, data):
    with torch.no_grad():
        return model(data.x, data.edge_index)


def test_the_budget_is_kept_on_test_nodes(model, data):
    setting = calibrate(model, data, budget=0.05)
    assert setting.bound <= 0.05
    assert setting.us <= setting.exact_us
    with warploom.pyg.accelerate():
        exact = infer(model, data)
    with warploom.pyg.accelerate(sampling=setting):
        sampled = infer(model, data)
    losses = [
        _calibrate.accuracy(out[data.test_mask], data.y[data.test_mask]) for out in (exact, sampled)
    ]
    assert losses[0] - losses[1] <= 0.05
    assert setting.is_exact == torch.equal(exact, sampled)


def test_the_fastest_that_holds_is_chosen(model, data):
    setting = calibrate(model, data, budget=0.05)
    assert [one.us for one in setting.tried] == sorted(one.us for one in setting.tried)
    held = [one for one in setting.tried if one.bound is not None and one.bound <= 0.05]
    assert setting.us == min(one.us for one in held)
    assert set(setting.layers) == {"first", "last"}
    chosen = {name: layer.sample for name, layer in setting.layers.items()}
    assert cost_of(chosen) * 1e6 == setting.us
    lines = setting.explain().splitlines()
    (line,) = [line for line in lines if line.endswith("<- chosen")]
    assert line.split()[0] == f"{setting.us:.0f}"
    assert len(lines) == 7 + len(setting.tried) + 1


def test_a_loose_budget_takes_the_least_edges(model, data):
    setting = calibrate(model, data, budget=1.0)
    assert {layer.sample.width for layer in setting.layers.values()} == {16}


def test_exact_where_sampling_was_quicker_only_once(model, data, monkeypatch):
    timed = set()

    def seconds(job, samples):
        key = tuple(samples.values())
        first, _ = key not in timed, timed.add(key)
        return cost_of(samples) if first else 2.0

    monkeypatch.setattr(_calibrate._Job, "seconds", seconds)
    setting = calibrate(model, data, budget=1.0)
    assert setting.is_exact
    assert setting.us == setting.exact_us == 2e6


def test_all_edges_are_timed_as_they_run_without_a_setting(model, data):
    in_use = []

    def forward(model, data):
        in_use.append(_sampling.chosen)
        return model(data.x, data.edge_index)

    job = _calibrate._Job(model, data, forward)
    TIMED_BY_A_CLOCK(job, {"first": None, "last": None})
    assert in_use
    assert not any(in_use)
    TIMED_BY_A_CLOCK(job, {"first": wt.Sample(16, "bucket"), "last": None})
    assert in_use[-1] is not None


def test_a_setting_of_all_edges_is_not_in_use(model, data, monkeypatch):
    monkeypatch.setattr(_calibrate._Job, "seconds", lambda self, samples: 1.0)
    setting = calibrate(model, data, budget=1.0)
    with wt.sampling(setting), warploom.pyg.accelerate():
        assert _sampling.chosen is None
        infer(Model(GCNConv), data)


def test_exact_where_sampling_takes_as_long(model, data, monkeypatch):
    monkeypatch.setattr(_calibrate._Job, "seconds", lambda self, samples: 1.0)
    setting = calibrate(model, data, budget=1.0)
    assert setting.is_exact
    assert setting.loss == 0
    with warploom.pyg.accelerate(sampling=setting):
        out = infer(model, data)
    with warploom.pyg.accelerate():
        assert torch.equal(out, infer(model, data))


def test_the_file_holds_the_setting(model, data, tmp_path):
    setting = calibrate(model, data, budget=1.0)
    file = tmp_path / "sampling.json"
    setting.save(file)
    assert wt.Sampling.load(file) == setting
    assert [one.name for one in tmp_path.iterdir()] == ["sampling.json"]
    assert main(["plot", str(file), "-o", str(tmp_path / "curve")]) == 0
    assert b"budget, 100 points" in (tmp_path / "curve.svg").read_bytes()
    with warploom.pyg.accelerate(sampling=file):
        first = infer(model, data)
        assert torch.equal(first, infer(model, data))
    with warploom.pyg.accelerate(), wt.sampling(str(file)) as found:
        assert found == setting
        assert torch.equal(first, infer(model, data))
    with warploom.pyg.accelerate():
        assert not torch.equal(first, infer(model, data))


def test_the_command_explains_the_file(model, data, tmp_path):
    """Its sentences and its table of settings are those of `explain`."""
    program = shutil.which("warploom")
    if program is None:
        pytest.skip("needs the program warploom")
    setting, file = calibrate(model, data, budget=0.05), tmp_path / "sampling.json"
    setting.save(file)
    run = subprocess.run([program, "explain", file], check=True, capture_output=True, text=True)
    expected, found = setting.explain().splitlines(), run.stdout.splitlines()
    assert found[:2] == expected[:2]
    settings = 1 + len(setting.tried)
    assert found[-settings:] == expected[-settings:]


def test_the_norm_is_that_of_the_reduction(model, data, monkeypatch):
    """Sums are scaled by edges / edges used; means are those of the edges used."""
    setting, norms = calibrate(model, data, budget=1.0), set()
    with warploom.pyg.accelerate(sampling=setting):
        choose = _sampling.chosen

        def noting(*call):
            found = choose(*call)
            norms.add(found[0].norm)
            return found

        monkeypatch.setattr(_sampling, "chosen", noting)
        infer(model, data)
        monkeypatch.undo()
    assert norms == {"none" if isinstance(model.first, SAGEConv) else "unbiased"}


def test_a_layer_is_the_product_with_its_sample(data):
    torch.manual_seed(1)
    model = Model(SAGEConv).eval()
    setting = calibrate(model, data, budget=1.0)
    graph = wt.Graph.from_edge_index(data.edge_index, rows=NODES, cols=NODES)
    places = [name for name, _ in model.named_modules()]
    with torch.no_grad():
        x = data.x
        for name in ("first", "last"):
            layer, seed = model.get_submodule(name), 1 + places.index(name)
            sampled = wt.spmm(
                graph, x, reduce="mean", sample=setting.layers[name].sample, seed=seed
            )
            x = layer.lin_l(sampled) + layer.lin_r(x)
            x = x.relu() if name == "first" else x
    with warploom.pyg.accelerate(reorder=False, sampling=setting):
        assert torch.allclose(infer(model, data), x, atol=1e-5)


def test_training_uses_all_edges(model, data):
    setting = calibrate(model, data, budget=1.0)
    with warploom.pyg.accelerate():
        expected = model(data.x, data.edge_index)
        with wt.sampling(setting):
            assert torch.equal(model(data.x, data.edge_index), expected)
            assert not torch.equal(infer(model, data), expected)


def test_another_model_and_another_graph_are_refused(model, data):
    setting = calibrate(model, data, budget=1.0)
    other = Model(type(model.first)).eval()
    edges = SimpleNamespace(x=data.x, edge_index=data.edge_index[:, :-1])
    with warploom.pyg.accelerate(), wt.sampling(setting):
        with pytest.raises(RuntimeError, match="not the one that was calibrated"):
            infer(other, data)
        with pytest.raises(RuntimeError, match=r"layer 'first' runs on a graph that was not"):
            infer(model, edges)
        infer(model, data)
    for one, its in ((other, data), (model, edges)):
        with warploom.pyg.accelerate():
            exact = infer(one, its)
            with wt.sampling(setting, force=True):
                assert not torch.equal(infer(one, its), exact)


def test_changed_parameters_are_another_model(data):
    torch.manual_seed(1)
    model = Model(SAGEConv).eval()
    setting = calibrate(model, data, budget=1.0)
    with torch.no_grad():
        model.last.lin_l.bias.add_(1)
    uses = warploom.pyg.accelerate(sampling=setting)
    with uses, pytest.raises(RuntimeError, match="not the one"):
        infer(model, data)


def test_products_of_a_users_own_modules(data):
    torch.manual_seed(1)
    model, graph = Own().eval(), wt.Graph.from_edge_index(data.edge_index, rows=NODES, cols=NODES)
    run = lambda model, data: model(graph, data.x)  # noqa: E731
    setting = wt.calibrate(model, data, budget=1.0, forward=run)
    assert set(setting.layers) == {"first", "last"}
    with torch.no_grad():
        exact = model(graph, data.x)
        with wt.sampling(setting):
            assert not torch.equal(model(graph, data.x), exact)
        assert torch.equal(model(graph, data.x), exact)


def test_hooks_end_with_the_setting(model, data):
    setting = calibrate(model, data, budget=1.0)
    for _ in range(2):
        with pytest.raises(KeyError), wt.sampling(setting):
            raise KeyError
    assert _sampling.chosen is None
    assert not torch.nn.modules.module._has_any_global_hook()


def test_an_error_in_the_model_leaves_no_layer_behind(model, data):
    setting = calibrate(model, data, budget=1.0)
    with warploom.pyg.accelerate(), wt.sampling(setting):
        expected = infer(model, data)
        with pytest.raises(Exception, match=r".*"):
            model(data.x[:, :3], data.edge_index)
        assert torch.equal(infer(model, data), expected)


def test_constant_features_are_kept_for_exact_layers_only(model, data):
    calls = SimpleNamespace(x=data.x.clone(), edge_index=data.edge_index)
    setting = calibrate(model, data, budget=1.0)
    with warploom.pyg.accelerate(sampling=setting):
        first = infer(model, calls)
        for _ in range(3):
            assert torch.equal(infer(model, calls), first)


def test_the_variance_is_as_expected():
    """Of rows drawn without replacement: (sigma^2 / S) (1 - S / d), times d^2 for sums."""
    generator = torch.Generator().manual_seed(5)
    rowptr = torch.arange(0, 101 * 40, 40)
    colind = torch.cat(
        [torch.randperm(400, generator=generator)[:40].sort()[0] for _ in range(100)]
    )
    graph = wt.Graph(rowptr, colind, cols=400)
    b = torch.randn(400, 8, generator=generator)
    for reduce in ("mean", "sum"):
        found = _calibrate._Variance(wt.Sample(16, "fastrand_coprime"), 200)
        found.add(_calibrate._Product(graph, b, None, reduce))
        terms = b[colind].view(100, 40, 8).double()
        expected = terms.var(dim=1) / 16 * (1 - 16 / 40) * (1600 if reduce == "sum" else 1)
        assert found.expected == pytest.approx(float(expected.mean()), rel=1e-4)
        assert found.measured == pytest.approx(found.expected, rel=0.5)
        row, edges, variance = found.worst[0]
        assert row == int(expected.mean(dim=1).argmax())
        assert edges == 40
        assert variance == pytest.approx(float(expected.mean(dim=1).max()), rel=1e-4)


def test_the_bound_is_students():
    for freedom in (3, 5, 9, 30):
        for confidence, error in ((0.8, 0.02), (0.95, 0.3), (0.99, 2.4)):
            expected = stats.t.ppf(confidence, freedom)
            close = error / freedom**4  # of the first term that the expansion leaves out
            assert _calibrate._t(confidence, freedom) == pytest.approx(expected, rel=close)
    assert _calibrate._bound([0.01] * 5, 0.95) == pytest.approx(0.01)


def test_without_labels_the_exact_model_is_right(model, data):
    unlabelled = SimpleNamespace(x=data.x, edge_index=data.edge_index, val_mask=data.val_mask)
    setting = calibrate(model, unlabelled, budget=0.3)
    assert setting.metric == "agreement"
    assert all(one.loss >= 0 for one in setting.tried)


def test_a_metric_of_the_user(model, data):
    seen = []

    def right(outputs, labels):
        seen.append(len(labels))
        return -float((outputs.argmax(1) != labels).float().mean())

    assert calibrate(model, data, budget=1.0, metric=right).metric == "right"
    assert set(seen) == {int(data.val_mask.sum())}


def test_a_bar_of_progress(model, data, capsys):
    calibrate(model, data, budget=1.0, progress=True)
    lines = capsys.readouterr().err.split("\r\033[K")
    assert any(line.startswith("[....................] 0/") for line in lines)
    assert any("#] " in line or "#." in line for line in lines)
    assert all(len(line) <= 76 for line in lines)
    assert lines[-1] == ""
    calibrate(model, data, budget=1.0, progress=False)
    assert capsys.readouterr().err == ""


def test_roc_auc_as_a_metric(model, data):
    two = SimpleNamespace(**{**vars(data), "y": (data.y == 1).long()})

    def of_two_classes(outputs, labels):
        return roc_auc(outputs[:, 1:2], labels[:, None]) / 100

    setting = calibrate(model, two, budget=0.05, metric=of_two_classes)
    assert setting.metric == "of_two_classes"
    assert setting.bound <= 0.05


@pytest.mark.parametrize(
    ("changed", "options", "text"),
    [
        ({"val_mask": None}, {}, "data: has no val_mask"),
        ({"val_mask": torch.zeros(NODES, dtype=torch.bool)}, {}, "val_mask chooses no node"),
        ({}, {"budget": 0}, "budget: 0.0 is not above 0"),
        ({}, {"budget": 1.5}, "budget: 1.5 is not above 0"),
        ({}, {"confidence": 1.0}, "confidence: 1.0 is not"),
        ({}, {"passes": 3}, "passes: 3 is not in 4"),
        ({}, {"metric": lambda outputs, labels: float("nan")}, "metric: gave nan"),
    ],
)
def test_wrong_arguments(model, data, changed, options, text):
    with pytest.raises(ValueError, match=text):
        calibrate(model, SimpleNamespace(**{**vars(data), **changed}), **options)
    assert _sampling.chosen is None


def test_a_model_without_a_layer_that_samples(data):
    attention = Model(GATConv)
    with pytest.raises(ValueError, match=r"model: has no sum or mean over neighbours"):
        calibrate(attention, data)
    assert attention.training
    with pytest.raises(TypeError, match=r"model: a int is no torch.nn.Module"):
        wt.calibrate(3, data)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "warploom sampling 2"}', '{"format": "warploom sampling 1"}'],
)
def test_files_that_are_no_sampling(text, tmp_path):
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"other.json: is no "):
        wt.sampling(file)
    with pytest.raises(FileNotFoundError):
        wt.sampling(tmp_path / "missing.json")


def test_a_file_with_a_wrong_layer(model, data, tmp_path):
    file = tmp_path / "sampling.json"
    calibrate(model, data, budget=1.0).save(file)
    found = json.loads(file.read_text())
    found["layers"]["first"]["sample"]["strategy"] = "luck"
    file.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=r"the strategy 'luck' is unknown"):
        wt.Sampling.load(file)
