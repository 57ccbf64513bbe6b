"""What a message may read besides its arguments, so that a recorded one runs only while it holds.

A recording repeats what torch computed; numbers and choices of Python are constants in it. Before
each replay `State.holds` therefore compares all that Python code could have read: the attributes of
the layer and its modules, and of code outside of PyTorch and PyG the globals that it names. Tensors
are not compared but read again. Code that reads anything else is not recorded.
"""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import is_, itemgetter
from typing import Any

import torch
from torch import Tensor

from warploom._pyg_names import CONSTANT

# Its code reads no state that changes, besides what is compared.
_KNOWN_CODE = frozenset(
    (
        *("abc", "collections", "contextlib", "enum", "functools", "importlib", "math"),
        *("operator", "re", "torch", "torch_geometric", "types", "typing", "warnings"),
        *("warploom", "weakref", "_frozen_importlib", "_frozen_importlib_external"),
    )
)
PLAIN = frozenset(
    (
        *(type(None), bool, int, float, complex, str, bytes, slice, range, type(Ellipsis)),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format),
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType),
        *(types.WrapperDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType),
        *(property, staticmethod, classmethod),
    )
)
_METHODS_OF = (Tensor, str, tuple, list, dict, set, frozenset, torch.Size, torch.device, type)
_FORBIDDEN = frozenset(
    (
        *("print", "input", "open", "exec", "eval", "compile", "globals", "locals", "vars", "id"),
        *("breakpoint", "__import__", "hash"),
    )
)
_MOST_ENTRIES = 4000
_UNKNOWN: Any = object()


class Unrepeatable(Exception):
    """The reason why a message is traced at each call."""


def _is_known(module: Any) -> bool:
    return str(module).partition(".")[0] in _KNOWN_CODE


class State:
    """The objects that a message may read, as they are now."""

    def __init__(self, layer: torch.nn.Module, own: str) -> None:
        """own: the attribute of the layer that may change."""
        self._own = own
        self._class = type(layer)
        self._types: list[tuple[Any, type]] = []
        # A holder of attributes: itself (None: the layer's), how many, their names and values.
        self._holders: list[tuple[dict[str, Any] | None, int, Any, tuple[Any, ...]]] = []
        self._with_tensors: list[tuple[dict[Any, Any] | None, list[Any]]] = []
        self._sequences: list[tuple[Any, tuple[Any, ...]]] = []
        self._empty: list[Any] = []
        self._globals: list[tuple[Any, Any, tuple[Any, ...]]] = []
        # Of each tensor: its holder (None: the layer's attributes) and name; None if it has two.
        self.tensors: dict[int, tuple[dict[Any, Any] | None, Any] | None] = {}
        self._seen: dict[int, Any] = {id(layer): layer}
        self._names: dict[int, set[str]] = {}
        self._entries = 0
        self._note(self._class)
        # The layer's own attributes but tensors.
        self.attributes = self._hold(vars(layer), is_root=True)
        del self._seen[id(layer)]  # nothing here keeps the layer alive

    def _hold(self, holder: dict[Any, Any], is_root: bool = False) -> dict[Any, Any]:
        names, values, tensors = [], [], []
        kept = None if is_root else holder
        for name, value in holder.items():
            if is_root and name == self._own:
                continue
            if isinstance(value, Tensor):
                known = self.tensors.get(id(value), _UNKNOWN)
                self.tensors[id(value)] = (kept, name) if known is _UNKNOWN else None
                tensors.append(name)
                continue
            names.append(name)
            values.append(value)
            self._note(value)
        self._add(self._holders, (kept, len(holder)), names, values)
        if tensors:
            self._with_tensors.append((kept, tensors))
        return dict(zip(names, values))

    def _add(self, to: list[Any], start: tuple[Any, ...], names: Any, values: Any) -> None:
        self._entries += len(names)
        if self._entries > _MOST_ENTRIES:
            raise Unrepeatable("the layer has too many attributes")
        get: Any = itemgetter(*names) if len(names) > 1 else None
        if len(names) == 1:
            get = _only(names[0])
        to.append((*start, get, tuple(values)))

    def _note(self, value: Any) -> None:
        """Note what can be read through a value."""
        kind = type(value)
        if kind in PLAIN or id(value) in self._seen or isinstance(value, (torch.Size, *CONSTANT)):
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.nn.Module):
            self._types.append((value, kind))
            self._note(kind)
            self._hold(vars(value))
        elif kind in (dict, OrderedDict, list, tuple, set, frozenset):
            if not value:
                self._empty.append(value)
            elif kind in (dict, OrderedDict):
                self._hold(value)
            else:
                self._sequences.append((value, tuple(value)))
                for part in value:
                    if isinstance(part, Tensor):
                        raise Unrepeatable("the layer has a list of tensors")
                    self._note(part)
        elif isinstance(value, type):
            for cls in value.__mro__:
                if not _is_known(cls.__module__) and cls.__module__ != "builtins":
                    names = [name for name in vars(cls) if not name.startswith("__")]
                    self._note_names(self._holders, (vars(cls), len(vars(cls))), names)
        elif not (isinstance(value, types.ModuleType) and _is_known(value.__name__)):
            raise Unrepeatable(f"the message may read a {kind.__name__}")

    def _note_names(self, to: list[Any], start: tuple[Any, ...], names: list[str]) -> None:
        values = [start[0][name] for name in names]
        for value in values:
            if isinstance(value, Tensor):
                raise Unrepeatable("the message may read a tensor that is not its layer's")
            self._note(value)
        self._add(to, start, names, values)

    def note_globals(self, code: types.CodeType, holder: dict[str, Any]) -> None:
        """Note the globals that code names."""
        names = [name for name in code.co_names if name in holder]
        if names:
            self._note_names(self._globals, (holder,), names)

    def holds(self, layer: torch.nn.Module) -> bool:
        """Whether all that was noted is still so."""
        if type(layer) is not self._class or any(self._empty):
            return False
        root = layer.__dict__
        try:
            for holder, count, get, values in self._holders:
                found = root if holder is None else holder
                if len(found) != count or not (get is None or all(map(is_, get(found), values))):
                    return False
            for holder, get, values in self._globals:
                if not all(map(is_, get(holder), values)):
                    return False
            for holder, names in self._with_tensors:
                found = root if holder is None else holder
                if not all(isinstance(found[name], Tensor) for name in names):
                    return False
        except KeyError:
            return False
        for sequence, values in self._sequences:
            if len(sequence) != len(values) or not all(map(is_, sequence, values)):
                return False
        return all(type(value) is kind for value, kind in self._types)


