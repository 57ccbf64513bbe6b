"""Products in eager mode: autograd functions over the plans of a graph."""

from __future__ import annotations

from typing import Any

import torch

from warploom import _arguments
from warploom._problem import MESSAGES, NORMS, REDUCTIONS, SAMPLES
from warploom.torch import _gradients
from warploom.torch._graph import Graph, need_graph, need_tensor
from warploom.torch._internals import any_autocast, is_transformed, quick_apply
from warploom.torch._plan import (
    DENSE_TYPES,
    KeptPlan,
    OnceKind,
    Request,
    Sample,
    accumulator,
    edge_shape,
    how,
)


def autocast(tensor: torch.Tensor) -> torch.Tensor:
    """A dense operand in autocast's type, where autocast is on; float64 stays."""
    if (
        isinstance(tensor, torch.Tensor)
        and tensor.device.type in ("cpu", "cuda")
        and torch.is_autocast_enabled(tensor.device.type)
        and tensor.dtype != torch.float64
    ):
        return tensor.to(torch.get_autocast_dtype(tensor.device.type))
    return tensor


def draw_seed() -> int:
    """A seed above 0 from torch's generator of the CPU, which torch.manual_seed repeats."""
    return int(torch.randint(1, 2**62, ()))


def check_sample(sample: Any) -> None:
    """Raise TypeError or ValueError for a wrong sample."""
    if not isinstance(sample, Sample):
        raise TypeError(f"warploom: sample: a Sample is needed, not {type(sample).__name__}")
    names = str(sample.strategy), str(sample.norm)
    if names[0] not in SAMPLES or names[1] not in NORMS:
        raise ValueError(
            f"warploom: sample: strategy is one of {', '.join(SAMPLES)} and "
            f"norm one of {', '.join(NORMS)}, not '{names[0]}' and '{names[1]}'"
        )
    _arguments.integer("sample: width", sample.width)


def request_of(
    graph: Graph,
    b: torch.Tensor,
    values: torch.Tensor | None,
    reduce: str,
    message: str,
    sample: Sample | None,
    deterministic: bool,
) -> Request:
    """Check the arguments of a product and say what its plan needs."""
    for name, value, allowed in (("reduce", reduce, REDUCTIONS), ("message", message, MESSAGES)):
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(
                f"warploom: {name}: '{value}' is unknown, use one of {', '.join(allowed)}"
            )
    if sample is not None:
        check_sample(sample)
    check_dense("b", b, graph, graph.cols)
    heads = 1
    if values is not None:
        graph._check_values(values)
        halves = b.dtype in (torch.float16, torch.bfloat16)
        if values.dtype != b.dtype and not (halves and values.dtype == torch.float32):
            raise TypeError(
                f"warploom: values are {values.dtype}, and b is {b.dtype}; convert one of them"
            )
        heads = values.shape[1] if values.dim() == 2 else 1
        if heads != 1 and (b.dim() != 3 or b.shape[1] != heads):
            raise ValueError(
                f"warploom: b: the shape is {tuple(b.shape)}, and values with {heads} heads need "
                f"({graph.cols}, {heads}, features)"
            )
    return Request(
        tuple(b.shape[1:]),
        b.dtype,
        None if values is None else values.dtype,
        heads,
        reduce,
        message,
        deterministic,
        sample,
    )


def check_dense(name: str, tensor: torch.Tensor, graph: Graph, rows: int) -> None:
    """Raise unless a dense operand has this many rows and fits the graph."""
    need_tensor(name, tensor)
    if tensor.layout != torch.strided:
        raise TypeError(f"warploom: {name}: a dense tensor is needed, not {tensor.layout}")
    if tensor.dtype not in DENSE_TYPES:
        raise TypeError(
            f"warploom: {name}: the type {tensor.dtype} is not supported; "
            "use float32, float16, bfloat16 or float64"
        )
    if tensor.device != graph.device:
        raise ValueError(f"warploom: {name} is on {tensor.device}, the graph on {graph.device}")
    if tensor.dim() not in (2, 3) or tensor.shape[0] != rows:
        raise ValueError(
            f"warploom: {name}: the shape is {tuple(tensor.shape)}, ({rows}, n) or "
            f"({rows}, heads, features) is needed"
        )


