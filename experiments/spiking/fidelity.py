"""How well do events carry rates and errors? A spiking chip beside the ODE it stands for.

Both start from the same weights and see the same stream of samples, without any reset; the ODE is
the circuit `error_units` of the continuous backend, with the same time constants and time step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import ErrorUnits, Spiking
from pcsim.continuous.spiking import SpikingFlow
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.limits.lags import Floats
from pcsim.network import Network
from pcsim.runner.task import Clamps

TAU_S = 0.005
"""Seconds."""


class Events(NamedTuple):
    """What tells spiking chips apart: steps of rates and errors, and the leak (0: none)."""

    q: float = 0.1
    qe: float = 0.05
    tau_s: float = TAU_S

    def of(self, circuit: Spiking) -> Spiking:
        """Return the circuit of such a chip."""
        return circuit.model_copy(update=self._asdict())


@dataclass(frozen=True, eq=False)
class Fidelity:
    """What spiking chips did against their reference; arrays are (description, seed)."""

    rms: Floats
    """rms(x − x_ODE)/rms(x_ODE) of the hidden layers over the whole run."""
    cosine: Floats
    """Cosine between the total change of weights and biases and the reference's."""
    soma: Floats
    """Somatic events per second and neuron, of all layers that send rates (input included)."""
    apical: Floats
    """Apical events per second and neuron, of all layers that send errors."""
    rate: Floats
    """Events of both kinds per second and neuron of the network."""


class Pair:
    """Spiking chips (step size, seed) and ODE chips (seed), in lockstep."""

    def __init__(
        self,
        network: Network,
        circuit: Spiking,
        events: Sequence[Events],
        start: Parameters,
        *,
        dt: float,
        every: int = 5,
    ) -> None:
        """`start` holds one chip per seed; `every` is the number of steps between comparisons."""
        self.seeds, self.every = start.replicas, every
        self._start = start.flat.clone()
        own = Parameters(network, start.flat.clone())
        ode = {name: getattr(circuit, name) for name in ("tau_x", "tau_err", "tau_w")}
        exact = ErrorUnits(**ode)
        self.ode = Continuous(network, own, exact, dt=dt, fast=False)
        # Chips are ordered (step size, seed).
        each = [e.of(circuit) for e in events for _ in range(self.seeds)]
        copies = Parameters(network, start.flat.repeat(len(events), 1))
        self._circuits = each
        self.chips = Continuous(network, copies, each[0], dt=dt, each=each)
        self._off = torch.zeros(len(each), dtype=torch.float64)
        self._size = torch.zeros(self.seeds, dtype=torch.float64)

    @property
    def flow(self) -> SpikingFlow:
        """Return the circuit of the spiking chips."""
        assert isinstance(self.chips.flow, SpikingFlow)
        return self.chips.flow

    def twin(self) -> Continuous:
        """Return chips of the same circuits, whose weights are to be set."""
        chips = self.chips
        weights = Parameters(chips.network, torch.zeros_like(chips.params.flat))
        return Continuous(chips.network, weights, chips.circuit, dt=chips.dt, each=self._circuits)

    def present(
        self, clamps: Clamps, steps: int, *, reset: bool = False, at_once: bool = False
    ) -> None:
        """Show one sample per seed, (seed, 1, unit) each.

        `reset` starts from the forward pass; `at_once` spares the events the one time step by
        which they hear of a sample later than the ODE does.
        """
        copies = len(self._off) // self.seeds
        self.ode.load(clamps, steps=steps)
        self.chips.load([None if c is None else _spread(c, self.seeds, copies) for c in clamps])
        if reset:
            self.ode.feedforward()
            self.chips.feedforward()
        if at_once:
            self.flow.send()
        for _ in range(steps // self.every):
            self.ode.advance(self.every)
            self.chips.advance(self.every)
            self._compare()

    def _compare(self) -> None:
        states = self.ode.flow.moving()
        for k in range(1, self.flow.top):
            x = states[f"x{k}"]
            off = self.flow.x[k].view(-1, *x.shape) - x
            self._off += off.double().square_().sum((2, 3)).view(-1)
            self._size += x.double().square().sum((1, 2))

    def fidelity(self) -> Fidelity:
        """Return the comparison so far."""
        shape, chips = (-1, self.seeds), self.chips
        copies = len(self._off) // self.seeds
        moved = chips.params.flat - self._start.repeat(copies, 1)
        wanted = (self.ode.flow.theta().flat - self._start).repeat(copies, 1)
        by_kind = {
            kind: torch.cat(
                [c for n, c in self.flow.events().items() if n.startswith(kind)], 1
            ).numpy()
            for kind in ("soma", "apical")
        }
        neurons = sum(node.units for node in chips.network.nodes)
        events = sum(counts.sum(1) for counts in by_kind.values())
        return Fidelity(
            rms=(self._off / self._size.repeat(copies)).sqrt().numpy().reshape(shape),
            cosine=torch.cosine_similarity(moved, wanted, 1).double().numpy().reshape(shape),
            soma=by_kind["soma"].mean(1).reshape(shape) / chips.time,
            apical=by_kind["apical"].mean(1).reshape(shape) / chips.time,
            rate=np.reshape(events, shape) / neurons / chips.time,
        )


def _spread(clamp: Tensor, seeds: int, copies: int) -> Tensor:
    """Repeat one sample per seed for every step size."""
    return clamp.expand(seeds, -1, -1).repeat(copies, 1, 1)


SIZES = (4, 16, 16, 3)
CIRCUIT = Spiking(tau_x=0.01, tau_err=0.002, tau_w=2.0, tau_s=TAU_S)
DT = 1e-4
SAMPLES, T_PRES = 25, 0.02
INPUT_SD, LABEL_SD = 0.5, 1.0


def random_fidelity(
    events: Sequence[Events],
    *,
    circuit: Spiking = CIRCUIT,
    seeds: int = 4,
    samples: int = SAMPLES,
    dt: float = DT,
    at_once: bool = False,
) -> Fidelity:
    """Compare on a 4-16-16-3 tanh network that sees normally distributed samples, carried over."""
    network = Network.mlp(SIZES, "tanh")
    start = initial_parameters(network, list(range(seeds)), torch.float64)
    pair = Pair(network, circuit, events, start, dt=dt)
    rng = np.random.default_rng(5)
    for _ in range(samples):
        label = torch.as_tensor(rng.normal(0, LABEL_SD, (seeds, 1, SIZES[-1])))
        source = torch.as_tensor(rng.normal(0, INPUT_SD, (seeds, 1, SIZES[0])))
        pair.present([label, None, None, source], round(T_PRES / dt), at_once=at_once)
    return pair.fidelity()
