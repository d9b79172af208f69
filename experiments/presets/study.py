"""Every hardware preset on the embedded digits: does iPC train on it, and what does it cost?

Each preset is one `pcsim check` with 32 chips from 3 seeds, stored in a file of its own; a study
that was interrupted goes on with the presets that are missing.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table

from hw_models.description import known_presets
from pcsim.check import DIGITS, check
from pcsim.store import Result
from pcsim.sweep.functions import collect
from pcsim.terminal import progress, terminal
from pcsim.verdict import verdict_from

TWINS = {
    "PC": "twin.PC_with_phases.this_chip",
    "BP": "twin.BP_on_the_array.this_chip",
}


def checked(name: str) -> Result:
    """Check one preset."""
    start = time.monotonic()
    found = check(hardware=name).result()
    attrs = {**found.attrs, "check_seconds": time.monotonic() - start}
    return Result(found.variables, found.coords, attrs, found.coord_attrs)


def main(out: Path) -> None:
    """Check all presets, print the table."""
    table = Table(title="iPC on every preset: digits, 32 chips × 3 seeds; test accuracy, %")
    for column in ("preset", "outcome", "5 %", "median", "95 %", "ideal", *TWINS, "energies", "s"):
        table.add_column(column, justify="left" if column in ("preset", "energies") else "right")
    jobs = {name: partial(checked, name) for name in known_presets()}
    with progress("presets", remaining=False) as report:
        found = collect(jobs, out / "presets", repr(DIGITS), report=report)
    for name, result in found.items():
        table.add_row(name, *_row(result))
    terminal().print(table)


def _row(result: Result) -> list[str]:
    quantiles = np.quantile(100 * result["accuracy"], (0.05, 0.5, 0.95))
    twins = [f"{100 * np.median(result[name]):.1f}" for name in TWINS.values()]
    outcomes, counts = np.unique(verdict_from(result).outcome, return_counts=True)
    told = ", ".join(f"{n} {o}" for o, n in zip(outcomes, counts, strict=True))
    ideal = f"{100 * np.mean(result['twin.automatic_iPC.ideal_chip']):.1f}"
    seconds = f"{float(result.attrs['check_seconds']):.0f}"
    return [
        str(result.attrs["outcome"]),
        *(f"{q:.1f}" for q in quantiles),
        ideal,
        *twins,
        told,
        seconds,
    ]
