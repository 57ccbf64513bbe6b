"""Train GraphSAGE on sampled neighbours: each step uses a new graph once.

    python minibatch.py [STEPS]

It uses the sampler of the benchmarks. PyG's NeighborLoader, which needs pyg-lib, makes batches of
the same form.
"""

import sys

import torch
from torch_geometric.nn import SAGEConv

import warploom.pyg
from warploom.bench.graphs import load
from warploom.bench.sampler import Sampler


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(32, 32), SAGEConv(32, 4)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
graph = load("random:5000:12")
labels = torch.randint(4, (graph.nodes,))
x = torch.randn(graph.nodes, 32) + torch.nn.functional.one_hot(labels, 32)

model = Net().to(device)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
sampler = Sampler(graph, seed_count=256, fanouts=(15, 10))
with warploom.pyg.accelerate():
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 50):
        batch = sampler.sample(seed=number)
        nodes = torch.from_numpy(batch.nodes)
        edge_index = torch.from_numpy(batch.edge_index).to(device)
        optimiser.zero_grad()
        out = model(x[nodes].to(device), edge_index)[: batch.seeds]
        loss = torch.nn.functional.cross_entropy(out, labels[nodes[: batch.seeds]].to(device))
        loss.backward()
        optimiser.step()
        if number % 10 == 0:
            print(f"step {number}: {edge_index.size(1)} edges, loss {loss.item():.4f}")
print(f"last loss: {loss.item():.4f}")
print(warploom.pyg.report())
