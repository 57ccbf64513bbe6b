"""The sampling of a model's layers: which of their products sample edges, and how many.

A setting belongs to one model, known by a hash of its parameters, and to the graphs that its layers
multiply by. Layers are known by their names in the model. Hooks of PyTorch follow which modules
run, only while a setting is in use.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from warploom import _arguments
from warploom._forks import renewed
from warploom._problem import SAMPLES
from warploom.torch._graph import Graph
from warploom.torch._plan import Sample

_FORMAT = "warploom sampling 1"
# Reductions that sample, and the norm of their result.
NORM_OF = {"sum": "unbiased", "mean": "none"}
_SEED = 1  # of a layer in inference; the layer's number is added


class LayerSampling(NamedTuple):
    """What one layer does.

    sample: None = all edges. graphs: fingerprints of the matrices that the layer multiplied by.
    expected, measured: the variance that sampling causes, averaged over the product: for a row of d
        edges (sigma^2 / S) (1 - S / d), times d^2 for sums; and that of seeds. None where exact.
    worst: rows with the largest expected variance: row, edges, variance.
    """

    sample: Sample | None
    graphs: tuple[str, ...] = ()
    expected: float | None = None
    measured: float | None = None
    worst: tuple[tuple[int, int, float], ...] = ()


class Tried(NamedTuple):
    """A setting that was measured: the sampling of each layer, microseconds of one inference, the
    mean loss, the bound that the loss keeps with the confidence asked for (None where the passes
    ended early), and passes."""

    samples: dict[str, Sample | None]
    us: float
    loss: float
    bound: float | None
    passes: int


class Sampling(NamedTuple):
    """A setting that `warploom.torch.calibrate` chose, and what it measured.

    layers: by name in the model. model: a hash of its parameters.
    budget, confidence, metric: as they were asked for.
    loss, bound: the mean loss on the validation nodes, and the bound that it keeps with this
        confidence.
    us, exact_us: microseconds of one inference with this setting, and with all edges.
    tried: all settings whose loss was measured, from fast to slow.
    """

    layers: dict[str, LayerSampling]
    model: str
    budget: float
    confidence: float
    metric: str
    device: str
    loss: float
    bound: float
    us: float
    exact_us: float
    tried: tuple[Tried, ...]

    @property
    def is_exact(self) -> bool:
        """Whether no layer samples."""
        return all(layer.sample is None for layer in self.layers.values())

    def explain(self) -> str:
        """The layers, and the time and loss of each setting that was measured, as a text."""
        of = self.loss * 100, self.budget * 100, self.bound * 100
        lines = [
            f"{self.metric}: loses {of[0]:.2f} points of the {of[1]:.2f} allowed "
            f"(at most {of[2]:.2f} with {self.confidence * 100:g} % confidence)",
            f"inference: {self.us / 1e3:.3g} ms, {self.exact_us / self.us:.1f} times as fast as "
            f"with all edges ({self.exact_us / 1e3:.3g} ms)",
            "",
        ]
        table: list[tuple[str, ...]] = [
            ("layer", "sample", "variance: expected", "measured", "most in rows")
        ]
        for name, layer in self.layers.items():
            variances = (layer.expected, layer.measured)
            texts = ["" if one is None else f"{one:.3g}" for one in variances]
            worst = ", ".join(str(row) for row, _, _ in layer.worst)
            table.append((name or "the model", text_of(layer.sample), *texts, worst))
        lines += _aligned(table, "<<>><")
        lines.append("")
        chosen = {name: layer.sample for name, layer in self.layers.items()}
        table = [("us", "loss", "bound", "setting")]
        for one in self.tried:
            bound = "-" if one.bound is None else f"{one.bound * 100:.2f}"
            names = dict.fromkeys(map(text_of, one.samples.values()))
            mark = "  <- chosen" if one.samples == chosen else ""
            each = names if len(names) == 1 else map(text_of, one.samples.values())
            setting = "; ".join(each) + mark
            table.append((f"{one.us:.0f}", f"{one.loss * 100:.2f}", bound, setting))
        return "\n".join([*lines, *_aligned(table, ">>><")])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the setting to a JSON file, which `load` reads. Raises OSError."""
        text = json.dumps(
            {
                "format": _FORMAT,
                **self._asdict(),
                "layers": {name: _plain(layer) for name, layer in self.layers.items()},
                "tried": [_plain(one) for one in self.tried],
            },
            indent=1,
        )
        temporary = f"{os.fspath(path)}.{os.getpid()}.new"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(temporary, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Sampling:
        """Read a file that `save` wrote. Raises OSError, or ValueError with what is wrong."""
        with open(path, encoding="utf-8") as file:
            try:
                found = json.load(file)
            except ValueError as error:
                raise ValueError(f"warploom: {os.fspath(path)}: is no JSON: {error}") from None
        try:
            if found.pop("format") != _FORMAT:
                raise ValueError("another format")
            found["layers"] = {name: _layer(one) for name, one in found["layers"].items()}
            found["tried"] = tuple(_tried(one) for one in found["tried"])
            return Sampling(**found)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"warploom: {os.fspath(path)}: is no sampling that calibrate saved ({error}); run "
                "warploom.torch.calibrate again"
            ) from None


