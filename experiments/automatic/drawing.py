"""Figures of the map, from a stored result: simulated losses, and the laws' in the same axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from scipy.stats import t

from pcsim import plots
from pcsim.store import Result

from . import report
from .atlas import Atlas
from .points import FAULTS, Point, presentations, reference

LEVELS = (1, 3, 5)
"""Points of accuracy at which lines are drawn."""
TICKS = (-80, -30, -10, -3, 0, 1, 3, 5, 10, 30, 80)
TOP = 60.0
"""Losses beyond are not told apart."""


def losses(axes: Axes, atlas: Atlas, points: Sequence[Point], style: int, label: str = "") -> None:
    """Draw losses with intervals over the size of a fault, the law's and the fitted one."""
    if not points:
        return
    fault = FAULTS[points[0].fault]
    sizes = [one.size for one in points]
    found = [atlas.loss(one) for one in points]
    value = np.array([100 * one.value for one in found])
    bars = np.abs(100 * np.array([[one.low, one.high] for one in found]).T - value)
    colour = plots.COLOURS[style]
    axes.errorbar(
        sizes,
        value,
        bars,
        marker="osD^vP"[style],
        color=colour,
        capsize=2,
        label=label or fault.title,
    )
    tolerances = atlas.result["tolerance"]
    law = np.array([atlas.predicted(points, one) for one in tolerances])
    drawn = np.isfinite(law) & (law > min(sizes) / 2) & (law < max(sizes) * 2)
    if drawn.sum() > 1 and len(set(law[drawn])) == 1:
        axes.axvline(
            law[drawn][0], color=colour, linestyle=":", label=once(axes, "law: limit of stability")
        )
    elif drawn.any():
        axes.plot(law[drawn], 100 * tolerances[drawn], ":", color=colour, label=once(axes, "law"))
    elif (fit := atlas.fit(points)) is not None:
        low, high = sorted((fault.place(sizes[0]), fault.place(sizes[-1])))
        at = np.linspace(low, high, 60)
        fitted = 3 * 2 ** (fit.exponent * (at - fault.place(fit.size)))
        shown = fitted < TOP
        axes.plot(
            [fault.size(one) for one in at[shown]],
            fitted[shown],
            "-.",
            color=colour,
            alpha=0.6,
            label=once(axes, "fitted power"),
        )
    if not fault.by_bits:
        decades(axes)
    axes.set_xlabel(fault.unit)


def once(axes: Axes, label: str) -> str:
    """Return a label where a legend does not have it yet, else one that it leaves out."""
    return "_" if label in axes.get_legend_handles_labels()[1] else label


def decades(axes: Axes) -> None:
    """Give an axis a logarithmic scale with plain numbers."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())


def finish(axes: Axes, title: str = "", least: float = -5.0) -> None:
    """Add the levels, a grid and a legend."""
    for level in LEVELS:
        axes.axhline(level, color="0.75", linewidth=0.7, zorder=0)
    axes.set_yscale("symlog", linthresh=5, linscale=1.2)
    axes.set_yticks(TICKS, [f"{tick:g}".replace("-", "−") for tick in TICKS])
    axes.set_ylim(least, 100)
    low, high = axes.get_xlim()
    if axes.get_xscale() == "log" and high > 300 * low:
        axes.xaxis.set_major_locator(LogLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(alpha=0.2)
    if title:
        axes.set_title(title)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)


def panels(count: int) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels side by side."""
    figure = plots.Drawn(figsize=(4.3 * count, 3.7), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, count)))
    axes[0].set_ylabel("accuracy lost, points")
    return figure, axes


def faults(names: Sequence[Sequence[str]], result: Result, path: Path) -> Path:
    """Draw groups of faults, one panel each."""
    atlas = Atlas.of(result)
    figure, axes = panels(len(names))
    for ax, group in zip(axes, names, strict=True):
        for style, name in enumerate(group):
            losses(ax, atlas, atlas.along(name), style)
        finish(ax)
        ax.set_xlabel(FAULTS[group[0]].unit if len(group) == 1 else _units(group))
    return plots.save(figure, path)


def mismatch(result: Result, path: Path) -> Path:
    """Draw mismatch at two time steps, and offsets."""
    atlas = Atlas.of(result)
    figure, axes = panels(3)
    for ax, name in zip(axes, ("tau", "gain"), strict=False):
        for style, step in enumerate((0.0, atlas.setting.fine_step)):
            label = f"dt = {step or atlas.setting.gamma:g} τ_x"
            losses(ax, atlas, atlas.along(name, step=step), style, label)
        finish(ax, FAULTS[name].title)
    losses(axes[2], atlas, atlas.along("offset"), 2)
    finish(axes[2], FAULTS["offset"].title)
    return plots.save(figure, path)


