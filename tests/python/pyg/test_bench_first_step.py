"""The benchmark of first steps: its cases, a run on the CPU, and a process that fails."""

import json
import os

import pytest

from bench.__main__ import main
from bench.pytorch import first_step
from bench.pytorch.cases import Output
from bench.results_file import read_lines


def test_cases(tmp_path, capsys):
    found = list(first_step.cases(first_step.Settings(tmp_path, device="cuda")))
    assert [(case.archive, case.compiler) for case in found] == [
        ("none", "nvrtc"),
        ("shipped", "nvrtc"),
        ("shipped", "none"),
    ]
    assert main(["first_step", "--list", "--graphs", "a b", "--data", str(tmp_path)]) == 0
    assert {line.split("/")[0] for line in capsys.readouterr().out.split()} == {"a", "b"}


def test_run_on_the_cpu(tmp_path):
    settings = first_step.Settings(tmp_path, device="cpu", **first_step.SUITE.quick)
    (case,) = first_step.cases(settings)
    line = first_step.measure(case, settings)
    assert list(line["first_ms"]) == ["gcn", "sage-max", "gat", "gatv2", "transformer"]
    for kind, first in line["first_ms"].items():
        assert first > 0 and line["third_ms"][kind] > 0
        assert line["extra_ms"][kind] == pytest.approx(first - line["third_ms"][kind], abs=2e-3)
    assert json.loads(json.dumps(line)) == line


def test_a_failed_process_is_the_reason_of_a_line(tmp_path):
    settings = first_step.Settings(tmp_path, samples=1, graphs=("missing",), device="cpu")
    out = tmp_path / "first_step.jsonl"
    assert first_step.SUITE.run(settings, Output(out)) == 1
    (line,) = read_lines(out)
    assert line["first_ms"] is None and "the process ended with 1" in line["failed"]["warploom"]
    assert os.path.exists(out)
