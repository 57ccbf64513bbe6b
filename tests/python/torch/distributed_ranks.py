"""What the processes of test_torch_distributed.py run."""

import datetime
import functools
import gc
import os
import traceback
import unittest.mock
import warnings

import pytest
import torch
import torch.distributed as dist

import warploom.torch as wt
from warploom.torch import Graph, _later
from warploom.torch import distributed as wd
from warploom.torch.distributed import PartitionedGraph, _graph, _ways
from warploom.torch.distributed._exchange import reduce_number

NODES, EDGES = 41, 230
SECONDS = 120  # after which a rank gives up waiting for another


def edges_of(nodes=NODES, edges=EDGES, seed=0):
    """Skewed targets, sources that repeat, and nodes at the end without edges."""
    generator = torch.Generator("cpu").manual_seed(seed)
    targets = (torch.rand(edges, generator=generator, device="cpu") ** 2 * (nodes - 3)).long()
    sources = torch.randint(0, nodes, (edges,), generator=generator, device="cpu")
    return torch.stack([sources, targets]).to(torch.get_default_device())


def assignments():
    """Which rank owns each node: as balanced; in turns; nearly all the last, and none the first."""
    ranks = dist.get_world_size()
    turns = torch.arange(NODES) % ranks
    uneven = torch.full((NODES,), ranks - 1)
    uneven[7] = ranks // 2
    return None, turns, uneven


def parts(split="rows", **options):
    for assignment in assignments():
        for exchange in ("all", "needed"):
            yield PartitionedGraph.from_edge_index(
                edges_of(),
                NODES,
                assignment=assignment,
                exchange=exchange,
                split=split,
                **options,
            )


def draw(*shape, seed=1):
    generator = torch.Generator("cpu").manual_seed(seed)
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64, device="cpu") + 0.5
    return drawn.to(torch.get_default_device())


def compare(part, whole_call, part_call, *operands):
    """Results and gradients by operands of nodes, which each rank has its rows of."""
    wholes = [tensor.clone().requires_grad_() for tensor in operands]
    own = [part.scatter(tensor).requires_grad_() for tensor in operands]
    right, found = whole_call(*wholes), part_call(*own)
    torch.testing.assert_close(found, part.scatter(right.detach()), check_dtype=False)
    weights = torch.linspace(-1, 2, right.numel(), dtype=right.dtype).reshape(right.shape)
    (right * weights).sum().backward()
    (found * part.scatter(weights)).sum().backward()
    for whole, local in zip(wholes, own, strict=True):
        torch.testing.assert_close(local.grad, part.scatter(whole.grad))


# ---- what all ranks do --------------------------------------------------------------------------


def check_products():
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    for part in parts():
        for reduce in ("sum", "mean", "max", "min"):
            compare(
                part,
                functools.partial(wt.spmm, graph, reduce=reduce),
                functools.partial(wd.spmm, part, reduce=reduce),
                draw(NODES, *((2, 3) if reduce == "mean" else (5,))),
            )


def check_values():
    weights = draw(EDGES, seed=3)
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    b = draw(NODES, 4)
    for part in parts():
        whole = weights.clone().requires_grad_()
        own = weights[part.edges].requires_grad_()
        right = wt.spmm(graph, b, whole[graph.perm])
        found = wd.spmm(part, part.scatter(b), own[part.local.perm])
        torch.testing.assert_close(found, part.scatter(right.detach()))
        right.square().sum().backward()
        found.square().sum().backward()
        torch.testing.assert_close(own.grad, whole.grad[part.edges])
        scores = wd.edge_softmax(part, own.detach()[part.local.perm])
        right = torch.empty_like(weights)
        right[graph.perm] = wt.edge_softmax(graph, weights[graph.perm])
        torch.testing.assert_close(scores, right[part.edges][part.local.perm])


