"""Attention: results and gradients against torch, masks, empty rows, compile, memory."""

import json

import pytest
import torch

import warploom.torch as wt
from torch_oracle import check_ops
from warploom.torch import _attention, _eager

ROWS, COLS, EDGES = 30, 25, 160


def graph_of(once=False, seed=0):
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(0, COLS, (EDGES,), generator=generator)
    targets = torch.randint(0, ROWS - 4, (EDGES,), generator=generator)
    return wt.Graph.from_edge_index(
        torch.stack([sources, targets]), rows=ROWS, cols=COLS, once=once
    )


def draw(*shape, dtype=torch.float64, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def expected(graph, b, scores):
    """With torch, edge by edge."""
    row, column = graph.row().long(), graph.colind.long()
    index = row[:, None].expand_as(scores)
    most = torch.full((graph.rows, scores.shape[1]), -torch.inf, dtype=scores.dtype)
    most = most.scatter_reduce(0, index, scores, "amax").nan_to_num(neginf=0.0).detach()
    powers = (scores - most[row]).exp()
    sums = torch.zeros_like(most).index_add(0, row, powers)
    weights = powers / torch.where(sums == 0, 1, sums)[row]
    terms = weights[..., None] * b[column]
    return torch.zeros(graph.rows, *b.shape[1:], dtype=b.dtype).index_add(0, row, terms)


def gat_scores(graph, left, right, values, slope=0.2):
    z = left[graph.row().long()] + right[graph.colind.long()]
    return torch.nn.functional.leaky_relu(z if values is None else z + values, slope)


def gatv2_scores(graph, b, x, att, values, slope=0.2):
    z = x[graph.row().long()] + b[graph.colind.long()]
    scores = (torch.nn.functional.leaky_relu(z, slope) * att).sum(-1)
    return scores if values is None else scores + values


def gatv2_operands(heads, features, has_values=True, dtype=torch.float64):
    b, x = draw(COLS, heads, features, dtype=dtype), draw(ROWS, heads, features, dtype=dtype)
    att = draw(heads, features, seed=2, dtype=dtype)
    values = draw(EDGES, heads, seed=3, dtype=dtype) if has_values else None
    return [None if t is None else t.requires_grad_() for t in (b, x, att, values)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads, features", [(1, 16), (3, 5)])
def test_row_products(heads, features, dtype, device):
    """The two rows may lie in either order, side by side, apart, or on each other."""
    graph = graph_of().to(device)
    n = heads * features
    x = draw(ROWS, heads, features, dtype=dtype).to(device)
    memory = draw(9 * n, dtype=dtype, seed=2).to(device)
    for places in ((0, n), (n, 0), (7 * n, 3), (0, 1), (2, 2)):
        first, second = (memory[at : at + n].view(heads, features) for at in places)
        found = _eager.row_products(graph, x, first, second)
        for terms, row in zip(found, (first, second)):
            wanted = (x.double() * row.double()).sum(-1)
            assert terms.shape == wanted.shape
            tolerance = 1e-5 if dtype == torch.float32 else 0.1
            assert torch.allclose(terms.double(), wanted, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("heads, features", [(3, 5), (1, 16), (4, 8), (3, 24)])
@pytest.mark.parametrize("has_values", [False, True])
def test_gatv2(once, heads, features, has_values):
    graph = graph_of(once)
    b, x, att, values = gatv2_operands(heads, features, has_values)
    operands = [t for t in (b, x, att, values) if t is not None]
    found = wt.gatv2(graph, b, x, att, values, slope=0.3)
    wanted = expected(graph, b, gatv2_scores(graph, b, x, att, values, 0.3))
    torch.testing.assert_close(found, wanted)
    dc = draw(*found.shape, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, dc), torch.autograd.grad(wanted, operands, dc)
    )


def test_gradcheck_of_gatv2():
    graph = graph_of()
    operands = gatv2_operands(2, 3)
    assert torch.autograd.gradcheck(lambda *t: wt.gatv2(graph, *t), operands)
    assert torch.autograd.gradcheck(lambda *t: wt.gatv2(graph, *t, dropout=0.4, seed=7), operands)


def check_op(score, graph, operands, factor):
    """The registered op, and its gradient from what it gives."""
    operation, numbers = _attention._OPERATIONS[score], (factor, 0.0, 0)
    given = *operands, None
    check_ops(lambda: operation.dispatch(graph, given, (False,), numbers), *operands)


def test_gatv2_compiled_and_checked():
    graph = graph_of()
    operands = gatv2_operands(2, 4, dtype=torch.float32)
    found = torch.compile(lambda *t: wt.gatv2(graph, *t), fullgraph=True, backend="aot_eager")(
        *operands
    )
    wanted = wt.gatv2(graph, *operands)
    torch.testing.assert_close(found, wanted)
    dc = draw(*found.shape, dtype=torch.float32, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, dc), torch.autograd.grad(wanted, operands, dc)
    )
    check_op("gatv2", graph, operands, 0.2)
    with pytest.raises(ValueError, match="att: the shape is"):
        wt.gatv2(graph, operands[0], operands[1], operands[2][:1])


def dot_scores(graph, q, k, values, scale):
    scores = scale * (q[graph.row().long()] * k[graph.colind.long()]).sum(-1)
    return scores if values is None else scores + values


def dot_operands(heads, features, has_values=True, dtype=torch.float64):
    q, k = draw(ROWS, heads, features, dtype=dtype), draw(COLS, heads, features, dtype=dtype)
    v = draw(COLS, heads, features, seed=2, dtype=dtype)
    values = draw(EDGES, heads, seed=3, dtype=dtype) if has_values else None
    return [None if t is None else t.requires_grad_() for t in (q, k, v, values)]


@pytest.fixture(params=[True, False], ids=["fused", "unfused"])
def fused(request, monkeypatch):
    monkeypatch.setattr(_attention, "fused", request.param)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("heads, features", [(3, 5), (1, 16), (4, 8), (3, 24)])
@pytest.mark.parametrize("has_values", [False, True])
def test_dot(fused, once, heads, features, has_values):
    graph = graph_of(once)
    q, k, v, values = dot_operands(heads, features, has_values)
    operands = [t for t in (q, k, v, values) if t is not None]
    found = wt.attention(graph, q, k, v, values, scale=0.7)
    wanted = expected(graph, v, dot_scores(graph, q, k, values, 0.7))
    torch.testing.assert_close(found, wanted)
    dc = draw(*found.shape, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, dc), torch.autograd.grad(wanted, operands, dc)
    )


