"""A tornado chart from stored margins: what doubling and halving each number does, and how far."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import Any

from matplotlib.figure import Figure

from pcsim.plots import COLOURS, Drawn, plain

MOST = 20
"""Numbers that are drawn, the most sensitive first."""


def tornado(data: Mapping[str, Any], name: str) -> Figure:
    """Draw the change of accuracy by one doubling or halving (or bit), and the margins beside it.

    `data` is what `Margins.data` gives, also as it is stored.
    """
    bars = _bars(data)
    ways = {(one["number"], one["direction"]): one for one in data["margins"]}
    order = sorted(bars, key=lambda path: max(abs(x) for x in bars[path].values()))[-MOST:]
    figure = Drawn(figsize=(11, 1.6 + 0.3 * max(len(order), 3)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.1))
    for k, path in enumerate(order):
        for way, change in bars[path].items():
            left.barh(k, 100 * change, height=0.6, color=COLOURS[0 if way == "grow" else 1])
        for way, sign in (("grow", 1), ("shrink", -1)):
            if (path, way) in ways:
                _margin(right, k, ways[path, way], sign)
    left.set_yticks(range(len(order)), [plain(path) for path in order])
    left.axvline(0, color="black", linewidth=0.8)
    left.set(xlabel="test accuracy, points: ×2 blue, ÷2 orange; bits: one")
    right.axvline(0, color="black", linewidth=0.8)
    verb = "may" if data["trains"] else "must"
    right.set(xlabel=f"{verb} change by so many doublings (or bits); arrow: more")
    for axes in (left, right):
        axes.grid(alpha=0.25)
    figure.suptitle(plain(f"{name}: sensitivity and margins"), fontsize="medium")
    return figure


def _bars(data: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the change of accuracy at the rung nearest to a doubling, by number and direction."""
    bars: dict[str, dict[str, float]] = {}
    for one in data["margins"]:
        here, *others = one["tried"]
        near = [rung for rung in others if abs(_doublings(one, rung["value"])) <= 1.01]
        if near:
            rung = max(near, key=lambda rung: abs(_doublings(one, rung["value"])))
            bars.setdefault(one["number"], {})[one["direction"]] = here["loss"] - rung["loss"]
    return bars


def _doublings(one: Mapping[str, Any], value: float) -> float:
    if one["unit"] == "bits":
        return float(value - one["value"])
    return log2(value / one["value"])


def _margin(axes: Any, k: int, one: Mapping[str, Any], sign: int) -> None:
    if one["margin"] is None:
        return
    farthest = abs(_doublings(one, one["tried"][-1]["value"]))

    def place(size: float | None) -> float:
        if size is None:
            return sign * farthest
        return sign * (size if one["unit"] == "bits" else log2(size))

    margin = one["margin"]
    colour = COLOURS[0 if one["direction"] == "grow" else 1]
    low, high = place(margin["low"]), place(margin["high"])
    axes.plot([low, high], [k, k], color=colour, linewidth=4, alpha=0.35, solid_capstyle="butt")
    if margin["value"] is None:
        axes.plot(place(None), k, ">" if sign > 0 else "<", color=colour, markersize=6)
    else:
        axes.plot(place(margin["value"]), k, "o", color=colour, markersize=5)
