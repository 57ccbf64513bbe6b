"""Comparison of results with PyG's, before they are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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


def _parts(result: Tensor | Sequence[Tensor]) -> Sequence[Tensor]:
    return [result] if isinstance(result, Tensor) else result


def compare(
    results: Mapping[str, Callable[[], Tensor | Sequence[Tensor]]], tolerance: float = TOLERANCE
) -> tuple[dict[str, float], dict[str, str]]:
    """Compare results, or each of several tensors, with PyG's. Returns the largest differences, and
    why baselines fail.

    Raises ArithmeticError if warploom's result differs.
    """
    expected = _parts(results["pyg"]())
    errors: dict[str, float] = {}
    failed: dict[str, str] = {}
    for name in (name for name in results if name != "pyg"):
        try:
            errors[name] = largest_difference(_parts(results[name]()), expected)
            if not errors[name] <= tolerance:
                by = f"{errors[name]:.2g}"
                raise ArithmeticError(f"the result differs from PyG's by {by} of its norm")
        except Exception as error:
            if name == "warploom":
                raise
            is_wrong = isinstance(error, ArithmeticError)
            failed[name] = str(error) if is_wrong else describe(error)
    return errors, failed
