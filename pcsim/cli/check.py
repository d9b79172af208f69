"""`pcsim check`: does iPC train on this chip?

Exit code 0 if it does, 3 if it does not, 4 if the ideal chip has not learnt either: no verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcsim import config as configuration
from pcsim import store
from pcsim.check import DIGITS
from pcsim.check import check as run_check
from pcsim.check_rows import KeptRows, rows_folder
from pcsim.cli.exit_codes import DID_NOT_TRAIN, OF_NO_USE
from pcsim.cli.progress import console
from pcsim.cli.run import pairs
from pcsim.plots import check_figure
from pcsim.run import check_target
from pcsim.store.files import check_own
from pcsim.store.lock import held


def check(
    config: Annotated[
        Path | None,
        typer.Argument(help="TOML file of a run in continuous time [the embedded digits]."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
    ] = None,
    chips: Annotated[int | None, typer.Option(min=1, help="Chips of the population.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file [out/check_HARDWARE.h5].")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: hardware.pieces.noise.sigma=0.1 (repeatable)."),
    ] = None,
    twins: Annotated[bool, typer.Option(help="Also run discrete iPC and BP.")] = True,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing result.")] = False,
) -> None:
    """Train a population of chips, compare with ideal and discrete training, give the verdict.

    Interrupted or killed, the same command goes on with the rows that are finished.
    """
    changes = pairs(change)
    if chips is not None:
        changes["hardware.chips"] = str(chips)
    if hardware is not None:
        changes["hardware.preset"] = hardware
    if config:
        settings = configuration.load(config, changes, backend="continuous")
    else:
        settings = configuration.with_changes(DIGITS, changes, "check")
    name = Path(settings.hardware.preset).stem
    target = out or Path("out") / f"check_{name}.h5"
    check_target(target, overwrite)
    check_own(target.with_suffix(".png"))
    rows = rows_folder(target)
    with held(target):
        check_target(target, overwrite)  # the process before this one may have finished it
        found = run_check(
            settings, twins=twins, announce=lambda row: console.print(f"… {row}"), rows=rows
        )
        store.save(found.result(), target, overwrite=overwrite)
        KeptRows(rows).forget()
        figure = check_figure(found, target.with_suffix(".png"))
    console.print(found.verdict.table(f"verdict: {name}"))
    console.print(found.table())
    console.print(f"stored in {target}, figure in {figure}")
    console.print(found.sentence(), style="bold")
    if found.outcome != "trains":
        raise typer.Exit(DID_NOT_TRAIN if found.outcome == "does not train" else OF_NO_USE)
