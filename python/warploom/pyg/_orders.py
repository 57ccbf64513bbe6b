"""The order of a layer's products: A (X W) or (A X) W, by their expected times.

A (X W) multiplies A by the columns of X W, forward, and backward where X or W needs a gradient.
(A X) W multiplies it by the columns of X, forward, and backward where X needs a gradient. Edge
weights with a gradient need one more walk over the edges, with as many columns. The dense product
takes the same time in both, but for another number of sources than of targets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from warploom.pyg import _names, _switch
from warploom.pyg._kept import Operands, Run, constant
from warploom.pyg._switch import options, orders
from warploom.torch._graph import Graph
from warploom.torch._internals import any_autocast
from warploom.torch._memory import is_capturing
from warploom.torch._plan import Request

# The other order must save more than this part of the time of PyG's, since expected times err.
_MARGIN = 0.1
# Numbers that a dense product multiplies in the time in which a sparse one reads a byte of B, by
# their bytes; calculated from the rates of an H200, whose tensor cores multiply those of 16 bits.
_FACTORS_A_BYTE = {2: 32, 4: 4, 8: 4}
_KEPT = "(A X) W, A X is kept"
_ORDERS = {True: "(A X) W", False: "A (X W)"}


class Map(NamedTuple):
    """The linear map of a layer."""

    module: Any
    weight: Tensor | None  # None where the module does something else than a map
    bias: Tensor | None  # that is added at the end


def map_of(module: Any, x: Tensor, bias: Tensor | None = None) -> Map:
    """The map that a module applies to X. bias: the layer's, in the place of the module's.

    A module with a hook, a parametrization or an adapter, which are other classes or see the
    numbers, is no such map, nor is one of another type than X.
    """
    kind, parameters = type(module), module._parameters
    if (kind is torch.nn.Linear or kind is Linear) and "forward" not in module.__dict__:
        weight, own = parameters.get("weight"), parameters.get("bias")
        added = own if bias is None else bias
        if (
            type(weight) is torch.nn.Parameter
            and weight.dtype is x.dtype
            and weight.device == x.device
            and weight.shape[1] == x.shape[1]
            and (added is None or (type(added) is torch.nn.Parameter and added.dtype is x.dtype))
            and (bias is None or own is None)
            and not _names.has_hooks_of(module)
        ):
            return Map(module, weight, added)
    return Map(module, None, None)


class Ordered(NamedTuple):
    """A layer's product: what is made of it and of its map, and a bias that is to be added."""

    out: Tensor
    bias: Tensor | None = None


def may_reorder() -> bool:
    """Whether products may have another order than PyG's."""
    return (
        options().reorder
        and not torch.are_deterministic_algorithms_enabled()
        and not any_autocast()
    )


def ordered(
    layer: Any, call: Operands, linear: Map, is_aggregated: bool, name: Any, run: Run,
    times: int = 1,
) -> Ordered:  # fmt: skip
    """The linear map of a product, or the product of a linear map.

    is_aggregated: whether PyG aggregates first.
    name, run: the product, of as many products with A as `times`, as for `constant`.
    """
    x, weight = call.x, linear.weight
    product = None
    if not x.requires_grad and (is_aggregated or (weight is not None and may_reorder())):
        product = constant(call, name, run, lambda: _saved(call, linear, times))
        if product is not None:
            note(layer, _KEPT, x, linear)
    if product is None:
        if not aggregates(layer, call, linear, times, is_aggregated):
            if weight is None:
                return Ordered(run(call, linear.module(x)))
            return Ordered(run(call, torch.nn.functional.linear(x, weight)), linear.bias)
        product = run(call, x)
    if weight is None:
        return Ordered(linear.module(product))
    return Ordered(torch.nn.functional.linear(product, weight, linear.bias))


def without_map(layer: Any, call: Operands, name: Any, run: Run, times: int) -> Tensor:
    """A product that no map follows, for the user: what is kept is copied. See `ordered`."""
    if not call.x.requires_grad:
        product = constant(call, name, run, lambda: _saved(call, Map(None, None, None), times))
        if product is not None:
            note(layer, f"{call.x.shape[1]}: A X is kept")
            return product.clone()
    note(layer, f"{call.x.shape[1]}: A X")
    return run(call, call.x)


def constants(
    layer: Any, call: Operands, linear: Map, count: int, name: Any, run: Callable[..., Tensor]
) -> list[Tensor] | None:
    """The kept terms of a recurrence; None where not all of them are kept. run: gets `times`, from
    1 to `count`."""
    terms = []
    for times in range(1, count + 1):
        one = constant(
            call,
            (name, times),
            partial(run, times=times),
            lambda: _saved(call, linear, 1),
            count + 1 - times,
        )
        if one is not None:
            terms.append(one)
    if len(terms) < count:
        return None
    note(layer, _KEPT, call.x, linear)
    return terms


def aggregates(
    layer: Any, call: Operands, linear: Map, times: int, is_aggregated: bool = True
) -> bool:
    """Whether A X comes before the map. is_aggregated: whether that is PyG's order."""
    first, text = is_aggregated, "as PyG"
    if linear.weight is None:
        text = "as PyG, for its linear map"
    elif torch.are_deterministic_algorithms_enabled():
        text = "as PyG, deterministic"
    elif any_autocast():
        text = "as PyG, under autocast"
    elif not _switch.all_options[-1].reorder:
        text = "as PyG, reorder=False"
    else:
        first, text = _choice(call, linear.weight, is_aggregated, times)
    note(layer, f"{_ORDERS[first]}, {text}", call.x, linear)
    return first


