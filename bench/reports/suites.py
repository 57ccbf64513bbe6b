"""Summaries of the suites of `warploom bench`: a table of the cases, then means and worst cases.

A ratio is a baseline's time over ours from the same line, that is, from the same run. Times that a
line lacks, as of an algorithm that refused, are left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from bench.reports.columns import (
    Summary,
    Table,
    best_of,
    case_names,
    code_of,
    members,
    numbers,
    table,
    values_of,
)
from bench.reports.figure import Figure, figures_of, geometric_mean, target_text, texts
from bench.results_file import Line

ALGORITHMS = ["default", "alg1", "alg2", "alg3", "spmv_alg1", "spmv_alg2"]  # of cuSPARSE
UNPREPARED = [f"{name}_nopre" for name in ALGORITHMS]
WAYS = [*UNPREPARED, *ALGORITHMS]


# ---- core ---------------------------------------------------------------------------------------


def _nnz_a_row(lines: list[Line]) -> pd.Series:
    size = numbers(lines, "rows", "nnz")
    return size["nnz"] / size["rows"]


def _prepared(line: Line) -> str:
    name = line.get("prepared_variant")
    return "same" if name == line["variant"] else f"`{name or '-'}`"


def speedups(lines: list[Line]) -> tuple[pd.Series, pd.Series]:
    """Return speed-ups of suite core over cuSPARSE: unprepared, and prepared over all its ways."""
    f = numbers(lines, "us", "prepared_us")
    ways = members(lines, "cusparse", WAYS)
    return best_of(ways[UNPREPARED])[0] / f["us"], best_of(ways)[0] / f["prepared_us"]


def core(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "prepared_us", "prepare_us", "chosen_us", "ge_spmm_us", "gather_gbs")
    ways = members(lines, "cusparse", WAYS)
    others = members(lines, "host_rivals", ["openmp", "graphblas"])
    (_, plain_cells), (best_us, best_cells) = best_of(ways[UNPREPARED]), best_of(ways)
    plain, prepared = speedups(lines)
    prepared_cells = [
        f"{us:.1f} after {first:.0f}" if first > 0 else text
        for us, first, text in zip(
            f["prepared_us"], f["prepare_us"], texts(f["prepared_us"], "{:.1f}")
        )
    ]
    cases = table(
        "matrix | N | nnz/row | unprepared | us | cuSPARSE, no preprocess | speed-up | prepared"
        " | us | cuSPARSE, all ways | speed-up | chosen | GE-SpMM",
        *values_of(lines, "matrix", "n"),
        texts(_nnz_a_row(lines), "{:.1f}"),
        code_of(lines, "variant"),
        texts(f["us"], "{:.1f}"),
        plain_cells,
        texts(plain, "{:.2f}x"),
        [_prepared(line) for line in lines],
        prepared_cells,
        best_cells,
        texts(prepared, "{:.2f}x"),
        texts(f["chosen_us"], "{:.1f}"),
        texts(f["ge_spmm_us"], "{:.1f}"),
    )
    ratios = {
        "unprepared, over the best cuSPARSE way without preprocess": plain,
        "prepared, over the best cuSPARSE way of all, preprocess kept": prepared,
        "unprepared, over cuSPARSE's default without preprocess": ways["default_nopre"] / f["us"],
        "unprepared, over our GE-SpMM (row_crc)": f["ge_spmm_us"] / f["us"],
        "what the dispatcher chose, over the best unprepared": f["chosen_us"] / f["us"],
        "unprepared, over a plain OpenMP loop": others["openmp"] / f["us"],
        "unprepared, over SuiteSparse:GraphBLAS": others["graphblas"] / f["us"],
    }
    names = case_names(lines)
    figures = figures_of(
        Figure(what, ratio.set_axis(names), is_limit=what.startswith("what the"))
        for what, ratio in ratios.items()
    )
    rows = [[x.what, len(x.ratios), f"{x.mean():.2f}x", x.worst_cases(5)] for x in figures]
    means = Table("time of | cases | geometric mean | the worst", rows)
    summary: Summary = [cases, f"{len(lines)} cases.", means]
    cora = [i for i, line in enumerate(lines) if line["matrix"] == "cora"]
    if cora:
        rows = [
            [f"N = {lines[i]['n']}", f"{f['us'][i]:.2f}", *texts(pair, "{:.1f}")]
            for i in cora
            for pair in [pd.Series([f["prepared_us"][i], best_us[i]])]
        ]
        summary.append(Table("cora | unprepared us | prepared us | best cuSPARSE us", rows))
    for i, line in enumerate(lines):
        if (line["matrix"], line["n"]) == ("twin:reddit", 128) and f["gather_gbs"][i] > 0:
            own = f["gather_gbs"][i] / 1e3
            then = own * f["us"][i] / f["prepared_us"][i]
            what = "Gather bandwidth of twin:reddit at N = 128"
            summary.append(f"{what}: {own:.2f} TB/s unprepared, {then:.2f} TB/s prepared.")
    return summary


# ---- operators ----------------------------------------------------------------------------------

_SUM, _PLAIN, _ALL = "sum", "plain", "all"  # what a line is compared with
_LARGE, _NARROW = "large", "narrow"
# Text, operator, type, compared with, the cases that count, and the target. Ours over our own f32
# sum of the same round, or cuSPARSE over ours.
_OPERATORS = (
    ("max over sum", "max", "f32", _SUM, None, 1.05),
    ("min over sum", "min", "f32", _SUM, None, 1.05),
    ("mean over sum", "mean", "f32", _SUM, None, 1.05),
    ("max with arg over sum", "max_arg", "f32", _SUM, None, 1.35),
    ("user-defined sum of products over sum", "custom", "f32", _SUM, None, 1.02),
    ("f16 over f32, N >= 64 and B > 8 MB", "sum", "f16", _SUM, _LARGE, 0.65),
    ("bf16 over f32, N >= 64 and B > 8 MB", "sum", "bf16", _SUM, _LARGE, 0.65),
    ("cuSPARSE f16 without preprocess, over ours", "sum", "f16", _PLAIN, None, 1.5),
    ("cuSPARSE bf16 without preprocess, over ours", "sum", "bf16", _PLAIN, None, 1.5),
    ("copy_b over mul", "copy_b", "f32", _SUM, None, 1.0),
    (
        "cuSPARSE fed with ones, without preprocess, over copy_b, nnz/row >= 8 and N <= 32",
        *("copy_b", "f32", _PLAIN, _NARROW, 1.3),
    ),
    ("cusparseSDDMM over sddmm", "sddmm", "f32", _PLAIN, None, 1.5),
    ("f64 over f32", "sum", "f64", _SUM, None, None),
    ("max in f16 over sum in f32", "max", "f16", _SUM, None, None),
    ("cuSPARSE f32 without preprocess, over ours", "sum", "f32", _PLAIN, None, None),
    ("cuSPARSE f16, the best of all ways, over ours", "sum", "f16", _ALL, None, None),
    ("cuSPARSE bf16, the best of all ways, over ours", "sum", "bf16", _ALL, None, None),
    (
        "cuSPARSE fed with ones, the best of all ways, over copy_b, nnz/row >= 8 and N <= 32",
        *("copy_b", "f32", _ALL, _NARROW, None),
    ),
)


def operators(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "sum_us", "rows", "cols", "nnz", "n", "cusparse_sddmm_us")
    ways = members(lines, "cusparse", WAYS)
    plain_us = f["cusparse_sddmm_us"].fillna(best_of(ways[UNPREPARED])[0])
    ratios = {
        _SUM: f["us"] / f["sum_us"],
        _PLAIN: plain_us / f["us"],
        _ALL: best_of(ways)[0] / f["us"],
    }
    counts = {
        _LARGE: (f["n"] >= 64) & (f["cols"] * f["n"] * 4 > 8e6),  # B in f32 exceeds the cache
        _NARROW: (f["nnz"] >= 8 * f["rows"]) & (f["n"] <= 32),  # values are much of what is read
    }
    failed = f["us"].isna()
    cases = table(
        "matrix | N | nnz/row | op | type | us | variant | over the f32 sum | cuSPARSE | over ours",
        *values_of(lines, "matrix", "n"),
        texts(_nnz_a_row(lines).mask(failed), "{:.1f}"),
        *values_of(lines, "op", "type"),
        texts(f["us"], "{:.1f}"),
        ["failed" if bad else f"`{x['variant']}`" for x, bad in zip(lines, failed)],
        texts(ratios[_SUM], "{:.2f}x"),
        texts(plain_us.mask(failed), "{:.1f}"),
        texts(ratios[_PLAIN], "{:.2f}x"),
    )
    kinds = pd.Series([(line["op"], line["type"]) for line in lines])
    names = pd.Series(case_names(lines))
    figures = []
    for what, op, kind, over, where, target in _OPERATORS:
        chosen = kinds.map(lambda found, wanted=(op, kind): found == wanted)
        if where:
            chosen &= counts[where]
        ratio = ratios[over][chosen].set_axis(names[chosen])
        figures.append(Figure(what, ratio, target, is_limit=over == _SUM))
    rows = [
        [x.what, len(x.ratios), f"{x.mean():.3f}x", x.target_text(), x.worst_cases(5)]
        for x in figures_of(figures)
    ]
    what = f", of which {failed.sum()} failed" if failed.any() else ""
    head = "time of | cases | geometric mean | target | the worst"
    return [cases, f"{len(lines)} lines{what}.", Table(head, rows)]


# ---- papers and sampled -------------------------------------------------------------------------

_STEPS = ["algorithm1", "crc", "cwm2", "cwm4", "cwm8"]
_GAINS = (("crc", "algorithm1"), ("cwm2", "crc"), ("cwm4", "crc"), ("cwm8", "crc"))
_ALL_GAINS = (*_GAINS, ("cwm2", "algorithm1"))


def papers(lines: list[Line]) -> Summary:
    steps = members(lines, "gflops", _STEPS)
    cases = table(
        "matrix | rows | nnz/row | N | Algorithm 1, GFLOP/s | CRC | CRC, CWM 2 | CWM 4 | CWM 8"
        " | best | over Algorithm 1",
        *values_of(lines, "matrix", "rows"),
        texts(_nnz_a_row(lines), "{:.1f}"),
        *values_of(lines, "n"),
        *(texts(steps[step], "{:.1f}") for step in _STEPS),
        *values_of(lines, "best"),
        texts(steps.max(axis=1) / steps["algorithm1"], "{:.2f}x"),
    )
    gains = pd.DataFrame({f"{a} over {b}": steps[a] / steps[b] for a, b in _ALL_GAINS})
    widths = pd.Series([line["n"] for line in lines])
    groups = [(n, gains[widths == n]) for n in widths.unique()]
    means = [
        [n, *texts(group.apply(geometric_mean), "{:.2f}x")]
        for n, group in [*groups, ("all", gains)]
    ]
    text = f"{len(lines)} cases. Geometric means of the speed-up:"
    return [cases, text, Table(" | ".join(["N", *gains.columns]), means)]


_OTHERS = {
    "best_cusparse_us": "the best of cuSPARSE on the full matrix",
    "exact_us": "what the dispatcher chooses on the full matrix",
    "presampled_us": "the best exact kernel on the pre-sampled matrix",
}


def sampled(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "kept_share", *_OTHERS)
    over = f[list(_OTHERS)].div(f["us"], axis=0)
    pairs = []
    for key in _OTHERS:
        cells = texts(f[key], "{:.1f}")
        if key == "best_cusparse_us":
            names = [line.get("best_cusparse") for line in lines]
            cells = [f"{c} ({n})" if n else c for c, n in zip(cells, names)]
        pairs += [cells, texts(over[key], "{:.2f}x")]
    cases = table(
        "matrix | N | strategy | S | kept | us | best candidate | cuSPARSE, full matrix | over ours"
        " | our choice, full matrix | over ours | exact kernels, pre-sampled | over ours",
        *values_of(lines, "matrix", "n", "strategy", "s"),
        texts(100 * f["kept_share"], "{:.1f} %"),
        texts(f["us"], "{:.1f}"),
        code_of(lines, "variant"),
        *pairs,
    )
    over.index = pd.Index([f"{x['matrix']}, S = {x['s']}, N = {x['n']}" for x in lines])
    strategies = np.array([line["strategy"] for line in lines])
    figures = figures_of(
        Figure(f"{strategy}, {what}", over.loc[strategies == strategy, key])
        for strategy in ("bucket", "fastrand")
        for key, what in _OTHERS.items()
    )
    rows = [
        f"- {x.what}: {x.mean():.2f}x, {x.worst_cases(1)} to "
        f"{x._replace(is_limit=True).worst_cases(1)}"
        for x in figures
    ]
    what = (
        "Time of others over that of the best sampling candidate, geometric mean, least, greatest"
    )
    return [cases, f"{len(lines)} cases. {what}:", "\n".join(rows)]


# ---- selection ----------------------------------------------------------------------------------

# Targets of the choice's time over that of the best candidate: mean and worst.
_MODES = {
    "tuned": (1.02, 1.10),
    "loo": (1.08, 1.35),
    "estimated": (1.15, 2.0),
    "rule": (1.25, None),
}
_OVER_FIXED = 1.2


def selection(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "best_us", "best_fixed_us")
    chosen, fixed = f["us"] / f["best_us"], f["best_fixed_us"] / f["us"]
    cases = table(
        "matrix | N | mode | source | chosen | us | over the best | best fixed over it | best",
        *values_of(lines, "matrix", "n", "mode", "source"),
        code_of(lines, "variant"),
        texts(f["us"], "{:.1f}"),
        texts(chosen, "{:.2f}x"),
        texts(fixed, "{:.2f}x"),
        code_of(lines, "best_variant"),
    )
    modes, names = np.array([line["mode"] for line in lines]), case_names(lines)
    rows, worst = [], []
    for mode, (mean, most) in _MODES.items():
        of_mode = figures_of(
            (
                Figure(
                    "the choice over the best",
                    chosen.set_axis(names)[modes == mode],
                    mean,
                    is_limit=True,
                ),
                Figure(
                    "the best fixed variant over the choice",
                    fixed.set_axis(names)[modes == mode],
                    _OVER_FIXED,
                ),
            )
        )
        for x in of_mode:
            row = [mode, x.what, len(x.ratios), f"{x.mean():.3f}x", x.target_text()]
            last = target_text(x.worst(), most, True) if x.is_limit else "-"
            rows.append([*row, x.worst_cases(1), last])
            if x.is_limit:
                worst.append(f"The worst, {mode}: {x.worst_cases(10)}")
    head = "mode | time of | cases | geometric mean | target | worst | target"
    return [cases, f"{len(lines)} lines.", Table(head, rows), *worst]


# ---- minibatch and dispatch ---------------------------------------------------------------------

_DIRECTIONS = {"forward": (1.8, 1.0), "transposed": (1.4, 1.0)}  # targets: mean and worst


def minibatch(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "cusparse_us", "openmp_us", "rows_mean", "nnz_mean")
    baseline = f["cusparse_us"].fillna(f["openmp_us"])
    cases = table(
        "graph | N | direction | blocks | rows | nnz | us | baseline us | method | speed-up",
        *values_of(lines, "graph", "n", "direction", "blocks"),
        texts(f["rows_mean"], "{:.0f}"),
        texts(f["nnz_mean"], "{:.0f}"),
        texts(f["us"], "{:.1f}"),
        texts(baseline, "{:.1f}"),
        [line.get("baseline") or "-" for line in lines],
        texts(baseline / f["us"], "{:.2f}x"),
    )
    speedup = (baseline / f["us"]).set_axis(case_names(lines, "graph"))
    directions = np.array([line["direction"] for line in lines])
    figures = figures_of(
        Figure(name, speedup[directions == name], mean) for name, (mean, _) in _DIRECTIONS.items()
    )
    rows = [
        [
            *(x.what, len(x.ratios), f"{x.mean():.2f}x", x.target_text(), x.worst_cases(3)),
            target_text(x.worst(), _DIRECTIONS[x.what][1], False),
        ]
        for x in figures
    ]
    head = "direction | cases | geometric mean of the speed-up | target | worst | target"
    return [cases, f"{len(lines)} lines.", Table(head, rows)]


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


def dispatch(lines: list[Line]) -> Summary:
    f = numbers(lines, "us", "baseline_us")
    over = f["us"] / f["baseline_us"]
    targets = []
    for line, us, baseline in zip(lines, f["us"], f["baseline_us"]):
        most, is_over = _CALLS[line["case"]]
        holds = us <= most + (baseline if is_over else 0)  # not without a time
        what = "at most the baseline +" if is_over else "at most"
        targets.append(f"{what} {most:g} us, {'met' if holds else 'missed'}")
    cases = table(
        "case | us | baseline us | over it | target",
        *values_of(lines, "case"),
        texts(f["us"], "{:.2f}"),
        texts(f["baseline_us"], "{:.2f}"),
        texts(over, "{:.2f}x"),
        targets,
    )
    missed = sum(text.endswith("missed") for text in targets)
    met = len(lines) - missed
    summary: Summary = [cases, f"{len(lines)} cases, {met} targets met, {missed} missed."]
    for x in figures_of([Figure("", over.set_axis(case_names(lines, "case")), is_limit=True)]):
        mean = f"Time over the baseline, geometric mean: {x.mean():.2f}x"
        summary.append(f"{mean}; worst: {x.worst_cases(10)}")
    return summary


# ---- all of them ---------------------------------------------------------------------------------

# The members that a line needs, and those with their possible values.
SUITES: dict[str, tuple[Callable[[list[Line]], Summary], dict[str, dict[str, object] | None]]] = {
    "core": (core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "half": (core, dict.fromkeys(("matrix", "n", "us", "variant"))),
    "operators": (operators, dict.fromkeys(("matrix", "n", "op", "type"))),
    "papers": (papers, dict.fromkeys(("matrix", "n", "gflops", "best"))),
    "sampled": (sampled, dict.fromkeys(("matrix", "n", "strategy", "s", "us", "variant"))),
    "selection": (selection, {"matrix": None, "n": None, "mode": dict(_MODES)}),
    "minibatch": (
        minibatch,
        {"graph": None, "n": None, "us": None, "direction": dict(_DIRECTIONS)},
    ),
    "dispatch": (dispatch, {"n": None, "case": dict(_CALLS)}),
}
