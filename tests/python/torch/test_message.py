"""Messages: results and gradients against gathering and scattering by torch, in float64."""

import weakref

import pytest
import torch

import warploom.torch as wt
from torch_oracle import count_calls
from warploom.torch import Graph

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
ROWS, COLS, EDGES = 30, 25, 160
LAYERS = {
    "gine": "relu(b+e)",
    "resgated": "sigmoid(x+k)*b",
    "film": "relu(x*b+y)",
    "cf": "b*e",
    "fa": "tanh(x+k)*a*b",
}
FUNCTIONS = {"relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp}
LINES = {"a": EDGES, "b": COLS, "e": EDGES, "k": COLS, "x": ROWS, "y": ROWS}


def edges_of(order="unsorted", seed=0):
    """Edges of which the last rows have none."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(0, COLS, (EDGES,), generator=generator)
    targets = torch.randint(0, ROWS - 4, (EDGES,), generator=generator)
    if order == "sorted":
        by = torch.argsort(targets * COLS + sources, stable=True)
        sources, targets = sources[by], targets[by]
    return torch.stack([sources, targets])


def graph_of(edge_index, device="cpu", **options):
    return Graph.from_edge_index(edge_index.to(device), rows=ROWS, cols=COLS, **options)


def draw(*shape, seed=1, dtype=torch.float64, device="cpu", grad=True):
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return numbers.to(device, dtype).requires_grad_(grad)


def operands_of(expression, width=(6,), narrow=(), **options):
    """An operand for each letter of the expression; `narrow` has other shapes."""
    narrow = dict(narrow)
    found = {}
    for seed, name in enumerate("abekxy"):
        letters = expression
        for function in FUNCTIONS:
            letters = letters.replace(function, "")
        if name in letters:
            shape = narrow.get(name, () if name == "a" else width)
            found[name] = draw(LINES[name], *shape, seed=seed + 1, **options)
    return found


def widened(tensor, width):
    """A gathered operand with as many dimensions as a result."""
    return tensor.reshape(tensor.shape + (1,) * (1 + len(width) - tensor.dim()))


def expected(edge_index, expression, operands, width=(6,), reduce="sum", rows=ROWS):
    """With torch, edge by edge."""
    source, target = edge_index
    index = {"row": target, "column": source}
    places = {"b": "column", "k": "column", "x": "row", "y": "row"}
    gathered = {
        name: widened(t[index[places[name]]] if name in places else t, width)
        for name, t in operands.items()
    }
    message = eval(expression, {**FUNCTIONS, **gathered})
    message = message.expand(EDGES, *width)
    if reduce == "edge":
        return message
    if reduce == "edge_sum":
        return message.sum(-1)
    into = target.reshape(-1, *(1 for _ in width)).expand_as(message)
    zeros = message.new_zeros(rows, *width)
    count = torch.bincount(target, minlength=rows).clamp(1)
    count = count.reshape(-1, *(1 for _ in width))

    def scatter(numbers, how):
        return zeros.scatter_reduce(0, into, numbers, how, include_self=False)

    if reduce in ("sum", "prod"):
        ones = reduce == "prod"
        return (zeros + 1 if ones else zeros).scatter_reduce(0, into, message, reduce)
    if reduce in ("max", "min"):
        return scatter(message, "a" + reduce)
    mean = scatter(message, "sum") / count
    if reduce == "mean":
        return mean
    variance = scatter(message * message, "sum") / count - mean * mean
    if reduce == "var":
        return variance
    out = variance.clamp(min=1e-5).sqrt()
    return out.masked_fill(out <= 1e-5**0.5, 0.0)


def compare(found, wanted, operands, seed=9, **tolerance):
    """Compare results, and the gradients by all operands of a weighted sum of these."""
    found, wanted = ([t] if isinstance(t, torch.Tensor) else list(t) for t in (found, wanted))
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want, **tolerance)
    needed = [t for t in operands.values() if t.requires_grad]
    if not needed:
        return
    weights = [draw(*t.shape, seed=seed + i, grad=False) for i, t in enumerate(wanted)]
    weights = [w.to(t) for w, t in zip(weights, wanted, strict=True)]
    grads = [
        torch.autograd.grad(results, needed, weights, allow_unused=True, retain_graph=True)
        for results in (found, wanted)
    ]
    names = [name for name, t in operands.items() if t.requires_grad]
    for name, got, want in zip(names, *grads, strict=True):
        torch.testing.assert_close(got, want, msg=lambda m, n=name: f"by {n}: {m}", **tolerance)


@pytest.mark.parametrize("order", ["sorted", "unsorted"])
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer, order, once, device):
    expression, edges = LAYERS[layer], edges_of(order).to(device)
    narrow = {"x": (1,), "k": ()} if layer == "fa" else {}
    operands = operands_of(expression, narrow=narrow, device=device)
    graph = graph_of(edges, device, once=once)
    found = wt.message(graph, expression, **operands)
    compare(found, expected(edges, expression, operands), operands)


@pytest.mark.parametrize("expression", ["b", "relu(b+e)", "b*a"])
def test_several_reductions_in_one_walk(expression, device):
    edges = edges_of().to(device)
    operands = operands_of(expression, device=device)
    reductions = ("mean", "min", "max", "std")
    found = wt.message(graph_of(edges, device), expression, reduce=reductions, **operands)
    wanted = [expected(edges, expression, operands, reduce=r) for r in reductions]
    compare(found, wanted, operands)
    # The same where only one of them is used further.
    (of_min,) = torch.autograd.grad(wanted[1].sum(), operands["b"], retain_graph=True)
    (got,) = torch.autograd.grad(found[1].sum(), operands["b"])
    torch.testing.assert_close(got, of_min)


def test_deviations_beside_their_parts():
    edges = edges_of()
    operands = operands_of("relu(b+e)")
    reductions = ("std", "var", "mean", "std", "sum")
    found = wt.message(graph_of(edges), "relu(b+e)", reduce=reductions, **operands)
    wanted = [expected(edges, "relu(b+e)", operands, reduce=r) for r in reductions]
    compare(found, wanted, operands)
    for at in (0, 1, 4):  # each alone, without a gradient by the others
        compare(found[at], wanted[at], operands)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "var", "std", "edge"])
def test_reductions(reduce):
    edges = edges_of()
    operands = operands_of("x*b+e")
    found = wt.message(graph_of(edges), "x*b+e", reduce=reduce, **operands)
    compare(found, expected(edges, "x*b+e", operands, reduce=reduce), operands)


@pytest.mark.parametrize("zeros", [0, 40])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_products(order, zeros, device):
    """Each message gets the product of the others, also where some are 0."""
    edges = edges_of(order).to(device)
    operands = operands_of("x*b+e", device=device)
    e = operands["e"].detach()
    source, target = edges
    for edge in range(zeros):
        e[edge] = -operands["x"][target[edge]] * operands["b"][source[edge]]
    operands["e"] = e.detach().requires_grad_()
    found = wt.message(graph_of(edges, device), "x*b+e", reduce=("prod", "mean"), **operands)
    wanted = [expected(edges, "x*b+e", operands, reduce=r) for r in ("prod", "mean")]
    assert bool((wanted[0] == 0).any()) is bool(zeros)
    compare(found, wanted, operands)
    compare(found[0], wanted[0], operands)  # without a gradient by the mean


def test_a_product_without_slope():
    graph, b = graph_of(edges_of()), draw(COLS, 6)
    (got,) = torch.autograd.grad(wt.message(graph, "floor(b)", reduce="prod", b=b).sum(), b)
    assert not got.any()


def test_a_product_of_numbers_of_heads():
    edges = edges_of()
    operands = operands_of("a*b*s", (2, 3), {"a": (2,)})
    found = wt.message(graph_of(edges), "a*b*s", reduce="prod", s=0.5, **operands)
    scaled = {**operands, "b": operands["b"] * 0.5}
    wanted = expected(edges, "a*b", scaled, (2, 3), "prod")
    torch.testing.assert_close(found, wanted)
    grads = [
        torch.autograd.grad(t.square().sum(), list(operands.values())) for t in (found, wanted)
    ]
    for got, want in zip(*grads, strict=True):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_results_of_edges(order):
    edges = edges_of(order)
    width = (3, 4)
    operands = operands_of("x*b*e", width)
    reductions = ("edge_sum", "edge", "sum")
    found = wt.message(graph_of(edges), "x*b*e", reduce=reductions, **operands)
    assert [t.shape for t in found] == [(EDGES, 3), (EDGES, 3, 4), (ROWS, 3, 4)]
    wanted = [expected(edges, "x*b*e", operands, width, r) for r in reductions]
    compare(found, wanted, operands)
    flat = {name: t.detach().reshape(len(t), -1) for name, t in operands.items()}
    total = wt.message(graph_of(edges), "x*b*e", reduce="edge_sum", **flat)
    torch.testing.assert_close(total, wanted[0].sum(-1))


@pytest.mark.parametrize("heads", [None, 3])
@pytest.mark.parametrize("values", [(), (1,), (3,)])
def test_heads(heads, values):
    """Operands of a number for each head, of a single one, and of n numbers in one message."""
    edges, width, expression = edges_of(), (3, 4), "tanh(x+k)*a*b+e*y"
    narrow = {"x": (3,), "k": (3, 1), "a": values, "e": (3,), "y": ()}
    operands = operands_of(expression, width, narrow)
    found = wt.message(graph_of(edges), expression, heads=heads, **operands)
    shaped = {n: t[..., None] if t.shape[1:] == (3,) else t for n, t in operands.items()}
    compare(found, expected(edges, expression, shaped, width), operands)


def test_widths_without_heads():
    edges = edges_of()
    graph = graph_of(edges)
    for width in ((), (1,), (5,), (2, 3)):
        operands = operands_of("x*b", width)
        found = wt.message(graph, "x*b", **operands)
        assert found.shape == (ROWS, *width)
        compare(found, expected(edges, "x*b", operands, width), operands)
    empty = wt.message(graph, "x*b", reduce=("sum", "edge"), b=draw(COLS, 0), x=draw(ROWS, 0))
    assert [t.shape for t in empty] == [(ROWS, 0), (EDGES, 0)]
    for heads, b in ((2, draw(COLS, 2, 0)), (3, draw(COLS, 0))):
        a = draw(EDGES, heads)
        c = wt.message(graph, "a*b", a=a, b=b)
        assert c.shape == (ROWS, *b.shape[1:])
        assert torch.equal(torch.autograd.grad(c.sum(), a)[0], torch.zeros_like(a))


def test_values_of_the_graph():
    edges = edges_of()
    values = draw(EDGES, seed=5)
    operands = {"b": draw(COLS, 6), "a": values}
    found = wt.message(graph_of(edges, values=values), "a*relu(b)", b=operands["b"])
    compare(found, expected(edges, "a*relu(b)", operands), operands)
    ones = wt.message(graph_of(edges), "a*b", b=operands["b"])
    torch.testing.assert_close(ones, expected(edges, "b", operands))


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_other_names_numbers_and_degree(shape):
    edges = edges_of()
    b, gate = draw(COLS, *shape), draw(ROWS, seed=3)
    weight = draw(*shape, 2, seed=4, grad=False)[..., 0]
    found = wt.message(
        graph_of(edges),
        "gate*exp(b*scale)*w/degree",
        b=b,
        scale=0.25,
        operands={"gate": ("row", gate), "w": ("all", weight)},
    )
    source, target = edges
    degree = torch.bincount(target, minlength=ROWS)[target]
    ones = (1,) * len(shape)
    terms = gate[target].reshape(-1, *ones) * (b[source] * 0.25).exp() * weight
    terms = terms / degree.reshape(-1, *ones)
    wanted = torch.zeros(ROWS, *shape, dtype=b.dtype).index_add(0, target, terms)
    compare(found, wanted, {"b": b, "gate": gate})


def test_numbers_differ_from_call_to_call():
    graph, b = graph_of(edges_of()), draw(COLS, 4, grad=False)
    twice, once = (wt.message(graph, "b*s", b=b, s=s) for s in (2, 1.0))
    torch.testing.assert_close(twice, 2 * once)


@pytest.mark.parametrize("expression", ["relu(b+e)*x", "b*a"])
def test_transpose(expression):
    edges = edges_of()
    operands = operands_of(expression)
    found = wt.message(
        graph_of(edges), expression, reduce=("sum", "max"), transpose=True, **operands
    )
    source, target = edges
    terms = {n: t[{"b": source, "x": target}[n]] if n in "bx" else t for n, t in operands.items()}
    terms = {n: t[:, None] if t.dim() == 1 else t for n, t in terms.items()}
    message = eval(expression, {**FUNCTIONS, **terms})
    into = source[:, None].expand_as(message)
    zeros = message.new_zeros(COLS, 6)
    most = zeros.scatter_reduce(0, into, message, "amax", include_self=False)
    compare(found, [zeros.scatter_add(0, into, message), most], operands)


def test_only_needed_gradients():
    """Nothing is kept of operands that no gradient reads."""
    graph = graph_of(edges_of())
    b, e = draw(COLS, 6), draw(EDGES, 6, seed=2, grad=False)
    c = wt.message(graph, "b+e", b=b, e=e)
    assert not any(isinstance(t, torch.Tensor) for t in c.grad_fn.saved_tensors)
    c.sum().backward()
    assert e.grad is None
    torch.testing.assert_close(b.grad.sum(), torch.tensor(6.0 * EDGES, dtype=b.dtype))


def test_strided_operands_and_upstream():
    edges = edges_of()
    wide = draw(COLS, 12)
    x = draw(6, ROWS, seed=2)
    found = wt.message(graph_of(edges), "x*b", b=wide[:, 3:9], x=x.t())
    wanted = expected(edges, "x*b", {"b": wide[:, 3:9], "x": x.t()})
    torch.testing.assert_close(found, wanted)
    upstream = draw(6, ROWS, seed=3, grad=False).t()
    torch.testing.assert_close(
        torch.autograd.grad(found, (wide, x), upstream),
        torch.autograd.grad(wanted, (wide, x), upstream),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_types(dtype, device):
    edges = edges_of().to(device)
    operands = operands_of("sigmoid(x+k)*b*a", dtype=dtype, device=device)
    operands["a"] = draw(EDGES, seed=8, dtype=torch.float32, device=device)
    wide = {n: t.detach().double().requires_grad_() for n, t in operands.items()}
    found = wt.message(graph_of(edges, device), "sigmoid(x+k)*b*a", **operands)
    wanted = expected(edges, "sigmoid(x+k)*b*a", wide)
    assert found.dtype == dtype
    tolerance = {torch.float32: 1e-5, torch.float16: 2e-2, torch.bfloat16: 0.15}[dtype]
    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)
    ours = torch.autograd.grad(found.double().sum(), list(operands.values()))
    theirs = torch.autograd.grad(wanted.sum(), list(wide.values()))
    for name, got, want in zip(operands, ours, theirs, strict=True):
        assert got.dtype == operands[name].dtype
        torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=2 * tolerance)


def test_autocast():
    graph = graph_of(edges_of())
    b = draw(COLS, 6, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        c = wt.message(graph, "b", b=b)
    assert c.dtype == torch.bfloat16
    c.sum().backward()
    assert b.grad.dtype == torch.float32


def test_gradcheck():
    graph = graph_of(edges_of())
    operands = operands_of("tanh(x+k)*a*b*e", (4,), {"x": (), "e": (1,)})
    names = list(operands)
    assert torch.autograd.gradcheck(
        lambda *t: wt.message(graph, "tanh(x+k)*a*b*e", **dict(zip(names, t, strict=True))),
        list(operands.values()),
    )


def test_graphs_without_edges_or_rows():
    none = torch.zeros(2, 0, dtype=torch.long)
    for rows, cols in ((3, 2), (0, 2), (0, 0)):
        graph = Graph.from_edge_index(none, rows=rows, cols=cols)
        operands = {"b": draw(cols, 4), "x": draw(rows, 4), "e": draw(0, 4)}
        c = wt.message(graph, "x*b+e", reduce="max", **operands)
        torch.testing.assert_close(c, torch.zeros(rows, 4, dtype=c.dtype))
        for got, t in zip(
            torch.autograd.grad(c.sum(), list(operands.values())), operands.values(), strict=True
        ):
            torch.testing.assert_close(got, torch.zeros_like(t))
        recorded = wt.message(graph, "x*b+e", reduce="max", **operands)
        (got,) = torch.autograd.grad(recorded.sum(), operands["b"], create_graph=True)
        torch.testing.assert_close(got, torch.zeros_like(got))


@pytest.mark.parametrize(
    "expression, reduce, most",
    [
        ("relu(b+e)", ("sum",), (21, 33, 45)),
        ("sigmoid(x+k)*b", ("sum",), (20, 32, 60)),
        ("b", ("mean", "min", "max", "std"), (26, 37, 81)),
    ],
)
def test_python_calls_of_a_step(expression, reduce, most):
    """Of a call without gradients, with gradients, and of the backward pass: host time."""
    graph, operands = graph_of(edges_of()), operands_of(expression)

    def call():
        return wt.message(graph, expression, reduce=reduce, **operands)

    torch.autograd.backward(call(), [torch.ones(ROWS, 6).double() for _ in reduce])
    with torch.no_grad():
        call()
        plain, _ = count_calls(call)
    forward, results = count_calls(call)
    upstream = [torch.ones_like(t) for t in results]
    backward, _ = count_calls(lambda: torch.autograd.backward(results, upstream))
    assert all(
        calls <= limit for calls, limit in zip((plain, forward, backward), most, strict=True)
    )


def test_edges_in_order_are_not_copied():
    kept, unsorted = graph_of(edges_of("sorted")), graph_of(edges_of())
    assert kept.edge_order() is None and kept.edge_places() is None
    order, places = unsorted.edge_order(), unsorted.edge_places()
    assert torch.equal(order[places], torch.arange(EDGES, dtype=order.dtype))
    assert unsorted.edge_places() is places
    once = graph_of(edges_of("sorted"), once=True)
    assert once.edge_order() is not None  # nothing is compared, which would wait for a GPU


@NEEDS_GPU
@pytest.mark.parametrize("layer", LAYERS)
def test_captured_in_a_cuda_graph(layer):
    expression, edges = LAYERS[layer], edges_of().cuda()
    operands = operands_of(expression, device="cuda")
    graph = graph_of(edges, "cuda")

    def step():
        c = wt.message(graph, expression, reduce=("sum", "max"), **operands)
        return *c, *torch.autograd.grad(sum(t.sum() for t in c), list(operands.values()))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            wanted = step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        found = step()
    captured.replay()
    torch.testing.assert_close(found, wanted)


E32 = draw(EDGES, 6, dtype=torch.float32, grad=False)


@pytest.mark.parametrize(
    "expression, options, error, match",
    [
        ("relu(b+e)", {}, ValueError, "operand e is missing"),
        ("b*q", {}, ValueError, "operand q of 'b.q' is unknown"),
        ("b", {"k": draw(COLS, 6)}, ValueError, "operand k is given"),
        ("b", {"q": draw(COLS, 6)}, ValueError, "operand q is given"),
        ("b*q", {"q": draw(COLS, 6)}, ValueError, "operand q has no place"),
        ("b+e", {"e": draw(EDGES, 5)}, ValueError, r"operand e: the shape is \(160, 5\)"),
        ("b+e", {"e": draw(EDGES - 1, 6)}, ValueError, "operand e: the shape .* 160 lines"),
        ("b*x", {"x": draw(COLS, 6)}, ValueError, "operand x: the shape .* 30 lines"),
        ("b*a", {"a": draw(EDGES, 5)}, ValueError, "heads: 5 does not divide"),
        ("b*a", {"a": draw(EDGES, 2, 3)}, ValueError, "operand a"),
        ("b+e", {"e": E32}, TypeError, "operand e is torch.float32"),
        ("b+e", {"e": E32.int()}, TypeError, "operand e: torch.int32"),
        ("b+e", {"e": [1.0]}, TypeError, "operand e: a tensor is needed"),
        ("b*q", {"operands": {"q": ("node", E32)}}, ValueError, "operand q: "),
        ("b*q", {"operands": {"q": ("row", E32, 1)}}, ValueError, "operand q: .place, tensor. is"),
        ("a*b", {"a": 2.0}, TypeError, "operand a: a tensor of edges"),
        ("a*b", {"operands": {"a": ("row", draw(ROWS))}}, ValueError, "operand a is of edges"),
        ("b*s", {"s": "two"}, TypeError, "operand s: "),
        ("b", {"heads": 4}, ValueError, "heads: 4"),
        ("b", {"reduce": "median"}, ValueError, "reduce: 'median' is unknown"),
        ("b", {"reduce": ()}, ValueError, "at least one reduction"),
        ("b;sum=b", {}, ValueError, "no single expression"),
        ("frobnicate(b)", {}, ValueError, "frobnicate"),
        ("b*(", {}, ValueError, "column|expression"),
        ("b*w", {"operands": {"w": ("all", draw(6))}}, ValueError, "operand w of all edges"),
        ("b/degree", {"transpose": True}, ValueError, "degree"),
        ("b", {"transpose": "no"}, TypeError, "transpose: 'no' is no truth value"),
        ("b", {"heads": 2.0}, TypeError, "heads: a whole number is needed, not 2.0"),
        ("b\0garbage((", {}, ValueError, "has a NUL byte"),
        ("b", {"reduce": "softmax", "score": "k\0", "k": draw(COLS, 6)}, ValueError, "the score"),
    ],
)
def test_bad_input(expression, options, error, match):
    graph = graph_of(edges_of())
    with pytest.raises(error, match=match) as caught:
        wt.message(graph, expression, b=draw(COLS, 6), **options)
    assert "\n" not in str(caught.value)


def test_bad_graphs():
    with pytest.raises(TypeError, match="graph: a Graph is needed, not NoneType"):
        wt.message(None, "b", b=draw(COLS, 6))


@pytest.mark.parametrize("reduce", ["edge", "edge_sum"])
def test_edges_that_are_left_out_are_zero(reduce):
    """A graph that is used once is not checked."""
    b = torch.ones(2, 512)
    edge_index = torch.tensor([[0, 1] * 501, [0, 1] * 500 + [5, 5]])
    graph = wt.Graph.from_edge_index(edge_index, rows=2, cols=2, once=True)
    torch.use_deterministic_algorithms(True)  # then PyTorch fills uninitialised memory with NaN
    try:
        found = wt.message(graph, "b", b=b, reduce=reduce)
    finally:
        torch.use_deterministic_algorithms(False)
    wanted = torch.ones_like(found) * (1 if reduce == "edge" else 512)
    wanted[1000:] = 0
    torch.testing.assert_close(found, wanted)


# ---- second derivatives --------------------------------------------------------------------------


def second_of(out, operands):
    """First and second derivatives, the latter of the sine of the former."""
    weight = torch.arange(out.numel(), dtype=torch.float64).cos().view_as(out)
    leaves = list(operands.values())
    first = torch.autograd.grad((out * weight).sum(), leaves, create_graph=True)
    total = sum(gradient.sin().sum() for gradient in first)
    return [*first, *torch.autograd.grad(total, leaves, allow_unused=True)]


@pytest.mark.parametrize("order", ["sorted", "unsorted"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "var", "std", "edge"])
@pytest.mark.parametrize("expression", LAYERS.values())
def test_second_derivatives(expression, reduce, order):
    edge_index = edges_of(order)
    graph = graph_of(edge_index)
    operands = operands_of(expression)
    wanted = second_of(expected(edge_index, expression, operands, reduce=reduce), operands)
    for _ in range(2):
        out = wt.message(graph, expression, reduce=reduce, **operands)
        check_second(second_of(out, operands), wanted)


def test_second_derivatives_of_products():
    """PyTorch has none where two messages of a row are 0."""
    edge_index = edges_of()
    operands = operands_of("x*b+e")
    wanted = second_of(expected(edge_index, "x*b+e", operands, reduce="prod"), operands)
    out = wt.message(graph_of(edge_index), "x*b+e", reduce="prod", **operands)
    check_second(second_of(out, operands), wanted)
    zeros = {name: torch.zeros_like(t).requires_grad_() for name, t in operands.items()}
    with pytest.raises(RuntimeError, match="unsupported for src when >1 zeros"):
        second_of(wt.message(graph_of(edge_index), "x*b+e", reduce="prod", **zeros), zeros)


def check_second(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        if got is None or want is None:
            assert not torch.any(got if want is None else want)
            continue
        torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("reduce", ["sum", "edge_sum"])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("once", [False, True])
def test_second_derivatives_of_heads(reduce, transpose, once):
    """Numbers of edges, heads and features; sums over edges of columns."""
    edge_index = edges_of()
    operands = operands_of("tanh(x+k)*a*b", (2, 3), {"a": (2,), "k": (2, 1), "x": (1,)})
    swapped = edge_index.flip(0) if transpose and reduce == "sum" else edge_index
    places = "tanh(k+x)*a*b"
    source, target = edge_index
    gathered = (
        torch.tanh(operands["x"][target].unsqueeze(-1) + operands["k"][source])
        * operands["a"].unsqueeze(-1)
        * operands["b"][source]
    )
    if reduce == "sum":
        lines = COLS if transpose else ROWS
        want = gathered.new_zeros(lines, 2, 3).index_add(0, swapped[1], gathered)
    else:
        want = gathered.sum(-1)
    graph = graph_of(edge_index, once=once)
    out = wt.message(graph, places, reduce=reduce, transpose=transpose, **operands)
    check_second(second_of(out, operands), second_of(want, operands))


@pytest.mark.parametrize(
    "expression, reference",
    [
        ("b>0?b*x:expm1(b*100)", lambda b, x: torch.where(b > 0, b * x, torch.expm1(b * 100))),
        ("(b*90>20?b*90:log1p(exp(90*b)))*x", None),
        ("-b/(1.5e0+x*x)-.5*fabs(b)", lambda b, x: -b / (1.5 + x * x) - 0.5 * b.abs()),
        (
            "max(b,x)*pow(x*x+1,1.5)-leaky_relu(b-x,0.2)",
            lambda b, x: (
                torch.fmax(b, x) * (x * x + 1) ** 1.5 - torch.nn.functional.leaky_relu(b - x, 0.2)
            ),
        ),
        ("(b<x&&!(x==0)||b!=b?b:x)*b*s*degree", None),
    ],
)
def test_second_derivatives_of_expressions(expression, reference):
    edge_index = edges_of()
    operands = {"b": draw(COLS, 4), "x": draw(ROWS, 4, seed=2)}
    degree = torch.bincount(edge_index[1], minlength=ROWS)[edge_index[1]].double()[:, None]
    reference = (
        reference
        or {
            "(b<": lambda b, x: torch.where(b < x, b, x) * b * 0.5 * degree,
            "(b*": lambda b, x: torch.nn.functional.softplus(90 * b) * x,
        }[expression[:3]]
    )
    gathered = operands["b"][edge_index[0]], operands["x"][edge_index[1]]
    made = reference(*gathered)
    want = made.new_zeros(ROWS, 4).index_add(0, edge_index[1], made)
    numbers = {"s": 0.5} if "*s*" in expression else {}
    out = wt.message(graph_of(edge_index), expression, **operands, **numbers)
    check_second(second_of(out, operands), second_of(want, operands))


def test_second_derivatives_keep_no_copy_of_edges():
    """A node that waits for a backward pass keeps what is in CSR order only."""
    edge_index = edges_of()
    e = draw(EDGES, 6)
    made = e * 2
    wt.message(graph_of(edge_index), "b*e", b=draw(COLS, 6), e=made)
    kept = weakref.ref(made)
    out = wt.message(graph_of(edge_index), "b*e", b=draw(COLS, 6), e=made)
    del made
    assert kept() is None
    (gradient,) = torch.autograd.grad(out.sum(), e)
    assert gradient.shape == e.shape
