"""How trained weights get into the devices of a chip, and when they are read."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pcsim.errors import ConfigError, UnsupportedError
from pcsim.frozen import Count, Duration, Frozen
from pcsim.hardware import HardwareConfig
from pcsim.quantity import Unit

Program = Literal["open-loop", "write-verify", "none"]
WAITS = (0.0, 1.0, 60.0, 3600.0, 86400.0, 30 * 86400.0)
"""Seconds after which a chip that ages is read, where none are given."""


class Plan(Frozen):
    """What is done once a network is trained."""

    program: Program = "open-loop"
    """Each device is written once; or read after each write, and written again until the weight is
    within `tolerance`; or not at all: the array holds what training left there."""
    train: Literal["ideal", "chip"] = "ideal"
    """Whether weights come from ideal arithmetic, or from training on this chip."""
    wait: Annotated[tuple[Duration, ...], Field(min_length=1, strict=False)] = WAITS
    """Seconds after programming at which the chip is read, rising; 0 is always there."""
    tolerance: Annotated[float, Field(gt=0, le=1), Unit("fraction")] = 0.02
    """Write–verify: largest difference to the target that is accepted, of full conductance."""
    attempts: Annotated[Count, Field(le=10_000)] = 20
    """Write–verify: how often a device is written at the most."""
    range: Literal["chip", "matched"] = "chip"
    """Weight at full conductance: that of the chip, or the largest weight of each layer."""

    @model_validator(mode="before")
    @classmethod
    def _from_the_start(cls, data: dict[str, object]) -> dict[str, object]:
        """Let every plan begin with a read at once, to which later ones are compared."""
        waits = data.get("wait")
        if isinstance(waits, list | tuple) and 0 not in waits:
            return {**data, "wait": (0.0, *waits)}
        return data

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if list(self.wait) != sorted(set(self.wait)):
            raise ValueError(f"wait must rise without repetition, got {list(self.wait)}")
        if self.program == "none" and self.range == "matched":
            raise ValueError('range = "matched" is a way to program; with program "none" leave it')
        return self


def require(plan: Plan, hardware: HardwareConfig, waited: bool) -> None:
    """Refuse a plan that a chip has nothing for; `waited`: times were asked for."""
    name = hardware.preset
    if hardware.ideal:
        raise ConfigError(
            "deploy: hardware.preset: an ideal chip holds every weight forever; name one, such as "
            "--hardware pcm_programmed"
        )
    parts = hardware.deployed(plan.program != "none")
    if plan.program != "none" and not (parts.errors or parts.pulses):
        raise UnsupportedError(
            f"deploy: {name} has no error of programming and no device that is written by pulses, "
            f"so that {plan.program} has no meaning; use --program none (exact weights), or add a "
            f"piece 'programming_error'"
        )
    if plan.program != "none" and parts.errors and parts.pulses:
        first = parts.pulses[0].name
        raise UnsupportedError(
            f"deploy: {name} has both a programming_error and a device that is written by pulses "
            f"({first}); leave one of them out"
        )
    if plan.program != "none" and parts.full is None:
        raise UnsupportedError(
            f"deploy: no piece of {name} says which weight is full conductance (range), so that "
            f"nothing can be programmed; use --program none"
        )
    if waited and not parts.aging:
        raise UnsupportedError(
            f"deploy: nothing of {name} changes with time, so that waiting has no meaning; leave "
            f"--wait out, or add a piece 'pcm_drift', 'conductance_drift' or 'retention'"
        )
