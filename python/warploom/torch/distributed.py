"""Full-graph training on several devices: the rows of a graph are shared among the ranks of a
process group of torch.distributed (NCCL on GPUs, gloo on hosts).

    graph = PartitionedGraph.from_edge_index(edge_index, num_nodes)
    c = spmm(graph, graph.scatter(x), reduce="mean")  # rows of this rank's nodes
    loss = mean(torch.nn.functional.cross_entropy(c, graph.scatter(y), reduction="none"))
    loss.backward()
    sum_gradients(model.parameters())

Each rank owns some nodes, the edges that lead to them, and their rows of each tensor of nodes. A
product first fetches the rows of the edges' sources from the other ranks and then runs as on one
device; its gradient returns the gradients of these rows to their owners, which add them. All ranks
make the same calls in the same order, as in all of torch.distributed.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, Callable, TypeVar, Union

import torch
import torch.distributed as dist

from warploom import torch as products
from warploom.torch._graph import Graph, need_tensor

__all__ = [
    "PartitionedGraph",
    "attention",
    "edge_softmax",
    "gat",
    "gatv2",
    "mean",
    "message",
    "sddmm",
    "spmm",
    "sum_gradients",
]

Tensor = torch.Tensor
EXCHANGES = ("auto", "all", "needed")


def _need(holds: Any, text: str, error: type[Exception] = ValueError) -> None:
    if not holds:
        raise error("warploom: " + text)


# ---- what the ranks tell each other ------------------------------------------------------------


def _agree(group: Any, device: torch.device, numbers: dict[str, int]) -> None:
    """Raise ValueError on every rank if these numbers differ between ranks."""
    own = torch.tensor(list(numbers.values()), device=device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size(group))]
    dist.all_gather(found, own, group=group)
    for rank, other in enumerate(found):
        for name, first, value in zip(numbers, found[0].tolist(), other.tolist()):
            _need(first == value, f"{name}: rank 0 has {first}, rank {rank} has {value}")


def _swap(group: Any, sent: Tensor, out: list[int], back: list[int]) -> Tensor:
    """Send out[r] rows of `sent` to rank r, and return the back[r] rows that came from it."""
    received = sent.new_empty((sum(back), *sent.shape[1:]))
    dist.all_to_all_single(received, sent.contiguous(), back, out, group=group)
    return received


# ---- the two ways to fetch rows ----------------------------------------------------------------


class _AllRows:
    """Each rank gets all rows: rank r's begin at r * widest."""

    name = "all"

    def __init__(self, group: Any, own: int, widest: int) -> None:
        self.group, self.own, self.widest = group, own, widest
        self.ranks = dist.get_world_size(group)
        self.columns = self.ranks * widest
        self.received = self.columns - widest

    def fetch(self, b: Tensor) -> Tensor:
        if self.own < self.widest:
            rest = b.new_zeros((self.widest - self.own, *b.shape[1:]))
            b = torch.cat([b, rest])
        found = b.new_empty((self.columns, *b.shape[1:]))
        dist.all_gather_into_tensor(found, b.contiguous(), group=self.group)
        return found

    def give_back(self, gradient: Tensor) -> Tensor:
        own = gradient.new_empty((self.widest, *gradient.shape[1:]))
        dist.reduce_scatter_tensor(own, gradient.contiguous(), group=self.group)
        return own[: self.own]


class _NeededRows:
    """Each rank gets the rows that its edges read, by owner and place."""

    name = "needed"

    def __init__(self, group: Any, own: int, widest: int, keys: Tensor) -> None:
        ranks = dist.get_world_size(group)
        counts = torch.bincount(keys // widest, minlength=ranks)
        asked = torch.empty_like(counts)
        dist.all_to_all_single(asked, counts, group=group)
        self.group = group
        self.columns = keys.shape[0]
        self.get, self.send = counts.tolist(), asked.tolist()
        self.places = _swap(group, keys % widest, self.get, self.send)
        rank = dist.get_rank(group)
        self.received = self.columns - self.get[rank]
        lines = torch.arange(self.places.shape[0], device=keys.device)
        # Adds what the ranks send back in an order that is always the same.
        self.adding = Graph.from_edge_index(
            torch.stack([lines, self.places]), rows=own, cols=lines.shape[0]
        )

    def fetch(self, b: Tensor) -> Tensor:
        return _swap(self.group, b.index_select(0, self.places), self.send, self.get)

    def give_back(self, gradient: Tensor) -> Tensor:
        parts = _swap(self.group, gradient, self.get, self.send)
        flat = parts.reshape(parts.shape[0], math.prod(parts.shape[1:]))
        added = products.spmm(self.adding, flat, message="copy_b")
        return added.reshape(added.shape[0], *parts.shape[1:])


_Exchange = Union[_AllRows, _NeededRows]


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, b: Tensor, exchange: _Exchange, wire: torch.dtype | None) -> Tensor:
        ctx.exchange, ctx.wire, ctx.dtype = exchange, wire, b.dtype
        return exchange.fetch(b if wire is None else b.to(wire)).to(b.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        sent = gradient if ctx.wire is None else gradient.to(ctx.wire)
        return ctx.exchange.give_back(sent).to(ctx.dtype), None, None


TRIAL_COLUMNS = 64  # float32
_TRIAL_BYTES = 2**26
_TRIALS = 3


def _fetch_time(exchange: _Exchange, own: int, device: torch.device) -> float:
    """Seconds that the slowest rank takes to fetch TRIAL_COLUMNS columns; measured with fewer where
    rows are many."""
    fitting = _TRIAL_BYTES // (4 * max(exchange.columns, 1))
    common = torch.tensor([max(1, min(TRIAL_COLUMNS, fitting))], device=device)
    dist.all_reduce(common, dist.ReduceOp.MIN, group=exchange.group)
    columns = int(common)
    b = torch.zeros((own, columns), device=device)
    times = []
    for _ in range(1 + _TRIALS):  # the first one opens connections
        dist.barrier(group=exchange.group)
        begin = time.perf_counter()
        exchange.fetch(b)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - begin)
    slowest = torch.tensor([min(times[1:]) * TRIAL_COLUMNS / columns], device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX, group=exchange.group)
    return float(slowest)


