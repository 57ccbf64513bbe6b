"""Names of PyTorch that are not public, in this file only, each behind a public name.

Tried with torch 2.4.1, 2.11.0 and 2.15.0 on the CPU. Where a version lacks one of them, what stands
here instead costs time and changes no result.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# A class whose objects see each op while they are entered.
DispatchMode = TorchDispatchMode

# Lets functions of torch run without what overrides them.
without_overrides: Any = getattr(
    torch._C, "DisableTorchFunction", torch._C.DisableTorchFunctionSubclass
)

# Whether torch.use_deterministic_algorithms is on.
is_deterministic: Any = getattr(
    torch._C, "_get_deterministic_algorithms", torch.are_deterministic_algorithms_enabled
)

# The state of torch.jit.trace, or None where nothing is traced.
tracing_state: Any = getattr(torch._C, "_get_tracing_state", lambda: True)

# Whether autocast is on for any device.
any_autocast: Any = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)

# Whether a transform of torch.func is running.
is_transformed: Any = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)

_modes: Any = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
_PLAIN = torch.Tensor.__torch_dispatch__


def is_dispatched(tensor: Any) -> bool:
    """Whether a dispatch mode, a class of tensors or a transform of torch.func sees each op."""
    kind = getattr(type(tensor), "__torch_dispatch__", _PLAIN)
    return kind is not _PLAIN or _modes() > 0 or is_transformed()


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


def limit_recompiles(most: int) -> None:
    """Let torch.compile compile a function this often before it runs it eagerly."""
    config = torch._dynamo.config
    is_named = hasattr(config, "recompile_limit")  # in newer versions
    setattr(config, "recompile_limit" if is_named else "cache_size_limit", most)


# ---- copies between the memories of GPUs of one host ---------------------------------------------

_MULTICAST_OFF = "TORCH_SYMM_MEM_DISABLE_MULTICAST"


def has_copies(device: torch.device) -> bool:
    """Whether PyTorch has collectives of copy engines for this device.

    Symmetric memory also sets up NVLink multicast, which copies do not need, unless the variable
    TORCH_SYMM_MEM_DISABLE_MULTICAST is 1. Here it is used only with that variable.
    """
    if device.type != "cuda" or os.environ.get(_MULTICAST_OFF) != "1":
        return False
    importlib.import_module("torch.distributed._symmetric_memory")  # registers them
    return hasattr(torch.ops.symm_mem, "_low_contention_reduce_scatter")


class _Copies:
    """The tensor that copies write."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def wait(self) -> None:
        """Let the current stream wait for the copies."""
        torch.ops._c10d_functional.wait_tensor(self._tensor)


def gather_by_copies(tensor: torch.Tensor, group: Any) -> tuple[torch.Tensor, Any]:
    """An all-gather and what waits for it."""
    found = torch.ops.symm_mem._low_contention_all_gather(tensor, _name_of(group))
    return found, _Copies(found)


def reduce_scatter_by_copies(tensor: torch.Tensor, group: Any) -> tuple[torch.Tensor, Any]:
    """The sum of all ranks' tensors, of which each rank gets its part, and what waits for it."""
    found = torch.ops.symm_mem._low_contention_reduce_scatter(tensor, "sum", _name_of(group))
    return found, _Copies(found)


def _name_of(group: Any) -> str:
    found: Any = torch.distributed.group.WORLD if group is None else group
    return str(found.group_name)
