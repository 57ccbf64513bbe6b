"""An HTML report of a database, as one page that loads nothing from elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

from bench.reports import pictures
from bench.reports.database import CASE, WAYS, Database, load, version
from bench.reports.figure import geometric_mean
from bench.reports.output import write_whole
from bench.reports.plot import load_sampling, plot_sampling
from bench.reports.verdict import over_baselines, over_rules

MOST_PROBLEMS, MOST_MAPS, MOST_CANDIDATES = 8, 12, 60


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _facts(database: Database) -> Iterator[tuple[str, str]]:
    if database.device_class:
        m, cases = database.measurements, database.cases
        first = m.iloc[0]
        gib = first["device_memory_bytes"] / 2**30
        failed, cold = m["failed"].sum(), (m["clock"] == "cold").sum()
        index = cases.index
        matrices = index.get_level_values("fingerprint").nunique()
        problems = index.get_level_values("problem").nunique()
        yield "device class", database.device_class
        yield (
            "device",
            f"{first['device_kind']}, {first['device_arch']}, "
            f"{first['device_processors']} processors, {gib:.1f} GiB",
        )
        yield "measurements", f"{len(m)} ({failed} failed, {cold} with a cold cache)"
        yield "covers", f"matrices: {matrices}, problems: {problems}, cases: {len(cases)}"
        yield "made", f"{_date(m['made_at'].min())} to {_date(m['made_at'].max())}"
        yield "pins", str(database.pins)
        yield "model", _date(database.trained_at) if database.trained_at else "none"
    yield "database", database.path
    yield "size of the file", f"{Path(database.path).stat().st_size / 2**20:.2f} MiB"
    if database.others:
        others = ", ".join(f"{name} ({count})" for name, count in database.others.items())
        yield "other device classes (measurements), --device NAME", others


def _clocks(database: Database) -> list[tuple[str, str, int, str, str]]:
    groups = database.measurements.groupby(["compiler", "driver"])["made_at"]
    return [
        (str(key[0]), str(key[1]), len(made), _date(made.min()), _date(made.max()))
        for key, made in groups
    ]


# ---- winners and choices ------------------------------------------------------------------------


def _ratios(cases: pd.DataFrame) -> dict[str, pd.Series]:
    """Return each way's time over the best, where it was measured."""
    return {way: (cases[way] / cases["best"]).dropna() for way in WAYS}


