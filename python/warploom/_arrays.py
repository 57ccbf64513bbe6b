"""Read arrays of any library as operands: their address, device, layout and stream.

NumPy arrays, arrays with `__dlpack__` (torch, CuPy, JAX) and arrays with `__cuda_array_interface__`
are read in place.
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, cast

import numpy as np

from warploom import _arguments, _dlpack
from warploom._library import context, ffi, lib

DENSE_TYPES = {
    "float32": lib.WLM_F32,
    "float16": lib.WLM_F16,
    "bfloat16": lib.WLM_BF16,
    "float64": lib.WLM_F64,
}
INDEX_TYPES = {"int32": lib.WLM_I32, "int64": lib.WLM_I64}


class Array(NamedTuple):
    """An array that the C library can use; strides count elements, `source` keeps the memory."""

    name: str
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    writable: bool
    source: Any

    @property
    def pointer(self) -> Any:
        """The address for the C library; for an empty array a dummy, as NULL means "not given"."""
        return ffi.cast("void *", self.address or 16)

    @property
    def is_contiguous(self) -> bool:
        layout = zip(self.shape, self.strides, _dlpack.packed_strides(self.shape))
        return 0 in self.shape or all(n <= 1 or step == packed for n, step, packed in layout)

    def require(
        self,
        types: Iterable[str] = (),
        *shapes: tuple[int, ...],
        contiguous: bool = False,
        writable: bool = False,
    ) -> Array:
        """Return the array. Raises unless it is of one of the types and shapes, and as is wanted.

        Without types or shapes any will do; contiguous: in row-major order.
        """
        if types and self.dtype not in types:
            raise TypeError(f"{self.name}: has type {self.dtype}; use {' or '.join(types)}")
        if shapes and self.shape not in shapes:
            expected = " or ".join(map(str, shapes))
            raise ValueError(f"{self.name}: has shape {self.shape}; expected {expected}")
        if contiguous and not self.is_contiguous:
            raise ValueError(f"{self.name}: must be contiguous in row-major order")
        if writable and not self.writable:
            raise ValueError(f"{self.name}: is read-only")
        return self


# ---- where arrays are ----------------------------------------------------------------


def library(source: Any) -> str:
    """Return the array library of an object: "numpy", "torch", "cupy", "jax" or, for others, ""."""
    if isinstance(source, np.ndarray):
        return "numpy"
    for name, type_name in (("torch", "Tensor"), ("cupy", "ndarray"), ("jax", "Array")):
        module = sys.modules.get(name)
        if module is not None and isinstance(source, getattr(module, type_name, ())):
            return name
    return ""


def device_of(source: Any, name: str) -> str:
    """Return the device of an array, for example "host" or "cuda:0".

    Raises TypeError, which names the argument, for any other object.
    """
    if isinstance(source, np.ndarray):
        if isinstance(source, np.ma.MaskedArray):
            raise TypeError(f"{name}: is a masked array; pass the array of filled()")
        return "host"
    if hasattr(source, "__dlpack_device__"):
        try:
            kind, ordinal = (int(number) for number in source.__dlpack_device__())
        except (TypeError, ValueError, RuntimeError, BufferError) as error:
            raise TypeError(f"{name}: {error}") from error
        if kind in (_dlpack.CPU, _dlpack.CUDA_HOST):
            return "host"
        if kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED):
            return f"cuda:{ordinal}"
        raise TypeError(f"{name}: is on a device of DLPack's kind {kind}; use the host or CUDA")
    if hasattr(source, "__cuda_array_interface__"):
        ordinal = _pointer_device(source.__cuda_array_interface__["data"][0])
        return f"cuda:{ordinal}"
    raise TypeError(
        f"{name}: a {type(source).__name__} is no array; use NumPy, or a library with DLPack or "
        "the CUDA array interface"
    )


def _driver(function: str, *arguments: Any) -> None:
    """Call a function of the CUDA driver, which exists wherever an array is on a GPU."""
    status = getattr(ctypes.CDLL("libcuda.so.1"), function)(*arguments)
    if status:
        raise RuntimeError(f"the CUDA driver: {function} reports error {status}")


def _pointer_device(address: int) -> int:
    ordinal = ctypes.c_int(0)
    if address:
        attribute = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        pointer = ctypes.c_uint64(address)
        _driver("cuPointerGetAttribute", ctypes.byref(ordinal), attribute, pointer)
    return ordinal.value


@contextmanager
def _primary(device: str) -> Iterator[None]:
    """Within this, the primary CUDA context of a GPU is the current one."""
    ordinal = int(device[5:])
    number, context = ctypes.c_int(), ctypes.c_void_p()
    _driver("cuDeviceGet", ctypes.byref(number), ordinal)
    _driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
    _driver("cuCtxPushCurrent_v2", context)
    try:
        yield
    finally:
        _driver("cuCtxPopCurrent_v2", ctypes.byref(context))
        _driver("cuDevicePrimaryCtxRelease_v2", number)


def _synchronize(stream: int, device: str) -> None:
    with _primary(device):
        _driver("cuStreamSynchronize", ctypes.c_void_p(stream))


def stream_of(stream: Any, device: str, of: str) -> int | None:
    """Return the address of a CUDA stream; None on the host, 0 for CUDA's legacy default stream.

    `stream` is an address, or an object of torch (`cuda_stream`), CuPy (`ptr`) or with
    `__cuda_stream__`; None stands for the current stream of the library `of`.
    """
    if device == "host":
        return None
    if stream is None:
        ordinal = int(device[5:])
        if of == "torch":
            return int(sys.modules["torch"].cuda.current_stream(ordinal).cuda_stream)
        if of == "cupy":
            cupy: Any = sys.modules["cupy"]
            with cupy.cuda.Device(ordinal):
                return int(cupy.cuda.get_current_stream().ptr)
        return 0
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("cuda_stream", "ptr"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    try:
        address = operator.index(stream)
    except TypeError:
        found = type(stream).__name__
        raise TypeError(f"stream: a {found} is no CUDA stream; pass its address") from None
    return _arguments.integer("stream", address, most=2**64 - 1)


def _on_device(of: str, device: str) -> AbstractContextManager[Any]:
    """Within this, the GPU is the current one of torch or CuPy; torch exports only its tensors."""
    if device == "host" or of not in ("torch", "cupy"):
        return nullcontext()
    cuda: Any = sys.modules[of].cuda
    enter = cuda.device if of == "torch" else cuda.Device
    return cast("AbstractContextManager[Any]", enter(int(device[5:])))


# ---- reading -------------------------------------------------------------------------


def read(source: Any, name: str, device: str, stream: int | None) -> Array:
    """Read an array for use on the device and stream. TypeError and ValueError name it."""
    found = device_of(source, name)
    if found != device:
        raise ValueError(f"{name}: is on {found} and A on {device}; use one device")
    if isinstance(source, np.ndarray):
        return _read_numpy(source, name)
    if hasattr(source, "__dlpack__"):
        return _read_dlpack(source, name, device, stream)
    return _read_cuda_interface(source, name, device, stream or 0)


@functools.cache
def _type_name(dtype: np.dtype[Any]) -> str:
    return str(dtype.name if dtype.isnative else f"{dtype} of the other byte order")


def _element_strides(strides: tuple[int, ...], size: int, name: str) -> tuple[int, ...]:
    found = tuple([step // size for step in strides])
    if size > 1 and strides != tuple([step * size for step in found]):
        raise ValueError(f"{name}: its strides are no multiples of its elements; pass a copy")
    return found


def _read_numpy(source: np.ndarray[Any, Any], name: str) -> Array:
    strides = _element_strides(source.strides, source.itemsize, name)
    address, is_read_only = source.__array_interface__["data"]
    dtype, writable = _type_name(source.dtype), not is_read_only
    return Array(name, address, source.shape, strides, dtype, "host", writable, source)


def _read_dlpack(source: Any, name: str, device: str, stream: int | None) -> Array:
    try:
        with _on_device(library(source), device):
            found = _dlpack.read(source, stream)
    # For example of a tensor that requires a gradient.
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from error
    keep = (source, found.capsule)
    return Array(name, found.address, found.shape, found.strides, found.dtype, device, True, keep)


def _read_cuda_interface(source: Any, name: str, device: str, stream: int) -> Array:
    found = source.__cuda_array_interface__
    if found.get("mask") is not None:
        raise TypeError(f"{name}: is a masked array; pass the array of filled()")
    dtype = np.dtype(found["typestr"])
    shape = tuple(found["shape"])
    strides = _dlpack.packed_strides(shape)
    if found.get("strides") is not None:
        strides = _element_strides(tuple(found["strides"]), dtype.itemsize, name)
    written_on = found.get("stream")
    if written_on is not None and written_on != (stream or _dlpack.LEGACY_STREAM):
        _synchronize(written_on, device)
    address, readonly = found["data"]
    return Array(name, address, shape, strides, _type_name(dtype), device, not readonly, source)


def require_unmoved(*arrays: Array | None) -> None:
    """Raise RuntimeError if the memory of an array is elsewhere than when it was read.

    PyTorch moves memory of tensors into shared memory. Other libraries move none that is in use.
    """
    for array in arrays:
        if array is None or not isinstance(array.source, tuple):
            continue
        address = getattr(array.source[0], "data_ptr", None)
        if address is not None and address() != array.address:
            raise RuntimeError(
                f"warploom: {array.name}: its memory was moved (share_memory_() and queues of "
                "torch.multiprocessing do that); make the matrix and its plans again"
            )


def first_of(array: Array, batch: int) -> tuple[Array, int]:
    """Return the first product's part of an array of a batch, and the elements to the next one's.

    ValueError: the first dimension is not the batch.
    """
    if array.shape[0] != batch:
        raise ValueError(
            f"{array.name}: has shape {array.shape}; its first dimension must be batch = {batch}"
        )
    shape, strides = array.shape[1:], array.strides[1:]
    if 0 in array.shape:  # whose strides mean nothing
        strides = _dlpack.packed_strides(shape)
    return array._replace(shape=shape, strides=strides), array.strides[0] if batch > 1 else 0


def order_of(array: Array) -> str:
    """Return "F" where elements of a column are neighbours, and those of a row are not, else "C".

    These are NumPy's names of the orders.
    """
    if len(array.shape) != 2 or 0 in array.shape or array.shape[1] == 1 or array.strides[1] == 1:
        return "C"
    rows = array.shape[0]
    is_column = rows == 1 or array.strides[0] == 1
    return "F" if is_column and array.strides[1] >= rows else "C"


def leading_dimension(array: Array, order: str = "C") -> int:
    """Return the elements from one row to the next, or in the order "F" from column to column.

    ValueError: the elements of a row, or of a column, are no neighbours.
    """
    if order == "F":
        return _column_dimension(array)
    columns, is_empty = 1, 0 in array.shape
    for extent, step in reversed(tuple(zip(array.shape[1:], array.strides[1:]))):
        if extent > 1 and step != columns and not is_empty:
            raise ValueError(
                f"{array.name}: must be row-major or, with two dimensions, column-major; pass a "
                "copy, such as numpy.ascontiguousarray makes"
                if order_of(array) == "C"
                else f"{array.name}: is column-major and the plan is for row-major arrays; make "
                'the plan with the order "F", or pass a copy as of numpy.ascontiguousarray'
            )
        columns *= extent
    if array.shape[0] <= 1 or is_empty:
        return columns
    if array.strides[0] < columns:
        raise ValueError(f"{array.name}: its rows overlap or run backwards; pass a row-major copy")
    return array.strides[0]


def _column_dimension(array: Array) -> int:
    rows, columns = array.shape[0], math.prod(array.shape[1:])
    if 0 in array.shape:
        return rows
    is_column = rows == 1 or array.strides[0] == 1
    if len(array.shape) > 2 or not is_column or (columns > 1 and array.strides[1] < rows):
        raise ValueError(
            f'{array.name}: is not column-major, and the plan is for the order "F"; pass a copy '
            "as of numpy.asfortranarray"
        )
    return array.strides[1] if columns > 1 else rows


# ---- allocating ----------------------------------------------------------------------


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return NumPy's type of this name; bfloat16 needs the package ml_dtypes."""
    if dtype == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            raise TypeError("out: NumPy has bfloat16 with the package ml_dtypes only") from error
        return np.dtype(ml_dtypes.bfloat16)  # type: ignore[no-any-return]
    return np.dtype(dtype)


