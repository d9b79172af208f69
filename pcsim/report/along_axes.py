"""Accuracy and stability margin against each swept axis."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pcsim.plots import COLOURS, DASHES
from pcsim.report.drawing import Drawing, quantiles
from pcsim.report.view import Array, View, field_name

LINES = 6


def accuracy_along_axes(view: View) -> list[Drawing]:
    """Draw test accuracy over every axis with more than one value."""
    values = view.values("accuracy")
    if values is None or not view.varied or not np.isfinite(values).any():
        return []
    figure, lines = _panels(view, 100 * values, "test accuracy, %")
    caption = (
        f"Median and 5–95 % band over the replicas{_over(view)}; one line per value of {lines}."
        if lines
        else f"Median and 5–95 % band over the replicas{_over(view)}."
    )
    return [Drawing("accuracy_along_axes", "Accuracy against each axis", caption, figure)]


def margins(view: View) -> list[Drawing]:
    """Draw the stability margin over every swept axis, or chip by chip for a single run."""
    values = view.values("verdict.margin")
    if values is None or not np.isfinite(values).any():
        return []
    about = (
        "Stability margin 1 − λ_max/2 of Euler's joint step at the final weights: 0 is the limit"
    )
    if view.varied:
        figure, lines = _panels(view, values, "stability margin")
        which = f"; one line per value of {lines}" if lines else ""
        for axes in figure.axes:
            axes.axhline(0, color="0.3", linewidth=0.8)
        caption = f"{about}. Median and 5–95 % band{_over(view)}{which}."
    else:
        figure = Figure(figsize=(6, 3.2), layout="constrained")
        _chips(figure.subplots(), view, values.reshape(-1))
        caption = f"{about}. One point per replica, sorted."
    return [Drawing("margins", "Stability margin", caption, figure)]


def _chips(axes: Axes, view: View, values: Array) -> None:
    """Draw one point per replica, with a colour and marker for its outcome."""
    order = np.argsort(values)
    outcome = view.outcomes()
    names = np.full(len(values), "") if outcome is None else outcome.reshape(-1)
    for k, name in enumerate(dict.fromkeys(names[order])):
        chosen = np.flatnonzero(names[order] == name)
        marker, colour = "os^Dv*"[k % 6], COLOURS[k % len(COLOURS)]
        axes.plot(chosen + 1, values[order][chosen], marker, color=colour, label=str(name))
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set(xlabel="replica, sorted", ylabel="stability margin")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    if any(names):
        axes.legend(frameon=False, fontsize=8)


def _panels(view: View, values: Array, label: str) -> tuple[Figure, str]:
    """Draw one panel per varied axis; return the axis whose values are the lines, if any."""
    axes_names = view.varied
    figure = Figure(figsize=(1.5 + 3.4 * len(axes_names), 3.4), layout="constrained")
    panels = figure.subplots(1, len(axes_names), sharey=True, squeeze=False)[0]
    shown = set()
    for panel, axis in zip(panels, axes_names, strict=True):
        line_axis = _line_axis(view, axis)
        shown |= {field_name(line_axis)} if line_axis else set()
        _lines(panel, view, values, axis, line_axis)
        panel.set_xlabel(axis if len(axis) < 30 else field_name(axis))
        panel.grid(alpha=0.25)
        if line_axis:
            panel.legend(frameon=False, fontsize=7, title=field_name(line_axis), title_fontsize=7)
    panels[0].set_ylabel(label)
    return figure, " or ".join(sorted(shown))


def _line_axis(view: View, axis: str) -> str | None:
    """Return another axis with few values, which is told apart by lines."""
    others = [a for a in view.varied if a != axis and len(view.result[a]) <= LINES]
    text_first = sorted(others, key=lambda a: view.result[a].dtype.kind in "iuf")
    return text_first[0] if text_first else None


def _lines(panel: Axes, view: View, values: Array, axis: str, line_axis: str | None) -> None:
    moved = np.moveaxis(values, view.swept.index(axis), 0)
    rest = [a for a in view.swept if a != axis]
    if line_axis:
        moved = np.moveaxis(moved, 1 + rest.index(line_axis), 1)
    else:
        moved = moved[:, None]
    rows = moved.reshape(*moved.shape[:2], -1)
    x, numeric = _places(view, axis)
    for k in range(rows.shape[1]):
        low, middle, high = quantiles(rows[:, k], axis=-1)
        colour, dashes = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
        label = view.labels(line_axis)[k] if line_axis else None
        panel.plot(x, middle, dashes, color=colour, marker="o", markersize=3, label=label)
        if rows.shape[2] > 1:
            panel.fill_between(x, low, high, color=colour, alpha=0.12)
    if not numeric:
        panel.set_xticks(x, view.labels(axis), fontsize=8)
    elif _log(x):
        panel.set_xscale("log")


def _places(view: View, axis: str) -> tuple[Array, bool]:
    labels = view.result[axis]
    if labels.dtype.kind in "iuf" and "+" not in axis:
        return labels.astype(float), True
    return np.arange(len(labels), dtype=float), False


def _log(x: Array) -> bool:
    return bool((x > 0).all() and x.max() > 20 * x.min())


def _over(view: View) -> str:
    return " and the other axes" if len(view.varied) > 1 else ""
