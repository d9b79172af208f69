"""Hardware among Brian2 objects: fixed patterns, statements of every step, noise and memory.

Noise comes from `Chips.noise`, by the names and in the shapes of the other backends, so that frozen
noise is the same everywhere and `solver.noise_seed` is honoured; or Brian2 draws it by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.brian.draws import Draw
from pcsim.circuits import order
from pcsim.circuits.blocks import Block
from pcsim.circuits.plan import Plan
from pcsim.kernels.hooks import row_sums
from pcsim.substrate import Chips
from pcsim.substrate.transform import Transform

Owner = Any
"""A `NeuronGroup` or `Synapses`: Brian2 has no types."""
Store = Callable[[Any, np.ndarray], None]
"""How values get into a variable: this depends on the device that holds it."""


def set_value(variable: Any, values: np.ndarray) -> None:
    """Put values into a variable of the active device."""
    variable.set_value(values)


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

    def memory(self) -> dict[str, Tensor]:
        return {key: self.read(name) for key, name in self.block.memory.items()}

    def remember(self, memory: Mapping[str, Tensor], store: Store) -> None:
        for key, name in self.block.memory.items():
            if key in memory:
                variable = self.owner.variables[name]
                values = memory[key].expand(self.like.shape).numpy().ravel()
                store(variable, values.astype(variable.dtype))

    def draws(self, chips: Chips) -> list[Draw]:
        """Return its noise: a clamped soma has no velocity, and draws none for it."""
        variables, gate = self.owner.variables, self.block.place.gate
        return [
            Draw(
                variables[noise.variable],
                noise.key,
                noise.law,
                self.like,
                chips.noise,
                lambda: chips.clock.step,
                variables[gate] if gate else None,
            )
            for noise in self.block.noise
        ]


class OnChip:
    """The effects of a population that act in every step."""

    def __init__(self, chips: Chips, acting: Sequence[_Acting]) -> None:
        self.chips = chips
        self._store: Store = set_value
        self._settle: Callable[[], None] | None = None
        self._acting = list(acting)
        self._at = {each.block.place.key: each for each in acting}
        for each in acting:
            each.twin.begin(each.like)
            each.remember(each.twin.memory(), self._store)
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

    @property
    def draws(self) -> list[Draw]:
        """Return all noise, in the order in which it acts."""
        return [draw for each in self._acting for draw in each.draws(self.chips)]

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
        if self._settle:
            self._settle()
        return {key: value for each in self._acting for key, value in each.memory().items()}

    def put_back(self, memory: Mapping[str, Tensor]) -> None:
        """Give the devices this memory; their age is their own."""
        for each in self._acting:
            each.remember(memory, self._store)

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint, at the age that the chips had then."""
        self.put_back(memory)
        if self._settle is None:
            now = self._acting[0].owner.clock.variables["t"].get_value().item()
            self.begin(self.chips.clock.t - now)

    def put_off(self, store: Store, settle: Callable[[], None]) -> None:
        """Let somebody take the steps who puts them off, and who says by `begin` when he does."""
        self._store, self._settle = store, settle

    def begin(self, age: float) -> None:
        """Say how old, in seconds, the chips are when Brian2's clock is at 0."""
        for each in self._acting:
            if "t_before" in each.owner.variables:
                variable = each.owner.variables["t_before"]
                self._store(variable, np.full(1, age, dtype=variable.dtype))
