"""capture: a training step as CUDA graphs, one for each kind of inputs.

Each call is one step. The first calls with inputs of a kind run eagerly on a side stream; the next
one records the step, which does not run it, and replays the record. What a replay cannot repeat
shows in the last eager call, before anything is recorded, since a capture that fails leaves
allocator and generators in states of their own.
"""

from __future__ import annotations

import functools
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import torch

from warploom import _arguments
from warploom.torch._capture_inputs import Inputs, Part, each, modes
from warploom.torch._capture_optimizers import Gradients, Optimizers
from warploom.torch._capture_reads import Modules, Reads, place
from warploom.torch._capture_writes import Writes
from warploom.torch._internals import any_autocast, leave_pool
from warploom.torch._state import TensorState, recorded

# Tests replace both: what captures, and the kind of device whose tensors are captured.
cuda: Any = torch.cuda
DEVICE = "cuda"

_MOST_KINDS = 16  # padded batches of training and validation have 8 sizes each
_MOST_FORMS = 64  # of calls whose edges are counted
_OTHER_EDGES = 3  # of one form, from which on edges change
_MANY_EAGER_CALLS = 40  # without a replay
# Texts of PyTorch's warnings.
_WAITS = "called a synchronizing CUDA operation"
_EMPTY = "The CUDA Graph is empty"

# What makes the context in which a step runs of its arguments; `warploom.pyg` adds what layers must
# know of padded batches.
surroundings: list[Callable[[Any], AbstractContextManager[Any]]] = []


class _Step(threading.local):
    """The captured step that this thread runs."""

    is_replayed = False  # later, so the host's time does not count
    made: dict[Any, Any] | None = None  # of edges, where each replay makes it again


step_of_thread = _Step()


@contextmanager
def _replayed(edges_change: bool) -> Iterator[None]:
    step_of_thread.is_replayed = True
    step_of_thread.made = {} if edges_change else None
    try:
        yield
    finally:
        step_of_thread.is_replayed = False
        step_of_thread.made = None


def capture(step: Callable[..., Any], warmup: int = 3, edges: str | None = None) -> Captured:
    """A function that does what `step` does, and soon replays it from a CUDA graph.

        train = warploom.torch.capture(step)
        for epoch in range(200):
            loss = train(x, edge_index)

    step: one training step: forward, backward and the optimizer, with `zero_grad` where you need
        it. Its Python code runs while it is warmed up and captured, and not in a replay.
    warmup: calls that run eagerly on a side stream before a step is captured, at least 1. Layers of
        PyG on warploom need 3: they choose and compile kernels at the second use of an edge_index.
    edges: "changing" where each call brings another edge_index (an integer tensor of 2 rows) of the
        same shape. Layers of PyG on warploom then sort it in each replay, without waiting. None =
        so from the third edge_index of one shape on.

    Each call is one step, so 200 calls train as 200 calls of `step` do. The arguments:

    - Dense tensors on the GPU may bring other numbers with each call, which are copied. Data, Batch
      and HeteroData of PyG are their tensors. Batches of another shape each time are made alike by
      `warploom.pyg.padded`. Tensors that the step uses without an argument are read where they are.
      Keep them, and change them in place. Where warploom has made something of them, as of an
      edge_index or of values of edges, the step is captured again after such a change.
    - Another shape or type, one of the first two edge_index of a shape, another Graph, another
      number or other object, another mode of autograd or of a module (`train`, `eval`), or another
      hyperparameter of the optimizer is warmed up and captured by itself. The captures of the last
      16 are kept, with their memory.

    Optimizers become capturable when the step first calls them. A learning rate that is a tensor on
    the GPU, `Adam(..., lr=torch.tensor(0.01, device="cuda"))`, may change without a new capture.
    Dropout of PyTorch draws new numbers in each replay.

    Returns what the step returns. Tensors of a replay have no gradient, and the next call
    overwrites them. Where a step cannot be captured, one warning says why, `reason` keeps it, and
    all calls run eagerly. Such a step waits for the device (`loss.item()`), reads other tensors at
    each call (`next(batches)`, which belongs before the step), draws random numbers on the CPU (as
    warploom does for dropout of attention and for sampling without a seed), steps a learning rate
    scheduler, or has an optimizer that counts on the host. On the CPU all calls run eagerly,
    without a warning. Use it from one thread.
    """
    if not callable(step):
        raise TypeError(f"warploom: step: a function is needed, not {type(step).__name__}")
    if edges not in (None, "changing"):
        raise ValueError(f"warploom: edges: {edges!r} is not 'changing' or None")
    return Captured(step, _arguments.integer("warmup", warmup, least=1), edges is not None)