def empty(
    of: str, device: str, shape: tuple[int, ...], dtype: str, stream: int | None = None
) -> Any:
    """Allocate an array of the library `of`; on the host, of torch or NumPy.

    Allocators reuse memory in the order of a stream, so the array is made with `stream` as the
    current one.
    """
    if device == "host":
        if of == "torch":
            torch: Any = sys.modules["torch"]
            return torch.empty(shape, dtype=getattr(torch, dtype))
        return np.empty(shape, numpy_type(dtype))
    ordinal = int(device[5:])
    if of == "torch":
        with _current(of, device, stream):
            torch = sys.modules["torch"]
            return torch.empty(shape, dtype=getattr(torch, dtype), device=device)
    if of == "cupy":
        cupy: Any = sys.modules["cupy"]
        with cupy.cuda.Device(ordinal), _current(of, device, stream):
            return cupy.empty(shape, numpy_type(dtype))
    if of == "jax":
        jax: Any = sys.modules["jax"]
        where = next(found for found in jax.devices("gpu") if found.local_hardware_id == ordinal)
        return jax.block_until_ready(jax.device_put(jax.numpy.empty(shape, dtype), where))
    raise TypeError(f"out: arrays on {device} are made with torch, CuPy or JAX; pass out")


def _current(of: str, device: str, stream: int | None) -> AbstractContextManager[Any]:
    """Return a context manager within which `stream` is the current one of torch or CuPy."""
    if stream is None or stream == stream_of(None, device, of):
        return nullcontext()
    cuda: Any = sys.modules[of].cuda
    external = cuda.ExternalStream(stream, int(device[5:]))
    return cast("AbstractContextManager[Any]", cuda.stream(external) if of == "torch" else external)


def scratch(of: str, device: str, size: int, stream: int | None) -> Array:
    """Allocate device memory of `size` bytes, aligned to 16."""
    memory = read(empty(of, device, (size + 16,), "uint8", stream), "workspace", device, stream)
    return memory._replace(address=-(-memory.address // 16) * 16, shape=(size,))


def synchronize(device: str) -> None:
    """Wait for all work on a device."""
    if device != "host":
        with _primary(device):
            _driver("cuCtxSynchronize")


def finish(of: str, device: str, stream: int | None) -> None:
    """Wait for the stream if the library of the result does not know that stream."""
    if device != "host" and of not in ("torch", "cupy"):
        context(device).require()
        _synchronize(stream or 0, device)
