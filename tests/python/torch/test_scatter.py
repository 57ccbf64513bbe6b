"""torch_scatter's functions and two of torch_sparse, on both roads, against loops in NumPy."""

import gc
import math
import re
import weakref

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from torch_oracle import close
from warploom.torch import Graph, _memory, _rows, scatter, sparse
from warploom.torch._rows import Least
from warploom.torch._state import recorded

ROWS = 6
# Row 4 is empty, and rows 0 and 5 have one element.
INDEX = [1, 3, 0, 1, 3, 3, 5, 2, 1, 2]
EXTENT = len(INDEX)
SIMPLE = ("sum", "add", "mul", "mean", "min", "max")
PAIRS = ("min", "max")

# Shapes of src and of the index, and dim.
SHAPES = {
    "numbers": ((EXTENT,), (EXTENT,), -1),
    "lines": ((EXTENT, 3), (EXTENT,), 0),
    "last": ((3, EXTENT), (EXTENT,), -1),
    "turned": ((2, EXTENT, 3), (EXTENT,), 1),
    "wide": ((2, EXTENT, 17), (EXTENT,), 1),
    "each": ((3, EXTENT), (3, EXTENT), 1),
    "each line": ((EXTENT, 3), (EXTENT, 3), 0),
    "parts": ((2, 3, EXTENT), (2, 1, EXTENT), -1),
    "left": ((2, EXTENT, 3), (2, EXTENT), 1),
    "one row": ((EXTENT, 3), (1,), 0),
}


def compute_by(road, monkeypatch):
    """Let PyTorch's operators ("torch") or the library ("walk") compute, also of new indices."""
    size = 0 if road == "walk" else 1 << 62
    original = _rows._is_walked
    monkeypatch.setattr(_rows, "LEAST", dict.fromkeys(_rows.LEAST, Least(size, size, 0, size, 0)))
    monkeypatch.setattr(_rows, "_is_walked", lambda src, _, *rest: original(src, "mul", *rest))


@pytest.fixture(params=["torch", "walk"])
def road(request, monkeypatch):
    compute_by(request.param, monkeypatch)
    return request.param


@pytest.fixture
def walks(monkeypatch):
    """How often the library has computed sums."""
    counted = []

    def multiply(*args):
        counted.append(args[0])
        return original(*args)

    original = _rows.multiply
    monkeypatch.setattr(_rows, "multiply", multiply)
    return counted


def numbers(*shape, dtype=torch.float64, device="cpu", grad=False):
    """Numbers of which some are equal, so that extremes have ties."""
    made = torch.randint(-8, 9, shape) / 4 + 0.125
    return made.to(device, dtype).requires_grad_(grad)


