"""Reading out a circuit: what its chips answer when the label is released."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.settled import Settled
from pcsim.engine import Observed
from pcsim.kernels.feedforward import outputs
from pcsim.network import Network
from pcsim.runner.readout import STATES
from pcsim.substrate import Chips, Noise
from pcsim.substrate.transform import Transform

Build = Callable[..., Continuous]
"""Build a twin of a population, given `circuit`, `chips` and `draw`; its weights will be set."""


class CircuitReadout:
    """Scores of a population as its user gets them: the output of the settled circuit.

    An ideal circuit with exact errors comes to rest at the feed-forward pass, which is returned.
    """

    def __init__(
        self,
        network: Network,
        circuit: Circuit,
        chips: Chips | None,
        build: Build,
        noise: Noise,
        now: Callable[[], int],
    ) -> None:
        """`noise` is that of the run (a look has its own part of it), `now` the run's time step."""
        self.network, self.chips = network, chips
        self.circuit = circuit.model_copy(update={"delay_err": 0.0, "delay_fb": 0.0})
        ideal = chips is None and circuit.kind in ("algebraic", "error_units")
        self._exact = ideal and not circuit.sigma_x
        self._build, self._noise, self._now = build, noise.apart("read-out"), now
        self._first = 0
        self._settled: Settled | None = None
        self._aside: Chips | None = None
        self._decode: Transform | None = None

    def scores(self, weights: Observed, inputs: Tensor, chunk: int = 2000) -> Tensor:
        """Return the output (chip, sample, class) for inputs (sample, unit)."""
        if self._exact:
            return outputs(self.network, weights.theta(), inputs, chunk)
        if self._settled is None:
            self._aside = self.chips.aside() if self.chips else None
            twin = self._build(circuit=self.circuit, chips=self._aside, draw=self._normal)
            self._settled = Settled(twin, self.chips.substrate if self.chips else None)
            units = (self.network.nodes[0].units,)
            self._decode = self._aside.transform("output", 0, units) if self._aside else None
        stored = weights.stored()
        widest = max(node.units for node in self.network.nodes)
        chunk = max(1, min(chunk, STATES // (len(stored[0]) * widest)))
        parts = []
        for first in range(0, len(inputs), chunk):
            self._settled.engine.steps, self._first = self._now(), first
            if self._aside and self.chips:
                self._aside.catch_up(self.chips)
                self._aside.show_from(first)
            answer = self._settled(stored, inputs[first : first + chunk])
            parts.append(answer if self._decode is None else self._decode(answer))
        return torch.cat(parts, 1)

    def _normal(self, state: str, like: Tensor) -> Tensor:
        assert self._settled
        before = self._first * like.shape[2]
        step = self._settled.engine.steps
        return self._noise.draw(f"soma.{state}", "normal", like, step, before)
