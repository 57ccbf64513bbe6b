"""What a message may read besides its arguments, so that a recorded one runs only while it holds.

A recording repeats what torch computed; numbers and choices of Python are constants in it. Before
each replay `State.holds` therefore compares all that Python code could have read: the attributes of
the layer and of those of its modules that the message reached, and of code outside of PyTorch and
PyG the globals that it names. Tensors are not compared but read again. Code that reads anything
else is not recorded.
"""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import is_
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
_RETURNS_MODULE = torch.nn.Module.__getattr__.__code__  # of a name
_MOST_ENTRIES = 4000
_UNKNOWN: Any = object()


class Unrepeatable(Exception):
    """The reason why a message is traced at each call."""


def _is_known(module: Any) -> bool:
    return str(module).partition(".")[0] in _KNOWN_CODE


def _is_own(frame: types.FrameType) -> bool:
    """Whether this is code of warploom, or code that Python wrote for a class of its own."""
    module = str(frame.f_globals.get("__name__"))
    is_written = module.startswith("namedtuple_") and frame.f_code.co_filename.startswith("<")
    return is_written or module.partition(".")[0] == "warploom"


class State:
    """The objects that a message may read, as they are now."""

    def __init__(self, layer: torch.nn.Module, own: str) -> None:
        """own: the attribute of the layer that may change."""
        self._own = own
        self._class = type(layer)
        # What holds, as tests in Python of `root`, the layer's attributes, and of named objects.
        self._tests = ["True"]
        self._names: dict[str, Any] = {"Tensor": Tensor, "is_": is_}
        self._is_same: Callable[[dict[str, Any]], bool] | None = None
        # Of each tensor: its holder (None: the layer's attributes) and name; None if it has two.
        self.tensors: dict[int, tuple[dict[Any, Any] | None, Any] | None] = {}
        self._seen: dict[int, Any] = {id(layer): layer}
        self._entries = 0
        self._note(self._class)
        # The layer's own attributes but tensors.
        self._hold_modules(layer)
        root = vars(layer)
        self._hold(root, is_root=True)
        self.attributes = {
            name: value
            for name, value in root.items()
            if name != own and not isinstance(value, Tensor)
        }
        del self._seen[id(layer)]  # nothing here keeps the layer alive
        self.reach(layer, "aggr_module")
        self.reach_all(layer._modules.get("aggr_module"))

    def reach(self, module: Any, name: str) -> None:
        """Note the module of this name within another one."""
        found = module.__dict__.get("_modules", {}).get(name)
        if found is not None:
            self._note(found)

    def reach_all(self, module: Any) -> None:
        """Note all modules within one."""
        if isinstance(module, torch.nn.Module):
            for part in list(module.modules())[1:]:
                self._note(part)

    def _hold_modules(self, module: torch.nn.Module) -> None:
        """Note which modules are within another one, but not what these hold."""
        modules = vars(module)["_modules"]
        if modules and id(modules) not in self._seen:
            self._seen[id(modules)] = modules
            self._add(modules, list(modules), len(modules))

    def _hold(self, holder: dict[Any, Any], is_root: bool = False) -> None:
        names = [name for name in holder if not (is_root and name == self._own)]
        for name in names:
            value = holder[name]
            if isinstance(value, Tensor):
                place = None if is_root else holder, name
                self.tensors[id(value)] = None if id(value) in self.tensors else place
            else:
                self._note(value)
        self._add(holder, names, len(holder), is_root)

    def _add(
        self, holder: Any, names: Sequence[Any], count: int | None, is_root: bool = False
    ) -> None:
        """Note what a holder of attributes has under these names, and how many it has."""
        self._entries += len(names)
        if self._entries > _MOST_ENTRIES:
            raise Unrepeatable("the layer has too many attributes")
        text = "root" if is_root else self._named(holder)
        if count is not None:
            self._tests.append(f"len({text}) == {count}")
        for name in names:
            value = holder[name]
            at = f"{text}[{repr(name) if type(name) is str else self._named(name)}]"
            is_tensor = isinstance(value, Tensor)
            self._tests.append(
                f"isinstance({at}, Tensor)" if is_tensor else f"{at} is {self._named(value)}"
            )

    def _add_sequence(self, value: Any) -> None:
        text, parts = self._named(value), tuple(value)
        self._tests.append(f"len({text}) == {len(parts)}")
        if isinstance(value, (set, frozenset)):
            self._tests.append(f"all(map(is_, {text}, {self._named(parts)}))")
        else:
            self._tests += [f"{text}[{i}] is {self._named(v)}" for i, v in enumerate(parts)]

    def _named(self, value: Any) -> str:
        """The name of an object in the tests."""
        name = f"v{len(self._names)}"
        self._names[name] = value
        return name

    def _note(self, value: Any) -> None:
        """Note what can be read through a value."""
        kind = type(value)
        if kind in PLAIN or id(value) in self._seen or isinstance(value, (torch.Size, *CONSTANT)):
            return
        self._seen[id(value)] = value
        if isinstance(value, torch.nn.Module):
            self._tests.append(f"type({self._named(value)}) is {self._named(kind)}")
            self._note(kind)
            self._hold_modules(value)
            self._hold(vars(value))
        elif kind in (dict, OrderedDict, list, tuple, set, frozenset):
            if not value:
                self._tests.append(f"not {self._named(value)}")
            elif kind in (dict, OrderedDict):
                self._hold(value)
            else:
                self._add_sequence(value)
                for part in value:
                    if isinstance(part, Tensor):
                        raise Unrepeatable("the layer has a list of tensors")
                    self._note(part)
        elif isinstance(value, type):
            for cls in value.__mro__:
                if not _is_known(cls.__module__) and cls.__module__ != "builtins":
                    names = [name for name in vars(cls) if not name.startswith("__")]
                    self._note_names(vars(cls), names, len(vars(cls)))
        elif not (isinstance(value, types.ModuleType) and _is_known(value.__name__)):
            raise Unrepeatable(f"the message may read a {kind.__name__}")

    def _note_names(self, holder: Any, names: list[str], count: int | None) -> None:
        for value in [holder[name] for name in names]:
            if isinstance(value, Tensor):
                raise Unrepeatable("the message may read a tensor that is not its layer's")
            self._note(value)
        self._add(holder, names, count)

    def note_globals(self, code: types.CodeType, holder: dict[str, Any]) -> None:
        """Note the globals that code names."""
        names = [name for name in code.co_names if name in holder]
        if names:
            self._note_names(holder, names, None)

    def holds(self, layer: torch.nn.Module) -> bool:
        """Whether all that was noted is still so."""
        if type(layer) is not self._class:
            return False
        if self._is_same is None:
            self._is_same = eval(f"lambda root: {' and '.join(self._tests)}", self._names)
        try:
            return self._is_same(layer.__dict__)
        except KeyError:
            return False


