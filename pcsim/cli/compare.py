"""`pcsim compare A B …`: runs against a reference, with confidence intervals."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from pcsim.cli.run import pairs
from pcsim.errors import ConfigError


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="REFERENCE RUN",
            help="Result files of `pcsim run`, configurations (.toml: run first), or logs of other "
            "programs: CSV, JSON lines, Parquet, TensorBoard, HDF5. The first is the reference.",
        ),
    ],
    target: Annotated[
        float | None,
        typer.Option(help="Accuracy to reach, e.g. 0.9 [95 % of the reference's last]."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Compare means though network, data, seeds differ.")
    ] = False,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", help="A column of logs: test_accuracy=val_acc, epoch=ep (repeatable)."
        ),
    ] = None,
    percent: Annotated[
        bool, typer.Option("--percent", help="Accuracies of logs are per cent.")
    ] = False,
    train_samples: Annotated[
        int | None, typer.Option(help="Samples of an epoch of logs, for a common axis.")
    ] = None,
    batch: Annotated[int | None, typer.Option(help="Samples of a step of logs.")] = None,
    at: Annotated[
        list[str] | None, typer.Option("--at", help="Grid value: alpha=0.01 (repeatable).")
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="Name of each run, in order (repeatable).")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Result file.")] = Path("out/compare.h5"),
    overwrite: Annotated[bool, typer.Option(help="Replace an existing comparison.")] = False,
) -> None:
    """Compare runs on the same network, data and seeds: accuracy gap, agreement, cost."""
    from pcsim.compare import compare as compare_runs
    from pcsim.compare.gather import names
    from pcsim.plots import save
    from pcsim.run import check_target
    from pcsim.store.files import check_own
    from pcsim.terminal import console, progress

    if name and len(name) != len(runs):
        raise ConfigError(f"--name: {len(name)} names for {len(runs)} runs")
    labels = name or names(runs)
    if len(set(labels)) != len(labels):
        raise ConfigError(f"--name: names must differ, got {', '.join(labels)}")
    check_target(out, overwrite)
    check_own(out.with_suffix(".png"))
    waiting = any(run.suffix == ".toml" for run in runs)
    with progress("runs") if waiting else nullcontext() as report:
        result = compare_runs(
            dict(zip(labels, runs, strict=True)),
            target=target,
            confidence=confidence,
            unpaired=unpaired,
            at={key: _number(key, text) for key, text in pairs(at, "--at", "axis=value").items()},
            columns=pairs(column, "--column", "ours=theirs, such as test_accuracy=val_acc"),
            percent=percent,
            train_samples=train_samples,
            batch=batch,
            out=out,
            overwrite=overwrite,
            report=report,
        )
    for table in result.tables():
        console.print(table.rich())
    console.print(f"figure in {save(result.plot(), out.with_suffix('.png'))}")
    console.print(f"stored in {out}")


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"--at {key}={text}: must be a number") from None
