"""Valid operands, and the errors for invalid ones."""

import contextlib
import ctypes
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import warploom
from warploom import _arrays

A = sp.random(6, 5, 0.5, format="csr", dtype=np.float32, random_state=1)
B = np.arange(10, dtype=np.float32).reshape(5, 2)
C = A @ B


class Dlpack:
    """An array of an unknown library, with DLPack only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Moved(Dlpack):
    """A tensor of PyTorch, which moves its memory for queues and in `share_memory_`."""

    def data_ptr(self):
        return self.array.ctypes.data


# ---- matrices ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok"])
def test_scipy_formats(form):
    assert np.allclose(warploom.spmm(A.asformat(form), B), C)
    assert np.allclose(warploom.spmm(sp.csr_array(A).asformat(form), B), C)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_memory_of_a_matrix_is_moved(place):
    arrays = [Moved(part) for part in (A.indptr, A.indices, A.data)]
    a = warploom.Matrix(tuple(arrays), shape=A.shape)
    plan = warploom.Plan(a, 2)
    assert np.allclose(plan(B), C)
    arrays[place].array = arrays[place].array.copy()
    name = ("indptr", "indices", "data")[place]
    other = warploom.Plan(A, 2, expected_calls=1)
    uses = (lambda: plan(B), lambda: warploom.spmm(a, B), a.validate, lambda: other.rebind(a))
    for use in uses:
        with pytest.raises(RuntimeError, match=f"{name}: its memory was moved"):
            use()
    assert np.allclose(warploom.spmm(warploom.Matrix(tuple(arrays), shape=A.shape), B), C)


def test_csr_arrays_are_used_in_place():
    a = warploom.Matrix((A.indptr, A.indices, A.data.copy()), shape=A.shape)
    assert a.indptr is A.indptr
    assert np.allclose(warploom.spmm(a, B), C)
    a.data[:] *= 2
    assert np.allclose(warploom.spmm(a, B), 2 * C)
    assert (a.shape, a.nnz, a.dtype, a.device) == (A.shape, A.nnz, "float32", "host")
    assert "6 x 5" in repr(a)


def test_coordinates_keep_repeated_edges_in_their_order():
    row, col = np.array([2, 0, 2, 2]), np.array([1, 0, 1, 0])
    data = np.array([1, 2, 3, 4], np.float32)
    a = warploom.Matrix.from_coo(row, col, data)
    assert a.shape == (3, 2)
    assert a.perm.tolist() == [1, 0, 2, 3]
    assert a.indptr.tolist() == [0, 1, 1, 4]
    assert a.data.tolist() == [2, 1, 3, 4]
    dense = sp.coo_matrix((data, (row, col))).toarray()
    assert np.array_equal(warploom.spmm(a, np.eye(2, dtype=np.float32)), dense)
    assert np.array_equal(a.data, data[a.perm])


def test_an_edge_index_goes_from_sources_to_targets():
    edge_index = np.array([[0, 1, 2], [3, 3, 0]])
    a = warploom.Matrix.from_edge_index(edge_index)
    assert a.shape == (4, 4)
    b = np.array([[1], [10], [100], [1000]], np.float32)
    assert warploom.spmm(a, b).ravel().tolist() == [100, 0, 0, 11]
    assert warploom.Matrix.from_edge_index(edge_index, shape=(5, 3)).shape == (5, 3)
    assert warploom.Matrix.from_edge_index(np.zeros((2, 0), np.int64)).shape == (0, 0)


def test_stats():
    found = warploom.stats(A)
    assert (found.rows, found.cols, found.nnz) == (*A.shape, A.nnz)
    assert found.longest == np.diff(A.indptr).max()


@pytest.mark.parametrize(
    ("error", "text", "source", "options"),
    [
        (ValueError, "A: a tuple", [[0]], {}),
        (ValueError, "A: a tuple", (A.indptr,), {}),
        (TypeError, "A: a int", 3, {}),
        (TypeError, "indptr: a list", ([0, 1], [0]), {}),
        (TypeError, "indptr: has type float64", (np.zeros(2), np.zeros(0, int)), {}),
        (TypeError, "indices: has type uint32", (np.zeros(2, int), np.zeros(0, np.uint32)), {}),
        (ValueError, "indptr: is empty", (np.zeros(0, int), np.zeros(0, int)), {}),
        (ValueError, "indptr: goes from 0 to 2", (np.array([0, 2]), np.zeros(1, int)), {}),
        (ValueError, "indptr: decreases", (np.array([0, 2, 1, 2]), np.zeros(2, int)), {}),
        (ValueError, "indices: 0 to 4", (A.indptr, A.indices), {"shape": (6, 4)}),
        (ValueError, "indices: -1 to", (np.array([0, 1]), np.array([-1])), {}),
        (ValueError, "shape: has 7 rows", (A.indptr, A.indices), {"shape": (7, 5)}),
        (ValueError, "indices: has shape", (A.indptr, A.indices[:, None]), {}),
        (ValueError, "indices: must be contiguous", (np.array([0, 3]), np.arange(6)[::2]), {}),
        (ValueError, "data: has shape", (A.indptr, A.indices, A.data[1:]), {}),
        (TypeError, "data: has type int64", (A.indptr, A.indices, A.indices.astype(int)), {}),
    ],
)
def test_a_wrong_matrix_is_named(error, text, source, options):
    with pytest.raises(error, match=text):
        warploom.Matrix(source, **options)


@pytest.mark.parametrize(
    ("error", "text", "row", "col"),
    [
        (ValueError, "col: has shape", np.zeros(2, int), np.zeros(3, int)),
        (TypeError, "row: has type float64", np.zeros(2), np.zeros(2, int)),
        (ValueError, "col: 0 to 2", np.zeros(3, int), np.arange(3)),
        (ValueError, "row: -1 to", np.array([-1]), np.zeros(1, int)),
    ],
)
def test_wrong_coordinates_are_named(error, text, row, col):
    with pytest.raises(error, match=text):
        warploom.Matrix.from_coo(row, col, shape=(2, 2))


# ---- dense operands ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "text", "b", "options"),
    [
        (TypeError, "B: a list is no array", B.tolist(), {}),
        (TypeError, "B: has type int64", B.astype(int), {}),
        (TypeError, "B: has type complex64", B.astype(np.complex64), {}),
        (TypeError, "B: has type .* of the other byte order", B.astype(">f4"), {}),
        (TypeError, "data: has type float32 and the dense operands float64", B.astype(float), {}),
        (ValueError, r"B: has shape \(4, 2\); expected \(5, 2\)", B[:4], {}),
        (ValueError, "B: has shape", B[None, None], {}),
        (ValueError, "B: must be row-major or.*ascontiguousarray", np.tile(B, 2)[:, ::2], {}),
        (ValueError, "B: its rows overlap or run backwards", B[::-1], {}),
        (ValueError, "B: its strides are no multiples", np.zeros(5, "f4,u1")["f0"], {}),
        (TypeError, "B: is None", None, {}),
        (ValueError, r"out: has shape \(5, 2\); expected \(6, 2\)", B, {"out": B.copy()}),
        (TypeError, "out: has type float64", B, {"out": np.zeros((6, 2))}),
        (ValueError, "out: is read-only", B, {"out": np.broadcast_to(B[:1], (6, 2))}),
        (ValueError, "beta: is not 0", B, {"beta": 1}),
        (ValueError, "alpha", B, {"alpha": float("inf")}),
        (ValueError, "bias: has shape", B, {"bias": B[0, :1]}),
        (ValueError, "values: has shape", B, {"values": A.data[1:]}),
        (ValueError, "data: has shape", B, {"heads": 2}),
        (TypeError, "heads: a str", B, {"heads": "2"}),
        (TypeError, "heads: a list", B, {"heads": [2]}),
        (ValueError, "reduce: 'median' is unknown", B, {"reduce": "median"}),
        (ValueError, "message: 'pow' is unknown", B, {"message": "pow"}),
        (TypeError, "reduction: is no option", B, {"reduction": "sum"}),
        (ValueError, "width, norm: need sample", B, {"width": 8}),
        (ValueError, "width", B, {"sample": "bucket", "width": 7}),
        (ValueError, "argmax", B, {"argmax": True}),
        (ValueError, "activation", B, {"activation": "system(x)"}),
        (TypeError, "activation: a function", B, {"activation": lambda x: x}),
        (ValueError, "column", B, {"operator": "init=0;reduce=acc+"}),
    ],
)
def test_a_wrong_operand_is_named(error, text, b, options):
    with pytest.raises(error, match=text):
        warploom.spmm(A, b, **options)


def test_the_result_is_not_the_operand():
    square = sp.eye(5, format="csr", dtype=np.float32)
    with pytest.raises(ValueError, match="share memory"):
        warploom.spmm(square, B, out=B)


def test_a_plan_names_wrong_operands():
    plan = warploom.Plan(A, 2)
    with pytest.raises(ValueError, match=r"B: has shape \(5, 1\)"):
        plan(B[:, :1])
    with pytest.raises(TypeError, match="B: has type float64; expected float32"):
        plan(B.astype(float))
    with pytest.raises(ValueError, match="bias: the plan was made with bias=False"):
        plan(B, bias=B[0])
    with pytest.raises(TypeError, match="X: is given for the operation sddmm"):
        plan(B, X=B)
    with pytest.raises(ValueError, match="operation: 'gemm'"):
        warploom.Plan(A, 2, operation="gemm")
    with pytest.raises(ValueError, match="operation: 'gemm'"):
        warploom.tune(A, 2, operation="gemm")
    with pytest.raises(ValueError, match="dtype: 'int8'"):
        warploom.Plan(A, 2, dtype=np.int8)
    with pytest.raises(ValueError, match="no_such_family"):
        warploom.Plan(A, 2, variant="no_such_family/rows=1")
    with pytest.raises(TypeError, match="online: 'rate'"):
        warploom.Plan(A, 2, online={"rate": 1})


def test_an_array_with_dlpack_alone():
    a = warploom.Matrix((Dlpack(A.indptr), Dlpack(A.indices), Dlpack(A.data)), shape=A.shape)
    c = warploom.spmm(a, Dlpack(B))
    assert isinstance(c, np.ndarray)
    assert np.allclose(c, C)
    assert np.allclose(np.from_dlpack(c), C)
    out = np.zeros_like(C)
    wrapped = Dlpack(out)
    assert warploom.spmm(a, Dlpack(B), out=wrapped) is wrapped
    assert np.allclose(out, C)
    assert np.allclose(warploom.spmm(a, Dlpack(np.tile(B, 3)[:, 2:4])), C)
    assert np.allclose(warploom.spmm(a, Dlpack(np.asfortranarray(B))), C)


def test_torch_on_the_host():
    torch = pytest.importorskip("torch")
    a = torch.sparse_csr_tensor(*(torch.from_numpy(x) for x in (A.indptr, A.indices, A.data)))
    c = warploom.spmm(a, torch.from_numpy(B))
    assert isinstance(c, torch.Tensor)
    assert np.allclose(c.numpy(), C)
    half = warploom.Matrix((a.crow_indices(), a.col_indices()), shape=A.shape)
    c = warploom.spmm(half, torch.ones(5, 3, dtype=torch.bfloat16), values=a.values())
    assert c.dtype == torch.bfloat16
    assert torch.allclose(c.float(), (a @ torch.ones(5, 3)), rtol=2**-7)
    with pytest.raises(TypeError, match=r"B: .*grad"):
        warploom.spmm(a, torch.ones(5, 3, requires_grad=True))
    coo = warploom.Matrix.from_edge_index(torch.tensor([[0, 1], [1, 2]]))
    assert warploom.spmm(coo, torch.ones(3, 1)).ravel().tolist() == [0, 1, 1]
    assert warploom.Plan(a, 2, dtype=torch.float32)(torch.from_numpy(B)).shape == (6, 2)


def test_jax_on_the_host():
    jax = pytest.importorskip("jax")
    with jax.default_device(jax.devices("cpu")[0]):
        c = warploom.spmm(A, jax.numpy.asarray(B))
    assert np.allclose(c, C)


# ---- arrays on GPUs ------------------------------------------------------------------------


class Elsewhere:
    """An array that claims to be on a GPU; `streams` lists the streams passed to its __dlpack__."""

    def __init__(self, ordinal=0, kind=2):
        self.device, self.streams, self.shape = (kind, ordinal), [], (5, 2)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        return B.__dlpack__()


def test_operands_of_other_devices_are_named():
    with pytest.raises(ValueError, match="B: is on cuda:1 and A on host"):
        warploom.spmm(A, Elsewhere(1))
    with pytest.raises(TypeError, match="B: is on a device of DLPack's kind 8"):
        warploom.spmm(A, Elsewhere(kind=8))


@pytest.mark.parametrize(("stream", "asked"), [(0, 1), (1, 1), (2, 2), (4711, 4711)])
def test_dlpack_gets_the_stream_of_the_call(stream, asked):
    source = Elsewhere()
    array = _arrays.read(source, "B", "cuda:0", stream)
    assert source.streams == [asked]
    assert (array.shape, array.strides, array.dtype) == ((5, 2), (2, 1), "float32")


@pytest.mark.parametrize("of", ["torch", "cupy"])
def test_an_operand_is_exported_with_its_device_as_the_current_one(of, monkeypatch):
    """torch refuses to export tensors of another device."""
    current = []

    @contextlib.contextmanager
    def device(ordinal):
        current.append(ordinal)
        yield
        current.pop()

    class OnSecond(Elsewhere):
        def __dlpack__(self, *, stream):
            assert current == [1]
            return super().__dlpack__(stream=stream)

    module = types.SimpleNamespace(cuda=types.SimpleNamespace(device=device, Device=device))
    monkeypatch.setitem(sys.modules, of, module)
    monkeypatch.setattr(_arrays, "library", lambda source: of)
    assert _arrays.read(OnSecond(1), "B", "cuda:1", 0).shape == (5, 2)
    assert current == []


def test_streams_of_other_libraries():
    named = types.SimpleNamespace
    assert _arrays.stream_of(named(cuda_stream=7), "cuda:0", "") == 7
    assert _arrays.stream_of(named(ptr=8), "cuda:0", "") == 8
    assert _arrays.stream_of(named(__cuda_stream__=lambda: (0, 9)), "cuda:0", "") == 9
    assert _arrays.stream_of(None, "cuda:0", "") == 0
    assert _arrays.stream_of(7, "host", "") is None
    with pytest.raises(TypeError, match="stream: a str"):
        _arrays.stream_of("7", "cuda:0", "")


def test_the_cuda_array_interface(monkeypatch):
    waited = []
    monkeypatch.setattr(_arrays, "_pointer_device", lambda address: 1)
    monkeypatch.setattr(_arrays, "_synchronize", lambda stream, device: waited.append(stream))
    described = {"data": (4096, True), "shape": (5, 2), "typestr": "<f4", "version": 3}
    source = types.SimpleNamespace(__cuda_array_interface__=described)
    array = _arrays.read(source, "B", "cuda:1", 0)
    assert array[:6] == ("B", 4096, (5, 2), (2, 1), "float32", "cuda:1")
    assert not array.writable
    described.update(strides=(16, 4), stream=7)
    assert _arrays.read(source, "B", "cuda:1", 0).strides == (4, 1)
    assert waited == [7]
    _arrays.read(source, "B", "cuda:1", 7)
    assert waited == [7]
    described["mask"] = source
    with pytest.raises(TypeError, match="B: is a masked array"):
        _arrays.read(source, "B", "cuda:1", 0)


def test_waiting_for_a_device_uses_its_primary_context(monkeypatch):
    called = []
    monkeypatch.setattr(_arrays, "_driver", lambda function, *arguments: called.append(function))
    _arrays.synchronize("host")
    assert called == []
    _arrays.synchronize("cuda:1")
    enter = ["cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent_v2"]
    leave = ["cuCtxPopCurrent_v2", "cuDevicePrimaryCtxRelease_v2"]
    assert called == [*enter, "cuCtxSynchronize", *leave]


def count_gpus():
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuInit(0)
        driver.cuDeviceGetCount(ctypes.byref(count))
    except OSError:
        pass
    return count.value


GPUS = count_gpus()
needs_gpu = pytest.mark.skipif(GPUS == 0, reason="needs a GPU")


# The last GPU, too: it is not the current one of the libraries.
@needs_gpu
@pytest.mark.parametrize("ordinal", sorted({0, max(GPUS - 1, 0)}))
@pytest.mark.parametrize("library", ["cupy", "torch", "jax"])
def test_arrays_on_a_gpu(library, ordinal):
    module = pytest.importorskip(library)

    def to_cupy(x):
        with module.cuda.Device(ordinal):
            return module.asarray(x)

    move = {
        "cupy": to_cupy,
        "torch": lambda x: module.from_numpy(x).cuda(ordinal),
        "jax": lambda x: module.device_put(x, module.devices("gpu")[ordinal]),
    }[library]
    a = warploom.Matrix(tuple(map(move, (A.indptr, A.indices, A.data))), shape=A.shape)
    b = move(B)
    assert a.device == f"cuda:{ordinal}"
    plan = warploom.Plan(a, 2)  # which must live until its work has ended
    for c in (warploom.spmm(a, b), plan(b)):
        assert type(c) is type(b)
        found = np.asarray(c.cpu() if library == "torch" else c.tolist())
        np.testing.assert_allclose(found, C, rtol=1e-5)
    with pytest.raises(ValueError, match=f"B: is on host and A on cuda:{ordinal}"):
        warploom.spmm(a, B)


@needs_gpu
def test_streams_of_torch():
    torch = pytest.importorskip("torch")
    a = torch.sparse_csr_tensor(*(torch.from_numpy(x) for x in (A.indptr, A.indices, A.data)))
    a = warploom.Matrix(a.cuda(), shape=A.shape)
    plan = warploom.Plan(a, 2)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        b = torch.from_numpy(B).cuda()
        current = [warploom.spmm(a, b), plan(b)]
    stream.synchronize()
    named = [warploom.spmm(a, b, stream=stream), plan(b, stream=stream.cuda_stream)]
    x = torch.ones(6, 2, device="cuda")
    found = warploom.sddmm(a, x, b, stream=stream)
    stream.synchronize()
    for c in current + named:
        assert np.allclose(c.cpu(), C)
    rows = np.repeat(np.arange(6), np.diff(A.indptr))
    assert np.allclose(found.cpu(), (np.ones((6, 2))[rows] * B[A.indices]).sum(axis=1))
    best, positions = warploom.spmm(a, b, reduce="max", argmax=True)
    assert positions.dtype == torch.int32
    assert best.shape == positions.shape == (6, 2)
    assert warploom.devices()[0].device == "cuda:0"
    assert warploom.tune(a, 2, budget=2)
    assert "tuned" in warploom.explain(a, 2)


def test_validate_names_the_first_wrong_row() -> None:
    indptr, indices = np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32)
    matrix = warploom.Matrix((indptr, indices, None), shape=(2, 2), check=False)
    matrix.validate()
    indices[1] = 2
    with pytest.raises(ValueError, match=r"row 1: colind\[1\] is 2"):
        matrix.validate()
