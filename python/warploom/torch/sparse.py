"""Two functions of torch_sparse 0.6, `spmm` and `matmul` with a dense matrix; no others.

Both are differentiable in the values and in the dense matrix.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from warploom.torch import _eager
from warploom.torch._graph import Graph, OnceGraph, need, need_tensor
from warploom.torch._plan import DENSE_TYPES, ends_of
from warploom.torch._rows import find
from warploom.torch.scatter import scatter_sum


def spmm(index: Tensor, value: Tensor, m: int, n: int, matrix: Tensor) -> Tensor:
    """The product of a sparse m x n matrix with a dense one.

    index: (2, entries) of int64: rows and columns, in any order; sorted once and kept as long as it
        lives. value: (entries,). matrix: (n,), (n, k) or (..., n, k).

    Returns (..., m, k).
    """
    for name, tensor in (("index", index), ("value", value), ("matrix", matrix)):
        need_tensor(name, tensor)
    need(index.dim() == 2 and index.shape[0] == 2, "index: the shape (2, entries) is needed")
    need(value.shape == index.shape[1:], "value: a number for each entry of index is needed")
    matrix = matrix.unsqueeze(-1) if matrix.dim() == 1 else matrix
    need(matrix.shape[-2] == n, f"matrix: has {matrix.shape[-2]} rows, not n = {n}")
    if (
        torch.compiler.is_compiling()
        or matrix.dtype not in DENSE_TYPES
        or value.dtype != matrix.dtype
    ):
        terms = matrix.index_select(-2, index[1]) * value.unsqueeze(-1)
        return scatter_sum(terms, index[0], -2, dim_size=m)
    kept = find(index, ("spmm", m, n))
    if not kept.made:
        made = OnceGraph(*ends_of(index, True), m, n)
        if not made.is_whole:
            raise IndexError(f"warploom: index: has entries outside of {m} x {n}")
        kept.made[False] = made
    graph = kept.graph()
    b = matrix.movedim(-2, 0)
    assert graph.perm is not None
    product = _eager.spmm(graph, b.reshape(n, -1), value.index_select(0, graph.perm))
    return product.reshape(m, *b.shape[1:]).movedim(0, -2)


def matmul(src: Any, other: Tensor, reduce: str = "sum") -> Tensor:
    """The product of a sparse matrix with a dense one.

    src: a SparseTensor of torch_sparse, a torch.sparse tensor or a Graph. other: (columns,) or
        (columns, k). reduce: of the products in each row: "sum" or "add", "mean", "min" or "max".
    """
    if not isinstance(other, Tensor) or other.layout is not torch.strided:
        raise TypeError("warploom: other: a dense tensor is needed; use torch_sparse for others")
    if isinstance(src, Graph):
        graph = src
    elif hasattr(src, "csr") and hasattr(src, "sparse_size"):
        rowptr, colind, values = src.csr()
        graph = Graph(rowptr, colind, values, cols=src.sparse_size(1), once=True)
    else:
        graph = Graph.from_sparse(src, once=True)
    b = other.unsqueeze(-1) if other.dim() == 1 else other
    product = _eager.spmm(graph, b, reduce="sum" if reduce == "add" else reduce)
    return product.squeeze(-1) if other.dim() == 1 else product
