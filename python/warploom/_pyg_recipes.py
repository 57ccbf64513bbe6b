"""Recordings of traced messages: what torch and warploom computed, as a straight line of calls.

The second call of a layer with arguments of the same kinds is traced under `Recorder`, which notes
each function of torch as a line of code. Later calls run these lines. `_pyg_state` says whether the
layer is still as it was. Where that is not certain, or a message does what a line cannot repeat,
the message is traced at each call.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.overrides import TorchFunctionMode

from warploom._pyg_graphs import Last
from warploom._pyg_state import PLAIN, State, Unrepeatable, audited
from warploom.torch._internals import (
    DispatchMode,
    any_autocast,
    has_global_hooks,
    without_overrides,
)

# What these return of a tensor follows from the kinds of the arguments.
_FACTS = frozenset(
    (
        *("shape", "dtype", "device", "ndim", "is_cuda", "is_cpu", "layout", "requires_grad"),
        *("size", "dim", "numel", "nelement", "ndimension", "is_floating_point", "is_complex"),
        *("__len__", "element_size", "itemsize", "nbytes", "get_device", "is_sparse", "is_meta"),
        *("is_quantized", "is_nested", "is_mkldnn", "is_sparse_csr", "is_inference", "_version"),
    )
)
_PURE = ("neg", "__neg__")  # of an unused result nothing is lost
_BY_NUMBERS = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
_INDEX = torch.ops.aten.index.Tensor
_VALUE = re.compile(r"\bv\d+\b")
_ATTRIBUTE = "_warploom_recipes"
_MOST_KINDS = 16
# Recordings of one kind that may fail: finalizers of other objects may run during one.
_MOST_TRIALS = 3
# Recordings that a layer has from the start, and replays that earn it another one.
_FIRST_RECORDINGS = 8
_REPLAYS_PER_RECORDING = 32


def modes(device: torch.device) -> tuple[Any, ...]:
    """What decides about types and gradients in this thread."""
    autocast = torch.get_autocast_dtype(device.type) if any_autocast() else None
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), autocast


def _kind(tensor: Tensor) -> tuple[Any, ...]:
    return (
        type(tensor), tensor.shape, tensor.dtype, tensor.device, tensor.layout,
        tensor.requires_grad,
    )  # fmt: skip


class Given:
    """The arguments of a propagate: their tensors, and what decides which calls are alike.

    kinds: None where an argument is an object that may be another one in a call that looks alike.
    """

    __slots__ = ("kinds", "tensors")

    def __init__(
        self,
        training: bool,
        edge_index: Tensor,
        size: Any,
        kwargs: dict[str, Any],
        beside: bool = False,
    ) -> None:
        """beside: whether features hold several signals side by side."""
        self.tensors = [edge_index]
        kinds = [training, beside, *modes(edge_index.device), _kind(edge_index)]
        is_known = self._add(kinds, size) and not has_global_hooks()
        for name, value in kwargs.items():
            kinds.append(name)
            is_known = is_known and self._add(kinds, value)
        self.kinds: Any = tuple(kinds) if is_known else None

    def _add(self, kinds: list[Any], value: Any) -> bool:
        kind = type(value)
        if kind is Tensor or kind is Parameter:
            for at, other in enumerate(self.tensors):
                if other is value:
                    kinds.append(at)
                    return True
            self.tensors.append(value)
            kinds.append(_kind(value))
            return True
        if kind is tuple or kind is list:
            kinds += (kind, len(value))
            is_known = True
            for part in value:
                is_known = is_known and self._add(kinds, part)
            return is_known
        kinds += (kind, value)
        return value is None or kind in (bool, int, float, str)


class Recipe:
    """A recorded call: how to repeat it, and while what holds."""

    __slots__ = ("function", "last", "places", "sizes", "state", "written")

    def __init__(
        self,
        state: State,
        places: list[Any],
        function: Any,
        sizes: tuple[int, int],
        written: tuple[str, ...],
    ) -> None:
        self.state = state
        self.places = places  # of the layer's tensors: the holder, the name, and the kind
        self.function = function
        self.sizes = sizes  # rows and columns
        self.written = written  # attributes of the layer that the message sets
        self.last = Last()

    def tensors(self, layer: torch.nn.Module) -> list[Tensor] | None:
        """The layer's tensors as they are now; None where the recording is out of date."""
        if not self.state.holds(layer):
            return None
        root, found = layer.__dict__, []
        for holder, name, kind in self.places:
            tensor = (root if holder is None else holder)[name]
            if kind != _kind(tensor):
                return None
            found.append(tensor)
        return found

    def run(self, layer: torch.nn.Module, site: Any, given: Given, tensors: list[Tensor]) -> Tensor:
        is_enabled = torch.is_grad_enabled()
        try:
            result, *written = self.function(site, given.tensors, tensors)
        finally:
            if torch.is_grad_enabled() != is_enabled:
                torch.set_grad_enabled(is_enabled)
        if written:
            layer.__dict__.update(zip(self.written, written))
        return result  # type: ignore[no-any-return]


