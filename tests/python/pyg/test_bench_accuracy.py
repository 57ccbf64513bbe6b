"""The benchmark of ES-SpMM's trade: planted data, sampled graphs, metrics and lines."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.__main__ import main
from bench.pytorch import accuracy
from bench.pytorch.accuracy import load_any
from bench.pytorch.cases import Output
from bench.pytorch.datasets import PLANS, communities_of, make_planted, plant
from bench.pytorch.graphs import load
from bench.pytorch.sampled import (
    Recipe,
    SampledModel,
    kept_share,
    make_graph,
    metric_of,
    presample,
    roc_auc,
    train,
)
from bench.reports.tables import put_tables
from bench.results_file import read_lines
from warploom.torch import Graph, Sample, spmm

CPU = torch.device("cpu")


def test_communities_are_those_of_the_twin():
    """The numbers are those of twin:reddit,scale=0.05, most of whose edges stay in communities."""
    found = communities_of(11648, 50)
    assert np.bincount(found).min() >= 232
    assert found[:8].tolist() == [31, 29, 31, 24, 35, 12, 7, 7]


def test_planted_data():
    graph = load("random:3000:5")
    data = make_planted("reddit", graph)
    assert data.x.shape == (3000, 602) and data.synthetic == "all"
    community = communities_of(3000, 50)
    right = (data.labels.numpy() == community % 41).mean()
    assert 1 - right == pytest.approx(PLANS["reddit"].wrong, abs=0.02)
    parts = torch.cat([data.train, data.val, data.test])
    assert torch.equal(parts.sort().values, torch.arange(3000))
    data = make_planted("proteins", graph)
    assert data.x.shape == (3000, 9) and data.labels.shape == (3000, 112)
    assert set(data.x[:, -1].tolist()) == {-2.0, 2.0}
    again, _ = plant(PLANS["proteins"], community)
    assert np.array_equal(again, data.x.numpy())


def test_planted_features_of_a_labelled_graph(tmp_path):
    """Edges are in both directions once; labels are the file's; features show the label."""
    name, labels = "amazon-computers", np.arange(500) % 10
    folder = tmp_path / name
    folder.mkdir()
    edges = "1 2\n2 1\n3 3\n4 5\n"
    matrix = f"%%MatrixMarket matrix coordinate pattern general\n500 500 4\n{edges}"
    (tmp_path / f"{name}.mtx").write_text(matrix)
    np.savetxt(folder / f"{name}.labels.txt", labels, "%d")
    data = load_any(name, accuracy.SUITE.settings(tmp_path))
    assert data.graph.edges().tolist() == [[1, 0, 2, 4, 3], [0, 1, 2, 3, 4]]
    assert data.labels.tolist() == labels.tolist() and data.synthetic == "features"
    centres = torch.stack([data.x[data.labels == label].mean(0) for label in range(10)])
    assert (centres.norm(dim=1) - (1 + 0.25 * 767 / 50) ** 0.5).abs().max() < 0.2
    parts = torch.cat([data.train, data.val, data.test])
    assert torch.equal(parts.sort().values, torch.arange(500))


@pytest.mark.parametrize("strategy", ["bucket", "fastrand", "fastrand_coprime"])
@pytest.mark.parametrize("kind", ["gcn", "sage"])
def test_a_presampled_graph_gives_the_sampled_product(kind, strategy):
    torch.manual_seed(1)
    graph = make_graph(kind, load("random:60:20"), CPU)
    model = SampledModel(kind, 4, 4, 3, 2)
    sample = Sample(8, strategy)
    b = torch.randn(60, 4)
    sampled = presample(graph, sample)
    assert len(sampled.colind) == round(kept_share(graph.rowptr, 8) * len(graph.colind))
    expected = model.aggregate(graph, b, sample, 0)
    assert torch.allclose(model.aggregate(sampled, b, None, 0), expected, atol=1e-5)


