"""`pcsim cost`: energy, time and counts of a training; an estimate, nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.check import settings_of
from pcsim.cli.run import pairs
from pcsim.errors import UnsupportedError


def cost(
    config: Annotated[
        Path | None,
        typer.Argument(help="TOML file, as for `pcsim check` [the embedded digits]."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: stream.t_pres=50 (repeatable)."),
    ] = None,
    entries: Annotated[bool, typer.Option(help="Also list every entry with its source.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Estimate what the training of `pcsim check` costs: iPC, PC and BP; nothing is run."""
    from pcsim.check import physical
    from pcsim.check.cost import cost_of
    from pcsim.check.rows import require_chips
    from pcsim.runner.task import Task
    from pcsim.terminal import console

    changes = pairs(change)
    if hardware is not None:
        changes["hardware.preset"] = hardware
    settings = settings_of(config, changes)
    require_chips(settings)
    settings = physical(settings)
    samples = len(Task.load(settings, settings.network.build()).train.x)
    found = cost_of(settings, samples)
    if found is None:
        raise UnsupportedError(
            "cost: operations are counted for dense layers and samples that are shown one after "
            "another; use network.kind 'mlp', and leave run.automatic out"
        )
    if as_json:
        typer.echo(json.dumps(found.numbers))
        return
    for table in found.tables()[: 2 if entries else 1]:
        console.print(table.rich())
    console.print(found.sentence, style="bold")
