"""What the sweep engine costs per point, besides the runs themselves.

`pcsim experiment sweep_overhead` runs 1000 points of a tiny network alone, and as a sweep in this
process, in turns of 100; nothing is fused, so that each point is a run and a file of its own. The
difference is validation, planning, storing, merging. It prints wall and processor time per point
and writes `sweep_overhead.h5`.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.table import Table

from pcsim import run
from pcsim.provenance import provenance
from pcsim.store import Result, Variable
from pcsim.sweep import make_sweep, sweep
from pcsim.terminal import terminal

from ..common.keeping import claim, keep

POINTS, TURNS = 1000, 10


def tiny(turn: int, points: int) -> dict[str, Any]:
    """Return a sweep over the learning rate of a network with one hidden layer of 4 units."""
    first = 1e-4 * (1 + turn / TURNS)
    return {
        "network": {"sizes": [64, 4, 10]},
        "learning": {"batch": 10, "epochs": 1},
        "data": {"limit": 20},
        "sweep": {"fuse": 1, "axes": {"learning.alpha": {"log": [first, 1e-2, points]}}},
    }


def measure(points: int = POINTS, turns: int = TURNS) -> tuple[np.ndarray, np.ndarray]:
    """Return (turn, clock) seconds per point, alone and swept; clocks: wall, processor."""
    each = points // turns
    alone, swept = np.zeros((2, turns, 2))
    run(_points(0, 2)[0])  # what is loaded once is loaded outside the clock
    for turn in range(turns):
        start = _clocks()
        for config in _points(turn, each):
            run(config)
        alone[turn] = _clocks() - start
        with TemporaryDirectory() as folder:
            start = _clocks()
            sweep(tiny(turn, each), Path(folder) / "store")
            swept[turn] = _clocks() - start
    return alone / each, swept / each


def _points(turn: int, points: int) -> list[Any]:
    return [point.config for point in make_sweep(tiny(turn, points)).points]


def _clocks() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def main(out: Path) -> None:
    """Measure, print, store."""
    claim(out / "sweep_overhead.h5", "sweep_overhead")
    alone, swept = measure()
    table = Table(title=f"{POINTS} points, in-process: median over {TURNS} turns, ms per point")
    for column in ("clock", "run alone", "in a sweep", "overhead"):
        table.add_column(column, justify="right")
    for k, clock in enumerate(("wall", "processor")):
        times = (alone[:, k], swept[:, k], swept[:, k] - alone[:, k])
        table.add_row(clock, *(f"{1e3 * float(np.median(t)):.2f}" for t in times))
    terminal().print(table)
    variables = {
        "alone": Variable(("turn", "clock"), alone, {"units": "s", "long_name": "per point"}),
        "swept": Variable(("turn", "clock"), swept, {"units": "s", "long_name": "per point"}),
    }
    result = Result(variables, {"clock": np.asarray(["wall", "processor"])}, {**provenance()})
    keep(result, out / "sweep_overhead.h5", "sweep_overhead")
