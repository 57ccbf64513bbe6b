"""Comparison of results with PyG's, before they are timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from bench.pytorch.cases import describe

TOLERANCE = 1e-3  # the largest norm of the difference, relative to PyG's result


def difference(result: Tensor, expected: Tensor, least: float = 1e-30) -> float:
    """The norm of the difference over that of the expected tensor, or over `least` if that is more.

    Both norms are computed in float64.
    """
    result, expected = result.detach().double(), expected.detach().double()
    return float((result - expected).norm() / expected.norm().clamp(min=least))


def largest_difference(results: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest difference of corresponding tensors."""
    return max(difference(one, other) for one, other in zip(results, expected))


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
            found = difference(function(), expected)
        except Exception as error:
            if name == "warploom":
                raise
            failed[name] = describe(error)
            continue
        if not found <= TOLERANCE:
            reason = f"the result differs from PyG's by {found:.2g} of its norm"
            if name == "warploom":
                raise ArithmeticError(reason)
            failed[name] = reason
    return failed
