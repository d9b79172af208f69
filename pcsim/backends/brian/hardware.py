"""Hardware among Brian2 objects: fixed patterns, statements of every step, noise and memory.

Noise comes from `Chips.noise`, by the names and in the shapes of the other backends, so that frozen
noise is the same everywhere and `solver.noise_seed` is honoured; or Brian2 draws it by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from brian2 import NetworkOperation
from torch import Tensor

from pcsim.circuits import order
from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Plan
from pcsim.kernels.hooks import row_sums
from pcsim.substrate import Chips
from pcsim.substrate.transform import Transform

Owner = Any
"""A `NeuronGroup` or `Synapses`: Brian2 has no types."""


def each_step(owner: Owner, code: str, place: int, name: str, when: str = "groups") -> None:
    """Let statements run in every time step."""
    owner.run_regularly(
        code,
        clock=owner.clock,
        when=when,
        order=place,
        name=name,
        codeobj_class=owner.codeobj_class,
    )


def put_on_chip(owner: Owner, blocks: Sequence[Block], chips: int) -> None:
    """Write fixed patterns, and let the effects act in every step."""
    for block in blocks:
        for name, value in block.drawn.items():
            spread = value.expand(block.signal_shape(chips))
            setattr(owner, name, np.asarray(spread.cpu().numpy(), dtype=np.float64).ravel())
        place = block.place
        each_step(owner, block.code, place.order, f"{owner.name}_{place.key}", place.when)


@dataclass(eq=False)
class _Acting:
    """A block, the objects it acts on, and its twin that acts on tensors."""

    block: Block
    owner: Owner
    twin: Transform
    like: Tensor

    def read(self, name: str) -> Tensor:
        values = np.array(self.owner.variables[name].get_value())
        return torch.as_tensor(values, dtype=self.like.dtype).view(self.like.shape)

    def write(self, name: str, value: Tensor) -> None:
        self.owner.variables[name].set_value(value.expand(self.like.shape).numpy().ravel())

    def memory(self) -> dict[str, Tensor]:
        return {key: self.read(name) for key, name in self.block.memory.items()}

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        for key, name in self.block.memory.items():
            if key in memory:
                self.write(name, memory[key])

    @property
    def in_use(self) -> bool:
        """Whether the site is: a clamped soma has no velocity, and draws no noise for it."""
        gate = self.block.place.gate
        return not gate or bool((self.owner.variables[gate].get_value() > 0).any())


class OnChip:
    """The effects of a population that act in every step."""

    def __init__(self, chips: Chips, acting: Sequence[_Acting]) -> None:
        self.chips = chips
        self._acting = list(acting)
        self._at = {each.block.place.key: each for each in acting}
        for each in acting:
            each.twin.begin(each.like)
            each.remember(each.twin.memory())
        chips.watch(self)

    @classmethod
    def of(
        cls, plan: Plan, owners: Sequence[Owner], chips: Chips, *, brian_noise: bool
    ) -> OnChip | None:
        """Return the hardware among these objects, or None where nothing acts in every step."""
        twins, acting = chips.unwatched(), []
        for part, owner in zip(plan.on_chip, owners, strict=True):
            for block in part.blocks:
                place = block.place
                twin = twins.transform(place.site, place.layer, block.shape, place.array)
                assert twin
                like = torch.zeros(block.signal_shape(len(chips)), dtype=chips.dtype)
                acting.append(_Acting(block, owner, twin, like))
                if brian_noise and block.noise:
                    name = f"{owner.name}_noise_{place.key}"
                    each_step(owner, block.brian_noise, order.NOISE, name, "before_start")
        return cls(chips, acting) if acting else None

    def refresh(self) -> None:
        """Draw the noise of one step."""
        step = self.chips.clock.step
        for each in self._acting:
            for noise in each.block.noise if each.in_use else ():
                drawn = self.chips.noise.draw(noise.key, noise.law, each.like, step)
                each.write(noise.variable, drawn)

    def operation(self, clock: Any, name: str) -> NetworkOperation:
        """Return what draws the noise of every step from `Chips.noise`."""
        when = {"when": "before_start", "order": order.NOISE}
        return NetworkOperation(self.refresh, clock=clock, name=f"{name}_noise", **when)

    def __call__(
        self, key: str, signal: Tensor, row: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return a signal as the place called `key` shows it in the step to come.

        Memory moves in that step, from the same noise: here it is looked at only.
        `row`: the signal that enters an array and its weights, for the sums over a row.
        """
        each = self._at.get(key)
        if each is None:
            return signal
        each.twin.restore(each.memory())
        each.twin.applied = self.chips.clock.step - 1
        sums = row_sums(each.twin.aggregates, *row) if row else {}
        return each.twin(signal, **sums)

    def memory(self) -> dict[str, Tensor]:
        """Return all memory by name, for a checkpoint."""
        return {key: value for each in self._acting for key, value in each.memory().items()}

    def put_back(self, memory: Mapping[str, Tensor]) -> None:
        """Give the devices this memory; their age is their own."""
        for each in self._acting:
            each.remember(memory)

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint, at the age that the chips had then."""
        for each in self._acting:
            each.remember(memory)
            if "t_before" in each.owner.variables:
                now = each.owner.clock.variables["t"].get_value().item()
                each.owner.variables["t_before"].set_value(self.chips.clock.t - now)
