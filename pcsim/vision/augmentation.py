"""Augmentation of training pictures: each may be mirrored, and is shifted by a few pixels.

A picture of height H and width W is read at

    row' = row + d,   column' = column + e        (or W − 1 − column + e if mirrored)

with d, e drawn uniformly from the whole numbers −MAX_SHIFT … MAX_SHIFT and mirroring in half of the
pictures. Where nothing is, there is 0, which is the mean of a centred data set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim.errors import ConfigError
from pcsim.kernels.parameters import generator
from pcsim.vision import library

MAX_SHIFT = 4
"""Pixels, for pictures of 32×32; smaller pictures move by an eighth of their shorter side."""

AUGMENT_KEY = 5
"""First element of the spawn key of the draws: see `pcsim.kernels.parameters.generator`."""

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draws:
    """What happens to each picture: mirrored or not, rows and columns it is read off its place."""

    mirrored: npt.NDArray[np.bool_]
    rows: Ints
    columns: Ints

    def __getitem__(self, index: Ints) -> Draws:
        """Return what happens to some of the pictures."""
        return Draws(self.mirrored[index], self.rows[index], self.columns[index])


def draw(seed: int, epoch: int, pictures: int, shape: tuple[int, ...]) -> Draws:
    """Draw what happens to `pictures` pictures of shape (channel, row, column) in one epoch."""
    if len(shape) != 3:
        raise ConfigError(
            f"data.augment: needs pictures of shape (channels, height, width), got {list(shape)}"
        )
    far = min(MAX_SHIFT, min(shape[1:]) // 8)
    rng = generator(seed, AUGMENT_KEY, epoch)
    rows, columns = rng.integers(-far, far + 1, (2, pictures))
    return Draws(rng.random(pictures) < 0.5, rows, columns)


def apply(pictures: Tensor, draws: Draws) -> Tensor:
    """Return pictures (picture, channel, row, column), each mirrored and shifted as drawn."""
    transform = library.part("geometry.transform", "data.augment")
    height, width = pictures.shape[-2:]
    # kornia wants the way from old to new places: the inverse of where each pixel is read.
    forth = np.zeros((len(pictures), 2, 3))
    forth[:, 0, 0] = np.where(draws.mirrored, -1, 1)
    forth[:, 0, 2] = np.where(draws.mirrored, width - 1 + draws.columns, -draws.columns)
    forth[:, 1, 1] = 1
    forth[:, 1, 2] = -draws.rows
    matrix = torch.as_tensor(forth, dtype=pictures.dtype, device=pictures.device)
    # All places are whole numbers: nearest copies pixels, where bilinear would blur by rounding.
    moved: Tensor = transform.warp_affine(pictures, matrix, (height, width), mode="nearest")
    return moved
