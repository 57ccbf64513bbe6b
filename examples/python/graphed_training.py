"""Train GraphSAGE with a CUDA graph: one replay runs the forward pass, the backward pass and Adam.

python graphed_training.py [STEPS]                       # without a GPU it trains eagerly
"""

import sys

import torch
from torch_geometric.nn import SAGEConv

import warploom.pyg


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
optimiser = torch.optim.Adam(model.parameters(), lr=0.01, capturable=device == "cuda")
loss = torch.zeros((), device=device)


def step():
    optimiser.zero_grad(set_to_none=True)
    result = torch.nn.functional.cross_entropy(model(x, edge_index), labels)
    result.backward()
    optimiser.step()
    loss.copy_(result.detach())


if device == "cuda":
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # warm-up: sorts the edges, chooses and compiles kernels
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    step = graph.replay
for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 100):
    step()
    if number % 20 == 0:
        print(f"step {number}: loss {loss.item():.4f}")
print(f"last loss: {loss.item():.4f}")
