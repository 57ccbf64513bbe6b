"""Batches: many matrices as one block-diagonal one, and one pattern with many operands."""

import numpy as np
import pytest
import scipy.sparse as sp

import warploom
from warploom import _arrays

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


def batch_of(matrix, values, b):
    """The products of a batch by SciPy: values and b are (batch, ...) or those of all."""
    batch = len(values) if values.ndim == 2 else len(b)
    return np.stack(
        [
            sp.csr_matrix(
                (values[i] if values.ndim == 2 else values, matrix.indices, matrix.indptr),
                shape=matrix.shape,
            )
            @ (b[i] if b.ndim == 3 else b)
            for i in range(batch)
        ]
    )


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("own_values", [False, True])
@pytest.mark.parametrize("own_b", [False, True])
def test_a_batch_in_one_call(planned, own_values, own_b):
    batch, n, a = 3, 4, BLOCKS[0]
    values = operand(batch, a.nnz) if own_values else operand(1, a.nnz)[0]
    b = operand(batch * 7, n).reshape(batch, 7, n) if own_b else operand(7, n)
    if not (own_values or own_b):
        b = np.broadcast_to(b, (batch, 7, n))  # a stride of 0
    expected = batch_of(a, values, b)
    if planned:
        with warploom.Plan(a, n, batch=batch) as plan:
            found = plan(b, values=values)
    else:
        found = warploom.spmm(a, b, values=values, batch=batch)
    assert found.shape == (batch, 5, n)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("own_values", [False, True])
def test_positions_of_a_batch(planned, own_values):
    batch, n, a = 3, 4, BLOCKS[0]
    values = operand(batch, a.nnz) if own_values else None
    b = operand(batch * 7, n).reshape(batch, 7, n)
    options = {"reduce": "max", "argmax": True}
    if planned:
        with warploom.Plan(a, n, batch=batch, **options) as plan:
            found, positions = plan(b, values=values)
    else:
        found, positions = warploom.spmm(a, b, values=values, batch=batch, **options)
    assert found.shape == positions.shape == (batch, 5, n)
    for i in range(batch):
        one = {} if values is None else {"values": values[i]}
        expected, places = warploom.spmm(a, b[i], **one, **options)
        assert np.array_equal(found[i], expected)
        assert np.array_equal(positions[i], places)


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("shared", ["X", "B", None])
@pytest.mark.parametrize("heads", [1, 2])
def test_an_sddmm_of_a_batch(planned, shared, heads):
    batch, n, a = 3, 4, BLOCKS[0]
    x = operand(5, n) if shared == "X" else operand(batch * 5, n).reshape(batch, 5, n)
    b = operand(7, n) if shared == "B" else operand(batch * 7, n).reshape(batch, 7, n)
    values = operand(a.nnz, heads)
    matrix = warploom.Matrix((a.indptr, a.indices, values.squeeze()), shape=a.shape)
    if planned:
        with warploom.Plan(matrix, n, operation="sddmm", batch=batch, heads=heads) as plan:
            found = plan(B=b, X=x)
    else:
        found = warploom.sddmm(matrix, x, b, batch=batch, heads=heads)
    for i in range(batch):
        one = x if shared == "X" else x[i], b if shared == "B" else b[i]
        assert np.array_equal(found[i], warploom.sddmm(matrix, *one, heads=heads))
    out = np.ones_like(found)
    again = warploom.sddmm(matrix, x, b, batch=batch, heads=heads, out=out, beta=1.0)
    assert again is out
    assert np.array_equal(out, found + 1)


def test_a_batch_within_larger_arrays():
    """B and C side by side, with gaps, in any order of the batch's dimension; and torch tensors."""
    torch = pytest.importorskip("torch")
    batch, n, a = 3, 4, BLOCKS[0]
    b = operand(7, batch * 6).reshape(7, batch, 6)[:, :, :n].transpose(1, 0, 2)
    whole = np.full((5, batch, 6), np.nan, np.float32)
    out = whole[:, :, :n].transpose(1, 0, 2)
    expected = batch_of(a, a.data, b)
    assert warploom.spmm(a, b, out=out, batch=batch) is out
    assert np.allclose(out, expected, atol=1e-5)
    assert np.isnan(whole[:, :, n:]).all()
    warploom.spmm(a, b, out=out, beta=1.0, batch=batch)
    assert np.allclose(out, 2 * expected, atol=1e-5)
    columns = np.asfortranarray(b.transpose(1, 2, 0)).transpose(2, 0, 1)  # each product by columns
    assert np.allclose(warploom.spmm(a, columns, batch=batch), expected, atol=1e-5)
    found = warploom.spmm(a, torch.from_numpy(b.copy()), batch=batch)
    assert np.allclose(found.numpy(), expected, atol=1e-5)
    assert warploom.spmm(a, np.empty((0, 7, n), np.float32), batch=0).shape == (0, 5, n)


def test_wrong_batches_are_named():
    a, b = BLOCKS[0], operand(14, 2).reshape(2, 7, 2)
    overlapping = np.broadcast_to(operand(5, 2), (2, 5, 2)).view()
    overlapping.flags.writeable = True
    apart = np.zeros((2, 6, 2), np.float32)[:, :5]
    for error, message, call in (
        (ValueError, "B: has shape .*must be batch = 3", {"batch": 3}),
        (ValueError, "batch: -1 is not", {"batch": -1}),
        (TypeError, "batch", {"batch": 2.5}),
        (ValueError, "values: has shape", {"batch": 2, "values": operand(3, a.nnz)}),
        (ValueError, "out: has shape", {"batch": 2, "out": operand(5, 2)}),
        (ValueError, "batch: no operand and no out", {"batch": 2, "B": b[0]}),
        (ValueError, "c_stride is 0", {"batch": 2, "out": overlapping}),
        (ValueError, "contiguous", {"batch": 2, "reduce": "max", "argmax": True, "out": apart}),
    ):
        with pytest.raises(error, match=message):
            warploom.spmm(**{"A": a, "B": b, **call})
    with pytest.raises(ValueError, match=r"X: has shape .*must be batch = 3"):
        warploom.sddmm(a, operand(10, 2).reshape(2, 5, 2), b, batch=3)
    with pytest.raises(ValueError, match="batch: no operand and no out"):
        warploom.sddmm(a, operand(5, 2), operand(7, 2), batch=2)


def test_out_is_read_once(monkeypatch):
    names, read = [], _arrays.read
    monkeypatch.setattr(
        _arrays, "read", lambda *call, **more: names.append(call[1]) or read(*call, **more)
    )
    a, b = BLOCKS[0], operand(7, 2)
    warploom.spmm(a, b, alpha=2, out=np.zeros((5, 2), np.float32))
    assert names.count("out") == 1
    warploom.spmm(a, None, message="copy_a", out=np.zeros((5, 2), np.float32))
    assert names.count("out") == 2
    with warploom.Plan(a, 2) as plan:
        plan(b, alpha=2, out=np.zeros((5, 2), np.float32))
    assert names.count("out") == 3
