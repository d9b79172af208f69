"""`pcsim run CONFIG`: train one configuration and store the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pcsim.cli.exit_codes import OF_NO_USE
from pcsim.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table

    from pcsim.config import Config
    from pcsim.store import Result


def run(
    config: Annotated[Path, typer.Argument(help="TOML file that describes the run.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Result file [out/CONFIG.h5].")
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a field: learning.alpha=1e-3 (repeatable)."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing result.")] = False,
) -> None:
    """Train one configuration; interrupted, the same command goes on from its last checkpoint."""
    from pcsim import config as configuration
    from pcsim.plots import chip_run, save
    from pcsim.run import check_target
    from pcsim.run import run as run_config
    from pcsim.store.files import check_own
    from pcsim.sweep.outcome import DIVERGED, outcome_of
    from pcsim.terminal import console, progress

    settings = configuration.load(config, pairs(change))
    target = out or Path("out") / f"{config.stem}.h5"
    check_target(target, overwrite)
    if settings.run.backend != "discrete":
        check_own(target.with_suffix(".png"))
    with progress(f"{settings.schedule.rule} on {settings.data.name}") as report:
        result = run_config(settings, target, overwrite=overwrite, report=report)
    console.print(summary(settings, result))
    if settings.run.backend != "discrete":
        title = f"{settings.circuit.kind} circuit on {settings.data.name}"
        figure = save(chip_run(result, title), target.with_suffix(".png"))
        console.print(f"figure in {figure}")
    console.print(f"stored in {target}")
    state, reason = outcome_of(result)
    if reason:
        console.print(reason, style="bold")
    if state == DIVERGED:
        raise typer.Exit(OF_NO_USE)


def pairs(
    change: list[str] | None, option: str = "--set", form: str = "section.field=value"
) -> dict[str, str]:
    """Return the changes given by `--set`, or what another option gives by names."""
    return dict(_pair(text, option, form) for text in change or [])


def _pair(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ConfigError(f"{option} {text}: write it as {form}")
    return name.strip(), value.strip()


def summary(config: Config, result: Result) -> Table:
    """Return the final numbers, one row per grid cell, mean ± sample SD over the seeds."""
    import numpy as np
    from rich.table import Table

    from pcsim.verdict import verdict_from

    if config.run.backend != "discrete":
        return verdict_from(result).table(f"verdict: {config.circuit.kind} on {config.data.name}")
    if config.run.automatic:
        return _automatic_summary(result)
    name = "accuracy" if "accuracy" in result.variables else "train_energy"
    values = result[name] if name == "accuracy" else result[name][..., -1]
    axes = result.variables[name].dims[: values.ndim - 1]
    shown = "test accuracy, %" if name == "accuracy" else "energy per sample"
    table = Table(title=f"{config.schedule.rule} on {config.data.name}: {shown}")
    for column in (*axes, "mean", "SD", "min", "max", "seeds"):
        table.add_column(column, justify="right")
    unit = 100 if name == "accuracy" else 1
    for cell in np.ndindex(values.shape[:-1]):
        row = unit * values[cell]
        sd = f"{row.std(ddof=1):.3g}" if len(row) > 1 else "–"
        labels = [f"{result.coords[a][k]:g}" for a, k in zip(axes, cell, strict=True)]
        numbers = (f"{row.mean():.4g}", sd, f"{row.min():.4g}", f"{row.max():.4g}")
        table.add_row(*labels, *numbers, str(len(row)))
    return table


def _automatic_summary(result: Result) -> Table:
    import numpy as np
    from rich.table import Table

    dims = result.variables["verdict.outcome"].dims
    accuracies = [n for n in ("train_accuracy", "test_accuracy") if n in result.variables]
    table = Table(title="automatic run: full batch, no control signal")
    for column in (*dims, "outcome", "steps", "energy", *(f"{n}, %" for n in accuracies)):
        table.add_column(column.replace("_", " "), justify="right")
    for cell in np.ndindex(result["verdict.outcome"].shape):
        labels = [f"{result.coords[a][k]:g}" for a, k in zip(dims, cell, strict=True)]
        steps = int(result["steps"][cell])
        final = result["energy"][cell][steps - 1]
        scores = [f"{100 * result[n][cell]:.2f}" for n in accuracies]
        table.add_row(
            *labels, str(result["verdict.outcome"][cell]), str(steps), f"{final:.4g}", *scores
        )
    return table
