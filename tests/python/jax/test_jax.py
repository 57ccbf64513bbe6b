"""warploom.jax under jit, grad and vmap, compared with float64 on the host."""

import os

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

from warploom.jax import Graph, edge_softmax, gat, message, sddmm, spmm  # noqa: E402

ROWS, COLS, EDGES = 30, 20, 120
RNG = np.random.default_rng(7)
SENDERS = RNG.integers(0, COLS, EDGES).astype(np.int32)
RECEIVERS = RNG.integers(0, ROWS - 3, EDGES).astype(np.int32)  # the last rows are empty
GRAPH = Graph.from_edges(SENDERS, RECEIVERS, ROWS, COLS)
COLUMN = np.asarray(GRAPH.colind)
ROW = np.repeat(np.arange(ROWS), np.diff(np.asarray(GRAPH.rowptr)))
IS_FULL = "WARPLOOM_FULL" in os.environ  # what is compiled takes most of the time
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 1e-2, "bfloat16": 6e-2}


@pytest.fixture(autouse=True)
def _wide():
    with jax.enable_x64(True):
        yield


def draw(*shape, dtype="float64"):
    return jnp.asarray(RNG.standard_normal(shape), dtype)


def close(got, expected, dtype="float64"):
    expected = np.asarray(expected, np.float64)
    assert got.shape == expected.shape
    scale = 1 + np.abs(expected).max(initial=0)
    assert np.abs(np.asarray(got, np.float64) - expected).max(initial=0) <= TOLERANCE[dtype] * scale


def reduce_edges(terms, reduce="sum"):
    """The oracle: plain JAX in float64."""
    if reduce in ("max", "min"):
        made = getattr(jax.ops, "segment_" + reduce)(terms, ROW, ROWS)
        return jnp.where(jnp.isfinite(made), made, 0)
    made = jax.ops.segment_sum(terms, ROW, ROWS)
    degree = np.maximum(np.bincount(ROW, minlength=ROWS), 1)
    return made / degree.reshape(-1, *[1] * (made.ndim - 1)) if reduce == "mean" else made


def product(b, values, reduce="sum"):
    terms = b[COLUMN]
    if values is not None:
        terms = terms * values.reshape(EDGES, *values.shape[1:], *[1] * (b.ndim - values.ndim))
    return reduce_edges(terms, reduce)


def softmax(scores):
    powers = jnp.exp(scores - reduce_edges(scores, "max")[ROW])
    return powers / reduce_edges(powers)[ROW]


SHAPES = [((), None), ((5,), None), ((5,), ()), ((2, 3), None), ((2, 3), ()), ((2, 3), (2,))]


PRODUCTS = [(*shape, r) for shape in SHAPES for r in ("sum", "max")]
PRODUCTS += [((4,), (), "mean"), ((4,), None, "min")]


@pytest.mark.parametrize(("line", "heads", "reduce"), PRODUCTS[:: 1 if IS_FULL else 3])
def test_products_and_gradients(line, heads, reduce):
    b, ct = draw(COLS, *line), draw(ROWS, *line)
    values = None if heads is None else draw(EDGES, *heads)
    given = (b,) if values is None else (b, values)

    def loss(function, *given):
        return (ct * jnp.tanh(function(*given))).sum()

    def ours(b, values=None):
        return spmm(GRAPH, b, values, reduce=reduce)

    def theirs(b, values=None):
        return product(b, values, reduce)

    close(ours(*given), theirs(*given))
    slopes = jax.jit(jax.value_and_grad(loss, tuple(range(1, 1 + len(given)))), static_argnums=0)
    for got, expected in zip(*(jax.tree.leaves(slopes(f, *given)) for f in (ours, theirs))):
        close(got, expected)


@pytest.mark.parametrize("dtype", ["bfloat16", *(["float16", "float32"] if IS_FULL else [])])
def test_types(dtype):
    b, values = draw(COLS, 8, dtype=dtype), draw(EDGES, dtype="float32")
    wide = np.asarray(b, np.float64), np.asarray(values, np.float64)
    got, pull = jax.vjp(lambda b, v: spmm(GRAPH, b, v), b, values)
    expected, reference = jax.vjp(lambda b, v: product(b, v), *map(jnp.asarray, wide))
    close(got, expected, dtype)
    ct = draw(ROWS, 8, dtype=dtype)
    for one, like, is_of in zip(pull(ct), reference(ct.astype("float64")), (b, values)):
        assert one.dtype == is_of.dtype
        close(one, like, dtype)


