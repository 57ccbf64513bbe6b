"""Products against a float64 oracle, over random shapes, types, messages and reductions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st

import oracle
import warploom

try:
    import ml_dtypes  # adds bfloat16 to NumPy
except ImportError:
    ml_dtypes = None
TYPES = ["float32", "float16", "float64"] + (["bfloat16"] if ml_dtypes else [])


def random_csr(rng, rows, cols, nnz, index_type, value_type):
    """Make a matrix with unsorted and repeated columns, empty rows, and one long row."""
    lengths = rng.multinomial(nnz // 2, np.full(max(rows, 1), 1 / max(rows, 1)))[:rows]
    if rows and cols:
        lengths[rng.integers(rows)] += nnz - nnz // 2
    indptr = np.concatenate([[0], np.cumsum(lengths if cols else 0 * lengths)]).astype(index_type)
    indices = rng.integers(0, max(cols, 1), indptr[-1]).astype(index_type)
    values = rng.uniform(0.5, 1.5, indptr[-1]) * rng.choice([-1, 1], indptr[-1])
    return indptr, indices, None if value_type is None else values.astype(value_type)


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, cols = draw(st.integers(0, 40)), draw(st.integers(0, 40))
    dtype = draw(st.sampled_from(TYPES))
    value_type = draw(st.sampled_from([dtype, None] + (["float32"] if "16" in dtype else [])))
    index_type = draw(st.sampled_from(["int32", "int64"]))
    csr = random_csr(rng, rows, cols, draw(st.integers(0, 200)), index_type, value_type)
    b = rng.uniform(0.5, 1.5, (cols, draw(st.sampled_from([0, 1, 3, 8, 33])))).astype(dtype)
    b *= rng.choice([-1, 1], b.shape)
    return csr, (rows, cols), b


def close(c, expected, size, dtype):
    assert c.dtype == dtype
    assert c.shape == expected.shape
    with np.errstate(over="ignore"):
        rounded = expected.astype(dtype).astype(np.float64)
    bound = oracle.EPSILON[dtype] * (size + np.abs(expected)) + oracle.SUBNORMAL[dtype]
    wrong = np.abs(c - rounded) > 4 * bound
    wrong &= ~((c == rounded) | (np.isnan(c) & np.isnan(rounded)))
    assert not wrong.any(), (c[wrong], expected[wrong])


@given(cases(), st.sampled_from(sorted(oracle.MESSAGES)), st.sampled_from(sorted(oracle.FOLDS)))
def test_every_message_and_reduction(case, message, reduce):
    (indptr, indices, values), shape, b = case
    c = warploom.spmm(
        warploom.Matrix((indptr, indices, values), shape=shape), b, message=message, reduce=reduce
    )
    close(c, *oracle.product(indptr, indices, values, b, message, reduce), b.dtype.name)


@given(cases())
def test_a_plan_of_the_same_variant_gives_the_same_bits(case):
    csr, shape, b = case
    a = warploom.Matrix(csr, shape=shape)
    plan = warploom.Plan(a, b.shape[1], dtype=b.dtype, deterministic=True)
    close(plan(b), *oracle.product(*csr, b, "mul", "sum"), b.dtype.name)
    named = warploom.Plan(a, b.shape[1], dtype=b.dtype, variant=plan.variant)
    assert plan(b).tobytes() == named(b).tobytes()


FACTORS = st.floats(-2, 2, width=32, allow_subnormal=False)


@given(cases(), FACTORS, FACTORS)
def test_alpha_beta_and_bias(case, alpha, beta):
    csr, shape, b = case
    start = np.full((shape[0], b.shape[1]), 0.5, b.dtype)
    out, bias = start.copy(), np.arange(b.shape[1], dtype=b.dtype)
    c = warploom.spmm(
        warploom.Matrix(csr, shape=shape), b, out=out, alpha=alpha, beta=beta, bias=bias
    )
    assert c is out
    expected, size = oracle.product(*csr, b, "mul", "sum")
    scale = abs(alpha) * size + abs(beta) + bias.astype(float)
    close(c, alpha * expected + beta * 0.5 + bias, scale, b.dtype.name)


@given(cases())
def test_transpose_is_scipys_transpose(case):
    csr, shape, b = case
    indptr, indices, values = csr
    x = np.ones((shape[0], b.shape[1]), b.dtype)
    ones = np.ones(len(indices)) if values is None else values.astype(np.float64)
    wide = sp.csr_matrix((ones, indices, indptr), shape=shape)
    size = sp.csr_matrix((np.abs(ones), indices, indptr), shape=shape).T @ x.astype(np.float64)
    found = warploom.spmm(warploom.Matrix(csr, shape=shape), x, transpose=True)
    close(found, wide.T @ x.astype(np.float64), size, b.dtype.name)


@given(cases())
def test_sddmm(case):
    (indptr, indices, values), shape, b = case
    assume(b.shape[1] > 0)
    x = np.full((shape[0], b.shape[1]), 0.5, b.dtype)
    a = warploom.Matrix((indptr, indices, values), shape=shape)
    expected = oracle.gradient_of_values(indptr, indices, x, b)
    found = warploom.sddmm(a, x, b)
    close(found, expected, np.full(expected.shape, b.shape[1] + 1.0), b.dtype.name)
    plan = warploom.Plan(a, b.shape[1], dtype=b.dtype.name, operation="sddmm")
    assert np.array_equal(plan(b, X=x), found)


@pytest.mark.parametrize("dtype", TYPES)
def test_unused_memory_is_never_read(dtype):
    a = warploom.Matrix((np.array([0, 1, 1]), np.array([1]), np.array([2], dtype)), shape=(2, 3))
    wide = np.full((3, 8), np.nan, dtype)
    wide[1, 2:6] = 1  # the only row that an edge uses; the columns around it are NaN
    out = np.full((2, 8), np.nan, dtype)
    warploom.spmm(a, wide[:, 2:6], out=out[:, 2:6])
    assert (out[:, 2:6] == [[2] * 4, [0] * 4]).all()
    assert np.isnan(out[:, :2]).all()
    assert np.isnan(out[:, 6:]).all()


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_argmax_names_edges(index_type):
    rng = np.random.default_rng(1)
    a = sp.random(30, 20, 0.2, format="csr", dtype=np.float32, random_state=rng)
    a.indptr = a.indptr.astype(index_type)
    b = rng.standard_normal((20, 7)).astype(np.float32)
    c, positions = warploom.spmm(a, b, reduce="max", message="copy_b", argmax=True)
    assert positions.dtype == index_type
    assert (positions[np.diff(a.indptr) == 0] == -1).all()
    row, column = np.nonzero(positions >= 0)
    edge = positions[row, column]
    assert (c[row, column] == b[a.indices[edge], column]).all()
    assert ((a.indptr[row] <= edge) & (edge < a.indptr[row + 1])).all()


def test_heads():
    rng = np.random.default_rng(2)
    indptr, indices, _ = random_csr(rng, 20, 15, 90, "int32", None)
    values = rng.standard_normal((90, 4)).astype(np.float32)
    b = rng.standard_normal((15, 4, 3)).astype(np.float32)
    a = warploom.Matrix((indptr, indices, values), shape=(20, 15))
    c = warploom.spmm(a, b, heads=4)
    assert c.shape == (20, 4, 3)
    for head in range(4):
        expected = oracle.product(indptr, indices, values[:, head], b[:, head], "mul", "sum")
        close(c[:, head], *expected, "float32")
    assert np.array_equal(warploom.spmm(a, b.reshape(15, 12), heads=4), c.reshape(20, 12))
    pattern = warploom.Matrix((indptr, indices), shape=(20, 15))
    assert np.array_equal(warploom.spmm(pattern, b, values=values, heads=4), c)
    x = rng.standard_normal((20, 4, 3)).astype(np.float32)
    assert warploom.sddmm(a, x, b, heads=4).shape == (90, 4)


def test_sampling_keeps_the_first_edges_of_a_row():
    indptr, indices = np.array([0, 20, 25]), np.arange(25)
    b = np.arange(25, dtype=np.float32)[:, None] + np.zeros(3, np.float32)
    a = warploom.Matrix((indptr, indices), shape=(2, 25))
    c = warploom.spmm(a, b, message="copy_b", sample="bucket", width=8)
    assert c[:, 0].tolist() == [sum(range(8)), sum(range(20, 25))]
    c = warploom.spmm(a, b, message="copy_b", sample="bucket", width=8, norm="kept")
    assert c[:, 0].tolist() == [3.5, 22]


def test_a_user_defined_operator_and_an_activation():
    a = sp.csr_matrix(np.array([[1, -2], [0, 3]], np.float32))
    b = np.array([[1], [2]], np.float32)
    operator = "message=fmaxf(a*b,0);init=0;reduce=acc+x;combine=reduce"
    assert warploom.spmm(a, b, operator=operator).ravel().tolist() == [1, 6]
    assert warploom.spmm(a, b, activation="relu").ravel().tolist() == [0, 6]


def test_vectors_and_values_of_a_call():
    a = sp.random(12, 9, 0.3, format="csr", dtype=np.float64, random_state=3)
    b = np.arange(9.0)
    c = warploom.spmm(a, b)
    assert c.shape == (12,)
    assert np.allclose(c, a @ b)
    assert np.allclose(warploom.spmm(a, b[::-1].copy()[::-1].copy(), values=2 * a.data), 2 * c)
    assert np.allclose(warploom.spmm(a, np.repeat(b, 3)[::3]), c)  # a strided column
    copied = np.empty(12)
    warploom.spmm(a, None, message="copy_a", out=copied)
    assert np.allclose(copied, np.asarray(a.sum(axis=1)).ravel())


def test_bfloat16_of_ml_dtypes():
    if ml_dtypes is None:
        pytest.skip("needs ml_dtypes")
    a = sp.random(12, 9, 0.3, format="csr", dtype=np.float32, random_state=3)
    b = np.ones((9, 4), ml_dtypes.bfloat16)
    c = warploom.spmm(a, b)
    assert c.dtype == ml_dtypes.bfloat16
    assert np.allclose(c.astype(np.float32), a @ b.astype(np.float32), rtol=2**-7)
