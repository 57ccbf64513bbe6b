"""Graphs: constructors, copies, pickles, kept plans, and release of memory."""

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import weakref

import pytest
import torch

from torch_oracle import Blocks, close, operand, product, random_graph
from warploom.torch import Graph, edge_softmax, gat, gatv2, message, sddmm, spmm
from warploom.torch._state import TensorState


def dense(graph):
    values = graph.values if graph.values is not None else torch.ones(graph.nnz)
    a = torch.zeros(graph.rows, graph.cols, dtype=torch.float64, device=graph.device)
    where = graph.row().long(), graph.colind.long()
    return a.index_put(where, values.to(a), accumulate=True)


def test_from_edge_index(device):
    edges = torch.tensor([[3, 0, 3, 1, 1], [0, 2, 0, 1, 2]], device=device)
    values = torch.arange(5.0, device=device).requires_grad_()
    graph = Graph.from_edge_index(edges, values)
    assert (graph.rows, graph.cols, graph.nnz) == (4, 4, 5)
    assert graph.rowptr.tolist() == [0, 2, 3, 5, 5] and graph.rowptr.dtype == torch.int32
    assert torch.equal(edges[0][graph.perm].int(), graph.colind)
    assert torch.equal(edges[1][graph.perm].int(), graph.row())
    expected = torch.zeros(4, 4, dtype=torch.float64, device=device)
    expected.index_put_((edges[1], edges[0]), values.double().detach(), accumulate=True)
    close(dense(graph), expected)
    spmm(graph, torch.ones(4, 2, device=device)).sum().backward()
    assert values.grad.tolist() == [2.0] * 5
    wide = Graph.from_edge_index(edges, rows=10, cols=20)
    assert (wide.rows, wide.cols) == (10, 20)
    assert Graph.from_edge_index(edges, rows=3).cols == 4
    empty = Graph.from_edge_index(edges[:, :0])
    assert (empty.rows, empty.cols, empty.nnz) == (0, 0, 0)
    for wrong in ({"rows": 2}, {"cols": 3}):
        with pytest.raises(ValueError, match="edge_index: 2 of 5 edges are outside"):
            Graph.from_edge_index(edges, **{"rows": 4, "cols": 4, **wrong})
    with pytest.raises(ValueError, match="edge_index: the shape"):
        Graph.from_edge_index(edges.t())
    with pytest.raises(TypeError, match="edge_index: the type"):
        Graph.from_edge_index(edges.float())


def sorted_by_torch(edges, rows):
    """Return rowptr, colind and perm of the edges between existing nodes."""
    targets, perm = torch.sort(edges[1], stable=True)
    limits = torch.arange(rows + 1, dtype=edges.dtype, device=edges.device)
    return torch.searchsorted(targets, limits), edges[0][perm], perm


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("order", ["any", "in order", "fallen once", "strided", "reversed rows"])
@pytest.mark.parametrize(("rows", "cols", "count"), [(1, 1, 5), (300, 50, 9000), (70000, 9, 900)])
def test_sorts_as_torch(device, dtype, order, rows, cols, count):
    edges = torch.stack([torch.randint(0, cols, (count,)), torch.randint(0, rows, (count,))])
    edges = edges.to(device, dtype)
    if order in ("in order", "fallen once"):
        edges = edges[:, edges[1].argsort()]
    if order == "fallen once":
        edges = edges.roll(1, 1)
    if order == "strided":
        edges = edges.repeat_interleave(2, 1)[:, ::2]
    if order == "reversed rows":
        edges = edges.flip(0).contiguous().flip(0)
    for once in (False, True):
        graph = Graph.from_edge_index(edges, rows=rows, cols=cols, once=once)
        for found, wanted in zip(
            (graph.rowptr, graph.colind, graph.perm), sorted_by_torch(edges, rows), strict=True
        ):
            assert found.dtype == torch.int32 and torch.equal(found.long(), wanted.long())
    transposed = graph.t()
    wanted = sorted_by_torch(torch.stack([graph.row(), graph.colind]), cols)
    assert torch.equal(transposed.rowptr.long(), wanted[0])
    assert torch.equal(transposed.colind, wanted[1])
    assert torch.equal(transposed.perm.long(), graph.perm.long()[wanted[2]])


