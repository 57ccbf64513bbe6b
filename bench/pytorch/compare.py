"""Comparison of results with PyG's, before they are timed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
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
    """The largest difference of corresponding tensors, NaN where one is. Raises ValueError where
    there are not as many results.
    """
    if len(results) != len(expected):
        raise ValueError(f"{len(results)} tensors instead of {len(expected)}")
    return float(np.max([difference(one, other) for one, other in zip(results, expected)]))


def largest_error(found: Sequence[float], expected: Sequence[float]) -> float:
    """The largest difference of corresponding numbers, such as losses, relative to the others."""
    return max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(found, expected))


def parts(result: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [result] if isinstance(result, Tensor) else result


def compare(results: dict[str, Callable[[], Tensor | Sequence[Tensor]]]) -> dict[str, str]:
    """Compare results, or each of several tensors, with PyG's. Returns why baselines fail.

    Raises ArithmeticError if warploom's result differs.
    """
    expected = parts(results["pyg"]())
    failed: dict[str, str] = {}
    for name, function in results.items():
        if name == "pyg":
            continue
        try:
            found = largest_difference(parts(function()), expected)
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
