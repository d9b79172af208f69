"""The sum of several parents: residual connections, and relays."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.maps.initial import Unlearnt
from pcsim.maps.nonlinearities import check_sizes


@dataclass(frozen=True)
class Sum(Unlearnt):
    """μ = Σ of `terms` parents with `units` units each; a single term is passed on as it is."""

    units: int
    terms: int = 2

    def __post_init__(self) -> None:
        """Check sizes."""
        check_sizes("Sum", units=self.units, terms=self.terms)

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""
        return (self.units,) * self.terms
