"""Summaries of the suites of `warploom bench`: a table of the cases, then means and worst cases.

A ratio is a baseline's time over ours from the same line, that is, from the same run. Times that a
line lacks, as of an algorithm that refused, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pandas as pd

from bench.reports.columns import Summary, Table, best_of, frame_of, numbers, table, texts
from bench.reports.figure import figures, geometric_mean
from bench.results_file import Line

_ALGORITHMS = ("default", "alg1", "alg2", "alg3", "spmv_alg1", "spmv_alg2")  # of cuSPARSE
_UNPREPARED = [f"cusparse.{name}_nopre" for name in _ALGORITHMS]
_WAYS = [*_UNPREPARED, *(f"cusparse.{name}" for name in _ALGORITHMS)]


# ---- core ---------------------------------------------------------------------------------------


def add_speedups(f: pd.DataFrame) -> None:
    """Add cuSPARSE's times in suite core, their texts, and speed-ups over them: unprepared, and
    prepared over all ways.
    """
    f["plain_us"], f["plain"] = best_of(numbers(f, *_UNPREPARED))
    f["cusparse_us"], f["cusparse_best"] = best_of(numbers(f, *_WAYS))
    f["plain_over"] = f["plain_us"] / numbers(f, "us")["us"]
    f["prepared_over"] = f["cusparse_us"] / numbers(f, "prepared_us")["prepared_us"]


def _add_prepared(f: pd.DataFrame) -> None:
    """Add the texts of prepared variants and of their times."""
    columns = f.reindex(columns=["variant", "prepared_variant"]).astype(object)
    columns = columns.where(columns.notna(), "-").to_numpy()
    f["prepared"] = ["same" if own == other else f"`{other}`" for own, other in columns]
    t = numbers(f, "prepared_us", "prepare_us")
    f["prepared_time"] = [
        f"{us:.1f} after {first:.0f}" if first > 0 else text
        for (us, first), text in zip(t.to_numpy(), texts(t["prepared_us"], "{:.1f}"))
    ]


def _core(f: pd.DataFrame) -> Summary:
    add_speedups(f)
    _add_prepared(f)
    cases = table(
        "matrix | N | nnz/row | unprepared | us | cuSPARSE, no preprocess | speed-up | prepared"
        " | us | cuSPARSE, all ways | speed-up | chosen | GE-SpMM",
        "matrix | n | nnz / rows:.1f | variant:` | us:.1f | plain | plain_over:.2fx | prepared"
        " | prepared_time | cusparse_best | prepared_over:.2fx | chosen_us:.1f | ge_spmm_us:.1f",
        f,
    )
    rows = [
        [x.what, len(x.ratios), f"{x.mean():.2f}x", x.worst_cases(5)] for x in figures("core", f)
    ]
    means = Table("time of | cases | geometric mean | the worst", rows)
    summary: Summary = [cases, f"{len(f)} cases.", means]
    cora = f[f["matrix"] == "cora"]
    if len(cora):
        head = "cora | unprepared us | prepared us | best cuSPARSE us"
        columns = "width | us:.2f | prepared_us:.1f | cusparse_us:.1f"
        summary.append(table(head, columns, cora.assign(width="N = " + cora["n"].astype(str))))
    reddit = f[(f["matrix"] == "twin:reddit") & (f["n"] == 128)]
    for own, us, prepared in numbers(reddit, "gather_gbs", "us", "prepared_us").to_numpy() / 1e3:
        if own > 0:
            summary.append(
                f"Gather bandwidth of twin:reddit at N = 128: {own:.2f} TB/s unprepared, "
                f"{own * us / prepared:.2f} TB/s prepared."
            )
    return summary


# ---- operators ----------------------------------------------------------------------------------


def _operators(f: pd.DataFrame) -> Summary:
    t = numbers(f, "us", "rows", "cols", "nnz", "n", "cusparse_sddmm_us")
    f["cusparse_us"] = best_of(numbers(f, *_WAYS))[0]
    f["plain_us"] = t["cusparse_sddmm_us"].fillna(best_of(numbers(f, *_UNPREPARED))[0])
    f["is_large"] = (t["n"] >= 64) & (t["cols"] * t["n"] * 4 > 8e6)  # B in f32 exceeds the cache
    # values are much of what is read
    f["is_narrow"] = (t["nnz"] >= 8 * t["rows"]) & (t["n"] <= 32)
    failed = t["us"].isna()
    shown = f.assign(what=["failed" if bad else f"`{x}`" for x, bad in zip(f["variant"], failed)])
    shown.loc[failed, ["nnz", "plain_us"]] = None
    cases = table(
        "matrix | N | nnz/row | op | type | us | variant | over the f32 sum | cuSPARSE | over ours",
        "matrix | n | nnz / rows:.1f | op | type | us:.1f | what | us / sum_us:.2fx"
        " | plain_us:.1f | plain_us / us:.2fx",
        shown,
    )
    rows = [
        [x.what, len(x.ratios), f"{x.mean():.3f}x", x.target_text(), x.worst_cases(5)]
        for x in figures("operators", f)
    ]
    what = f", of which {failed.sum()} failed" if failed.any() else ""
    head = "time of | cases | geometric mean | target | the worst"
    return [cases, f"{len(f)} lines{what}.", Table(head, rows)]


# ---- papers and sampled -------------------------------------------------------------------------

_STEPS = ("algorithm1", "crc", "cwm2", "cwm4", "cwm8")
_GAINS = (("crc", "algorithm1"), ("cwm2", "crc"), ("cwm4", "crc"), ("cwm8", "crc"))
_ALL_GAINS = (*_GAINS, ("cwm2", "algorithm1"))


def _papers(f: pd.DataFrame) -> Summary:
    steps = numbers(f, *(f"gflops.{step}" for step in _STEPS)).set_axis(_STEPS, axis=1)
    f["most"] = steps.max(axis=1)
    cases = table(
        "matrix | rows | nnz/row | N | Algorithm 1, GFLOP/s | CRC | CRC, CWM 2 | CWM 4 | CWM 8"
        " | best | over Algorithm 1",
        "matrix | rows | nnz / rows:.1f | n | gflops.algorithm1:.1f | gflops.crc:.1f"
        " | gflops.cwm2:.1f | gflops.cwm4:.1f | gflops.cwm8:.1f | best"
        " | most / gflops.algorithm1:.2fx",
        f,
    )
    gains = pd.DataFrame({f"{a} over {b}": steps[a] / steps[b] for a, b in _ALL_GAINS})
    groups = [(n, gains[f["n"] == n]) for n in f["n"].unique().tolist()]
    means = [
        [n, *texts(group.apply(geometric_mean), "{:.2f}x")]
        for n, group in [*groups, ("all", gains)]
    ]
    text = f"{len(f)} cases. Geometric means of the speed-up:"
    return [cases, text, Table(" | ".join(["N", *gains.columns]), means)]


def _sampled(f: pd.DataFrame) -> Summary:
    t = numbers(f, "best_cusparse_us", "kept_share")
    names = f.reindex(columns=["best_cusparse"])["best_cusparse"]
    f["kept"] = 100 * t["kept_share"]
    f["cusparse"] = [
        f"{text} ({name})" if isinstance(name, str) else text
        for text, name in zip(texts(t["best_cusparse_us"], "{:.1f}"), names)
    ]
    cases = table(
        "matrix | N | strategy | S | kept | us | best candidate | cuSPARSE, full matrix | over ours"
        " | our choice, full matrix | over ours | exact kernels, pre-sampled | over ours",
        "matrix | n | strategy | s | kept:.1f % | us:.1f | variant:` | cusparse"
        " | best_cusparse_us / us:.2fx | exact_us:.1f | exact_us / us:.2fx | presampled_us:.1f"
        " | presampled_us / us:.2fx",
        f,
    )
    names = [f"{m}, S = {s}, N = {n}" for m, s, n in zip(f["matrix"], f["s"], f["n"])]
    rows = [
        f"- {x.what}: {x.mean():.2f}x, {x.worst_cases(1)} to "
        f"{x._replace(is_cost=True).worst_cases(1)}"
        for x in figures("sampled", f.set_axis(names, axis=0))
    ]
    what = (
        "Time of others over that of the best sampling candidate, geometric mean, least, greatest"
    )
    return [cases, f"{len(f)} cases. {what}:", "\n".join(rows)]


# ---- selection ----------------------------------------------------------------------------------

_MODES = ("tuned", "loo", "estimated", "rule")


def _selection(f: pd.DataFrame) -> Summary:
    cases = table(
        "matrix | N | mode | source | chosen | us | over the best | best fixed over it | best",
        "matrix | n | mode | source | variant:` | us:.1f | us / best_us:.2fx"
        " | best_fixed_us / us:.2fx | best_variant:`",
        f,
    )
    rows, worst = [], []
    for x in figures("selection", f):
        mode, what = x.what.split(": ")
        row = [mode, what, len(x.ratios), f"{x.mean():.3f}x", x.target_text()]
        rows.append([*row, x.worst_cases(1), x.limit_text()])
        if x.is_cost:
            worst.append(f"The worst, {mode}: {x.worst_cases(10)}")
    head = "mode | time of | cases | geometric mean | target | worst | target"
    return [cases, f"{len(f)} lines.", Table(head, rows), *worst]


# ---- batch, minibatch and dispatch --------------------------------------------------------------

_DIRECTIONS = ("forward", "transposed")


def _figure_rows(suite: str, f: pd.DataFrame, worst: int) -> list[list[object]]:
    """Return a row for each figure of a suite, with so many of its worst cases."""
    return [
        [
            *(x.what, len(x.ratios), f"{x.mean():.2f}x", x.target_text(), x.worst_cases(worst)),
            x.limit_text(),
        ]
        for x in figures(suite, f)
    ]


def _batch(f: pd.DataFrame) -> Summary:
    cases = table(
        "matrix | N | products | us | loop us | cuSPARSE us | kernel",
        "matrix | n | batch | us:.1f | loop_us:.1f | cusparse_us:.1f | variant:`",
        f,
    )
    head = "one call over | cases | geometric mean of the speed-up | target | worst | target"
    return [cases, f"{len(f)} lines.", Table(head, _figure_rows("batch", f, 3))]


def _minibatch(f: pd.DataFrame) -> Summary:
    t = numbers(f, "cusparse_us", "openmp_us")
    f["baseline_us"] = t["cusparse_us"].fillna(t["openmp_us"])
    cases = table(
        "graph | N | direction | blocks | rows | nnz | us | baseline us | method | speed-up",
        "graph | n | direction | blocks | rows_mean:.0f | nnz_mean:.0f | us:.1f"
        " | baseline_us:.1f | baseline | baseline_us / us:.2fx",
        f,
    )
    head = "direction | cases | geometric mean of the speed-up | target | worst | target"
    return [cases, f"{len(f)} lines.", Table(head, _figure_rows("minibatch", f, 3))]


# Microseconds at most; the last ones are added to the baseline.
_CALLS = {
    "context_create": (20000, False),
    "plan_known": (5, False),
    "rebind": (0.5, False),
    "matrix_estimated": (1, False),
    "matrix_measured": (60, False),
    "spmm_new_matrix": (3, True),
    "execute": (0.3, True),
}


def _dispatch(f: pd.DataFrame) -> Summary:
    t = numbers(f, "us", "baseline_us")
    targets = []
    for case, us, baseline in zip(f["case"], t["us"], t["baseline_us"]):
        most, is_over = _CALLS[case]
        holds = us <= most + (baseline if is_over else 0)  # not without a time
        what = "at most the baseline +" if is_over else "at most"
        targets.append(f"{what} {most:g} us, {'met' if holds else 'missed'}")
    cases = table(
        "case | us | baseline us | over it | target",
        "case | us:.2f | baseline_us:.2f | us / baseline_us:.2fx | target",
        f.assign(target=targets),
    )
    missed = sum(text.endswith("missed") for text in targets)
    met = len(f) - missed
    summary: Summary = [cases, f"{len(f)} cases, {met} targets met, {missed} missed."]
    for x in figures("dispatch", f):
        mean = f"Time over the baseline, geometric mean: {x.mean():.2f}x"
        summary.append(f"{mean}; worst: {x.worst_cases(10)}")
    return summary


# ---- all of them ---------------------------------------------------------------------------------

# The members that a line needs, and those with their possible values. The first one names the case
# together with n.
SUITES: dict[str, tuple[Callable[[pd.DataFrame], Summary], dict[str, Collection[str] | None]]] = {
    "core": (_core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "half": (_core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "bf16": (_core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "column_major": (_core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "batch": (_batch, dict.fromkeys(("matrix", "n", "batch", "us", "loop_us", "variant"))),
    "operators": (_operators, dict.fromkeys(("matrix", "n", "op", "type"))),
    "papers": (_papers, dict.fromkeys(("matrix", "n", "gflops", "best"))),
    "sampled": (_sampled, dict.fromkeys(("matrix", "n", "strategy", "s", "us", "variant"))),
    "selection": (_selection, {"matrix": None, "n": None, "mode": _MODES}),
    "minibatch": (
        _minibatch,
        {"graph": None, "n": None, "us": None, "direction": _DIRECTIONS},
    ),
    "dispatch": (_dispatch, {"case": _CALLS, "n": None}),
}


def frame_of_suite(suite: str, lines: list[Line]) -> pd.DataFrame:
    """Return the lines of a suite by the names of their cases."""
    name = next(iter(SUITES[suite][1]))
    return frame_of(lines, [f"{line[name]}, N = {line['n']}" for line in lines])
