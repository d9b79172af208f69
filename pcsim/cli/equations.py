"""`pcsim equations CONFIG`: the configured circuit as the text that Brian2 runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.run import pairs
from pcsim.errors import UnsupportedError


def equations(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    latex: Annotated[bool, typer.Option(help="Typeset the equations in LaTeX.")] = False,
    script: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.py",
            help="Write a script that shows the circuit with Brian2 alone, and FILE.npz, where it "
            "starts: initial weights, and the first training sample.",
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Time steps of the script.")] = 200,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: circuit.kind=dendritic (repeatable)."),
    ] = None,
) -> None:
    """Print the equations of every layer and of the synapses between them, or write a script."""
    import torch

    from pcsim import config as configuration
    from pcsim.backends.brian.describe import describe
    from pcsim.hardware import make_chips
    from pcsim.runner.replicas import Replicas
    from pcsim.runner.timing import Timing

    settings = configuration.load(config, pairs(change), backend="brian")
    timing = Timing.of(settings)
    chips = make_chips(settings, Replicas.of(settings), timing.dt, torch.float64, "cpu")
    network = settings.network.build()
    if script:
        from pcsim.backends.brian.script import script as write_script
        from pcsim.runner.task import Task

        if chips is not None and chips.substrate.effects:
            raise UnsupportedError(
                "--script: hardware acts by pcsim between the steps; a script shows the ideal "
                "circuit: remove [hardware] from the configuration"
            )
        clamps = Task.load(settings, network).clamps(torch.zeros(1, 1, dtype=torch.long))
        written = write_script(
            script,
            network,
            timing.circuit,
            [None if one is None else one.cpu().numpy().ravel() for one in clamps],
            mode=settings.data.mode,
            dt=timing.dt,
            steps=steps,
            seeds=settings.run.seeds[:1],
        )
        typer.echo(f"script in {written}; it starts from {written.with_suffix('.npz')}")
        return
    typer.echo(describe(network, timing.circuit, settings.data.mode, latex=latex, chips=chips))
