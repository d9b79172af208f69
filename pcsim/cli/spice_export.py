"""`pcsim spice export`: a run as a folder that needs no pcsim."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.run import pairs
from pcsim.errors import ConfigError, UnsupportedError


class Tier(StrEnum):
    """How much of the circuit is real."""

    behavioural = "behavioural"
    macro = "macro"
    transistor = "transistor"


def export(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    out: Annotated[Path, typer.Option(help="Folder to write; must not exist, or be empty.")],
    tier: Annotated[
        Tier,
        typer.Option(
            help="Ideal sources, transconductors with the limits in [spice.macro], or transistors."
        ),
    ] = Tier.behavioural,
    samples: Annotated[int, typer.Option(help="Presentations that the folder shows.")] = 20,
    chip: Annotated[int, typer.Option(help="Which chip of the population.")] = 0,
    minutes: Annotated[float, typer.Option(help="CPU time that ngspice may need for it.")] = 10.0,
    process: Annotated[
        str | None,
        typer.Option(help="Of the tier transistor, as of `spice transistor` [bsim4-default]."),
    ] = None,
    ideal: Annotated[
        str | None, typer.Option(help="Roles without transistors, or 'all' [none].")
    ] = None,
    draw: Annotated[int | None, typer.Option(help="Draw of the foundry's mismatch [0].")] = None,
    width: Annotated[float | None, typer.Option(help="Of every transistor, um [2].")] = None,
    length: Annotated[float | None, typer.Option(help="Of every transistor, um [2].")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: circuit.tau_w=100 (repeatable)."),
    ] = None,
) -> None:
    """Write a run as netlist, data, recording and comparison: a folder that needs no pcsim."""
    from pcsim import config as configuration
    from pcsim.spice.cells.network import roles as without
    from pcsim.spice.folder import export as folder
    from pcsim.spice.folder import transistor

    changes = {"run.backend": "continuous"} | pairs(change) | {"run.engine": "spice"}
    settings = configuration.load(config, changes)
    own = {"process": process, "ideal": ideal, "draw": draw, "width": width, "length": length}
    if tier is not Tier.transistor and (given := [k for k, v in own.items() if v is not None]):
        raise ConfigError(f"{given[0]}: belongs to --tier transistor, got --tier {tier}")
    if tier is Tier.transistor:
        transistor.refuse_circuit(settings)
        roles = without(ideal or "")
        count, seconds = transistor.counted(settings, roles, samples)
        typer.echo(f"{count} transistors")
    else:
        seconds = folder.expected_seconds(settings, samples)
        if (tier is Tier.macro) != (settings.spice.macro is not None):
            raise ConfigError(
                "tier: 'macro' is the tier of a table [spice.macro], and needs one: "
                "--tier macro --set spice.macro.output_resistance=1e9"
            )
    typer.echo(f"ngspice will need about {seconds:.1g} s of CPU time")
    if seconds > 60 * minutes:
        raise UnsupportedError(
            f"spice export: {samples} presentations of this network need about "
            f"{seconds / 60:.0f} minutes of CPU time in ngspice, more than --minutes {minutes:g}; "
            f"allow more, or take fewer --samples"
        )
    if tier is Tier.transistor:
        if chip:
            raise ConfigError("chip: transistors are drawn by --draw; leave it out")
        from pcsim.spice.cells.library import Sizes
        from pcsim.spice.cells.process import process as named

        models = named(process or "bsim4-default")
        if draw and not models.mismatch:
            raise ConfigError(f"draw: {models.name} has no mismatch; try sky130:tt_mm")
        sizes = Sizes(width or 2.0, length or 2.0)
        recorded = transistor.export(settings, out, samples, models, sizes, roles, draw or 0)
    else:
        recorded = folder.export(settings, out, samples, chip)
    typer.echo(f"{out}: {len(recorded.rows[0])} states and weights, recorded by {recorded.by}")
    typer.echo(f"python {out / 'compare.py'} runs the netlist and compares it")


def verilog_a(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    out: Annotated[Path, typer.Option(help="Folder to write; must not exist, or be empty.")],
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: circuit.kind=dendritic (repeatable)."),
    ] = None,
) -> None:
    """Write neuron, error dendrite, synapse and learning cell of each layer as Verilog-A."""
    from pcsim import config as configuration
    from pcsim.spice.folder import verilog

    changes = {"run.backend": "continuous"} | pairs(change) | {"run.engine": "spice"}
    modules = verilog.export(configuration.load(config, changes), out)
    typer.echo(f"{out / verilog.FILE}: {', '.join(modules)}")
