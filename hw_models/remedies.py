"""The registry of remedies: what may be built around a chip so that it trains after all.

A row says which pieces it adds or changes, as a configuration would write them under
`hardware.pieces`; where it does not apply it gives None. What it costs stands beside it. A remedy
that needs a signal from a controller is not `automatic`: with it, the schedule no longer is.

One more remedy is one more row; `pcsim remedies` tries all rows that apply.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hw_models import remedy_changes
from hw_models.description import Hardware
from hw_models.remedy_changes import Changes


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


_MIXED = "Nandakumar et al., Frontiers in Neuroscience 14, 406 (2020), mixed-precision training"
_CHOPPED = "Rasch, Carta, Fagbohungbe and Gokmen, Nature Communications 15, 7133 (2024)"
_PERIPHERY = "gain of the periphery"
_COMPARATOR = "one comparator per weight"

REMEDIES: tuple[Remedy, ...] = (
    Remedy(
        "accumulator",
        "requests add up beside each device; a sum of one pulse is written",
        remedy_changes.accumulated(1),
        devices=1,
        lines=_COMPARATOR,
        sources=(_MIXED,),
    ),
    Remedy(
        "accumulator of 10 pulses",
        "requests add up beside each device; a sum of ten pulses is written at once",
        remedy_changes.accumulated(10),
        devices=1,
        lines=_COMPARATOR,
        sources=(_MIXED,),
    ),
    Remedy(
        "range doubled",
        "the largest conductance or word stands for twice the weight",
        remedy_changes.ranged(2.0),
        lines=_PERIPHERY,
    ),
    Remedy(
        "range halved",
        "the largest conductance or word is half the weight: finer steps, nearer bounds",
        remedy_changes.ranged(0.5),
        lines=_PERIPHERY,
    ),
    Remedy(
        "range matched",
        "the largest conductance or word stands for a weight of 0.3",
        remedy_changes.narrowed(0.3),
        lines=_PERIPHERY,
    ),
    Remedy(
        "range matched, accumulator",
        "full conductance stands for a weight of 0.3, and a sum of one pulse is written",
        remedy_changes.matched(0.3, 1),
        devices=1,
        lines=f"{_PERIPHERY}, {_COMPARATOR}",
        sources=(_MIXED,),
    ),
    Remedy(
        "range matched, accumulator of 50 pulses",
        "full conductance stands for a weight of 0.3, and a sum of fifty pulses is written at once",
        remedy_changes.matched(0.3, 50),
        devices=1,
        lines=f"{_PERIPHERY}, {_COMPARATOR}",
        sources=(_MIXED,),
    ),
    Remedy(
        "4 devices per weight",
        "pulses go to four devices in turn, which are read together",
        remedy_changes.several(4),
        devices=3,
        lines="one counter per array",
        sources=("Boybat et al., Nature Communications 9, 2514 (2018), multi-memristive synapses",),
    ),
    Remedy(
        "4 pairs per weight",
        "four pairs of conductances fill one after the other, and are read together",
        remedy_changes.paired(4),
        devices=6,
        lines="write lines of all pairs",
        sources=("Boybat et al., Nature Communications 9, 2514 (2018), multi-memristive synapses",),
    ),
    Remedy(
        "two significances, carried",
        "a device of a third of the weight takes updates; after 1000 writes the other takes over",
        remedy_changes.grouped(significances=(1.0, 1 / 3), scheme="carry", every=1000),
        devices=1,
        lines="read, write and erase lines of both devices, and a controller",
        time="one read and one write of the array in 1000 writes",
        automatic=False,
        sources=("Ambrogio et al., Nature 558, 60 (2018), conductances of two significances",),
    ),
    Remedy(
        "residual learning over three tiles",
        "each tile learns at a quarter of the weight what those before it leave",
        remedy_changes.grouped(significances=(1.0, 0.25, 0.0625), scheme="residual", every=10),
        devices=2,
        lines="read and write lines of all tiles, and a controller",
        time="one read of the last tile in ten writes, of the second in a hundred",
        automatic=False,
        sources=("Li, Wu, Liu, Gokmen and Chen, arXiv:2510.02516 (2025), multi-tile residuals",),
    ),
    Remedy(
        "fast array with transfer",
        "a fast array of the same devices takes updates and is transferred every ten writes",
        remedy_changes.transferred,
        devices=2,
        lines="read and write lines of the second array, and its clock",
        time="one read of the fast array in ten writes",
        automatic=False,
        sources=("Gokmen and Haensch, Frontiers in Neuroscience 14, 103 (2020), Tiki-Taka",),
    ),
    Remedy(
        "fast array with buffer",
        "Tiki-Taka v2: columns of the fast array add to a buffer, which writes whole pulses",
        remedy_changes.buffered,
        devices=3,
        lines="read and write lines of the second array, a word per weight, and its clock",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=("Gokmen, Frontiers in Artificial Intelligence 4, 699148 (2021), TTv2",),
    ),
    Remedy(
        "fast array, chopped",
        "the same, whose inputs and output change sign after every ten transfers",
        remedy_changes.chopped(follow=False),
        devices=3,
        lines="as the fast array with buffer, and a sign per column",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=(_CHOPPED,),
    ),
    Remedy(
        "fast array, dynamic reference",
        "AGAD: the same, read relative to the mean of the half period before",
        remedy_changes.chopped(follow=True),
        devices=5,
        lines="as the chopped fast array, and two more words per weight",
        time="one read of a column of the fast array in ten writes",
        automatic=False,
        sources=(_CHOPPED,),
    ),
    Remedy(
        "chopped multiplier",
        "the learning multiplier changes the sign of its inputs and output every 2 s",
        remedy_changes.on_multiplier({"chop": 4.0}),
        lines="a clock that runs by itself, switches at each multiplier",
        sources=("Enz and Temes, Proceedings of the IEEE 84, 1584 (1996), autozeroing, chopping",),
    ),
    Remedy(
        "leaking weights",
        "a leak of 1 % pulls each weight to zero, so that offsets of plasticity stay bounded",
        remedy_changes.on_multiplier({"leak": 0.01}),
        lines="a resistor per weight",
    ),
    Remedy(
        "zero shifted to the symmetry point",
        "weight zero is where up and down steps are equal, stored in a reference device",
        remedy_changes.zero_shifted,
        devices=1,
        time="programming of the references before training",
        sources=("Kim et al., arXiv:1907.10228 (2019), zero-shifting technique",),
    ),
    Remedy(
        "hidden weight",
        "updates add up in high precision beside the array, which is read rounded",
        remedy_changes.hidden_weight,
        devices=1,
        lines="a word of memory per weight, with its adder",
        sources=("Courbariaux et al., NeurIPS 2015, BinaryConnect",),
    ),
    Remedy(
        "stochastic rounding",
        "writes are rounded at random, so that small ones count in the mean",
        remedy_changes.stochastic_writes,
        lines="a random bit source per row",
        sources=("Gupta et al., ICML 2015, limited numerical precision",),
    ),
    Remedy(
        "dithered converters",
        "a uniform dither is added before each converter and taken off behind it",
        remedy_changes.dithered,
        lines="a dither source per converter",
        sources=("Lipshitz et al., Journal of the AES 40, 355 (1992), quantization and dither",),
    ),
)
