"""`pcsim deploy`: train, program into chips, wait, read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from pcsim.cli.run import pairs
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from pcsim.config import Config
    from pcsim.store import Result


def deploy(
    trained: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="TOML file, which is trained first, or result of `pcsim run` (.h5) [the embedded "
            "digits].",
        ),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option("--hardware", help="Preset, or TOML file of a device.")
    ] = None,
    program: Annotated[
        str,
        typer.Option(
            help="open-loop: each device is written once; write-verify: until its weight is within "
            "the tolerance; none: what training left there."
        ),
    ] = "open-loop",
    train: Annotated[
        str, typer.Option(help="Where weights are learnt: ideal, or chip: on these chips.")
    ] = "ideal",
    wait: Annotated[
        str | None,
        typer.Option(
            help='Times after programming at which chips are read, such as "1s,1h,1d" [1 s, 1 min, '
            "1 h, 1 d, 30 d where devices change with time]."
        ),
    ] = None,
    tolerance: Annotated[
        str, typer.Option(help="Write-verify: accepted difference, of full conductance.")
    ] = "2%",
    attempts: Annotated[int, typer.Option(help="Write-verify: writes per device, at most.")] = 20,
    range_: Annotated[
        str,
        typer.Option(
            "--range",
            help="Weight at full conductance: chip, or matched: the largest of each layer.",
        ),
    ] = "chip",
    chips: Annotated[int | None, typer.Option(min=1, help="Chips per seed [32].")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file [out/deploy_HARDWARE.h5].")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: hardware.pieces.drift.t0=1.0 (repeatable)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print sentence and accuracies as JSON, nothing else.")
    ] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing result.")] = False,
) -> None:
    """Train a network, program it into chips, wait, read: accuracy over time, chip by chip.

    Each read is one forward pass through the arrays, with and without drift compensation.
    """
    from pcsim import store
    from pcsim.deploy import deploy as run_deploy
    from pcsim.plots import save
    from pcsim.run import check_target
    from pcsim.store.files import check_own
    from pcsim.store.lock import held
    from pcsim.terminal import console

    source = _source(trained, hardware, change)
    name = Path(hardware or _preset(source)).stem
    target = out or Path("out") / f"deploy_{name}.h5"
    check_target(target, overwrite)
    check_own(target.with_suffix(".png"))
    with held(target):
        check_target(target, overwrite)
        deployment = run_deploy(
            source,
            hardware if isinstance(source, store.Result) else None,
            program=cast(Any, program),
            train=cast(Literal["ideal", "chip"], train),
            wait=None if wait is None else [_number(one) for one in wait.split(",")],
            tolerance=_number(tolerance),
            attempts=attempts,
            range=cast(Any, range_),
            chips=chips,
            watch=(lambda _: nullcontext()) if as_json else _watch,
        )
        store.save(deployment, target, overwrite=overwrite)
        figure = save(deployment.plot(), target.with_suffix(".png"))
    if as_json:
        typer.echo(json.dumps(_numbers(deployment, target)))
        return
    for table in deployment.tables():
        console.print(table.rich())
    console.print(f"stored in {target}, figure in {figure}")
    console.print(deployment.sentence(), style="bold", highlight=False)


def _source(
    trained: Path | None, hardware: str | None, change: list[str] | None
) -> Config | Result:
    """Return what is deployed: a stored result, or a configuration with changes."""
    from pcsim import config as configuration
    from pcsim import store
    from pcsim.deploy import DIGITS

    changes = pairs(change)
    if trained is not None and trained.suffix == ".h5":
        if changes:
            raise ConfigError("deploy: --set changes a configuration; a result is what it is")
        return store.load(trained)
    if hardware is not None:
        changes["hardware.preset"] = hardware
    if trained is not None:
        return configuration.load(trained, changes)
    return configuration.with_changes(DIGITS, changes, "deploy")


def _preset(source: Config | Result) -> str:
    from pcsim.config import Config

    if isinstance(source, Config):
        return source.hardware.preset
    return "result"


def _number(text: str) -> float | str:
    """Return a plain number, or a text with a unit."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


@contextmanager
def _watch(name: str) -> Iterator[Any]:
    from pcsim.terminal import progress

    with progress(name) as report:
        yield report


def _numbers(found: Any, target: Path) -> dict[str, Any]:
    return {
        "sentence": found.sentence(),
        "plan": json.loads(str(found.attrs["plan"])),
        "wait": found["wait"].tolist(),
        "compensation": found["compensation"].tolist(),
        "trained_accuracy": found["trained_accuracy"].tolist(),
        "accuracy": found["accuracy"].tolist(),
        "stored": str(target),
    }
