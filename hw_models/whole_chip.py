"""What is around the arrays of a chip: its clock and times, and what is on chip and what is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hw_models.formula import Formula
from hw_models.numbers import Positive, Seconds
from hw_models.quantize import QuantizedWeights
from pcsim.frozen import Frozen
from pcsim.quantity import Unit, shown
from pcsim.substrate.differences import chips_differ

if TYPE_CHECKING:
    from hw_models.description import Hardware

READ_ONLY = ("weight_levels", "conductance_pair", "programming_error")
"""Kinds that change what is read of a weight and leave the stored number exact."""


GATHERS = "update_accumulator"


class WholeChip(Frozen):
    """What a person needs to know besides the non-idealities, in SI units."""

    tau_x: Seconds
    """Time constant of the somas; a check whose configuration names no times runs at it."""
    time: Literal["clocked", "continuous"]
    """Whether arrays are read and written at a clock, or all the time."""
    learning: Literal["on chip", "host in the loop"]
    """Who computes the changes of weights: circuits on the chip, or a computer beside it."""
    hidden_accumulator: bool = False
    """Whether the host or a memory beside the array keeps exact weights."""
    volts_per_unit: Annotated[Positive, Unit("V")] | None = None
    """Volts that stand for one unit of a potential, where the source says so."""
    not_on_chip: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """What has to come from outside, in words."""
    assumed: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Numbers without a source, in words."""


def standing(hardware: Hardware) -> tuple[str, ...]:
    """Return what every verdict on this chip has to say, in a few words each."""
    return tuple(_standing(hardware)) if hardware.pieces else ()


def _standing(hardware: Hardware) -> Iterator[str]:
    chip = hardware.chip
    if chip is None:
        yield "no whole chip: what is not listed is ideal"
    else:
        yield f"whole chip, {chip.time}, τ_x = {_seconds(chip.tau_x)}"
        if chip.learning == "host in the loop":
            yield "host in the loop"
    if (chip is not None and chip.hidden_accumulator) or any(_hides(hardware)):
        yield "hidden accumulator"
    if _gathers(hardware):
        yield "requests add up beside each device"
    yield "ideal biases"
    if not chips_differ(hardware.substrate()):
        yield "one chip: nothing differs from chip to chip"


def _gathers(hardware: Hardware) -> bool:
    return any(piece.kind == GATHERS for piece in hardware.pieces.values())


def _hides(hardware: Hardware) -> Iterator[bool]:
    """Yield whether each piece leaves an exact weight behind what is read."""
    for piece in hardware.pieces.values():
        yield (
            piece.kind in READ_ONLY
            or (isinstance(piece, QuantizedWeights) and piece.accumulator)
            or (isinstance(piece, Formula) and piece.site == "weight")
        )


def about_chip(hardware: Hardware) -> Iterator[str]:
    """Yield the lines of `pcsim hardware show` on the chip."""
    chip = hardware.chip
    for words in standing(hardware):
        yield f"  {words}"
    if not hardware.pieces:
        return
    if "hidden accumulator" not in standing(hardware):
        beside = " but what was not written yet" if _gathers(hardware) else ""
        yield f"  no hidden accumulator: what a device holds is all there is of a weight{beside}"
    if chip is None:
        yield "  not stated: host, clock and time constants, which whole chips have"
        return
    if chip.volts_per_unit is not None:
        yield f"  one unit of a potential is {shown(chip.volts_per_unit, Unit('V'))}"
    yield f"  weights are changed by: {_LEARNS[chip.learning]}"
    yield from (f"  not on chip: {what}" for what in chip.not_on_chip)
    yield from (f"  assumption: {what}" for what in chip.assumed)


_LEARNS = {
    "on chip": "circuits on the chip",
    "host in the loop": "a computer beside the chip (host in the loop)",
}


def _seconds(value: float) -> str:
    return shown(value, Unit("s"))
