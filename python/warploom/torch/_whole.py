"""Tensors that lie in the memory of one, so that one copy moves all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

_ALIGNED = 64  # bytes


class _Place(NamedTuple):
    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: int  # element of the whole, as elements of this type


class Layout:
    """Where tensors of these types and shapes lie; one object for all batches that are alike.

    size: bytes of the whole.
    """

    def __init__(self, forms: Sequence[tuple[torch.dtype, tuple[int, ...]]]) -> None:
        self.places: list[_Place] = []
        self.size = 0
        for dtype, shape in forms:
            strides, count = [], 1
            for extent in reversed(shape):
                strides.append(count)
                count *= extent
            first = self.size // dtype.itemsize
            self.places.append(_Place(dtype, shape, tuple(reversed(strides)), first))
            self.size += -(-count * dtype.itemsize // _ALIGNED) * _ALIGNED

    def begin(self, number: int) -> int:
        """The byte where this tensor begins; the end of the whole behind the last one."""
        if number == len(self.places):
            return self.size
        return self.places[number].first * self.places[number].dtype.itemsize

    def views(self, whole: Tensor, count: int | None = None) -> list[Tensor]:
        """The first `count` tensors, or all, that lie in a whole of uint8."""
        places = self.places[:count]
        typed = {dtype: whole.view(dtype) for dtype in {place.dtype for place in places}}
        return [
            typed[dtype].as_strided(shape, strides, first)
            for dtype, shape, strides, first in places
        ]

    def arrays(self, whole: Tensor, count: int) -> list[Any]:
        """The first `count` tensors in a whole on the CPU, as arrays of NumPy."""
        memory = whole.numpy()
        return [
            np.ndarray(place.shape, array_type(place.dtype), memory, self.begin(number))
            for number, place in enumerate(self.places[:count])
        ]


@cache
def array_type(dtype: torch.dtype) -> Any:
    """NumPy's type for numbers of this one, or for their bits."""
    return torch.empty(0, dtype=torch.int16 if dtype == torch.bfloat16 else dtype).numpy().dtype


class Whole(NamedTuple):
    """The tensors of a batch, and the memory in which they lie.

    views: by the number of the batch's store and the name in it, in the order of the layout.
    """

    tensor: Tensor
    layout: Layout
    views: dict[tuple[int, str], Tensor]

    def at(self, tensor: Tensor) -> Whole:
        """The same tensors in another memory."""
        return Whole(tensor, self.layout, dict(zip(self.views, self.layout.views(tensor))))


# Of an object of PyG, in its __dict__: where its tensors lie, and True where a step that gets the
# object shall run eagerly.
WHOLE, EAGER = "_warploom_whole", "_warploom_eager"


def is_data(value: Any) -> bool:
    """Whether this is a Data, Batch or HeteroData of PyG, which need not be there."""
    return hasattr(type(value), "stores_as")