class Captured:
    """A step that is replayed where it can be.

    reason: why it runs eagerly, or None.
    captures: how often it was captured.
    """

    def __init__(self, step: Callable[..., Any], warmup: int, edges_change: bool) -> None:
        functools.update_wrapper(self, step, updated=())
        self.reason: str | None = None
        self.captures = 0
        self._step = step
        self._warmup = warmup
        self._edges_change = edges_change
        self._met: dict[tuple[Part, ...], set[Any] | None] = {}  # edges by form; None = they change
        self._optimizers = Optimizers(DEVICE)
        self._modules = Modules()
        self._kinds: dict[tuple[Part, ...], _Replay] = {}
        self._parts: tuple[Part, ...] = ()  # of the kind of the last call
        self._eager_calls = 0  # since the last replay
        self._side: Any = None
        self._pool: Any = None
        self._failed: Any = None  # a capture

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """One step."""
        if self._side is None and self.reason is None:
            self._start()
        if self.reason is not None or cuda.is_current_stream_capturing():
            return self._run(args, kwargs)
        inputs = self._inputs(args, kwargs)
        if inputs.is_eager:
            return self._run(args, kwargs)
        parts = self._parts_of(inputs)
        kind = self._kind(parts, inputs)
        if kind.calls < self._warmup:
            self._warn_of_changes(parts)
            return self._warm_up(kind, parts, inputs)
        reason = self._capture(kind, inputs) if kind.graph is None else None
        if reason is not None:
            del self._kinds[parts]
            return self._run_instead(reason, args, kwargs)
        self._parts, self._eager_calls = parts, 0
        return kind.replay(self._optimizers)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step itself, with what its arguments bring with them."""
        with ExitStack() as stack:
            for surround in surroundings:
                stack.enter_context(surround((args, kwargs)))
            return self._step(*args, **kwargs)

    def _inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        """The arguments, with edges that change or belong to the kind of the call."""
        inputs = Inputs(args, kwargs, DEVICE, edges_change=True)
        if self._edges_change or inputs.is_whole:
            return inputs
        if not inputs.edges:
            inputs.edges_change = False
            return inputs
        form = tuple(inputs.parts)
        met = self._met.pop(form, set())
        if met is not None:
            met.add(tuple(inputs.edges))
            met = met if len(met) < _OTHER_EDGES else None
        self._met[form] = met
        if len(self._met) > _MOST_FORMS:
            del self._met[next(iter(self._met))]
        return inputs if met is None else Inputs(args, kwargs, DEVICE)

    def _start(self) -> None:
        if cuda.is_available():
            self._side, self._pool = cuda.Stream(), cuda.graph_pool_handle()
        else:
            self.reason = "there is no GPU"

    def _parts_of(self, inputs: Inputs) -> tuple[Part, ...]:
        return (
            *inputs.parts, *modes(DEVICE), *self._optimizers.parts(), *self._modules.parts()
        )  # fmt: skip

    def _kind(self, parts: tuple[Part, ...], inputs: Inputs) -> _Replay:
        """The kind of a call, with its inputs in the buffers."""
        kind = self._kinds.pop(parts, None)
        if kind is None or not all(state.holds() for state in kind.states):
            kind = _Replay(inputs)
        else:
            for buffer, tensor in zip(kind.buffers, inputs.tensors):
                buffer.copy_(tensor)
        self._keep(parts, kind)
        return kind

    def _keep(self, parts: tuple[Part, ...], kind: _Replay) -> None:
        """Keep a kind, instead of the one that was not used for longest where there are many."""
        self._kinds[parts] = kind
        if len(self._kinds) > _MOST_KINDS:
            others = list(self._kinds)[:-1]
            waiting = (key for key in others if self._kinds[key].graph is None)
            del self._kinds[next(waiting, others[0])]

    def _warm_up(self, kind: _Replay, parts: tuple[Part, ...], inputs: Inputs) -> Any:
        """Run a step eagerly, as it will be captured."""
        optimizers = self._optimizers
        known = len(optimizers.seen), len(self._modules.seen)
        rates = optimizers.rates(known[0])
        watch = _Watch(cuda) if kind.calls + 1 == self._warmup else None
        result = self._run_aside(kind, inputs, watch or nullcontext())
        kind.calls += 1
        self._parts = self._parts_of(inputs)
        if (len(optimizers.seen), len(self._modules.seen)) != known:
            del self._kinds[parts]  # the next call of this kind knows them
            self._keep(self._parts, kind)
        if optimizers.elsewhere():
            self.reason = f"its parameters are on the {optimizers.elsewhere()}"
        elif optimizers.rates(known[0]) != rates:
            self._give_up("it changes the learning rate; do that between the steps")
        elif watch is not None:
            reason = watch.reason or optimizers.reason() or _reason_of(result)
            self._give_up(reason or kind.reads.reason())
        return result

    def _run_aside(self, kind: _Replay, inputs: Inputs, watch: Any) -> Any:
        args, kwargs = inputs.replaced(kind.buffers)
        current = cuda.current_stream()
        self._side.wait_stream(current)
        modules = self._modules.watched() if kind.calls == 0 else nullcontext()
        try:
            with ExitStack() as stack:
                stack.enter_context(_replayed(inputs.edges_change))
                stack.enter_context(cuda.stream(self._side))
                for seen in (self._optimizers.watched(), modules, watch):
                    stack.enter_context(seen)
                stack.enter_context(kind.reads.noted((args, kwargs)))
                return self._run(args, kwargs)
        finally:
            current.wait_stream(self._side)

    def _capture(self, kind: _Replay, inputs: Inputs) -> str | None:
        """Record a step; returns why that failed, or None."""
        before, watch = self._optimizers.gradients(), _Watch()
        reason = self._record(kind, inputs, watch)
        if reason is not None:
            self._optimizers.set_gradients(before)
            watch.restore_random()
            return reason
        kind.gradients = before, self._optimizers.gradients()
        kind.held.append(self._optimizers.tensors())
        self.captures += 1
        return None

    def _run_instead(self, reason: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step that could not be captured. An error of its own is not the reason."""
        result = self._run(args, kwargs)
        self._give_up(reason)
        return result

    def _record(self, kind: _Replay, inputs: Inputs, watch: _Watch) -> str | None:
        """Record a step; returns why that failed, or None."""
        if any_autocast() and torch.is_autocast_cache_enabled():
            return "autocast around it keeps old weights; move it into the step"
        args, kwargs = inputs.replaced(kind.buffers)
        graph, current, writes = cuda.CUDAGraph(), cuda.current_stream(), Writes(DEVICE)
        options = {"pool": self._pool, "stream": self._side, "capture_error_mode": "thread_local"}
        try:
            with ExitStack() as stack:
                used = stack.enter_context(recorded())
                stack.enter_context(_replayed(inputs.edges_change))
                stack.enter_context(watch)
                stack.enter_context(cuda.graph(graph, **options))
                stack.enter_context(kind.reads.noted((args, kwargs)))
                result = self._run(args, kwargs)
        except Exception as error:
            cuda.set_stream(current)
            self._clean_up(graph)
            return f"the capture failed ({next(iter(str(error).splitlines()), repr(error))})"
        kind.graph, kind.result = graph, each(result, _without_gradient)
        kind.held.append(list(used))
        kind.states = list({state.key: state for state, _ in used}.values())
        kind.written = writes.changed(self._optimizers.states())
        return watch.reason or kind.reads.reason()

    def _clean_up(self, failed: Any) -> None:
        """Bring allocator and generator, which take a failed capture to go on, back to work."""
        self._failed = failed  # the allocator may still ask it
        leave_pool(cuda.current_device(), self._pool)
        with suppress(RuntimeError), cuda.graph(cuda.CUDAGraph(), stream=self._side):
            torch.zeros(1, device=DEVICE)

    def _warn_of_changes(self, parts: tuple[Part, ...]) -> None:
        """Warn where no call is replayed, because each is of another kind."""
        self._eager_calls += 1
        if self._eager_calls == max(_MANY_EAGER_CALLS, 4 * self._warmup):
            old = dict(self._parts)
            changed = [name for name, part in parts if old.get(name, part) != part]
            changed.append("an edge_index or tensor of edges that is no argument")
            self._warn(f"no call was replayed, since {changed[0]} is another one each time", 4)

    def _give_up(self, reason: str | None) -> None:
        if reason is not None:
            self.reason = reason
            self._kinds.clear()
            self._warn(f"{reason}; it runs eagerly", 5)

    def _warn(self, text: str, level: int) -> None:
        name = getattr(self._step, "__name__", type(self._step).__name__)
        warnings.warn(f"warploom: capture: {name}: {text}", stacklevel=level)