def text_of(sample: Sample | None) -> str:
    """A sample in words."""
    return "all edges" if sample is None else f"{sample.strategy} {sample.width}"


def _aligned(table: list[tuple[str, ...]], sides: str) -> list[str]:
    """The lines of a table, with columns aligned to these sides."""
    widths = [max(map(len, column)) for column in zip(*table)]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths)).rstrip()
        for row in table
    ]


def _plain(value: Any) -> Any:
    """A value of JSON; named tuples become objects."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(one) for name, one in value._asdict().items()}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _sample(found: Any) -> Sample | None:
    if found is None:
        return None
    sample = Sample(**found)
    if sample.strategy not in SAMPLES:
        raise ValueError(f"the strategy '{sample.strategy}' is unknown")
    return sample._replace(width=_arguments.integer("width", sample.width, 1, 1 << 20))


def _layer(found: Any) -> LayerSampling:
    worst = tuple((int(row), int(edges), float(value)) for row, edges, value in found["worst"])
    graphs = tuple(str(one) for one in found["graphs"])
    return LayerSampling(
        **{**found, "sample": _sample(found["sample"]), "graphs": graphs, "worst": worst}
    )


def _tried(found: Any) -> Tried:
    samples = {name: _sample(one) for name, one in found["samples"].items()}
    return Tried(**{**found, "samples": samples})


# ---- hashes --------------------------------------------------------------------------------------

_hashes: WeakKeyDictionary[nn.Module, tuple[Any, str]] = WeakKeyDictionary()
_fingerprints: WeakKeyDictionary[Graph, str] = WeakKeyDictionary()


def hash_of(model: nn.Module) -> str:
    """A hash of the names and values of a model's parameters and buffers, computed again only after
    they have changed. Waits for the device the first time."""
    state = tuple(
        (id(one), getattr(one, "_version", 0))
        for module in model.modules()
        for one in (*module._parameters.values(), *module._buffers.values())
    )
    known = _hashes.get(model)
    if known is not None and known[0] == state:
        return known[1]
    digest = hashlib.sha256()
    for name, one in model.state_dict(keep_vars=True).items():
        digest.update(name.encode())
        if isinstance(one, Tensor):
            values = one.detach().cpu().contiguous()
            digest.update(f"{values.dtype}{tuple(values.shape)}".encode())
            digest.update(values.view(-1).view(torch.uint8).numpy().tobytes())
    found = digest.hexdigest()[:32]
    _hashes[model] = state, found
    return found


def fingerprint_of(graph: Graph) -> str:
    """Rows, columns, edges and a hash of the pattern; of each Graph once. Waits for the device."""
    known = _fingerprints.get(graph)
    if known is None:
        sums = [_mixed(graph.rowptr), _mixed(graph.colind)]
        known = f"{graph.rows}x{graph.cols}:{graph.nnz}:{sums[0]:016x}{sums[1]:016x}"
        _fingerprints[graph] = known
    return known


def _mixed(numbers: Tensor) -> int:
    """A sum over numbers and their places, modulo 2^64, which is the same on all devices."""
    total = 0
    for begin in range(0, numbers.numel(), 1 << 24):
        part = numbers[begin : begin + (1 << 24)].long()
        place = torch.arange(begin + 1, begin + 1 + part.numel(), device=part.device)
        mixed = (part + 0x9E3779B9) * (place * 0x2545F4914F6CDD1D + 0x632BE5AB)
        mixed = (mixed ^ (mixed >> 29)) * 0x369DEA0F31A53F85
        total += int((mixed ^ (mixed >> 32)).sum())
    return total % (1 << 64)


# ---- which layer runs ----------------------------------------------------------------------------


class _Thread(threading.local):
    def __init__(self) -> None:
        self.stack: list[nn.Module] = []
        # Names and numbers of the model's modules, while it runs.
        self.names: dict[nn.Module, tuple[str, int]] | None = None
        self.depth = 0  # of the stack below the model
        self.is_exact = 0  # above 0: products use all edges


_thread = _Thread()
# What decides the sample of a product; None = no setting is in use.
chosen: Callable[[Graph, Tensor, Tensor | None, str, str], tuple[Sample, int] | None] | None = None
_lock = renewed(threading.RLock())
_in_use: list[Any] = []  # `chosen` of each `using` that has not ended


@contextmanager
def exact() -> Iterator[None]:
    """Use all edges in this thread."""
    _thread.is_exact += 1
    try:
        yield
    finally:
        _thread.is_exact -= 1


def running_layer() -> tuple[str, int] | None:
    """The name of the module that runs in the model, and its number; None outside of the model."""
    names = _thread.names
    if names is None:
        return None
    return next((names[module] for module in reversed(_thread.stack) if module in names), None)


class Follower:
    """Follows the modules of a model, while it is in use.

    decide: gets the graph, b, values, how messages are reduced and the layer's name and number, and
        says what the layer does. is_model: whether a module is the model.
    """

    def __init__(
        self, is_model: Callable[[nn.Module], bool],
        decide: Callable[[Graph, Tensor, Tensor | None, str, tuple[str, int] | None], Any],
    ) -> None:  # fmt: skip
        self._is_model, self._decide = is_model, decide
        self.hooks: list[Any] = []

    def __enter__(self) -> Follower:
        global chosen
        with _lock:
            self.hooks = [
                torch_modules.register_module_forward_pre_hook(self._begin),
                torch_modules.register_module_forward_hook(self._end, always_call=True),
            ]
            _in_use.append(self)
            chosen = self._choose
        return self

    def __exit__(self, *error: object) -> None:
        global chosen
        with _lock:
            _in_use.remove(self)
            for hook in self.hooks:
                hook.remove()
            chosen = _in_use[-1]._choose if _in_use else None

    def _begin(self, module: nn.Module, args: Any) -> None:
        if torch.compiler.is_compiling() or _in_use[-1:] != [self]:
            return
        _thread.stack.append(module)
        if _thread.names is None and self._is_model(module):
            _thread.names = {
                one: (name, number) for number, (name, one) in enumerate(module.named_modules())
            }
            _thread.depth = len(_thread.stack)

    def _end(self, module: nn.Module, args: Any, out: Any) -> None:
        if torch.compiler.is_compiling() or module not in _thread.stack:
            return
        while _thread.stack.pop() is not module:
            pass
        if len(_thread.stack) < _thread.depth:
            _thread.names, _thread.depth = None, 0

    def _choose(
        self, graph: Graph, b: Tensor, values: Tensor | None, reduce: str, message: str
    ) -> tuple[Sample, int] | None:
        """The sample of a product and its seed; None = all edges."""
        if (
            torch.is_grad_enabled()
            or _thread.is_exact
            or reduce not in NORM_OF
            or message not in ("mul", "copy_b")
        ):
            return None
        found = self._decide(graph, b, values, reduce, running_layer())
        if found is None:
            return None
        sample, seed = found
        return sample._replace(norm=NORM_OF[reduce]), seed


_GLOBAL_HOOKS = [
    name for name in vars(torch_modules) if name.startswith("_global_") and "hooks" in name
]


def has_other_hooks() -> bool:
    """Whether there are hooks of all modules besides those that follow which layer runs."""
    own = {hook.id for follower in _in_use for hook in follower.hooks}
    return any(not own.issuperset(getattr(torch_modules, name)) for name in _GLOBAL_HOOKS)


class sampling:
    """Sample edges in a model's inference, as `calibrate` chose.

        with warploom.torch.sampling("sampling.json"), torch.no_grad():
            out = model(x, edge_index)

    setting: a Sampling, or the path of a file that it saved. Products of layers of
        `warploom.pyg.accelerate` and `warploom.torch.spmm` without `sample` use it under
        torch.no_grad(); training uses all edges, and so may code of torch.compile. The seeds are
        fixed, so that the same call gives the same result.
    force: run another model with layers of the same names, or other graphs. Without it RuntimeError
        says what differs, since the loss was measured for this model on these graphs only. A
        setting of all edges changes and refuses nothing.

    The setting holds for all threads. The first call of a model and of each graph computes a hash
    and waits for the device. Raises OSError or ValueError for a file that cannot be read.
    """

    def __init__(self, setting: Sampling | str | os.PathLike[str], *, force: bool = False) -> None:
        self.setting = setting if isinstance(setting, Sampling) else Sampling.load(setting)
        self._force = _arguments.flag("force", force)
        self._follower = Follower(self._is_model, self._decide)
        self._seen: WeakKeyDictionary[Graph, bool] = WeakKeyDictionary()

    def __enter__(self) -> Sampling:
        if not self.setting.is_exact:
            self._follower.__enter__()
        return self.setting

    def __exit__(self, *error: object) -> None:
        if not self.setting.is_exact:
            self._follower.__exit__(*error)

    def _is_model(self, module: nn.Module) -> bool:
        names = {name for name, _ in module.named_modules()}
        has_layers = all(name in names for name in self.setting.layers)
        return has_layers and (self._force or hash_of(module) == self.setting.model)

    def _decide(
        self, graph: Graph, b: Tensor, values: Tensor | None, reduce: str,
        layer: tuple[str, int] | None,
    ) -> tuple[Sample, int] | None:  # fmt: skip
        if layer is None:
            if self._force:
                return None
            raise RuntimeError(
                "warploom: sampling: the model that runs is not the one that was calibrated (its "
                "layers or parameters differ); calibrate it, or use force=True"
            )
        found = self.setting.layers.get(layer[0])
        if found is None or found.sample is None:
            return None
        if not self._force and graph not in self._seen:
            if fingerprint_of(graph) not in found.graphs:
                raise RuntimeError(
                    f"warploom: sampling: layer '{layer[0]}' runs on a graph that was not "
                    f"calibrated ({graph.rows} rows, {graph.nnz} edges); calibrate it, or use "
                    "force=True"
                )
            self._seen[graph] = True
        return found.sample, _SEED + layer[1]