class Product:
    """A checked product of a graph, or of all graphs that are used once: its request, and what
    gives its most used plans once they are made."""

    __slots__ = (
        "backward",
        "divides",
        "forward",
        "has_argmax",
        "request",
        "saved",
        "weights",
        "with_argmax",
    )

    def __init__(self, request: Request) -> None:
        self.request = request
        self.has_argmax = request.reduce in ("max", "min")
        self.forward: KeptPlan | OnceKind | None = None
        self.with_argmax: KeptPlan | OnceKind | None = None
        # Of dB, where that is one transposed product; of a mean with these values in the place of
        # A's, or with rows of dC that are divided by their edges.
        self.backward: KeptPlan | OnceKind | None = None
        self.weights: torch.Tensor | None = None
        self.divides = False
        has_values = request.values is not None
        self.saved = _gradients.saved_table(request.reduce, request.message, has_values)


def spmm(
    graph: Graph,
    b: torch.Tensor,
    values: torch.Tensor | None = None,
    *,
    reduce: str = "sum",
    message: str = "mul",
    sample: Sample | None = None,
    seed: int | None = None,
    deterministic: bool | None = None,
) -> torch.Tensor:
    """C[i] = reduce over the edges p = (i, k) of row i of message(values[p], b[k]); differentiable
    in b and values.

    b: (cols, n), or (cols, heads, features) where values are (nnz, heads); float32, float16,
        bfloat16 or float64.
    values: (nnz,) or (nnz, heads) in CSR order, of b's type, or float32 beside 16-bit types. None
        = graph.values.
    reduce: "sum", "mean", "max", "min" or "prod". An empty row gives 0, or 1 for prod.
    message: of an edge's value a and an element b: "mul", "copy_b", "copy_a", "add" (a + b), "sub"
        (b - a), "rsub" (a - b), "div" (b / a) or "rdiv" (a / b). "copy_b" ignores values; without
        values a is 1.
    sample: use some edges of long rows only, chosen by `seed`: 0 = as published, None = a new one
        for each call, from torch's generator of the CPU. A CUDA graph repeats the seed that it
        captured.
    deterministic: the same bits every time; None = torch.are_deterministic_algorithms_enabled().

    Returns (rows, n) or (rows, heads, features) of b's type. A row of b may be farther from the
    next than its length; other non-contiguous operands are copied. Under autocast b is converted
    to autocast's type. Raises TypeError or ValueError that name the argument, RuntimeError from
    the device or the compiler.
    """
    need_graph(graph)
    if values is None:
        values = graph.values
    if isinstance(message, str) and message == "copy_b":
        values = None
    if values is not None:
        need_tensor("values", values)
        if values.dim() == 2 and values.shape[1] == 1:
            values = values.squeeze(1)
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    elif not isinstance(deterministic, bool):
        deterministic = _arguments.flag("deterministic", deterministic)
    if sample is None:
        seed = 0
    elif seed is None:
        seed = draw_seed()
    if torch.compiler.is_compiling():
        b = autocast(b)
        a = (
            graph.rowptr,
            graph.colind,
            graph.cols,
            b,
            values,
            reduce,
            message,
            *how(deterministic, sample, seed),
        )
        if reduce in ("max", "min") and torch.is_grad_enabled():
            return torch.ops.warploom.spmm_argmax(*a)[0]  # type: ignore[no-any-return]
        return torch.ops.warploom.spmm(*a)  # type: ignore[no-any-return]
    if sample is not None:
        check_sample(sample)
        seed = _arguments.seed(seed)
    if any_autocast():
        b = autocast(b)
    return multiply(graph, b, values, reduce, message, deterministic, sample, seed)