def _units(group: Sequence[str]) -> str:
    units = list(dict.fromkeys(FAULTS[name].unit for name in group))
    return ", ".join(units)


def present(result: Result, path: Path) -> Path:
    """Draw the accuracy of an ideal chip over the presentation time, and the law of carrying."""
    atlas = Atlas.of(result)
    figure, axes = panels(2)
    points = presentations(atlas.setting)
    times = np.array([one.present for one in points])
    each = np.array([100 * atlas.accuracy(one).mean(1) for one in points])
    held = np.array([100 * result["held_out"][atlas.rows[one]] for one in points])
    half = t.ppf(0.95, each.shape[1] - 1) * each.std(1, ddof=1) / np.sqrt(each.shape[1])
    left, right = axes
    left.errorbar(times, each.mean(1), half, marker="o", color=plots.COLOURS[0], label="test")
    left.plot(times, held, "s--", color=plots.COLOURS[1], label="held out: by this it is chosen")
    reset = atlas.along("reset")
    if reset:
        value = 100 * atlas.accuracy(reset[0]).mean()
        left.plot(
            reset[0].present, value, "D", color=plots.COLOURS[2], label="reset for each sample"
        )
    left.axvline(atlas.present, color="0.5", linestyle=":", label="chosen")
    decades(left)
    left.set(xlabel="presentation time, τ_x", ylabel="accuracy, %")
    left.legend(frameon=False, fontsize=7)
    left.grid(alpha=0.25)
    lost = each.mean(1).max() - each.mean(1)
    right.plot(times, lost, "o-", color=plots.COLOURS[0], label="simulated, against the best")
    limit = result["carry_limit"]
    seen = (limit > times[0] / 2) & (limit < times[-1])
    right.plot(
        limit[seen], 100 * result["tolerance"][seen], ":", color=plots.COLOURS[3], label="law 42"
    )
    decades(right)
    right.set(xlabel="presentation time, τ_x", ylabel="accuracy lost, points")
    finish(right)
    return plots.save(figure, path)


def networks(result: Result, path: Path) -> Path:
    """Draw ideal chips of several depths and widths, and what noise costs the wide ones."""
    atlas = Atlas.of(result)
    setting = atlas.setting
    figure, (left, middle, right) = panels(3)
    for style, factor in enumerate((1.0, setting.long, setting.longest)):
        time = factor * atlas.present
        known = [(d, atlas.along("ideal", present=time, depth=d)) for d in setting.depths]
        seen = [(d, atlas.loss(points[0])) for d, points in known if points]
        _estimates(left, seen, style, f"T = {time:g} τ_x")
    finish(left, "ideal chips")
    left.set_xlabel("weight layers")
    widths = sorted({*setting.widths, setting.width})
    seen = [(w, atlas.loss(p[0])) for w in widths if (p := atlas.along("ideal", width=w))]
    _estimates(middle, seen, 0, f"T = {atlas.present:g} τ_x")
    noisy = []
    for w in sorted({*setting.noisy_widths, setting.width}):
        points = atlas.along("noise", width=w)
        noisy += [(w, atlas.loss(p)) for p in points if p.size == setting.width_noise]
    _estimates(right, noisy, 1, f"noise {setting.width_noise:g} of each error")
    for ax, title in ((middle, "ideal, against 32 hidden units"), (right, "noise, against ideal")):
        finish(ax, title)
        ax.set(xscale="log", xlabel="hidden units")
        ax.set_xticks(widths, [f"{w}" for w in widths])
        ax.minorticks_off()
    return plots.save(figure, path)


def _estimates(axes: Axes, seen: Sequence[tuple[float, Any]], style: int, label: str) -> None:
    if not seen:
        return
    value = np.array([100 * one.value for _, one in seen])
    bars = np.abs(100 * np.array([[one.low, one.high] for _, one in seen]).T - value)
    axes.errorbar(
        [x for x, _ in seen],
        value,
        bars,
        marker="osD"[style],
        color=plots.COLOURS[style],
        linestyle=plots.DASHES[style],
        capsize=2,
        label=label,
    )


def over_time(result: Result, path: Path) -> Path:
    """Draw noise and offsets at several presentation times."""
    atlas = Atlas.of(result)
    names = [name for name in atlas.setting.cut_sizes if atlas.along(name)] or ["noise"]
    figure, axes = panels(len(names))
    for ax, name in zip(axes, names, strict=True):
        for style, time in enumerate(sorted({*atlas.setting.cut_presents, atlas.present})):
            losses(ax, atlas, atlas.along(name, present=time), style, f"T = {time:g} τ_x")
        finish(ax, FAULTS[name].title)
    return plots.save(figure, path)


