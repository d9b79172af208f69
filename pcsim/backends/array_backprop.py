"""Backpropagation on an array: both passes through the same devices as predictive coding.

    forward    x^l = μ^l = g(W_read f(x^{l+1}) + b), with every read as the hardware makes it
    backward   ξ^0 = −∂E/∂μ^0;  ξ^{l+1} = f'(x^{l+1}) ∘ (W_readᵀ δ^l), read as errors are
    write      W ← W + write(optimiser(δ^l f(x^{l+1})ᵀ); W)

On ideal chips it is `Backprop`, by another route: the kernels' own vector–Jacobian products.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.kernels.field import Field
from pcsim.kernels.on_chip import Array, Encoder
from pcsim.kernels.optim import Optimizer
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips
from pcsim.substrate.effect import COMMON_SITES


class ArrayBackprop:
    """One population of chips trained by BP; the same calls as `Backprop`."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        optimizer: Optimizer,
        chips: Chips,
        *,
        steps: int,
    ) -> None:
        """`steps` of simulated time pass with each batch: a device drifts as under any rule."""
        if optimizer.direct:
            raise ConfigError("ArrayBackprop.optimizer: needs a gradient buffer (in_place=False)")
        chips.substrate.require(COMMON_SITES, "schedule.rule bp")
        if any(len(node.parents) > 1 for node in network.nodes):
            raise UnsupportedError("schedule.rule bp: on hardware, needs a chain of layers")
        self.network, self.params, self.optimizer = network, params, optimizer
        self.chips, self.steps = chips, steps
        self.field = Field(network, params, "supervised", chips=chips)
        self._encode = Encoder(chips, network, True)
        self._array = Array(chips, params.of, reads=False)
        self._energy = torch.empty(0)

    def batch(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """One forward pass, one backward pass, one weight update."""
        field = self.field
        self._load(clamps)
        field.read_weights()
        field.feedforward()
        field.errors((0,))
        self._energy = field.energy_of(0)
        self._send_back()
        self.chips.advance(self.steps - 1)  # like PC, it writes in the last step of a batch
        before = self.params.flat.clone() if self._array.writes else None
        asked = self._array.asked_by(field, field.predicted, self.optimizer)
        into, alpha, beta = self.optimizer.target
        field.learn(field.predicted, into, alpha, beta)
        self.optimizer.commit(field.predicted)
        if before is not None:
            self._array.rewrite(self.params, before, field.predicted, self.optimizer.alpha, asked)
        self.chips.advance()

    def _load(self, clamps: Sequence[Tensor | None]) -> None:
        """Clamp new data, and make room for predictions."""
        clamps = self._encode(clamps)
        like = next(c for c in clamps if c is not None)
        shape = (self.params.replicas, like.shape[1])
        self.field.load(
            [
                like.new_zeros(*shape, node.units)
                if clamp is None and not node.transparent
                else clamp
                for clamp, node in zip(clamps, self.network.nodes, strict=True)
            ]
        )

    def _send_back(self) -> None:
        field = self.field
        for index in field.predicted:
            kernel, parent = field.maps[index], self.network.nodes[index].parents[0]
            above = field.maps[parent]
            if kernel and above:
                above.receive(field.read_signal(parent, kernel.pull(field.x[parent])))

    def energy(self) -> Tensor:
        """Return the loss (replica,) of the last batch before its update, summed over samples."""
        return self._energy
