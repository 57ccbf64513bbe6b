"""Products, SDDMM and the softmax over edges, with their gradients."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warploom import _arguments
from warploom._problem import MESSAGES, NORMS, REDUCTIONS, SAMPLES
from warploom.torch import _gradients, _sampling
from warploom.torch._edges import Maybe, Needs, Size
from warploom.torch._gradients import Transposed
from warploom.torch._graph import Graph, need_graph, need_tensor
from warploom.torch._internals import any_autocast, is_dispatched
from warploom.torch._ops import Gradients, Likes, Operation, Product, Shape
from warploom.torch._plan import (
    DENSE_TYPES,
    KeptPlan,
    OnceKind,
    Request,
    Sample,
    accumulator,
    edge_shape,
    rows_apart,
)

_NO_SEED = (0,)
_NOTHING: Any = (None, None, None)


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


def check_dropout(dropout: Any, seed: int | None) -> tuple[float, int | None]:
    """Check the dropout of a call, and return it with its seed; None = draw one."""
    if not torch.compiler.is_compiling():
        dropout = _arguments.number("dropout", dropout)
        seed = None if seed is None else _arguments.seed(seed)
    if not 0 <= dropout < 1:
        raise ValueError(f"warploom: dropout: {dropout} is not at least 0 and below 1")
    if dropout == 0:
        return 0.0, 0
    return float(dropout), seed


def draw_dropout(dropout: Any, seed: int | None) -> tuple[float, int]:
    """Check the dropout of a call, and return it with its seed, drawn where there is none."""
    share, seed = check_dropout(dropout, seed)
    return share, draw_seed() if seed is None else seed


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


# ---- spmm ----------------------------------------------------------------------------


class Spmm(Product):
    """Operands b, values and root, which is one element: A * B + root * B."""

    __slots__ = (
        "forward", "has_argmax", "has_root", "is_sum", "message", "saved", "transposed"
    )  # fmt: skip

    def __init__(
        self, operands: Likes, reduce: str, message: str, deterministic: bool, *sample: Any
    ) -> None:
        super().__init__()
        b, values, root = operands
        assert b is not None
        self.has_root = root is not None
        self.request = Request(
            tuple(b.shape[1:]),
            b.dtype,
            None if values is None else values.dtype,
            values.shape[1] if values is not None and len(values.shape) == 2 else 1,
            reduce,
            message,
            deterministic,
            Sample(*sample) if sample[1] else None,
        )
        self.message = message
        self.is_sum = reduce in ("sum", "mean")
        self.has_argmax = reduce in ("max", "min")
        self.saved: dict[Needs, tuple[bool, bool]] = {}
        self.forward: KeptPlan | OnceKind | None = None
        self.transposed: Transposed | None = None

    def request_of(self, graph: Graph, name: str) -> Request:
        """See Product: "plain", "values", or "argmax" and "narrow", whose positions have the type
        of rowptr and the narrowest one, and "argmax_gradient" and "narrow_gradient"."""
        if name == "plain":
            return self.request
        if name == "values":
            return _gradients.values_request(self.request)
        kind, _, is_gradient = name.partition("_")
        positions = graph.positions(self.request) if kind == "narrow" else graph.rowptr.dtype
        make = _gradients.gradient_request if is_gradient else _gradients.argmax_request
        return make(self.request, positions)

    def run(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs,
        argmax: str = "narrow",
    ) -> tuple[torch.Tensor, ...]:  # fmt: skip
        """See Product. argmax: the name of the plan that gives positions."""
        b, values, root = operands
        made: tuple[torch.Tensor, ...]
        if self.has_argmax and True in needs:
            made = self.plan(graph, argmax).multiply_argmax(b, values, numbers[0])
        else:
            kind = self.forward
            if kind is None:
                kind = self.forward = graph.kind(self.request)
            made = (kind.of(graph).multiply(b, values, numbers[0]),)
        if root is not None:
            made[0].addcmul_(b, root)
        return made

    def run_as_declared(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[torch.Tensor, ...]:
        return self.run(graph, operands, numbers, needs, "argmax")

    def bind(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[torch.Tensor]]:
        has_argmax = self.has_argmax and True in needs
        if self.has_root or has_argmax or graph.once:
            return super().bind(graph, numbers, needs, arrange)
        multiply, seed = self.plan(graph, "plain").multiply, numbers[0]
        if arrange is None:
            return lambda b, values, root: [multiply(b, values, seed)]

        def run(*operands: Maybe) -> list[torch.Tensor]:
            b, values, _ = arrange(operands)
            return [multiply(b, values, seed)]

        return run

    def bind_gradients(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[torch.Tensor]] | None:
        """See Product: of sums by b."""
        if not self.is_sum or needs != (True, False, False) or self.has_root:
            return None
        if self.message in ("copy_a", "rdiv") or graph.once:
            return None
        kind, weights, divides, alpha = _gradients.transposed(graph, self.request)
        multiply, seed = kind.of(graph).multiply, numbers[0]

        def run(x: torch.Tensor, kept: Sequence[Maybe]) -> list[torch.Tensor]:
            values = weights
            if kept and weights is None:
                values = (kept if arrange is None else arrange(kept[:3]))[1]
            if divides:
                x = graph.divide_used_rows(x)
            return [multiply(x, values, seed, alpha)]

        return run

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        shape = (size.rows, *self.request.width)
        made = [(shape, self.request.dtype)]
        return [*made, (shape, size.indices)] if self.has_argmax and True in needs else made

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[torch.Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """See Product. Empty where the gradients read nothing."""
        keeps = self.saved.get(needs)
        if keeps is None:
            keeps = self.saved[needs] = _gradients.saved(self.request, *needs[:2])
        b, values, root = operands
        if not self.has_argmax and root is None and True not in keeps:
            return ()
        keep_b, keep_values = keeps
        return b if keep_b else None, values if keep_values else None, root, *made[1:]

    def gradients(
        self, graph: Graph, x: torch.Tensor, kept: Sequence[Any], numbers: tuple[Any, ...],
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        b, values, root = kept[:3] or _NOTHING
        need_b, need_values, _ = needs
        request, message = self.request, self.message
        db: Maybe = None
        dvalues: Maybe = None
        if self.is_sum:
            if need_b and message != "copy_a":
                if self.transposed is None:
                    self.transposed = _gradients.transposed(graph, request)
                kind, weights, divides, alpha = self.transposed
                dc = graph.divide_used_rows(x) if divides else x
                used = values if weights is None else weights
                db = kind.of(graph).multiply(dc, used, numbers[0], alpha)
                if message == "rdiv":
                    db = db / b / b  # b * b may be out of range where the quotient is not
            if need_values:
                used = values if message == "div" else None
                dvalues = self.edge_products(graph, "values", x, b, used, numbers[0])
        else:
            need = need_b, need_values
            if self.has_argmax:
                is_narrow = kept[3].dtype == torch.int16
                name = "narrow_gradient" if is_narrow else "argmax_gradient"
                plan = functools.partial(self.plan, graph, name)
                db, dvalues = _gradients.of_winners(
                    graph, request, plan, x, kept[3], b, values, need
                )
            elif request.sample is not None:
                db, dvalues = _gradients.of_sampled(graph, request, x, b, values, need, numbers[0])
            else:
                db, dvalues = _gradients.of_message(graph, request, x, b, values, None, need)
            db = None if db is None else db.to(x.dtype)
        if need_b and db is None:
            db = x.new_zeros((graph.cols, *request.width))
        if db is not None and root is not None:
            db.addcmul_(x, root)
        if dvalues is not None and dvalues.dtype != request.values:
            dvalues = dvalues.to(request.values)
        return db, dvalues, None

    def differentiable(
        self, graph: Graph, x: torch.Tensor, kept: Sequence[Any], numbers: tuple[Any, ...],
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        """See Product: of sums and means of products."""
        request = self.request
        if (
            request.reduce not in ("sum", "mean")
            or request.message not in ("mul", "copy_b")
            or request.sample is not None
        ):
            raise NotImplementedError(
                f"warploom: no second derivatives of reduce='{request.reduce}', "
                f"message='{request.message}'"
                f"{' with sampling' if request.sample else ''}; "
                "only of sum and mean of mul and copy_b"
            )
        b, values, root = kept or _NOTHING
        scaled = graph.divide_by_degrees(x) if request.reduce == "mean" else x
        db = dvalues = None
        if needs[0]:
            db = _multiply_transposed(graph, scaled, values, request.deterministic)
            db = db if root is None else torch.addcmul(db, x, root)
        if needs[1]:
            dvalues = sddmm(
                graph, scaled, b, heads=request.heads, deterministic=request.deterministic
            ).to(request.values)
        return db, dvalues, None


def _multiply_transposed(
    graph: Graph, x: torch.Tensor, values: Maybe, deterministic: bool
) -> torch.Tensor:
    """The product with the transpose, without the values of the graph; differentiable."""
    transposed = _pattern(graph).t()
    order = transposed._order
    assert order is not None
    there = None if values is None else values.index_select(0, order)
    return spmm(transposed, x, there, deterministic=deterministic)


def _pattern(graph: Graph) -> Graph:
    """The graph without values."""
    if graph.values is None:
        return graph
    return Graph(graph.rowptr, graph.colind, cols=graph.cols, once=graph.once)


def _check_spmm(
    graph: Graph, operands: Sequence[Any], reduce: str, message: str, deterministic: bool,
    *sample: Any,
) -> None:  # fmt: skip
    """Raise TypeError or ValueError for wrong arguments of a product."""
    b, values, _ = operands
    for name, value, allowed in (("reduce", reduce, REDUCTIONS), ("message", message, MESSAGES)):
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(
                f"warploom: {name}: '{value}' is unknown, use one of {', '.join(allowed)}"
            )
    if sample[1]:
        check_sample(Sample(*sample))
    check_dense("b", b, graph, graph.cols)
    if values is not None:
        graph._check_values(values)
        check_values_type(values, b)
        heads = values.shape[1] if values.dim() == 2 else 1
        if heads != 1 and (b.dim() != 3 or b.shape[1] != heads):
            raise ValueError(
                f"warploom: b: the shape is {tuple(b.shape)}, and values with {heads} heads need "
                f"({graph.cols}, {heads}, features)"
            )


def check_values_type(values: torch.Tensor, b: torch.Tensor) -> None:
    """Raise TypeError unless values have b's type, or float32 beside 16 bits."""
    halves = b.dtype in (torch.float16, torch.bfloat16)
    if values.dtype != b.dtype and not (halves and values.dtype == torch.float32):
        raise TypeError(
            f"warploom: values are {values.dtype}, and b is {b.dtype}; convert one of them"
        )


