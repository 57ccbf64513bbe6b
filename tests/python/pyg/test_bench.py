"""The benchmarks: sampled batches, the command, and its summary."""

import functools
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
import torch

from bench.__main__ import main
from bench.pytorch.compare import compare
from bench.pytorch.graphs import from_edges, load
from bench.pytorch.sampler import Sampler
from bench.pytorch.steps import MODELS, FullBatch
from bench.pytorch.suite import SUITE
from bench.pytorch.timing import measure, spread
from bench.reports.summary import figures_of
from bench.reports.tables import compiled_table, layer_tables
from bench.results_file import case_name


def test_batches():
    graph = load("random:2000:20")
    batch = Sampler(graph, 100, (5, 3)).sample(7)
    sources, targets = batch.edge_index
    assert batch.seeds == 100
    assert len(set(batch.nodes)) == len(batch.nodes)
    assert sources.max() < len(batch.nodes)
    assert (np.diff(targets) >= 0).all()
    degrees = np.diff(graph.rowptr)[batch.nodes]
    found = np.bincount(targets, minlength=len(batch.nodes))
    assert (found[:100] == np.minimum(degrees[:100], 5)).all()
    middle = targets.max() + 1
    assert (found[100:middle] == np.minimum(degrees[100:middle], 3)).all()
    for target in range(0, middle, 37):
        node = batch.nodes[target]
        chosen = batch.nodes[sources[targets == target]]
        row = graph.colind[graph.rowptr[node] : graph.rowptr[node + 1]]
        values, counts = np.unique(chosen, return_counts=True)
        available = dict(zip(*np.unique(row, return_counts=True), strict=True))
        assert all(count <= available[value] for value, count in zip(values, counts, strict=True))
    again = Sampler(graph, 100, (5, 3)).sample(7)
    assert np.array_equal(again.edge_index, batch.edge_index)
    assert not np.array_equal(Sampler(graph, 100, (5, 3)).sample(8).nodes, batch.nodes)


def test_first_layer_is_that_of_the_c_sampler():
    """The numbers are those of wlmi_neighbour_sample for this graph and seed."""
    targets = np.repeat(np.arange(3000), 30)
    sources = (targets + np.tile(np.arange(1, 31), 3000)) % 3000
    batch = Sampler(from_edges("ring", 3000, targets, sources), 100, (7,)).sample(42)
    assert batch.nodes[:8].tolist() == [2234, 1576, 1298, 277, 431, 2286, 2889, 782]
    assert batch.nodes[100:108].tolist() == [2245, 2237, 2243, 2261, 2257, 2241, 2235, 1582]
    assert len(batch.nodes) == 705
    assert batch.edge_index[0].sum() == 265768


def test_matrix_files(tmp_path):
    matrix = sp.random(30, 30, 0.1, "csr", random_state=1)
    scipy.io.mmwrite(tmp_path / "small.mtx", matrix)
    scipy.io.mmwrite(tmp_path / "twin-arxiv-scale-0.5.mtx", matrix)
    for name in ("small", "twin:arxiv,scale=0.5"):
        graph = load(name, tmp_path)
        assert np.array_equal(graph.rowptr, matrix.indptr)
        assert np.array_equal(graph.colind, matrix.indices)
    with pytest.raises(FileNotFoundError, match="--data"):
        load("missing", tmp_path)
    with pytest.raises(FileNotFoundError, match="--warploom"):
        load("twin:arxiv", tmp_path, "no-such-program")


def test_twins_come_from_the_command(tmp_path):
    program = tmp_path / "program"
    banner = "%%%%MatrixMarket matrix coordinate pattern general"
    program.write_text(f'#!/bin/sh\nprintf "{banner}\\n2 2 1\\n2 1\\n" > "$4"\n')
    program.chmod(0o755)
    try:
        graph = load("twin:arxiv", tmp_path, str(program))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("cannot run scripts here")
    assert graph.rowptr.tolist() == [0, 0, 1]
    assert graph.colind.tolist() == [0]


def test_cases(tmp_path):
    found = list(SUITE.cases(SUITE.settings(tmp_path, device="cuda")))
    names = [case_name(case) for case in found]
    assert len(names) == len(set(names)) == 7 * (2 * 9 + 12) * 2 + 2 * 6 + 12
    assert [name for name in names if name.startswith("attention/cora/")] == [
        f"attention/cora/{kind}/{shape}/eager"
        for kind in ("gat", "gatv2", "dot")
        for shape in ("1x64", "8x8")
    ]