def check_attention():
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    heads, features = draw(NODES, 2, seed=4), draw(NODES, 2, 4, seed=5)
    att = draw(2, 4, seed=6)

    def gat(call, where):
        return lambda b, left, right: call(where, b, left, right)

    def dot(call, where):
        return lambda q, k, v: call(where, q, k, v)

    def second(call, where):
        return lambda b, x: call(where, b, x, att)

    for part in parts():
        compare(part, gat(wt.gat, graph), gat(wd.gat, part), features, heads, heads + 1)
        compare(
            part,
            dot(wt.attention, graph),
            dot(wd.attention, part),
            features,
            features + 1,
            features - 1,
        )
        compare(part, second(wt.gatv2, graph), second(wd.gatv2, part), features, features - 0.2)


def check_messages():
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    e, x = draw(EDGES, 6, seed=7), draw(NODES, 6, seed=8)

    def layer(call, where, edges):
        def run(b, k, s):
            return call(
                where,
                "relu(b*s+e)+0.5*k*x",
                b=b,
                k=k,
                e=edges,
                operands={"s": ("column", s), "x": ("row", x if where is graph else local)},
            )

        return run

    for part in parts():
        local = part.scatter(x)
        compare(
            part,
            layer(wt.message, graph, e),
            layer(wd.message, part, e[part.edges]),
            draw(NODES, 6, seed=9),
            draw(NODES, 6, seed=10) - 1,
            draw(NODES, 6, seed=11) - 1,
        )
        with pytest.raises(ValueError, match="transpose: results of columns"):
            wd.message(part, "b", b=local, transpose=True)


def check_own_edges():
    """Each rank passes its edges only, and gets the same parts."""
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    owner = torch.arange(NODES) % dist.get_world_size()
    edges = edges_of()
    mine = edges[:, owner[edges[1]] == dist.get_rank()]
    b, weights = draw(NODES, 3), draw(EDGES, seed=3)
    own = weights[owner[edges[1]] == dist.get_rank()]
    for split in ("near", "features"):
        part = PartitionedGraph.from_edge_index(
            mine, assignment=owner, num_nodes=NODES, own_edges=True, split=split
        )
        assert part.local.nnz == mine.shape[1]
        found = wd.spmm(part, part.scatter(b), own[part.edges][part.local.perm])
        right = wt.spmm(graph, b, weights[graph.perm])
        torch.testing.assert_close(found, part.scatter(right))
    with pytest.raises(ValueError, match="lead to nodes of others"):
        PartitionedGraph.from_edge_index(edges, NODES, assignment=owner, own_edges=True)


def check_layout():
    """Parts cover all nodes and edges once; collect is the inverse of scatter."""
    for part in parts():
        x = draw(NODES, 2, 3)
        assert torch.equal(part.collect(part.scatter(x)), x)
        owned = [None] * part.ranks
        dist.all_gather_object(owned, (part.nodes.tolist(), part.edges.tolist()))
        assert sorted(node for nodes, _ in owned for node in nodes) == list(range(NODES))
        assert sorted(edge for _, edges in owned for edge in edges) == list(range(EDGES))
    balanced = PartitionedGraph.from_edge_index(edges_of(), NODES, split="rows")
    work = balanced.local.nnz + balanced.nodes.shape[0]
    most = torch.bincount(edges_of()[1]).max() + 1
    assert work <= (NODES + EDGES) / balanced.ranks + most


