"""Names of PyTorch that are not public stand in one file, which does without them, too."""

import importlib.util
import re
from pathlib import Path

import torch

import warploom
from warploom.torch import _internals

ROOT = Path(warploom.__file__).parent
PRIVATE = re.compile(
    r"(?<!warploom\.)\btorch(?:\.\w+)*\._[A-Za-z]|from torch import _|super\(torch\."
)


def private_names(folder):
    """The lines with such names."""
    files = list(folder.rglob("*.py"))
    assert len(files) > 10
    return {
        f"{path.relative_to(folder)}:{number}: {line.strip()}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE.search(line)
    }


def test_private_names_stand_in_one_file():
    found = private_names(ROOT)
    here = {line for line in found if line.startswith(str(Path("torch", "_internals.py")))}
    assert here and not found - here


def test_what_is_found(tmp_path):
    for number in range(10):
        (tmp_path / f"{number}.py").write_text("from warploom.torch._plan import Plan\n")
    (tmp_path / "_pyg_bad.py").write_text("torch._C._f()\nsuper(torch.autograd.F, f)\n")
    (tmp_path / "bad.py").write_text("from torch.utils._python_dispatch import M\n")
    assert len(private_names(tmp_path)) == 3


def test_versions_without_these_names(monkeypatch):
    """Without the quick ways results stay the same."""
    for name in (
        "_is_any_autocast_enabled",
        "_are_functorch_transforms_active",
        "_cuda_getCurrentRawStream",
        "_get_tracing_state",
        "_len_torch_dispatch_stack",
    ):
        monkeypatch.delattr(torch._C, name, raising=False)
    spec = importlib.util.spec_from_file_location("without", _internals.__file__)
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    assert without.any_autocast() and without.is_transformed()
    assert without.tracing_state() and not without.is_deterministic()
    assert without.is_dispatched(torch.ones(1)) and not _internals.is_dispatched(torch.ones(1))


def test_recompiles_are_limited():
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    before = getattr(config, name)
    _internals.limit_recompiles(before + 1)
    assert getattr(config, name) == before + 1
    _internals.limit_recompiles(before)
