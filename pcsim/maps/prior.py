"""A root that is drawn towards a fixed mean."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.maps.initial import Initial


@dataclass(frozen=True)
class Prior:
    """A root that is drawn towards a fixed mean: μ = mean. It has no parents and learns nothing."""

    mean: float = 0.0

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Nothing is learnt."""
        return {}

    @property
    def initial(self) -> dict[str, Initial]:
        """Nothing is learnt."""
        return {}