def check_exchange():
    """The exchange that was quicker here is taken by all ranks, and explained."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part = PartitionedGraph.from_edge_index(edges_of(), NODES, split="rows")
    assert set(part.times) == {"all", "needed"}
    assert part.times[part.exchange.name] == min(part.times.values())
    names = [None] * part.ranks
    dist.all_gather_object(names, part.exchange.name)
    assert len(set(names)) == 1
    text = part.explain()
    assert f"rank {part.rank} of {part.ranks}" in text and f"{part.exchange.name} rows" in text
    assert "tried for 64 columns" in text


def check_ways():
    """Each way of sharing sums gives their results and gradients, of rounded rows with a wire."""
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    weights = draw(EDGES, seed=3)
    for split in ("near", "features"):
        for part in parts(split):
            name = "rows" if part.exchange.name == "own" else split  # one rank owns all nodes
            assert part.choice.name == name and f"split by {name}, as asked" in part.explain()
            own = weights[part.edges][part.local.perm]
            for reduce, whole, values, shape in (
                ("sum", weights[graph.perm], own, (50,)),
                ("mean", None, None, (2, 3)),
                ("mean", weights[graph.perm], own, (17,)),
                ("sum", None, None, (0,)),
                ("max", weights[graph.perm], own, (3,)),
            ):
                compare(
                    part,
                    functools.partial(wt.spmm, graph, values=whole, reduce=reduce),
                    functools.partial(wd.spmm, part, values=values, reduce=reduce),
                    draw(NODES, *shape),
                )
        part = PartitionedGraph.from_edge_index(edges_of(), NODES, split=split, wire=torch.bfloat16)
        b = draw(NODES, 8).float()
        own = part.scatter(b).requires_grad_()
        found = wd.spmm(part, own)
        right = part.scatter(wt.spmm(graph, b.double()))
        torch.testing.assert_close(found.double(), right, rtol=1e-2, atol=1e-2)
        found.sum().backward()
        sources = torch.bincount(edges_of()[0], minlength=NODES).float()
        expected = part.scatter(sources).unsqueeze(1).expand(-1, 8)
        torch.testing.assert_close(own.grad, expected, rtol=1e-2, atol=1e-2)


def check_deprecated():
    """A deprecated exchange or split runs as the one that replaces it, and warns."""
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    for name, value, current in (("exchange", "copies", "all"), ("split", "columns", "near")):
        text = f"{name}: '{value}' is deprecated and runs as '{current}'"
        options = {"split": "rows", "exchange": "all", name: value}
        with pytest.warns(DeprecationWarning, match=text) as found:
            part = PartitionedGraph.from_edge_index(edges_of(), NODES, **options)
        assert found[0].filename == __file__
        assert current in (part.exchange.name, part.choice.name)
        call = functools.partial(wd.spmm, part)
        compare(part, functools.partial(wt.spmm, graph), call, draw(NODES, 35))


def check_new_values():
    """What a split makes of values is kept for the gradient and the next product, and made again
    where they are other ones."""
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    for split in ("near", "features"):
        part = PartitionedGraph.from_edge_index(edges_of(), NODES, split=split)
        b, weights = draw(NODES, 5), draw(EDGES, seed=3)
        own = weights[part.edges][part.local.perm]
        for call in range(4):
            with unittest.mock.patch.object(_ways, "Made", wraps=_ways.Made) as made:
                compare(
                    part,
                    functools.partial(wt.spmm, graph, values=weights[graph.perm]),
                    functools.partial(wd.spmm, part, values=own),
                    b,
                )
            assert made.call_count == 1  # in forward and backward together
            weights.mul_(2)
            if call < 2:
                own.mul_(2)
            else:
                own.data = own * 2  # which no version counts
        with torch.inference_mode():
            right = part.scatter(wt.spmm(graph, b, weights[graph.perm]))
            torch.testing.assert_close(wd.spmm(part, part.scatter(b), own * 1), right)
    with pytest.raises(ValueError, match=r"values: the shape is \(3,\)"):
        wd.spmm(part, part.scatter(b), own[:3])


def choose_with(*seconds, **options):
    """The part that "auto" makes where trials take these seconds: all and needed rows; rows and
    near; the local product; an all-to-all; features."""
    left = list(seconds)
    with pytest.MonkeyPatch.context() as patch:
        for module in (_graph, _ways):
            patch.setattr(module, "time_of", lambda group, device, call: (call(), left.pop(0))[1])
        part = PartitionedGraph.from_edge_index(edges_of(), NODES, **options)
    assert not left
    return part


def check_choice():
    """The quickest way is taken; features are tried only where the model expects a gain."""
    ranks = dist.get_world_size()
    part = choose_with(2, 1, 6, 4, 30, 30)
    assert (part.exchange.name, part.choice.name) == ("needed", "near")
    text = part.explain()
    assert "rows 6000000 us, near 4000000 us" in text
    assert f"features expected {60e6 + 30e6:.0f} us, one device expected {30e6 * ranks:.0f}" in text
    part = choose_with(1, 2, 40, 50, 30, 4, 39)
    assert (part.exchange.name, part.choice.name) == ("all", "features")
    assert PartitionedGraph.from_edge_index(edges_of(), NODES, columns=3, exchange="all").choice


def check_a_small_graph():
    """A graph that one device multiplies more quickly is on rank 0, and said to be."""
    part = choose_with(1, 1, 6, 4, 1, 9)
    assert part.nodes.shape[0] == (NODES if part.rank == 0 else 0)
    assert part.exchange.name == "own" and part.exchange.received == 0
    text = part.explain()
    assert "all nodes are on rank 0: split by near" in text and "too small for a gain" in text
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    for reduce in ("sum", "max"):
        compare(
            part,
            functools.partial(wt.spmm, graph, reduce=reduce),
            functools.partial(wd.spmm, part, reduce=reduce),
            draw(NODES, 5),
        )
    turns = torch.arange(NODES) % part.ranks
    part = choose_with(1, 1, 6, 4, 1, 9, assignment=turns)
    assert "too small for a gain" in part.explain()
    assert torch.equal(part.nodes, (turns == part.rank).nonzero().squeeze(1))


def check_other_edges():
    """`edge_index` has the edges of a part, and `with_edges` a part with other ones."""
    b, weights = draw(NODES, 3), draw(EDGES, seed=3)
    for part in (*parts(), *parts("features")):
        edges = edges_of()[:, part.edges][:, part.local.perm]
        assert torch.equal(part.edge_index(), edges)
        other = part.with_edges(edges[:, ::2])
        assert torch.equal(other.nodes, part.nodes) and other.exchange.name == part.exchange.name
        assert other.choice.name == part.choice.name
        count = edges[:, ::2].shape[1]
        assert torch.equal(other.edges, torch.arange(count, dtype=torch.int32))
        assert torch.equal(other.edge_index(), edges[:, ::2][:, other.local.perm])
        own = weights[part.edges][part.local.perm][::2]
        found = wd.spmm(other, other.scatter(b), own[other.edges][other.local.perm])
        right = torch.zeros(NODES, 3, dtype=b.dtype)
        right.index_add_(0, edges[1, ::2], own.unsqueeze(1) * b[edges[0, ::2]])
        torch.testing.assert_close(found, part.scatter(right))


def check_needed_rows():
    """Only rows that an edge reads travel: none where each rank's edges are among its own nodes."""
    half = NODES // 2
    owner = (torch.arange(NODES) >= half).long()
    edges = edges_of()
    edges = edges[:, owner[edges[0]] == owner[edges[1]]]
    part = PartitionedGraph.from_edge_index(edges, NODES, assignment=owner, exchange="needed")
    assert part.exchange.received == 0
    graph = Graph.from_edge_index(edges, rows=NODES, cols=NODES)
    call = functools.partial(wd.spmm, part)
    compare(part, functools.partial(wt.spmm, graph), call, draw(NODES, 3))


