"""Values of edges that a message computes, as expressions over tensors of nodes and edges.

A message of PyG gets `x_j` with a line for each edge. Here it gets a stand-in (`_pyg_stand_in`),
which holds one of four values:

    Sum         tensors of rows, columns and edges that are added: x_j, x_j - x_i, lin(x_j) + e
    Expression  a text over such tensors, in the language of `warploom.torch.message`
    Joined      values beside each other: torch.cat([x_i, x_j], -1)
    Tailed      a linear map of one of these, which is applied after a sum or a mean over edges

What acts on each line alone commutes with the gather of lines, so it is applied to the tensors of
a Sum with one place. A linear map is applied to each tensor of a Sum.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import torch
from torch import Tensor

from warploom._pyg_graphs import Refused, Sorted, order_values
from warploom._pyg_names import for_pyg
from warploom.torch._eager import edge_sums, multiply, spmm_of_edges
from warploom.torch._edges import EdgeList
from warploom.torch._internals import is_deterministic
from warploom.torch._message import Repeated, message_of_edges
from warploom.torch._message_parts import compose

if TYPE_CHECKING:
    from warploom._pyg_recipes import Recorder

Line = tuple[int, ...]  # the shape of what a value has for one edge
Step = Callable[[Tensor, Tensor], Tensor]  # a result and what the rows weigh, to a result

_PLACEHOLDER = re.compile(r"\bo\d+\b")
_CALL = re.compile(r"\b(?:exp|log|sqrt|pow|tanh|sin|cos|sigmoid|erf)\w*\(")
_PRODUCT = re.compile(r"\((o\d+)\*(o\d+)\)")
PRODUCTS = ("sum", "mean", "max", "min")  # reductions of products with a sparse matrix
_LINEAR = ("sum", "mean")
# Devices where computing a function of an edge again in each column takes longer than PyG's step.
SLOW_REPEATS = ("cpu",)
# Edges times columns up to which fewer and simpler calls are preferred to fewer walks over a graph:
# the host then takes longer to issue a step than a GPU to run it.
SMALL = 2**24
# Names of operands that need no declaration come first.
_NAMES = {"column": ("b", "k"), "row": ("x", "y")}


class Sum:
    """Tensors by place, (lines of the place, *line), whose lines are added for each edge."""

    __slots__ = ("dtype", "line", "parts")

    def __init__(self, parts: dict[str, Tensor]) -> None:
        self.parts = parts
        self.line = broadcast(*(part.shape[1:] for part in parts.values()))
        self.dtype = promote(part.dtype for part in parts.values())

    def full(self, edges: Edges) -> dict[str, Tensor]:
        """The parts, each with all columns."""
        line = self.line
        return {place: spread(edges, place, part, line) for place, part in self.parts.items()}


class Expression(NamedTuple):
    """A text over names of `Edges.operands`. frame: (n,) or (heads, n / heads), in line's order."""

    text: str
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
    if all(tuple(line) == first for line in lines):
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
    columns = 1
    for extent in line:
        columns *= extent
    return columns


class Site:
    """What the steps of a call walk over: its graph and its edges."""

    __slots__ = ("_i", "edge_index", "found", "graph")

    def __init__(self, found: Sorted, edge_index: Tensor, to_source: bool) -> None:
        self.found = found
        self.graph = found.graph
        self.edge_index = edge_index
        self._i = 0 if to_source else 1

    @property
    def row(self) -> Tensor:
        """The row of each edge."""
        return for_pyg(self.edge_index[self._i])  # type: ignore[no-any-return]

    @property
    def column(self) -> Tensor:
        return for_pyg(self.edge_index[1 - self._i])  # type: ignore[no-any-return]


