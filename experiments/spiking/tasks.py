"""XOR and the digits on chips that talk by events, with the ODE as reference.

The ODE must be able to learn what is shown (see the study `streaming`): the digits follow one
another without any reset; XOR, which would need 50 τ_x per pattern so, starts each pattern from the
forward pass. The learning per sample is η = T_pres/τ_w.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcsim import config
from pcsim.circuit import Spiking
from pcsim.continuous.settled import Settled
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.parameters import generator, initial_parameters
from pcsim.limits.lags import Floats
from pcsim.network import Network
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Clamps, Task

from .fidelity import TAU_S, Events, Fidelity, Pair

TAU_X, TAU_ERR, DT = 0.01, 0.002, 5e-4
"""Seconds."""
SEEDS = (0, 1, 2, 3)
XOR_ORDER_KEY = 7
XOR_U = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
XOR_Y = torch.tensor([[-1.0], [1.0], [1.0], [-1.0]])


@dataclass(frozen=True)
class Learning:
    """What is shown, how often and for how long."""

    task: str
    sizes: tuple[int, ...]
    t_pres: float
    """Seconds per sample."""
    eta: float
    """T_pres/τ_w."""
    samples: int
    """XOR: random presentations; digits: training samples."""
    epochs: int = 1
    seeds: tuple[int, ...] = SEEDS
    reset: bool = False
    """Whether states are set to the forward pass at a switch (which a chip must be told)."""

    @property
    def circuit(self) -> Spiking:
        """Return the circuit of the spiking chips, but for their steps."""
        tau_w = self.t_pres / self.eta
        return Spiking(tau_x=TAU_X, tau_err=TAU_ERR, tau_w=tau_w, tau_s=TAU_S)

    @property
    def presentations(self) -> int:
        """Return how many samples each chip sees."""
        return self.samples * self.epochs

    @property
    def neurons(self) -> int:
        """Return the size of the network."""
        return sum(self.sizes)


XOR = Learning("xor", (2, 16, 1), t_pres=10 * TAU_X, eta=0.4, samples=200, reset=True)
DIGITS = Learning("digits", (64, 32, 10), t_pres=10 * TAU_X, eta=0.05, samples=600)


@dataclass(frozen=True, eq=False)
class Learned:
    """What chips learnt, (description, seed)."""

    fidelity: Fidelity
    accuracy: Floats
    """Of the weights: a feed-forward read-out without events; NaN for a chip that diverged."""
    accuracy_by_events: Floats
    """Of the circuit with the label let go: what the chip itself says."""
    reference: Floats
    """Accuracy of the ODE's weights (seed,)."""


@dataclass(frozen=True, eq=False)
class Questions:
    """A stream of samples to learn from, and others to be tested with."""

    stream: Iterator[Clamps]
    inputs: Tensor
    targets: Tensor
    """Test samples: ±1 for XOR, class numbers for the digits."""

    def right(self, scores: Tensor) -> Floats:
        """Return the fraction right (chip,) of scores (chip, sample, output)."""
        if self.targets.ndim == 2:
            right = (scores * self.targets > 0).all(2)
        else:
            right = scores.argmax(2) == self.targets
        return np.asarray(right.double().mean(1).numpy())


def questions(learning: Learning, network: Network) -> Questions:
    """Return what is shown in one of the two tasks."""
    return (_xor if learning.task == "xor" else _digits)(learning, network)


def _xor(learning: Learning, network: Network) -> Questions:
    orders = [generator(s, XOR_ORDER_KEY).integers(0, 4, learning.samples) for s in learning.seeds]
    stream = (
        [XOR_Y[order][:, None], None, XOR_U[order][:, None]]
        for order in torch.as_tensor(np.stack(orders)).T
    )
    return Questions(stream, XOR_U, XOR_Y)


def _digits(learning: Learning, network: Network) -> Questions:
    settings = config.parse(
        {
            "network": {"sizes": list(learning.sizes)},
            "run": {"backend": "continuous", "seeds": list(learning.seeds)},
            "data": {"name": "digits", "limit": learning.samples},
            "learning": {"batch": 1, "epochs": learning.epochs},
        }
    )
    task, replicas = Task.load(settings, network), Replicas.of(settings)
    epochs = range(learning.epochs)
    stream = (clamps for epoch in epochs for clamps in task.batches(replicas, epoch, 1))
    return Questions(stream, task.test.x, task.test.y)


def learn(learning: Learning, events: Sequence[Events]) -> Learned:
    """Train spiking chips and ODE side by side, then test both."""
    network = Network.mlp(learning.sizes, "tanh")
    start = initial_parameters(network, list(learning.seeds), torch.float32)
    pair = Pair(network, learning.circuit, events, start, dt=DT, every=10)
    asked = questions(learning, network)
    for clamps in asked.stream:
        pair.present(clamps, round(learning.t_pres / DT), reset=learning.reset)
    shape = (len(events), len(learning.seeds))
    by_weights = outputs(network, pair.chips.params, asked.inputs)
    # A chip whose weights have left all bounds has no accuracy.
    alive = pair.chips.params.flat.isfinite().all(1).numpy()
    return Learned(
        pair.fidelity(),
        np.where(alive, asked.right(by_weights), np.nan).reshape(shape),
        np.where(alive, asked.right(by_events(pair, asked.inputs)), np.nan).reshape(shape),
        asked.right(outputs(network, pair.ode.flow.theta(), asked.inputs)),
    )


def by_events(pair: Pair, inputs: Tensor) -> Tensor:
    """Return the output's somas (chip, sample, output) with the label let go, weights at rest.

    All samples at once, each in a copy of the chip.
    """
    return Settled(pair.twin())(pair.flow.stored(), inputs)
