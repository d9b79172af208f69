"""Convolutional networks as a section of a file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pcsim.architectures.convolutional import Layer, Pooling, Style, check_place, convolutional
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


class Cnn(Frozen):
    """Convolutions, each with pooling or without, then dense layers.

    The defaults are the paper's CNN: 64-128-64 channels and two dense layers. It gives no kernel
    sizes, strides or widths; these are ours.
    """

    kind: Literal["cnn"] = "cnn"
    image: Annotated[tuple[Count, Count, Count], Field(strict=False)] = (3, 32, 32)
    """Channels, height and width of the input."""
    channels: Counts = (64, 128, 64)
    """Channels of each convolution."""
    kernel: Count = 3
    """Height and width of a kernel, pixels."""
    stride: Count = 2
    """Pixels from one position of a kernel to the next."""
    padding: Annotated[int, Field(ge=0)] = 1
    """Pixels of zeros around each input."""
    pool: Pooling = "none"
    """Pooling behind every convolution (then stride = 1 is usual)."""
    pool_size: Count = 2
    """Height, width and stride of a pooling window, pixels."""
    dense: Counts = (128,)
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
        check_place("network", self.place, self.pool != "none")
        layers = [
            Layer(c, self.kernel, self.stride, self.padding, self.pool, self.pool_size)
            for c in self.channels
        ]
        style = Style(self.f, self.place, self.bias, self.hidden.build())
        widths = (*self.dense, self.classes)
        return convolutional(self.image, layers, widths, self.output.build(), style)