class Edges:
    """The edges of one call, and the tensors that its message reads."""

    def __init__(self, site: Site, ends: dict[str, Tensor], widest: int) -> None:
        self.site = site
        self.graph = site.graph
        self.edge_index = site.edge_index
        self.ends = ends  # the row and the column of each edge
        self.count = self.edge_index.size(1)
        self.widest = widest  # columns of the widest features that were propagated
        self.lines = {"row": self.graph.rows, "column": self.graph.cols, "edge": self.count}
        self.operands: dict[str, tuple[str, Tensor]] = {}
        self.has_gradients = torch.is_grad_enabled()
        self.is_small = self.count * widest <= SMALL  # calls take longer than kernels
        self.shape_is_read = False  # by the message, of a Term
        self.recorder: Recorder | None = None
        self._versions: list[tuple[Tensor, int]] = []
        self._negatives: list[tuple[Tensor, Tensor]] = []

    def run(self, step: Callable[..., Any], *args: Any) -> Any:
        """A step of warploom over the graph; it is noted where the call is recorded."""
        if self.recorder is None:
            return step(self.site, *args)
        return self.recorder.step(step, self.site, *args)

    def name(self, place: str, tensor: Tensor) -> str:
        """The name of an operand in texts."""
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

# Code that is traced by torch.compile calls these for texts, which it cannot read.


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _names_in(text: str) -> str:
    """The names of operands in a text, each once."""
    return " ".join(dict.fromkeys(_PLACEHOLDER.findall(text)))


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _renamed(text: str, **names: str) -> str:
    """A text with other names for its operands."""
    return _PLACEHOLDER.sub(lambda found: names[found[0]], text)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _factors_in(text: str) -> str:
    """The names of the two operands whose product a text is, if it is one."""
    found = _PRODUCT.fullmatch(text)
    return " ".join(found.groups()) if found else ""


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _read_by_functions(text: str) -> str:
    """The names of operands that each call of a function in a text reads, behind a comma."""
    found = []
    for call in _CALL.finditer(text):
        end, depth = call.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append(_names_in(text[call.end() : end]))
    return ",".join(found)


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
    return [edges.operands[name] for name in _names_in(value.text).split()]


def as_expression(edges: Edges, value: Value) -> Expression:
    value = simple(value)
    if isinstance(value, Expression):
        return value
    frame = _frame_of(value.line, ())
    return Expression(_text(edges, value, value.line, frame), value.line, frame, value.dtype)


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


def _text(edges: Edges, value: Sum | Expression, line: Line, frame: Line) -> str:
    """The text of a value as a part of an expression with this line."""
    wide = columns_of(value.line) == columns_of(line)
    if not (wide or columns_of(value.line) == 1 or _is_per_head(value.line, line, frame)):
        if isinstance(value, Expression):
            raise Refused("the message repeats computed values")
        parts = {place: spread(edges, place, p, line) for place, p in value.parts.items()}
        value = Sum(parts)
    if isinstance(value, Expression):
        return value.text
    names = []
    for place, part in value.parts.items():
        own = tuple(part.shape[1:])
        shared = columns_of(own) == 1 or _is_per_head(own, line, frame)
        if columns_of(own) != columns_of(value.line) and not shared:
            part = spread(edges, place, part, value.line)
        names.append(edges.name(place, part))
    return names[0] if len(names) == 1 else f"({'+'.join(names)})"


def combine(edges: Edges, form: str, left: Value, right: Value) -> Expression:
    """An expression of two values; the form has {0} and {1}."""
    left, right = simple(left), simple(right)
    line = broadcast(left.line, right.line)
    frame = _frame_of(line, (left, right))
    texts = (_text(edges, value, line, frame) for value in (left, right))
    return Expression(form.format(*texts), line, frame, promote((left.dtype, right.dtype)))


# ---- results ------------------------------------------------------------------------------------


