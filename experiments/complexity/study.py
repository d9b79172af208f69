"""How many matrix products does one weight update take, one after another and side by side?

`pcsim experiment complexity` runs BP, PC, Z-IL and iPC on networks of L maps while counters watch
the products that really happen (`pcsim.kernels.counter`), and sets them beside the paper's table:

              one inference step   PC          Z-IL             BP        iPC
    MMs       2L − 1               (2L − 1)T   (2L − 1)(L − 1)  2L − 1    2L − 1
    SMMs      2                    2T          2(L − 1)         2L − 1    2

(MM: one matrix multiplication; SMM: a group that has all its inputs at one moment.) Theorem 1: one
full update costs O(1) SMMs with iPC and O(L) with BP. The second picture is the paper's sketch for
L = 3: which weights have been updated after m backward SMMs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.frozen import Frozen
from pcsim.kernels.counter import Counter
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable

from ..common import scaled
from . import report

Closed = Callable[[int, int], int]
COLUMNS: dict[str, tuple[Closed, Closed]] = {
    "one inference step": (lambda L, T: 2 * L - 1, lambda L, T: 2),
    "PC": (lambda L, T: (2 * L - 1) * T, lambda L, T: 2 * T),
    "Z-IL": (lambda L, T: (2 * L - 1) * (L - 1), lambda L, T: 2 * (L - 1)),
    "BP": (lambda L, T: 2 * L - 1, lambda L, T: 2 * L - 1),
    "iPC": (lambda L, T: 2 * L - 1, lambda L, T: 2),
}
"""The paper's table: MMs and SMMs of one weight update, given L and T."""

SKETCH_DEPTH, SKETCH_SMMS = 3, 6
"""The paper's sketch: a network of 3 maps, the first 6 backward SMMs."""


class Setting(Frozen):
    """Which networks are counted; widths and data do not enter the counts."""

    deepest: int
    """L goes from 2 to this."""
    T: int = 8
    """Inference steps of PC per update."""
    updates: int = 3
    """Batches that are counted (the numbers are per update)."""

    @property
    def depths(self) -> range:
        """All L."""
        return range(2, self.deepest + 1)


SCALES = {
    "small": Setting(deepest=32),
    "paper": Setting(deepest=128, T=32),
}
"""The table has no size of its own: `paper` only goes deeper."""


def counted(column: str, depth: int, T: int, batches: int) -> Counter:
    """Train a network of `depth` maps for a few batches of random data, and return the counter."""
    network, counter = Network.mlp([6, *[5] * (depth - 1), 4]), Counter()
    params = initial_parameters(network, [0], torch.float64)
    generator = torch.Generator().manual_seed(depth)
    optimizer = Optimizer(OptimizerSpec(), params, 0.01, in_place=column != "BP")
    run: Backprop | Discrete
    if column == "BP":
        run = Backprop(network, params, optimizer, counter=counter)
    else:
        rule = {"Z-IL": "zil", "iPC": "ipc"}.get(column, "pc")
        steps = 1 if column == "one inference step" else T
        # Every product of the text: no shortcut for what is known to be zero.
        schedule = Schedule.model_validate({"rule": rule, "T": steps, "fast": False})
        run = Discrete(network, params, schedule, optimizer, counter=counter)
    for _ in range(batches):
        inputs, targets = (
            torch.rand(1, 2, n, generator=generator, dtype=torch.float64) for n in (6, 4)
        )
        run.batch([targets, *[None] * (depth - 1), inputs])
    return counter


def full_updates(column: str, counter: Counter) -> int:
    """Return how often all weights were written; Z-IL writes one map at a time."""
    if column != "Z-IL":
        return len(counter.updates)
    return sum(nodes == (0,) for _, nodes in counter.updates)


def counts(setting: Setting) -> npt.NDArray[np.float64]:
    """Return MMs and SMMs per weight update (kind, column, depth), as counted."""
    found = np.empty((2, len(COLUMNS), len(setting.depths)))
    for j, column in enumerate(COLUMNS):
        for k, depth in enumerate(setting.depths):
            counter = counted(column, depth, setting.T, setting.updates)
            each = full_updates(column, counter)
            found[:, j, k] = counter.mms / each, counter.smms / each
    return found


def closed_form(setting: Setting) -> npt.NDArray[np.float64]:
    """Return the paper's table on the same axes as `counts`."""
    rows = [
        [[law(d, setting.T) for d in setting.depths] for law in laws]
        for laws in zip(*COLUMNS.values(), strict=True)
    ]
    return np.asarray(rows, dtype=float)


def sketch(column: str) -> npt.NDArray[np.bool_]:
    """Return whether map l was updated after m backward SMMs (m, l), m = 0 … SKETCH_SMMS."""
    counter = counted(column, SKETCH_DEPTH, 2 * SKETCH_SMMS, 1 if column == "iPC" else SKETCH_SMMS)
    written = np.zeros((SKETCH_SMMS + 1, SKETCH_DEPTH), dtype=bool)
    for m, nodes in counter.updates:
        if m <= SKETCH_SMMS:
            written[m, list(nodes)] = True
    return written


def measure(setting: Setting) -> Result:
    """Count everything."""
    sketches = {name: sketch(name) for name in ("BP", "iPC")}
    dims = ("kind", "column", "depth")
    variables = {
        "products": Variable(dims, counts(setting), {"long_name": "counted, per weight update"}),
        "products_closed_form": Variable(dims, closed_form(setting)),
        "sketch_updated": Variable(
            ("sketch_rule", "backward_smm", "map"),
            np.stack(list(sketches.values())),
            {"long_name": "weights of the map were updated after so many backward SMMs"},
        ),
    }
    coords: dict[str, Any] = {
        "kind": np.array(["MM", "SMM"]),
        "column": np.array(list(COLUMNS)),
        "depth": np.array(setting.depths),
        "sketch_rule": np.array(list(sketches)),
    }
    return Result(variables, coords)


SHOWN = scaled.Shown(report.tables, {"": report.draw})
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Count, print, store, draw."""
    run = scaled.begin("complexity", SCALES, scale, out)
    setting = SCALES[scale]
    found = measure(setting)
    claims = report.judge(found)
    run.publish(found.variables, found.coords, claims, SHOWN, T=setting.T)
