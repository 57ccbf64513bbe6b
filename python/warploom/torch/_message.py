"""Messages over rows, columns and edges, each one kernel, with derived gradients.

The library reads an operation from a text that names its operands and results (warploom_message.h)
and derives the text of its gradients. One walk over the graph gives the gradients by all operands
of rows, one over the transpose those by all operands of columns; those of edges come with either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

import torch

from warploom._library import check, fail, text
from warploom._native import ffi, lib
from warploom.torch import _eager
from warploom.torch._graph import Graph
from warploom.torch._plan import (
    DENSE_TYPES,
    KeptPlan,
    OnceKind,
    Request,
    address_of,
    current_stream,
    problem,
    rows_apart,
)

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]
Value = Union[Tensor, float, tuple[str, Tensor]]

PLACES = ("row", "column", "edge", "all")
KNOWN = {"a": "edge", "b": "column", "e": "edge", "k": "column", "x": "row", "y": "row"}
RESULTS = ("sum", "mean", "max", "min", "prod", "edge", "edge_sum")
COMPOSED = ("var", "std")
_SWAPPED = {"row": "column", "column": "row"}
_LEAST_VARIANCE = 1e-5  # PyG's std is 0 up to here
_MOST_RESULTS = 6  # WLM_MAX_RESULTS
# Identifiers that are no functions. "e5" of "1e5" is none.
_NAMES = re.compile(r"(?<![\w.])[A-Za-z_]\w*\b(?!\s*\()")
_NUMBERS = frozenset(("inf", "INFINITY", "degree"))


def message(
    graph: Graph,
    expression: str,
    *,
    reduce: str | Sequence[str] = "sum",
    heads: int | None = None,
    transpose: bool = False,
    operands: Mapping[str, Value] | None = None,
    **named: Value,
) -> Tensor | tuple[Tensor, ...]:
    """C[i] = reduce over the edges p = (i, k) of row i of the expression, in one kernel that reads
    the operands and writes the results; differentiable in all tensors but those of "all".

        message(graph, "relu(b+e)", b=features, e=edge_features)
        message(graph, "b", reduce=("mean", "max", "std"), b=features)
        message(graph, "g*relu(b*scale)", b=features, scale=0.5, operands={"g": ("row", gate)})

    expression: C arithmetic, comparisons, ?: and functions such as relu, leaky_relu(v,slope),
        sigmoid, tanh and exp, over the operands by name and `degree`, the edges of row i.
    reduce: "sum", "mean", "max", "min", "prod", "var" or "std" of each row, 0 (prod: 1) without
        edges; "edge": the expression itself, for each edge; "edge_sum": its sum over the columns of
        each head, for each edge. Several give a tuple, from one walk over the graph. "var" is the
        mean of the squares minus the square of the mean, "std" its root, and 0 up to 1e-5, as in
        PyG.
    b, k: tensors of columns, (cols, n): an edge (i, k) sees row k. x, y: of rows, (rows, n): it sees
        row i. e: of edges, (edges, n), in the order of the edge_index that the graph was made from;
        a: (edges,) or (edges, heads), likewise, None = graph.values, or 1 without these.
    operands: tensors with other names, as ("row" | "column" | "edge" | "all", tensor). One of "all"
        has the shape (n,), and every edge sees it.
    heads: all operands but a may have n columns, (heads, n / heads) dimensions, one number for each
        of the heads, or a single one, which the columns of a head or all columns share. None = the
        second dimension of an operand with three, or that of a.
    transpose: reduce over the edges of each column; operands and their places stay as they are.

    A number instead of a tensor is a constant of the call. Tensors have one type; a may be float32
    beside 16-bit types. Results are (rows, n) or (rows, heads, features), for each edge (edges, ...)
    in the order of e, and of "edge_sum" (edges,) or (edges, heads). Maxima and minima pass their
    gradient to the first of the equal edges. prod has no gradient. Under autocast tensors other than
    a are converted to autocast's type. Raises TypeError or ValueError that name the operand.
    """
    if torch.compiler.is_compiling():
        return _uncompiled(  # type: ignore[no-any-return]
            graph, expression, reduce, heads, transpose, operands, named
        )
    return _message(graph, expression, reduce, heads, transpose, operands, named)


def _message(
    graph: Graph,
    expression: str,
    reduce: str | Sequence[str],
    heads: int | None,
    transpose: bool,
    operands: Mapping[str, Value] | None,
    given: dict[str, Value],
) -> Tensor | tuple[Tensor, ...]:
    if transpose:
        graph = graph.t()
    if operands is not None:
        given = {**given, **operands}
    has_own_values = graph.values is not None and "a" not in given and "a" in names_of(expression)
    if has_own_values:
        given["a"] = graph.values  # type: ignore[assignment]
    reductions = (reduce,) if isinstance(reduce, str) else tuple(reduce)
    deterministic = torch.are_deterministic_algorithms_enabled()
    autocasts = _eager._any_autocast()
    lines = _lines_of(graph, transpose)
    key: list[Any] = [expression, reductions, heads, transpose, deterministic, has_own_values]
    tensors: list[Tensor] = []
    numbers: dict[str, float] = {}
    fits = True
    for name, value in given.items():
        place, value = value if isinstance(value, tuple) else (KNOWN.get(name), value)
        if not isinstance(value, Tensor):
            numbers[name] = value
            key.append(name)
            continue
        if autocasts and name != "a":
            value = _eager.autocast(value)
        tensors.append(value)
        shape = value.shape
        if place != "all":
            fits = fits and len(shape) > 0 and shape[0] == lines.get(place)
            shape = shape[1:]
        key.append((name, place, shape, value.dtype, value.get_device()))
    kept = tuple(key)
    product: _Product | None = graph._products.get(kept) if fits else None
    if product is None:
        parts = _describe(graph, expression, reductions, heads, transpose, given)
        product = graph._products[kept] = _Product(parts, has_own_values, deterministic)
    results = product.compute(graph, tensors, numbers)
    return results[0] if isinstance(reduce, str) else results


_uncompiled = torch.compiler.disable(_message)


def names_of(expression: str) -> list[str]:
    """The operands of an expression, in their order."""
    return [n for n in dict.fromkeys(_NAMES.findall(expression)) if n not in _NUMBERS]


def _lines_of(graph: Graph, transpose: bool) -> dict[str | None, int]:
    """How many lines operands have, by place; of a transposed graph, places are those before."""
    rows, cols = (graph.cols, graph.rows) if transpose else (graph.rows, graph.cols)
    return {"row": rows, "column": cols, "edge": graph.nnz}


# ---- what a message is -----------------------------------------------------------------


class Operand(NamedTuple):
    """An operand as the text declares it."""

    name: str
    place: str
    width: str  # "n", "heads" or "1"
    is_tensor: bool = True


class Parts(NamedTuple):
    """A message: what its text says, and the types and shape of a call."""

    results: tuple[tuple[str, str], ...]  # kind and expression
    composed: tuple[tuple[str, int, int], ...]  # what is returned: kind, and the results it is of
    operands: tuple[Operand, ...]
    width: tuple[int, ...]  # shape of a row of a result
    heads: int
    dtype: torch.dtype
    values: torch.dtype | None

    def text(self, present: Sequence[bool] = ()) -> str:
        """The text for the library, of those results that are present."""
        results = [r for i, r in enumerate(self.results) if not present or present[i]]
        used = {name for _, expression in results for name in names_of(expression)}
        declared = [
            f"{o.name}:{o.place}:{o.width};"
            for o in self.operands
            if o.name in used and o.name != "a"
        ]
        return "".join(declared) + ";".join(f"{kind}={text}" for kind, text in results)


def _refuse(why: str, error: type[Exception] = ValueError) -> None:
    raise error("warploom: message: " + why)


def _describe(
    graph: Graph,
    expression: str,
    reductions: tuple[str, ...],
    heads: int | None,
    transpose: bool,
    given: dict[str, Value],
) -> Parts:
    """Check the arguments of a message and say what they are."""
    results, composed = _results_of(expression, reductions)
    _check_names(expression, given, transpose)
    lines = _lines_of(graph, transpose)
    places: dict[str, str] = {}
    tensors: dict[str, Tensor] = {}
    for name, value in given.items():
        if isinstance(value, tuple) or isinstance(value, Tensor):
            places[name], tensors[name] = _check_tensor(name, value, graph, lines)
        elif not isinstance(value, (int, float)):
            _refuse(f"operand {name}: a tensor is needed, not {type(value).__name__}", TypeError)
    dtype = _check_types(graph, tensors)
    width, heads = _widths(tensors, places, heads)
    operands = tuple(
        Operand(
            name,
            _SWAPPED.get(places[name], places[name]) if transpose else places[name],
            _width_of(name, tensors[name], places[name], width, heads),
        )
        if name in tensors
        else Operand(name, "all", "1", False)
        for name in given
    )
    values = tensors["a"].dtype if "a" in tensors else None
    return Parts(results, composed, operands, width, heads, dtype, values)


def _results_of(
    expression: str, reductions: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, int, int], ...]]:
    if not isinstance(expression, str):
        _refuse(f"the expression: a text is needed, not {type(expression).__name__}", TypeError)
    if ";" in expression or not expression.strip():
        _refuse(f"the expression {expression!r} is no single expression")
    results: dict[tuple[str, str], int] = {}
    composed = []
    for reduce in reductions:
        if reduce in COMPOSED:
            mean, square = ("mean", expression), ("mean", f"({expression})*({expression})")
            at = [results.setdefault(r, len(results)) for r in (mean, square)]
            composed.append((reduce, *at))
        elif reduce in RESULTS:
            at = [results.setdefault((reduce, expression), len(results))]
            composed.append((reduce, at[0], at[0]))
        else:
            known = ", ".join((*RESULTS, *COMPOSED))
            _refuse(f"reduce: '{reduce}' is unknown, use {known}")
    if not results:
        _refuse("reduce: at least one reduction is needed")
    return tuple(results), tuple(composed)


def _check_names(expression: str, given: dict[str, Value], transpose: bool) -> None:
    names = names_of(expression)
    for name in names:
        if name in given or name == "a":
            continue
        if name in KNOWN:
            _refuse(f"operand {name} is missing, which '{expression}' uses; pass {name}=")
        _refuse(
            f"operand {name} of '{expression}' is unknown; pass a number as {name}=, or a tensor "
            f"with its place in operands="
        )
    for name in given:
        if name not in names:
            _refuse(f"operand {name} is given, and '{expression}' does not use it; leave it out")
    if transpose and re.search(r"\bdegree\b", expression):
        _refuse("degree, the edges of a row, cannot be used with transpose; pass it as an operand")


def _check_tensor(
    name: str, value: Value, graph: Graph, lines: dict[str | None, int]
) -> tuple[str, Tensor]:
    place: Any = KNOWN.get(name)
    if isinstance(value, tuple):
        if len(value) != 2 or value[0] not in PLACES or not isinstance(value[1], Tensor):
            _refuse(f"operand {name}: (place, tensor) is needed, with a place of {PLACES}")
        place, value = value
    assert isinstance(value, Tensor)
    if place is None:
        _refuse(f"operand {name} has no place; pass operands={{'{name}': (place, tensor)}}")
    if value.layout != torch.strided or value.dtype not in DENSE_TYPES:
        _refuse(
            f"operand {name}: {value.dtype} with layout {value.layout} is not supported; use a "
            "dense tensor of float32, float16, bfloat16 or float64",
            TypeError,
        )
    if value.device != graph.device:
        _refuse(f"operand {name} is on {value.device}, the graph on {graph.device}")
    if place == "all":
        if value.numel() < 2:
            _refuse(f"operand {name}: one number for all edges is passed as float({name})")
    elif value.dim() not in (1, 2, 3) or value.shape[0] != lines[place]:
        _refuse(
            f"operand {name}: the shape is {tuple(value.shape)}, and an operand of "
            f"place '{place}' needs {lines[place]} lines: ({lines[place]}, n)"
        )
    return place, value


def _check_types(graph: Graph, tensors: dict[str, Tensor]) -> torch.dtype:
    """The type of all operands but a."""
    first: str | None = None
    for name, tensor in tensors.items():
        if name == "a":
            continue
        if first is not None and tensor.dtype != tensors[first].dtype:
            _refuse(
                f"operand {name} is {tensor.dtype}, and {first} is {tensors[first].dtype}; "
                "convert one of them",
                TypeError,
            )
        first = first or name
    a = tensors.get("a")
    dtype = tensors[first].dtype if first else torch.float32 if a is None else a.dtype
    halves = dtype in (torch.float16, torch.bfloat16)
    if a is not None and a.dtype != dtype and not (halves and a.dtype == torch.float32):
        _refuse(f"operand a is {a.dtype}, and {first} is {dtype}; convert one of them", TypeError)
    return dtype


def _line(tensor: Tensor, place: str) -> tuple[int, ...]:
    """The shape of one line of an operand."""
    return tuple(tensor.shape if place == "all" else tensor.shape[1:])


def _columns(line: tuple[int, ...]) -> int:
    n = 1
    for extent in line:
        n *= extent
    return n


def _widths(
    tensors: dict[str, Tensor], places: dict[str, str], heads: int | None
) -> tuple[tuple[int, ...], int]:
    """The shape of a line of n columns, that of the widest operand, and the number of heads."""
    width: tuple[int, ...] = ()
    for name, tensor in tensors.items():
        line = _line(tensor, places[name])
        if (name != "a" or len(tensors) == 1) and (_columns(line), len(line)) > (
            _columns(width),
            len(width),
        ):
            width = line
        if _columns(line) == 0:
            return line, 1
    if heads is None:
        a = tensors.get("a")
        of_a = a.shape[1] if a is not None and a.dim() == 2 else 1
        heads = width[0] if len(width) == 2 else of_a
    if not isinstance(heads, int) or heads < 1 or _columns(width) % heads:
        _refuse(f"heads: {heads} does not divide the {_columns(width)} columns of the operands")
    return width, heads


def _width_of(
    name: str, tensor: Tensor, place: str, width: tuple[int, ...], heads: int
) -> str:
    line = _line(tensor, place)
    columns, n = _columns(line), _columns(width)
    fits = len(line) < 2 or line[0] == heads
    if name == "a":
        if len(line) < 2 and columns in (1, heads):
            return "heads" if columns == heads else "1"
        _refuse(
            f"operand a: the shape is {tuple(tensor.shape)}, ({tensor.shape[0]},) or "
            f"({tensor.shape[0]}, {heads}) is needed; pass n numbers of an edge as e"
        )
    if fits and columns == n:
        return "n"
    if fits and columns == heads:
        return "heads"
    if columns == 1 and place != "all":
        return "1"
    _refuse(
        f"operand {name}: the shape is {tuple(tensor.shape)}, whose lines must have {n} columns "
        f"as those of the widest operand, {heads} (one for each head) or 1"
    )
    raise AssertionError


# ---- walks -----------------------------------------------------------------------------


class _Walk:
    """One walk over a graph or its transpose, with the order of its operands and results."""

    __slots__ = ("heads", "kind", "operands", "request", "results", "values")

    def __init__(self, request: Request) -> None:
        table = ffi.new("wlm_message_table *", {"size": ffi.sizeof("wlm_message_table")})
        check(lib.wlm_message_describe(problem(request, 1), table))
        rows = range(table.operands)
        names = tuple(ffi.string(table.operand[i].name).decode() for i in rows)
        self.operands = names
        self.values = "a" in names
        if not self.values:
            request = request._replace(values=None)
        self.request = request
        self.heads = () if request.heads == 1 else (request.heads,)
        # Of each result: whether it is of edges, of n columns, and has positions.
        self.results = tuple(
            (
                r.place == lib.WLM_PLACE_EDGE,
                r.width == lib.WLM_WIDTH_N,
                request.argmax and r.reduce in (lib.WLM_MAX, lib.WLM_MIN),
            )
            for r in (table.result[i] for i in range(table.results))
        )
        self.kind: KeptPlan | OnceKind | None = None

    def run(
        self, graph: Graph, given: dict[str, Tensor], numbers: dict[str, float]
    ) -> tuple[list[Tensor], list[Maybe]]:
        """The results, and their positions, from operands in CSR order."""
        request = self.request
        if self.kind is None:
            self.kind = graph.kind(request)
        plan = self.kind.of(graph)
        device = plan.device if plan.like is not None else graph.device
        made: list[Tensor] = []
        positions: list[Maybe] = []
        addresses = [len(self.results)]
        for of_edges, is_wide, has_positions in self.results:
            shape = plan.shape
            if of_edges:
                shape = (graph.nnz, *(request.width if is_wide else self.heads))
            result = torch.empty(shape, dtype=request.dtype, device=device)
            where = None
            if has_positions:
                where = torch.empty(shape, dtype=request.positions, device=device)
            made.append(result)
            positions.append(where)
            addresses += result.data_ptr(), address_of(where)
        if request.n == 0:
            return [result.zero_() for result in made], positions
        held = []  # copies live until the kernel is enqueued
        operands = [len(self.operands)]
        scalars = []
        for name in self.operands:
            tensor = given.get(name)
            scalars.append(numbers.get(name, 0.0))
            if tensor is None:
                operands += 0, 0
                continue
            if tensor.is_contiguous():
                operands += tensor.data_ptr(), 0
                continue
            tensor, apart = rows_apart(tensor)
            held.append(tensor)
            operands += tensor.data_ptr(), apart
        values = given["a"].contiguous() if self.values and "a" in given else None
        size = plan.workspace
        work = torch.empty(size, dtype=torch.uint8, device=device) if size else None
        status = lib.warploom_message(
            plan.call, operands, scalars, addresses, address_of(values), address_of(work), size,
            current_stream(plan.index),
        )  # fmt: skip
        if status:
            fail(status)
        return made, positions


class _Gradients(NamedTuple):
    """One walk that gives the gradients by some operands."""

    walk: _Walk
    by: tuple[int, ...]  # of the operands
    upstream: tuple[tuple[str, bool, int], ...]  # name, whether it has positions, result


class _Product:
    """A checked message of a graph, or of all graphs that are used once."""

    __slots__ = ("_gradients", "_walks", "deterministic", "has_own_values", "names", "parts")

    def __init__(self, parts: Parts, has_own_values: bool, deterministic: bool) -> None:
        self.parts = parts
        self.has_own_values = has_own_values
        self.deterministic = deterministic
        self.names = tuple(o.name for o in parts.operands if o.is_tensor)
        self._walks: dict[tuple[bool, bool], _Walk] = {}
        self._gradients: dict[Any, tuple[_Gradients, ...]] = {}

    def _request(self, graph: Graph, text: str) -> Request:
        parts = self.parts
        positions = torch.int32 if graph.nnz < 2**31 else torch.int64
        return Request(
            parts.width, parts.dtype, parts.values, parts.heads,
            deterministic=self.deterministic, custom=text, positions=positions,
        )  # fmt: skip

    def _walk(self, graph: Graph, argmax: bool) -> _Walk:
        argmax = argmax and any(kind in ("max", "min") for kind, _ in self.parts.results)
        key = argmax, graph.nnz < 2**31
        walk = self._walks.get(key)
        if walk is None:
            request = self._request(graph, self.parts.text())._replace(argmax=argmax)
            walk = self._walks[key] = _Walk(request)
        return walk

    def gradients(
        self, graph: Graph, needs: tuple[bool, ...], present: tuple[bool, ...]
    ) -> tuple[_Gradients, ...]:
        """The walks for the gradients by the operands that are needed, of the results that have
        one."""
        key = needs, present, graph.nnz < 2**31
        found = self._gradients.get(key)
        if found is None:
            found = self._gradients[key] = self._make_gradients(graph, needs, present)
        return found

    def _make_gradients(
        self, graph: Graph, needs: tuple[bool, ...], present: tuple[bool, ...]
    ) -> tuple[_Gradients, ...]:
        parts = self.parts
        results = [i for i, is_present in enumerate(present) if is_present]
        used = {name for i in results for name in names_of(parts.results[i][1])}
        tensors = [o for o in parts.operands if o.is_tensor]
        wanted = [i for i, o in enumerate(tensors) if needs[i] and o.name in used]
        sides: dict[str, list[int]] = {"row": [], "column": [], "edge": [], "all": []}
        for i in wanted:
            sides[tensors[i].place].append(i)
        if sides["all"]:
            name = tensors[sides["all"][0]].name
            _refuse(f"operand {name} of all edges requires a gradient, which is not supported")
        # Edge order is that of a walk over rows.
        with_edges = "column" if sides["column"] and not sides["row"] else "row"
        sides[with_edges] += sides["edge"]
        request = self._request(graph, parts.text(present))
        return tuple(
            self._gradients_by(request, tuple(side[i : i + _MOST_RESULTS]), results)
            for side in (sides["row"], sides["column"])
            for i in range(0, len(side), _MOST_RESULTS)
        )

    def _gradients_by(
        self, request: Request, by: tuple[int, ...], results: list[int]
    ) -> _Gradients:
        gradient = ffi.new("wlm_problem *", {"size": ffi.sizeof("wlm_problem")})
        names = ",".join(self.names[i] for i in by).encode()
        custom = text(lib.wlm_message_gradient, problem(request, 1), names, gradient)
        walk = _Walk(request._replace(custom=custom, transpose=bool(gradient.transpose)))
        upstream = []
        for name in walk.operands:
            found = re.fullmatch(r"(d+|w+)(\d+)", name)
            if found and name not in self.names:
                upstream.append((name, name[0] == "w", results[int(found[2])]))
        return _Gradients(walk, by, tuple(upstream))

    def compute(
        self, graph: Graph, tensors: list[Tensor], numbers: dict[str, float]
    ) -> tuple[Tensor, ...]:
        """The results that `reduce` asks for."""
        needs = tuple(t.requires_grad for t in tensors) if torch.is_grad_enabled() else ()
        made: Sequence[Tensor]
        if True in needs:
            made = _Message.apply((graph, self, numbers, needs), *tensors)  # type: ignore[no-untyped-call]
        else:
            given = self.in_csr_order(graph, tensors)
            made, _ = self._walk(graph, False).run(graph, given, numbers)
            made = self.in_order_of_edges(graph, made)
        composed = self.parts.composed
        return tuple(_compose(kind, made[mean], made[square]) for kind, mean, square in composed)

    def in_csr_order(self, graph: Graph, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """The operands by name, those of edges in CSR order."""
        given = dict(zip(self.names, tensors))
        for o in self.parts.operands:
            if o.place != "edge":
                continue
            tensor = given[o.name]
            if o.name != "a" or not self.has_own_values:
                order = graph.edge_order()
                tensor = tensor if order is None else tensor.index_select(0, order)
            if o.name == "a" and o.width == "1":  # the library has a number for each head
                tensor = tensor.reshape(-1, 1).expand(-1, self.parts.heads).contiguous()
            given[o.name] = tensor
        return given

    def in_order_of_edges(self, graph: Graph, made: Sequence[Tensor]) -> list[Tensor]:
        """The results, those of edges in the order of the edge_index."""
        return [
            _to_user(graph, result) if kind in ("edge", "edge_sum") else result
            for (kind, _), result in zip(self.parts.results, made)
        ]

    def narrowed(self, graph: Graph, at: int, gradient: Tensor, like: torch.Size) -> Tensor:
        """The gradient by an operand, of its shape, from what the walk gave."""
        operand = [o for o in self.parts.operands if o.is_tensor][at]
        heads = self.parts.heads
        if operand.width != "n":
            lines = like[0]
            if operand.place != "edge":
                shape = (lines, heads, self._n() // heads) if operand.width == "heads" else None
                gradient = gradient.reshape(shape or (lines, self._n())).sum(-1)
            elif operand.width == "1" and heads > 1:
                gradient = gradient.sum(-1)
        if operand.place == "edge" and not (operand.name == "a" and self.has_own_values):
            gradient = _to_user(graph, gradient)
        return gradient.reshape(like)

    def _n(self) -> int:
        return _columns(self.parts.width)


def _to_user(graph: Graph, of_edges: Tensor) -> Tensor:
    places = graph.edge_places()
    return of_edges if places is None else of_edges.index_select(0, places)


def _compose(kind: str, mean: Tensor, square: Tensor) -> Tensor:
    if kind not in COMPOSED:
        return mean
    variance = torch.addcmul(square, mean, mean, value=-1)
    if kind == "var":
        return variance
    return torch.nn.functional.threshold(variance, _LEAST_VARIANCE, 0.0).sqrt()


class _Message(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        graph, product, numbers, needs = state
        given = product.in_csr_order(graph, tensors)
        made, positions = product._walk(graph, True).run(graph, given, numbers)
        walks = product.gradients(graph, needs, (True,) * len(made))
        read = {name for gradients in walks for name in gradients.walk.operands}
        names = [name for name in product.names if name in read]
        ctx.state = state
        ctx.names = names
        ctx.likes = [(tensor.shape, tensor.dtype) for tensor in tensors]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*(given[name] for name in names), *positions)
        return tuple(product.in_order_of_edges(graph, made))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *upstream: Maybe) -> tuple[Maybe, ...]:
        graph, product, numbers, needs = ctx.state
        saved = ctx.saved_tensors
        given = dict(zip(ctx.names, saved))
        positions = saved[len(ctx.names) :]
        found: list[Maybe] = [None] * len(ctx.likes)
        present = tuple(gradient is not None for gradient in upstream)
        if True not in present:
            return (None, *found)
        dense: dict[int, Tensor] = {}  # positions have the leading dimension of their gradient
        for gradients in product.gradients(graph, needs, present):
            for name, has_positions, at in gradients.upstream:
                if has_positions:
                    given[name] = positions[at]
                    continue
                if at not in dense:
                    gradient = upstream[at]
                    if product.parts.results[at][0] in ("edge", "edge_sum"):
                        order = graph.edge_order()
                        gradient = gradient if order is None else gradient.index_select(0, order)  # type: ignore[union-attr]
                    dense[at] = gradient  # type: ignore[assignment]
                given[name] = dense[at]
            made, _ = gradients.walk.run(graph, given, numbers)
            for at, gradient in zip(gradients.by, made):
                like, dtype = ctx.likes[at]
                found[at] = product.narrowed(graph, at, gradient, like).to(dtype)
        return (None, *found)