def multiply(
    graph: Graph,
    b: torch.Tensor,
    values: torch.Tensor | None,
    reduce: str,
    message: str,
    deterministic: bool,
    sample: Sample | None = None,
    seed: int = 0,
    root: torch.Tensor | None = None,
) -> torch.Tensor:
    """spmm of operands that are taken as they are, outside of compiled code.

    root: one element of b's type without a gradient, outside of function transforms. The result is
        A * B + root * B, of a square A.
    """
    key: Any = None
    try:
        rows, *width = b.shape
        # Of all graphs that are used once the same, whatever their sizes.
        if values is None:
            fits = rows == graph.cols
            key = (*width, b.dtype, b.get_device(), reduce, message, deterministic, sample, None)
        else:
            fits = rows == graph.cols and values.shape[0] == graph.nnz
            key = (
                *width, b.dtype, b.get_device(), reduce, message, deterministic, sample,
                values.shape[1:], values.dtype, values.get_device(),
            )  # fmt: skip
        product: Product | None = graph._products.get(key) if fits else None
    # Of wrong arguments, for which request_of raises a clear error.
    except (AttributeError, ValueError, IndexError, TypeError):
        product = None
    if product is None:
        product = Product(request_of(graph, b, values, reduce, message, sample, deterministic))
        graph._products[key] = product
    if torch.is_grad_enabled():
        needs = b.requires_grad, values is not None and values.requires_grad
        if needs != (False, False):
            if root is not None:
                return _apply_with_root((graph, product, seed, needs), b, values, root)  # type: ignore[no-any-return]
            apply = _Spmm.apply if _transformed() else _apply
            return apply((graph, product, seed, needs), b, values)  # type: ignore[no-any-return]
    forward = product.forward
    if forward is None:
        forward = product.forward = graph.kind(product.request)
    c = forward.of(graph).multiply(b, values, seed)
    return c if root is None else c.addcmul_(b, root)


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        state: tuple[Graph, Product, int, tuple[bool, bool]],
        b: torch.Tensor,
        values: torch.Tensor | None,
    ) -> torch.Tensor:
        ctx.state = graph, product, seed, needs = state
        keep_b, keep_values = product.saved[needs]
        if product.has_argmax:
            plan = product.with_argmax
            if plan is None:
                plan = product.with_argmax = graph.kind(argmax_request(product.request))
            c, argmax = plan.of(graph).multiply_argmax(b, values, seed)
            ctx.save_for_backward(b if keep_b else None, values, argmax)
            return c
        if keep_b or keep_values:
            ctx.save_for_backward(b if keep_b else None, values if keep_values else None, None)
        forward = product.forward
        if forward is None:
            forward = product.forward = graph.kind(product.request)
        return forward.of(graph).multiply(b, values, seed)

    @staticmethod
    def backward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        graph, product, seed, (need_b, need_values) = ctx.state
        b, values, argmax = ctx.saved_tensors or (None, None, None)
        request = product.request
        if torch.is_grad_enabled():
            grads = _differentiable(graph, request, x, b, values, need_b, need_values)
            return None, *grads
        if product.backward is not None and not need_values:
            if product.weights is not None:
                values = product.weights
            elif product.divides:
                x = graph.divide_used_rows(x)
            return None, product.backward.of(graph).multiply(x, values, seed), None
        engine = Eager(graph, request, seed, product.with_argmax)
        db, dvalues = _gradients.gradients(
            engine, request.reduce, request.message, x, b, values, argmax, need_b, need_values
        )
        if engine.only is not None and (
            engine.weights is not None or engine.only.request.values == request.values
        ):
            product.weights, product.divides = engine.weights, engine.divides
            product.backward = engine.only
        if need_b and db is None:
            db = x.new_zeros((graph.cols, *request.width))
        if dvalues is not None:
            dvalues = dvalues.to(request.values)
        return None, None if db is None else db.to(x.dtype), dvalues