def index_of(shape, dim, device="cpu", is_sorted=False):
    """An index along a dimension; its other parts are turned by one element each."""
    dim = 0 if len(shape) == 1 else dim
    if shape[dim] == 1:
        return torch.full(shape, 2, device=device)
    line = torch.tensor(INDEX)
    parts = [line.roll(n) for n in range(math.prod(shape) // EXTENT)]
    index = torch.stack(parts).view(*(s for d, s in enumerate(shape) if d != dim % len(shape)), -1)
    index = index.movedim(-1, dim)
    return (index.sort(dim)[0] if is_sorted else index).to(device)


def expanded(index, src, dim):
    """The index of each element of src, as torch_scatter expands it."""
    dim %= src.ndim
    index = index.cpu().numpy()
    if index.ndim == 1:
        index = index.reshape([-1 if d == dim else 1 for d in range(src.ndim)])
    index = index.reshape(*index.shape, *[1] * (src.ndim - index.ndim))
    return np.broadcast_to(index, src.shape)


def reference(reduce, src, index, dim, rows=ROWS):
    """A reduction in float64, or in integers, and the first places of its extremes."""
    src = src.detach().cpu()
    src = src.numpy() if not src.is_floating_point() else src.double().numpy()
    index, dim = expanded(index, src, dim), dim % src.ndim
    shape = [rows if d == dim else extent for d, extent in enumerate(src.shape)]
    out = np.ones(shape, src.dtype) if reduce == "mul" else np.zeros(shape, src.dtype)
    places, counts = np.full(shape, src.shape[dim]), np.zeros(shape, src.dtype)
    for at in np.ndindex(*src.shape):
        to = (*at[:dim], index[at], *at[dim + 1 :])
        counts[to] += 1
        if reduce in ("sum", "add", "mean"):
            out[to] += src[at]
        elif reduce == "mul":
            out[to] *= src[at]
        elif counts[to] == 1 or (src[at] < out[to] if reduce == "min" else src[at] > out[to]):
            out[to], places[to] = src[at], at[dim]
    if reduce == "mean":
        counts = np.maximum(counts, 1)
        out = out / counts if out.dtype == np.float64 else out // counts
    return torch.from_numpy(out), torch.from_numpy(places)


def groups(src, index, dim, rows=ROWS):
    """The places of each row in src, by the row's place in a result."""
    index, dim = expanded(index, src, dim), dim % src.ndim
    found = {}
    for at in np.ndindex(*src.shape):
        found.setdefault((*at[:dim], index[at], *at[dim + 1 :]), []).append(at)
    return found


def exact_and_equal(found, expected):
    assert found.dtype == expected.dtype and torch.equal(found.cpu(), expected)


# ---- reductions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_scatter(shape, road, device):
    of_src, of_index, dim = SHAPES[shape]
    src, index = numbers(*of_src, device=device), index_of(of_index, dim, device)
    for reduce in SIMPLE:
        expected, places = reference(reduce, src, index, dim)
        found = scatter.scatter(src, index, dim, dim_size=ROWS, reduce=reduce)
        close(found, expected)
        assert found.is_contiguous()
        named = getattr(scatter, f"scatter_{reduce}")(src, index, dim, None, ROWS)
        if reduce in PAIRS:
            exact_and_equal(named[1], places)
            named = named[0]
        assert torch.equal(named, found)
    short = scatter.scatter_sum(src, index, dim)
    assert short.shape[dim] == int(index.max()) + 1


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "one row"])
def test_segments(shape, road, device):
    of_src, of_index, _ = SHAPES[shape]
    if shape in ("last", "turned", "wide", "each line", "parts"):
        of_index = of_src[: of_src.index(EXTENT) + 1]
    dim = len(of_index) - 1
    src, index = numbers(*of_src, device=device), index_of(of_index, dim, device, is_sorted=True)
    edges = torch.arange(ROWS + 1, device=device).expand(*of_index[:-1], -1)
    indptr = torch.searchsorted(index, edges.contiguous())
    for reduce in ("sum", "add", "mean", "min", "max"):
        expected, places = reference(reduce, src, index, dim)
        for kind, by, rest in (("coo", index, (None, ROWS)), ("csr", indptr, ())):
            found = getattr(scatter, f"segment_{kind}")(src, by, *rest, reduce=reduce)
            close(found, expected)
            named = getattr(scatter, f"segment_{reduce}_{kind}")(src, by, *rest)
            if reduce in PAIRS:
                exact_and_equal(named[1], places)
                named = named[0]
            assert torch.equal(named, found)
    sums = scatter.segment_csr(src, indptr)
    wanted = sums.gather(dim, torch.from_numpy(expanded(index, src.cpu(), dim).copy()).to(device))
    exact_and_equal(scatter.gather_coo(sums, index), wanted.cpu())
    exact_and_equal(scatter.gather_csr(sums, indptr), wanted.cpu())
    assert scatter.segment_coo(src, index).shape[dim] == int(index.max()) + 1


@pytest.mark.parametrize("bounds", [[2, 2, 5, 9], [0, 4, 4], [3], [0, 20]])
def test_pointers_need_not_cover_src(bounds, road, device):
    src, indptr = numbers(EXTENT, 3, device=device), torch.tensor(bounds, device=device)
    found, places = scatter.segment_max_csr(src, indptr)
    for row, (first, last) in enumerate(zip(bounds, bounds[1:], strict=False)):
        part = src[first:last]
        empty = (torch.zeros(3), torch.full((3,), EXTENT - first))
        best, at = part.max(0) if len(part) else empty
        exact_and_equal(found[row].cpu(), best.cpu().to(found.dtype))
        assert (src[places[row], torch.arange(3)] == best).all() if len(part) else True
        if not len(part):
            assert (places[row] == at.to(device) + first).all()
    assert len(found) == len(bounds) - 1
    rows = numbers(len(bounds) - 1, 3, device=device)
    spread = scatter.gather_csr(rows, indptr, torch.full((EXTENT, 3), 7.0).to(rows))
    assert (spread[: bounds[0]] == 0).all() and (spread[bounds[-1] :] == 0).all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.int8, torch.uint8])