# ---- the graph ---------------------------------------------------------------------------------


def _balanced(targets: Tensor, num_nodes: int, ranks: int) -> Tensor:
    """The rank of each node: ranges of nodes with about as many edges and nodes together each."""
    work = torch.bincount(targets, minlength=num_nodes) + 1
    before = work.cumsum(0) - work
    total = int(work.sum()) if num_nodes else 1
    return (before * ranks).div(total, rounding_mode="floor").clamp(max=ranks - 1)


class PartitionedGraph:
    """This rank's part of a graph: some of its nodes, and the edges that lead to them.

    nodes: the numbers of this rank's nodes in the whole graph, ascending, (own,).
    num_nodes: nodes of the whole graph.
    edges: the places of this rank's edges among those that this rank passed, (local.nnz,).
    local: the Graph of these edges. Its rows are `nodes`; its columns are what `fetch` returns.
        `weights[graph.edges][graph.local.perm]` are the values that spmm takes.
    """

    def __init__(
        self, edge_index: Tensor, owner: Tensor, exchange: str, wire: torch.dtype | None, group: Any
    ) -> None:
        """Use from_edge_index. owner: the rank of each node, equal on all ranks."""
        self.group, self.wire, self.num_nodes = group, wire, owner.shape[0]
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.device = edge_index.device
        self.nodes = (owner == self.rank).nonzero().squeeze(1)
        self._counts = torch.bincount(owner, minlength=self.ranks).tolist()
        self._order = owner.argsort(stable=True)  # all nodes by rank
        starts = torch.tensor([0, *self._counts[:-1]], device=self.device).cumsum(0)
        place = torch.empty_like(self._order)
        place[self._order] = torch.arange(self.num_nodes, device=self.device)
        place -= starts[owner]

        widest = max(1, *self._counts)
        own = (owner[edge_index[1]] == self.rank).nonzero().squeeze(1)
        sources, targets = edge_index[:, own]
        keys, columns = torch.unique(owner[sources] * widest + place[sources], return_inverse=True)
        self.times: dict[str, float] = {}
        self.exchange = self._choose(exchange, widest, keys)
        if isinstance(self.exchange, _AllRows):
            columns = keys[columns]
        pairs = torch.stack([columns, place[targets]])
        rows = self.nodes.shape[0]
        self.local = Graph.from_edge_index(pairs, rows=rows, cols=self.exchange.columns)
        self.edges = own

    def _choose(self, wanted: str, widest: int, keys: Tensor) -> _Exchange:
        own = self.nodes.shape[0]
        every = _AllRows(self.group, own, widest)
        if wanted == "all" or (wanted == "auto" and self.ranks == 1):
            return every
        needed = _NeededRows(self.group, own, widest, keys)
        if wanted == "needed":
            return needed
        self.times = {e.name: _fetch_time(e, own, self.device) for e in (every, needed)}
        return every if self.times["all"] < self.times["needed"] else needed

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        assignment: Tensor | None = None,
        own_edges: bool = False,
        exchange: str = "auto",
        wire: torch.dtype | None = None,
        group: Any = None,
    ) -> PartitionedGraph:
        """A graph from PyG's edge_index (2, edges), whose row 0 has the sources and row 1 the
        targets. Every rank of the group calls it.

        num_nodes: None = one more than the largest index of any rank.
        assignment: the rank of each node, (num_nodes,), equal on all ranks; None = ranges of nodes
            with about as many edges each.
        own_edges: False = each rank passes the whole graph; True = each rank passes the edges that
            lead to its own nodes only, which needs an assignment.
        exchange: "all" = a product fetches the rows of all nodes; "needed" = those that its edges
            read; "auto" = what is quicker when both are tried here.
        wire: the type in which rows and their gradients travel, such as torch.bfloat16, which
            halves the bytes of float32 and rounds them; None = their own type.
        group: of torch.distributed; None = all ranks.

        Raises ValueError on every rank where the ranks disagree about the graph.
        """
        _need(
            dist.is_available() and dist.is_initialized(),
            "torch.distributed is not initialized; call init_process_group first",
            RuntimeError,
        )
        _need(
            exchange in EXCHANGES, f"exchange: '{exchange}' is unknown, use {', '.join(EXCHANGES)}"
        )
        need_tensor("edge_index", edge_index)
        _need(
            edge_index.dim() == 2
            and edge_index.shape[0] == 2
            and edge_index.dtype in (torch.int32, torch.int64),
            f"edge_index: {edge_index.dtype} of the shape {tuple(edge_index.shape)}, integers of "
            "the shape (2, edges) are needed",
        )
        _need(
            assignment is not None or not own_edges,
            "own_edges: an assignment says which nodes are whose",
        )
        edge_index = edge_index.long()
        least, most = (
            (int(value) for value in edge_index.aminmax()) if edge_index.numel() else (0, -1)
        )
        if num_nodes is None:
            count = torch.tensor([most + 1], device=edge_index.device)
            dist.all_reduce(count, dist.ReduceOp.MAX, group=group)
            num_nodes = int(count)
        _agree(
            group,
            edge_index.device,
            {
                "num_nodes": num_nodes,
                "edges": 0 if own_edges else edge_index.shape[1],
                "exchange, by number": EXCHANGES.index(exchange),
                "edge_index outside of the nodes": int(least < 0 or most >= num_nodes),
            },
        )
        _need(
            least >= 0 and most < num_nodes,
            f"edge_index: {least} to {most} lie outside the {num_nodes} nodes",
        )
        ranks = dist.get_world_size(group)
        if assignment is None:
            owner = _balanced(edge_index[1], num_nodes, ranks)
        else:
            owner = cls._checked(assignment, edge_index, num_nodes, own_edges, group)
        return cls(edge_index, owner, exchange, wire, group)

    @staticmethod
    def _checked(
        assignment: Tensor, edge_index: Tensor, num_nodes: int, own_edges: bool, group: Any
    ) -> Tensor:
        need_tensor("assignment", assignment)
        _need(
            assignment.shape == (num_nodes,),
            f"assignment: the shape is {tuple(assignment.shape)}, ({num_nodes},) is needed",
        )
        owner = assignment.to(edge_index.device).long()
        ranks = dist.get_world_size(group)
        if num_nodes:
            least, most = (int(value) for value in owner.aminmax())
            _need(
                least >= 0 and most < ranks,
                f"assignment: {least} to {most} lie outside the {ranks} ranks",
            )
        weights = torch.arange(1, num_nodes + 1, device=owner.device)
        _agree(group, owner.device, {"assignment, as a sum": int((owner * weights).sum())})
        if own_edges:
            rank = dist.get_rank(group)
            others = (owner[edge_index[1]] != rank).nonzero()
            _need(
                not others.numel(),
                f"own_edges: {others.numel()} of the edges of rank {rank} lead to nodes of others",
            )
        return owner

    # ---- tensors of nodes ----------------------------------------------------------------

    def scatter(self, x: Tensor) -> Tensor:
        """This rank's rows of a tensor of all nodes, (num_nodes, ...)."""
        _need(
            x.shape[0] == self.num_nodes,
            f"x: {x.shape[0]} rows, and the graph has {self.num_nodes} nodes",
        )
        return x[self.nodes.to(x.device)]

    def collect(self, x: Tensor) -> Tensor:
        """The tensor of all nodes, (num_nodes, ...), on every rank, from each rank's rows; without
        gradients."""
        self._check_rows("x", x)
        exchange = _AllRows(self.group, x.shape[0], max(1, *self._counts))
        parts = torch.split(exchange.fetch(x.detach()), exchange.widest)
        by_rank = torch.cat([part[:count] for part, count in zip(parts, self._counts)])
        return torch.empty_like(by_rank).index_copy_(0, self._order, by_rank)

    def fetch(self, b: Tensor) -> Tensor:
        """The rows of the columns of `local`, from each rank's own rows; differentiable."""
        self._check_rows("b", b)
        if self.ranks == 1 and isinstance(self.exchange, _AllRows):
            return b
        return _Fetch.apply(b, self.exchange, self.wire)  # type: ignore[no-any-return,no-untyped-call]

    def _check_rows(self, name: str, x: Tensor) -> None:
        need_tensor(name, x)
        _need(
            x.dim() > 0 and x.shape[0] == self.nodes.shape[0],
            f"{name}: the shape is {tuple(x.shape)}, and rank {self.rank} has "
            f"{self.nodes.shape[0]} nodes",
        )

    def explain(self) -> str:
        """What this rank owns and fetches, and why it fetches so."""
        rows = self.exchange.received
        others = self.num_nodes - self.nodes.shape[0]
        text = (
            f"rank {self.rank} of {self.ranks}: {self.nodes.shape[0]} of {self.num_nodes} nodes, "
            f"{self.local.nnz} edges; fetches {self.exchange.name} rows: {rows} from other ranks, "
            f"which have {others}"
        )
        if self.times:
            tried = ", ".join(f"{name} {1e6 * t:.0f} us" for name, t in self.times.items())
            text += f" (tried for {TRIAL_COLUMNS} columns of float32: {tried})"
        return text

    def __repr__(self) -> str:
        return f"PartitionedGraph({self.explain()})"


