"""What a remedy changes on a chip: the pieces it adds, or the fields it sets, where it has a place.

Each function gives the changes of `hw_models.description.describe`, or None: no place for it. The
rows that use them are in `hw_models.remedies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import sqrt
from typing import Any

from hw_models.converters import Converter
from hw_models.description import Hardware, describe
from hw_models.piece import Piece
from hw_models.plasticity import LinearDevice
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_device import Device
from hw_models.plasticity_group import DeviceGroup
from hw_models.plasticity_multiplier import LearningMultiplier
from hw_models.plasticity_rules import UpdateAccumulator
from hw_models.quantize import ConductancePair, QuantizedWeights

Changes = dict[str, dict[str, Any]]
"""Pieces to add (with their kind) or to change (fields alone), by name."""


def _of(hardware: Hardware, kind: type[Piece]) -> Iterable[tuple[str, Any]]:
    return ((name, piece) for name, piece in hardware.pieces.items() if isinstance(piece, kind))


def _devices(hardware: Hardware) -> Iterable[tuple[str, Device, tuple[str, ...]]]:
    """Go through the training devices: name of the piece, device, and where its fields stand."""
    for name, piece in hardware.pieces.items():
        if isinstance(piece, Device):
            yield name, piece, ()
        elif isinstance(piece, DevicePair):
            yield name, piece.device, ("device",)


def _changed(place: tuple[str, ...], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {place[0]: dict(fields)} if place else dict(fields)


def accumulated(pulses: int) -> Callable[[Hardware], Changes | None]:
    """Return the accumulator that writes `pulses` pulses of the first pulsed device at once."""

    def changes(hardware: Hardware) -> Changes | None:
        pulsed = [device for _, device, _ in _devices(hardware) if device.pulsed]
        if not pulsed or any(_of(hardware, UpdateAccumulator)) or any(_of(hardware, FastArray)):
            return None
        made = UpdateAccumulator(threshold=pulses * pulsed[0].quantum)
        return {"accumulator": made.model_dump(mode="json")}

    return changes


def _ranges(hardware: Hardware) -> Iterable[tuple[str, float, tuple[str, ...]]]:
    """Go through what has a full conductance or a largest weight: piece, that weight, place."""
    for name, device, place in _devices(hardware):
        yield name, device.range, place
    for name, piece in hardware.pieces.items():
        if isinstance(piece, QuantizedWeights | ConductancePair):
            yield name, piece.range, ()


def ranged(factor: float) -> Callable[[Hardware], Changes | None]:
    """Return devices, or words, with another weight at full conductance."""

    def changes(hardware: Hardware) -> Changes | None:
        found = {
            name: _changed(place, {"range": factor * full})
            for name, full, place in _ranges(hardware)
        }
        return found or None

    return changes


def narrowed(weight: float) -> Callable[[Hardware], Changes | None]:
    """Return devices, or words, whose largest weight is `weight` instead of a larger one."""

    def changes(hardware: Hardware) -> Changes | None:
        found = {
            name: _changed(place, {"range": weight})
            for name, full, place in _ranges(hardware)
            if full > weight
        }
        return found or None

    return changes


def matched(weight: float, pulses: int) -> Callable[[Hardware], Changes | None]:
    """Return devices whose full conductance is `weight`, behind an accumulator of `pulses`."""

    def changes(hardware: Hardware) -> Changes | None:
        narrow = narrowed(weight)(hardware)
        if narrow is None:
            return None
        held = accumulated(pulses)(describe(hardware, narrow))
        return held and {**held, **narrow}

    return changes


def on_multiplier(fields: Mapping[str, Any]) -> Callable[[Hardware], Changes | None]:
    """Return learning multipliers with other fields, where none of these is in use."""

    def changes(hardware: Hardware) -> Changes | None:
        found: Changes = {
            name: dict(fields)
            for name, piece in _of(hardware, LearningMultiplier)
            if not any(getattr(piece, field) for field in fields)
        }
        return found or None

    return changes


def buffered(hardware: Hardware) -> Changes | None:
    """Return the fast array with a buffer that releases whole pulses of the slow devices."""
    fast = transferred(hardware)
    if fast is None:
        return None
    device = next(device for _, device in _of(hardware, LinearDevice))
    fast["transfer"] |= {"in_turn": True}
    buffer = UpdateAccumulator(threshold=device.quantum)
    return {**fast, "buffer": buffer.model_dump(mode="json")}


def chopped(*, follow: bool) -> Callable[[Hardware], Changes | None]:
    """Return the buffered fast array, which changes its sign after every ten transfers."""

    def changes(hardware: Hardware) -> Changes | None:
        made = buffered(hardware)
        if made is not None:
            made["transfer"] |= {"chop": 10, "follow_reference": follow}
        return made

    return changes


def several(count: int) -> Callable[[Hardware], Changes | None]:
    """Return one device that behaves like the mean of several which are written in turn.

    A pulse goes to one of them: steps are `count` times finer and their relative noise the same;
    what differs between devices averages out, and so does what is seen of a write.
    """
    spreads = ("dw_spread", "imbalance_spread", "w_max_spread", "w_min_spread")

    def changes(hardware: Hardware) -> Changes | None:
        found = {}
        for name, device, place in _devices(hardware):
            if not device.dw_min:
                continue
            finer = {field: getattr(device, field) / sqrt(count) for field in spreads}
            finer |= {"dw_min": device.dw_min / count}
            if device.write_noise:
                finer["write_noise"] = device.write_noise * sqrt(count)
            found[name] = _changed(place, finer)
        return found or None

    return changes


def paired(count: int) -> Callable[[Hardware], Changes | None]:
    """Return weights of several pairs of conductances instead of one."""

    def changes(hardware: Hardware) -> Changes | None:
        found: Changes = {
            name: {"pairs": count}
            for name, piece in _of(hardware, ConductancePair)
            if piece.pairs == 1
        }
        return found or None

    return changes


def grouped(**fields: Any) -> Callable[[Hardware], Changes | None]:
    """Return groups of the devices in their place; their clock, name and place stay."""

    def changes(hardware: Hardware) -> Changes | None:
        found = {}
        for name, device, place in _devices(hardware):
            if place or not device.dw_min:
                continue
            outside = {"t_write": device.t_write, "before": device.before, "after": device.after}
            inner = device.model_dump() | dict.fromkeys(outside)
            made = DeviceGroup.model_validate({"device": inner} | outside | fields)
            found[name] = made.model_dump(mode="json")
        return found or None

    return changes


def transferred(hardware: Hardware) -> Changes | None:
    """Return a fast array of the same devices, read relative to their symmetry points."""
    for _, device in _of(hardware, LinearDevice):
        if any(_of(hardware, FastArray)) or not (device.gamma_up > 0 and device.gamma_down > 0):
            return None
        fast = device.model_dump(mode="json")
        fast |= {"reference": "symmetry", "t_write": None, "write_noise": 0.0}
        fast |= {"before": None, "after": None}
        inner = LinearDevice.model_validate(fast)
        made = FastArray(device=inner, rate=0.1, every=10, t_write=device.t_write)
        return {"transfer": made.model_dump(mode="json")}
    return None


def zero_shifted(hardware: Hardware) -> Changes | None:
    """Return devices that are read relative to their symmetry points."""
    found: Changes = {
        name: {"reference": "symmetry"}
        for name, device in _of(hardware, LinearDevice)
        if device.reference == "zero" and device.gamma_up > 0 and device.gamma_down > 0
    }
    return found or None


def hidden_weight(hardware: Hardware) -> Changes | None:
    """Return quantized weights with an exact accumulator behind them."""
    found: Changes = {
        name: {"accumulator": True, "rounding": "nearest", "t_write": None}
        for name, piece in _of(hardware, QuantizedWeights)
        if not piece.accumulator
    }
    return found or None


def stochastic_writes(hardware: Hardware) -> Changes | None:
    """Return quantized weights whose writes are rounded at random."""
    found: Changes = {
        name: {"rounding": "stochastic"}
        for name, piece in _of(hardware, QuantizedWeights)
        if not piece.accumulator and piece.rounding == "nearest"
    }
    return found or None


def dithered(hardware: Hardware) -> Changes | None:
    """Return converters with dither."""
    found: Changes = {
        name: {"dither": True} for name, piece in _of(hardware, Converter) if not piece.dither
    }
    return found or None