def _only(name: Any) -> Callable[[Any], tuple[Any, ...]]:
    return lambda holder: (holder[name],)


# ---- code ---------------------------------------------------------------------------------------


class Audit:
    """A profile function that notes which globals the code of a message names.

    reason: why what that code does cannot be repeated.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.reason: str | None = None
        self._known: dict[types.CodeType, bool] = {}  # whether its calls are not looked at
        self._nested: set[types.CodeType] = set()

    def __call__(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_call") or self.reason is not None:
            return
        try:
            is_known = self._known.get(frame.f_code)
            if is_known is None:
                is_known = self._known[frame.f_code] = self._look_at(frame)
            if event == "c_call" and not is_known:
                self._check_function(argument)
        except Unrepeatable as reason:
            self.reason = str(reason)

    def _look_at(self, frame: types.FrameType) -> bool:
        code = frame.f_code
        if _is_known(frame.f_globals.get("__name__")):
            return True
        if code not in self._nested and set(code.co_freevars) - {"__class__"}:
            raise Unrepeatable("the message reads variables of an enclosing function")
        codes = [code]
        for inner in codes:
            codes += [part for part in inner.co_consts if isinstance(part, types.CodeType)]
        self._nested.update(codes)
        self.state.note_globals(code, frame.f_globals)
        return False

    def _check_function(self, function: Any) -> None:
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "a function")
        module = getattr(function, "__module__", None)
        if module == "builtins" and name not in _FORBIDDEN:
            return
        if module is not None and module != "builtins" and _is_known(module):
            return
        if owner is not None and isinstance(owner, _METHODS_OF) and module != "builtins":
            return
        raise Unrepeatable(f"the message calls {name}")


@contextmanager
def audited(state: State) -> Iterator[Audit]:
    """Note what code of this thread names."""
    audit = Audit(state)
    sys.setprofile(audit)
    try:
        yield audit
    finally:
        sys.setprofile(None)
