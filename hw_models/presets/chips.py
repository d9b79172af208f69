"""Whole chips: the devices of the other files with periphery, a clock, and what is on chip.

The periphery of the training devices is the one that their own source simulates them with; sums are
in units of the network, weights ±1 and inputs ±1, as there.
"""

from __future__ import annotations

from typing import Literal

from hw_models.converters import Converter
from hw_models.description import Hardware
from hw_models.noise import ReadNoise
from hw_models.piece import Piece
from hw_models.plasticity_device import Device
from hw_models.plasticity_rules import UpdateAccumulator
from hw_models.presets.programmed import PROGRAMMED
from hw_models.presets.substrates import SUBSTRATES
from hw_models.presets.training import TRAINING
from hw_models.whole_chip import WholeChip

CYCLE = 400e-9
"""Seconds of one cycle of an array: read forwards and backwards, converted, written."""
_CYCLE = f"one cycle of {CYCLE * 1e9:g} ns reads an array in both directions and writes it"
_TAU = "somas of 1 us: 2.5 cycles"
_ERRORS = "errors drive the array backwards without a converter of their own"
_IO = (
    "periphery as IBM's aihwkit simulates these devices: 7-bit DAC, 9-bit ADC over ±20, output "
    "noise 0.1, ranges of errors that follow their largest (Rasch et al., AICAS 2021)"
)
_PROGRAMMED_IO = "periphery as usual in IBM's aihwkit: 8-bit DAC and ADC, ±10, output noise 0.04"


def periphery(dac: int, adc: int, bound: float, noise: float) -> dict[str, Piece]:
    """Return drivers of the rates, noise of the sums, and converters, at the clock of the array."""
    sums: dict[str, Piece] = {"dac": Converter(where="rate", bits=dac, t_sample=CYCLE)}
    ways: tuple[tuple[Literal["product", "feedback"], str], ...]
    ways = (("product", ""), ("feedback", "_back"))
    for where, ending in ways:
        auto = where == "feedback"
        sums[f"noise{ending}"] = ReadNoise(
            where=where, sigma=noise, auto_range=auto, t_sample=CYCLE
        )
        sums[f"adc{ending}"] = Converter(
            where=where, bits=adc, range=bound, auto_range=auto, t_sample=CYCLE
        )
    return sums


def _clocked(piece: Piece) -> Piece:
    fields = {name: CYCLE for name in ("t_write", "t_sample") if name in type(piece).model_fields}
    return type(piece).model_validate(piece.model_dump() | fields)


def _trained(device: Hardware) -> Hardware:
    """Return the chip with arrays of one training device."""
    pieces = {name: _clocked(piece) for name, piece in device.pieces.items()}
    return Hardware(
        name=f"{device.name}_chip",
        about=f"whole chip, arrays of {device.name} ({device.about}) with converters and noise",
        sources=(*device.sources, _IO),
        pieces=pieces | periphery(7, 9, 20.0, 0.1),
        chip=WholeChip(
            tau_x=1e-6,
            time="clocked",
            learning="on chip",
            not_on_chip=("what is shown, and for how long",),
            assumed=(_CYCLE, _TAU, _ERRORS),
        ),
    )


def _matched(chip: Hardware, weight: float, pulses: int) -> Hardware:
    """Return a chip whose full conductance is `weight`, with sums of so many pulses written."""
    device = chip.pieces["device"]
    assert isinstance(device, Device)
    narrow = type(device).model_validate(device.model_dump() | {"range": weight})
    held = {"accumulator": UpdateAccumulator(threshold=pulses * narrow.quantum)}
    return chip.model_copy(
        update={
            "name": chip.name.replace("_chip", "_matched_chip"),
            "about": f"{chip.about}; full conductance is a weight of {weight:g}, and requests add "
            f"up beside each device until they are {pulses} pulses",
            "pieces": held | {**chip.pieces, "device": narrow},
        }
    )


def _programmed(device: Hardware) -> Hardware:
    """Return the chip with arrays that are programmed by a host that keeps the exact weights."""
    return Hardware(
        name=f"{device.name}_chip",
        about=f"whole chip, {device.about}, with converters and noise; a host has exact weights",
        sources=(*device.sources, _PROGRAMMED_IO),
        pieces={name: _clocked(piece) for name, piece in device.pieces.items()}
        | periphery(8, 8, 10.0, 0.04),
        chip=WholeChip(
            tau_x=1e-6,
            time="clocked",
            learning="host in the loop",
            hidden_accumulator=True,
            not_on_chip=("plasticity and exact weights", "what is shown, and for how long"),
            assumed=(_CYCLE, _TAU, _ERRORS),
        ),
    )


def _without_host(substrate: Hardware, about: str, time: str) -> Hardware:
    """Return a substrate whose weights are what the array holds, each write rounded at random."""
    weights = substrate.pieces["weights"].model_dump() | {
        "accumulator": False,
        "rounding": "stochastic",
    }
    held = type(substrate.pieces["weights"]).model_validate(weights)
    given = substrate.chip
    assert given is not None
    chip = given.model_copy(
        update={
            "learning": "on chip",
            "hidden_accumulator": False,
            "not_on_chip": ("what is shown, and for how long",),
            "assumed": (*given.assumed, about),
        }
    )
    return substrate.model_copy(
        update={
            "name": f"{substrate.name}_on_chip",
            "about": f"{substrate.about}; no host: {time}",
            "pieces": {**substrate.pieces, "weights": held},
            "chip": chip,
        }
    )


_ARRAYS = ("idealized", "gokmen_vlasov")
"""Specifications of devices that nobody has built: no chips."""
_BY_NAME = {one.name: one for one in SUBSTRATES}

_TRAINED = {one.name: _trained(one) for one in TRAINING if one.name not in _ARRAYS}

CHIPS: tuple[Hardware, ...] = (
    *_TRAINED.values(),
    *(_matched(_TRAINED[name], 0.3, 50) for name in ("reram_sb", "reram_es")),
    *(_programmed(device) for device in PROGRAMMED),
    _without_host(
        _BY_NAME["brainscales2"],
        "its plasticity processors write the 6-bit weights with stochastic rounding",
        "the weights are the 6-bit ones of the synapses",
    ),
    _without_host(
        _BY_NAME["dynapse2"],
        "no such circuit is on DYNAP-SE2: what learning into its four currents would give",
        "the weights are the four currents",
    ),
)
"""Chips with everything that their sources say of them."""
