"""Figures from stored results."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcsim.quantity import duration
from pcsim.store import Result
from pcsim.store.files import MADE_BY_PCSIM, check_suffix, write_own

if TYPE_CHECKING:
    from pcsim.check import Check

# Okabe–Ito: distinguishable with the common kinds of colour blindness, and in print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
QUANTILES = (0.05, 0.5, 0.95)
DASHES = ("-", "--", "-.", ":")


class Drawn(Figure):
    """A figure that a notebook shows by itself."""

    def _repr_png_(self) -> bytes:
        return as_png(self)


def plain(text: str) -> str:
    """Return a name as a figure shows it as it is: `$` begins no formula."""
    return text.replace("$", r"\$")


def time_label(result: Result) -> str:
    """Name the axis of simulated time: in τ_x where that is 1, in seconds where it is a chip's."""
    circuit = json.loads(str(result.attrs.get("config", "{}"))).get("circuit", {})
    varied = any("tau_x" in axis for axis in result.coords)
    unit = "τ_x" if circuit.get("tau_x") == 1 and not varied else "s"
    return f"simulated time, {unit}"


def training_curves(results: Mapping[str, Result], title: str) -> Figure:
    """Draw energy and test error over epochs: mean and range over the seeds."""
    figure = Drawn(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, (name, result) in enumerate(results.items()):
        style = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        epochs = result["epoch"]
        for axes, values in (
            (left, result["train_energy"]),
            (right, 100 * (1 - result["test_accuracy"])),
        ):
            rows = values.reshape(-1, len(epochs))
            axes.plot(epochs, rows.mean(0), label=plain(name), **style)
            axes.fill_between(epochs, rows.min(0), rows.max(0), color=style["color"], alpha=0.15)
    left.set(xlabel="epoch", ylabel="energy F per sample", yscale="log")
    right.set(xlabel="epoch", ylabel="test error, %", yscale="log")
    right.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    right.yaxis.set_minor_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    left.legend(frameon=False)
    for axes in (left, right):
        axes.grid(alpha=0.25, which="both")
    figure.suptitle(plain(title))
    return figure


def chip_run(result: Result, title: str) -> Figure:
    """Draw a run in continuous time: energy of the population and its layers, and accuracy."""
    figure = Drawn(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    times, energy = _binned(result["time"], result["energy"])
    total = energy.sum(2)
    low, mid, high = _over_chips(total)
    left.plot(times, mid, color=COLOURS[0], label="median chip")
    left.fill_between(times, low, high, color=COLOURS[0], alpha=0.2, label="5–95 % of chips")
    left.set(xlabel=time_label(result), ylabel="energy F per sample", yscale="log")
    for k in range(energy.shape[2]):
        style = {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k % len(DASHES)]}
        middle.plot(times, _over_chips(energy[:, :, k])[1], label=f"node {k}", **style)
    middle.set(xlabel=time_label(result), ylabel="energy by node, median chip", yscale="log")
    for axes in (left, middle):
        axes.legend(frameon=False)
        axes.grid(alpha=0.25)
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
    if "accuracy" in result.variables:
        accuracy = np.sort(100 * result["accuracy"].reshape(-1))
        share = 100 * (np.arange(len(accuracy)) + 1) / len(accuracy)
        right.step(accuracy, share, where="post", color=COLOURS[1], marker="o", markersize=3)
        right.set(xlabel="test accuracy, %", ylabel="chips up to there, %", ylim=(0, 102))
        right.grid(alpha=0.25)
    else:
        right.set_axis_off()
    figure.suptitle(plain(title))
    return figure


def check_figure(check: Check, name: str | None = None) -> Figure:
    """Draw the energy of the chips beside the ideal one, and the accuracies of all rows."""
    from pcsim.check.physical import chip_name, stream  # a figure of another kind needs no check

    figure = Drawn(figsize=(11, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    chips, ideal = list(check.runs.items())[:2]
    for k, (label, result) in enumerate((chips, ideal)):
        times, energy = _binned(result["time"], result["energy"])
        low, middle, high = _over_chips(energy.sum(2))
        left.plot(times, middle, color=COLOURS[k], linestyle=DASHES[k], label=label)
        left.fill_between(times, low, high, color=COLOURS[k], alpha=0.2)
    left.set(xlabel=time_label(ideal[1]), ylabel="energy F per sample (5–95 % of chips)")
    left.set_yscale("log")
    left.legend(frameon=False)
    limit = float(np.mean(check.answer.reference)) - check.criterion.tolerance
    accuracies = {label: np.nan_to_num(check.accuracy(label)) for label in check.runs}
    row_accuracies(right, accuracies, limit, check.answer.floor)
    left.grid(alpha=0.25)
    shown = plain(name or chip_name(check.config))
    figure.suptitle(f"{shown}: {check.outcome}\n{stream(check.config)}", fontsize="medium")
    return figure


def deployment_figure(result: Result) -> Figure:
    """Draw the accuracy of deployed chips over time, with and without compensation."""
    figure = Drawn(figsize=(7.5, 3.8), layout="constrained")
    axes = figure.subplots()
    waits, accuracy = result["wait"], 100 * result["accuracy"]
    rows = accuracy.reshape(-1, *accuracy.shape[-2:])
    trained = 100 * float(np.mean(result["trained_accuracy"]))
    axes.axhline(trained, color=COLOURS[6], linestyle=":", label=f"trained, {trained:.1f} %")
    names = {"none": "no compensation", "global": "drift compensation"}
    for k, name in enumerate(result["compensation"]):
        low, middle, high = np.quantile(rows[:, :, k], QUANTILES, axis=0)
        if len(waits) > 1:
            axes.plot(waits, middle, f"{'os'[k]}{DASHES[k]}", color=COLOURS[k], markersize=4,
                      label=f"{names[str(name)]}, median")  # fmt: skip
            axes.fill_between(waits, low, high, color=COLOURS[k], alpha=0.2)
    if len(waits) > 1:
        axes.set_xscale("symlog", linthresh=waits[1], linscale=0.3)
        axes.set_xticks(waits, [duration(float(seconds)) for seconds in waits])
        axes.minorticks_off()
        axes.set(xlabel="time since programming (5–95 % of chips)", ylabel="test accuracy, %")
    else:
        values = np.sort(rows[:, 0, 0])
        share = 100 * (np.arange(len(values)) + 1) / len(values)
        axes.clear()
        axes.axvline(trained, color=COLOURS[6], linestyle=":", label=f"trained, {trained:.1f} %")
        axes.step(values, share, where="post", color=COLOURS[0], marker="o", markersize=3)
        axes.set(xlabel="test accuracy, %", ylabel="chips up to there, %", ylim=(0, 103))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize="small")
    figure.suptitle(plain(f"{result.attrs['chip']}, deployed"), fontsize="medium")
    return figure


def row_accuracies(
    axes: Axes, rows: Mapping[str, npt.NDArray[np.floating]], limit: float, floor: float
) -> None:
    """Draw the accuracies of the rows of a check, first row on top, with limit and floor."""
    values = [100 * row.reshape(-1) for row in list(rows.values())[::-1]]
    axes.boxplot(
        values,
        orientation="horizontal",
        widths=0.6,
        medianprops={"color": COLOURS[1]},
        showfliers=False,  # every point is drawn anyway
    )
    for k, points in enumerate(values):
        spread = np.linspace(-0.2, 0.2, len(points)) if len(points) > 1 else np.zeros(1)
        axes.plot(points, k + 1 + spread, "o", color=COLOURS[0], markersize=2.5, alpha=0.6)
    axes.set_yticks(range(1, len(values) + 1), [plain(label) for label in list(rows)[::-1]])
    axes.axvline(100 * limit, color=COLOURS[2], linestyle="--", label=f"limit {100 * limit:.1f} %")
    axes.axvline(100 * floor, color=COLOURS[6], linestyle=":", label=f"floor {100 * floor:.1f} %")
    axes.legend(
        frameon=False, fontsize="small", ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    axes.set(xlabel="test accuracy, %")
    axes.grid(alpha=0.25)


def _binned(
    times: npt.NDArray[np.floating], energy: npt.NDArray[np.floating], bins: int = 120
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """Return at most `bins` points (chips, time, node): means, so that a stream stays readable."""
    rows = energy.reshape(-1, *energy.shape[-2:])
    if len(times) <= bins:
        return times, rows
    parts = np.array_split(np.arange(len(times)), bins)
    means = np.stack([rows[:, part].mean(1) for part in parts], 1)
    return np.array([times[part].mean() for part in parts]), means


def _over_chips(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Return the 5, 50 and 95 % quantiles over chips at each time; NaN where all have diverged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        quantiles = np.nanquantile(np.where(np.isfinite(values), values, np.nan), QUANTILES, axis=0)
    return np.asarray(quantiles)


def log_energy(axes: Axes) -> None:
    """Make the vertical axis logarithmic if what is drawn is positive and spans a factor of 2.5."""
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    values = np.concatenate([line[np.isfinite(line)] for line in drawn] or [np.empty(0)])
    if len(values) and values.max() > 2.5 * values.min() > 0:
        axes.set_yscale("log")
        if values.max() < 300 * values.min():  # few powers of ten to read off: 1, 2 and 5 too
            axes.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
        axes.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG, making its folder; only an earlier figure of pcsim is replaced."""
    check_suffix(path, ".png")
    write_own(path, as_png(figure, 150))
    return path


def as_png(figure: Figure, dpi: int = 80) -> bytes:
    """Return a figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": MADE_BY_PCSIM})
    return buffer.getvalue()
