"""Gradients of attention whose scores are large, infinite or NaN, against float64.

Operands are small whole numbers times powers of two, so that scores have no rounding errors and
many of them are equal.
"""

import pytest
import torch

import warploom.torch as wt

ROWS, COLS, EDGES, HEADS, FEATURES = 20, 16, 90, 2, 8
SIZES = (2.0**-10, 2.0**4, 2.0**14, 2.0**24, 2.0**60, 2.0**100)  # 1e-3 to 1e30


def graph_of(once=False):
    generator = torch.Generator().manual_seed(1)
    sources = torch.randint(0, COLS, (EDGES,), generator=generator)
    targets = torch.randint(0, ROWS - 2, (EDGES,), generator=generator)
    edges = torch.stack([sources, targets.sort().values])  # in the order of rows
    return wt.Graph.from_edge_index(edges, rows=ROWS, cols=COLS, once=once)


def whole(*shape, seed, most=2, size=1.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-most, most + 1, shape, generator=generator) * size).to(dtype)


def leaky(z):
    return torch.nn.functional.leaky_relu(z, 0.25)


def softmax_sum(graph, scores, b):
    """By torch, edge by edge."""
    row = graph.row().long()
    index = row[:, None].expand_as(scores)
    largest = torch.full((ROWS, HEADS), -torch.inf, dtype=scores.dtype)
    largest = largest.scatter_reduce(0, index, scores.detach(), "amax").nan_to_num(
        nan=torch.nan, posinf=torch.inf, neginf=0.0
    )
    powers = (scores - largest[row]).exp()
    sums = torch.zeros_like(largest).index_add(0, row, powers)
    weights = powers / torch.where(sums == 0, 1, sums)[row]
    terms = weights[..., None] * b[graph.colind.long()]
    return torch.zeros(ROWS, HEADS, FEATURES, dtype=b.dtype).index_add(0, row, terms)


def ends(graph, of_rows, of_columns):
    return of_rows[graph.row().long()], of_columns[graph.colind.long()]


def sum_of_ends(graph, x, k):
    return leaky(torch.add(*ends(graph, x, k)))


def gat_operands(size, dtype):
    left, right = whole(ROWS, HEADS, seed=1, size=size), whole(COLS, HEADS, seed=2, size=size)
    b = whole(COLS, HEADS, FEATURES, seed=3, dtype=dtype)
    return b, left, right, whole(EDGES, HEADS, seed=4, size=size)


def gatv2_operands(size, dtype):
    """Att has the size, as far as gradients of b have it in their type."""
    size = min(size, 2.0**8) if dtype == torch.float16 else size
    x = whole(ROWS, HEADS, FEATURES, seed=1, dtype=dtype)
    b = whole(COLS, HEADS, FEATURES, seed=2, dtype=dtype)
    return b, x, whole(HEADS, FEATURES, seed=3, size=size), whole(EDGES, HEADS, seed=4, size=size)


def dot_operands(size, dtype):
    """Both factors have the root of the size, as far as the type has it."""
    root = min(size, 2.0**14) ** 0.5 if dtype == torch.float16 else size**0.5
    q = whole(ROWS, HEADS, FEATURES, seed=1, size=root, dtype=dtype)
    k = whole(COLS, HEADS, FEATURES, seed=2, size=root, dtype=dtype)
    v = whole(COLS, HEADS, FEATURES, seed=3, dtype=dtype)
    return q, k, v, whole(EDGES, HEADS, seed=4, size=root * root)


def message(text, sums, places, graph, *operands):
    named = {
        name: operand if place is None else (place, operand)
        for (name, place), operand in zip(places.items(), operands)
    }
    return wt.message(
        graph, "b", reduce="softmax", score=text, sums=sums, heads=HEADS, operands=named
    )


# What is computed, the same scores by torch, and the operands, of which the last are the values.
# b is operand `b`.
CASES = {
    "gat": (
        lambda g, b, left, right, a: wt.gat(g, b, left, right, a, slope=0.25),
        lambda g, b, left, right, a: leaky(torch.add(*ends(g, left, right)) + a),
        gat_operands, 0,
    ),
    "gatv2": (
        lambda g, b, x, att, a: wt.gatv2(g, b, x, att, a, slope=0.25),
        lambda g, b, x, att, a: (sum_of_ends(g, x, b) * att).sum(-1) + a,
        gatv2_operands, 0,
    ),
    "dot": (
        lambda g, q, k, v, a: wt.attention(g, q, k, v, a, scale=0.5),
        lambda g, q, k, v, a: 0.5 * torch.mul(*ends(g, q, k)).sum(-1) + a,
        dot_operands, 2,
    ),
    "message of terms": (
        lambda g, b, left, right, a: message(
            "leaky_relu(l+r+a,0.25)", {},
            {"b": None, "l": "row", "r": "column", "a": "edge"}, g, b, left, right, a,
        ),
        lambda g, b, left, right, a: leaky(torch.add(*ends(g, left, right)) + a),
        gat_operands, 0,
    ),
    "message of sums": (
        lambda g, q, k, v, a: message(
            "0.5*t+a", {"t": "x*k"},
            {"x": None, "k": "column", "b": None, "a": "edge"}, g, q, k, v, a,
        ),
        lambda g, q, k, v, a: 0.5 * torch.mul(*ends(g, q, k)).sum(-1) + a,
        dot_operands, 2,
    ),
}  # fmt: skip


