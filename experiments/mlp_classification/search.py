"""Search the settings of one contestant: some cells, then the neighbours of the best one.

    cells of α × weight decay × γ, each with its accuracy on held-out images
    while the best cell has a neighbour that was not tried, one step on one axis away: try it

A step goes to the next value of the axis, or beyond its end. So the chosen cell is better than all
its neighbours, and no value is chosen because better ones were not looked at. An axis of a single
value is given, not searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pcsim.config import Grid
from pcsim.frozen import Frozen
from pcsim.store import Result


class Cell(Frozen):
    """One combination of hyper-parameters."""

    alpha: float
    weight_decay: float
    gamma: float


Found = dict[Cell, float]
"""Held-out accuracy of each cell tried, mean over the seeds of the search."""


Axes = Mapping[str, tuple[float, ...]]
"""Values of each axis, by its name."""


class Probe(NamedTuple):
    """Some cells of one contestant on one data set, trained side by side."""

    data: str
    contestant: str
    grid: Grid

    @property
    def name(self) -> str:
        """Name of the job."""
        values = (self.grid.alpha, self.grid.weight_decay, self.grid.gamma)
        numbers = "_".join(f"{v:g}" for axis in values for v in axis)
        return f"search_{self.data}_{self.contestant}_{numbers}"

    def read(self, result: Result) -> Found:
        """Return what a training of these cells found, each seed at its best epoch."""
        shape = [len(axis) for axis in (self.grid.alpha, self.grid.weight_decay, self.grid.gamma)]
        curves = result["validation_accuracy"]
        epochs = curves.shape[-1]
        reached = np.nan_to_num(curves).reshape(*(n or 1 for n in shape), -1, epochs).max(-1)
        return {
            Cell(alpha=alpha, weight_decay=decay, gamma=gamma): float(reached[a, d, g].mean())
            for a, alpha in enumerate(self.grid.alpha)
            for d, decay in enumerate(self.grid.weight_decay)
            for g, gamma in enumerate(self.grid.gamma)
        }


def grid_of(cell: Cell) -> Grid:
    """Return the grid that is one cell."""
    return Grid(alpha=(cell.alpha,), weight_decay=(cell.weight_decay,), gamma=(cell.gamma,))


def best_cell(found: Mapping[Cell, float]) -> Cell:
    """Return the cell of the highest held-out accuracy; of equals the one tried first."""
    return max(found, key=lambda cell: found[cell])


def neighbours(found: Mapping[Cell, float], given: Axes) -> list[Cell]:
    """Return the cells one step beside the best one that were not tried.

    `given` has the values of each axis to begin with; others may have been tried since.
    """
    best, cells = best_cell(found), []
    for axis in Cell.model_fields:
        values = tried(found, given, axis)
        if len(values) == 1:
            continue
        k, far = values.index(getattr(best, axis)), len(values) - 1
        lower = values[k - 1] if k else _beyond(values[0], values[1])
        upper = values[k + 1] if k < far else _beyond(values[far], values[far - 1])
        cells += [best.model_copy(update={axis: value}) for value in (lower, upper)]
    return [cell for cell in cells if cell not in found]


def tried(found: Mapping[Cell, float], given: Axes, axis: str) -> list[float]:
    """Return the values of an axis, given or tried since, sorted."""
    return sorted({*given[axis], *(getattr(cell, axis) for cell in found)})


def _beyond(last: float, before: float) -> float:
    return float(f"{last * last / before:.2g}")
