"""The discrete rules in compiled batches: the calls of `Discrete` and `ArrayBackprop`.

Data, initial states, schedules, checkpoints and energies are theirs; what happens between the
beginning of a batch and its end is one call of C code, chip by chip (`pcsim.native.batch_program`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pcsim.backends.array_backprop import ArrayBackprop
from pcsim.backends.discrete import Discrete, Step
from pcsim.circuit import Circuit
from pcsim.circuits.plan import Plan
from pcsim.config import Schedule
from pcsim.energies import Gaussian
from pcsim.errors import UnsupportedError
from pcsim.kernels.clamped_input import ClampedInput
from pcsim.kernels.followed_inputs import FollowedInputs
from pcsim.kernels.maps.dense import DenseKernel
from pcsim.kernels.on_chip import followable
from pcsim.kernels.optim import Optimizer
from pcsim.kernels.parameters import Parameters
from pcsim.native.batch import Batches, Rates, saw
from pcsim.native.batch_program import BITS
from pcsim.native.call import WHO
from pcsim.network import Mode, Network
from pcsim.substrate import Chips

NODES = 64
"""Nodes that fit into the bits of a schedule."""


def refuse(
    network: Network, mode: Mode, schedule: Schedule | None, optimizer: Optimizer, device: str
) -> None:
    """Refuse what has no compiled batches, by name; without a schedule, for backpropagation."""

    def no(what: str, why: str) -> UnsupportedError:
        return UnsupportedError(f"{WHO}: {what}: {why}")

    if device != "cpu":
        raise no(f"run.device {device!r}", "code is compiled for the 'cpu'")
    if mode == "associative":
        raise no("data.mode 'associative'", "a datum that is clamped in part has torch's steps")
    if schedule and schedule.discount < 1:
        raise no("schedule.discount", "rates that follow the energy have torch's steps")
    if schedule and schedule.rule == "pc" and schedule.pc_update_at == "after":
        raise no("schedule.pc_update_at 'after'", "weights are written in the last step")
    if optimizer.spec.rule != "sgd":
        raise no(f"learning.optimizer {optimizer.spec.rule!r}", "weights move by 'sgd'")
    if optimizer.decays and optimizer.spec.decay_bias:
        raise no("learning.decay_bias", "only weights decay")
    if isinstance(optimizer.weight_decay, Tensor):
        raise no("grid.weight_decay", "all chips have one decay")
    if len(network.nodes) > NODES:
        raise no(f"network: {len(network.nodes)} nodes", f"at most {NODES} have bits")
    energies = [node.energy for node in network.nodes]
    if schedule is None and any(isinstance(e, Gaussian) and e.learned for e in energies):
        raise no("energy.learned", "backpropagation has no hidden errors to learn variances from")
    Plan.of(network, Circuit(kind="algebraic", tau_w=1.0), mode, who=WHO)


def rates_of(gamma: float | Tensor, optimizer: Optimizer) -> Rates:
    """Return the rates of a population."""
    decay = optimizer.weight_decay
    assert not isinstance(decay, Tensor)
    return Rates(gamma, optimizer.alpha, optimizer.scale, decay)


class NativeDiscrete(Discrete):
    """PC, Z-IL and iPC in compiled batches."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        schedule: Schedule,
        optimizer: Optimizer,
        *,
        mode: Mode = "supervised",
        threads: int | None = None,
        **options: Any,
    ) -> None:
        """Build a population as `Discrete` does; `threads`: chips are divided among so many."""
        refuse(network, mode, schedule, optimizer, params.flat.device.type)
        if options.get("counter"):
            raise UnsupportedError(f"{WHO}: counter: products are counted in torch's steps")
        super().__init__(network, params, schedule, optimizer, mode=mode, **options)
        self.inputs = FollowedInputs(self.field, enabled=False)
        self.native = Batches(network, params, mode, self.chips, threads=threads)
        self._forward = False
        self._fast = schedule.fast and optimizer.plain and schedule.rule == "ipc"
        self._fast &= followable(self.chips)
        self._rates: Rates | None = None
        self.native.require(self.rates)

    def about(self) -> dict[str, str | int]:
        """Return who takes the steps, and by how many threads."""
        return {"engine": "native", "threads": self.native.threads}

    @property
    def rates(self) -> Rates:
        """The rates of the next step."""
        made = rates_of(self._rate, self.optimizer)
        if self._rates is None or self._rates.key != made.key:
            self._rates = made
        return self._rates

    def _initialise(self, samples: int, feedforward: bool) -> None:
        self._forward = feedforward  # with the first step

    def step(self, step: Step | None = None, *, move: bool = True) -> None:
        """One joint step from one state."""
        self._run([step or self._full], move=move)

    def batch(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """Run one batch from its initialisation to its last weight update."""
        self.start(clamps, mask)
        steps = [self._planned_step(t) for t in range(self.T)]
        self._run(steps, move=not self._skips_last_move, followed=self._followed(len(steps)))

    def _followed(self, steps: int) -> frozenset[int]:
        """Return the clamped input that is followed, where that pays."""
        if not self._fast:
            return frozenset()
        samples = self.field.x[0].shape[1]
        kernels = {k: self.field.maps[k] for k in self.field.clamped_input}
        return frozenset(
            k
            for k, kernel in kernels.items()
            if isinstance(kernel, DenseKernel)
            and "log_var" not in kernel.params
            and ClampedInput(kernel).pays(samples, steps)
        )

    def _run(
        self, steps: Sequence[Step], *, move: bool, followed: frozenset[int] = frozenset()
    ) -> None:
        if not steps:
            return
        masks = [_masks(step) for step in steps]
        if not move:
            masks[-1]["moving"] = 0
        if not self._forward:  # nothing is known of predictions and errors
            everything = _bits(self.field.predicted)
            masks[0] |= {"fresh": everything, "active": everything}
        zil = self.schedule.rule == "zil" and self._forward
        seen = self.native.run(
            self.field.x,
            self.rates,
            masks,
            forward=self._forward,
            stopped=self.stopped.chips,
            shown=0 if zil else -1,
            followed=followed,
        )
        self._forward = False
        saw(self.field, seen)
        if zil:
            self._start_energy = self.field.energy()
        for step in steps:
            for node in step.learning:
                self.optimizer.steps[node] += 1
        if self.chips:
            self.chips.advance(len(steps))


class NativeBackprop(ArrayBackprop):
    """Backpropagation in compiled batches, on arrays or on ideal chips."""

    def __init__(
        self,
        network: Network,
        params: Parameters,
        optimizer: Optimizer,
        chips: Chips,
        *,
        steps: int,
        threads: int | None = None,
    ) -> None:
        """Build a population as `ArrayBackprop` does; `threads`: as in `NativeDiscrete`."""
        refuse(network, "supervised", None, optimizer, params.flat.device.type)
        super().__init__(network, params, optimizer, chips, steps=steps)
        self.native = Batches(network, params, "supervised", chips, backprop=True, threads=threads)
        everything = _bits(self.field.predicted)
        self._masks = [dict.fromkeys(BITS, everything)]
        self._nobody = torch.zeros(params.replicas, dtype=torch.bool)
        self.native.require(rates_of(1.0, optimizer))

    def about(self) -> dict[str, str | int]:
        """Return who takes the steps, and by how many threads."""
        return {"engine": "native", "threads": self.native.threads}

    def batch(self, clamps: Sequence[Tensor | None], mask: Tensor | None = None) -> None:
        """One forward pass, one backward pass, one weight update."""
        self._load(clamps)
        seen = self.native.run(
            self.field.x,
            rates_of(1.0, self.optimizer),
            self._masks,
            forward=True,
            stopped=self._nobody,
            waited=self.steps - 1,
        )
        saw(self.field, seen, (0,))
        self._energy = self.field.energy_of(0)
        for node in self.field.predicted:
            self.optimizer.steps[node] += 1
        self.chips.advance(self.steps)


def _bits(nodes: Sequence[int]) -> int:
    return sum(1 << node for node in nodes)


def _masks(step: Step) -> dict[str, int]:
    return {
        "fresh": _bits(step.fresh),
        "active": _bits(step.active),
        "moving": _bits(step.moving),
        "learning": _bits(step.learning),
    }
