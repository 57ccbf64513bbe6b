"""The package without a C compiler, and without a shared library that it needs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import warploom


def test_an_empty_path(tmp_path):
    program = Path(__file__).with_name("bare.py")
    found = os.pathsep.join(filter(None, sys.path))
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path), "PYTHONPATH": found}
    ended = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("without a compiler: sums run")
    assert "the host computes with its built-in kernel only" in ended.stderr


def test_an_extension_that_does_not_load(tmp_path):
    package = Path(warploom.__file__).parent
    shutil.copytree(package, tmp_path / "warploom", ignore=shutil.ignore_patterns("_native*"))
    (tmp_path / "warploom" / "_native.abi3.so").write_bytes(b"no library")
    found = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-c", "import warploom"],
        env={**os.environ, "PYTHONPATH": found},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ImportError: warploom: ") and "_native.abi3.so" in last
    assert last.endswith("install that library, or a wheel that brings it (auditwheel repair)")
