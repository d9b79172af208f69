"""A study in cells: measured in turn or by several processes, shown while one waits, resumable.

Each finished cell is stored at once, in a folder beside the final result. The same command, after
an interruption, takes the cells it finds there (if they belong to the same setting) and measures
the others. When the final result is stored, the folder is removed by `forget`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from contextlib import suppress
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from experiments import workers
from pcsim import store
from pcsim.errors import InterruptedRunError, StoreError
from pcsim.interruption import exit_code
from pcsim.store import Result
from pcsim.store.files import remove_leftovers

Measure = Callable[[], Result]
"""Measures one cell; with several processes it must be a `partial` of a module's function."""

SETTING = "cells_setting"
"""Attribute of a stored cell: the setting it belongs to."""


def collect(
    measures: Mapping[str, Measure],
    folder: Path,
    setting: str,
    console: Console,
    processes: int = 1,
) -> dict[str, Result]:
    """Return the result of every cell, by name, in the order of `measures`.

    Main arguments:
        measures: how to measure each cell; the name is also its file name.
        folder: where finished cells are kept.
        setting: text that changes whenever the numbers would.

    Rarely used:
        processes: 1 measures in this process; more run side by side with one thread each. List
            long cells first, so that no processor waits for the last one.
    """
    found = {name: kept for name in measures if (kept := _kept(folder / f"{name}.h5", setting))}
    if found:
        console.print(f"{len(found)} of {len(measures)} cells are there already, in {folder}")
    missing = {name: measure for name, measure in measures.items() if name not in found}
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("measuring", total=len(measures), completed=len(found))
        try:
            for name, result in _measured(missing, processes):
                kept = Result(
                    result.variables,
                    result.coords,
                    {**result.attrs, SETTING: setting},
                    result.coord_attrs,
                )
                store.save(kept, folder / f"{name}.h5", overwrite=True)
                found[name] = kept
                progress.update(bar, advance=1, description=name)
        except KeyboardInterrupt as stop:
            raise InterruptedRunError(
                f"after {len(found)} of {len(measures)} cells; the same command goes on from "
                f"{folder}",
                exit_code(stop),
            ) from None
    return {name: found[name] for name in measures}


def forget(folder: Path) -> None:
    """Remove the stored cells of a study whose result is safe, and the folder if it is empty."""
    for pattern in ("*.h5", "*.checkpoint"):
        for path in folder.glob(pattern):
            if store.is_result(path):
                path.unlink()
            remove_leftovers(path)
    with suppress(OSError):  # there is no folder, or somebody else keeps something in it
        folder.rmdir()


def _kept(path: Path, setting: str) -> Result | None:
    if not path.exists():
        return None
    kept = store.load(path)
    if SETTING not in kept.attrs:
        raise StoreError(f"{path}: is not a cell of a study; move it away")
    return kept if kept.attrs[SETTING] == setting else None


def _measured(measures: Mapping[str, Measure], processes: int) -> Iterator[tuple[str, Result]]:
    if processes <= 1:
        for name, measure in measures.items():
            yield name, measure()
        return
    with workers.pool(processes) as pool:
        names = {pool.submit(measure): name for name, measure in measures.items()}
        for future in as_completed(names):
            yield names[future], future.result()