def _lowered(
    edges: Edges, expression: Expression
) -> tuple[str, dict[str, tuple[str, Tensor]], int]:
    """The text, operands and heads of a call of `message`."""
    n, frame = columns_of(expression.frame), expression.frame
    heads = frame[0] if len(frame) == 2 else 1
    used = _names_in(expression.text).split()
    dtype = promote(edges.operands[name][1].dtype for name in used)
    names: dict[str, str] = {}
    operands: dict[str, tuple[str, Tensor]] = {}
    wide_first = sorted(used, key=lambda name: -columns_of(edges.operands[name][1].shape[1:]))
    for old in wide_first:
        place, tensor = edges.operands[old]
        columns = columns_of(tensor.shape[1:])
        shape = frame if columns == n else (columns,) if columns > 1 else ()
        if place == "edge":
            free = ["a"] if columns in (1, heads) and columns < n else ["e"]
        else:
            free = list(_NAMES[place])
        free += [f"{place[0]}{i}" for i in range(len(used))]
        name = next(name for name in free if name not in operands)
        names[old] = name
        operands[name] = place, shaped(tensor, shape).to(dtype)
    return _renamed(expression.text, **names), operands, heads


def shaped(tensor: Tensor, line: Sequence[int]) -> Tensor:
    """The tensor with lines of another shape."""
    return tensor if tensor.shape[1:] == line else tensor.reshape(tensor.size(0), *line)


class _Walk:
    """A step that walks over the graph in the types of its operands, also under autocast."""

    __slots__ = ("_repeated",)

    def __init__(self, repeated: Repeated) -> None:
        self._repeated = repeated

    def __call__(self, site: Site, *tensors: Tensor) -> tuple[Tensor, ...]:
        return self._repeated(site.graph, tensors)


def _message(edges: Edges, expression: Expression, reduce: tuple[str, ...]) -> tuple[Tensor, ...]:
    text, operands, heads = _lowered(edges, expression)
    if isinstance(edges.graph, EdgeList):
        return message_of_edges(edges.graph, text, reduce, heads, operands)
    places = [(name, place) for name, (place, _) in operands.items()]
    tensors = (tensor for _, tensor in operands.values())
    walk = _Walk(Repeated(text, reduce, heads, places))
    made: tuple[Tensor, ...] = edges.run(walk, *tensors)
    return made


def gathered(edges: Edges, value: Value) -> Tensor:
    """A narrow value as a tensor, (edges, *line)."""
    value = simple(value)
    if isinstance(value, Sum) and (edges.is_small or len(value.parts) == 1):
        dims = len(value.line) + 1
        parts = [
            part if place == "edge" else part.index_select(0, edges.ends[place])
            for place, part in value.parts.items()
        ]
        first, *others = (deepened(part, dims) if part.dim() < dims else part for part in parts)
        return functools.reduce(operator.add, others, first)
    expression = as_expression(edges, value)
    (result,) = _message(edges, expression, ("edge",))
    return shaped(result, expression.line)


def _product_of(edges: Edges, expression: Expression, *places: str) -> list[Tensor] | None:
    """The factors of an expression that is the product of two operands of these places."""
    both = dict([edges.operands[name] for name in _factors_in(expression.text).split()])
    return [both[place] for place in places] if both.keys() == set(places) else None


def summed(edges: Edges, expression: Expression) -> Tensor:
    """The sum over the last dimension of a value whose line is its frame, (edges, *line[:-1])."""
    frame = expression.frame
    factors = None
    if edges.is_small and not isinstance(edges.graph, EdgeList):
        factors = _product_of(edges, expression, "row", "column")
    if factors and all(part.shape[1:] == frame for part in factors):
        heads = frame[0] if len(frame) == 2 else 1
        x, b = (part.to(expression.dtype) for part in factors)
        result = edges.run(_edge_sums, x, b, heads)
    else:
        (result,) = _message(edges, expression, ("edge_sum",))
    return shaped(result, expression.line[:-1])


def _edge_sums(site: Site, x: Tensor, b: Tensor, heads: int) -> Tensor:
    graph = site.graph
    made = edge_sums(graph, x, b, heads, is_deterministic())
    places = graph.edge_places()
    return made if places is None else made.index_select(0, places)


