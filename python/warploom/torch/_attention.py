"""Attention over the edges of a graph: softmax and weighted sum in one pass.

Forward, nothing of size edges x heads is written; each row's largest score is kept, and 1 / the sum
of exp(score - largest), for the two as one number would lose the weights of large scores. Backward,
one pass over the transpose makes the weights again from both and gives the gradients of b,
of the edges' terms, and of what the score reads of columns. What it reads of rows gets its gradient
from those of the scores, by their sum (gat) or a product with k (dot), or from a pass over the
graph that makes the weights again (gatv2, and dot where the gradients of scores would be large).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from warploom import _arguments
from warploom.torch import _eager
from warploom.torch._edges import EdgeList, Maybe, Needs, Size, Tensor
from warploom.torch._graph import Graph, need_graph, need_tensor
from warploom.torch._internals import any_autocast
from warploom.torch._message_walks import Walk
from warploom.torch._ops import Gradients, Likes, Operation, Product, Shape
from warploom.torch._plan import (
    DENSE_TYPES,
    SCORES,
    Launcher,
    Request,
    Steps,
    accumulator,
    edge_shape,
    element,
    side_by_side,
)

# Whether `attention` computes its scores in the pass of the softmax where it can: None = by
# `is_fast`. Measurements set it.
fused: bool | None = None


class Scalars(NamedTuple):
    """The numbers of a call."""

    factor: float  # the slope of leaky_relu, or the scale of products
    dropout: float
    seed: int | None  # None: an op over a list of edges draws one


def gat(
    graph: Graph,
    b: Tensor,
    left: Tensor,
    right: Tensor,
    values: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * b[k, h], where
    score[p, h] = leaky_relu(left[i, h] + right[k, h] + values[p, h]); the attention of GATConv.
    Differentiable in b, left, right, values and bias.

    b: (cols, heads, features), float32, float16, bfloat16 or float64; (cols, n) is one head.
    left: (rows, heads), right: (cols, heads). Scores and sums are in float32, or in float64 where
        b is float64.
    values: (nnz, heads) in CSR order, of b's type, or float32 beside 16-bit types; None = 0. A
        value of -inf leaves the edge out.
    bias: (heads, features), added to each row of C in b's type; None = 0. Without gradients that is
        part of the same pass.
    slope: of leaky_relu, for negative arguments.
    dropout: the share of weights that are left out at random, after the softmax; the others count
        1 / (1 - dropout) times as much. `seed` says which; None = a new one for each call, from
        torch's generator of the CPU. A CUDA graph repeats the seed that it captured.

    Returns (rows, heads, features) of b's type. A row without edges, or with -inf for all of them,
    gives 0. The result and its gradients have the same bits every time. Under autocast b is
    converted to autocast's type. Raises TypeError or ValueError that name the argument.
    """
    scalars = _scalars(graph, "slope", slope, dropout, seed)
    return _attend("gat", graph, b, left, right, values, scalars, bias)


