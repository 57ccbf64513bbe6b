"""Train a graph classifier on batches of molecules; on a GPU each step is one CUDA graph.

python molecules.py [EPOCHS]                                # without a GPU it trains eagerly
"""

import sys

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, global_add_pool

import warploom.pyg
import warploom.torch


def molecule(label):
    """A chain of atoms with some rings; the first feature is larger for the label 1."""
    atoms = int(torch.randint(12, 30, (1,)))
    bonds = torch.cat([torch.arange(atoms).unfold(0, 2, 1).T, torch.randint(atoms, (2, 5))], 1)
    x = torch.randn(atoms, 16) + label * torch.eye(16)[0]
    return Data(x=x, edge_index=torch.cat([bonds, bonds.flip(0)], 1), y=torch.tensor([label]))


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
dataset = [molecule(number % 2) for number in range(1200)]
train_set = warploom.pyg.padded(DataLoader(dataset[:1000], batch_size=64, shuffle=True))
test_set = warploom.pyg.padded(DataLoader(dataset[1000:], batch_size=64))

model = GIN(16, 32, num_layers=3, out_channels=2, norm="batch_norm").to(device)
rate = torch.tensor(0.01, device=device)  # as a tensor it may change without a new capture
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)


@warploom.torch.capture
def step(batch):
    out = global_add_pool(model(batch.x, batch.edge_index), batch.batch, batch.num_graphs)
    if model.training:
        optimizer.zero_grad()
        cross_entropy(out, batch.y).backward()  # leaves out ghosts, whose label is -100
        optimizer.step()
    return (out.argmax(1) == batch.y).sum()


with warploom.pyg.accelerate():
    for epoch in range(int(sys.argv[1]) if len(sys.argv) > 1 else 10):
        right = {}
        for data in (train_set, test_set):
            model.train(data is train_set)
            right[data] = sum(step(batch).clone() for batch in data)  # the next call overwrites it
        scheduler.step()
        print(f"epoch {epoch}: accuracy {right[train_set] / 1000:.3f} {right[test_set] / 200:.3f}")
print(f"{step.captures} captures; {step.reason or 'steps are replayed'}")
