"""What is printed is text: a name such as `[/x]` or `:warning:` is shown as it is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from pcsim.status import Report, Status


def terminal(**options: Any) -> Console:
    """Return a console that takes no markup from file names, presets or data."""
    return Console(markup=False, emoji=False, **options)


console = terminal()
"""Where progress and results of commands go."""


@contextmanager
def progress(title: str, *, remaining: bool = True, console: Console = console) -> Iterator[Report]:
    """Show one bar over epochs, steps, points or simulated seconds, with the words of the status.

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
