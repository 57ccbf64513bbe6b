"""Train the GCN of Kipf and Welling (ICLR 2017) on Cora, with PyG alone and with warploom.

    python gcn_cora.py [FOLDER]     # that of cora.mtx.gz, by default ../shared/data/cora
"""

import sys
from pathlib import Path

import numpy as np
import torch
from scipy.io import mmread
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.nn import GCNConv

import warploom.pyg


class GCN(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first, self.second = GCNConv(features, 16), GCNConv(16, classes)

    def forward(self, x, edge_index):
        hidden = self.first(dropout(x, 0.5, self.training), edge_index).relu()
        return self.second(dropout(hidden, 0.5, self.training), edge_index)


def accuracy(model, x, edges, labels, train, test, epochs):
    """Test accuracy in percent after training."""
    decays = zip((model.first, model.second), (5e-4, 0))
    groups = [{"params": layer.parameters(), "weight_decay": decay} for layer, decay in decays]
    optimiser = torch.optim.Adam(groups, lr=0.01)
    for _ in range(epochs):
        optimiser.zero_grad()
        cross_entropy(model(x, edges)[train], labels[train]).backward()
        optimiser.step()
    return 100 * (model.eval()(x, edges).argmax(1) == labels)[test].float().mean().item()


def main(folder, seeds, epochs=200):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    features = torch.from_numpy(mmread(folder / "cora.features.mtx.gz").toarray()).float()
    graph = mmread(folder / "cora.mtx.gz")
    files = [np.loadtxt(folder / f"cora.{name}.txt", int) for name in ("labels", "train", "test")]
    arrays = [np.stack([graph.col, graph.row]).astype(int), *files]
    x = features / features.sum(1, keepdim=True).clamp(min=1)
    inputs = [tensor.to(device) for tensor in (x, *map(torch.from_numpy, arrays))]
    results = {"PyG": [], "warploom": []}
    for seed in range(seeds):
        for name, found in results.items():
            torch.manual_seed(seed)
            model = GCN(1433, 7).to(device)
            model = warploom.pyg.convert(model) if name == "warploom" else model
            found.append(accuracy(model, *inputs, epochs))
    return results


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/cora")
    for name, found in main(folder, seeds=10).items():
        error = np.std(found, ddof=1) / len(found) ** 0.5
        print(f"{name}: {np.mean(found):.2f} % +- {error:.2f} (standard error)")