class _SpmmWithRoot(_Spmm):
    """A * B + root * B. Both terms are added in place, without autograd nodes of their own."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any,
        state: tuple[Graph, Product, int, tuple[bool, bool]],
        b: torch.Tensor,
        values: torch.Tensor | None,
        root: torch.Tensor,
    ) -> torch.Tensor:
        ctx.root = root
        return _Spmm.forward(ctx, state, b, values).addcmul_(b, root)

    @staticmethod
    def backward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        _, db, dvalues = _Spmm.backward(ctx, x)
        if db is not None:
            add = torch.Tensor.addcmul if torch.is_grad_enabled() else torch.Tensor.addcmul_
            db = add(db, x, ctx.root)
        return None, db, dvalues, None


_apply, _apply_with_root = quick_apply(_Spmm), quick_apply(_SpmmWithRoot)
_transformed = is_transformed


def argmax_request(request: Request) -> Request:
    """The request that also gives positions.

    Without values a * b and b / a are b, whose gradient needs no b.
    """
    copies = request.values is None and request.message in ("mul", "div")
    return request._replace(argmax=True, message="copy_b" if copies else request.message)


class Eager:
    """Products that gradients consist of, by the plans of a graph."""

    __slots__ = ("divides", "graph", "only", "request", "seed", "weights", "with_argmax")

    def __init__(
        self,
        graph: Graph,
        request: Request,
        seed: int,
        with_argmax: KeptPlan | OnceKind | None = None,
    ) -> None:
        self.graph = graph
        self.request = request
        self.seed = seed
        self.with_argmax = with_argmax
        # See `backward`, `weights` and `divides` of Product.
        self.only: KeptPlan | OnceKind | None = None
        self.weights: torch.Tensor | None = None
        self.divides = False

    def transposed(
        self, x: torch.Tensor, values: torch.Tensor | None, message: str, alpha: float, mean: bool
    ) -> torch.Tensor:
        """See Engine."""
        graph, request = self.graph, self.request
        sample = request.sample
        if mean and sample is not None:
            sample = sample._replace(norm="kept")
        elif mean and values is None and not graph.once:
            values = self.weights = graph.mean_weights(accumulator(x.dtype))
        elif mean:
            x = graph.divide_used_rows(x)
            self.divides = True
        wanted = Request(
            request.width,
            request.dtype,
            None if values is None else values.dtype,
            1 if values is None or values.dim() == 1 else values.shape[1],
            "sum",
            message,
            request.deterministic,
            sample,
            transpose=True,
        )
        kind = graph.kind(wanted)
        if alpha == 1.0 and (not mean or self.divides or self.weights is not None):
            self.only = kind
        return kind.of(graph).multiply(x, values, self.seed, alpha)

    def sddmm(
        self,
        x: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        message: str,
        mean: bool,
    ) -> torch.Tensor:
        """See Engine."""
        wanted = self.request._replace(
            values=None if values is None else values.dtype,
            reduce="mean" if mean else "sum",
            message=message,
            sddmm=True,
        )
        return edge_products(self.graph, wanted, x, b, values, self.seed)

    def argmax(
        self,
        x: torch.Tensor,
        argmax: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        need_b: bool,
        need_values: bool,
    ) -> _gradients.Gradients:
        """See Engine."""
        graph, request = self.graph, self.request
        sums = accumulator(x.dtype)
        db = x.new_empty((graph.cols, *request.width), dtype=sums) if need_b else None
        dvalues = (
            x.new_empty(edge_shape(graph.nnz, request.heads), dtype=sums) if need_values else None
        )
        if x.numel() == 0:  # the library writes nothing then
            return None if db is None else db.zero_(), None if dvalues is None else dvalues.zero_()
        if request.deterministic and x.is_cuda:
            return self._argmax_in_order(x, argmax, b, values, db, dvalues)
        kind = self.with_argmax or graph.kind(argmax_request(request))
        plan = kind.of(graph)
        plan.argmax_gradients(x, argmax, b, values, db, dvalues)
        return db, dvalues

    def _argmax_in_order(
        self,
        x: torch.Tensor,
        argmax: torch.Tensor,
        b: torch.Tensor | None,
        values: torch.Tensor | None,
        db: torch.Tensor | None,
        dvalues: torch.Tensor | None,
    ) -> _gradients.Gradients:
        """The same with torch, which sorts the terms: kernels of a GPU add them in any order."""
        request = argmax_request(self.request)
        width = torch.arange(request.n, device=x.device)
        won = argmax.reshape(-1, request.n)
        used = won >= 0
        edge = won.clamp(min=0)
        column = self.graph.colind.long()[edge]
        sums = accumulator(x.dtype)
        grad = x.reshape(won.shape).to(sums)
        flat = (
            torch.ones_like(grad) if b is None else b.reshape(-1, request.n).to(sums)[column, width]
        )
        head = width // (request.n // request.heads)
        if values is None:
            a = torch.ones_like(grad)
        else:
            a = values.to(sums).reshape(-1, request.heads)[edge, head]
        _, by_b, by_a = _gradients.derivatives(request.message, a, flat)
        if db is not None:
            into = db.zero_().reshape(-1, request.n)
            into.index_put_(
                (column, width.expand_as(column)),
                torch.where(used, grad * by_b, 0),
                accumulate=True,
            )
        if dvalues is not None:
            into = dvalues.zero_().reshape(-1, request.heads)
            into.index_put_(
                (edge, head.expand_as(edge)), torch.where(used, grad * by_a, 0), accumulate=True
            )
        return db, dvalues

    def edges(self) -> tuple[torch.Tensor, torch.Tensor]:
        """See Engine."""
        return self.graph.row(), self.graph.colind


def edge_products(
    graph: Graph,
    request: Request,
    x: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    seed: int = 0,
) -> torch.Tensor:
    """SDDMM. The library refuses a sum over no columns."""
    if request.n == 0:
        return x.new_zeros(edge_shape(graph.nnz, request.heads))
    return graph.plan(request).edge_products(x, b, values, seed)


def row_products(
    graph: Graph, x: torch.Tensor, first: torch.Tensor, second: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """<x[i], first> and <x[i], second> for each row of A and each head; without gradients.

    x: (rows, heads, features), first and second: (heads, features) of x's type.

    Returns two halves of one tensor, each (rows, heads).
    """
    heads = x.shape[1]
    swap = second.data_ptr() < first.data_ptr()
    if swap:
        first, second = second, first
    request = Request(tuple(x.shape[1:]), x.dtype, None, max(heads, 1), sddmm=True)
    terms = graph.pairs().plan(request).row_products(x, first, second).view(-1, 2, heads)
    return terms[:, int(swap)], terms[:, int(not swap)]


def _differentiable(
    graph: Graph,
    request: Request,
    x: torch.Tensor,
    b: torch.Tensor | None,
    values: torch.Tensor | None,
    need_b: bool,
    need_values: bool,
) -> _gradients.Gradients:
    """Gradients that can be differentiated again: of sums and means of products."""
    if (
        request.reduce not in ("sum", "mean")
        or request.message not in ("mul", "copy_b")
        or request.sample is not None
    ):
        raise NotImplementedError(
            f"warploom: no second derivatives of reduce='{request.reduce}', "
            f"message='{request.message}'"
            f"{' with sampling' if request.sample else ''}; only of sum and mean of mul and copy_b"
        )
    pattern = (
        graph
        if graph.values is None
        else Graph(graph.rowptr, graph.colind, cols=graph.cols, once=graph.once)
    )
    if request.reduce == "mean":
        x = graph.divide_by_degrees(x)
    db = dvalues = None
    if need_b:
        transposed = pattern.t()
        order = transposed._order
        assert order is not None
        there = None if values is None else values.index_select(0, order)
        db = spmm(transposed, x, there, deterministic=request.deterministic)
    if need_values:
        assert b is not None and request.values is not None
        dvalues = sddmm(pattern, x, b, heads=request.heads, deterministic=request.deterministic).to(
            request.values
        )
    return db, dvalues


def sddmm(
    graph: Graph,
    x: torch.Tensor,
    b: torch.Tensor,
    *,
    heads: int | None = None,
    deterministic: bool | None = None,
) -> torch.Tensor:
    """<x[i], b[k]> for each edge (i, k): the dense product x @ b.T at the edges; differentiable in
    x and b.

    x: (rows, n) or (rows, heads, features), b: (cols, n) or (cols, heads, features), of one type.
    heads: 1 sums over all columns of x and b of three dimensions, too.

    Returns (nnz,), or (nnz, heads) for operands of three dimensions with more than one head.
    """
    need_graph(graph)
    need_tensor("x", x)
    need_tensor("b", b)
    x, b = autocast(x), autocast(b)
    if heads is None:
        heads = x.shape[1] if x.dim() == 3 else 1
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    elif not isinstance(deterministic, bool):
        deterministic = _arguments.flag("deterministic", deterministic)
    if torch.compiler.is_compiling():
        return torch.ops.warploom.sddmm(  # type: ignore[no-any-return]
            graph.rowptr, graph.colind, graph.cols, x, b, heads, deterministic
        )
    heads = _arguments.integer("heads", heads)
    request = sddmm_request(graph, x, b, heads, deterministic)
    if torch.is_grad_enabled() and (x.requires_grad or b.requires_grad):
        return _Sddmm.apply(graph, request, x, b)  # type: ignore[no-any-return,no-untyped-call]
    return edge_products(graph, request, x, b, None)


def sddmm_request(
    graph: Graph, x: torch.Tensor, b: torch.Tensor, heads: int, deterministic: bool
) -> Request:
    """Check the arguments of sddmm and say what its plan needs."""
    check_dense("x", x, graph, graph.rows)
    check_dense("b", b, graph, graph.cols)
    if x.dtype != b.dtype:
        raise TypeError(f"warploom: x is {x.dtype}, and b is {b.dtype}; convert one of them")
    if x.shape[1:] != b.shape[1:]:
        raise ValueError(
            f"warploom: the rows of x have the shape {tuple(x.shape[1:])}, "
            f"those of b {tuple(b.shape[1:])}"
        )
    if heads != 1 and (x.dim() != 3 or x.shape[1] != heads):
        raise ValueError(f"warploom: heads: {heads} do not fit x with the shape {tuple(x.shape)}")
    return Request(
        tuple(b.shape[1:]), b.dtype, None, max(heads, 1), deterministic=deterministic, sddmm=True
    )


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, graph: Graph, request: Request, x: torch.Tensor, b: torch.Tensor
    ) -> torch.Tensor:
        ctx.graph = graph
        ctx.request = request
        _, _, need_x, need_b = ctx.needs_input_grad
        ctx.save_for_backward(x if need_b else None, b if need_x else None)
        return edge_products(graph, request, x, b, None)

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        x, b = ctx.saved_tensors
        graph, request = ctx.graph, ctx.request._replace(sddmm=False, values=ctx.request.dtype)
        if torch.is_grad_enabled():
            pattern = (
                graph
                if graph.values is None
                else Graph(graph.rowptr, graph.colind, cols=graph.cols)
            )
            transposed = pattern.t()
            assert transposed._order is not None
            same = request.deterministic
            dx = None if b is None else spmm(pattern, b, g, deterministic=same)
            db = (
                None
                if x is None
                else spmm(transposed, x, g.index_select(0, transposed._order), deterministic=same)
            )
            return None, None, dx, db
        dx = None if b is None else graph.plan(request).multiply(b, g)
        db = None if x is None else graph.plan(request._replace(transpose=True)).multiply(x, g)
        return None, None, dx, db


def edge_softmax(graph: Graph, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the edges of each row; differentiable.

    scores: (nnz,) or (nnz, heads) in CSR order.

    Returns the same shape and type. float16 and bfloat16 are summed in float32, and under autocast
    nothing is converted.
    """
    if torch.compiler.is_compiling():
        return torch.ops.warploom.edge_softmax(graph.rowptr, graph.colind, graph.cols, scores)  # type: ignore[no-any-return]
    need_graph(graph)
    graph._check_values(scores, "scores")
    if torch.is_grad_enabled() and scores.requires_grad:
        return _EdgeSoftmax.apply(graph, scores)  # type: ignore[no-any-return,no-untyped-call]
    return softmax(graph, scores)


