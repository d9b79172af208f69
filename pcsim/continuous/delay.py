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
        self._ring: list[Tensor] = []
        self._position = 0

    def pass_through(self, value: Tensor) -> Tensor:
        """Take in the present value, give out the delayed one."""
        if self.steps == 0:
            return value
        if not self._ring or self._ring[0].shape != value.shape:
            self._ring = [torch.zeros_like(value) for _ in range(self.steps + 1)]
            self._position = 0
        self._ring[self._position].copy_(value)
        self._position = (self._position + 1) % (self.steps + 1)
        return self._ring[self._position]

    def state(self, name: str) -> dict[str, Tensor]:
        """Return what is under way, the oldest first, for a checkpoint."""
        if not self._ring:
            return {}
        return {name: torch.stack(self._ring[self._position :] + self._ring[: self._position])}

    def restore(self, name: str, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        self._ring, self._position = [value.clone() for value in state.get(name, ())], 0