def note(layer: Any, text: str, x: Tensor | None = None, linear: Map | None = None) -> None:
    """Count a call for `report(orders=True)`, with the widths of its product and map."""
    if x is not None and linear is not None:
        outputs = "?" if linear.weight is None else linear.weight.shape[0]
        text = f"{x.shape[1]} -> {outputs}: {text}"
    if torch.compiler.is_compiling():
        _count(type(layer).__name__, text)
    else:
        orders[type(layer).__name__, text] += 1


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _count(name: str, text: str) -> None:
    orders[name, text] += 1


# ---- expected times -----------------------------------------------------------------------------


def _choice(call: Operands, weight: Tensor, is_aggregated: bool, times: int) -> tuple[bool, str]:
    """Whether A X comes first, and why."""
    x, found = call.x, call.found
    gradients = torch.is_grad_enabled()
    needs = (
        gradients and x.requires_grad,
        gradients and weight.requires_grad,
        gradients and call.values is not None and call.values.requires_grad,
    )
    # Where the host's time counts, and where all ranks or all runs of a code must choose the same.
    # An exchange has as many columns as the product.
    graph = None if found is None else found.graph
    if found is None or graph is None or (graph.once and graph.rows == graph.cols):
        outputs, inputs = weight.shape
        costs = {
            True: float(inputs * (1 + needs[0] + needs[2])),
            False: float(outputs * (1 + (needs[0] or needs[1]) + needs[2])),
        }
        if costs[not is_aggregated] > (1 - _MARGIN) * costs[is_aggregated]:
            return is_aggregated, "as PyG"
        return not is_aggregated, "by the columns"
    key = (tuple(weight.shape), x.dtype, call.reduce, call.values is None, needs, times)
    known = found.orders.get((key, is_aggregated))
    if known is not None:
        return known  # type: ignore[no-any-return]
    by_time = not graph.once and not is_capturing(x)  # to ask for a time may wait for the device
    costs = _costs(call, tuple(weight.shape), needs, by_time)
    pyg, other = costs[is_aggregated] * times, costs[not is_aggregated] * times
    if other > (1 - _MARGIN) * pyg:
        made = is_aggregated, "as PyG"
    elif not by_time:
        made = not is_aggregated, "by the columns"
    else:
        part = math.ceil(10 * other / pyg) / 10
        made = not is_aggregated, f"expected to take at most {part} of the time of PyG's"
    if by_time:
        found.orders[key, is_aggregated] = made
    return made


def _costs(
    call: Operands, shape: Sequence[int], needs: tuple[bool, bool, bool], by_time: bool
) -> dict[bool, float]:
    """The seconds, or bytes, of both orders, by whether A X comes first."""
    of_x, of_weight, of_values = needs
    assert call.found is not None
    graph, (outputs, inputs) = call.found.graph, shape
    forward, backward, unit = _times(call, (inputs, outputs), by_time)
    dense = 1 + of_weight + of_x
    # Each number of X W takes `inputs` factors; (A X) W has one line for each target.
    more = (
        (graph.cols - graph.rows)
        * inputs
        * outputs
        * dense
        * unit
        / _FACTORS_A_BYTE[call.x.element_size()]
    )
    return {
        True: forward[0] * (1 + of_values) + backward[0] * of_x + max(-more, 0.0),
        False: forward[1] * (1 + of_values) + backward[1] * (of_weight or of_x) + max(more, 0.0),
    }


def _times(
    call: Operands, widths: tuple[int, int], by_time: bool = True
) -> tuple[list[float], list[float], float]:
    """The times of products with these columns, forward and backward, and that of one byte. They
    are in seconds, or with by_time=False the bytes that are moved."""
    assert call.found is not None
    graph, size = call.found.graph, call.x.element_size()
    moved = [float((graph.nnz + graph.rows) * n * size) for n in widths]
    if not by_time:
        return moved, moved, 1.0
    kind = "copy_b" if call.values is None else "mul"
    values = None if call.values is None else call.values.dtype
    requests = [Request((n,), call.x.dtype, values, 1, call.reduce, kind) for n in widths]
    back = [one._replace(reduce="sum", message="mul", transpose=True) for one in requests]
    seconds = _seconds(graph, [*requests, *back])
    return seconds[:2], seconds[2:], seconds[1] / max(moved[1], 1.0)


def _seconds(graph: Graph, requests: Sequence[Request]) -> list[float]:
    """Expected times, all of one kind, since rules have none."""
    found = [graph.expected_of(request) for request in requests]
    seconds = [one.seconds for one in found if one.seconds is not None]
    return seconds if len(seconds) == len(found) else [one.simple for one in found]


def _saved(call: Operands, linear: Map, times: int) -> float:
    """The seconds that a kept product saves in a step."""
    if linear.weight is None:
        return times * _times(call, (call.x.size(1), call.x.size(1)))[0][0]
    forward, backward, _ = _times(call, (call.x.size(1), linear.weight.size(0)))
    return times * min(forward[0], forward[1] + backward[1])
