"""Other libraries beside warploom: what they are called with, by stand-ins that compute on the CPU.

The stand-ins follow the documentation of `cudnn.gnn` and of turbo_gnn.
"""

import json
import sys
import types

import pytest
import torch

from bench.__main__ import main
from bench.pytorch import rivals, suite


class Graph:
    """CSR with a row for each target."""

    def __init__(self, offsets, indices):
        assert offsets.dtype == indices.dtype == torch.int32
        self.nodes = len(offsets) - 1
        self.source = indices.long()
        self.target = torch.repeat_interleave(torch.arange(self.nodes), offsets.diff().long())

    def aggregate(self, messages, reduce):
        index = self.target.view(-1, *[1] * (messages.dim() - 1)).expand_as(messages)
        out = messages.new_zeros(self.nodes, *messages.shape[1:])
        return out.scatter_reduce(0, index, messages, reduce, include_self=False)

    def attend(self, scores, values):
        """Scores (edges, heads) and values of sources (nodes, heads, dim)."""
        top = self.aggregate(scores.detach(), "amax")
        power = (scores - top[self.target]).exp()
        weights = power / self.aggregate(power, "sum")[self.target]
        return self.aggregate(weights[..., None] * values[self.source], "sum")


def leaky(x):
    return torch.nn.functional.leaky_relu(x, 0.2)


class Cudnn:
    """cudnn.gnn."""

    @staticmethod
    def CscGraph(offsets, indices, num_src_nodes):
        assert num_src_nodes == len(offsets) - 1
        return Graph(offsets, indices)

    @staticmethod
    def agg_simple(graph, *, node_features, aggr):
        reduce = {"sum": "sum", "mean": "mean", "max": "amax"}[aggr]
        return graph.aggregate(node_features[graph.source], reduce)

    @staticmethod
    def mha_gat(graph, features, attn_weights, *, num_heads):
        source, target = (part.unflatten(1, (num_heads, -1)) for part in features)
        of_source, of_target = attn_weights.view(2, num_heads, -1)
        right, left = (source * of_source).sum(-1), (target * of_target).sum(-1)
        scores = leaky(left[graph.target] + right[graph.source])
        return graph.attend(scores, source).flatten(1)

    @staticmethod
    def mha_gat_v2(graph, features, attn_weights, *, num_heads):
        source, target = (part.unflatten(1, (num_heads, -1)) for part in features)
        both = leaky(source[graph.source] + target[graph.target])
        scores = (both * attn_weights.view(num_heads, -1)).sum(-1)
        return graph.attend(scores, source).flatten(1)


class TurboGraph(Graph):
    @classmethod
    def from_csr(cls, offsets, indices, backward_offsets, backward_indices, is_directed):
        graph, back = cls(offsets, indices), cls(backward_offsets, backward_indices)
        edges = sorted(zip(graph.target.tolist(), graph.source.tolist(), strict=True))
        turned = sorted(zip(back.source.tolist(), back.target.tolist(), strict=True))
        assert edges == turned
        assert is_directed == (edges != sorted((j, i) for i, j in edges))
        return graph


class Turbo:
    """turbo_gnn."""

    AdjacencyForwardBackwardWithNodeBuckets = TurboGraph

    @staticmethod
    def reduction_aggr(graph, x, reduce):
        return graph.aggregate(x[graph.source], "a" + reduce)

    @staticmethod
    def spmm_aggr(x, indptr, indices, norm_type, algorithm, block_dim):
        graph = Graph(indptr, indices)
        return graph.aggregate(x[graph.source], {"none": "sum", "right": "mean"}[norm_type])

    @staticmethod
    def gatv2_aggr(graph, x, x_neighbors, attention_weights, negative_slope):
        both = leaky(x[graph.target] + x_neighbors[graph.source])
        return graph.attend((both * attention_weights).sum(-1), x_neighbors).flatten(1)

    @staticmethod
    def graph_transformer_aggr(graph, x, q, k, v, scale):
        return graph.attend((q[graph.source] * k[graph.target]).sum(-1) * scale, v)


@pytest.fixture
def stand_ins(monkeypatch):
    found = {"cudnn": Cudnn, "turbo_gnn": Turbo}
    monkeypatch.setattr(rivals, "installed", lambda device: found)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # bench takes a GPU if it can
    return found


