"""`pcsim margins`, `remedies` and `specs`: how far, what helps, and what a chip must be.

The check runs first (its finished rows are kept), then its variants. Exit codes are those of the
check: 0 trains, 3 trains with loss or fails, 4 marginal or no verdict.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol

import typer

from pcsim.cli import check as checks
from pcsim.cli.exit_codes import OF_NO_USE
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pcsim.check import Check
    from pcsim.check.criterion import Criterion
    from pcsim.check.rows import Watch
    from pcsim.config import Config
    from pcsim.rows import Rows
    from pcsim.store import Result

ConfigPath = Annotated[
    Path | None, typer.Argument(help="TOML file, as for `pcsim check` [the embedded digits].")
]
Hardware = Annotated[
    str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
]
Chips = Annotated[int | None, typer.Option(min=1, help="Chips of the check's population [32].")]
Seeds = Annotated[int | None, typer.Option(min=3, help="Seeds of every chip [3].")]
Tolerance = Annotated[
    float, typer.Option(help="Points of accuracy that a chip may lose to the best ideal rule.")
]
Yield = Annotated[float, typer.Option("--yield", help="Per cent of the chips that must be good.")]
Present = Annotated[str | None, typer.Option(help="Time per sample in tau_x [20]; or auto.")]
Regime = Annotated[str, typer.Option(help="What happens at a switch of samples, as for check.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Result file [out/VERB_HARDWARE.h5].")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a field: hardware.pieces.noise.sigma=0.1 (repeatable)."),
]
Twins = Annotated[bool, typer.Option(help="Also run PC with phases and BP in the check.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the numbers as JSON, nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the sentences only.")]
Overwrite = Annotated[bool, typer.Option(help="Replace an existing result.")]
Tries = Annotated[int, typer.Option(min=1, help="Chips of each seed for every value tried.")]


class Found(Protocol):
    """What was found beside a check."""

    name: ClassVar[str]

    def sentence(self) -> str: ...  # noqa: D102
    def tables(self) -> list[Rows]: ...  # noqa: D102
    def data(self) -> dict[str, Any]: ...  # noqa: D102
    def plot(self) -> Figure: ...  # noqa: D102
    def beside(self, result: Result) -> Result: ...  # noqa: D102


def further(
    check: Check, watch: Watch, rows: Path, *, margins: bool, remedies: bool
) -> list[Found]:
    """Return what `pcsim check` was asked for beside the verdict; without one, nothing."""
    from pcsim import variants

    if check.outcome == "no verdict":
        return []
    found: list[Found] = []
    if margins:
        found.append(variants.margins(check, watch=watch, rows=rows))
    if remedies:
        found.append(variants.remedies(check, watch=watch, rows=rows))
    return found


def margins(
    config: ConfigPath = None,
    hardware: Hardware = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A number: adc.bits (repeatable) [all].")
    ] = None,
    tries: Tries = 8,
    chips: Chips = None,
    seeds: Seeds = None,
    tolerance: Tolerance = 5.0,
    yield_: Yield = 90.0,
    present: Present = None,
    regime: Regime = "carry",
    out: Out = None,
    change: Set = None,
    twins: Twins = True,
    bottleneck: Annotated[bool, typer.Option(help="Also make each piece ideal in turn.")] = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Find the factor by which each number of a chip may grow or shrink, and the bottleneck.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.every_number import numbers_of

    criterion = checks.criterion_of(tolerance, yield_)
    changes = checks.changes_of(change, hardware, chips, seeds)
    settings = checks.with_stream(checks.settings_of(config, changes), regime, present)
    numbers_of(settings.hardware, only or ())

    def find(check: Check, watch: Watch, rows: Path) -> Found:
        return variants.margins(
            check, chips=tries, only=only or (), bottleneck=bottleneck, watch=watch, rows=rows
        )

    _carry_out("margins", settings, criterion, find, out, twins, present, as_json, quiet, overwrite)


def remedies(
    config: ConfigPath = None,
    hardware: Hardware = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A remedy by name (repeatable) [all].")
    ] = None,
    tries: Tries = 8,
    chips: Chips = None,
    seeds: Seeds = None,
    tolerance: Tolerance = 5.0,
    yield_: Yield = 90.0,
    present: Present = None,
    regime: Regime = "carry",
    out: Out = None,
    change: Set = None,
    twins: Twins = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Try every remedy that a chip has a place for; rank them by what they bring back and cost.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.every_remedy import require_known

    criterion = checks.criterion_of(tolerance, yield_)
    changes = checks.changes_of(change, hardware, chips, seeds)
    settings = checks.with_stream(checks.settings_of(config, changes), regime, present)
    require_known(settings, only or ())

    def find(check: Check, watch: Watch, rows: Path) -> Found:
        return variants.remedies(check, chips=tries, only=only or (), watch=watch, rows=rows)

    _carry_out(
        "remedies", settings, criterion, find, out, twins, present, as_json, quiet, overwrite
    )


def specs(
    config: ConfigPath = None,
    hardware: Hardware = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis",
            help="A number: adc.bits, adc.bits=3:8 (all whole numbers), noise.sigma=0.01:1:6 (six, "
            "in equal ratios), or noise.sigma=0.1,0.2; twice for a surface.",
        ),
    ] = None,
    tries: Tries = 8,
    chips: Chips = None,
    seeds: Seeds = None,
    tolerance: Tolerance = 5.0,
    yield_: Yield = 90.0,
    present: Present = None,
    regime: Regime = "carry",
    out: Out = None,
    change: Set = None,
    twins: Twins = True,
    as_json: AsJson = False,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
) -> None:
    """Find what one or two numbers of a chip must be, everything else given, so that it trains.

    The chip is checked first. Interrupted or killed, the same command goes on.
    """
    from pcsim import variants
    from pcsim.variants.along_axes import values_of

    criterion = checks.criterion_of(tolerance, yield_)
    changes = checks.changes_of(change, hardware, chips, seeds)
    settings = checks.with_stream(checks.settings_of(config, changes), regime, present)
    axes = dict(_axis(text) for text in axis or [])
    values_of(settings.hardware, axes)

    def find(check: Check, watch: Watch, rows: Path) -> Found:
        return variants.specs(check, axes=axes, chips=tries, watch=watch, rows=rows)

    _carry_out("specs", settings, criterion, find, out, twins, present, as_json, quiet, overwrite)


def _axis(text: str) -> tuple[str, tuple[int | float, ...]]:
    """Return an axis and its values, as `--axis` gives them."""
    name, equals, given = text.partition("=")
    if not equals:
        return name.strip(), ()
    try:
        if ":" not in given:
            return name.strip(), tuple(_number(one) for one in given.split(","))
        ends = [_number(one) for one in given.split(":")]
        if len(ends) == 2 and all(isinstance(one, int) for one in ends):
            return name.strip(), tuple(range(int(ends[0]), int(ends[1]) + 1))
        low, high, count = ends
        if low > 0 and high > low and isinstance(count, int) and count > 1:
            ratio = (high / low) ** (1 / (count - 1))
            return name.strip(), tuple(low * ratio**k for k in range(count))
    except ValueError:
        pass
    raise ConfigError(
        f"--axis {text}: write it as NAME=LOW:HIGH (whole numbers), NAME=LOW:HIGH:COUNT (above 0, "
        "in equal ratios) or NAME=VALUE,VALUE"
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _carry_out(
    verb: str,
    settings: Config,
    criterion: Criterion,
    find: Callable[[Check, Watch, Path], Found],
    out: Path | None,
    twins: bool,
    present: str | None,
    as_json: bool,
    quiet: bool,
    overwrite: bool,
) -> None:
    """Check, find, store, show; the exit code is that of the check."""
    from pcsim import store
    from pcsim.check import check as run_check
    from pcsim.check import rows_of, shortest
    from pcsim.plots import save
    from pcsim.run import check_target
    from pcsim.store.files import check_own
    from pcsim.store.lock import held
    from pcsim.terminal import console, progress

    target = out or Path("out") / f"{verb}_{Path(settings.hardware.preset).stem}.h5"
    check_target(target, overwrite)
    check_own(target.with_suffix(".png"))
    rows = rows_of(target)

    def watch(row: str) -> AbstractContextManager[Any]:
        return nullcontext() if quiet or as_json else progress(row)

    def checked(setting: Config) -> Check:
        return run_check(setting, criterion=criterion, twins=twins, watch=watch, rows=rows.folder)

    with held(target):
        check_target(target, overwrite)  # the process before this one may have finished it
        check = shortest(settings, checked) if present == "auto" else checked(settings)
        found = None if check.outcome == "no verdict" else find(check, watch, rows.folder)
        result = check.result() if found is None else found.beside(check.result())
        store.save(result, target, overwrite=overwrite)
        rows.forget()
        figure = save((found or check).plot(), target.with_suffix(".png"))
    sentences = [check.sentence(), *([found.sentence()] if found else [])]
    if as_json:
        numbers = {found.name: found.data()} if found else {}
        typer.echo(json.dumps(check.numbers() | numbers | {"stored": str(target)}))
    elif quiet:
        for sentence in sentences:
            typer.echo(sentence)
    else:
        for table in found.tables() if found else []:
            console.print(table.rich())
        console.print(f"stored in {target}, figure in {figure}")
        for sentence in sentences:
            console.print(sentence, style="bold")
    if found is None:
        raise typer.Exit(OF_NO_USE)
    if code := checks.EXIT_CODES[check.outcome]:
        raise typer.Exit(code)
