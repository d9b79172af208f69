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


def export(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    out: Annotated[Path, typer.Option(help="Folder to write; must not exist, or be empty.")],
    tier: Annotated[
        Tier,
        typer.Option(help="Ideal sources, or transconductors with the limits in [spice.macro]."),
    ] = Tier.behavioural,
    samples: Annotated[int, typer.Option(help="Presentations that the folder shows.")] = 20,
    chip: Annotated[int, typer.Option(help="Which chip of the population.")] = 0,
    minutes: Annotated[float, typer.Option(help="CPU time that ngspice may need for it.")] = 10.0,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: circuit.tau_w=100 (repeatable)."),
    ] = None,
) -> None:
    """Write a run as netlist, data, recording and comparison: a folder that needs no pcsim."""
    from pcsim import config as configuration
    from pcsim.spice.folder import export as folder

    changes = {"run.backend": "continuous"} | pairs(change) | {"run.engine": "spice"}
    settings = configuration.load(config, changes)
    if (tier is Tier.macro) != (settings.spice.macro is not None):
        raise ConfigError(
            "tier: 'macro' is the tier of a table [spice.macro], and needs one: "
            "--tier macro --set spice.macro.output_resistance=1e9"
        )
    seconds = folder.expected_seconds(settings, samples)
    typer.echo(f"ngspice will need about {seconds:.1g} s of CPU time")
    if seconds > 60 * minutes:
        raise UnsupportedError(
            f"spice export: {samples} presentations of this network need about "
            f"{seconds / 60:.0f} minutes of CPU time in ngspice, more than --minutes {minutes:g}; "
            f"allow more, or take fewer --samples"
        )
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
