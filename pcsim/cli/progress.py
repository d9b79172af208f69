"""Progress bars that say what is being minimised while one waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pcsim.status import Report, Status
from pcsim.terminal import terminal

console = terminal()


@contextmanager
def progress(title: str, *, remaining: bool = True) -> Iterator[Report]:
    """Show one bar over epochs, steps or simulated seconds, with the words of the status.

    Without `remaining`, the words alone tell how long it will take.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
        *([TimeRemainingColumn()] if remaining else []),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, count="", words="")

        def report(status: Status) -> None:
            count = f"{status.done:g}/{status.total:g} {status.unit}"
            bar.update(
                task, total=status.total, completed=status.done, count=count, words=status.text
            )

        yield report
