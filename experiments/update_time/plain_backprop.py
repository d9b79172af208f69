"""Backpropagation by hand, layer after layer, in place: a baseline without autograd's bookkeeping.

a^L = input;  a^l = θ^l f(a^{l+1}) + b^l
δ^0 = y − a^0;  δ^l = f'(a^l) ∘ θ^{(l−1)T} δ^{l−1}
θ^l ← θ^l + α δ^l f(a^{l+1})^T
"""

from __future__ import annotations

import torch
from torch import Tensor

from pcsim.kernels.parameters import Parameters
from pcsim.network import Network


class PlainBackprop:
    """A tanh chain with squared error under SGD, summed over samples; buffers are kept."""

    def __init__(self, network: Network, params: Parameters, *, samples: int, alpha: float) -> None:
        self.alpha = alpha
        self.w = [views["w"][0] for views in params.of[:-1]]
        self.b = [views["b"][0] for views in params.of[:-1]]
        rooms = [params.flat.new_empty(samples, node.units) for node in network.nodes]
        self.drive = rooms[:-1]
        self.delta = [torch.empty_like(room) for room in rooms[:-1]]
        self.rates = rooms[:1] + [torch.empty_like(room) for room in rooms[1:]]
        """f(a^l) of the hidden layers; the last is the input itself."""

    def update(self, inputs: Tensor, target: Tensor) -> None:
        """One forward pass, one backward pass, one weight update; tensors are (sample, unit)."""
        depth = len(self.w)
        self.rates[depth] = inputs
        for layer in reversed(range(depth)):
            drive = self.drive[layer]
            torch.addmm(self.b[layer], self.rates[layer + 1], self.w[layer].mT, out=drive)
            if layer:
                torch.tanh(drive, out=self.rates[layer])
        torch.sub(target, self.drive[0], out=self.delta[0])
        for layer in range(1, depth):
            delta = torch.mm(self.delta[layer - 1], self.w[layer - 1], out=self.delta[layer])
            delta.addcmul_(delta, self.rates[layer].square(), value=-1)
        for layer in range(depth):
            if len(inputs) == 1:
                # One sample: an outer product of two vectors, faster by broadcasting.
                self.w[layer].addcmul_(
                    self.delta[layer].mT, self.rates[layer + 1], value=self.alpha
                )
            else:
                self.w[layer].addmm_(self.delta[layer].mT, self.rates[layer + 1], alpha=self.alpha)
            self.b[layer].add_(self.delta[layer].sum(0), alpha=self.alpha)