# ---- code ---------------------------------------------------------------------------------------


class Audit:
    """A profile function that notes the globals that the code of a message of a layer names, and
    the modules that it reaches.

    reason: why what that code does cannot be repeated.
    """

    def __init__(self, state: State, layer: torch.nn.Module) -> None:
        self.state = state
        self._layer = layer
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
            if event == "call":
                self._look_at_modules(frame, is_known)
            if event == "c_call" and not is_known:
                self._check_function(argument)
        except Unrepeatable as reason:
            self.reason = str(reason)

    def _look_at_modules(self, frame: types.FrameType, is_known: bool) -> None:
        names = frame.f_code.co_names
        if frame.f_code is _RETURNS_MODULE:
            self.state.reach(frame.f_locals["self"], frame.f_locals["name"])
        elif "_modules" in names or ("__dict__" in names and not is_known):
            module = frame.f_locals.get("self")
            is_module = isinstance(module, torch.nn.Module)
            self.state.reach_all(module if is_module else self._layer)

    def _look_at(self, frame: types.FrameType) -> bool:
        code = frame.f_code
        if _is_known(frame.f_globals.get("__name__")) or _is_own(frame):
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
def audited(state: State, layer: torch.nn.Module) -> Iterator[Audit]:
    """Note what code of this thread reads."""
    audit = Audit(state, layer)
    sys.setprofile(audit)
    try:
        yield audit
    finally:
        sys.setprofile(None)
