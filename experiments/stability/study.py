"""Stability maps of simulated circuits against closed forms: which lags are harmless?

`pcsim experiment stability` simulates linear scalar chains x^1 … x^{L−1} of weight w and compares
(A) ringing by lagged errors, (B) limits of an apical lag, (C) of an interneuron lag, (D) of pure
delays with `stability_theory`. It prints a table, writes `stability.h5` and `stability.png`.
"""

from __future__ import annotations

from math import isinf
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from pcsim import plots, store
from pcsim.limits import lags
from pcsim.limits.lags import Floats
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common.keeping import claim, keep
from .maps import (
    DEPTHS,
    ERROR_WEIGHTS,
    FEEDBACK_WEIGHTS,
    LAGS,
    LOOP_DEPTHS,
    LOOP_WEIGHTS,
    POLE_DEPTHS,
    WEIGHTS,
    Map,
    delays,
    dendritic_lags,
    error_lag,
    pole_errors,
)

MARKERS = "osD^v"


def main(out: Path) -> None:
    """Measure, print, store, draw."""
    claim(out / "stability.h5", "stability")
    console = terminal()
    poles = pole_errors()
    maps = [*error_lag()]
    console.print("(A) lagged errors: done")
    maps += dendritic_lags()
    console.print("(B), (C) lags of compartments: done")
    maps += delays()
    axes: dict[str, Floats] = {
        "error_weight": ERROR_WEIGHTS,
        "error_lag": LAGS,
        "depth": DEPTHS,
        "weight": WEIGHTS,
        "loop_depth": LOOP_DEPTHS,
        "loop_weight": LOOP_WEIGHTS,
        "feedback_depth": np.array([2]),
        "feedback_weight": FEEDBACK_WEIGHTS,
    }
    console.print(table(maps, axes))
    console.print(f"poles of (A), L = 2, 4, 10: largest relative error {poles.max():.1e}")
    variables = {
        "error_lag_pole_error": Variable(("pole_depth", "error_lag"), poles),
    }
    for one in maps:
        attrs: dict[str, store.Attr] = {"long_name": one.long_name, "units": "1"}
        variables[f"{one.name}_measured"] = Variable(one.dims, one.measured, attrs)
        variables[f"{one.name}_predicted"] = Variable(one.dims, one.predicted, attrs)
    coords = axes | {"pole_depth": POLE_DEPTHS}
    keep(Result(variables, coords, provenance()), out / "stability.h5", "stability")
    console.print(f"figure: {draw(maps, out / 'stability.png')}")


def table(maps: list[Map], axes: dict[str, Floats]) -> Table:
    """Return measured, predicted and relative error of every cell that has a limit."""
    made = Table(title="lags and delays in units of τ_x; cells without a limit are left out")
    for column in ("quantity", "at", "measured", "predicted", "rel. error"):
        made.add_column(column, justify="left" if column in ("quantity", "at") else "right")
    for one in maps:
        rows, columns = (axes[dim] for dim in one.dims)
        left = 0
        for i, j in np.ndindex(one.measured.shape):
            measured, predicted = float(one.measured[i, j]), float(one.predicted[i, j])
            if (isinf(measured) and isinf(predicted)) or measured == predicted == 0:
                left += 1
                continue
            where = f"{_short(one.dims[0])} = {rows[i]:g}, {_short(one.dims[1])} = {columns[j]:g}"
            error = f"{one.error[i, j]:.1e}" if one.error[i, j] > 1e-12 else "< 1e-12"
            made.add_row(one.label, where, f"{measured:.4f}", f"{predicted:.4f}", error)
        if left:
            made.add_row(one.label, f"{left} other cells", "none", "none", "", end_section=True)
        else:
            made.add_section()
    return made


def _short(dim: str) -> str:
    return {"depth": "L", "weight": "w", "lag": "τ_e/τ_x"}[dim.split("_")[-1]]