class Recipes:
    """The recordings of a layer by the kinds of arguments; copies and pickles of it have none."""

    __slots__ = ("_by_kinds", "_recordings", "_replays")

    def __init__(self) -> None:
        # Without a recording: how often it was tried.
        self._by_kinds: dict[Any, Recipe | int] = {}
        self._recordings = self._replays = 0

    def __reduce__(self) -> Any:
        return type(None), ()

    def find(self, layer: torch.nn.Module, given: Given) -> tuple[Recipe, list[Tensor]] | None:
        """The recording of such calls, and the tensors of the layer that it reads."""
        recipe = self._by_kinds.get(given.kinds)
        if type(recipe) is not Recipe:
            return None
        tensors = recipe.tensors(layer)
        if tensors is None:
            return None
        self._replays += 1
        return recipe, tensors

    def wants(self, given: Given) -> bool:
        """Whether a call is to be recorded: as the second of its kinds."""
        if given.kinds not in self._by_kinds:
            while len(self._by_kinds) >= _MOST_KINDS:
                del self._by_kinds[next(iter(self._by_kinds))]
            self._by_kinds[given.kinds] = 0
            return False
        known = self._by_kinds[given.kinds]
        if known == _MOST_TRIALS or sys.getprofile() is not None:
            return False
        return self._recordings < _FIRST_RECORDINGS + self._replays // _REPLAYS_PER_RECORDING

    def keep(self, given: Given, recipe: Recipe | None) -> None:
        """Keep a recording; None: it failed."""
        if recipe is not None:
            self._recordings += 1
            self._by_kinds[given.kinds] = recipe
            return
        known = self._by_kinds.get(given.kinds)
        self._by_kinds[given.kinds] = known + 1 if isinstance(known, int) else 1


def recipes_of(layer: torch.nn.Module) -> Recipes:
    found: Recipes | None = layer.__dict__.get(_ATTRIBUTE)
    if found is None:
        found = layer.__dict__[_ATTRIBUTE] = Recipes()
    return found


# ---- recording ----------------------------------------------------------------------------------


class _Numbers(DispatchMode):  # type: ignore[no-untyped-call]
    """Notes operations whose results tell Python about the numbers of a tensor."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: str | None = None
        self.is_off = False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if not self.is_off and any(tag in function.tags for tag in _BY_NUMBERS):
            by_place = function is _INDEX and not any(
                part is not None and part.dtype in (torch.bool, torch.uint8) for part in args[1]
            )
            if not by_place:
                self.found = function.__name__
        return function(*args, **(kwargs or {}))


class _Lines:
    """Code that calls functions with named values; constants are names, too."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self._arguments = arguments
        self._names: dict[str, Any] = {}
        # Target, value, what it reads, and whether it may be left out where nothing reads it.
        self._lines: list[tuple[str, str, tuple[str, ...], bool]] = []
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def constant(self, value: Any) -> str:
        name = f"k{len(self._names)}"
        self._names[name] = value
        return name

    def add(
        self, target: str, value: str, reads: tuple[str, ...] = (), is_pure: bool = True
    ) -> None:
        self._lines.append((target, value, reads, is_pure))

    def function(self, results: list[str]) -> Any:
        """The function that returns a tuple; each value is freed behind its last use."""
        alive = set(results)
        lines = [f"  return {', '.join(results)},"]
        for target, value, reads, is_pure in reversed(self._lines):
            made = _VALUE.findall(target)
            if is_pure and alive.isdisjoint(made):
                continue
            ended = [name for name in dict.fromkeys((*made, *reads)) if name not in alive]
            alive.update(ended)
            end = f"; del {', '.join(ended)}" if ended else ""
            lines.append(f"  {target}{value}{end}")
        lines.append(f"def recorded({', '.join(self._arguments)}):")
        names = dict(self._names)
        exec(compile("\n".join(reversed(lines)), "<warploom: recorded message>", "exec"), names)
        return names["recorded"]


