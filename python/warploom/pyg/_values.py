"""Values of edges that a message computes, as expressions over tensors of nodes and edges.

A message of PyG gets `x_j` with a line for each edge. Here it gets a stand-in (`_stand_in`),
which holds one of four values:

    Sum         tensors of rows, columns and edges that are added: x_j, x_j - x_i, lin(x_j) + e
    Expression  a tree of operations over such tensors
    Joined      values beside each other: torch.cat([x_i, x_j], -1)
    Tailed      a linear map of one of these, which is applied after a sum or a mean over edges

What acts on each line alone commutes with the gather of lines, so it is applied to the tensors of
a Sum with one place. A linear map is applied to each tensor of a Sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Union

import torch
from torch import Tensor

from warploom.pyg._checks import Refused
from warploom.pyg._names import for_pyg
from warploom.torch._edges import EdgeList
from warploom.torch._graph import Graph

Line = tuple[int, ...]  # the shape of what a value has for one edge
Step = Callable[[Tensor, Tensor], Tensor]  # a result and what the rows weigh, to a result
# The name of an operand, or a form in the language of `warploom.torch.message`, with {0} and so on
# for what it is of, and these trees.
Tree = Union[str, tuple[Any, ...]]


class Sum:
    """Tensors by place, (lines of the place, *line), whose lines are added for each edge."""

    __slots__ = ("dtype", "line", "parts")

    def __init__(self, parts: dict[str, Tensor]) -> None:
        self.parts = parts
        if len(parts) == 1:
            (part,) = parts.values()
            self.line, self.dtype = tuple(part.shape[1:]), part.dtype
            return
        self.line = broadcast(*[part.shape[1:] for part in parts.values()])
        self.dtype = promote([part.dtype for part in parts.values()])

    def full(self, edges: Edges) -> dict[str, Tensor]:
        """The parts, each with all columns."""
        line = self.line
        return {place: spread(edges, place, part, line) for place, part in self.parts.items()}


class Expression(NamedTuple):
    """A tree over names of `Edges.operands`. frame: (n,) or (heads, n / heads), in line's order."""

    tree: Tree
    line: Line
    frame: Line
    dtype: torch.dtype


class Joined(NamedTuple):
    """Values side by side in the last dimension."""

    pieces: tuple[Sum | Expression, ...]

    @property
    def line(self) -> Line:
        first = self.pieces[0].line
        return (*first[:-1], sum(piece.line[-1] for piece in self.pieces))

    @property
    def dtype(self) -> torch.dtype:
        return promote(piece.dtype for piece in self.pieces)


class Tailed(NamedTuple):
    """A value and the linear steps that remain for its sum or mean."""

    inner: Sum | Expression
    steps: tuple[Step, ...]
    line: Line

    @property
    def dtype(self) -> torch.dtype:
        return self.inner.dtype


Value = Union[Sum, Expression, Joined, Tailed]


def promote(types: Any) -> torch.dtype:
    first, *rest = types
    for dtype in rest:
        if dtype is not first:
            first = torch.promote_types(first, dtype)
    return first  # type: ignore[no-any-return]


def broadcast(*lines: Sequence[int]) -> Line:
    """As torch.broadcast_shapes, which takes longer than a small kernel."""
    first = tuple(lines[0])
    for line in lines:
        if line != first:
            break
    else:
        return first
    dims = max(len(line) for line in lines)
    found = []
    for at in range(-dims, 0):
        extents = {line[at] for line in lines if len(line) >= -at} - {1}
        if len(extents) > 1:
            raise Refused("the message combines features of different widths")
        found.append(extents.pop() if extents else 1)
    return tuple(found)


def columns_of(line: Sequence[int]) -> int:
    if len(line) == 1:
        return line[0]
    columns = 1
    for extent in line:
        columns *= extent
    return columns


class Edges:
    """The edges of one call, and the tensors that its message reads.

    graph: of these edges, in compiled code an EdgeList.
    widest: columns of the widest features that are propagated.
    """

    def __init__(self, graph: Graph, edge_index: Tensor, to_source: bool, widest: int) -> None:
        self.graph = graph
        self.is_traced = isinstance(self.graph, EdgeList)
        self.edge_index = edge_index
        self.device = edge_index.device
        self._to_source = to_source
        self._ends: dict[str, Tensor] = {}
        self.count = edge_index.size(1)
        self.widest = widest
        self.operands: dict[str, tuple[str, Tensor]] = {}
        self.has_gradients = torch.is_grad_enabled()
        self.shape_is_read = False  # by the message, of a Term
        self._versions: list[tuple[Tensor, int]] = []
        self._negatives: list[tuple[Tensor, Tensor]] = []

    def ends(self, place: str) -> Tensor:
        """The row or the column of each edge."""
        if place not in self._ends:
            at = 0 if self._to_source == (place == "row") else 1
            self._ends[place] = for_pyg(self.edge_index[at])
        return self._ends[place]

    def name(self, place: str, tensor: Tensor) -> str:
        """The name of an operand in trees."""
        for name, (known_place, known) in self.operands.items():
            if known is tensor and known_place == place:
                return name
        name = f"o{len(self.operands)}"
        self.operands[name] = place, tensor
        return name

    def negative(self, tensor: Tensor) -> Tensor:
        made = -tensor
        self._negatives.append((made, tensor))
        return made

    def negated(self, tensor: Tensor) -> Tensor | None:
        """The tensor whose `negative` this one is."""
        for made, known in self._negatives:
            if made is tensor:
                return known
        return None

    def watch(self, tensor: Tensor) -> None:
        """Note a tensor that is read when the message has ended."""
        if not torch.compiler.is_dynamo_compiling() and not tensor.is_inference():
            self._versions.append((tensor, tensor._version))

    def check_versions(self) -> None:
        if any(tensor._version != version for tensor, version in self._versions):
            raise Refused("the message writes to a tensor that it has read")

    def is_narrow(self, line: Line) -> bool:
        """Whether a tensor of edges with such lines is small beside one with features."""
        columns = columns_of(line)
        return columns == 1 or 2 * columns <= self.widest


