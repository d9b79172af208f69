"""`pcsim cost`: energy, time and counts of a training: an estimate."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.asked import settings_of
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
    measure: Annotated[
        bool, typer.Option(help="Train with each rule on two chips, and count their pulses.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the numbers as JSON.")] = False,
) -> None:
    """Estimate what the training of `pcsim check` costs: iPC, PC and BP.

    Nothing is run, unless --measure asks for the number of pulses to be counted.
    """
    from pcsim.check import physical
    from pcsim.check.cost import cost_of
    from pcsim.check.pulses import counted_pulses
    from pcsim.check.rows import require_chips
    from pcsim.runner.task import Task
    from pcsim.terminal import console, progress

    changes = pairs(change)
    if hardware is not None:
        changes["hardware.preset"] = hardware
    settings = settings_of(config, changes)
    require_chips(settings)
    settings = physical(settings)
    samples = len(Task.load(settings, settings.network.build()).train.x)
    estimate = cost_of(settings, samples)
    if estimate is not None and measure:
        watch = (lambda _: nullcontext()) if as_json else progress
        pulses = counted_pulses(settings, watch)
        if pulses is None:
            raise UnsupportedError(
                f"cost: --measure: no device of {settings.hardware.preset} is written by pulses: "
                f"there are none to count; leave it out"
            )
        estimate = cost_of(settings, samples, pulses)
    if estimate is None:
        raise UnsupportedError(
            "cost: operations are counted for dense layers and samples that are shown one after "
            "another; use network.kind 'mlp', and leave run.automatic out"
        )
    if as_json:
        ratios = {
            name: {"typical": typical, "moves": [vars(one) for one in moves]}
            for name, (typical, moves) in estimate.ratios.items()
        }
        typer.echo(json.dumps({**estimate.numbers, "ratios": ratios}))
        return
    shown = estimate.tables()
    for table in shown if entries else shown[:-1]:
        console.print(table.rich())
    console.print(estimate.sentence, style="bold")