class Recorder(TorchFunctionMode):
    """Notes the functions of torch that are called, while it is entered."""

    def __init__(
        self, layer: torch.nn.Module, given: Given, apply: Callable[..., Any], stand_in: type
    ) -> None:
        """apply: calls a function of stand-ins, whose functions of tensors are recorded."""
        super().__init__()
        self._layer = layer
        self._state = State(layer, _ATTRIBUTE)
        self._apply, self._stand_in = apply, stand_in
        self._device = given.tensors[0].device
        self._modes = modes(self._device)  # as they are, or as a recorded function made them
        self._lines = _Lines(("site", "given", "tensors"))
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that an id is that of one object
        self._places: list[Any] = []
        self._given = {id(tensor): at for at, tensor in enumerate(given.tensors)}
        if not self._given.keys().isdisjoint(self._state.tensors):
            raise Unrepeatable("an argument is a tensor of the layer")
        self._ends: dict[int, str] = {}
        self._numbers = _Numbers()
        self._reason: str | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        with audited(self._state, self._layer) as audit, self, self._numbers:
            yield
        if audit.reason is not None:
            self._refuse(audit.reason)

    def add_end(self, tensor: Tensor, name: str) -> None:
        """Name a tensor that is an attribute of the site."""
        self._ends[id(tensor)] = name

    def finish(self, layer: torch.nn.Module, result: Tensor, sizes: tuple[int, int]) -> Recipe:
        """The recording of what made the result; Unrepeatable where there is none."""
        if self._numbers.found:
            self._refuse(f"the message reads numbers ({self._numbers.found})")
        written = self._written(layer)
        results = [self._name_of(tensor) for tensor in (result, *written.values())]
        if self._reason is not None:
            raise Unrepeatable(self._reason)
        function = self._lines.function(results)
        return Recipe(self._state, self._places, function, sizes, tuple(written))

    def _written(self, layer: torch.nn.Module) -> dict[str, Tensor]:
        """The tensors that the message stored as attributes of its layer, by name."""
        root, before = layer.__dict__, self._state.attributes
        found = {
            name: root[name]
            for name, value in before.items()
            if root.get(name) is not value and isinstance(root.get(name), Tensor)
        }
        root.update((name, before[name]) for name in found)
        if not self._state.holds(layer):
            self._refuse("the message changes its layer")
        root.update(found)
        return found

    def _refuse(self, reason: str) -> None:
        self._reason = self._reason or reason

    def step(self, step: Callable[..., Any], site: Any, *args: Any) -> Any:
        """Run and note a step of warploom, whose functions of torch are its own matter."""
        self._numbers.is_off = True
        try:
            with without_overrides():
                made = step(site, *args)
        finally:
            self._numbers.is_off = False
        self._note(step, args, {}, made, "site, ")
        return made

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if any(issubclass(kind, self._stand_in) for kind in types):
            with self:
                return self._apply(function, args, kwargs)
        if modes(self._device) != self._modes:  # by autocast, or in a function with a gradient
            self._refuse("the message changes how torch computes")
        made = function(*args, **kwargs)
        name = function.__self__.__name__ if function.__name__ == "__get__" else function.__name__
        if name in _FACTS and not isinstance(made, Tensor):
            self._name_of(args[0])
        elif name == "to" and made is args[0]:
            self._name_of(made)
        elif name in ("__set__", "__delete__") or not _is_of_tensors(made):
            self._refuse(f"the message calls {name}")
        else:
            self._note(function, args, kwargs, made)
        if name == "_set_grad_enabled":
            self._modes = modes(self._device)
        return made

    def _note(self, function: Any, args: Any, kwargs: Any, made: Any, start: str = "") -> None:
        if self._reason is not None:
            return
        reads: list[str] = []
        texts = [self._text(value, reads) for value in args]
        texts += [f"{name}={self._text(value, reads)}" for name, value in kwargs.items()]
        call = f"{self._lines.constant(function)}({start}{', '.join(texts)})"
        target = self._target(made)
        is_pure = getattr(function, "__name__", None) in _PURE
        self._lines.add(f"{target} = " if target else "", call, tuple(reads), is_pure)

    def _target(self, made: Any) -> str:
        if isinstance(made, (tuple, list)):
            return "".join(f"{self._target(part) or '_'}, " for part in made)
        if made is None:
            return ""
        self._kept.append(made)
        return self._names.setdefault(id(made), self._lines.new())

    def _text(self, value: Any, reads: list[str]) -> str:
        if isinstance(value, Tensor):
            reads.append(self._name_of(value))
            return reads[-1]
        if type(value) in (tuple, list):
            inner = "".join(f"{self._text(part, reads)}, " for part in value)
            return f"({inner})" if type(value) is tuple else f"[{inner}]"
        if type(value) is dict:
            parts = (f"{key!r}: {self._text(part, reads)}" for key, part in value.items())
            return "{" + ", ".join(parts) + "}"
        if type(value) in PLAIN or isinstance(value, (torch.Size, type)):
            return self._lines.constant(value)
        self._refuse(f"the message passes a {type(value).__name__}")
        return "None"

    def _name_of(self, tensor: Tensor) -> str:
        key = id(tensor)
        name = self._names.get(key)
        if name is not None:
            return name
        name = self._names[key] = self._lines.new()
        self._kept.append(tensor)
        place = self._state.tensors.get(key)
        if key in self._given:
            source = f"given[{self._given[key]}]"
        elif place is not None:
            source = f"tensors[{len(self._places)}]"
            self._places.append((*place, _kind(tensor)))
        elif key in self._ends:
            source = f"site.{self._ends[key]}"
        else:
            self._refuse("the message reads a tensor of unknown origin")
            source = "None"
        self._lines.add(f"{name} = ", source)
        return name


def _is_of_tensors(made: Any) -> bool:
    if isinstance(made, (tuple, list)):
        return all(_is_of_tensors(part) for part in made)
    return made is None or isinstance(made, Tensor)