def test_edges_outside_are_left_out(device):
    edges = torch.tensor([[0, 9, 1, -1, 2], [1, 0, 7, 0, 0]], device=device)
    graph = Graph.from_edge_index(edges, rows=2, cols=3, once=True)
    assert graph.rowptr.tolist() == [0, 1, 2]
    assert graph.colind.tolist() == [2, 0, 0, 1, 0] and graph.perm.tolist() == [4, 0, 1, 2, 3]
    with pytest.raises(ValueError, match=r"edge_index: 3 of 5 edges are outside of 2 rows"):
        Graph.from_edge_index(edges, rows=2, cols=3)
    with pytest.raises(ValueError, match="5 of 5 edges are outside"):
        Graph.from_edge_index(edges, rows=2, cols=0)


def test_gradients_through_the_sorting(device):
    edges = torch.randint(0, 6, (2, 25), device=device)
    b = operand(6, 2, device=device)
    weights = operand(25, device=device)
    for once in (False, True):
        for reduce in ("sum", "mean"):

            def product_of(b, weights, once=once, reduce=reduce):
                graph = Graph.from_edge_index(edges, weights, rows=6, cols=6, once=once)
                return spmm(graph, b, reduce=reduce)

            assert torch.autograd.gradcheck(product_of, (b, weights))


def test_from_sparse(device):
    a = (torch.rand(6, 5, device=device) < 0.4) * torch.rand(6, 5, device=device)
    b = operand(5, 3, device=device, dtype=torch.float32, grad=False)
    for matrix in (a.to_sparse_csr(), a.to_sparse_csc(), a.to_sparse_coo()):
        graph = Graph.from_sparse(matrix)
        close(dense(graph), a)
        close(spmm(graph, b), a @ b, torch.float32)
        compiled = torch.compile(lambda b, graph=graph: spmm(graph, b), backend="eager")
        close(compiled(b), a @ b, torch.float32)
        values = matrix._values() if matrix.layout == torch.sparse_coo else matrix.values()
        values = values.clone().requires_grad_()
        if matrix.layout == torch.sparse_coo:
            trained = torch.sparse_coo_tensor(matrix._indices(), values, (6, 5))
        else:
            is_csr = matrix.layout == torch.sparse_csr
            index = (
                (matrix.crow_indices(), matrix.col_indices())
                if is_csr
                else (matrix.ccol_indices(), matrix.row_indices())
            )
            trained = torch.sparse_compressed_tensor(*index, values, (6, 5), layout=matrix.layout)
        graph = Graph.from_sparse(trained)
        assert graph.values.requires_grad
        x = torch.rand(6, 3, device=device)
        (expected,) = torch.autograd.grad(
            (trained.to_dense() @ b * x).sum(), values, retain_graph=True
        )
        (found,) = torch.autograd.grad((spmm(graph, b) * x).sum(), values)
        close(found, expected, torch.float32)
    with pytest.raises(NotImplementedError, match="no gradients of sparse_csc"):
        Graph.from_sparse(a.to_sparse_csc().requires_grad_())
    twice = torch.sparse_coo_tensor(
        torch.tensor([[0, 0], [1, 1]]), torch.ones(2), (2, 2), device=device
    )
    close(dense(Graph.from_sparse(twice)), twice.to_dense())
    with pytest.raises(TypeError, match="the layout"):
        Graph.from_sparse(a)
    with pytest.raises(TypeError, match="a sparse matrix is needed, not int"):
        Graph.from_sparse(1)