def _with_columns(edges: Edges, name: str, frame: Line) -> str:
    """The operand with one column or all of them: no number is shared by some."""
    place, tensor = edges.operands[name]
    if columns_of(tensor.shape[1:]) in (1, columns_of(frame)):
        return name
    return edges.name(place, spread(edges, place, tensor, frame))


def softmax(edges: Edges, value: Expression, score: Expression) -> Tensor:
    """The sum of a value, whose weights are the softmax of a score in each column of a row."""
    text = compose(value.text, "s", {"s": score.text})
    names = {name: _with_columns(edges, name, value.frame) for name in _names_in(text).split()}
    text = _renamed(text, **names)
    columns = Expression(text, value.line, (columns_of(value.frame), 1), value.dtype)
    (result,) = _message(edges, columns, ("softmax",))
    return shaped(result, value.line)


def _product(edges: Edges, value: Sum | Expression, reduce: str) -> Tensor | None:
    """The reduction as a product with a sparse matrix, where it is one."""
    values = None
    line: Line = (columns_of(value.line),)
    if isinstance(value, Sum):
        if tuple(value.parts) != ("column",):
            return None
        features = value.parts["column"]
    else:
        factors = _product_of(edges, value, "column", "edge")
        if factors is None or columns_of(factors[0].shape[1:]) != columns_of(value.frame):
            return None
        features, values = factors
        if columns_of(values.shape[1:]) != 1:
            of_heads = edges.is_small and reduce in _LINEAR and len(value.frame) == 2
            if not of_heads or values.shape[1:].numel() != value.frame[0]:
                return None
            line = value.frame
        values = edges.run(_ordered, values, value.dtype, len(line))
    features = shaped(features, line).to(value.dtype)
    made: Tensor = edges.run(_multiply, features, values, reduce)
    return made


def _ordered(site: Site, values: Tensor, dtype: torch.dtype, dims: int) -> Tensor:
    """Values of edges in CSR order, (edges,) or with two dimensions (edges, heads)."""
    traced = isinstance(site.graph, EdgeList)  # whose ops order values
    ordered = values if traced else order_values(site.found, values)
    return ordered.reshape((-1,) if dims == 1 else (values.size(0), -1)).to(dtype)


def _multiply(site: Site, features: Tensor, values: Tensor | None, reduce: str) -> Tensor:
    kind = "copy_b" if values is None else "mul"
    if isinstance(site.graph, EdgeList):
        return spmm_of_edges(site.graph, features, values, reduce, kind)
    return multiply(site.graph, features, values, reduce, kind, is_deterministic())


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
    if edges.edge_index.device.type in SLOW_REPEATS and _repeats_functions(edges, expression):
        raise Refused("a function that PyG computes once for all columns of an edge")
    results = _message(edges, expression, tuple(reduce))
    return [shaped(result, expression.line) for result in results]


def _repeats_functions(edges: Edges, expression: Expression) -> bool:
    """Whether a function of operands with fewer columns is computed again in each column."""
    columns = columns_of(expression.frame)
    for names in _read_by_functions(expression.text).split(","):
        read = [edges.operands[name][1] for name in names.split()]
        if read and all(columns_of(tensor.shape[1:]) < columns for tensor in read):
            return True
    return False


def _row_weights(site: Site, reduce: str, dtype: torch.dtype) -> Tensor:
    if isinstance(site.graph, EdgeList):
        ones = torch.ones((site.graph.cols, 1), dtype=dtype, device=site.graph.device)
        return _multiply(site, ones, None, reduce).squeeze(1)
    return site.graph.row_weights(reduce, dtype)


def _followed(edges: Edges, value: Tailed, reduce: Sequence[str]) -> list[Tensor]:
    results = []
    for kind, result in zip(reduce, reduced(edges, value.inner, reduce)):
        weights = edges.run(_row_weights, kind, result.dtype)
        for step in value.steps:
            result = step(result, weights)
        results.append(result)
    return results
