"""Accuracy and margin of Euler's step on each swept axis, the others at the best point."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pcsim.plots import COLOURS, DASHES, Drawn, plain
from pcsim.report.drawing import Drawing, quantiles
from pcsim.report.view import Array, View, field_name

LINES = 6
"""At most so many values of a second axis are told apart."""


def accuracy_along_axes(view: View) -> list[Drawing]:
    """Draw test accuracy over every axis with more than one value."""
    values = view.values("accuracy")
    if view.kind == "deploy" or values is None or not view.varied or not np.isfinite(values).any():
        return []
    figure = _panels(view, 100 * values, "test accuracy, %")
    caption = f"Test accuracy: {_how(view, values)}"
    return [Drawing("accuracy_along_axes", "Accuracy against each axis", caption, figure)]


def margins(view: View) -> list[Drawing]:
    """Draw the margin of Euler's step over every swept axis, or chip by chip for a single run."""
    values = view.values("verdict.margin")
    if view.kind == "check":  # the step of the integration is no margin of the chip
        return []
    if values is None or not np.isfinite(values).any():
        return []
    caption = "Margin 1 − λ_max/2 of Euler's joint step at the final weights, 0 is the "
    if view.varied:
        figure = _panels(view, values, "margin of Euler's step")
        for axes in figure.axes:
            axes.axhline(0, color="0.3", linewidth=0.8)
        caption += f"limit: {_how(view, values)}"
    else:
        figure = Drawn(figsize=(6, 3.2), layout="constrained")
        _chips(figure.subplots(), view, values.reshape(-1))
        caption += "limit: one point per replica, sorted."
    return [Drawing("margins", "Margin of Euler's step", caption, figure)]


def _how(view: View, values: Array) -> str:
    text = "median and 5–95 % over the replicas"
    if len(view.varied) > 1:
        best = view.cell_name(view.best_cell(values))
        text += f", axes that are not shown held at the best point ({best})"
    return text + "."


def _chips(axes: Axes, view: View, values: Array) -> None:
    """Draw one point per replica, with a colour and marker for its outcome."""
    order = np.argsort(values)
    outcome = view.outcomes()
    names = np.full(len(values), "") if outcome is None else outcome.reshape(-1)
    for k, name in enumerate(dict.fromkeys(names[order])):
        chosen = np.flatnonzero(names[order] == name)
        marker, colour = "os^Dv*"[k % 6], COLOURS[k % len(COLOURS)]
        axes.plot(chosen + 1, values[order][chosen], marker, color=colour, label=plain(str(name)))
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set(xlabel="replica, sorted", ylabel="margin of Euler's step")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    if any(names):
        axes.legend(frameon=False, fontsize=8)


def _panels(view: View, values: Array, label: str) -> Figure:
    """Draw one panel per varied axis."""
    figure = Drawn(figsize=(1.5 + 3.4 * len(view.varied), 3.4), layout="constrained")
    panels = figure.subplots(1, len(view.varied), sharey=True, squeeze=False)[0]
    for panel, axis in zip(panels, view.varied, strict=True):
        line_axis = _line_axis(view, axis)
        _lines(panel, view, values, axis, line_axis)
        panel.set_xlabel(plain(axis if len(axis) < 30 else field_name(axis)))
        panel.grid(alpha=0.25)
        if line_axis:
            panel.legend(
                frameon=False, fontsize=7, title=plain(field_name(line_axis)), title_fontsize=7
            )
    panels[0].set_ylabel(label)
    return figure


def _line_axis(view: View, axis: str) -> str | None:
    """Return another axis with few values, which is told apart by lines; text comes first."""
    others = [a for a in view.varied if a != axis and len(view.result[a]) <= LINES]
    return min(others, key=lambda a: view.result[a].dtype.kind in "iuf", default=None)


def _lines(panel: Axes, view: View, values: Array, axis: str, line_axis: str | None) -> None:
    x, numeric = _places(view, axis)
    lines = range(len(view.result[line_axis])) if line_axis else range(1)
    for k in lines:
        rows = _slice(view, values, axis, line_axis, k)
        low, middle, high = quantiles(rows, axis=-1)
        if not np.isfinite(middle).any():
            continue
        colour = COLOURS[k % len(COLOURS)]
        label = plain(view.labels(line_axis)[k]) if line_axis else None
        if numeric:
            dashes = DASHES[k % len(DASHES)]
            panel.plot(x, middle, dashes, color=colour, marker="o", markersize=3, label=label)
            panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        else:  # nothing lies between two words: points beside each other, no lines
            beside = x + 0.1 * (k - (len(lines) - 1) / 2)
            panel.plot(beside, middle, "os^Dv*"[k % 6], color=colour, markersize=4, label=label)
            panel.vlines(beside, low, high, color=colour, linewidth=1.5)
    if not numeric:
        panel.set_xticks(x, [plain(label) for label in view.labels(axis)], fontsize=8)
        panel.set_xlim(-0.5, len(x) - 0.5)
    elif (x > 0).all() and x.max() > 20 * x.min():
        panel.set_xscale("log")


def _slice(view: View, values: Array, axis: str, line_axis: str | None, k: int) -> Array:
    """Return (axis, replica) through the best point, at value k of the line axis."""
    index: list[int | slice] = list(view.best_cell(values))
    index[view.swept.index(axis)] = slice(None)
    if line_axis:
        index[view.swept.index(line_axis)] = k
    return np.asarray(values[tuple(index)])


def _places(view: View, axis: str) -> tuple[Array, bool]:
    labels = view.result[axis]
    if labels.dtype.kind in "iuf" and "+" not in axis:
        return labels.astype(float), True
    return np.arange(len(labels), dtype=float), False
