"""The benchmark of GE-SpMM's applications: data, results and tables."""

import json
import os

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch
from torch_geometric.nn import SAGEConv

from bench.__main__ import main
from bench.pytorch import gnn
from bench.pytorch.cases import Output, run_cases
from bench.pytorch.datasets import load_dataset
from bench.pytorch.models import edges_of
from bench.pytorch.steps import make_models, run_as_in_pyg
from bench.reports.summary import figures_of
from bench.reports.tables import gnn_tables
from warploom import pyg


def test_datasets(tmp_path):
    folder = tmp_path / "pubmed"
    folder.mkdir()
    scipy.io.mmwrite(tmp_path / "pubmed.mtx", sp.random(6, 6, 0.5, random_state=1))
    for part, numbers in (("labels", range(6)), ("train", [0, 2]), ("val", [1]), ("test", [3, 5])):
        np.savetxt(folder / f"pubmed.{part}.txt", numbers, "%d")
    data = load_dataset("pubmed", tmp_path)
    assert data.synthetic == "features" and data.x.shape == (6, 500)
    assert data.train.tolist() == [0, 2] and data.test.tolist() == [3, 5]
    assert data.labels.tolist() == list(range(6)) and data.graph.nodes == 6


def test_edges():
    edges = np.array([[0, 1, 2, 2], [0, 0, 1, 2]])
    assert edges_of("gcn", edges, 3).tolist() == [[1, 2], [0, 1]]
    assert edges_of("sage-gcn", edges, 3).tolist() == [[0, 1, 1, 2, 2], [0, 0, 1, 1, 2]]


def test_graphsage_gcn_is_the_mean_over_a_node_and_its_neighbours(tmp_path):
    data = load_dataset("random:30:3", tmp_path)
    edges = torch.from_numpy(edges_of("sage-gcn", data.graph.edges(), data.graph.nodes))
    torch.manual_seed(1)
    model = gnn.Model("sage-gcn", 0, data.x.size(1), 8, data.classes)
    adjacency = torch.zeros(data.graph.nodes, data.graph.nodes)
    adjacency[edges[1], edges[0]] = 1
    layer = model.layers[0].lin_l
    expected = layer(adjacency @ data.x / adjacency.sum(1, keepdim=True))
    assert torch.allclose(model(data.x, edges), expected, atol=1e-6)


def test_recording_aggregations_restores_the_layers(tmp_path):
    bench = gnn.Workbench(gnn.SUITE.settings(tmp_path, device="cpu"))
    case = gnn.Case("random:30:3", "gcn", 1, 4, "eager")
    training = gnn._trainings(case, bench)["pyg"]
    before = [dict(layer.__dict__) for layer in training.model.layers]
    calls = gnn._record(training)
    assert len(calls) == 2
    for layer, kept in zip(training.model.layers, before, strict=True):
        assert layer.__dict__["propagate"] is kept["propagate"]


def test_ties_of_the_maximum():
    """The first of equal neighbours gets the gradient; PyG divides it evenly."""
    x, edges = torch.ones(4, 1, requires_grad=True), torch.tensor([[1, 2, 3], [0, 0, 0]])
    for name, expected in (("warploom", [0, 1, 0, 0]), ("pyg", [0, 1 / 3, 1 / 3, 1 / 3])):
        layer = SAGEConv(1, 1, aggr="max", root_weight=False, bias=False)
        layer.lin_l.weight.data.fill_(1)
        if name == "warploom":
            pyg.convert(layer)
        else:
            run_as_in_pyg(layer)
        (grad,) = torch.autograd.grad(layer(x, edges)[0].sum(), x)
        assert grad.flatten().tolist() == pytest.approx(expected)


