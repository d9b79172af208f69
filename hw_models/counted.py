"""A chip whose devices count what they are asked for: pulses, and the writes that reach them.

    pulses    n ← n + |s|/dw              a request s is |s|/dw pulses in the mean, exactly
    touched   m ← m + min(1, |s|/dw)      a write has a pulse with this chance (below one pulse)

Of samples side by side each asks for pulses: s + down of them upwards, down of them downwards.

The counter stands right before each device, behind accumulators and fast arrays; nothing changes.
Of a group of devices the requests are counted, not what its devices pass on to each other.
"""

from __future__ import annotations

from hw_models.description import Hardware
from hw_models.formula import Formula
from hw_models.piece import Piece
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_device import Device
from hw_models.plasticity_group import DeviceGroup
from pcsim.substrate import Memory
from pcsim.substrate.effect import DOWN

PREFIX = "counted_"
"""Names of the counters begin so."""


def with_counters(hardware: Hardware, *, side_by_side: bool = False) -> Hardware | None:
    """Return a chip with counters, or None where no device is written by pulses.

    `side_by_side`: several samples are shown at once, each of which writes.
    """
    pieces: dict[str, Piece] = {}
    gathered = not side_by_side
    for name, piece in hardware.pieces.items():
        asked = f"abs(s + {DOWN}) + {DOWN}" if piece.each_sample and not gathered else "abs(s)"
        gathered |= piece.requests == "gathers"
        if quantum := _quantum(piece):
            pieces[f"{PREFIX}{name}"] = Formula(
                site="write",
                becomes="s",
                constants={"dw": quantum},
                memory={
                    "pulses": Memory(update=f"pulses + ({asked})/dw"),
                    "touched": Memory(update=f"touched + clip(({asked})/dw, 0, 1)"),
                },
                about="counts pulses",
                before=name,
            )
        pieces[name] = piece
    if len(pieces) == len(hardware.pieces):
        return None
    return hardware.model_copy(update={"pieces": pieces})


def _quantum(piece: Piece) -> float:
    """Return the weight of one pulse of a device that is written by pulses, else 0."""
    if isinstance(piece, DeviceGroup):
        return piece.quantum if piece.device.pulsed else 0.0
    device = piece.device if isinstance(piece, DevicePair | FastArray) else piece
    return device.quantum if isinstance(device, Device) and device.pulsed else 0.0
