"""What a store holds, seen by a reader: what was varied, and over which population.

Every axis of a result plays one of four parts:

    swept       grid and sweep axes: alpha, learning.alpha, hardware.bits, …
    population  replicas of one setting: seeds, chips
    running     time, epochs, steps
    inner       nodes, maps, parameters, test samples
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.store import Result

Array = npt.NDArray[Any]
Cell = tuple[int, ...]

RUNNING = ("epoch", "time", "accuracy_time", "step", "record", "energy_record")
INNER = ("node", "map", "sender", "parameter", "test_sample", "run", "pulse")
POPULATION = ("seed", "chip", "replica")
OUTCOMES = ("verdict.outcome", "outcome")


@dataclass(frozen=True, eq=False)
class View:
    """One store: its result, and how to read it."""

    name: str
    source: str
    result: Result
    trajectories: Result | None = None

    @property
    def kind(self) -> str:
        """comparison, sweep, check, chips, automatic, training, study or result."""
        given = str(self.result.attrs.get("kind", ""))
        if given:
            return given
        # Results of 0.1 do not say it.
        if "check_config" in self.result.attrs:
            return "check"
        if "verdict.outcome" in self.result.variables:
            return "chips"
        if "outcome" in self.result.variables:
            return "automatic"
        return "training" if "train_energy" in self.result.variables else "result"

    @property
    def swept(self) -> tuple[str, ...]:
        """The axes along which settings differ."""
        if self.kind == "comparison":
            return ()
        if "axes" in self.result.attrs:
            return tuple(str(one["dim"]) for one in json.loads(str(self.result.attrs["axes"])))
        main = ("accuracy", *OUTCOMES, "train_energy", "energy")
        name = next((n for n in main if n in self.result.variables), None)
        if name is None:
            return ()
        known = (*RUNNING, *INNER, *POPULATION)
        return tuple(d for d in self.result.variables[name].dims if d not in known)

    @property
    def varied(self) -> tuple[str, ...]:
        """The swept axes with more than one value."""
        return tuple(axis for axis in self.swept if len(self.result[axis]) > 1)

    def labels(self, axis: str) -> list[str]:
        """Return the labels of an axis as short text; of a paired axis the values of its fields."""
        if "+" in axis:
            fields = [f for f in axis.split("+") if f in self.result.variables]
            columns = [[short(v) for v in self.result[f]] for f in fields]
            if columns:
                return [", ".join(row) for row in zip(*columns, strict=True)]
        return [short(value) for value in self.result[axis]]

    def cells(self) -> Iterator[Cell]:
        """Go through all combinations of swept values."""
        return product(*(range(len(self.result[axis])) for axis in self.swept))

    def cell_name(self, cell: Cell, axes: Collection[str] | None = None) -> str:
        """Return the values that make a cell, of these axes (default: of all that vary)."""
        wanted = self.varied if axes is None else axes
        return ", ".join(
            f"{field_name(axis)} {self.labels(axis)[k]}"
            for axis, k in zip(self.swept, cell, strict=True)
            if axis in wanted
        )

    def best_cell(self, shown: Array | None = None) -> Cell:
        """Return the cell of highest mean accuracy, through which slices are laid; else the first.

        What is varied over two or more axes is shown along one of them with the others held here.
        Only cells with a finite number in `shown` (swept …, population, …) can be chosen.
        """
        accuracy, depth = self.values("accuracy"), len(self.swept)
        if accuracy is None or not depth:
            return (0,) * depth
        known = np.isfinite(accuracy)
        mean = np.where(known, accuracy, 0).sum(-1) / np.maximum(known.sum(-1), 1)
        usable = known.any(-1)
        if shown is not None:
            usable &= np.isfinite(shown).any(axis=tuple(range(depth, shown.ndim)))
        best = np.argmax(np.where(usable, mean, -np.inf))
        return tuple(int(k) for k in np.unravel_index(best, mean.shape))

    def values(self, name: str) -> Array | None:
        """Return a variable as (swept …, population, others …), or None if it is not there."""
        variable = self.result.variables.get(name)
        if variable is None or any(axis not in variable.dims for axis in self.swept):
            return None
        population = [d for d in variable.dims if d in POPULATION]
        others = [d for d in variable.dims if d not in (*self.swept, *population)]
        order = [variable.dims.index(d) for d in (*self.swept, *population, *others)]
        moved = np.transpose(variable.values, order)
        shape = moved.shape[: len(self.swept)]
        return moved.reshape(*shape, -1, *(len(self.result[d]) for d in others))

    def outcomes(self) -> Array | None:
        """Return the outcome of every replica (swept …, population) as text, if judged."""
        name = next((n for n in OUTCOMES if n in self.result.variables), None)
        return None if name is None else self.values(name)

    def converged(self) -> Array | None:
        """Return the share of the population that converged (swept …); NaN where none is judged."""
        outcome = self.outcomes()
        if outcome is None:
            return None
        judged = (outcome != "").sum(-1)
        share = (outcome == "converged").sum(-1) / np.maximum(judged, 1)
        return np.where(judged > 0, share, np.nan)


def short(value: Any) -> str:
    """Return a label as a person would write it."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def field_name(axis: str) -> str:
    """Return the last part of a dotted name, e.g. bits of hardware.bits."""
    return " + ".join(part.rsplit(".", 1)[-1] for part in axis.split("+"))
