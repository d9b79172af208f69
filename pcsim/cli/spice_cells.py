"""`pcsim spice transistor` and `pcsim spice characterize`: cells of transistors, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.spice_export import export, verilog_a
from pcsim.errors import ConfigError, UnsupportedError

if TYPE_CHECKING:
    from pcsim.spice.cells.library import Sizes
    from pcsim.spice.cells.network import Learnt

app = typer.Typer(help="Netlists for ngspice, transistors, and back.", no_args_is_help=True)
app.command()(export)
app.command("verilog-a")(verilog_a)
ProcessName = Annotated[
    str,
    typer.Option(
        help="bsim4-default, sky130:tt|ss|ff|sf|fs|tt_mm, or a file that names a library."
    ),
]
Width = Annotated[float, typer.Option(help="Of every transistor, um.")]
Length = Annotated[float, typer.Option(help="Of every transistor, um.")]
Current = Annotated[float, typer.Option(help="Tail current of multipliers, A.")]
Unit = Annotated[float, typer.Option(help="Volts that stand for 1 in the network.")]
TauX = Annotated[
    float | None, typer.Option(help="Time constant of somas, s [1 ms for 4 um2, as the area].")
]


@app.command()
def transistor(
    table: Annotated[str, typer.Argument(metavar="TASK", help="and, or, xor.")] = "and",
    layers: Annotated[str, typer.Option(help="Units per layer: 2-2-1.")] = "2-2-1",
    process: ProcessName = "sky130:tt",
    ideal: Annotated[
        str,
        typer.Option(
            help="Roles without transistors, or 'all': forward, feedback, learning, load, soma, "
            "interneuron."
        ),
    ] = "",
    draws: Annotated[int, typer.Option(help="Draws of mismatch (tt_mm).")] = 1,
    samples: Annotated[int, typer.Option(help="Patterns shown while learning.")] = 120,
    present: Annotated[float, typer.Option(help="Time per pattern, in tau_x.")] = 5.0,
    tau_x: TauX = None,
    tau_w: Annotated[float, typer.Option(help="Time constant of weights, in tau_x.")] = 40.0,
    scale: Annotated[float, typer.Option(help="Spread of initial weights, times √inputs.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of initial weights and of the order.")] = 0,
    width: Width = 2.0,
    length: Length = 2.0,
    current: Current = 10e-9,
    unit: Unit = 30e-3,
    minutes: Annotated[float, typer.Option(help="CPU time that is allowed.")] = 5.0,
    out: Annotated[Path | None, typer.Option(help="Folder for netlist, waveforms, figure.")] = None,
) -> None:
    """Let a network of transistors learn a truth table, beside the same with ideal cells."""
    from pcsim.spice.cells import network
    from pcsim.spice.cells.library import Sizes
    from pcsim.spice.cells.process import process as named
    from pcsim.spice.ngspice import SpiceError, program

    sizes = Sizes(width, length, current, unit)
    task = network.Task(
        table, _layers(layers), samples, present, _tau(tau_x, sizes), tau_w, scale, seed
    )
    roles = network.roles(ideal)
    if draws < 1 or (draws > 1 and not named(process).mismatch):
        raise ConfigError(
            f"draws: {process} has no mismatch to draw {draws} times; try sky130:tt_mm"
        )
    program()
    count = network.count(task, roles)
    seconds = network.expected_seconds(task, count) * draws
    typer.echo(f"{count} transistors, about {seconds:.0f} s of CPU time for {draws} run(s)")
    if seconds > 60 * minutes:
        raise UnsupportedError(
            f"spice transistor: {layers} with {samples} samples needs about {seconds / 60:.0f} "
            f"minutes of CPU time, more than --minutes {minutes:g}; allow more, or take fewer units"
        )
    reference = network.run(task, process, sizes, frozenset(network.ROLES))
    typer.echo("run          outputs (four patterns)       learnt  weights apart  supply")
    typer.echo(_row("ideal cells", reference, reference))
    for draw in range(draws):
        folder = out / f"draw_{draw}" if out and draws > 1 else out
        try:
            learnt = network.run(task, process, sizes, roles, draw, folder, seconds=60 * minutes)
        except SpiceError as error:
            if draws == 1:
                raise
            typer.echo(f"draw {draw:<7} {error}")
            continue
        typer.echo(_row(f"draw {draw}" if named(process).mismatch else process, learnt, reference))
        if out is not None:
            from pcsim.spice.cells.figure import draw_waves

            draw_waves(learnt, reference, (folder or out) / "waveforms.png", process)
    if out is not None:
        typer.echo(f"netlist, waveforms and figure: {out}")


@app.command()
def characterize(
    cells: Annotated[
        str, typer.Argument(help="Cells, or 'all': multiplier, transconductor, buffer, mirror.")
    ] = "all",
    process: ProcessName = "sky130",
    monte_carlo: Annotated[int, typer.Option(help="Draws of the foundry's mismatch.")] = 200,
    out: Annotated[Path | None, typer.Option(help="Chip file to write (.toml).")] = None,
    fan_in: Annotated[int, typer.Option(help="Synapses of a unit, with its bias.")] = 3,
    tau_x: TauX = None,
    tau_w: Annotated[float, typer.Option(help="Time constant of weights, in tau_x.")] = 40.0,
    width: Width = 2.0,
    length: Length = 2.0,
    current: Current = 10e-9,
    unit: Unit = 30e-3,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Measure cells over mismatch and corners; write them as a chip file."""
    from pcsim.spice.cells import preset
    from pcsim.spice.cells.characterize import characterize as measure
    from pcsim.spice.cells.library import CELLS, Sizes
    from pcsim.spice.ngspice import program, version
    from pcsim.store.files import check_suffix, check_target

    asked = CELLS if cells == "all" else tuple(cells.split(","))
    if out is not None:
        check_suffix(out, ".toml")
        check_target(out, overwrite)
        if asked != CELLS:
            raise ConfigError("out: a chip needs all cells; leave out --out, or take 'all'")
    sizes = Sizes(width, length, current, unit)
    tau = _tau(tau_x, sizes)
    measured = measure(process, sizes, monte_carlo, tau, tau_w * tau, asked)
    for cell, found in measured.items():
        typer.echo(cell)
        for name in found.draws:
            spread = found.spread(name)
            line = f"  {name:12} typical {found.typical[name]:10.4g}"
            line += f"   over draws {found.mean(name):10.4g} +- {spread:.3g}"
            if found.corners:
                values = [corner[name] for corner in found.corners.values()]
                line += f"   corners {min(values):.4g} to {max(values):.4g}"
            typer.echo(line)
        for name in found.typical.keys() - found.draws.keys():
            typer.echo(f"  {name:12} typical {found.typical[name]:10.4g}")
    if out is None:
        return
    from hw_models.description import made_of
    from hw_models.preset_file import text

    lines = preset.sources(measured, process, sizes, monte_carlo, version(program()))
    hardware = made_of(out.stem, preset.pieces(measured, tau, fan_in)).model_copy(
        update={"about": f"transistor cells of {process}, characterised", "sources": tuple(lines)}
    )
    out.write_text(text(hardware), encoding="utf-8")
    typer.echo(f"{out}: {len(hardware.pieces)} pieces; 'pcsim hardware check {out}' reads it")


