"""Weights in the devices of a population of chips: programmed, left alone, read.

    open loop       g = target + σ(g) ξ, or what one train of pulses leads to
    write–verify    the same again, where |read − target| > tolerance, up to so many attempts
    wait            the chips' clock moves on; devices drift, stored weights are lost
    compensation    each array's current is multiplied by Σ|w(0)|/Σ|w(t)|, w as read

One factor per array is what a periodic measurement of all its currents gives (global drift
compensation: Joshi et al., Nature Communications 11, 2473, 2020). It acts on currents, before the
noise of the sums and the converters, as the gain of an amplifier does.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from math import ceil

import numpy as np
import torch
from torch import Tensor

from pcsim.deploy.plan import Plan
from pcsim.hardware import HardwareConfig
from pcsim.kernels.on_chip import Array
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.runner.readout import Readout
from pcsim.runner.replicas import Replicas
from pcsim.runner.task import Split, Task
from pcsim.substrate import Chips, Effect, Memory, Noise, Substrate

READ = 1e-6
"""Seconds of one read or write where a chip has no clock: an assumption."""
GAIN = Effect(
    name="deployed",
    site="weight",
    becomes="s*gain",
    memory={"gain": Memory(start="1", update="gain")},
    about="gain of the array's amplifiers",
)


@dataclass(frozen=True)
class Programmed:
    """What programming came to, each (replica, layer)."""

    error: np.ndarray
    """Root mean square of read minus target, of full conductance."""
    attempts: np.ndarray
    """Mean number of times that a device was written."""
    missed: np.ndarray
    """Share of the devices whose last read was outside of the tolerance."""
    clipped: np.ndarray
    """Share of the weights that were larger than full conductance."""


class DeployedArrays:
    """The arrays of all replicas, from the erased state on."""

    def __init__(
        self,
        network: Network,
        hardware: HardwareConfig,
        replicas: Replicas,
        noise: Noise,
        plan: Plan,
    ) -> None:
        self.network, self.plan, self.seed = network, plan, hardware.seed
        self.parts = hardware.deployed(plan.program != "none")
        self.full = self.parts.full or 1.0
        effects = (*self.parts.reads, *self.parts.pulses, GAIN)
        self.chips = Chips(
            Substrate(effects=effects),
            replicas.chip_of,
            seed=hardware.seed,
            dt=self.parts.period or READ,
            noise=noise,
            dtype=torch.float64,
        )
        count = len(replicas)
        flat = torch.zeros(count, network.parameter_count, dtype=torch.float64)
        self.params = Parameters(network, flat)
        self.array = Array(self.chips, self.params.of)
        self.readout = Readout(network, self.chips)
        self.layers = [k for k, views in enumerate(self.params.of) if "w" in views]
        self.scale = {k: torch.ones(count, 1, 1, dtype=torch.float64) for k in self.layers}
        """Weight of the network that is stored as 1."""
        self._lossy = self._beside(self.parts.losses)
        self._losses = Array(self._lossy, self.params.of)
        self._first: dict[int, Tensor] = {}
        self._began = 0

    def _beside(self, effects: tuple[Effect, ...], seed: int | None = None) -> Chips:
        """Return the same chips with other effects, on the same clock."""
        other = copy(self.chips)
        other.substrate, other._made, other._fixed = Substrate(effects=effects), [], {}
        other.seed = self.seed if seed is None else seed
        return other

    def program(self, target: Parameters) -> Programmed:
        """Bring the weights of a network into the devices; biases are kept exactly."""
        self.params.flat.copy_(target.flat)
        devices = []
        for index in self.layers:
            w = target.of[index]["w"].flatten(2)
            if self.plan.range == "matched":
                largest = w.abs().amax((1, 2), keepdim=True).clamp_min(1e-30)
                self.scale[index] = largest / self.full
            devices.append(self._layer(index, w / self.scale[index]))
        for index in self.layers:
            self._amplify(index, self.scale[index])
        self._began = self.chips.clock.step
        for transform in self._lossy.transforms():
            transform.applied = self._began  # what is lost counts from here
        self._first = {index: self._strength(index) for index in self.layers}
        return Programmed(*(np.stack(rows, 1) for rows in zip(*devices, strict=True)))

    def _layer(self, index: int, wanted: Tensor) -> tuple[np.ndarray, ...]:
        stored = self.params.of[index]["w"].flatten(2)
        if self.plan.program == "none":
            stored.copy_(wanted)
            read = self._read(index)
            clipped = torch.zeros_like(wanted)
            attempts = torch.zeros_like(wanted)
            todo = (read - wanted).abs() > self.plan.tolerance * self.full
        else:
            goal = wanted.clamp(-self.full, self.full)
            clipped = (wanted.abs() > self.full).double()
            read, attempts, todo = self._written(index, stored, goal)
        error = (read - wanted).square().mean((1, 2)).sqrt() / self.full
        means = (one.double().mean((1, 2)).numpy() for one in (attempts, todo, clipped))
        return error.numpy(), *means

    def _written(self, index: int, stored: Tensor, goal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Write one layer; return what is read of it, attempts, and who is outside."""
        verify = self.plan.program == "write-verify"
        todo = torch.ones_like(goal, dtype=torch.bool)
        attempts = torch.zeros_like(goal)
        stored.zero_()
        read = self._read(index)
        for attempt in range(self.plan.attempts if verify else 1):
            self.chips.advance(max(1, ceil(self.parts.t_write / self.chips.clock.dt)))
            if self.parts.errors:
                stored.copy_(torch.where(todo, self._drawn(index, goal, attempt), stored))
            else:
                self._pulse(index, torch.where(todo, goal - read, 0.0))
            attempts += todo
            read = self._read(index)
            todo = todo & ((read - goal).abs() > self.plan.tolerance * self.full)
            if not todo.any():
                break
        return read, attempts, todo

    def _drawn(self, index: int, goal: Tensor, attempt: int) -> Tensor:
        """Return what one programming makes of a target; the first has the chip's own errors."""
        shape = tuple(goal.shape[1:])
        levels = self._beside(self.parts.before).transform("weight", index, shape)
        again = attempt + int(self.plan.train == "chip")  # the first made the errors it learnt with
        seed = [self.seed, again] if again else self.seed
        errors = self._beside(self.parts.errors, _seed(seed)).transform("weight", index, shape)
        assert errors is not None
        return errors(goal if levels is None else levels(goal.clone()))

    def _pulse(self, index: int, asked: Tensor) -> None:
        changes = [{"w": asked.view_as(views["w"])} if k == index else {}
                   for k, views in enumerate(self.params.of)]  # fmt: skip
        self.array.write(changes, [1.0] * len(changes), [index])

    def _read(self, index: int) -> Tensor:
        return self.array.read(index).flatten(2).clone()

    def _strength(self, index: int) -> Tensor:
        """Return the sum of all currents of an array, as it is read (replica, 1, 1)."""
        return self._read(index).abs().sum((1, 2), keepdim=True)

    def _amplify(self, index: int, gain: Tensor) -> None:
        transform = self.array.reading(index)
        whole = gain.expand_as(self.params.of[index]["w"].flatten(2)).contiguous()
        transform.restore({f"{GAIN.name}.gain.{transform.key}": whole})

    def wait(self, seconds: float) -> np.ndarray:
        """Let so much time pass since programming; return what is left of each array's currents.

        Shape (replica, layer). Amplifiers are as programming left them.
        """
        for index in self.layers:
            self._amplify(index, self.scale[index])
        target = self._began + round(seconds / self.chips.clock.dt)
        if target > self.chips.clock.step:
            self.chips.clock.step = target
            self._lose()
        left = [self._strength(k) / self._first[k].clamp_min(1e-300) for k in self.layers]
        return torch.stack([one.flatten() for one in left], 1).numpy()

    def _lose(self) -> None:
        if self._losses.writes:
            nothing = [{n: torch.zeros_like(v) for n, v in views.items() if n == "w"}
                       for views in self.params.of]  # fmt: skip
            self._losses.write(nothing, [1.0] * len(nothing))

    def compensate(self, left: np.ndarray) -> None:
        """Amplify each array by what is missing of its currents (replica, layer)."""
        for column, index in enumerate(self.layers):
            gain = torch.as_tensor(left[:, column]).view(-1, 1, 1).clamp_min(1e-30)
            self._amplify(index, self.scale[index] / gain)

    def accuracy(self, task: Task, split: Split) -> np.ndarray:
        """Return the fraction right (replica,) by one forward pass through the arrays."""
        return task.accuracy(self.readout, self.params, split)


def _seed(key: int | list[int]) -> int:
    """Return one number for a chip's seed and an attempt."""
    if isinstance(key, int):
        return key
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))
