"""Step responses of our devices beside those that aihwkit gives for its own, pulse by pulse.

`steps.csv` has what aihwkit 1.1 does with 200 pulses up and 200 down from weight zero, as
`with_aihwkit.py` measures it. No number of a preset was fitted to it; that the pair of `pcm` reads
with an error before a refresh, and counts its pulses, was found from its differences here.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.table import Table

import hw_models
from hw_models.plasticity_arrays import DevicePair

from ..devices.measure import Bench, device_of

Floats = npt.NDArray[np.float64]
DEVICES = 20_000


@dataclass(frozen=True, eq=False)
class Steps:
    """Mean weight over devices, its standard error and the spread between devices, at marks."""

    way: tuple[str, ...]
    pulse: tuple[int, ...]
    mean: Floats
    error: Floats
    spread: Floats


def published() -> dict[str, Steps]:
    """Return what aihwkit gives for each preset."""
    text = Path(__file__).with_name("steps.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    found = {}
    for preset in dict.fromkeys(row["preset"] for row in rows):
        own = [row for row in rows if row["preset"] == preset]
        values = (
            np.array([float(row[name]) for row in own]) for name in ("mean", "error", "spread")
        )
        found[preset] = Steps(
            tuple(row["way"] for row in own), tuple(int(row["pulse"]) for row in own), *values
        )
    return found


def measured(preset: str, marks: Steps, devices: int = DEVICES) -> Steps:
    """Pulse our devices to the same marks, one pulse per write.

    A pair refreshes itself at the write behind the one that wore it, aihwkit's at its end: an empty
    write goes before each mark.
    """
    hardware = hw_models.preset(preset)
    bench = Bench(hardware, devices=devices)
    pulse = device_of(hardware).quantum
    noted = []
    for way, sign in (("up", 1), ("down", -1)):
        last = 0
        for upto in (p for w, p in zip(marks.way, marks.pulse, strict=True) if w == way):
            for _ in range(upto - last):
                bench.write(sign * pulse)
            if isinstance(hardware.pieces["device"], DevicePair):
                bench.write(0.0)
            noted.append(np.asarray(bench.w[0, 0].numpy()))
            last = upto
    spread = np.array([one.std(ddof=1) for one in noted])
    mean = np.array([one.mean() for one in noted])
    return Steps(marks.way, marks.pulse, mean, spread / np.sqrt(devices), spread)


def apart(found: Steps, given: Steps) -> Floats:
    """Return the difference of the means at each mark, in standard errors of both."""
    return np.asarray((found.mean - given.mean) / np.hypot(found.error, given.error))


def table(found: dict[str, Steps], given: dict[str, Steps]) -> Table:
    """Return how far apart both are, one line per preset."""
    made = Table(title="pulses one by one, against aihwkit 1.1: z of the mean at ten marks")
    for column in ("preset", "mean |z|", "max |z|", "where", "spread there / here"):
        made.add_column(column, justify="left" if column == "preset" else "right")
    for preset, steps in found.items():
        z = np.abs(apart(steps, given[preset]))
        worst = int(z.argmax())
        ratio = steps.spread / given[preset].spread
        made.add_row(
            preset,
            f"{z.mean():.1f}",
            f"{z.max():.1f}",
            f"{steps.way[worst]} {steps.pulse[worst]}",
            f"{ratio.min():.2f} – {ratio.max():.2f}",
        )
    return made
