"""The map at a glance: what is lost over eight numbers of a chip, and where little is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from pathlib import Path
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from pcsim import plots
from pcsim.store import Result
from pcsim.variants.limit import Estimate, change

from .atlas import Atlas
from .drawing import decades
from .points import FAULTS, PRESENTATION, Fault
from .report import number

LEVEL = 0.03
"""What is little: a loss of accuracy."""
SHOWN = (-6.0, 30.0)
"""Points of accuracy on the axis; what loses more leaves it."""
GOOD = "#2a9d3a"


def line(axes: Axes, sizes: Sequence[float], found: Sequence[Estimate], label: str = "") -> None:
    """Draw losses with their intervals."""
    style = len(axes.containers)
    value = np.array([100 * one.value for one in found])
    bars = np.abs(100 * np.array([[one.low, one.high] for one in found]).T - value)
    axes.errorbar(
        sizes,
        value,
        bars,
        marker="osD"[style],
        markersize=4,
        color=plots.COLOURS[style],
        capsize=2,
        label=label,
    )


def room(axes: Axes, fault: Fault, sizes: Sequence[float], edge: float, unit: str) -> None:
    """Shade the sizes that lose little, and say where they end."""
    mild = sizes[0]
    axes.axvspan(*sorted((mild, edge)), color=GOOD, alpha=0.14, linewidth=0, zorder=0)
    sign = "≤" if fault.more_is_worse else "≥"
    axes.text(
        sqrt(mild * edge),
        0.93,
        f"{sign} {number(edge, fault.by_bits)} {unit}".rstrip(),
        transform=axes.get_xaxis_transform(),
        ha="center",
        va="top",
        fontsize=10,
        fontweight="bold",
        color="#17692a",
    )


def of_fault(axes: Axes, atlas: Atlas, name: str, unit: str) -> None:
    """Draw one fault, and where three points are lost."""
    points, fault = atlas.along(name), FAULTS[name]
    if not points:
        return
    sizes = [one.size for one in points]
    line(axes, sizes, [atlas.loss(one) for one in points])
    edge = atlas.boundary(points, LEVEL).value
    if isfinite(edge) and edge > 0:
        room(axes, fault, sizes, edge, unit)
    decades(axes)
    if sizes[0] > 100 or sizes[-1] > 100:
        axes.xaxis.set_major_locator(LogLocator())
    axes.set_xlabel(fault.unit)


def present(axes: Axes, atlas: Atlas) -> None:
    """Draw presentation times of an ideal chip."""
    times, lost = atlas.carrying()
    line(axes, times, lost)
    edge = change([PRESENTATION.place(t) for t in times], lost, LEVEL).value
    if isfinite(edge):
        room(axes, PRESENTATION, times, PRESENTATION.size(edge), "τ_x")
    decades(axes)
    axes.set_xlabel("time per sample, τ_x")


def bits(axes: Axes, atlas: Atlas) -> None:
    """Draw the three ways in which a weight can have few bits."""
    titles = {
        "accumulated": "accumulator",
        "stochastic": "written at random",
        "nearest": "written to nearest",
    }
    for name, title in titles.items():
        if points := atlas.along(name):
            edge = atlas.boundary(points, LEVEL).value
            known = f": {number(edge, bits=True)}" if isfinite(edge) and edge > 0 else ""
            found = [atlas.loss(one) for one in points]
            line(axes, [one.size for one in points], found, f"{title}{known}")
    axes.set_xlabel("bits of a weight")
    axes.set_xlim(1.5, 18)
    axes.set_xticks(range(2, 19, 2))
    legend(axes, "upper right")


def legend(axes: Axes, where: Literal["upper left", "upper right"]) -> None:
    """Add a legend that hides what is behind it."""
    frame = axes.legend(fontsize=8, loc=where).get_frame()
    frame.set_alpha(0.9)
    frame.set_edgecolor("white")


def depth(axes: Axes, atlas: Atlas) -> None:
    """Draw ideal chips of several depths, shown for longer and longer."""
    setting = atlas.setting
    for factor in (1.0, setting.long, setting.longest):
        time = factor * atlas.present
        known = [(d, atlas.along("ideal", present=time, depth=d)) for d in setting.depths]
        seen = [(d, atlas.loss(points[0])) for d, points in known if points]
        if seen:
            line(axes, [d for d, _ in seen], [one for _, one in seen], f"{time:g} τ_x per sample")
    axes.set_xlabel("layers of weights")
    if axes.containers:
        axes.set_xlim(1.8, 8.2)
        legend(axes, "upper left")


PANELS: dict[str, Callable[[Axes, Atlas], None]] = {
    "show each sample for": present,
    "noise of an error's read": lambda axes, atlas: of_fault(axes, atlas, "noise", ""),
    "bits, 3 points lost below": bits,
    "down steps weaker by": lambda axes, atlas: of_fault(axes, atlas, "imbalance", ""),
    "offset of the multiplier e·r": lambda axes, atlas: of_fault(axes, atlas, "offset", ""),
    "delay of errors": lambda axes, atlas: of_fault(axes, atlas, "delay", "τ_x"),
    "weights keep for": lambda axes, atlas: of_fault(axes, atlas, "retention", "τ_x"),
    "depth": depth,
}


def overview(result: Result, path: Path) -> Path:
    """Draw eight numbers of a chip, one panel each."""
    atlas = Atlas.of(result)
    figure = plots.Drawn(figsize=(11, 5.4), layout="constrained", facecolor="white")
    panels = figure.subplots(2, 4, sharey=True)
    for axes, (title, draw) in zip(panels.flat, PANELS.items(), strict=True):
        draw(axes, atlas)
        axes.axhline(100 * LEVEL, color=GOOD, linewidth=1, linestyle="--", zorder=1)
        axes.set_title(title, fontsize=11)
        axes.set_ylim(*SHOWN)
        axes.set_yticks([0, 3, 10, 20, 30])
        axes.grid(alpha=0.2)
        axes.tick_params(labelsize=9)
    for axes in panels[:, 0]:
        axes.set_ylabel("accuracy lost, points")
    return plots.save(figure, path)