@pytest.mark.parametrize("values", [None, (), (2,)] if IS_FULL else [(2,)])
def test_transpose_and_both_modes_and_second_derivatives(values):
    x = draw(ROWS, 2, 3)
    given = (x,) if values is None else (x, draw(EDGES, *values))

    def ours(x, values=None):
        return spmm(GRAPH, x, values, transpose=True)

    def theirs(x, values=None):
        terms = x[ROW]
        if values is not None:
            terms = terms * values.reshape(EDGES, *values.shape[1:], *[1] * (3 - values.ndim))
        return jax.ops.segment_sum(terms, COLUMN, COLS)

    along = tuple(draw(*one.shape) for one in given)

    def second(function):
        slope = jax.grad(lambda *given: jnp.sin(function(*given)).sum(), tuple(range(len(given))))
        return jax.jit(
            lambda *given: (jax.jvp(function, given, along), jax.jvp(slope, given, along))
        )

    for got, expected in zip(*map(jax.tree.leaves, (second(ours)(*given), second(theirs)(*given)))):
        close(got, expected)


@pytest.mark.parametrize("line", [(4,), (2, 3)])
def test_sddmm(line):
    x, y = draw(ROWS, *line), draw(COLS, *line)

    def theirs(x, y):
        return (x[ROW] * y[COLUMN]).sum(-1)

    ours = jax.jit(lambda x, y: sddmm(GRAPH, x, y))
    close(ours(x, y), theirs(x, y))
    slopes = (jax.grad(lambda *g, f=f: jnp.sin(f(*g)).sum(), (0, 1)) for f in (ours, theirs))
    for got, expected in zip(*(slope(x, y) for slope in slopes)):
        close(got, expected)


@pytest.mark.parametrize("heads", [(), (1,), (3,)] if IS_FULL else [(3,)])
def test_softmax(heads):
    scores, ct = draw(EDGES, *heads), draw(EDGES, *heads)
    got, pull = jax.vjp(jax.jit(lambda s: edge_softmax(GRAPH, s)), scores)
    expected, reference = jax.vjp(softmax, scores)
    close(got, expected)
    close(pull(ct)[0], reference(ct)[0])


def attend(left, right, b):
    scores = left[ROW] + right[COLUMN]
    return reduce_edges(softmax(jnp.where(scores > 0, scores, 0.2 * scores))[..., None] * b[COLUMN])


