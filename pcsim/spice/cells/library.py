"""Cells of subthreshold transistors, as sub-circuits with ideal twins of the same pins.

    multiplier      Gilbert cell            I = I_b·tanh(a/V_L)·tanh(b/V_L)     13 transistors
    transconductor  cascoded pair           I = I_b·tanh((p − n)/V_L)            9
    buffer          transconductor fed back V_out → V_in                         9
    mirror          cascoded p-mirror       I_out = I_in                         4

V_L = 2 n U_T, about 75 mV, whatever the current: cells stay in weak inversion, where only ratios
of currents matter. Both pairs of a cell have cascodes: without them its output conductance is
thirty times as large, and learnt weights leak (sky130, 2 µm × 2 µm).

Parameters of every cell: width w and length l of all its transistors (µm). The rails `bias`
(gate of the tails), `vcn`, `vcp` (cascodes) and `vdd` come from `rails`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pcsim.errors import ConfigError
from pcsim.spice.cells.process import Process

DIODE = """\
.subckt diode in w=2 l=2
x1 in in 0 0 nfet w={w} l={l}
.ends"""
MIRROR = """\
.subckt mirror in out vcp vdd w=2 l=2
x1 s1 in vdd vdd pfet w={w} l={l}
x2 s2 in vdd vdd pfet w={w} l={l}
x3 in vcp s1 vdd pfet w={w} l={l}
x4 out vcp s2 vdd pfet w={w} l={l}
.ends"""
MULTIPLIER = """\
.subckt multiplier ap an bp bn out bias vcn vcp vdd w=2 l=2
* lower pair: a = ap - an; upper pairs: b = bp - bn; current out of `out` = K a b
xt tail bias 0 0 nfet w={w} l={l}
x1 c1 ap tail 0 nfet w={w} l={l}
x2 c2 an tail 0 nfet w={w} l={l}
x3 d1 bp c1 0 nfet w={w} l={l}
x4 d2 bn c1 0 nfet w={w} l={l}
x5 d2 bp c2 0 nfet w={w} l={l}
x6 d1 bn c2 0 nfet w={w} l={l}
x7 in vcn d1 0 nfet w={w} l={l}
x8 out vcn d2 0 nfet w={w} l={l}
xm in out vcp vdd mirror w={w} l={l}
.ends"""
TRANSCONDUCTOR = """\
.subckt transconductor p n out bias vcn vcp vdd w=2 l=2
xt tail bias 0 0 nfet w={w} l={l}
x1 d1 p tail 0 nfet w={w} l={l}
x2 d2 n tail 0 nfet w={w} l={l}
x3 in vcn d1 0 nfet w={w} l={l}
x4 out vcn d2 0 nfet w={w} l={l}
xm in out vcp vdd mirror w={w} l={l}
.ends"""
BUFFER = """\
.subckt buffer in out bias vcn vcp vdd w=2 l=2
xa in out out bias vcn vcp vdd transconductor w={w} l={l}
.ends"""
IDEAL = """\
.subckt ideal_multiplier ap an bp bn out k=1
b1 0 out i = {k}*(v(ap)-v(an))*(v(bp)-v(bn))
.ends
.subckt ideal_transconductor p n out g=1
g1 0 out p n {g}
.ends
.subckt ideal_buffer in out
e1 out 0 in 0 1
.ends"""
TRANSISTORS = {"multiplier": 13, "transconductor": 9, "buffer": 9, "mirror": 4}
LEARNING = 1 / 20
"""Tail current of learning multipliers over that of the others: slow weights."""
CELLS = tuple(TRANSISTORS)


@dataclass(frozen=True)
class Sizes:
    """What a designer chooses for all cells."""

    width: float = 2.0
    """Of every transistor, µm."""
    length: float = 2.0
    """Of every transistor, µm."""
    current: float = 10e-9
    """Tail current of the multipliers, A."""
    unit: float = 30e-3
    """Volts that stand for 1 in the network: for states, rates, errors and weights."""

    def __post_init__(self) -> None:
        """Refuse what no cell can be."""
        limits = {
            "width": (0.42, 100.0, "µm"),
            "length": (0.15, 20.0, "µm"),
            "current": (1e-11, 1e-6, "A: weak inversion"),
            "unit": (1e-3, 0.06, "V"),
        }
        for name, (low, high, unit) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"{name}: must be {low:g} to {high:g} {unit}, got {value:g}")

    @property
    def area(self) -> float:
        """Gate area of one transistor, µm²."""
        return self.width * self.length

    @property
    def suffix(self) -> str:
        """Parameters of a call of a cell."""
        return f"w={self.width:g} l={self.length:g}"


@dataclass(frozen=True)
class Levels:
    """Voltages about which the signals of a process swing, V."""

    low: float
    """Of states, rates and errors: the lower pairs."""
    high: float
    """Of weights, and of rates at learning cells: the upper pairs."""
    vcn: float
    vcp: float


def library(process: Process, sizes: Sizes, seed: int = 0) -> list[str]:
    """Return the models and all cells; `seed`: of the foundry's draws."""
    devices = process.devices(sizes.width, sizes.length)
    drawn = f".option seed={seed + 1}"  # `setseed` in .spiceinit has no effect on parameters
    return [drawn, *devices, DIODE, MIRROR, MULTIPLIER, TRANSCONDUCTOR, BUFFER, IDEAL]


def tail(name: str, current: float, sizes: Sizes) -> list[str]:
    """Return a rail for tails of so much current: a diode fed by an ideal source."""
    return [f"i{name} vdd {name} {current:.6g}", f"xd{name} {name} diode {sizes.suffix}"]


def replica(sizes: Sizes) -> list[str]:
    """Return the diodes from which the levels follow, so that corners keep their headroom."""
    half = sizes.current / 2
    return [
        f"ivp vp 0 {20 * half:.6g}",
        f"xvp vp vp vdd vdd pfet {sizes.suffix}",
        f"ivl vl 0 {half * LEARNING:.6g}",
        f"xvl vl out vp vdd mirror {sizes.suffix}",
        "eout out 0 vl 0 1",
    ]


def levels(vl: float, vp: float, supply: float) -> Levels:
    """Return the levels of a process whose replicas settle at vl and vp.

    Weights lie where the mirror of a learning cell balances, so that they do not drift: vl is the
    voltage of its input. The lower pair has 0.2 V, the upper pairs 0.1 V, the mirror the rest.
    """
    high = min(vl, supply - 0.4)
    return Levels(low=high - 0.21, high=high, vcn=high + 0.12, vcp=vp)
