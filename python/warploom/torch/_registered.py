"""Registered ops, for compiled and exported code and for dispatch modes.

NAME and NAME_backward of an operation get a graph as its CSR, or as a list of edges whose graph
`warploom.pyg` finds when they run, so that compiled code has neither its tensors nor their sizes.
All that is fixed when the code is compiled is one text, which is read once (`_edges.Call`), because
each argument of an op costs time on each call. Plans are found by the identity of the tensors of a
Graph; other tensors are multiplied as a matrix that is used once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import torch

from warploom.torch._edges import Call, Maybe, Place, Size, Tensor, calls, operations, read
from warploom.torch._internals import for_each_of_batch, is_dispatched
from warploom.torch._plan import convert_edges, index_type

_library = torch.library.Library("warploom", "DEF")  # type: ignore[no-untyped-call]
# Calls that ran, by their keys; `warploom.pyg` puts its own here.
counts: Counter[Any] = Counter()


def _define(schema: str, function: Any, fake: Any, *tags: torch.Tag) -> None:
    """Register an op: what runs, and what makes empty results for tracing."""
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag, *tags))  # type: ignore[no-untyped-call]
    _library.impl(name, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    torch.library.register_fake(f"warploom::{name}", fake, lib=_library)


def _csr_fake(edge_index: Tensor, rows: int, cols: int) -> tuple[Tensor, ...]:
    edges = edge_index.shape[1]
    dtype = index_type(rows, cols, edges)
    return tuple([edge_index.new_empty(count, dtype=dtype) for count in (rows + 1, edges, edges)])


_define(
    "csr_from_edges(Tensor edge_index, SymInt rows, SymInt cols) -> (Tensor, Tensor, Tensor)",
    convert_edges,
    _csr_fake,
)

# ---- operations ----------------------------------------------------------------------------------

_SCHEMA = (
    "Tensor? edges, Tensor? colind, Tensor? perm, SymInt rows, SymInt cols, SymInt nnz, "
    "str call, float[] numbers, SymInt seed"
)
_PLACE, _GIVEN = 6, 9  # arguments that say where the graph is, and all of those


def _run(arguments: Sequence[Any], operands: Sequence[Maybe]) -> Sequence[Tensor]:
    edges, colind, _, rows, cols, _, text, numbers, seed = arguments[:_GIVEN]
    call = calls.get(text) or read(text)
    if call.key:
        counts[call.key] += 1
    run = None if colind is not None else call.last(edges, rows, cols, (numbers, seed), False)
    if run is None:
        place = Place(*arguments[:_PLACE])
        run = call.find(place, (numbers, seed), False, operands)
    return run(*operands)


def _forward(*arguments: Any) -> Sequence[Tensor]:
    return _run(arguments, arguments[_GIVEN:])


def _forward_list(*arguments: Any) -> Sequence[Tensor]:
    return _run(arguments, arguments[_GIVEN])


def _forward_fake(*arguments: Any) -> list[Tensor]:
    place, call = Place(*arguments[:_PLACE]), read(arguments[_PLACE])
    operands = arguments[_GIVEN] if call.operation.operands is None else arguments[_GIVEN:]
    like = operands[0] if place.edges is None else place.edges
    size = place.size()
    made = call.product(size).outputs(size, call.needs)
    outputs = [like.new_empty(shape, dtype=dtype) for shape, dtype in made]
    return [*outputs, torch.empty((), dtype=torch.int64)] if call.draws else outputs


def _backward(*arguments: Any) -> Sequence[Tensor]:
    edges, colind, _, rows, cols, _, text, numbers, seed, x, kept = arguments
    call = calls.get(text) or read(text)
    run = None if colind is not None else call.last(edges, rows, cols, (numbers, seed), True)
    if run is None:
        run = call.find(Place(*arguments[:_PLACE]), (numbers, seed), True)
    return run(x, kept)


def _backward_fake(*arguments: Any) -> list[Tensor]:
    place, call, x = Place(*arguments[:_PLACE]), read(arguments[_PLACE]), arguments[_GIVEN]
    if not isinstance(x, Tensor):
        x = next(one for one in x if one is not None)
    return [
        x.new_empty(like.shape, dtype=like.dtype)
        for like, is_needed in zip(call.operands(place.size()), call.needs)
        if is_needed and like is not None
    ]


def _setup(ctx: Any, inputs: Any, output: list[Tensor]) -> None:
    ctx.sizes, (ctx.text, ctx.numbers, ctx.seed) = inputs[3:_PLACE], inputs[_PLACE:_GIVEN]
    call, operands = read(ctx.text), inputs[_GIVEN:]
    if call.operation.operands is None:
        (operands,) = operands
        ctx.set_materialize_grads(False)
    rows, cols, nnz = ctx.sizes
    product = call.product(Size(rows, cols, nnz, torch.int32))
    ctx.results = product.results
    ctx.mark_non_differentiable(*output[ctx.results :])
    made = output[: len(output) - call.draws]
    seed = output[len(made) :]
    ctx.save_for_backward(*inputs[:3], *product.kept(operands, made, call.needs), *seed)


class _Final(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, name: str, count: int, *tensors: Maybe) -> tuple[Maybe, ...]:
        ctx.name = name
        return tuple([None if one is None else one.view_as(one) for one in tensors[:count]])

    @staticmethod
    def backward(ctx: Any, *upstream: Any) -> NoReturn:
        raise NotImplementedError(
            f"warploom: no second derivatives of {ctx.name}; use message(), which has them, also "
            "with a score, or PyTorch's functions"
        )


def final(name: str, gradients: Sequence[Maybe], *read: Maybe) -> Sequence[Maybe]:
    """Gradients of an operation that raise an error where they are differentiated by what they were
    computed of. torch's once_differentiable takes them for constants where the upstream is one."""
    return _Final.apply(name, len(gradients), *gradients, *read)  # type: ignore[no-any-return,no-untyped-call]


