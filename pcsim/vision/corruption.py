"""Corruptions of pictures in [0, 1] at a level from 0 (none) to 5 (strong).

    rotation         by 9°·level about the centre, black corners
    gaussian_blur    standard deviation 0.4·level pixels
    gaussian_noise   standard deviation 0.04·level, the same draw at all levels, clipped to [0, 1]
    hue              by level/5 of half a turn on the colour circle
    brightness       plus 0.1·level, clipped to [0, 1]
    contrast         distances from the picture's mean grey times 1 − 0.18·level

The paper names these six and five intensities, and no magnitudes: the steps are ours. Every
strength grows in proportion to the level, so that any number between 0 and 5 is a level.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, pi

import torch
from torch import Tensor

from pcsim.errors import ConfigError
from pcsim.vision import library

MAX_LEVEL = 5


def corrupt(pictures: Tensor, kind: str, level: float, seed: int = 0) -> Tensor:
    """Return corrupted copies of pictures (picture, channel, row, column) in [0, 1].

    `seed` draws the noise and is not used by the other kinds.
    """
    if kind not in CORRUPTIONS:
        raise ConfigError(f"corrupt.kind: there is no {kind!r}; choose one of {list(CORRUPTIONS)}")
    if not 0 <= level <= MAX_LEVEL:
        raise ConfigError(f"corrupt.level: must be between 0 and {MAX_LEVEL}, got {level}")
    if level == 0:
        return pictures.clone()
    return CORRUPTIONS[kind](pictures, float(level), seed).clamp(0, 1)


def _rotation(pictures: Tensor, level: float, seed: int) -> Tensor:
    transform = library.part("geometry.transform", "rotation")
    angle = torch.full((len(pictures),), 9 * level, dtype=pictures.dtype, device=pictures.device)
    turned: Tensor = transform.rotate(pictures, angle)
    return turned


def _blur(pictures: Tensor, level: float, seed: int) -> Tensor:
    filters = library.part("filters", "gaussian_blur")
    sigma = 0.4 * level
    side = min(pictures.shape[-2:])
    # Three standard deviations each way; a reflected border is shorter than the picture.
    reach = min(ceil(3 * sigma), side - 1)
    blurred: Tensor = filters.gaussian_blur2d(pictures, 2 * reach + 1, (sigma, sigma))
    return blurred


def _noise(pictures: Tensor, level: float, seed: int) -> Tensor:
    # kornia's noise comes from torch's one global generator; this belongs to the seed alone.
    rng = torch.Generator().manual_seed(seed)
    draw = torch.randn(pictures.shape, generator=rng, dtype=torch.float64)
    return pictures + 0.04 * level * draw.to(pictures)


def _hue(pictures: Tensor, level: float, seed: int) -> Tensor:
    if pictures.shape[1] != 3:
        raise ConfigError(
            f"corrupt.kind: hue needs pictures of 3 colours, these have {pictures.shape[1]}"
        )
    enhance = library.part("enhance", "hue")
    turned: Tensor = enhance.adjust_hue(pictures, pi * level / MAX_LEVEL)
    return turned


def _brightness(pictures: Tensor, level: float, seed: int) -> Tensor:
    enhance = library.part("enhance", "brightness")
    brighter: Tensor = enhance.adjust_brightness(pictures, 0.1 * level)
    return brighter


def _contrast(pictures: Tensor, level: float, seed: int) -> Tensor:
    enhance = library.part("enhance", "contrast")
    flatter: Tensor = enhance.adjust_contrast_with_mean_subtraction(pictures, 1 - 0.18 * level)
    return flatter


CORRUPTIONS: dict[str, Callable[[Tensor, float, int], Tensor]] = {
    "rotation": _rotation,
    "gaussian_blur": _blur,
    "gaussian_noise": _noise,
    "hue": _hue,
    "brightness": _brightness,
    "contrast": _contrast,
}
"""How each kind is made, by name."""
