"""The suite "counters": hardware counters of GE-SpMM's kernels and of cuSPARSE, one JSON line each.

Tables V and VI of the paper. For each kernel Nsight Compute's ncu starts the program warploom, with
`run --variant` or `compare`, and profiles the kernel's first launch.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Callable, Iterator

from bench.pytorch.cases import Settings, Suite
from bench.results_file import Line

N = 512
# The field of a line, the metric of ncu, and the metric's unit. A sector has 32 bytes.
COUNTERS = {
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", 1),
    "load_efficiency": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", 1),
    "load_gbs": ("l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second", 1e9),
    "l2_gbs": ("lts__t_bytes.sum.per_second", 1e9),
    "dram_gbs": ("dram__bytes.sum.per_second", 1e9),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1),
    "registers": ("launch__registers_per_thread", 1),
    "us": ("gpu__time_duration.sum", 1e3),
}
# By the field of a line: the variant that has the launch shape of the paper's kernel at this N
# (bench/papers.c). cuSPARSE's kernels have no variant.
KERNELS = {
    "algorithm1": "row_naive/columns=32,rows=8,axis=units",
    "crc": "row_crc/cf=1,rows=8",
    **{f"cwm{columns}": f"row_crc/cf={columns},rows=8" for columns in (2, 4, 8)},
    "cusparse": None,
}


Case = namedtuple("Case", "matrix rows n")


def cases(settings: Settings) -> Iterator[Case]:
    for rows, n in settings.sizes:
        yield Case(f"uniform:rows={rows},d=10", rows, n)


def _reason(output: str, code: int) -> str:
    """Why ncu has no counters."""
    if "ERR_NVGPUCTRPERM" in output:
        return "the driver does not permit this user to read counters (ERR_NVGPUCTRPERM)"
    errors = (line for line in output.splitlines() if line.startswith("==ERROR== "))
    return next(errors, f"ncu profiled no kernel (exit code {code})").replace("==ERROR==", "ncu:")


def _profile(case: Case, kernel: str, settings: Settings) -> dict[str, float]:
    """The counters of a kernel. Raises RuntimeError with the reason where there are none."""
    variant = KERNELS[kernel]
    is_own = variant is not None
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--launch-count", "1"]
    command += ["--metrics", ",".join(metric for metric, _ in COUNTERS.values())]
    command += ["--kernel-name", "regex:wlm_row" if is_own else "regex:csrmm|spmm"]
    command += [settings.command, "run" if is_own else "compare", case.matrix, "-n", str(case.n)]
    command += ["--device", "host" if settings.device == "cpu" else settings.device, "--db", ""]
    done = subprocess.run(
        command + (["--variant", variant] if variant is not None else []),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    _, mark, table = done.stdout.partition('"ID",')
    lines = (mark + table).splitlines()[:3]  # names, units and values
    cells = dict(zip(*list(csv.reader(lines))[::2])) if len(lines) == 3 else {}
    found = {
        field: float(cells[metric].replace(",", "")) / unit
        for field, (metric, unit) in COUNTERS.items()
        if metric in cells
    }
    if not found:
        raise RuntimeError(_reason(done.stdout, done.returncode))
    return found


def _run_case(case: Case, settings: Settings) -> Line:
    profiles: dict[str, dict[str, float]] = {}
    failed: dict[str, str] = {}
    for kernel in KERNELS:
        try:
            profiles[kernel] = _profile(case, kernel, settings)
        except RuntimeError as error:
            failed[kernel] = str(error)
    if not profiles:
        raise RuntimeError(f"no counters: {failed['algorithm1']}")
    return {"failed": failed} | {
        field: {kernel: profiles.get(kernel, {}).get(field) for kernel in KERNELS}
        for field in COUNTERS
    }


def _start(settings: Settings) -> Callable[[Case], Line]:
    """Raise FileNotFoundError without ncu."""
    if shutil.which("ncu") is None:
        raise FileNotFoundError("counters: ncu was not found in PATH")
    return lambda case: _run_case(case, settings)


SUITE = Suite(
    {"sizes": tuple((rows, N) for rows in (16384, 65536, 262144))},
    {"sizes": ((60, N),)},
    cases,
    _start,
    ("load_sectors", "us"),
)