@app.command()
def population(
    chip: Annotated[str, typer.Argument(help="A chip file, such as characterize writes.")],
    table: Annotated[str, typer.Argument(metavar="TASK", help="and, or, xor.")] = "and",
    layers: Annotated[str, typer.Option(help="Units per layer: 2-2-1.")] = "2-2-1",
    chips: Annotated[int, typer.Option(help="Chips that are drawn.")] = 200,
    samples: Annotated[int, typer.Option(help="Patterns shown while learning.")] = 120,
    present: Annotated[float, typer.Option(help="Time per pattern, in tau_x.")] = 5.0,
    tau_x: Annotated[float, typer.Option(help="Time constant of somas, s.")] = 1e-3,
    tau_w: Annotated[float, typer.Option(help="Time constant of weights, in tau_x.")] = 40.0,
    scale: Annotated[float, typer.Option(help="Spread of initial weights, times √inputs.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of initial weights and of the order.")] = 0,
) -> None:
    """Let many chips of a chip file learn what a transistor network learns; tell how far apart."""
    import numpy as np

    from hw_models.description import describe
    from pcsim.spice.cells.network import Task
    from pcsim.spice.cells.population import distances, learn

    if chips < 2:
        raise ConfigError(f"chips: must be at least 2, got {chips}")
    task = Task(table, _layers(layers), samples, present, tau_x, tau_w, scale, seed)
    hardware = describe(chip, {})
    apart = distances(learn(task, hardware.substrate(), chips), learn(task))
    low, middle, high = np.quantile(apart, [0.025, 0.5, 0.975])
    typer.echo(
        f"{chips} chips of {hardware.name}, {table} {layers}: largest difference of a weight from "
        f"ideal hardware {middle:.3g}, 95 % between {low:.3g} and {high:.3g}"
    )


def _tau(given: float | None, sizes: Sizes) -> float:
    """Return τ_x; large transistors have large gates, and need time."""
    return 1e-3 * sizes.area / 4 if given is None else given


def _layers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split("-"))
    except ValueError:
        raise ConfigError(f"layers: write units as 2-4-1, got {text!r}") from None


def _row(name: str, learnt: Learnt, reference: Learnt) -> str:
    outputs = " ".join(f"{value:6.3f}" for value in learnt.outputs)
    apart = learnt.apart(reference)
    answer = "yes" if learnt.learnt else "no"
    return f"{name:12} {outputs}   {answer:6} {apart:13.3f}  {learnt.supply_current:.3g} A"