GAT = "left:row:heads; right:column:heads; score=leaky_relu(left+right,0.2); softmax=b"
MESSAGES = {
    "gat": (GAT, attend, {"left": (ROWS, 2), "right": (COLS, 2), "b": (COLS, 2, 3)}, 2),
    "edges": (
        "sum=tanh(b+e)*x",
        lambda b, e, x: reduce_edges(jnp.tanh(b[COLUMN] + e) * x[ROW]),
        {"b": (COLS, 4), "e": (EDGES, 4), "x": (ROWS, 4)},
        1,
    ),
    "values": (
        "mean=a*b",
        lambda a, b: reduce_edges(a[:, None] * b[COLUMN], "mean"),
        {"a": (EDGES,), "b": (COLS, 4)},
        1,
    ),
    "one number": (
        "w:edge:1; sum=w*b",
        lambda w, b: reduce_edges(w * b[COLUMN]),
        {"w": (EDGES, 1), "b": (COLS, 4)},
        1,
    ),
    "maximum": (
        "max=b*e",
        lambda b, e: reduce_edges(b[COLUMN] * e, "max"),
        {"b": (COLS, 4), "e": (EDGES, 4)},
        1,
    ),
    "of edges": (
        "edge=x*b",
        lambda b, x: b[COLUMN] * x[ROW],
        {"b": (COLS, 4), "x": (ROWS, 4)},
        1,
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name):
    text, theirs, shapes, heads = MESSAGES[name]
    operands = {key: draw(*shape) for key, shape in shapes.items()}
    ours = jax.jit(lambda operands: message(GRAPH, text, heads=heads, **operands))
    got, pull = jax.vjp(ours, operands)
    expected, reference = jax.vjp(lambda operands: theirs(**operands), operands)
    close(got, expected)
    ct = draw(*got.shape)
    for key, gradient in reference(ct)[0].items():
        close(pull(ct)[0][key], gradient)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_gat(dtype):
    b, left, right = draw(COLS, 2, 4, dtype=dtype), draw(ROWS, 2), draw(COLS, 2)
    left, right = (
        one.astype("float64" if dtype == "float64" else "float32") for one in (left, right)
    )
    ours = jax.jit(lambda *given: gat(GRAPH, given[2], *given[:2]))
    got, pull = jax.vjp(ours, left, right, b)
    expected, reference = jax.vjp(attend, *(one.astype("float64") for one in (left, right, b)))
    close(got, expected, dtype)
    ct = draw(ROWS, 2, 4, dtype=dtype)
    for one, like in zip(pull(ct), reference(ct.astype("float64"))):
        close(one, like, dtype)


def test_several_results_and_constants():
    b = draw(COLS, 4)
    total, most = message(GRAPH, "c:all:1; sum=c*b; max=b", b=b, c=0.5)
    close(total, product(b / 2, None))
    close(most, product(b, None, "max"))


CALLS = {
    "b": (lambda b, v: spmm(GRAPH, b, v), lambda b, v: product(b, v), (COLS, 2, 3), (EDGES, 2)),
    "max": (
        lambda b, v: spmm(GRAPH, b, v, reduce="max"),
        lambda b, v: product(b, v, "max"),
        (COLS, 3),
        (EDGES,),
    ),
    "sddmm": (
        lambda x, y: sddmm(GRAPH, x, y),
        lambda x, y: (x[ROW] * y[COLUMN]).sum(-1),
        (ROWS, 2, 3),
        (COLS, 2, 3),
    ),
    "message": (
        lambda b, e: message(GRAPH, "sum=b*e", b=b, e=e),
        lambda b, e: product(b, None) * 0 + reduce_edges(b[COLUMN] * e),
        (COLS, 3),
        (EDGES, 3),
    ),
    "gat": (
        lambda b, left: gat(GRAPH, b, left, b[:, :, 0]),
        lambda b, left: attend(left, b[:, :, 0], b),
        (COLS, 2, 3),
        (ROWS, 2),
    ),
    "one number": (
        lambda b, w: message(GRAPH, "w:edge:1; sum=w*b", b=b, w=w),
        lambda b, w: reduce_edges(b[COLUMN] * w),
        (COLS, 3),
        (EDGES, 1),
    ),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("axes", [(1, 1), *([(0, None), (None, 0)] if IS_FULL else [])])
def test_vmap(name, axes):
    """A batch anywhere, of values, gradients and jitted functions."""
    ours, theirs, *shapes = CALLS[name]
    given = [
        draw(*shape) if axis is None else jnp.moveaxis(draw(4, *shape), 0, axis)
        for axis, shape in zip(axes, shapes)
    ]
    close(jax.vmap(ours, axes)(*given), jax.vmap(theirs, axes)(*given))

    def slope(function):
        return jax.jit(jax.vmap(jax.grad(lambda *g: jnp.sin(function(*g)).sum(), (0, 1)), axes))

    for got, expected in zip(slope(ours)(*given), slope(theirs)(*given)):
        close(got, expected)


def test_a_step_compiles_once_for_graphs_of_one_size():
    traces = []

    @jax.jit
    def step(graph, b):
        traces.append(graph.nnz)
        return jax.grad(lambda b: spmm(graph, b).sum())(b)

    b = draw(COLS, 4)
    for shift in range(3):
        senders = (SENDERS + shift) % COLS
        graph = Graph.from_edges(senders, RECEIVERS, ROWS, COLS)
        expected = np.bincount(senders, minlength=COLS)[:, None] * np.ones(4)
        close(step(graph, b), expected)
    assert traces == [EDGES]


def test_graphs_are_made_inside_of_jit():
    @jax.jit
    def product_of(senders, receivers, b):
        return spmm(Graph.from_edges(senders, receivers, ROWS, COLS), b)

    b = draw(COLS, 4)
    close(product_of(SENDERS, RECEIVERS, b), product(b, None))
    outside = np.where(np.arange(EDGES) % 3 == 0, ROWS + 5, RECEIVERS)
    kept = np.arange(EDGES) % 3 != 0
    expected = jax.ops.segment_sum(b[SENDERS[kept]], RECEIVERS[kept], ROWS)
    close(product_of(SENDERS, outside, b), expected)
    close(product_of(np.where(kept, SENDERS, -1), RECEIVERS, b), expected)


def test_order_of_edges():
    e = draw(EDGES, 2)
    close(GRAPH.to_list_order(GRAPH.to_csr_order(e)), e)
    close(GRAPH.to_csr_order(e), np.asarray(e)[np.argsort(RECEIVERS, kind="stable")])
    again = Graph.from_csr(GRAPH.rowptr, GRAPH.colind, COLS)
    for one, other in zip(again.arrays, GRAPH.arrays):
        assert (one == other).all()


@pytest.mark.parametrize(("rows", "cols", "edges", "n"), [(3, 2, 0, 4), (0, 0, 0, 4), (3, 2, 4, 0)])
def test_empty(rows, cols, edges, n):
    graph = Graph.from_edges(*np.zeros((2, edges), np.int32), rows, cols)
    b = draw(cols, n)
    for reduce in ("sum", "max"):
        got, pull = jax.vjp(lambda b, r=reduce: spmm(graph, b, reduce=r), b)
        close(got, np.zeros((rows, n)))
        close(pull(got)[0], np.zeros((cols, n)))
    close(sddmm(graph, draw(rows, n), b), np.zeros(edges))
    assert edge_softmax(graph, draw(edges)).shape == (edges,)
    close(message(graph, "sum=b", b=b), np.zeros((rows, n)))


B = np.zeros((COLS, 4), np.float32)
WRONG = [
    (TypeError, "graph: is a list", lambda: spmm([], B)),
    (TypeError, "b: has type int32", lambda: spmm(GRAPH, B.astype(np.int32))),
    (ValueError, "b: has shape", lambda: spmm(GRAPH, B[1:])),
    (ValueError, "reduce: is 'prod'", lambda: spmm(GRAPH, B, reduce="prod")),
    (ValueError, "transpose: is of sums", lambda: spmm(GRAPH, B, reduce="max", transpose=True)),
    (ValueError, "values: has shape", lambda: spmm(GRAPH, B, np.zeros(3, np.float32))),
    (TypeError, "values: has type", lambda: spmm(GRAPH, B, np.zeros(EDGES))),
    (
        TypeError,
        "values: has type bfloat16 and b float16",
        lambda: spmm(GRAPH, B.astype(np.float16), jnp.zeros(EDGES, jnp.bfloat16)),
    ),
    (ValueError, "values: 3 heads", lambda: spmm(GRAPH, B, np.zeros((EDGES, 3), np.float32))),
    (TypeError, "y: has type", lambda: sddmm(GRAPH, np.zeros((ROWS, 4)), B)),
    (ValueError, "y: has lines", lambda: sddmm(GRAPH, np.zeros((ROWS, 5), np.float32), B)),
    (ValueError, "scores: has shape", lambda: edge_softmax(GRAPH, np.zeros(3))),
    (ValueError, "q: is no operand", lambda: message(GRAPH, "sum=b", b=B, q=B)),
    (ValueError, "b: is missing", lambda: message(GRAPH, "sum=b")),
    (ValueError, "column 3", lambda: message(GRAPH, "sum=b+", b=B)),
    (TypeError, "text: is a int", lambda: message(GRAPH, 3, b=B)),
    (ValueError, "heads: 3", lambda: message(GRAPH, "sum=b", b=B, heads=3)),
    (TypeError, "operands have", lambda: message(GRAPH, "sum=b*e", b=B, e=np.zeros((EDGES, 4)))),
    (ValueError, "no size is negative", lambda: Graph.from_edges(SENDERS, RECEIVERS, -1)),
    (ValueError, "receivers: 0 to", lambda: Graph.from_edges(SENDERS, RECEIVERS, 5, COLS)),
    (TypeError, "senders: is float", lambda: Graph.from_edges(SENDERS * 1.0, RECEIVERS, ROWS)),
    (ValueError, "rowptr: does not rise", lambda: Graph.from_csr([0, 2, 1], [0, 0], 3)),
    (TypeError, "interpreted as an integer", lambda: Graph.from_edges(SENDERS, RECEIVERS, 3.5)),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text", "call"), WRONG)
def test_errors_while_tracing(error, text, call):
    with pytest.raises(error, match=text):
        jax.jit(call)()


def test_the_handler_of_gpus_waits_for_their_plugin():
    """Under the name of the platform by which JAX's plugin takes over what was registered."""
    waiting = getattr(pytest.importorskip("jaxlib.xla_client"), "_custom_callback", None)
    if waiting is None or jax.default_backend() != "cpu":
        pytest.skip("JAX keeps no list of what was registered, or has a plugin")
    spmm(GRAPH, B)
    assert "warploom_gpu" in [entry[0] for entry in waiting["CUDA"]]


def test_a_call_without_a_plan():
    """As of a program that another process compiled."""
    spmm(GRAPH, B)
    target = "warploom_host" if jax.default_backend() == "cpu" else "warploom_gpu"
    call = jax.ffi.ffi_call(target, jax.ShapeDtypeStruct((1,), np.float32))
    with pytest.raises(Exception, match="this process made no plan for the call"):
        jax.block_until_ready(call(B, key=np.int64(1)))


def test_a_tracer_is_no_size():
    with pytest.raises(jax.errors.TracerIntegerConversionError):
        jax.jit(lambda rows: Graph.from_edges(SENDERS, RECEIVERS, rows))(ROWS)


def test_a_batch_of_graphs_is_refused():
    stacked = jax.tree.map(lambda one: jnp.stack([one, one]), GRAPH)
    with pytest.raises(ValueError, match="a batch of graphs is one graph"):
        jax.vmap(spmm, (0, None))(stacked, draw(COLS, 4))
