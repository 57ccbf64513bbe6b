"""Differentiable operations, each defined once, for eager mode and for compiled code.

A Product is a checked call of an operation: it computes the results and the gradients. Eager mode
runs it within one autograd function, because the dispatch of a registered op costs more than a
product of a small graph. torch.compile, torch.export and dispatch modes get registered ops, which
run the same Product (`_registered`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Union

import torch

from warploom.torch import _later, _registered
from warploom.torch._edges import EdgeList, Maybe, Needs, Shaped, Size, Tensor
from warploom.torch._graph import Graph
from warploom.torch._internals import (
    for_each_of_batch,
    is_batched,
    is_dispatched,
    quick_apply,
    refuse_transforms,
)
from warploom.torch._plan import KeptPlan, Launcher, OnceKind, Request, edge_shape, element

Gradients = Sequence[Maybe]
Likes = Sequence[Union[Tensor, Shaped, None]]
Shape = tuple[tuple[int, ...], torch.dtype]


class Product:
    """A checked call of an operation of a graph, or of all graphs that are used once.

    It depends on the options, the types of the operands and the shape of their lines. `numbers` are
    those of one call, such as a seed; `needs` says of each operand whether it needs a gradient.
    Operands of edges and their gradients are in CSR order.
    """

    __slots__ = ("jobs", "kinds", "request", "results")

    request: Request
    is_listed = False  # whether `gradients` gets a list with the gradient by each result
    # Whether `kept` may have results, and then begins with all operands, so that results that the
    # caller changes in place are computed again for the gradients.
    keeps_results = False
    given: Sequence[int] = ()  # operands that the eager caller has in the order of the edge_index

    def __init__(self) -> None:
        self.results = 1  # of what `run` gives
        self.kinds: dict[str, KeptPlan | OnceKind] = {}
        self.jobs: dict[Any, _later.Job] = {}  # that compile kernels; () where these are there

    def plan(self, graph: Graph, name: str) -> Launcher:
        """The plan of `request_of(name)`, made at its first use."""
        kind = self.kinds.get(name)
        if kind is None:
            kind = self.kinds[name] = graph.kind(self.request_of(graph, name))
        return kind.of(graph)

    def edge_products(
        self, graph: Graph, name: str, x: Tensor, b: Maybe, values: Maybe, seed: int
    ) -> Tensor:
        """The SDDMM of `request_of(name)`. The library refuses a sum over no columns."""
        if self.request.n == 0:
            return x.new_zeros(edge_shape(graph.nnz, self.request.heads))
        return self.plan(graph, name).edge_products(x, b, values, seed)

    def request_of(self, graph: Graph, name: str) -> Request:
        """What the plan of this name computes."""
        raise NotImplementedError

    def run(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> Sequence[Tensor]:
        """The results, and with a gradient that is needed what else the gradients read."""
        raise NotImplementedError

    def run_as_declared(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> Sequence[Tensor]:
        """The same of the types that `outputs` says, for the registered op."""
        return self.run(graph, operands, numbers, needs)

    def outputs(self, size: Size, needs: Needs) -> list[Shape]:
        """Shapes and types of what `run` gives."""
        raise NotImplementedError

    def kept(
        self, operands: Sequence[Maybe], made: Sequence[Tensor], needs: Needs
    ) -> Sequence[Maybe]:
        """What the gradients read, of the operands and of what `run` gave."""
        return *operands, *made

    def gradients(
        self, graph: Graph, x: Any, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients:
        """The gradients by the operands, of their shapes and types, where they are needed."""
        raise NotImplementedError

    def rehearsals(
        self, graph: Graph, operands: Sequence[Maybe], numbers: tuple[Any, ...], needs: Needs
    ) -> Sequence[Callable[[], Any]]:
        """Functions that together run the kernels of a call and of its gradients, for any thread;
        their results are dropped."""

        def run() -> None:
            made = self.run(graph, operands, numbers, needs)
            if True in needs:
                upstream = [torch.zeros_like(one) for one in made[: self.results]]
                kept = self.kept(operands, made, needs)
                x = upstream if self.is_listed else upstream[0]
                self.gradients(graph, x, kept, numbers, needs)

        return (run,)

    def bind(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[Tensor]]:
        """`run_as_declared` of operands, for many calls with one graph.

        arrange: puts them into CSR order; None: they are.
        """

        def run(*operands: Maybe) -> list[Tensor]:
            given = operands if arrange is None else arrange(operands)
            return list(self.run_as_declared(graph, given, numbers, needs))

        return run

    def bind_gradients(
        self, graph: Graph, numbers: tuple[Any, ...], needs: Needs, arrange: Any
    ) -> Callable[..., list[Tensor]] | None:
        """The gradients that are needed, of x and kept operands, for many calls with one graph;
        None where they have no shorter way than `gradients`."""
        return None

    def differentiable(
        self, graph: Graph, x: Any, kept: Sequence[Any], numbers: tuple[Any, ...], needs: Needs
    ) -> Gradients | None:
        """The same with gradients of their own; None = there are no second derivatives."""
        return None


# ---- the eager call ------------------------------------------------------------------------------


class _Eager(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Any, *operands: Maybe) -> tuple[Tensor, ...]:
        ctx.call = call
        graph, product, numbers = call
        needs = ctx.needs_input_grad[1:]
        made = product.run(graph, operands, numbers, needs)
        kept = product.kept(operands, made, needs)
        if product.keeps_results:
            ctx.counters = []
            kept = _without_counts(kept, made[: product.results], ctx.counters)
        if kept:
            ctx.save_for_backward(*kept)
        if product.is_listed:
            ctx.set_materialize_grads(False)
        return tuple(made[: product.results])

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> tuple[Maybe, ...]:
        if is_batched(upstream):
            each = for_each_of_batch(lambda given: _Eager.backward(ctx, *given)[1:], upstream)
            return None, *each
        graph, product, numbers = ctx.call
        needs = ctx.needs_input_grad[1:]
        x = upstream if product.is_listed else upstream[0]
        saved = ctx.saved_tensors
        if product.keeps_results and not _are_same(ctx.counters):
            operands = saved[: len(needs)]
            with torch.no_grad():
                made = product.run(graph, operands, numbers, needs)
            saved = product.kept(operands, made, needs)
        if not torch.is_grad_enabled():
            return None, *product.gradients(graph, x, saved, numbers, needs)
        found = product.differentiable(graph, x, saved, numbers, needs)
        if found is None:
            with torch.no_grad():
                found = product.gradients(graph, x, saved, numbers, needs)
            name = type(ctx).__name__.removesuffix("Backward")
            found = _registered.final(name, found, *upstream, *saved)
        return None, *found


def _without_counts(
    kept: Sequence[Maybe], results: Sequence[Tensor], counters: list[tuple[Tensor, int]]
) -> Sequence[Maybe]:
    """What is kept, where PyTorch counts no changes of the results, and counters of their own."""
    uncounted = list(kept)
    for at, one in enumerate(kept):
        for result in results:
            if one is result:
                uncounted[at] = one.data
                counter = one.detach()
                counter.data = element(one.dtype, one.device)  # it counts and has no memory
                counters.append((counter, counter._version))
    return uncounted


def _are_same(counters: list[tuple[Tensor, int]]) -> bool:
    for counter, count in counters:  # noqa: SIM110 - all() would call a generator for each
        if counter._version != count:
            return False
    return True


class _Reordered(torch.autograd.Function):
    """Lines in another order; `back` is the way back."""

    @staticmethod
    def forward(ctx: Any, lines: Tensor, order: Tensor, back: Tensor) -> Tensor:
        ctx.orders = back, order
        return lines.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, x: Tensor) -> tuple[Maybe, ...]:
        (found,) = for_each_of_batch(lambda given: [_reorder(*given, *ctx.orders)], [x])
        return found, None, None


_reorder = quick_apply(_Reordered)


def _in_csr_order(graph: Graph, operands: Sequence[Any], which: Sequence[int]) -> Sequence[Any]:
    """The operands, of which these are in the order of the edge_index."""
    order = graph.edge_order()
    if order is None:
        return operands
    ordered = list(operands)
    for at in which:
        one = ordered[at]
        if one.requires_grad and torch.is_grad_enabled():
            ordered[at] = _reorder(one, order, graph.edge_places())
        else:
            ordered[at] = graph.order_edges(one, order)
    return ordered


class Operation:
    """An operation over a graph, and its registered ops.

    lines: of each operand the attribute of Graph that says how many lines it has; None = any.
    make: the Product of operands and options, which it does not check.
    check: raises what is wrong with operands and options.
    operands: as the schema of the op has them, the first one a tensor; None: a list of tensors. The
        results of a list count as differentiable.
    by_edges: whether operands of edges come in the order of the edge_index.
    """

    def __init__(
        self,
        name: str,
        lines: Sequence[str | None],
        make: Callable[..., Product],
        check: Callable[..., None],
        operands: str | None = None,
        by_edges: bool = False,
    ) -> None:
        self.name, self.operands, self.by_edges = name, operands, by_edges
        self.lines, self.make, self.check = lines, make, check
        self._apply = quick_apply(type(name, (_Eager,), {}))  # nodes of autograd have its name
        _registered.register(self)

    def lines_of(self, options: tuple[Any, ...]) -> Sequence[str | None]:
        """The lines of the operands of a call with these options."""
        return self.lines

    def count_of(self, options: tuple[Any, ...]) -> int:
        """How many results a call with these options has."""
        return 1

    def dispatch(
        self, graph: Graph, operands: Sequence[Maybe], options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Sequence[Tensor]:  # fmt: skip
        """The results by the registered op; differentiable."""
        traced = graph if isinstance(graph, EdgeList) else EdgeList.of(graph)
        return traced.call(self, operands, options, numbers)[: self.count_of(options)]

    def __call__(
        self, graph: Graph, operands: Sequence[Maybe], options: tuple[Any, ...],
        numbers: tuple[Any, ...],
    ) -> Sequence[Tensor]:  # fmt: skip
        """The results outside of compiled code; differentiable. numbers end with the seed."""
        # A message stays eager in dispatch modes, since its op has no second derivatives.
        if not self.by_edges and is_dispatched(operands[0]):
            refuse_transforms(self.name, operands, is_eager=False)
            return self.dispatch(graph, operands, options, numbers)
        key: Any = [self.name, options]
        product: Product | None = None
        differentiates = False
        try:
            for operand in operands:
                if operand is None:
                    key.append(None)
                    continue
                key += operand.shape, operand.dtype, operand.get_device()
                if operand.requires_grad:
                    differentiates = True
            if not graph.once:  # whose sizes are others in each step
                key = tuple(key)
                product = graph._products.get(key)
        except (AttributeError, TypeError):  # of wrong arguments, for which the check raises
            pass
        if product is None:
            product = self.product(graph, operands, options)
            if not graph.once:
                graph._products[key] = product
        if product.given:
            operands = _in_csr_order(graph, operands, product.given)
        differentiates = differentiates and torch.is_grad_enabled()
        if _later.thread.module is not None and graph.index >= _later.FIRST_DEVICE:
            needs: Needs = ()
            if differentiates:
                needs = tuple([one is not None and one.requires_grad for one in operands])
            graph, product = _later.chosen(self, graph, product, operands, options, numbers, needs)
        if differentiates:
            return self._apply((graph, product, numbers), *operands)  # type: ignore[no-any-return]
        return product.run(graph, operands, numbers, ())

    def product(self, graph: Graph, operands: Sequence[Maybe], options: tuple[Any, ...]) -> Product:
        """The checked call, which the graph keeps.

        Its key has no number of lines, so that all graphs that are used once share it.
        """
        key: Any = None
        product: Product | None = None
        try:
            parts: list[Any] = [self.name, options]
            fits = True
            for operand, lines in zip(operands, self.lines or self.lines_of(options)):
                if operand is None:
                    parts.append(None)
                    continue
                line = operand.shape
                if lines is not None:
                    fits = fits and line[0] == getattr(graph, lines)
                    line = line[1:]
                parts += lines, line, operand.dtype, operand.get_device()
            key = tuple(parts)
            product = graph._products.get(key) if fits else None
        except (AttributeError, IndexError, TypeError):  # for which the check raises
            pass
        if product is None:
            self.check(graph, operands, *options)
            product = graph._products[key] = self.make(operands, *options)
        return product
