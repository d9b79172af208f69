"""Reading a network out: a feed-forward pass with the weights alone, or through the chips."""

from __future__ import annotations

import torch
from torch import Tensor

from pcsim.kernels.feedforward import outputs
from pcsim.kernels.field import Field
from pcsim.kernels.on_chip import Encoder
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips

STATES = 2_000_000
"""Numbers per layer that a read-out through chips holds at once."""


class Readout:
    """Scores of a classifier as its user gets them: every read is one of the hardware's."""

    def __init__(self, network: Network, chips: Chips | None) -> None:
        self.network, self.chips = network, chips
        self._field: Field | None = None
        self._aside: Chips | None = None

    def scores(self, params: Parameters, inputs: Tensor, chunk: int = 2000) -> Tensor:
        """Return the output (replica, sample, class) for inputs (sample, unit)."""
        if self.chips is None:
            return outputs(self.network, params, inputs, chunk)
        if self._field is None or self._aside is None:
            self._aside = self.chips.aside()
            self._prepare(params, self._aside)
        assert self._field
        self._field.params.flat.copy_(params.flat)
        self._aside.catch_up(self.chips)
        widest = max(node.units for node in self.network.nodes)
        chunk = max(1, min(chunk, STATES // (params.replicas * widest)))
        parts = []
        for first in range(0, len(inputs), chunk):
            self._aside.show_from(first)
            parts.append(self._pass(inputs[first : first + chunk]))
        return torch.cat(parts, 1)

    def _prepare(self, params: Parameters, chips: Chips) -> None:
        own = Parameters(self.network, params.flat.clone())
        self._field = Field(self.network, own, "supervised", chips=chips)
        self._encode = Encoder(chips, self.network, True)
        self._decode = chips.transform("output", 0, (self.network.nodes[0].units,))

    def _pass(self, inputs: Tensor) -> Tensor:
        field = self._field
        assert field
        clamps: list[Tensor | None] = [None] * len(self.network.nodes)
        clamps[-1] = inputs[None]
        top = self._encode(clamps)[-1]
        assert top is not None
        shape = (field.params.replicas, len(inputs))
        free = [
            None if node.transparent else inputs.new_zeros(*shape, node.units)
            for node in self.network.nodes[:-1]
        ]
        field.load([*free, top], released=(0,))
        field.read_weights()
        field.feedforward()
        scores = field.mu[0].clone()
        return scores if self._decode is None else self._decode(scores)
