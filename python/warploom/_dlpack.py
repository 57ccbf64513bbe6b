"""Read tensors of other libraries in place, through DLPack (https://dmlc.github.io/dlpack).

A capsule that is not consumed releases its tensor when Python frees it, so a reader only has to
keep the capsule.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
LEGACY_STREAM = 1  # CUDA's legacy default stream in DLPack and the CUDA array interface

_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Tensor(NamedTuple):
    """The tensor of a capsule; strides count elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    capsule: Any


def packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous row-major array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def read(source: Any, stream: int | None) -> Tensor:
    """Read the tensor behind `source.__dlpack__`.

    stream: None on the host, otherwise a CUDA stream (0 = legacy default). The source makes its
        data ready on that stream.

    Errors of the source are passed on.
    """
    capsule = (
        source.__dlpack__() if stream is None else source.__dlpack__(stream=stream or LEGACY_STREAM)
    )
    tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else packed_strides(shape)
    dtype = f"{_KINDS.get(tensor.code, 'code' + str(tensor.code))}{tensor.bits}"
    if tensor.lanes != 1:
        dtype += f"x{tensor.lanes}"
    return Tensor((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, capsule)
