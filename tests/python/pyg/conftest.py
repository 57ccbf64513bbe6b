"""Messages of small graphs on the CPU are traced too, though PyG computes them as fast, and calls
on a GPU wait for their kernels."""

import pytest


@pytest.fixture(autouse=True)
def _trace_all(monkeypatch):
    roads = pytest.importorskip("warploom.pyg._roads")
    monkeypatch.setattr(roads, "LEAST_WORK", {})
    monkeypatch.setattr("warploom.torch._later.FIRST_DEVICE", 1 << 30)
    monkeypatch.setattr("warploom.pyg._walks.SLOW_REPEATS", ())


@pytest.fixture
def fresh():
    """Each test begins and ends without counts."""
    pyg = pytest.importorskip("warploom.pyg")
    pyg.report(reset=True)
    yield
    pyg.report(reset=True)
