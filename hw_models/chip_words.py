"""A chip in words: what its pieces do, and what was left ideal although it may matter."""

from __future__ import annotations

from collections.abc import Iterator

from hw_models.description import Hardware
from hw_models.order import order_words
from hw_models.piece import Piece
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_device import Device
from hw_models.plasticity_group import DeviceGroup
from hw_models.preset_file import value_text
from hw_models.quantize import QuantizedWeights
from hw_models.whole_chip import READ_ONLY, about_chip
from pcsim.fields.pages import is_tag

_KEPT = ("retention", "conductance_drift", "pcm_drift")
_READ = ("membrane", "rate", "error", "product", "feedback", "weight", "output")


def summary(hardware: Hardware) -> Iterator[str]:
    """Yield one line on each piece: where it acts, what it does, with which numbers."""
    number = len(hardware.pieces)
    yield f"{hardware.name}: {hardware.about or 'a chip'} ({number} piece{'s'[: number != 1]})"
    yield from about_chip(hardware)
    yield f"  {order_words(hardware.pieces)}"
    for name, piece in hardware.pieces.items():
        effects = piece.effects(name)
        sites = ", ".join(dict.fromkeys(effect.site for effect in effects))
        about = "; ".join(dict.fromkeys(effect.about for effect in effects))
        yield f"  {name} ({piece.kind}, at {sites}): {about}"
        if numbers := ", ".join(_set(piece)):
            yield f"    {numbers}"


def _set(piece: Piece) -> Iterator[str]:
    """Yield the fields that differ from their defaults."""
    for name, field in type(piece).model_fields.items():
        value = getattr(piece, name)
        if not is_tag(field) and (field.is_required() or value != field.default):
            yield f"{name} = {value_text(piece, name)}"


def left_ideal(hardware: Hardware) -> Iterator[str]:
    """Yield what was left at a default that may matter, one sentence each."""
    pieces = hardware.pieces
    kinds = {piece.kind for piece in pieces.values()}
    effects = [e for name, piece in pieces.items() for e in piece.effects(name)]
    yield from _weights(hardware)
    yield "biases are ideal: no piece acts on them"
    if not kinds & set(_KEPT):
        yield f"weights are kept for ever: no {', '.join(_KEPT)}"
    if not any(e.noise and e.site in _READ for e in effects):
        yield "reads have no noise (read_noise, array_read_noise)"
    if not any(e.draws for e in effects):
        yield "all units and devices are alike: nothing differs from device to device (mismatch)"
    converted = {e.site for e in effects if "converter" in e.about or "sigma-delta" in e.about}
    for site, other in (("product", "feedback"), ("feedback", "product")):
        if site in converted and other not in converted:
            yield f"the sums at {other} are exact, those at {site} are converted (converter)"
    if not converted & {"product", "feedback"}:
        yield "the sums of the array are exact in both directions (converter)"
    if "learning_multiplier" not in kinds:
        yield "the product e·r of plasticity is exact (learning_multiplier)"
    if not kinds & {"ir_drop", "output_resistance"}:
        yield "wires and drivers have no resistance (ir_drop, output_resistance)"
    if not kinds & {"saturation", "rails"}:
        yield "signals and potentials have no limits (saturation, rails)"
    yield from _clocks(hardware)


def _weights(hardware: Hardware) -> Iterator[str]:
    pieces = hardware.pieces
    for name, piece in pieces.items():
        if isinstance(piece, QuantizedWeights) and piece.accumulator:
            yield (
                f"{name}: weights have a hidden exact accumulator: updates below one level are not "
                "lost (accumulator = false writes into the levels themselves)"
            )
        if piece.kind in READ_ONLY:
            yield f"{name}: what is stored stays exact, only its reads are changed ({piece.kind})"
        if piece.kind == "read_noise" and getattr(piece, "where", "") == "weight":
            batch = getattr(piece, "batch", "shared")
            if batch == "shared":
                yield f'{name}: all samples of a batch see one draw (batch = "independent")'
        device = piece.device if isinstance(piece, DeviceGroup | DevicePair | FastArray) else piece
        if isinstance(device, Device):
            missing = [f for f in ("dw_spread", "cycle_noise") if not getattr(device, f)]
            if missing:
                yield f"{name}: pulses are alike: {' and '.join(missing)} left at 0"
    written = [
        piece
        for piece in pieces.values()
        if isinstance(piece, Device | DeviceGroup | DevicePair)
        or (isinstance(piece, QuantizedWeights) and not piece.accumulator)
    ]
    if not written:
        yield "writes are exact: a stored weight changes by what was asked (linear_device, …)"


def _clocks(hardware: Hardware) -> Iterator[str]:
    for field, word in (("t_sample", "samples"), ("t_write", "writes")):
        names = [
            name
            for name, piece in hardware.pieces.items()
            if field in type(piece).model_fields and getattr(piece, field) is None
            and not (isinstance(piece, QuantizedWeights) and piece.accumulator)
            and not (piece.kind == "retention" and getattr(piece, "per", "") == "second")
        ]  # fmt: skip
        if names:
            yield f"{', '.join(names)}: {word} in every time step of the run ({field} is not set)"
