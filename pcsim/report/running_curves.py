"""What goes on during a run: energy and accuracy, the median chip and a band of the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pcsim.plots import COLOURS, DASHES, Drawn, log_energy, plain, time_label
from pcsim.report.drawing import Drawing, quantiles
from pcsim.report.view import RUNNING, Array, Cell, View

POINTS = 200
"""At most so many points per curve: means over neighbours, which keeps a stream readable."""
LINES = 6
PARTS = {
    "node": " Node 0 is the label or datum, the last one the input.",
    "sender": " Somas send rates down, apical compartments errors up; layer 0 is the output. The "
    "left panel is the mean over the senders.",
}
"""Axes whose parts are shown beside their total, or their mean, and what is said of them."""
TIMES = ("time", "accuracy_time")


@dataclass(frozen=True)
class Quantity:
    """A variable that is recorded during a run."""

    name: str
    title: str
    label: str
    unit: float = 1
    log: bool = False
    single: bool = False
    """Of single runs only."""


QUANTITIES = (
    Quantity("train_energy", "Energy in training", "energy F per sample", log=True),
    Quantity("energy", "Energy", "energy F per sample", log=True),
    Quantity("test_accuracy", "Accuracy in training", "test accuracy, %", 100),
    Quantity("events", "Events", "events per unit and sample"),
    Quantity("weight_change", "Movement of the weights", "|θ − θ(0)| / |θ(0)|", single=True),
)


def running_curves(view: View) -> list[Drawing]:
    """Draw each quantity of a run, or of a few points of a sweep."""
    if view.kind == "comparison":
        return []
    drawings = []
    for name in view.result.variables:
        plain = name.partition("@")[0]  # a sweep of two backends has both kinds of axes
        quantity = next((q for q in QUANTITIES if q.name == plain), None)
        axis = next((d for d in view.result.variables[name].dims if d in RUNNING), None)
        values = view.values(name)
        if quantity and quantity.single and view.varied:
            continue
        if quantity and axis and values is not None and np.isfinite(values).any():
            drawings.append(_draw(view, name, quantity, axis, quantity.unit * values))
    order = [quantity.title for quantity in QUANTITIES]
    return sorted(drawings, key=lambda drawing: order.index(drawing.title))


def _draw(view: View, name: str, quantity: Quantity, axis: str, values: Array) -> Drawing:
    parts = next((d for d in view.result.variables[name].dims if d in PARTS), None)
    total = values if parts is None else values.sum(-1) if parts == "node" else values.mean(-1)
    cells = _few(view, total)
    layers = parts is not None and len(cells) == 1
    figure = Drawn(figsize=(9 if layers else 6, 3.6), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, 2 if layers else 1, squeeze=False)[0])
    told_apart = [a for k, a in enumerate(view.swept) if len({cell[k] for cell in cells}) > 1]
    for k, cell in enumerate(cells):
        x, rows = _positions(view, axis, cell), total[cell]
        label = view.cell_name(cell, told_apart) or "median"
        _band(panels[0], x, rows, k, label, with_band=len(rows) > 1)
    panels[0].set_ylabel(quantity.label)
    if layers and parts is not None:
        labels = view.result[parts] if parts in view.result.coords else range(values.shape[-1])
        for k, label in enumerate(labels):
            part = f"node {label}" if parts == "node" else str(label)
            rows = values[cells[0]][..., k]
            _band(panels[1], _positions(view, axis, cells[0]), rows, k, part)
        panels[1].set_ylabel(f"{quantity.name} by {parts}, median")
    for panel in panels:
        if quantity.log:
            log_energy(panel)
            _cut_divergence(panel)
        panel.set_xlabel(time_label(view.result) if axis in TIMES else plain(axis))
        if axis in ("epoch", "step"):
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.grid(alpha=0.25)
        if len(panel.lines) > 1 or view.varied:
            panel.legend(frameon=False, fontsize=8)
    caption = _caption(view, total.shape[len(view.swept)], len(cells))
    held = [a for a in view.varied if a not in told_apart]
    if held and cells:
        caption += f" Here: {view.cell_name(cells[0], held)}."
    if layers and parts is not None:
        caption += PARTS[parts]
    return Drawing(name.replace("@", "_"), quantity.title, caption, figure)


def _band(
    panel: Axes, x: Array, rows: Array, k: int, label: str, *, with_band: bool = False
) -> None:
    colour, dashes = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
    low, middle, high = quantiles(thin(rows))
    x = thin(x[None])[0]
    marker = "o" if np.isfinite(middle).sum() == 1 else None
    panel.plot(x, middle, dashes, color=colour, label=plain(label), marker=marker)
    if with_band:
        panel.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)


def _cut_divergence(panel: Axes) -> None:
    """Keep an energy that explodes from hiding the others: the axis ends at 100 times the start."""
    curves = [np.asarray(line.get_ydata(), dtype=float) for line in panel.lines]
    known = [curve[np.isfinite(curve)] for curve in curves if np.isfinite(curve).any()]
    lowest = min((curve.min() for curve in known), default=0.0)
    top = 100 * min((curve[0] for curve in known), default=0.0)
    if lowest > 0 and panel.get_ylim()[1] > top:
        panel.set_ylim(0.7 * lowest, top)
        panel.set_title("what leaves at the top explodes", fontsize=8)


def _caption(view: View, replicas: int, shown: int) -> str:
    caption = "Median over the replicas" if replicas > 1 else "One replica"
    if replicas > 1:
        caption += f"; the bands hold 5–95 % of the {replicas}"
    points = int(np.prod([len(view.result[a]) for a in view.swept], dtype=int))
    return caption + (f". {shown} of {points} points are shown." if shown < points else ".")


def thin(rows: Array) -> Array:
    """Return (…, at most POINTS) means of neighbours along the last axis."""
    if rows.shape[-1] <= POINTS:
        return rows
    parts = np.array_split(np.arange(rows.shape[-1]), POINTS)
    return np.stack([rows[..., part].mean(-1) for part in parts], -1)


def _few(view: View, total: Array) -> list[Cell]:
    """Return the cells to show: all if they are few, else along the longest axis at its best."""
    known = [cell for cell in view.cells() if np.isfinite(total[cell]).any()]
    if len(known) <= LINES:
        return known
    best, lengths = view.best_cell(total), [len(view.result[axis]) for axis in view.swept]
    numeric = [view.result[axis].dtype.kind in "iuf" for axis in view.swept]
    along = max(range(len(best)), key=lambda k: (numeric[k], lengths[k]))
    line = [cell for cell in known if _without(cell, along) == _without(best, along)]
    line = line or known
    chosen = np.linspace(0, len(line) - 1, min(LINES, len(line))).round().astype(int)
    return [line[k] for k in chosen]


def _without(cell: Cell, axis: int) -> Cell:
    return cell[:axis] + cell[axis + 1 :]


def _positions(view: View, axis: str, cell: Cell) -> Array:
    """Return the labels of the running axis; a sweep may have its own for each point."""
    own = view.values(f"{axis}.labels")
    return np.asarray(view.result[axis] if own is None else own[cell][0], dtype=float)
