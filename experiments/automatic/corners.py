"""A few points on full data sets: their table and their figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pcsim import plots
from pcsim.store import Result
from pcsim.variants.limit import paired

from .atlas import CONFIDENCE, Atlas
from .points import FAULTS, Point


def title(point: Point) -> str:
    """Return what is not ideal about a point, in words."""
    fault = FAULTS[point.fault]
    size = f" {point.size:g}" if point.size else ""
    layers = f", {point.depth} layers" if point.depth > 2 else ""
    return f"{fault.title}{size}{layers}"


def order(atlas: Atlas) -> list[Point]:
    """Return the points: by task, ideal ones first, by depth and presentation."""
    tasks = [atlas.setting.task, *atlas.setting.tasks]
    return sorted(
        atlas.rows,
        key=lambda p: (
            tasks.index(p.task),
            p.fault != "ideal",
            p.depth,
            p.fault,
            p.size,
            p.present,
        ),
    )


def rows(result: Result) -> list[dict[str, str]]:
    """Return a line for each point: its accuracy, and what it loses to the ideal chip."""
    atlas = Atlas.of(result)
    found = []
    for point in order(atlas):
        k, accuracy = atlas.rows[point], 100 * atlas.accuracy(point)
        ideal = atlas.loss(point)
        found.append(
            {
                "task": point.task,
                "chip": title(point),
                "T/τ_x": f"{point.present:g}",
                "rate": f"{float(result['rate'][k]):.3g}" + ("!" if result["at_end"][k] else ""),
                "accuracy, %": f"{accuracy.mean():.1f}",
                "chips": f"{accuracy.min():.1f}–{accuracy.max():.1f}",
                "lost, points": f"{100 * ideal.value:.1f} "
                f"({100 * ideal.low:.1f} to {100 * ideal.high:.1f})",
            }
        )
    return found


def draw(result: Result, path: Path) -> Path:
    """Draw the accuracy of every chip, one row for each point."""
    atlas = Atlas.of(result)
    points = order(atlas)
    figure = plots.Drawn(figsize=(7.5, 0.34 * len(points) + 1.1), layout="constrained")
    axes = figure.subplots()
    for k, point in enumerate(points):
        accuracy = 100 * atlas.accuracy(point)
        colour = plots.COLOURS[[atlas.setting.task, *atlas.setting.tasks].index(point.task)]
        of_seed = accuracy.mean(1)
        found = paired(of_seed[:, None], CONFIDENCE)
        axes.plot(accuracy.ravel(), np.full(accuracy.size, k), ".", color=colour, alpha=0.4)
        bars = [[found.value - found.low], [found.high - found.value]]
        axes.errorbar(found.value, k, xerr=bars, fmt="o", color=colour, capsize=3, markersize=5)
    names = [f"{p.task}: {title(p)}, T = {p.present:g} τ_x" for p in points]
    axes.set_yticks(range(len(points)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("test accuracy, %: chips, and mean over seeds")
    axes.grid(alpha=0.25)
    return plots.save(figure, path)
