"""Every hardware preset on the embedded digits: does iPC train on it, and what does it cost?

Each preset is one `pcsim check` with 32 chips, stored in a file of its own; a study that was
interrupted goes on with the presets that are missing.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from rich.table import Table

from hw_models.description import known_presets
from pcsim import store
from pcsim.check import check
from pcsim.store import Result
from pcsim.terminal import terminal
from pcsim.verdict import verdict_from

TWINS = {
    "discrete iPC": "twin.discrete_iPC.same_hardware",
    "discrete BP": "twin.discrete_BP.same_hardware",
}


def main(out: Path) -> None:
    """Check all presets, print the table."""
    folder = out / "presets"
    table = Table(title="iPC on every preset: digits, 32 chips; test accuracy, %")
    for column in ("preset", "trains", "5 %", "median", "95 %", "ideal", *TWINS, "outcomes", "s"):
        table.add_column(column, justify="left" if column in ("preset", "outcomes") else "right")
    for name in known_presets():
        path = folder / f"{name}.h5"
        if not path.exists():
            terminal().print(f"… {name}")
            start = time.monotonic()
            found = check(hardware=name).result()
            seconds = time.monotonic() - start
            kept = Result(
                found.variables,
                found.coords,
                {**found.attrs, "check_seconds": seconds},
                found.coord_attrs,
            )
            store.save(kept, path)
        table.add_row(name, *_row(store.load(path)))
    terminal().print(table)


def _row(result: Result) -> list[str]:
    quantiles = np.quantile(100 * result["accuracy"], (0.05, 0.5, 0.95))
    twins = [f"{100 * np.median(result[name]):.1f}" for name in TWINS.values()]
    outcomes, counts = np.unique(verdict_from(result).outcome, return_counts=True)
    told = ", ".join(f"{n} {o}" for o, n in zip(outcomes, counts, strict=True))
    ideal = f"{100 * np.mean(result['twin.iPC.ideal_chip']):.1f}"
    seconds = f"{float(result.attrs['check_seconds']):.0f}"
    passed = "yes" if int(result.attrs["passed"]) else "no"
    return [passed, *(f"{q:.1f}" for q in quantiles), ideal, *twins, told, seconds]
