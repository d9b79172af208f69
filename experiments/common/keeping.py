"""What a study leaves in the output folder: cells while it is under way, then result and figure.

A study replaces its own earlier result and figure, and nothing else. Interrupted, the same command
goes on with the cells that are missing.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from rich.console import Console

from pcsim import store
from pcsim.config import Config
from pcsim.errors import StoreError
from pcsim.store import Result
from pcsim.store.files import check_own, check_target, write_own
from pcsim.store.parts import Parts
from pcsim.sweep import functions
from pcsim.sweep.processes import Job
from pcsim.terminal import progress

STUDY = "study"
"""Attribute of a result: the study that made it."""
PROCESSES = min(2, len(os.sched_getaffinity(0)))
"""Processes of a study whose cells are not timed; `taskset -c 0 pcsim …` leaves it one core."""


def claim(path: Path, study: str, *figures: Path) -> None:
    """Refuse, before any work, a result or figure that this study did not make."""
    check_target(path, overwrite=True)
    if path.exists() and not (store.is_result(path) and store.attributes(path).get(STUDY) == study):
        raise StoreError(
            f"{path}: is there already and was not made by the study {study}; move it away, "
            "or give another --out"
        )
    for figure in figures or (path.with_suffix(".png"),):
        check_own(figure)


def first_line(command: str) -> str:
    """Return the first line of the tables that a command writes."""
    return f"# {command}\n"


def write_table(path: Path, command: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Write a table with the columns of its first line; an earlier one of this command goes."""
    text = io.StringIO(first_line(command))
    text.seek(0, io.SEEK_END)
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_own(path, text.getvalue().encode(), first_line(command))


def digest(config: Config) -> str:
    """Return a name for a configuration: a cell so called survives changes of other cells."""
    return sha256(config.model_dump_json().encode()).hexdigest()[:16]


def cells_of(path: Path) -> Parts:
    """Return the cells of a result that is not there yet."""
    return Parts(path.with_suffix(".cells"))


def collect(
    cells: Mapping[str, Job[Result]],
    path: Path,
    setting: str,
    console: Console,
    processes: int = 1,
) -> dict[str, Result]:
    """Return the result of every cell, by name; see `pcsim.sweep.functions.collect`.

    Main arguments:
        path: the result to which the cells belong.
        setting: text that changes whenever the numbers would.
        processes: 1 measures in this process; more run side by side with one thread each.
    """
    workers, folder = processes if processes > 1 else 0, cells_of(path).folder
    with progress("measuring", remaining=False, console=console) as report:
        return functions.collect(cells, folder, setting, workers=workers, report=report)


def keep(result: Result, path: Path, study: str) -> None:
    """Store the result of a study, and remove its cells."""
    claim(path, study)
    attrs = {**result.attrs, "kind": "study", STUDY: study}
    marked = Result(result.variables, result.coords, attrs, result.coord_attrs)
    store.save(marked, path, overwrite=True)
    cells_of(path).forget()
