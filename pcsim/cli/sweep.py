"""`pcsim sweep CONFIG`: run a configuration over any of its fields, and store every point."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.exit_codes import OF_NO_USE
from pcsim.cli.run import pairs

if TYPE_CHECKING:
    from pcsim.sweep.survey import Survey

MOST_REASONS = 5


def sweep(
    config: Annotated[Path, typer.Argument(help="TOML file with a [sweep] section.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Store [out/CONFIG.sweep].")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes on this machine; 0: in this one.")
    ] = 0,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a running dask scheduler, tls://host:8786.")
    ] = None,
    security: Annotated[
        Path | None, typer.Option(help="TOML file with its certificates: ca, cert, key.")
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option(
            "--insecure", help="Trust a scheduler without certificates: all who reach it."
        ),
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Only say how far it is.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed points again.")] = False,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: learning.alpha=1e-3 (repeatable)."),
    ] = None,
) -> None:
    """Run every combination of the swept fields; stopped, the same command goes on."""
    from pcsim.report.summary import points
    from pcsim.report.view import View
    from pcsim.sweep import read_sweep
    from pcsim.sweep import sweep as run_sweep
    from pcsim.sweep.folder import MERGED, SweepFolder
    from pcsim.sweep.survey import survey_of, survey_of_file
    from pcsim.terminal import console, progress

    folder = SweepFolder(out or Path("out") / f"{config.stem}.sweep")
    if status:
        tell(survey_of_file(config, pairs(change), folder))
        return
    described = read_sweep(config, pairs(change))
    axes = " × ".join(f"{len(axis)} {axis.dim}" for axis in described.table.axes)
    console.print(f"{axes}, {len(described.seeds)} seeds each", highlight=False, soft_wrap=True)
    with progress("sweep", remaining=False) as report:
        result = run_sweep(
            described,
            folder.path,
            workers=workers,
            cluster=cluster,
            security=security,
            insecure=insecure,
            retry=retry,
            report=report,
        )
    state = survey_of(result)
    if table := points(View(folder.path.stem, str(folder.path), result)):
        console.print(table.rich())
    tell(state)
    console.print(f"stored in {folder.path / MERGED}", soft_wrap=True)
    console.print(f"pcsim report {folder.path} shows it", highlight=False, soft_wrap=True)
    if state.done == state.diverged:
        raise typer.Exit(OF_NO_USE)


def tell(found: Survey) -> None:
    """Print done, failed and remaining points, and why points failed."""
    from pcsim.sweep.schedule import spoken
    from pcsim.terminal import console

    words = [f"{found.done} of {found.total} points done"]
    words += [f"{found.diverged} of them diverged"] if found.diverged else []
    words += [f"{found.failed} failed"] if found.failed else []
    missing = found.total - found.done - found.failed
    words += [f"{missing} missing"] if missing else []
    if found.seconds_left is not None:
        words.append(f"about {spoken(found.seconds_left)} left at the pace so far")
    if missing:
        words.append("at work now" if found.busy else "not running now")
    console.print(", ".join(words), highlight=False, soft_wrap=True)
    for reason in found.reasons[:MOST_REASONS]:
        console.print(f"  {reason}", highlight=False, markup=False, soft_wrap=True)
    if len(found.reasons) > MOST_REASONS:
        console.print(f"  … and {len(found.reasons) - MOST_REASONS} other reasons")
