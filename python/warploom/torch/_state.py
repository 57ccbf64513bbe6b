"""Whether a tensor still has the numbers of which something was made."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


class TensorState:
    """A tensor as it is now; not for inference tensors, which count no modifications.

    A modification in place changes the tensor's version. `tensor.data = ...` does not, but gives it
    another storage or another part of one.

    tensor: a weak reference to it, which calls `ended` with itself at the tensor's end.

    What each step asks does what `is_of` does itself, which spares a call.
    """

    __slots__ = ("layout", "storage", "tensor", "version")

    def __init__(self, tensor: torch.Tensor, ended: Callable[[Any], None] | None = None) -> None:
        self.tensor = weakref.ref(tensor, ended)
        self.version = tensor._version
        self.storage = weakref.ref(tensor.untyped_storage())
        self.layout = tensor.storage_offset(), tensor.shape, tensor.stride()

    def is_of(self, tensor: torch.Tensor, made: Any = None) -> bool:
        """Whether this is the tensor, with the numbers that it had; then a step that is recorded
        uses what was `made` of it."""
        if (
            self.tensor() is not tensor
            or self.version != tensor._version
            or self.storage() is not tensor.untyped_storage()
            or self.layout != (tensor.storage_offset(), tensor.shape, tensor.stride())
        ):
            return False
        if (states := used.states) is not None:
            states.append((self, made))
        return True

    def holds(self) -> bool:
        """Whether the tensor, if it still lives, has the numbers that it had."""
        tensor = self.tensor()
        return tensor is None or self.is_of(tensor)


class _Used:
    """What steps use while they are recorded: states, and what was made of these tensors; None
    where no step is recorded. Of all threads, since PyTorch computes gradients on a GPU in its own.
    """

    states: list[tuple[TensorState, Any]] | None = None
    recorders = 0


used = _Used()
_lock = threading.Lock()


@contextmanager
def recorded() -> Iterator[list[tuple[TensorState, Any]]]:
    """The states that the body uses, and what was made of the tensors; also those of other steps
    that are recorded at the same time."""
    with _lock:
        used.recorders += 1
        found = used.states = [] if used.states is None else used.states
    try:
        yield found
    finally:
        with _lock:
            used.recorders -= 1
            if used.recorders == 0:
                used.states = None
