"""What a captured step depends on: which calls may replay it, and what they copy into it.

Tensors of the GPU are copied into buffers of the capture, so their numbers may change with each
call. An edge_index may not: graphs, transposes and kernels that were made of it are part of the
capture. It belongs to the key, as do objects whose inside is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from warploom.torch._graph import Graph
from warploom.torch._plan import INDEX_TYPES

Part = tuple[str, Any]  # what it is of, and what must be equal

BY_VALUE = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)


def each(value: Any, function: Callable[[str, Any], Any], name: str = "") -> Any:
    """The same tuples, lists and dicts with `function(name, leaf)` in the place of each leaf."""
    if isinstance(value, (tuple, list)):
        made = [each(item, function, f"{name}[{at}]") for at, item in enumerate(value)]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {key: each(item, function, f"{name}[{key!r}]") for key, item in value.items()}
    return function(name, value)


def _version(tensor: torch.Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _is_edge_index(tensor: torch.Tensor) -> bool:
    return tensor.dtype in INDEX_TYPES and tensor.dim() == 2 and tensor.shape[0] == 2


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _identity(value: Any) -> Any:
    """What changes with an object that is part of a capture, while the object lives."""
    if isinstance(value, Graph):
        return id(value), id(value.values), value.rowptr.data_ptr(), value.colind.data_ptr()
    if type(value) is torch.Tensor and value.layout == torch.strided:
        # Steps change what requires a gradient, and a replay reads it where it is.
        version = None if value.requires_grad else _version(value)
        return value.data_ptr(), version, *_form(value)
    return id(value)


class Inputs:
    """The arguments of one call.

    parts: what makes another kind of call, by argument.
    tensors: those that are copied into a capture, which are on a device of the type `device`.
    held: what must live as long as `parts`, where these hold identities or addresses.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], device: str) -> None:
        self.args, self.kwargs, self.device = args, kwargs, device
        self.parts: list[Part] = []
        self.tensors: list[torch.Tensor] = []
        self.held: list[Any] = []
        for name, value in self._named():
            each(value, self._see, name)

    def _named(self) -> Iterator[tuple[str, Any]]:
        for at, value in enumerate(self.args):
            yield f"argument {at}", value
        for key, value in self.kwargs.items():
            yield f"argument {key}", value

    def _is_copied(self, value: Any) -> bool:
        return (
            type(value) is torch.Tensor
            and value.device.type == self.device
            and value.layout == torch.strided
            and not value.requires_grad
            and not _is_edge_index(value)
        )

    def _see(self, name: str, value: Any) -> None:
        if self._is_copied(value):
            self.tensors.append(value)
            part: Any = _form(value)
        elif isinstance(value, BY_VALUE):
            part = type(value), value
        else:
            self.held.append((value, value.values) if isinstance(value, Graph) else value)
            part = _identity(value)
        self.parts.append((name, part))

    def replaced(self, tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with others in the place of `tensors`."""
        others = iter(tensors)

        def replace(name: str, value: Any) -> Any:
            return next(others) if self._is_copied(value) else value

        made = [each(value, replace, name) for name, value in self._named()]
        count = len(self.args)
        return tuple(made[:count]), dict(zip(self.kwargs, made[count:]))


def modes(device: str) -> Iterator[Part]:
    """The modes of PyTorch that a step sees."""
    yield "the gradient mode", (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    autocast = torch.is_autocast_enabled(device)
    yield "autocast", autocast and torch.get_autocast_dtype(device)
    yield "the deterministic mode", torch.are_deterministic_algorithms_enabled()