def _ways(cases: pd.DataFrame, fixed: str | None) -> Iterator[dict[str, Any]]:
    total = cases["best"].notna().sum()
    for way, ratios in _ratios(cases).items():
        if len(ratios):
            worst = ratios.idxmax()
            yield {
                "way": f"{way}: {fixed}" if way == "one fixed" else way,
                "cases": f"{len(ratios)} of {total}" if len(ratios) < total else len(ratios),
                "mean": geometric_mean(ratios),
                "median": ratios.sort_values().iloc[len(ratios) // 2],
                "worst": ratios.max(),
                "where": f"{cases.loc[worst, 'matrix']}, N = {worst[1]}",
                "survivors": len(ratios) < total,
            }


def _figure(picture: str, alt: str, caption: str, name: str = "", **data: Any) -> dict[str, Any]:
    return {"picture": picture, "alt": alt, "caption": caption, "name": name, "data": data}


def _maps(database: Database, cases: pd.DataFrame, problem: int) -> Iterator[dict[str, Any]]:
    plane = pictures.map_plane(database.cases)
    families = sorted(database.cases["winner"].dropna().str.split("/").str[0].unique())
    for n, of_n in list(cases.groupby("n"))[:MOST_MAPS]:
        what = f"Map of the winning family of {len(of_n)} matrices by non-zeros a row and skew"
        picture = pictures.draw_map(plane, of_n, families)
        data = {"plane": plane.attribute(), "problem": problem, "n": n}
        yield _figure(picture, f"{what}, for N = {n}", "who wins where", f"N = {n}:", **data)


# Ways, what the picture shows, its caption in two parts, and the label of its axis.
_DISTRIBUTIONS = (
    (
        WAYS[:2],
        "Cumulative distribution of the speed-up of the best candidate over fixed references",
        *("Speed-up", "of the best over fixed references", "speed-up of the best"),
    ),
    (
        WAYS[2:],
        "Cumulative distribution of the time of what would be chosen over the best time",
        *("Regret:", "time of what would be chosen over the best", "time over the best"),
    ),
)


def _distributions(cases: pd.DataFrame) -> Iterator[dict[str, Any]]:
    total, ratios = cases["best"].notna().sum(), _ratios(cases)
    for ways, alt, name, caption, axis in _DISTRIBUTIONS:
        curves = {}
        for way in ways:
            count = len(ratios[way])
            curves[way if count == total else f"{way}, {count} of {total} cases"] = ratios[way]
        yield _figure(pictures.draw_distributions(curves, axis), alt, caption, name)


def _problems(database: Database, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    for i, key in enumerate(keys[:MOST_PROBLEMS]):
        cases = database.cases.loc[[key]]
        ways = list(_ways(cases, database.fixed.get(key)))
        yield {
            "key": key,
            "count": len(cases),
            "maps": list(_maps(database, cases, i)),
            "distributions": list(_distributions(cases)),
            "ways": ways,
            "survivors": any(way["survivors"] for way in ways),
        }


def _coverage(cases: pd.DataFrame) -> Iterator[dict[str, Any]]:
    captions = ("Rows and non-zeros a row", "Non-zeros a row and skew")
    for plane, caption in zip(pictures.COVERAGE_PLANES, captions):
        alt = f"Measured matrices by {caption[0].lower()}{caption[1:]}"
        picture = pictures.draw_coverage(plane, cases)
        yield _figure(picture, alt, caption, plane=plane.attribute())


def _samplings(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Settings that `warploom.torch.calibrate` saved: time against loss, and their text."""
    for file in files:
        setting = load_sampling(file)
        alt = "Time of an inference against the loss of each setting, with the budget as a line"
        made = _figure(
            pictures.encoded(plot_sampling(setting)), alt, "time against loss", file.name
        )
        yield {"figure": made, "text": setting.explain()}


# ---- the data of the page's script --------------------------------------------------------------


def _significant(value: float, digits: int = 6) -> float:
    return float(f"{value:.{digits}g}")


def _case_data(
    case: Any, group: pd.DataFrame, keys: Sequence[str], place: dict[str, int]
) -> dict[str, Any]:
    problem, n, fingerprint = case.Index
    working = group[group["timed"] != "failed"]
    usable = ~(working["prepare_us"] > 0)
    ways = [
        [way, place[v]]
        for way, v in (
            ("GE-SpMM", "row_crc/cf=2,rows=8" if n >= 64 else "row_crc/cf=1,rows=4"),
            ("one fixed", case.fixed),
        )
        if v in set(working["variant"][usable])
    ]
    chosen = working[working["chosen_by"] != ""]
    named = zip(chosen["variant"], chosen["chosen_by"].str.split(", "))
    by_way = {way: place[variant] for variant, its in named for way in its}
    ways += [[way, by_way[way]] for way in WAYS if way in by_way]
    found: dict[str, Any] = {"problem": keys.index(problem), "id": fingerprint}
    found |= {"matrix": case.matrix, "n": n, "rows": case.rows, "nnz": case.nnz}
    found |= {"cv": _significant(case.cv), "bucket": case.bucket}
    if isinstance(case.winner, str):
        found |= {"winner": place[case.winner], "us": _significant(case.us)}
    ranked = working.sort_values("us", kind="stable")
    found |= {"failed": len(group) - len(working), "more": max(0, len(ranked) - MOST_CANDIDATES)}
    found["ways"] = ways
    found["candidates"] = [
        [
            place[x.variant],
            *(_significant(x.us), _significant(x.spread_us, 4), _significant(x.prepare_us)),
            x.measurements,
            int(x.timed == "measured"),
        ]
        for x in ranked[:MOST_CANDIDATES].itertuples()
    ]
    return found


def _data(database: Database, keys: Sequence[str]) -> str:
    """Return the candidates of all cases as JSON, in which no "<" could end the script element."""
    variants = sorted(database.candidates["variant"].unique())
    place = {variant: i for i, variant in enumerate(variants)}
    groups = dict(list(database.candidates.groupby(CASE, sort=False)))
    problems = database.cases.index.get_level_values("problem")
    cases = database.cases.assign(fixed=problems.map(database.fixed))
    rows = sorted(cases.itertuples(), key=lambda case: keys.index(case.Index[0]))
    found = [_case_data(case, groups[case.Index], keys, place) for case in rows]
    data = {"problems": list(keys), "variants": variants, "cases": found}
    text = json.dumps(data, separators=(",", ":"), default=int)  # NumPy's integers
    return text.replace("<", "\\u003c")


# ---- the page -----------------------------------------------------------------------------------


def make_page(
    database: Database, results: Sequence[Path], samplings: Sequence[Path], made_by: str
) -> str:
    """Return the page.

    results: files of bench core or compare --json, for the verdict.
    samplings: files that `warploom.torch.Sampling.save` wrote.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "page"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    content: dict[str, Any] = {"facts": list(_facts(database)), "made_by": made_by}
    content["samplings"] = list(_samplings(samplings))
    content["now"] = _date(datetime.now(timezone.utc).timestamp())
    if not database.device_class:
        return environment.get_template("empty.html").render(content)
    counts = database.cases.groupby("problem").size()
    keys = sorted(counts.index, key=lambda key: (-counts[key], key))
    device = database.measurements.iloc[0]
    on_gpu = device["device_kind"] == "cuda"
    return environment.get_template("report.html").render(
        content,
        device=device["device_name"],
        on_gpu=on_gpu,
        over_baselines=over_baselines(results, device["device_name"], on_gpu),
        over_rules=over_rules(database.cases),
        problems=list(_problems(database, keys)),
        more_problems=len(keys) - MOST_PROBLEMS,
        coverage=list(_coverage(database.cases)),
        clocks=_clocks(database),
        data=_data(database, keys),
    )


def report(
    program: str, where: Sequence[str], device: str | None, results: Sequence[Path],
    samplings: Sequence[Path], output: str,
) -> None:  # fmt: skip
    """Write the report of a database to a file, or to standard output for "-"."""
    page = make_page(load(program, where, device), results, samplings, version(program))
    if output == "-":
        sys.stdout.write(page)
    else:
        write_whole(Path(output), page.encode())
