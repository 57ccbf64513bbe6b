"""What a message is: the operands and results of a call, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import torch

from warploom import _arguments
from warploom.torch._edges import Shaped
from warploom.torch._graph import Graph
from warploom.torch._message_text import KEPT, names_of, reads_degree, refuse, split
from warploom.torch._plan import DENSE_TYPES

Tensor = torch.Tensor
Value = Union[Tensor, float, tuple[str, Tensor]]
# Results of a walk, and for each reduction its kind and the results that it is of; as in Parts.
_Results = tuple[tuple[tuple[str, str], ...], tuple[tuple[str, int, int], ...]]

PLACES = ("row", "column", "edge", "all")
KNOWN = {"a": "edge", "b": "column", "e": "edge", "k": "column", "x": "row", "y": "row"}
RESULTS = ("sum", "mean", "max", "min", "prod", "softmax", "edge", "edge_sum")
OF_EDGES = ("edge", "edge_sum")
COMPOSED = ("var", "std")
LEAST_VARIANCE = 1e-5  # PyG's std is 0 up to here
OWN = "own"  # the place of the values of the graph, which are in CSR order
LINES = {"row": "rows", "column": "cols", "edge": "nnz", OWN: "stored"}
_SWAPPED = {"row": "column", "column": "row"}
SEED = "#seed"  # among the numbers of a call; no name in a text is spelled so


def line_of(place: str | None, transpose: bool) -> str | None:
    """The attribute of the graph that is walked with the number of lines of a place; of a
    transposed graph, places are those before."""
    place = str(place)
    return LINES.get(_SWAPPED.get(place, place) if transpose else place)


class Operand(NamedTuple):
    """An operand as the text declares it."""

    name: str
    place: str
    width: str  # "n", "heads" or "1"
    is_tensor: bool = True


class Parts(NamedTuple):
    """A message: what its text says, and the types and shape of a call."""

    results: tuple[tuple[str, str], ...]  # kind and expression
    composed: tuple[tuple[str, int, int], ...]  # for `reduce`: kind, and the results it is of
    operands: tuple[Operand, ...]
    width: tuple[int, ...]  # shape of a row of a result
    heads: int
    dtype: torch.dtype
    values: torch.dtype | None
    sums: tuple[tuple[str, str], ...] = ()  # of which results are expressions, too

    def uses(self, results: Iterable[int]) -> set[str]:
        """The operands and sums that these results read."""
        used = {name for i in results for name in names_of(self.results[i][1])}
        for name, expression in reversed(self.sums):
            if name in used:
                used.update(names_of(expression))
        return used

    def chosen(self, present: Sequence[bool]) -> list[int]:
        """The results that are present, and the score where they need it."""
        weighs = any(
            is_present and kind == "softmax" for is_present, (kind, _) in zip(present, self.results)
        )
        return [
            i
            for i, (kind, _) in enumerate(self.results)
            if present[i] or (kind == "score" and weighs)
        ]

    def text(self, present: Sequence[bool] = ()) -> str:
        """The text for the library, of those results that are present."""
        chosen = self.chosen(present or (True,) * len(self.results))
        used = self.uses(chosen)
        sums = [f"{name}:edge_sum={text};" for name, text in self.sums if name in used]
        results = [self.results[i] for i in chosen]
        declared = [
            f"{o.name}:{o.place}:{o.width};"
            for o in self.operands
            if o.name in used and o.name != "a"
        ]
        return "".join(declared + sums) + ";".join(f"{kind}={text}" for kind, text in results)


def check(graph: Graph, operands: Sequence[Tensor], *options: Any) -> None:
    """Raise TypeError or ValueError for wrong arguments of a message; options: of Message."""
    expression, reductions, heads, places, scalars, transpose, _ = options
    if "\0" in expression:
        refuse(f"the expression {expression!r} has a NUL byte")
    if isinstance(heads, float):
        refuse(f"heads: a whole number is needed, not {heads}", TypeError)
    _arguments.flag("warploom: message: transpose", transpose)
    _results_of(expression, reductions)
    _check_names(expression, dict(places), scalars, transpose)
    for (name, place), tensor in zip(places, operands):
        _check_tensor(name, place, tensor, graph, line_of(place, transpose))
    parts = describe(expression, reductions, heads, places, operands, scalars, transpose)
    used = parts.uses(range(len(parts.results)))
    for name, _ in parts.sums:
        if name not in used:
            refuse(f"the sum {name} is given, and no expression uses it; leave it out")


def describe(
    expression: str,
    reductions: tuple[str, ...],
    heads: int | None,
    places: Sequence[tuple[str, str]],
    likes: Sequence[Any],
    scalars: Sequence[str],
    transpose: bool,
) -> Parts:
    """What a message of such tensors is. places: name and place of each; scalars: of numbers."""
    results = _results_of(expression, reductions)
    place_of = {name: "edge" if place == OWN else place for name, place in places}
    _check_names(expression, place_of, scalars, transpose)
    tensors = dict(zip(place_of, likes))
    dtype = _check_types(tensors)
    width, heads = _widths(tensors, place_of, heads)
    of_score = names_of(split(expression).score or "0")
    operands = []
    for name, tensor in tensors.items():
        place = place_of[name]
        of = _width_of(name, tensor, place, width, heads)
        if of == "n" and name in of_score and columns_of(width) == heads:
            of = "heads"  # the same numbers, which a score may read
        operands.append(Operand(name, _SWAPPED.get(place, place) if transpose else place, of))
    operands += [Operand(name, "all", "1", False) for name in scalars]
    values = tensors["a"].dtype if "a" in tensors else None
    return Parts(*results, tuple(operands), width, heads, dtype, values, split(expression).sums)


def _results_of(expression: str, reductions: tuple[str, ...]) -> _Results:
    if not isinstance(expression, str):
        refuse(f"the expression: a text is needed, not {type(expression).__name__}", TypeError)
    parts = split(expression)
    expression = parts.message
    if parts.drops and "softmax" not in reductions:
        refuse("dropout is of reduce='softmax', which leaves out weights")
    if not expression.strip():
        refuse(f"the expression {expression!r} is no single expression")
    if (parts.score is not None) != ("softmax" in reductions):
        refuse("reduce='softmax' needs a score, and a score needs reduce='softmax'")
    results: dict[tuple[str, str], int] = {}
    composed: list[tuple[str, int, int]] = []
    if parts.score is not None:
        results["score", parts.score] = 0
    for reduce in reductions:
        if reduce in COMPOSED:
            mean, square = ("mean", expression), ("mean", f"({expression})*({expression})")
            first, second = (results.setdefault(r, len(results)) for r in (mean, square))
            composed.append((reduce, first, second))
        elif reduce in RESULTS:
            weighs = reduce == "softmax" and parts.drops
            text = f"{KEPT}*({expression})" if weighs else expression
            at = results.setdefault((reduce, text), len(results))
            composed.append((reduce, at, at))
        else:
            known = ", ".join((*RESULTS, *COMPOSED))
            refuse(f"reduce: '{reduce}' is unknown, use {known}")
    if not results:
        refuse("reduce: at least one reduction is needed")
    return tuple(results), tuple(composed)


def _check_names(
    expression: str, tensors: Iterable[str], scalars: Sequence[str], transpose: bool
) -> None:
    names, drops = names_of(expression), split(expression).drops
    given = [*tensors, *(scalars[:-2] if drops else scalars)]  # without KEPT and SEED
    for name in names:
        if name in given or name == "a":
            continue
        if name in KNOWN:
            refuse(f"operand {name} is missing, which '{expression}' uses; pass {name}=")
        refuse(
            f"operand {name} of '{expression}' is unknown; pass a number as {name}=, or a tensor "
            f"with its place in operands="
        )
    for name in given:
        if name not in names:
            refuse(f"operand {name} is given, and '{expression}' does not use it; leave it out")
    if transpose and reads_degree(expression):
        refuse("degree, the edges of a row, cannot be used with transpose; pass it as an operand")


def _check_tensor(
    name: str, place: str | None, value: Tensor, graph: Graph, line: str | None
) -> None:
    if place is None:
        refuse(f"operand {name} has no place; pass operands={{'{name}': (place, tensor)}}")
    if name == "a" and place not in ("edge", OWN):
        refuse(f"operand a is of edges and cannot be of place '{place}'; use another name")
    if value.layout != torch.strided or value.dtype not in DENSE_TYPES:
        refuse(
            f"operand {name}: {value.dtype} with layout {value.layout} is not supported; use a "
            "dense tensor of float32, float16, bfloat16 or float64",
            TypeError,
        )
    if value.device != graph.device:
        refuse(f"operand {name} is on {value.device}, the graph on {graph.device}")
    if place == "all":
        if value.numel() < 2:
            refuse(f"operand {name}: one number for all edges is passed as float({name})")
        return
    lines = getattr(graph, str(line))
    if value.dim() not in (1, 2, 3) or value.shape[0] != lines:
        refuse(
            f"operand {name}: the shape is {tuple(value.shape)}, and an operand of "
            f"place '{place}' needs {lines} lines: ({lines}, n)"
        )


def _check_types(tensors: Mapping[str, Tensor | Shaped]) -> torch.dtype:
    """The type of all operands but a."""
    first: str | None = None
    for name, tensor in tensors.items():
        if name == "a":
            continue
        if first is not None and tensor.dtype != tensors[first].dtype:
            refuse(
                f"operand {name} is {tensor.dtype}, and {first} is {tensors[first].dtype}; "
                "convert one of them",
                TypeError,
            )
        first = first or name
    a = tensors.get("a")
    dtype = tensors[first].dtype if first else torch.float32 if a is None else a.dtype
    halves = dtype in (torch.float16, torch.bfloat16)
    if a is not None and a.dtype != dtype and not (halves and a.dtype == torch.float32):
        refuse(f"operand a is {a.dtype}, and {first} is {dtype}; convert one of them", TypeError)
    return dtype


def _line(tensor: Tensor | Shaped, place: str) -> tuple[int, ...]:
    """The shape of one line of an operand."""
    return tuple(tensor.shape if place == "all" else tensor.shape[1:])


def columns_of(line: tuple[int, ...]) -> int:
    n = 1
    for extent in line:
        n *= extent
    return n


def _widths(
    tensors: Mapping[str, Tensor | Shaped], places: dict[str, str], heads: int | None
) -> tuple[tuple[int, ...], int]:
    """The shape of a line of n columns, that of the widest operand, and the number of heads."""
    width: tuple[int, ...] = ()
    for name, tensor in tensors.items():
        line = _line(tensor, places[name])
        if (name != "a" or len(tensors) == 1) and (columns_of(line), len(line)) > (
            columns_of(width),
            len(width),
        ):
            width = line
        if columns_of(line) == 0:
            width = line
            break
    if heads is None:
        a = tensors.get("a")
        of_a = a.shape[1] if a is not None and len(a.shape) == 2 else 1
        heads = width[0] if len(width) == 2 else of_a
    if not isinstance(heads, int) or heads < 1 or columns_of(width) % heads:
        refuse(f"heads: {heads} does not divide the {columns_of(width)} columns of the operands")
    return width, heads


def _width_of(
    name: str, tensor: Tensor | Shaped, place: str, width: tuple[int, ...], heads: int
) -> str:
    line = _line(tensor, place)
    columns, n = columns_of(line), columns_of(width)
    fits = len(line) < 2 or line[0] == heads
    if name == "a":
        if len(line) < 2 and columns in (1, heads):
            return "heads" if columns == heads else "1"
        refuse(
            f"operand a: the shape is {tuple(tensor.shape)}, ({tensor.shape[0]},) or "
            f"({tensor.shape[0]}, {heads}) is needed; pass n numbers of an edge as e"
        )
    if fits and columns == n:
        return "n"
    if fits and columns == heads:
        return "heads"
    if columns == 1 and place != "all":
        return "1"
    refuse(
        f"operand {name}: the shape is {tuple(tensor.shape)}, whose lines must have {n} columns "
        f"as those of the widest operand, {heads} (one for each head) or 1"
    )
