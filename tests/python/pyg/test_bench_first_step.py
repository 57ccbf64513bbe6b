"""The benchmark of first steps: its cases, a run on the CPU, and a process that fails."""

import json

import pytest

from bench.__main__ import main
from bench.pytorch import first_step
from bench.pytorch.cases import Output
from bench.results_file import read_lines


def quick(tmp_path, **options):
    return first_step.SUITE.settings(tmp_path, device="cpu", **first_step.SUITE.quick | options)


def test_cases(tmp_path, capsys):
    settings = first_step.SUITE.settings(tmp_path, device="cuda", layers=("GCN",), graphs=("a",))
    assert [case[2:] for case in first_step.cases(settings)] == [
        (calls, *kernels)
        for kernels in (("none", "nvrtc"), ("shipped", "nvrtc"), ("shipped", "none"))
        for calls in ("later", "wait")
    ]
    options = ["--graphs", "a b/new", "--layers", "GIN", "--modes", "wait"]
    assert main(["first_step", "--list", *options, "--data", str(tmp_path)]) == 0
    names = {name.rsplit("/", 2)[0] for name in capsys.readouterr().out.split()}
    assert names == {"GIN/a/wait", "GIN/b/new/wait"}


@pytest.mark.parametrize("graph", ["random:60:4", "random:60:4/new"])
def test_run_on_the_cpu(tmp_path, graph):
    settings = quick(tmp_path, layers=("GAT",), modes=("wait",), graphs=(graph,))
    out = tmp_path / "first_step.jsonl"
    assert first_step.SUITE.run(settings, Output(out)) == 0
    (line,) = read_lines(out)
    assert line["steps_ms"][0] == pytest.approx(line["first_ms"], abs=0.01)
    assert line["first_ms"] <= line["slowest_ms"] and 0 < line["last_ms"] <= line["slowest_ms"]
    assert 0 < line["pyg_ms"] <= line["pyg_slowest_ms"] >= line["pyg_first_ms"]
    over = line["slowest_ms"] - line["pyg_slowest_ms"]
    assert line["over_ms"] == pytest.approx(over, abs=2e-3)
    assert line["reason"] is None and line["served_from"] == 0
    assert json.loads(json.dumps(line)) == line


class Steps:
    """Steps whose kernels compile in the first `later` ones."""

    def __init__(self, monkeypatch, later):
        self.taken, self.later = 0, later
        monkeypatch.setattr(first_step, "served", self.served)

    def served(self):
        self.taken += 1
        compiles = self.taken <= self.later
        return not compiles, first_step.COMPILING if compiles else None


@pytest.mark.parametrize("later", [0, 3, 30])
def test_steps_end_when_nothing_compiles(monkeypatch, later):
    steps = Steps(monkeypatch, later)
    times, reasons = first_step.own_steps(lambda: None, first_step.torch.device("cpu"), 0)
    assert len(times) == steps.taken == first_step.SETTLED + later
    assert reasons == [first_step.COMPILING] * later + [None] * first_step.SETTLED


def test_a_failed_process_is_the_reason_of_a_line(tmp_path):
    settings = quick(tmp_path, graphs=("missing",), layers=("GCN",), modes=("wait",))
    out = tmp_path / "first_step.jsonl"
    assert first_step.SUITE.run(settings, Output(out)) == 1
    (line,) = read_lines(out)
    assert line["first_ms"] is None and "missing" in line["failed"]["warploom"]
