"""The verdict of a report: what tuning gained over the rules and over baselines, and where it lost.

Gains over the rules come from the database. Times of cuSPARSE or of an OpenMP loop are not in a
database; they come from results files of `warploom bench core` or of `warploom compare --json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.reports.figure import geometric_mean
from bench.results_file import Line, read_results

WORST = 3
LOSS = 0.98  # a speed-up below this is a loss

SpeedUps = list[tuple[str, float]]  # by case, such as "cora, N = 32"


class Gain(NamedTuple):
    """A line of the verdict: its first words with the mean, and the rest."""

    what: str
    text: str


def gain(what: str, speedups: Iterable[tuple[str, float]], can_lose: bool) -> Iterator[Gain]:
    """Return the line about these cases; none if there are none."""
    found = [(case, float(value)) for case, value in speedups if value and np.isfinite(value)]
    if not found:
        return
    values = pd.Series([value for _, value in found])
    most, best = max(found, key=lambda item: item[1])[::-1]
    text = f"in the geometric mean of {len(found)} cases, at most {most:.2f}x ({best}). "
    lost = sorted((item for item in found if item[1] < LOSS), key=lambda item: item[1])
    if lost:
        worst = ", ".join(f"{value:.2f}x ({case})" for case, value in lost[:WORST])
        text += f"It lost in {len(lost)}: {worst}{' and others' if len(lost) > WORST else ''}."
    elif can_lose:
        text += "It lost nowhere."
    yield Gain(f"{what}: {geometric_mean(values):.2f}x", text)


def over_rules(cases: pd.DataFrame) -> list[Gain]:
    names = [
        f"{matrix}, N = {n}"
        for matrix, n in zip(cases["matrix"], cases.index.get_level_values("n"))
    ]
    tuned = zip(names, cases["rules"] / cases["best"])
    predicted = zip(names, cases["rules"] / cases["predicted"])
    seen = "The model on matrices that it did not see, over the rules"
    return [
        *gain("Tuning a matrix, over the built-in rules", tuned, False),
        *gain(seen, predicted, True),
    ]


# ---- results files ------------------------------------------------------------------------------


def _least(times: dict[str, Any], ending: str) -> float:
    return min((us for way, us in times.items() if us and way.endswith(ending)), default=np.nan)


def _of_core(line: Line, plain: SpeedUps, kept: SpeedUps) -> None:
    case = f"{line['matrix']}, N = {line['n']}"
    us = line.get("us") or np.nan
    if line.get("cusparse"):
        plain.append((case, _least(line["cusparse"], "_nopre") / us))
        prepared = np.fmin(us, line.get("prepared_us") or np.nan)
        kept.append((case, _least(line["cusparse"], "") / prepared))
    elif line.get("host_rivals"):
        plain.append((case, (line["host_rivals"].get("openmp") or np.nan) / us))


def _of_compare(line: Line, plain: SpeedUps, kept: SpeedUps) -> None:
    for one in line.get("comparisons", ()):
        case = f"{line['input']}, N = {one['n']}"
        plain.append((case, one.get("speed_up") or np.nan))
        if line.get("device_kind") == "cuda":
            kept.append((case, one.get("speed_up_prepared") or np.nan))


def _is_result(line: Any) -> bool:
    return isinstance(line, dict) and (
        {"suite", "matrix", "n"} <= line.keys() or {"input", "comparisons"} <= line.keys()
    )


def over_baselines(files: Sequence[Path], device: str, on_gpu: bool) -> list[Gain]:
    """Return the gains over baselines by these files; lines of other devices do not count."""
    plain: SpeedUps = []
    kept: SpeedUps = []
    for path in files:
        for number, line in enumerate(read_results(path), 1):
            if not _is_result(line):
                what = "is no line of bench core or compare --json"
                raise ValueError(f"{path}:{number}: {what}")
            if line.get("device") != device:
                continue
            if line.get("suite") == "core":
                _of_core(line, plain, kept)
            elif "suite" not in line:
                _of_compare(line, plain, kept)
    if files and not plain and not kept:
        what = f"holds no case of bench core or compare on {device}"
        raise ValueError(f"{files[0]}: {what}")
    over = "Over cuSPARSE without preprocessing" if on_gpu else "Over a plain OpenMP loop"
    return [
        *gain(over, plain, True),
        *gain("Over cuSPARSE with its preprocessing kept", kept, True),
    ]