def test_from_scipy():
    scipy = pytest.importorskip("scipy.sparse")
    matrix = scipy.random(6, 5, 0.4, "csc", random_state=1)
    graph = Graph.from_sparse(matrix)
    b = operand(5, 3, grad=False)
    close(spmm(graph, b), torch.from_numpy(matrix @ b.numpy()))


def test_from_pyg_edge_index(device):
    pyg = pytest.importorskip("torch_geometric")
    edges = torch.tensor([[3, 0, 3, 1, 1], [0, 2, 0, 1, 2]], device=device)
    weights = torch.arange(5.0, device=device)
    plain = Graph.from_edge_index(edges, weights, rows=4, cols=4)
    for order in (None, "row", "col"):
        index, given = edges, weights
        if order:
            order_of = edges[0 if order == "row" else 1].sort(stable=True).indices
            index, given = edges[:, order_of], weights[order_of]
        typed = pyg.EdgeIndex(index, sparse_size=(4, 4), sort_order=order)
        graph = Graph.from_edge_index(typed, given)
        close(dense(graph), dense(plain))
        close(dense(Graph.from_sparse(typed)), dense(Graph.from_edge_index(edges, rows=4, cols=4)))
        assert type(graph.rowptr) is torch.Tensor and type(graph.colind) is torch.Tensor


def test_transpose(device):
    values = operand(25, device=device, dtype=torch.float32, grad=False)
    pattern = random_graph(9, 7, 25, device)
    graph = Graph(pattern.rowptr, pattern.colind, values, cols=7)
    transposed = graph.t()
    close(dense(transposed), dense(graph).t())
    assert graph.t() is transposed
    assert torch.equal(values[transposed.perm], transposed.values)
    once = Graph(pattern.rowptr, pattern.colind, values, cols=7, once=True)
    assert once.t() is not once.t()
    edges = torch.stack([graph.colind, graph.row()]).long().flip(1)
    back = Graph.from_edge_index(edges, values.flip(0), rows=9, cols=7).t()
    assert torch.equal(edges[1][back.perm].int(), back.colind)
    leaf = Graph(pattern.rowptr, pattern.colind, values.clone().requires_grad_(), cols=7)
    leaf.t().values.sum().backward()
    assert leaf.values.grad is not None


def test_a_kept_transpose_has_the_present_values(device):
    values = operand(25, device=device, grad=False)
    pattern = random_graph(9, 7, 25, device)
    graph = Graph(pattern.rowptr, pattern.colind, values, cols=7)
    b = operand(9, 4, device=device, grad=False)
    transposed, first = graph.t(), spmm(graph.t(), b)
    values.mul_(2)  # as an optimizer does
    assert graph.t() is transposed
    close(spmm(graph.t(), b), 2 * first)
    close(message(graph, "a*x", x=b, transpose=True), 2 * first)
    graph.values = values * 2
    close(spmm(graph.t(), b), 4 * first)
    graph.values.requires_grad_()
    spmm(graph.t(), b).sum().backward()
    close(graph.values.grad, b.sum(1)[graph.row()])
    graph.values = None
    close(spmm(graph.t(), b), spmm(pattern.t(), b))


def test_values_that_are_assigned_to_data(device):
    """No version counts `values.data = ...`; what is assigned may be a part of the same storage."""
    made = random_graph(9, 7, 25, device)
    perm = torch.randperm(25, device=device)
    graph = Graph(made.rowptr, made.colind, operand(25, device=device, grad=False), cols=7)
    unsorted = Graph(made.rowptr, made.colind, cols=7, perm=perm)
    b, x = (operand(n, 4, device=device, grad=False) for n in (9, 7))
    parts = operand(2, 25, device=device, grad=False)
    values = torch.empty_like(parts[0])
    for part in (parts[0], parts[1], parts[0].clone()):
        values.data = graph.values.data = part
        close(spmm(graph.t(), b), spmm(made.t(), b, part[graph.t().perm]))
        close(message(unsorted, "b*e", b=x, e=values), spmm(made, x, part[perm]))