def gatv2(
    graph: Graph,
    b: Tensor,
    x: Tensor,
    att: Tensor,
    values: Tensor | None = None,
    *,
    edges: Tensor | None = None,
    bias: Tensor | None = None,
    slope: float = 0.2,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * b[k, h], where
    score[p, h] = <att[h], leaky_relu(x[i, h] + b[k, h])> + values[p, h]; the attention of
    GATv2Conv. Differentiable in b, x, att, values and bias.

    b: (cols, heads, features), x: (rows, heads, features), att: (heads, features); x is converted
        to b's type. Two dimensions of b and x are one head.
    edges: (nnz, heads, features) in CSR order, of b's type: features of edges, added to x[i, h] +
        b[k, h]. PyTorch computes the scores then.
    values, bias, slope, dropout, seed, and what is returned: as of `gat`.
    """
    scalars = _scalars(graph, "slope", slope, dropout, seed)
    if edges is None:
        return _attend("gatv2", graph, b, x, att, values, scalars, bias)
    need_graph(graph)
    need_tensor("b", b)
    b = _eager.autocast(b)
    _check_operand("x", x, graph, (graph.rows, *b.shape[1:]))
    _check_operand("att", att, graph, tuple(b.shape[1:]))
    _check_operand("edges", edges, graph, (graph.nnz, *b.shape[1:]))
    x, att = x.to(b.dtype), att.to(accumulator(b.dtype))
    z = x.index_select(0, graph.row()) + b.index_select(0, graph.colind) + edges
    scores = torch.linalg.vecdot(torch.nn.functional.leaky_relu(z, slope).to(att.dtype), att)
    return _attend("edge", graph, b, None, None, _add(scores, values), scalars, bias)


def attention(
    graph: Graph,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    values: Tensor | None = None,
    *,
    edges: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
) -> Tensor:
    """C[i, h] = sum over the edges p = (i, k) of row i of softmax_p(score[p, h]) * v[k, h], where
    score[p, h] = scale * <q[i, h], k[k, h]> + values[p, h]; the attention of TransformerConv
    and of sparse transformers. Differentiable in q, k, v and values.

    q: (rows, heads, features), k: (cols, heads, features), v: (cols, heads, other features).
    values: (nnz, heads) in CSR order; None = 0.
    edges: (nnz, heads, features) in CSR order: features of edges, added to k[k, h] and v[k, h].
    scale: None = 1 / sqrt(features).
    dropout, seed: as of `gat`.

    Where q, k and v have one type and as many features, a power of two up to 256, and there are no
    `edges`, all is one pass. Otherwise the products of rows are written for each edge and head, in
    float32 (float64), and softmax and sum are one pass. Returns (rows, heads, other features) of
    v's type.
    """
    need_graph(graph)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if not isinstance(tensor, Tensor) or tensor.dim() != 3:
            raise ValueError(f"warploom: {name}: the shape (nodes, heads, features) is needed")
        if tensor.dtype not in DENSE_TYPES:
            raise TypeError(f"warploom: {name}: the type {tensor.dtype} is not supported")
    if values is not None:
        one_head = (graph.nnz,) if v.shape[1] == 1 else ()
        _check_operand("values", values, graph, (graph.nnz, v.shape[1]), one_head)
    v = _eager.autocast(v)
    wide = accumulator(v.dtype)
    scalars = _scalars(
        graph, "scale", max(q.shape[2], 1) ** -0.5 if scale is None else scale, dropout, seed
    )
    alike = q.dtype == k.dtype == v.dtype and q.shape[1:] == k.shape[1:] == v.shape[1:]
    if alike and edges is None and (is_fast(v.shape[2]) if fused is None else fused):
        if values is not None:
            values = values.to(wide).reshape(edge_shape(graph.nnz, v.shape[1]))
        return _attend("dot", graph, v, q, k, values, scalars)
    _check_operand("v", v, graph, (graph.cols, *v.shape[1:]))
    _check_operand("q", q, graph, (graph.rows, v.shape[1], q.shape[2]))
    _check_operand("k", k, graph, (graph.cols, *q.shape[1:]))
    scale, scalars = scalars.factor, scalars._replace(factor=0.2)
    with torch.autocast(v.device.type, enabled=False):
        q = q.to(wide) * scale
        scores = _add(_eager.sddmm(graph, q, k.to(wide)), values)
        if edges is None:
            return _attend("edge", graph, v, None, None, scores, scalars)
        _check_operand("edges", edges, graph, (graph.nnz, *v.shape[1:]))
        incidence = graph.incidence()
        scores = scores + _eager.sddmm(incidence, q, edges.to(wide))
        # Both have the same weights: dropout depends on the position of an edge in its graph.
        of_edges = _attend("edge", incidence, edges.to(v.dtype), None, None, scores, scalars)
        return _attend("edge", graph, v, None, None, scores, scalars) + of_edges


def _add(scores: Tensor, values: Maybe) -> Tensor:
    return scores if values is None else scores + values.to(scores.dtype).reshape(scores.shape)


def is_fast(features: int) -> bool:
    """Whether the lanes of a head share its score, so that none loads pieces of a row again."""
    return features & (features - 1) == 0 and 0 < features <= 256


def _scalars(graph: Graph, name: str, factor: Any, dropout: Any, seed: int | None) -> Scalars:
    """The numbers of a call; `name` is that of the factor."""
    if type(factor) is float and type(dropout) is float and dropout == 0.0:
        return Scalars(factor, 0.0, 0)
    if not torch.compiler.is_compiling():
        factor = _arguments.number(name, factor)
    if isinstance(graph, EdgeList):
        return Scalars(factor, *_eager.check_dropout(dropout, seed))
    return Scalars(factor, *_eager.draw_dropout(dropout, seed))


def _check_operand(
    name: str, term: Tensor, graph: Graph, shape: tuple[int, ...], also: tuple[int, ...] = ()
) -> None:
    need_tensor(name, term)
    if term.device != graph.device:
        raise ValueError(f"warploom: {name} is on {term.device}, the graph on {graph.device}")
    if tuple(term.shape) not in (shape, also or shape):
        raise ValueError(f"warploom: {name}: the shape is {tuple(term.shape)}, {shape} is needed")


def needs_gradient(*tensors: Maybe) -> bool:
    """Whether autograd records an operation on these tensors."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def _attend(
    score: str,
    graph: Graph,
    b: Tensor,
    first: Maybe,
    second: Maybe,
    values: Maybe,
    scalars: Scalars,
    bias: Maybe = None,
) -> Tensor:
    """Attention with a score of `first` and `second`; see _OPERANDS."""
    if not isinstance(graph, Graph):
        need_graph(graph)
    if not isinstance(b, Tensor):
        need_tensor("b", b)
    compute: Any = _OPERATIONS[score]
    if torch.compiler.is_compiling():
        b = _eager.autocast(b)
        compute = compute.dispatch
    elif any_autocast():
        b = _eager.autocast(b)
    dtype = b.dtype
    wide = dtype if dtype is torch.float32 else accumulator(dtype)
    if score == "gatv2":
        first, second = _convert("x", first, b.dtype), _convert("att", second, wide)
    elif score == "gat":
        first, second = _convert("left", first, wide), _convert("right", second, wide)
    options = (scalars.dropout > 0,)
    if bias is None:
        return compute(graph, (b, first, second, values, None), options, scalars)[0]  # type: ignore[no-any-return]
    bias = _convert("bias", bias, b.dtype)
    if not needs_gradient(b, first, second, values, bias):
        return compute(graph, (b, first, second, values, bias), options, scalars)[0]  # type: ignore[no-any-return]
    # The gradient needs the result without it.
    _check_operand("bias", bias, graph, tuple(b.shape[1:]))
    return compute(graph, (b, first, second, values, None), options, scalars)[0] + bias  # type: ignore[no-any-return]