def test_command(tmp_path, capsys):
    pytest.importorskip("torch_geometric")
    out = tmp_path / "torch.jsonl"
    assert main(["torch", "--quick", "--only", "/random", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    benches = {line["bench"] for line in lines}
    assert benches == {"spmm", "backward", "step", "attention", "minibatch"}
    for line in lines:
        assert line["us"] > 0
        assert set(line["rivals"]) == {
            *("torch_sparse", "pyg", "scatter", "scatter_compiled", "cudnn", "turbo_gnn")
        }
        assert (line["mm_us"] is not None) == (
            line["bench"] in ("backward", "attention") and line["mode"] == "eager"
        )
        if line["bench"] in ("spmm", "attention"):
            assert line["first_ms"]["warploom"] > 0 and "pyg" in line["peak_mb"]
        if line["mode"] == "eager":  # some baselines cannot be captured in a CUDA graph
            assert line["rivals"]["pyg"] > 0
            assert "failed" not in line, line
    assert main(["torch", "--quick", "--out", str(out)]) == 0
    assert len(out.read_text().splitlines()) >= len(lines)
    capsys.readouterr()
    main(["summary", str(out)])
    assert "minibatch, best of PyG" in capsys.readouterr().out


def test_each_tensor_is_compared():
    ones = torch.ones(3)
    errors, found = compare(
        {
            "pyg": lambda: [ones, ones],
            "warploom": lambda: [ones, ones],
            "other": lambda: [ones, 1.5 * ones],
            "broken": lambda: [ones, ones * float("nan")],
            "short": lambda: [ones],
        }
    )
    assert found == {
        "other": "the result differs from PyG's by 0.5 of its norm",
        "broken": "the result differs from PyG's by nan of its norm",
        "short": "ValueError: 1 tensors instead of 2",
    }
    assert errors["warploom"] == 0 and errors["other"] == pytest.approx(0.5)
    with pytest.raises(ArithmeticError, match="by 2 of its norm"):
        compare({"pyg": lambda: [ones, ones], "warploom": lambda: [ones, -ones]})


def test_attention(capsys):
    arguments = ["attention", "--quick", "--no-compile", "--only", "8/8/eager/forward"]
    assert main(arguments) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["layer"] for line in lines] == ["gat", "gatv2", "transformer"]
    assert all(line["us"] > 0 and line["kernel_us"] > 0 for line in lines)


def test_messages(tmp_path, capsys):
    pytest.importorskip("torch_geometric")
    out = tmp_path / "messages.jsonl"
    arguments = ["messages", "--quick", "--no-compile", "-n", "4", "--out", str(out)]
    assert main([*arguments, "--layers", "gine,fa"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(line["layer"], line["mode"]) for line in lines] == [
        (layer, mode) for layer in ("gine", "fa") for mode in ("forward", "step")
    ]
    assert main([*arguments, "--graphs", "random:200:5", "--layers", "gine,pna"]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 8
    for line in lines:
        assert line["us"] > 0 and line["pyg_us"] > 0 and line["gbs"] > 0
        assert line["max_rel_err"] < 1e-4
        assert {"pyg_compiled_us", "memory", "pyg_memory"} < set(line)
    assert main(arguments) == 0  # cases with a line are skipped
    assert len(out.read_text().splitlines()) == 8 + 8
    capsys.readouterr()
    main(["summary", str(out)])
    assert "forward, wide edges, PyG" in capsys.readouterr().out
    with pytest.raises(ValueError, match="--layers: gat is unknown"):
        main([*arguments, "--layers", "gat"])
    capsys.readouterr()


def test_batches_beside_pyg(tmp_path):
    out = tmp_path / "batches.jsonl"
    assert main(["batches", "--quick", "--only", "gine_32", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["mode"] for line in lines] == ["pyg", "eager", "captured"]
    for line in lines:
        assert line["ms"] > 0 and line["loss_diff"] < 1e-4 and "failed" not in line


def test_scatter(tmp_path, capsys):
    out = tmp_path / "scatter.jsonl"
    assert main(["scatter", "--quick", "--only", "random/forward", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 7
    for line in lines:
        assert line["us"] > 0 and line["walk_fresh_us"] > 0 and line["torch_us"] > 0
        assert line["max_rel_err"] < 1e-5 and "failed" not in line
    capsys.readouterr()
    main(["summary", str(out)])
    assert "a new index for each call, PyTorch" in capsys.readouterr().out


def test_order(tmp_path, capsys):
    pytest.importorskip("torch_geometric")
    out = tmp_path / "order.jsonl"
    assert main(["order", "--quick", "--only", "/sage/", "--out", str(out)]) == 0
    lines = read(out)
    modes = ["eager", "captured"] if torch.cuda.is_available() else ["eager"]
    wanted = [*(("constant", mode) for mode in modes), ("dropout", modes[-1])]
    assert [(line["inputs"], line["mode"]) for line in lines] == wanted
    for line in lines:
        assert line["us"] > 0 and line["before_us"] > 0 and line["pyg_us"] > 0
        assert max(line["max_rel_err"].values()) < 1e-4 and "failed" not in line
        is_kept = any("A X is kept" in text for text in line["orders"]["SAGEConv"])
        assert is_kept == (line["inputs"] == "constant")
    capsys.readouterr()


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_layers_with_new_edges(tmp_path):
    """With edges that have weights, too."""
    pytest.importorskip("torch_geometric")
    out, graph = tmp_path / "layers.jsonl", "random:300:6/new"
    arguments = ["layers", "--quick", "--layers", "Graph,GAT", "--graphs", graph, "--out", str(out)]
    assert main(arguments) == 0
    for line in read(out):
        assert line["graph"] == graph and line["served"] and line["us"] > 0


def test_layers(tmp_path, capsys):
    pytest.importorskip("torch_geometric")
    out = tmp_path / "layers.jsonl"
    layers = "GCN,GEN,PNA,FastRGCN"
    assert main(["layers", "--quick", "--layers", layers, "--out", str(out)]) == 0
    lines = {line["layer"]: line for line in read(out)}
    assert list(lines) == layers.split(",")
    for line in lines.values():
        assert line["us"] > 0 and line["pyg_us"] > 0 and line["max_rel_err"] < 1e-4
        assert line["served"] == (line["reason"] is None)
    assert all(line["served"] for line in lines.values())
    capsys.readouterr()
    main(["summary", str(out)])
    assert "layers left to PyG" not in capsys.readouterr().out
    types = ["--types", "f16,bf16,autocast", "--layers", "GCN,GAT", "--out", str(out)]
    assert main(["layers", "--quick", *types]) == 0
    lines = read(out)[4:]
    assert [line["type"] for line in lines] == ["f16", "bf16", "autocast"] * 2
    for line in lines:
        assert line["us"] > 0 and 1e-5 < line["pyg_max_rel_err"] < 0.3
        assert 1e-5 < line["max_rel_err"] < 2 * line["pyg_max_rel_err"]
    with pytest.raises(ValueError, match="--layers: gcn is unknown"):
        main(["layers", "--layers", "gcn"])


def test_a_wrong_layer_has_no_time(tmp_path, monkeypatch):
    layers = pytest.importorskip("bench.pytorch.layers")
    monkeypatch.setattr(layers, "_error", lambda found, expected: float("nan"))
    out = tmp_path / "layers.jsonl"
    assert main(["layers", "--quick", "--layers", "GCN", "--out", str(out)]) == 1
    (line,) = read(out)
    assert line["us"] is None and "the error is nan" in line["failed"]["warploom"]


def test_errors_in_16_bits_are_bounded_by_those_of_pyg():
    layers = pytest.importorskip("bench.pytorch.layers")
    case = layers.Case("GCN", "g", 8, "bf16")
    exact, other = [[torch.full((4, 8), value)] * 2 for value in (1.0, 1.1)]
    line = layers._errors(case, [1.14 * x for x in exact], other, exact)
    assert line == pytest.approx({"max_rel_err": 0.14, "pyg_max_rel_err": 0.1}, rel=1e-5)
    with pytest.raises(ArithmeticError, match=r"the error is 1.6e-01, and 1.5e-01 is allowed"):
        layers._errors(case, [1.16 * x for x in exact], other, exact)


def test_compiled(tmp_path, capsys):
    pytest.importorskip("torch_geometric")
    out = tmp_path / "compiled.jsonl"
    arguments = ["compiled", "--quick", "--out", str(out)]
    assert main([*arguments, "--modes", "eager"]) == 0
    lines = read(out)
    assert [line["model"] for line in lines] == [
        *("gcn", "sage-mean", "sage-max", "gin", "gat", "gatv2"),
        *("gcn-default", "gat-default", "gatv2-default"),
    ]
    for line in lines:
        assert line["us"] > 0 and line["pyg_us"] > 0 and line["max_rel_err"] < 1e-4
    capsys.readouterr()
    assert main(["summary", str(out)]) == 0
    assert "step eager, PyG" in capsys.readouterr().out
    limited = [*arguments, "--models", "gcn", "--modes", "compile", "--limit", "0.001"]
    assert main(limited) == 1
    assert read(out)[-1]["failed"] == dict.fromkeys(
        ("warploom", "pyg"), "TimeoutError: not ready after 0.001 s"
    )
    with pytest.raises(ValueError, match="--models: sage is unknown"):
        main([*arguments, "--models", "sage"])


def test_an_import_is_not_cut_short(tmp_path, monkeypatch):
    """Later cases would find half a module."""
    compiled = pytest.importorskip("bench.pytorch.compiled")
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.2)\nwhole = True\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TimeoutError), compiled._limited(0.01):
        module = importlib.import_module("slow_module")
        while True:
            pass
    assert module.whole and sys.modules.pop("slow_module") is module


def test_other_losses_have_no_time(tmp_path, monkeypatch):
    compiled = pytest.importorskip("bench.pytorch.compiled")
    ready = compiled._ready
    monkeypatch.setattr(
        compiled,
        "_ready",
        lambda name, *rest: ready(name, *rest) if name == "pyg" else (rest[0].step, [0.0] * 8),
    )
    out = tmp_path / "compiled.jsonl"
    arguments = ["compiled", "--quick", "--models", "gcn", "--modes", "eager", "--out", str(out)]
    assert main(arguments) == 1
    (line,) = read(out)
    assert line["us"] is None and line["pyg_us"] > 0
    assert "a loss differs" in line["failed"]["warploom"]


def targets(suite, *lines):
    """The figures of the lines by their texts."""
    return {row.what: row for row in figures_of(suite, list(lines))}


def test_targets_of_layers():
    def line(layer, type_, gpu_us, edges=2_000_000, served=True):
        times = {"us": 100.0 if served else 400.0, "pyg_us": 300.0, "gpu_us": gpu_us}
        case = {"layer": layer, "graph": "g", "n": 64, "type": type_, **times}
        return {**case, "edges": edges, "served": served}

    table = targets(
        "layers",
        *(line("GCN", "f32", 100.0), line("GAT", "f32", 100.0)),
        *(line("GCN", "bf16", 50.0), line("GAT", "bf16", 200.0)),
        line("GIN", "bf16", 50.0, edges=999),
        line("FastRGCN", "f32", 400.0, served=False),
    )
    assert table["served layers, g, f32, PyG"].mean() == pytest.approx(3)
    in_bf16 = table["GPU work of served layers, g, bf16, our f32"]
    assert in_bf16.ratios.to_dict() == {"GCN/g": 2.0, "GAT/g": 0.5} and not in_bf16.holds()
    assert not table["layers left to PyG, g, f32, PyG"].holds()


def test_tables_of_layers_and_steps():
    lines = [
        {"layer": "GCN", "us": 100.0, "pyg_us": 250.0, "served": True, "reason": None},
        {"layer": "GIN", "us": None, "pyg_us": None, "served": None, "reason": None},
        {"layer": "FastRGCN", "us": 10.0, "pyg_us": 9.0, "served": False, "reason": "it is large"},
    ]
    text = layer_tables([{**line, "graph": "cora", "type": "f32"} for line in lines])
    assert "**cora, f32**" in text
    assert "| GCN | 100 | 250 | 2.50 | served |" in text
    assert "| GIN | - | - | - | no result |" in text
    assert "| FastRGCN | 10 | 9 | 0.90 | it is large |" in text
    times = (("eager", 9.0, 18.0), ("captured", 3.0, None))
    steps = [
        {"model": "gcn", "graph": "cora", "mode": mode, "us": us, "pyg_us": other}
        for mode, us, other in times
    ]
    assert "| gcn | cora | 9 / 18 = 2.00 | 3 / - |" in compiled_table(steps)


def test_targets_of_steps():
    def line(mode, us, pyg_us, model="gcn"):
        return {"model": model, "graph": "cora", "mode": mode, "us": us, "pyg_us": pyg_us}

    table = targets(
        "compiled",
        line("eager", 300.0, 600.0),
        line("compile", 400.0, 300.0),
        line("captured", 100.0, None),
        line("eager", 300.0, 600.0, "gatv2"),
        line("captured", 200.0, 400.0, "gatv2"),
    )
    assert table["step eager, PyG"].mean() == pytest.approx(2)
    assert not table["step compile, PyG"].holds()
    assert not table["step compile, our eager"].holds()
    assert table["step captured, our eager"].ratios.to_dict() == {"gcn/cora": 3.0}
    assert table["step captured, our eager"].holds()
    assert table["step captured, PyG"].ratios.to_dict() == {"gatv2/cora": 2.0}


def test_targets():
    def line(bench, mode, us, model=None, reduce="sum", graph="g", **rivals):
        return {
            "bench": bench,
            "graph": graph,
            "model": model,
            "n": 16,
            "reduce": reduce,
            "mode": mode,
            "us": us,
            "rivals": rivals,
        }

    table = targets(
        "torch",
        line("spmm", "graphed", 2.0, torch_sparse=6.0, pyg=1.0),
        line("spmm", "graphed", 2.0, reduce="max", torch_sparse=None, scatter=20.0),
        line("step", "eager", 100.0, "gcn", pyg=99.0, torch_sparse=120.0),
        line("step", "graphed", 20.0, "gcn", pyg=40.0),
        line("attention", "eager", 200.0, "gatv2", None, "cora", pyg=500.0) | {"mm_us": 50.0},
        line("attention", "eager", 400.0, "gatv2", None, "pubmed"),
        line("backward", "eager", 125.0, graph="cora"),
        line("backward", "graphed", 25.0, graph="cora"),
    )
    assert table["spmm sum graphed, torch.sparse"].mean() == pytest.approx(3)
    assert table["spmm sum graphed, torch.sparse"].holds()
    assert not table["spmm max graphed, scatter"].holds()
    assert table["step eager, best of PyG"].holds()
    assert abs(table["step graphed, best of PyG eager"].mean() - 4.95) < 1e-9
    host = table["attention gatv2 on cora, 220 us"]
    assert host.ratios.to_dict() == {"cora/gatv2/16": pytest.approx(1.1)} and host.holds()
    assert table["attention gatv2, best"].mean() == pytest.approx(2.5)
    assert table["attention cora eager, torch.mm"].mean() == pytest.approx(0.25)
    sums = table["backward sum on cora eager, 100 us"]
    assert sums.ratios.to_dict() == {"cora/16/sum": pytest.approx(0.8)} and not sums.holds()


@pytest.mark.parametrize("name", ["h200/first_step", "h200x4/model", "host/merge"])
def test_other_results_have_no_summary(name):
    with pytest.raises(ValueError, match="jsonl: has no summary"):
        main(["summary", f"{Path(__file__).parents[3]}/bench/results/{name}.jsonl"])


def test_json_of_a_torch_benchmark(capsys):
    main(["summary", f"{Path(__file__).parents[3]}/bench/results/h200/torch.jsonl", "--json"])
    (table,) = json.loads(capsys.readouterr().out)["tables"]
    assert table["titles"][0] == "speed-up over" and len(table["rows"]) > 10


def test_targets_of_messages():
    def line(layer, mode, pyg, compiled, nodes=10, pyg_memory=30.0):
        return {
            "layer": layer,
            "graph": "g",
            "n": 64,
            "mode": mode,
            "us": 1.0,
            "pyg_us": pyg,
            "pyg_compiled_us": compiled,
            "memory": 2.0,
            "pyg_memory": pyg_memory,
            "nodes": nodes,
            "edges": 250,
        }

    table = targets(
        "messages",
        line("gine", "forward", 4.0, None),
        line("cf", "forward", 9.0, 3.0),
        line("fa", "step", 4.0, 0.9),
        line("pna", "step", 9.0, 12.0, nodes=20),
    )
    assert table["forward, wide edges, PyG"].mean() == pytest.approx(6)
    assert table["step, narrow edges, PyG"].holds()
    assert table["forward, best of PyG and compiled"].mean() == pytest.approx(12**0.5)
    assert not table["step, best of PyG and compiled"].holds()  # one case is slower
    memory = table["memory of a step, PyG, 20 edges a row"]
    assert memory.ratios.to_dict() == {"fa/g/64/step": 15.0}


def test_rivals_run_as_in_pyg():
    full = FullBatch(load("random:40:3"), 8, torch.device("cpu"))
    for kind, reduce in MODELS:
        trainings = full.trainings(kind, reduce, 4, False)
        for name, training in trainings.items():
            for layer in training.model.layers:
                wrapped = [
                    hasattr(getattr(layer, method), "__wrapped__")
                    for method in ("forward", "propagate", "_check_input")
                ]
                assert any(wrapped) == (name == "warploom")
        losses = [training.loss().item() for training in trainings.values()]
        assert losses == pytest.approx([losses[0]] * len(losses), rel=1e-5)


def test_spread():
    assert spread([5.0]) == 0
    assert spread([1.0, 2.0, 4.0, 5.0, 9.0]) == pytest.approx(3 / 4)


def test_samples_begin_with_another_function_each_turn():
    order = []
    functions = {name: functools.partial(order.append, name) for name in "abc"}
    times, failed = measure(functions, torch.device("cpu"), False, 3)
    assert set(times) == set("abc") and not failed
    changes = [name for name, before in zip(order, [None, *order], strict=False) if name != before]
    assert "".join(changes) == "abcabcbcacab"
