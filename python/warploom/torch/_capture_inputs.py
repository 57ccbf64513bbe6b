"""What a captured step depends on: which calls may replay it, and what they copy into it.

Tensors of the GPU are copied into buffers of the capture, so their numbers may change with each
call. Those of an edge_index may change where each replay sorts the edges again. Otherwise graphs,
transposes and kernels that were made of it are part of the capture, and it belongs to the key, as
do objects whose inside is not seen.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import torch

from warploom.torch._graph import Graph
from warploom.torch._plan import INDEX_TYPES
from warploom.torch._whole import EAGER, WHOLE, Whole, is_data

Part = tuple[str, Any]  # what it is of, and what must be equal

# Attributes of a batch of PyG that its first store hides: how many graphs it has, and what parts
# them again, which no capture has.
_GRAPHS = "_num_graphs"
_OF_ONE_BATCH = ("_slice_dict", "_inc_dict")

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

    edges_change: an edge_index is copied like other tensors.

    parts: what makes another kind of call, by argument.
    tensors: those that are copied into a capture, which are on a device of the type `device`.
    edges: what is equal for calls with the same numbers in each edge_index that is copied.
    held: what must live as long as `parts` and `edges`, where these hold identities or addresses.
    is_eager: an argument asks for a step that runs eagerly.
    is_whole: one copy moves all tensors of an argument, whose edges therefore change.
    """

    def __init__(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], device: str, edges_change: bool = False
    ) -> None:
        self.args, self.kwargs, self.device = args, kwargs, device
        self.edges_change = edges_change
        self.parts: list[Part] = []
        self.tensors: list[torch.Tensor] = []
        self.edges: list[Any] = []
        self.held: list[Any] = []
        self.is_eager = self.is_whole = False
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
            and (self.edges_change or not _is_edge_index(value))
        )

    def _see(self, name: str, value: Any) -> None:
        if is_data(value):
            self._see_data(name, value)
            return
        if self._is_copied(value):
            self.tensors.append(value)
            part: Any = _form(value)
            if _is_edge_index(value):
                self.edges.append(_identity(value))
                self.held.append(value)
        elif isinstance(value, BY_VALUE):
            part = type(value), value
        else:
            self.held.append((value, value.values) if isinstance(value, Graph) else value)
            part = _identity(value)
        self.parts.append((name, part))

    def _see_data(self, name: str, data: Any) -> None:
        self.is_eager = self.is_eager or data.__dict__.get(EAGER, False)
        self.parts.append((name, (type(data), data.stores[0].__dict__.get(_GRAPHS))))
        whole = self._whole_of(data)
        if whole is not None:
            self.is_whole = True
            self.tensors.append(whole.tensor)
            self.parts.append((name, whole.layout))
        for at, store in enumerate(data.stores):
            for key, value in store.items():
                view = None if whole is None else whole.views.get((at, key))
                if view is None or view is not value:
                    each(value, self._see, f"{name}.{key}")
                elif view.requires_grad:
                    raise ValueError(
                        f"warploom: capture: {name}.{key}: requires a gradient, which no copy of a "
                        "batch has; call requires_grad_ in the step"
                    )

    def _whole_of(self, data: Any) -> Whole | None:
        """Where the tensors of a batch lie, if one copy moves them."""
        whole: Whole | None = data.__dict__.get(WHOLE) if self.edges_change else None
        return None if whole is None or whole.tensor.device.type != self.device else whole

    def replaced(self, tensors: list[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with others in the place of `tensors`."""
        others = iter(tensors)

        def replace(name: str, value: Any) -> Any:
            if is_data(value):
                return self._replaced_data(value, others, replace)
            return next(others) if self._is_copied(value) else value

        made = [each(value, replace, name) for name, value in self._named()]
        count = len(self.args)
        return tuple(made[:count]), dict(zip(self.kwargs, made[count:]))

    def _replaced_data(
        self, data: Any, others: Iterator[torch.Tensor], replace: Callable[[str, Any], Any]
    ) -> Any:
        made, whole = copy.copy(data), self._whole_of(data)
        for name in _OF_ONE_BATCH:
            made.stores[0].__dict__.pop(name, None)
        moved = None if whole is None else whole.at(next(others))
        if moved is not None:
            made.__dict__[WHOLE] = moved
        for at, (old, new) in enumerate(zip(data.stores, made.stores)):
            for key, value in list(old.items()):
                if whole is not None and moved is not None and whole.views.get((at, key)) is value:
                    new[key] = moved.views[at, key]
                else:
                    new[key] = each(value, replace)
        return made


def modes(device: str) -> Iterator[Part]:
    """The modes of PyTorch that a step sees."""
    yield "the gradient mode", (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    autocast = torch.is_autocast_enabled(device)
    yield "autocast", autocast and torch.get_autocast_dtype(device)
    yield "the deterministic mode", torch.are_deterministic_algorithms_enabled()
