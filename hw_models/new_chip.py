"""A chip from a few numbers of a data sheet: which pieces they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hw_models.description import Hardware, describe

Pieces = dict[str, dict[str, Any]]
MISMATCHED = ("tau_x", "tau_err", "tau_apical", "tau_inter", "rate_gain", "error_gain")
_OPTIONAL = ("tau_err", "tau_apical", "tau_inter")


def weights(bits: int, accumulator: bool) -> Pieces:
    """Return weights of so many bits, with their sign."""
    fields = {"kind": "quantized_weights", "bits": bits, "accumulator": accumulator}
    return {"weights": fields}


def read_noise(sigma: Any) -> Pieces:
    """Return independent noise of every device at every read, relative to its weight."""
    return {"read_noise": {"kind": "array_read_noise", "sigma": sigma, "reference": "weight"}}


def adc(bits: int, span: float) -> Pieces:
    """Return converters of the sums of the array, in both directions."""
    fields = {"kind": "converter", "bits": bits, "range": span}
    return {
        "adc": {**fields, "where": "product"},
        "adc_back": {**fields, "where": "feedback"},
    }


def dac(bits: int) -> Pieces:
    """Return converters of what is sent into the array: rates, and errors backwards."""
    fields = {"kind": "converter", "bits": bits, "range": 1.0}
    return {"dac": {**fields, "where": "rate"}, "dac_back": {**fields, "where": "error"}}


def mismatch(sigma: Any) -> Pieces:
    """Return the same spread of all time constants, gains and weights, from device to device."""
    fields = {"kind": "mismatch", "sigma": sigma}
    made: Pieces = {
        f"mismatch_{of}": {**fields, "of": of, "optional": of in _OPTIONAL} for of in MISMATCHED
    }
    return {**made, "mismatch_weight": {**fields, "of": "weight_gain"}}


def stuck(fraction: Any) -> Pieces:
    """Return devices that are stuck at zero."""
    return {"stuck": {"kind": "stuck_weights", "fraction": fraction}}


def retention(lifetime: Any) -> Pieces:
    """Return weights that are lost with this lifetime."""
    return {"retention": {"kind": "retention", "lifetime": lifetime}}


def new_chip(base: Hardware, name: str, pieces: Mapping[str, Mapping[str, Any]]) -> Hardware:
    """Return a chip with pieces added; a piece of the base of that name and kind is changed."""
    named: Pieces = {}
    for piece, fields in pieces.items():
        given = base.pieces.get(piece)
        other = given is not None and "kind" in fields and given.kind != fields["kind"]
        named[f"{piece}_added" if other else piece] = dict(fields)
    chip = describe(base, named)
    chip.substrate()
    about = base.about if base.pieces else ""
    return chip.model_copy(update={"name": name, "about": about})
