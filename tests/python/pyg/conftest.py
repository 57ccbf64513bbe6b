"""Messages of small graphs on the CPU are traced too, though PyG computes them as fast."""

import pytest


@pytest.fixture(autouse=True)
def _trace_all(monkeypatch):
    messages = pytest.importorskip("warploom._pyg_messages")
    monkeypatch.setattr(messages, "LEAST_WORK", {})
    monkeypatch.setattr("warploom._pyg_terms.SLOW_REPEATS", ())