# ---- products ----------------------------------------------------------------------------------

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _need_part(graph: Any) -> None:
    if not isinstance(graph, PartitionedGraph):
        raise TypeError(
            f"warploom: graph: a PartitionedGraph is needed, not {type(graph).__name__}"
        )


def _partitioned(function: _Function, *by_column: str) -> _Function:
    """The function of warploom.torch for a PartitionedGraph; these operands have a row for each
    column of A."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(graph: PartitionedGraph, *args: Any, **options: Any) -> Any:
        _need_part(graph)
        given = signature.bind(graph.local, *args, **options)
        for name in by_column:
            given.arguments[name] = graph.fetch(given.arguments[name])
        return function(*given.args, **given.kwargs)

    call.__doc__ = (
        f"As warploom.torch.{function.__name__}, for a PartitionedGraph: operands and results of\n"
        "    nodes have the rows of this rank's nodes, those of edges belong to `graph.edges`."
    )
    return call  # type: ignore[return-value]


spmm = _partitioned(products.spmm, "b")
sddmm = _partitioned(products.sddmm, "b")
edge_softmax = _partitioned(products.edge_softmax)
gat = _partitioned(products.gat, "b", "right")
gatv2 = _partitioned(products.gatv2, "b")
attention = _partitioned(products.attention, "k", "v")


def message(
    graph: PartitionedGraph,
    expression: str,
    *,
    operands: Mapping[str, Any] | None = None,
    **options: Any,
) -> Tensor | tuple[Tensor, ...]:
    """As warploom.torch.message, for a PartitionedGraph: operands and results of nodes have the
    rows of this rank's nodes, those of edges belong to `graph.edges`. There is no `transpose`."""
    _need_part(graph)
    _need(
        not options.get("transpose"),
        "transpose: results of columns belong to other ranks; partition the reversed edges",
    )
    for name in ("b", "k"):
        if isinstance(options.get(name), Tensor):
            options[name] = graph.fetch(options[name])
    given = {
        name: (place, graph.fetch(value)) if place == "column" else (place, value)
        for name, (place, value) in (operands or {}).items()
    }
    return products.message(graph.local, expression, operands=given, **options)


