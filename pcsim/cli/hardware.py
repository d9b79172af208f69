"""`pcsim hardware`: presets, kinds of pieces, chip files made, checked, or fitted to a curve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from pcsim.cli.run import pairs
from pcsim.errors import ConfigError

app = typer.Typer(help="Describe, check and fit hardware.", no_args_is_help=True)


@app.command("list")
def list_presets() -> None:
    """List the presets with what they are made of."""
    from rich.table import Table

    from hw_models import known_presets
    from pcsim.terminal import terminal

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
def kinds(
    kind: Annotated[str | None, typer.Argument(help="A kind, for all that is known of it.")] = None,
) -> None:
    """List every kind of piece, or print one: fields, units, allowed values, equation, example."""
    from rich.table import Table

    from hw_models.kind_pages import kind_page, kind_rows
    from pcsim.terminal import terminal

    if kind is not None:
        for line in kind_page(kind):
            typer.echo(line)
        return
    table = Table(title="Kinds of pieces")
    table.add_column("kind", no_wrap=True)
    table.add_column("acts at, for example")
    table.add_column("what", ratio=3)
    for row in kind_rows():
        table.add_row(*row)
    terminal().print(table)
    typer.echo("'pcsim hardware kinds KIND' prints fields, equation and example of one.")


@app.command()
def schema() -> None:
    """Print the JSON schema of a chip file, for editors (taplo, VS Code)."""
    typer.echo(_schema_text(), nl=False)


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A chip file (.toml), or a preset.")],
) -> None:
    """Tell all errors of a chip file at once; else what the chip does, and what was left ideal."""
    from hw_models import preset
    from hw_models.chip_words import left_ideal, summary
    from hw_models.preset_file import examine

    if file.endswith(".toml"):
        chip, problems = examine(Path(file))
    else:
        chip, problems = preset(file), []
    if chip is not None:
        try:
            chip.substrate()
        except ConfigError as error:
            chip, problems = None, [str(error)]
    if chip is None:
        for problem in problems:
            typer.echo(f"error: {problem}", err=True)
        number = len(problems)
        raise ConfigError(f"{file}: {number} error{'s'[: number != 1]}, see above")
    for line in summary(chip):
        typer.echo(line)
    typer.echo("Left at a default that may matter:")
    for line in left_ideal(chip):
        typer.echo(f"  - {line}")


@app.command()
def new(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Chip file to write (.toml).")],
    preset: Annotated[str, typer.Option(help="Begin with this preset or chip file.")] = "ideal",
    curve: Annotated[
        Path | None,
        typer.Option("--fit", metavar="CSV", help="Begin with devices fitted to a pulse curve."),
    ] = None,
    bits: Annotated[
        int | None, typer.Option(help="Weights of so many bits, with their sign.")
    ] = None,
    accumulator: Annotated[
        bool, typer.Option(help="With --bits: updates add up exactly beside the array.")
    ] = True,
    read_noise: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="Noise of each device per read, of its weight: 1%."),
    ] = None,
    adc: Annotated[
        int | None, typer.Option(metavar="BITS", help="Converters of the array's sums, both ways.")
    ] = None,
    adc_range: Annotated[float, typer.Option(help="Largest sum before an ADC clips.")] = 4.0,
    dac: Annotated[
        int | None, typer.Option(metavar="BITS", help="Converters of rates and errors.")
    ] = None,
    mismatch: Annotated[
        str | None,
        typer.Option(metavar="PERCENT", help="Spread of time constants, gains and weights: 5%."),
    ] = None,
    stuck: Annotated[
        str | None, typer.Option(metavar="PERCENT", help="Devices that are stuck at zero: 1%.")
    ] = None,
    retention: Annotated[
        str | None, typer.Option(metavar="TIME", help="Lifetime of a stored weight: 1h.")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: adc.t_sample=100us (repeatable)."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the chip [that of the file].")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Write a chip file from a preset or a measurement and the numbers of a data sheet."""
    from hw_models import new_chip as parts
    from hw_models import preset as preset_called
    from hw_models.preset_file import text
    from pcsim.config import value_of
    from pcsim.store.files import check_suffix, check_target

    check_suffix(out, ".toml")
    check_target(out, overwrite)
    if curve is not None and preset != "ideal":
        raise ConfigError("hardware new: begin with --preset or with --fit, not with both")
    if curve is not None:
        from hw_models.fit import fit_curve, read_curve

        base = fit_curve(read_curve(curve)).hardware(out.stem, curve.name)
    else:
        base = preset_called(preset)
    pieces: dict[str, dict[str, Any]] = {
        **(parts.weights(bits, accumulator) if bits is not None else {}),
        **(parts.stuck(_quantity(stuck)) if stuck is not None else {}),
        **(parts.mismatch(_quantity(mismatch)) if mismatch is not None else {}),
        **(parts.read_noise(_quantity(read_noise)) if read_noise is not None else {}),
        **(parts.dac(dac) if dac is not None else {}),
        **(parts.adc(adc, adc_range) if adc is not None else {}),
        **(parts.retention(_quantity(retention)) if retention is not None else {}),
    }
    if bits is None and not accumulator:
        raise ConfigError("hardware new: --no-accumulator goes with --bits")
    for path, value in pairs(change).items():
        piece, dot, field = path.partition(".")
        if not dot:
            raise ConfigError(f"--set {path}: write it as piece.field=value")
        pieces.setdefault(piece, {})[field] = value_of(value)
    chip = parts.new_chip(base, name or out.stem, pieces)
    if not chip.pieces:
        raise ConfigError(
            "hardware new: the chip would be ideal; give a preset or numbers, see --help"
        )
    _write_chip(out, text(chip), overwrite)
    typer.echo(f"chip file: {out}; 'pcsim hardware check {out}' says what it does and leaves out")