def test_gradcheck_of_dot(fused):
    graph = graph_of()
    operands = dot_operands(2, 3)
    assert torch.autograd.gradcheck(lambda *t: wt.attention(graph, *t), operands)
    assert torch.autograd.gradcheck(
        lambda *t: wt.attention(graph, *t, dropout=0.4, seed=7), operands
    )


@pytest.mark.parametrize("once", [False, True])
def test_features_of_edges(once):
    graph = graph_of(once)
    q, k, v, values = dot_operands(2, 4)
    b, x, att, _ = gatv2_operands(2, 4)
    edges = draw(EDGES, 2, 4, seed=5).requires_grad_()
    row, column = graph.row().long(), graph.colind.long()
    z = torch.nn.functional.leaky_relu(x[row] + b[column] + edges, 0.2)
    products = 0.5 * (q[row] * (k[column] + edges)).sum(-1)
    incidence = graph.incidence()
    for operands, found, wanted in (
        (
            [q, k, v, values, edges],
            wt.attention(graph, q, k, v, values, edges=edges),
            expected(graph, v, products + values) + expected(incidence, edges, products + values),
        ),
        (
            [b, x, att, edges],
            wt.gatv2(graph, b, x, att, edges=edges),
            expected(graph, b, (z * att).sum(-1)),
        ),
    ):
        torch.testing.assert_close(found, wanted)
        dc = draw(*found.shape, seed=4)
        torch.testing.assert_close(
            torch.autograd.grad(found, operands, dc, retain_graph=True),
            torch.autograd.grad(wanted, operands, dc, retain_graph=True),
        )
    operands = [t.detach().requires_grad_() for t in (q, k, v, edges)]
    assert torch.autograd.gradcheck(
        lambda q, k, v, e: wt.attention(graph, q, k, v, edges=e, dropout=0.4, seed=7), operands
    )
    with pytest.raises(ValueError, match="edges: the shape is"):
        wt.attention(graph, q, k, v, edges=edges[1:])