def over_networks(result: Result, path: Path) -> Path:
    """Draw rounded writes at several rates, and lags at several depths."""
    atlas = Atlas.of(result)
    rated = [name for name in atlas.setting.rate_sizes if atlas.along(name)] or ["nearest"]
    deep = [name for name in atlas.setting.lag_sizes if name != "delay"] or ["inter_lag"]
    wide = max(len(rated), len(deep))
    figure = plots.Drawn(figsize=(4.3 * wide, 7.2), layout="constrained")
    upper, lower = figure.subplots(2, wide, squeeze=False)
    for ax, name in zip(upper, rated, strict=False):
        for style, rate in enumerate((0.0, *atlas.setting.cut_rates)):
            label = f"η = {rate:g}" if rate else "η chosen for each"
            losses(ax, atlas, atlas.along(name, rate=rate), style, label)
        finish(ax, f"{FAULTS[name].title}, rate per sample η")
    for ax, name in zip(lower, deep, strict=False):
        for style, depth in enumerate((2, *atlas.setting.lag_depths)):
            points = atlas.along(name, depth=depth)
            points = [p for p in points if reference(atlas.setting, p, atlas.present) in atlas.rows]
            losses(ax, atlas, points, style, f"{depth} weight layers")
        finish(ax, FAULTS[name].title, -80)
    for axes in (upper, lower):
        axes[0].set_ylabel("accuracy lost, points")
    return plots.save(figure, path)


def tasks(result: Result, path: Path) -> Path:
    """Draw the accuracy of the same chips on several tasks."""
    atlas = Atlas.of(result)
    setting = atlas.setting
    names = [one for one in (setting.task, *setting.tasks) if atlas.along("ideal", task=one)]
    conditions = [("ideal", 0.0, 1.0), ("ideal", 0.0, setting.long)]
    conditions += [(fault, size, 1.0) for fault, size in setting.task_faults.items()]
    figure, (axes,) = panels(1)
    width = 0.8 / len(conditions)
    for k, (fault, size, factor) in enumerate(conditions):
        at, heights, bars = [], [], []
        for j, task in enumerate(names):
            points = atlas.along(fault, present=factor * atlas.present, task=task)
            hit = [one for one in points if one.size == size]
            if hit:
                of_seed = 100 * atlas.accuracy(hit[0]).mean(1)
                at.append(j + (k - (len(conditions) - 1) / 2) * width)
                heights.append(of_seed.mean())
                bars.append(of_seed.std(ddof=1))
        time = f"T = {factor * atlas.present:g} τ_x"
        label = f"{FAULTS[fault].title} {size:g}, {time}" if size else f"ideal, {time}"
        axes.bar(at, heights, width, yerr=bars, color=plots.COLOURS[k], label=label, capsize=2)
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="accuracy, %: mean ± SD over seeds", ylim=(0, 135))
    axes.legend(frameon=False, fontsize=7)
    axes.grid(alpha=0.2, axis="y")
    return plots.save(figure, path)


def laws(result: Result, path: Path) -> Path:
    """Draw the predicted over the simulated size at each level."""
    atlas = Atlas.of(result)
    figure, (axes,) = panels(1)
    figure.set_size_inches(7.5, 4.2)
    lines = report.axes(atlas)
    shown = []
    for title, points in lines.items():
        away = [report.error(atlas, points, level / 100) for level in LEVELS]
        if np.isfinite(away).any():
            shown.append((title, away))
    for k, level in enumerate(LEVELS):
        axes.plot(
            [away[k] for _, away in shown],
            range(len(shown)),
            "osD"[k],
            color=plots.COLOURS[k],
            label=f"{level} point{'s' if level > 1 else ''} lost",
        )
    axes.axvspan(-1, 1, color=plots.COLOURS[2], alpha=0.15)
    axes.axvline(0, color="0.4", linewidth=0.8)
    axes.set_yticks(range(len(shown)), [title for title, _ in shown])
    axes.invert_yaxis()
    axes.set(
        ylabel="",
        xlabel="law beyond the simulation, doublings (or bits): right, it promises too much",
    )
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.25)
    return plots.save(figure, path)


Draw = Callable[[Result, Path], Path]
FIGURES: dict[str, Draw] = {
    "": laws,
    "_present": present,
    "_noise": partial(faults, [["noise"], ["line"]]),
    "_bits": partial(faults, [["accumulated", "nearest", "stochastic"]]),
    "_devices": partial(faults, [["pulse"], ["imbalance"], ["bound"]]),
    "_mismatch": mismatch,
    "_lags": partial(faults, [["error_lag", "inter_lag"], ["delay"]]),
    "_forgetting": partial(faults, [["retention"], ["drift"]]),
    "_networks": networks,
    "_over_time": over_time,
    "_over_networks": over_networks,
    "_tasks": tasks,
}
"""Every figure, by the end of its file name."""
