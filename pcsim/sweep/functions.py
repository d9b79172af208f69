"""A sweep over Python functions: named cells, each measured once, resumable, in any order.

    cells = {f"alpha {a:g}": partial(measure, a) for a in (0.1, 0.2)}      # each gives a Result
    found = collect(cells, Path("study.cells"), setting="2 rates", workers=2)

What a configuration can say, `sweep` does with fewer words; this is for all the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pcsim import store
from pcsim.errors import UnsupportedError
from pcsim.status import Report
from pcsim.store import Result
from pcsim.store.parts import Parts
from pcsim.sweep.processes import Died, Job
from pcsim.sweep.schedule import Place, Tally, carry_out


def collect(
    cells: Mapping[str, Job[Result]],
    folder: Path,
    setting: str,
    *,
    workers: int = 0,
    report: Report | None = None,
) -> dict[str, Result]:
    """Return the result of every cell, by name; those in the folder are not measured again.

    Main arguments:
        cells: how to measure each cell, long ones first.
        folder: where finished cells are kept; `Parts(folder).forget()` removes them.
        setting: text that changes whenever the numbers would.
        workers: this many processes on this machine, one thread each (then a cell must be a
            `partial` of a module's function); 0: in this process.

    Rarely used:
        report: called now and then with a `Status`.
    """
    parts = Parts(folder)
    paths = {name: parts.path(name, setting) for name in cells}
    missing = {name: cell for name, cell in cells.items() if not paths[name].exists()}
    results = {name: store.load(paths[name]) for name in cells if name not in missing}

    def keep(name: str, result: Result | Died) -> int:
        if isinstance(result, Died):
            raise UnsupportedError(f"{name}: {result.reason}")
        store.save(result, paths[name], overwrite=True)
        results[name] = result
        return 1

    carry_out(
        missing, keep, Tally(len(results), len(cells), "cells", folder), Place(workers), report
    )
    return {name: results[name] for name in cells}
