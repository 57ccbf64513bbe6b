"""Summaries and plots of results files of `warploom bench`, on hand-made lines."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import main
from bench.reports import output
from bench.reports.figure import FIGURES
from bench.reports.plot import read_points
from bench.reports.suites import SUITES

ROOT = Path(__file__).resolve().parents[3]


def core(matrix, n, us, **members):
    return {"suite": "core", "matrix": matrix, "n": n, "us": us, "variant": "v/x=1", **members}


CORE = [
    core(
        *("cora", 32, 2.0),
        rows=10,
        nnz=40,
        prepared_us=1.0,
        prepared_variant="w/x=1",
        prepare_us=30.0,
        chosen_us=3.0,
        ge_spmm_us=8.0,
        cusparse={
            "default_nopre": 6.0,
            "default": 6.0,
            "alg1_nopre": 4.0,
            "alg1": None,
            "alg3_nopre": None,
            "alg3": 0.5,
        },
        gather_gbs=9000.0,
    ),
    core(
        *("twin:reddit", 128, 2.0),
        rows=10,
        nnz=400,
        prepared_us=2.0,
        prepared_variant="v/x=1",
        prepare_us=0.0,
        chosen_us=2.0,
        ge_spmm_us=2.0,
        cusparse={"default_nopre": 16.0, "default": 20.0},
        gather_gbs=9000.0,
    ),
]


@pytest.fixture
def results(tmp_path):
    """Write lines to a results file and return its path."""

    def write(lines):
        path = tmp_path / "results.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    return write


@pytest.fixture
def summary(results, capsys):
    """Return what `python -m bench summary` prints for these lines."""

    def run(lines, *options):
        assert main(["summary", str(results(lines)), *options]) == 0
        return capsys.readouterr().out

    return run


def test_core(summary):
    text = summary(CORE)
    assert (
        "| cora | 32 | 4.0 | `v/x=1` | 2.0 | 4.0 (alg1_nopre) | 2.00x | `w/x=1` | 1.0 after 30 | "
        "0.5 (alg3) | 0.50x | 3.0 | 8.0 |" in text
    )
    # the fastest of all cuSPARSE algorithms needs no preprocessing in these results
    assert (
        "| twin:reddit | 128 | 40.0 | `v/x=1` | 2.0 | 16.0 (default_nopre) | 8.00x | same | 2.0 | "
        "16.0 (default_nopre) | 8.00x | 2.0 | 2.0 |" in text
    )
    worst = "0.50x (cora, N = 32), 8.00x (twin:reddit, N = 128) |"
    for line in (
        "2 cases.",
        "without preprocess | 2 | 4.00x | 2.00x (cora, N = 32), 8.00x (twin:reddit, N = 128) |",
        f"preprocess kept | 2 | 2.00x | {worst}",
        "default without preprocess | 2 | 4.90x | 3.00x (cora, N = 32),",  # sqrt(3 * 8)
        "our GE-SpMM (row_crc) | 2 | 2.00x | 1.00x (twin:reddit, N = 128),",
        "best unprepared | 2 | 1.22x | 1.50x (cora, N = 32), 1.00x (twin:reddit",  # the greatest
        "| N = 32 | 2.00 | 1.0 | 0.5 |",
        "9.00 TB/s unprepared, 9.00 TB/s prepared",
    ):
        assert line in text
    assert "OpenMP" not in text  # figures without cases are left out


def test_core_counts_products_of_vectors(summary):
    times = {"alg1_nopre": 8.0, "spmv_alg2_nopre": 5.0, "alg1": 7.0, "spmv_alg1": 4.0}
    text = summary([core("m", 1, 2.0, cusparse=times)])
    assert "5.0 (spmv_alg2_nopre)" in text
    assert "4.0 (spmv_alg1)" in text


def test_core_on_a_host(summary):
    rivals = {"openmp": 4.0, "graphblas": None}
    text = summary([core("m", 8, 2.0, cusparse=None, host_rivals=rivals)])
    assert "over a plain OpenMP loop | 1 | 2.00x | 2.00x (m, N = 8) |" in text
    assert "GraphBLAS" not in text
    assert "| m | 8 | - | `v/x=1` | 2.0 | - | - | `-` | - | - | - | - | - |" in text


def test_json(summary):
    found = json.loads(summary(CORE, "--json"))
    assert found["tables"][0]["titles"][0] == "matrix"
    assert found["tables"][0]["rows"][1][:2] == ["twin:reddit", 128]
    assert found["lines"][0] == "2 cases."


def test_the_worst_five_are_listed(summary):
    text = summary([core(f"m{us}", 1, 1.0, ge_spmm_us=float(us)) for us in (7, 3, 9, 2, 8, 4, 6)])
    worst = [f"{us}.00x (m{us}, N = 1)" for us in (2, 3, 4, 6, 7)]
    assert f"| {', '.join(worst)} |" in text


def test_selection(summary):
    def choice(n, mode, us, fixed):
        line = {"suite": "selection", "matrix": "m", "n": n, "mode": mode, "us": us, "best_us": 2.0}
        line |= {"best_fixed_us": fixed, "variant": "v/x=1", "best_variant": "w"}
        return {**line, "source": "model", "distance": 0.1}

    text = summary(
        [
            choice(16, "tuned", 2.0, 4.0),
            choice(32, "tuned", 2.42, None),
            choice(16, "loo", 2.1, 2.1),
            choice(16, "rule", 2.5, 4.0),
            choice(32, "rule", None, 4.0),
        ]
    )
    over, fixed = "the choice over the best", "the best fixed variant over the choice"
    for line in (
        "| m | 16 | tuned | model | `v/x=1` | 2.0 | 1.00x | 2.00x | `w` |",
        f"| tuned | {over} | 2 | 1.100x | at most 1.02x, missed | 1.21x (m, N = 32) | at most "
        "1.10x, missed |",
        f"| tuned | {fixed} | 1 | 2.000x | at least 1.20x, met |",
        f"| loo | {over} | 1 | 1.050x | at most 1.08x, met | 1.05x (m, N = 16) | at most 1.35x, "
        "met |",
        f"| loo | {fixed} | 1 | 1.000x | at least 1.20x, missed |",
        f"| rule | {over} | 1 | 1.250x | at most 1.25x, met | 1.25x (m, N = 16) | - |",
        "The worst, tuned: 1.21x (m, N = 32), 1.00x (m, N = 16)\n",
    ):
        assert line in text


def test_operators(summary):
    def line(matrix, n, op, kind, us, **members):
        found = {"suite": "operators", "matrix": matrix, "rows": 10, "cols": 100000, "nnz": 100}
        found |= {"n": n, "op": op, "type": kind, "us": us, "variant": "v/x=1", "sum_us": 2.0}
        return {**found, **members}

    text = summary(
        [
            line("a", 32, "sum", "f32", 2.0, cusparse={"alg1_nopre": 6.0}),
            line("a", 32, "max", "f32", 2.0),
            line("a", 64, "max", "f32", 2.42),
            line("a", 32, "custom", "f32", 2.02),
            line("a", 32, "max_arg", "f32", 2.6),
            # B is small
            line("a", 32, "sum", "f16", 9.0, cusparse={"default_nopre": 18.0, "alg2": 9.0}),
            line("a", 64, "sum", "f16", 1.0, cusparse={"default_nopre": 8.0, "alg2_nopre": None}),
            line("a", 32, "copy_b", "f32", 1.0, cusparse={"alg3_nopre": 1.2}),
            line("a", 64, "copy_b", "f32", 4.0, cusparse={"alg3_nopre": 99}),  # wide
            line("a", 32, "sddmm", "f32", 1.0, cusparse=None, cusparse_sddmm_us=4.0),
            line("b", 32, "sddmm", "f32", 1.0, cusparse=None, cusparse_sddmm_us=None),
            line("b", 32, "min", "f32", None),
        ]
    )
    for found in (
        "| a | 32 | 10.0 | sum | f32 | 2.0 | `v/x=1` | 1.00x | 6.0 | 3.00x |",
        "| b | 32 | - | min | f32 | - | failed |",
        "12 lines, of which 1 failed.",
        "| max over sum | 2 | 1.100x | at most 1.05x, missed | 1.21x (a, N = 64), 1.00x (a, N = 32)"
        " |",
        "| user-defined sum of products over sum | 1 | 1.010x | at most 1.02x, met |",
        "| max with arg over sum | 1 | 1.300x | at most 1.35x, met |",
        "| f16 over f32, N >= 64 and B > 8 MB | 1 | 0.500x | at most 0.65x, met | 0.50x (a, N = 64)"
        " |",
        "| cuSPARSE f16 without preprocess, over ours | 2 | 4.000x | at least 1.50x, met | 2.00x",
        "| cuSPARSE f16, the best of all ways, over ours | 2 | 2.828x | - | 1.00x (a, N = 32)",
        "| copy_b over mul | 2 | 1.000x | at most 1.00x, met | 2.00x (a, N = 64)",
        "and N <= 32 | 1 | 1.200x | at least 1.30x, missed | 1.20x (a, N = 32) |",
        "| cusparseSDDMM over sddmm | 1 | 4.000x | at least 1.50x, met |",
    ):
        assert found in text
    assert "bf16" not in text  # types without results do not appear


def test_papers(summary):
    def line(matrix, n, best, *gflops):
        found = {"suite": "papers", "matrix": matrix, "rows": 10, "nnz": 40, "n": n, "best": best}
        names = ("algorithm1", "crc", "cwm2", "cwm4", "cwm8")
        return {**found, "gflops": dict(zip(names, gflops, strict=True))}

    text = summary(
        [
            line("a", 16, "crc", 10.0, 20.0, None, None, None),
            line("a", 64, "cwm4", 10.0, 5.0, 7.5, 10, 2.5),
            line("b", 64, "cwm2", 10.0, 20.0, 30, 10, 10),
        ]
    )
    for found in (
        "| a | 10 | 4.0 | 16 | 10.0 | 20.0 | - | - | - | crc | 2.00x |",
        "| b | 10 | 4.0 | 64 | 10.0 | 20.0 | 30.0 | 10.0 | 10.0 | cwm2 | 3.00x |",
        "3 cases",
        "| 16 | 2.00x | - | - | - | - |",
        "| 64 | 1.00x | 1.50x | 1.00x | 0.50x | 1.50x |",
        "| all | 1.26x | 1.50x | 1.00x | 0.50x | 1.50x |",  # cube root of 2 * 0.5 * 2
    ):
        assert found in text
    found = json.loads(summary([line("a", 16, "crc", 10.0, 20.0, None, None, None)], "--json"))
    assert [row[0] for row in found["tables"][1]["rows"]] == [16, "all"]


def test_sampled(summary):
    def line(matrix, s, **members):
        found = {"suite": "sampled", "matrix": matrix, "n": 128, "strategy": "bucket", "s": s}
        return {**found, "us": 2.0, "variant": "v/x=1", **members}

    a = {"kept_share": 0.25, "best_cusparse_us": 8.0, "best_cusparse": "alg2"}
    b = {"kept_share": 0.5, "best_cusparse_us": 2.0, "best_cusparse": "alg3"}
    text = summary(
        [
            line("a", 16, **a, exact_us=1.0, presampled_us=3.0),
            line("b", 32, **b, presampled_us=None),
        ]
    )
    for found in (
        "| a | 128 | bucket | 16 | 25.0 % | 2.0 | `v/x=1` | 8.0 (alg2) | 4.00x | 1.0 | 0.50x | 3.0 "
        "| 1.50x |",
        "| 2.0 (alg3) | 1.00x | - | - | - | - |",
        "full matrix: 2.00x, 1.00x (b, S = 32, N = 128) to 4.00x (a, S = 16, N = 128)",
    ):
        assert found in text


def test_batch(summary):
    def products(matrix, us, loop, cusparse):
        line = {"suite": "batch", "matrix": matrix, "n": 32, "batch": 64, "us": us, "variant": "v"}
        return {**line, "loop_us": loop, "cusparse_us": cusparse}

    text = summary([products("a", 10.0, 90.0, 20.0), products("b", 10.0, 40.0, 5.0)])
    for found in (
        "| a | 32 | 64 | 10.0 | 90.0 | 20.0 | `v` |",
        "| a loop of calls | 2 | 6.00x | at least 1.50x, met | 4.00x (b, N = 32)",
        "| cuSPARSE's strided batch | 2 | 1.00x | at least 1.50x, missed | 0.50x (b, N = 32)",
    ):
        assert found in text
    assert "| a | 32 | 64 | 10.0 | 90.0 | - | `v` |" in summary([products("a", 10.0, 90.0, None)])


def test_minibatch(summary):
    def blocks(n, direction, us, cusparse, openmp=None):
        line = {"suite": "minibatch", "graph": "g", "n": n, "direction": direction, "us": us}
        line |= {"cusparse_us": cusparse, "openmp_us": openmp, "baseline": "alg2", "blocks": 102}
        return {**line, "rows_mean": 10.0, "nnz_mean": 20.0}

    text = summary(
        [
            blocks(64, "forward", 10.0, 40.0),
            blocks(256, "forward", 10.0, 9.0),
            blocks(64, "transposed", 10.0, 12.0),
            blocks(256, "transposed", 10.0, None),
        ]
    )
    for found in (
        "| g | 64 | forward | 102 | 10 | 20 | 10.0 | 40.0 | alg2 | 4.00x |",
        "| g | 256 | transposed | 102 | 10 | 20 | 10.0 | - | alg2 | - |",
        "| forward | 2 | 1.90x | at least 1.80x, met | 0.90x (g, N = 256), 4.00x (g, N = 64) | "
        "at least 1.00x, missed |",
        "| transposed | 1 | 1.20x | at least 1.40x, missed | 1.20x (g, N = 64) | at least 1.00x, "
        "met |",
    ):
        assert found in text
    assert "| 8.0 | alg2 | 2.00x |" in summary([blocks(8, "forward", 4.0, None, 8.0)])  # a host


def test_dispatch(summary):
    def call(name, us, baseline=None):
        return {"suite": "dispatch", "n": 64, "case": name, "us": us, "baseline_us": baseline}

    text = summary(
        [
            call("context_create", 20001.0),
            call("rebind", 0.5),
            call("spmm_new_matrix", 6.0, 3.0),
            call("execute", 2.4, 2.0),
            call("plan_known", None),
        ]
    )
    for found in (
        "| context_create | 20001.00 | - | - | at most 20000 us, missed |",
        "| rebind | 0.50 | - | - | at most 0.5 us, met |",
        "| spmm_new_matrix | 6.00 | 3.00 | 2.00x | at most the baseline + 3 us, met |",
        "| execute | 2.40 | 2.00 | 1.20x | at most the baseline + 0.3 us, missed |",
        "| plan_known | - | - | - | at most 5 us, missed |",
        "5 cases, 2 targets met, 3 missed.",
        "geometric mean: 1.55x; worst: 2.00x (spmm_new_matrix, N = 64), 1.20x (execute, N = 64)",
    ):
        assert found in text


@pytest.mark.parametrize(
    "line",
    [
        {"suite": "core"},
        {"suite": "core", "matrix": "m", "n": 8, "us": None, "variant": "v"},
        {"suite": "half", "matrix": "m", "n": 8},
        {"suite": "operators"},
        {"suite": "papers", "matrix": "a", "n": 16},
        {"suite": "sampled", "matrix": "a", "n": 16, "us": 1.0},
        {"suite": "selection", "matrix": "m", "n": 8, "mode": "guess"},
        {"suite": "minibatch"},
        {"suite": "dispatch", "n": 8, "case": "nap"},
    ],
)
def test_other_lines_are_named(results, line):
    with pytest.raises(ValueError, match=r"results\.jsonl:1: is no line of suite \w+: it needs"):
        main(["summary", str(results([line]))])


def bench(*arguments, **options):
    command = [sys.executable, "-m", "bench", *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120, **options
    )


def test_errors_are_one_line(tmp_path):
    notes = tmp_path / "notes"
    notes.write_text("{}\nprecious\n{}\n")
    missing = tmp_path / "missing.jsonl"
    for path, says in ((missing, str(missing)), (notes, "notes:2: is no line of a results file")):
        done = bench("summary", path)
        assert done.returncode == 1
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_pipe_is_read_and_names_are_shown_without_control_characters():
    line = json.dumps(core("evil\x1b[2J\nname", 8, 1.0)) + "\n"
    done = bench("summary", "/dev/stdin", input=line)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "| evil?[2J?name | 8 |" in done.stdout


def test_points_of_the_plot(results):
    unprepared, prepared = (
        list(points.itertuples(index=False, name=None)) for points in read_points(results(CORE))
    )
    assert unprepared == [(4, 32, 2.0), (40, 128, 8.0)]  # non-zeros per row, N, speed-up
    assert prepared == [(4, 32, 0.5), (40, 128, 8.0)]


def test_plot(results, tmp_path):
    prefix = tmp_path / "it's"
    assert main(["plot", str(results(CORE)), "-o", str(prefix)]) == 0
    svg, png = (Path(f"{prefix}.{ending}").read_bytes() for ending in ("svg", "png"))
    assert svg.startswith(b"<?xml") and len(svg) > 1000
    assert png.startswith(b"\x89PNG") and len(png) > 1000
    for lines in ([core("m", 8, 1.0)], [], [{"suite": "dispatch", "n": 8, "case": "execute"}]):
        with pytest.raises(ValueError, match=r"results\.jsonl: "):
            main(["plot", str(results(lines)), "-o", str(prefix)])
    assert Path(f"{prefix}.svg").read_bytes() == svg


def test_the_list_of_figures():
    suites = set()
    with FIGURES.open() as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            suites.add(row["suite"])
            assert row["worst"] in ("least", "most") and row["time"] and row["over"]
            assert all(float(row[key] or 1) > 0 for key in ("target", "limit"))
    assert suites - SUITES.keys() == {
        *("torch", "gnn", "attention", "messages", "layers", "compiled", "distributed"),
        *("scatter", "jax"),
    }


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(_):
        raise OSError("no space is left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        output.write_whole(path, b"new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    output.write_whole(path, b"new")
    assert path.read_text() == "new"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
