"""Inputs of layers: edges and features."""

import torch


def edges(count, nodes=30, dtype=torch.int64, device="cpu", seed=0):
    """Make edges with repetitions, self loops, and isolated nodes at both ends."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(1, nodes - 4, (2, count), generator=generator)
    edge_index[:, : count // 4] = edge_index[:, count // 4 : count // 4 * 2]
    return edge_index.to(dtype).to(device)


def features(rows, n=8, device="cpu", dtype=torch.float32, seed=1):
    return torch.randn(rows, n, generator=torch.Generator().manual_seed(seed)).to(device, dtype)
