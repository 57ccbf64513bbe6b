"""Graph: a sparse matrix in CSR as torch tensors, with what the library keeps for it."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from warploom import _arguments
from warploom._native import lib
from warploom._plan import Expected
from warploom.torch import _plan
from warploom.torch._internals import recordable
from warploom.torch._plan import (
    DENSE_TYPES,
    INDEX_TYPES,
    LONGEST_OF_INT16,
    KeptPlan,
    Launcher,
    Matrices,
    OnceKind,
    Request,
)
from warploom.torch._state import Made, TensorState

# Graphs by the id() of their rowptr, for the registered ops, which get tensors. A graph keeps its
# rowptr alive, so an id that is found belongs to that very tensor.
_by_rowptr: weakref.WeakValueDictionary[int, Graph] = weakref.WeakValueDictionary()


class _OnceProducts:
    """What products with graphs of one device and types have in common if each is used once."""

    def __init__(self, index: int) -> None:
        self.context = _plan.context(index)
        self.kinds: dict[Request, OnceKind] = {}
        self.products: dict[Any, Any] = {}


def _drop(graph: Callable[[], Graph | None], key: int, values: Any) -> None:
    """Give up the ordered values of values that end."""
    there = graph()
    if there is not None:
        there._ordered.pop(key, None)


_MOST_ORDERED = 8  # values of edges of a graph: those of its layers
_MOST_ONCE = 4096  # requests; each of them has a width and types
_once: dict[tuple[int, torch.dtype, torch.dtype], _OnceProducts] = {}


def _shared(*types: Any) -> _OnceProducts:
    return _once.get(types) or _once.setdefault(types, _OnceProducts(types[0]))


def find(rowptr: torch.Tensor, colind: torch.Tensor, cols: int) -> Graph:
    """The kept graph of these very tensors, or a graph for one call."""
    graph = _by_rowptr.get(id(rowptr))
    if (
        graph is not None
        and graph.rowptr is rowptr
        and graph.colind is colind
        and graph.cols == cols
        and graph._versions == (rowptr._version, colind._version)
    ):
        return graph
    return Graph(rowptr, colind, cols=cols, once=True)


def need(holds: Any, message: str, error: type[Exception] = ValueError) -> None:
    """Raise the error with a message unless this holds."""
    if not holds:
        raise error("warploom: " + message)


def need_tensor(name: str, value: Any) -> None:
    """Raise TypeError for anything else than a tensor."""
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"warploom: {name}: a tensor is needed, not {type(value).__name__}")


def need_graph(value: Any) -> None:
    """Raise TypeError for anything else than a Graph."""
    if not isinstance(value, Graph):
        raise TypeError(f"warploom: graph: a Graph is needed, not {type(value).__name__}")


def _extent(name: str, value: Any) -> int:
    """Return a number of rows or columns, which compiled code does not check."""
    return int(value) if torch.compiler.is_compiling() else _arguments.integer(name, value)


def _is_index(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.Tensor) and tensor.dim() == 1 and tensor.dtype in INDEX_TYPES


def _recordable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of a graph, which serves training, too, where it was made in inference mode."""
    if torch.compiler.is_compiling() or not tensor.is_inference():
        return tensor
    with torch.inference_mode(False):
        return tensor.clone()


def _strided(values: torch.Tensor) -> torch.Tensor:
    """Values with the same memory that are no view of a sparse matrix, which dynamo cannot read."""
    base = None if torch.compiler.is_compiling() else values._base
    if base is None or base.layout == torch.strided:
        return values
    return values.clone() if values.requires_grad else values.detach()


def _shared_copy(tensor: torch.Tensor) -> torch.Tensor:
    """The same in shared memory, of the same class; it requires a gradient if the tensor does."""
    copy = tensor.detach().clone()
    copy.share_memory_()  # type: ignore[no-untyped-call]
    return copy.as_subclass(type(tensor)).requires_grad_(tensor.requires_grad)