def run(capsys, *arguments):
    assert main([*arguments, "--quick", "--no-compile", "--samples", "1"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_products(stand_ins, capsys):
    lines = run(capsys, "torch", "--only", "spmm", "--only", "/eager")
    lines += run(capsys, "torch", "--only", "backward", "--only", "/eager")
    assert len(lines) == 6
    for line in lines:
        assert "failed" not in line
        for name in stand_ins:
            has = line["reduce"] != "sum"  # with edge weights, which they do not take
            assert (line["rivals"][name] is not None) == has
            assert (name in line["first_ms"]) == (name in line["peak_mb"]) == has


def test_cudnn_is_not_captured(stand_ins, tmp_path):
    settings = suite.SUITE.settings(tmp_path, compiled=False, device="cpu")
    kept = suite.Kept("random:30:3", settings)
    for mode, others in (("eager", {"cudnn", "turbo_gnn"}), ("graphed", {"turbo_gnn"})):
        timed, _ = suite._functions(suite.Case("spmm", "random:30:3", None, 4, "max", mode), kept)
        assert others == timed.keys() & {"cudnn", "turbo_gnn"}


def test_attention(stand_ins, capsys):
    lines = run(capsys, "attention", "--only", "/4/32/")
    served = {"gat": {"cudnn"}, "gatv2": {"cudnn", "turbo_gnn"}, "transformer": {"turbo_gnn"}}
    assert len(lines) == 6
    for line in lines:
        assert "failed" not in line
        assert set(line["rivals"]) == served[line["layer"]]
        for name, found in line["rivals"].items():
            assert found["us"] > 0 and line["first_ms"][name] > 0


def test_operations_of_attention(stand_ins, capsys):
    lines = run(capsys, "torch", "--only", "attention/")
    served = {"gat": set(), "gatv2": {"cudnn", "turbo_gnn"}, "dot": {"turbo_gnn"}}
    assert len(lines) == 6
    for line in lines:
        assert "failed" not in line
        timed = {name for name, us in line["rivals"].items() if us}
        assert timed == {"pyg"} | served[line["model"]]


def test_a_wrong_gradient_has_no_time(stand_ins, capsys, monkeypatch):
    of_operands = Turbo.graph_transformer_aggr
    monkeypatch.setattr(
        Turbo,
        "graph_transformer_aggr",
        lambda graph, x, q, k, v, scale: of_operands(graph, x, q, k.detach(), v, scale) + 0 * k,
    )
    lines = run(capsys, "torch", "--only", "attention/", "--only", "/dot/")
    assert len(lines) == 2
    for line in lines:
        assert line["us"] > 0 and line["rivals"]["turbo_gnn"] is None
        assert "differs from PyG's by 1 of its norm" in line["failed"]["turbo_gnn"]


def test_a_wrong_result_has_no_time(stand_ins, capsys, monkeypatch):
    monkeypatch.setattr(Cudnn, "mha_gat", Cudnn.mha_gat_v2)
    lines = run(capsys, "attention", "--only", "/gat/4/32/")
    assert len(lines) == 2
    for line in lines:
        assert line["us"] > 0 and line["rivals"]["cudnn"]["us"] is None
        assert "cudnn" in line["failed"]


def test_a_library_that_refuses_a_graph_is_left_out(stand_ins, capsys, monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("no such symbol")

    monkeypatch.setattr(Cudnn, "CscGraph", refuse)
    offsets = torch.tensor([0, 1, 2], dtype=torch.int32)
    found = rivals.make(offsets, torch.tensor([1, 0], dtype=torch.int32))
    assert list(found) == ["turbo_gnn"]
    assert "cudnn is left out: RuntimeError: no such symbol" in capsys.readouterr().err


def test_what_is_not_installed_is_left_out(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "cudnn", None)
    broken = types.ModuleType("turbo_gnn")
    monkeypatch.setitem(sys.modules, "turbo_gnn", broken)
    rivals._modules.cache_clear()
    try:
        for _ in range(2):
            assert rivals.installed(torch.device("cuda")) == {"turbo_gnn": broken}
    finally:
        rivals._modules.cache_clear()
    assert capsys.readouterr().err.count("warploom: bench: cudnn is left out") == 1
    assert rivals.installed(torch.device("cpu")) == {}
