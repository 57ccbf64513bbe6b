"""The benchmark of several devices: a run of two processes, and the model of a step."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.pytorch import step_model
from bench.reports.tables import tables_of
from bench.results_file import read_lines

ROOT = Path(__file__).parents[3]
MODEL = ROOT / "bench/results/h200x4/model.jsonl"


def run(*options, ranks=2):
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    path = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    return subprocess.run(
        [*command, "-m", "bench", "distributed", *options],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


def test_processes(tmp_path, capsys):
    """Two of three processes and all of them, each with two splits; rank 0 alone is measured once
    for each model."""
    out = tmp_path / "distributed.jsonl"
    options = ("--quick", "--out", str(out), "--split", "features,rows", "--ranks", "2,3")
    done = run(*options, ranks=3)
    assert done.returncode == 0, done.stderr
    lines = read_lines(out)
    cases = [(line["model"], line["ranks"], line["asked"]) for line in lines]
    models, splits = ("gcn", "sage-mean"), ("features", "rows")
    assert cases == [(m, ranks, split) for m in models for ranks in (2, 3) for split in splits]
    assert len({line["one_us"] for line in lines}) == 2
    for line in lines:
        assert line["split"] == line["asked"] and not line["too_small"]
        assert min(line["us"], line["one_us"], line["aggregation_us"]) > 0
        assert line["losses"] == pytest.approx(line["one_losses"], rel=1e-4)
        assert f"rank 0 of {line['ranks']}" in line["explain"] and line["peak_mb"] is None
        assert set(line["exchange_us"]) == {"all", "needed"} and line["split_us"] == {}
    assert run(*options, ranks=3).returncode == 0 and len(read_lines(out)) == 8
    assert main(["summary", str(out)]) == 0
    assert "random:300:6, 2 ranks, rows: step, one device" in capsys.readouterr().out
    assert tables_of(out).count("random:300:6") == 8


def test_a_small_graph_runs_on_one(tmp_path):
    out = tmp_path / "distributed.jsonl"
    done = run("--quick", "--models", "gcn", "--out", str(out))
    assert done.returncode == 0, done.stderr
    (line,) = read_lines(out)
    assert line["too_small"] == (line["exchange"] == "own")
    assert line["too_small"] == ("all nodes are on rank 0" in line["explain"])
    assert line["losses"] == pytest.approx(line["one_losses"], rel=1e-4)


def test_without_ranks(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="start it with torchrun"):
        main(["distributed", "--quick"])


def test_cases(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert main(["distributed", "--list", "--data", str(tmp_path)]) == 0
    assert "twin:reddit/sage-mean/256/2/auto" in capsys.readouterr().out.split()
    only = ["--only", "reddit", "--only", "gcn"]
    assert main(["distributed", "--list", "--data", str(tmp_path), *only]) == 0
    assert capsys.readouterr().out.split() == ["twin:reddit/gcn/256/2/auto"]
    with pytest.raises(ValueError, match="--models: gat is unknown"):
        main(["distributed", "--list", "--models", "gat"])


def test_the_model_meets_what_was_measured(tmp_path):
    out = tmp_path / "folder" / "model.jsonl"
    assert main(["distributed", "--calculate", "--out", str(out)]) == 0
    assert read_lines(out) == read_lines(MODEL)
    checks = [line for line in read_lines(out) if "error" in line]
    assert len(checks) == 20
    for line in checks:
        error = line["model_ms"] / line["measured_ms"] - 1
        assert abs(error) <= 0.15 and error == pytest.approx(line["error"], abs=2e-3)
    table = tables_of(out)
    assert table in (ROOT / "docs/distributed-inside.md").read_text()


def test_the_model_without_a_link_or_other_gpus():
    """Gathers that follow the model give its link; the times of one GPU are the measured ones."""
    link = step_model.Link(0.2, 1e8, 5e8)
    cases = step_model.read_measured()
    cases = [case._replace(gather=link.gather(case, case.gpus)) for case in cases]
    assert step_model.fit_link(cases) == pytest.approx(link)
    for case in cases:
        assert link.gather(case, 1) == 0
        for way in step_model.WAYS:
            assert step_model.product(case, link, way, 1) == case.one
            few, many = (step_model.memory(case, way, gpus) for gpus in (2, 8))
            assert many < few < step_model.memory(case, way, 1)


def test_the_model_of_more_gpus():
    """Times of eight GPUs are compared with the model, which is calculated for each graph once."""
    cases = step_model.read_measured()
    more = cases[0]._replace(gpus=8, part=cases[0].part / 4, ways={"features": 12.0})
    found = list(step_model.lines([*cases, more]))
    checked = [line["way"] for line in found if "error" in line and line["gpus"] == 8]
    assert checked == ["features", "one step", "step"]
    assert sum("speedup" in line for line in found) == 2 * len(step_model.GPUS)


def test_a_model_that_misses(monkeypatch):
    """The command fails where a measured time is more than 15 % away."""
    wrong = [case._replace(ways={**case.ways, "rows": 99.0}) for case in step_model.read_measured()]
    monkeypatch.setattr(step_model, "read_measured", lambda: wrong)
    assert step_model.run(None) == len(wrong)
