"""PyG's layers inside `torch.compile` and `torch.export`: their graphs, for code that is traced.

A traced layer calls the ops of `warploom.torch` that get an edge_index and find its graph when they
run (`torch/_edges.py`). CUDA graphs copy an edge_index to a place of their own before each step, so
for these the code is compiled for one edge_index and has the number of its graph instead; guards
see another or a modified one.
"""

from __future__ import annotations

import atexit
import itertools
import sys
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, finalize, ref

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from warploom.pyg import _names
from warploom.pyg._checks import Refused
from warploom.pyg._edge_lists import appended_to, norm_of
from warploom.pyg._names import plain_edges
from warploom.pyg._sorted import LOOPS, find_sorted, order_values, peek
from warploom.pyg._switch import SERVED, counts
from warploom.torch import _edges, _registered
from warploom.torch._eager import spmm_of_edges
from warploom.torch._edges import Call, EdgeList, OpGraph
from warploom.torch._internals import (
    compile_for,
    frame_length,
    frame_writes,
    is_cuda_graphed,
    is_frame_input,
    skip_frames,
)

# What is added to edges besides LOOPS: self loops, as GCNConv does; the norm with them.
APPENDED, NORM = "appended", "norm"
# Edge lists for which a layer is compiled under CUDA graphs. For others that is PyG's own code.
MOST_HELD = 4
# Edges times columns from which on an op is expected to take no longer than what torch.compile
# makes of PyG's code, by device, in its default mode. On an H100 a step with sums takes 0.97 to
# 1.06 times as long as PyG's at 2^26 and 0.91 to 1.23 times at 2^27, where the host decides, and
# 0.41 to 0.48 times at 2^30 (bench/results/h100/compiled.jsonl). The limits of max, min and
# attention were measured on an H200.
LEAST_WORK: dict[str, dict[str, int]] = {
    "cuda": {
        "sum": 2**25,
        "mean": 2**25,
        "max": 2**25,
        "min": 2**25,
        "GATConv": 2**26,
        "GATv2Conv": 2**25,
        "TransformerConv": 2**26,
        "message": 2**25,
    }
}
# Modules whose functions dynamo reads. Those of others are called by ops, or outside of compiled
# code.
_READ = (
    *("pyg._attention", "pyg._checks", "pyg._compiled", "pyg._forwards", "pyg._kept"),
    *("pyg._orders", "pyg._products", "pyg._propagate", "pyg._switch", "pyg._trace"),
)

# Graphs that compiled code has the number of, with the storages of their edges.
_Held = dict[int, tuple[Any, OpGraph]]
_held_by: WeakKeyDictionary[MessagePassing, _Held] = WeakKeyDictionary()
_held: dict[int, OpGraph] = {}
_numbers = itertools.count(1)
# Graphs end while the modules that free them are still there.
atexit.register(_held.clear)


def norm_text(layer: Any, dtype: torch.dtype) -> str:
    """What is added to the edges of a GCNConv, for an op."""
    return f"{NORM} {int(layer.improved)} {int(layer.add_self_loops)} {str(dtype)[6:]}"


def _derived(edges: Tensor, rows: int, how: str, flow: str) -> tuple[Tensor, Any]:
    """The edges with what is added but for LOOPS, and the weights that these have of themselves."""
    if how == APPENDED:
        return norm_of(edges, rows, False, True, flow, torch.float32)[0], None
    if how and how != LOOPS:
        _, improved, loops, dtype = how.split()
        return norm_of(edges, rows, improved == "1", loops == "1", flow, getattr(torch, dtype))
    return edges, None


def _find(call: Call, edges: Tensor | None, rows: int, cols: int, is_backward: bool) -> OpGraph:
    """The graph of an op's edges."""
    if edges is None:
        return _held[call.site]
    flow = "target_to_source" if call.to_source else "source_to_target"
    edges, weight = _derived(edges, rows, call.how, flow)
    place = edges, call.to_source, rows, cols, LOOPS if call.how == LOOPS else None
    found = peek(*place) if is_backward else None
    if found is None:
        found = find_sorted(call, *place)
    values = None if weight is None else order_values(found.graph, weight)
    graph, perm = found.graph, found.graph.perm
    order = None if perm is None else partial(graph.order_edges, order=perm)
    return OpGraph(graph, values, order)


def _forget(layer_held: _Held) -> None:
    """Give up graphs whose edges are gone, which no code that is left can be for."""
    for number in [n for n, (storage, _) in layer_held.items() if storage() is None]:
        del layer_held[number]
        _held.pop(number, None)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _warploom_hold(
    layer: MessagePassing, edge_index: Tensor, weight: Tensor | None, rows: int, cols: int,
    how: str, to_source: bool,
) -> int:  # fmt: skip
    """Compile for these edges and weights as they are now. Returns the number of their graph; 0
    where there are too many."""
    layer_held = _held_by.setdefault(layer, {})
    _forget(layer_held)
    if len(layer_held) >= MOST_HELD:
        return 0
    flow = "target_to_source" if to_source else "source_to_target"
    plain = plain_edges(edge_index)
    compile_for(edge_index, "" if plain is edge_index else "_data")
    storage = ref(plain.untyped_storage())
    with torch.inference_mode(False), torch.no_grad():
        edges, own = _derived(plain, rows, how, flow)
        if weight is not None:
            compile_for(weight)
            own = weight
        added = LOOPS if how == LOOPS else None
        found = find_sorted(None, edges, to_source, rows, cols, added)
        perm = found.graph.perm
        assert perm is not None
        values = None if own is None else own.index_select(0, perm)
    number = next(_numbers)
    made = OpGraph(found.graph, values, lambda given: given.index_select(0, perm), set())
    layer_held[number] = storage, made
    _held[number] = made
    finalize(layer, _held.pop, number, None)
    return number


