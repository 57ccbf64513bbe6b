"""Whether a tensor still has the numbers of which something was made.

PyTorch counts writes through its own tensors. Writes through NumPy, `.data` or another library's
view of the same memory are seen in a part of the numbers of a tensor on the CPU (Content).
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Optional

import torch

from warploom._forks import renewed
from warploom._native import ffi, lib

Tensors = tuple[Optional[torch.Tensor], ...]

# An attribute of tensors that were made of others, whose states say when they must be made again.
KEPT = "_warploom_kept"

_PART = 4096  # bytes that are hashed in half a microsecond
_MOST_PARTS = 64  # a product of 4 columns reads 64 times as much as one of these


class Content:
    """Hashes of a tensor's numbers, of which each look compares one.

    Small tensors have one hash, so that each write is seen. Of others each look reads another part,
    one KiB here and there, so that writes of a long range are seen at once, and those of few
    numbers some looks later. Tensors on a GPU and those with gaps have no hashes.
    """

    __slots__ = ("_bytes", "_hashes", "_part", "_parts")

    def __init__(self, tensor: torch.Tensor) -> None:
        is_read = tensor.is_cpu and tensor.is_contiguous()
        self._bytes = size = tensor.numel() * tensor.element_size() if is_read else 0
        self._parts = min(max(size // _PART, 1), _MOST_PARTS)
        self._part = 0
        if size:
            self._hashes = ffi.new("uint64_t[]", self._parts)
            lib.warploom_hash(tensor.data_ptr(), size, self._hashes, self._parts)

    def is_same(self, tensor: torch.Tensor) -> bool:
        """Whether a part of the numbers is as it was; warns where results may have been wrong."""
        size, parts = self._bytes, self._parts
        if not size:
            return True
        self._part = part = (self._part + 1) % parts
        if lib.warploom_is_same(tensor.data_ptr(), size, self._hashes, parts, part):
            return True
        if parts > 1:
            warnings.warn(
                "warploom: a tensor that was used before was changed through NumPy, .data or "
                "another view that PyTorch does not count; results after the change may be those "
                "before it. Pass a new tensor, or change it by functions of PyTorch",
                stacklevel=2,
            )
        return False


class TensorState:
    """A tensor as it is now; not for inference tensors, which count no modifications.

    A modification in place changes the tensor's version. `tensor.data = ...` does not, but gives it
    another storage or another part of one. Others change its content.

    tensor: a weak reference to it, which calls `ended` with itself at the tensor's end.
    """

    __slots__ = ("_content", "_layout", "_storage", "_version", "tensor")

    def __init__(self, tensor: torch.Tensor, ended: Callable[[Any], None] | None = None) -> None:
        self.tensor = weakref.ref(tensor, ended)
        self.take(tensor)

    @property
    def key(self) -> int:
        """Equal for states of which a step needs to look at one."""
        return id(self.tensor())

    def take(self, tensor: torch.Tensor) -> None:
        """Describe the tensor as it is now."""
        self._version = tensor._version
        self._storage = weakref.ref(tensor.untyped_storage())
        self._layout = tensor.storage_offset(), tensor.shape, tensor.stride()
        self._content = Content(tensor)

    def is_of(self, tensor: torch.Tensor, made: Any = None) -> bool:
        """Whether this is the tensor, with the numbers that it had; then a step that is recorded
        uses what was `made` of it."""
        if (
            self.tensor() is not tensor
            or self._version != tensor._version
            or self._storage() is not tensor.untyped_storage()
            or self._layout != (tensor.storage_offset(), tensor.shape, tensor.stride())
            or not self._content.is_same(tensor)
        ):
            return False
        if (states := used.states) is not None:
            states.append((self, made))
        return True

    def holds(self) -> bool:
        """Whether the tensor, if it still lives, has the numbers that it had."""
        tensor = self.tensor()
        return tensor is None or self.is_of(tensor)


class Made:
    """Tensors that were made of others, of which one may change: `other`.

    They must not share the storage of an owner that keeps them, whose life would then depend on
    them. ended: see TensorState, of `other`.
    """

    __slots__ = ("_other", "_versions", "tensors")

    def __init__(
        self, tensors: Tensors, other: torch.Tensor | None = None,
        ended: Callable[[Any], None] | None = None,
    ) -> None:  # fmt: skip
        self.tensors = tensors
        self._other = None if other is None else TensorState(other, ended)
        self._versions = [None if one is None else one._version for one in tensors]

    def is_of(self, other: torch.Tensor | None) -> bool:
        """Whether they would be made again of this other tensor, and are as they were made."""
        if self._other is None or other is None:
            if self._other is not None or other is not None:
                return False
        elif not self._other.is_of(other, self):
            return False
        return all(
            one is None or one._version == version
            for one, version in zip(self.tensors, self._versions)
        )


class _Used:
    """What steps use while they are recorded: states, and what was made of these tensors; None
    where no step is recorded. Of all threads, since PyTorch computes gradients on a GPU in its own.
    """

    states: list[tuple[TensorState, Any]] | None = None
    recorders = 0

    def _at_fork_reinit(self) -> None:
        self.states, self.recorders = None, 0


used = renewed(_Used())
_lock = renewed(threading.Lock())


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
