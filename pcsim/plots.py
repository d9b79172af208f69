"""Figures from stored results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from pcsim.store import Result

# Okabe–Ito: distinguishable with the common kinds of colour blindness, and in print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":")


def training_curves(results: Mapping[str, Result], path: Path, title: str) -> Path:
    """Draw energy and test error over epochs: mean and range over the seeds."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, (name, result) in enumerate(results.items()):
        style = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        epochs = result["epoch"]
        for axes, values in (
            (left, result["train_energy"]),
            (right, 100 * (1 - result["test_accuracy"])),
        ):
            rows = values.reshape(-1, len(epochs))
            axes.plot(epochs, rows.mean(0), label=name, **style)
            axes.fill_between(epochs, rows.min(0), rows.max(0), color=style["color"], alpha=0.15)
    left.set(xlabel="epoch", ylabel="energy F per sample", yscale="log")
    right.set(xlabel="epoch", ylabel="test error, %", yscale="log")
    right.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    right.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25, which="both")
    figure.suptitle(title)
    return save(figure, path)


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path