def check_wire():
    """Rows travel as bfloat16: the products are those of rounded rows."""
    graph = Graph.from_edge_index(edges_of(), rows=NODES, cols=NODES)
    b = draw(NODES, 8).float()
    for part in parts(wire=torch.bfloat16):
        own = part.scatter(b).requires_grad_()
        found = wd.spmm(part, own)
        travels = part.exchange.name != "own"
        right = wt.spmm(graph, b.bfloat16().float() if travels else b)
        torch.testing.assert_close(found, part.scatter(right))
        found.sum().backward()
        whole = b.clone().requires_grad_()
        wt.spmm(graph, whole).sum().backward()
        torch.testing.assert_close(own.grad, part.scatter(whole.grad), rtol=2e-2, atol=2e-2)


def check_refusals():
    edges = edges_of()
    rank = dist.get_rank()
    with pytest.raises(ValueError, match="num_nodes: rank 0 has 41, rank 1 has 42"):
        PartitionedGraph.from_edge_index(edges, NODES + (rank == 1))
    with pytest.raises(ValueError, match="edges: rank 0 has 230, rank 1 has 229"):
        PartitionedGraph.from_edge_index(edges[:, rank == 1 :], NODES)
    with pytest.raises(ValueError, match="lie outside the 10 nodes"):
        PartitionedGraph.from_edge_index(edges, 10)
    with pytest.raises(ValueError, match="outside of the nodes: rank 0 has 0, rank 1 has 1"):
        PartitionedGraph.from_edge_index(edges - int(rank == 1), NODES)
    with pytest.raises(ValueError, match="assignment: 0 to 9 lie outside"):
        PartitionedGraph.from_edge_index(edges, NODES, assignment=torch.arange(NODES) % 10)
    with pytest.raises(ValueError, match=r"assignment: the shape is \(3,\)"):
        PartitionedGraph.from_edge_index(edges, NODES, assignment=torch.zeros(3))
    with pytest.raises(ValueError, match="assignment, as a sum: rank 0 has"):
        PartitionedGraph.from_edge_index(
            edges, NODES, assignment=(torch.arange(NODES) + rank) % dist.get_world_size()
        )
    with pytest.raises(ValueError, match="exchange: 'some' is unknown"):
        PartitionedGraph.from_edge_index(edges, NODES, exchange="some")
    with pytest.raises(ValueError, match="split: 'half' is unknown"):
        PartitionedGraph.from_edge_index(edges, NODES, split="half")
    with pytest.raises(ValueError, match="columns: rank 0 has 8, rank 1 has 9"):
        PartitionedGraph.from_edge_index(edges, NODES, columns=8 + int(rank == 1))
    with pytest.raises(ValueError, match="own_edges: an assignment"):
        PartitionedGraph.from_edge_index(edges, NODES, own_edges=True)
    part = PartitionedGraph.from_edge_index(edges, NODES, split="rows")
    with pytest.raises(ValueError, match=rf"b: the shape is \(41, 3\), and rank {rank} has"):
        wd.spmm(part, draw(NODES, 3))
    with pytest.raises(TypeError, match="a PartitionedGraph is needed, not Graph"):
        wd.spmm(part.local, draw(NODES, 3))


