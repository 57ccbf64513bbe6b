"""The grammar of messages: what a text reads, and what it gives for tensors.

A text is an expression of C. One of `compose` also brings a score and sums along.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import torch

Tensor = torch.Tensor

KEPT = "kept"  # in a text: what dropout multiplies the weight of an edge and head by
_NUMBERS = frozenset(("inf", "INFINITY", "degree", KEPT))
_TOKEN = re.compile(
    r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[fF]?"
    r"|([A-Za-z_]\w*)|(<=|>=|==|!=|&&|\|\||[-+*/()?:,<>!]))"
)


def refuse(why: str, error: type[Exception] = ValueError) -> NoReturn:
    """Raise what is wrong with a message."""
    raise error("warploom: message: " + why)


@functools.lru_cache(maxsize=1024)
def _tokens(text: str) -> list[tuple[str, str, str]]:
    """The numbers, names and marks of a text, one of which each token is."""
    return [found for found in _TOKEN.findall(text) if any(found)]


# ---- texts --------------------------------------------------------------------------------------


class Text(NamedTuple):
    """An expression with the score and the sums that it brings along."""

    sums: tuple[tuple[str, str], ...]  # name and expression
    score: str | None
    drops: bool  # weights are left out
    message: str


def compose(
    expression: str,
    score: str | None,
    sums: Mapping[str, str] | None,
    drops: bool = False,
) -> str:
    """One text of an expression, its score and its sums, which `split` takes apart."""
    sums = sums or {}
    for what, text in (
        ("the score", score or "0"),
        *(("the sum " + n, t) for n, t in sums.items()),
    ):
        if not isinstance(text, str):
            refuse(f"{what}: a text is needed, not {type(text).__name__}", TypeError)
        if ";" in text or "\0" in text or not text.strip():
            refuse(f"{what}: {text!r} is no single expression")
    for name in sums:
        if not (isinstance(name, str) and name.isascii() and name.isidentifier()):
            refuse(f"sums: {name!r} is no name")
    parts = [f"{name}:edge_sum={text}" for name, text in sums.items()]
    parts += [] if score is None else [f"score={score}"]
    return ";".join([*parts, *([KEPT] if drops else []), expression])


@functools.lru_cache(maxsize=1024)
def split(expression: str) -> Text:
    """The parts of what `compose` made."""
    *parts, message = expression.split(";")
    sums, score, drops = [], None, False
    for part in parts:
        head, _, text = part.partition("=")
        if head == "score":
            score = text
        elif part == KEPT:
            drops = True
        elif head.endswith(":edge_sum"):
            sums.append((head.partition(":")[0], text))
        else:
            refuse(f"the expression {expression!r} is no single expression")
    return Text(tuple(sums), score, drops, message)


@functools.lru_cache(maxsize=1024)
def names_of(expression: str) -> tuple[str, ...]:
    """The operands of an expression, of its score and of its sums, in their order."""
    if ";" not in expression:
        tokens = _tokens(expression)
        following = [mark for _, _, mark in tokens[1:]] + [""]
        found = [name for (_, name, _), mark in zip(tokens, following) if name and mark != "("]
        return tuple(name for name in dict.fromkeys(found) if name not in _NUMBERS)
    parts = split(expression)
    texts = [*(text for _, text in parts.sums), parts.score or "0", parts.message]
    made = {name for name, _ in parts.sums}
    return tuple(n for n in dict.fromkeys(n for t in texts for n in names_of(t)) if n not in made)


def reads_degree(expression: str) -> bool:
    """Whether a text reads the number of edges of a row."""
    return any(name == "degree" for _, name, _ in _tokens(expression))


# ---- values -------------------------------------------------------------------------------------

_LEVELS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"||": torch.logical_or},
    {"&&": torch.logical_and},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.truediv},
)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cbrt": lambda v: v.sign() * v.abs().pow(1 / 3),
    "expscale": lambda v, base, scale: (v - base).exp() * scale,
    "fabs": torch.abs,
    "fma": lambda a, b, c: a * b + c,
    "leaky_relu": lambda v, slope: torch.where(v > 0, v, slope * v),
    "max": torch.fmax,
    "min": torch.fmin,
}
_OF_TORCH = frozenset(
    (
        *("abs", "acos", "asin", "atan", "atan2", "ceil", "copysign", "cos", "cosh", "erf", "erfc"),
        *("exp", "exp2", "expm1", "floor", "fmax", "fmin", "fmod", "hypot", "log", "log10"),
        *("log1p", "log2", "pow", "relu", "round", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"),
        "trunc",
    )
)


def evaluate(text: str, values: dict[str, Tensor], like: Tensor) -> Any:
    """What a single expression gives for tensors of its names, in the type of `like`."""
    return _Expression(text, values, like).value()


class _Expression:
    """Evaluates a text with tensors for its names."""

    def __init__(self, text: str, values: dict[str, Tensor], like: Tensor) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._values = values
        self._like = like

    def _next(self) -> str:
        return self._tokens[self._at][2] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1][2]

    def value(self) -> Any:
        condition = self._binary(0)
        if self._next() != "?":
            return condition
        self._take()
        is_first = condition != 0
        first = self._branch(is_first)
        self._take()  # :
        second = self._branch(is_first.logical_not())
        return torch.where(is_first, first, second)

    def _branch(self, is_taken: Tensor) -> Any:
        """A value where it is taken; elsewhere of ones, so that its gradient there is no NaN."""
        outer = self._values
        self._values = {
            name: torch.where(is_taken, value, torch.ones_like(value))
            for name, value in outer.items()
        }
        made = self.value()
        self._values = outer
        return made

    def _binary(self, level: int) -> Any:
        if level == len(_LEVELS):
            return self._unary()
        made = self._binary(level + 1)
        while self._next() in _LEVELS[level]:
            operation = _LEVELS[level][self._take()]
            made = operation(made, self._binary(level + 1)).to(self._like.dtype)
        return made

    def _unary(self) -> Any:
        sign = self._next()
        if sign in ("-", "+", "!"):
            self._take()
            made = self._unary()
            if sign == "!":
                return (made == 0).to(self._like.dtype)
            return -made if sign == "-" else made
        number, name, mark = self._tokens[self._at]
        self._at += 1
        if mark == "(":
            made = self.value()
            self._take()
            return made
        if number or name in ("inf", "INFINITY"):
            return self._like.new_tensor(float(number or "inf"))
        return self._call(name) if self._next() == "(" else self._values[name]

    def _call(self, name: str) -> Any:
        arguments = []
        while self._take() != ")":
            arguments.append(self.value())
        function = _FUNCTIONS.get(name) or (getattr(torch, name) if name in _OF_TORCH else None)
        if function is None:
            refuse(f"{name} has no second derivative", NotImplementedError)
        return function(*arguments)
