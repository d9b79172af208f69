"""Maps of sequences (position, feature)."""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.errors import ConfigError
from pcsim.maps.initial import Initial
from pcsim.maps.nonlinearities import check_nonlinearities, check_sizes


@dataclass(frozen=True)
class Embedding:
    """μ at position i = W[token i] + w_position[i]; the parent holds whole numbers, one per i.

    Token numbers are data: the parent must be a clamped input, and no error flows back to it.
    """

    vocabulary: int
    positions: int
    features: int
    sd: float = 1.0
    """Standard deviation of both tables at the start (1 is PyTorch's default)."""

    def __post_init__(self) -> None:
        """Check sizes."""
        check_sizes(
            "Embedding",
            vocabulary=self.vocabulary,
            positions=self.positions,
            features=self.features,
        )
        if self.vocabulary > 1 << 24:
            raise ConfigError("Embedding.vocabulary: float32 holds token numbers up to 2**24 only")
        if not 0 < self.sd < float("inf"):
            raise ConfigError(f"Embedding.sd: must be positive and finite, got {self.sd}")

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""
        return (self.positions,)

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return self.positions * self.features

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is learnt."""
        return {
            "w": (self.vocabulary, self.features),
            "w_position": (self.positions, self.features),
        }

    @property
    def initial(self) -> dict[str, Initial]:
        """How it starts."""
        return dict.fromkeys(self.parameters, Initial("normal", self.sd))


@dataclass(frozen=True)
class LayerNorm:
    """μ = gain ∘ (r − mean)/√(variance + eps) + b, r = f(x), over the features of each position."""

    positions: int
    features: int
    eps: float = 1e-5
    f: str = "identity"

    def __post_init__(self) -> None:
        """Check sizes."""
        check_sizes("LayerNorm", positions=self.positions, features=self.features)
        check_nonlinearities("LayerNorm", self.f)
        if not 0 < self.eps < float("inf"):
            raise ConfigError(f"LayerNorm.eps: must be positive and finite, got {self.eps}")

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""
        return (self.positions * self.features,)

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return self.positions * self.features

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is learnt."""
        return {"gain": (self.features,), "b": (self.features,)}

    @property
    def initial(self) -> dict[str, Initial]:
        """How it starts: as the plain normalisation."""
        return {"gain": Initial("constant", 1.0), "b": Initial("constant", 0.0)}
