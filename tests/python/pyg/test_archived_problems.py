"""The problems that models of PyG compute by default are those of tests/problems_of_models.tsv, of
which a kernel archive has kernels (tests/nvrtc/test_archive.c).

To write the table again, run this test with WARPLOOM_UPDATE_GOLDEN=1.
"""

import os
from functools import partial
from pathlib import Path

import torch

from bench.pytorch.models import Stack, layer
from bench.pytorch.steps import Training, classify
from small_graphs import edges, features
from warploom import pyg
from warploom.torch import _graph, _plan

TABLE = Path(__file__).parents[2] / "problems_of_models.tsv"
FEATURES = 64  # between the two layers, and out
KINDS = ("gcn", "sage-max", "gat", "gatv2", "transformer")
LAYERS = {kind: partial(layer, kind, heads=4) for kind in KINDS}  # of inputs and outputs
TYPES = {
    None: "none",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
}


def key_of(request):
    """The problem key of a request, whose graph has 32-bit indices."""
    score, of_rows, _ = request.attention.partition("_rows")
    product, operation = (
        f"{request.message}.{request.reduce}",
        "attention" + of_rows if score else "",
    )
    if request.custom:
        product, operation = f"custom{{{request.custom}}}", "message"
    if request.gradient:
        product, operation = f"{request.message}.max", "argmax_gradient"
    options = {
        "operation": "sddmm" if request.sddmm else operation,
        "score": "" if score == "gat" else score,
        "dropout": "1" if request.dropout else "",
        "transpose": "1" if request.transpose else "",
        "arg": TYPES[request.positions] if request.argmax or request.gradient else "",
        "heads": str(request.heads) if request.heads > 1 else "",
    }
    assert request.sample is None and not request.bias
    return (
        f"op={product},dense={TYPES[request.dtype]},rowptr=i32,colind=i32"
        f",values={TYPES[request.values]},sample=none"
        + "".join(f",{name}={value}" for name, value in options.items() if value)
    )


def problems_of_models(monkeypatch):
    """Two steps of each model: the first with products that are computed once, then plans."""
    found = set()
    monkeypatch.setattr(_graph, "_once", {})  # what other tests computed once is not made again
    for use, cls in (("call", _plan.OnceKind), ("plan", _plan.KeptPlan)):

        def record(self, request, *arguments, use=use, original=cls.__init__):
            found.add((use, str(request.n), key_of(request)))
            original(self, request, *arguments)

        monkeypatch.setattr(cls, "__init__", record)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for kind in LAYERS:
            layers = (LAYERS[kind](FEATURES, FEATURES) for _ in range(2))
            model = Stack(layers).to(dtype)
            x, edge_index = features(30, FEATURES, dtype=dtype), edges(150)
            training = Training(model, classify(lambda x=x, e=edge_index: (x, e, torch.arange(30))))
            with pyg.accelerate():
                training.step()
                training.step()
    return found


def test_the_table_has_every_problem(monkeypatch):
    lines = ["\t".join(row) for row in sorted(problems_of_models(monkeypatch))]
    text = "\n".join(["use\tn\tproblem", *lines, ""])
    if os.environ.get("WARPLOOM_UPDATE_GOLDEN"):
        TABLE.write_text(text)
    assert TABLE.read_text() == text
