"""Layers of PyG, and the inputs of each, that the tests of traced messages compare."""

import functools

import torch
from torch import nn
from torch_geometric import nn as pyg

from bench.pytorch import layer_cases
from bench.pytorch.layer_cases import TYPES, mlp

NODES, EDGES = 37, 801


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


SMALL = layer_cases.Shape(graph(), NODES, inputs=8, outputs=6, channels=4, edge_features=5)
draw = SMALL.draw
degrees = SMALL.degrees

X = {"x": draw(NODES, 8)}
WEIGHT = {"edge_weight": draw(EDGES, seed=2).abs() + 0.5}
FEATURES = {"edge_attr": draw(EDGES, 5, seed=3)}
KINDS = {"edge_type": torch.arange(EDGES) % TYPES}

# By name: what makes the layer, and its inputs besides the edges. Variants have a suffix.
CASES = {
    **{
        name: (functools.partial(case.make, SMALL), case.inputs(SMALL))
        for name, case in layer_cases.CASES.items()
    },
    "SAGE_several": (lambda: pyg.SAGEConv(8, 6, aggr=["mean", "max", "std"]), X),
    "SAGE_softmax": (lambda: pyg.SAGEConv(8, 6, aggr="softmax"), X),
    "Graph_var": (lambda: pyg.GraphConv(8, 6, aggr="var"), X | WEIGHT),
    "GINE_lin": (lambda: pyg.GINEConv(mlp(8, 6), edge_dim=5), X | FEATURES),
    "GAT_edges": (lambda: pyg.GATConv(8, 4, heads=2, edge_dim=5), X | FEATURES),
    "APPNP_dropout": (lambda: pyg.APPNP(K=3, alpha=0.1, dropout=0.5).eval(), X),
    "ResGated_edges": (lambda: pyg.ResGatedGraphConv(8, 6, edge_dim=5), X | FEATURES),
    "RGCN_bases": (lambda: pyg.RGCNConv(8, 6, TYPES, num_bases=2), X | KINDS),
    "RGCN_blocks": (lambda: pyg.RGCNConv(8, 6, TYPES, num_blocks=2), X | KINDS),
    "RGCN_max": (lambda: pyg.RGCNConv(8, 6, TYPES, aggr="max"), X | KINDS),
    "FastRGCN_bases": (lambda: pyg.FastRGCNConv(8, 6, TYPES, num_bases=2), X | KINDS),
    "PNA_towers": (
        lambda: pyg.PNAConv(
            8, 6, ["mean", "var"], ["identity", "linear"], degrees(), edge_dim=5, towers=2
        ),
        X | FEATURES,
    ),
    "GEN_learn": (lambda: pyg.GENConv(8, 6, norm="layer", learn_t=True, edge_dim=5), X | FEATURES),
    "GEN_add": (lambda: pyg.GENConv(8, 6, norm="layer", aggr="add", msg_norm=True), X),
    "SuperGAT_SD": (
        lambda: pyg.SuperGATConv(8, 4, heads=2, attention_type="SD", concat=False).eval(),
        X,
    ),
    "FiLM_types": (lambda: pyg.FiLMConv(8, 6, num_relations=TYPES), X | KINDS),
    "Edge_two_layers": (
        lambda: pyg.EdgeConv(nn.Sequential(mlp(16, 6), nn.Linear(6, 5)), aggr="mean"),
        X,
    ),
    "Edge_sum": (lambda: pyg.EdgeConv(nn.Sequential(mlp(16, 6), nn.Linear(6, 5)), aggr="sum"), X),
    "General_edges": (
        lambda: pyg.GeneralConv(8, 6, in_edge_channels=5, directed_msg=False, heads=2),
        X | FEATURES,
    ),
    "General_attention": (lambda: pyg.GeneralConv(8, 6, attention=True, heads=2), X),
    "General_dot_product": (
        lambda: pyg.GeneralConv(8, 6, attention=True, attention_type="dot_product", heads=2),
        X,
    ),
    "EG_several": (
        lambda: pyg.EGConv(8, 8, ["symnorm", "mean", "max", "std"], num_heads=2, num_bases=2),
        X,
    ),
    "Simple_several": (lambda: pyg.SimpleConv(aggr=["mean", "max"]), X),
}
