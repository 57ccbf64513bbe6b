"""Train the GCN of Kipf and Welling (ICLR 2017) on Cora, with PyG alone and with warploom.

python gcn_cora.py [FOLDER]     # the folder of cora.mtx.gz; default: ../shared/data/cora
"""

import sys

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
    """Train a model and return its test accuracy in percent."""
    first, second = ({"params": layer.parameters()} for layer in (model.first, model.second))
    optimiser = torch.optim.Adam([{**first, "weight_decay": 5e-4}, second], lr=0.01)
    for _ in range(epochs):
        optimiser.zero_grad()
        cross_entropy(model(x, edges)[train], labels[train]).backward()
        optimiser.step()
    return 100 * (model.eval()(x, edges).argmax(1) == labels)[test].float().mean().item()


def main(folder, seeds, epochs=200):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    features = mmread(f"{folder}/cora.features.mtx.gz").toarray().astype(np.float32)
    x = features / np.maximum(features.sum(1, keepdims=True), 1)
    graph = mmread(f"{folder}/cora.mtx.gz")
    files = [np.loadtxt(f"{folder}/cora.{name}.txt", int) for name in ("labels", "train", "test")]
    arrays = [x, np.stack([graph.col, graph.row]).astype(int), *files]
    inputs = [torch.from_numpy(array).to(device) for array in arrays]
    results = {"PyG": [], "warploom": []}
    for name, found in results.items():
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = GCN(1433, 7).to(device)
            model = warploom.pyg.convert(model) if name == "warploom" else model
            found.append(accuracy(model, *inputs, epochs))
        error = np.std(found, ddof=1) / len(found) ** 0.5
        print(f"{name}: {np.mean(found):.2f} % +- {error:.2f} (standard error)")
    return results


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/cora", seeds=10)
