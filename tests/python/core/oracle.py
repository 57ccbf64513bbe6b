"""Products in float64 by plain NumPy, for comparison."""

from __future__ import annotations

import numpy as np

MESSAGES = {
    "mul": lambda a, b: a * b,
    "copy_b": lambda a, b: b + 0 * a,
    "copy_a": lambda a, b: a + 0 * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: b - a,
    "rsub": lambda a, b: a - b,
    "div": lambda a, b: b / a,
    "rdiv": lambda a, b: a / b,
}
FOLDS = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "prod": np.prod}
EPSILON = {"bfloat16": 2**-7, "float16": 2**-10, "float32": 2**-22, "float64": 2**-50}
SUBNORMAL = {"bfloat16": 2**-133, "float16": 2**-24, "float32": 2**-149, "float64": 2**-1074}


def edges(indptr, indices, values, b):
    """Yield the operands of each row: (row, a of shape (degree, 1), b of shape (degree, n))."""
    for row, (begin, end) in enumerate(zip(indptr[:-1], indptr[1:])):
        a = np.ones(end - begin) if values is None else values[begin:end].astype(np.float64)
        yield row, a[:, None], b[indices[begin:end]].astype(np.float64)


def product(indptr, indices, values, b, message, reduce):
    """Return C of shape (rows, n), and the magnitude to which rounding errors are relative."""
    rows, n = len(indptr) - 1, b.shape[1]
    c = np.full((rows, n), 1.0 if reduce == "prod" else 0.0)
    size = np.ones((rows, n))
    for row, a, neighbours in edges(indptr, indices, values, b):
        if len(a):
            terms = MESSAGES[message](a, neighbours)
            c[row] = FOLDS[reduce](terms, axis=0)
            size[row] = FOLDS[reduce](np.abs(terms), axis=0) + len(a) * np.abs(c[row])
    return c, size


def gradient_of_values(indptr, indices, x, b):
    """Return the values' gradient for sum and mul: the dot product of rows of x and b per edge."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return (x.astype(np.float64)[rows] * b.astype(np.float64)[indices]).sum(axis=1)
