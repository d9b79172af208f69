"""What each remedy brings back, from stored numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from pcsim.plots import COLOURS, Drawn, plain


def remedy_bars(data: Mapping[str, Any], name: str) -> Figure:
    """Draw gains with their intervals, the best on top; `data` is what `Remedies.data` gives."""
    known = [one for one in data["tried"] if one["gain"]][::-1]
    figure = Drawn(figsize=(8, 1.6 + 0.32 * max(len(known), 3)), layout="constrained")
    axes = figure.subplots()
    for k, one in enumerate(known):
        gain = one["gain"]
        colour = COLOURS[0 if one["automatic"] else 1]
        axes.barh(k, 100 * gain["value"], height=0.6, color=colour, alpha=0.7)
        if gain["low"] is not None and gain["high"] is not None:
            axes.plot([100 * gain["low"], 100 * gain["high"]], [k, k], color="black", linewidth=1)
    labels = [f"{one['name']} (trains: {one['trains']})" for one in known]
    axes.set_yticks(range(len(known)), [plain(label) for label in labels])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set(xlabel="gain of test accuracy, points, with interval")
    axes.legend(
        handles=[
            Patch(color=COLOURS[0], alpha=0.7, label="automatic"),
            Patch(color=COLOURS[1], alpha=0.7, label="needs a controller"),
        ],
        frameon=False,
        fontsize="small",
    )
    axes.grid(alpha=0.25)
    figure.suptitle(plain(f"{name}: remedies"), fontsize="medium")
    return figure
