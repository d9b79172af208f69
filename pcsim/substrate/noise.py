"""Temporal noise: every number is a function of (seed, source, chip, time step, element) alone.

Neither the size of the population, nor other sources, nor the engine, nor an interruption changes
what a chip draws. Two requests for one source at one time step are answered alike.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import Protocol

import numpy as np
from torch import Tensor

from pcsim.substrate.counter import Keys, Law, fill


class Noise(Protocol):
    """Standard normal or uniform (0, 1) numbers for a named source at a time step."""

    def draw(self, source: str, law: Law, like: Tensor, step: int, first: int = 0) -> Tensor:
        """Return numbers in the shape of `like`; `first`: elements of each chip before them."""

    def apart(self, purpose: str) -> Noise:
        """Return the noise of a look from outside, independent of that of the run."""


class Seeded:
    """Counter-based noise; `chips[k]` says whose numbers row k gets, rows of one chip the same."""

    def __init__(
        self, seed: int, chips: Sequence[Hashable] | None = None, purpose: str = ""
    ) -> None:
        """Without `chips`, row k is chip k."""
        self.seed, self.purpose = seed, purpose
        self.chips = None if chips is None else list(chips)
        self._keys: dict[str, Keys] = {}

    def draw(self, source: str, law: Law, like: Tensor, step: int, first: int = 0) -> Tensor:
        """Return numbers in the shape of `like`; `first`: elements of each chip before them."""
        return fill(like.shape, self.keys(source, len(like)), step, law, like, first)

    def apart(self, purpose: str) -> Seeded:
        """Return the noise of a look from outside, independent of that of the run."""
        return Seeded(self.seed, self.chips, purpose)

    def keys(self, source: str, rows: int) -> Keys:
        """Return one key per row: a hash of the seed, the purpose, the source and the chip."""
        keys = self._keys.get(source)
        if keys is None or len(keys) != rows:
            chips = range(rows) if self.chips is None else self.chips
            if len(chips) != rows:
                raise ValueError(f"noise of {source}: {rows} rows, but {len(chips)} chips")
            keys = np.array([self._key(source, chip) for chip in chips], dtype=np.uint64)
            self._keys[source] = keys
        return keys

    def _key(self, source: str, chip: Hashable) -> int:
        text = f"{self.seed}|{self.purpose}|{source}|{chip}"
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
