"""Check arguments of the public functions and convert them for the C library.

Each function raises TypeError or ValueError, whose text begins with the argument's name.
"""

from __future__ import annotations

import operator
import os
from typing import Any

import numpy as np

from warploom._native import ffi


def text(name: str, value: Any) -> Any:
    """Return a text as a `char[]`, which lives as long as the result. A C text ends at a NUL."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: a {type(value).__name__} is no text")
    try:
        return ffi.new("char[]", _without_nul(name, value.encode()))
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: is no valid Unicode: {error.reason}") from None


def path(name: str, value: Any) -> bytes:
    """Return the path of a file."""
    try:
        return _without_nul(name, os.fsencode(value))
    except TypeError:
        raise TypeError(f"{name}: a {type(value).__name__} is no path") from None
    except UnicodeEncodeError as error:
        raise ValueError(f"{name}: is no file name: {error.reason}") from None


def existing_path(name: str, value: Any) -> bytes:
    """Return the path of a file or folder that is there."""
    file = path(name, value)
    if not file:
        raise ValueError(f"{name}: is empty; name a file")
    os.stat(os.fsdecode(file))  # raises FileNotFoundError, which shows the path as text
    return file


def _without_nul(name: str, value: bytes) -> bytes:
    end = value.find(b"\0")
    if end >= 0:
        raise ValueError(f"{name}: has a NUL byte at position {end}; remove it")
    return value


def integer(name: str, value: Any, least: int = 0, most: int = 2**63 - 1) -> int:
    """Return an integer from `least` to `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: a {type(value).__name__} is no integer") from None
    if not least <= number <= most:
        raise ValueError(f"{name}: {number} is not in {least} to {most}")
    return number


def seed(value: Any, name: str = "seed") -> int:
    """Return a seed."""
    return integer(name, value, most=2**64 - 1)


def number(name: str, value: Any) -> float:
    """Return a number as a float."""
    try:
        if isinstance(value, (str, bytes, np.ma.MaskedArray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: a {type(value).__name__} is no number") from None
    except OverflowError:
        raise ValueError(f"{name}: is too large for a float") from None


def flag(name: str, value: Any) -> bool:
    """Return a truth value: True, False, 1 or 0, but no text such as "no"."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, int) and value in (0, 1):
        return value == 1
    raise TypeError(f"{name}: {value!r} is no truth value; use True or False")


def choose(name: str, value: Any, table: dict[str, int]) -> int:
    """Return the constant for a name."""
    try:
        return table[value]
    except (KeyError, TypeError):
        raise ValueError(
            f"{name}: {value!r} is unknown; use {', '.join(map(repr, table))}"
        ) from None
