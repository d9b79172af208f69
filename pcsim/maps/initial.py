"""What every map says of itself, and how a learnt array starts."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Literal, Protocol


@dataclass(frozen=True)
class Initial:
    """`uniform`: U(−size, size); `normal`: N(0, size²); `constant`: size."""

    kind: Literal["uniform", "normal", "constant"]
    size: float


def by_fan_in(fan_in: int) -> Initial:
    """Return U(−1/√n_in, 1/√n_in), PyTorch's default for linear layers and convolutions."""
    return Initial("uniform", 1 / sqrt(fan_in))


class Unlearnt:
    """A map without weights of its own."""

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Nothing is learnt."""
        return {}

    @property
    def initial(self) -> dict[str, Initial]:
        """Nothing is learnt."""
        return {}


class Predictor(Protocol):
    """A map that predicts a node from its parents: a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""

    @property
    def units(self) -> int:
        """Units of the node."""

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what is learnt, by name."""

    @property
    def initial(self) -> dict[str, Initial]:
        """How each of them starts."""
