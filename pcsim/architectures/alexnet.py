"""AlexNet for small images (32×32), without dropout."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pcsim.architectures.convolutional import Layer, Style, convolutional
from pcsim.architectures.fields import (
    Count,
    Counts,
    EnergyConfig,
    Function,
    GaussianConfig,
    Place,
)
from pcsim.frozen import Frozen
from pcsim.network import Network

STRIDES = (2, 1, 1, 1, 1)
POOLED = (True, True, False, False, True)
"""Max pooling of 2×2 behind the first, second and last convolution."""


class AlexNet(Frozen):
    """Five convolutions of 3×3 and three dense layers: 32×32 becomes 256 channels of 2×2."""

    kind: Literal["alexnet"] = "alexnet"
    image: Annotated[tuple[Count, Count, Count], Field(strict=False)] = (3, 32, 32)
    """Channels, height and width of the input."""
    channels: Annotated[tuple[Count, Count, Count, Count, Count], Field(strict=False)] = (
        64,
        192,
        384,
        256,
        256,
    )
    """Channels of the five convolutions."""
    dense: Counts = (4096, 4096)
    """Widths of the hidden dense layers."""
    classes: Count = 10
    """Units of the output."""
    f: Function = "relu"
    """Nonlinearity of all layers but the last."""
    place: Place = "pre_act"
    """Where value nodes sit; see `pcsim.architectures.convolutional`."""
    bias: bool = True
    """Whether layers have biases."""
    output: EnergyConfig = EnergyConfig()
    """Energy of the output layer."""
    hidden: GaussianConfig = GaussianConfig()
    """Energy of the hidden layers."""

    def build(self) -> Network:
        """Return the description object."""
        layers = [
            Layer(channels, stride=stride, pool="max" if pooled else "none")
            for channels, stride, pooled in zip(self.channels, STRIDES, POOLED, strict=True)
        ]
        style = Style(self.f, self.place, self.bias, self.hidden.build())
        widths = (*self.dense, self.classes)
        return convolutional(self.image, layers, widths, self.output.build(), style)
