"""A root that is drawn towards a fixed mean."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.maps.initial import Unlearnt


@dataclass(frozen=True)
class Prior(Unlearnt):
    """A root that is drawn towards a fixed mean: μ = mean. It has no parents and learns nothing."""

    mean: float = 0.0
