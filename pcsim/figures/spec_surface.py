"""Where a chip trains along one or two of its numbers, from stored numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcsim.plots import COLOURS, Drawn, plain


def spec_surface(data: Mapping[str, Any], name: str) -> Figure:
    """Draw the loss that the yield of all chips stay within; `data` is what `Specs.data` gives."""
    figure = Drawn(figsize=(6.5, 4.2), layout="constrained")
    axes = figure.subplots()
    level = 100 * data["tolerance"]
    names, values = list(data["axes"]), list(data["axes"].values())
    ends = {
        end: np.array(
            [np.nan if one[end] is None else 100 * one[end] for one in data["limit_loss"]]
        )
        for end in ("value", "low", "high")
    }
    if len(names) == 1:
        axes.plot(values[0], ends["value"], "o-", color=COLOURS[0], label="limit of the loss")
        axes.fill_between(values[0], ends["low"], ends["high"], color=COLOURS[0], alpha=0.2)
        axes.axhline(level, color=COLOURS[2], linestyle="--", label=f"tolerance {level:g} points")
        axes.set(ylabel="loss within the yield, points")
        axes.legend(frameon=False)
        axes.grid(alpha=0.25)
    else:
        surface = ends["value"].reshape(len(values[0]), len(values[1])).T
        image = axes.pcolormesh(*map(_edges, values), surface, cmap="cividis")
        figure.colorbar(image, ax=axes, label="loss within the yield, points")
        for end, style in (("value", "solid"), ("low", "dotted"), ("high", "dotted")):
            lines = ends[end].reshape(len(values[0]), len(values[1])).T
            if np.nanmin(lines) < level < np.nanmax(lines):
                axes.contour(values[0], values[1], lines, [level], colors="white", linestyles=style)
        axes.set(ylabel=plain(names[1]))
        _scale(axes, "y", values[1])
    axes.set(xlabel=plain(names[0]))
    _scale(axes, "x", values[0])
    figure.suptitle(
        plain(f"{name}: where it trains (white or dashed: the limit)"), fontsize="medium"
    )
    return figure


def _edges(values: Sequence[float]) -> npt.NDArray[np.floating]:
    """Return where the cells of values end, halfway as the axis is drawn."""
    places = np.log(values) if _logarithmic(values) else np.asarray(values, dtype=float)
    middle = (places[1:] + places[:-1]) / 2
    ends = np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])
    return np.asarray(np.exp(ends) if _logarithmic(values) else ends)


def _logarithmic(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) / min(values) > 8 and not isinstance(values[0], int)


def _scale(axes: Axes, which: str, values: Sequence[float]) -> None:
    """Show a number on a logarithmic scale where its values lie like that."""
    if _logarithmic(values):
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
