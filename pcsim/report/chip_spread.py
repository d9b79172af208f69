"""How much the replicas (seeds, chips) of one setting differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from pcsim.plots import COLOURS, Drawn, plain
from pcsim.report.drawing import Drawing, mean
from pcsim.report.view import Array, View

BARS = 24
"""More points than this are pooled over all axes but the first."""
TITLE = "Spread from chip to chip"
LEGEND = "thin 5–95 %, thick 25–75 %, dot the median"


def chip_spread(view: View) -> list[Drawing]:
    """Draw the distribution of the test accuracy over the population."""
    values = view.values("accuracy")
    if values is None or view.kind in ("comparison", "deploy") or values.shape[-1] < 2:
        return []
    values = 100 * values
    if not view.varied:
        return [_single(values.reshape(-1))]
    cells = [cell for cell in view.cells() if np.isfinite(values[cell]).any()]
    if len(cells) <= BARS:
        groups = {view.cell_name(cell): values[cell] for cell in cells}
        label = "test accuracy, %"
        caption = f"Test accuracy of the {values.shape[-1]} replicas of each point: {LEGEND}."
    else:
        axis = view.varied[0]
        rows = np.moveaxis(values, view.swept.index(axis), 0)
        # What differs between points is no spread of chips: it is taken out of each point first.
        centred = (rows - mean(rows, -1)[..., None]).reshape(len(rows), -1)
        groups = dict(zip(view.labels(axis), centred, strict=True))
        label = "accuracy − mean of its point, percentage points"
        caption = f"Deviation of each replica from the mean of its point, for each {axis}, "
        caption += f"pooled over the other axes: {LEGEND}."
    figure = Drawn(figsize=(6.5, 1 + 0.28 * len(groups)), layout="constrained")
    axes = figure.subplots()
    _bars(axes, list(groups.values()))
    axes.set_yticks(range(len(groups)), [plain(name) for name in groups], fontsize=8)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.grid(alpha=0.25, axis="x")
    return [Drawing("chip_spread", TITLE, caption, figure)]


def _bars(axes: Axes, groups: Sequence[Array]) -> None:
    for row, group in enumerate(groups):
        known = group[np.isfinite(group)]
        if len(known):
            whole = np.quantile(known, (0.05, 0.95))
            half = np.quantile(known, (0.25, 0.75))
            axes.plot(whole, [row, row], color=COLOURS[0], linewidth=1)
            axes.plot(half, [row, row], color=COLOURS[0], linewidth=5, alpha=0.6)
            axes.plot(np.median(known), row, "o", color=COLOURS[1], markersize=4)


def _single(accuracy: Array) -> Drawing:
    figure = Drawn(figsize=(6, 3.2), layout="constrained")
    axes = figure.subplots()
    accuracy = np.sort(accuracy[np.isfinite(accuracy)])
    share = 100 * (np.arange(len(accuracy)) + 1) / len(accuracy)
    axes.step(accuracy, share, where="post", color=COLOURS[0], marker="o", markersize=4)
    axes.set(xlabel="test accuracy, %", ylabel="replicas up to there, %", ylim=(0, 103))
    axes.grid(alpha=0.25)
    caption = f"Distribution of the test accuracy at the end over {len(accuracy)} replicas."
    return Drawing("chip_spread", TITLE, caption, figure)