def test_fused_where_it_serves(monkeypatch):
    served = []
    original = _attention._attend
    monkeypatch.setattr(_attention, "_attend", lambda *t: served.append(t[0]) or original(*t))
    graph = graph_of()
    for features, of_v, dtype, wanted in (
        (8, 8, torch.float32, True),
        (6, 6, torch.float32, False),
        (512, 512, torch.float32, False),
        (8, 4, torch.float32, False),
        (8, 8, torch.float64, False),
    ):
        served.clear()
        q, k = draw(ROWS, 2, features, dtype=dtype), draw(COLS, 2, features, dtype=dtype)
        wt.attention(graph, q, k, draw(COLS, 2, of_v, dtype=torch.float32))
        assert served == ["dot" if wanted else "edge"]
    served.clear()
    monkeypatch.setattr(_attention, "fused", True)
    q, k, v, _ = dot_operands(2, 6)
    wt.attention(graph, q, k, v)
    assert served == ["dot"]


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_large_and_masked_scores_of_dot(fused, size):
    graph = graph_of()
    q, k, v, values = dot_operands(2, 4)
    with torch.no_grad():
        q *= size
        values[::3] = -torch.inf
        values[graph.row() == 1] = -torch.inf
    found = wt.attention(graph, q, k, v, values)
    torch.testing.assert_close(found, expected(graph, v, dot_scores(graph, q, k, values, 0.5)))
    assert (found[1] == 0).all() and (found[-4:] == 0).all()
    for gradient in torch.autograd.grad(found.sum(), [q, k, v]):
        assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types_of_dot(fused, dtype):
    graph = graph_of()
    operands = dot_operands(4, 8, dtype=dtype)
    wide = [t.detach().double().requires_grad_() for t in operands]
    found = wt.attention(graph, *operands)
    wanted = expected(graph, wide[2], dot_scores(graph, wide[0], wide[1], wide[3], 8**-0.5))
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), wanted, rtol=4 * unit, atol=4 * unit)
    for got, want, of in zip(
        torch.autograd.grad(found.sum(), operands),
        torch.autograd.grad(wanted.sum(), wide),
        operands,
    ):
        assert got.dtype == of.dtype
        torch.testing.assert_close(got.double(), want, rtol=40 * unit, atol=40 * unit)


def test_dot_compiled_and_checked():
    graph = graph_of()
    operands = dot_operands(2, 4, dtype=torch.float32)
    q, k, v, values = operands
    compiled = torch.compile(
        lambda *t: wt.attention(graph, *t), fullgraph=True, backend="aot_eager"
    )
    found, wanted = compiled(*operands), wt.attention(graph, *operands)
    torch.testing.assert_close(found, wanted)
    dc = draw(*found.shape, dtype=torch.float32, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, dc), torch.autograd.grad(wanted, operands, dc)
    )
    check_op("dot", graph, (v, q, k, values), 0.5)
    with pytest.raises(ValueError, match="k: the shape is"):
        wt.attention(graph, q, k[1:], v)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("heads, features", [(3, 5), (1, 16), (4, 8), (3, 24)])
@pytest.mark.parametrize("has_values", [False, True])
def test_gat(once, heads, features, has_values):
    graph = graph_of(once)
    b, left, right = draw(COLS, heads, features), draw(ROWS, heads), draw(COLS, heads, seed=2)
    values = draw(EDGES, heads, seed=3) if has_values else None
    operands = [t.requires_grad_() for t in (b, left, right, values) if t is not None]
    found = wt.gat(graph, b, left, right, values, slope=0.3)
    wanted = expected(graph, b, gat_scores(graph, left, right, values, 0.3))
    torch.testing.assert_close(found, wanted)
    x = draw(*found.shape, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, operands, x), torch.autograd.grad(wanted, operands, x)
    )


