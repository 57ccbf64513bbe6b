"""The notebooks run, and each draws a picture."""

import base64
import os
from pathlib import Path

import pytest

import warploom

NOTEBOOKS = Path(__file__).resolve().parents[3] / "examples" / "notebooks"


@pytest.mark.parametrize("name", ["tune", "train_three_ways"])
def test_notebook(name, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    if name == "train_three_ways":
        pytest.importorskip("torch_geometric")
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", 4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    path = [str(Path(warploom.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    for variable, value in {
        "PYTHONPATH": os.pathsep.join(path),
        "XDG_DATA_HOME": str(tmp_path),
        "BUDGET": "1",
        "EPOCHS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }.items():
        monkeypatch.setenv(variable, os.environ.get(f"NOTEBOOK_{variable}", value))
    client.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [o.data["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == 1
    folder = Path(os.environ.get("NOTEBOOK_PICTURES", tmp_path))
    (folder / f"{name}.png").write_bytes(base64.b64decode(pictures[0]))
