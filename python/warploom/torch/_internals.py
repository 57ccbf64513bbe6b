"""Names of PyTorch that are not public, in this file only, each behind a public name.

Tried with torch 2.4.1, 2.11.0 and 2.15.0 on the CPU. Where a version lacks one of them, what stands
here instead costs time and changes no result.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence
from typing import Any

import torch


def tensor_without_memory(
    cls: Any, shape: Sequence[int], dtype: torch.dtype, device: torch.device
) -> Any:
    """A tensor of a class whose `__torch_dispatch__` gets each operation on it."""
    return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=dtype, device=device)


# Lets functions of torch run without what overrides them.
without_overrides: Any = getattr(
    torch._C, "DisableTorchFunction", torch._C.DisableTorchFunctionSubclass
)

# Raise an error of the device where a tensor of one element is false; it does not wait.
assert_on_device: Any = getattr(torch, "_assert_async", lambda holds: None)

# Whether torch.use_deterministic_algorithms is on.
is_deterministic: Any = getattr(
    torch._C, "_get_deterministic_algorithms", torch.are_deterministic_algorithms_enabled
)

# The state of torch.jit.trace, or None where nothing is traced.
tracing_state: Any = getattr(torch._C, "_get_tracing_state", lambda: True)

# Whether autocast is on for any device.
any_autocast: Any = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)


def without_autocast(device: torch.device) -> Any:
    """A context without autocast; it takes no time where autocast is off."""
    if torch.compiler.is_compiling() or any_autocast():
        return torch.autocast(device.type, enabled=False)
    return _NOTHING


def recordable() -> Any:
    """A context whose tensors serve training, too; it takes no time outside of inference mode."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else _NOTHING


_NOTHING = contextlib.nullcontext()

# Whether a transform of torch.func is running.
is_transformed: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_modes: Any = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_PLAIN = torch.Tensor.__torch_dispatch__
# Its level is -1 where nothing is differentiated forward.
_forward: Any = torch.autograd.forward_ad


_saved_hooks: Any = getattr(
    getattr(torch._C, "_autograd", None), "_top_saved_tensors_default_hooks", lambda ignores: None
)


def saves_by_hooks() -> bool:
    """Whether hooks save the tensors of autograd, as in activation checkpointing."""
    return _saved_hooks(True) is not None


_graph_task: Any = getattr(torch._C, "_current_graph_task_id", lambda: -1)


def is_differentiating() -> bool:
    """Whether this thread runs the backward of autograd."""
    return bool(_graph_task() != -1)


def is_forward_differentiated() -> bool:
    """Whether a level of forward-mode derivatives is entered."""
    return getattr(_forward, "_current_level", 0) >= 0


def is_dispatched(tensor: Any) -> bool:
    """Whether a dispatch mode, a class of tensors, a transform of torch.func or forward-mode
    derivatives see each op."""
    kind = getattr(type(tensor), "__torch_dispatch__", _PLAIN)
    if getattr(_forward, "_current_level", 0) >= 0:
        return True
    return kind is not _PLAIN or _modes() > 0 or is_transformed()


# The transform of torch.func that is running, and what its tensors are.
_functorch: Any = getattr(torch._C, "_functorch", None)
_transform: Any = getattr(_functorch, "peek_interpreter_stack", lambda: None)
_is_tracked: Any = getattr(_functorch, "is_gradtrackingtensor", lambda tensor: False)
_is_batched: Any = getattr(_functorch, "is_batchedtensor", lambda tensor: False)


def refuse_transforms(name: str, operands: Sequence[Any], is_eager: bool) -> None:
    """Raise NotImplementedError for operands of transforms that the library does not support.

    Operands of torch.func.jvp carry derivatives forward: the library reads their memory, so the
    result would have a derivative of 0. Operands of torch.func.grad, vjp and vmap would end in an
    error of PyTorch that asks for changes of this package.

    is_eager: the call is not a registered op. Its results would then belong to the transform, so it
        is refused inside of one whatever its operands are.
    """
    if getattr(_forward, "_current_level", 0) >= 0:
        for one in operands:
            if one is not None and _forward.unpack_dual(one).tangent is not None:
                raise NotImplementedError(
                    f"warploom: {name} has no forward-mode derivatives; use backward or "
                    "autograd.grad"
                )
    if _transform() is None:
        return
    tensors = [one for one in operands if isinstance(one, torch.Tensor)]
    if is_eager or any(_is_tracked(one) or _is_batched(one) for one in tensors):
        raise NotImplementedError(
            f"warploom: {name} does not run in transforms of torch.func; use backward or "
            "autograd.grad, and more columns in the place of vmap"
        )