# ---- training -----------------------------------------------------------------------------------


def layers(kind):
    """The weights of two layers."""
    torch.manual_seed(3)
    sizes = ((6, 8), (8, 4))
    weights = [torch.nn.Parameter(torch.randn(i, o, dtype=torch.float64) / i) for i, o in sizes]
    if kind in ("sage", "max"):
        weights += [
            torch.nn.Parameter(torch.randn(i, o, dtype=torch.float64) / i) for i, o in sizes
        ]
    if kind == "gat":
        weights += [torch.nn.Parameter(torch.randn(2, o, dtype=torch.float64)) for _, o in sizes]
    return weights


def forward(kind, call, graph, weights, x, norm=None):
    for at in range(2):
        h = x @ weights[at]
        if kind == "gcn":
            h = call.spmm(graph, h, norm)
        elif kind in ("sage", "max"):
            h = call.spmm(graph, x, reduce="mean" if kind == "sage" else "max") @ weights[at]
            h = h + x @ weights[2 + at]
        elif kind == "gin":
            h = (call.spmm(graph, x) + 1.1 * x) @ weights[at]
        else:
            left, right = ((h * a).sum(1, keepdim=True) for a in weights[2 + at])
            h = call.gat(graph, h.unsqueeze(1), left, right).flatten(1)
        x = torch.tanh(h)
    return x


