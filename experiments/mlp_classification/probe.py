"""Some points of one contestant on one data set, trained side by side."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np

from pcsim.config import Grid
from pcsim.store import Result

from ..common.search import Found, Point


class Probe(NamedTuple):
    """One training of the search."""

    data: str
    contestant: str
    grid: Grid

    @property
    def name(self) -> str:
        """Name of the job."""
        numbers = "_".join(f"{v:g}" for axis in _axes(self.grid) for v in axis)
        return f"search_{self.data}_{self.contestant}_{numbers}"

    def read(self, result: Result) -> Found:
        """Return what a training of these points found, each seed at its best epoch."""
        axes = _axes(self.grid)
        curves = np.nan_to_num(result["validation_accuracy"])
        points = [Point(*values) for values in product(*axes)]
        reached = curves.reshape(len(points), -1, curves.shape[-1]).max(-1).mean(-1)
        return dict(zip(points, map(float, reached), strict=True))


def _axes(grid: Grid) -> tuple[tuple[float, ...], ...]:
    return grid.alpha, grid.weight_decay, grid.gamma
