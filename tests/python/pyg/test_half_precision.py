"""Layers in 16-bit types and under autocast: the types and about the precision of PyG."""

import copy
import math
from contextlib import nullcontext

import pytest
import torch
from torch_geometric.nn import SimpleConv

import warploom.pyg
from bench.pytorch.compare import difference
from layer_cases import CASES, EDGES, NODES, graph

MODES = {"f16": torch.float16, "bf16": torch.bfloat16, "autocast": torch.float32}
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")),
]
# Of the roundings in a layer; PyG's own error is more where rounding changes a maximum or a sign.
ROUNDINGS = 16


def run(layer, inputs, edge_index, mode):
    """The result and all gradients of a weighted sum of it."""
    dtype, device = MODES.get(mode, torch.float64), edge_index.device
    layer = copy.deepcopy(layer).to(device, dtype)
    inputs = {
        name: value.to(device, dtype).requires_grad_()
        if value.is_floating_point()
        else value.to(device)
        for name, value in inputs.items()
    }
    is_autocast = mode == "autocast"
    with torch.autocast(device.type, torch.bfloat16) if is_autocast else nullcontext():
        out = layer(edge_index=edge_index, **inputs)
    weight = torch.arange(out.numel(), dtype=torch.float64).sin().view_as(out).to(out)
    leaves = [leaf for leaf in (*inputs.values(), *layer.parameters()) if leaf.requires_grad]
    gradients = torch.autograd.grad(out, leaves, weight, allow_unused=True)
    return [out.detach(), *(gradient for gradient in gradients if gradient is not None)]


def error(found, exact):
    """The largest difference by norms; small gradients count as a part of the largest one."""
    least = 0.01 * max(float(gradient.norm()) for gradient in exact[1:])
    return max(difference(one, other, least) for one, other in zip(found, exact, strict=True))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "name, mode",
    [(name, mode) for name in CASES for mode in MODES],
)
def test_layer(name, mode, device):
    torch.manual_seed(1)
    make, inputs = CASES[name]
    layer, edge_index = make(), graph().to(device)
    try:
        plain = run(layer, inputs, edge_index, mode)
    except RuntimeError as refused:  # some of PyG's layers mix types
        with warploom.pyg.accelerate(), pytest.raises(type(refused)):
            run(layer, inputs, edge_index, mode)
        return
    warploom.pyg.report(reset=True)
    with warploom.pyg.accelerate():
        for _ in range(2):
            found = run(layer, inputs, edge_index, mode)
    for counts in warploom.pyg.report(reset=True).values():
        assert list(counts) == ["warploom"]
    assert [part.dtype for part in found] == [part.dtype for part in plain]
    exact = run(layer, inputs, edge_index, "f64")
    eps = torch.finfo(torch.float16 if mode == "f16" else torch.bfloat16).eps
    of_pyg = error(plain, exact)
    if math.isfinite(of_pyg):
        assert error(found, exact) <= max(ROUNDINGS * eps, 2 * of_pyg)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_long_sums_are_rounded_once(dtype, device):
    """A sum in 16 bits would stop at 2048 or 256."""
    edge_index = torch.stack([torch.arange(EDGES) % NODES, torch.zeros(EDGES, dtype=torch.int64)])
    x = torch.ones(NODES, 8, dtype=dtype, device=device)
    with warploom.pyg.accelerate():
        out = SimpleConv(aggr="sum")(x, edge_index.to(device))
    assert out.dtype == dtype
    assert torch.equal(out[0], torch.full((8,), EDGES, dtype=dtype, device=device))
