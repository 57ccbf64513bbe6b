"""Matrices of dense blocks (BSR), in SciPy's classes and as arrays of other libraries."""

import numpy as np
import pytest
import scipy.sparse as sp

import warploom

RNG = np.random.default_rng(5)


def bsr(shape, blocksize, dtype=np.float32):
    dense = sp.random(*shape, density=0.1, dtype=np.float64, rng=RNG)
    return sp.bsr_array(dense.astype(dtype), blocksize=blocksize)


@pytest.mark.parametrize("blocksize", [(1, 1), (3, 2), (2, 6), (12, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scipys_blocks(blocksize, dtype):
    source = bsr((24, 18), blocksize, dtype)
    matrix = warploom.Matrix.from_bsr(source)
    expected = source.tocsr()
    assert matrix.shape == (24, 18)
    assert matrix.nnz == source.data.size
    assert np.array_equal(matrix.indptr, expected.indptr)
    assert np.array_equal(matrix.indices, expected.indices)
    assert np.array_equal(matrix.data, expected.data)
    b = RNG.standard_normal((18, 4)).astype(dtype)
    assert np.allclose(warploom.spmm(matrix, b), source @ b, atol=1e-4)


def test_blocks_of_other_libraries_and_orders():
    torch = pytest.importorskip("torch")
    source = bsr((8, 15), (4, 3))
    columns = np.ascontiguousarray(source.data.transpose(0, 2, 1)).transpose(0, 2, 1)
    for parts in (
        (source.indptr, source.indices, columns),
        (source.indptr.astype(np.int64), source.indices, source.data),
        tuple(torch.from_numpy(x) for x in (source.indptr, source.indices, source.data)),
    ):
        matrix = warploom.Matrix.from_bsr(parts, shape=(8, 15))
        assert np.array_equal(np.asarray(matrix.data), source.tocsr().data)
        assert type(matrix.data) is type(parts[2])
    assert warploom.Matrix.from_bsr(parts).shape[0] == 8
    empty = sp.bsr_array((6, 4), blocksize=(3, 2), dtype=np.float32)
    assert warploom.Matrix.from_bsr(empty).nnz == 0


def test_wrong_blocks_are_named():
    good = bsr((8, 15), (4, 3))
    indptr, indices, data = good.indptr, good.indices, good.data
    for error, message, call in (
        (TypeError, "source: is no matrix in BSR", {"source": good.tocsr()}),
        (ValueError, "shape: is", {"source": good, "shape": (8, 12)}),
        (ValueError, "shape: is", {"source": (indptr, indices, data), "shape": (9, 15)}),
        (ValueError, "data: has shape", {"source": (indptr, indices, data[0])}),
        (ValueError, "data: must be contiguous", {"source": (indptr, indices, data[:, :, ::2])}),
        (ValueError, "indices: has shape", {"source": (indptr, indices[:-1], data)}),
        (ValueError, "indices: ", {"source": (indptr, indices + 5, data), "shape": (8, 15)}),
        (
            ValueError,
            "indptr: decreases",
            {"source": (indptr[[0, 2, 2]] * [0, 2, 1], indices, data)},
        ),
        (TypeError, "data: has type int32", {"source": (indptr, indices, data.astype(np.int32))}),
    ):
        with pytest.raises(error, match=message):
            warploom.Matrix.from_bsr(**call)
