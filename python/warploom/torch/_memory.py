"""The one memory of what is made of a tensor of indices: sorted edges, norms, added self loops.

What was made belongs to a storage, to a layout within it and to a version. So `detach()` and whole
views of an edge_index find what was made of their base. After a modification all is made again, and
it ends with the storage.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor

from warploom._forks import renewed
from warploom.torch._capture import step_of_thread
from warploom.torch._internals import is_transformed
from warploom.torch._state import Content, Made, Tensors, TensorState, used

_Key = tuple[Any, ...]

MOST_ENTRIES = 64


class Memory:
    """What was made of one tensor of edges, by key; valid until the tensor is modified.

    kept: where it is: `entries`, or what belongs to one step.
    """

    __slots__ = ("__weakref__", "content", "made", "of_step", "owner", "version")

    def __init__(
        self, kept: dict[_Key, Memory], key: _Key, owner: Any, version: int,
        content: Content | None,
    ) -> None:  # fmt: skip
        self.of_step = kept is not entries
        self.owner = weakref.ref(owner, partial(_forget, kept, key))
        self.version = version
        self.content = content  # of edges that are not a sparse matrix
        self.made: dict[Any, Any] = {}

    def get(self, key: Any, other: Tensor | None = None) -> Tensors | None:
        """The tensors that were kept under this key, of the same other tensor."""
        made = self.made.get(key)
        return made.tensors if made is not None and made.is_of(other) else None

    def keep(self, key: Any, tensors: Tensors, other: Tensor | None = None) -> None:
        """Keep tensors, but beyond a step not those in the memory of a graph that is captured."""
        if self.of_step or not any(one is not None and is_capturing(one) for one in tensors):
            self.made[key] = Made(tensors, other)


entries: dict[_Key, Memory] = {}  # the oldest come first
_lock = renewed(threading.Lock())
# Graphs end while the modules that free them are still there.
atexit.register(entries.clear)


# Gets `entries` as an argument, because a tensor may die when the interpreter has cleared this
# module's names.
def _forget(entries: dict[_Key, Memory], key: _Key, owner: Any) -> None:
    found = entries.get(key)
    if found is not None and found.owner is owner:
        entries.pop(key, None)


def memory_of(edges: Tensor) -> Memory | None:
    """The memory of these edges; None where modifications are not counted, in transforms of
    torch.func, whose tensors end with them, and for edges that are new in a capture.

    In a step whose edges change it ends with the step, so that each replay makes all again.
    """
    if edges.is_inference() or is_transformed():
        return None
    version: int = edges._version
    plain = edges
    owner: Any
    key: _Key
    if edges.layout is not torch.strided:  # has several storages, and is known by itself
        key, owner = (id(edges),), edges
    else:
        if type(edges) is not Tensor:
            plain = getattr(edges, "_data", edges)  # of PyG's EdgeIndex
            version += 0 if plain is edges else plain._version
        owner = plain.untyped_storage()
        layout = (plain.storage_offset(), plain.shape, plain.stride(), plain.dtype)
        key = (id(owner), type(edges), *layout)  # an address, which counts while the owner lives
    of_step = step_of_thread.made
    kept = entries if of_step is None else of_step
    found = kept.get(key)
    if (
        found is not None
        and found.version == version
        and found.owner() is owner
        and (found.content is None or found.content.is_same(plain))
    ):
        if (
            of_step is None
            and (states := used.states) is not None
            and plain.layout is torch.strided
        ):
            # The tensor is kept, as it may be a view that ends with the step.
            states.append((TensorState(plain), (plain, found)))
        return found
    if of_step is None and edges.is_cuda and is_capturing(edges):
        return None
    with _lock:
        is_strided = of_step is None and plain.layout is torch.strided
        content = Content(plain) if is_strided else None
        found = kept[key] = Memory(kept, key, owner, version, content)
        while len(kept) > MOST_ENTRIES:
            kept.pop(next(iter(kept)), None)
    return found


def is_capturing(tensor: Tensor) -> bool:
    """Whether what is computed now lies in the memory of a CUDA graph."""
    return tensor.is_cuda and torch.cuda.is_current_stream_capturing()
