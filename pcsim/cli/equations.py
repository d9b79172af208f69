"""`pcsim equations CONFIG`: the configured circuit as the text that Brian2 runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.run import pairs


def equations(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    latex: Annotated[bool, typer.Option(help="Typeset the equations in LaTeX.")] = False,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: circuit.kind=dendritic (repeatable)."),
    ] = None,
) -> None:
    """Print the equations of every layer and of the synapses between them."""
    import torch

    from pcsim import config as configuration
    from pcsim.backends.brian.describe import describe
    from pcsim.hardware import make_chips
    from pcsim.replicas import Replicas
    from pcsim.timing import Timing

    settings = configuration.load(config, pairs(change), backend="brian")
    timing = Timing.of(settings)
    chips = make_chips(settings, Replicas.of(settings), timing.dt, torch.float64, "cpu")
    network = settings.network.build()
    typer.echo(describe(network, timing.circuit, settings.data.mode, latex=latex, chips=chips))