def test_ties_do_not_change_the_training_of_graphsage_pool(tmp_path):
    """Ties are of equal features, or of zeros that ReLU and dropout made and that get none."""
    data = load_dataset("random:200:6", tmp_path)
    x = (data.x[:, :8] > 0.8).double()  # nodes have equal features
    edges = torch.from_numpy(edges_of("sage-pool", data.graph.edges(), data.graph.nodes))
    assert len(x.unique(dim=0)) < 100
    found = []
    for converted in (True, False):
        torch.manual_seed(2)
        model = gnn.Model("sage-pool", 1, 8, 4, data.classes).double()
        if converted:
            pyg.convert(model)
        else:
            run_as_in_pyg(model)
        for _ in range(3):
            torch.nn.functional.cross_entropy(model(x, edges), data.labels).backward()
        found.append([parameter.grad for parameter in model.parameters()])
    for own, other in zip(*found, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-12, atol=1e-14)


def test_cases(tmp_path):
    settings = gnn.SUITE.settings(tmp_path, device="cuda")
    assert len(set(gnn.cases(settings))) == len(list(gnn.cases(settings))) == 4 * 6 * 3 * 2
    assert len(set(gnn.ACCURACY.cases(gnn.ACCURACY.settings(tmp_path)))) == 2 * 3 * 10


def test_command(tmp_path, capsys):
    times, accuracies = tmp_path / "gnn.jsonl", tmp_path / "gnn_accuracy.jsonl"
    assert main(["gnn", "--quick", "--only", "/gcn/", "--out", str(times)]) == 0
    lines = [json.loads(line) for line in times.read_text().splitlines()]
    (line,) = (line for line in lines if line["mode"] == "eager")  # on a GPU also "graphed"
    for prefix in ("", "pyg_", "torch_sparse_"):
        assert line[f"{prefix}step_us"] > 0
        assert line[f"{prefix}spmm_us"] > 0
    assert "failed" not in line
    quick = ["gnn", "--quick", "--accuracy", "--only", "/gcn/", "--out", str(accuracies)]
    assert main(quick) == 0
    for line in accuracies.read_text().splitlines():
        line = json.loads(line)
        assert line["accuracy"] == pytest.approx(line["pyg_accuracy"], abs=10)
        assert line["pyg_reordered_accuracy"] == pytest.approx(line["pyg_accuracy"], abs=10)
    capsys.readouterr()
    for file in (times, accuracies):
        main(["summary", str(file)])
        assert main(["tables", str(file)]) == 0
    page = tmp_path / "page.md"
    page.write_text("Before\n\n<!-- tables: gnn.jsonl -->\nold\n<!-- end -->\n\nAfter\n")
    assert main(["tables", str(times), "--into", str(page)]) == 0
    text = page.read_text()
    assert "old" not in text and "**eager**" in text and text.endswith("After\n")


def line_of(mode, graph="pubmed", model="sage-pool", **times):
    line = {"graph": graph, "model": model, "layers": 1, "features": 16, "mode": mode}
    fields = [f"{p}{f}_us" for p in ("", "pyg_", "torch_sparse_") for f in ("step", "spmm", "cuda")]
    return {**line, **dict.fromkeys(fields), **times}


def test_summary_and_tables():
    lines = [
        line_of("graphed", step_us=10.0, spmm_us=2.0, cuda_us=8.0)
        | {"pyg_step_us": 30.0, "pyg_spmm_us": 8.0, "pyg_cuda_us": 16.0},
        line_of("eager", "cora", "gcn", step_us=100.0, spmm_us=2.0, cuda_us=8.0)
        | {"pyg_step_us": 99.0, "pyg_spmm_us": 3.0, "pyg_cuda_us": 12.0}
        | {"torch_sparse_step_us": 90.0},
    ]
    table = {row.what: row for row in figures_of("gnn", lines)}
    assert table["aggregation graphed, PyG"].mean() == pytest.approx(4)
    assert table["aggregation graphed, PyG"].holds()
    assert not table["aggregation eager, PyG"].holds()
    assert table["step eager, best rival"].mean() == pytest.approx(0.9)
    assert not table["step eager, best rival"].holds()
    text = gnn_tables(lines)
    assert "| 1, 16 | 2.89 / 3.24 | 4.00 | 1.10 / 1.11 | 2.00 |" in text
    assert "| cora | 1, 16 | 33.1 % | 25.0 % | - | 25.0 % |" in text


