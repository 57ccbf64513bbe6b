"""The suite "jax" of the bench, and its summary."""

import json

import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")
pytest.importorskip("pandas")

from bench.__main__ import main


def test_the_suite(tmp_path, capsys):
    out = tmp_path / "jax.jsonl"
    assert main(["jax", "--quick", "--only", "gcn", "--out", str(out)]) == 0
    (line,) = map(json.loads, out.read_text().splitlines())
    assert line["us"] > 0 and line["max_rel_err"] < 1e-5
    assert line["rivals"].keys() == {"segment_sum", "bcoo", "dense"}
    assert main(["summary", str(out)]) in (0, 1)  # whether it is faster is not of the CPU
    assert "gcn step, the best of JAX" in capsys.readouterr().out
