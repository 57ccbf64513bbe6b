"""The three kinds of pictures of a report, as SVG: winners, distributions and coverage."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

WIDTH, HEIGHT = 360, 330
LEFT, RIGHT, BOTTOM, TOP = 0.17, 0.96, 0.34, 0.96  # of the plane in the picture
# Colours that most people can distinguish, and different shapes.
COLOURS = [
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    *("#882255", "#555555", "#117733", "#aa3377", "#997700", "#004488"),
]
MARKS = list(zip(COLOURS, "osDv^PXdp<>*"))
LABELS = {"mean": "non-zeros a row", "cv": "skew: CV of the row lengths", "rows": "rows"}


class Plane(NamedTuple):
    """Two axes and their ranges. The page's script finds the case under the pointer by them.

    Non-zeros per row and rows are logarithmic; CV, which has no upper bound, is log(1 + CV).
    """

    x: str
    y: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]

    def attribute(self) -> str:
        ranges = (*self.x_range, *self.y_range, LEFT, RIGHT, 1 - TOP, 1 - BOTTOM)
        return " ".join([self.x, self.y, *(f"{value:.9g}" for value in ranges)])


def placed(cases: pd.DataFrame) -> pd.DataFrame:
    """Return the cases that a logarithmic axis can show, with `mean`, their non-zeros per row."""
    shown = cases[(cases["rows"] > 0) & (cases["nnz"] > 0)]
    return shown.assign(mean=shown["nnz"] / shown["rows"])


def map_plane(cases: pd.DataFrame) -> Plane:
    shown = placed(cases)
    low, high = (shown["mean"].min(), shown["mean"].max()) if len(shown) else (1.0, 1.0)
    most = max(1.0, shown["cv"].max()) if len(shown) else 1.0
    return Plane("mean", "cv", (low / 1.6, high * 1.6), (-0.08, most * 1.2 + 0.1))


def set_ticks(axis: matplotlib.axis.Axis, ticks: Sequence[float], form: str = "{:g}") -> None:
    """Put plain numbers at these places of an axis and at no others."""
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: form.format(value)))
    axis.set_minor_locator(NullLocator())


def _set_axis(axes: Axes, which: str, name: str, limits: tuple[float, float]) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    scale = axes.set_xscale if which == "x" else axes.set_yscale
    if name == "cv":
        scale("function", functions=(lambda v: np.log10(1 + v), lambda v: 10**v - 1))
        set_ticks(axis, [0, 0.5, *(2.0**k for k in range(10))])
    elif name == "mean":
        scale("log")
        step = 2 if limits[1] / limits[0] > 200 else 1  # powers of 4 if there would be too many
        set_ticks(axis, [2.0**k for k in range(-4 + step % 2, 18, step)])
    else:
        scale("log")
    axis.set_label_text(LABELS[name])


def _begin(x_label: str = "", plane: Plane | None = None) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM))
    axes.set_axisbelow(True)
    axes.set_xlabel(x_label)
    if plane:
        _set_axis(axes, "x", plane.x, plane.x_range)
        _set_axis(axes, "y", plane.y, plane.y_range)
        axes.set_xlim(plane.x_range)
        axes.set_ylim(plane.y_range)
    return figure, axes


def _finish(figure: Figure, axes: Axes) -> str:
    """Add the legend below the axes, in columns of at most three lines, and return a data URI."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        columns, place = -(-len(handles) // 3), (0.56, 0.2)
        figure.legend(
            handles, labels, loc="upper center", bbox_to_anchor=place, ncols=columns, frameon=False
        )
    return encoded(figure)


def encoded(figure: Figure) -> str:
    """A picture as a data URI."""
    text = StringIO()
    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "warploom", "font.family": "sans-serif"}
    with matplotlib.rc_context(style):
        figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    return "data:image/svg+xml;base64," + base64.b64encode(text.getvalue().encode()).decode()