def _convert(name: str, tensor: Any, dtype: torch.dtype) -> Tensor:
    if not isinstance(tensor, Tensor):
        need_tensor(name, tensor)
    if tensor.dtype is dtype:
        return tensor  # type: ignore[no-any-return]
    if tensor.dtype not in DENSE_TYPES:
        raise TypeError(f"warploom: {name}: the type {tensor.dtype} is not supported")
    return tensor.to(dtype)  # type: ignore[no-any-return]


class Attention(Product):
    """Operands b, first, second, values and bias; a bias takes no gradient."""

    __slots__ = ("backward", "code", "delta", "forward", "n", "score", "wide")
    keeps_results = True

    def __init__(self, score: str, operands: Likes, drops: bool) -> None:
        super().__init__()
        b, _, _, values, bias = operands
        assert b is not None
        self.score = score
        self.code = SCORES[score]
        self.forward: tuple[Launcher, Steps, Tensor] | None = None
        self.backward: dict[Needs, _Backward] = {}
        self.delta: Walk | None = None
        self.wide = accumulator(b.dtype)
        self.request = Request(
            tuple(b.shape[1:]),
            b.dtype,
            None if values is None else values.dtype,
            max(b.shape[1], 1) if len(b.shape) == 3 else 1,
            attention=score,
            dropout=drops,
            bias=bias is not None,
        )
        self.n = self.request.n

    def request_of(self, graph: Graph, name: str) -> Request:
        """See Product. The passes, and the plans that make gradients by `first` from scores'."""
        request, wide, heads = self.request, self.wide, self.request.heads
        if name == "forward":
            return request
        if name == "transposed":
            return request._replace(transpose=True)
        if name == "rows":
            return request._replace(attention=self.score + "_rows")
        if name == "sums":
            return Request((heads,), wide, wide, heads, "sum", "copy_a", True)
        return Request(request.width, request.dtype, wide, heads, deterministic=True)

    def _terms(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """b, values, and what the score reads, as the library takes them; addresses and the
        distance of rows of left and right."""
        b, first, second, values = operands[:4]
        b, apart, kind = b.contiguous(), 0, self.score
        if kind == "gat":
            first, second, apart = side_by_side(first, second)
        elif kind != "edge":
            first, second = first.contiguous(), second.contiguous()
        address = values_address = second_address = 0
        if first is not None:
            address, second_address = first.data_ptr(), second.data_ptr()
        if values is not None:
            values = values.contiguous()
            values_address = values.data_ptr()
        kept = b, first, second, values
        return kept, b.data_ptr(), values_address, address, second_address, apart

    def _forward(self, graph: Graph) -> tuple[Launcher, Steps, Tensor]:
        """The plan, and what has the shape and type of what is kept of the softmax."""
        plan = self.plan(graph, "forward")
        like = element(self.wide, graph.device).expand(graph.rows, self.request.heads, 2)
        return plan, Steps([plan]), like

    def run(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[Tensor, ...]:
        """See Product: the result and what is kept of the softmax."""
        found = self.forward
        if found is None:
            found = self._forward(graph)
            if not graph.once:
                self.forward = found
        plan, steps, like = found
        bias = operands[4]
        kept, b, values, first, second, apart = self._terms(operands)
        c = plan.empty(kept[0])
        made: tuple[Tensor, ...] = (c,)
        place = 0
        if True in needs:
            softmax = torch.empty_like(like)
            made, place = (c, softmax), softmax.data_ptr()
        if self.n:
            bias = None if bias is None else bias.contiguous()
            bias_address = 0 if bias is None else bias.data_ptr()
            steps.run(
                numbers,
                [b, c.data_ptr(), 0, values, first, second, place, 0, 0, 0, bias_address, apart,
                 self.code, 0],
            )  # fmt: skip
        return made

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        rows, request = size.rows, self.request
        made: list[Shape] = [((rows, *request.width), request.dtype)]
        return [*made, ((rows, request.heads, 2), self.wide)] if True in needs else made

    def gradients(
        self, graph: Graph, x: Tensor, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients:
        b, first, second, values, _, c, softmax = kept
        if self.n == 0 or graph.nnz == 0:
            return (*(None if t is None else torch.zeros_like(t) for t in kept[:4]), None)
        x = x.contiguous()
        plans = self.backward.get(needs)
        if plans is None:
            plans = _Backward(self, graph, needs)
            if not graph.once:
                self.backward[needs] = plans
        # What is read lives until all steps are enqueued.
        _read, at_b, at_values, at_first, at_second, apart = self._terms(kept)
        at_x, at_softmax = x.data_ptr(), softmax.data_ptr()
        rest = apart, self.code, 0
        arrays: list[int] = []
        delta = self._row_products(graph, x, c)
        at_delta = delta.data_ptr()
        db = dfirst = dsecond = dvalues = sums = None
        dscores: Any = None
        parts: Any = None
        at_scores = at_columns = at_parts = 0
        first_steps, last_steps = plans.steps
        if plans.by_rows:
            dfirst = _empty(first)
            if plans.of_att:
                # The terms of att's gradient take as much memory as db, in which they lie until it
                # is written.
                parts = db = _empty(b)
                if plans.is_apart:
                    db, parts = None, _empty(first, self.wide)
                at_parts = parts.data_ptr()
            arrays += (
                at_b, dfirst.data_ptr(), at_x, at_values, at_first, at_second, at_softmax, at_delta,
                0, at_parts, 0, *rest,
            )  # fmt: skip
            if plans.blocks is not None:
                sums = torch.empty_like(plans.blocks)
                arrays += at_parts, sums.data_ptr(), 0, 0, 0, 0, 0, *_RUN
        if first_steps is not None:
            first_steps.run(numbers, arrays)
            arrays = []
            if plans.of_att and plans.blocks is None:
                dsecond = parts.sum(0)
            parts = None
        if plans.by_columns:
            if db is None:
                db = _empty(b)
            if plans.of_columns:
                dsecond = _empty(second)
                at_columns = dsecond.data_ptr()
            if plans.keeps:
                shape = edge_shape(graph.nnz, self.request.heads)
                dscores = x.new_empty(shape, dtype=self.wide)
                at_scores = dscores.data_ptr()
            arrays += (
                at_b, db.data_ptr(), at_x, at_values, at_first, at_second, at_softmax, at_delta,
                at_scores, at_columns, 0, *rest,
            )  # fmt: skip
            if plans.by_scores:
                dfirst = _empty(first)
                # The sum of the scores' gradients, or their product with k.
                is_sum = self.score == "gat"
                at_b = 0 if is_sum else at_second
                arrays += at_b, dfirst.data_ptr(), 0, at_scores, 0, 0, 0, *_RUN[:-1], 2 - is_sum
        if last_steps is not None:
            last_steps.run(numbers, arrays)
        if sums is not None:
            dsecond = sums.sum(0)
        if needs[3]:
            dvalues = dscores.to(values.dtype).reshape(values.shape)
        return db if plans.by_columns else None, dfirst, dsecond, dvalues, None

    def _keeps_scores(self, graph: Graph, needs: Needs) -> bool:
        """Whether the gradients of scores are stored, which that of q is otherwise made without.

        For "dot" a product with them is faster, and they are stored where they take no more memory
        than C. For "gatv2" it is not.
        """
        if needs[3] or not needs[1] or self.score != "dot":
            return needs[3] or (needs[1] and self.score == "gat")
        request = self.request
        of_scores = graph.nnz * request.heads * self.wide.itemsize
        return of_scores <= graph.rows * self.n * request.dtype.itemsize

    def _row_products(self, graph: Graph, x: Tensor, c: Tensor) -> Tensor:
        """The product of x and c in each head, in an accumulator's type.

        A message adds up the columns of a head in the order of the attention kernels. So the
        product equals theirs where one edge has all the weight, and its score's gradient is 0.
        """
        walk, request = self.delta, self.request
        if walk is None:
            text = "edge_sum=x*b"
            walk = Walk(Request(request.width, self.wide, None, request.heads, custom=text))
            self.delta = walk
        if x.dtype is not self.wide:
            x, c = x.to(self.wide), c.to(self.wide)
        return walk.run(graph.diagonal(), {"x": x, "b": c}, {})[0][0]


class _Backward:
    """Which plans give the gradients of attention that are needed.

    by_rows: a pass over the graph gives the gradient of the first operand, and with `of_att` the
        terms of the second one's. `blocks`: what has the shape of their sums over 64 rows each;
        None: torch sums them. `is_apart`: whether they need memory besides db.
    by_columns: a pass over the transpose gives that of b, with `of_columns` that of the second
        operand, and with `keeps` those of the scores; with `by_scores` the first operand's comes
        from these.
    steps: the plans that run before db is allocated, and those that run afterwards.
    """

    def __init__(self, product: Attention, graph: Graph, needs: Needs) -> None:
        request, score, wide = product.request, product.score, product.wide
        self.keeps = product._keeps_scores(graph, needs)
        self.of_att = score == "gatv2" and needs[2]
        self.by_rows = self.of_att or (needs[1] and (score == "gatv2" or not self.keeps))
        self.of_columns = needs[2] and not self.of_att
        self.by_columns = needs[0] or self.of_columns or self.keeps
        self.by_scores = needs[1] and not self.by_rows
        self.blocks: Maybe = None
        plans: list[Launcher] = []
        if self.by_rows:
            plans.append(product.plan(graph, "rows"))
        fits = request.dtype is wide and graph.cols >= graph.rows
        self.is_apart = not (fits and self.by_columns and not graph.once)
        if self.of_att and not graph.once:
            one = Request(request.width, wide, deterministic=True)
            plan = graph.blocks().plan(one)
            plans.append(plan)
            self.blocks = plan.like
        early: list[Launcher] = []
        if self.of_att and self.is_apart:
            early, plans = plans, []
        if self.by_columns:
            plans.append(product.plan(graph, "transposed"))
        if self.by_scores:
            plans.append(product.plan(graph, "sums" if score == "gat" else "product"))
        self.steps = Steps(early) if early else None, Steps(plans) if plans else None


_RUN = (0, 0, 0, 0, 0, 0, 1)  # the end of a step of warploom_run, without leading dimensions


def _empty(like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    return torch.empty_like(like, dtype=dtype, memory_format=torch.contiguous_format)


# What the score of attention reads besides b, which is v of "dot": names and attributes of Graph
# with the numbers of lines.
_OPERANDS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "gat": (("left", "rows"), ("right", "cols")),
    "gatv2": (("x", "rows"), ("att", None)),
    "dot": (("q", "rows"), ("k", "cols")),
    "edge": (("left", None), ("right", None)),
}


def _check(score: str, graph: Graph, operands: Sequence[Any], drops: bool) -> None:
    """Raise TypeError or ValueError for wrong operands."""
    b, *terms, values, bias = operands
    _eager.check_dense("v" if score == "dot" else "b", b, graph, graph.cols)
    heads = b.shape[1] if b.dim() == 3 else 1
    for (name, place), term in zip(_OPERANDS[score], terms):
        if score == "edge":
            continue
        lines = () if place is None else (getattr(graph, place),)
        if score == "gat":
            _check_operand(name, term, graph, (*lines, heads), lines if heads == 1 else ())
        else:
            _check_operand(name, term, graph, (*lines, *b.shape[1:]))
    if bias is not None:
        _check_operand("bias", bias, graph, tuple(b.shape[1:]))
    if values is not None:
        graph._check_values(values)
        if (values.shape[1] if values.dim() == 2 else 1) != heads:
            raise ValueError(
                f"warploom: values: the shape is {tuple(values.shape)}, "
                f"({graph.nnz}, {heads}) is needed"
            )
        _eager.check_values_type(values, b)


_OPERATIONS = {
    score: Operation(
        "attend_" + score,
        ("cols", of_first, of_second, "nnz", None),
        partial(Attention, score),
        partial(_check, score),
        f"Tensor b, Tensor? {first}, Tensor? {second}, Tensor? values, Tensor? bias",
    )
    for score, ((first, of_first), (second, of_second)) in _OPERANDS.items()
}
