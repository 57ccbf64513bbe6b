"""The optimizers of a captured step, which are seen when it calls them, and the gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Optional

import torch
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook

from warploom.torch._capture_inputs import BY_VALUE, Part

Gradients = list[Optional[torch.Tensor]]


class Optimizers:
    """Optimizers whose parameters are on one kind of device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.seen: list[Optimizer] = []

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note each optimizer that takes a step meanwhile, and make it capturable before."""
        handle = register_optimizer_step_pre_hook(self._see)
        try:
            yield
        finally:
            handle.remove()

    def _see(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if any(optimizer is other for other in self.seen):
            return
        self.seen.append(optimizer)
        if not self.elsewhere():
            _make_capturable(optimizer)

    def elsewhere(self) -> str | None:
        """The device of a parameter that is not on the GPU."""
        return next(
            (p.device.type for p in self._parameters() if p.device.type != self.device), None
        )

    def _parameters(self) -> Iterator[torch.Tensor]:
        for optimizer in self.seen:
            for group in optimizer.param_groups:
                yield from group["params"]

    def parts(self) -> Iterator[Part]:
        """What a capture keeps of them: their numbers, and which parameters have a gradient.

        A number in a tensor may change.
        """
        for optimizer in self.seen:
            for group in optimizer.param_groups:
                for name, value in group.items():
                    if name != "params":
                        yield f"{name} of {_name(optimizer)}", _plain(value)
        with_gradient = tuple(p.grad is not None for p in self._parameters())
        yield "the set of parameters with a gradient", with_gradient

    def tensors(self) -> list[torch.Tensor]:
        """The numbers that are in tensors, which a replay reads."""
        groups = (group for optimizer in self.seen for group in optimizer.param_groups)
        return [v for group in groups for v in group.values() if isinstance(v, torch.Tensor)]

    def states(self) -> list[torch.Tensor]:
        """The tensors that steps of the optimizers change, but for parameters."""
        states = (state for optimizer in self.seen for state in optimizer.state.values())
        return [v for state in states for v in state.values() if isinstance(v, torch.Tensor)]

    def rates(self, count: int) -> list[Any]:
        """The learning rates of the first `count` optimizers; of tensors the versions."""
        return [
            group["lr"]._version if isinstance(group["lr"], torch.Tensor) else group["lr"]
            for optimizer in self.seen[:count]
            for group in optimizer.param_groups
            if "lr" in group
        ]

    def reason(self) -> str | None:
        """Why no replay can do what an optimizer does, after it took a step."""
        for optimizer in self.seen:
            for state in optimizer.state.values():
                for name, value in state.items():
                    if self._is_elsewhere(value):
                        return (
                            f"{_name(optimizer)} keeps its '{name}' on the host; use an optimizer "
                            "that can be capturable, such as Adam or AdamW, or SGD"
                        )
        return None

    def _is_elsewhere(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return value.device.type != self.device
        return isinstance(value, (int, float)) and not isinstance(value, bool)

    def gradients(self) -> Gradients:
        """The gradient of each parameter."""
        return [p.grad for p in self._parameters()]

    def set_gradients(self, gradients: Gradients) -> None:
        """Set the gradient of each parameter."""
        for p, gradient in zip(self._parameters(), gradients):
            if p.grad is not gradient:
                p.grad = gradient


def _name(optimizer: Optimizer) -> str:
    return type(optimizer).__name__


def _plain(value: Any) -> Any:
    """A number, or numbers, by value; anything else by its identity."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value if isinstance(value, BY_VALUE) else id(value)


def _make_capturable(optimizer: Optimizer) -> None:
    """Let an optimizer keep on the GPU what it counts."""
    for group in optimizer.param_groups:
        if group.get("capturable") is not False:
            continue
        group["capturable"] = True
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            for name, value in state.items():
                if isinstance(value, torch.Tensor) and value.dim() == 0:
                    state[name] = value.to(p.device)
