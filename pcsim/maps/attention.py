"""Self-attention in two maps, so that a value node can stand between them: scores, then mixture."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.errors import ConfigError
from pcsim.maps.initial import Unlearnt
from pcsim.maps.nonlinearities import check_sizes


@dataclass(frozen=True)
class Scores(Unlearnt):
    """μ = q kᵀ/√d per head, d = features/heads; parents (queries, keys), shape (head, i, j).

    With `causal`, only j ≤ i counts: the rest is predicted as 0 and read by nobody.
    """

    positions: int
    features: int
    heads: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        """Check sizes."""
        _check("Scores", self.positions, self.features, self.heads)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Head, position that looks, position that is looked at."""
        return self.heads, self.positions, self.positions

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent: queries, keys."""
        return (self.positions * self.features,) * 2

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return self.heads * self.positions**2


@dataclass(frozen=True)
class Mix(Unlearnt):
    """μ_i = Σ_j softmax(s)_ij v_j per head; parents (scores, values), shape (position, feature).

    With `causal`, the softmax runs over j ≤ i.
    """

    positions: int
    features: int
    heads: int = 1
    causal: bool = False

    def __post_init__(self) -> None:
        """Check sizes."""
        _check("Mix", self.positions, self.features, self.heads)

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent: scores, values."""
        return self.heads * self.positions**2, self.positions * self.features

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return self.positions * self.features


def _check(kind: str, positions: int, features: int, heads: int) -> None:
    check_sizes(kind, positions=positions, features=features, heads=heads)
    if features % heads:
        raise ConfigError(f"{kind}.heads: {heads} must divide the {features} features")
