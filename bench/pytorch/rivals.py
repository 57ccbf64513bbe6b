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
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from bench.pytorch.cases import describe

Product = Callable[[Tensor], Tensor]


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

    def attention(self, kind: str, layer: Any) -> Product | None:
        """The result of "gat", "gatv2" or "transformer" for a layer's features, if it has that."""


class _Cudnn:
    def __init__(self, gnn: Any, rowptr: Tensor, colind: Tensor) -> None:
        self._gnn = gnn
        self._graph = gnn.CscGraph(rowptr, colind, len(rowptr) - 1)

    def product(self, reduce: str) -> Product:
        return lambda b: self._gnn.agg_simple(self._graph, node_features=b, aggr=reduce)

    def attention(self, kind: str, layer: Any) -> Product | None:
        def gat(x: Tensor) -> Tensor:
            h = layer.lin(x)
            weights = torch.cat([layer.att_src.flatten(), layer.att_dst.flatten()])
            out = self._gnn.mha_gat(self._graph, (h, h), weights, num_heads=layer.heads)
            return out + layer.bias  # type: ignore[no-any-return]

        def gatv2(x: Tensor) -> Tensor:
            ends = layer.lin_l(x), layer.lin_r(x)
            weights = layer.att.flatten()
            out = self._gnn.mha_gat_v2(self._graph, ends, weights, num_heads=layer.heads)
            return out + layer.bias  # type: ignore[no-any-return]

        return {"gat": gat, "gatv2": gatv2}.get(kind)


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

    def attention(self, kind: str, layer: Any) -> Product | None:
        def gatv2(x: Tensor) -> Tensor:
            source, target = (
                part(x).view(-1, layer.heads, layer.out_channels)
                for part in (layer.lin_l, layer.lin_r)
            )
            out = self._turbo.gatv2_aggr(self._graph, target, source, layer.att[0], 0.2)
            return out.flatten(1) + layer.bias  # type: ignore[no-any-return]

        def transformer(x: Tensor) -> Tensor:
            query, key, value = (
                part(x).view(-1, layer.heads, layer.out_channels)
                for part in (layer.lin_query, layer.lin_key, layer.lin_value)
            )
            # Its Q is of the sources, and its K of the targets.
            scale = layer.out_channels**-0.5
            out = self._turbo.graph_transformer_aggr(self._graph, query, key, query, value, scale)
            return out.flatten(1) + layer.lin_skip(x)  # type: ignore[no-any-return]

        return {"gatv2": gatv2, "transformer": transformer}.get(kind)


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