_is_of_grads: Any = getattr(_functorch, "is_legacy_batchedtensor", lambda tensor: False)
_LEVELS = 64  # at most, of is_grads_batched within itself


def is_batched(tensors: Sequence[Any]) -> bool:
    """Whether one of the tensors (or None) is that of a batch: in vmap, also that of PyTorch's
    is_grads_batched."""
    for one in tensors:  # noqa: SIM110 - any() would call a generator for each
        if one is not None and (_is_of_grads(one) or _is_batched(one)):
            return True
    return False


def _is_of_level(tensor: Any, level: int) -> bool:
    """Whether a tensor of is_grads_batched is batched at a level; else that dimension is new."""
    sizes = [torch._remove_batch_dim(tensor, level, size, 0).shape[0] for size in (1, 2)]
    return sizes[0] == sizes[1]


def _innermost_level(tensor: Any) -> int:
    """The last level at which a tensor of is_grads_batched is batched; most have one, the first.

    On a GPU, backward passes run in a thread that does not know how many there are.
    """
    found = 0
    for level in range(1, _LEVELS):
        if _is_of_level(tensor, level):
            found, tensor = level, torch._remove_batch_dim(tensor, level, 0, 0)
            if not _is_of_grads(tensor):
                break
    return found


def for_each_of_batch(function: Any, given: Sequence[Any]) -> Sequence[Any]:
    """`function(given)`, which takes and gives tensors and None, for each of a batch in turn.

    Each call is outside of vmap, and the results are stacked.
    """
    if not is_batched(given):
        return function(given)  # type: ignore[no-any-return]
    add: Any
    of_grads = {at: one for at, one in enumerate(given) if one is not None and _is_of_grads(one)}
    if of_grads:
        level = max(map(_innermost_level, of_grads.values()))
        add = torch._add_batch_dim
        whole = {
            at: torch._remove_batch_dim(one, level, 0, 0)
            for at, one in of_grads.items()
            if _is_of_level(one, level)
        }
        leave: Any = contextlib.nullcontext()
    else:
        from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack as outside

        level, leave, add = _transform().level(), outside(), _functorch._add_batch_dim
        whole = {
            at: _functorch.get_unwrapped(one).movedim(_functorch.maybe_get_bdim(one), 0)
            for at, one in enumerate(given)
            if one is not None and _functorch.maybe_get_level(one) == level
        }
    with leave:
        if not whole:  # of an outer vmap
            return for_each_of_batch(function, given)
        size = next(iter(whole.values())).shape[0]
        if size == 0:  # zeros tell the shapes
            whole = {at: one.new_zeros((1, *one.shape[1:])) for at, one in whole.items()}
        made = [
            for_each_of_batch(
                function, [whole[at][n] if at in whole else one for at, one in enumerate(given)]
            )
            for n in range(max(size, 1))
        ]
        results = [None if one[0] is None else torch.stack(one)[:size] for one in zip(*made)]
    return [None if one is None else add(one, 0, level) for one in results]


# Whether a hook of all modules is registered.
has_global_hooks: Any = getattr(torch.nn.modules.module, "_has_any_global_hook", lambda: True)


def _raw_stream(index: int) -> int:
    return int(torch.cuda.current_stream(index).cuda_stream)


# The address of the current stream of a GPU, without an object for it.
raw_stream: Any = getattr(torch._C, "_cuda_getCurrentRawStream", _raw_stream)


def quick_apply(function: type[torch.autograd.Function]) -> Any:
    """`function.apply` for calls outside of torch.func, which all that it leaves out serves.

    What Python adds to the C++ method costs as much as a small product.
    """
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


def leave_pool(device: int, pool: Any) -> None:
    """Let the allocator leave a memory pool, which a failed capture may have left it in."""
    with contextlib.suppress(AttributeError, RuntimeError):
        torch._C._cuda_endAllocateToPool(device, pool)
        torch._C._cuda_releasePool(device, pool)


# ---- what is traced ---------------------------------------------------------------------------


def is_plain(tensor: Any) -> bool:
    """Whether this is a tensor of no other class, or stands for one in a trace."""
    kind = type(tensor)
    return kind is torch.Tensor or kind is torch.nn.Parameter or _is_fake(tensor)


def _is_fake(tensor: Any) -> bool:
    return torch.compiler.is_compiling() and has_no_elements(tensor)


