"""Messages with a score: results and gradients against gathering and scattering by torch."""

import pytest
import torch

import warploom.torch as wt
from warploom.torch import Graph

ROWS, COLS, EDGES = 30, 25, 160
LINES = {"row": ROWS, "column": COLS, "edge": EDGES}
PLACES = {"a": "edge", "b": "column", "e": "edge", "k": "column", "x": "row"}


def leaky(z):
    return torch.nn.functional.leaky_relu(z, 0.25)


def over_head(z):
    return z.sum(-1, keepdim=True)


# The message, its score and sums, both in torch over values of (edges, heads, columns), the place
# and line of operands, heads.
CASES = {
    "gat": (
        "b", "leaky_relu(l+r+a,0.25)", {},
        lambda v: (leaky(v["l"] + v["r"] + v["a"]), v["b"]),
        {"l": ("row", (2,)), "r": ("column", (2,)), "a": ("edge", (2,)),
         "b": ("column", (2, 5))}, 2,
    ),
    "dot": (
        "b*e", "0.5*t", {"t": "x*k"},
        lambda v: (0.5 * over_head(v["x"] * v["k"]), v["b"] * v["e"]),
        {n: (PLACES[n], (3, 4)) for n in "xkbe"}, 3,
    ),
    "supergat": (
        "b", "leaky_relu((l+r)*sigmoid(t),0.25)", {"t": "x*b"},
        lambda v: (leaky((v["l"] + v["r"]) * over_head(v["x"] * v["b"]).sigmoid()), v["b"]),
        {"l": ("row", (2,)), "r": ("column", (2,)), "x": ("row", (2, 7)),
         "b": ("column", (2, 7))}, 2,
    ),
    "agnn": (
        "b", "beta*t/sqrt(u*w)", {"t": "x*b", "u": "x*x", "w": "b*b"},
        lambda v: (
            0.75 * over_head(v["x"] * v["b"])
            / (over_head(v["x"] * v["x"]) * over_head(v["b"] * v["b"])).sqrt(),
            v["b"],
        ),
        {"x": ("row", (9,)), "b": ("column", (9,))}, 1,
    ),
    "gen": (
        "b", "t", {"t": "b"},
        lambda v: (v["b"], v["b"]),
        {"b": ("column", (6,))}, 6,
    ),
    "columns": (
        "b*f", "l+b", {},
        lambda v: (v["l"] + v["b"], v["b"] * v["f"]),
        {"l": ("row", (6,)), "b": ("column", (6,)), "f": ("edge", (6,))}, 6,
    ),
    "nested": (
        "b*u", "0.25*u+f", {"t": "x*b", "u": "t*b*0.25"},
        lambda v: (
            0.25 * over_head(over_head(v["x"] * v["b"]) * v["b"] * 0.25) + v["f"],
            v["b"] * over_head(over_head(v["x"] * v["b"]) * v["b"] * 0.25),
        ),
        {"x": ("row", (2, 3)), "b": ("column", (2, 3)), "f": ("edge", (1,))}, 2,
    ),
}  # fmt: skip