def test_gcn_weights():
    csr = load("random:30:4")
    graph = make_graph("gcn", csr, CPU)
    dense = torch.zeros(30, 30)
    sources, targets = csr.edges()
    dense[targets, sources] = 1
    dense.fill_diagonal_(1)
    scale = dense.sum(1).rsqrt()
    expected = scale[:, None] * dense * scale
    assert torch.allclose(spmm(graph, torch.eye(30)), expected, atol=1e-6)


def test_roc_auc():
    scores = torch.tensor([[0.1, 3.0], [0.4, 1.0], [0.35, 1.0], [0.8, 0.0]])
    labels = torch.tensor([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    assert roc_auc(scores, labels) == pytest.approx(100 * (0.75 + 0.875) / 2)


def test_cases(tmp_path):
    found = list(accuracy.SUITE.cases(accuracy.SUITE.settings(tmp_path)))
    assert len(found) == len(set(found)) == 10 * 2 * 3 * (3 * 6 + 2 * 9)
    found = list(accuracy.TRAINING.cases(accuracy.TRAINING.settings(tmp_path)))
    assert len(found) == len(set(found)) == 10 * 2 * 2 * 2 * 2


def test_a_budget_leaves_out_seeds_and_not_graphs(tmp_path):
    settings = accuracy.SUITE.settings(tmp_path, graphs=("a", "b"), seeds=5)
    found = list(accuracy.graphs_and_seeds(settings))
    assert found[:6] == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert found[6:] == [("a", 3), ("a", 4), ("b", 3), ("b", 4)]


def test_empty_rows_can_be_sampled_beforehand():
    graph = Graph(torch.tensor([0, 0, 3]), torch.tensor([0, 1, 1]), cols=2)
    sampled = presample(graph, Sample(2, "fastrand_coprime"))
    assert sampled.rowptr.tolist() == [0, 0, 2]


def test_command(tmp_path, capsys):
    out, other = tmp_path / "accuracy.jsonl", tmp_path / "sampled.jsonl"
    best = {"matrix": "random:80:20", "n": 8, "best_cusparse_us": 0.001}
    other.write_text(json.dumps(best) + "\n" + json.dumps({**best, "n": 16}) + "\n")
    options = ["--only", "/sage/fastrand", "--out", str(out), "--sampled", str(other)]
    assert main(["accuracy", "--quick", *options]) == 0
    lines = read_lines(out)
    assert [line["strategy"] for line in lines] == ["fastrand", "fastrand_coprime"]
    for line in lines:
        assert line["synthetic"] == "all"
        assert 0 < line["kept_share"] < 1
        assert (line["cusparse_us"], line["cusparse"]) == (0.001, "bench sampled")
        for field in ("spmm_us", "exact_us", "step_us", "exact_step_us"):
            assert line[field] > 0
    assert main(["tables", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "| graph | model | metric | seeds | exact, % | paper | features alone |" in printed
    assert "| random:80:20 | sage | fastrand |" in printed
    assert "| planted:reddit | gcn | 0 | 180 |" in printed


def test_a_later_run_uses_the_times_of_the_lines_that_are_there(tmp_path):
    """A killed run has left half a line, which is cut off; its case is measured again."""
    out = tmp_path / "accuracy.jsonl"
    settings = accuracy.SUITE.settings(tmp_path, device="cpu", out=out, **accuracy.QUICK)
    output = Output(out, only=("/gcn/",))
    assert accuracy.SUITE.run(settings, output) == 0
    first = read_lines(out)
    out.write_text(out.read_text()[:-9])
    assert read_lines(out) == first[:2]
    assert accuracy.SUITE.run(replace(settings, seeds=2), output) == 0
    lines = read_lines(out)
    assert [line["seed"] for line in lines] == [0, 0, 0, 1, 1, 1]
    times = ("spmm_us", "step_us", "exact_us", "cusparse_us", "presampled_us", "presample_us")
    for before, after in zip(first[:2], lines[3:5], strict=True):
        assert [before[name] for name in times] == [after[name] for name in times]
        assert before["strategy"] == after["strategy"]


def test_a_page_says_what_is_not_measured(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- tables: none.jsonl -->\n<!-- end -->\n")
    assert main(["tables", str(tmp_path / "none.jsonl"), "--into", str(page)]) == 0
    text = "<!-- tables: none.jsonl -->\n\nNot measured yet.\n\n<!-- end -->\n"
    assert page.read_text() == text


@pytest.mark.parametrize("name", ["distributed-inside", "gnn", "papers", "performance", "sampling"])
def test_pages_have_the_tables_of_the_results(name, tmp_path):
    """After a run: python -m bench tables FILE --into PAGE."""
    root = Path(__file__).parents[3]
    page, text = tmp_path / "page.md", (root / "docs" / f"{name}.md").read_text()
    page.write_text(text)
    files = re.findall("<!-- tables: (.*) -->", text)
    assert files
    for file in files:
        put_tables(root / "bench" / "results" / file, page)
    assert page.read_text() == text


def test_training_keeps_the_best_epoch():
    """Epochs of one seed are the same in a longer training, which cannot end worse."""
    data = make_planted("reddit", load("random:400:20"))
    data = data._replace(x=data.x[:, :64].contiguous())
    graph = make_graph("sage", data.graph, CPU)
    found, scores = [], []
    for epochs in (2, 8):
        torch.manual_seed(0)
        model = SampledModel("sage", 64, 16, data.classes, 2)
        recipe = Recipe(2, epochs, every=2)
        found.append(train(model, graph, data, recipe, 0, Sample(8, "fastrand_coprime")))
        outputs = model.eval()(graph, data.x)
        assert metric_of(outputs, data.labels, data.test) == found[-1].metric
        scores.append(metric_of(outputs, data.labels, data.val))
    assert scores[0] <= scores[1]
    assert [trained.epochs for trained in found] == [2, 8]


def test_training_command(tmp_path, capsys):
    out = tmp_path / "training.jsonl"
    options = ["--only", "/gcn/fastrand_coprime/", "--out", str(out)]
    assert main(["accuracy", "--train", "--quick", *options]) == 0
    (line,) = read_lines(out)
    assert line["equal_time_epochs"] >= 2 and line["epochs"] == 4
    assert line["exact_seconds"] > 0 and line["seconds"] > 0
    for command in ("tables", "summary"):
        assert main([command, str(out)]) == 0
        assert "| random:80:20 | gcn | fastrand_coprime | 8 |" in capsys.readouterr().out


# Replaces ncu and prints in its format. All digits of a large number count.
NCU = """#!/bin/sh
case "$*" in
*row_naive*) echo '==ERROR== no such thing'; exit 1;;
*cf=8*) echo 'nothing profiled'; exit 0;;
*compare*) echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1;;
esac
echo '==PROF== Connected to process 1'
echo '"ID","Kernel Name","launch__registers_per_thread",\
"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum","lts__t_bytes.sum.per_second"'
echo '"","","register/thread","sector","byte/second"'
echo '"0","wlm_row_crc(wlm_args, int)","40","54,800,123","2500000000"'
"""


def test_counters(tmp_path, monkeypatch, capsys):
    """A counter that was not read is null, and a dash in the table."""
    path = tmp_path / "counters.jsonl"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="ncu was not found in PATH"):
        main(["counters", "--out", str(path)])
    assert not path.exists()
    ncu = tmp_path / "ncu"
    ncu.write_text(NCU)
    ncu.chmod(0o700)
    assert main(["counters", "--out", str(path), "--only", "rows=16384"]) == 0
    (line,) = read_lines(path)
    assert line["matrix"] == "uniform:rows=16384,d=10"
    assert line["load_sectors"]["crc"] == 54800123
    assert (line["l2_gbs"]["cwm4"], line["registers"]["cwm2"]) == (2.5, 40)
    assert line["load_sectors"]["algorithm1"] is line["occupancy"]["crc"] is None
    assert line["failed"] == {
        "algorithm1": "ncu: no such thing",
        "cwm8": "ncu profiled no kernel (exit code 0)",
        "cusparse": "the driver does not permit this user to read counters (ERR_NVGPUCTRPERM)",
    }
    assert main(["tables", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "| Algorithm 1 | - | - | - | - | - | - | - | 1.34e+08, 68.95 % |" in printed
    assert "| CRC | 5.48e+07 | - | - | 2.5 | - | - | 40 | 0.55e+08, 92.40 % |" in printed

    ncu.write_text("#!/bin/sh\nexit 1\n")
    assert main(["counters", "--out", str(path), "--only", "rows=65536"]) == 1
    assert "no counters: ncu profiled no kernel" in read_lines(path)[1]["failed"]["warploom"]
    assert main(["tables", str(path)]) == 0
    assert "65536" not in capsys.readouterr().out


def test_summary_of_planted_twins(tmp_path, capsys):
    """GraphSAGE misses the paper's accuracy, and features alone are too good for it."""
    base = {"graph": "planted:reddit", "strategy": "bucket", "features_metric": 78.0}
    base |= {"cusparse_us": 8400.0, "exact_us": 6500.0, "metric": 91.0}
    lines = [
        {**base, "model": "gcn", "s": 16, "exact_metric": 94.0, "spmm_us": 200.0},
        {**base, "model": "gcn", "s": 32, "exact_metric": 94.0, "metric": 93.5, "spmm_us": 400.0},
        {**base, "model": "sage", "s": 16, "exact_metric": 91.5, "spmm_us": 200.0},
    ]
    path = tmp_path / "accuracy.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["summary", str(path)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.endswith("MISSED") for line in printed] == [False, False, True, True, False, False]
    assert "planted:reddit gcn: 21.0x over cuSPARSE below a point of loss, 12x" in printed
    assert "planted:reddit sage: 42.0x over cuSPARSE below a point of loss, 12x" in printed


def test_budgets(tmp_path):
    """Each case has a setting, its loss on test nodes, and the best time of all that were tried."""
    out = tmp_path / "budget.jsonl"
    assert main(["budget", "--quick", "--only", "/1.0/", "--out", str(out)]) == 0
    for line in read_lines(out):
        assert line["held"] == (line["exact_metric"] - line["metric"] <= line["budget"])
        assert line["best_us"] <= line["exact_us"]
        assert line["bound"] <= line["budget"]
        assert len(line["setting"]) == 2
    assert [line["model"] for line in read_lines(out)] == ["gcn", "sage"]


def test_summary_of_budgets(tmp_path, capsys):
    """planted:reddit is too slow, and one of eight runs does not hold."""
    base = {"graph": "tolokers", "model": "gcn", "budget": 1.0, "calibrate_seconds": 2.0}
    base |= {"exact_metric": 80.0, "metric": 79.5, "held": True, "exact_us": 900.0, "us": 300.0}
    base |= {"best_us": None}
    lines = [{**base, "seed": seed} for seed in range(6)]
    lines.append({**base, "seed": 6, "held": False, "metric": 78.0, "best_us": 270.0})
    lines.append({**base, "seed": 0, "graph": "planted:reddit"})
    path = tmp_path / "budget.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["summary", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "tolokers/gcn/1.0              6 of  7 held,  0.71 points lost,  3.00x of exact inference",
        "planted:reddit/gcn/1.0        1 of  1 held,  0.50 points lost,  3.00x of exact inference"
        "  MISSED",
        "held on test nodes: 87.5% of all runs, at least 90%  MISSED",
        "of the best setting's speed: 0.90, worst 0.90, at least 0.85",
    ]