# ---- losses and gradients of weights -----------------------------------------------------------


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, losses: Tensor, group: Any) -> Tensor:
        count = torch.tensor(float(losses.numel()), device=losses.device)
        total = losses.sum()
        dist.all_reduce(count, group=group)
        dist.all_reduce(total, group=group)
        ctx.shape = losses.shape
        ctx.save_for_backward(count)
        return total / count

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (count,) = ctx.saved_tensors
        return (gradient / count).expand(ctx.shape), None


def mean(losses: Tensor, group: Any = None) -> Tensor:
    """The mean of the losses of all ranks, equal on each; differentiable.

    losses: of this rank's nodes, any shape, also none at all. The gradient is that of this rank's
        part, so the gradients of weights are complete after sum_gradients.
    """
    return _Mean.apply(losses, group)  # type: ignore[no-any-return,no-untyped-call]


def sum_gradients(parameters: Iterable[Tensor], group: Any = None) -> None:
    """Add up the gradients of weights over all ranks, in place, after backward().

    parameters: the same ones in the same order on every rank. One without a gradient on this rank
        counts as zeros.
    """
    by_dtype: dict[torch.dtype, list[Tensor]] = {}
    for parameter in parameters:
        if not parameter.requires_grad:
            continue
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        by_dtype.setdefault(parameter.dtype, []).append(parameter.grad)
    for gradients in by_dtype.values():
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        dist.all_reduce(flat, group=group)
        for gradient, part in zip(gradients, torch.split(flat, [g.numel() for g in gradients])):
            gradient.copy_(part.view_as(gradient))
