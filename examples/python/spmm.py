"""Products of a SciPy matrix with NumPy arrays.

python spmm.py
"""

import numpy as np
import scipy.sparse as sp

import warploom

rng = np.random.default_rng(0)
A = sp.random(1000, 800, density=0.01, format="csr", dtype=np.float32, random_state=rng)
B = rng.standard_normal((800, 32), dtype=np.float32)

C = warploom.spmm(A, B)  # the same as A @ B
print("largest difference to SciPy:", np.abs(C - A @ B).max())

largest = warploom.spmm(
    A, B, reduce="max", message="copy_b"
)  # for each row the largest of B over its columns
print("row 0:", largest[0, :4])

# Make a plan for a matrix that you multiply often: it measures the matrix once.
plan = warploom.Plan(warploom.Matrix(A), n=32, expected_calls=1000)
for _ in range(3):
    plan(B, out=C)
print("kernel:", plan.variant)
