"""Draw the speed-ups of suite core over cuSPARSE, against non-zeros per row and against N, and the
time of settings of `warploom.torch.calibrate` against what they lose.

A case has two points: unprepared over cuSPARSE's best way without preprocess, and prepared over the
best of all ways.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.reports.columns import numbers
from bench.reports.figure import geometric_mean
from bench.reports.output import save
from bench.reports.pictures import set_ticks
from bench.reports.suites import add_speedups, frame_of_suite
from bench.reports.summary import suite_of
from bench.results_file import read_results

# Label, colour, and a factor by which points stand beside the tick of their N.
SERIES = (
    ("unprepared, over the best cuSPARSE without preprocess", "#0072b2", 0.86),
    ("prepared, over the best cuSPARSE of all", "#d55e00", 1.16),
)
TICKS = (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128)


def read_points(path: Path) -> list[pd.DataFrame]:
    """Return columns nnz_a_row, n and speed_up for each of SERIES."""
    lines = read_results(path)
    name = suite_of(path, lines)
    if name != "core":
        raise ValueError(f"{path}: holds suite {name}; only suite core is drawn")
    if lines:
        f = frame_of_suite(name, lines)
        add_speedups(f)
        size = numbers(f, "nnz", "rows")
        f["nnz_a_row"] = size["nnz"] / size["rows"]
        points = [
            f[f[speed] > 0][["nnz_a_row", "n", speed]].set_axis(
                ["nnz_a_row", "n", "speed_up"], axis=1
            )
            for speed in ("plain_over", "prepared_over")
        ]
    if not lines or all(frame.empty for frame in points):
        raise ValueError(f"{path}: no line has a time of cuSPARSE beside ours")
    return points


def _scatter(axes: Axes, x: pd.Series, y: pd.Series, colour: str, label: str = "") -> None:
    axes.scatter(x, y, s=16, facecolors="none", edgecolors=colour, label=label)


def _draw_cases(axes: Axes, points: list[pd.DataFrame]) -> None:
    for (label, colour, _), frame in zip(SERIES, points):
        _scatter(axes, frame["nnz_a_row"], frame["speed_up"], colour, label)
    axes.set_xlabel("non-zeros a row")
    axes.legend(loc="upper left", fontsize="small")


def _draw_widths(axes: Axes, points: list[pd.DataFrame], top: float) -> None:
    widths = sorted({n for frame in points for n in frame["n"]})
    for (_, colour, shift), frame in zip(SERIES, points):
        _scatter(axes, frame["n"] * shift, frame["speed_up"], colour)
        for n, mean in frame.groupby("n")["speed_up"].agg(geometric_mean).items():
            x = float(n) * shift
            axes.plot([x * 0.9, x / 0.9], [mean, mean], color=colour, linewidth=3)
            axes.text(x, top, f"{mean:.2f}", color=colour, ha="center", fontsize="small")
    axes.set_xlabel("N, columns of B (bar and number: geometric mean)")
    axes.set_xlim(widths[0] / 1.5, widths[-1] * 1.5)
    set_ticks(axes.xaxis, widths)


def _plot_core(path: Path) -> Figure:
    points = read_points(path)
    speeds = pd.concat([frame["speed_up"] for frame in points])
    low, high = min(1.0, speeds.min()), max(1.0, speeds.max())
    figure = Figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(low / 1.2, high * 1.8)
        set_ticks(axes.yaxis, TICKS, "{:g}x")
        axes.set_ylabel("speed-up over cuSPARSE")
        axes.grid(axis="y", color="#dddddd")
        axes.axhline(1, color="#666666", linestyle="--")
    _draw_cases(left, points)
    _draw_widths(right, points, high * 1.45)
    return figure


def load_sampling(path: Path) -> Any:
    module: Any = importlib.import_module("warploom.torch")  # which needs torch
    return module.Sampling.load(path)


def plot_sampling(setting: Any) -> Figure:
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    chosen = {name: layer.sample for name, layer in setting.layers.items()}
    for one in setting.tried:
        is_chosen = one.samples == chosen
        colour = "#d55e00" if is_chosen else "#0072b2"
        filled = colour if is_chosen else "none"
        axes.scatter(one.us / 1e3, 100 * one.loss, s=40, facecolors=filled, edgecolors=colour)
        widths = {str(x.width) if x else "all" for x in one.samples.values()}
        label = f"S = {', '.join(sorted(widths))}"
        axes.text(one.us / 1e3, 100 * one.loss, f"  {label}", color=colour, fontsize="small")
    budget = 100 * setting.budget
    axes.axhline(budget, color="#666666", linestyle="--", label=f"budget, {budget:g} points")
    axes.set_xlabel("time of one inference, ms")
    axes.set_ylabel(f"mean loss of {setting.metric}, points")
    axes.set_xlim(left=0)
    axes.grid(color="#dddddd")
    axes.legend(loc="upper right")
    return figure


def draw(path: Path, prefix: str) -> None:
    """Write PREFIX.svg and PREFIX.png."""
    is_sampling = path.suffix == ".json"
    save(plot_sampling(load_sampling(path)) if is_sampling else _plot_core(path), prefix)
