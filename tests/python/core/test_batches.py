"""Batches: many matrices as one block-diagonal one, and one pattern with many operands."""

import numpy as np
import pytest
import scipy.sparse as sp

import warploom

RNG = np.random.default_rng(3)
BLOCKS = [
    sp.random(m, k, density=0.3, format="csr", dtype=np.float32, rng=RNG)
    for m, k in ((5, 7), (1, 1), (0, 4), (9, 3), (4, 0), (6, 6))
]


def operand(rows, n):
    return RNG.integers(-3, 4, (rows, n)).astype(np.float32)


def test_many_small_matrices_are_one():
    b = [operand(block.shape[1], 4) for block in BLOCKS]
    matrix = warploom.Matrix.block_diagonal(BLOCKS)
    expected = np.concatenate([block @ part for block, part in zip(BLOCKS, b)])
    assert matrix.shape == (25, 21)
    assert np.allclose(warploom.spmm(matrix, np.concatenate(b)), expected, atol=1e-5)
    matrix.validate()
    patterns = warploom.Matrix.block_diagonal([(x.indptr, x.indices) for x in BLOCKS[:2]])
    assert patterns.dtype is None
    assert patterns.nnz == BLOCKS[0].nnz + BLOCKS[1].nnz
    one = warploom.Matrix(
        (BLOCKS[0].indptr + 1, BLOCKS[0].indices + 1, BLOCKS[0].data), shape=(5, 7), base=1
    )
    mixed = warploom.Matrix.block_diagonal([one, BLOCKS[0]])
    assert mixed.base == 0
    assert np.array_equal(mixed.indices[: one.nnz], BLOCKS[0].indices)


def test_blocks_that_do_not_fit_are_named():
    pattern = BLOCKS[0].indptr, BLOCKS[0].indices
    with pytest.raises(ValueError, match="blocks: is empty"):
        warploom.Matrix.block_diagonal([])
    with pytest.raises(ValueError, match="blocks: some have values"):
        warploom.Matrix.block_diagonal([BLOCKS[0], pattern])
    with pytest.raises(TypeError, match="blocks: their values have several types"):
        warploom.Matrix.block_diagonal([BLOCKS[0], BLOCKS[1].astype(np.float64)])


def test_one_pattern_with_many_operands():
    """Column-major matrices behind each other are one wide matrix, and values of each are heads."""
    batch, n, a = 3, 2, BLOCKS[0]
    b = np.stack([operand(7, n).T for _ in range(batch)])  # (batch, n, K): column-major each
    wide = b.reshape(batch * n, 7).T
    out = np.zeros((batch * n, 5), np.float32).T
    warploom.spmm(a, wide, out=out)
    for i, c in enumerate(out.T.reshape(batch, n, 5)):
        assert np.allclose(c.T, a @ b[i].T, atol=1e-5)
    values = operand(a.nnz, batch)
    matrix = warploom.Matrix((a.indptr, a.indices, values), shape=a.shape)
    warploom.spmm(matrix, wide, out=out, heads=batch)
    for i, c in enumerate(out.T.reshape(batch, n, 5)):
        of_batch = sp.csr_matrix((values[:, i], a.indices, a.indptr), shape=a.shape)
        assert np.allclose(c.T, of_batch @ b[i].T, atol=1e-5)
