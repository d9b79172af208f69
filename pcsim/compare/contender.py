"""A contender: one run, from wherever it came, in the form in which runs are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.config import Config
from pcsim.runner.progress import PROGRESS

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Curve:
    """Something that was recorded while a run went on; NaN where nothing was recorded."""

    values: Array
    """(seed, record)"""
    progress: Mapping[str, Array]
    """For each name in `PROGRESS`, (seed, record); NaN where it is not known."""


@dataclass(frozen=True, eq=False)
class Contender:
    """Runs of one kind over several seeds; all arrays have the seeds first."""

    name: str
    source: str
    """Where it came from, for error messages and the record."""
    fields: Mapping[str, Any]
    """What is known of network, data and settings: dotted names as in a configuration."""
    seeds: Array
    accuracy: Array
    """Test accuracy at the end, as a fraction (seed,)."""
    accuracy_curve: Curve
    energy_curve: Curve | None = None
    chips: Array | None = None
    """Of a population, the accuracy of each chip (seed, chip); `accuracy` is its mean."""
    parameters: Array | None = None
    predictions: Array | None = None
    config: Config | None = None
    origin: Mapping[str, str] = field(default_factory=dict)
    """The files of the data set and whether they are the published ones."""

    def of_seeds(self, values: Array, seeds: Array) -> Array:
        """Return the rows of `values` that belong to `seeds`; NaN for a seed this run lacks."""
        rows = np.full((len(seeds), *values.shape[1:]), np.nan)
        for row, seed in enumerate(seeds):
            found = np.flatnonzero(self.seeds == seed)
            if len(found):
                rows[row] = values[found[0]]
        return rows


def unknown_progress(shape: tuple[int, ...]) -> dict[str, Array]:
    """Return progress of which nothing is known yet."""
    return {name: np.full(shape, np.nan) for name in PROGRESS}
