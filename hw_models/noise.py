"""Temporal noise: white, shot, coloured, 1/f and telegraph, on any signal."""

from __future__ import annotations

from typing import Literal

from hw_models.piece import Piece
from pcsim.frozen import NotNegative
from pcsim.substrate import Effect


class WhiteNoise(Piece):
    """White noise on dx/dt of the somas: dx = … dt + σ dW, the same for any time step."""

    kind: Literal["white_noise"] = "white_noise"
    sigma: NotNegative
    """Standard deviation of x after one second without leak, in units of x per √second."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + σ ξ/√dt."""
        return (
            Effect(
                name=name,
                site="velocity",
                becomes="s + sigma*xi/sqrt(dt)",
                constants={"sigma": self.sigma},
                noise={"xi": "normal"},
                about="white noise of the membrane current",
            ),
        )
