"""The figure of a comparison: energy, accuracy, and the gap with its interval."""

from __future__ import annotations

import warnings

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcsim.plots import COLOURS, DASHES, Drawn, log_energy, plain
from pcsim.runner.progress import PROGRESS
from pcsim.store import Result

LABELS = {
    "samples": "training samples presented",
    "updates": "updates of each weight",
    "simulated_time": "simulated time, s",
    "epochs": "epochs",
}


def comparison_figure(result: Result) -> Figure:
    """Draw energy and accuracy over the training, and the gap of each run to the reference."""
    figure = Drawn(figsize=(11, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    along = progress_axis(result)
    if "energy" in result.variables:
        _curves(left, result, "energy", along)
        left.set(xlabel=LABELS[along], ylabel="energy F per sample")
        log_energy(left)
    else:
        left.set_axis_off()
    _curves(middle, result, "test_accuracy", along, 100)
    target = 100 * float(result.attrs["target"])
    middle.axhline(target, color="0.4", linewidth=0.8, label=f"target {target:.1f} %")
    middle.set(xlabel=LABELS[along], ylabel="test accuracy, %")
    _gaps(right, result)
    for axes in (left, middle, right):
        axes.grid(alpha=0.25)
    if not result.attrs["paired"]:
        figure.suptitle("unpaired: network, data or seeds may differ", fontsize="medium")
    middle.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def progress_axis(result: Result) -> str:
    """Return the first measure of progress that every run knows and that moves."""
    for name in PROGRESS:
        if f"test_accuracy_{name}" not in result.variables:  # stored by an earlier version
            continue
        rows = result[f"test_accuracy_{name}"]
        if "energy" in result.variables:
            rows = np.concatenate([rows, result[f"energy_{name}"]], axis=2)
        known = np.isfinite(rows).any(axis=(1, 2)).all()
        moves = all(len(np.unique(one[np.isfinite(one)])) > 1 for one in rows)
        if known and moves:
            return name
    return "samples"


def _curves(axes: Axes, result: Result, name: str, along: str, unit: float = 1) -> None:
    """Draw the mean over seeds and their range."""
    for k, run in enumerate(result["run"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # behind the end of a curve
            x = np.nanmean(result[f"{name}_{along}"][k], axis=0)
            rows = unit * result[name][k]
            mean, low, high = (f(rows, axis=0) for f in (np.nanmean, np.nanmin, np.nanmax))
        there = np.isfinite(x) & np.isfinite(mean)
        marker = "o" if there.sum() == 1 else None
        colour, dashes = COLOURS[k % len(COLOURS)], DASHES[k % len(DASHES)]
        axes.plot(x[there], mean[there], dashes, color=colour, label=plain(str(run)), marker=marker)
        axes.fill_between(x[there], low[there], high[there], color=colour, alpha=0.15)


def _gaps(axes: Axes, result: Result) -> None:
    runs = result["run"]
    places = np.arange(1, len(runs))
    axes.axhline(0, color="0.3", linewidth=0.8)
    for k in places:
        colour = COLOURS[k % len(COLOURS)]
        if "gap" in result.variables:
            each = 100 * result["gap"][k]
            # Side by side, so that equal gaps of several seeds remain visible.
            offsets = np.linspace(-0.12, 0.12, len(each)) if len(each) > 1 else np.zeros(1)
            axes.plot(k + offsets, each, ".", color=colour, alpha=0.5, markersize=5)
        mean = 100 * result["gap_mean"][k]
        limits = 100 * np.array([result["gap_low"][k], result["gap_high"][k]])
        if np.isfinite(limits).all():
            axes.vlines(k + 0.22, *limits, color=colour, linewidth=2)
        axes.plot(k + 0.22, mean, "D", color=colour, markersize=5)
    dots = "dots: seeds; " if "gap" in result.variables else ""
    percent = 100 * float(result.attrs["confidence"])
    axes.set_xticks(places, [plain(str(run)) for run in runs[1:]])
    axes.set(
        xlim=(0.5, len(runs) - 0.5),
        ylabel=f"accuracy − {plain(str(runs[0]))}, points",
        title=f"{dots}diamond: mean, {percent:g} % interval",
    )
    axes.title.set_fontsize(9)
