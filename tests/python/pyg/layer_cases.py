"""Layers of PyG, and the inputs of each, that the tests of traced messages compare."""

import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.nn.models.schnet import CFConv

NODES, EDGES, TYPES = 37, 801, 3


def graph(nodes=NODES, edges=EDGES, seed=0, targets=None):
    """Edges with repetitions; the last nodes have none."""
    generator = torch.Generator().manual_seed(seed)
    draw = [
        torch.randint(0, limit - 3, (edges,), generator=generator)
        for limit in (nodes, targets or nodes)
    ]
    edge_index = torch.stack(draw)
    edge_index[:, : edges // 8] = edge_index[:, edges // 8 : edges // 8 * 2]
    return edge_index


def draw(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def mlp(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU(inplace=True))


def degrees():
    return torch.bincount(torch.bincount(graph()[1], minlength=NODES))


X = {"x": draw(NODES, 8)}
WEIGHT = {"edge_weight": draw(EDGES, seed=2).abs() + 0.5}
FEATURES = {"edge_attr": draw(EDGES, 5, seed=3)}
WIDE = {"edge_attr": draw(EDGES, 8, seed=3)}
KINDS = {"edge_type": torch.arange(EDGES) % TYPES}

# By name: what makes the layer, and its inputs besides the edges. The class is that of the issue's
# list, or a variant with a suffix.
CASES = {
    "GCN": (lambda: pyg.GCNConv(8, 6), X),
    "SAGE": (lambda: pyg.SAGEConv(8, 6), X),
    "SAGE_several": (lambda: pyg.SAGEConv(8, 6, aggr=["mean", "max", "std"]), X),
    "SAGE_softmax": (lambda: pyg.SAGEConv(8, 6, aggr="softmax"), X),
    "Graph": (lambda: pyg.GraphConv(8, 6), X | WEIGHT),
    "Graph_var": (lambda: pyg.GraphConv(8, 6, aggr="var"), X | WEIGHT),
    "GIN": (lambda: pyg.GINConv(mlp(8, 6)), X),
    "GINE": (lambda: pyg.GINEConv(mlp(8, 6)), X | WIDE),
    "GINE_lin": (lambda: pyg.GINEConv(mlp(8, 6), edge_dim=5), X | FEATURES),
    "GAT": (lambda: pyg.GATConv(8, 4, heads=2), X),
    "GAT_edges": (lambda: pyg.GATConv(8, 4, heads=2, edge_dim=5), X | FEATURES),
    "GATv2": (lambda: pyg.GATv2Conv(8, 4, heads=2), X),
    "Transformer": (lambda: pyg.TransformerConv(8, 4, heads=2), X),
    "Cheb": (lambda: pyg.ChebConv(8, 6, K=3), X | WEIGHT),
    "TAG": (lambda: pyg.TAGConv(8, 6), X | WEIGHT),
    "SG": (lambda: pyg.SGConv(8, 6, K=2), X),
    "SSG": (lambda: pyg.SSGConv(8, 6, alpha=0.1, K=2), X),
    "APPNP": (lambda: pyg.APPNP(K=3, alpha=0.1), X),
    "APPNP_dropout": (lambda: pyg.APPNP(K=3, alpha=0.1, dropout=0.5).eval(), X),
    "GCN2": (lambda: pyg.GCN2Conv(8, alpha=0.1, theta=0.5, layer=1), X | {"x_0": draw(NODES, 8)}),
    "ARMA": (lambda: pyg.ARMAConv(8, 6, num_stacks=2, num_layers=2), X),
    "LG": (lambda: pyg.LGConv(), X | WEIGHT),
    "LE": (lambda: pyg.LEConv(8, 6), X | WEIGHT),
    "ClusterGCN": (lambda: pyg.ClusterGCNConv(8, 6, diag_lambda=0.1), X),
    "GatedGraph": (lambda: pyg.GatedGraphConv(8, num_layers=2), X | WEIGHT),
    "ResGated": (lambda: pyg.ResGatedGraphConv(8, 6), X),
    "ResGated_edges": (lambda: pyg.ResGatedGraphConv(8, 6, edge_dim=5), X | FEATURES),
    "RGCN": (lambda: pyg.RGCNConv(8, 6, TYPES), X | KINDS),
    "RGCN_bases": (lambda: pyg.RGCNConv(8, 6, TYPES, num_bases=2), X | KINDS),
    "PNA": (
        lambda: pyg.PNAConv(
            8, 6, ["mean", "min", "max", "std"], ["identity", "amplification"], degrees()
        ),
        X,
    ),
    "PNA_towers": (
        lambda: pyg.PNAConv(
            8, 6, ["mean", "var"], ["identity", "linear"], degrees(), edge_dim=5, towers=2
        ),
        X | FEATURES,
    ),
    "GEN": (lambda: pyg.GENConv(8, 6, norm="layer"), X),
    "GEN_learn": (lambda: pyg.GENConv(8, 6, norm="layer", learn_t=True, edge_dim=5), X | FEATURES),
    "GEN_add": (lambda: pyg.GENConv(8, 6, norm="layer", aggr="add", msg_norm=True), X),
    "FA": (lambda: pyg.FAConv(8, dropout=0.5).eval(), X | {"x_0": draw(NODES, 8)}),
    "AGNN": (lambda: pyg.AGNNConv(), X),
    "SuperGAT": (lambda: pyg.SuperGATConv(8, 4, heads=2).eval(), X),
    "SuperGAT_SD": (
        lambda: pyg.SuperGATConv(8, 4, heads=2, attention_type="SD", concat=False).eval(),
        X,
    ),
    "FiLM": (lambda: pyg.FiLMConv(8, 6), X),
    "FiLM_types": (lambda: pyg.FiLMConv(8, 6, num_relations=TYPES), X | KINDS),
    "MF": (lambda: pyg.MFConv(8, 6), X),
    "Edge": (lambda: pyg.EdgeConv(mlp(16, 6)), X),
    "Edge_two_layers": (
        lambda: pyg.EdgeConv(nn.Sequential(mlp(16, 6), nn.Linear(6, 5)), aggr="mean"),
        X,
    ),
    "Edge_sum": (lambda: pyg.EdgeConv(nn.Sequential(mlp(16, 6), nn.Linear(6, 5)), aggr="sum"), X),
    "General": (lambda: pyg.GeneralConv(8, 6, heads=2), X),
    "General_edges": (
        lambda: pyg.GeneralConv(8, 6, in_edge_channels=5, directed_msg=False, heads=2),
        X | FEATURES,
    ),
    "General_attention": (lambda: pyg.GeneralConv(8, 6, attention=True, heads=2), X),
    "General_dot_product": (
        lambda: pyg.GeneralConv(8, 6, attention=True, attention_type="dot_product", heads=2),
        X,
    ),
    "EG": (lambda: pyg.EGConv(8, 8, num_heads=2, num_bases=2), X),
    "EG_several": (
        lambda: pyg.EGConv(8, 8, ["symnorm", "mean", "max", "std"], num_heads=2, num_bases=2),
        X,
    ),
    "PDN": (lambda: pyg.PDNConv(8, 6, edge_dim=5, hidden_channels=3), X | FEATURES),
    "MixHop": (lambda: pyg.MixHopConv(8, 6), X),
    "DirGNN": (lambda: pyg.DirGNNConv(pyg.SAGEConv(8, 6)), X),
    "AntiSymmetric": (lambda: pyg.AntiSymmetricConv(8, num_iters=2), X),
    "FeaSt": (lambda: pyg.FeaStConv(8, 6, heads=3), X),
    "Simple": (lambda: pyg.SimpleConv(combine_root="sum"), X | WEIGHT),
    "Simple_several": (lambda: pyg.SimpleConv(aggr=["mean", "max"]), X),
    "PointNet": (
        lambda: pyg.PointNetConv(mlp(11, 6), nn.Linear(6, 5)),
        X | {"pos": draw(NODES, 3, seed=4)},
    ),
    "CF": (
        lambda: CFConv(8, 6, 7, nn.Sequential(nn.Linear(5, 7), nn.Softplus()), 10.0),
        X | WEIGHT | FEATURES,
    ),
}
