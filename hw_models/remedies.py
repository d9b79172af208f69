"""The registry of remedies: what may be built around a chip so that it trains after all.

A row says which pieces it adds or changes, as a configuration would write them under
`hardware.pieces`; where it does not apply it gives None. What it costs stands beside it. A remedy
that needs a signal from a controller is not `automatic`: with it, the schedule no longer is.

One more remedy is one more row; `pcsim remedies` tries all rows that apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

from hw_models.converters import Converter
from hw_models.description import Hardware, describe
from hw_models.piece import Piece
from hw_models.plasticity import LinearDevice
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_device import Device
from hw_models.plasticity_multiplier import LearningMultiplier
from hw_models.plasticity_rules import UpdateAccumulator
from hw_models.quantize import QuantizedWeights

Changes = dict[str, dict[str, Any]]
"""Pieces to add (with their kind) or to change (fields alone), by name."""


@dataclass(frozen=True)
class Remedy:
    """One thing that a designer could do."""

    name: str
    about: str
    """What is done, in half a sentence."""
    changes: Callable[[Hardware], Changes | None]
    """What it adds to a chip or changes there; None: the chip has no place for it."""
    devices: float = 0.0
    """Memory devices per weight that it adds (a capacitor or a word beside the array is one)."""
    lines: str = "none"
    """Control lines that it adds."""
    time: str = "none"
    """Time or energy that it adds."""
    automatic: bool = True
    """Whether no controller has to tell the chip when something happens."""
    sources: tuple[str, ...] = ()


def applicable(hardware: Hardware) -> dict[str, tuple[Remedy, Changes]]:
    """Return the remedies that a chip has a place for, with what they would change."""
    found = {remedy.name: (remedy, remedy.changes(hardware)) for remedy in REMEDIES}
    return {name: (remedy, made) for name, (remedy, made) in found.items() if made}


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


def _accumulator(pulses: int) -> Callable[[Hardware], Changes | None]:
    """Return the accumulator that writes `pulses` pulses of the first pulsed device at once."""

    def changes(hardware: Hardware) -> Changes | None:
        pulsed = [device for _, device, _ in _devices(hardware) if device.pulsed]
        if not pulsed or any(_of(hardware, UpdateAccumulator)) or any(_of(hardware, FastArray)):
            return None
        made = UpdateAccumulator(threshold=pulses * pulsed[0].quantum)
        return {"accumulator": made.model_dump(mode="json")}

    return changes


def _range(factor: float) -> Callable[[Hardware], Changes | None]:
    """Return the device with another weight at full conductance."""

    def changes(hardware: Hardware) -> Changes | None:
        found = {
            name: _changed(place, {"range": factor * device.range})
            for name, device, place in _devices(hardware)
        }
        return found or None

    return changes


def _matched(weight: float, pulses: int) -> Callable[[Hardware], Changes | None]:
    """Return devices whose full conductance is `weight`, behind an accumulator of `pulses`."""

    def changes(hardware: Hardware) -> Changes | None:
        narrow = {
            name: _changed(place, {"range": weight})
            for name, device, place in _devices(hardware)
            if device.range > weight
        }
        if not narrow:
            return None
        held = _accumulator(pulses)(describe(hardware, narrow))
        return held and {**held, **narrow}

    return changes


def _on_multiplier(fields: Mapping[str, Any]) -> Callable[[Hardware], Changes | None]:
    """Return learning multipliers with other fields, where none of these is in use."""

    def changes(hardware: Hardware) -> Changes | None:
        found: Changes = {
            name: dict(fields)
            for name, piece in _of(hardware, LearningMultiplier)
            if not any(getattr(piece, field) for field in fields)
        }
        return found or None

    return changes


def _buffered(hardware: Hardware) -> Changes | None:
    """Return the fast array with a buffer that releases whole pulses of the slow devices."""
    fast = _transfer(hardware)
    if fast is None:
        return None
    device = next(device for _, device in _of(hardware, LinearDevice))
    fast["transfer"] |= {"in_turn": True}
    buffer = UpdateAccumulator(threshold=device.quantum)
    return {**fast, "buffer": buffer.model_dump(mode="json")}


def _chopped(*, follow: bool) -> Callable[[Hardware], Changes | None]:
    """Return the buffered fast array, which changes its sign after every ten transfers."""

    def changes(hardware: Hardware) -> Changes | None:
        made = _buffered(hardware)
        if made is not None:
            made["transfer"] |= {"chop": 10, "follow_reference": follow}
        return made

    return changes


def _several(count: int) -> Callable[[Hardware], Changes | None]:
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


def _transfer(hardware: Hardware) -> Changes | None:
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


def _zero_shift(hardware: Hardware) -> Changes | None:
    found: Changes = {
        name: {"reference": "symmetry"}
        for name, device in _of(hardware, LinearDevice)
        if device.reference == "zero" and device.gamma_up > 0 and device.gamma_down > 0
    }
    return found or None


def _hidden_weight(hardware: Hardware) -> Changes | None:
    found: Changes = {
        name: {"accumulator": True, "rounding": "nearest", "t_write": None}
        for name, piece in _of(hardware, QuantizedWeights)
        if not piece.accumulator
    }
    return found or None


def _stochastic_writes(hardware: Hardware) -> Changes | None:
    found: Changes = {
        name: {"rounding": "stochastic"}
        for name, piece in _of(hardware, QuantizedWeights)
        if not piece.accumulator and piece.rounding == "nearest"
    }
    return found or None


def _dither(hardware: Hardware) -> Changes | None:
    found: Changes = {
        name: {"dither": True} for name, piece in _of(hardware, Converter) if not piece.dither
    }
    return found or None


_MIXED = "Nandakumar et al., Frontiers in Neuroscience 14, 406 (2020), mixed-precision training"
_CHOPPED = "Rasch, Carta, Fagbohungbe and Gokmen, Nature Communications 15, 7133 (2024)"
_PERIPHERY = "gain of the periphery"

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        "accumulator",
        "requests add up beside each device; a sum of one pulse is written",
        _accumulator(1),
        devices=1,
        lines="one comparator per weight",
        sources=(_MIXED,),
    ),
    Remedy(
        "accumulator of 10 pulses",
        "requests add up beside each device; a sum of ten pulses is written at once",
        _accumulator(10),
        devices=1,
        lines="one comparator per weight",
        sources=(_MIXED,),
    ),
    Remedy(
        "range doubled",
        "full conductance stands for twice the weight",
        _range(2.0),
        lines=_PERIPHERY,
    ),
    Remedy(
        "range halved",
        "full conductance stands for half the weight: finer steps, nearer bounds",
        _range(0.5),
        lines=_PERIPHERY,
    ),
    Remedy(
        "range matched, accumulator of 50 pulses",
        "full conductance stands for a weight of 0.3, and a sum of fifty pulses is written at once",
        _matched(0.3, 50),
        devices=1,
        lines="gain of the periphery, one comparator per weight",
        sources=(_MIXED,),
    ),
    Remedy(
        "4 devices per weight",
        "pulses go to four devices in turn, which are read together",
        _several(4),
        devices=3,
        lines="one counter per array",
        sources=("Boybat et al., Nature Communications 9, 2514 (2018), multi-memristive synapses",),
    ),
    Remedy(
        "fast array with transfer",
        "a fast array of the same devices takes updates and is transferred every ten writes",
        _transfer,
        devices=2,
        lines="read and write lines of the second array, and its clock",
        time="one read of the fast array in ten writes",
        automatic=False,
        sources=("Gokmen and Haensch, Frontiers in Neuroscience 14, 103 (2020), Tiki-Taka",),
    ),
    Remedy(
        "fast array with buffer",
        "Tiki-Taka v2: columns of the fast array add to a buffer, which writes whole pulses",
        _buffered,
        devices=3,
        lines="read and write lines of the second array, a word per weight, and its clock",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=("Gokmen, Frontiers in Artificial Intelligence 4, 699148 (2021), TTv2",),
    ),
    Remedy(
        "fast array, chopped",
        "the same, whose inputs and output change sign after every ten transfers",
        _chopped(follow=False),
        devices=3,
        lines="as the fast array with buffer, and a sign per column",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=(_CHOPPED,),
    ),
    Remedy(
        "fast array, dynamic reference",
        "AGAD: the same, read relative to the mean of the half period before",
        _chopped(follow=True),
        devices=5,
        lines="as the chopped fast array, and two more words per weight",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=(_CHOPPED,),
    ),
    Remedy(
        "chopped multiplier",
        "the learning multiplier changes the sign of its inputs and output every 2 s",
        _on_multiplier({"chop": 4.0}),
        lines="a clock that runs by itself, switches at each multiplier",
        sources=("Enz and Temes, Proceedings of the IEEE 84, 1584 (1996), autozeroing, chopping",),
    ),
    Remedy(
        "leaking weights",
        "a leak of 1 % pulls each weight to zero, so that offsets of plasticity stay bounded",
        _on_multiplier({"leak": 0.01}),
        lines="a resistor per weight",
    ),
    Remedy(
        "zero shifted to the symmetry point",
        "weight zero is where up and down steps are equal, stored in a reference device",
        _zero_shift,
        devices=1,
        time="programming of the references before training",
        sources=("Kim et al., arXiv:1907.10228 (2019), zero-shifting technique",),
    ),
    Remedy(
        "hidden weight",
        "updates add up in high precision beside the array, which is read rounded",
        _hidden_weight,
        devices=1,
        lines="a word of memory per weight, with its adder",
        sources=("Courbariaux et al., NeurIPS 2015, BinaryConnect",),
    ),
    Remedy(
        "stochastic rounding",
        "writes are rounded at random, so that small ones count in the mean",
        _stochastic_writes,
        lines="a random bit source per row",
        sources=("Gupta et al., ICML 2015, limited numerical precision",),
    ),
    Remedy(
        "dithered converters",
        "a uniform dither is added before each converter and taken off behind it",
        _dither,
        lines="a dither source per converter",
        sources=("Lipshitz et al., Journal of the AES 40, 355 (1992), quantization and dither",),
    ),
)
