"""Summaries of the suites of `warploom bench`: a table of the cases, then means and worst cases.

A ratio is a baseline's time over ours from the same line, that is, from the same run. Times that a
line lacks, as of an algorithm that refused, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import pandas as pd

from bench.reports.columns import Summary, Table, best_of, frame_of, numbers, table, texts
from bench.reports.figure import figures, frame_of_figures, geometric_mean
from bench.results_file import Line

_ALGORITHMS = ("default", "alg1", "alg2", "alg3", "spmv_alg1", "spmv_alg2")  # of cuSPARSE
_UNPREPARED = [f"cusparse.{name}_nopre" for name in _ALGORITHMS]
_WAYS = [*_UNPREPARED, *(f"cusparse.{name}" for name in _ALGORITHMS)]


def _means(suite: str, f: pd.DataFrame, columns: str, worst: int = 3) -> Table:
    """Return a table of the figures of a suite, with so many worst cases of each."""
    return table(columns, frame_of_figures(figures(suite, f), worst))


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
        "matrix | N=n | nnz/row=nnz / rows:.1f | unprepared=variant:` | us=us:.1f"
        " | cuSPARSE, no preprocess=plain | speed-up=plain_over:.2fx | prepared | us=prepared_time"
        " | cuSPARSE, all ways=cusparse_best | speed-up=prepared_over:.2fx | chosen=chosen_us:.1f"
        " | GE-SpMM=ge_spmm_us:.1f",
        f,
    )
    columns = "time of=what | cases | geometric mean=mean:.2fx | the worst=worst"
    summary: Summary = [cases, f"{len(f)} cases.", _means("core", f, columns, 5)]
    cora = f[f["matrix"] == "cora"]
    if len(cora):
        columns = "unprepared us=us:.2f | prepared us=prepared_us:.1f"
        columns = f"cora=width | {columns} | best cuSPARSE us=cusparse_us:.1f"
        summary.append(table(columns, cora.assign(width="N = " + cora["n"].astype(str))))
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
        "matrix | N=n | nnz/row=nnz / rows:.1f | op | type | us=us:.1f | variant=what"
        " | over the f32 sum=us / sum_us:.2fx | cuSPARSE=plain_us:.1f"
        " | over ours=plain_us / us:.2fx",
        shown,
    )
    columns = "time of=what | cases | geometric mean=mean:.3fx | target | the worst=worst"
    what = f", of which {failed.sum()} failed" if failed.any() else ""
    return [cases, f"{len(f)} lines{what}.", _means("operators", f, columns, 5)]


# ---- papers and sampled -------------------------------------------------------------------------

_STEPS = ("algorithm1", "crc", "cwm2", "cwm4", "cwm8")
_GAINS = (("crc", "algorithm1"), ("cwm2", "crc"), ("cwm4", "crc"), ("cwm8", "crc"))
_ALL_GAINS = (*_GAINS, ("cwm2", "algorithm1"))


def _papers(f: pd.DataFrame) -> Summary:
    steps = numbers(f, *(f"gflops.{step}" for step in _STEPS)).set_axis(_STEPS, axis=1)
    f["most"] = steps.max(axis=1)
    cases = table(
        "matrix | rows | nnz/row=nnz / rows:.1f | N=n | Algorithm 1, GFLOP/s=gflops.algorithm1:.1f"
        " | CRC=gflops.crc:.1f | CRC, CWM 2=gflops.cwm2:.1f | CWM 4=gflops.cwm4:.1f"
        " | CWM 8=gflops.cwm8:.1f | best | over Algorithm 1=most / gflops.algorithm1:.2fx",
        f,
    )
    gains = pd.DataFrame({f"{a} over {b}": steps[a] / steps[b] for a, b in _ALL_GAINS})
    groups = [(n, gains[f["n"] == n]) for n in f["n"].unique().tolist()]
    means = [
        [n, *texts(group.apply(geometric_mean), "{:.2f}x")]
        for n, group in [*groups, ("all", gains)]
    ]
    text = f"{len(f)} cases. Geometric means of the speed-up:"
    return [cases, text, Table(["N", *gains.columns], means)]


def _sampled(f: pd.DataFrame) -> Summary:
    t = numbers(f, "best_cusparse_us", "kept_share")
    names = f.reindex(columns=["best_cusparse"])["best_cusparse"]
    f["kept"] = 100 * t["kept_share"]
    f["cusparse"] = [
        f"{text} ({name})" if isinstance(name, str) else text
        for text, name in zip(texts(t["best_cusparse_us"], "{:.1f}"), names)
    ]
    cases = table(
        "matrix | N=n | strategy | S=s | kept=kept:.1f % | us=us:.1f | best candidate=variant:`"
        " | cuSPARSE, full matrix=cusparse | over ours=best_cusparse_us / us:.2fx"
        " | our choice, full matrix=exact_us:.1f | over ours=exact_us / us:.2fx"
        " | exact kernels, pre-sampled=presampled_us:.1f | over ours=presampled_us / us:.2fx",
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
        "matrix | N=n | mode | source | chosen=variant:` | us=us:.1f"
        " | over the best=us / best_us:.2fx | best fixed over it=best_fixed_us / us:.2fx"
        " | best=best_variant:`",
        f,
    )
    found = figures("selection", f)
    means = frame_of_figures(found, 1)
    means["mode"], means["of"] = (means["what"].str.split(": ").str[part] for part in (0, 1))
    columns = "mode | time of=of | cases | geometric mean=mean:.3fx | target | worst | target=limit"
    worst = [f"The worst, {x.what.split(':')[0]}: {x.worst_cases(10)}" for x in found if x.is_cost]
    return [cases, f"{len(f)} lines.", table(columns, means), *worst]


# ---- batch, minibatch and dispatch --------------------------------------------------------------

_DIRECTIONS = ("forward", "transposed")
_SPEEDUPS = (
    "what | cases | geometric mean of the speed-up=mean:.2fx | target | worst | target=limit"
)


def _batch(f: pd.DataFrame) -> Summary:
    cases = table(
        "matrix | N=n | products=batch | us=us:.1f | loop us=loop_us:.1f"
        " | cuSPARSE us=cusparse_us:.1f | kernel=variant:`",
        f,
    )
    return [cases, f"{len(f)} lines.", _means("batch", f, f"one call over={_SPEEDUPS}")]


def _minibatch(f: pd.DataFrame) -> Summary:
    t = numbers(f, "cusparse_us", "openmp_us")
    f["baseline_us"] = t["cusparse_us"].fillna(t["openmp_us"])
    cases = table(
        "graph | N=n | direction | blocks | rows=rows_mean:.0f | nnz=nnz_mean:.0f | us=us:.1f"
        " | baseline us=baseline_us:.1f | method=baseline | speed-up=baseline_us / us:.2fx",
        f,
    )
    return [cases, f"{len(f)} lines.", _means("minibatch", f, f"direction={_SPEEDUPS}")]


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
        "case | us=us:.2f | baseline us=baseline_us:.2f | over it=us / baseline_us:.2fx | target",
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
_Needs = dict[str, "Collection[str] | None"]
_PRODUCT: _Needs = dict.fromkeys(("matrix", "n", "us", "variant"))
_CASE: _Needs = dict.fromkeys(("matrix", "n"))
SUITES: dict[str, tuple[Callable[[pd.DataFrame], Summary], _Needs]] = {
    **dict.fromkeys(("core", "half", "bf16", "column_major"), (_core, _PRODUCT)),
    "batch": (_batch, {**_PRODUCT, "batch": None, "loop_us": None}),
    "operators": (_operators, {**_CASE, "op": None, "type": None}),
    "papers": (_papers, {**_CASE, "gflops": None, "best": None}),
    "sampled": (_sampled, {**_PRODUCT, "strategy": None, "s": None}),
    "selection": (_selection, {**_CASE, "mode": _MODES}),
    "minibatch": (_minibatch, {"graph": None, "n": None, "us": None, "direction": _DIRECTIONS}),
    "dispatch": (_dispatch, {"case": _CALLS, "n": None}),
}


def frame_of_suite(suite: str, lines: list[Line]) -> pd.DataFrame:
    """Return the lines of a suite by the names of their cases."""
    name = next(iter(SUITES[suite][1]))
    return frame_of(lines, [f"{line[name]}, N = {line['n']}" for line in lines])