def train(kind, call, graph, x, y, norm, mean, summed):
    weights = layers(kind)
    optimizer = torch.optim.Adam(weights, lr=0.02)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        out = forward(kind, call, graph, weights, x, norm)
        loss = mean(torch.nn.functional.cross_entropy(out, y, reduction="none"))
        loss.backward()
        summed(weights)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def gcn_weights(degrees, sources, targets):
    root = degrees.clamp(1).double().rsqrt()
    return root[sources] * root[targets]


def check_training():
    """The losses of 20 steps are those of one process, also where a rank owns no nodes."""
    edges = edges_of()
    graph = Graph.from_edge_index(edges, rows=NODES, cols=NODES)
    x, y = draw(NODES, 6), torch.arange(NODES) % 4
    norm = gcn_weights(torch.bincount(edges[1], minlength=NODES), *edges)
    kinds = ("gcn", "sage", "max", "gin", "gat")
    alone = {
        kind: train(kind, wt, graph, x, y, norm[graph.perm], torch.mean, lambda weights: None)
        for kind in kinds
    }
    for part in list(parts())[::2] + list(parts())[-1:]:
        own_x, own_y, own_norm = part.scatter(x), part.scatter(y), norm[part.edges]
        for kind in kinds:
            found = train(
                kind, wd, part, own_x, own_y, own_norm[part.local.perm], wd.mean, wd.sum_gradients
            )
            torch.testing.assert_close(found, alone[kind])
            assert found[-1] < found[0]


# ---- layers of PyG ------------------------------------------------------------------------------


def pyg_model(kind):
    import torch_geometric.nn as pyg

    torch.manual_seed(5)
    make = {
        "gcn": pyg.GCNConv,
        "gcn without loops": functools.partial(pyg.GCNConv, add_self_loops=False),
        "sage": pyg.SAGEConv,
        "max": functools.partial(pyg.SAGEConv, aggr="max"),
        "gin": lambda i, o: pyg.GINConv(torch.nn.Linear(i, o)),
        "gin eps": lambda i, o: pyg.GINConv(torch.nn.Linear(i, o), train_eps=True),
        "graph": pyg.GraphConv,
        "gat": functools.partial(pyg.GATConv, heads=2, concat=False),
        "gat without loops": functools.partial(pyg.GATConv, add_self_loops=False),
    }[kind]
    return torch.nn.ModuleList([make(6, 8), make(8, 4)]).double()


def train_pyg(kind, edges, x, y, mean, summed, steps=20, **options):
    model = pyg_model(kind)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        out = model[1](torch.tanh(model[0](x, edges, **options)), edges, **options)
        loss = mean(torch.nn.functional.cross_entropy(out, y, reduction="none"))
        loss.backward()
        summed(model.parameters())
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def check_pyg_models():
    """PyG's layers train on a partitioned graph as on an edge_index."""
    from warploom import pyg

    edges = torch.cat([edges_of(), torch.tensor([[3, 9, 3], [3, 9, 3]])], 1)
    x, y = draw(NODES, 6), torch.arange(NODES) % 4
    kinds = ("gcn", "gcn without loops", "sage", "max", "gin", "gin eps", "gat")
    alone = {kind: train_pyg(kind, edges, x, y, torch.mean, lambda weights: None) for kind in kinds}
    pyg.report(reset=True)
    for assignment, split in zip(assignments(), ("near", "features", "rows")):
        part = PartitionedGraph.from_edge_index(edges, NODES, assignment=assignment, split=split)
        for kind in kinds:
            with pyg.accelerate(wait=False):
                own = part.scatter(x), part.scatter(y)
                found = train_pyg(kind, part, *own, wd.mean, wd.sum_gradients)
            torch.testing.assert_close(found, alone[kind])
            assert found[-1] < found[0]
    assert {reason for calls in pyg.report().values() for reason in calls} == {"warploom"}
    texts = pyg.report(orders=True, reset=True)
    assert texts["GCNConv"].keys() == {"6 -> 8: (A X) W, by the columns", "8 -> 4: A (X W), as PyG"}
    assert texts["SAGEConv"].keys() == {
        "6 -> 8: (A X) W, as PyG", "8 -> 4: A (X W), by the columns"
    }  # fmt: skip
    assert texts["GINConv"].keys() == texts["SAGEConv"].keys()