class _Replay:
    """Calls that one capture serves."""

    def __init__(self, inputs: Inputs) -> None:
        self.held = inputs.held
        self.buffers = [tensor.clone() for tensor in inputs.tensors]
        self.calls = 0  # that ran eagerly
        self.reads = Reads()
        self.graph: Any = None
        self.result: Any = None
        self.states: list[TensorState] = []  # of tensors of which the capture has what was made
        self.written: list[torch.Tensor] = []  # whose changes a replay counts
        # Where the capture found the gradients, and where it left them.
        self.gradients: tuple[Gradients, Gradients] = [], []

    def replay(self, optimizers: Optimizers) -> Any:
        """One step with the numbers in the buffers."""
        before, after = self.gradients
        for first, last, now in zip(before, after, optimizers.gradients()):
            if first is not None and first is last and now is not None and now is not first:
                first.copy_(now)  # the step adds to it
        optimizers.set_gradients(after)
        self.graph.replay()
        for tensor in self.written:  # versions of PyTorch before 2.5 take one at a time
            torch.autograd.graph.increment_version(tensor)
        return self.result


class _Watch:
    """A context whose `reason` then says why what ran in it cannot be replayed, or is None.

    cuda: torch.cuda, to see waits for the device; None during a capture, where they fail.
    """

    def __init__(self, cuda: Any = None) -> None:
        self.reason: str | None = None
        self._cuda = cuda
        self._thread = threading.get_ident()
        self._warnings = warnings.catch_warnings()
        self._random = torch.get_rng_state(), random.getstate()

    def __enter__(self) -> None:
        if self._cuda is not None:
            self._mode = self._cuda.get_sync_debug_mode()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch calls the mode a prototype
                self._cuda.set_sync_debug_mode("warn")
        self._seen: list[Any] = []
        self._warnings.__enter__()
        warnings.simplefilter("always")
        warnings.showwarning = self._see  # type: ignore[assignment]

    def _see(self, message: Any, category: Any, filename: str, line: int, *rest: Any) -> None:
        text = str(message)
        if text.startswith(_WAITS):
            if threading.get_ident() == self._thread:  # others may fill batches meanwhile
                self.reason = f"{place()} waits for the GPU"
        elif text.startswith(_EMPTY):
            self.reason = "it does nothing on the GPU"
        else:
            self._seen.append((message, category, filename, line))

    def __exit__(self, *error: Any) -> None:
        if self._cuda is not None:
            self._cuda.set_sync_debug_mode(self._mode)
        self._warnings.__exit__(*error)
        of_torch, of_python = self._random
        if not torch.equal(of_torch, torch.get_rng_state()) or of_python != random.getstate():
            self.reason = (
                "it draws random numbers on the CPU (as warploom does for dropout of attention and "
                "for sampling), which a replay would repeat"
            )
        for seen in self._seen:
            warnings.warn_explicit(*seen)

    def restore_random(self) -> None:
        """Let the CPU draw again what it drew since the context was made."""
        torch.set_rng_state(self._random[0])
        random.setstate(self._random[1])


def _reason_of(result: Any) -> str | None:
    """Why what a step returns is not what a replay returns."""
    found: list[str] = []

    def see(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor) and value.device.type != DEVICE:
            found.append(f"it returns a tensor on the {value.device.type}")

    each(result, see)
    return found[0] if found else None


def _without_gradient(name: str, value: Any) -> Any:
    return value.detach() if isinstance(value, torch.Tensor) else value
