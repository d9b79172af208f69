"""The effects of a chip whose weights are programmed once and then read, by when they act.

    before     what the host can ask for: static effects ahead of the error (levels, pairs)
    errors     w ← w + error of one programming; another programming draws it anew
    pulses     w ← w + what a device makes of a request for the rest of the way
    losses     w ← w − what is lost of a stored weight while time passes
    reads      all else: what the array presents, and what is around it

What computes updates (accumulators, multipliers, a fast array) does nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hw_models.description import Hardware
from hw_models.drift import ConductanceDrift, PcmDrift, ProgrammingError
from hw_models.formula import Formula
from hw_models.noise import ColouredNoise, PinkNoise, TelegraphNoise
from hw_models.piece import Piece
from hw_models.plasticity_arrays import DevicePair
from hw_models.plasticity_device import Device
from hw_models.plasticity_group import DeviceGroup
from hw_models.plasticity_rules import Retention
from hw_models.quantize import ConductancePair, QuantizedWeights
from pcsim.errors import ConfigError
from pcsim.substrate import Effect

UPDATES = ("multiplier", "transfer", "accumulator", "pulses")
"""Places of the circuits that ask for updates, which programming does not use."""


@dataclass(frozen=True)
class DeployedParts:
    """Effects in their order, and what a person has to know of the devices."""

    before: tuple[Effect, ...]
    errors: tuple[Effect, ...]
    pulses: tuple[Effect, ...]
    losses: tuple[Effect, ...]
    reads: tuple[Effect, ...]
    full: float | None
    """Weight at full conductance, network units; none: no piece says."""
    t_write: float
    """Seconds of the slowest write."""
    period: float | None
    """Seconds of the fastest clock, if there is any."""
    aging: tuple[str, ...]
    """Names of the pieces that change with time."""


def deployed_parts(hardware: Hardware, programmed: bool = True) -> DeployedParts:
    """Take a chip apart; if nothing is programmed, its devices keep the errors they have."""
    parts: dict[str, list[Effect]] = {n: [] for n in ("before", "errors", "pulses", "losses")}
    reads: list[Effect] = []
    last = max((k for k, (_, e) in enumerate(_effects(hardware)) if e.programming), default=-1)
    for k, (piece, effect) in enumerate(_effects(hardware)):
        if effect.site == "write":
            if piece.PLACE not in UPDATES:
                parts["losses" if _loses(piece) else "pulses"].append(effect)
        elif not programmed or effect.site != "weight" or k > last:
            reads.append(effect)
        elif effect.programming:
            parts["errors"].append(effect)
        elif effect.noise or effect.memory:
            raise ConfigError(
                f"hardware.pieces: {effect.name} changes with time before the error of "
                f"programming is there; put it behind, by after"
            )
        else:
            parts["before"].append(effect)
    writes, samples = (
        [period for piece in hardware.pieces.values() if (period := getattr(piece, name, None))]
        for name in ("t_write", "t_sample")
    )
    return DeployedParts(
        **{name: tuple(effects) for name, effects in parts.items()},
        reads=tuple(reads),
        full=next((full for piece in hardware.pieces.values() for full in _full(piece)), None),
        t_write=max(writes, default=0.0),
        period=min([*writes, *samples], default=None),
        aging=tuple(name for name, piece in hardware.pieces.items() if _ages(piece)),
    )


def _effects(hardware: Hardware) -> Iterator[tuple[Piece, Effect]]:
    for name, piece in hardware.pieces.items():
        yield from ((piece, effect) for effect in piece.effects(name))


def _full(piece: Piece) -> Iterator[float]:
    """Yield the weight at full conductance, if a piece says it."""
    if isinstance(piece, DevicePair):
        yield piece.device.w_max * piece.device.range
    elif isinstance(piece, DeviceGroup):
        bound = min(piece.device.w_max, abs(piece.device.w_min))
        yield sum(piece.significances) * bound * piece.device.range
    elif isinstance(piece, Device):
        yield min(piece.w_max, abs(piece.w_min)) * piece.range
    elif isinstance(piece, ProgrammingError | QuantizedWeights | ConductancePair | PcmDrift):
        yield piece.range


def _loses(piece: Piece) -> bool:
    """Whether stored weights are lost by it as seconds pass."""
    if isinstance(piece, Retention):
        return piece.per == "second"
    return isinstance(piece, ConductanceDrift) and piece.mode == "learning"


def _ages(piece: Piece) -> bool:
    """Whether a read after a long time differs from one at once by more than its noise."""
    if isinstance(piece, Formula):
        texts = [effect for effect in piece.effects("own") if effect.site == "weight"]
        return any(effect.uses("t") or effect.uses("dt") for effect in texts)
    slow = isinstance(piece, ColouredNoise | PinkNoise | TelegraphNoise) and piece.where == "weight"
    return slow or _loses(piece) or isinstance(piece, PcmDrift | ConductanceDrift)
