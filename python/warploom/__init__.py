"""Autotuned sparse-dense matrix multiplication (SpMM) on GPUs and hosts.

    C = warploom.spmm(A, B)           # A sparse (SciPy, CSR arrays); B of NumPy, CuPy, JAX or torch
    plan = warploom.Plan(A, n=64)     # a matrix that is used often
    C = plan(B)

`Matrix` is the operand A; `Options` lists the messages, reductions and other options of products.
`tune` measures kernels on your matrix, `explain` says why a kernel was chosen, and `devices` lists
the GPUs and the host. `configure` names the database files of this process, and `use` exported data
that it reads besides.
"""

try:
    from warploom import _native  # noqa: F401
except ModuleNotFoundError:
    raise
except ImportError as error:
    raise ImportError(
        f"warploom: {error}; install that library, or a wheel that brings it (auditwheel repair)"
    ) from error

from warploom._library import configure, use
from warploom._library import lib as _lib
from warploom._matrix import Matrix, Stats
from warploom._plan import Plan
from warploom._problem import Options
from warploom._product import sddmm, spmm
from warploom._tuning import Candidate, Device, devices, explain, export_db, import_db, stats, tune

__version__ = "{}.{}.{}".format(*(_lib.wlm_version() // part % 100 for part in (10000, 100, 1)))

__all__ = [
    "Candidate",
    "Device",
    "Matrix",
    "Options",
    "Plan",
    "Stats",
    "configure",
    "devices",
    "explain",
    "export_db",
    "import_db",
    "sddmm",
    "spmm",
    "stats",
    "tune",
    "use",
]
