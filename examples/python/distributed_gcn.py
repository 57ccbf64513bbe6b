"""Train a two-layer GCN with the nodes of one graph shared among processes:

torchrun --nproc-per-node 2 distributed_gcn.py [cuda]
"""

import os
import sys

import torch
import torch.distributed as dist

from warploom.torch.distributed import PartitionedGraph, mean, spmm, sum_gradients

NODES, EDGES, FEATURES, CLASSES = 2000, 20000, 16, 4

on_gpu = sys.argv[1:] == ["cuda"]
dist.init_process_group("nccl" if on_gpu else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)

torch.manual_seed(0)  # every process makes the same graph and the same weights
x = torch.randn(NODES, FEATURES, device=device)
y = (x @ torch.randn(FEATURES, CLASSES, device=device)).argmax(1)
edges = torch.randint(0, NODES, (2, EDGES), device=device)
edges = torch.cat([edges, torch.arange(NODES, device=device).expand(2, -1)], dim=1)
root = torch.bincount(edges[1], minlength=NODES).rsqrt()
layers = [torch.nn.Linear(FEATURES, 32), torch.nn.Linear(32, CLASSES)]
weights = [weight for layer in layers for weight in layer.to(device).parameters()]
optimizer = torch.optim.Adam(weights, lr=0.05)

graph = PartitionedGraph.from_edge_index(edges, NODES)
norm = (root[edges[0]] * root[edges[1]])[graph.edges][graph.local.perm]
x, y = graph.scatter(x), graph.scatter(y)
for step in range(40):
    optimizer.zero_grad()
    hidden = spmm(graph, layers[0](x), norm).relu()
    out = spmm(graph, layers[1](hidden), norm)
    loss = mean(torch.nn.functional.cross_entropy(out, y, reduction="none"))
    loss.backward()
    sum_gradients(weights)
    optimizer.step()
    if graph.rank == 0 and step % 13 == 0:
        print(f"step {step}: loss {loss:.4f}")
print(graph.explain())
del graph, hidden, out, loss  # the graph keeps the group
dist.destroy_process_group()
