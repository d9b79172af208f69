"""The uncertain entries of a cost: each has a low, a typical and a high value, and a source.

Where nobody has measured a number, its source says *assumption*. Replace any entry by that of your
technology.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pcsim.errors import ConfigError
from pcsim.frozen import Frozen, NotNegative

Mode = Literal["clocked", "continuous", "digital"]
Level = Literal["low", "typical", "high"]


class Entry(Frozen):
    """One uncertain number of a table, in SI units."""

    low: NotNegative
    typical: NotNegative
    high: NotNegative
    source: str

    def at(self, level: Level) -> float:
        """Return its value at a level."""
        return float(getattr(self, level))


def entry(low: float, typical: float, high: float, source: str) -> Entry:
    """Return an entry."""
    if not low <= typical <= high:
        raise ConfigError(f"cost: {low:g}, {typical:g}, {high:g} must rise: low, typical, high")
    return Entry(low=low, typical=typical, high=high, source=source)


UNNAMED_TAU = entry(0.1e-6, 1e-6, 10e-6, "assumption: the chip's own is not known")
"""Time constant of a neuron of a device that is no whole chip."""
_NONE = Entry(low=0, typical=0, high=0, source="not there in this mode")
_ISAAC = "ISAAC (Shafiee et al., ISCA 2016)"


class CostTable(Frozen):
    """Joules, seconds and watts per operation; replace any of them by those of your technology."""

    name: str
    mode: Mode
    mac: Entry = _NONE
    """One weight in one product of 8 bits, J."""
    input: Entry = _NONE
    """One 8-bit number at one input line of one array, J."""
    output: Entry = _NONE
    """One 8-bit number at one output of one array, J."""
    write: Entry = _NONE
    """One programming pulse of one device, J."""
    pulses: Entry = _NONE
    """Pulses per device and batch, on average (digital: writes per occasion)."""
    state: Entry = _NONE
    """One update of one neuron, J."""
    t_read: Entry = _NONE
    """One product of an array with a vector, s."""
    t_write: Entry = _NONE
    """One write phase of an array, s."""
    neuron: Entry = _NONE
    """Bias of one neuron with its error circuit, all the time, W."""
    weight: Entry = _NONE
    """Bias of one synapse (both products and plasticity), all the time, W."""
    tau_x: Entry = _NONE
    """Time constant of a neuron, s."""

    @property
    def entries(self) -> dict[str, Entry]:
        """All entries that are there, by name."""
        named = {n: getattr(self, n) for n in type(self).model_fields if n not in ("name", "mode")}
        return {name: one for name, one in named.items() if one.high}


_PULSES = entry(0.1, 1.0, 10.0, "assumption: a device gets about one pulse per batch")
_FEW_BITS = entry(0.05e-12, 1e-12, 10e-12, "assumption: a few bits of static memory")
PULSE = {
    "pcm": entry(1e-12, 20e-12, 200e-12, "assumption: 0.1–1 mA at 1–2 V for 10–100 ns, melting"),
    "reram": entry(0.1e-12, 5e-12, 50e-12, "assumption: 50 µA at 1 V for 100 ns"),
    "ecram": entry(0.01e-12, 0.5e-12, 10e-12, "assumption: charge of a small ion channel at 1–5 V"),
    "sot_mram": entry(
        0.1e-12, 0.35e-12, 1e-12, "350 fJ per write (arXiv:2510.25853); the range is an assumption"
    ),
    "dynapse": _FEW_BITS,
    "brainscales": _FEW_BITS,
    "cmos": entry(1e-15, 0.02e-12, 0.5e-12, "assumption: charge packets of a capacitor cell"),
    "fefet": entry(
        6e-15, 60e-15, 0.6e-12, "assumption: 20 µC/cm² switched at 3 V on 0.01, 0.1 and 1 µm²"
    ),
    "sonos": entry(0.01e-12, 0.1e-12, 10e-12, "assumption: 1 fF at 10 V, and its charge pump"),
    "loihi": _FEW_BITS,
    "spinnaker": _FEW_BITS,
    "photonic": entry(0.05e-12, 1e-12, 10e-12, "assumption: a word of memory behind a heater"),
}
"""Energy of a pulse by technology, the beginning of a preset's name."""
PULSE["rram"] = PULSE["reram"]
UNKNOWN = PULSE["reram"].model_copy(update={"source": "assumption: as of resistive memory"})
"""Energy of a pulse of devices that are only specified, or are a person's own."""
HELD = {"photonic": entry(0.1e-3, 1e-3, 10e-3, "assumption: the heater of a ring")}
"""Power that holds a weight, by technology, where it is no transistor's bias."""
CLOCKED = CostTable(
    name="clocked array, 8-bit periphery",
    mode="clocked",
    mac=entry(
        6e-15,
        58.6e-15,
        200e-15,
        f"{_ISAAC}: 128 × 128 cells at 0.3 mW; a cycle of 100 ns is one input bit on two-bit "
        "cells, so 8 bits are 8 cycles of 4 cells; the range is an assumption",
    ),
    input=entry(
        0.8e-12,
        3.1e-12,
        6.2e-12,
        f"{_ISAAC}: 4 mW for 1024 one-bit drivers, 8 cycles; the range is an assumption",
    ),
    output=entry(
        10e-12,
        50e-12,
        100e-12,
        f"{_ISAAC}: 8-bit converter, 2 mW at 1.28 GS/s, 4 columns in 8 cycles are 32 conversions; "
        "the range is an assumption",
    ),
    write=PULSE["reram"],
    pulses=_PULSES,
    state=entry(
        0.1e-12,
        1e-12,
        5e-12,
        "assumption: a few additions, 0.03–0.9 pJ in 45 nm each (Horowitz, ISSCC 2014)",
    ),
    t_read=entry(
        133e-9,
        521e-9,
        800e-9,
        "8-bit products of 64 cores of 256 × 256 at 63.1 and 16.1 TOPS (one and four phases; Le "
        f"Gallo et al., Nature Electronics 2023); high: 8 cycles of {_ISAAC}",
    ),
    t_write=entry(10e-9, 100e-9, 1e-6, "assumption: one pulse"),
)
CONTINUOUS = CostTable(
    name="continuous chip, static bias",
    mode="continuous",
    write=PULSE["reram"],
    pulses=_PULSES,
    neuron=entry(1e-9, 20e-9, 1e-6, "assumption: ten branches of 1 nA at 1.8 V; 1 µW: 50 nA each"),
    weight=entry(0.05e-9, 0.5e-9, 50e-9, "assumption: three branches of 0.1 nA at 1.8 V"),
)
DIGITAL = CostTable(
    name="digital, 8-bit integers, 7–14 nm",
    mode="digital",
    mac=entry(
        0.2e-12,
        1.2e-12,
        2.5e-12,
        "multiplication 0.07 pJ, 32-bit addition 0.03 pJ, 8 of the 64 bits of an 8.5 pJ access to "
        "32 kB in 7 nm (Jouppi et al., ISCA 2021); low: weights are reused, high: 14 nm and 1 MB: "
        "assumptions",
    ),
    write=entry(
        2e-12,
        4.3e-12,
        10e-12,
        "16 bits read and written, 8.5 pJ per 64 (Jouppi et al., ISCA 2021); the range is an "
        "assumption",
    ),
    pulses=entry(1, 1, 1, "by definition: every change is written"),
    state=entry(0.1e-12, 1e-12, 5e-12, "assumption: a few operations and a register file"),
    t_read=entry(10e-9, 100e-9, 1e-6, "assumption: depends on the number of units alone"),
    t_write=entry(10e-9, 100e-9, 1e-6, "assumption: as a read"),
)


def tables_for(preset: str) -> tuple[CostTable, CostTable, CostTable]:
    """Return the clocked, continuous and digital tables with the pulse of a preset's technology."""
    pulse = _of_technology(PULSE, preset, UNKNOWN)
    held = _of_technology(HELD, preset, CONTINUOUS.weight)
    clocked = CLOCKED.model_copy(update={"write": pulse})
    continuous = CONTINUOUS.model_copy(update={"write": pulse, "weight": held})
    return clocked, continuous, DIGITAL


def _of_technology(known: Mapping[str, Entry], preset: str, other: Entry) -> Entry:
    return next((one for name, one in known.items() if preset.startswith(name)), other)


def time_constant(tau: float, assumed: str = "", source: str = "of the chip's source") -> Entry:
    """Return a time constant as an entry; one that is assumed may be ten times off either way."""
    if assumed:
        return entry(tau / 10, tau, 10 * tau, f"assumption: {assumed}")
    return entry(tau, tau, tau, source)