def draw_map(plane: Plane, cases: pd.DataFrame, families: Sequence[str]) -> str:
    """Draw which family wins where; `families` are those of all maps, which look the same there."""
    figure, axes = _begin(plane=plane)
    axes.grid(color="#dddddd")
    shown = placed(cases[cases["winner"].notna()])
    winners = shown["winner"].str.split("/").str[0]
    for i, family in enumerate(families):
        of_family = shown[winners == family]
        colour, shape = MARKS[i % len(MARKS)]
        if len(of_family):
            label = f"{family} ({len(of_family)})"
            x, y = of_family["mean"], of_family["cv"]
            axes.scatter(x, y, s=26, marker=shape, color=colour, label=label)
    return _finish(figure, axes)


def draw_distributions(ratios: Mapping[str, pd.Series], x_label: str) -> str:
    """Draw the share of the cases below each ratio, a curve for each title."""
    figure, axes = _begin(x_label)
    most = max([1.1, *(values.max() for values in ratios.values() if len(values))])
    scales = ((1.3, (1, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3)), (3, (1, 1.1, 1.2, 1.5, 2, 3)))
    wide = (1, 1.5, 2, 3, 5, 7, 10, 15, 20) if most <= 20 else (1, *(10.0**k for k in range(1, 9)))
    ticks = next((ticks for limit, ticks in scales if most <= limit), wide)
    axes.set_xscale("log")
    set_ticks(axes.xaxis, ticks)
    axes.set_xlim(1, most * 1.05)
    axes.set_ylim(0, 102)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.set_ylabel("of the cases are below")
    axes.grid(color="#dddddd")
    for (title, values), (colour, _), dashes in zip(ratios.items(), MARKS, ("-", "--", ":")):
        if len(values):
            x = np.concatenate([[1.0], np.sort(values)])
            y = np.linspace(0, 100, len(x))
            axes.step(x, y, where="post", color=colour, linestyle=dashes, lw=2.5, label=title)
    return _finish(figure, axes)


# ---- coverage -----------------------------------------------------------------------------------

# Buckets (core/problem/bucket.h): floor(log2 rows), floor(2 log2 mean), and classes of CV.
ROWS, MEANS, CV_EDGES = range(3, 27), range(-4, 24), (0, 0.5, 1.5, 4, 16, 64)
NEAR, FAR = 1, 3  # distances: the best kernel changes; a prediction spreads twice as far
COVERAGE_PLANES = (
    Plane("rows", "mean", (2.0**3, 2.0**27), (2.0**-2, 2.0**12)),
    Plane("mean", "cv", (2.0**-2, 2.0**12), (-0.08, 64)),
)


def shades(plane: Plane, cases: pd.DataFrame) -> np.ndarray:
    """Return for each cell of the plane 0 near a measured matrix, 1 farther away, or NaN.

    The dimension that the plane does not show counts as equal.
    """
    parts = cases["bucket"].str.extract(r"rows=(-?\d+) mean=(-?\d+) cv=(-?\d+)").astype(float)
    rows, means, classes = (parts[column].to_numpy() for column in parts)
    by_rows = plane.x == "rows"
    x = np.array(ROWS)[None, :, None] if by_rows else np.array(MEANS)[None, :, None]
    y = np.array(MEANS)[:, None, None] if by_rows else np.arange(5)[:, None, None]
    if by_rows:
        distance = np.hypot((x - rows) / 2, (y - means) / 2)
    else:
        distance = np.hypot((x - means) / 2, y - classes)
    nearest = distance.min(axis=2)
    return np.where(nearest <= NEAR, 0.0, np.where(nearest <= FAR, 1.0, np.nan))


def draw_coverage(plane: Plane, cases: pd.DataFrame) -> str:
    """Draw the measured matrices, and how far around them predictions are good."""
    figure, axes = _begin(plane=plane)
    mean_edges = [2 ** (k / 2) for k in (*MEANS, MEANS.stop)]
    row_edges = [2.0**k for k in (*ROWS, ROWS.stop)]
    edges = (row_edges, mean_edges) if plane.x == "rows" else (mean_edges, CV_EDGES)
    colours = {"near": "#7fb7d9", "farther away": "#dcebf5"}
    grounds = ListedColormap(list(colours.values()))
    axes.pcolormesh(*edges, shades(plane, cases), cmap=grounds, vmin=0, vmax=1)
    for label, colour in colours.items():
        axes.fill([], [], color=colour, label=label)
    shown = placed(cases)
    axes.scatter(shown[plane.x], shown[plane.y], s=9, color="#000000", label="measured")
    return _finish(figure, axes)