@pytest.mark.parametrize(
    "left, right",
    [
        (draw(ROWS, 6)[:, :3], draw(COLS, 6, seed=2)[:, 3:]),  # halves of one map
        (draw(ROWS, 6)[:, :3], draw(COLS, 3, seed=2)),
        (draw(3, ROWS).t(), draw(3, COLS, seed=2).t()),
        (draw(ROWS, 1).expand(-1, 3), draw(COLS, 1, seed=2).expand(-1, 3)),
    ],
)
def test_terms_of_gat_in_any_memory(left, right):
    graph, b = graph_of(), draw(COLS, 3, 5)
    wanted = expected(graph, b, gat_scores(graph, left, right, None))
    torch.testing.assert_close(wt.gat(graph, b, left, right), wanted)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("score", ["gat", "gatv2"])
def test_bias(once, score):
    graph = graph_of(once)
    b, bias = draw(COLS, 3, 4).requires_grad_(), draw(3, 4, seed=5).requires_grad_()
    terms = {
        "gat": (draw(ROWS, 3), draw(COLS, 3, seed=2)),
        "gatv2": (draw(ROWS, 3, 4), draw(3, 4, seed=2)),
    }[score]
    call = getattr(wt, score)
    found, wanted = call(graph, b, *terms, bias=bias), call(graph, b, *terms) + bias
    torch.testing.assert_close(found, wanted)
    dc = draw(*found.shape, seed=4)
    torch.testing.assert_close(
        torch.autograd.grad(found, [b, bias], dc), torch.autograd.grad(wanted, [b, bias], dc)
    )
    with torch.no_grad():  # the kernel adds it, also to rows without edges
        fused = call(graph, b, *terms, bias=bias.t().contiguous().t().float())
        torch.testing.assert_close(fused, call(graph, b, *terms) + bias.float())
        with pytest.raises(ValueError, match="bias: the shape"):
            call(graph, b, *terms, bias=bias[:2])
    compiled = torch.compile(
        lambda b, bias: call(graph, b, *terms, bias=bias), fullgraph=True, backend="aot_eager"
    )
    torch.testing.assert_close(compiled(b, bias), wanted)


def test_gradcheck():
    graph = graph_of()
    operands = [draw(COLS, 2, 3), draw(ROWS, 2), draw(COLS, 2, seed=2), draw(EDGES, 2, seed=3)]
    assert torch.autograd.gradcheck(
        lambda *o: wt.gat(graph, *o), [o.requires_grad_() for o in operands]
    )
    operands = [draw(ROWS, 2, 3), draw(COLS, 2, 3, seed=2), draw(COLS, 2, 4, seed=3)]
    assert torch.autograd.gradcheck(
        lambda *o: wt.attention(graph, *o), [o.requires_grad_() for o in operands]
    )


def test_masks_and_large_scores():
    graph = graph_of()
    b, left, right = draw(COLS, 2, 4), draw(ROWS, 2) * 1e4, draw(COLS, 2, seed=2) * 1e4
    values = torch.zeros(EDGES, 2, dtype=torch.float64)
    values[::3] = -torch.inf
    values[graph.row() == 1] = -torch.inf
    found = wt.gat(graph, b, left, right, values)
    torch.testing.assert_close(found, expected(graph, b, gat_scores(graph, left, right, values)))
    assert (found[1] == 0).all() and (found[-4:] == 0).all()
    operands = [b.requires_grad_(), left.requires_grad_(), right.requires_grad_()]
    for gradient in torch.autograd.grad(wt.gat(graph, *operands, values).sum(), operands):
        assert torch.isfinite(gradient).all()


