"""Column-major operands, which are used where they are, and indices that count from 1."""

import numpy as np
import pytest
import scipy.sparse as sp

import warploom

A = sp.random(30, 20, density=0.2, format="csr", dtype=np.float32, rng=np.random.default_rng(1))
A.data = np.round(A.data * 8)
B = np.arange(20 * 6, dtype=np.float32).reshape(20, 6) % 7
X = np.arange(30 * 6, dtype=np.float32).reshape(30, 6) % 5
C = A @ B


def padded(array, rows):
    """The array, column-major within a larger one that holds NaN elsewhere."""
    larger = np.full((rows, array.shape[1] + 2), np.nan, array.dtype, order="F")
    larger[: array.shape[0], 1:-1] = array
    return larger[: array.shape[0], 1:-1]


@pytest.mark.parametrize("b", [np.asfortranarray(B), padded(B, 25), B])
def test_a_column_major_b_and_out(b):
    assert np.array_equal(warploom.spmm(A, b), C)
    for out in (np.zeros_like(C), np.zeros_like(C, order="F"), padded(C * 0, 33)):
        assert warploom.spmm(A, b, out=out) is out
        assert np.array_equal(out, C)
    out = padded(C, 33)
    around = out.base
    warploom.spmm(A, b, out=out, beta=2)
    assert np.array_equal(out, 3 * C)
    assert np.isnan(around[30:]).all()
    assert np.isnan(around[:, [0, -1]]).all()


def test_every_operation():
    b, x = np.asfortranarray(B), np.asfortranarray(X)
    assert np.array_equal(warploom.sddmm(A, x, b), warploom.sddmm(A, X, B))
    assert np.array_equal(warploom.spmm(A, x, transpose=True), A.T @ X)
    expected, places = warploom.spmm(A, B, reduce="max", argmax=True)
    found, positions = warploom.spmm(A, b, reduce="max", argmax=True)
    assert np.array_equal(found, expected)
    assert np.array_equal(positions, places)
    with pytest.raises(ValueError, match="out: must be contiguous and row-major where argmax"):
        warploom.spmm(A, b, reduce="max", argmax=True, out=np.zeros_like(C, order="F"))
    heads = A.indptr, A.indices, np.stack([A.data, A.data], axis=1)
    with pytest.raises(ValueError, match="B: must be row-major or"):
        warploom.spmm(heads, b.reshape(20, 2, 3, order="F"), heads=2)
    for n in (1, 2):
        assert np.array_equal(warploom.spmm(A, b[:, :n]), C[:, :n])


def test_a_plan_has_an_order():
    b = np.asfortranarray(B)
    with warploom.Plan(A, 6, b_order="F", c_order="F") as plan:
        c = plan(b)
        assert c.flags.f_contiguous
        assert np.array_equal(c, C)
        with pytest.raises(ValueError, match=r"B: is not column-major.*asfortranarray"):
            plan(B)
        with pytest.raises(ValueError, match="out: is not column-major"):
            plan(b, out=np.zeros_like(C))
    with warploom.Plan(A, 6) as plan, pytest.raises(ValueError, match="B: is column-major"):
        plan(b)
    with pytest.raises(ValueError, match="b_order: 'K'"):
        warploom.Plan(A, 6, b_order="K")
    with pytest.raises(ValueError, match="row-major"):
        warploom.Plan(A, 6, c_order="F", online=True)


def test_strided_tensors_of_torch():
    torch = pytest.importorskip("torch")
    b = torch.from_numpy(np.ascontiguousarray(B.T)).t()
    assert b.stride() == (1, 20)
    c = warploom.spmm(A, b)
    assert isinstance(c, torch.Tensor)
    assert np.array_equal(c.numpy(), C)
    out = torch.zeros(6, 30).t()
    assert warploom.spmm(A, b, out=out) is out
    assert np.array_equal(out.numpy(), C)
    with warploom.Plan(A, 6, b_order="F", c_order="F") as plan:
        c = plan(b)
        assert c.stride() == (1, 30)
        assert np.array_equal(c.numpy(), C)


def test_indices_that_count_from_one():
    one = A.indptr + 1, A.indices + 1, A.data
    matrix = warploom.Matrix(one, shape=A.shape, base=1)
    assert np.array_equal(warploom.spmm(matrix, B), C)
    assert np.array_equal(warploom.spmm(matrix, X, transpose=True), A.T @ X)
    assert matrix.stats() == warploom.Matrix(A).stats()
    matrix.validate()
    expected = warploom.spmm(A, B, reduce="min", argmax=True)
    found = warploom.spmm(matrix, B, reduce="min", argmax=True)
    assert np.array_equal(found[1], expected[1])
    assert warploom.Matrix(one, base=1).shape == (30, A.indices.max() + 1)
    with pytest.raises(ValueError, match=r"indptr: goes from 1 to .*; is base 1"):
        warploom.Matrix(one, shape=A.shape)
    with pytest.raises(ValueError, match=r"indptr: goes from 0 to .*nnz \+ 1 = 121; is base 0"):
        warploom.Matrix((A.indptr, A.indices), shape=A.shape, base=1)
    with pytest.raises(ValueError, match=r"indices: 1 to .* are not in 1 to 5"):
        warploom.Matrix(one, shape=(30, 5), base=1)
    with pytest.raises(ValueError, match="base: 2 is not in 0 to 1"):
        warploom.Matrix(one, shape=A.shape, base=2)
