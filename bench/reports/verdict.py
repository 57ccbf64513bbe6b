"""The verdict of a report: what tuning gained over the rules and over baselines, and where it lost.

Gains over the rules come from the database. Times of cuSPARSE or of an OpenMP loop are not in a
database; they come from results files of `warploom bench core` or of `warploom compare --json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.reports.columns import numbers
from bench.reports.figure import Figure
from bench.reports.suites import add_speedups, frame_of_suite
from bench.results_file import Line, read_results

WORST = 3
LOSS = 0.98  # a speed-up below this is a loss


class Gain(NamedTuple):
    """A line of the verdict: its first words with the mean, and the rest."""

    what: str
    text: str


def gain(what: str, speedups: pd.Series, can_lose: bool) -> Iterator[Gain]:
    """Return the line about these cases ("cora, N = 32"); none if there are none."""
    found = speedups[(speedups > 0) & (speedups < float("inf"))]
    if found.empty:
        return
    lost = found[found < LOSS]
    text = f"in the geometric mean of {len(found)} cases, "
    text += f"at most {found.max():.2f}x ({found.idxmax()}). "
    if len(lost):
        worst = Figure(what, lost).worst_cases(WORST)
        text += f"It lost in {len(lost)}: {worst}{' and others' if len(lost) > WORST else ''}."
    elif can_lose:
        text += "It lost nowhere."
    yield Gain(f"{what}: {Figure(what, found).mean():.2f}x", text)


def over_rules(cases: pd.DataFrame) -> list[Gain]:
    keys = zip(cases["matrix"], cases.index.get_level_values("n"))
    f = cases.set_axis(pd.Index([f"{matrix}, N = {n}" for matrix, n in keys]), axis=0)
    seen = "The model on matrices that it did not see, over the rules"
    return [
        *gain("Tuning a matrix, over the built-in rules", f["rules"] / f["best"], False),
        *gain(seen, f["rules"] / f["predicted"], True),
    ]


# ---- results files ------------------------------------------------------------------------------


def _of_core(lines: list[Line]) -> pd.DataFrame:
    """Speed-ups without preparation and with it kept, by case."""
    f = frame_of_suite("core", lines)
    add_speedups(f)
    t = numbers(f, "us", "prepared_us", "host_rivals.openmp")
    plain = f["plain_over"].fillna(t["host_rivals.openmp"] / t["us"])
    kept = f["cusparse_us"] / t[["us", "prepared_us"]].min(axis=1)
    return pd.DataFrame({"plain": plain, "kept": kept})


def _of_compare(lines: list[Line]) -> pd.DataFrame:
    cases = {
        f"{line['input']}, N = {one['n']}": {
            "plain": one.get("speed_up"),
            "kept": one.get("speed_up_prepared") if line.get("device_kind") == "cuda" else None,
        }
        for line in lines
        for one in line["comparisons"]
    }
    return pd.DataFrame.from_dict(cases, orient="index", dtype=float)


def _is_result(line: Any) -> bool:
    return isinstance(line, dict) and (
        {"suite", "matrix", "n"} <= line.keys() or {"input", "comparisons"} <= line.keys()
    )


def over_baselines(files: Sequence[Path], device: str, on_gpu: bool) -> list[Gain]:
    """Return the gains over baselines by these files; lines of other devices do not count."""
    core: list[Line] = []
    compared: list[Line] = []
    for path in files:
        for number, line in enumerate(read_results(path), 1):
            if not _is_result(line):
                what = "is no line of bench core or compare --json"
                raise ValueError(f"{path}:{number}: {what}")
            if line.get("device") == device and line.get("suite", "core") == "core":
                (core if "suite" in line else compared).append(line)
    if not core and not compared:
        if files:
            what = f"holds no case of bench core or compare on {device}"
            raise ValueError(f"{files[0]}: {what}")
        return []
    made = ((_of_core, core), (_of_compare, compared))
    f = pd.concat([make(lines) for make, lines in made if lines])
    over = "Over cuSPARSE without preprocessing" if on_gpu else "Over a plain OpenMP loop"
    return [
        *gain(over, f["plain"], True),
        *gain("Over cuSPARSE with its preprocessing kept", f["kept"], True),
    ]