def draw(maps: list[Map], path: Path) -> Path:
    """Draw the four panels: closed forms as lines, measurements as points."""
    figure = Figure(figsize=(10.5, 8.4), layout="constrained")
    panels = figure.subplots(2, 2)
    _draw_error_lag(panels[0, 0], maps[0])
    w = np.geomspace(0.5, 12, 90)
    _draw_limits(panels[0, 1], maps[2], [[lags.apical_lag_limit(d, x) for x in w] for d in DEPTHS])
    panels[0, 1].set(
        title="B  apical branch lags (only it)", ylabel="smallest unstable lag τ_a/τ_x"
    )
    laws = [[lags.interneuron_lag_limit(d, x) for x in w] for d in DEPTHS]
    _draw_limits(panels[1, 0], maps[3], laws)
    panels[1, 0].set(
        title="C  interneurons lag: limit τ_x/(2w cos(π/L) − 1)",
        ylabel="smallest unstable lag τ_I/τ_x",
    )
    _draw_delays(panels[1, 1], maps[4], maps[5])
    for axes in panels.flat:
        axes.grid(alpha=0.25, which="both")
    figure.suptitle(
        "Linear scalar chains of L weights w: lines closed form, points simulated circuit"
    )
    return plots.save(figure, path)


def _draw_error_lag(axes: Axes, one: Map) -> None:
    shown = np.geomspace(LAGS[0], LAGS[-1], 300)
    for k, w in enumerate(ERROR_WEIGHTS):
        h, colour = 1 + w * w, plots.COLOURS[k]
        axes.semilogx(shown, [100 * lags.overshoot(h, t) for t in shown], color=colour)
        label = f"h = 1 + w² = {h:g}; no ringing below {1 / (4 * h):.3g} τ_x"
        axes.plot(LAGS, 100 * one.measured[k], MARKERS[k], color=colour, label=label)
    axes.set(
        title="A  errors lag, in all their uses: always stable, rings",
        xlabel="lag of the errors τ_e/τ_x",
        ylabel="overshoot of x, % of the step",
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False, fontsize=8)


def _draw_limits(axes: Axes, one: Map, laws: list[list[float]]) -> None:
    w = np.geomspace(0.5, 12, len(laws[0]))
    for k, depth in enumerate(DEPTHS):
        colour = plots.COLOURS[k]
        finite = np.isfinite(one.measured[k])
        if not finite.any():
            axes.plot([], [], " ", label=f"L = {depth}: stable for every lag")
            continue
        axes.loglog(w, np.where(np.isinf(laws[k]), np.nan, laws[k]), color=colour)
        points = WEIGHTS[finite], one.measured[k][finite]
        axes.plot(*points, MARKERS[k], color=colour, label=f"L = {depth}")
    axes.text(
        0.97,
        0.95,
        "unstable above a line;\nno limit left of its end",
        transform=axes.transAxes,
        ha="right",
        va="top",
    )
    axes.set(xlabel="weight w", xlim=(0.45, 13), ylim=(0.03, 300))
    _plain_ticks(axes)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _draw_delays(axes: Axes, loop: Map, branch: Map) -> None:
    w = np.geomspace(0.4, 4, 200)
    for k, depth in enumerate(LOOP_DEPTHS):
        colour = plots.COLOURS[k]
        axes.loglog(w, [lags.loop_delay_limit(int(depth), x) for x in w], color=colour)
        label = f"all uses late, L = {depth}: (π/2) τ_x/h_max"
        axes.plot(LOOP_WEIGHTS, loop.measured[k], MARKERS[k], color=colour, label=label)
    above = w[w > 1.05]
    colour = plots.COLOURS[2]
    axes.plot(above, [lags.feedback_delay_limit(x) for x in above], color=colour)
    label = "feedback branch late, L = 2 (Hayes; none for w ≤ 1)"
    axes.plot(FEEDBACK_WEIGHTS, branch.measured[0], MARKERS[2], color=colour, label=label)
    axes.set(
        title="D  pure delay",
        xlabel="weight w",
        ylabel="largest stable delay d/τ_x",
        ylim=(0.03, 12),
    )
    _plain_ticks(axes)
    axes.legend(frameon=False, fontsize=8, loc="lower left")


def _plain_ticks(axes: Axes) -> None:
    low, high = axes.get_xlim()
    ticks = [t for t in (0.5, 1, 1.5, 2, 3, 5, 10) if low <= t <= high]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xticks([], minor=True)
    axes.yaxis.set_major_formatter("{x:g}")
