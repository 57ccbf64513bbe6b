"""Draw the time of settings of `warploom.torch.calibrate` against what they lose."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from bench.reports.output import save
from warploom.torch import Sampling


def draw(path: Path, prefix: str) -> None:
    """Write PREFIX.svg and PREFIX.png."""
    save(plot(Sampling.load(path)), prefix)


def plot(setting: Sampling) -> Figure:
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
