"""Devices that are known here by a few published numbers alone.

What a source does not give is not made up: it is ideal here, and `about` says so. A verdict on such
a preset is about the numbers that are there.
"""

from __future__ import annotations

from hw_models.description import Hardware
from hw_models.plasticity import ConstantDevice
from hw_models.quantize import ConductancePair

EMERGING: tuple[Hardware, ...] = (
    Hardware(
        name="sot_mram",
        about="magnetic tunnel junctions (SOT-MRAM), two states each, pairs of them: weights of "
        "three values, 10 % spread between devices; write noise of 0.1 % and stochastic switching "
        "are left out",
        sources=(
            "wafer-scale SOT-MRAM for analog crossbars, arXiv:2510.25853 (2025): tunnel "
            "magnetoresistance 150 %, spread between devices 10 %",
            "assumption: a weight is a pair, which the source leaves open",
        ),
        pieces={"junctions": ConductancePair(levels=2, on_off=2.5, spread=0.1)},
    ),
    Hardware(
        name="fefet",
        about="ferroelectric transistor, 32 states, up and down steps alike; what the abstract of "
        "the source does not give (curvature, spread, noise) is ideal",
        sources=(
            "Jerry et al., IEDM 2017, 6.2, ferroelectric FET analog synapse: 5 bit, symmetric "
            "potentiation and depression, 45 times between the ends, 75 ns pulses",
            "assumption: steps of equal size, weight zero in the middle",
        ),
        pieces={"device": ConstantDevice(dw_min=2 / 31)},
    ),
    Hardware(
        name="ecram_protonic",
        about="protonic electrochemical memory on CMOS, 300 states, up and down steps alike; "
        "spread and noise (of cycles: below 1 %) are left out",
        sources=(
            "Cui et al., Nature Electronics 6, 292 (2023), CMOS-compatible electrochemical "
            "synaptic transistor arrays: 300 states (extended data figure 3)",
            "assumption: steps of equal size, weight zero in the middle",
        ),
        pieces={"device": ConstantDevice(dw_min=2 / 299)},
    ),
)
"""Presets with a part of their numbers."""
