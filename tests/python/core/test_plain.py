"""The short way of a call: what it computes, and what it leaves to the general way."""

import gc

import numpy as np
import pytest
import scipy.sparse as sp

import warploom
from warploom import _arrays, _plain


def matrix(rows=300, cols=200, dtype=np.float32, seed=1):
    return sp.random(rows, cols, 0.05, "csr", dtype, np.random.RandomState(seed))


def dense(*shape, dtype=np.float32):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture
def read(monkeypatch):
    """The names of the arrays that the general way read."""
    names, read = [], _arrays.read
    monkeypatch.setattr(
        _arrays, "read", lambda *call, **more: names.append(call[1]) or read(*call, **more)
    )
    return names


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(200,), (200, 1), (200, 7)])
@pytest.mark.parametrize("variant", [None, "host_nnz/nonzeros=1024,tile=16"])
def test_products(dtype, shape, variant, read):
    values = dense(matrix().nnz, dtype=dtype)
    a = warploom.Matrix((matrix().indptr, matrix().indices, values), shape=(300, 200))
    b = dense(*shape, dtype=dtype)
    expected = sp.csr_matrix((values.astype(float), a.indices, a.indptr), (300, 200)) @ b.astype(
        float
    )
    plan = warploom.Plan(a, (*shape, 1)[1], dtype=dtype, variant=variant)
    out = np.full((300, *shape[1:]), np.nan, dtype)
    read.clear()
    products = [plan(b), warploom.spmm(a, b), plan(b, out=out), warploom.spmm(a, b, out=out)]
    assert not read
    assert products[2] is products[3] is out
    tolerance = 1e-2 if dtype == "float16" else 1e-4
    for c in products:
        assert c.shape == expected.shape
        assert c.dtype == dtype
        assert np.allclose(c, expected, rtol=tolerance, atol=tolerance)


def test_a_scipy_matrix_is_read_once_and_used_in_place(read):
    a, b = matrix(), dense(200)
    warploom.spmm(a, b)
    read.clear()
    a.data[:] = 2  # in place
    assert np.allclose(warploom.spmm(a, b), a @ b, atol=1e-4)
    a.indices[:] = a.indices[::-1].copy()
    assert np.allclose(warploom.spmm(a, b), a @ b, atol=1e-4)
    assert not read
    a.data = a.data * 3  # another array
    assert np.allclose(warploom.spmm(a, b), a @ b, atol=1e-4)
    assert "data" in read
    a[0, 0] = 5
    a.data[:9] = 0
    a.eliminate_zeros()
    assert np.allclose(warploom.spmm(a, b), a @ b, atol=1e-4)
    a.resize(100, 200)
    assert np.allclose(warploom.spmm(a, b), a @ b, atol=1e-4)
    a.indices = a.indices + 200
    with pytest.raises(ValueError, match=r"indices: .* are not in 0 to 199"):
        warploom.spmm(a, b)


def test_a_scipy_matrix_is_forgotten_with_its_end():
    gc.collect()
    before = len(_plain._known)
    for seed in range(20):
        a = matrix(seed=seed)
        assert np.allclose(warploom.spmm(a, dense(200)), a @ dense(200), atol=1e-4)
    del a
    gc.collect()
    assert len(_plain._known) == before


def test_other_arrays_take_the_general_way(read):
    a, b = warploom.Matrix(matrix()), dense(200, 2)
    expected = matrix() @ b
    plan, gaps = warploom.Plan(a, 2), np.zeros((300, 3), np.float32)
    for product in (plan, lambda *call, **more: warploom.spmm(a, *call, **more)):
        for b_of, out in (
            (np.asfortranarray(b), None),
            (np.repeat(b, 2, axis=0)[::2], None),
            (b.view(np.recarray), None),
            (b, gaps[:, :2]),
        ):
            if not (product is plan and b_of.flags.f_contiguous):
                read.clear()
                assert np.allclose(product(b_of, out=out), expected, atol=1e-4)
                assert "B" in read
        assert np.allclose(product(b, alpha=2), 2 * expected, atol=1e-4)
        assert np.allclose(product(b, alpha=True, beta=1, out=gaps[:, :2]), 2 * expected, atol=1e-4)
        gaps[:] = 0
        for error, message, call in (
            (TypeError, "B: has type int32", (b.astype(np.int32),)),
            (ValueError, "B: has shape", (b[1:],)),
            (ValueError, "B: has shape", (b[:, None],)),
            (TypeError, "B: is a masked array", (np.ma.masked_array(b),)),
            (TypeError, "B: a list is no array", (b.tolist(),)),
        ):
            with pytest.raises(error, match=message):
                product(*call)
        read_only = np.zeros((300, 2), np.float32)
        read_only.flags.writeable = False
        for error, message, out in (
            (ValueError, "out: is read-only", read_only),
            (ValueError, "out: has shape", np.zeros((299, 2), np.float32)),
            (TypeError, "out: has type float64", np.zeros((300, 2))),
        ):
            with pytest.raises(error, match=message):
                product(b, out=out)
    square = warploom.Matrix(matrix(200, 200))
    with pytest.raises(ValueError, match="c and b share memory"):
        warploom.spmm(square, b, out=b)