def test_a_failed_accuracy_is_reported(tmp_path, capsys):
    path = tmp_path / "gnn_accuracy.jsonl"
    line = {"graph": "g", "model": "gcn", "layers": 1, "features": 16}
    lines = [
        {**line, "seed": seed, "accuracy": accuracy, "pyg_accuracy": accuracy}
        for seed, accuracy in enumerate((None, 80.0, 82.0))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["summary", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "g/gcn                      2 seeds  81.00 %" in printed
    assert "no result: g/gcn/1/16/0: None" in printed
    assert main(["tables", str(path)]) == 0
    assert "| g | gcn | 2 | 81.00 ± 1.00 |" in capsys.readouterr().out


def test_a_file_of_another_suite_is_not_touched(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text('{"graph": "g", "layer": "gat"}\n')
    with pytest.raises(ValueError, match=r"out\.jsonl: has lines of another suite"):
        _run_one(path)
    assert path.read_text() == '{"graph": "g", "layer": "gat"}\n'


def test_cases_without_a_result_run_again(tmp_path):
    def measure(case):
        if case.layers == 2 and not repaired:
            raise RuntimeError("broken\nsecond line")
        return {**case._asdict(), "step_us": 1.0}

    cases = [gnn.Case("g", "gcn", layers, 8, "eager") for layers in (1, 2)]
    output = Output(tmp_path / "out.jsonl")
    arguments = (cases, measure, output, ("step_us",))
    repaired = False
    assert run_cases(*arguments) == 1
    lines = [json.loads(line) for line in output.path.read_text().splitlines()]
    assert lines[1]["failed"] == {"warploom": "RuntimeError: broken"}
    repaired = True
    assert run_cases(*arguments) == 0
    assert len(output.path.read_text().splitlines()) == 3
    assert run_cases(*arguments) == 0
    assert len(output.path.read_text().splitlines()) == 3


def test_a_case_without_memory_runs_again_first(tmp_path):
    def measure(case):
        failed = {"failed": {"pyg": "OutOfMemoryError: CUDA out of memory"}}
        return {**case._asdict(), "step_us": 1.0, **(failed if case.layers == 2 else {})}

    cases = [gnn.Case("g", "gcn", layers, 8, "eager") for layers in (1, 2, 3)]
    output = Output(tmp_path / "out.jsonl")
    for finished in ([1], [1, 2, 3]):
        assert run_cases(cases, measure, output, ("step_us",)) == 0
        lines = [json.loads(line) for line in output.path.read_text().splitlines()]
        assert [line["layers"] for line in lines] == finished


def _run_one(path):
    """Run one case whose line goes to the file."""
    case = gnn.Case("g", "gcn", 1, 8, "eager")

    def measure(case):
        return {**case._asdict(), "step_us": 1.0}

    return run_cases([case], measure, Output(path), ("step_us",))


@pytest.mark.parametrize("half", ["", "{", '{"graph": "g", "mod'])
def test_a_half_line_is_cut_off_in_place(tmp_path, half):
    path = tmp_path / "out.jsonl"
    assert _run_one(path) == 0
    line = path.read_text()
    path.write_text(line + half)
    file = path.stat().st_ino
    assert _run_one(path) == 0
    assert path.read_text() == line
    assert path.stat().st_ino == file


@pytest.mark.parametrize("content", ["precious", "precious\n", "{}\nprecious"])
def test_a_file_of_something_else_is_not_touched(tmp_path, content):
    path = tmp_path / "notes"
    path.write_text(content)
    with pytest.raises(ValueError):
        _run_one(path)
    assert path.read_text() == content


def test_a_pipe_is_written_and_not_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    assert _run_one(path) == 0
    assert json.loads(os.read(reader, 4096))["graph"] == "g"
    os.close(reader)


def test_baseline_models_are_pygs(tmp_path):
    models = make_models(("warploom", "pyg"), lambda: gnn.Model("gcn", 1, 4, 4, 2))
    for one, other in zip(*(model.parameters() for model in models.values()), strict=True):
        assert torch.equal(one, other)
    assert "_warploom" in models["warploom"].layers[0].__dict__
    assert "_warploom" not in models["pyg"].layers[0].__dict__
