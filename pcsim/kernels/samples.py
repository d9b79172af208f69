"""What the samples of a batch ask of an array one by one, where devices do not see their sum alone.

gross    Σ_q |s_q|, so that opposing requests do not cancel: up (gross + s)/2, down (gross − s)/2
trains   s_q = Σ_k d_qk r_qkᵀ over the slots k: rows and columns send pulses, and where two
         meet a device is written. A row's train is the same for all devices of the row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pcsim.errors import UnsupportedError
from pcsim.kernels.map_kernel import MapKernel
from pcsim.kernels.maps.convolution import ConvolutionKernel
from pcsim.kernels.maps.dense import DenseKernel, PerPositionKernel
from pcsim.kernels.parameters import Views
from pcsim.maps import Map
from pcsim.substrate import Chips
from pcsim.substrate.effect import TRAINS
from pcsim.substrate.expression import Value

if TYPE_CHECKING:
    from pcsim.kernels.field import Field


@dataclass(frozen=True)
class Requests:
    """What is asked of one array in one write."""

    gross: Tensor
    """Σ_q |s_q|."""
    net: Tensor | None = None
    """Σ_q s_q, where trains of pulses take the place of the product."""


class Trains:
    """The pulses of the rows and the columns of one array."""

    def __init__(self, chips: Chips, index: int, shape: tuple[int, int], array: str) -> None:
        """`shape` is (post, pre); `array` tells several weight arrays of a layer apart."""
        self.slots = slots_of(chips)
        made = [
            chips.transform(site, index, (units,), array)
            for site, units in zip(TRAINS, shape, strict=True)
        ]
        self._row, self._column = made

    def __call__(self, post: Tensor, pre: Tensor, rate: Value) -> tuple[Tensor, Tensor]:
        """Return the pulses (chip, sample·slot, unit) of errors and rates; `rate`: α, a step."""
        known = {"rate": rate.view(-1, 1, 1) if isinstance(rate, Tensor) else rate}
        assert self._row
        assert self._column
        return (
            self._row(post.repeat_interleave(self.slots, 1), **known),
            self._column(pre.repeat_interleave(self.slots, 1), **known),
        )


def slots_of(chips: Chips) -> int:
    """Return the slots of the trains of a population."""
    return max(effect.slots for site in TRAINS for effect in chips.substrate.at(site))


def requested(
    field: Field,
    of: Views,
    index: int,
    trains: Trains | None,
    rate: Value,
    decay: Value,
) -> Requests:
    """Return what rate·Σ_q g_q − decay·w asks of the weights of a node, sample by sample."""
    kernel, w = field.maps[index], of[index]["w"]
    kind = field.network.nodes[index].map
    net: Tensor | None = None
    if trains:
        net, gross = _by_trains(kernel, kind, index, trains, rate)
    else:
        gross = _without_sign(kernel, kind, index) * _fitting(rate, w)
    if isinstance(decay, Tensor) or decay:
        lost = _fitting(decay, w) * w
        gross = gross + lost.abs()
        net = None if net is None else net - lost
    return Requests(gross, net)


def _without_sign(kernel: MapKernel | None, kind: Map | None, index: int) -> Tensor:
    if not isinstance(kernel, DenseKernel | PerPositionKernel | ConvolutionKernel):
        raise UnsupportedError(
            f"hardware: the samples of a batch cannot write one by one into {type(kind).__name__} "
            f'(node {index}); set samples = "sum" of the device, or show one sample at a time'
        )
    return kernel.gross()


def _by_trains(
    kernel: MapKernel | None, kind: Map | None, index: int, trains: Trains, rate: Value
) -> tuple[Tensor, Tensor]:
    if not isinstance(kernel, DenseKernel):
        raise UnsupportedError(
            f"hardware: pulse trains of rows and columns are modelled for dense layers, not for "
            f'{type(kind).__name__} (node {index}); use lines = "device" of the pulse_train'
        )
    post, pre = trains(kernel.delta, kernel.rates, one_rate(rate))
    return torch.bmm(post.mT, pre), torch.bmm(post.abs().mT, pre.abs())


def one_rate(rate: Value) -> Value:
    """Return the rate of each chip: the lines of an array cannot have several."""
    if not isinstance(rate, Tensor) or rate[0].numel() == 1:
        return rate
    flat = rate.flatten(1)
    if not bool((flat == flat[:, :1]).all()):
        raise UnsupportedError(
            "hardware: devices of one array differ in tau_w, but a row sends one pulse train to "
            'all of them; leave tau_w alike, or use lines = "device" of the pulse_train'
        )
    return flat[:, 0]


def _fitting(value: Value, w: Tensor) -> Value:
    """Return a number of each chip, or of each weight, such that it fits the weights."""
    if not isinstance(value, Tensor):
        return value
    if value[0].numel() == 1:
        return value.view(len(value), *[1] * (w.ndim - 1))
    return value.view_as(w)


ByNode = Mapping[int, Requests]