def check_pyg_options():
    """Edge weights with and without gradients, no gradients at all, and what is refused."""
    import torch_geometric.nn as nn

    from warploom import pyg

    edges = torch.cat([edges_of(), torch.tensor([[3, 9], [3, 9]])], 1)
    x, weights = draw(NODES, 6), draw(edges.shape[1], seed=3)
    for part in (
        PartitionedGraph.from_edge_index(edges, NODES, assignment=a, split="rows")
        for a in assignments()
    ):
        for kind in ("gcn", "gcn without loops", "graph"):
            for needs in (False, True):
                layer = pyg_model(kind)[0]
                whole = weights.clone().requires_grad_(needs)
                own = weights[part.edges].requires_grad_(needs)
                right = layer(x, edges, edge_weight=whole)
                with pyg.accelerate(wait=False):
                    found = layer(part.scatter(x), part, edge_weight=own)
                    again = layer(part.scatter(x), part, edge_weight=own)
                torch.testing.assert_close(found, part.scatter(right.detach()))
                assert torch.equal(found, again)
                if needs:
                    right.square().sum().backward()
                    found.square().sum().backward()
                    torch.testing.assert_close(own.grad, whole.grad[part.edges])
        for kind in ("gat", "gat without loops"):
            layer = pyg_model(kind)[0]
            with torch.no_grad():
                right = layer(x, edges)
                with pyg.accelerate(wait=False):
                    found = layer(part.scatter(x), part)
            torch.testing.assert_close(found, part.scatter(right))
    own = part.scatter(x)
    for layer, arguments, reason in (
        (nn.GCNConv(6, 4, improved=True), (), "improved GCNConv"),
        (nn.SAGEConv(6, 4, flow="target_to_source"), (), "flow target_to_source"),
        (nn.GCNConv(6, 4), (weights[:3],), "edge weights that do not match"),
        (nn.GATConv(6, 4, edge_dim=2), (weights,), "edge features or two kinds"),
        (nn.GATv2Conv(6, 4), (), "attention with edges as PartitionedGraph"),
        (nn.SGConv(6, 4), (), "SGConv on a PartitionedGraph"),
        (nn.APPNP(2, 0.1), (), "APPNP on a PartitionedGraph"),
        (nn.SimpleConv(combine_root="self_loop"), (), "SimpleConv on a PartitionedGraph"),
    ):
        pyg.report(reset=True)
        with pyg.accelerate(wait=False), pytest.raises(ValueError, match="only supports"):
            layer.double()(own, part, *arguments)
        assert reason in str(pyg.report())


def bytes_of_edges():
    """Bytes of all tensors that Python code keeps and that have more elements than NODES * 10."""
    gc.collect()
    tensors = (one for one in gc.get_objects() if issubclass(type(one), torch.Tensor))
    kept = [one.untyped_storage() for one in tensors if one.numel() > NODES * 10]
    return sum({one.data_ptr(): one.nbytes() for one in kept}.values())


