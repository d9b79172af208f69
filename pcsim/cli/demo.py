"""`pcsim demo`: the four rules on the embedded digits, as a table, a figure and a result file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from pcsim import config as configuration
from pcsim.cli.progress import console, progress
from pcsim.config import Config
from pcsim.plots import training_curves
from pcsim.run import run
from pcsim.store import Result

RULES = {"bp": "BP", "pc": "PC", "zil": "Z-IL", "ipc": "iPC"}
EPOCHS = 40


def demo_config(rule: str, seeds: int = 5, epochs: int = EPOCHS) -> Config:
    """Return the demo's setting: digits, 64-32-32-10, tanh, Adam, batch 32, T = 8, γ = 0.5."""
    return configuration.parse(
        {
            "network": {"sizes": [64, 32, 32, 10]},
            # PC needs small steps: it writes weights once per batch, far from the start.
            # Z-IL equals BP at γ = 1 only.
            "schedule": {"rule": rule, "T": 8, "gamma": {"pc": 0.1, "zil": 1.0}.get(rule, 0.5)},
            "learning": {"optimizer": "adam", "alpha": 1e-3, "batch": 32, "epochs": epochs},
            "data": {"name": "digits"},
            "run": {"seeds": list(range(seeds))},
        },
        "demo",
    )


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path(
        "out/demo"
    ),
) -> None:
    """Train a small classifier on the embedded digits with BP, PC, Z-IL and iPC."""
    results: dict[str, Result] = {}
    for rule, name in RULES.items():
        with progress(f"{name:>5}") as report:
            setting, target = demo_config(rule, epochs=EPOCHS), out / f"digits_{rule}.h5"
            results[name] = run(setting, target, overwrite=True, report=report)
    console.print(_table(results))
    figure = training_curves(results, out / "digits.png", "digits, 64-32-32-10, 5 seeds")
    console.print(f"results in {out}, figure in {figure}")


def _table(results: dict[str, Result]) -> Table:
    table = Table(title=f"digits, 64-32-32-10, 5 seeds, {EPOCHS} epochs")
    for column in ("rule", "test accuracy, %", "SD over seeds", "energy per sample", "seconds"):
        table.add_column(column, justify="right")
    for name, result in results.items():
        accuracy = 100 * result["accuracy"]
        energy = result["train_energy"][..., -1]
        seconds = float(result.attrs["train_seconds"])
        table.add_row(
            name,
            f"{np.mean(accuracy):.2f}",
            f"{np.std(accuracy, ddof=1):.2f}",
            f"{np.mean(energy):.4f}",
            f"{seconds:.1f}",
        )
    return table
