"""Messages over rows, columns and edges, each one kernel, with derived gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from warploom.torch import _eager
from warploom.torch._edges import EdgeList, Maybe, Tensor
from warploom.torch._graph import Graph, need_graph
from warploom.torch._internals import any_autocast, is_deterministic, refuse_transforms
from warploom.torch._message_parts import (
    KNOWN,
    OWN,
    PLACES,
    SEED,
    Value,
    check,
    line_of,
)
from warploom.torch._message_text import KEPT, compose, names_of, refuse
from warploom.torch._message_walks import Message
from warploom.torch._ops import Operation

_is_deterministic = torch.are_deterministic_algorithms_enabled  # which code may call that is traced


class _Operation(Operation):
    """`message` of a list of operands."""

    def lines_of(self, options: tuple[Any, ...]) -> list[str | None]:
        _, _, _, places, _, transpose, _ = options
        return [line_of(place, transpose) for _, place in places]

    def count_of(self, options: tuple[Any, ...]) -> int:
        return len(options[1])


_message = _Operation("message", (), Message, check, by_edges=True)


def message(
    graph: Graph,
    expression: str,
    *,
    reduce: str | Sequence[str] = "sum",
    score: str | None = None,
    sums: Mapping[str, str] | None = None,
    heads: int | None = None,
    transpose: bool = False,
    dropout: float = 0.0,
    seed: int | None = None,
    operands: Mapping[str, Value] | None = None,
    **named: Value,
) -> Tensor | tuple[Tensor, ...]:
    """C[i] = reduce over the edges p = (i, k) of row i of the expression, in one kernel that reads
    the operands and writes the results; differentiable in all tensors but those of "all".

        message(graph, "relu(b+e)", b=features, e=edge_features)
        message(graph, "b", reduce=("mean", "max", "std"), b=features)
        message(graph, "g*relu(b*scale)", b=features, scale=0.5, operands={"g": ("row", gate)})
        message(graph, "b", reduce="softmax", score="t/8", sums={"t": "x*k"}, b=v, x=q, k=k)

    expression: C arithmetic, comparisons, ?: and functions such as relu, leaky_relu(v,slope),
        sigmoid, tanh and exp, over the operands by name and `degree`, the edges of row i.
    reduce: "sum", "mean", "max", "min", "prod", "var" or "std" of each row, 0 (prod: 1) without
        edges; "edge": the expression itself, for each edge; "edge_sum": its sum over the columns of
        each head, for each edge. Several give a tuple, from one walk over the graph. "var" is the
        mean of the squares minus the square of the mean, "std" its root, and 0 up to 1e-5, as in
        PyG. "softmax": the sum with the softmax of the scores of a row's edges as weights.
    score: of "softmax", an expression with one number for each edge and head. It reads operands of
        one column or one a head, and sums. With heads = n each column has weights of its own. A
        score of -inf leaves the edge out; a row without edges, or with -inf for all of them, is 0.
    sums: expressions by name, of which each edge has the sum over the columns of each head; the
        other expressions, and sums after it, read the name like an operand.
    b, k: tensors of columns, (cols, n): an edge (i, k) sees row k. x, y: of rows, (rows, n): it
        sees row i. e: of edges, (edges, n), in the order of the edge_index that the graph was made
        from; a: (edges,) or (edges, heads), likewise. Without a, graph.values, or 1.
    operands: tensors with other names, as ("row" | "column" | "edge" | "all", tensor). One of "all"
        has the shape (n,), and every edge sees it.
    heads: all operands but a may have n columns, (heads, n / heads) dimensions, one number for each
        of the heads, or a single one, which the columns of a head or all columns share. None = the
        second dimension of an operand with three, or that of a.
    transpose: reduce over the edges of each column; operands and their places stay as they are.
    dropout: of "softmax", leaves out this share of the weights, by edge and head, and counts the
        others 1 / (1 - dropout) times as much. `seed` says which, as of `gat`.

    A number instead of a tensor is a constant of the call. Tensors have one type; a may be float32
    beside 16-bit types. Results are (rows, n) or (rows, heads, features); those of edges are in the
    order of e, (edges, ...), or for "edge_sum" (edges,) or (edges, heads). Maxima and minima pass
    their gradient to the first of the equal edges. Under autocast tensors
    other than a are converted to autocast's type. Raises TypeError or ValueError that name the
    operand.
    """
    if not isinstance(expression, str):
        refuse(f"the expression: a text is needed, not {type(expression).__name__}", TypeError)
    if not isinstance(graph, (Graph, EdgeList)):
        need_graph(graph)
    given = named if operands is None else {**named, **operands}
    is_traced = torch.compiler.is_compiling()
    drops: tuple[Any, ...] = ()
    if dropout != 0:
        is_list = isinstance(graph, EdgeList)  # whose op draws the seed
        drops = (_eager.check_dropout if is_list else _eager.draw_dropout)(dropout, seed)
        drops = drops if drops[0] else ()
    if score is not None or sums or drops:
        expression = compose(expression, score, sums, bool(drops))
    if transpose and not is_traced:
        graph = graph.t()
    own = None
    if graph.values is not None and "a" not in given and _uses(expression, "a"):
        own = graph.values
        if transpose and is_traced:
            given["a"], own = _in_edge_order(graph), None
    if is_traced and not isinstance(graph, EdgeList):
        graph = EdgeList.of(graph, transpose)
    reductions = (reduce,) if isinstance(reduce, str) else tuple(reduce)
    tensors, numbers, places, scalars = _read(given, own, is_traced or any_autocast())
    if not is_traced:
        refuse_transforms("message", tensors, is_eager=True)
    if drops:
        numbers, scalars = (*numbers, *drops), (*scalars, KEPT, SEED)
    elif len(numbers) > 0:
        numbers = *numbers, 0
    unique = reductions if len(reductions) == 1 else tuple(dict.fromkeys(reductions))
    is_same = _is_deterministic() if is_traced else is_deterministic()
    options = expression, unique, heads, places, scalars, transpose, is_same
    compute: Any = _message.dispatch if is_traced else _message
    made = compute(graph, tensors, options, numbers)
    return made[0] if isinstance(reduce, str) else _repeated(made, unique, reductions)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _uses(expression: str, name: str) -> bool:
    return name in names_of(expression)


def _in_edge_order(graph: Graph) -> Tensor:
    """The values of a graph in the order of the edge_index that it was made from."""
    values = graph.values
    assert values is not None
    if graph.perm is None:
        return values
    return torch.empty_like(values).index_copy(0, graph.perm.long(), values)


def _read(given: Mapping[str, Value], own: Maybe, autocasts: bool) -> tuple[Any, ...]:
    """Tensors and numbers of a call, name and place of each tensor, and the names of the numbers.

    own: the values of the graph, if the call has no others.
    """
    tensors: list[Tensor] = []
    numbers: list[float] = []
    places: list[tuple[str, str | None]] = []
    scalars: list[str] = []
    for name, value in given.items():
        place = KNOWN.get(name)
        if isinstance(value, tuple):
            if len(value) != 2 or value[0] not in PLACES or not isinstance(value[1], Tensor):
                refuse(f"operand {name}: (place, tensor) is needed, with a place of {PLACES}")
            place, value = value
        if isinstance(value, Tensor):
            tensors.append(_eager.autocast(value) if autocasts and name != "a" else value)
            places.append((name, place))
        elif name == "a":
            refuse(
                "operand a: a tensor of edges is needed; use another name for a number", TypeError
            )
        elif isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
            numbers.append(value)
            scalars.append(name)
        else:
            refuse(f"operand {name}: a tensor is needed, not {type(value).__name__}", TypeError)
    if own is not None:
        tensors.append(own)
        places.append(("a", OWN))
    return tensors, tuple(numbers), tuple(places), tuple(scalars)


def _repeated(
    made: Sequence[Tensor], unique: tuple[str, ...], reductions: tuple[str, ...]
) -> tuple[Tensor, ...]:
    """The results for each of the reductions, of which `unique` has no repeats."""
    if len(unique) == len(reductions):
        return tuple(made)
    return tuple([made[unique.index(reduce)] for reduce in reductions])


def message_of_operands(
    graph: Graph | EdgeList, expression: str, reductions: tuple[str, ...], heads: int,
    given: Mapping[str, Value],
) -> tuple[Tensor, ...]:  # fmt: skip
    """`message` with operands as they are, also under autocast; without dropout."""
    is_traced = isinstance(graph, EdgeList)
    tensors, _, places, _ = _read(given, None, False)
    unique = tuple(dict.fromkeys(reductions))
    is_same = _is_deterministic() if is_traced else is_deterministic()
    options = expression, unique, heads, places, (), False, is_same
    compute: Any = _message.dispatch if is_traced else _message
    made = compute(graph, tensors, options, (0,) if is_traced else ())
    return tuple(made) if unique == reductions else _repeated(made, unique, reductions)
