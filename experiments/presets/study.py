"""Every hardware preset on the embedded digits: does automatic iPC train on it?

Each preset is one `pcsim check` as a chip runs that nobody controls: one sample at a time, states
carried over, nothing reset, the learning rate of every rule chosen on held-out samples. The ideal
rules, which are the same for all presets, run once. Checks are kept: an interrupted study goes on.

    pcsim experiment presets                       as `pcsim check`, ideal rules beside the chips
    pcsim experiment presets --scale paper         PC and BP on every chip too
    pcsim experiment presets --scale idealised     8 samples side by side, states reset

The table goes to `presets_SCALE.csv`; `docs/presets.md` shows the one that is beside this file.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.table import Table

from hw_models.description import known_presets
from pcsim import config as configuration
from pcsim.check import DIGITS, REGIMES, check
from pcsim.check.rows import CHIP, IDEAL
from pcsim.config import Config
from pcsim.store import Result, Variable
from pcsim.store.files import check_own, write_own
from pcsim.store.parts import Parts
from pcsim.sweep.functions import collect
from pcsim.terminal import progress, terminal
from pcsim.verdict import verdict_from

SHIPPED = Path(__file__).with_name("presets.csv")
"""The table that the documentation shows."""
IDEALISED = Path(__file__).with_name("idealised.csv")
"""Answers of an earlier version in an idealised case, which its first line says."""
COLUMNS = ["preset", "outcome", "5 %", "median", "95 %", "loss", "rate"]
COLUMNS += ["idealised", "energies", "CPU, s"]
COMMAND = "pcsim experiment presets"


@dataclass(frozen=True)
class Scale:
    """How much is run, and how."""

    samples: int
    chips: int
    twins: bool | Literal["ideal"]
    idealised: bool = False


PAGE = "presets.md"
SCALES = {
    "small": Scale(1000, 32, "ideal"),
    "paper": Scale(1000, 32, True),
    "idealised": Scale(500, 8, "ideal", idealised=True),
}


@dataclass(frozen=True)
class Line:
    """What the table says of a preset; accuracies and losses in points."""

    preset: str
    outcome: str
    low: float
    """Accuracy: the 5 % quantile over seeds and chips."""
    median: float
    high: float
    loss: float
    """Median over chips, against the reference of the same seed."""
    error: float
    ideal: float
    reference: float
    rate: float
    """Learning rate per sample."""
    energies: str
    cpu_seconds: float


def setting(name: str, scale: Scale) -> Config:
    """Return the configuration of one check."""
    sections: dict[str, dict[str, Any]] = {"data": {"limit": scale.samples}}
    if scale.idealised:
        sections |= REGIMES["reset"](configuration.parse(DIGITS)) | {"learning": {"batch": 8}}
    base = configuration.changed(configuration.parse(DIGITS, "presets"), sections)
    made = configuration.changed(base, {"hardware": {"preset": name}})
    if made.hardware.identical:
        return made
    return configuration.changed(made, {"hardware": {"chips": scale.chips}})


def checked(name: str, scale: Scale, rows: Path) -> Result:
    """Check one preset."""
    begun = time.process_time()
    done = check(setting(name, scale), twins=scale.twins, rows=rows)
    spent = time.process_time() - begun
    answer, accuracy = done.answer, np.nan_to_num(done.accuracy(CHIP))
    outcomes, counts = np.unique(verdict_from(done.runs[CHIP]).outcome, return_counts=True)
    numbers = {
        "loss": float(np.median(answer.loss)),
        "error": answer.error,
        "ideal": float(np.mean(done.accuracy(IDEAL))),
        "reference": float(np.mean(answer.reference)),
        "rate": done.rates[CHIP].value if done.rates else np.nan,
        "cpu_seconds": spent,
    }
    variables = {key: Variable((), np.asarray(value)) for key, value in numbers.items()}
    variables["accuracy"] = Variable(("seed", "chip"), accuracy)
    told = ", ".join(f"{n} {o}" for o, n in zip(outcomes, counts, strict=True))
    return Result(variables, {}, {"outcome": done.outcome, "energies": told})


def line(name: str, result: Result) -> Line:
    """Return a check as a line of the table."""
    quantiles = (float(q) for q in np.quantile(100 * result["accuracy"], (0.05, 0.5, 0.95)))
    low, median, high = (round(q, 1) for q in quantiles)
    points = {
        key: round(100 * float(result[key]), 1) for key in ("loss", "error", "ideal", "reference")
    }
    return Line(
        preset=name,
        outcome=str(result.attrs["outcome"]),
        low=low,
        median=median,
        high=high,
        **points,
        rate=float(result["rate"]),
        energies=str(result.attrs["energies"]),
        cpu_seconds=round(float(result["cpu_seconds"]), 1),
    )


def main(out: Path, scale: str) -> None:
    """Check all presets, print the table, write it."""
    size = SCALES[scale]
    target = out / f"presets_{scale}.csv"
    check_own(target, COMMAND)
    folder = out / f"presets_{scale}.cells"
    rows = Parts(folder / "rows")
    jobs = {name: partial(checked, name, size, rows.folder) for name in known_presets()}
    with progress("presets", remaining=False) as report:
        done = collect(jobs, folder, f"{size} {DIGITS}", report=report)
    lines = [line(name, result) for name, result in done.items()]
    terminal().print(table(lines, size))
    write_own(target, as_csv(lines, scale).encode(), COMMAND)
    rows.forget()
    terminal().print(f"table in {target}")


def table(lines: Sequence[Line], scale: Scale) -> Table:
    """Return the table for a terminal."""
    case = "IDEALISED" if scale.idealised else "one at a time, nothing reset"
    shown = Table(title=f"automatic iPC: {scale.samples} digits, {case}; test accuracy, %")
    for column in ("preset", "outcome", "5 %", "median", "95 %", "loss", "rate", "CPU, s"):
        shown.add_column(column, justify="left" if column in ("preset", "outcome") else "right")
    for one in lines:
        loss = f"{one.loss:.1f} ± {one.error:.1f}"
        accuracies = (f"{value:.1f}" for value in (one.low, one.median, one.high))
        rest = (loss, f"{one.rate:.3g}", f"{one.cpu_seconds:.0f}")
        shown.add_row(one.preset, one.outcome, *accuracies, *rest)
    return shown


def as_csv(lines: Sequence[Line], scale: str) -> str:
    """Return the table as a file, with the command that makes it."""
    buffer = io.StringIO()
    buffer.write(f"# {COMMAND} --scale {scale}\n")
    writer = csv.DictWriter(buffer, [one.name for one in fields(Line)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(one) for one in lines)
    return buffer.getvalue()


def shipped(path: Path = SHIPPED) -> list[Mapping[str, str]]:
    """Read a table."""
    text = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(one for one in text if not one.startswith("#")))


def before() -> dict[str, str]:
    """Return the answers in the idealised case, by preset."""
    return {one["preset"]: f"{one['trains']}, {one['median']}" for one in shipped(IDEALISED)}


def page_table(lines: Sequence[Mapping[str, str]], before: Mapping[str, str]) -> str:
    """Return the table of `docs/presets.md`; `before` has idealised answers by preset."""
    rows = [COLUMNS, ["---"] * len(COLUMNS)]
    for one in lines:
        rows.append(
            [
                one["preset"],
                one["outcome"],
                *(one[name] for name in ("low", "median", "high")),
                f"{float(one['loss']):.1f} ± {float(one['error']):.1f}",
                f"{float(one['rate']):.3g}",
                before.get(one["preset"], "–"),
                one["energies"],
                f"{float(one['cpu_seconds']):.0f}",
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
