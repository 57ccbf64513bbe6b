"""Comparison of results with PyG's, before they are timed."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from bench.pytorch.cases import describe

TOLERANCE = 1e-3  # the largest norm of the difference, relative to PyG's result


def _difference(result: Tensor, expected: Tensor) -> float:
    return float((result - expected).norm() / expected.norm().clamp(min=1e-30))


def compare(results: dict[str, Callable[[], Tensor]]) -> dict[str, str]:
    """Compare results with PyG's. Returns why baselines fail.

    Raises ArithmeticError if warploom's result differs.
    """
    expected = results["pyg"]()
    failed: dict[str, str] = {}
    for name, function in results.items():
        if name == "pyg":
            continue
        try:
            difference = _difference(function(), expected)
        except Exception as error:
            if name == "warploom":
                raise
            failed[name] = describe(error)
            continue
        if not difference <= TOLERANCE:
            reason = f"the result differs from PyG's by {difference:.2g} of its norm"
            if name == "warploom":
                raise ArithmeticError(reason)
            failed[name] = reason
    return failed
