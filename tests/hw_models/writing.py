"""Devices under test: pieces written to directly, as a kernel would."""

import torch
from torch import Tensor

from hw_models.pieces import Piece
from pcsim.substrate import Chips, Seeded, Substrate
from pcsim.substrate.transform import Transform


class Devices:
    """One row of devices of one chip, with its stored weights."""

    def __init__(
        self, *pieces: Piece, count: int = 1, w: float = 0.0, dt: float = 1.0, seed: int = 0
    ):
        effects = [e for k, piece in enumerate(pieces) for e in piece.effects(f"p{k}")]
        substrate = Substrate(effects=tuple(effects))
        noise = Seeded(seed + 1)
        self.chips = Chips(substrate, [0], seed=seed, dt=dt, noise=noise, dtype=torch.float64)
        self._write = self.chips.transform("write", 0, (1, count))
        self._read: Transform | None = self.chips.transform("weight", 0, (1, count))
        self.w = torch.full((1, 1, count), w, dtype=torch.float64)

    def write(self, s: float | Tensor) -> Tensor:
        """Ask for a change; return what was done."""
        asked = torch.zeros_like(self.w) + s
        done = asked if self._write is None else self._write(asked, w=self.w, tau_w=1.0)
        self.w = self.w + done
        self.chips.advance()
        return done

    def read(self) -> Tensor:
        return self.w if self._read is None else self._read(self.w)

    def fixed(self, name: str, effect: int = -1) -> Tensor:
        """Return a parameter of an effect of the write site."""
        chosen = self.chips.substrate.at("write")[effect]
        value = self.chips.fixed(chosen, 0, (1, self.w.shape[-1]))[name]
        return torch.zeros_like(self.w) + value
