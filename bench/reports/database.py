"""Read a database of measurements through the command `warploom`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

CASE = ["problem", "n", "fingerprint"]
WAYS = ("GE-SpMM", "one fixed", "rules", "predicted")


class Database(NamedTuple):
    """The content of a database about one device class."""

    path: str
    device_class: str | None  # None = there are no measurements
    others: dict[str, int]  # measurements of the other classes
    trained_at: int  # when the newest model was made; 0 = there is none
    pins: int
    measurements: pd.DataFrame  # as `warploom export` writes them
    candidates: pd.DataFrame  # as `warploom db candidates` lists them, and `family`
    cases: pd.DataFrame  # by CASE, see cases_of
    fixed: dict[str, str]  # the best single variant of each problem


def _run(program: str, *arguments: str) -> str:
    try:
        done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no program {program}; name it by --warploom") from None
    except subprocess.CalledProcessError as error:  # its message went to standard error
        raise ValueError(f"{program} {arguments[0]} failed") from error
    return done.stdout


def version(program: str) -> str:
    return _run(program, "--version").strip()


def best_fixed(usable: pd.DataFrame, best: pd.Series) -> dict[str, str]:
    """Return, of the variants measured in the most cases of a problem, the best in the mean."""
    logs = pd.Series(np.log(usable["us"]) - np.log(usable.set_index(CASE).index.map(best)))
    groups = logs.groupby([usable["problem"], usable["variant"]]).agg(["size", "mean"])
    ranked = groups.reset_index().sort_values(
        ["problem", "size", "mean", "variant"], ascending=[True, False, True, True]
    )
    return dict(ranked.groupby("problem")["variant"].first())


def cases_of(
    candidates: pd.DataFrame, measurements: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a row for each matrix, problem and N, and the best single variant of each problem.

    Columns: matrix, bucket, rows, nnz, cv; the winner, its time `us` and the best time (the winner
    may be slightly slower, if they tie), NaN where nothing works unprepared; and for each of WAYS
    the time of what it would choose, NaN where that was not measured.
    """
    usable = candidates[(candidates["timed"] != "failed") & ~(candidates["prepare_us"] > 0)]
    usable = usable.reset_index(drop=True)
    groups = usable.groupby(CASE, sort=False)
    cases = candidates.groupby(CASE, sort=False)[["matrix", "bucket"]].first()
    cases["winner"], cases["us"] = groups["variant"].first(), groups["us"].first()
    cases["best"] = groups["us"].min()
    fixed = best_fixed(usable, cases["best"]) if len(usable) else {}
    wide = usable["n"] >= 64
    chosen = {
        "GE-SpMM": usable["variant"].eq("row_crc/cf=2,rows=8") & wide
        | usable["variant"].eq("row_crc/cf=1,rows=4") & ~wide,
        "one fixed": usable["variant"].eq(usable["problem"].map(fixed)),
    }
    for way in WAYS[2:]:
        chosen[way] = usable["chosen_by"].map(lambda ways, way=way: way in ways.split(", "))
    for way, of_way in chosen.items():
        cases[way] = usable[of_way.astype(bool)].groupby(CASE)["us"].first()
    stats = measurements.groupby("fingerprint")[["rows", "nnz", "cv"]].first()
    return cases.join(stats, on="fingerprint"), fixed


def _class_of(measurements: pd.DataFrame) -> pd.Series:
    parts = ["device_kind", "device_arch", "device_name", "device_processors"]
    return measurements[parts].astype(str).agg("/".join, axis=1)


def load(program: str, where: Sequence[str], device: str | None) -> Database:
    """Read a database. `where` has the options --db or --system; device is a part of a class."""
    part = ["--device", device] if device else []
    found = json.loads(_run(program, "db", "candidates", "--json", *where, *part))
    # Nothing was tuned yet where the default is the shipped database, which export wants by name.
    shipped = not where and Path(found["database"]).name == "system.db"
    lines = _run(program, "export", "-o", "-", *(["--system"] if shipped else where)).splitlines()
    records = [json.loads(line) for line in lines[1:]]
    name = found["device_class"]
    if name is None:
        nothing = pd.DataFrame()
        return Database(found["database"], None, {}, 0, 0, nothing, nothing, nothing, {})
    measurements = pd.DataFrame([record for record in records if "id" in record])
    classes = _class_of(measurements)
    candidates = pd.DataFrame(found["candidates"])
    candidates["matrix"] = candidates["matrix"].fillna("").replace("", "(unnamed)")
    for column in ("us", "spread_us", "prepare_us"):
        candidates[column] = candidates[column].astype(float)
    others = classes[classes != name].value_counts().to_dict()
    pins = sum(record.get("class") == name for record in records if "pin" in record)
    measurements = measurements[classes == name]
    cases, fixed = cases_of(candidates, measurements)
    return Database(
        *(found["database"], name, others, found["trained_at"], pins),
        *(measurements, candidates, cases, fixed),
    )
