"""Tensors that a captured step changes: PyTorch counts no writes of a replay, so these are counted
here. What was made of such a tensor is then made again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable

import torch


class Writes:
    """The versions of the tensors that are there before a step is captured."""

    def __init__(self, device: str) -> None:
        self._before = [
            (weakref.ref(tensor), tensor._version)
            for tensor in gc.get_objects()
            if type(tensor) is torch.Tensor
            and tensor.device.type == device
            and not tensor.requires_grad
            and not tensor.is_inference()
        ]

    def changed(self, but: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """Those that were changed since, but for some."""
        left = {id(tensor) for tensor in but}
        found = ((where(), version) for where, version in self._before)
        return [
            tensor
            for tensor, version in found
            if tensor is not None and tensor._version != version and id(tensor) not in left
        ]
