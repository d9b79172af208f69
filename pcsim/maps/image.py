"""Maps between images (channel, height, width)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from pcsim.errors import ConfigError
from pcsim.maps.initial import Initial, Unlearnt, by_fan_in
from pcsim.maps.nonlinearities import check_nonlinearities, check_sizes

Image = tuple[int, int, int]
"""Channels, height, width."""


class OnImage:
    """What maps between images have: units are pixels, channel by channel."""

    image: Image

    @property
    def shape(self) -> Image:
        """Channels, height and width of the prediction."""
        raise NotImplementedError

    @property
    def parent_units(self) -> tuple[int, ...]:
        """Units of each parent."""
        return (prod(self.image),)

    @property
    def units(self) -> int:
        """Units of the prediction."""
        return prod(self.shape)


@dataclass(frozen=True)
class Convolution(OnImage):
    """μ = g( W ∗ f(x) + b ), W of shape (channels, channels_in, kernel, kernel), zero padding.

    `f` and `g` as in `Dense`.
    """

    image: Image
    channels: int
    kernel: int = 3
    stride: int = 1
    padding: int = 1
    f: str = "identity"
    g: str = "identity"
    bias: bool = True

    def __post_init__(self) -> None:
        """Check sizes and names."""
        check_sizes("Convolution", channels=self.channels, kernel=self.kernel, stride=self.stride)
        _check_image("Convolution", self.image)
        if self.padding < 0:
            raise ConfigError(f"Convolution.padding: must not be negative, got {self.padding}")
        check_nonlinearities("Convolution", self.f, self.g)
        if self.f == "softmax":
            raise ConfigError("Convolution.f: an image has no axis for a softmax")
        if min(self.shape[1:]) < 1:
            raise ConfigError(
                f"Convolution.kernel: {self.kernel} is larger than the padded image of "
                f"{self.image[1]}×{self.image[2]}"
            )

    @property
    def shape(self) -> Image:
        """Channels, height and width of the prediction."""
        height, width = (
            (n + 2 * self.padding - self.kernel) // self.stride + 1 for n in self.image[1:]
        )
        return self.channels, height, width

    @property
    def parameters(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of what is learnt."""
        side = (self.kernel, self.kernel)
        shapes: dict[str, tuple[int, ...]] = {"w": (self.channels, self.image[0], *side)}
        return shapes | ({"b": (self.channels,)} if self.bias else {})

    @property
    def initial(self) -> dict[str, Initial]:
        """How it starts."""
        return dict.fromkeys(self.parameters, by_fan_in(self.image[0] * self.kernel**2))


@dataclass(frozen=True)
class Pool(OnImage, Unlearnt):
    """μ = the largest or the mean of f(x) over windows of size × size, side by side.

    A maximum routes its error to the place that is largest at present: F is then only piecewise
    smooth, since that place may change while states move.
    """

    image: Image
    kind: Literal["max", "average"] = "max"
    size: int = 2
    f: str = "identity"

    def __post_init__(self) -> None:
        """Check sizes and names."""
        check_sizes("Pool", size=self.size)
        _check_image("Pool", self.image)
        check_nonlinearities("Pool", self.f)
        if self.kind not in ("max", "average"):
            raise ConfigError(f"Pool.kind: must be 'max' or 'average', got {self.kind!r}")
        if self.f == "softmax":
            raise ConfigError("Pool.f: an image has no axis for a softmax")
        if min(self.image[1:]) < self.size:
            raise ConfigError(
                f"Pool.size: {self.size} is larger than the image of "
                f"{self.image[1]}×{self.image[2]}"
            )

    @property
    def shape(self) -> Image:
        """Channels, height and width of the prediction; an incomplete window is left out."""
        channels, height, width = self.image
        return channels, height // self.size, width // self.size


def _check_image(kind: str, image: Image) -> None:
    if len(image) != 3 or min(image) < 1:
        raise ConfigError(
            f"{kind}.image: give channels, height and width, e.g. (3, 32, 32); got {image}"
        )
