"""What every command that starts with a check is asked, and how its answer is stored and shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from pcsim.cli.exit_codes import DID_NOT_TRAIN, OF_NO_USE
from pcsim.cli.run import pairs
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from pcsim.check import Check
    from pcsim.check.criterion import Criterion
    from pcsim.check.rows import Watch
    from pcsim.config import Config
    from pcsim.variants.beside import Beside

EXIT_CODES = {
    "trains": 0,
    "trains with loss": DID_NOT_TRAIN,
    "fails": DID_NOT_TRAIN,
    "marginal": OF_NO_USE,
    "no verdict": OF_NO_USE,
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options that these commands share."""

    config: Annotated[
        Path | None,
        typer.Argument(help="TOML file of a run in continuous time [the embedded digits]."),
    ] = None
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
    ] = None
    chips: Annotated[int | None, typer.Option(min=1, help="Chips of the population [32].")] = None
    seeds: Annotated[
        int | None, typer.Option(min=3, help="Seeds that every chip is trained from [3].")
    ] = None
    tolerance: Annotated[
        float, typer.Option(help="Points of accuracy that a chip may lose to the best ideal rule.")
    ] = 5.0
    yield_: Annotated[
        float, typer.Option("--yield", help="Per cent of the chips that must be good.")
    ] = 90.0
    present: Annotated[
        str | None,
        typer.Option(help="Time per sample in tau_x [20]; auto: the shortest that trains."),
    ] = None
    regime: Annotated[
        str,
        typer.Option(
            help="What happens at a switch of samples: carry, look-ahead, smooth-label, free-label "
            "or reset (docs/streaming.md)."
        ),
    ] = "carry"
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file [out/VERB_HARDWARE.h5].")
    ] = None
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: hardware.pieces.noise.sigma=0.1 (repeatable)."),
    ] = None
    twins: Annotated[bool, typer.Option(help="Also run PC with phases and BP.")] = True
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")
    ] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answer only.")] = False
    overwrite: Annotated[bool, typer.Option(help="Replace an existing result.")] = False

    def settings(self) -> Config:
        """Return the configuration that is to be checked."""
        changes = pairs(self.change)
        if self.chips is not None:
            changes["hardware.chips"] = str(self.chips)
        if self.seeds is not None:
            changes["run.seeds"] = json.dumps(list(range(self.seeds)))
        if self.hardware is not None:
            changes["hardware.preset"] = self.hardware
        return _with_stream(settings_of(self.config, changes), self.regime, self.present)

    def criterion(self) -> Criterion:
        """Return the criterion, given in points and per cent."""
        from pcsim.check.criterion import Criterion

        try:
            return Criterion(tolerance=self.tolerance / 100, yield_=self.yield_ / 100)
        except ConfigError as error:
            raise ConfigError(f"check: --tolerance, --yield: {error}") from None


def asking(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a command, which takes `Asked` and options of its own, all of them as options."""
    hints = get_type_hints(Asked, include_extras=True)
    shared = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
        for field in fields(Asked)
    ]
    _, *more = signature(verb, eval_str=True).parameters.values()
    own = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in more]

    @wraps(verb)
    def command(**options: Any) -> None:
        values = {field.name: options.pop(field.name) for field in shared}
        verb(Asked(**values), **options)

    command.__signature__ = Signature([*shared[:2], *own, *shared[2:]])  # type: ignore[attr-defined]
    return command


def carry_out(
    verb: str,
    asked: Asked,
    settings: Config,
    tell: Callable[[Check, Watch, Path], list[Beside]],
    *,
    search: bool = True,
    whole: bool = False,
) -> None:
    """Check, tell more beside it unless there is no verdict, store, show.

    Main arguments:
        tell: returns what is told beside a check; it keeps its finished rows in the folder.
        search: whether every rule's learning rate is chosen on held-out samples.
        whole: whether the check's own table and figure are shown.

    The exit code is that of the check.
    """
    from pcsim import store
    from pcsim.check import check as run_check
    from pcsim.check import rows_of, shortest
    from pcsim.plots import save
    from pcsim.run import check_target
    from pcsim.store.files import check_own
    from pcsim.store.lock import held
    from pcsim.terminal import console, progress

    criterion = asked.criterion()
    target = asked.out or Path("out") / f"{verb}_{Path(settings.hardware.preset).stem}.h5"
    check_target(target, asked.overwrite)
    check_own(target.with_suffix(".png"))
    rows = rows_of(target)

    def watch(row: str) -> AbstractContextManager[Any]:
        return nullcontext() if asked.quiet or asked.as_json else progress(row)

    def checked(setting: Config) -> Check:
        return run_check(
            setting,
            criterion=criterion,
            twins=asked.twins,
            search=search,
            watch=watch,
            rows=rows.folder,
        )

    with held(target):
        check_target(target, asked.overwrite)  # the process before this one may have finished it
        check = shortest(settings, checked) if asked.present == "auto" else checked(settings)
        answers = [] if check.outcome == "no verdict" else tell(check, watch, rows.folder)
        result = check.result()
        for part in answers:
            result = part.beside(result)
        store.save(result, target, overwrite=asked.overwrite)
        rows.forget()
        drawn = check if whole or not answers else answers[0]
        figure = save(drawn.plot(), target.with_suffix(".png"))
    sentences = [check.sentence(), *(part.sentence() for part in answers)]
    if asked.as_json:
        numbers = {part.name: part.data() for part in answers}
        typer.echo(json.dumps(check.numbers() | numbers | {"stored": str(target)}))
    elif asked.quiet:
        for sentence in sentences:
            typer.echo(sentence)
    else:
        for table in (table for part in answers for table in part.tables()):
            console.print(table.rich())
        if whole:
            console.print(check.table())
        if whole and check.cost:
            console.print(check.cost.sentence, "(pcsim cost)")
        console.print(f"stored in {target}, figure in {figure}")
        for sentence in sentences:
            console.print(sentence, style="bold")
    if code := EXIT_CODES[check.outcome]:
        raise typer.Exit(code)


def settings_of(path: Path | None, changes: dict[str, str]) -> Config:
    """Return the configuration of a file with changes, or that of the embedded digits."""
    from pcsim import config as configuration
    from pcsim.check import DIGITS

    if path:
        return configuration.load(path, changes, backend="continuous")
    return configuration.with_changes(DIGITS, changes, "check")


def _with_stream(settings: Config, regime: str, present: str | None) -> Config:
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