@pytest.mark.parametrize("once", [False, True])
def test_inference_mode_and_then_training(once, device):
    """What a graph is made of and keeps in inference mode serves recorded calls, too."""
    edges = torch.tensor([[2, 0, 1, 3, 0], [1, 1, 0, 3, 3]], device=device)
    b = operand(4, 2, 3, device=device)
    terms, weights = operand(5, 2, 3, device=device), operand(5, 2, device=device)

    def results(graph):
        found = [spmm(graph, b.flatten(1), reduce=reduce) for reduce in ("sum", "mean", "max")]
        found.append(message(graph, "e*b*x/degree", b=b, x=b, e=terms))
        found.append(message(graph, "e*x", x=b, e=terms, transpose=True))
        found.append(gatv2(graph, b, b, terms[0, :, :], edges=terms))
        found += [spmm(graph.t(), b, weights), edge_softmax(graph, weights)]
        return found

    def make():
        return Graph.from_edge_index(edges, rows=4, cols=4, once=once)

    expected = results(make())
    with torch.inference_mode():
        made_there = make()
        csr = Graph(made_there.rowptr.clone(), made_there.colind.clone(), once=once)
        for graph in (made_there, csr):
            results(graph)
    for found, wanted in zip(results(made_there), expected, strict=True):
        close(found, wanted)
        for tensor in (b, terms, weights):
            pair = [
                torch.autograd.grad(c.sum(), tensor, retain_graph=True, allow_unused=True)[0]
                for c in (found, wanted)
            ]
            assert (pair[0] is None) == (pair[1] is None)
            if pair[0] is not None:
                close(*pair)
    results(csr)


def test_the_edges_that_a_graph_was_made_from(device):
    edges = torch.tensor([[2, 0, 1, 3, 0], [1, 1, 0, 3, 3]], device=device)
    graph = Graph.from_edge_index(edges, rows=4, cols=4)
    with torch.inference_mode():
        made = graph.edge_index()
    assert torch.equal(made, edges) and graph.edge_index() is made
    assert not made.is_inference()  # PyTorch counts no writes to such a tensor


def test_copies(device):
    graph = Graph.from_edge_index(
        torch.randint(0, 6, (2, 20), device=device), torch.rand(20, device=device), rows=6, cols=6
    )
    b = operand(6, 4, device=device, dtype=torch.float32, grad=False)
    expected = spmm(graph, b)
    for other in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert other._plans == {} and len(other._matrices) == 0
        assert (other.rows, other.cols, other.nnz, other.once) == (6, 6, 20, False)
        assert torch.equal(other.perm, graph.perm)
        close(spmm(other, b), expected, torch.float32)
    file = io.BytesIO()
    torch.save([graph], file)
    file.seek(0)
    (loaded,) = torch.load(file, weights_only=True)
    close(spmm(loaded, b), expected, torch.float32)
    with pytest.raises(ValueError, match="other sizes than the Graph"):
        Graph.__new__(Graph).__setstate__({**graph.__getstate__(), "nnz": 21})
    assert graph.to(device) is graph
    home = graph.cpu()
    assert home.device.type == "cpu" and home.perm.device.type == "cpu"
    close(spmm(home, b.cpu()), expected, torch.float32)
    assert "6 x 6, 20 edges" in repr(graph)


def test_invalid_graphs_are_refused(device):
    rowptr = torch.tensor([0, 1, 2], device=device)
    colind = torch.tensor([0, 1], device=device)
    for error, text, arguments in (
        (TypeError, "rowptr: a tensor", ([0, 1], colind)),
        (TypeError, "colind: int32 or int64", (rowptr, colind.float())),
        (ValueError, "rowptr: one dimension", (rowptr[None], colind)),
        (ValueError, "rowptr: rows", (rowptr[:0], colind)),
        (ValueError, "values: the shape", (rowptr, colind, torch.ones(3, device=device))),
    ):
        with pytest.raises(error, match=text):
            Graph(*arguments)
    with pytest.raises(ValueError, match="cols: -1"):
        Graph(rowptr, colind, cols=-1)
    b = torch.ones(2, 1, device=device)
    with pytest.raises(ValueError, match="colind: 0 to 5 lie outside the 2 columns"):
        spmm(Graph(rowptr, torch.tensor([0, 5], device=device)), b)
    with pytest.raises(ValueError, match="colind: -1 to 0"):
        spmm(Graph(rowptr, torch.tensor([0, -1], device=device)), b)
    with pytest.raises(ValueError, match="rowptr"):
        spmm(Graph(torch.tensor([0, 2, 1], device=device), colind), b)