def test_integers(dtype, device):
    src, index = torch.arange(EXTENT, device=device).to(dtype), index_of((EXTENT,), 0, device)
    for reduce in SIMPLE:
        exact_and_equal(
            scatter.scatter(src, index, reduce=reduce), reference(reduce, src, index, 0)[0]
        )
        if reduce in PAIRS:
            places = getattr(scatter, f"scatter_{reduce}")(src, index)[1]
            exact_and_equal(places, reference(reduce, src, index, 0)[1])
    signed = torch.tensor([-3, -4, 5], device=device)
    exact_and_equal(scatter.scatter_mean(signed, torch.zeros_like(signed)), torch.tensor([-1]))
    flags = src > 4
    exact_and_equal(scatter.scatter_sum(flags, index), reference("max", flags, index, 0)[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_types(dtype, road, device):
    """16-bit types are summed in float32: 3000 ones are 3000, and not 2048 or 256."""
    src, index = numbers(EXTENT, 3, dtype=dtype, device=device), index_of((EXTENT,), 0, device)
    for reduce in SIMPLE:
        found = scatter.scatter(src, index, 0, reduce=reduce)
        assert found.dtype == dtype
        close(found, reference(reduce, src, index, 0)[0], dtype)
    for name in ("softmax", "log_softmax", "logsumexp", "std"):
        function = getattr(scatter, f"scatter_{name}")
        found = function(src, index, 0)
        assert found.dtype == dtype
        close(found, function(src.double(), index, 0), dtype)
    ones, into = torch.ones(3000, 2, dtype=dtype, device=device), index.new_zeros(3000)
    close(scatter.scatter_sum(ones, into, 0), torch.full((1, 2), 3000.0), dtype)
    close(scatter.segment_csr(ones * 60, into.new_tensor([0, 3000]), reduce="mean"),
          torch.full((1, 2), 60.0), dtype)  # fmt: skip


def test_an_index_without_the_dimension(road, device):
    """Each part of src is one row then."""
    src, index = numbers(2, 3, 4, device=device), torch.arange(6, device=device).view(2, 3)
    found = scatter.scatter_sum(src, index, 2)
    each = torch.nn.functional.one_hot(index, 6) * src.sum(2, keepdim=True)
    close(found, each)


def test_int32_index(road, device):
    src, index = numbers(EXTENT, 3, device=device), index_of((EXTENT,), 0, device).int()
    close(scatter.scatter_mean(src, index, 0), reference("mean", src, index, 0)[0])
    exact_and_equal(scatter.scatter_max(src, index, 0)[1], reference("max", src, index, 0)[1])
    each = index.unsqueeze(1).expand(-1, 3).contiguous()
    close(scatter.scatter_sum(src, each, 0), reference("sum", src, index, 0)[0])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty(shape, road, device):
    src, index = torch.zeros(shape, device=device), torch.zeros(shape[:1], dtype=int, device=device)
    size = (2, *shape[1:])
    for reduce in SIMPLE:
        found = scatter.scatter(src, index, 0, None, 2, reduce)
        assert found.shape == size and (found == (reduce == "mul")).all()
    best, places = scatter.scatter_max(src, index, 0, None, 2)
    assert best.shape == places.shape == size and (places == shape[0]).all()
    assert scatter.scatter_sum(src, index, 0).shape[0] == min(shape[0], 1)
    indptr = index.new_tensor([0, shape[0], shape[0]])
    assert scatter.segment_csr(src, indptr).shape == size
    assert scatter.gather_csr(torch.ones(size, device=device), indptr).shape == shape
    assert scatter.segment_coo(src, index).shape[0] == min(shape[0], 1)
    assert scatter.scatter_softmax(src, index, 0).shape == shape
    assert scatter.scatter_logsumexp(src, index, 0, dim_size=2).shape == size


def test_out(road, device):
    src, index = numbers(EXTENT, 3, device=device), index_of((EXTENT,), 0, device)
    before = numbers(ROWS, 3, device=device)
    best = {name: reference(name, src, index, 0) for name in SIMPLE}
    old, counts = before.cpu(), torch.bincount(index.cpu(), minlength=ROWS).clamp(1).unsqueeze(1)
    wins = {"min": best["min"][0] < old, "max": best["max"][0] > old}
    wins = {name: won & (best[name][1] < EXTENT) for name, won in wins.items()}
    expected = {
        "sum": old + best["sum"][0],
        "mul": old * best["mul"][0],
        "mean": (old + best["sum"][0]) / counts,
        **{name: torch.where(wins[name], best[name][0], old) for name in PAIRS},
    }
    ordered, order = index.sort(stable=True)
    for reduce, wanted in expected.items():
        for call in (
            lambda out, reduce=reduce: scatter.scatter(src, index, 0, out, reduce=reduce),
            lambda out, reduce=reduce: scatter.segment_coo(src[order], ordered, out, reduce=reduce),
        ):
            out = before.clone()
            assert call(out) is out
            close(out, wanted)
        if reduce in PAIRS:
            out = before.clone()
            found, places = getattr(scatter, f"scatter_{reduce}")(src, index, 0, out)
            assert found is out
            exact_and_equal(places, torch.where(wins[reduce], best[reduce][1], EXTENT))
    indptr = torch.searchsorted(ordered, torch.arange(ROWS + 1, device=device))
    for reduce in ("sum", "mean", "max"):  # of pointers it is overwritten
        out = before.clone()
        assert scatter.segment_csr(src[order], indptr, out, reduce) is out
        close(out, best[reduce][0])
    out = torch.zeros_like(src)
    assert scatter.gather_csr(before, indptr, out) is out
    assert torch.equal(out, before[ordered])
    assert torch.equal(scatter.gather_coo(before, ordered, torch.zeros_like(src)), out)
    out = before.clone()
    assert scatter.scatter_logsumexp(src, index, 0, out) is out
    sums = torch.zeros(ROWS, 3).double().index_add(0, index.cpu(), src.cpu().exp())
    close(out, (sums + old.exp()).log())


def test_ties_and_special_numbers(road, device):
    """The first of equal elements wins, and has the gradient; NaN propagates, and infinities are
    numbers."""
    nan, inf = math.nan, math.inf
    src = torch.tensor([2, 2, nan, 1, 1, -inf, -inf, inf], device=device, requires_grad=True)
    index = torch.tensor([0, 0, 1, 1, 2, 3, 3, 4], device=device)
    best, places = scatter.scatter_max(src, index)
    assert best.nan_to_num(9, inf, -inf).tolist() == [2, 9, 1, -inf, inf]
    assert places.tolist() == [0, 2, 4, 5, 7]
    (gradient,) = torch.autograd.grad(best[[0, 2, 3]].sum(), src)
    assert gradient.tolist() == [1, 0, 0, 0, 1, 1, 0, 0]
    plain = scatter.scatter(src.detach(), index, reduce="max")
    assert torch.equal(plain.nan_to_num(9), best.nan_to_num(9))
    finite = scatter.scatter_logsumexp(src.detach()[4:], index[4:], dim_size=6)
    assert finite.tolist() == [0, 0, 1, 0, inf, 0]


def test_out_of_range(road):
    with pytest.raises((IndexError, RuntimeError), match=r"out of|outside"):
        scatter.scatter_sum(torch.ones(6, 2), torch.tensor([0, 1, 2, 3, 4, 9]), 0, dim_size=5)
    each = torch.tensor([[0, 1], [1, 5]])
    with pytest.raises((IndexError, RuntimeError), match=r"out of|outside"):
        scatter.scatter_sum(torch.ones(2, 2), each, 1, dim_size=2)


# ---- composite functions -------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["numbers", "lines", "turned", "parts"])
def test_composite(shape, road, device):
    of_src, of_index, dim = SHAPES[shape]
    src, index = numbers(*of_src, device=device), index_of(of_index, dim, device)
    softmax = scatter.scatter_softmax(src, index, dim)
    logs = scatter.scatter_log_softmax(src, index, dim, dim_size=ROWS)
    sums = scatter.scatter_logsumexp(src, index, dim)
    stds = {u: scatter.scatter_std(src, index, dim, unbiased=u) for u in (True, False)}
    assert softmax.shape == logs.shape == src.shape
    there = src.cpu().numpy()
    rows = groups(there, index, dim)
    for to in np.ndindex(*sums.shape):
        places = rows.get(to, [])
        part = torch.tensor([there[at] for at in places], dtype=torch.float64)
        close(sums[to], part.logsumexp(0) if places else torch.zeros(()))
        for unbiased, found in stds.items():
            std = part.std(unbiased=unbiased) if len(places) > 1 else torch.zeros(())
            close(found[to], std)
        for at, one, log in zip(places, part.softmax(0), part.log_softmax(0), strict=True):
            close(softmax[at], one)
            close(logs[at], log)


def test_large_scores(road, device):
    src = torch.tensor([1e4, 1e4, -1e4], device=device)
    index = torch.tensor([0, 0, 1], device=device)
    close(scatter.scatter_softmax(src, index), torch.tensor([0.5, 0.5, 1.0]))
    close(
        scatter.scatter_logsumexp(src, index),
        torch.tensor([1e4 + math.log(2), -1e4]),
        torch.float32,
    )


# ---- gradients -----------------------------------------------------------------------------------

DIFFERENTIABLE = {
    **{f"scatter_{name}": ("index", 0) for name in SIMPLE},
    **{f"scatter_{name}": ("index", 0) for name in ("softmax", "log_softmax", "logsumexp", "std")},
    **{f"segment_{name}_coo": ("sorted",) for name in ("sum", "mean", "max")},
    **{f"segment_{name}_csr": ("indptr",) for name in ("sum", "mean", "min")},
    "gather_coo": ("sorted",),
    "gather_csr": ("indptr",),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name, road, device):
    by, *rest = DIFFERENTIABLE[name]
    index = index_of((EXTENT,), 0, device)
    indices = {"index": index, "sorted": index.sort()[0]}
    edges = torch.arange(ROWS + 1, device=device)
    indices["indptr"] = torch.searchsorted(indices["sorted"], edges)
    lines = ROWS if "gather" in name else EXTENT
    src = torch.randn(lines, 2, dtype=torch.float64, device=device, requires_grad=True)
    function = getattr(scatter, name)

    def call(src):
        found = function(src, indices[by], *rest)
        return found[0] if isinstance(found, tuple) else found

    assert gradcheck(call, src)
    if name != "scatter_mul":
        assert gradgradcheck(call, src)


@pytest.mark.parametrize("shape", ["turned", "wide", "each", "parts"])
def test_gradients_of_shapes(shape, road, device):
    of_src, of_index, dim = SHAPES[shape]
    index = index_of(of_index, dim, device)
    of_src = [3 if extent == 17 else extent for extent in of_src]
    src = torch.randn(of_src, dtype=torch.float64, device=device, requires_grad=True)
    assert gradcheck(lambda src: scatter.scatter_mean(src, index, dim), src)
    assert gradcheck(lambda src: scatter.scatter_max(src, index, dim)[0], src)
    assert gradcheck(lambda src: scatter.scatter_softmax(src, index, dim), src)


def test_product_with_zeros(road, device):
    src = torch.tensor([0.0, 3, 0, 0, 2], dtype=torch.float64, device=device, requires_grad=True)
    index = torch.tensor([0, 0, 1, 1, 1], device=device)
    (found,) = torch.autograd.grad(scatter.scatter_mul(src, index).sum(), src)
    assert found.tolist() == [3, 0, 0, 0, 0]


def test_deviation_of_equal_elements_has_a_gradient(road, device):
    src = torch.ones(4, device=device, requires_grad=True)
    index = torch.tensor([0, 0, 0, 1], device=device)
    (found,) = torch.autograd.grad(scatter.scatter_std(src, index).sum(), src)
    assert found.tolist() == [0, 0, 0, 0]


def test_gradient_through_out(road, device):
    src, before = (numbers(n, 2, device=device, grad=True) for n in (EXTENT, ROWS))
    index = index_of((EXTENT,), 0, device)

    def call(src, before):
        return scatter.scatter_mean(src, index, 0, before * 1)

    assert gradcheck(call, (src, before))


def test_results_may_be_changed(road, device):
    src, index = numbers(EXTENT, 2, device=device, grad=True), index_of((EXTENT,), 0, device)
    for reduce in SIMPLE[:2] + SIMPLE[3:]:
        found = scatter.scatter(src, index, 0, reduce=reduce)
        found[0] = 0
        found.mul_(2).sum().backward()
    expected = 2.0 * (index != 0)
    src.grad = None
    (
        scatter.scatter(src, index, 0) * expected.new_tensor([0, 2, 2, 2, 2, 2])[:, None]
    ).sum().backward()
    close(src.grad[:, 0], expected)


# ---- what is kept --------------------------------------------------------------------------------


def test_an_index_is_sorted_once(walks, monkeypatch):
    monkeypatch.setattr(_rows, "LEAST", dict.fromkeys(_rows.LEAST, Least(0, 0, 0, 0, 0)))
    src, edges = torch.ones(EXTENT, 2), torch.stack([index_of((EXTENT,), 0)] * 2)
    for _ in range(5):
        scatter.scatter_sum(src, edges[1], 0, dim_size=ROWS)  # a new view each time
    assert len(walks) == 4  # a list that is used once is not sorted
    assert len({id(graph) for graph in walks}) == 1 and walks[0].once
    for _ in range(_rows._MEASURED):
        scatter.scatter_sum(src, edges[1], 0, dim_size=ROWS)
    assert not walks[-1].once  # measured
    edges[1, 0] = 4
    scatter.scatter_sum(src, edges[1], 0, dim_size=ROWS)
    found = scatter.scatter_sum(src, edges[1], 0, dim_size=ROWS)
    assert found[4].tolist() == [1, 1] and walks[-1] is not walks[-2]


def test_pointers_become_an_index_once(device, monkeypatch):
    """What is left to PyTorch keeps the row of each line, until the pointers change."""
    made = []
    original = _rows._index_of
    monkeypatch.setattr(_rows, "_index_of", lambda *of: made.append(of) or original(*of))
    src = torch.arange(12.0, device=device)
    indptr = torch.tensor([0, 5, 5, 12], device=device)
    for _ in range(3):
        assert scatter.segment_csr(src, indptr).tolist() == [10, 0, 56]
        assert scatter.segment_csr(src, indptr, reduce="max").tolist() == [4, 0, 11]
    assert len(made) == 1
    indptr[1] = 2
    assert scatter.segment_csr(src, indptr).tolist() == [1, 9, 56]
    assert scatter.segment_csr(src[:11], indptr.clamp(max=11)).tolist() == [1, 9, 45]


def test_lines_that_ascend_are_not_sorted(monkeypatch):
    """segment_coo and segment_csr walk at their first use, also for the gradient."""
    compute_by("walk", monkeypatch)
    monkeypatch.setattr(_rows, "OnceGraph", None)
    index = index_of((EXTENT,), 0, is_sorted=True)
    indptr = torch.searchsorted(index, torch.arange(ROWS + 1))
    for segment, by in ((scatter.segment_coo, index), (scatter.segment_csr, indptr)):
        src = numbers(EXTENT, 2, grad=True)
        segment(src, by)[1].sum().backward()
        assert torch.equal(src.grad[:, 0], (index == 1).double())
    with pytest.raises(IndexError, match="outside"):
        scatter.segment_coo(numbers(EXTENT, 2), index, dim_size=ROWS - 1)


def test_widths_share_a_matrix(walks, monkeypatch):
    compute_by("walk", monkeypatch)
    index = index_of((EXTENT,), 0)
    for shape in ((EXTENT, 2), (EXTENT, 3), (EXTENT,)):
        scatter.scatter_sum(torch.ones(shape), index, 0, dim_size=ROWS)
    scatter.scatter_sum(torch.ones(2, EXTENT), index, 1, dim_size=ROWS)
    assert len(walks) == 4 and len({id(graph) for graph in walks[:3]}) == 1


def test_nothing_keeps_an_index(road):
    index = index_of((EXTENT,), 0)
    scatter.scatter_max(torch.ones(EXTENT, 2), index, 0)
    storage = weakref.ref(index.untyped_storage())
    gc.collect()
    before = len(_memory.entries)
    del index
    gc.collect()
    assert storage() is None and len(_memory.entries) == before - 1
    for first in range(100):
        parts = torch.zeros(200, dtype=int)[first : first + EXTENT]
        scatter.scatter_sum(torch.ones(EXTENT, 2), parts, 0)
    assert len(_memory.entries) <= _memory.MOST_ENTRIES


def test_an_index_may_be_modified_before_the_gradient(monkeypatch):
    """The library computes with copies; PyTorch's operators raise an error."""
    compute_by("walk", monkeypatch)
    weights = torch.arange(ROWS * 2.0, dtype=torch.float64).view(ROWS, 2)
    for function in (scatter.scatter_mean, scatter.scatter_softmax, scatter.segment_csr):
        found = []
        for modify in (False, True):
            src = numbers(EXTENT, 2, grad=True)
            src.data = torch.arange(EXTENT * 2.0, dtype=torch.float64).view(EXTENT, 2)
            index = index_of((EXTENT,), 0)
            if function is scatter.segment_csr:
                result = function(src, index := torch.tensor([0, 2, 5, 5, 7, 9, 10]))
            else:
                result = function(src, index, 0)
            if modify:
                index.zero_()
            factors = weights if len(result) == ROWS else weights[index_of((EXTENT,), 0)]
            found += torch.autograd.grad((result * factors).sum(), src)
        assert torch.equal(*found)


def test_a_recorded_step_notices_changes(monkeypatch):
    compute_by("walk", monkeypatch)
    src, index = numbers(EXTENT, 2), index_of((EXTENT,), 0)
    scatter.scatter_sum(src, index, 0, dim_size=ROWS)
    with recorded() as states:
        scatter.scatter_sum(src, index, 0, dim_size=ROWS)
    assert states and all(state.holds() for state, _ in states)
    index.add_(0)
    assert not any(state.holds() for state, _ in states)


def test_inference(road, device):
    with torch.inference_mode():
        src, index = numbers(EXTENT, 2, device=device), index_of((EXTENT,), 0, device)
        for _ in range(2):
            close(scatter.scatter_sum(src, index, 0), reference("sum", src, index, 0)[0])
            scatter.scatter_max(src, index, 0)
            scatter.scatter_softmax(src, index, 0)
    index = index_of((EXTENT,), 0, device)
    with torch.inference_mode():
        scatter.scatter_softmax(numbers(EXTENT, 2, device=device), index, 0)
    src = numbers(EXTENT, 2, device=device, grad=True)
    scatter.scatter_softmax(src, index, 0).sum().backward()
    scatter.scatter_max(src, index, 0)[0].sum().backward()


def test_rules(walks):
    """Small tensors are left to PyTorch, and large ones are not."""
    small, large = torch.ones(8, 8), torch.ones(4096, 16)
    scatter.scatter_sum(small, torch.arange(8), 0)
    assert not walks
    index = torch.arange(4096) // 8
    for uses in range(3):  # PyTorch adds up before an index is sorted
        scatter.scatter_sum(large, index, 0)
        assert len(walks) == uses
    scatter.segment_csr(large, torch.arange(0, 4097, 8), reduce="max")
    assert len(walks) == 3
    for narrow in (large.int(), large[:, :2]):
        scatter.scatter_sum(narrow, index, 0)
    assert len(walks) == 3


# ---- other places --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "mul", "max", "softmax", "std"])
def test_compile(name, road, device):
    torch._dynamo.reset()
    function = getattr(scatter, f"scatter_{name}")
    src = torch.randn(EXTENT, 3, dtype=torch.float64, device=device, requires_grad=True)
    index = index_of((EXTENT,), 0, device)

    def step(src, index):
        found = function(src.sin(), index, 0, dim_size=ROWS)
        return found[0] if isinstance(found, tuple) else found

    expected = step(src, index)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    found = compiled(src, index)
    close(found, expected)
    upstream = torch.rand_like(expected)
    close(*(torch.autograd.grad(one, src, upstream)[0] for one in (found, expected)))
    indptr = torch.tensor([0, 4, EXTENT], device=device)
    pointers = torch.compile(
        lambda src: scatter.segment_csr(src, indptr), fullgraph=True, backend="aot_eager"
    )
    close(pointers(src), scatter.segment_csr(src, indptr))


def test_transforms(road):
    index = index_of((EXTENT,), 0)
    src = torch.randn(4, EXTENT, dtype=torch.float64)
    found = torch.func.vmap(lambda one: scatter.scatter_sum(one, index, 0, dim_size=ROWS))(src)
    close(found, scatter.scatter_sum(src, index, 1))
    gradient = torch.func.grad(lambda one: scatter.scatter_softmax(one, index)[0])(src[0])
    (expected,) = torch.autograd.grad(
        scatter.scatter_softmax(one := src[0].clone().requires_grad_(), index)[0], one
    )
    close(gradient, expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_deterministic():
    """Where PyTorch's operators would add in any order, the library computes."""
    src = torch.randn(100_000, 4, device="cuda", requires_grad=True)
    index = torch.randint(0, 50, (100_000,), device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        for reduce in SIMPLE:
            one, other = (scatter.scatter(src, index, 0, reduce=reduce) for _ in range(2))
            assert torch.equal(one, other)
    finally:
        torch.use_deterministic_algorithms(False)


def test_pyg_uses_it(monkeypatch):
    pytest.importorskip("torch_geometric")
    from torch_geometric import utils
    from torch_geometric.utils import _scatter, _segment

    for module in (_scatter, _segment):
        monkeypatch.setattr(module, "torch_scatter", scatter)
    monkeypatch.setattr("torch_geometric.typing.WITH_TORCH_SCATTER", True)
    src, index = numbers(EXTENT, 3), index_of((EXTENT,), 0)
    for reduce in ("sum", "mean", "min", "max", "mul"):
        found = utils.scatter(src, index, 0, ROWS, reduce)
        close(found, reference(reduce, src, index, 0)[0])
    places = _scatter.scatter_argmax(src[:, 0], index, 0, ROWS)
    close(places[:4], reference("max", src[:, 0], index, 0)[1][:4])
    close(utils.segment(src, torch.tensor([0, 2, EXTENT]), "max")[0], src[:2].max(0)[0])


MISTAKES = {
    "no tensor": (TypeError, "src: a tensor", lambda s, i: scatter.scatter_sum([1], i)),
    "type": (TypeError, "int16 is not", lambda s, i: scatter.scatter_sum(s, i.short(), 0)),
    "dim": (IndexError, "dim: 2 is", lambda s, i: scatter.scatter_max(s, i, 2)),
    "extent": (ValueError, "does not fit", lambda s, i: scatter.scatter_sum(s, i[1:], 0)),
    "dimensions": (ValueError, "use 1 to 2", lambda s, i: scatter.scatter_sum(s, i[:, None, None])),
    "reduce": (
        ValueError,
        "'prod' is unknown",
        lambda s, i: scatter.scatter(s, i, 0, reduce="prod"),
    ),
    "integers": (ValueError, "floating", lambda s, i: scatter.scatter_std(s.int(), i, 0)),
    "pointers": (ValueError, "does not fit", lambda s, i: scatter.segment_csr(s, i.expand(3, -1))),
    "segments": (ValueError, "10 rows, and", lambda s, i: scatter.gather_csr(s, i)),
    "value": (ValueError, "value: a", lambda s, i: sparse.spmm(torch.stack([i, i]), s, 6, 6, s)),
    "rows": (
        ValueError,
        "matrix: has 10 rows",
        lambda s, i: sparse.spmm(torch.stack([i, i]), s[:, 0], 6, 6, s),
    ),
    "entries": (
        IndexError,
        "entries outside of 5 x 6",
        lambda s, i: sparse.spmm(torch.stack([i, i]), s[:, 0], 5, 6, s[:6]),
    ),
    "sparse": (TypeError, "other: a dense", lambda s, i: sparse.matmul(s, s.to_sparse())),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake):
    error, message, call = MISTAKES[mistake]
    with pytest.raises(error, match="^warploom: .*" + re.escape(message)):
        call(numbers(EXTENT, 3), index_of((EXTENT,), 0))


# ---- torch_sparse --------------------------------------------------------------------------------


class SparseTensor:
    """What matmul uses of torch_sparse's."""

    def __init__(self, rowptr, col, value, cols):
        self.parts, self.cols = (rowptr, col, value), cols

    def csr(self):
        return self.parts

    def sparse_size(self, dim):
        return self.cols


@pytest.mark.parametrize("shape", [(7,), (7, 3), (2, 7, 3)])
def test_spmm(shape, device):
    index = torch.stack([index_of((EXTENT,), 0), torch.arange(EXTENT) * 3 % 7]).to(device)
    value = torch.randn(EXTENT, dtype=torch.float64, device=device, requires_grad=True)
    b = torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True)
    dense = torch.zeros(ROWS, 7, dtype=torch.float64, device=device)
    dense = dense.index_put(tuple(index), value, accumulate=True)
    expected = dense @ (b.unsqueeze(-1) if b.dim() == 1 else b)
    for _ in range(2):
        close(sparse.spmm(index, value, ROWS, 7, b), expected)
    assert gradcheck(lambda value, b: sparse.spmm(index, value, ROWS, 7, b), (value, b))
    whole = sparse.spmm(index, value.long(), ROWS, 7, b.long())
    assert whole.dtype == torch.int64 and whole.shape == expected.shape


def test_matmul(device):
    graph = Graph.from_edge_index(
        torch.stack([torch.arange(EXTENT) * 3 % 7, index_of((EXTENT,), 0)]).to(device), cols=7
    )
    value = torch.randn(EXTENT, dtype=torch.float64, device=device, requires_grad=True)
    b = torch.randn(7, 3, dtype=torch.float64, device=device, requires_grad=True)
    row, column = graph.row().long(), graph.colind.long()
    for values in (value, None):
        terms = b[column] if values is None else b[column] * values.unsqueeze(1)
        matrix = SparseTensor(graph.rowptr.long(), column, values, 7)
        for reduce in ("sum", "add", "mean", "min", "max"):
            found = sparse.matmul(matrix, b, reduce)
            close(found, reference(reduce, terms, row, 0)[0])
    torch.sparse.check_sparse_tensor_invariants.disable()  # says so, where PyTorch would warn
    csr = torch.sparse_csr_tensor(graph.rowptr.long(), column, value.detach(), (ROWS, 7))
    for matrix in (csr, csr.to_sparse_coo(), Graph.from_sparse(csr)):
        close(sparse.matmul(matrix, b[:, 0]), csr.to_dense() @ b[:, 0])
    assert gradcheck(
        lambda value, b: sparse.matmul(SparseTensor(graph.rowptr, graph.colind, value, 7), b),
        (value, b),
    )
