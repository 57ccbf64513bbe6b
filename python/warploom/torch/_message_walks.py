"""Walks over a graph that compute messages and their gradients.

The library reads an operation from a text that names its operands and results (warploom_message.h)
and derives the text of its gradients. One walk over the graph gives the gradients by all operands
of rows, one over the transpose those by all operands of columns; those of edges come with either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from warploom._library import check, fail, text
from warploom._native import ffi, lib
from warploom.torch import _message_second
from warploom.torch._edges import Maybe, Needs, Size, Tensor
from warploom.torch._graph import Graph
from warploom.torch._internals import raw_stream
from warploom.torch._message_parts import (
    COMPOSED,
    LEAST_VARIANCE,
    LINES,
    OF_EDGES,
    SEED,
    columns_of,
    describe,
)
from warploom.torch._message_text import KEPT, refuse
from warploom.torch._ops import Gradients, Likes, Product, Shape
from warploom.torch._plan import (
    KeptPlan,
    Launcher,
    OnceKind,
    Request,
    accumulator,
    edge_shape,
    element,
    problem,
    rows_apart,
)

_MOST_RESULTS = 6  # WLM_MAX_RESULTS
_LONGEST = 1023  # characters of wlm_problem.custom
_WON = ("max", "min")


class Walk:
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
        self, graph: Graph, given: dict[str, Maybe], numbers: dict[str, float]
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
        values = given.get("a") if self.values else None
        values = None if values is None else values.contiguous()
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
        plan.renew()
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
                shape, dtype = (shape[0], 2 * request.heads), accumulator(dtype)
            # A graph that is used once is not checked, and leaves out edges that lie outside.
            fill = torch.zeros if of_edges and graph.once else torch.empty
            made.append(fill(shape, dtype=dtype, device=device))
            where = None
            if has_positions:
                where = torch.empty(shape, dtype=request.positions, device=device)
            positions.append(where)
        if plan.like is not None and not any(has for _, _, has in self.results):
            self._nowhere = tuple(positions)
            # Of the shapes and types of results, but without their memory.
            self._likes = [element(result.dtype, device).expand(result.shape) for result in made]
        return made, positions


class _Gradients(NamedTuple):
    """One walk that gives the gradients by some operands."""

    walk: Walk
    by: tuple[int, ...]  # of the operands
    upstream: tuple[tuple[str, str, int], ...]  # name, its letter in the text, result


class Message(Product):
    """A message; its options are those of `_message.Options`.

    Behind the results, `run` gives what gradients read: the positions of the winners, the mean of
    which "var" and "std" are made, if it is no result, and of "softmax" the score: the largest
    one of each row and head, and 1 / the sum of exp(score - largest).
    """

    __slots__ = (
        "_extra", "_factors", "_gradients", "_has_own_mean", "_is_plain", "_likes", "_mean",
        "_prod", "_read", "_rearranged", "_reductions", "_scalars", "_walks", "_winners",
        "deterministic", "given", "names", "parts", "tensors",
    )  # fmt: skip

    is_listed = True
    keeps_results = True

    def __init__(
        self, operands: Likes, expression: str, reductions: tuple[str, ...], heads: int | None,
        places: tuple[tuple[str, str], ...], scalars: tuple[str, ...], transpose: bool,
        deterministic: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.results = len(reductions)
        self.parts = parts = describe(
            expression, reductions, heads, places, operands, scalars, transpose
        )
        self.deterministic = deterministic
        self._reductions, self._scalars = reductions, scalars
        self.tensors = tuple(o for o in parts.operands if o.is_tensor)
        self.names = tuple(o.name for o in self.tensors)
        self.given = [at for at, (_, place) in enumerate(places) if place == "edge"]
        lines = [LINES.get(o.place) for o in self.tensors]
        self._rearranged = [o for o in self.tensors if o.place == "all"]
        if parts.heads > 1:  # the library has a number for each head
            self._rearranged += [o for o in self.tensors if o.name == "a" and o.width == "1"]
        special = {*COMPOSED, *OF_EDGES, "softmax"}
        self._is_plain = special.isdisjoint(reductions)
        # Among the results of the walk: the mean of which "var" and "std" are made, "prod", and
        # those of which gradients read more than the gradient: positions of winners, the score, and
        # "softmax".
        self._mean = next((at for kind, at, _ in parts.composed if kind in COMPOSED), None)
        self._has_own_mean = self._mean is not None and "mean" not in reductions
        of_walk = [kind for kind, _ in parts.results]
        self._prod = of_walk.index("prod") if "prod" in of_walk else None
        self._extra = [at for at, kind in enumerate(of_walk) if kind in _WON]
        self._winners = len(self._extra)
        self._extra += [at for at, kind in enumerate(of_walk) if kind in ("score", "softmax")]
        self._read: dict[Any, list[bool]] = {}
        # The lines of each operand, the shape of a line, and the type.
        self._likes = [
            (line, tuple(one.shape if line is None else one.shape[1:]), one.dtype)
            for line, one in zip(lines, operands)
            if one is not None
        ]
        self._walks: dict[tuple[bool, bool], Walk] = {}
        self._gradients: dict[Any, tuple[_Gradients, ...]] = {}
        self._factors: Walk | None = None  # for gradients of the result "prod"

    def _request(self, graph: Graph | Size, text: str) -> Request:
        parts = self.parts
        positions = torch.int32 if graph.nnz < 2**31 else torch.int64
        return Request(
            parts.width, parts.dtype, parts.values, parts.heads,
            deterministic=self.deterministic, custom=text, positions=positions,
        )  # fmt: skip

    def _make_walk(self, graph: Graph, key: tuple[bool, bool]) -> Walk:
        """The walk that gives the results. key: whether also positions, and whether these are
        small."""
        request = self._request(graph, self.parts.text())._replace(argmax=key[0])
        walk = self._walks[key] = Walk(request)
        return walk

    def _without_zeros(self, graph: Graph, at: int) -> Walk:
        """The walk that gives the product of the messages that are not 0, and how many are, of the
        result "prod"."""
        walk = self._factors
        if walk is None:
            text = self.parts.results[at][1]
            results = ("prod", f"({text})==0?1:({text})"), ("sum", f"({text})==0?1:0")
            request = self._request(graph, self.parts._replace(results=results).text())
            walk = self._factors = Walk(request)
        return walk

    def _by_name(self, operands: Sequence[Maybe]) -> dict[str, Maybe]:
        """The operands as walks read them."""
        given = dict(zip(self.names, operands))
        for o in self._rearranged:
            one = given[o.name]
            if one is not None:
                is_wide = o.place == "all"
                one = one if is_wide else one.reshape(-1, 1).expand(-1, self.parts.heads)
                given[o.name] = one.contiguous()
        return given

    def run(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Sequence[Tensor]:
        given, known = self._by_name(operands), dict(zip(self._scalars, numbers))
        differentiates = True in needs
        key = differentiates and self._winners > 0, graph.nnz < 2**31
        walk = self._walks.get(key) or self._make_walk(graph, key)
        made, positions = walk.run(graph, given, known)
        results = made if self._is_plain else self._compose(graph, made)
        if not differentiates:
            return results
        if self._winners:
            results += [one for one in positions if one is not None]
        if self._has_own_mean:
            results.append(made[self._mean])  # type: ignore[index]
        if "softmax" in self._reductions:
            results.append(made[0])
        return results

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        parts, reductions = self.parts, self._reductions
        of_rows = size.rows, *parts.width
        of_edges = {
            "edge": (size.nnz, *parts.width), "edge_sum": edge_shape(size.nnz, parts.heads)
        }  # fmt: skip
        made: list[Shape] = [(of_edges.get(kind, of_rows), parts.dtype) for kind in reductions]
        if True not in needs:
            return made
        positions = torch.int32 if size.nnz < 2**31 else torch.int64
        made += [(of_rows, positions) for kind in reductions if kind in _WON]
        if self._has_own_mean:
            made.append((of_rows, parts.dtype))
        if "softmax" in reductions:
            made.append(((size.rows, 2 * parts.heads), accumulator(parts.dtype)))
        return made

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """See Product: the operands that gradients read, mean, root, and what `_extra` is of."""
        if True not in needs:
            return ()
        is_read = self._read.get(needs)
        if is_read is None:
            walks = self._gradient_walks(_NOWHERE, needs, (True,) * len(self.parts.results))
            read = {name for gradients in walks for name in gradients.walk.operands}
            is_read = self._read[needs] = [name in read for name in self.names]
        by, extra = dict(zip(self._reductions, made)), list(made[self.results :])
        if "softmax" in by:
            extra.append(by["softmax"])
        mean = None
        if self._mean is not None:
            mean = extra.pop(self._winners) if self._has_own_mean else by["mean"]
        if "softmax" not in by and "std" not in by and (mean is None or self._has_own_mean):
            operands = [one if read else None for one, read in zip(operands, is_read)]
        return *operands, mean, by.get("std"), *extra

    def rehearsals(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> Sequence[Callable[[], Any]]:
        """See Product: the forward walk and each one of the gradients, side by side."""
        found: list[Callable[[], Any]] = [partial(self.run, graph, operands, numbers, needs)]
        if True not in needs:
            return found
        made = [
            torch.zeros(shape, dtype=dtype, device=graph.device)
            for shape, dtype in self.outputs(graph, needs)  # type: ignore[arg-type]
        ]
        kept, upstream = self.kept(operands, made, needs), made[: self.results]
        for only in (slice(1), slice(1, None)):  # walks over rows and over columns
            found.append(partial(self.gradients, graph, upstream, kept, numbers, needs, only))
        return found

    def gradients(
        self, graph: Graph, x: Any, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs,
        only: slice = slice(None),
    ) -> Gradients:  # fmt: skip
        """See Product. only: which of the walks run that give the gradients."""
        count = len(self.names)
        mean, root, *extra = kept[count:]
        by_results = self._decompose(graph, x, mean, root)
        present = tuple([gradient is not None for gradient in by_results])
        found: list[Maybe] = [None] * count
        given, scalars = self._by_name(kept[:count]), dict(zip(self._scalars, numbers))
        walks = self._gradient_walks(graph, needs, present)[only]
        of_results = dict(zip(self._extra, extra))
        known: dict[str, Any] = {"d": by_results, "w": of_results, "c": of_results}
        known["l"] = known["s"] = of_results
        if self._prod is not None and any(
            part[1] == "p" for walk in walks for part in walk.upstream
        ):
            parts = self._without_zeros(graph, self._prod).run(graph, given, scalars)[0]
            known["p"], known["z"] = ([part] * len(by_results) for part in parts)
        for gradients in walks:
            for name, letter, at in gradients.upstream:
                given[name] = known[letter][at]
            made, _ = gradients.walk.run(graph, given, scalars)
            for at, by_operand in zip(gradients.by, made):
                found[at] = self._narrowed(graph, at, by_operand)
        for at, (gradient, is_needed) in enumerate(zip(found, needs)):
            if is_needed and gradient is None:
                shape, dtype = self._shapes(graph)[at]
                found[at] = torch.zeros(shape, dtype=dtype, device=graph.device)
        return found

    def differentiable(
        self, graph: Graph, x: Any, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients:
        count, scalars = len(self.names), dict(zip(self._scalars, numbers))
        _, _, *extra = kept[count:]
        call = _message_second.Call(
            graph, self.parts, self.tensors, needs, kept[:count], scalars,
            dict(zip(self._extra, extra)), self._shapes(graph), self._dropped(graph, scalars),
        )  # fmt: skip
        return _message_second.gradients(call, x)

    def _shapes(self, graph: Graph) -> list[Shape]:
        """Shapes and types of the operands."""
        return [
            (shape if line is None else (getattr(graph, line), *shape), dtype)
            for line, shape, dtype in self._likes
        ]

    def _dropped(self, graph: Graph, numbers: dict[str, float]) -> Maybe:
        """What dropout multiplies the weight of each edge and head by, (edges, heads) in CSR order;
        None without dropout."""
        if KEPT not in numbers:
            return None
        request = self._request(graph, f"edge={KEPT}")
        heads = self.parts.heads
        request = request._replace(width=(heads,), heads=heads, dtype=accumulator(request.dtype))
        return Walk(request).run(graph, {}, numbers)[0][0]

    def _gradient_walks(
        self, graph: Graph | Size, needs: Needs, present: tuple[bool, ...]
    ) -> tuple[_Gradients, ...]:
        """The walks for the gradients by the operands that are needed, of the results that have
        one."""
        key = needs, present, graph.nnz < 2**31
        found = self._gradients.get(key)
        if found is None:
            found = self._gradients[key] = self._make_gradients(graph, needs, present)
        return found

    def _make_gradients(
        self, graph: Graph | Size, needs: Needs, present: tuple[bool, ...]
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
        if len(custom) > _LONGEST:  # said in the forward pass, which asks what gradients read
            refuse(f"a gradient has {len(custom)} characters, at most {_LONGEST} are allowed")
        walk = Walk(request._replace(custom=custom, transpose=bool(gradient.transpose)))
        upstream = []
        for name in walk.operands:
            found = re.fullmatch(r"(d+|w+|p+|z+|c+|l+|s+)(\d+)", name)
            if found and name not in self.names:
                upstream.append((name, name[0], results[int(found[2])]))
        return _Gradients(walk, by, tuple(upstream))

    def _compose(self, graph: Graph, made: Sequence[Tensor]) -> list[Tensor]:
        """What is returned, of the results of the walk; of edges in the order of the edge_index."""
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

    def _decompose(
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

    def _narrowed(self, graph: Graph, at: int, gradient: Tensor) -> Tensor:
        """The gradient by an operand, of its shape and type, from what the walk gave."""
        operand, heads = self.tensors[at], self.parts.heads
        line, shape, dtype = self._likes[at]
        if operand.width != "n":
            n = columns_of(self.parts.width)
            if operand.place != "edge":
                parts = (heads, n // heads) if operand.width == "heads" else (n,)
                gradient = gradient.reshape(getattr(graph, str(line)), *parts).sum(-1)
            elif operand.width == "1" and heads > 1:
                gradient = gradient.sum(-1)
        if gradient.shape[1:] != shape:
            gradient = gradient.reshape(gradient.shape[0], *shape)
        return gradient if gradient.dtype == dtype else gradient.to(dtype)


_NOWHERE = Size(0, 0, 0, torch.int32)  # what gradients read is the same for all graphs


def _to_user(graph: Graph, of_edges: Tensor) -> Tensor:
    places = graph.edge_places()
    return of_edges if places is None else of_edges.index_select(0, places)


def _sum(first: Maybe, second: Tensor) -> Tensor:
    return second if first is None else first + second
