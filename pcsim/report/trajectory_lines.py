"""Trajectories of a few units, from the recording beside a result."""

from __future__ import annotations

import numpy as np

from pcsim.plots import COLOURS, DASHES, Drawn, plain, time_label
from pcsim.report.drawing import Drawing
from pcsim.report.view import View

PANELS, RECORDS = 6, 150


def trajectory_lines(view: View) -> list[Drawing]:
    """Draw the last records of the first units of each kind of state; dashes tell chips apart."""
    recorded = view.trajectories
    if recorded is None or not len(recorded["time"]):
        return []
    names = [n for n, v in recorded.variables.items() if v.dims[:2] == ("time", "chip")][:PANELS]
    if not names:
        return []
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Drawn(figsize=(1 + 3.2 * columns, 0.6 + 2.2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True)
    times = recorded["time"][-RECORDS:]
    for panel, name in zip(panels.flat, names, strict=False):
        values = recorded[name][-RECORDS:]
        for chip in range(min(2, values.shape[1])):
            for unit in range(values.shape[2]):
                colour = COLOURS[unit % len(COLOURS)]
                panel.plot(times, values[:, chip, unit], DASHES[chip], color=colour, linewidth=1)
        panel.set_title(plain(name), fontsize=9)
        panel.grid(alpha=0.25)
    for panel in panels.flat[len(names) :]:
        panel.set_axis_off()
    for panel in panels[-1]:
        panel.set_xlabel(time_label(view.result))
    chips = next(iter(recorded.variables.values())).values.shape[1]
    kept = "The last " if len(recorded["time"]) > RECORDS else "All "
    caption = f"{kept}{len(times)} records of the first sample: one colour per unit"
    caption += "; solid the first chip, dashed the second." if np.minimum(chips, 2) > 1 else "."
    return [Drawing("trajectories", "Trajectories of a few units", caption, figure)]