def test_nan_stays_in_its_row_and_head():
    graph = graph_of()
    right = draw(COLS, 2, seed=2)
    values = torch.zeros(EDGES, 2, dtype=torch.float64)
    values[5, 1] = torch.nan
    found = wt.gat(graph, draw(COLS, 2, 4), draw(ROWS, 2), right, values).isnan()
    row = int(graph.row()[5])
    assert found[row, 1].all() and found.sum() == 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype):
    graph = graph_of()
    b, left, right = draw(COLS, 4, 8, dtype=dtype), draw(ROWS, 4).float(), draw(COLS, 4).float()
    found = wt.gat(graph, b.requires_grad_(), left.requires_grad_(), right)
    wanted = expected(graph, b.double(), gat_scores(graph, left.double(), right.double(), None))
    unit = torch.finfo(dtype).eps
    torch.testing.assert_close(found.double(), wanted, rtol=4 * unit, atol=4 * unit)
    db, dleft = torch.autograd.grad(found.sum(), [b, left])
    assert db.dtype == dtype and dleft.dtype == torch.float32


def test_dropout():
    graph = graph_of()
    b, left, right = draw(COLS, 2, 4), draw(ROWS, 2), draw(COLS, 2, seed=2)
    values = draw(EDGES, 2, seed=3)
    operands = [o.requires_grad_() for o in (b, left, right, values)]
    assert torch.autograd.gradcheck(
        lambda *o: wt.gat(graph, *o, dropout=0.4, seed=7), operands, atol=1e-6
    )
    ones = torch.ones(COLS, 2, 4, dtype=torch.float64)
    found = wt.gat(graph, ones, left, right, dropout=0.4, seed=7).detach()
    assert not torch.equal(found, wt.gat(graph, ones, left, right, dropout=0.4, seed=8))
    used = graph.degrees() > 0
    assert 0.8 < float(found[used].mean()) < 1.2
    with pytest.raises(ValueError, match="dropout: 1"):
        wt.gat(graph, b, left, right, dropout=1)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*")
def test_compiled():
    graph = graph_of()
    operands = [draw(COLS, 2, 4), draw(ROWS, 2), draw(COLS, 2, seed=2), draw(EDGES, 2, seed=3)]
    operands = [o.requires_grad_() for o in operands]

    def loss(*o):
        return wt.gat(graph, *o).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*operands), operands),
        torch.autograd.grad(loss(*operands), operands),
    )


def test_wrong_operands_are_named():
    graph = graph_of()
    b, left, right = draw(COLS, 2, 4), draw(ROWS, 2), draw(COLS, 2)
    for arguments, named in (
        ((b, left[:, :1], right), "left: the shape"),
        ((b, left, right, draw(EDGES, 3)), "values: the shape"),
        ((b[:-1], left, right), "b: the shape"),
    ):
        with pytest.raises(ValueError, match=named):
            wt.gat(graph, *arguments)
    with pytest.raises(TypeError, match="values are"):
        wt.gat(graph, b, left, right, draw(EDGES, 2, dtype=torch.float32))
    rows = draw(ROWS, 2, 4)
    for features in (4, 3):  # in one pass, and not
        q, k, v = rows, draw(COLS, 2, 4), draw(COLS, 2, features)
        for arguments, named in (((q[1:], k, v), "q"), ((q, k[1:], v), "k"), ((q, k, v[1:]), "v")):
            with pytest.raises(ValueError, match=f"{named}: the shape"):
                wt.attention(graph, *arguments)


