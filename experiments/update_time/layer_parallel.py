"""iPC with all layers at once: one batched product where `Discrete` makes one per layer.

In a step of iPC every product has its inputs at the same moment, so products of equal shape can be
one `torch.bmm` over a layer axis. A chain of layers is cut into *stacks* of neighbouring maps of
equal shape n × n; a network of equal widths is a single stack (L, n, n), and a step is three
batched products whatever its depth:

    μ^l = θ^l f(x^{l+1}) + b^l     ε^l = x^l − μ^l                  all l at once
    x^l ← x^l + γ(−ε^l + f'(x^l) ∘ θ^{(l−1)T} ε^{l−1})              all hidden l at once
    θ^l ← θ^l + α ε^l f(x^{l+1})^T                                  all l at once

Weights are views of the flat parameters, so nothing is copied. Tensors are (layer, sample, unit).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pcsim.energies import Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.maps.dense import add_outer
from pcsim.kernels.parameters import Parameters
from pcsim.maps import Dense
from pcsim.network import Network


@dataclass(frozen=True)
class Stack:
    """Neighbouring maps of equal shape: weights (layer, post, pre) and what they work on."""

    w: Tensor
    b: Tensor
    post: Tensor
    """States of the predicted nodes (layer, sample, post)."""
    rates: Tensor
    """f(x) of their parents (layer, sample, pre)."""
    err: Tensor
    """Errors of the predicted nodes."""
    back: Tensor
    """θᵀ ε, arriving at the parents."""


@dataclass(frozen=True)
class Band:
    """Neighbouring nodes of equal width: states and buffers (node, sample, unit)."""

    first: int
    x: Tensor
    rates: Tensor
    err: Tensor
    back: Tensor

    @property
    def last(self) -> int:
        """Index of the last node."""
        return self.first + len(self.x) - 1


class LayerParallel:
    """A tanh chain with unit Gaussian energies under iPC with plain SGD, summed over samples."""

    def __init__(
        self, network: Network, params: Parameters, *, samples: int, gamma: float, alpha: float
    ) -> None:
        _check(network, params)
        self.network, self.params = network, params
        self.gamma, self.alpha = gamma, alpha
        self.bands = _bands([node.units for node in network.nodes], samples, params.flat)
        self.stacks = self._stacks()
        self._free = [self._free_part(band) for band in self.bands]

    def load(self, states: Sequence[Tensor]) -> None:
        """Take states (1, sample, unit) of every node; the first and the last stay clamped."""
        for band in self.bands:
            for place in range(len(band.x)):
                band.x[place].copy_(states[band.first + place][0])
        top = self.bands[-1]
        top.rates[-1].copy_(top.x[-1])  # the input is fed as it is

    def states(self) -> list[Tensor]:
        """Return the present states (1, sample, unit), node by node."""
        return [x[None] for band in self.bands for x in band.x]

    def step(self) -> None:
        """One weight update: predictions, errors and feedback, then states and weights move."""
        for x, rates, *_ in self._free:
            torch.tanh(x, out=rates)
        for stack in self.stacks:
            torch.baddbmm(stack.b, stack.rates, stack.w.mT, out=stack.err)
            torch.sub(stack.post, stack.err, out=stack.err)
        for stack in self.stacks:
            torch.bmm(stack.err, stack.w, out=stack.back)
        for stack in self.stacks:
            add_outer(stack.w, stack.err, stack.rates, self.alpha)
            stack.b.add_(stack.err.sum(1, keepdim=True), alpha=self.alpha)
        for x, rates, err, back in self._free:
            # f' = 1 − f² for tanh, as in `pcsim.kernels.nonlinearity`
            back.addcmul_(back, rates.square(), value=-1).sub_(err)
            x.add_(back, alpha=self.gamma)

    def _free_part(self, band: Band) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return states and buffers of the hidden nodes of a band."""
        start = 1 if band.first == 0 else 0
        stop = len(band.x) - (1 if band is self.bands[-1] else 0)
        part = slice(start, stop)
        return band.x[part], band.rates[part], band.err[part], band.back[part]

    def _stacks(self) -> list[Stack]:
        """Cut the chain: the maps inside a band form one stack, a bridge between bands another."""
        stacks = []
        for k, band in enumerate(self.bands):
            if len(band.x) > 1:
                w, b = self._weights(band.first, band.last)
                inner = band.x[:-1], band.rates[1:], band.err[:-1], band.back[1:]
                stacks.append(Stack(w, b, *inner))
            if k + 1 < len(self.bands):
                above = self.bands[k + 1]
                w, b = self._weights(band.last, above.first)
                bridge = band.x[-1:], above.rates[:1], band.err[-1:], above.back[:1]
                stacks.append(Stack(w, b, *bridge))
        return stacks

    def _weights(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Return views (layer, post, pre) and (layer, 1, post) of the maps start … stop − 1."""
        first, last = self.params.slices[start], self.params.slices[stop - 1]
        rows = self.params.flat[0, first.start : last.stop].view(stop - start, -1)
        post, pre = self.params.of[start]["w"].shape[1:]
        weights, biases = rows[:, : post * pre], rows[:, post * pre :]
        return weights.view(-1, post, pre), biases.view(-1, 1, post)


def _bands(widths: list[int], samples: int, like: Tensor) -> list[Band]:
    bands: list[Band] = []
    first = 0
    for index in range(1, len(widths) + 1):
        if index == len(widths) or widths[index] != widths[first]:
            shape = (index - first, samples, widths[first])
            bands.append(Band(first, *(like.new_zeros(shape) for _ in range(4))))
            first = index
    return bands


def _check(network: Network, params: Parameters) -> None:
    """Refuse what the batched equations do not say."""
    where = "LayerParallel"
    if params.replicas != 1:
        raise UnsupportedError(f"{where}: one network at a time, got {params.replicas} replicas")
    top = len(network.nodes) - 1
    for index, node in enumerate(network.nodes[:-1]):
        f = "identity" if index == top - 1 else "tanh"
        if node.parents != (index + 1,) or not isinstance(node.map, Dense):
            raise UnsupportedError(f"{where}: node {index} breaks the chain of dense maps")
        if (node.map.f, node.map.g, node.map.bias) != (f, "identity", True):
            raise UnsupportedError(f"{where}: map {index} must be θ {f}(x) + b, got {node.map}")
        if not (isinstance(node.energy, Gaussian) and node.energy.unit):
            raise UnsupportedError(f"{where}: node {index} must have a unit Gaussian energy")
    if network.nodes[top].map is not None:
        raise UnsupportedError(f"{where}: the input takes no prior, it is clamped")