_spmm = Operation(
    "spmm", ("cols", "nnz", None), Spmm, _check_spmm, "Tensor b, Tensor? values, Tensor? root"
)


class _Into:
    """A product that is added to a tensor of the caller."""

    def __init__(self, out: torch.Tensor, alpha: float, beta: float) -> None:
        if torch.compiler.is_compiling() or is_dispatched(out):
            raise NotImplementedError("warploom: out: works in eager mode only; leave it out")
        need_tensor("out", out)
        self.out = out
        self.factors = _arguments.number("alpha", alpha), _arguments.number("beta", beta)
        if not all(map(math.isfinite, self.factors)):
            raise ValueError(f"warploom: alpha, beta: {alpha} and {beta} must be finite")

    def __call__(
        self, graph: Graph, operands: Sequence[Any], options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> tuple[torch.Tensor]:  # fmt: skip
        """Compute out = alpha * A * B + beta * out; returns out."""
        out, (b, values, _), (alpha, beta) = self.out, operands, self.factors
        product: Any = _spmm.product(graph, operands, options)
        self._check((graph.rows, *b.shape[1:]), (b, values, graph.rowptr, graph.colind))
        product.plan(graph, "plain").multiply(b, values, numbers[0], alpha, beta, out)
        return (out,)

    def _check(self, shape: tuple[int, ...], others: Sequence[Any]) -> None:
        """Raise for an `out` that cannot hold the product with b, the first of the others."""
        out, b = self.out, others[0]
        differentiates = any(
            tensor is not None and tensor.requires_grad for tensor in (out, *others)
        )
        if differentiates and torch.is_grad_enabled():
            raise RuntimeError(
                "warploom: out: has no automatic differentiation, and an operand requires a "
                "gradient; leave it out or use torch.no_grad()"
            )
        is_like = out.dtype == b.dtype and out.device == b.device and out.layout == b.layout
        if out.shape != shape or not is_like:
            raise ValueError(
                f"warploom: out: is {out.dtype} of the shape {tuple(out.shape)} on {out.device}; "
                f"dense {b.dtype} of {shape} on {b.device} is needed"
            )
        if out.numel() and rows_apart(out)[0] is not out:
            raise ValueError(
                "warploom: out: elements of a row must be neighbours, and rows must not overlap"
            )
        if any(tensor is not None and _overlap(out, tensor) for tensor in others):
            raise ValueError("warploom: out: shares memory with another operand")


def _need_ones(alpha: float, beta: float) -> None:
    """Raise for factors other than 1 and 0, where there is no `out`."""
    if (_arguments.number("alpha", alpha), _arguments.number("beta", beta)) != (1.0, 0.0):
        raise ValueError("warploom: alpha, beta: need out, which holds C; or multiply the result")


def _overlap(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether the memory from the first to the last element of two tensors overlaps."""
    if first.numel() == 0 or second.numel() == 0:
        return False
    (begin, end), (other, other_end) = (
        (
            t.data_ptr(),
            t.data_ptr()
            + t.element_size() * (1 + sum((n - 1) * s for n, s in zip(t.shape, t.stride()))),
        )
        for t in (first, second)
    )
    return begin < other_end and other < end


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
    out: torch.Tensor | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
) -> torch.Tensor:
    """C[i] = reduce over the edges p = (i, k) of row i of message(values[p], b[k]); differentiable
    in b and values.

    b: (cols, n), (cols,), or (cols, heads, features) where values are (nnz, heads); float32,
        float16, bfloat16 or float64.
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
    out: holds C, and becomes alpha * reduce(...) + beta * C, in eager mode only. It has the shape
        and type of the result, and shares no memory with other operands. A row may be farther from
        the next than its length. Nothing is differentiated: while gradients are recorded, an
        operand that requires a gradient raises RuntimeError, as in torch.addmm(out=).
    alpha, beta: factors, which need `out`. With beta = 0, out is not read.

    Returns b's shape with rows lines, of b's type, or `out`. A row of b may be farther
    from the next than its length; other non-contiguous operands are copied. Under autocast b is
    converted to autocast's type. Raises TypeError or ValueError that name the argument,
    RuntimeError from the device or the compiler.
    """
    if not isinstance(graph, Graph):
        need_graph(graph)
    if isinstance(b, torch.Tensor) and b.dim() == 1:
        column = out.unsqueeze(1) if isinstance(out, torch.Tensor) and out.dim() == 1 else out
        made = spmm(
            graph, b.unsqueeze(1), values, reduce=reduce, message=message, sample=sample,
            seed=seed, deterministic=deterministic, out=column, alpha=alpha, beta=beta,
        )  # fmt: skip
        return made.squeeze(1) if out is None else out
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
    compute: Any = _spmm
    if torch.compiler.is_compiling():
        b = autocast(b)
        compute = _spmm.dispatch
    elif any_autocast():
        b = autocast(b)
    if out is not None:
        compute = _Into(out, alpha, beta)
    elif type(alpha) is not float or type(beta) is not float or alpha != 1.0 or beta != 0.0:
        _need_ones(alpha, beta)
    if sample is None and _sampling.chosen is not None and not torch.compiler.is_compiling():
        sample, seed = _sampling.chosen(graph, b, values, reduce, message) or (None, None)
    if sample is None:
        options: tuple[Any, ...] = (reduce, message, deterministic, 0, "", "")
        return compute(graph, (b, values, None), options, _NO_SEED)[0]  # type: ignore[no-any-return]
    seed = draw_seed() if seed is None else seed
    if not torch.compiler.is_compiling():
        check_sample(sample)
        seed = _arguments.seed(seed)
    options = (reduce, message, deterministic, *sample)
    return compute(graph, (b, values, None), options, (seed,))[0]  # type: ignore[no-any-return]


def multiply(
    graph: Graph,
    b: torch.Tensor,
    values: torch.Tensor | None,
    reduce: str,
    message: str,
    deterministic: bool,
    root: torch.Tensor | None = None,
) -> torch.Tensor:
    """spmm of operands that are taken as they are, outside of compiled code.

    root: one element of b's type without a gradient. The result is A * B + root * B, of a square A.
    """
    if _sampling.chosen is not None:
        found = _sampling.chosen(graph, b, values, reduce, message)
        if found is not None:
            sample, seed = found
            options = (reduce, message, deterministic, *sample)
            return _spmm(graph, (b, values, root), options, (seed,))[0]
    return _spmm(graph, (b, values, root), (reduce, message, deterministic, 0, "", ""), _NO_SEED)[0]


def spmm_of_edges(
    graph: Graph, b: torch.Tensor, values: torch.Tensor | None, reduce: str, message: str
) -> torch.Tensor:
    """spmm of a graph in traced code, which its edges stand for; values: in their order."""
    deterministic = torch.are_deterministic_algorithms_enabled()
    options = (reduce, message, deterministic, 0, "", "")
    return _spmm.dispatch(graph, (b, values, None), options, _NO_SEED)[0]


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


# ---- sddmm ---------------------------------------------------------------------------


class Sddmm(Product):
    """Operands x and b."""

    __slots__ = ()

    def __init__(self, operands: Likes, heads: int, deterministic: bool) -> None:
        super().__init__()
        b = operands[1]
        assert b is not None
        width, heads = tuple(b.shape[1:]), max(heads, 1)
        self.request = Request(width, b.dtype, None, heads, deterministic=deterministic, sddmm=True)

    def request_of(self, graph: Graph, name: str) -> Request:
        """See Product: the products of dvalues with x and b, which are their gradients."""
        if name == "products":
            return self.request
        return self.request._replace(
            sddmm=False, values=self.request.dtype, transpose=name == "transposed"
        )

    def run(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[torch.Tensor, ...]:
        x, b = operands
        return (self.edge_products(graph, "products", x, b, None, 0),)

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        return [(edge_shape(size.nnz, self.request.heads), self.request.dtype)]

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[torch.Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        x, b = operands
        return x if needs[1] else None, b if needs[0] else None

    def gradients(
        self, graph: Graph, x: torch.Tensor, kept: Sequence[Any], numbers: tuple[Any, ...],
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        first, b = kept
        return (
            None if b is None else self.plan(graph, "forward").multiply(b, x),
            None if first is None else self.plan(graph, "transposed").multiply(first, x),
        )

    def differentiable(
        self, graph: Graph, x: torch.Tensor, kept: Sequence[Any], numbers: tuple[Any, ...],
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        first, b = kept
        same = self.request.deterministic
        return (
            None if b is None else spmm(_pattern(graph), b, x, deterministic=same),
            None if first is None else _multiply_transposed(graph, first, x, same),
        )


def _check_sddmm(graph: Graph, operands: Sequence[Any], heads: int, deterministic: bool) -> None:
    """Raise TypeError or ValueError for wrong arguments of sddmm."""
    x, b = operands
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


_sddmm = Operation("sddmm", ("rows", "cols"), Sddmm, _check_sddmm, "Tensor x, Tensor b")


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
    compute: Any = _sddmm.dispatch
    if not torch.compiler.is_compiling():
        heads = _arguments.integer("heads", heads)
        compute = _sddmm
    return compute(graph, (x, b), (heads, deterministic), ())[0]  # type: ignore[no-any-return]


# ---- softmax -------------------------------------------------------------------------


class Softmax(Product):
    """Operand scores."""

    __slots__ = ("like",)

    def __init__(self, operands: Likes) -> None:
        super().__init__()
        scores = operands[0]
        assert scores is not None
        self.like = tuple(scores.shape[1:]), scores.dtype

    def run(
        self, graph: Graph, operands: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> tuple[torch.Tensor, ...]:
        (scores,) = operands
        if scores.numel() == 0:
            return (torch.empty_like(scores),)
        row = graph.row()
        wide = scores.to(accumulator(scores.dtype))
        powers = (wide - _reduce_edges(graph, wide, "max").index_select(0, row)).exp_()
        sums = _reduce_edges(graph, powers, "sum").index_select(0, row)
        return ((powers / sums).to(scores.dtype),)

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        line, dtype = self.like
        return [((size.nnz, *line), dtype)]

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[torch.Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """See Product: the result."""
        return made

    def gradients(
        self, graph: Graph, x: torch.Tensor, kept: Sequence[Any], numbers: tuple[Any, ...],
        needs: Needs,
    ) -> Gradients:  # fmt: skip
        (result,) = kept
        if result.numel() == 0:
            return (torch.empty_like(result),)
        product = (x * result).to(accumulator(x.dtype))
        sums = _reduce_edges(graph, product, "sum").index_select(0, graph.row())
        return ((product - result * sums).to(x.dtype),)


def _check_softmax(graph: Graph, operands: Sequence[Any]) -> None:
    graph._check_values(operands[0], "scores")


_softmax = Operation("edge_softmax", ("nnz",), Softmax, _check_softmax, "Tensor scores")


def edge_softmax(graph: Graph, scores: torch.Tensor) -> torch.Tensor:
    """Softmax over the edges of each row; differentiable.

    scores: (nnz,) or (nnz, heads) in CSR order.

    Returns the same shape and type. float16 and bfloat16 are summed in float32, and under autocast
    nothing is converted.
    """
    need_graph(graph)
    compute: Any = _softmax.dispatch if torch.compiler.is_compiling() else _softmax
    return compute(graph, (scores,), (), ())[0]  # type: ignore[no-any-return]


def _reduce_edges(graph: Graph, values: torch.Tensor, reduce: str) -> torch.Tensor:
    """The reduction of values over the edges of each row, (rows,) or (rows, heads)."""
    heads = values.shape[1] if values.dim() == 2 else 1
    deterministic = torch.are_deterministic_algorithms_enabled()
    request = Request(
        (heads,), values.dtype, values.dtype, max(heads, 1), reduce, "copy_a", deterministic
    )
    return graph.plan(request).reduce_values(values).reshape(-1, *values.shape[1:])
