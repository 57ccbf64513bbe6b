"""Every argument of warploom.torch: a wrong one raises an error that names an argument."""

import inspect
import re

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from warploom.torch import Graph, Sample, attention, edge_softmax, gat, gatv2, sddmm, spmm

EDGES = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 0]])
GRAPH = Graph.from_edge_index(EDGES)
B = torch.ones(3, 2)
ROWS = torch.ones(3, 2, 4)  # 2 heads of 4 features
TERMS = torch.ones(3, 2)

CALLS = {
    "spmm": (spmm, {"graph": GRAPH, "b": B, "sample": Sample(8)}),
    "spmm into": (spmm, {"graph": GRAPH, "b": B, "out": torch.zeros(3, 2), "beta": 1.0}),
    "sddmm": (sddmm, {"graph": GRAPH, "x": B, "b": B}),
    "edge_softmax": (edge_softmax, {"graph": GRAPH, "scores": torch.ones(4)}),
    "gat": (gat, {"graph": GRAPH, "b": ROWS, "left": TERMS, "right": TERMS, "dropout": 0.5}),
    "gatv2": (gatv2, {"graph": GRAPH, "b": ROWS, "x": ROWS, "att": ROWS[0], "dropout": 0.5}),
    "attention": (attention, {"graph": GRAPH, "q": ROWS, "k": ROWS, "v": ROWS, "dropout": 0.5}),
    "Graph": (Graph, {"rowptr": torch.tensor([0, 1]), "colind": torch.tensor([0])}),
    "from_edge_index": (Graph.from_edge_index, {"edge_index": EDGES}),
    "from_sparse": (Graph.from_sparse, {"matrix": torch.eye(3).to_sparse()}),
}
ARGUMENTS = [
    (call, name)
    for call, (function, _) in CALLS.items()
    for name in inspect.signature(function).parameters
    if name not in ("perm", "once")
]
NAMES = {name for _, name in ARGUMENTS}
NAMED = re.compile(
    rf"(warploom: )?(the rows of |the )?({'|'.join(NAMES)}|rowptr|colind|wlm_[a-z]+)\b"
)
WRONG = [
    True, -1, 0, 7, 2**63, 2**64, 0.5, float("nan"), 10**400, 1j, "", "nope", "\0", b"a", [], [1],
    (), (1, 2), {}, object(), int, np.zeros(3), GRAPH, B, B.double(), torch.ones(0), torch.ones(3),
    torch.ones(4, 1), torch.tensor([[0], [0]]), torch.eye(3).to_sparse(), torch.ones(3, 2, 5),
    torch.ones(3, device="meta"), Sample(-1), Sample("8"), Sample([8]), Sample(8, "nope"),
    Sample(8, norm=3), Sample(7),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_a_wrong_argument_is_named(call, name):
    function, given = CALLS[call]
    for value in WRONG:
        try:
            function(**{**given, name: value})
        except (TypeError, ValueError, NotImplementedError, LookupError) as error:
            found = str(error)
            assert NAMED.match(found), f"{name}={value!r}: {error!r}"


@pytest.mark.parametrize(
    ("error", "text", "call"),
    [
        (TypeError, "graph: a Graph is needed, not Tensor", lambda: spmm(B, GRAPH)),
        (ValueError, "seed: -1", lambda: spmm(GRAPH, B, sample=Sample(8), seed=-1)),
        (TypeError, "seed: a str", lambda: gat(GRAPH, ROWS, TERMS, TERMS, dropout=0.5, seed="1")),
        (TypeError, "slope: a str", lambda: gat(GRAPH, ROWS, TERMS, TERMS, slope="0.2")),
        (TypeError, "dropout: a str", lambda: gat(GRAPH, ROWS, TERMS, TERMS, dropout="0.2")),
        (TypeError, "sample: a Sample", lambda: spmm(GRAPH, B, sample=8)),
        (TypeError, "sample: width: a str", lambda: spmm(GRAPH, B, sample=Sample("8"))),
        (TypeError, "values: a tensor", lambda: spmm(GRAPH, B, [1, 2, 3, 4])),
        (TypeError, "cols: a float", lambda: Graph(EDGES[0], EDGES[1], cols=2.5)),
        (TypeError, "edge_index: a tensor", lambda: Graph.from_edge_index([[0], [1]])),
        (ValueError, "values: the shape", lambda: Graph.from_edge_index(EDGES, torch.ones(3))),
        (TypeError, "deterministic: 'no'", lambda: spmm(GRAPH, B, deterministic="no")),
    ],
)
def test_wrong_arguments_of_one_kind(error, text, call):
    with pytest.raises(error, match=text):
        call()


def test_what_out_refuses():
    out = torch.zeros(3, 2)
    leaf = B.clone().requires_grad_()
    for graph, options in (
        (GRAPH, {"b": leaf, "out": out}),
        (GRAPH, {"b": B, "out": leaf}),
        (GRAPH, {"b": B, "values": torch.ones(4, requires_grad=True), "out": out}),
    ):
        with pytest.raises(RuntimeError, match="out: has no automatic differentiation"):
            spmm(graph, **options)
        with torch.no_grad():
            spmm(graph, **options)
    for wrong, match in (
        (torch.zeros(2, 2), "the shape"),
        (torch.zeros(3, 2).double(), "float64"),
        (torch.zeros(2, 3).t(), "neighbours"),
        (torch.zeros(2).expand(3, 2), "must not overlap"),
        (B.view(3, 2), "shares memory"),
    ):
        with pytest.raises(ValueError, match=match):
            spmm(GRAPH, B, out=wrong)
    for factors in ({"alpha": 2.0}, {"beta": 1}):
        with pytest.raises(ValueError, match="alpha, beta: need out"):
            spmm(GRAPH, B, **factors)
    refused = pytest.raises(NotImplementedError, match="out: works in eager mode")
    with FlopCounterMode(display=False), refused:
        spmm(GRAPH, B, out=out)