def check_pyg_memory():
    """What a rank keeps of its edges to train a GCN in float64: 12 bytes an edge of the graph, and
    33 of that with loops and its two parts."""
    from warploom import pyg

    edges = edges_of(edges=400 * NODES)
    before = bytes_of_edges()
    part = PartitionedGraph.from_edge_index(edges, NODES, exchange="all", split="near")
    own = part.scatter(draw(NODES, 6)), part.scatter(torch.arange(NODES) % 4)
    with pyg.accelerate(wait=False):
        train_pyg("gcn", part, *own, wd.mean, wd.sum_gradients, steps=2)
    kept, nnz = bytes_of_edges() - before, part.local.nnz
    assert 40 * nnz <= kept <= 46 * (nnz + NODES), (kept, nnz)


# ---- processes ----------------------------------------------------------------------------------


def begin(rank, ranks, folder, seconds=SECONDS, backend="gloo"):
    """Join the group, by a file of the folder. With NCCL tensors are made on this rank's GPU from
    now on."""
    torch.set_num_threads(1)
    _later.FIRST_DEVICE = -1  # PyG's code could not compute a call that is refused
    if backend == "nccl":
        torch.cuda.set_device(rank)
        torch.set_default_device(f"cuda:{rank}")
    dist.init_process_group(
        backend,
        init_method=f"file://{folder}/meet",
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=seconds),
    )


def serve(rank, ranks, backend, folder, wanted, results):
    """Run the named checks until there are no more."""
    begin(rank, ranks, folder, backend=backend)
    for name in iter(wanted.get, None):
        try:
            CHECKS[name]()
            results.put((rank, None))
        except BaseException:
            results.put((rank, traceback.format_exc()))
    dist.destroy_process_group()


def peaks_of(call):
    """Bytes of GPU memory that a call needs, and that PyTorch reserves for it."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    call()
    return torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()


def check_little_memory():
    """A graph that is too large for the memory of one GPU trains on two."""
    nodes, features = 400_000, 256
    generator = torch.Generator("cpu").manual_seed(0)
    # Each rank gets half of the nodes: as many edges lead to any node as to another.
    edges = torch.randint(0, nodes, (2, 2_000_000), generator=generator, device="cpu")
    x = torch.rand(nodes, features, generator=generator, device="cpu")
    device = torch.get_default_device()
    edges = edges.to(device)
    weights = [draw(features, features, seed=k).float() / features for k in range(2)]
    weights = [weight.requires_grad_() for weight in weights]
    losses = []

    def step(call, graph, x, mean):
        x = torch.tanh(call.spmm(graph, x @ weights[0], reduce="mean"))
        loss = mean(call.spmm(graph, x @ weights[1], reduce="mean").square())
        loss.backward()
        losses.append(loss.item())

    def alone():
        graph = Graph.from_edge_index(edges, rows=nodes, cols=nodes)
        step(wt, graph, x.to(device), torch.mean)

    def shared():
        part = PartitionedGraph.from_edge_index(edges, nodes, exchange="all", split="rows")
        step(wd, part, part.scatter(x).to(device), wd.mean)

    needed, _ = peaks_of(alone)
    _, reserved = peaks_of(shared)
    # All ranks compare the same numbers, so that none waits for one that has failed.
    needed = reduce_number(None, device, needed, dist.ReduceOp.MIN)
    reserved = reduce_number(None, device, reserved, dist.ReduceOp.MAX)
    assert reserved < 0.9 * needed
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction((needed + reserved) / 2 / total)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            alone()
        torch.cuda.empty_cache()
        shared()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    torch.testing.assert_close(losses, [losses[0]] * 3, rtol=1e-4, atol=0)


def lose_a_rank(rank, folder, results):
    begin(rank, 2, folder, seconds=20)
    part = PartitionedGraph.from_edge_index(edges_of(), NODES, exchange="all", split="rows")
    if rank == 1:
        os._exit(3)
    try:
        wd.spmm(part, part.scatter(draw(NODES, 3)))
        results.put("no error")
    except RuntimeError as error:
        results.put(f"RuntimeError {error}")
    results.close()
    results.join_thread()
    os._exit(0)  # without a farewell to the other rank


CHECKS = {name: function for name, function in list(globals().items()) if name[:6] == "check_"}
