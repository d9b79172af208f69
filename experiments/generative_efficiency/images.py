"""A hundred pictures: the small training sets of the generative models."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pcsim import datasets

STAND_IN_ALLOWED = ("tiny_imagenet",)
"""Sets of which a part will do: a folder or zip with some of the published pictures is accepted,
and `origin` says that it is not the published file."""


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Pictures (image, pixel) in [0, 1], their shape (channel, row, column), and their files."""

    pixels: npt.NDArray[np.float32]
    shape: tuple[int, ...]
    origin: str


def load(name: str, count: int) -> ImageSet:
    """Return the first `count` training pictures; of Tiny ImageNet the first of each class."""
    allowed = name in STAND_IN_ALLOWED
    data = datasets.load(name, unverified=allowed)
    chosen = np.arange(count)
    if allowed:
        # Sorted by class in the file: the first hundred would show a single thing, or few.
        _, first = np.unique(data.y_train, return_index=True)
        chosen = first[:count]
    pixels = data.x_train[chosen].reshape(count, -1).copy()
    return ImageSet(pixels, data.shape, json.dumps(dict(data.origin)))
