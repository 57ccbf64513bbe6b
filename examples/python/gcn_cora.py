"""Train the two-layer GCN of Kipf and Welling (ICLR 2017) on Cora, with PyG alone and with warploom.

    python gcn_cora.py [--data ../shared/data] [--seeds 10] [--epochs 200]

The folder needs cora/cora.mtx.gz, cora.features.mtx.gz, cora.labels.txt, and the node numbers cora.train.txt,
cora.val.txt and cora.test.txt.
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from scipy.io import mmread
from torch.nn import functional
from torch_geometric.nn import GCNConv

import warploom.pyg


class GCN(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.first, self.second = GCNConv(features, 16, cached=True), GCNConv(16, classes, cached=True)

    def forward(self, x, edge_index):
        hidden = self.first(functional.dropout(x, 0.5, self.training), edge_index).relu()
        return self.second(functional.dropout(hidden, 0.5, self.training), edge_index)


def accuracy(seed, epochs, x, edge_index, labels, split):
    """Test accuracy in percent of the epoch with the best validation accuracy."""
    torch.manual_seed(seed)
    model = GCN(x.size(1), int(labels.max()) + 1).to(x.device)
    decay = [{"params": model.first.parameters(), "weight_decay": 5e-4}, {"params": model.second.parameters()}]
    optimiser = torch.optim.Adam(decay, lr=0.01)
    best, result = -1.0, 0.0
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        functional.cross_entropy(model(x, edge_index)[split["train"]], labels[split["train"]]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            right = (model(x, edge_index).argmax(1) == labels).float()
        if right[split["val"]].mean() > best:
            best, result = right[split["val"]].mean(), 100 * right[split["test"]].mean().item()
    return result


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=200)
    options = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    folder = options.data / "cora"
    features = torch.from_numpy(mmread(folder / "cora.features.mtx.gz").toarray()).float()
    graph = mmread(folder / "cora.mtx.gz")
    edges = torch.from_numpy(np.stack([graph.col, graph.row]).astype(np.int64)).to(device)
    labels, *parts = (
        torch.from_numpy(np.loadtxt(folder / f"cora.{name}.txt", dtype=np.int64)).to(device)
        for name in ("labels", "train", "val", "test")
    )
    split = dict(zip(("train", "val", "test"), parts))
    x = (features / features.sum(1, keepdim=True).clamp(min=1)).to(device)
    means = []
    for name in ("PyG", "warploom"):
        if name == "warploom":
            warploom.pyg.enable()
        results = [accuracy(seed, options.epochs, x, edges, labels, split) for seed in range(options.seeds)]
        error = np.std(results, ddof=1) / len(results) ** 0.5
        means.append((np.mean(results), error))
        print(f"{name}: {means[-1][0]:.2f} % +- {error:.2f} (standard error, {len(results)} seeds)")
    warploom.pyg.disable()
    return means


if __name__ == "__main__":
    main()