def test_plans_are_made_once(device):
    graph = random_graph(9, 7, 25, device)
    b = operand(7, 4, device=device)
    for _ in range(3):
        spmm(graph, b).sum().backward()
        spmm(graph, b, reduce="max").sum().backward()
    assert len(graph._plans) == 4 and len(graph._matrices) == 1  # each with its gradient


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_graphs_of_one_use_share_their_products(reduce, device):
    """Only what depends on no size is shared: results, gradients and errors are as before."""
    for rows, cols, nnz, n in ((9, 7, 25, 4), (30, 12, 200, 4), (9, 7, 25, 4), (5, 12, 2, 3)):
        graph = random_graph(rows, cols, nnz, device, once=True)
        kept = Graph(graph.rowptr, graph.colind, cols=cols)
        results = []
        b, values = operand(cols, n, device=device), operand(nnz, device=device)
        for used in (graph, kept):
            c = spmm(used, b, values.detach(), reduce=reduce)
            x = torch.linspace(-1, 1, c.numel(), device=device, dtype=c.dtype).view_as(c)
            results.append([c.detach(), *torch.autograd.grad(c, b, x)])
            c = spmm(used, b, values, reduce=reduce)
            results[-1] += torch.autograd.grad(c, (b, values), x)
            c = spmm(used, b, reduce=reduce, message="copy_b")
            results[-1] += torch.autograd.grad(c, b, x)
            for wrong in ((b[1:], values), (b, values[1:])):
                with pytest.raises(ValueError, match="the shape is"):
                    spmm(used, *wrong, reduce=reduce)
        for one, other in zip(*results, strict=True):
            close(one, other)
    shared = random_graph(9, 7, 25, device, once=True)._products
    assert shared is graph._products and not kept._products.keys() >= shared.keys()


def test_graphs_release_everything(device):
    b = operand(7, 4, device=device)
    alive = []
    for step in range(10_000 if device.type == "cpu" else 500):
        graph = random_graph(9, 7, 25, device, once=step % 2 == 0, seed=step % 5)
        spmm(graph, b, reduce="max" if step % 3 == 0 else "sum").sum().backward()
        if step % 1000 == 0:
            alive.append((weakref.ref(graph), weakref.ref(graph.rowptr)))
    del graph
    assert all(one() is None and other() is None for one, other in alive)  # without gc
    gc.collect()


def results_of(graph, device):
    """Products and gradients by every kind of plan, also those that compiled code binds."""
    b = torch.linspace(0, 1, graph.cols * 4, device=device).view(-1, 4).requires_grad_()
    sides = torch.linspace(-1, 1, graph.rows, device=device).requires_grad_()
    calls = (
        lambda: spmm(graph, b),
        lambda: spmm(graph, b, reduce="mean"),
        lambda: spmm(graph, b, reduce="max"),
        lambda: message(graph, "sigmoid(b)", b=b),
        lambda: gat(graph, b, sides, b[:, 0]),
        lambda: edge_softmax(graph, sddmm(graph, b[: graph.rows], b)),
    )
    compiled = torch.compile(lambda: spmm(graph, b), backend="eager")
    for call in (*calls, compiled):
        c = call()
        yield c.detach()
        yield torch.autograd.grad(c.square().sum(), b)[0]


