"""What a step does that no replay can repeat, seen while the step runs."""

from __future__ import annotations

import os
import random
import warnings
from typing import Any

import torch

# Texts of PyTorch's warnings.
_WAITS = "called a synchronizing CUDA operation"
_EMPTY = "The CUDA Graph is empty"


class Watch:
    """A context whose `reason` then says why what ran in it cannot be replayed, or is None.

    cuda: torch.cuda, to see waits for the device; None during a capture, where they fail.
    """

    def __init__(self, cuda: Any = None) -> None:
        self.reason: str | None = None
        self._cuda = cuda
        self._recorder = warnings.catch_warnings(record=True)
        self._random = torch.get_rng_state(), random.getstate()

    def __enter__(self) -> None:
        if self._cuda is not None:
            self._mode = self._cuda.get_sync_debug_mode()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # PyTorch calls the mode a prototype
                self._cuda.set_sync_debug_mode("warn")
        self._seen: Any = self._recorder.__enter__()
        warnings.simplefilter("always")

    def __exit__(self, *error: Any) -> None:
        if self._cuda is not None:
            self._cuda.set_sync_debug_mode(self._mode)
        self._recorder.__exit__(*error)
        of_torch, of_python = self._random
        if not torch.equal(of_torch, torch.get_rng_state()) or of_python != random.getstate():
            self.reason = (
                "it draws random numbers on the CPU (as warploom does for dropout of attention and "
                "for sampling), which a replay would repeat"
            )
        for seen in self._seen:
            text = str(seen.message)
            if text.startswith(_WAITS):
                self.reason = f"{os.path.basename(seen.filename)}:{seen.lineno} waits for the GPU"
            elif text.startswith(_EMPTY):
                self.reason = "it does nothing on the GPU"
            else:
                warnings.warn_explicit(seen.message, seen.category, seen.filename, seen.lineno)

    def restore_random(self) -> None:
        """Let the CPU draw again what it drew since the context was made."""
        torch.set_rng_state(self._random[0])
        random.setstate(self._random[1])
