"""padded: ghosts that change no result, and training that is equal to that without them."""

import contextlib
import copy
import itertools
import threading
import warnings

import pytest
import torch
from torch.nn.functional import cross_entropy

pyg = pytest.importorskip("torch_geometric")

from torch_geometric import nn  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.loader import DataLoader  # noqa: E402

import warploom.pyg  # noqa: E402
from warploom.pyg import _ghosts, _padded, padded  # noqa: E402
from warploom.torch import _capture, capture  # noqa: E402
from warploom.torch._capture_reads import Reads  # noqa: E402

CHANNELS, CLASSES = 4, 3
BATCH = 6


def molecules(count=40, seed=0, dtype=torch.float64, loops=True):
    """Small graphs, some with self loops; the last one has a node and no edges."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for at in range(count):
        nodes = 1 if at == count - 1 else int(torch.randint(4, 9, (1,), generator=generator))
        edges = 0 if nodes == 1 else 3 * nodes
        ends = torch.randint(nodes, (2, edges), generator=generator)
        if not loops:
            ends = ends[:, ends[0] != ends[1]]
        rows = {"generator": generator, "dtype": dtype}
        made.append(
            Data(
                x=torch.randn(nodes, CHANNELS, **rows),
                edge_index=ends,
                edge_attr=torch.randn(ends.size(1), 2, **rows),
                pos=torch.randn(nodes, 3, **rows),
                train_mask=torch.ones(nodes, dtype=torch.bool),
                y=torch.randint(CLASSES, (1,), generator=generator),
                name="a molecule",
            )
        )
    return made


def batches(seed=0, size=BATCH, **options):
    """Every second batch is shuffled in the same order for the same seed; the last one is small."""
    generator = torch.Generator().manual_seed(seed)
    return DataLoader(molecules(**options), size, shuffle=True, generator=generator)


# ---- what a batch gets ---------------------------------------------------------------------------


def test_ghosts():
    loader = padded(batches(), device="cpu")
    plain = list(batches())
    for real, batch in zip(plain, loader, strict=True):
        nodes, edges, graphs = real.num_nodes, real.num_edges, real.num_graphs
        for mask, count in zip(
            (batch.node_mask, batch.edge_mask, batch.graph_mask),
            (nodes, edges, graphs),
            strict=True,
        ):
            assert mask[:count].all() and not mask[count:].any() and mask.numel() > count
        assert batch.num_graphs == batch.graph_mask.numel() == batch.ptr.numel() - 1
        for key in ("x", "pos", "edge_attr", "batch", "y"):
            assert torch.equal(batch[key][: real[key].size(0)], real[key])
        assert torch.equal(batch.edge_index[:, :edges], real.edge_index)
        assert torch.equal(batch.ptr[: graphs + 1], real.ptr)
        assert torch.equal(
            batch.ptr.diff(), torch.bincount(batch.batch, minlength=batch.num_graphs)
        )
        assert batch.ptr.diff().min() > 0 and batch.ptr.diff().max() <= loader.sizes[-1].largest
        ghosts = batch.edge_index[:, edges:]
        assert ghosts.min() >= nodes and ghosts.max() < batch.num_nodes
        distance = batch.pos[ghosts[0]] - batch.pos[ghosts[1]]
        assert (distance.norm(dim=1) > 0).all()
        most = torch.bincount(ghosts[1]).max() if ghosts.numel() else 0
        assert most <= 8 * max(edges / nodes, 1) + 1
        assert (batch.y[graphs:] == -100).all() and not batch.train_mask[nodes:].any()
        assert "name" not in batch
    assert 1 <= len(loader.sizes) <= 8 and loader.too_large == 0
    shapes = {batch.x.shape for batch in itertools.chain(loader, loader)}
    assert len(shapes) <= len(loader.sizes) and len(loader) == len(plain)


def test_batches_that_no_size_holds():
    """They are as they were, with masks, and counted."""
    loader = padded(batches(), sizes=[(40, 112, 8), (12, 30, 3)], labels=("y", "pos"), device="cpu")
    seen = list(loader)
    large = [batch for batch in seen if batch.node_mask.all()]
    assert 0 < len(large) == loader.too_large < len(seen)
    assert all(batch.graph_mask.all() and batch.edge_mask.all() for batch in large)
    kept = [batch for batch in seen if not batch.node_mask.all()]
    assert {batch.num_nodes for batch in kept} <= {12, 40}
    for batch in kept:
        assert batch.pos[~batch.node_mask].isnan().all() and not batch.x.isnan().any()


def test_graphs_without_nodes_or_edges():
    empty = Data(x=torch.ones(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.long))
    single = Data(x=torch.ones(1, 2), edge_index=torch.zeros(2, 0, dtype=torch.long))
    (batch,) = padded(DataLoader([empty, single, empty], 3), sizes=[(8, 4, 5)], device="cpu")
    assert batch.node_mask.sum() == 1 and (batch.x == 1).all() and batch.num_graphs == 5
    assert batch.edge_index.tolist() == [[5, 6, 7, 6], [4, 5, 6, 7]] or batch.edge_index.min() > 0
    (batch,) = padded(DataLoader([empty], 1), sizes=[(8, 4, 2)], device="cpu")
    assert not batch.node_mask.any() and (batch.x == 1).all()


def test_nodes_without_a_batch_vector():
    """As NeighborLoader and LinkNeighborLoader give them: seeds come first."""
    generator = torch.Generator().manual_seed(1)

    def block(nodes):
        edges = torch.randint(nodes, (2, 3 * nodes), generator=generator)
        return Data(
            x=torch.randn(nodes, 3, generator=generator), edge_index=edges,
            y=torch.randint(5, (nodes,), generator=generator), n_id=torch.arange(nodes),
            e_id=torch.arange(3 * nodes), input_id=torch.arange(4), batch_size=4,
            edge_label_index=torch.zeros(2, 7, dtype=torch.long), num_sampled_nodes=[4, nodes - 4],
        )  # fmt: skip

    blocks = [block(20 + at) for at in range(9)]
    for real, batch in zip(blocks, padded(blocks, device="cpu"), strict=True):
        assert batch.batch_size == 4 and "num_sampled_nodes" not in batch
        assert batch.n_id.numel() == batch.num_nodes > real.num_nodes
        assert batch.e_id.numel() == batch.num_edges >= real.num_edges
        assert torch.equal(batch.input_id, real.input_id) and "graph_mask" not in batch
        assert batch.edge_label_index.shape == (2, 7)


def test_several_types():
    generator = torch.Generator().manual_seed(1)

    def block(nodes):
        data = HeteroData()
        for kind, count in (("a", nodes), ("b", nodes // 2)):
            data[kind].x = torch.randn(count, 3, generator=generator, dtype=torch.float64)
        for source, target in ("ab", "ba", "aa"):
            rows = [data[kind].num_nodes for kind in (source, target)]
            ends = [torch.randint(count, (2 * nodes,), generator=generator) for count in rows]
            data[source, "to", target].edge_index = torch.stack(ends)
        return data

    blocks = [block(20 + at) for at in range(9)]
    layers = {
        tuple(kind): nn.SAGEConv((3, 3), 4).double()
        for kind in (("a", "to", "b"), ("b", "to", "a"))
    }
    model = nn.HeteroConv(layers)
    for real, batch in zip(blocks, padded(blocks, device="cpu"), strict=True):
        wanted, found = (model(one.x_dict, one.edge_index_dict) for one in (real, batch))
        for kind in "ab":
            count = real[kind].num_nodes
            assert batch[kind].node_mask.sum() == count < batch[kind].num_nodes
            torch.testing.assert_close(found[kind][:count], wanted[kind], rtol=0, atol=1e-12)
        for kind in real.edge_types:
            ghosts = batch[kind].edge_index[:, ~batch[kind].edge_mask]
            for row, end in zip(ghosts, (kind[0], kind[2]), strict=True):
                assert (row >= real[end].num_nodes).all() and (row < batch[end].num_nodes).all()


def test_bad_input():
    with pytest.raises(TypeError, match="loader: an iterable of batches is needed, not int"):
        padded(3)
    with pytest.raises(TypeError, match="a batch is a Tensor; Data, Batch or HeteroData"):
        list(padded([torch.ones(3)], device="cpu"))
    with pytest.raises(TypeError, match="a batch has no edge_index"):
        list(padded([Data(x=torch.ones(3, 1))], device="cpu"))
    with pytest.raises(ValueError, match="sizes: 9 of them; 1 to 8 are needed"):
        padded([], sizes=[(1, 1)] * 9)
    with pytest.raises(ValueError, match=r"sizes: \(1,\) is not \(nodes, edges\) or"):
        padded([], sizes=[(1,)])
    assert list(padded([], device="cpu")) == []


# ---- equal training ------------------------------------------------------------------------------


def mlp(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, outputs), torch.nn.ReLU())


DEGREES = torch.tensor([1, 3, 5, 4, 2, 1])
CONVS = {
    "gcn": lambda n: nn.GCNConv(n, 4),
    "sage-mean": lambda n: nn.SAGEConv(n, 4),
    "sage-max": lambda n: nn.SAGEConv(n, 4, aggr="max"),
    "gin": lambda n: nn.GINConv(mlp(n, 4)),
    "gine": lambda n: nn.GINEConv(mlp(n, 4), edge_dim=2),
    "gat": lambda n: nn.GATConv(n, 2, 2),
    "gat-edges": lambda n: nn.GATConv(n, 2, 2, edge_dim=2),
    "gatv2": lambda n: nn.GATv2Conv(n, 2, 2),
    "transformer": lambda n: nn.TransformerConv(n, 2, 2),
    "agnn": lambda n: nn.AGNNConv(),
    "pna": lambda n: nn.PNAConv(n, 4, ["mean", "max", "std"], ["identity", "attenuation"], DEGREES),
    "gps": lambda n: nn.GPSConv(4, nn.GINConv(mlp(4, 4)), heads=2),
}
NORMS = {
    "none": None,
    "layer": nn.LayerNorm,
    "graph": nn.GraphNorm,
    "pair": lambda n: nn.PairNorm(),
    "instance": nn.InstanceNorm,
    "size": lambda n: nn.GraphSizeNorm(),
    "batch": nn.BatchNorm,
    "batch-mean": lambda n: torch.nn.BatchNorm1d(n, momentum=None),
}


class Model(torch.nn.Module):
    """Two layers with a norm behind each, all layers' features or the last ones, and a readout."""

    def __init__(self, conv, norm="none", pool=nn.global_add_pool, jumps=False, of_graphs=False):
        super().__init__()
        make = NORMS[norm]
        self.convs = torch.nn.ModuleList([CONVS[conv](CHANNELS), CONVS[conv](4)])
        self.norms = torch.nn.ModuleList([make(4) if make else torch.nn.Identity()] * 2)
        self.takes_batch = of_graphs
        self.jump = nn.JumpingKnowledge("cat") if jumps else None
        self.pool = pool
        self.head = torch.nn.Linear(8 if jumps else 4, CLASSES)
        self.takes_edges = conv in ("gine", "gat-edges")

    def forward(self, b):
        x, found = b.x, []
        for layer, norm in zip(self.convs, self.norms, strict=True):
            more = (b.edge_attr,) if self.takes_edges else ()
            if isinstance(layer, nn.GPSConv):
                x = layer(x, b.edge_index, b.batch)
            else:
                x = layer(x, b.edge_index, *more)
            x = norm(x, b.batch) if self.takes_batch else norm(x)
            x = torch.tanh(x)
            found.append(x)
        x = x if self.jump is None else self.jump(found)
        return self.head(self.pool(x, b.batch))