# What code that is compiled now is, as constants of it.
for _function in (frame_length, frame_writes, is_cuda_graphed, is_frame_input):
    torch.compiler.assume_constant_result(_function)  # type: ignore[no-untyped-call]


def start_of_message() -> int:
    """How far compiled code is, for `check_writes`."""
    return frame_length() if torch.compiler.is_dynamo_compiling() else 0


def check_writes(start: int) -> None:
    """Refuse a message that has written to a tensor, which its expression may read later."""
    if torch.compiler.is_dynamo_compiling() and frame_writes(start):
        raise Refused("the message writes to a tensor")


def is_held() -> bool:
    """Whether the code that is traced now is compiled for one list of edges."""
    return torch.compiler.is_dynamo_compiling() and is_cuda_graphed()


def need_work(kind: str, edge_index: Tensor, columns: int, how: str) -> None:
    """Leave a call of a reduction or a layer to PyG where an op would gain nothing: not where PyG
    would add self loops or normalise, which inductor hardly compiles."""
    if how or not torch.compiler.is_dynamo_compiling() or is_cuda_graphed():
        return
    least = LEAST_WORK.get(edge_index.device.type, {}).get(kind, 0)
    if edge_index.size(1) * columns < least:
        raise Refused("too little work for an op in compiled code")


def edge_list(
    layer: Any,
    edge_index: Tensor,
    rows: int,
    cols: int,
    to_source: bool,
    how: str = "",
    weight: Tensor | None = None,
) -> tuple[EdgeList, Tensor | None]:
    """The graph of a traced layer, and the weights that its op must be given.

    weight: (edges,), in the order of the edge_index, then those of what is added.
    """
    nnz = edge_index.size(1) if weight is None else weight.size(0)  # with what is added
    source = appended_to(edge_index)
    if source is not None:
        edge_index, how = source, APPENDED
    is_traced = torch.compiler.is_dynamo_compiling()  # not by torch.export, which needs no guards
    if is_traced and not is_frame_input(edge_index):
        raise Refused("edges that compiled code makes")
    edges: Tensor | None = edge_index
    site = frame_length() if is_traced else 0
    has_values = how.startswith(NORM)
    if is_held():
        constant = None
        if weight is not None and not weight.requires_grad and is_frame_input(weight):
            constant, weight = weight, None
        rows, cols, nnz = int(rows), int(cols), int(nnz)
        site = layer._warploom_hold(edge_index, constant, rows, cols, how, to_source)
        if site == 0:
            raise Refused("many edge lists under CUDA graphs")
        edges, how, has_values = None, "", has_values or constant is not None
    key = type(layer).__name__, SERVED
    size, device = (rows, cols, nnz), edge_index.device
    where = edges, None, None
    return EdgeList(where, size, device, key, how, to_source, site, has_values), weight


def found_edges(
    layer: Any, kind: str, edge_index: Tensor, rows: int, cols: int, columns: int, how: str = ""
) -> EdgeList:
    """The edges of a traced layer whose op is of this kind and so many columns."""
    need_work(kind, edge_index, columns, how)
    to_source = layer.flow != "source_to_target"
    return edge_list(layer, edge_index, rows, cols, to_source, how)[0]


def product(
    layer: Any,
    edge_index: Tensor,
    rows: int,
    columns: int,
    features: Tensor,
    values: Tensor | None,
    reduce: str,
    how: str = "",
) -> Tensor:
    """The product of a traced layer with its edges; values: in the order of the edge_index.

    columns: of the product in PyG's code, which would compute it else.
    """
    need_work(reduce, edge_index, columns, how)
    to_source = layer.flow != "source_to_target"
    weighted = values is not None or how.startswith(NORM)
    graph, values = edge_list(layer, edge_index, rows, features.size(0), to_source, how, values)
    return spmm_of_edges(graph, features, values, reduce, "mul" if weighted else "copy_b")


def leave_alone() -> None:
    """Let dynamo leave calls outside of ops alone."""
    public = sys.modules["warploom.torch"].__all__
    for name, module in list(sys.modules.items()):
        package, _, last = name.partition(".")
        if package == "warploom" and last not in _READ:
            skip_frames(module, public)


def find_graphs() -> None:
    """Let ops find the graphs of edge lists."""
    _edges.finder = _find
    _registered.counts = counts


def install() -> None:
    """Give layers and edge lists what compiled code calls."""
    _names.print_without_elements()
    _names.install()
    MessagePassing._warploom_hold = _warploom_hold
