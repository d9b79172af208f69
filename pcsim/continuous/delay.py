"""Pure delay: a ring buffer of past values, one per time step."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pcsim.errors import ConfigError


def whole_steps(name: str, delay: float, dt: float) -> int:
    """Return delay/dt, which must be a whole number: a rounded delay would be another circuit."""
    steps = round(delay / dt)
    if abs(steps * dt - delay) > 1e-9 * max(delay, dt):
        raise ConfigError(
            f"{name}: {delay} s is not a whole number of time steps of {dt} s; "
            f"the nearest is {max(1, steps) * dt:g} s"
        )
    return steps


class DelayLine:
    """Returns what was put in `steps` calls ago; before that, zero (no error has arrived yet)."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.ring = torch.empty(0)
        """What is under way, (slot, …)."""
        self.position = 0
        """The slot that takes in the next value."""

    def begin(self, like: Tensor) -> None:
        """Make room for values like this one, if there is none."""
        if self.ring.shape[1:] != like.shape or not len(self.ring):
            self.ring, self.position = like.new_zeros(self.steps + 1, *like.shape), 0

    def pass_through(self, value: Tensor) -> Tensor:
        """Take in the present value, give out the delayed one."""
        if self.steps == 0:
            return value
        self.begin(value)
        self.ring[self.position].copy_(value)
        self.position = (self.position + 1) % (self.steps + 1)
        return self.ring[self.position]

    def state(self, name: str) -> dict[str, Tensor]:
        """Return what is under way, the oldest first, for a checkpoint."""
        if not len(self.ring):
            return {}
        return {name: self.ring.roll(-self.position, 0)}

    def restore(self, name: str, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        self.ring, self.position = state.get(name, torch.empty(0)).clone(), 0
