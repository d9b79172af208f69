"""`pcsim check`: does automatic iPC train on this chip?

Exit code 0 if it trains, 3 if it trains with loss or fails, 4 if that is not decided (marginal, or
no verdict because the reference has not learnt).
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pcsim.cli.exit_codes import DID_NOT_TRAIN, OF_NO_USE
from pcsim.cli.run import pairs
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from pcsim.check.criterion import Criterion
    from pcsim.config import Config

EXIT_CODES = {
    "trains": 0,
    "trains with loss": DID_NOT_TRAIN,
    "fails": DID_NOT_TRAIN,
    "marginal": OF_NO_USE,
    "no verdict": OF_NO_USE,
}


def check(
    config: Annotated[
        Path | None,
        typer.Argument(help="TOML file of a run in continuous time [the embedded digits]."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
    ] = None,
    chips: Annotated[int | None, typer.Option(min=1, help="Chips of the population [32].")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=3, help="Seeds that every chip is trained from [3].")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Points of accuracy that a chip may lose to the best ideal rule.")
    ] = 5.0,
    yield_: Annotated[
        float, typer.Option("--yield", help="Per cent of the chips that must be good.")
    ] = 90.0,
    present: Annotated[
        str | None,
        typer.Option(help="Time per sample in tau_x [20]; auto: the shortest that trains."),
    ] = None,
    regime: Annotated[
        str,
        typer.Option(
            help="What happens at a switch of samples: carry, look-ahead, smooth-label, free-label "
            "or reset (docs/streaming.md)."
        ),
    ] = "carry",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file [out/check_HARDWARE.h5].")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: hardware.pieces.noise.sigma=0.1 (repeatable)."),
    ] = None,
    twins: Annotated[bool, typer.Option(help="Also run PC with phases and BP.")] = True,
    search: Annotated[
        bool, typer.Option(help="Choose every rule's learning rate on held-out samples.")
    ] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing result.")] = False,
    margins: Annotated[
        bool, typer.Option("--margins", help="Also how far every number may go, and what costs.")
    ] = False,
    remedies: Annotated[
        bool, typer.Option("--remedies", help="Also try every remedy that applies, and rank them.")
    ] = False,
) -> None:
    """Train a population of chips as they would run, compare with ideal rules, give the verdict.

    One sample at a time, states carried over, nothing reset, always plastic: samples side by side
    (--set learning.batch=8) and resets (--regime reset) must be asked for. Interrupted or killed,
    the same command goes on with the rows that are finished.
    """
    from pcsim import store
    from pcsim.check import Check, rows_of, shortest
    from pcsim.check import check as run_check
    from pcsim.cli.variants import further
    from pcsim.plots import save
    from pcsim.run import check_target
    from pcsim.store.files import check_own
    from pcsim.store.lock import held
    from pcsim.terminal import console, progress

    criterion = criterion_of(tolerance, yield_)
    changes = changes_of(change, hardware, chips, seeds)
    settings = with_stream(settings_of(config, changes), regime, present)
    name = Path(settings.hardware.preset).stem
    target = out or Path("out") / f"check_{name}.h5"
    check_target(target, overwrite)
    check_own(target.with_suffix(".png"))
    rows = rows_of(target)

    def watch(row: str) -> AbstractContextManager[Any]:
        return nullcontext() if quiet or as_json else progress(row)

    def checked(setting: Config) -> Check:
        return run_check(
            setting, criterion=criterion, twins=twins, search=search, watch=watch, rows=rows.folder
        )

    with held(target):
        check_target(target, overwrite)  # the process before this one may have finished it
        found = shortest(settings, checked) if present == "auto" else checked(settings)
        more = further(found, watch, rows.folder, margins=margins, remedies=remedies)
        result = found.result()
        for one in more:
            result = one.beside(result)
        store.save(result, target, overwrite=overwrite)
        rows.forget()
        figure = save(found.plot(), target.with_suffix(".png"))
    if as_json:
        numbers = {one.name: one.data() for one in more}
        typer.echo(json.dumps(found.numbers() | numbers | {"stored": str(target)}))
    elif quiet:
        for sentence in (found.sentence(), *(one.sentence() for one in more)):
            typer.echo(sentence)
    else:
        for table in (table for one in more for table in one.tables()):
            console.print(table.rich())
        console.print(found.table())
        if found.cost:
            console.print(found.cost.sentence, "(pcsim cost)")
        console.print(f"stored in {target}, figure in {figure}")
        for sentence in (found.sentence(), *(one.sentence() for one in more)):
            console.print(sentence, style="bold")
    if code := EXIT_CODES[found.outcome]:
        raise typer.Exit(code)


def criterion_of(tolerance: float, yield_: float) -> Criterion:
    """Return the criterion, given in points and per cent."""
    from pcsim.check.criterion import Criterion

    try:
        return Criterion(tolerance=tolerance / 100, yield_=yield_ / 100)
    except ConfigError as error:
        raise ConfigError(f"check: --tolerance, --yield: {error}") from None


def changes_of(
    change: list[str] | None, hardware: str | None, chips: int | None, seeds: int | None
) -> dict[str, str]:
    """Return what the options of a check change in its configuration."""
    changes = pairs(change)
    if chips is not None:
        changes["hardware.chips"] = str(chips)
    if seeds is not None:
        changes["run.seeds"] = json.dumps(list(range(seeds)))
    if hardware is not None:
        changes["hardware.preset"] = hardware
    return changes


def settings_of(path: Path | None, changes: dict[str, str]) -> Config:
    """Return the configuration of a file with changes, or that of the embedded digits."""
    from pcsim import config as configuration
    from pcsim.check import DIGITS

    if path:
        return configuration.load(path, changes, backend="continuous")
    return configuration.with_changes(DIGITS, changes, "check")


def with_stream(settings: Config, regime: str, present: str | None) -> Config:
    """Return a configuration with the regime and the time per sample that were asked for."""
    from pcsim import config as configuration
    from pcsim.check import REGIMES
    from pcsim.check.physical import at_chip_time

    settings = at_chip_time(settings)
    tau = settings.circuit.tau_x
    if regime not in REGIMES:
        raise ConfigError(f"check: --regime: there is no {regime!r}; use {', '.join(REGIMES)}")
    sections = REGIMES[regime](settings)
    if present is not None and present != "auto":
        try:
            span = float(present)
        except ValueError:
            raise ConfigError(
                f"check: --present: must be a number of tau_x, or auto; got {present!r}"
            ) from None
        sections["stream"] = {**sections.get("stream", {}), "t_pres": span * tau}
    return configuration.changed(settings, sections) if sections else settings
