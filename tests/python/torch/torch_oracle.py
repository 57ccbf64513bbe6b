"""Random graphs, and products as dense torch computes them, edge by edge and with its autograd."""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from warploom.torch import Graph, edge_softmax, spmm

REDUCTIONS = ("sum", "mean", "max", "min", "prod")
MESSAGES = {
    "mul": lambda a, b: a * b,
    "copy_b": lambda a, b: b,
    "copy_a": lambda a, b: a + 0 * b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: b - a,
    "rsub": lambda a, b: a - b,
    "div": lambda a, b: b / a,
    "rdiv": lambda a, b: a / b,
}


def random_graph(rows, cols, nnz, device="cpu", index=torch.int32, once=False, seed=0):
    """Make a graph with skewed targets, so that rows are long or empty; sources may repeat."""
    generator = torch.Generator().manual_seed(seed)
    targets = (torch.rand(nnz, generator=generator) ** 2 * rows).long()
    sources = torch.randint(0, max(cols, 1), (nnz,), generator=generator)
    graph = Graph.from_edge_index(torch.stack([sources, targets]), rows=rows, cols=cols)
    return Graph(
        graph.rowptr.to(device, index), graph.colind.to(device, index), cols=cols, once=once
    )


def operand(*shape, device="cpu", dtype=torch.float64, grad=True):
    """Draw numbers from 0.5 to 1.5, by which it is safe to divide."""
    return (torch.rand(shape, dtype=torch.float64) + 0.5).to(device, dtype).requires_grad_(grad)


def product(graph, b, values=None, reduce="sum", message="mul"):
    """Compute spmm by gathering and scattering."""
    row, column = graph.row().long(), graph.colind.long()
    a = b.new_ones(graph.nnz) if values is None or message == "copy_b" else values.to(b.dtype)
    a = a.reshape(a.shape + (1,) * (b.dim() - a.dim()))
    edges = MESSAGES[message](a, b[column])
    into = row.reshape((-1,) + (1,) * (b.dim() - 1)).expand_as(edges)
    empty = b.new_full((graph.rows, *b.shape[1:]), 1.0 if reduce == "prod" else 0.0)
    if reduce == "mean":
        degrees = graph.degrees().clamp(1).reshape((-1,) + (1,) * (b.dim() - 1))
        return empty.scatter_reduce(0, into, edges, "sum") / degrees
    name = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    return empty.scatter_reduce(0, into, edges, name, include_self=name in ("sum", "prod"))


def gradients(c, x, *operands):
    """Return gradients by the operands that are not None; zeros if c does not depend on one."""
    wanted = [tensor for tensor in operands if tensor is not None]
    if not c.requires_grad:
        return [torch.zeros_like(tensor) for tensor in wanted]
    found = torch.autograd.grad(c, wanted, x, allow_unused=True)
    return [
        torch.zeros_like(tensor) if grad is None else grad
        for tensor, grad in zip(wanted, found, strict=True)
    ]


def close(found, expected, dtype=torch.float64):
    """Compare numbers near 1, within the rounding of a type."""
    tolerance = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 6e-3}.get(dtype, 5e-2)
    torch.testing.assert_close(
        found.double().cpu(), expected.double().cpu(), rtol=tolerance, atol=tolerance
    )


class Blocks(torch.utils.data.Dataset):
    """A data set with a graph for each index, as workers of a sampler make them."""

    def __len__(self):
        return 6

    def __getitem__(self, i):
        graph = random_graph(9, 7, 20 + i, once=True, seed=i)
        b = torch.full((7, 4), float(i + 1))
        return graph, b, spmm(graph, b), edge_softmax(graph, torch.ones(graph.nnz))


def count_calls(function):
    """Python functions that a call enters, and what it returns."""
    calls = 0

    def see(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(see)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return calls, result


class Noted(TorchDispatchMode):
    """Notes the registered ops that run, with their arguments."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace == "warploom":
            self.calls.append((function, args))
        return function(*args, **(kwargs or {}))


def check_ops(call, *operands):
    """opcheck of the registered ops of a call and of its backward pass."""
    leaves = [one for one in operands if one is not None and one.requires_grad]
    with Noted() as noted:
        made = call()
        results = (made,) if isinstance(made, torch.Tensor) else made
        if leaves:
            torch.autograd.grad(sum(result.sum() for result in results), leaves)
    names = [function.__name__ for function, _ in noted.calls]
    assert any("_backward" in name for name in names) == bool(leaves) and names
    for name, (function, arguments) in zip(names, noted.calls, strict=True):
        if "_backward" in name:
            arguments = torch.utils._pytree.tree_map_only(
                torch.Tensor, torch.Tensor.detach, arguments
            )
        torch.library.opcheck(function, arguments)
