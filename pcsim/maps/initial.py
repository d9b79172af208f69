"""How a learnt array starts."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal


@dataclass(frozen=True)
class Initial:
    """`uniform`: U(−size, size); `normal`: N(0, size²); `constant`: size."""

    kind: Literal["uniform", "normal", "constant"]
    size: float


def by_fan_in(fan_in: int) -> Initial:
    """Return U(−1/√n_in, 1/√n_in), PyTorch's default for linear layers and convolutions."""
    return Initial("uniform", 1 / sqrt(fan_in))
