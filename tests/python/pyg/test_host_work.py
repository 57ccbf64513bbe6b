"""What the host does for a step of a small graph: operations, kernels and calls of Python."""

import dataclasses
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.nn import SAGEConv

import warploom.pyg
import warploom.torch as wt
from bench.pytorch.layer_cases import CASES, Shape
from layer_cases import graph
from warploom.pyg import _ghosts
from warploom.torch._plan import Steps

NODES = 37
SHAPE = Shape(graph(NODES), NODES, 8, 8, 4, 16, torch.float32)

# Functions of the package that a call of a layer enters at most, with an edge_index that is new.
CALLS = {
    "GAT": 84,
    "GATv2": 79,
    "GCN": 59,
    "GIN": 56,
    "Graph": 54,
    "SAGE": 54,
    "Transformer": 77,
}


# The same of a step of an operation of warploom.torch.
OF_OPERATIONS = {"spmm": 15, "gat": 37, "gatv2": 34, "attention": 36}

# The same of a step of SAGEConv in code of inductor.
OF_COMPILED = 16

HALF = {"f16": torch.float16, "bf16": torch.bfloat16, "autocast": torch.float32}
FAIL_IN_PYG = (("autocast", "MF"), ("bf16", "ClusterGCN"), ("f16", "ClusterGCN"))


class Operations(TorchDispatchMode):
    """Counts operations of torch that work on memory."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.__name__.partition(".")[0]
        returns = function._schema.returns
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        is_free = is_view or name in ("empty", "empty_like", "empty_strided", "_unsafe_view")
        is_free = is_free or name.startswith("new_empty") or function.namespace == "warploom"
        self.count += not is_free
        return function(*args, **(kwargs or {}))


class Casts(TorchDispatchMode):
    """Counts the numbers of features, of nodes or edges, that are converted to another type."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        is_cast = function is torch.ops.aten._to_copy.default and made.dtype != args[0].dtype
        if is_cast and made.numel() >= NODES * SHAPE.inputs:
            self.count += made.numel()
        return made


def count(mode, step):
    with mode() as found:
        step()
    return found.count


def calls(step):
    """Functions of the package that a step enters, and products that it enqueues."""
    of_package = of_library = 0
    folder = warploom.__path__[0]

    def see(frame, event, argument):
        nonlocal of_package, of_library
        if event == "call":
            of_package += frame.f_code.co_filename.startswith(folder)
            if frame.f_code is Steps.run.__code__:
                of_library += len(frame.f_locals["self"]._plans) - 1
        elif event == "c_call":
            of_library += getattr(argument, "__name__", "").startswith("warploom_")

    sys.setprofile(see)
    try:
        step()
    finally:
        sys.setprofile(None)
    return of_package, of_library


def steps(name, kind="f32"):
    """A step in PyG, and one on warploom."""
    torch.manual_seed(1)
    shape = dataclasses.replace(SHAPE, dtype=HALF.get(kind, torch.float32))
    layer = CASES[name].make(shape).to(shape.dtype)
    inputs = CASES[name].inputs(shape)
    for x in ("x", "x_0"):
        if x in inputs:
            inputs[x].requires_grad_()
    leaves = [leaf for leaf in (*inputs.values(), *layer.parameters()) if leaf.requires_grad]

    def in_pyg():
        with torch.autocast("cpu", torch.bfloat16, enabled=kind == "autocast"):
            out = layer(edge_index=shape.edge_index, **inputs)
        torch.autograd.grad(out, leaves, torch.ones_like(out), allow_unused=True)

    def own():
        with warploom.pyg.accelerate():
            in_pyg()

    for _ in range(3):
        own()
    return in_pyg, own


@pytest.mark.parametrize("name", list(CASES))
def test_a_step_has_no_more_operations_than_pyg(name):
    in_pyg, own = steps(name)
    launches = calls(own)[1]
    assert launches > 0
    assert count(Operations, own) + launches <= count(Operations, in_pyg)


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_new_edges(name):
    """Of the layers that are always served, with other shapes in each step, where padded batches
    have wrapped functions of PyG for the process."""
    _ghosts.install()
    torch.manual_seed(1)
    layer, counts = CASES[name].make(SHAPE).float(), []
    with warploom.pyg.accelerate():
        for nodes in (NODES, NODES + 1, NODES + 2, NODES + 3):
            x, edge_index = torch.rand(nodes, 8, requires_grad=True), graph(nodes, 20 * nodes)
            counts.append(calls(lambda: layer(x, edge_index))[0])  # noqa: B023
    assert counts[2] == counts[3] <= CALLS[name]


@pytest.mark.parametrize("kind", HALF)
@pytest.mark.parametrize("name", list(CASES))
def test_a_step_converts_no_more_features_than_pyg(name, kind):
    if (kind, name) in FAIL_IN_PYG:
        pytest.skip("an error in PyG")
    in_pyg, own = steps(name, kind)
    assert count(Casts, own) <= count(Casts, in_pyg)


@pytest.mark.parametrize("name", OF_OPERATIONS)
def test_calls_of_an_operation(name):
    made = wt.Graph.from_edge_index(graph(NODES), rows=NODES, cols=NODES)
    x, y, z = (torch.rand(NODES, 2, 4).requires_grad_() for _ in range(3))
    left, right = (torch.rand(NODES, 2).requires_grad_() for _ in range(2))
    att = torch.rand(2, 4).requires_grad_()
    run, operands = {
        "spmm": (wt.spmm, (x,)),
        "gat": (wt.gat, (x, left, right)),
        "gatv2": (wt.gatv2, (x, y, att)),
        "attention": (wt.attention, (x, y, z)),
    }[name]

    def step():
        out = run(made, *operands)
        torch.autograd.grad(out, operands, torch.ones_like(out))

    step()
    assert calls(step)[0] <= OF_OPERATIONS[name]


def test_calls_of_a_compiled_step():
    """Code of inductor calls the functions of ops, without the dispatcher."""
    torch.compiler.reset()
    layer = warploom.pyg.convert(SAGEConv(8, 8))
    compiled = torch.compile(layer, fullgraph=True)
    edges, x = graph(NODES), torch.rand(NODES, 8, requires_grad=True)
    dispatched = 0

    def step():
        compiled(x, edges).sum().backward()

    def see(frame, event, argument):
        nonlocal dispatched
        dispatched += event == "call" and frame.f_code is torch._ops.OpOverload.__call__.__code__

    for _ in range(3):
        step()
    of_package, of_library = calls(step)
    assert of_package <= OF_COMPILED and of_library == 4  # two compare the content of edges
    sys.setprofile(see)
    try:
        step()
    finally:
        sys.setprofile(None)
    assert dispatched == 0
