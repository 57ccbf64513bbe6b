"""Sparse products in JAX, under jit, grad and vmap, on CPUs and GPUs.

    graph = Graph.from_edges(senders, receivers, rows=nodes)
    c = spmm(graph, b)                # segment_sum(b[senders], receivers, nodes)

A compiled program calls the library through XLA's FFI: it runs no Python, waits for nothing, and
takes workspaces from XLA.
"""

from warploom.jax._graph import Graph
from warploom.jax._message import edge_softmax, gat, message
from warploom.jax._products import sddmm, spmm

__all__ = ["Graph", "edge_softmax", "gat", "message", "sddmm", "spmm"]
