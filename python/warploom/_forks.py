"""Locks and what they protect, made anew in each child of fork.

A child has none of the threads that held a lock in its parent.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

_T = TypeVar("_T")
_renewed: weakref.WeakSet[Any] = weakref.WeakSet()


def renewed(one: _T) -> _T:
    """Return a lock that each child of fork frees, or an object with `_at_fork_reinit`."""
    _renewed.add(one)
    return one


def _after_fork() -> None:
    for one in list(_renewed):
        one._at_fork_reinit()


os.register_at_fork(after_in_child=_after_fork)