def test_a_graph_without_rows_has_gradients():
    none = torch.empty((2, 0), dtype=torch.int64)
    graph = wt.Graph.from_edge_index(none, rows=0, cols=3)
    b, right = draw(3, 2, 4).requires_grad_(), draw(3, 2)
    left, q = draw(0, 2), draw(0, 2, 4)
    for c in (
        wt.gat(graph, b, left, right),
        wt.gatv2(graph, b, q, draw(2, 4)),
        wt.attention(graph, q, b, b),
    ):
        assert c.shape == (0, 2, 4)
        b.grad = None
        c.sum().backward()
        assert torch.equal(b.grad, torch.zeros_like(b))


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("kind", ["gat", "gatv2", "dot"])
@pytest.mark.parametrize("features", [16, 4])  # scores of edges take less memory than C, and more
def test_gradients_of_some_operands(kind, features, once):
    """They are what they are where all operands need one, by whatever passes they are made."""
    graph, heads = graph_of(once), 3
    b, k = draw(COLS, heads, features), draw(COLS, heads, features, seed=5)
    values = draw(EDGES, heads, seed=3)
    operands = {
        "gat": (b, draw(ROWS, heads, seed=4), draw(COLS, heads, seed=5), values),
        "gatv2": (b, draw(ROWS, heads, features, seed=4), draw(heads, features, seed=5), values),
        "dot": (draw(ROWS, heads, features, seed=4), k, b, values),
    }[kind]
    run = {"gat": wt.gat, "gatv2": wt.gatv2, "dot": wt.attention}[kind]
    up = draw(ROWS, heads, features, seed=6)

    def gradients(needed):
        own = [t.clone().requires_grad_(i in needed) for i, t in enumerate(operands)]
        return torch.autograd.grad(run(graph, *own), [own[i] for i in needed], up)

    wanted = gradients(range(4))
    for some in ((0,), (1,), (2,), (3,), (1, 3), (0, 2), (1, 2)):
        for at, found in zip(some, gradients(some)):
            assert torch.allclose(found, wanted[at], rtol=1e-12, atol=1e-12), (some, at)


def peak_bytes(step, folder):
    """The most memory that a step holds beside what lives already, as the CPU's allocator tells."""
    cpu = torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[cpu], profile_memory=True) as profile:
        step()
    trace = folder / "trace.json"
    profile.export_chrome_trace(str(trace))
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e["name"] == "[memory]"]
    assert events
    held = most = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        held += event["args"]["Bytes"]
        most = max(most, held)
    return most


@pytest.mark.parametrize(
    "kind, dtype, arrays, of_edges",
    [
        ("gatv2", torch.float32, 3, 0),  # C, the gradient of x, and that of b or the terms of att's
        ("dot", torch.float32, 4, 0),  # C and the gradients of q, k and v
        ("gat", torch.float32, 2, 1),  # C, the gradient of b, and those of scores
        ("gatv2", torch.bfloat16, 5, 0),  # C, and dC and C in float32
        ("dot", torch.bfloat16, 5, 0),
    ],
)
def test_memory_of_a_step(kind, dtype, arrays, of_edges, tmp_path):
    """A step holds this many arrays of a size of C, and for "gat" a number for each edge and head.
    Besides, there are numbers of each row and head, which take less than a fourth of C here."""
    rows, heads, features, edges = 200, 4, 32, 9000
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(0, rows, (2, edges), generator=generator)
    graph = wt.Graph.from_edge_index(ends, rows=rows, cols=rows)
    b, x, y = (draw(rows, heads, features, dtype=dtype, seed=s).requires_grad_() for s in range(3))
    if kind == "gatv2":
        att = draw(heads, features, dtype=torch.float32).requires_grad_()
        inputs, attend = (b, x, att), lambda: wt.gatv2(graph, b, x, att)
    elif kind == "dot":
        inputs, attend = (b, x, y), lambda: wt.attention(graph, x, y, b)
    else:
        left, right = (draw(rows, heads, dtype=torch.float32).requires_grad_() for _ in range(2))
        inputs, attend = (b, left, right), lambda: wt.gat(graph, b, left, right)
    up = draw(rows, heads, features, dtype=dtype, seed=4)

    def step():
        c = attend()
        return c, torch.autograd.grad(c, inputs, up)

    step()
    own = up.numel() * up.element_size()
    held = peak_bytes(step, tmp_path) - of_edges * edges * heads * 4
    assert (arrays - 0.1) * own < held < (arrays + 0.25) * own


def test_types_are_refused():
    """Complex numbers lost their imaginary part."""
    graph = graph_of()
    q, k, v = draw(ROWS, 2, 4), draw(COLS, 2, 4), draw(COLS, 2, 5)
    for name, wrong in (("q", (q.to(torch.complex64), k, v)), ("k", (q, k.long(), v))):
        with pytest.raises(TypeError, match=f"{name}: the type .* is not supported"):
            wt.attention(graph, *wrong)
    with pytest.raises(TypeError, match=r"right: the type torch\.complex64"):
        wt.gat(graph, k, q[:, :, 0], k[:, :, 0].to(torch.complex64))