def _gradients(ctx: Any, upstream: list[Maybe]) -> tuple[Any, ...]:
    call = read(ctx.text)
    needs, name = call.needs, call.operation.name
    is_list = call.operation.operands is None
    asked = ctx.needs_input_grad[_GIVEN] if is_list else ctx.needs_input_grad[_GIVEN:]
    if any(is_asked and not is_needed for is_asked, is_needed in zip(asked, needs)):
        raise RuntimeError(f"warploom: {name}: the op was compiled without this gradient")
    found = for_each_of_batch(partial(_of_operands, ctx, call), upstream)
    # PyTorch takes an empty list for one of tensors.
    numbers: Any = None if ctx.numbers else []
    before = *(None,) * (_PLACE + 1), numbers, None
    return (*before, list(found)) if is_list else (*before, *found)


def _of_operands(ctx: Any, call: Call, upstream: Sequence[Maybe]) -> Sequence[Maybe]:
    needs, name = call.needs, call.operation.name
    is_list = call.operation.operands is None
    found: list[Maybe] = [None] * len(needs)
    x: Any = upstream[: ctx.results] if is_list else upstream[0]
    saved, how = ctx.saved_tensors, (ctx.text, ctx.numbers, ctx.seed)
    again = None
    if torch.is_grad_enabled() and not is_list:
        again = call.differentiable(Place(*saved[:3], *ctx.sizes), how[1:], x, saved[3:])
    if again is not None:
        found = list(again)
    elif not is_list or any(one is not None for one in x):
        backward = getattr(torch.ops.warploom, name + "_backward")
        with torch.no_grad():
            made = iter(backward(*saved[:3], *ctx.sizes, *how, x, saved[3:]))
        found = [next(made) if is_needed else None for is_needed in needs]
        if torch.is_grad_enabled():
            found = list(final(name, found, *upstream, *saved))
    return found


class _Direct:
    """Registers what PyTorch makes for autograd, without a second dispatch where compiled code
    runs: that records nothing itself."""

    def __init__(self, forward: Any, is_list: bool) -> None:
        self._forward, self._is_list = forward, is_list

    def impl(self, name: str, recorded: Any, key: str, *, with_keyset: bool) -> None:
        forward, is_list = self._forward, self._is_list

        def call(keyset: Any, *arguments: Any) -> Any:
            operands = arguments[_GIVEN] if is_list else arguments[_GIVEN:]
            first = operands[0] if operands else arguments[0]
            if torch.is_grad_enabled() or is_dispatched(first):
                return recorded(keyset, *arguments)
            return forward(*arguments)

        _library.impl(name, call, key, with_keyset=with_keyset)  # type: ignore[no-untyped-call]


def register(operation: Any) -> None:
    """Register the ops of an Operation (_ops)."""
    name, is_list = operation.name, operation.operands is None
    operations[name] = operation
    forward: Callable[..., Any] = _forward_list if is_list else _forward
    operands = operation.operands or "Tensor[] operands"
    x = "Tensor?[] x" if is_list else "Tensor x"
    for ending, schema, function, fake in (
        ("", operands, forward, _forward_fake),
        ("_backward", f"{x}, Tensor?[] kept", _backward, _backward_fake),
    ):
        whole = f"{name}{ending}({_SCHEMA}, {schema}) -> Tensor[]"
        _define(whole, function, fake, torch.Tag.nondeterministic_seeded)
        setattr(torch.ops.warploom, f"run_{name}{ending}", function)
    direct: Any = _Direct(forward, is_list)
    torch.library.register_autograd(
        f"warploom::{name}", _gradients, setup_context=_setup, lib=direct
    )
