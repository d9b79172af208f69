"""The command line: `pcsim VERB …`. Every error a user can cause ends in one sentence."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from pcsim.cli import (
    check,
    compare,
    config,
    cost,
    data,
    demo,
    deploy,
    doctor,
    equations,
    experiment,
    hardware,
    report,
    run,
    spice_cells,
    sweep,
    variants,
)
from pcsim.cli.exit_codes import IN_WORDS, USER_ERROR
from pcsim.errors import InterruptedRunError, PcsimError
from pcsim.interruption import TerminationRequest, exit_code, sigterm_as_interrupt

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # [brackets] in a help text are text
    help="Does always-on predictive coding learn on your chip?",
    epilog=IN_WORDS,
)
app.add_typer(data.app, name="data", help="Find, fetch and verify data sets.")
app.add_typer(hardware.app, name="hardware", help="Describe, check and fit hardware.")
app.add_typer(spice_cells.app, name="spice", help="Netlists for ngspice, transistors, and back.")


def _stoppable(verb: Callable[..., None]) -> Callable[..., None]:
    """Let Ctrl-C and SIGTERM end a verb with one sentence and the exit code 130 or 143."""

    @wraps(verb)
    def stopped_in_one_sentence(*arguments: Any, **options: Any) -> None:
        try:
            verb(*arguments, **options)
        except KeyboardInterrupt as stop:
            how = "SIGTERM" if isinstance(stop, TerminationRequest) else "Ctrl-C"
            raise InterruptedRunError(
                f"{verb.__name__} was stopped by {how} before its end; the same command starts "
                f"it again, and goes on with what it has kept",
                exit_code(stop),
            ) from None

    return stopped_in_one_sentence


app.command("run")(_stoppable(run.run))
app.command("check")(_stoppable(check.check))
app.command("margins")(_stoppable(variants.margins))
app.command("remedies")(_stoppable(variants.remedies))
app.command("specs")(_stoppable(variants.specs))
app.command("cost")(cost.cost)
app.command("deploy")(_stoppable(deploy.deploy))
app.command("sweep")(_stoppable(sweep.sweep))
app.command("compare")(_stoppable(compare.compare))
app.command("report")(_stoppable(report.report))
app.command("experiment")(_stoppable(experiment.experiment))
app.command("demo")(_stoppable(demo.demo))
app.command("equations")(_stoppable(equations.equations))
app.command("config")(config.config)
app.command("doctor")(_stoppable(doctor.doctor))


def _version(show: bool) -> None:
    if show:
        from pcsim import __version__

        typer.echo(f"pcsim {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option(help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Take the options that belong to every verb (`--debug` is read in `main`)."""


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    from pcsim.terminal import terminal

    terminal(stderr=True, soft_wrap=True).print(f"warning: {message}", highlight=False)


def main() -> None:
    """Run the command line; one sentence and an exit code for errors, no traceback."""
    debug = "--debug" in sys.argv[1:]
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    warnings.showwarning = _show_warning
    try:
        with sigterm_as_interrupt():
            program = Path(sys.argv[0]).name
            app(args=arguments, prog_name="pcsim" if program == "__main__.py" else program)
    except (PcsimError, MemoryError, OSError) as error:
        if debug:
            raise
        from pcsim.terminal import terminal

        stopped = isinstance(error, InterruptedRunError)
        kind = "" if isinstance(error, PcsimError) else f"{type(error).__name__}: "
        sentence = f"{'interrupted' if stopped else 'error'}: {kind}{error}"
        terminal(stderr=True, soft_wrap=True).print(sentence, highlight=False)
        sys.exit(error.exit_code if isinstance(error, InterruptedRunError) else USER_ERROR)
