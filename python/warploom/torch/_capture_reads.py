"""What a step reads beside its arguments: tensors that are others at each call, and modules.

A replay reads the tensors of the call that was captured. Where a step takes its batch itself, as by
`next(batches)`, it would train on that batch for ever. So two calls in a row are compared.
"""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from warploom.torch._capture_inputs import Part
from warploom.torch._internals import is_differentiating
from warploom.torch._state import KEPT
from warploom.torch._whole import is_data

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class _Tensors:
    """A set of tensors, which it does not keep."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}

    def __contains__(self, tensor: torch.Tensor) -> bool:
        known = self._known.get(id(tensor))
        return known is not None and known() is tensor

    def add(self, tensor: torch.Tensor) -> None:
        self._known[id(tensor)] = weakref.ref(tensor)


class Reads:
    """The tensors of the last call of a step, and whether each call brings others."""

    def __init__(self) -> None:
        self._before: _Tensors | None = None
        self._texts: list[str | None] = []  # of each call but the first: what it alone read

    @contextmanager
    def noted(self, arguments: Any) -> Iterator[None]:
        """Note what functions of PyTorch get in the body."""
        note = _Note(self._before)
        _each_tensor(arguments, note.known.add)
        with note:
            yield
        if self._before is not None:
            self._texts.append(note.text)
        self._before = note.known

    def reason(self) -> str | None:
        """Why a replay would not read what the next call does, or None.

        What a cache gets in one call is not new in the next one, so the last two calls count.
        """
        last = self._texts[-2:]
        if not last or None in last:
            return None
        return f"{last[-1]} at each call; pass it as an argument"


class _Note(TorchFunctionMode):
    """Notes tensors that functions get or make, and the first one that is unknown.

    before: tensors of the call before, which are known; None where there was none.
    """

    def __init__(self, before: _Tensors | None) -> None:
        super().__init__()
        self.known = _Tensors()  # of this call
        self.text: str | None = None
        self._before = before

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if is_differentiating():  # of autograd, which reads what the step has read
            return function(*args, **kwargs)
        _each_tensor((args, kwargs), self._see)
        result = function(*args, **kwargs)
        _each_tensor(result, self.known.add)
        return result

    def _see(self, tensor: torch.Tensor) -> None:
        if tensor in self.known:
            return
        self.known.add(tensor)
        if tensor.grad_fn is not None or hasattr(tensor, KEPT):
            return  # made by a step, or for it; a function of autograd shows no results
        if self.text is None and self._before is not None and tensor not in self._before:
            form = f"{str(tensor.dtype).rpartition('.')[2]} {tuple(tensor.shape)}"
            self.text = f"{place('torch_geometric')} reads another tensor, {form},"


def _each_tensor(value: Any, function: Callable[[torch.Tensor], None]) -> None:
    if type(value) in _PLAIN:  # what stands for a tensor is none
        function(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            _each_tensor(item, function)
    elif isinstance(value, dict):
        _each_tensor(list(value.values()), function)
    elif is_data(value):
        for store in value.stores:
            _each_tensor(list(store.values()), function)


def place(*libraries: str) -> str:
    """The line that runs now, of a file that belongs neither to PyTorch and this package nor to
    these libraries."""
    names = ("torch", __package__.partition(".")[0], *libraries)
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    folders = *(f"{os.path.dirname(file)}{os.sep}" for file in files if file), warnings.__file__
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(folders):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


class Modules:
    """The modules that a step calls, whose modes it sees."""

    def __init__(self) -> None:
        self.seen: list[torch.nn.Module] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note each module that is called in the body. A hook of all modules would make PyTorch and
        layers of PyG take other ways."""
        call, known = torch.nn.Module.__call__, {id(module) for module in self.seen}

        def note(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if id(module) not in known:
                known.add(id(module))
                self.seen.append(module)
            return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = note  # type: ignore[method-assign]
        try:
            yield
        finally:
            torch.nn.Module.__call__ = call  # type: ignore[method-assign]

    def parts(self) -> Iterator[Part]:
        """The modes of these modules."""
        yield "the mode of a module", tuple([module.training for module in self.seen])