CASES = [
    ("gcn", {}),
    ("sage-mean", {"norm": "layer", "pool": nn.global_mean_pool}),
    ("sage-max", {"norm": "graph", "pool": nn.global_max_pool, "jumps": True}),
    ("gin", {"norm": "batch"}),
    ("gine", {"norm": "batch-mean", "pool": nn.global_mean_pool}),
    ("gat", {"norm": "pair", "of_graphs": True}),
    ("transformer", {"norm": "layer", "of_graphs": True, "pool": nn.aggr.SumAggregation()}),
    ("gatv2", {"norm": "size", "pool": nn.global_mean_pool}),
    ("gat-edges", {"norm": "instance", "of_graphs": True}),
    ("agnn", {"norm": "instance"}),
    ("gps", {"norm": "graph", "of_graphs": True}),
    ("pna", {"norm": "pair"}),
]


def train(model, loader, wrap, steps, optimizer, falls=0.5):
    """The losses of some steps, and the parameters after them."""
    made = optimizer(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(made, 10, falls)

    def step(batch):
        made.zero_grad()
        loss = cross_entropy(model(batch), batch.y)
        loss.backward()
        made.step()
        return loss.detach()

    step, losses = wrap(step), []
    while len(losses) < steps:
        for batch in loader:
            losses.append(step(batch).clone())
            scheduler.step()
    state = [value for value in model.state_dict().values() if value.is_floating_point()]
    return torch.stack(losses), state


OPTIMIZERS = [
    lambda p: torch.optim.Adam(p, 0.01),
    lambda p: torch.optim.AdamW(p, 0.01),
    lambda p: torch.optim.SGD(p, 0.05, momentum=0.9),
]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[conv for conv, _ in CASES])
def test_equal_training(number):
    conv, options = CASES[number]
    torch.manual_seed(0)
    model = Model(conv, **options).double()
    # Adam makes steps of the rounding errors of gradients that are 0, as that of a bias is before
    # these norms.
    loses_bias = options.get("norm", "none") not in ("none", "layer", "size")
    other, optimizer = copy.deepcopy(model), OPTIMIZERS[2 if loses_bias else number % 2]
    losses, state = train(model, batches(), lambda step: step, 50, optimizer)
    loader = padded(batches(), device="cpu")
    found, found_state = train(other, loader, capture, 50, optimizer)
    assert loader.too_large == 0
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
    torch.testing.assert_close(found_state, state, rtol=0, atol=1e-9)


