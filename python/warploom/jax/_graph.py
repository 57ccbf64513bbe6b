"""Graphs as pytrees of CSR arrays."""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_INDEX = ("int32", "int64")


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["rowptr", "colind", "t_rowptr", "t_colind", "t_order", "perm"],
    meta_fields=["rows", "cols"],
)
@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A sparse rows x cols matrix A in CSR and its transpose, as a pytree.

    Row i lists the edges k -> i, whose senders are columns. The arrays are leaves and the sizes are
    static, so a jitted function compiles once for graphs of equal sizes, as jraph's padded batches.
    `from_edges` and `from_csr` make one.
    """

    rowptr: jax.Array  #: (rows + 1,)
    colind: jax.Array  #: (nnz,): the sender of each edge
    t_rowptr: jax.Array  #: (cols + 1,), of A^T
    t_colind: jax.Array  #: (nnz,), of A^T: receivers
    t_order: jax.Array  #: (nnz,): the place in `colind` of each edge of A^T
    perm: jax.Array  #: (nnz,): the number of each edge in the list that the graph was made from
    rows: int
    cols: int

    @property
    def nnz(self) -> int:
        """The number of edges."""
        return int(self.colind.shape[0])

    @property
    def arrays(self) -> tuple[jax.Array, ...]:
        """The arrays of A and A^T, as calls take them."""
        return self.rowptr, self.colind, self.t_rowptr, self.t_colind, self.t_order

    @staticmethod
    def from_edges(senders: Any, receivers: Any, rows: int, cols: int | None = None) -> Graph:
        """Sort a list of edges. Works inside of jit, where sizes are those of arrays and ints.

        senders, receivers: (nnz,), the column and the row of each edge; edges may repeat.
        rows, cols: numbers of nodes; None = as many columns as rows.

        Edges with a node outside of these sizes are refused; inside of jit, where values are not
        known, they take no part in products.
        """
        rows, cols = _sizes("from_edges", rows, cols)
        senders = _index("senders", senders, cols)
        receivers = _index("receivers", receivers, rows)
        if senders.shape != receivers.shape:
            raise ValueError(
                f"warploom.jax: senders has shape {senders.shape}, and receivers {receivers.shape}"
            )
        dtype = jnp.result_type(senders, receivers)
        made: Graph = _sort(senders.astype(dtype), receivers.astype(dtype), rows, cols)
        return made

    @staticmethod
    def from_csr(rowptr: Any, colind: Any, cols: int | None = None) -> Graph:
        """Take CSR arrays, as those of SciPy or of BCSR: (rows + 1,) and (nnz,)."""
        rows, cols = _sizes("from_csr", len(rowptr) - 1, cols)
        colind = _index("colind", colind, cols)
        nnz = colind.shape[0]
        if not isinstance(rowptr, jax.core.Tracer):
            ends = np.asarray(rowptr)
            if ends[0] != 0 or ends[-1] != nnz or (np.diff(ends) < 0).any():
                raise ValueError(f"warploom.jax: rowptr: does not rise from 0 to nnz = {nnz}")
        rowptr = _index("rowptr", rowptr, nnz + 1)
        dtype = jnp.result_type(rowptr, colind)
        receivers = jnp.repeat(
            jnp.arange(rows, dtype=dtype), jnp.diff(rowptr), total_repeat_length=nnz
        )
        made: Graph = _sort(colind.astype(dtype), receivers, rows, cols)
        return made

    def to_csr_order(self, edges: Any) -> jax.Array:
        """Features of edges, (nnz, ...), from the order of the list to that of products."""
        return jnp.asarray(edges)[self.perm]

    def to_list_order(self, edges: Any) -> jax.Array:
        """The opposite of `to_csr_order`."""
        edges = jnp.asarray(edges)
        return jnp.empty_like(edges).at[self.perm].set(edges, unique_indices=True)

    def degrees(self) -> jax.Array:
        """The number of edges of each row."""
        return jnp.diff(self.rowptr)


@functools.partial(jax.jit, static_argnums=(2, 3))
def _sort(senders: Any, receivers: Any, rows: int, cols: int) -> Graph:
    dtype = senders.dtype
    is_inside = (senders >= 0) & (senders < cols) & (receivers >= 0) & (receivers < rows)
    receivers = jnp.where(is_inside, receivers, rows)  # behind the last row
    perm = jnp.argsort(receivers, stable=True).astype(dtype)
    row = receivers[perm]
    column = jnp.where(row < rows, senders[perm], cols)
    order = jnp.argsort(column, stable=True).astype(dtype)

    def offsets(lines: Any, count: int) -> Any:
        return jnp.searchsorted(lines, jnp.arange(count + 1, dtype=dtype)).astype(dtype)

    return Graph(
        offsets(row, rows), jnp.minimum(column, max(cols - 1, 0)), offsets(column[order], cols),
        jnp.minimum(row[order], max(rows - 1, 0)), order, perm, rows, cols,
    )  # fmt: skip


def _sizes(of: str, rows: Any, cols: Any) -> tuple[int, int]:
    sizes = []
    for name, size in (("rows", rows), ("cols", rows if cols is None else cols)):
        size = operator.index(size)  # a tracer raises TracerIntegerConversionError
        if size < 0:
            raise ValueError(f"warploom.jax: {of}: {name} is {size}, and no size is negative")
        sizes.append(size)
    return sizes[0], sizes[1]


def _index(name: str, given: Any, count: int) -> jax.Array:
    """An array of numbers below `count`, which is checked where values are known."""
    array = jnp.asarray(given)
    if array.ndim != 1 or str(array.dtype) not in _INDEX:
        raise TypeError(
            f"warploom.jax: {name}: is {array.dtype}{list(array.shape)}; use one dimension of "
            "int32 or int64"
        )
    if array.shape[0] and not isinstance(given, jax.core.Tracer):
        known = np.asarray(given)
        if known.min() < 0 or known.max() >= count:
            found = f"{known.min()} to {known.max()}"
            raise ValueError(f"warploom.jax: {name}: {found} are not in 0 to {count - 1}")
    return array
