"""`pcsim hardware`: which presets there are, what one does, and a preset from a measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from pcsim.store.files import check_suffix, check_target, publish, temporary_for, write_new, writing
from pcsim.terminal import terminal

app = typer.Typer(help="List, show and fit hardware.", no_args_is_help=True)


@app.command("list")
def list_presets() -> None:
    """List the presets with what they are made of."""
    from hw_models import known_presets

    table = Table(title="Hardware presets")
    table.add_column("name", no_wrap=True)
    table.add_column("what", ratio=3)
    table.add_column("pieces", ratio=2)
    for name, one in known_presets().items():
        kinds = dict.fromkeys(piece.kind for piece in one.pieces.values())
        table.add_row(name, one.about, ", ".join(kinds) or "–")
    terminal().print(table)
    typer.echo("'pcsim hardware show NAME' prints fields, sources and equations of one.")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A preset, or a preset file (.toml).")],
) -> None:
    """Print the pieces of a preset: fields with units, equations as they run, draws, sources."""
    from hw_models import describe
    from hw_models.printed import pages

    for line in pages(describe(name, {})):
        typer.echo(line)


@app.command()
def fit(
    curve: Annotated[
        Path,
        typer.Argument(
            metavar="CSV",
            help="Measured pulses: columns pulse, conductance and (optional) direction, device.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Preset file to write.")],
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Fit a measured pulse curve to the device laws and write the best one as a preset."""
    from hw_models.fit import fit_curve, read_curve
    from hw_models.preset_file import text

    check_suffix(out, ".toml")
    check_target(out, overwrite)
    fitted = fit_curve(read_curve(curve))
    table = Table(title=f"fit of {curve.name}: {fitted.about}")
    for column in ("law", "residual, % of range", "AIC", "parameters ± standard error"):
        table.add_column(column, justify="right" if column[0] in "rA" else "left")
    for one in fitted.ranking:
        numbers = ", ".join(f"{n} {v:.3g} ± {e:.2g}" for n, (v, e) in one.parameters.items())
        table.add_row(one.law, f"{100 * one.residual:.2f}", f"{one.aic:.1f}", numbers)
    terminal().print(table)
    with writing(out), temporary_for(out.resolve()) as temporary:
        write_new(temporary, text(fitted.hardware(out.stem, curve.name)).encode())
        publish(temporary, out.resolve(), overwrite)
    typer.echo(f"preset file: {out}; use it with hardware.preset = {str(out)!r}")