def _quantity(value: str) -> str | float:
    """Return an option as a file would have it: a number, or a text with a unit."""
    try:
        return float(value)
    except ValueError:
        return value


def _schema_text() -> str:
    from hw_models.schema import hardware_schema

    return json.dumps(hardware_schema(), indent=2, ensure_ascii=False) + "\n"


def _write_chip(out: Path, content: str, overwrite: bool) -> None:
    """Write a chip file, and the schema that its first line names, unless there is one."""
    from hw_models.schema import FILE
    from pcsim.store.files import publish, temporary_for, write_new, writing

    for path, image, replace in (
        (out, content, overwrite),
        (out.parent / FILE, _schema_text(), False),
    ):
        if path != out and path.exists():
            continue
        with writing(path), temporary_for(path.resolve()) as temporary:
            write_new(temporary, image.encode())
            publish(temporary, path.resolve(), replace)


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
    pulse: Annotated[str | None, typer.Option(help="The file's column of pulses.")] = None,
    conductance: Annotated[str | None, typer.Option(help="Its column of conductances.")] = None,
    direction: Annotated[str | None, typer.Option(help="Its column of up or down.")] = None,
    device: Annotated[str | None, typer.Option(help="Its column of devices.")] = None,
    cycle: Annotated[str | None, typer.Option(help="Its column of repeated ramps.")] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Fit a measured pulse curve to the device laws; write the best as a preset, with a figure."""
    from rich.table import Table

    from hw_models.fit import fit_curve, read_curve
    from hw_models.fit_plot import fit_figure
    from hw_models.preset_file import text
    from pcsim.plots import plain, save
    from pcsim.store.files import check_own, check_suffix, check_target
    from pcsim.terminal import terminal

    check_suffix(out, ".toml")
    check_target(out, overwrite)
    picture = out.with_suffix(".png")
    check_own(picture)
    given = {
        "pulse": pulse,
        "conductance": conductance,
        "direction": direction,
        "device": device,
        "cycle": cycle,
    }
    columns = {key: name for key, name in given.items() if name is not None}
    fitted = fit_curve(read_curve(curve, columns))
    table = Table(title=f"fit of {curve.name}: {fitted.about}")
    for column in ("law", "residual, % of range", "AIC", "parameters ± standard error"):
        table.add_column(column, justify="right" if column[0] in "rA" else "left")
    for one in fitted.ranking:
        numbers = ", ".join(f"{n} {v:.3g} ± {e:.2g}" for n, (v, e) in one.parameters.items())
        table.add_row(one.law, f"{100 * one.residual:.2f}", f"{one.aic:.1f}", numbers)
    terminal().print(table)
    up, down = fitted.states
    point = fitted.symmetry_point
    where = "none" if point is None else f"{point:.3g} of −1 … 1"
    typer.echo(
        f"{fitted.curve.devices} device(s), {fitted.curve.cycles} cycle(s); states: {up:.4g} up, "
        f"{down:.4g} down (range over the step in its middle); asymmetry {fitted.asymmetry:.3g}; "
        f"symmetry point: {where}; spread of the step {fitted.dw_spread:.3g}, of the bounds "
        f"{fitted.bound_spread:.3g}"
    )
    typer.echo(f"figure in {save(fit_figure(fitted, plain(curve.name)), picture)}")
    _write_chip(out, text(fitted.hardware(out.stem, curve.name)), overwrite)
    typer.echo(f"preset file: {out}; use it with hardware.preset = {str(out)!r}")
