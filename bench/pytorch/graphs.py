"""Graphs of the benchmarks: Matrix Market files, twins of published graphs, and random ones."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bench.results_file import Line

Indices = npt.NDArray[np.int64]
T = TypeVar("T")


class Csr(NamedTuple):
    """A square pattern in CSR: the sources `colind` of the edges that enter each node."""

    name: str
    rowptr: Indices
    colind: Indices

    @property
    def nodes(self) -> int:
        return len(self.rowptr) - 1

    def edges(self) -> Indices:
        """PyG's edge_index (2, edges): sources, then targets, which ascend."""
        targets = np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.rowptr))
        return np.stack([self.colind, targets])


def from_edges(name: str, nodes: int, targets: npt.ArrayLike, sources: npt.ArrayLike) -> Csr:
    """Make a pattern from edges in any order; repeated edges are kept."""
    rows, cols = np.asarray(targets, np.int64), np.asarray(sources, np.int64)
    order = np.lexsort((cols, rows))
    rowptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=nodes), out=rowptr[1:])
    return Csr(name, rowptr, cols[order])


def read_matrix(name: str, path: Path) -> Csr:
    """Read the pattern of a Matrix Market file, .mtx or .mtx.gz."""
    from scipy.io import mmread
    from scipy.sparse import csr_matrix

    matrix = csr_matrix(mmread(path))
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"warploom: {path}: a square matrix is needed, not one of shape {matrix.shape}"
        )
    return Csr(name, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))


def random_graph(name: str) -> Csr:
    """Make `random:NODES:DEGREE`, without repeated edges and with some isolated nodes."""
    nodes, degree = (int(part) for part in name.split(":")[1:])
    rng = np.random.default_rng(nodes + degree)
    targets = rng.integers(0, nodes - nodes // 10, nodes * degree)
    edges = np.unique(np.stack([targets, rng.integers(0, nodes, nodes * degree)]), axis=1)
    return from_edges(name, nodes, edges[0], edges[1])


def _twin_path(data: Path, name: str) -> Path:
    return data / (name.replace(":", "-").replace(",", "-").replace("=", "-") + ".mtx")


def _make_twin(name: str, command: str) -> Csr:
    """Make a twin by the program warploom, through a temporary file."""
    program = shutil.which(command)
    if program is None:
        raise FileNotFoundError(
            f"warploom: {name}: the program '{command}', which writes twins, was not found; "
            "name it with --warploom"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twin.mtx"
        subprocess.run(
            [program, "convert", name, "-o", str(path)], check=True, stdout=subprocess.DEVNULL
        )
        return read_matrix(name, path)


def load(
    name: str, data: Path = Path(), command: str = "warploom", keep: Path | None = None
) -> Csr:
    """Load a graph: `random:500:8`, `cora` (a file in `data`), or `twin:products,scale=0.1`.

    A twin is read from `data` if it is there as twin-products-scale-0.1.mtx; otherwise `command`,
    the program warploom, makes it. `keep` is a folder in which made twins are stored as .npz, which
    loads much faster than Matrix Market, and from which later runs load them.
    """
    if name.startswith("random:"):
        return random_graph(name)
    stem = _twin_path(data, name)
    for path in (
        stem,
        stem.with_suffix(".mtx.gz"),
        data / name / f"{name}.mtx.gz",
        data / f"{name}.mtx.gz",
    ):
        if path.exists():
            return read_matrix(name, path)
    if not name.startswith("twin:"):
        raise FileNotFoundError(
            f"warploom: {name}: {data} has neither {name}.mtx nor {name}/{name}.mtx.gz; "
            "name its folder with --data"
        )
    if keep is None:
        return _make_twin(name, command)
    kept = _twin_path(keep, name).with_suffix(".npz")
    if kept.exists():
        with np.load(kept) as arrays:
            return Csr(name, arrays["rowptr"], arrays["colind"].astype(np.int64))
    graph = _make_twin(name, command)
    keep.mkdir(parents=True, exist_ok=True)
    part = kept.with_name(f"part-{kept.name}")  # an interrupted run leaves no half of a twin
    np.savez(part, rowptr=graph.rowptr, colind=graph.colind.astype(np.int32))
    part.replace(kept)
    return graph


class OneGraph(Generic[T]):
    """What `make` makes of the graph at hand; one at a time, because large ones fill a GPU."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._made: dict[str, T] = {}

    def of(self, name: str) -> T:
        if name not in self._made:
            self._made.clear()
            self._made[name] = self._make(name)
        return self._made[name]


def by_graph(
    make: Callable[[str, Any], T], measure: Callable[[Any, T, Any], Line]
) -> Callable[[Any], Callable[[Any], Line]]:
    """Return what starts a suite.

    make: what is kept of the graph at hand, of its name and the settings.
    measure: the line of a case, of what is kept and the settings.
    """

    def start(settings: Any) -> Callable[[Any], Line]:
        kept = OneGraph(lambda name: make(name, settings))
        return lambda case: measure(case, kept.of(case.graph), settings)

    return start