def test_memory_of_a_used_graph_moves(device):
    """PyTorch moves it for queues, for DataLoader workers and in `share_memory_`."""
    graph = random_graph(7, 7, 25, device)
    expected = list(results_of(graph, device))
    for tensor in (graph.rowptr, graph.colind):
        old = tensor.data
        tensor.data = old.clone()
        old.fill_(0)  # as memory that belongs to others now
        for found, right in zip(results_of(graph, device), expected, strict=True):
            close(found, right, torch.float32)
    graph.rowptr.share_memory_()
    graph.colind.share_memory_()
    for found, right in zip(results_of(graph, device), expected, strict=True):
        close(found, right, torch.float32)
    graph.colind.data = graph.colind + 7
    with pytest.raises(ValueError, match="colind: 7 to 13 lie outside the 7 columns"):
        spmm(graph, torch.ones(7, 4, device=device))
    graph.colind.data = graph.colind[1:]
    with pytest.raises(ValueError, match="their sizes changed"):
        spmm(graph, torch.ones(7, 4, device=device))


class Named(Graph):
    """A graph of a user's own class."""


TENSORS = "rowptr", "colind", "perm", "values"


def places_of(graph):
    tensors = [getattr(graph, name) for name in TENSORS]
    return [None if one is None else one.data_ptr() for one in tensors]


@pytest.mark.parametrize("kind", [Graph, Named])
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("requires_grad", [None, False, True])
def test_a_graph_that_is_sent_stays_in_its_place(kind, once, requires_grad):
    """A queue sends it in a thread of its own, beside a product that reads its memory."""
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    edges = torch.tensor([[6, 0, 3, 3], [1, 0, 5, 2]])
    graph = kind.from_edge_index(edges, rows=7, cols=7, once=once)
    if requires_grad is not None:
        graph.values = torch.nn.Parameter(torch.rand(4), requires_grad=requires_grad)
    expected, places = spmm(graph, torch.ones(7, 4)), places_of(graph)
    for _ in range(2):
        queue.put(graph)
        there = queue.get()
        assert places_of(graph) == places
        assert type(there) is kind and there.once == once
        if requires_grad is None:
            assert there.values is None
        else:
            assert type(there.values) is torch.nn.Parameter
            assert there.values.requires_grad == requires_grad
        close(spmm(there, torch.ones(7, 4)), expected, torch.float32)
        places_there = places_of(there)  # in shared memory, where the next queue leaves it
        queue.put(there)
        close(spmm(queue.get(), torch.ones(7, 4)), expected, torch.float32)
        assert places_of(there) == places_there


def test_values_that_are_shared_are_sent_without_a_copy():
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    graph = random_graph(9, 7, 20)
    graph.values = torch.ones(20).share_memory_()
    queue.put(graph)
    queue.get().values.fill_(3)
    assert (graph.values == 3).all()


def test_copies_of_graphs_for_one_use_are_graphs():
    graph = random_graph(9, 7, 20, once=True).diagonal()
    b = torch.rand(9, 4)
    for made in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert made.once
        close(spmm(made, b), b, torch.float32)


class OneGraph(torch.utils.data.Dataset):
    """A data set that multiplies by one graph in its worker and returns it with the product."""

    def __init__(self):
        self.graph = random_graph(9, 7, 20)

    def __len__(self):
        return 4

    def __getitem__(self, i):
        return self.graph, spmm(self.graph, torch.full((7, 4), float(i)))


def test_data_loader_workers_return_their_graph():
    graphs = OneGraph()
    spmm(graphs.graph, torch.ones(7, 4))  # the parent already has plans
    loader = torch.utils.data.DataLoader(
        graphs, batch_size=None, num_workers=1, multiprocessing_context="fork"
    )
    for i, (graph, c) in enumerate(loader):
        close(c, product(graph, torch.full((7, 4), float(i))), torch.float32)
        close(spmm(graph, torch.full((7, 4), float(i))), c, torch.float32)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_data_loader_workers(method):
    spmm(random_graph(9, 7, 20), torch.ones(7, 4))  # the parent already has plans
    loader = torch.utils.data.DataLoader(
        Blocks(), batch_size=None, num_workers=2, multiprocessing_context=method
    )
    seen = 0
    for graph, b, c, softmax in loader:
        assert graph.once
        close(c, product(graph, b), torch.float32)
        close(spmm(graph, b), c, torch.float32)
        assert softmax.shape == (graph.nnz,)
        seen += 1
    assert seen == 6


