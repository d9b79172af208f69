"""Which values of a number are tried: two to begin with, then more where the verdict changes.

A number grows or shrinks by factors, bits by ones; a place is how far that is from the chip as it
is: log2 of the factor, or the bits. After the first rungs, the two neighbours between which the
verdict changes get rungs between them, as often as there are rounds (bisection, all numbers at
once). A rung that the description refuses is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, floor, inf, log2

from pcsim.fields.chip_number import ChipNumber
from pcsim.variants.limit import Array, Estimate, change, rescue

FIRST = (1.0, 4.0)
"""Places of the first rungs: a factor of 2, and one of 16. Of bits: one bit, and all but two."""
SMALLER = (0.5, 0.25)
"""Tried as first rungs where the description allows no more."""
BETWEEN = 2
"""Rungs that are added between two neighbours."""
Value = int | float


@dataclass
class Ladder:
    """One number, in one direction."""

    number: ChipNumber
    up: bool
    level: float
    """Loss that the verdict allows."""
    trains: bool
    """Whether the chip trains as it is."""
    allowed: Callable[[Value], bool]
    """Whether the description takes a value."""
    places: list[float] = field(default_factory=list)
    limits: list[Estimate] = field(default_factory=list)
    losses: list[Array] = field(default_factory=list)

    def begin(self, limit: Estimate, losses: Array) -> None:
        """Set the chip as it is at place 0."""
        self.places, self.limits, self.losses = [0.0], [limit], [losses]

    def at(self, place: float) -> Value:
        """Return the value at a place."""
        number, sign = self.number, 1 if self.up else -1
        if number.bits:
            return int(number.value) + sign * int(place)
        moved = float(number.value * 2.0 ** (sign * place))
        if not number.whole:
            return moved
        return max(1, ceil(moved) if self.up else floor(moved))

    def first(self) -> list[float]:
        """Return the first rungs."""
        if self.number.bits:
            room = (32 - int(self.number.value)) if self.up else int(self.number.value) - 2
            wanted = [1.0, float(min(room, 4) if self.up else room)]
            places = [place for place in wanted if 1 <= place <= room]
        else:
            places = [p for p in FIRST if self._new(p)]
            places = places or [p for p in SMALLER if self._new(p)][:1]
        by_value = {self.at(place): place for place in reversed(places) if self._new(place)}
        return sorted(by_value.values())

    def more(self) -> list[float]:
        """Return rungs between the neighbours where the verdict changes."""
        found = self.found
        ends = [one for one in (found.value, found.low) if 0 < one < inf]
        if not ends:
            return []
        above = next(k for k, place in enumerate(self.places) if place >= ends[0])
        low, high = self.places[above - 1], self.places[above]
        if self.number.bits:
            inside = {float(round(low + (high - low) * k / (BETWEEN + 1))) for k in (1, BETWEEN)}
        else:
            inside = {low + (high - low) * k / (BETWEEN + 1) for k in range(1, BETWEEN + 1)}
        return sorted(p for p in inside if low < p < high and self._new(p))

    def _new(self, place: float) -> bool:
        value = self.at(place)
        known = {self.number.value, *(self.at(p) for p in self.places)}
        return value not in known and self.allowed(value)

    def add(self, place: float, limit: Estimate, losses: Array) -> None:
        """Take a rung that was trained."""
        k = sum(known < place for known in self.places)
        self.places.insert(k, place)
        self.limits.insert(k, limit)
        self.losses.insert(k, losses)

    @property
    def found(self) -> Estimate:
        """The place at which the verdict changes, inf: none that was tried."""
        return (change if self.trains else rescue)(self.places, self.limits, self.level)

    @property
    def tried(self) -> bool:
        """Whether there is a rung beside the chip as it is."""
        return len(self.places) > 1

    @property
    def farthest(self) -> float:
        """The largest change that was tried, as a factor or in bits."""
        return self.size(self.places[-1])

    def size(self, place: float) -> float:
        """Return how far a place is: a factor, or bits."""
        if self.number.bits or place == inf:
            return place
        number = self.number
        if number.whole and place in self.places and place:
            ratio = self.at(place) / number.value
            return float(ratio if self.up else 1 / ratio)
        return float(2.0**place)

    @property
    def place_of_one(self) -> int | None:
        """Index of the rung nearest to a doubling, a halving or one bit; None: none near."""
        near = [k for k, p in enumerate(self.places) if 0.2 <= p <= 1.0 + 1e-9]
        return max(near, key=lambda k: self.places[k], default=None)


def doublings(ladder: Ladder, place: float) -> float:
    """Return how many doublings (or bits) lie between the chip as it is and a rung."""
    if ladder.number.bits:
        return place
    return abs(log2(ladder.at(place) / ladder.number.value))
