"""Temporal noise: seeded, or frozen so that every backend can be given the same numbers."""

from __future__ import annotations

from collections import defaultdict
from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

Law = Literal["normal", "uniform"]


class Noise(Protocol):
    """Standard normal or uniform [0, 1) numbers for a named variable at the present step."""

    def draw(self, key: str, law: Law, like: Tensor) -> Tensor:
        """Return fresh numbers in the shape of `like`."""


class Seeded:
    """torch's generator on the device of the run, set from (seed, epoch) by `reseed`.

    A population may consist of several `cells` of equal size (the values of a grid, slowest along
    the replica axis): all cells are given the same numbers, those that a cell alone would draw.
    """

    def __init__(self, seed: int, device: torch.device | str = "cpu", cells: int = 1) -> None:
        self.seed, self.cells = seed, cells
        self.generator = torch.Generator(device)
        self.reseed(0)

    def reseed(self, epoch: int) -> None:
        """Begin the stream that belongs to an epoch, so that an interrupted run can go on."""
        key = np.random.SeedSequence(self.seed, spawn_key=(epoch,))
        self.generator.manual_seed(int(key.generate_state(1, np.uint64)[0] >> 1))

    def draw(self, key: str, law: Law, like: Tensor) -> Tensor:
        """Return fresh numbers in the shape of `like`."""
        make = torch.randn if law == "normal" else torch.rand
        shape = (like.shape[0] // self.cells, *like.shape[1:])
        drawn = make(shape, generator=self.generator, dtype=like.dtype, device=like.device)
        return drawn if self.cells == 1 else drawn.repeat(self.cells, *[1] * (like.ndim - 1))


class Frozen:
    """Numbers that depend on (seed, variable, step) alone: for exact comparison of backends."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.drawn: dict[str, list[Tensor]] = defaultdict(list)

    def draw(self, key: str, law: Law, like: Tensor) -> Tensor:
        """Return fresh numbers, and keep them."""
        name = int.from_bytes(key.encode(), "little")
        entropy = np.random.SeedSequence(self.seed, spawn_key=(name, len(self.drawn[key])))
        rng = np.random.default_rng(entropy)
        shape = tuple(like.shape)
        values = rng.standard_normal(shape) if law == "normal" else rng.random(shape)
        self.drawn[key].append(torch.as_tensor(values, dtype=like.dtype, device=like.device))
        return self.drawn[key][-1]
