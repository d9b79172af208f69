"""Energies: what a value node pays for differing from its prediction. Pure data, no tensors."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.errors import ConfigError


@dataclass(frozen=True)
class Gaussian:
    """E = ½ Σ_i [ ε_i²/σ_i² + ln σ_i² ],  ε = x − μ  (the logarithm is 0 for unit variance).

    With `learned`, s = ln σ² is a parameter per unit that follows −∂F/∂s = ½(ε²/σ² − 1) at the
    weights' rate and never falls below ln `floor`: where the network interpolates its data,
    ln σ² → −∞ would otherwise be the minimum.
    """

    variance: float | tuple[float, ...] = 1.0
    learned: bool = False
    floor: float = 1e-3

    def __post_init__(self) -> None:
        """Check that variances are positive."""
        values = self.variance if isinstance(self.variance, tuple) else (self.variance,)
        if not values or not all(0 < v < float("inf") for v in values):
            raise ConfigError(
                f"Gaussian.variance: must be positive and finite, got {self.variance}"
            )
        if self.floor <= 0:
            raise ConfigError(f"Gaussian.floor: must be positive, got {self.floor}")
        if self.learned and min(values) < self.floor:
            raise ConfigError(
                f"Gaussian.variance: {min(values)} lies below Gaussian.floor = {self.floor}"
            )

    @property
    def unit(self) -> bool:
        """Whether this is plain squared error, the fast and most common case."""
        return not self.learned and self.variance == 1.0


@dataclass(frozen=True)
class Categorical:
    """E = KL[ p ‖ softmax(μ) ]: predictions are logits.

    A clamped node holds the probabilities p themselves (for a one-hot label this is cross-entropy);
    a free node holds logits x, p = softmax(x). What a free node sends to its children is
    softmax(x): give the maps that leave it `f = "softmax"` (`Mix` has it built in).
    The softmax runs over the last axis of the node's shape; with `causal`, over j ≤ i of its last
    two axes (i, j), and the other entries cost nothing.
    """

    causal: bool = False


Energy = Gaussian | Categorical
