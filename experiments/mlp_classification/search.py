"""Search the settings of one contestant: a grid, which grows where its best cell lies at an edge.

    cells of α × weight decay × γ, each with its accuracy on held-out images
    while the best α is the largest or smallest tried: one more beyond it, at the best of the rest

So no rate is chosen because better ones were not looked at. A γ is not sought beyond its grid.
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


def beyond(found: Mapping[Cell, float]) -> Cell | None:
    """Return the next cell to try if the best α is the largest or smallest of several tried."""
    best, tried = best_cell(found), sorted({cell.alpha for cell in found})
    if len(tried) == 1 or tried[0] < best.alpha < tried[-1]:
        return None
    last, before = (tried[0], tried[1]) if best.alpha == tried[0] else (tried[-1], tried[-2])
    return best.model_copy(update={"alpha": float(f"{last * last / before:.2g}")})
