"""What a product and a training step are expected to take on several GPUs of one host.

The model has the times of one GPU, the bytes that travel, and three numbers of the link, fitted to
all-gathers of two and four GPUs (bench/suites/several_gpus.tsv: milliseconds on H200s, 18 NVLinks,
from bench/results/h200x4/distributed.jsonl):

    gather(p)    latency + bytes of other GPUs' rows / bandwidth + bytes of own rows / sending
    product(p)   one GPU's time / p, times what half the rows took over half the time
    rows         gather + product
    near         rows, and C is written and read once more, less what overlaps: half of the gather
                 or of the product with the edges from own nodes, which are 1 / p of all
    features     two exchanges of a GPU's own rows, one GPU's time / p, and four copies of own rows

NCCL's kernels take multiprocessors from the product beside them, so no more than half overlaps.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.results_file import Line

MEASURED = Path(__file__).parents[1] / "suites" / "several_gpus.tsv"
WAYS = ("rows", "near", "features")
MOST_ERROR = 0.15
GPUS = (1, 2, 4, 8)
OVERLAP = 0.5  # of the exchange and the product beside it, fitted to `near`

FLOAT = 4  # bytes
MEMORY_SPEED = 4.8e12  # bytes/s of an H200, by its data sheet
DENSE_SPEED = 58e12  # flop/s of float32 matrix products, fitted to steps of one GPU
LAYERS = 3
PASSES = 12  # over (nodes, columns) by bias, activation, loss and their gradients, in a layer
TENSORS = 12  # of (nodes, columns) that a step of three layers keeps
EDGE_BYTES = 16  # colind and values, of A and of its transpose


class Measured(NamedTuple):
    """A row of MEASURED; times in ms. part: the product of 1 / gpus of the rows. ways: those that
    were tried. step: of a GCN, with the quickest way."""

    gpus: int
    nodes: int
    edges: int
    columns: int
    one: float
    gather: float
    part: float
    one_step: float
    step: float
    ways: dict[str, float]

    def operand(self, share: float = 1.0) -> float:
        """Bytes of a share of B's rows."""
        return share * self.nodes * self.columns * FLOAT


class Link(NamedTuple):
    """latency: ms. bandwidth: bytes/ms that a GPU receives. sending: bytes/ms of its own rows."""

    latency: float
    bandwidth: float
    sending: float

    def gather(self, case: Measured, gpus: int) -> float:
        """ms of an all-gather, or of a reduce-scatter, of B."""
        if gpus == 1:
            return 0.0
        own, others = case.operand(1 / gpus), case.operand((gpus - 1) / gpus)
        return self.latency + others / self.bandwidth + own / self.sending


def read_measured(path: Path = MEASURED) -> list[Measured]:
    """Read the measured times."""
    fields = ("gpus", "nodes", "edges", "columns", "one_ms", "gather_ms", "part_ms")
    with path.open() as file:
        return [
            Measured._make(
                [
                    *(json.loads(row[name]) for name in (*fields, "one_step_ms", "step_ms")),
                    {way: float(row[f"{way}_ms"]) for way in WAYS if row[f"{way}_ms"]},
                ]
            )
            for row in csv.DictReader(file, delimiter="\t")
        ]


def fit_link(cases: list[Measured]) -> Link:
    """The link whose gathers have the least squares of relative errors."""
    terms = np.array(
        [[1, case.operand(1 - 1 / case.gpus), case.operand(1 / case.gpus)] for case in cases]
    )
    times = np.array([case.gather for case in cases])
    scaled = terms / times[:, None]
    latency, received, sent = np.linalg.lstsq(scaled, np.ones(len(cases)), rcond=None)[0]
    return Link(float(latency), float(1 / received), float(1 / sent))


def _split(case: Measured, gpus: int) -> float:
    """ms of the product of 1 / gpus of the rows."""
    return case.one / gpus * (case.gpus * case.part / case.one)


def product(case: Measured, link: Link, way: str, gpus: int) -> float:
    """ms of a product that this many GPUs share."""
    if gpus == 1:
        return case.one
    gather, split = link.gather(case, gpus), _split(case, gpus)
    own = case.operand(1 / gpus)
    per_ms = MEMORY_SPEED * 1e-3
    if way == "rows":
        return gather + split
    if way == "near":
        return gather + split - OVERLAP * min(gather, split / gpus) + 2 * own / per_ms
    turn = link.latency + own * (gpus - 1) / gpus / link.bandwidth
    return 2 * turn + case.one / gpus + 8 * own / per_ms


def step(case: Measured, link: Link, way: str, gpus: int) -> float:
    """ms of a step of a GCN whose layers all have `columns` outputs: the products, forward and
    backward, and the dense part."""
    sparse = 2 * LAYERS * product(case, link, way, gpus)
    flop = 3 * LAYERS * 2 * case.nodes * case.columns**2 / gpus
    passes = LAYERS * PASSES * case.operand(1 / gpus)
    return sparse + 1e3 * (flop / DENSE_SPEED + passes / MEMORY_SPEED)


def memory(case: Measured, way: str, gpus: int) -> float:
    """Bytes of a GPU in that step: own rows, edges, and one operand and its gradient as they are
    multiplied where there are other GPUs."""
    has_all_edges = gpus > 1 and way == "features"
    multiplied = 1 / gpus if has_all_edges else float(gpus > 1)
    edges = EDGE_BYTES * case.edges * (1 / gpus + has_all_edges)
    return TENSORS * case.operand(1 / gpus) + 2 * case.operand(multiplied) + edges


def lines(cases: list[Measured]) -> Iterator[Line]:
    """The check of each measured time, then the calculated steps."""
    link = fit_link(cases)
    fitted = {"latency_us": round(1e3 * link.latency), "link_gbs": round(link.bandwidth * 1e-6)}
    for case in cases:
        way = min(case.ways, key=lambda name: case.ways[name])
        found = {name: product(case, link, name, case.gpus) for name in case.ways}
        measured = {**case.ways, "one step": case.one_step, "step": case.step}
        found["one step"] = step(case, link, "rows", 1)
        found["step"] = step(case, link, way, case.gpus)
        for name, right in measured.items():
            yield {
                "nodes": case.nodes, "columns": case.columns, "gpus": case.gpus, "way": name,
                "measured_ms": right, "model_ms": round(found[name], 2),
                "error": round(found[name] / right - 1, 3), **fitted,
            }  # fmt: skip
    for case in cases:
        if case.gpus != 2:
            continue
        alone = step(case, link, "rows", 1)
        for gpus in GPUS:
            times = {way: product(case, link, way, gpus) for way in WAYS}
            way = min(WAYS, key=lambda name: times[name])
            ms = step(case, link, way, gpus)
            yield {
                "nodes": case.nodes, "columns": case.columns, "gpus": gpus, "way": way,
                "product_ms": {name: round(t, 2) for name, t in times.items()},
                "step_ms": round(ms, 1), "speedup": round(alone / ms, 2),
                "memory_gb": round(memory(case, way, gpus) * 1e-9, 1),
            }  # fmt: skip


def run(out: Path | None) -> int:
    """Write the lines to a new file. Returns how many measured times the model misses."""
    made = list(lines(read_measured()))
    text = "".join(json.dumps(line) + "\n" for line in made)
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text)
    return sum(abs(line.get("error", 0)) > MOST_ERROR for line in made)
