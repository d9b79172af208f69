"""The measured cells as a chip file: what a thousand chips of the native engine then have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pcsim.spice.cells.characterize import Measured
from pcsim.spice.cells.library import TRANSISTORS, Sizes

Pieces = dict[str, dict[str, Any]]


def pieces(measured: Mapping[str, Measured], tau_x: float, fan_in: int) -> Pieces:
    """Return the pieces of a chip made of such cells; `fan_in`: synapses of a unit, with bias.

    Offsets of a synapse's inputs and output add up on the dendrite: o_a·w with |w| = 1, and the
    rest of each cell. The offset of errors is that of a bias, whose rate is 1: o_a and the output
    of its learning cell, since a chip's biases have no learning multiplier.
    """
    forward, learning = measured["multiplier"], measured["learning"]
    load, buffer = measured["transconductor"], measured["buffer"]
    cell = forward.spread("offset_a") ** 2 + forward.spread("offset_out") ** 2
    sum_of_cells = (fan_in * cell + load.spread("offset") ** 2) ** 0.5
    bias = (learning.spread("offset_a") ** 2 + learning.spread("offset_out") ** 2) ** 0.5
    # One multiplier per unit of the layer below, and its interneuron's offset through a weight of 1
    back = (cell + buffer.spread("offset") ** 2 + load.spread("offset") ** 2) ** 0.5
    return {
        "learning": {
            "kind": "learning_multiplier",
            "offset": _digits(learning.mean("offset_out")),
            "offset_spread": _digits(min(learning.spread("offset_out"), 10.0)),
            "gain_error": _digits(learning.mean("gain") - 1),
            "gain_spread": _digits(learning.spread("gain")),
            "limit": _digits(learning.typical["limit"]),
        },
        "error_offset": {
            "kind": "offset",
            "of": "error",
            "sigma": _digits(bias),
        },
        "product_offset": {"kind": "offset", "of": "product", "sigma": _digits(sum_of_cells)},
        "feedback_offset": {"kind": "offset", "of": "feedback", "sigma": _digits(back)},
        "weight_gain": {
            "kind": "mismatch",
            "of": "weight_gain",
            "sigma": _digits(forward.spread("gain")),
            "law": "normal",
        },
        "weight_offset": {
            "kind": "programming_error",
            "coefficients": [_digits(forward.spread("offset_b"))],
            "devices": "single",
        },
        "soma": {"kind": "mismatch", "of": "tau_x", "sigma": _digits(load.spread("gain"))},
        "noise": {
            "kind": "coloured_noise",
            "where": "product",
            "sigma": _digits(forward.typical["noise"]),
            "tau_c": _digits(min(forward.typical["tau"], tau_x)),
        },
        "leak": {"kind": "retention", "lifetime": _digits(learning.typical["lifetime"])},
    }


def sources(
    measured: Mapping[str, Measured], process: str, sizes: Sizes, draws: int, simulator: str
) -> list[str]:
    """Return where the numbers come from, with currents and corners."""
    first = (
        f"pcsim spice characterize on {process} with {simulator}: {draws} draws of mismatch, "
        f"transistors {sizes.width:g} um x {sizes.length:g} um, {sizes.current:g} A, "
        f"{sizes.unit:g} V per unit"
    )
    lines = [first]
    for cell, found in measured.items():
        parts = [f"{found.typical['supply']:.3g} A from the supply"]
        if "tau" in found.typical:
            parts.append(f"time constant {found.typical['tau']:.3g} s")
        if found.corners:
            gains = [corner["gain"] for corner in found.corners.values()]
            parts.append(f"gain {min(gains):.3f} to {max(gains):.3f} over corners")
        kind = "multiplier" if cell == "learning" else cell
        lines.append(f"{cell} ({TRANSISTORS[kind]} transistors): {', '.join(parts)}")
    return lines


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
