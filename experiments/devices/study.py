"""Training devices as simulated: step responses, and what is recovered from them.

`pcsim experiment devices` pulses 200 devices of every training preset up and then down, prints
what a laboratory would find next to the published parameters, and the retention of an array of
phase-change memory; it writes `devices.h5` and `devices.png`.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.table import Table

from hw_models.presets import TRAINING
from pcsim import plots, store
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common.keeping import claim, keep
from .measure import DEVICES, Curve, Numbers, curve, measured, published, retention

TIMES = (1.0, 1e2, 1e4, 1e6)
EXPECTED_GAINS = (0.98, 0.90, 0.73, 0.58)
"""Gain of the product of a 256×256 array of the published PCM model, without compensation."""
LABELS = {
    "step_up": "up step at 0",
    "step_down": "down step at 0",
    "device_spread": "step, device to device",
    "cycle_spread": "step, cycle to cycle",
    "top": "upper bound",
    "bottom": "lower bound",
    "top_spread": "upper bound, device to device",
    "symmetry": "symmetry point",
    "pulses": "pulses to half-way",
}


def main(out: Path) -> None:
    """Measure, print, store, draw."""
    claim(out / "devices.h5", "devices")
    console = terminal()
    curves = {one.name: curve(one) for one in TRAINING}
    found = {one.name: measured(one, curves[one.name]) for one in TRAINING}
    given = {one.name: published(one) for one in TRAINING}
    gains = retention(TIMES)
    console.print(table(found, given))
    console.print(retention_table(gains))
    save(out / "devices.h5", found, given, curves, gains)
    console.print(f"figure: {draw(curves, out / 'devices.png')}")


def table(found: dict[str, Numbers], given: dict[str, Numbers]) -> Table:
    """Return recovered numbers, each with the published one in brackets."""
    made = Table(title=f"{DEVICES} simulated devices: recovered (published), device units")
    made.add_column("preset")
    for label in LABELS.values():
        made.add_column(label, justify="right")
    for name, numbers in found.items():
        expected = asdict(given[name])
        cells = [_cell(value, expected[key]) for key, value in asdict(numbers).items()]
        made.add_row(name, *cells)
    return made


def _cell(value: float, expected: float) -> str:
    if np.isnan(value):
        return "–"
    digits = ".0f" if expected >= 1000 else ".3g"
    return f"{value:{digits}} ({expected:{digits}})"


def retention_table(gains: np.ndarray) -> Table:
    """Return the gain of a phase-change array over time."""
    made = Table(title="phase-change memory, 256×256: gain of the product, no compensation")
    for column in ("seconds since programming", "simulated", "published model"):
        made.add_column(column, justify="right")
    for time, gain, expected in zip(TIMES, gains, EXPECTED_GAINS, strict=True):
        made.add_row(f"{time:g}", f"{gain:.3f}", f"{expected:.2f}")
    return made


def save(
    path: Path,
    found: dict[str, Numbers],
    given: dict[str, Numbers],
    curves: dict[str, Curve],
    gains: np.ndarray,
) -> None:
    """Store the table, the curves (each with its own pulse axis) and the retention."""
    variables: dict[str, Variable] = {}
    coords = {"preset": np.array(list(found)), "retention_time": np.array(TIMES)}
    for one in fields(Numbers):
        for kind, rows in (("measured", found), ("published", given)):
            values = np.array([getattr(row, one.name) for row in rows.values()])
            label: dict[str, store.Attr] = {"long_name": LABELS[one.name], "units": "1"}
            variables[f"{one.name}_{kind}"] = Variable(("preset",), values, label)
    for name, ramp in curves.items():
        axis = f"{name}_pulse"
        coords[axis] = ramp.pulse
        for kind, values in (("mean", ramp.mean), ("spread", ramp.spread)):
            variables[f"{name}_{kind}"] = Variable((axis,), values, {"units": "1"})
    label = {"long_name": "gain of the product of a PCM array", "units": "1"}
    variables["retention_gain"] = Variable(("retention_time",), gains, label)
    units: dict[str, dict[str, store.Attr]] = {"retention_time": {"units": "s"}}
    keep(Result(variables, coords, provenance(), units), path, "devices")


def draw(curves: dict[str, Curve], path: Path) -> Path:
    """Draw mean, spread and two single devices of every preset."""
    figure = Figure(figsize=(10.5, 4.4), layout="constrained")
    panels = figure.subplots(2, 5).flat
    for axes, (name, ramp) in zip(panels, curves.items(), strict=True):
        for k in range(ramp.single.shape[1]):
            axes.plot(ramp.pulse, ramp.single[:, k], color=plots.COLOURS[5], linewidth=0.4)
        low, high = ramp.mean - ramp.spread, ramp.mean + ramp.spread
        axes.fill_between(ramp.pulse, low, high, color=plots.COLOURS[0], alpha=0.25)
        axes.plot(ramp.pulse, ramp.mean, color=plots.COLOURS[0], linewidth=1.6)
        axes.axvline(ramp.pulse[-1] / 2, color="0.6", linestyle=":", linewidth=0.8)
        axes.set_title(name)
        axes.set_xlabel("pulse (up, then down)")
        axes.grid(alpha=0.25)
    for axes in (panels[0], panels[5]):
        axes.set_ylabel("weight, device units")
    figure.suptitle(
        f"Step response of the training presets: mean and ± 1 standard deviation over {DEVICES} "
        "devices; thin: two single devices"
    )
    return plots.save(figure, path)
