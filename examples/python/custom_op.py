"""Attention in a graph by a user-defined operator.

C[i] = sum_p exp(a_p) B[p] / sum_p exp(a_p) over the edges p of node i.

python custom_op.py
"""

import numpy as np

import warploom

# Node 0 attends to nodes 0, 1 and 2, node 1 to itself, node 2 to nodes 0 and 1, and node 3 to none.
indptr = np.array([0, 3, 4, 6, 6], np.int32)
indices = np.array([0, 1, 2, 1, 0, 1], np.int32)
scores = np.array([0, 0, 0, 500, 1, -1], np.float32)
features = np.array([[1, 10], [2, -20], [6, 40], [5, 50]], np.float32)

# Subtracting the largest score of each node keeps exp in range; "copy_a" reads the scores only.
pattern = warploom.Matrix((indptr, indices, scores), shape=(4, 4))
ones = np.ones((4, 1), np.float32)
largest = warploom.spmm(pattern, ones, reduce="max", message="copy_a")[:, 0]
shifted = scores - np.repeat(largest, np.diff(indptr))

# The operator consists of C expressions over a, b, acc and x. A column of ones sums the weights.
A = warploom.Matrix((indptr, indices, shifted), shape=(4, 4))
B = np.hstack([features, ones])
C = warploom.spmm(A, B, operator="message=exp(a)*b;init=0;reduce=acc+x;combine=reduce")
result = C[:, :-1] / np.where(C[:, -1:] == 0, 1, C[:, -1:])
print(result)