def _refuse_pattern(rowptr: torch.Tensor, colind: torch.Tensor) -> None:
    """Raise what is wrong with the tensors of a graph; texts cost more time than checks."""
    for name, tensor in (("rowptr", rowptr), ("colind", colind)):
        need_tensor(name, tensor)
        need(
            tensor.dim() == 1,
            f"{name}: one dimension is needed, not the shape {tuple(tensor.shape)}",
        )
        need(
            tensor.dtype in INDEX_TYPES,
            f"{name}: int32 or int64 is needed, not {tensor.dtype}",
            TypeError,
        )
    need(rowptr.shape[0] >= 1, "rowptr: rows + 1 elements are needed, not 0")
    need(
        colind.device == rowptr.device,
        f"colind is on {colind.device}, rowptr on {rowptr.device}",
    )
    need(
        rowptr.device.type in ("cpu", "cuda"),
        f"rowptr: the device {rowptr.device} is not supported",
    )


class Graph:
    """A sparse rows x cols matrix A in CSR; row i lists the edges k -> i of a graph, whose sources
    are columns.

    rowptr: (rows + 1,) and colind: (nnz,), int32 or int64, on one device. Columns of a row may be
        unsorted and repeated. Do not change them afterwards.
    values: (nnz,) or (nnz, heads), or None for ones. They may require a gradient and may be
        replaced with each call.
    cols: columns of A; None = as many as rows.
    once: True for a matrix that is used for one step, such as a sampled mini-batch. Nothing is
        then measured, checked or kept, and gradients of B are scattered or come from a transpose
        that is built on the stream.

    A graph that is not `once` is measured at its first product, which waits for the device and may
    compile kernels; later products do neither. Its transpose is built at the first backward pass
    and kept.
    """

    successor: Graph | None = None  # of one that is used once: the same for many steps
    _transpose: Graph | None = None
    _carried: TensorState | None = None  # the values that the transpose has, where this is known
    _order: torch.Tensor | None = None
    _edges_are_sorted: bool | None = None
    _edge_index: torch.Tensor | None = None

    def __init__(
        self,
        rowptr: torch.Tensor,
        colind: torch.Tensor,
        values: torch.Tensor | None = None,
        *,
        cols: int | None = None,
        perm: torch.Tensor | None = None,
        once: bool = False,
    ) -> None:
        if not (
            _is_index(rowptr)
            and _is_index(colind)
            and rowptr.shape[0] >= 1
            and colind.device == rowptr.device
            and rowptr.device.type in ("cpu", "cuda")
        ):
            _refuse_pattern(rowptr, colind)
        self.rowptr = _recordable(rowptr.contiguous())
        self.colind = _recordable(colind.contiguous())
        self.rows: int = rowptr.shape[0] - 1
        self.cols: int = self.rows if cols is None else _extent("cols", cols)
        self.nnz: int = colind.shape[0]
        if values is not None:
            self._check_values(values)
            values = _strided(values)
        self.values = values
        self.perm = None if perm is None else _recordable(perm)
        self.once = once
        self._reset()

    def _reset(self) -> None:
        self.index: int = self.rowptr.get_device()
        self._versions = (self.rowptr._version, self.colind._version)
        self._products: dict[Any, Any] = {}
        if self.once and not torch.compiler.is_compiling():
            self._products = self._shared().products
        self._plans: dict[Request, KeptPlan] = {}
        self._expected: dict[Request, Expected] = {}
        self._matrices = Matrices(self)
        self._derived: dict[Any, torch.Tensor] = {}
        self._derived_graphs: dict[str, Graph] = {}
        self._ordered: dict[int, Made] = {}  # constant values in CSR order, by their id()
        if not self.once and not torch.compiler.is_compiling():
            _by_rowptr[id(self.rowptr)] = self

    def _check_values(self, values: torch.Tensor, name: str = "values") -> None:
        if (
            isinstance(values, torch.Tensor)
            and values.dim() in (1, 2)
            and values.shape[0] == self.nnz
            and values.dtype in DENSE_TYPES
            and values.device == self.device
        ):
            return
        need_tensor(name, values)
        need(
            values.dim() in (1, 2) and values.shape[0] == self.nnz,
            f"{name}: the shape is {tuple(values.shape)}, "
            f"({self.nnz},) or ({self.nnz}, heads) is needed",
        )
        need(
            values.dtype in DENSE_TYPES,
            f"{name}: the type {values.dtype} is not supported",
            TypeError,
        )
        need(
            values.device == self.device,
            f"{name} are on {values.device}, the graph on {self.device}",
        )

    # ---- constructors ----------------------------------------------------------------

    @classmethod
    def from_edge_index(
        cls,
        edge_index: torch.Tensor,
        values: torch.Tensor | None = None,
        *,
        rows: int | None = None,
        cols: int | None = None,
        once: bool = False,
    ) -> Graph:
        """A graph from PyG's edge_index (2, edges): edge_index[0] are sources (columns),
        edge_index[1] targets (rows).

        rows, cols: None = one more than the largest index; where both are None, the larger of the
            two for both.
        values: in the order of the edges. `perm` of the result gives the edge of each position in
            CSR order, so `x[graph.perm]` brings other tensors of edges into CSR order.

        Indices become int32 where they fit. An edge outside of the rows and columns is an error,
        which waits for the device; with `once` it is left out.
        """
        if hasattr(edge_index, "get_csc") and hasattr(edge_index, "sparse_size"):
            return cls._from_pyg(edge_index, values, rows, cols, once)
        need_tensor("edge_index", edge_index)
        need(
            edge_index.dim() == 2 and edge_index.shape[0] == 2,
            f"edge_index: the shape is {tuple(edge_index.shape)}, (2, edges) is needed",
        )
        need(
            edge_index.dtype in INDEX_TYPES,
            f"edge_index: the type {edge_index.dtype} is not supported",
            TypeError,
        )
        if rows is None or cols is None:
            largest = [
                int(part.max()) + 1 if part.numel() else 0
                for part in (edge_index[1], edge_index[0])
            ]
            if rows is None and cols is None:
                rows = cols = max(largest)
            rows = largest[0] if rows is None else rows
            cols = largest[1] if cols is None else cols
        rows, cols = _extent("rows", rows), _extent("cols", cols)
        if values is not None:
            need_tensor("values", values)
            need(
                values.dim() > 0 and values.shape[0] == edge_index.shape[1],
                f"values: the shape is {tuple(values.shape)}, "
                f"and edge_index has {edge_index.shape[1]} edges",
            )
        edges = edge_index.shape[1]
        within = f"{rows} rows (targets) and {cols} columns (sources)"
        if torch.compiler.is_compiling():
            made = torch.ops.warploom.csr_from_edges(edge_index, rows, cols)
        else:
            need(
                not edges or (rows > 0 and cols > 0),
                f"edge_index: {edges} of {edges} edges are outside of {within}",
            )
            made = _plan.convert_edges(edge_index, rows, cols)
        rowptr, colind, perm = made
        if not once and not torch.compiler.is_compiling():
            outside = edges - int(rowptr[-1])
            need(
                not outside,
                f"edge_index: {outside} of {edges} edges are outside of {within}",
            )
        if values is not None:
            values = values.index_select(0, perm)
        return cls(rowptr, colind, values, cols=cols, perm=perm, once=once)

    @classmethod
    def _from_pyg(
        cls,
        edge_index: Any,
        values: torch.Tensor | None,
        rows: int | None,
        cols: int | None,
        once: bool,
    ) -> Graph:
        """From torch_geometric.EdgeIndex, whose own CSC is our CSR."""
        size = edge_index.sparse_size()
        if not edge_index.is_sorted:
            rows, cols = size[1] if rows is None else rows, size[0] if cols is None else cols
            plain = edge_index.as_tensor()
            return cls.from_edge_index(plain, values, rows=rows, cols=cols, once=once)
        (rowptr, colind), perm = edge_index.get_csc()
        if not isinstance(perm, torch.Tensor):
            perm = None  # the edges are in this order already
        if rows is not None and rows + 1 > rowptr.shape[0]:
            rowptr = torch.cat([rowptr, rowptr[-1:].expand(rows + 1 - rowptr.shape[0])])
        if cols is None:
            cols = (
                size[0] if size[0] is not None else (int(colind.max()) + 1 if colind.numel() else 0)
            )
        if max(rowptr.shape[0], cols, colind.shape[0]) < 2**31:
            rowptr, colind = rowptr.int(), colind.int()
        if values is not None and perm is not None:
            values = values.index_select(0, perm)
        return cls(rowptr, colind, values, cols=cols, perm=perm, once=once)

    @classmethod
    def from_sparse(cls, matrix: Any, *, once: bool = False) -> Graph:
        """A graph from a matrix: torch.sparse_csr, _csc or _coo, a SciPy sparse matrix, or PyG's
        EdgeIndex.

        The rows of the matrix are the targets, so spmm(graph, b) is matrix @ b.
        """
        if not isinstance(matrix, torch.Tensor):
            need(
                hasattr(matrix, "tocsr"),
                f"matrix: a sparse matrix is needed, not {type(matrix).__name__}",
                TypeError,
            )
            matrix = matrix.tocsr()
            arrays = [
                torch.from_numpy(array) for array in (matrix.indptr, matrix.indices, matrix.data)
            ]
            return cls(*arrays, cols=matrix.shape[1], once=once)
        if hasattr(matrix, "get_csc"):
            return cls.from_edge_index(matrix, once=once)
        need(
            matrix.dim() == 2 or matrix.layout == torch.sparse_coo,
            f"matrix: two dimensions are needed, not the shape {tuple(matrix.shape)}",
        )
        if matrix.layout == torch.sparse_csc:
            need(
                not (matrix.is_leaf and matrix.requires_grad),
                "matrix: PyTorch adds up no gradients of sparse_csc; let its values require one "
                "and make the matrix of them, or use sparse_csr",
                NotImplementedError,
            )
            rows, cols = matrix.shape
            targets, degrees = matrix.row_indices(), matrix.ccol_indices().diff()
            sources = torch.arange(cols, device=targets.device, dtype=targets.dtype)
            sources = sources.repeat_interleave(degrees, output_size=targets.shape[0])
            edges, values = torch.stack([sources, targets]), matrix.values()
            graph = cls.from_edge_index(edges, values, rows=rows, cols=cols, once=once)
            graph.perm = None  # edges are those of the same matrix in CSR
            return graph
        if matrix.layout == torch.sparse_csr:
            return cls(
                matrix.crow_indices(),
                matrix.col_indices(),
                matrix.values(),
                cols=matrix.shape[1],
                once=once,
            )
        need(
            matrix.layout == torch.sparse_coo,
            f"matrix: the layout {matrix.layout} is not supported",
            TypeError,
        )
        need(
            matrix.sparse_dim() == 2,
            f"matrix: two dimensions are needed, not the shape {tuple(matrix.shape)}",
        )
        coalesced = matrix if matrix.is_coalesced() else matrix.coalesce()
        targets_sources = coalesced.indices()
        rows, cols = matrix.shape[:2]
        return cls.from_edge_index(
            targets_sources.flip(0), coalesced.values(), rows=rows, cols=cols, once=once
        )

    # ---- copies ----------------------------------------------------------------------

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ForkingPickler.register(cls, cls._reduce_for_process)

    def _reduce_for_process(self) -> tuple[Any, ...]:
        """A pickle for another process, with copies of the tensors in shared memory.

        PyTorch moves the memory of tensors that it sends. A queue does so in a thread of its own,
        while this one may multiply by them.
        """
        reduced: Any = self.__reduce_ex__(2)
        state: dict[str, Any] = dict(reduced[2])
        for name in ("rowptr", "colind", "perm"):
            tensor = state[name]
            if tensor is not None and not tensor.is_shared():
                state[name] = self._keep(f"shared {name}", functools.partial(_shared_copy, tensor))
        values = state["values"]
        if values is not None and values.is_leaf and not values.is_shared():
            state["values"] = _shared_copy(values)
        return reduced[0], reduced[1], state

    def _apply(self, function: Any) -> Graph:
        def call(tensor: torch.Tensor | None) -> torch.Tensor | None:
            return None if tensor is None else function(tensor)

        return Graph(
            function(self.rowptr),
            function(self.colind),
            call(self.values),
            cols=self.cols,
            perm=call(self.perm),
            once=self.once,
        )

    def to(self, device: str | torch.device | int, non_blocking: bool = False) -> Graph:
        """The graph on a device; itself where it is there already."""
        moved = self.rowptr.to(device, non_blocking=non_blocking)
        if moved is self.rowptr:
            return self
        return self._apply(lambda tensor: tensor.to(moved.device, non_blocking=non_blocking))

    def cpu(self) -> Graph:
        """The graph in host memory."""
        return self.to("cpu")

    def cuda(
        self, device: str | torch.device | int | None = None, non_blocking: bool = False
    ) -> Graph:
        """The graph on a GPU, by default the current one."""
        return self.to("cuda" if device is None else device, non_blocking)

    def pin_memory(self) -> Graph:
        """A copy in page-locked memory, from which to(device, non_blocking=True) does not wait."""
        return self._apply(lambda tensor: tensor.pin_memory())

    def t(self) -> Graph:
        """The transpose, made at the first call and kept unless the graph is `once`.

        It has the values that the graph has now. Its `perm` maps to the edges that the perm of this
        graph maps to, and to its positions where it has none.
        """
        kept = self._transpose
        if kept is not None:
            if self.values is None and kept.values is None:
                return kept
            if self.values is None or not self.values.requires_grad:
                return self._with_values(kept)
        made, row = self.colind, self.row()
        ends = made.data_ptr(), row.data_ptr()
        rowptr, colind, order = _plan.convert(made, *ends, self.nnz, self.cols, self.rows)
        order = _recordable(order)
        values = None if self.values is None else self.values.index_select(0, order)
        if values is not None and not values.requires_grad:
            values = _recordable(values)
        transposed = Graph(
            rowptr,
            colind,
            values,
            cols=self.rows,
            perm=order if self.perm is None else self.perm.index_select(0, order),
            once=self.once,
        )
        transposed._order = order
        if not self.once and not (self.values is not None and self.values.requires_grad):
            self._transpose = transposed
            self._carried = self._values_now()
        return transposed

    def _values_now(self) -> TensorState | None:
        values = self.values
        if values is None or torch.compiler.is_compiling() or values.is_inference():
            return None
        return TensorState(values)

    def _with_values(self, kept: Graph) -> Graph:
        """The kept transpose with the values that this graph has now."""
        values = self.values
        carried = None if torch.compiler.is_compiling() else self._carried
        if carried is not None and values is not None and carried.is_of(values, kept.values):
            return kept
        order = kept._order
        assert order is not None
        if torch.compiler.is_compiling():
            there = None if values is None else values.index_select(0, order)
            return Graph(kept.rowptr, kept.colind, there, cols=kept.cols, perm=kept.perm)
        with torch.inference_mode(False):
            kept.values = None if values is None else values.index_select(0, order)
        self._carried = self._values_now()
        return kept

    def _count(self, count: int) -> torch.Tensor:
        """The numbers from 0 on, of rowptr's type."""
        return torch.arange(count, device=self.device, dtype=self.rowptr.dtype)

    def incidence(self) -> Graph:
        """The rows x nnz matrix that has the edges of each row as its columns; kept."""

        def make() -> Graph:
            rowptr, nnz = self.rowptr.detach(), self.nnz
            return Graph(rowptr, self._count(nnz), cols=nnz, once=self.once)

        return self._keep_graph("incidence", make)

    def diagonal(self) -> Graph:
        """The rows x rows matrix with the entries of its diagonal; kept."""

        def make() -> Graph:
            if self.once and self.index < 0:
                return OnceGraph.diagonal_of(self.rows)
            ends = self._count(self.rows + 1)
            return Graph(ends, ends[: self.rows], once=self.once)

        return self._keep_graph("diagonal", make)

    def blocks(self) -> Graph:
        """The matrix that adds up each 64 rows of what has as many rows; kept."""

        def make() -> Graph:
            places = self._count(self.rows)
            end = places.new_full((1,), self.rows)
            return Graph(torch.cat([places[::64], end]), places, cols=self.rows, once=self.once)

        return self._keep_graph("blocks", make)

    def pairs(self) -> Graph:
        """The rows x 2 matrix with all entries; kept."""

        def make() -> Graph:
            dtype = _plan.index_type(self.rows, 2, 2 * self.rows)
            colind = torch.arange(2 * self.rows, device=self.device, dtype=dtype) % 2
            rowptr = torch.arange(0, 2 * self.rows + 1, 2, device=self.device, dtype=dtype)
            return Graph(rowptr, colind, cols=2, once=self.once)

        return self._keep_graph("pairs", make)

    def _keep_graph(self, name: str, make: Callable[[], Graph]) -> Graph:
        if torch.compiler.is_compiling():
            return make()
        made = self._derived_graphs.get(name)
        if made is None:
            with recordable():
                made = self._derived_graphs[name] = make()
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Tensors only: plans are made again where the graph is used."""
        names = ("rowptr", "colind", "values", "rows", "cols", "nnz", "perm", "once")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _refuse_pattern(self.rowptr, self.colind)
        sizes = self.rowptr.shape[0] - 1, self.colind.shape[0]
        need(sizes == (self.rows, self.nnz), "rowptr, colind: have other sizes than the Graph")
        self._reset()

    def __repr__(self) -> str:
        values = (
            ""
            if self.values is None
            else f", values {tuple(self.values.shape)} {self.values.dtype}"
        )
        return f"Graph({self.rows} x {self.cols}, {self.nnz} edges{values}, {self.device})"

    # ---- what is derived -------------------------------------------------------------

    @property
    def stored(self) -> int:
        """The lines of values that are in CSR order, also where other operands are not."""
        return self.nnz

    @property
    def device(self) -> torch.device:
        """Where the graph's tensors are."""
        return self.rowptr.device

    def held(self) -> tuple[Any, int, int]:
        """See Pattern."""
        rowptr, colind = self.rowptr, self.colind
        return (rowptr, colind), rowptr.data_ptr(), colind.data_ptr()

    def _keep(self, key: Any, make: Any) -> torch.Tensor:
        tensor: torch.Tensor | None = self._derived.get(key)
        if tensor is None:
            if self.once or torch.compiler.is_compiling():
                tensor = make()
            else:
                with torch.inference_mode(False):
                    tensor = make()
            assert tensor is not None
            if not self.once:
                self._derived[key] = tensor
        return tensor

    def degrees(self) -> torch.Tensor:
        """Edges of each row, (rows,)."""
        return self._keep("degrees", self.rowptr.diff)

    def row(self) -> torch.Tensor:
        """The row of each edge, (nnz,)."""

        def make() -> torch.Tensor:
            rows = torch.arange(self.rows, device=self.device, dtype=self.colind.dtype)
            return rows.repeat_interleave(self.degrees(), output_size=self.nnz)

        return self._keep("row", make)

    def inverse_degrees(self, dtype: torch.dtype) -> torch.Tensor:
        """1 / edges of each row, or 1 where there are none, (rows,)."""

        def make() -> torch.Tensor:
            return self.degrees().clamp(1).to(dtype).reciprocal()

        return self._keep(("inverse", dtype), make)

    def row_weights(self, reduce: str, dtype: torch.dtype) -> torch.Tensor:
        """The sum or mean of a 1 for each edge, (rows,)."""

        def make() -> torch.Tensor:
            return (self.degrees() if reduce == "sum" else self.degrees() > 0).to(dtype)

        return self._keep(("weights", reduce, dtype), make)

    def edge_order(self) -> torch.Tensor | None:
        """The edge of each position in CSR order, as `perm`, or None where edges are in this order.

        Of a graph that is not `once` the first call compares, which waits for the device.
        """
        if self.perm is None or self.once:
            return self.perm
        if self._edges_are_sorted is None:
            places = torch.arange(self.nnz, device=self.device, dtype=self.perm.dtype)
            self._edges_are_sorted = torch.equal(self.perm, places)
        return None if self._edges_are_sorted else self.perm

    def edge_index(self) -> torch.Tensor:
        """Sources and targets of the edges, (2, nnz) of int64, in the order of the edge_index that
        the graph was made from; kept."""
        if self._edge_index is None:
            with torch.inference_mode(False):
                edges = torch.stack([self.colind, self.row()]).long()
                if self.perm is not None:
                    edges = torch.empty_like(edges).index_copy_(1, self.perm.long(), edges)
            self._edge_index = edges
        return self._edge_index

    def order_edges(self, values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        """Values of edges in CSR order, which this tensor gives; those of constant ones are kept
        while these live."""
        if self.once or values.requires_grad or values.is_inference():
            return values.index_select(0, order)
        base = values._base
        if (  # a view for each call of one number for each edge
            base is not None
            and base.dim() == 1
            and base.requires_grad == values.requires_grad
            and (base.numel(), base.stride(0)) == (values.numel(), values.stride(0))
        ):
            return self.order_edges(base, order).reshape(values.shape)
        key = id(values)
        known = self._ordered.get(key)
        if known is not None and known.is_of(values):
            return known.tensors[0]  # type: ignore[return-value]
        with torch.inference_mode(False), torch.no_grad():
            ordered = values.index_select(0, order)
        if not _plan.is_captured(self.index):
            drop = functools.partial(_drop, weakref.ref(self), key)
            self._ordered.pop(key, None)
            self._ordered[key] = Made((ordered,), values, drop)
            while len(self._ordered) > _MOST_ORDERED:
                self._ordered.pop(next(iter(self._ordered)), None)
        return ordered

    def edge_places(self) -> torch.Tensor | None:
        """The position in CSR order of each edge, or None where edges are in this order."""
        order = self.edge_order()
        if order is None:
            return None

        def make() -> torch.Tensor:
            places = torch.arange(self.nnz, device=self.device, dtype=order.dtype)
            return torch.empty_like(places).index_copy_(0, order.long(), places)

        return self._keep("places", make)

    def divide_by_degrees(self, x: torch.Tensor) -> torch.Tensor:
        """Each row of x divided by the edges of that row, where there are any; of x's type."""
        degrees = self.degrees().clamp(1).reshape((-1,) + (1,) * (x.dim() - 1))
        if x.dtype in (torch.float32, torch.float64):
            return x / degrees
        return (x.float() / degrees).to(x.dtype)  # 16 bits do not hold large degrees

    def divide_used_rows(self, x: torch.Tensor) -> torch.Tensor:
        """The same for rows with edges; others, which no product reads, are unspecified."""
        if x.dtype not in (torch.float32, torch.float64) or x.dim() != 2:
            return self.divide_by_degrees(x)
        return x / self.degrees().unsqueeze(1)

    def mean_weights(self, dtype: torch.dtype) -> torch.Tensor:
        """1 / edges of the row, for each edge: the sum with these values is the mean; (nnz,)."""
        return self._keep(
            ("mean", dtype), lambda: self.inverse_degrees(dtype).index_select(0, self.row())
        )

    # ---- plans -----------------------------------------------------------------------

    def positions(self, request: Request) -> torch.dtype:
        """The narrowest type of positions that the plan of a request can give.

        The deterministic gradient of a GPU reads whole ones.
        """
        ordered = request.deterministic and self.index >= 0
        if self.once or ordered or _plan.is_captured(self.index):
            return self.rowptr.dtype
        fits = self._matrices.of(request.values).longest() <= LONGEST_OF_INT16
        return torch.int16 if fits else self.rowptr.dtype

    def expected(
        self,
        n: int,
        dtype: torch.dtype = torch.float32,
        *,
        values: torch.dtype | None = None,
        reduce: str = "sum",
        transpose: bool = False,
    ) -> Expected:
        """The time that a product with n columns is expected to take, to compare several orders of
        products; nothing is compiled.

        values: the type of A's values; None = ones. transpose: of A^T, as in the gradient.

        `seconds` is measured or predicted, and None where rules alone choose the kernel; `simple`
        is estimated from the bytes that the product moves. Not for a graph that is `once`.
        """
        need(not self.once, "expected: a graph with once=True has no stats")
        need(dtype in DENSE_TYPES, f"dtype: {dtype} is not supported", TypeError)
        message = "copy_b" if values is None else "mul"
        return self.expected_of(
            Request((n,), dtype, values, reduce=reduce, message=message, transpose=transpose)
        )

    def expected_of(self, request: Request) -> Expected:
        """The expected time of a request, which is asked once."""
        found = self._expected.get(request)
        if found is None:
            found = self._expected[request] = self._matrices.expected(request)
        return found

    def plan(self, request: Request) -> Launcher:
        """The plan of a request, made at its first use."""
        return self.kind(request).of(self)

    def kind(self, request: Request) -> KeptPlan | OnceKind:
        """What gives this graph's plan by `of`: for all graphs of `_products`."""
        if self.once:
            return self._once_kind(request)
        plan = self._plans.get(request)
        if plan is not None:
            return plan
        with _plan.lock_of(self._matrices, request):
            plan = self._plans.get(request)
            if plan is None:
                plan = self._plans[request] = KeptPlan(request, self._matrices)
        return plan

    def _shared(self) -> _OnceProducts:
        return _shared(self.index, self.rowptr.dtype, self.colind.dtype)

    def _once_kind(self, request: Request) -> OnceKind:
        shared = self._shared()
        kind = shared.kinds.get(request)
        if kind is None:
            if len(shared.kinds) >= _MOST_ONCE:
                shared.kinds.clear()
                shared.products.clear()
            kind = shared.kinds[request] = OnceKind(request, self)
        return kind


@functools.lru_cache(maxsize=64)
def _numbers_to(bits: int) -> torch.Tensor:
    """The numbers of this many bits, and the next one."""
    with torch.inference_mode(False):
        return torch.arange(2**bits + 1, dtype=_plan.index_type(2**bits, 0, 0))


# Numbers on the CPU that one thread divides sooner than PyTorch begins to.
_MOST_DIVIDED = 2**15
_GAP = 31  # less than a number of indices whose arrays are aligned


class OnceGraph(Graph):
    """The graph of edges that are used once; a mini-batch spares checks and tensors.

    Its tensors lie in one memory and are made where they are asked for.

    edges, row, col, nnz: see `convert`. loops: how many nodes get one self loop in the place of all
        loops, on the host. weights: the type of the weights of GCN's norm, in `weights`.
    is_whole: False where the host sees that edges lie outside.
    """

    once = True
    values = None
    weights: torch.Tensor | None = None

    def __init__(
        self, edges: torch.Tensor, row: int, col: int, nnz: int, rows: int, cols: int,
        loops: int = _plan.NO_LOOPS, weights: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        most = nnz if loops < 0 else nnz + loops
        dtype = torch.int32 if max(rows, cols, most) < 2**31 else torch.int64
        self._colind = first = (rows + 1 + _GAP) & ~_GAP
        self._perm = second = first + ((most + _GAP) & ~_GAP)
        of_weights = 0
        with recordable():
            memory = torch.empty(second + most, dtype=dtype, device=edges.device)
            if weights is not None:
                self.weights = memory.new_empty(most, dtype=weights)
                of_weights = self.weights.data_ptr()
        at, size = memory.data_ptr(), memory.element_size()
        self._keep_memory(rows, cols, edges.get_device(), memory, at, at + size * first)
        count = _plan.place_edges(
            self._context,
            [rows, cols, nnz, row, col, INDEX_TYPES[edges.dtype], loops],
            [at, at + size * first, at + size * second, INDEX_TYPES[dtype], of_weights,
             weights is torch.float64],
            self.index,
        )  # fmt: skip
        self.is_whole = count != _plan.OUTSIDE
        self.nnz = count if loops >= 0 and self.is_whole else nnz
        if self.weights is not None and self.nnz != most:
            self.weights = self.weights[: self.nnz]

    def _keep_memory(
        self, rows: int, cols: int, index: int, memory: torch.Tensor, rowptr: int, colind: int
    ) -> None:
        self.rows, self.cols, self.index = rows, cols, index
        self._memory = memory
        self._held = memory, rowptr, colind
        dtype = memory.dtype
        types = index, dtype, dtype
        shared = _once.get(types) or _shared(*types)
        self._context, self._products = shared.context, shared.products
        self._plans, self._derived, self._derived_graphs, self._ordered = {}, {}, {}, {}

    @classmethod
    def diagonal_of(cls, rows: int) -> OnceGraph:
        """The diagonal of a square matrix on the CPU, in memory of all of them."""
        graph = cls.__new__(cls)
        graph.nnz, graph.perm, graph._colind = rows, None, 0
        memory = _numbers_to(rows.bit_length())
        graph._keep_memory(rows, rows, -1, memory, memory.data_ptr(), memory.data_ptr())
        return graph

    def __getattr__(self, name: str) -> torch.Tensor:
        """The tensors, at their first use."""
        if name == "rowptr":
            made = self._memory[: self.rows + 1]
        elif name == "colind":
            made = self._memory[self._colind : self._colind + self.nnz]
        elif name == "perm":
            made = self._memory[self._perm : self._perm + self.nnz]
        else:
            raise AttributeError(name)
        setattr(self, name, made)
        return made

    @property
    def device(self) -> torch.device:
        return self._memory.device

    def held(self) -> tuple[Any, int, int]:
        return self._held

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy is a Graph, whose tensors lie apart."""
        return Graph.__new__, (Graph,), self.__getstate__()

    def divide_used_rows(self, x: torch.Tensor) -> torch.Tensor:
        is_wide = x.dtype is torch.float64
        if (
            (is_wide or x.dtype is torch.float32)
            and self.index < 0
            and x.dim() == 2
            and x.is_contiguous()
            and x.numel() <= _MOST_DIVIDED
        ):
            memory, rowptr, _ = self._held
            y = torch.empty_like(x)
            lib.warploom_divide_rows(
                x.data_ptr(), y.data_ptr(), *x.shape, is_wide, rowptr, INDEX_TYPES[memory.dtype]
            )
            return y
        return super().divide_used_rows(x)


ForkingPickler.register(Graph, Graph._reduce_for_process)
torch.serialization.add_safe_globals([Graph])  # for torch.load(weights_only=True)
