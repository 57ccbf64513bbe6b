"""Operations on graphs of cuDNN (`cudnn.gnn`) and turbo_gnn, where these are installed.

They were run as nvidia-cudnn-frontend 1.32 with cuDNN 9.28, and yandex-research's turbo-gnn at
commit e26d564. Neither takes edge weights. turbo_gnn runs with its default launch parameters.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bench.pytorch.cases import describe

Product = Callable[[Tensor], Tensor]
Operation = Callable[..., Tensor]


def _cudnn() -> Any:
    """cudnn.gnn with the library that WARPLOOM_CUDNN names, or with the one of PyTorch."""
    frontend: Any = importlib.import_module("cudnn")
    path = os.environ.get("WARPLOOM_CUDNN")
    if path:
        handle = ctypes.cast(ctypes.CDLL(path)._handle, ctypes.c_void_p)
        frontend._pybind_module._set_dlhandle_cudnn(handle.value)
    return importlib.import_module("cudnn.gnn")


def _made(name: str, make: Callable[[], Any]) -> dict[str, Any]:
    """What `make` returns, by name; nothing and a message where that fails."""
    try:
        return {name: make()}
    except Exception as error:  # also one of a library that cannot be loaded
        print(f"warploom: bench: {name} is left out: {describe(error)}", file=sys.stderr)
        return {}


@functools.cache
def _modules() -> dict[str, Any]:
    turbo = _made("turbo_gnn", lambda: importlib.import_module("turbo_gnn"))
    return {**_made("cudnn", _cudnn), **turbo}


def installed(device: torch.device) -> dict[str, Any]:
    """The modules by name; they need a GPU. What is left out is reported once, with the reason."""
    return _modules() if device.type == "cuda" else {}


def takes_part(name: str, mode: str) -> bool:
    """Whether a method is timed in a mode: cuDNN is not captured in CUDA graphs."""
    return name != "cudnn" or mode == "eager"


class Rival(Protocol):
    """One library with one graph: CSR with a row for each target, in int32."""

    def product(self, reduce: str) -> Product:
        """The sum, mean or max of the rows of sources."""

    def operation(self, kind: str) -> Operation | None:
        """The operation "gat", "gatv2" or "dot" of attention, of the operands that warploom.torch
        takes, if the library has that."""

    def attention(self, kind: str, layer: Any) -> Product | None:
        """The result of "gat", "gatv2" or "transformer" for a layer's features, if it has that."""


def _by_operation(rival: Rival, kind: str, layer: Any) -> Product | None:
    """The result of a layer for its features, by an operation of a library that has it."""
    attend = rival.operation("dot" if kind == "transformer" else kind)
    if attend is None:
        return None

    def parts(x: Tensor, *linear: Any) -> Iterator[Tensor]:
        return (part(x).view(-1, layer.heads, layer.out_channels) for part in linear)

    def gatv2(x: Tensor) -> Tensor:
        out = attend(*parts(x, layer.lin_l, layer.lin_r), layer.att[0])
        return out.flatten(1) + layer.bias  # type: ignore[no-any-return]

    def transformer(x: Tensor) -> Tensor:
        out = attend(*parts(x, layer.lin_query, layer.lin_key, layer.lin_value))
        return out.flatten(1) + layer.lin_skip(x)  # type: ignore[no-any-return]

    return {"gatv2": gatv2, "transformer": transformer}[kind]


class _Cudnn:
    def __init__(self, gnn: Any, rowptr: Tensor, colind: Tensor) -> None:
        self._gnn = gnn
        self._graph = gnn.CscGraph(rowptr, colind, len(rowptr) - 1)

    def product(self, reduce: str) -> Product:
        return lambda b: self._gnn.agg_simple(self._graph, node_features=b, aggr=reduce)

    def operation(self, kind: str) -> Operation | None:
        def gatv2(b: Tensor, x: Tensor, att: Tensor) -> Tensor:
            ends = b.flatten(1), x.flatten(1)
            out = self._gnn.mha_gat_v2(self._graph, ends, att.flatten(), num_heads=len(att))
            return out.reshape(b.shape)  # type: ignore[no-any-return]

        return {"gatv2": gatv2}.get(kind)

    def attention(self, kind: str, layer: Any) -> Product | None:
        def gat(x: Tensor) -> Tensor:
            h = layer.lin(x)
            weights = torch.cat([layer.att_src.flatten(), layer.att_dst.flatten()])
            out = self._gnn.mha_gat(self._graph, (h, h), weights, num_heads=layer.heads)
            return out + layer.bias  # type: ignore[no-any-return]

        # Its gat computes the terms of the scores, which warploom.torch.gat takes.
        return gat if kind == "gat" else _by_operation(self, kind, layer)


class _Turbo:
    def __init__(self, turbo: Any, rowptr: Tensor, colind: Tensor) -> None:
        self._turbo, self._pattern = turbo, (rowptr, colind)
        clear = getattr(getattr(turbo, "_C", None), "clear_graph_cache", None)
        if clear is not None:  # which knows graphs by their addresses
            clear()
        transposed = _transposed(rowptr, colind)
        is_symmetric = all(map(torch.equal, self._pattern, transposed))
        self._graph = turbo.AdjacencyForwardBackwardWithNodeBuckets.from_csr(
            rowptr, colind, *transposed, is_directed=not is_symmetric
        )

    def product(self, reduce: str) -> Product:
        if reduce == "max":
            return lambda b: self._turbo.reduction_aggr(self._graph, b, reduce="max")
        norm = {"sum": "none", "mean": "right"}[reduce]
        return lambda b: self._turbo.spmm_aggr(b, *self._pattern, norm, -1, 256)

    def operation(self, kind: str) -> Operation | None:
        def gatv2(b: Tensor, x: Tensor, att: Tensor) -> Tensor:
            out = self._turbo.gatv2_aggr(self._graph, x, b, att, 0.2)
            return out.reshape(b.shape)  # type: ignore[no-any-return]

        def dot(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            # Its Q is of the sources, and its K of the targets.
            scale = q.size(-1) ** -0.5
            out = self._turbo.graph_transformer_aggr(self._graph, q, k, q, v, scale)
            return out.reshape(v.shape)  # type: ignore[no-any-return]

        return {"gatv2": gatv2, "dot": dot}.get(kind)

    def attention(self, kind: str, layer: Any) -> Product | None:
        return _by_operation(self, kind, layer)


def _transposed(rowptr: Tensor, colind: Tensor) -> tuple[Tensor, Tensor]:
    """The CSR arrays of the transpose of a square pattern."""
    rows = len(rowptr) - 1
    targets = torch.repeat_interleave(
        torch.arange(rows, device=rowptr.device), rowptr.diff().long()
    )
    order = torch.argsort(colind.long() * rows + targets)
    pointers = torch.zeros_like(rowptr)
    pointers[1:] = torch.bincount(colind, minlength=rows).cumsum(0)
    return pointers, targets[order].int()


_KINDS: dict[str, Callable[..., Rival]] = {"cudnn": _Cudnn, "turbo_gnn": _Turbo}


def make(rowptr: Tensor, colind: Tensor) -> dict[str, Rival]:
    """The libraries that are installed, with a graph."""
    found: dict[str, Rival] = {}
    for name, module in installed(rowptr.device).items():
        kind = functools.partial(_KINDS[name], module, rowptr, colind)
        found.update(_made(name, kind))
    return found


class Layer(nn.Module):
    """A layer of PyG whose attention a rival computes."""

    def __init__(self, layer: nn.Module, attend: Product) -> None:
        super().__init__()
        self.layer, self._attend = layer, attend

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self._attend(x)
