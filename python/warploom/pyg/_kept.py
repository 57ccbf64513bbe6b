"""Products of features that never change: computed once, and kept as long as their tensors live.

The second call with the same unchanged features, edges and weights keeps the product. A change ends
it, and the second call after the change keeps the new one. Captured steps read the product where it
is; before a replay that follows a change of the features it is computed again in its place.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warploom.pyg._sorted import Sorted, order_values
from warploom.pyg._switch import options
from warploom.torch import _sampling
from warploom.torch._eager import multiply
from warploom.torch._internals import is_deterministic, recordable
from warploom.torch._memory import is_capturing
from warploom.torch._plan import current_stream
from warploom.torch._state import KEPT, TensorState, used

_MOST_SEEN = 16  # of a graph: features of its layers


class Operands(NamedTuple):
    """A product of a layer: A, X and how messages are reduced.

    found, product: A in eager code on one device; or else what multiplies by it, given features,
        values and the reduction.
    """

    found: Sorted | None
    x: Tensor
    weight: Tensor | None  # of edges, as the layer got it
    values: Tensor | None  # the same in CSR order
    reduce: str
    root: Tensor | None = None  # a factor of X that is added, one element
    product: Callable[[Tensor, Tensor | None, str], Tensor] | None = None

    def multiply(self, x: Tensor) -> Tensor:
        """A times these features, which may be others than X."""
        values, root = self.values, self.root
        if self.found is None:
            assert self.product is not None
            out = self.product(x, values, self.reduce)
            return out if root is None else torch.addcmul(out, x, root)
        kind = "mul" if values is not None else "copy_b"
        trained = root if root is not None and root.requires_grad else None
        # In the types that are given also under autocast, as PyG gathers and scatters.
        out = multiply(
            self.found.graph, x, values, self.reduce, kind, is_deterministic(),
            root=root if trained is None else None,
        )  # fmt: skip
        return out if trained is None else torch.addcmul(out, x, trained)


Run = Callable[[Operands, Tensor], Tensor]


class _Once:
    """Operands that a call had; the next call with them keeps their product."""

    __slots__ = ("_versions", "_where", "refused")

    def __init__(self, x: Tensor, weight: Tensor | None) -> None:
        self._where = [None if one is None else weakref.ref(one) for one in (x, weight)]
        self._versions = [None if one is None else one._version for one in (x, weight)]
        self.refused: Any = None  # the limits that left it no room

    def is_of(self, x: Tensor, weight: Tensor | None) -> bool:
        return all(
            one is None or (where() is one and one._version == version)
            for one, where, version in zip((x, weight), self._where, self._versions)
            if where is not None
        )


class Kept(TensorState):
    """The product of features that are as they were; they are its tensor."""

    __slots__ = (
        "__weakref__", "_found", "_key", "_made", "_ready", "_run", "_stream", "_weight", "gain",
        "out"
    )  # fmt: skip

    def __init__(self, call: Operands, key: Any, run: Run, gain: float) -> None:
        assert call.found is not None
        ended = partial(_end, weakref.ref(call.found), key)
        super().__init__(call.x, ended)
        self._weight = None if call.weight is None else TensorState(call.weight, ended)
        self._found, self._key, self._run = weakref.ref(call.found), key, run
        self.gain = gain  # seconds of a step
        self.out = _computed(call, run)
        setattr(self.out, KEPT, True)
        self._note()

    def _note(self) -> None:
        """Note the product as it was just made, on the current stream."""
        out = self.out
        self._made = out._version
        self._stream = current_stream(out.get_device())
        self._ready: Any = None
        if out.is_cuda:
            self._ready = torch.cuda.current_stream(out.device).record_event()

    @property
    def key(self) -> int:
        """See TensorState."""
        return id(self)

    @property
    def size(self) -> int:
        """Bytes."""
        return self.out.numel() * self.out.element_size()

    def serves(self, x: Tensor, weight: Tensor | None) -> bool:
        """Whether this is the product of these tensors as they are now."""
        return (
            self.out._version == self._made
            and (self._weight is None or (weight is not None and self._weight.is_of(weight)))
            and self.is_of(x, self)
        )

    def read(self, x: Tensor, root: Tensor | None) -> Tensor:
        """The product, with what is added of X, on the current stream."""
        out = self.out
        is_elsewhere = out.is_cuda and current_stream(out.get_device()) != self._stream
        if is_elsewhere and not is_capturing(out):  # a capture begins when all work has ended
            stream = torch.cuda.current_stream(out.device)
            stream.wait_event(self._ready)
            out.record_stream(stream)
        return out if root is None else torch.addcmul(out, x, root)

    def holds(self) -> bool:
        """See TensorState. Features that were changed in place get their product here."""
        x, weight = self.tensor(), None if self._weight is None else self._weight.tensor()
        if x is None:
            return True
        if self.serves(x, weight):
            return True
        found, layout = self._found(), (x.storage_offset(), x.shape, x.stride())
        if found is None or self._storage() is not x.untyped_storage() or self._layout != layout:
            return False
        if self._weight is not None and (weight is None or not self._weight.is_of(weight)):
            return False
        values = found.weights
        if weight is not None:
            values = order_values(found.graph, weight.reshape(-1).to(x.dtype))
        with torch.no_grad():
            self.out.copy_(_computed(Operands(found, x, weight, values, self._key[1]), self._run))
        self.take(x)
        self._note()
        return True

    def is_made_of(self, tensor: Any) -> bool:
        """Whether this weak reference is one of its own."""
        return self.tensor is tensor or (self._weight is not None and self._weight.tensor is tensor)

    def leave(self) -> None:
        """Give it up."""
        found = self._found()
        if found is not None and found.kept.get(self._key) is self:
            del found.kept[self._key]


_all: weakref.WeakSet[Kept] = weakref.WeakSet()


def _computed(call: Operands, run: Run) -> Tensor:
    with recordable(), torch.no_grad(), _sampling.exact():
        return run(call._replace(root=None), call.x)


def _end(found: Callable[[], Sorted | None], key: Any, tensor: Any) -> None:
    there = found()
    one = None if there is None else there.kept.get(key)
    if there is not None and one is not None and one.is_made_of(tensor):
        there.kept.pop(key, None)


def constant(
    call: Operands, name: Any, run: Run, gain: Callable[[], float], together: int = 1
) -> Tensor | None:
    """The product that is kept of these operands; None where none is.

    name, run: what is computed of A and X; it must not be given to the user, who may change it.
    gain: the seconds that a step saves. together: products that must all have room, with this one.
    """
    found, x, weight = call.found, call.x, call.weight
    if (
        found is None
        or x.requires_grad
        or options().keep == 0
        or x.is_inference()
        or (weight is not None and (weight.requires_grad or weight.is_inference()))
    ):
        return None
    kind = "copy_b" if call.values is None else "mul"
    sampling = _sampling.chosen
    if sampling is not None and sampling(found.graph, x, call.values, call.reduce, kind):
        return None  # a kept product has all edges
    capturing = is_capturing(x)
    if capturing and used.states is None:  # a replay of the user's own graph sees no change of X
        return None
    key = name, call.reduce, id(x), id(weight)
    one: Kept | None = found.kept.get(key)
    if one is not None:
        if one.serves(x, weight):
            return one.read(x, call.root)
        found.kept.pop(key, None)
    if capturing:
        return None
    seen = found.seen.get(key)
    if seen is None or not seen.is_of(x, weight):
        found.seen.pop(key, None)
        found.seen[key] = _Once(x, weight)
        while len(found.seen) > _MOST_SEEN:
            found.seen.pop(next(iter(found.seen)), None)
        return None
    if found.graph.once:
        return None
    limits = options().keep, len(_all)
    if seen.refused == limits:
        return None
    size = found.graph.rows * x.size(1) * x.element_size() * together
    if _lies_in_graph(x) or not _has_room(size, gain(), x.device):
        seen.refused = limits
        return None
    one = found.kept[key] = Kept(call, key, run, gain())
    _all.add(one)
    return one.read(x, call.root)


def _lies_in_graph(x: Tensor) -> bool:
    """Whether replays of a CUDA graph may write these features, which no version counts."""
    if not x.is_cuda:
        return False
    place = x.untyped_storage().data_ptr()
    return any(
        segment.get("segment_pool_id", (0, 0)) != (0, 0)
        and segment["address"] <= place < segment["address"] + segment["total_size"]
        for segment in torch.cuda.memory_snapshot()  # type: ignore[no-untyped-call]
    )


def _has_room(size: int, gain: float, device: torch.device) -> bool:
    """Whether a product may be kept; gives up others that save less time."""
    others = sorted((one for one in _all if one.out.device == device), key=lambda one: one.gain)
    taken = sum(one.size for one in others)
    limit = options().keep
    if limit is None:
        limit = (_free(device) + taken) // 4
    leaving = []
    while others and others[0].gain < gain and taken + size > limit:
        taken -= others[0].size
        leaving.append(others.pop(0))
    if taken + size > limit:
        return False
    for one in leaving:
        one.leave()
    return True


def _free(device: torch.device) -> int:
    """Bytes that nothing has asked for."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
