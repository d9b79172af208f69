"""One transform outside any network: what a piece does to a signal, step by step."""

from __future__ import annotations

import numpy as np
import torch

from hw_models.piece import Piece
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.transform import Transform


class Stepped:
    """A transform of which every call is one time step."""

    def __init__(self, chips: Chips, transform: Transform):
        self.chips, self.transform = chips, transform

    @property
    def aggregates(self):
        return self.transform.aggregates

    def __call__(self, s, **symbols):
        seen = self.transform(s, **symbols)
        self.chips.advance()
        return seen


def transform(
    piece: Piece, shape=(1,), *, chips=1, dt=0.1, seed=0, layer=0, site=None
) -> tuple[Chips, Stepped]:
    """Return chips with this piece alone, and its (first) transform, a time step per call."""
    effects = piece.effects("piece")
    substrate = Substrate(effects=effects)
    made = Chips(substrate, range(chips), seed=seed, dt=dt, noise=Seeded(seed), dtype=torch.float64)
    found = made.transform(site or effects[0].site, layer, shape)
    assert found is not None
    return made, Stepped(made, found)


def relaxed(piece: Piece, dt: float, *, tau=1.0, size=40_000, times=6.0, seed=0) -> np.ndarray:
    """Let dx/dt = −x/τ run under a piece at the velocity site until it is stationary."""
    _, velocity = transform(piece, (size,), dt=dt, seed=seed)
    x = torch.zeros(1, 1, size, dtype=torch.float64)
    for _ in range(round(times * tau / dt)):
        x = x + dt * velocity(-x / tau, x=x)
    return x.numpy().ravel()
