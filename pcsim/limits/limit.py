"""A predicted limit: a number, the law that it follows from, and where that law ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite, nan, sqrt

NEAR = 1e-12
"""A limit is searched as closely as this, relative to itself."""


@dataclass(frozen=True)
class Limit:
    """What a number may be by a law; `value` is inf where the law sets no limit."""

    law: int
    """Number of the law in `docs/theory.md`."""
    name: str
    """What it is called there, in a few words."""
    value: float
    at_most: bool = True
    """Whether it is an upper limit, else a lower one."""

    def over(self, unit: float) -> Limit:
        """Return the limit as a multiple of a unit."""
        return replace(self, value=self.value / unit)

    @property
    def words(self) -> str:
        """Say it in a cell of a table."""
        if self.value != self.value:
            return f"none by law {self.law}"
        if not isfinite(self.value):
            return f"no limit by law {self.law}"
        return f"{'≤' if self.at_most else '≥'} {self.value:.3g} by law {self.law}"


def largest(loss: Callable[[float], float], tolerance: float, start: float = 1e-3) -> float:
    """Return the largest number whose loss is tolerated; the loss rises with it.

    0 where no number is small enough, inf where none is too large (searched over 24 decades).
    """
    low, high = start * 1e-12, start * 1e12
    if loss(low) > tolerance:
        return 0.0
    if loss(high) <= tolerance:
        return inf
    while high > low * (1 + NEAR):
        middle = sqrt(low * high)
        low, high = (middle, high) if loss(middle) <= tolerance else (low, middle)
    return low


def smallest(loss: Callable[[float], float], tolerance: float, start: float = 1.0) -> float:
    """Return the smallest number whose loss is tolerated; the loss falls with it.

    nan where none is large enough, 0 where none is too small.
    """
    found = largest(lambda inverse: loss(1 / inverse), tolerance, 1 / start)
    return nan if found == 0 else 1 / found
