"""Geometric means of a results file beside their targets."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

Line = dict[str, Any]


class Row(NamedTuple):
    """One comparison: speedups by case, and what their mean and each of them should reach."""

    what: str
    speedups: dict[str, float]
    target: float | None
    minimum: float | None

    def mean(self) -> float:
        return math.exp(
            sum(math.log(value) for value in self.speedups.values()) / len(self.speedups)
        )

    def holds(self) -> bool:
        return (self.target is None or self.mean() >= self.target) and (
            self.minimum is None or min(self.speedups.values()) >= self.minimum
        )


def _name(line: Line) -> str:
    return "/".join(
        str(line[key]) for key in ("graph", "model", "n", "reduce") if line[key] is not None
    )


def _best(line: Line) -> float | None:
    return min((us for us in line["rivals"].values() if us is not None), default=None)


def _rival(name: str) -> Callable[[Line], float | None]:
    def get(line: Line) -> float | None:
        us: float | None = line["rivals"].get(name)
        return us

    return get


def _speedups(lines: Iterable[Line], baseline: Callable[[Line], float | None]) -> dict[str, float]:
    found = {}
    for line in lines:
        us = baseline(line)
        if us is not None and line["us"]:
            found[_name(line)] = us / line["us"]
    return found


def rows(lines: list[Line]) -> list[Row]:
    """All comparisons that the file has cases for."""

    def pick(bench: str, mode: str, reduce: str | None = None) -> list[Line]:
        return [
            x
            for x in lines
            if x["bench"] == bench and x["mode"] == mode and reduce in (None, x["reduce"])
        ]

    pyg_eager = {_name(line): _best(line) for line in pick("step", "eager")}
    found: list[Row] = []
    for mode in ("graphed", "eager"):
        target = mode == "graphed"
        for reduce in ("sum", "mean"):
            wanted = target and reduce == "sum"
            found.append(
                Row(
                    f"spmm {reduce} {mode}, torch.sparse",
                    _speedups(pick("spmm", mode, reduce), _rival("torch_sparse")),
                    2.5 if wanted else None,
                    1.0 if wanted else None,
                )
            )
        found.append(
            Row(
                f"spmm max {mode}, scatter",
                _speedups(pick("spmm", mode, "max"), _rival("scatter")),
                20.0 if target else None,
                None,
            )
        )
        for reduce in ("sum", "mean", "max"):
            found.append(
                Row(
                    f"backward {reduce} {mode}, best",
                    _speedups(pick("backward", mode, reduce), _best),
                    None,
                    None,
                )
            )
        found.append(
            Row(
                f"step {mode}, best of PyG",
                _speedups(pick("step", mode), _best),
                1.5 if target else None,
                None if target else 0.97,
            )
        )
    found.append(
        Row(
            "step graphed, best of PyG eager",
            _speedups(pick("step", "graphed"), lambda line: pyg_eager.get(_name(line))),
            4.0,
            None,
        )
    )
    found.append(
        Row("minibatch, best of PyG", _speedups(pick("minibatch", "eager"), _best), 1.3, 1.0)
    )
    return [row for row in found if row.speedups]


_FORMAT = "{:36} {:>5} {:>7} {:>7} {:>7} {:>7}  {}"


def print_summary(path: Path) -> int:
    """Print the table; returns how many comparisons miss their target or minimum."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    missing = [line for line in lines if line["us"] is None]
    table = rows([line for line in lines if line["us"] is not None])
    print(
        _FORMAT.format("speedup over", "cases", "mean", "target", "worst", "minimum", "worst case")
    )
    for row in table:
        worst = min(row.speedups, key=lambda name: row.speedups[name])
        numbers = (row.mean(), row.target, row.speedups[worst], row.minimum)
        texts = ["-" if number is None else f"{number:.2f}" for number in numbers]
        verdict = worst if row.holds() else worst + "  MISSED"
        print(_FORMAT.format(row.what, len(row.speedups), *texts, verdict))
    for line in missing:
        print(f"no result: {line['bench']}/{_name(line)}/{line['mode']}: {line.get('failed')}")
    return sum(not row.holds() for row in table) + len(missing)
