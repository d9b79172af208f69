"""How far each law was from the simulated map (`docs/automatic.md`), at three losses of accuracy.

`errors.csv` is written by `pcsim experiment automatic --figures` from the map's kept result. It has
the predicted over the simulated size of each axis, turned so that more than 1 promises too much; of
bits their difference, so that more than 0 does.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path

FILE = Path(__file__).with_name("errors.csv")
LEVELS = (0.01, 0.03, 0.05)
"""Losses of accuracy at which laws were compared."""


@dataclass(frozen=True)
class Error:
    """A law beside the map, at the loss that is nearest to the one that is asked about."""

    value: float
    """Factor, or bits."""
    by_bits: bool
    level: float

    @property
    def words(self) -> str:
        """Say it in a cell of a table."""
        too_much = self.value > (0 if self.by_bits else 1)
        if self.by_bits:
            size = f"{abs(self.value):.1f} bits"
        else:
            size = f"×{max(self.value, 1 / self.value):.2g}"
        return f"{size} too {'generous' if too_much else 'strict'}"


def error_of(axis: str, tolerance: float) -> Error | None:
    """Return how far a law was from the map; None: the map does not know."""
    row = _rows().get(axis)
    level = min(LEVELS, key=lambda one: abs(log(one / tolerance)))
    if row is None or not row[f"{level:g}"]:
        return None
    return Error(float(row[f"{level:g}"]), row["unit"] == "bits", level)


@cache
def _rows() -> dict[str, dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as lines:
        next(lines)  # the command
        return {row["axis"]: row for row in csv.DictReader(lines)}