@pytest.mark.parametrize("conv", [name for name in CONVS if name != "pna"])
def test_layers_in_a_step_that_is_replayed(conv):
    """On warploom, as a capture runs them: edges are sorted once in the step, and self loops are
    replaced."""
    torch.manual_seed(0)
    model = Model(conv).double()
    for real, batch in zip(batches(), padded(batches(), device="cpu"), strict=True):
        gradients = []
        for one in (real, batch):
            model.zero_grad()
            with _replaying(one) if one is batch else contextlib.nullcontext():
                loss = cross_entropy(model(one), one.y)
            loss.backward()
            gradients.append([loss.detach(), *(p.grad for p in model.parameters())])
        for wanted, found in zip(*gradients, strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("conv", CONVS)
def test_no_step_reads_other_tensors(conv):
    """What layers on warploom make and keep is not taken for a batch of the step itself."""
    torch.manual_seed(0)
    model = Model(conv, norm="batch").double()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    reads, loader = Reads(), padded(batches(), device="cpu")
    warploom.pyg.report(reset=True)
    for batch in loader:
        with _replaying(batch), reads.noted(batch):
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
        assert reads.reason() is None
    counts = warploom.pyg.report(reset=True)
    assert all(set(reasons) == {"warploom"} for reasons in counts.values()), counts
    outside = iter(loader)
    for _ in range(3):
        batch = next(outside)
        with _replaying(batch), reads.noted(()):
            model.convs[0](batch.x, batch.edge_index, **_options_of(conv, batch))
    assert "reads another tensor" in reads.reason()


@contextlib.contextmanager
def _replaying(batch):
    """As a capture runs a step on warploom."""
    with warploom.pyg.accelerate(), _ghosts._surround(batch), _capture._replayed(True):
        yield


def _options_of(conv, batch):
    if conv == "gps":
        return {"batch": batch.batch}
    return {"edge_attr": batch.edge_attr} if conv in ("gine", "gat-edges") else {}


def test_dropout():
    """The mean over the nodes that are real does not depend on the ghosts."""
    torch.manual_seed(0)
    (batch,) = padded([next(iter(batches()))], device="cpu")
    share = torch.nn.functional.dropout(torch.ones(batch.num_nodes, 1000), 0.3)
    assert share[batch.node_mask].mean() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("conv", ["gat", "gatv2", "transformer"])
def test_dropout_of_attention(conv, monkeypatch):
    """Small captured steps leave it to PyG, whose dropout draws other numbers in each replay."""
    monkeypatch.setattr("warploom.pyg._roads.LEAST_WORK", {("others", "cpu"): 2**24})
    model = Model(conv).double()
    for layer in model.convs:
        layer.dropout = 0.5
    batch = next(iter(padded(batches(), device="cpu")))
    before = torch.get_rng_state()
    monkeypatch.setattr("warploom.torch._eager.draw_seed", lambda: pytest.fail("a seed is drawn"))
    warploom.pyg.report(reset=True)
    with _replaying(batch):
        model(batch).sum().backward()
    (reasons,) = warploom.pyg.report(reset=True).values()
    assert reasons == {"dropout of attention in a small captured step": 2}
    assert not torch.equal(before, torch.get_rng_state())  # that of the device, which is the CPU


# ---- where ghosts are not left out ---------------------------------------------------------------


def test_norms_outside_of_a_step():
    """They do not know which lines are ghosts, so they say so."""
    loader = padded(batches(), device="cpu")
    batch = next(iter(loader))
    for norm in (nn.BatchNorm(4), nn.LayerNorm(4), nn.PairNorm()):
        with pytest.raises(
            ValueError, match=r"warploom: \w+Norm\w*: its \d+ lines may be those of"
        ):
            norm.double()(batch.x)
    norm = nn.BatchNorm(4).double().eval()  # uses what it has learnt
    norm(batch.x), nn.BatchNorm(4)(torch.ones(3, 4))
    with pytest.raises(ValueError, match="HeteroBatchNorm: it does not leave out the ghosts"):
        capture(lambda b: nn.HeteroBatchNorm(4, 2).double()(b.x, b.z))(_with_types(batch))
    with pytest.raises(ValueError, match="InstanceNorm: its running statistics would count"):
        norm = nn.InstanceNorm(4, track_running_stats=True).double()
        capture(lambda b: norm(b.x, b.batch))(batch)


def _with_types(batch):
    batch = copy.copy(batch)
    batch.z = torch.zeros(batch.num_nodes, dtype=torch.long)
    return batch


def test_a_loss_that_forgets_the_mask():
    loader = padded(batches(), labels=("pos",), device="cpu")
    batch = next(iter(loader))
    assert (batch.x[:, :3] - batch.pos).square().mean().isnan()
    x = batch.x[:, :3].clone().requires_grad_()
    part = (x - batch.pos).masked_fill(~batch.node_mask.unsqueeze(1), 0)
    part.square().sum().backward()
    assert not x.grad.isnan().any()


def test_nan_in_features_of_ghosts():
    """Copies of nodes that a model leaves out by a mask."""
    data = next(iter(batches()))
    data.x[0] = torch.nan
    (batch,) = padded([data], device="cpu")
    assert batch.x[~batch.node_mask].isnan().any()
    norm = nn.BatchNorm(CHANNELS).double()
    clean = batch.node_mask & ~batch.x.isnan().any(1)
    batch = copy.copy(batch)
    batch.node_mask = clean
    out = capture(lambda b: norm(b.x))(batch)
    assert not out[clean].isnan().any() and not norm.module.running_mean.isnan().any()


# ---- with the stand-in of a GPU ------------------------------------------------------------------


@pytest.fixture
def cuda(monkeypatch):
    import importlib
    import sys
    from pathlib import Path

    folder = str(Path(__file__).parents[1] / "torch")
    sys.path.insert(0, folder)
    cuda = importlib.import_module("recorded_cuda").Cuda()
    sys.path.remove(folder)
    monkeypatch.setattr(_capture, "cuda", cuda)
    monkeypatch.setattr(_capture, "DEVICE", "cpu")
    monkeypatch.setattr(_capture, "leave_pool", lambda *pool: None)
    return cuda


@pytest.mark.parametrize("conv", ["gin", "gine", "sage-mean"])
def test_captured(conv, cuda):
    """Each size has one capture, and large batches run eagerly."""
    torch.manual_seed(0)
    model = Model(conv, norm="batch").double()
    other = copy.deepcopy(model)
    losses, state = train(model, batches(), lambda step: step, 60, OPTIMIZERS[2], 1.0)
    loader = padded(batches(), sizes=[(40, 112, 10), (60, 118, 9)], device="cpu")
    steps = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, found_state = train(
            other, loader, lambda step: steps.append(capture(step)) or steps[0], 60,
            OPTIMIZERS[2], 1.0,
        )  # fmt: skip
    torch.testing.assert_close(found, losses, rtol=0, atol=1e-9)
    torch.testing.assert_close(found_state, state, rtol=0, atol=1e-9)
    (step,) = steps
    assert step.reason is None and 1 <= step.captures <= 2
    assert loader.too_large > 0
    replays = sum(graph.replays for graph in cuda.graphs)
    assert replays + 3 * step.captures + loader.too_large >= len(losses) - 3


def test_batches_are_inputs(cuda):
    """Data, also not padded: their tensors are copied, and numbers belong to the kind."""
    run = capture(lambda b, more: b.x.sum() * b.scale + more["b"].y.sum() + b.edge_index.sum())
    data = molecules()[0]
    for at in range(12):
        batch, other = copy.copy(data), copy.copy(data)
        batch.x, batch.scale = data.x + at, 2.0 if at < 6 else 3.0
        batch.edge_index, other.y = data.edge_index.roll(at, 1), data.y + at
        wanted = batch.x.sum() * batch.scale + other.y.sum() + batch.edge_index.sum()
        torch.testing.assert_close(run(batch, {"b": other}), wanted)
    assert run.reason is None and run.captures == 2


def test_several_types_are_inputs(cuda):
    """Their edges change from the first call on, since one copy moves all tensors."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.ones(5, 2), torch.ones(4, 2)
    run = capture(lambda b: b["a"].x.sum() * 100 + b["a", "to", "b"].edge_index[0].sum())
    made = []
    for at in range(8):
        one = data.clone()
        one["a"].x = one["a"].x * at
        one["a", "to", "b"].edge_index = torch.full((2, 9), at % 4)
        made.append(one)
    for one in padded(made, device="cpu"):
        wanted = one["a"].x.sum() * 100 + one["a", "to", "b"].edge_index[0].sum()
        torch.testing.assert_close(run(one), wanted)
    assert run.reason is None and run.captures == 1


def test_another_type_in_the_middle(cuda):
    """It is another kind of batch."""
    run = capture(lambda b: b.x.sum() + b.num_graphs)
    loader = padded(batches(), device="cpu")
    made = list(loader)
    for dtype in (torch.float64, torch.float32) * 2:
        for data in list(batches())[:5]:
            data.x = data.x.to(dtype)
            torch.testing.assert_close(
                run(loader.pad(data)), loader.pad(data).x.sum() + made[0].num_graphs
            )
    assert run.reason is None and run.captures == 2


def test_one_batch_ahead():
    """A loader is asked for a batch when the one before was made, and its error comes last."""
    events = []

    def batches():
        memory = [0]  # of all batches
        for number in range(4):
            events.append(f"draw {number}")
            memory[0] = number
            yield memory
        raise OSError("no more")

    def double(batch):
        assert threading.current_thread() is not threading.main_thread()
        return 2 * batch[0]

    for _ in range(2):
        events.clear()
        found = _padded._one_ahead(batches(), double)
        assert next(found) == 0 and events == ["draw 0", "draw 1"]
        assert [next(found) for _ in range(3)] == [2, 4, 6]
        with pytest.raises(OSError, match="no more"):
            next(found)
    found = _padded._one_ahead(iter([[1], ["x", None]]), lambda batch: batch[0] + 1)
    assert next(found) == 2
    with pytest.raises(TypeError):  # of the function
        next(found)
    assert list(_padded._one_ahead(iter([]), double)) == []
    found = _padded._one_ahead(batches(), double)
    next(found)
    threads = [one for one in threading.enumerate() if "warploom-padded" in one.name]
    found.close()
    assert len(threads) == 1 and not threads[0].is_alive()
