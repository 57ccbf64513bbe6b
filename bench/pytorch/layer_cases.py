"""The layers of PyG that are timed and tested, and the inputs of each, in any size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.nn.models.schnet import CFConv

TYPES = 3  # of edges


@dataclass(frozen=True)
class Shape:
    """The sizes of a layer and of its inputs, which are drawn in `dtype`."""

    edge_index: Tensor
    nodes: int
    inputs: int  # columns
    outputs: int
    channels: int  # of each of 2 heads
    edge_features: int
    dtype: torch.dtype = torch.float64

    @property
    def device(self) -> torch.device:
        return self.edge_index.device

    @property
    def edges(self) -> int:
        return self.edge_index.size(1)

    def degrees(self) -> Tensor:
        """The number of nodes with each number of entering edges."""
        return torch.bincount(torch.bincount(self.edge_index[1], minlength=self.nodes)).cpu()

    def draw(self, *size: int, seed: int = 1) -> Tensor:
        generator = torch.Generator(self.device).manual_seed(seed)
        return torch.randn(*size, generator=generator, dtype=self.dtype, device=self.device)


def mlp(inputs: int, outputs: int, activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, outputs), activation(inplace=True))


def smooth(inputs: int, outputs: int) -> nn.Module:
    """Without a kink, at which rounding decides what the gradients of all edges of a node are."""
    return mlp(inputs, outputs, nn.ELU)


# By the name of an argument: what draws it.
_Inputs = dict[str, Callable[[Shape], Tensor]]
_X: _Inputs = {"x": lambda s: s.draw(s.nodes, s.inputs)}
_X_0: _Inputs = {"x_0": lambda s: s.draw(s.nodes, s.inputs)}
_WEIGHT: _Inputs = {"edge_weight": lambda s: s.draw(s.edges, seed=2).abs() + 0.5}
_FEATURES: _Inputs = {"edge_attr": lambda s: s.draw(s.edges, s.edge_features, seed=3)}
_WIDE: _Inputs = {"edge_attr": lambda s: s.draw(s.edges, s.inputs, seed=3)}
_KINDS: _Inputs = {"edge_type": lambda s: torch.arange(s.edges, device=s.device) % TYPES}
_POSITIONS: _Inputs = {"pos": lambda s: s.draw(s.nodes, 3, seed=4)}


class Case(NamedTuple):
    """What makes a layer, and its inputs besides the edges."""

    make: Callable[[Shape], Any]
    given: _Inputs

    def inputs(self, shape: Shape) -> dict[str, Tensor]:
        return {name: drawn(shape) for name, drawn in self.given.items()}


# The name is that of PyG's class without Conv.
CASES = {
    "GCN": Case(lambda s: pyg.GCNConv(s.inputs, s.outputs), _X),
    "SAGE": Case(lambda s: pyg.SAGEConv(s.inputs, s.outputs), _X),
    "Graph": Case(lambda s: pyg.GraphConv(s.inputs, s.outputs), _X | _WEIGHT),
    "GIN": Case(lambda s: pyg.GINConv(smooth(s.inputs, s.outputs)), _X),
    "GINE": Case(lambda s: pyg.GINEConv(smooth(s.inputs, s.outputs)), _X | _WIDE),
    "GAT": Case(lambda s: pyg.GATConv(s.inputs, s.channels, heads=2), _X),
    "GATv2": Case(lambda s: pyg.GATv2Conv(s.inputs, s.channels, heads=2), _X),
    "Transformer": Case(lambda s: pyg.TransformerConv(s.inputs, s.channels, heads=2), _X),
    "Cheb": Case(lambda s: pyg.ChebConv(s.inputs, s.outputs, K=3), _X | _WEIGHT),
    "TAG": Case(lambda s: pyg.TAGConv(s.inputs, s.outputs), _X | _WEIGHT),
    "SG": Case(lambda s: pyg.SGConv(s.inputs, s.outputs, K=2), _X),
    "SSG": Case(lambda s: pyg.SSGConv(s.inputs, s.outputs, alpha=0.1, K=2), _X),
    "APPNP": Case(lambda s: pyg.APPNP(K=3, alpha=0.1), _X),
    "GCN2": Case(lambda s: pyg.GCN2Conv(s.inputs, alpha=0.1, theta=0.5, layer=1), _X | _X_0),
    "ARMA": Case(lambda s: pyg.ARMAConv(s.inputs, s.outputs, num_stacks=2, num_layers=2), _X),
    "LG": Case(lambda s: pyg.LGConv(), _X | _WEIGHT),
    "LE": Case(lambda s: pyg.LEConv(s.inputs, s.outputs), _X | _WEIGHT),
    "ClusterGCN": Case(lambda s: pyg.ClusterGCNConv(s.inputs, s.outputs, diag_lambda=0.1), _X),
    "GatedGraph": Case(lambda s: pyg.GatedGraphConv(s.inputs, num_layers=2), _X | _WEIGHT),
    "ResGated": Case(lambda s: pyg.ResGatedGraphConv(s.inputs, s.outputs), _X),
    "RGCN": Case(lambda s: pyg.RGCNConv(s.inputs, s.outputs, TYPES), _X | _KINDS),
    "PNA": Case(
        lambda s: pyg.PNAConv(
            s.inputs,
            s.outputs,
            ["mean", "min", "max", "std"],
            ["identity", "amplification"],
            s.degrees(),
        ),
        _X,
    ),
    "GEN": Case(lambda s: pyg.GENConv(s.inputs, s.outputs, norm="layer"), _X),
    "FA": Case(lambda s: pyg.FAConv(s.inputs, dropout=0.5).eval(), _X | _X_0),
    "AGNN": Case(lambda s: pyg.AGNNConv(), _X),
    # In training it draws edges for a second loss.
    "SuperGAT": Case(lambda s: pyg.SuperGATConv(s.inputs, s.channels, heads=2).eval(), _X),
    "FiLM": Case(lambda s: pyg.FiLMConv(s.inputs, s.outputs), _X),
    "MF": Case(lambda s: pyg.MFConv(s.inputs, s.outputs), _X),
    "Edge": Case(lambda s: pyg.EdgeConv(mlp(2 * s.inputs, s.outputs)), _X),
    "General": Case(lambda s: pyg.GeneralConv(s.inputs, s.outputs, heads=2), _X),
    "EG": Case(lambda s: pyg.EGConv(s.inputs, s.inputs, num_heads=2, num_bases=2), _X),
    "PDN": Case(
        lambda s: pyg.PDNConv(s.inputs, s.outputs, edge_dim=s.edge_features, hidden_channels=3),
        _X | _FEATURES,
    ),
    "MixHop": Case(lambda s: pyg.MixHopConv(s.inputs, s.outputs), _X),
    "DirGNN": Case(lambda s: pyg.DirGNNConv(pyg.SAGEConv(s.inputs, s.outputs)), _X),
    "AntiSymmetric": Case(lambda s: pyg.AntiSymmetricConv(s.inputs, num_iters=2), _X),
    "FeaSt": Case(lambda s: pyg.FeaStConv(s.inputs, s.outputs, heads=3), _X),
    "Simple": Case(lambda s: pyg.SimpleConv(combine_root="sum"), _X | _WEIGHT),
    "PointNet": Case(
        lambda s: pyg.PointNetConv(mlp(s.inputs + 3, s.outputs), nn.Linear(s.outputs, s.outputs)),
        _X | _POSITIONS,
    ),
    "CF": Case(
        lambda s: CFConv(s.inputs, s.outputs, s.inputs, mlp(s.edge_features, s.inputs), 10.0),
        _X | _WEIGHT | _FEATURES,
    ),
    # The last one, since it may lack memory: it has a matrix for each edge.
    "FastRGCN": Case(lambda s: pyg.FastRGCNConv(s.inputs, s.outputs, TYPES), _X | _KINDS),
}
