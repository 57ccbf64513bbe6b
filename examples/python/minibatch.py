"""Train GraphSAGE on sampled neighbours: each step uses a new graph once.

    python minibatch.py [STEPS]

PyG's NeighborLoader (it needs pyg-lib) makes batches of the same form.
"""

import sys

import torch
from torch.nn.functional import cross_entropy, one_hot
from torch_geometric.nn import GraphSAGE

import warploom.pyg

NODES, DEGREE, SEEDS = 5000, 12, 256


def sample(neighbours, fanouts):
    """Return the nodes of a batch, seeds first, and edges from sampled neighbours to them."""
    nodes, edges = torch.randperm(NODES)[:SEEDS], []
    frontier = nodes
    for fanout in fanouts:
        sources = neighbours[frontier[:, None], torch.randint(DEGREE, (len(frontier), fanout))]
        edges.append(torch.stack([sources.flatten(), frontier.repeat_interleave(fanout)]))
        found = sources.unique()
        frontier = found[~torch.isin(found, nodes)]
        nodes = torch.cat([nodes, frontier])
    place = torch.empty(NODES, dtype=torch.long)
    place[nodes] = torch.arange(len(nodes))
    return nodes, place[torch.cat(edges, dim=1)]


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
neighbours = torch.randint(NODES, (NODES, DEGREE))
labels = torch.randint(4, (NODES,))
x = torch.randn(NODES, 32) + one_hot(labels, 32)

model = GraphSAGE(32, 32, num_layers=2, out_channels=4).to(device)
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
with warploom.pyg.accelerate():
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 50):
        nodes, edge_index = sample(neighbours, fanouts=(10, 5))
        optimiser.zero_grad()
        out = model(x[nodes].to(device), edge_index.to(device))[:SEEDS]
        loss = cross_entropy(out, labels[nodes[:SEEDS]].to(device))
        loss.backward()
        optimiser.step()
        if number % 10 == 0:
            print(f"step {number}: {edge_index.size(1)} edges, loss {loss.item():.4f}")
print(f"last loss: {loss.item():.4f}")
print(warploom.pyg.report())
