"""Backpropagation on our devices beside another simulator's figures for the same task.

    digits, 64-32-10, tanh, one epoch, batch 8, perfect periphery

`devices.csv` holds what aihwkit 1.2 gives; nothing in pcsim was fitted to it. The study
trains BP on ten training presets, 32 chips each, and prints both with the spread over chips.
Samples write one by one: what goes up and what goes down, and by trains of 31 slots that rows and
columns share (Gokmen and Vlasov 2016), as there. Before that, the same devices are pulsed one by
one, beside what aihwkit 1.1 does with the same pulses (`steps.py`).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

import hw_models
from hw_models import PulseTrain, fields_of
from pcsim import config
from pcsim.provenance import provenance
from pcsim.run import run
from pcsim.store import Result, Variable
from pcsim.terminal import terminal

from ..common.keeping import claim, keep
from . import steps

CHIPS = 32
MARGIN = 0.05
"""Accuracies that differ by more than this beyond the chips' own spread are said to disagree."""


@dataclass(frozen=True)
class Published:
    """One figure from elsewhere."""

    preset: str
    device: str
    accuracy: float
    """Fraction right."""


def published() -> list[Published]:
    """Read the figures."""
    lines = Path(__file__).with_name("devices.csv").read_text("utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [Published(r["preset"], r["device"], float(r["accuracy"]) / 100) for r in rows]


def with_trains(preset: str, slots: int = 31) -> dict[str, dict[str, object]]:
    """Return the pieces of a preset behind pulse trains of its rows and columns."""
    pieces = fields_of(hw_models.preset(preset))
    device = next(piece.get("device", piece) for piece in pieces.values() if "device" in str(piece))
    dw = device["dw_min"] * device["range"]
    return {"trains": PulseTrain(dw=dw, slots=slots, lines="shared").model_dump(), **pieces}


def accuracies(preset: str, chips: int = CHIPS, *, trains: bool = False) -> np.ndarray:
    """Train BP on the chips of a preset; return the test accuracy of each (chip,)."""
    hardware = {"pieces": with_trains(preset)} if trains else {"preset": preset}
    settings = config.parse(
        {
            "network": {"sizes": [64, 32, 10]},
            "schedule": {"rule": "bp", "T": 8},
            "learning": {"alpha": 0.01, "batch": 8, "epochs": 1},
            "data": {"name": "digits"},
            "hardware": {**hardware, "chips": chips},
        },
        "held_out_devices",
    )
    return np.asarray(run(settings)["accuracy"], float).reshape(-1)


def agrees(figure: float, found: np.ndarray) -> bool:
    """Whether a single figure from elsewhere may be one of these chips, within `MARGIN`."""
    low, high = np.quantile(found, (0.05, 0.95))
    return bool(low - MARGIN <= figure <= high + MARGIN)


def main(out: Path) -> None:
    """Train, print, store."""
    target = out / "held_out_devices.h5"
    claim(target, "held_out_devices")
    responses = steps.published()
    measured = {preset: steps.measured(preset, marks) for preset, marks in responses.items()}
    terminal().print(steps.table(measured, responses))
    figures = published()
    found = np.stack([accuracies(row.preset) for row in figures])
    trains = np.stack([accuracies(row.preset, trains=True) for row in figures])
    terminal().print(table(figures, found, trains))
    names = np.array([row.preset for row in figures])
    variables = {
        "accuracy": Variable(("preset", "chip"), found, {"long_name": "test accuracy, BP"}),
        "accuracy_by_trains": Variable(("preset", "chip"), trains),
        "steps_apart": Variable(
            ("steps_preset", "mark"),
            np.stack([steps.apart(measured[name], responses[name]) for name in responses]),
            {"long_name": "difference of mean weights from aihwkit 1.1, standard errors"},
        ),
        "published": Variable(("preset",), np.array([row.accuracy for row in figures])),
    }
    marks = next(iter(responses.values()))
    coords = {
        "preset": names,
        "chip": np.arange(found.shape[1]),
        "steps_preset": np.array(list(responses)),
        "mark": np.array(
            [f"{way} {pulse}" for way, pulse in zip(marks.way, marks.pulse, strict=True)]
        ),
    }
    keep(Result(variables, coords, provenance()), target, "held_out_devices")


def table(figures: Sequence[Published], found: np.ndarray, trains: np.ndarray) -> Table:
    """Return both figures side by side."""
    shown = Table(title=f"BP on devices: digits, {found.shape[1]} chips; test accuracy, %")
    for column in ("preset", "5 %", "median", "95 %", "by trains", "aihwkit 1.2", "agree"):
        shown.add_column(column, justify="left" if column == "preset" else "right")
    for row, values, by_trains in zip(figures, found, trains, strict=True):
        numbers = [f"{100 * q:.1f}" for q in np.quantile(values, (0.05, 0.5, 0.95))]
        verdict = "yes" if agrees(row.accuracy, values) else "no"
        middle = f"{100 * np.median(by_trains):.1f}"
        shown.add_row(row.preset, *numbers, middle, f"{100 * row.accuracy:.1f}", verdict)
    return shown