def compare(case, graph, operands, tolerance):
    """The result and every gradient. An error of a score's gradient is relative to the products
    that it is a difference of, and to the operand that it is multiplied by."""
    compute, scores_of, _, of_b = CASES[case]
    operands = [t.requires_grad_() for t in operands]
    wide = [t.detach().double().requires_grad_() for t in operands]
    found = compute(graph, *operands)
    wanted = softmax_sum(graph, scores_of(graph, *wide), wide[of_b])
    found = found.reshape(wanted.shape)
    torch.testing.assert_close(
        found.double(), wanted, rtol=tolerance, atol=tolerance, equal_nan=True
    )
    x = whole(*wanted.shape, seed=9)
    got = torch.autograd.grad(found, operands, x.to(found.dtype))
    want = torch.autograd.grad(wanted, wide, x.double())
    sizes = [float(t.detach()[t.isfinite()].abs().max()) for t in operands]
    for i, (gradient, reference) in enumerate(zip(got, want)):
        others = [size for j, size in enumerate(sizes) if j != of_b and j != len(sizes) - 1]
        size = 1 if i in (of_b, len(sizes) - 1) and case != "gatv2" else max(1, *others)
        torch.testing.assert_close(
            gradient.double(), reference, rtol=tolerance, atol=100 * tolerance * size,
            equal_nan=True, msg=lambda m, i=i: f"operand {i}: {m}",
        )  # fmt: skip


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_sizes_of_scores(case, once):
    for size in SIZES:
        compare(case, graph_of(once), CASES[case][2](size, torch.float32), 2e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sizes_of_scores_in_16_bits(case, dtype):
    if case.startswith("message"):
        pytest.skip("operands of a message have one type")
    for size in SIZES:
        operands = CASES[case][2](size, dtype)
        compare(case, graph_of(), operands, 4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("what", [torch.inf, -torch.inf, torch.nan])
def test_scores_that_are_no_numbers(case, what):
    """A row with NaN or inf is NaN, and -inf leaves an edge out, here also all of some rows."""
    graph = graph_of()
    for size in (1.0, 2.0**24):
        operands = CASES[case][2](size, torch.float32)
        values = operands[-1]
        values[::7, 0] = what
        values[graph.row() == 3] = what
        compare(case, graph, operands, 2e-6)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("size", [1e5, 2.45e5, 1e7, 1e8, 1e30])
def test_equal_scores(size, once):
    """Each of two edges has half the weight, so each row of b has half the gradient."""
    graph = wt.Graph(torch.tensor([0, 2]), torch.tensor([0, 1]), cols=2, once=once)
    score, none = torch.full((1, 1), size), torch.zeros(2, 1)
    root = torch.full((2, 1, 1), size**0.5)
    b = torch.ones(2, 1, 1, requires_grad=True)
    half = torch.full_like(b, 0.5)
    for found in (
        wt.gat(graph, b, score, none),
        wt.gatv2(graph, b, torch.full((1, 1, 1), size), torch.ones(1, 1)),
        wt.attention(graph, root[:1], root, b),
        wt.message(
            graph,
            "b",
            reduce="softmax",
            score="l",
            b=b.reshape(2, 1),
            operands={"l": ("row", score)},
        ),
    ):
        assert torch.equal(torch.autograd.grad(found.sum(), b)[0], half)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("features", [8, 24, 64, 100])
@pytest.mark.parametrize("size", [100.0, 1e3, 1e4])
def test_one_edge_has_all_the_weight(size, features, once):
    """Then scores have no gradient: the product that a kernel makes and delta are equal."""
    generator = torch.Generator().manual_seed(0)
    q, k, v, x = (torch.randn(64, 1, features, generator=generator) for _ in range(4))
    colind = torch.randint(0, 64, (64 * 3,), generator=generator)
    graph = wt.Graph(torch.arange(0, 64 * 3 + 1, 3), colind, cols=64, once=once)
    q, k, v = (t * size for t in (q, k, v))
    scores = ((q.double()[graph.row().long()] * k.double()[colind]).sum(-1) * features**-0.5)[:, 0]
    ranked = scores.reshape(64, 3).sort(1).values
    x[ranked[:, 2] - ranked[:, 1] < 120] = 0
    operands = [t.requires_grad_() for t in (q, k, v)]
    dq, dk, dv = torch.autograd.grad(wt.attention(graph, *operands), operands, x)
    assert (dq == 0).all() and (dk == 0).all()
    heaviest = colind.reshape(64, 3).gather(1, scores.reshape(64, 3).argmax(1, keepdim=True))
    wanted = torch.zeros_like(v).index_add(0, heaviest[:, 0], x)
    torch.testing.assert_close(dv, wanted)
