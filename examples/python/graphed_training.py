"""Train GraphSAGE with a CUDA graph: one replay runs the forward pass, the backward pass and Adam.

python graphed_training.py [STEPS]                       # without a GPU it trains eagerly
"""

import sys

import torch
from torch_geometric.nn import SAGEConv

import warploom.pyg
import warploom.torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(64, 32, aggr="max"), SAGEConv(32, 4)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
labels = torch.randint(4, (2000,), device=device)
x = torch.randn(2000, 64, device=device) + 0.5 * torch.nn.functional.one_hot(labels, 64)
edge_index = torch.randint(2000, (2, 20000), device=device)

model = warploom.pyg.convert(Net().to(device))
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)


def step(x, edge_index, labels):
    optimiser.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x, edge_index), labels)
    loss.backward()
    optimiser.step()
    return loss.detach()


train = warploom.torch.capture(step)  # three calls run eagerly, and the next ones are replays
for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 100):
    loss = train(x, edge_index, labels)
    if number % 20 == 0:
        print(f"step {number}: loss {loss.item():.4f}")
print(f"last loss: {loss.item():.4f}")
if train.reason is not None:
    print(f"not captured: {train.reason}")