def deepened(tensor: Tensor, dims: int) -> Tensor:
    """A tensor of lines with at least so many dimensions, ones before those of a line."""
    missing = max(0, dims - tensor.dim())
    return tensor.reshape(tensor.size(0), *(1,) * missing, *tensor.shape[1:])


def spread(edges: Edges, place: str, tensor: Tensor, line: Line) -> Tensor:
    """A tensor with all columns of the line."""
    if tensor.shape[1:] == line:
        return tensor
    if place == "edge" and not edges.is_narrow(line):
        raise Refused("the message repeats features of edges")
    return deepened(tensor, len(line) + 1).expand(tensor.size(0), *line)


# ---- expressions --------------------------------------------------------------------------------


def names_in(*trees: Tree) -> list[str]:
    """The names of operands in trees, each once."""
    found: dict[str, None] = {}
    for tree in trees:
        if isinstance(tree, str):
            found[tree] = None
        else:
            found.update(dict.fromkeys(names_in(*tree[1:])))
    return list(found)


def text_of(tree: Tree, names: dict[str, str]) -> str:
    """A tree in the language of `message`, with these names for its operands."""
    if isinstance(tree, str):
        return names[tree]
    texts = [text_of(part, names) for part in tree[1:]]
    form: str = tree[0]
    return form.format(*texts)


def simple(value: Value) -> Sum | Expression:
    """The value, if it is a Sum or an Expression."""
    if isinstance(value, (Sum, Expression)):
        return value
    if isinstance(value, Tailed):
        raise Refused("the message uses a linear map of both ends further")
    return padded(value)


def padded(joined: Joined) -> Sum:
    """Joined Sums as one Sum."""
    return beside(joined.pieces, lambda blocks: torch.cat(blocks, -1))


def beside(values: Sequence[Value], join: Callable[[list[Tensor]], Tensor]) -> Sum:
    """One Sum of several, whose tensors of a place are joined; zeros where a Sum has none."""
    sums = [value for value in values if isinstance(value, Sum)]
    if len(sums) < len(values):
        raise Refused("the message joins computed values")
    parts = {}
    for place in dict.fromkeys(place for value in sums for place in value.parts):
        like = next(value.parts[place] for value in sums if place in value.parts)
        blocks = []
        for value in sums:
            part = value.parts.get(place)
            if part is None:
                part = like.new_zeros((like.size(0), *(1,) * len(value.line)))
            part = deepened(part, len(value.line) + 1)
            blocks.append(part.expand(part.size(0), *value.line))
        parts[place] = join(blocks)
    return Sum(parts)


def operands_of(edges: Edges, value: Value) -> list[tuple[str, Tensor]]:
    """The places and tensors that a value reads."""
    value = simple(value)
    if isinstance(value, Sum):
        return list(value.parts.items())
    return [edges.operands[name] for name in names_in(value.tree)]


def as_expression(edges: Edges, value: Value) -> Expression:
    value = simple(value)
    if isinstance(value, Expression):
        return value
    frame = _frame_of(value.line, ())
    return Expression(_tree(edges, value, value.line, frame), value.line, frame, value.dtype)


def _frame_of(line: Line, values: Sequence[Value]) -> Line:
    frames = {
        value.frame
        for value in values
        if isinstance(value, Expression)
        and len(value.frame) == 2
        and columns_of(value.frame) == columns_of(line)
    }
    if len(frames) > 1 or (frames and len(line) == 2 and line not in frames):
        raise Refused("the message has two kinds of heads")
    if frames:
        return frames.pop()
    return line if len(line) < 3 else (columns_of(line),)


def _is_per_head(line: Line, of: Line, frame: Line) -> bool:
    return len(frame) == 2 and of == frame and line == (frame[0], 1)


def _tree(edges: Edges, value: Sum | Expression, line: Line, frame: Line) -> Tree:
    """The tree of a value as a part of an expression with this line."""
    wide = value.line == line or columns_of(value.line) == columns_of(line)
    if not (wide or columns_of(value.line) == 1 or _is_per_head(value.line, line, frame)):
        if isinstance(value, Expression):
            raise Refused("the message repeats computed values")
        parts = {place: spread(edges, place, p, line) for place, p in value.parts.items()}
        value = Sum(parts)
    if isinstance(value, Expression):
        return value.tree
    names = []
    for place, part in value.parts.items():
        own = tuple(part.shape[1:])
        is_shared = columns_of(own) == 1 or _is_per_head(own, line, frame)
        if own != value.line and columns_of(own) != columns_of(value.line) and not is_shared:
            part = spread(edges, place, part, value.line)
        names.append(edges.name(place, part))
    if len(names) == 1:
        return names[0]
    return ("(" + "+".join([f"{{{at}}}" for at in range(len(names))]) + ")", *names)


def combine(edges: Edges, form: str, left: Value, right: Value) -> Expression:
    """An expression of two values; the form has {0} and {1}."""
    left, right = simple(left), simple(right)
    line = broadcast(left.line, right.line)
    frame = _frame_of(line, (left, right))
    trees = [_tree(edges, value, line, frame) for value in (left, right)]
    return Expression((form, *trees), line, frame, promote((left.dtype, right.dtype)))
