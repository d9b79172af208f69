"""Progress bars that say what is being minimised while one waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pcsim.checkpoint import Progress as Trained
from pcsim.training import Report

console = Console()


@contextmanager
def epochs(title: str, total: int) -> Iterator[Report]:
    """Show one bar over the epochs, with mean energy and accuracy over the replicas."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("epoch {task.completed}/{task.total}"),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=total, status="")

        def report(done: Trained) -> None:
            latest = {name: float(np.nanmean(rows[-1])) for name, rows in done.history.items()}
            status = f"energy {latest['train_energy']:.4g}"
            if "test_accuracy" in latest:
                status += f", test {100 * latest['test_accuracy']:.2f} %"
            bar.update(task, completed=done.epoch, status=status)

        yield report