FIRST_USE_IN_A_CHILD = """
import os, signal, sys, numpy, torch
if sys.argv[1] == "before":
    import warploom
torch.rand(2000, 2000).sum()  # OpenMP has threads now, which the child has not
if os.fork() == 0:
    signal.alarm(30)  # else it waits for these threads for ever
    import warploom
    indptr, indices = numpy.arange(3001) * 60, numpy.arange(180_000) % 3000
    c = warploom.spmm((indptr, indices), numpy.ones((3000, 64), "f4"))
    os._exit(int((c != 60).any()))
sys.exit(os.wait()[1] != 0)
"""


@pytest.mark.parametrize("loaded", ["before", "after"])
def test_the_first_use_is_in_a_child_of_fork(loaded):
    """Of a parent that used OpenMP through PyTorch, and loaded the library or did not."""
    command = [sys.executable, "-c", FIRST_USE_IN_A_CHILD, loaded]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "4"}, timeout=120)


def test_writes_that_pytorch_does_not_count():
    """Writes of a long range are seen at once, others some looks later, in memory that may move."""
    tensor = torch.zeros(2, 100_000, dtype=torch.int64)
    for write in (slice(0, 50_000), 77, 199_999):
        state = TensorState(tensor)
        tensor.share_memory_()
        assert all(state.is_of(tensor) for _ in range(100))
        tensor.numpy().reshape(-1)[write] += 1
        with pytest.warns(UserWarning, match="changed through NumPy"):
            looks = next(look for look in range(65) if not state.is_of(tensor))
        assert looks == 0 or isinstance(write, int)
    small = torch.zeros(3)
    state = TensorState(small)
    small.numpy()[2] = 1
    assert not state.is_of(small)
    strided = tensor[:, ::2]
    for one in (strided, small[:0]):
        assert TensorState(one).is_of(one)


def test_the_allocator_asks_torch(monkeypatch):
    from warploom._native import ffi
    from warploom.torch import _plan

    calls = []

    def allocate(size, device, stream):
        calls.append((size, device, stream))
        if size > 1000:
            raise torch.OutOfMemoryError("full")
        return 4096

    monkeypatch.setattr(torch.cuda, "caching_allocator_alloc", allocate)
    monkeypatch.setattr(torch.cuda, "caching_allocator_delete", calls.append)
    stream = ffi.cast("void *", 2**40)
    memory = _plan._allocator.allocate(ffi.NULL, 1, 100, stream)
    assert int(ffi.cast("uintptr_t", memory)) == 4096
    assert _plan._allocator.allocate(ffi.NULL, 0, 2000, ffi.NULL) == ffi.NULL
    _plan._allocator.release(ffi.NULL, 1, memory, 100, stream)
    assert calls == [(100, 1, 2**40), (2000, 0, 0), 4096]


def test_expected_times_grow_with_columns_and_compile_nothing():
    graph = Graph.from_edge_index(torch.randint(50, (2, 400)), rows=50, cols=50)
    for options in ({}, {"transpose": True}, {"values": torch.float32, "reduce": "mean"}):
        narrow, wide = (graph.expected(n, **options) for n in (8, 1024))
        assert wide.simple > narrow.simple > 0
        assert narrow.seconds is None or narrow.seconds > 0
    assert not graph._plans and graph._transpose is None
    with pytest.raises(ValueError, match="once"):
        Graph(graph.rowptr, graph.colind, once=True).expected(8)
