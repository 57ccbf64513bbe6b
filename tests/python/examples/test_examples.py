"""The examples run and print the expected text."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples" / "python"
DATA = next(
    (
        d
        for d in (ROOT / ".data", ROOT.parent / "shared" / "data", ROOT / "shared" / "data")
        if d.exists()
    ),
    ROOT,
)
ALL = sorted(path.name for path in EXAMPLES.glob("*.py"))


def run(name, *arguments, runner=()):
    """Run an example, under a module of Python such as torchrun's, and return what it prints."""
    needs = {"spmm.py": "scipy", "custom_op.py": "numpy", "jax_gcn.py": "jax"}
    pytest.importorskip(needs.get(name, "torch_geometric"))
    import warploom

    path = os.pathsep.join(
        [str(Path(warploom.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    command = [sys.executable, *runner, str(EXAMPLES / name), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ALL)
def test_short(name):
    assert len((EXAMPLES / name).read_text().splitlines()) < 60


def test_each_is_described():
    folder = EXAMPLES.parent
    listed = re.findall(r"^\| \[.*?\]\((.*?)\) \| .", (folder / "README.md").read_text(), re.M)
    found = [p for end in ("c", "cpp", "f90", "py", "ipynb") for p in folder.rglob(f"*.{end}")]
    assert sorted(listed) == sorted(path.relative_to(folder).as_posix() for path in found)


def test_spmm():
    text = run("spmm.py")
    assert float(re.search(r"SciPy: (\S+)", text)[1]) < 1e-5
    assert "kernel: " in text


def test_custom_op():
    rows = re.findall(r"[-\d.]+", run("custom_op.py"))
    w = np.exp([1.0, -1.0])
    last = (w[0] * np.array([1, 10]) + w[1] * np.array([2, -20])) / w.sum()
    np.testing.assert_allclose(np.array(rows, float), [3, 10, 2, -20, *last, 0, 0], rtol=1e-5)


@pytest.mark.parametrize("name, steps", [("graphed_training.py", "21"), ("minibatch.py", "11")])
def test_training(name, steps):
    text = run(name, steps)
    losses = [float(loss) for loss in re.findall(r"loss:? ([\d.]+)", text)]
    assert losses[-1] < 0.97 * losses[0]
    if name == "minibatch.py":
        assert "{'SAGEConv': {'warploom': 22}}" in text
    else:
        torch = pytest.importorskip("torch")
        assert ("not captured: there is no GPU" in text) != torch.cuda.is_available()


def test_molecules():
    text = run("molecules.py", "5")
    shares = [float(share) for share in re.findall(r"accuracy [\d.]+ ([\d.]+)", text)]
    assert len(shares) == 5 and shares[-1] > 0.9
    torch = pytest.importorskip("torch")
    assert ("there is no GPU" in text) != torch.cuda.is_available()


def test_jax():
    pytest.importorskip("jax")
    text = run("jax_gcn.py", "40")
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", text)]
    assert losses[-1] < 0.7 * losses[0]
    assert float(re.search(r"nodes: ([\d.]+)", text)[1]) > 0.3


def test_distributed():
    torchrun = ("-m", "torch.distributed.run", "--nproc-per-node", "2")
    text = run("distributed_gcn.py", runner=torchrun)
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", text)]
    assert len(losses) == 4 and losses[-1] < 0.97 * losses[0]
    assert "rank 0 of 2" in text and "rank 1 of 2" in text


@pytest.mark.skipif(
    not (DATA / "cora" / "cora.features.mtx.gz").exists(), reason="needs the features of Cora"
)
def test_gcn_reaches_the_accuracy_of_pyg():
    pytest.importorskip("torch_geometric")
    spec = importlib.util.spec_from_file_location("gcn_cora", EXAMPLES / "gcn_cora.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    results = example.main(DATA / "cora", seeds=3, epochs=40)
    error = max(np.std(found, ddof=1) / len(found) ** 0.5 for found in results.values())
    assert abs(np.mean(results["warploom"]) - np.mean(results["PyG"])) <= max(error, 0.5)
    assert np.mean(results["warploom"]) > 60
