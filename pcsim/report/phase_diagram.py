"""The phase diagram: accuracy and the share that converged over two swept axes."""

from __future__ import annotations

from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh

from pcsim.plots import Drawn, plain
from pcsim.report.drawing import Drawing, mean
from pcsim.report.view import Array, View, field_name

PANELS = 6
"""At most so many values of the other axes stand side by side."""


def phase_diagrams(view: View) -> list[Drawing]:
    """Draw one diagram over the two longest swept axes, one column per value of the others."""
    plane = plane_axes(view)
    if plane is None:
        return []
    rows: list[tuple[str, Array, tuple[float, float] | None]] = []
    accuracy = view.values("accuracy")
    if accuracy is not None:
        rows.append(("mean test accuracy, %", 100 * mean(accuracy, -1), None))
    converged = view.converged()
    if converged is not None:
        rows.append(("chips that converged, %", 100 * converged, (0, 100)))
    rows = [row for row in rows if np.isfinite(row[1]).any()]
    if not rows:
        return []
    facets = _facets(view, plane)
    hidden, facets = len(facets) - PANELS, facets[:PANELS]
    width, height = 1.6 + 3.2 * len(facets), 0.4 + 3.0 * len(rows)
    figure = Drawn(figsize=(width, height), layout="constrained")
    panels = figure.subplots(len(rows), len(facets), squeeze=False)
    for r, (text, values, limits) in enumerate(rows):
        low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
        for c, (facet, index) in enumerate(facets):
            grid = _oriented(view, plane, values[index])
            image = _heat(panels[r, c], grid, low, high)
            _ticks(panels[r, c], view, plane, last_row=r == len(rows) - 1, first=c == 0)
            if converged is not None:
                _outline(panels[r, c], _oriented(view, plane, converged[index]) >= 0.5)
            if facet and r == 0:
                panels[r, c].set_title(plain(facet), fontsize=10)
        figure.colorbar(image, ax=panels[r, :].tolist(), label=text, shrink=0.9)
    y, x = plane
    caption = f"Means over the replicas of each point, over {field_name(y)} and {field_name(x)}."
    if converged is not None:
        caption += " The line encloses the points where at least half of the replicas converged."
    caption += " Hatched: no number."
    if hidden > 0:
        caption += f" {hidden} more combinations of the other axes are not shown."
    return [Drawing("phase_diagram", "Phase diagram", caption, figure)]


def plane_axes(view: View) -> tuple[str, str] | None:
    """Return the two axes (y, x) of the diagram: those with most values, in the sweep's order."""
    by_length = sorted(view.varied, key=lambda axis: (_is_text(view, axis), -_length(view, axis)))
    if len(by_length) < 2 or _is_text(view, by_length[1]):
        return None
    y, x = sorted(by_length[:2], key=view.swept.index)
    return y, x


def _is_text(view: View, axis: str) -> bool:
    return view.result[axis].dtype.kind not in "iuf"


def _length(view: View, axis: str) -> int:
    return len(view.result[axis])


def _facets(view: View, plane: tuple[str, str]) -> list[tuple[str, tuple[int | slice, ...]]]:
    """Return title and index of each panel; the plane's axes are whole, the others fixed."""
    ranges: list[list[int | slice]] = [
        [slice(None)] if axis in plane else list(range(_length(view, axis))) for axis in view.swept
    ]
    panels = []
    for index in product(*ranges):
        words = [
            f"{field_name(axis)} {view.labels(axis)[k]}"
            for axis, k in zip(view.swept, index, strict=True)
            if isinstance(k, int) and axis in view.varied
        ]
        panels.append((", ".join(words), index))
    return panels


def _oriented(view: View, plane: tuple[str, str], grid: Array) -> Array:
    """Return (y, x) whatever the order of the axes in the sweep."""
    return grid if view.swept.index(plane[0]) < view.swept.index(plane[1]) else grid.T


def _heat(axes: Axes, grid: Array, low: float, high: float) -> QuadMesh:
    """Draw cells with their numbers; cells without one stay hatched."""
    axes.set_facecolor("0.92")
    axes.patch.set(hatch="///", edgecolor="0.75")
    span = (low, high) if high > low else (low - 0.5, high + 0.5)
    image = axes.pcolormesh(grid, cmap="cividis", vmin=span[0], vmax=span[1], edgecolors="none")
    if grid.size <= 120:
        for (row, column), value in np.ndenumerate(grid):
            if np.isfinite(value):
                dark = (value - span[0]) / (span[1] - span[0]) < 0.5
                axes.text(
                    column + 0.5,
                    row + 0.5,
                    f"{value:.3g}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
    return image


def _outline(axes: Axes, inside: Array) -> None:
    """Draw the border between cells that are inside and cells that are not."""
    rows, columns = inside.shape
    for row, column in np.argwhere(inside):
        sides = {
            (row - 1, column): ((column, column + 1), (row, row)),
            (row + 1, column): ((column, column + 1), (row + 1, row + 1)),
            (row, column - 1): ((column, column), (row, row + 1)),
            (row, column + 1): ((column + 1, column + 1), (row, row + 1)),
        }
        for (r, c), (x, y) in sides.items():
            within = 0 <= r < rows and 0 <= c < columns
            if within and not inside[r, c]:
                axes.plot(x, y, color="#D55E00", linewidth=2.5, solid_capstyle="projecting")


def _labels(view: View, axis: str) -> list[str]:
    return [plain(label) for label in view.labels(axis)]


def _ticks(axes: Axes, view: View, plane: tuple[str, str], *, last_row: bool, first: bool) -> None:
    y, x = plane
    axes.set_xticks(np.arange(_length(view, x)) + 0.5, _labels(view, x), fontsize=7)
    axes.set_yticks(np.arange(_length(view, y)) + 0.5, _labels(view, y), fontsize=7)
    if _length(view, x) > 5:
        axes.tick_params(axis="x", rotation=45)
    if last_row:
        axes.set_xlabel(plain(field_name(x)))
    if first:
        axes.set_ylabel(plain(field_name(y)))