def edges_of(seed=0):
    """Edges of which the last rows have none."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(0, COLS, (EDGES,), generator=generator)
    return torch.stack([sources, torch.randint(0, ROWS - 4, (EDGES,), generator=generator)])


def draw(shape, seed, dtype):
    numbers = torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return numbers.to(dtype).requires_grad_()


def draw_all(shapes, dtype):
    return {
        name: draw((LINES[place], *line), seed, dtype)
        for seed, (name, (place, line)) in enumerate(shapes.items())
    }


def expected(case, tensors, edge_index, transpose):
    """The result by torch, in float64."""
    _, _, _, of_torch, shapes, heads = CASES[case]
    source, target = edge_index
    lines = {"row": target, "column": source, "edge": torch.arange(EDGES)}
    values = {}
    for name, (place, line) in shapes.items():
        of_edges = tensors[name].double()[lines[place]]
        values[name] = of_edges.reshape(EDGES, 1 if line == (1,) else heads, -1)
    score, message = of_torch(values)
    to, count = (source, COLS) if transpose else (target, ROWS)
    score = score.expand(EDGES, heads, 1).squeeze(-1)
    weight = score.exp()
    total = weight.new_zeros(count, heads).index_add(0, to, weight)
    share = (weight / total[to]).unsqueeze(-1)
    return message.new_zeros(count, *message.shape[1:]).index_add(0, to, share * message)


def second(result, by, upstream):
    """Gradients, and those of a function of them."""
    first = torch.autograd.grad(result, by, upstream, create_graph=True)
    return [*first, *torch.autograd.grad(sum(g.sin().sum() for g in first), by, allow_unused=True)]


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_second_derivatives(case, transpose):
    edge_index = edges_of()
    graph = Graph.from_edge_index(edge_index, rows=ROWS, cols=COLS)
    tensors = draw_all(CASES[case][4], torch.float64)
    wanted = expected(case, tensors, edge_index, transpose)
    upstream = draw(wanted.shape, 99, torch.float64)
    by = [*tensors.values(), upstream]
    got = call(case, tensors, graph, transpose).reshape(wanted.shape)
    found = second(got, by[:-1], upstream)
    for gradient, reference in zip(found, second(wanted, by[:-1], upstream)):
        torch.testing.assert_close(gradient, reference, rtol=1e-8, atol=1e-8)


def test_second_derivatives_of_large_scores():
    """A softmax does not change when all scores of a row grow by a number."""
    graph = Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)
    score, b = draw((EDGES, 1), 1, torch.float64), draw((COLS, 3), 2, torch.float64)
    upstream = draw((ROWS, 3), 3, torch.float64)
    found = []
    for shift in (0.0, 1000.0):
        given = {"l": ("edge", score + shift)}
        out = wt.message(graph, "b", reduce="softmax", score="l", b=b, operands=given)
        found.append(second(out, [score, b], upstream))
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


# ---- dropout -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [1, 2**62 + 5])
def test_dropout_is_that_of_gat(seed):
    """The same numbers are left out for the same edges and heads, forward and in gradients."""
    graph = Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)
    tensors = draw_all(
        {"l": ("row", (2,)), "r": ("column", (2,)), "b": ("column", (2, 5))}, torch.float64
    )
    left, right, b = by = list(tensors.values())
    upstream = torch.randn(ROWS, 2, 5, dtype=torch.float64)
    how = {"dropout": 0.4, "seed": seed}
    wanted = wt.gat(graph, b, left, right, slope=0.25, **how)
    got = wt.message(
        graph, "b", reduce="softmax", score="leaky_relu(l+r,0.25)", b=b,
        operands={"l": ("row", left), "r": ("column", right)}, **how,
    )  # fmt: skip
    torch.testing.assert_close(got, wanted)
    found = torch.autograd.grad(got, by, upstream)
    torch.testing.assert_close(found, torch.autograd.grad(wanted, by, upstream))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("case", ["dot", "supergat", "gen"])
def test_gradients_with_dropout(case, transpose):
    """First and second derivatives leave out the same weights."""
    graph = Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)
    tensors = draw_all(CASES[case][4], torch.float64)

    def result(*values):
        given = dict(zip(tensors, values))
        return call(case, given, graph, transpose, dropout=0.3, seed=7)

    values = tuple(tensors.values())
    assert not torch.allclose(result(*values), call(case, tensors, graph, transpose))
    assert torch.autograd.gradcheck(result, values, fast_mode=True)
    assert torch.autograd.gradgradcheck(result, values, fast_mode=True)


def test_dropout_beside_other_results():
    """Only weights are left out, and each call draws other ones."""
    graph = Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)
    tensors = draw_all({"b": ("column", (6,)), "a": ("edge", (1,))}, torch.float32)
    how = {"reduce": ("sum", "softmax"), "score": "a", "dropout": 0.5, **tensors}
    torch.manual_seed(3)
    first = wt.message(graph, "b", **how)
    other = wt.message(graph, "b", **how)
    torch.manual_seed(3)
    again = wt.message(graph, "b", **how)
    assert torch.equal(first[1], again[1]) and not torch.equal(first[1], other[1])
    torch.testing.assert_close(first[0], wt.message(graph, "b", b=tensors["b"]))


def call(case, tensors, graph, transpose=False, **options):
    text, score, sums, _, shapes, heads = CASES[case]
    operands = {
        name: tensors[name] if PLACES.get(name) == place else (place, tensors[name])
        for name, (place, _) in shapes.items()
    }
    numbers = {"beta": 0.75} if "beta" in score else {}
    return wt.message(
        graph, text, reduce="softmax", score=score, sums=sums, heads=heads, transpose=transpose,
        operands=operands, **numbers, **options,
    )  # fmt: skip


def compare(case, dtype, tolerance, transpose=False):
    edge_index = edges_of()
    graph = Graph.from_edge_index(edge_index, rows=ROWS, cols=COLS)
    tensors = draw_all(CASES[case][4], dtype)
    got = call(case, tensors, graph, transpose)
    wanted = expected(case, tensors, edge_index, transpose)
    torch.testing.assert_close(got.double().reshape(wanted.shape), wanted, **tolerance)
    upstream = draw(wanted.shape, 99, torch.float64).detach()
    by = list(tensors.values())
    found = torch.autograd.grad(got, by, upstream.reshape(got.shape).to(dtype))
    named = torch.autograd.grad(wanted, by, upstream)
    for name, gradient, reference in zip(tensors, found, named):
        assert gradient.dtype == dtype, name
        torch.testing.assert_close(
            gradient, reference, msg=lambda m, n=name: f"{n}: {m}", **tolerance
        )


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_results_and_gradients(case, transpose):
    compare(case, torch.float64, {"rtol": 1e-9, "atol": 1e-9}, transpose)


@pytest.mark.parametrize("case", CASES)
def test_float32(case):
    compare(case, torch.float32, {"rtol": 1e-4, "atol": 1e-4})


@pytest.mark.parametrize("case", ["gat", "dot"])
def test_halves(case):
    """The log of the sums is in float32, so only the results are rounded to 16 bits."""
    compare(case, torch.float16, {"rtol": 2e-2, "atol": 2e-2})


def test_rows_without_weights():
    """Without edges, or with -inf for all of them, a row is 0 and so are its gradients."""
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 1], [0, 0, 2]]), rows=4, cols=2)
    b = torch.randn(2, 3, requires_grad=True)
    a = torch.tensor([0.5, -torch.inf, -torch.inf], requires_grad=True)
    result = wt.message(graph, "b", reduce="softmax", score="a", b=b, a=a)
    torch.testing.assert_close(result[0], b[0])
    assert torch.count_nonzero(result[1:]) == 0
    result.sum().backward()
    torch.testing.assert_close(b.grad, torch.tensor([[1.0] * 3, [0.0] * 3]))
    assert torch.count_nonzero(a.grad) == 0


def test_large_scores():
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [0, 0]]), rows=1, cols=2)
    b = torch.randn(2, 3)
    a = torch.tensor([3000.0, 3000.0])
    result = wt.message(graph, "b", reduce="softmax", score="a", b=b, a=a)
    torch.testing.assert_close(result[0], b.mean(0))


def test_calls_of_one_graph():
    """Gradients of a later call depend on nothing of an earlier one."""
    graph = Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)
    first = draw_all(CASES["agnn"][4], torch.float64)
    second = {name: tensor.detach().flip(0).requires_grad_() for name, tensor in first.items()}
    for tensors in (first, second):
        found = []
        for of_call in (graph, Graph.from_edge_index(edges_of(), rows=ROWS, cols=COLS)):
            result = call("agnn", tensors, of_call)
            found.append([result, *torch.autograd.grad(result.sin().sum(), list(tensors.values()))])
        torch.testing.assert_close(*found)


def test_beside_other_results():
    """One walk gives all; gradients of some results alone are right, too."""
    edge_index = edges_of()
    graph = Graph.from_edge_index(edge_index, rows=ROWS, cols=COLS)
    tensors = draw_all({"x": ("row", (6,)), "b": ("column", (6,))}, torch.float64)
    source, target = edge_index
    kinds = ("mean", "softmax", "max", "edge")
    results = wt.message(graph, "b*t", reduce=kinds, score="t", sums={"t": "x*b"}, **tensors)
    t = (tensors["x"][target] * tensors["b"][source]).sum(-1, keepdim=True)
    message = tensors["b"][source] * t
    torch.testing.assert_close(results[3], message)
    assert [tuple(r.shape) for r in results] == [(ROWS, 6)] * 3 + [(EDGES, 6)]
    by = list(tensors.values())
    degree = torch.bincount(target, minlength=ROWS).clamp(min=1).unsqueeze(1)
    mean = message.new_zeros(ROWS, 6).index_add(0, target, message) / degree
    found = torch.autograd.grad(results[0].sum() + results[3].sum(), by, retain_graph=True)
    torch.testing.assert_close(
        found, torch.autograd.grad(mean.sum() + message.sum(), by, retain_graph=True)
    )
    alone = wt.message(graph, "b*t", reduce="softmax", score="t", sums={"t": "x*b"}, **tensors)
    torch.testing.assert_close(results[1], alone)
    torch.testing.assert_close(
        torch.autograd.grad(results[1].sum(), by), torch.autograd.grad(alone.sum(), by)
    )


@pytest.mark.parametrize("how", [{}, {"dropout": 0.4, "seed": 2**62 + 5}])
def test_compiled(how):
    """The registered op keeps the log of the sums for its backward pass."""
    edge_index = edges_of()
    graph = Graph.from_edge_index(edge_index, rows=ROWS, cols=COLS)
    tensors = draw_all(CASES["supergat"][4], torch.float64)
    by = list(tensors.values())
    eager = call("supergat", tensors, graph, **how)

    @torch.compile(backend="aot_eager", fullgraph=True)
    def compiled():
        return call("supergat", tensors, graph, **how)

    result = compiled()
    torch.testing.assert_close(result, eager)
    found = torch.autograd.grad(result.square().sum(), by)
    torch.testing.assert_close(found, torch.autograd.grad(eager.square().sum(), by))


def test_wrong_calls():
    graph = Graph.from_edge_index(torch.tensor([[0, 1], [0, 0]]), rows=1, cols=2)
    b = torch.randn(2, 3)
    for options, error, says in (
        ({"reduce": "softmax"}, ValueError, "needs a score"),
        ({"score": "1"}, ValueError, "a score needs reduce='softmax'"),
        ({"reduce": "softmax", "score": "b"}, ValueError, "operand b has a number for each column"),
        ({"reduce": "softmax", "score": 1}, TypeError, "the score: a text is needed, not int"),
        ({"reduce": "softmax", "score": "1;2"}, ValueError, "the score: '1;2' is no single"),
        ({"sums": {"t": " "}}, ValueError, "the sum t: ' ' is no single expression"),
        ({"sums": {"2t": "b"}}, ValueError, "'2t' is no name"),
        ({"sums": {"t": "b"}}, ValueError, "the sum t is given, and no expression uses it"),
        ({"reduce": "softmax", "score": "q"}, ValueError, "operand q of .* is unknown"),
        ({"dropout": 0.5}, ValueError, "dropout is of reduce='softmax'"),
        ({"reduce": "softmax", "score": "1", "dropout": 1}, ValueError, "dropout: 1.0 is not at"),
        ({"reduce": "softmax", "score": "1", "dropout": "p"}, TypeError, "dropout: a str is no"),
        ({"kept": 0.5}, ValueError, "operand kept is given, and 'b' does not use it"),
    ):
        with pytest.raises(error, match=says):
            wt.message(graph, "b", b=b, **options)
