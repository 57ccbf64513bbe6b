"""Layers whose message is traced, for tests of compiled code."""

import torch
from torch_geometric.nn import (
    APPNP,
    AGNNConv,
    EdgeConv,
    FiLMConv,
    GENConv,
    LEConv,
    MessagePassing,
    PNAConv,
    ResGatedGraphConv,
    SAGEConv,
    SGConv,
)


class Own(MessagePassing):
    """A layer as a user writes it, with an update."""

    def __init__(self, i, o, **options):
        super().__init__(**options)
        self.lin, self.slope = torch.nn.Linear(i, o), 0.3

    def forward(self, x, edges):
        return self.propagate(edges, x=self.lin(x))

    def message(self, x_i, x_j):
        return torch.nn.functional.leaky_relu(x_j - x_i, self.slope) * torch.sigmoid(x_i)

    def update(self, out, x):
        return out + x


class AfterLinear(torch.nn.Module):
    def __init__(self, i, o, layer):
        super().__init__()
        self.lin, self.layer = torch.nn.Linear(i, o), layer

    def forward(self, x, edges):
        return self.layer(self.lin(x), edges)


DEGREES = torch.tensor([0, 0, 0, 10, 10, 10])
# What makes a layer whose message is traced, of so many inputs and outputs.
MESSAGES = {
    "agnn": lambda i, o: AfterLinear(i, o, AGNNConv()),
    "appnp": lambda i, o: AfterLinear(i, o, APPNP(K=1, alpha=0.1)),
    "edge": lambda i, o: EdgeConv(torch.nn.Linear(2 * i, o)),
    "film": lambda i, o: FiLMConv(i, o),
    "gen": lambda i, o: GENConv(i, o, norm="layer", learn_t=True),
    "le": lambda i, o: LEConv(i, o),
    "own": lambda i, o: Own(i, o),
    "own-max": lambda i, o: Own(i, o, aggr="max", flow="target_to_source"),
    "pna": lambda i, o: PNAConv(i, o, ["mean", "max", "std"], ["identity", "linear"], DEGREES),
    "res-gated": lambda i, o: ResGatedGraphConv(i, o),
    "sg": lambda i, o: SGConv(i, o),
    "sage-several": lambda i, o: SAGEConv(i, o, aggr=["mean", "max"]),
}
