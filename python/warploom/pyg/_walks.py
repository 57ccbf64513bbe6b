"""Walks over a graph that compute values of edges, and their reductions over the edges of rows."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warploom.pyg._checks import PRODUCTS, Refused
from warploom.pyg._sorted import order_values
from warploom.pyg._values import (
    Edges,
    Expression,
    Line,
    Sum,
    Tailed,
    Tree,
    Value,
    as_expression,
    columns_of,
    deepened,
    names_in,
    promote,
    simple,
    spread,
    text_of,
)
from warploom.torch._eager import multiply, spmm_of_edges
from warploom.torch._internals import is_deterministic
from warploom.torch._message import message_of_operands
from warploom.torch._message_text import compose

PRODUCT = "({0}*{1})"
_LINEAR = ("sum", "mean")
# Devices where computing a function of an edge again in each column takes longer than PyG's step,
# and functions for which it does.
SLOW_REPEATS = ("cpu",)
_SLOW = ("exp", "log", "sqrt", "pow", "tanh", "sin", "cos", "sigmoid", "erf")
# Names of operands that need no declaration come first.
_NAMES = {"column": ("b", "k"), "row": ("x", "y")}


def shaped(tensor: Tensor, line: Sequence[int]) -> Tensor:
    """The tensor with lines of another shape."""
    return tensor if tensor.shape[1:] == line else tensor.reshape(tensor.size(0), *line)


class _Text(NamedTuple):
    """A message as the library reads it."""

    text: str
    heads: int
    operands: list[tuple[str, str, Line]]  # name here, name in a tree, and shape of a line


def _write(
    tree: Tree, score: Tree | None, frame: Line, places: tuple[tuple[str, str, Line], ...]
) -> _Text:
    """The text of a tree. places: name, place and line of each operand of the edges."""
    n, heads = columns_of(frame), frame[0] if len(frame) == 2 else 1
    used = set(names_in(tree) if score is None else names_in(tree, score))
    operands = [(old, place, columns_of(line)) for old, place, line in places if old in used]
    names: dict[str, str] = {}
    written = []
    for old, place, columns in sorted(operands, key=lambda operand: -operand[2]):
        shape = frame if columns == n else (columns,) if columns > 1 else ()
        if place == "edge":
            free = ["a"] if columns in (1, heads) and columns < n else ["e"]
        else:
            free = list(_NAMES[place])
        free += [f"{place[0]}{i}" for i in range(len(used))]
        name = next(name for name in free if name not in names.values())
        names[old] = name
        written.append((name, old, shape))
    text = text_of(tree, names)
    if score is not None:
        text = compose(text, "s", {"s": text_of(score, names)})
    return _Text(text, heads, written)


_write_once = functools.lru_cache(maxsize=1024)(_write)


def _message(
    edges: Edges, tree: Tree, frame: Line, reduce: Sequence[str], score: Tree | None = None
) -> tuple[Tensor, ...]:
    """The reductions of a tree; score: of the reduction "softmax"."""
    places = tuple(
        [(name, place, tuple(one.shape[1:])) for name, (place, one) in edges.operands.items()]
    )
    write = _write if edges.is_traced else _write_once
    text, heads, names = write(tree, score, frame, places)
    dtype = promote([edges.operands[old][1].dtype for _, old, _ in names])
    operands: dict[str, tuple[str, Tensor]] = {}
    for name, old, shape in names:
        place, tensor = edges.operands[old]
        operands[name] = place, shaped(tensor, shape).to(dtype)
    return message_of_operands(edges.graph, text, tuple(reduce), heads, operands)


def gathered(edges: Edges, value: Value) -> Tensor:
    """A narrow value as a tensor, (edges, *line)."""
    value = simple(value)
    if isinstance(value, Sum) and len(value.parts) == 1:
        ((place, part),) = value.parts.items()
        part = part if place == "edge" else part.index_select(0, edges.ends(place))
        return deepened(part, len(value.line) + 1)
    expression = as_expression(edges, value)
    (result,) = _message(edges, expression.tree, expression.frame, ("edge",))
    return shaped(result, expression.line)


def summed(edges: Edges, expression: Expression) -> Tensor:
    """The sum over the last dimension of a value whose line is its frame, (edges, *line[:-1])."""
    (result,) = _message(edges, expression.tree, expression.frame, ("edge_sum",))
    return shaped(result, expression.line[:-1])


def softmax(edges: Edges, value: Expression, score: Expression) -> Tensor:
    """The sum of a value, whose weights are the softmax of a score in each column of a row."""
    columns = columns_of(value.frame)
    wide: dict[str, str] = {}
    for name in names_in(value.tree, score.tree):  # no number is shared by some columns
        place, tensor = edges.operands[name]
        wide[name] = name
        if columns_of(tensor.shape[1:]) not in (1, columns):
            wide[name] = edges.name(place, spread(edges, place, tensor, value.frame))
    trees = _renamed(value.tree, wide), _renamed(score.tree, wide)
    (result,) = _message(edges, trees[0], (columns, 1), ("softmax",), trees[1])
    return shaped(result, value.line)


def _renamed(tree: Tree, names: dict[str, str]) -> Tree:
    if isinstance(tree, str):
        return names[tree]
    return (tree[0], *[_renamed(part, names) for part in tree[1:]])


def _product(edges: Edges, value: Sum | Expression, reduce: str) -> Tensor | None:
    """The reduction as a product with a sparse matrix, where it is one."""
    values = None
    if isinstance(value, Sum):
        if tuple(value.parts) != ("column",):
            return None
        features = value.parts["column"]
    else:
        tree = value.tree
        if isinstance(tree, str) or tree[0] != PRODUCT:
            return None
        if not all(isinstance(part, str) for part in tree[1:]):
            return None
        factors = dict([edges.operands[name] for name in tree[1:]])
        if factors.keys() != {"column", "edge"}:
            return None
        features, values = factors["column"], factors["edge"]
        is_wide = columns_of(features.shape[1:]) == columns_of(value.frame)
        if not is_wide or columns_of(values.shape[1:]) != 1:
            return None
        if not edges.is_traced:  # whose ops order values
            values = order_values(edges.graph, values)
        values = values.reshape(-1).to(value.dtype)
    return _multiply(
        edges, shaped(features, (columns_of(value.line),)).to(value.dtype), values, reduce
    )


def _multiply(edges: Edges, features: Tensor, values: Tensor | None, reduce: str) -> Tensor:
    kind = "copy_b" if values is None else "mul"
    if edges.is_traced:
        return spmm_of_edges(edges.graph, features, values, reduce, kind)
    return multiply(edges.graph, features, values, reduce, kind, is_deterministic())


def reduced(edges: Edges, value: Value, reduce: Sequence[str]) -> list[Tensor]:
    """Each reduction over the edges of each row, (rows, *line), in one walk over the graph."""
    if isinstance(value, Tailed):
        if not set(reduce) <= set(_LINEAR):
            raise Refused("the message ends with a linear map of both ends before its " + reduce[0])
        return _followed(edges, value, reduce)
    value = simple(value)
    if len(reduce) == 1 and reduce[0] in PRODUCTS:
        result = _product(edges, value, reduce[0])
        if result is not None:
            return [shaped(result, value.line)]
    expression = as_expression(edges, value)
    if edges.device.type in SLOW_REPEATS:
        columns = columns_of(expression.frame)
        for names in _read_by_functions(expression.tree):
            read = [columns_of(edges.operands[name][1].shape[1:]) for name in names]
            if read and max(read) < columns:
                raise Refused("a function that PyG computes once for all columns of an edge")
    results = _message(edges, expression.tree, expression.frame, reduce)
    return [shaped(result, expression.line) for result in results]


def _read_by_functions(tree: Tree) -> Iterator[list[str]]:
    """The names of operands that each function in a tree reads."""
    if not isinstance(tree, str):
        if any(name in tree[0] for name in _SLOW):
            yield names_in(*tree[1:])
        for part in tree[1:]:
            yield from _read_by_functions(part)


def _followed(edges: Edges, value: Tailed, reduce: Sequence[str]) -> list[Tensor]:
    """The reductions of the inner value, with the linear steps after them."""
    results = []
    for kind, result in zip(reduce, reduced(edges, value.inner, reduce)):
        if edges.is_traced:
            ones = torch.ones((edges.graph.cols, 1), dtype=result.dtype, device=edges.device)
            weights = _multiply(edges, ones, None, kind).squeeze(1)
        else:
            weights = edges.graph.row_weights(kind, result.dtype)
        for step in value.steps:
            result = step(result, weights)
        results.append(result)
    return results