class _EdgeSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, graph: Graph, scores: torch.Tensor) -> torch.Tensor:
        result = softmax(graph, scores)
        ctx.graph = graph
        ctx.save_for_backward(result)
        return result

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: torch.Tensor) -> tuple[None, torch.Tensor]:
        (result,) = ctx.saved_tensors
        return None, softmax_gradient(ctx.graph, g, result)


def softmax(graph: Graph, scores: torch.Tensor) -> torch.Tensor:
    """edge_softmax without its gradient."""
    row = graph.row()
    wide = scores.to(accumulator(scores.dtype))
    powers = (wide - _reduce_edges(graph, wide, "max").index_select(0, row)).exp_()
    return (powers / _reduce_edges(graph, powers, "sum").index_select(0, row)).to(scores.dtype)


def softmax_gradient(graph: Graph, g: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """The gradient by the scores."""
    product = (g * result).to(accumulator(g.dtype))
    sums = _reduce_edges(graph, product, "sum").index_select(0, graph.row())
    return (product - result * sums).to(g.dtype)


def _reduce_edges(graph: Graph, values: torch.Tensor, reduce: str) -> torch.Tensor:
    """The reduction of values over the edges of each row, (rows,) or (rows, heads)."""
    heads = values.shape[1] if values.dim() == 2 else 1
    deterministic = torch.are_deterministic_algorithms_enabled()
    request = Request(
        (heads,), values.dtype, values.dtype, max(heads, 1), reduce, "copy_a", deterministic
    )
    return graph.plan(request).reduce_values(values).reshape(-1, *values.shape[1:])