def has_no_elements(tensor: Any) -> bool:
    """Whether this stands for a tensor in a trace."""
    from torch._subclasses import FakeTensor

    return isinstance(tensor, FakeTensor)


def _output() -> Any:
    """What dynamo has made of the frame that it reads now."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output


def frame_length() -> int:
    """How many nodes dynamo has made of the frame that it reads now: the same in each process."""
    return len(_output().graph.nodes)


def frame_writes(start: int) -> bool:
    """Whether the frame that dynamo reads now writes to a tensor after its first `start` nodes."""
    for node in list(_output().graph.nodes)[start:]:
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        in_place = name.endswith("_") and not name.endswith("__")
        in_place = in_place or name in ("iadd", "isub", "imul", "itruediv", "setitem")
        if in_place or node.kwargs.get("inplace") or "out" in node.kwargs:
            return True
    return False


def _source_of(tensor: torch.Tensor) -> Any:
    for node in _output().graph.find_nodes(op="placeholder"):
        argument = node.meta.get("grapharg")
        if argument is not None and argument.is_tensor and argument.example is tensor:
            return argument.source
    return None


def is_frame_input(tensor: torch.Tensor) -> bool:
    """Whether a tensor is an input of the frame that dynamo reads now, or of an export."""
    return _output().export or _source_of(tensor) is not None


def compile_for(tensor: torch.Tensor, inner: str = "") -> None:
    """Let the frame that dynamo reads now be compiled for this input as it is: not for another
    tensor, and not for this one when it was modified. inner: the attribute that has its numbers.
    """
    from torch._dynamo.guards import GuardBuilder, install_guard
    from torch._dynamo.source import AttrSource

    source = _source_of(tensor)
    owner = AttrSource(source, inner) if inner else source
    install_guard(
        source.make_guard(GuardBuilder.ID_MATCH),
        AttrSource(owner, "_version").make_guard(GuardBuilder.EQUALS_MATCH),
    )


def is_cuda_graphed() -> bool:
    """Whether the frame that dynamo reads now is compiled for CUDA graphs of torch.compile."""
    from torch._inductor import config

    options = getattr(_output().compiler_fn, "config", {})
    return bool(options.get("triton.cudagraphs", config.triton.cudagraphs))


def is_inductor() -> bool:
    """Whether the frame that dynamo reads now is compiled by inductor."""
    compiler = _output().compiler_fn
    return "inductor" in (
        getattr(compiler, "compiler_name", ""),
        getattr(compiler, "__name__", ""),
    )


def call_directly(op: Any, function: str) -> None:
    """Let Python code of inductor call the function of this full name where it would call the op.

    The function gets the op's arguments, and its results are those of the op. So the dispatcher,
    which takes longer than a small product, is left out where code runs that records nothing.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from torch._inductor import ir
        from torch._inductor import lowering as untyped
        from torch._inductor.virtualized import V

        def lower(*arguments: Any, **named: Any) -> Any:
            made: Any = ir.FallbackKernel.create(op, *arguments, **named)
            if made and not V.graph.cpp_wrapper and not getattr(V.graph, "fx_wrapper", False):
                made[0].inputs[0].python_kernel_name = function
            return [ir.TensorBox.create(one) for one in made]

        lowering: Any = untyped
        constraint = lowering.constrain_to_fx_strides
        lowering.make_fallback(op, layout_constraint=constraint, warn=False)
        lowering.lowerings[op] = lower


def skip_frames(module: types.ModuleType, public: Sequence[str]) -> None:
    """Let dynamo leave calls of a module's functions alone that it does not inline, but those of
    public ones.

    Where a frame cannot be compiled as a whole, it tries each function that this one calls.
    """
    frames: Any = torch._C._dynamo.eval_frame
    if not hasattr(frames, "set_code_exec_strategy"):
        return
    action = frames._FrameAction
    left_alone = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)
    owners = [module, *(part for part in vars(module).values() if isinstance(part, type))]
    for owner in owners:
        if owner is module or owner.__module__ == module.__name__:
            for name, part in vars(owner).items():
                function = getattr(part, "__func__", part)
                if isinstance(function, types.FunctionType) and name not in public:
                    frames.set_code_exec_strategy(function.__code__, left_alone)


def limit_recompiles(most: int) -> None:
    """Let torch.compile compile a function this often before it runs it eagerly."""
    config = torch._dynamo.config
    is_named = hasattr(config, "recompile_limit")  # in newer versions
    setattr(config, "recompile_limit" if is_named else "cache_size_limit", most)
