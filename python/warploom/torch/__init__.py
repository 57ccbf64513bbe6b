"""warploom for PyTorch: products of sparse graphs with dense tensors, with gradients.

    graph = warploom.torch.Graph.from_edge_index(edge_index)
    c = warploom.torch.spmm(graph, b, reduce="mean")

Work goes to the current stream of the tensors' device and takes memory from torch's allocator.
Tensors of the CPU use warploom's host device.
"""

from warploom.torch._attention import attention, gat, gatv2
from warploom.torch._calibrate import calibrate
from warploom.torch._capture import capture
from warploom.torch._eager import edge_softmax, sddmm, spmm
from warploom.torch._graph import Graph
from warploom.torch._message import message
from warploom.torch._plan import Sample
from warploom.torch._sampling import LayerSampling, Sampling, Tried, sampling

__all__ = [
    "Graph",
    "LayerSampling",
    "Sample",
    "Sampling",
    "Tried",
    "attention",
    "calibrate",
    "capture",
    "edge_softmax",
    "gat",
    "gatv2",
    "message",
    "sampling",
    "sddmm",
    "spmm",
]
