"""PartitionedGraph: a rank's part of a graph, and the choice of how its ranks share products."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch
import torch.distributed as dist

from warploom import _arguments
from warploom.torch._graph import Graph, need, need_tensor
from warploom.torch._plan import index_type
from warploom.torch.distributed._exchange import (
    EXCHANGES,
    AllRows,
    Exchange,
    Fetch,
    NeededRows,
    OwnRows,
    Parts,
    agree,
    time_of,
)
from warploom.torch.distributed._ways import SPLITS, WAYS, Choice, Part, Way, choose

Tensor = torch.Tensor


def _balanced(targets: Tensor, num_nodes: int, ranks: int) -> Tensor:
    """The rank of each node: ranges of nodes with about as many edges and nodes together each."""
    work = torch.bincount(targets, minlength=num_nodes) + 1
    before = work.cumsum(0) - work
    total = int(work.sum()) if num_nodes else 1
    return (before * ranks).div(total, rounding_mode="floor").clamp(max=ranks - 1)


# Values that run as others until the next version.
_DEPRECATED = {("exchange", "copies"): "all", ("split", "columns"): "near"}


def _current(name: str, value: str) -> str:
    """What a value of an option runs as; warns where that is another one."""
    current = _DEPRECATED.get((name, value), value)
    if current != value:
        warnings.warn(
            f"warploom: {name}: '{value}' is deprecated and runs as '{current}'; "
            f"use '{current}' or 'auto'",
            DeprecationWarning,
            stacklevel=3,
        )
    return current


class Options(NamedTuple):
    """How ranks exchange rows and share products; see PartitionedGraph.from_edge_index."""

    exchange: str
    split: str
    columns: int
    wire: torch.dtype | None


class PartitionedGraph:
    """This rank's part of a graph: some of its nodes, and the edges that lead to them.

    nodes: the numbers of this rank's nodes in the whole graph, ascending, (own,).
    num_nodes: nodes of the whole graph.
    edges: the places of this rank's edges among those that this rank passed, (local.nnz,), of int32
        where they fit.
    local: the Graph of these edges. Its rows are `nodes`; its columns are what `fetch` returns.
        `weights[graph.edges][graph.local.perm]` are the values that spmm takes.
    """

    def __init__(self, edge_index: Tensor, owner: Tensor, options: Options, group: Any) -> None:
        """Use from_edge_index. owner: the rank of each node, equal on all ranks."""
        self.group, self.num_nodes = group, owner.shape[0]
        self._options, self.wire = options, options.wire
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.device = edge_index.device
        self.nodes = (owner == self.rank).nonzero().squeeze(1)
        self._counts = torch.bincount(owner, minlength=self.ranks).tolist()
        self._order = owner.argsort(stable=True)  # all nodes by rank
        position = torch.empty_like(self._order)  # of each node among these
        position[self._order] = torch.arange(self.num_nodes, device=self.device)
        starts = torch.tensor([0, *self._counts[:-1]], device=self.device).cumsum(0)
        place = position - starts[owner]

        widest = max(1, *self._counts)
        own = (owner[edge_index[1]] == self.rank).nonzero().squeeze(1)
        sources, targets = edge_index[:, own]
        keys, columns = torch.unique(owner[sources] * widest + place[sources], return_inverse=True)
        self.times: dict[str, float] = {}
        self.exchange = self._choose(widest, keys)
        if isinstance(self.exchange, AllRows):
            columns = keys[columns]
        elif isinstance(self.exchange, OwnRows):
            columns = place[sources]
        pairs = torch.stack([columns, place[targets]])
        rows = self.nodes.shape[0]
        self.local = Graph.from_edge_index(pairs, rows=rows, cols=self.exchange.columns)
        self.edges = own.to(index_type(0, 0, edge_index.shape[1]))
        # Where one rank owns all nodes there is nothing to share.
        split = "rows" if isinstance(self.exchange, OwnRows) else options.split
        self._made: Way | None = None
        self.choice: Choice = choose(self._part(), split, options.columns)

    def _part(self) -> Part:
        return Part(self.group, self.local, self.exchange, self.wire, self._counts)

    @property
    def way(self) -> Way:
        """How ranks share a sum. It is made at its first use, since it has its own copy of edges;
        all ranks make it at the same time."""
        if self._made is None:
            self._made = WAYS[self.choice.name](self._part())
        return self._made

    def _choose(self, widest: int, keys: Tensor) -> Exchange:
        own = self.nodes.shape[0]
        if widest >= self.num_nodes:
            return OwnRows(self.group, own)
        wanted = self._options.exchange
        tried: list[Exchange] = []
        b = torch.zeros((own, self._options.columns), device=self.device)
        if wanted in ("auto", "all"):
            tried.append(AllRows(self.group, own, widest))
        if wanted in ("auto", "needed"):
            tried.append(NeededRows(self.group, own, widest, keys))
        if len(tried) == 1:
            return tried[0]
        for exchange in tried:

            def fetch(exchange: Exchange = exchange) -> Tensor:
                return exchange.start(b).wait()

            self.times[exchange.name] = time_of(self.group, self.device, fetch)
        return min(tried, key=lambda exchange: self.times[exchange.name])

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        *,
        assignment: Tensor | None = None,
        own_edges: bool = False,
        exchange: str = "auto",
        split: str = "auto",
        columns: int = 64,
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
        exchange: "all" = a product fetches the rows of all nodes; "needed" = the rows that its
            edges read; "auto" = what is quickest when tried here.
        split: how ranks share a sum or mean: "rows" = they fetch rows and multiply; "near" = they
            multiply their own rows meanwhile; "features" = each multiplies some columns of the
            whole graph; "auto" = what is quickest when tried here. "auto" gives all nodes to rank 0
            where one device is expected to be quicker and holds them, unless there is an
            assignment.
        columns: of the operands with which "auto" tries; the features of your layers.
        wire: the type in which rows and their gradients travel, such as torch.bfloat16, which
            halves the bytes of float32 and rounds them; None = their own type.
        group: of torch.distributed; None = all ranks.

        Raises ValueError on every rank where the ranks disagree about the graph.
        """
        need(
            dist.is_available() and dist.is_initialized(),
            "torch.distributed is not initialized; call init_process_group first",
            RuntimeError,
        )
        exchange = _current("exchange", exchange)
        split = _current("split", split)
        need(
            exchange in EXCHANGES, f"exchange: '{exchange}' is unknown, use {', '.join(EXCHANGES)}"
        )
        need_tensor("edge_index", edge_index)
        need(
            edge_index.dim() == 2
            and edge_index.shape[0] == 2
            and edge_index.dtype in (torch.int32, torch.int64),
            f"edge_index: {edge_index.dtype} of the shape {tuple(edge_index.shape)}, integers of "
            "the shape (2, edges) are needed",
        )
        need(
            assignment is not None or not own_edges,
            "own_edges: an assignment says which nodes are whose",
        )
        need(split in SPLITS, f"split: '{split}' is unknown, use {', '.join(SPLITS)}")
        columns = _arguments.integer("columns", columns, least=1)
        edge_index = edge_index.long()
        least, most = (
            (int(value) for value in edge_index.aminmax()) if edge_index.numel() else (0, -1)
        )
        if num_nodes is None:
            count = torch.tensor([most + 1], device=edge_index.device)
            dist.all_reduce(count, dist.ReduceOp.MAX, group=group)
            num_nodes = int(count)
        agree(
            group,
            edge_index.device,
            {
                "num_nodes": num_nodes,
                "edges": 0 if own_edges else edge_index.shape[1],
                "exchange, by number": EXCHANGES.index(exchange),
                "split, by number": SPLITS.index(split),
                "columns": columns,
                "edge_index outside of the nodes": int(least < 0 or most >= num_nodes),
            },
        )
        need(
            least >= 0 and most < num_nodes,
            f"edge_index: {least} to {most} lie outside the {num_nodes} nodes",
        )
        ranks = dist.get_world_size(group)
        if assignment is None:
            owner = _balanced(edge_index[1], num_nodes, ranks)
        else:
            owner = cls._checked(assignment, edge_index, num_nodes, own_edges, group)
        options = Options(exchange, split, columns, wire)
        made = cls(edge_index, owner, options, group)
        if made.choice.is_too_small and assignment is None:
            small = made.choice
            made = cls(edge_index, torch.zeros_like(owner), options, group)
            made.choice = made.choice._replace(small=small.explain())
        return made

    @staticmethod
    def _checked(
        assignment: Tensor, edge_index: Tensor, num_nodes: int, own_edges: bool, group: Any
    ) -> Tensor:
        need_tensor("assignment", assignment)
        need(
            assignment.shape == (num_nodes,),
            f"assignment: the shape is {tuple(assignment.shape)}, ({num_nodes},) is needed",
        )
        owner = assignment.to(edge_index.device).long()
        ranks = dist.get_world_size(group)
        if num_nodes:
            least, most = (int(value) for value in owner.aminmax())
            need(
                least >= 0 and most < ranks,
                f"assignment: {least} to {most} lie outside the {ranks} ranks",
            )
        weights = torch.arange(1, num_nodes + 1, device=owner.device)
        agree(group, owner.device, {"assignment, as a sum": int((owner * weights).sum())})
        if own_edges:
            rank = dist.get_rank(group)
            others = (owner[edge_index[1]] != rank).nonzero()
            need(
                not others.numel(),
                f"own_edges: {others.numel()} of the edges of rank {rank} lead to nodes of others",
            )
        return owner

    # ---- tensors of nodes ----------------------------------------------------------------

    def scatter(self, x: Tensor) -> Tensor:
        """This rank's rows of a tensor of all nodes, (num_nodes, ...)."""
        need(
            x.shape[0] == self.num_nodes,
            f"x: {x.shape[0]} rows, and the graph has {self.num_nodes} nodes",
        )
        return x[self.nodes.to(x.device)]

    def collect(self, x: Tensor) -> Tensor:
        """The tensor of all nodes, (num_nodes, ...), on every rank, from each rank's rows; without
        gradients."""
        self._check_rows("x", x)
        by_rank = Parts(self.group, self._counts).gather(x.detach())
        return torch.empty_like(by_rank).index_copy_(0, self._order, by_rank)

    def fetch(self, b: Tensor) -> Tensor:
        """The rows of the columns of `local`, from each rank's own rows; differentiable."""
        self._check_rows("b", b)
        if isinstance(self.exchange, OwnRows):
            return b
        return Fetch.apply(b, self.exchange, self.wire)  # type: ignore[no-any-return,no-untyped-call]

    def edge_index(self) -> Tensor:
        """Sources and targets of this rank's edges in the whole graph, (2, local.nnz), in the order
        of `local`. All ranks call it."""
        local = self.local
        sources = self.exchange.start(self.nodes).wait().index_select(0, local.colind)
        targets = self.nodes.repeat_interleave(local.degrees(), output_size=local.nnz)
        return torch.stack([sources, targets])

    def with_edges(self, edge_index: Tensor) -> PartitionedGraph:
        """A graph of the same nodes on the same ranks with other edges, (2, edges), to this rank's
        nodes. All ranks call it."""
        owner = torch.empty_like(self._order)
        ranks = torch.arange(self.ranks, device=self.device)
        owner[self._order] = ranks.repeat_interleave(
            torch.tensor(self._counts, device=self.device), output_size=self.num_nodes
        )
        name = self.choice.name
        options = self._options._replace(exchange=self.exchange.name, split=name)
        return PartitionedGraph(edge_index, owner, options, self.group)

    def _check_rows(self, name: str, x: Tensor) -> None:
        need_tensor(name, x)
        need(
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
            text += f" (tried for {self._options.columns} columns of float32: {tried})"
        return f"{text}; {self.choice.explain()}"

    def __repr__(self) -> str:
        return f"PartitionedGraph({self.explain()})"
