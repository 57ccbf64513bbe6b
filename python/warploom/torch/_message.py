"""Messages over rows, columns and edges, each one kernel, with derived gradients.

The library reads an operation from a text that names its operands and results (warploom_message.h)
and derives the text of its gradients. One walk over the graph gives the gradients by all operands
of rows, one over the transpose those by all operands of columns; those of edges come with either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch

from warploom._library import check, fail, text
from warploom._native import ffi, lib
from warploom.torch import _eager, _message_second
from warploom.torch._edges import EdgeList
from warploom.torch._graph import Graph
from warploom.torch._internals import any_autocast, is_transformed, quick_apply, raw_stream
from warploom.torch._message_parts import (
    COMPOSED,
    KEPT,
    KNOWN,
    LEAST_VARIANCE,
    OF_EDGES,
    SEED,
    Parts,
    Value,
    columns_of,
    compose,
    describe,
    lines_of,
    names_of,
    refuse,
)
from warploom.torch._plan import (
    KeptPlan,
    Launcher,
    OnceKind,
    Request,
    accumulator,
    element,
    problem,
    rows_apart,
)

Tensor = torch.Tensor
Maybe = Optional[torch.Tensor]

_MOST_RESULTS = 6  # WLM_MAX_RESULTS
_is_deterministic = torch.are_deterministic_algorithms_enabled


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
    given = named if operands is None else {**named, **operands}
    drops = (0.0, 0)
    if dropout != 0:
        drops = _eager.draw_dropout(dropout, seed)
    if score is not None or sums or drops[0]:
        expression = compose(expression, score, sums, drops[0] > 0)
    reductions = (reduce,) if isinstance(reduce, str) else tuple(reduce)
    if torch.compiler.is_compiling():
        results = _compiled(graph, expression, reductions, heads, transpose, given, drops)
        return results[0] if isinstance(reduce, str) else results
    if transpose:
        graph = graph.t()
    has_own_values = graph.values is not None and "a" not in given and "a" in names_of(expression)
    if has_own_values:
        given["a"] = graph.values  # type: ignore[assignment]
    product, tensors, numbers = prepare(
        graph, expression, reductions, heads, transpose, given, has_own_values, any_autocast()
    )
    if drops[0]:
        numbers[KEPT], numbers[SEED] = drops
    results = product.compute(graph, tensors, numbers)
    return results[0] if isinstance(reduce, str) else results


def prepare(
    graph: Graph,
    expression: str,
    reductions: tuple[str, ...],
    heads: int | None,
    transpose: bool,
    given: dict[str, Value],
    has_own_values: bool,
    autocasts: bool,
) -> tuple[Product, list[Tensor], dict[str, float]]:
    """Check a call and return its product, tensors and numbers; `graph` is transposed already."""
    deterministic = _is_deterministic()
    lines = lines_of(graph, transpose)
    key: list[Any] = [expression, reductions, heads, transpose, deterministic, has_own_values]
    tensors: list[Tensor] = []
    numbers: dict[str, float] = {}
    fits = True
    for name, value in list(given.items()):
        place, value = value if isinstance(value, tuple) else (KNOWN.get(name), value)
        if not isinstance(value, Tensor):
            numbers[name] = value
            key.append(name)
            continue
        if autocasts and name != "a":
            value = _eager.autocast(value)
            given[name] = value if place is None else (place, value)
        tensors.append(value)
        shape = value.shape
        if place != "all":
            fits = fits and len(shape) > 0 and shape[0] == lines.get(place)
            shape = shape[1:]
        key.append((name, place, shape, value.dtype, value.get_device()))
    kept = tuple(key)
    product: Product | None = graph._products.get(kept) if fits else None
    if product is None:
        parts = describe(graph, expression, reductions, heads, transpose, given)
        product = graph._products[kept] = Product(parts, has_own_values, deterministic, kept)
    return product, tensors, numbers


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


def _compiled(
    graph: Graph,
    expression: str,
    reductions: tuple[str, ...],
    heads: int | None,
    transpose: bool,
    given: dict[str, Value],
    drops: tuple[float, int],
) -> tuple[Tensor, ...]:
    """The same by the registered op, which finds the product of the call when it runs."""
    if isinstance(graph, EdgeList):
        return message_of_edges(graph, expression, reductions, heads, given)
    has_own_values = False
    if graph.values is not None and "a" not in given and _uses(expression, "a"):
        has_own_values = not transpose
        given = {**given, "a": _in_edge_order(graph) if transpose else graph.values}
    tensors, numbers, names, scalars = [], [], [], []
    for name, value in given.items():
        place, value = value if isinstance(value, tuple) else ("", value)
        if not isinstance(value, Tensor):
            scalars.append(name)
            numbers.append(float(value))
            continue
        tensors.append(value if name == "a" else _eager.autocast(value))
        names.append(f"{name}:{place}")
    needs_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in tensors)
    unique = list(dict.fromkeys(reductions))
    results = torch.ops.warploom.message(
        graph.rowptr, graph.colind, graph.perm, graph.cols, tensors, numbers,
        ",".join(names + scalars), expression, ",".join(unique), heads or 0, transpose,
        has_own_values, *drops, needs_gradient,
    )  # fmt: skip
    return tuple(results[unique.index(reduce)] for reduce in reductions)


def message_of_edges(
    graph: EdgeList,
    expression: str,
    reductions: tuple[str, ...],
    heads: int | None,
    given: dict[str, Value],
) -> tuple[Tensor, ...]:
    """`message` of the edges of a traced layer, with operands as they are; without dropout."""
    places, tensors, scalars, numbers = [], [], [], []
    for name, value in given.items():
        place, value = value if isinstance(value, tuple) else (KNOWN.get(name, "all"), value)
        if isinstance(value, Tensor):
            places.append((name, place))
            tensors.append(value)
        else:
            scalars.append(name)
            numbers.append(float(value))
    unique = list(dict.fromkeys(reductions))
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    options = (
        expression, tuple(unique), heads, tuple(places), tuple(scalars), is_deterministic
    )  # fmt: skip
    lines = [None if place == "all" else place for _, place in places]
    made = graph.call_list("message", tensors, lines, options, tuple(numbers))
    return tuple([made[unique.index(reduce)] for reduce in reductions])


class Repeated:
    """A call of `message` that is made again with tensors of the same kinds, outside of autocast.

    places: name and place of each operand.
    """

    __slots__ = ("_is_deterministic", "_key", "expression", "heads", "places", "reductions")

    def __init__(
        self,
        expression: str,
        reductions: tuple[str, ...],
        heads: int,
        places: Sequence[tuple[str, str]],
    ) -> None:
        self.expression, self.reductions, self.heads = expression, reductions, heads
        self.places = places
        self._key: Any = None
        self._is_deterministic = False

    def __call__(self, graph: Graph, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        product: Product | None = None
        if self._is_deterministic is _is_deterministic():
            product = graph._products.get(self._key)
        if product is None:
            given: dict[str, Value] = {
                name: (place, tensor) for (name, place), tensor in zip(self.places, tensors)
            }
            product, _, _ = prepare(
                graph, self.expression, self.reductions, self.heads, False, given, False, False
            )
            self._key, self._is_deterministic = product.key, product.deterministic
        return product.compute(graph, tensors, {})


# ---- walks -----------------------------------------------------------------------------


class _Walk:
    """One walk over a graph or its transpose, with the order of its operands and results."""

    __slots__ = (
        "_is_empty",
        "_likes",
        "_nowhere",
        "_zeros",
        "heads",
        "kind",
        "operands",
        "request",
        "results",
        "values",
    )

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
        # Of each result: whether it is of edges, of n columns, and has positions. A result of rows
        # without n columns is the score.
        self.results = tuple(
            (
                r.place == lib.WLM_PLACE_EDGE,
                r.width == lib.WLM_WIDTH_N,
                request.argmax and r.reduce in (lib.WLM_MAX, lib.WLM_MIN),
            )
            for r in (table.result[i] for i in range(table.results))
        )
        self.kind: KeptPlan | OnceKind | None = None
        self._is_empty = request.n == 0
        self._zeros = [0.0] * len(names)
        self._likes: list[Tensor] | None = None  # of a kept plan, whose graph is always the same
        self._nowhere: tuple[Maybe, ...] = ()

    def run(
        self, graph: Graph, given: dict[str, Tensor], numbers: dict[str, float]
    ) -> tuple[list[Tensor], Sequence[Maybe]]:
        """The results, and their positions, from operands in CSR order."""
        kind = self.kind
        if kind is None:
            kind = self.kind = graph.kind(self.request)
        plan = kind.of(graph)
        made, positions = self._empty(graph, plan)
        if self._is_empty:
            return [result.zero_() for result in made], positions
        addresses = [len(made)]
        for result, where in zip(made, positions):
            addresses += result.data_ptr(), 0 if where is None else where.data_ptr()
        held = []  # copies live until the kernel is enqueued
        values = given["a"].contiguous() if self.values and "a" in given else None
        operands = [len(self.operands), 0 if values is None else values.data_ptr()]
        for name in self.operands:
            tensor = given.get(name)
            apart = 0
            if tensor is None:
                operands += 0, 0
                continue
            if not tensor.is_contiguous():
                tensor, apart = rows_apart(tensor)
                held.append(tensor)
            operands += tensor.data_ptr(), apart
        scalars, seed = self._zeros, 0
        if numbers:
            scalars = [numbers.get(name, 0.0) for name in self.operands]
            seed = int(numbers.get(SEED, 0))
        size, index = plan.workspace, plan.index
        work = torch.empty(size, dtype=torch.uint8, device=plan.device) if size else None
        status = lib.warploom_message(
            plan.call, operands, scalars, addresses, seed,
            0 if work is None else work.data_ptr(), size, raw_stream(index) if index >= 0 else 0,
        )  # fmt: skip
        if status:
            fail(status)
        return made, positions

    def _empty(self, graph: Graph, plan: Launcher) -> tuple[list[Tensor], Sequence[Maybe]]:
        """Memory for the results and for their positions."""
        if self._likes is not None:
            return [torch.empty_like(like) for like in self._likes], self._nowhere
        request = self.request
        device = graph.device
        made: list[Tensor] = []
        positions: list[Maybe] = []
        for of_edges, is_wide, has_positions in self.results:
            shape, dtype = plan.shape, request.dtype
            if of_edges:
                shape = (graph.nnz, *(request.width if is_wide else self.heads))
            elif not is_wide:
                shape, dtype = (shape[0], request.heads), accumulator(dtype)
            made.append(torch.empty(shape, dtype=dtype, device=device))
            where = None
            if has_positions:
                where = torch.empty(shape, dtype=request.positions, device=device)
            positions.append(where)
        if plan.like is not None and not any(has for _, _, has in self.results):
            self._nowhere = tuple(positions)
            # Of the shapes and types of results, but without their memory.
            self._likes = [element(result.dtype, device).expand(result.shape) for result in made]
        return made, positions


class Kept(NamedTuple):
    """What a forward pass keeps for the gradients besides operands."""

    positions: Sequence[Maybe]  # of the winners of each result of the walk
    mean: Maybe  # of which "var" and "std" are made
    root: Maybe  # the result "std"
    weighed: Mapping[int, Maybe]  # results of the walk, as Product.weighed says


class _Gradients(NamedTuple):
    """One walk that gives the gradients by some operands."""

    walk: _Walk
    by: tuple[int, ...]  # of the operands
    upstream: tuple[tuple[str, str, int], ...]  # name, its letter in the text, result


class Product:
    """A checked message of a graph, or of all graphs that are used once."""

    __slots__ = (
        "_factors",
        "_gradients",
        "_has_winners",
        "_is_as_made",
        "_is_plain",
        "_of_edges",
        "_read",
        "_rearranged",
        "_walks",
        "deterministic",
        "has_own_values",
        "key",
        "mean",
        "names",
        "parts",
        "prod",
        "root",
        "tensors",
        "weighed",
    )

    def __init__(
        self, parts: Parts, has_own_values: bool, deterministic: bool, key: tuple[Any, ...]
    ) -> None:
        self.key = key  # among the products of a graph
        self.parts = parts
        self.has_own_values = has_own_values
        self.deterministic = deterministic
        self.tensors = tuple(o for o in parts.operands if o.is_tensor)
        self._rearranged = tuple(o for o in self.tensors if o.place in ("edge", "all"))
        self._of_edges = [(at, o.name) for at, o in enumerate(self.tensors) if o.place == "edge"]
        self._has_winners = any(kind in ("max", "min") for kind, _ in parts.results)
        self._is_as_made = parts.returned == tuple(range(len(parts.composed)))
        special = {*COMPOSED, *OF_EDGES, "softmax"}
        self._is_plain = special.isdisjoint(kind for kind, _, _ in parts.composed)
        self.names = tuple(o.name for o in self.tensors)
        # Among the results of the walk, the mean of which "var" and "std" are made; "std" among
        # those that are composed.
        kinds = [kind for kind, _, _ in parts.composed]
        self.mean = next((at for kind, at, _ in parts.composed if kind in COMPOSED), None)
        self.root = kinds.index("std") if "std" in kinds else None
        of_walk = [kind for kind, _ in parts.results]
        self.prod = of_walk.index("prod") if "prod" in of_walk else None
        # What gradients of "softmax" read: the log of the sums and each "softmax".
        self.weighed = [at for at, kind in enumerate(of_walk) if kind in ("score", "softmax")]
        self._read: dict[Any, list[str]] = {}
        self._walks: dict[tuple[bool, bool], _Walk] = {}
        self._gradients: dict[Any, tuple[_Gradients, ...]] = {}
        self._factors: _Walk | None = None  # for gradients of the result "prod"

    def _request(self, graph: Graph, text: str) -> Request:
        parts = self.parts
        positions = torch.int32 if graph.nnz < 2**31 else torch.int64
        return Request(
            parts.width, parts.dtype, parts.values, parts.heads,
            deterministic=self.deterministic, custom=text, positions=positions,
        )  # fmt: skip

    def walk(self, graph: Graph, argmax: bool) -> _Walk:
        """The walk that gives the results, and for gradients the positions of winners."""
        argmax = argmax and self._has_winners
        key = argmax, graph.nnz < 2**31
        walk = self._walks.get(key)
        if walk is None:
            request = self._request(graph, self.parts.text())._replace(argmax=argmax)
            walk = self._walks[key] = _Walk(request)
        return walk

    def _without_zeros(self, graph: Graph, at: int) -> _Walk:
        """The walk that gives the product of the messages that are not 0, and how many are, of the
        result "prod"."""
        walk = self._factors
        if walk is None:
            text = self.parts.results[at][1]
            results = ("prod", f"({text})==0?1:({text})"), ("sum", f"({text})==0?1:0")
            request = self._request(graph, self.parts._replace(results=results).text())
            walk = self._factors = _Walk(request)
        return walk

    def kept(self, graph: Graph, numbers: dict[str, float]) -> Maybe:
        """What dropout multiplies the weight of each edge and head by, (edges, heads) in CSR order;
        None without dropout."""
        if KEPT not in numbers:
            return None
        request = self._request(graph, f"edge={KEPT}")
        heads = self.parts.heads
        request = request._replace(width=(heads,), heads=heads, dtype=accumulator(request.dtype))
        return _Walk(request).run(graph, {}, numbers)[0][0]

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

    def read_by_gradients(self, graph: Graph, needs: tuple[bool, ...]) -> list[str]:
        """The operands that the gradients read."""
        names = self._read.get(needs)
        if names is None:
            walks = self.gradients(graph, needs, (True,) * len(self.parts.results))
            read = {name for gradients in walks for name in gradients.walk.operands}
            names = self._read[needs] = [name for name in self.names if name in read]
        return names

    def _make_gradients(
        self, graph: Graph, needs: tuple[bool, ...], present: tuple[bool, ...]
    ) -> tuple[_Gradients, ...]:
        parts = self.parts
        results = parts.chosen(present)
        used = parts.uses(results)
        tensors = self.tensors
        wanted = [i for i, o in enumerate(tensors) if needs[i] and o.name in used]
        sides: dict[str, list[int]] = {"row": [], "column": [], "edge": [], "all": []}
        for i in wanted:
            sides[tensors[i].place].append(i)
        if sides["all"]:
            name = tensors[sides["all"][0]].name
            refuse(f"operand {name} of all edges requires a gradient, which is not supported")
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
            found = re.fullmatch(r"(d+|w+|p+|z+|c+|l+)(\d+)", name)
            if found and name not in self.names:
                upstream.append((name, name[0], results[int(found[2])]))
        return _Gradients(walk, by, tuple(upstream))

    def compute(
        self, graph: Graph, tensors: Sequence[Tensor], numbers: dict[str, float]
    ) -> tuple[Tensor, ...]:
        """The results that `reduce` asks for; differentiable."""
        needs = tuple([t.requires_grad for t in tensors]) if torch.is_grad_enabled() else ()
        made: Any
        if True in needs:
            apply = _Message.apply if is_transformed() else _apply
            anchors = {}
            for at, name in self._of_edges:
                if needs[at]:
                    anchors[name] = _message_second.anchor(tensors[at])
            made = apply((graph, self, numbers, needs, anchors), *tensors)
        else:
            given = self.in_csr_order(graph, dict(zip(self.names, tensors)))
            made, _ = self.walk(graph, False).run(graph, given, numbers)
            made = self.compose(graph, made)
        return tuple(made if self._is_as_made else [made[at] for at in self.parts.returned])

    def backward(
        self,
        graph: Graph,
        given: dict[str, Tensor],
        numbers: dict[str, float],
        needs: tuple[bool, ...],
        upstream: Sequence[Maybe],
        kept: Kept,
        likes: Sequence[tuple[torch.Size, torch.dtype]],
    ) -> list[Maybe]:
        """The gradients by the operands, of these shapes and types; None where there is none.

        given: the operands that `read_by_gradients` names, in CSR order.
        """
        found: list[Maybe] = [None] * len(likes)
        by_results = self.decompose(graph, upstream, kept.mean, kept.root)
        present = tuple([gradient is not None for gradient in by_results])
        if True not in present:
            return found
        walks = self.gradients(graph, needs, present)
        known: dict[str, Any] = {
            "d": by_results, "w": kept.positions, "c": kept.weighed, "l": kept.weighed
        }  # fmt: skip
        if self.prod is not None and any(
            part[1] == "p" for walk in walks for part in walk.upstream
        ):
            parts = self._without_zeros(graph, self.prod).run(graph, given, numbers)[0]
            known["p"], known["z"] = ([part] * len(by_results) for part in parts)
        for gradients in walks:
            for name, letter, at in gradients.upstream:
                given[name] = known[letter][at]
            made, _ = gradients.walk.run(graph, given, numbers)
            for at, gradient in zip(gradients.by, made):
                shape, dtype = likes[at]
                gradient = self._narrowed(graph, at, gradient, shape)
                found[at] = gradient if gradient.dtype == dtype else gradient.to(dtype)
        return found

    def in_csr_order(
        self, graph: Graph, given: dict[str, Tensor], are_ordered: bool = False
    ) -> dict[str, Tensor]:
        """Bring those of these operands that are of edges into CSR order, if they are not."""
        for o in self._rearranged:
            if o.name not in given:
                continue
            tensor = given[o.name]
            if o.place == "all":
                given[o.name] = tensor.contiguous()
                continue
            if not are_ordered and (o.name != "a" or not self.has_own_values):
                order = graph.edge_order()
                tensor = tensor if order is None else graph.order_edges(tensor, order)
            if o.name == "a" and o.width == "1":  # the library has a number for each head
                tensor = tensor.reshape(-1, 1).expand(-1, self.parts.heads).contiguous()
            given[o.name] = tensor
        return given

    def compose(self, graph: Graph, made: Sequence[Tensor]) -> list[Tensor]:
        """What is returned, of the results of the walk; of edges in the order of the edge_index."""
        if self._is_plain:
            return list(made)
        found = []
        for kind, at, square in self.parts.composed:
            result = made[at]
            if kind in COMPOSED:
                result = torch.addcmul(made[square], result, result, value=-1)
            elif kind in OF_EDGES:
                result = _to_user(graph, result)
            if kind == "std":
                torch.threshold_(result, LEAST_VARIANCE, 0.0).sqrt_()
            found.append(result)
        return found

    def decompose(
        self,
        graph: Graph,
        upstream: Sequence[Maybe],
        mean: Maybe,
        root: Maybe,
    ) -> list[Maybe]:
        """The gradients by the results of the walk from those by what was returned."""
        found: list[Maybe] = [None] * len(self.parts.results)
        composed = self.parts.composed
        if self._is_plain and len(composed) == 1:
            found, composed = [upstream[0]], ()
        for (kind, at, square), gradient in zip(composed, upstream):
            if gradient is None:
                continue
            if kind in COMPOSED:
                # With v = square - mean * mean: dv = 1 of "var", 1 / (2 root) of "std".
                assert mean is not None
                twice = 2 * gradient
                if kind == "std":
                    assert root is not None
                    twice = torch.ops.aten.threshold_backward(gradient / root, root, 0.0)
                found[square] = _sum(found[square], twice * 0.5)
                old = found[at]
                found[at] = (
                    (twice * mean).neg_()
                    if old is None
                    else torch.addcmul(old, twice, mean, value=-1)
                )
                continue
            if kind in OF_EDGES:
                order = graph.edge_order()
                gradient = gradient if order is None else gradient.index_select(0, order)
            found[at] = _sum(found[at], gradient)
        # Copied once for all walks, if it must be.
        return [
            gradient if gradient is None or gradient.is_contiguous() else rows_apart(gradient)[0]
            for gradient in found
        ]

    def _narrowed(self, graph: Graph, at: int, gradient: Tensor, like: torch.Size) -> Tensor:
        """The gradient by an operand, of its shape, from what the walk gave."""
        operand = self.tensors[at]
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
        return gradient if gradient.shape == like else gradient.reshape(like)

    def _n(self) -> int:
        return columns_of(self.parts.width)


def _to_user(graph: Graph, of_edges: Tensor) -> Tensor:
    places = graph.edge_places()
    return of_edges if places is None else of_edges.index_select(0, places)


def _sum(first: Maybe, second: Tensor) -> Tensor:
    return second if first is None else first + second


class _Message(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, state: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        graph, product, numbers, needs, _ = state
        ctx.names = product.read_by_gradients(graph, needs)
        given = product.in_csr_order(graph, dict(zip(product.names, tensors)))
        made, positions = product.walk(graph, True).run(graph, given, numbers)
        results = product.compose(graph, made)
        ctx.state = state
        ctx.likes = [(tensor.shape, tensor.dtype) for tensor in tensors]
        ctx.set_materialize_grads(False)
        operands = [given[name] for name in ctx.names]
        mean = None if product.mean is None else made[product.mean]
        root = None if product.root is None else results[product.root]
        weighed = [made[at] for at in product.weighed] if product.weighed else ()
        ctx.save_for_backward(*operands, *positions, *weighed, mean, root)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *upstream: Maybe) -> tuple[Maybe, ...]:
        graph, product, numbers, needs, anchors = ctx.state
        saved = ctx.saved_tensors
        given = dict(zip(ctx.names, saved))
        *positions, mean, root = saved[len(given) :]
        count = len(product.parts.results)
        weighed = dict(zip(product.weighed, positions[count:]))
        if torch.is_grad_enabled():
            call = _message_second.Call(
                graph, product.parts, product.tensors, needs, given, anchors, numbers, positions,
                ctx.likes, product.has_own_values, product.kept(graph, numbers),
            )  # fmt: skip
            return (None, *_message_second.gradients(call, upstream))
        kept = Kept(positions, mean, root, weighed)
        return (None, *product.backward(graph, given, numbers, needs, upstream, kept, ctx.likes))


_apply = quick_apply(_Message)
