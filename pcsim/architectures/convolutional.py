"""Convolutions, then dense layers: what a CNN and AlexNet share.

Where value nodes sit, for a layer with pooling (a layer without has no difference between the last
two):

    pre_act     x = conv(pool(f(x')))       pcsim's usual convention
    post_act    x = f(conv(pool(x')))
    post_pool   x = pool(f(conv(x')))

All three are the same feed-forward function; their equilibria differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from pcsim.architectures.fields import Place
from pcsim.architectures.sketch import Sketch
from pcsim.energies import Energy
from pcsim.errors import ConfigError
from pcsim.maps import Convolution, Dense, Pool
from pcsim.network import Network

Pooling = Literal["none", "max", "average"]


@dataclass(frozen=True)
class Layer:
    """One convolution, with or without pooling behind it."""

    channels: int
    kernel: int = 3
    stride: int = 1
    padding: int = 1
    pool: Pooling = "none"
    pool_size: int = 2


@dataclass(frozen=True)
class Style:
    """What all layers have in common."""

    f: str
    place: Place
    bias: bool
    hidden: Energy


def convolutional(
    image: tuple[int, int, int],
    layers: Sequence[Layer],
    dense: Sequence[int],
    output: Energy,
    style: Style,
) -> Network:
    """Build the network; `dense` are the widths of all dense layers, the output's last."""
    sketch = Sketch()
    at, waiting = sketch.root(*image), "identity"
    for layer in layers:
        at, waiting = _layer(sketch, at, waiting, layer, style)
    for index, width in enumerate(dense):
        last = index == len(dense) - 1
        g = "identity" if last or style.place == "pre_act" else style.f
        spec = Dense(prod(sketch.shape(at)), width, waiting, g, style.bias)
        at = sketch.add(spec, at, energy=output if last else style.hidden)
        waiting = style.f if style.place == "pre_act" else "identity"
    return sketch.network()


def _layer(sketch: Sketch, at: int, waiting: str, layer: Layer, style: Style) -> tuple[int, str]:
    """Add one layer; return its last node and the nonlinearity that is still to be applied."""
    pre, pooled = style.place == "pre_act", layer.pool != "none"
    channels, height, width = sketch.shape(at)
    spec = Convolution(
        (channels, height, width),
        layer.channels,
        layer.kernel,
        layer.stride,
        layer.padding,
        waiting,
        "identity" if pre else style.f,
        style.bias,
    )
    after_pool = pooled and style.place == "post_pool"
    at = sketch.add(spec, at, energy=None if after_pool else style.hidden)
    waiting = style.f if pre else "identity"
    if layer.pool == "none":
        return at, waiting
    pool = Pool(spec.shape, layer.pool, layer.pool_size, waiting)
    return sketch.add(pool, at, energy=style.hidden if after_pool else None), "identity"


def check_place(name: str, place: Place, pools: bool) -> None:
    """Refuse a place that does not exist."""
    if place == "post_pool" and not pools:
        raise ConfigError(f"{name}.place: 'post_pool' needs pooling; use 'post_act'")
