"""Full-graph training on several devices: the nodes of a graph are shared among the ranks of a
process group of torch.distributed (NCCL on GPUs, gloo on hosts).

    graph = PartitionedGraph.from_edge_index(edge_index, num_nodes)
    c = spmm(graph, graph.scatter(x), reduce="mean")  # rows of this rank's nodes
    loss = mean(torch.nn.functional.cross_entropy(c, graph.scatter(y), reduction="none"))
    loss.backward()
    sum_gradients(model.parameters())

Each rank owns some nodes, the edges that lead to them, and their rows of each tensor of nodes. A
product fetches the rows of the edges' sources from the other ranks and runs as on one device; its
gradient returns the gradients of these rows to their owners, which add them. Sums and means may be
shared in other ways (`split`). All ranks make the same calls in the same order, as in all of
torch.distributed.
"""

from warploom.torch.distributed._graph import PartitionedGraph
from warploom.torch.distributed._products import (
    attention,
    edge_softmax,
    gat,
    gatv2,
    mean,
    message,
    sddmm,
    spmm,
    sum_gradients,
)

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
