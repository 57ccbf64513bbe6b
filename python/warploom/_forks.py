"""What holds locks, in a child of fork: the child has none of the threads that took them."""

from __future__ import annotations

import os
import weakref
from typing import Any, TypeVar

_Any = TypeVar("_Any")
_renewed: weakref.WeakSet[Any] = weakref.WeakSet()


def renewed(one: _Any) -> _Any:
    """A lock that is free in each child of fork, or an object with `_at_fork_reinit`, as locks
    have."""
    _renewed.add(one)
    return one


def _after_fork() -> None:
    for one in list(_renewed):
        one._at_fork_reinit()


os.register_at_fork(after_in_child=_after_fork)
