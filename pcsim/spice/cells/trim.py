"""What a designer trims before a network is drawn: levels of a corner, gains of typical cells."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pcsim.spice import ngspice
from pcsim.spice.cells.library import LEARNING, Levels, Sizes, levels, library, replica, tail
from pcsim.spice.cells.process import Process, process
from pcsim.spice.ngspice import Plot

OPTIONS = ".options reltol=1e-4 abstol=1e-15 vntol=1e-7 gmin=1e-15"
"""Currents of picoamperes count."""


@dataclass(frozen=True)
class Gains:
    """Small-signal numbers of typical cells, at 1 unit on every input."""

    multiplier: float
    """K of I = K a b, A/V²."""
    learning: float
    """The same at the current of learning cells."""
    transconductance: float
    """S per ampere of tail current: 1/V_L."""


def simulate(
    name: Process, sizes: Sizes, lines: list[str], analysis: list[str], seed: int = 0
) -> list[Plot]:
    """Run a bench: cells of a process, a supply, and what is asked."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / ".spiceinit").write_text(name.start(), encoding="utf-8")
        text = [
            "* bench",
            *library(name, sizes, seed),
            OPTIONS,
            f"vdd vdd 0 {name.supply:g}",
            *lines,
        ]
        return ngspice.run("\n".join([*text, *analysis, ".end", ""]), place).plots


def supplies(at: Levels) -> list[str]:
    """Return ideal sources of the levels."""
    pairs = {"low": at.low, "high": at.high, "vcn": at.vcn, "vcp": at.vcp}
    return [f"v{name} {name} 0 {value:.6f}" for name, value in pairs.items()]


@cache
def corner_levels(name: str, sizes: Sizes) -> Levels:
    """Return the levels of a corner, from its replicas."""
    corner = process(process(name).quiet)
    last = simulate(corner, sizes, replica(sizes), [".op"])[0].last
    return levels(last["v(vl)"], last["v(vp)"], corner.supply)


@cache
def typical_gains(name: str, sizes: Sizes) -> Gains:
    """Return the gains of typical cells, from four quadrants at 1 unit."""
    typical = process(process(name).typical)
    at = corner_levels(typical.name, sizes)
    u, lines = sizes.unit, [*supplies(at)]
    weak = sizes.current * u / 0.075  # about that of a load
    currents = {"fast": sizes.current, "slow": sizes.current * LEARNING, "load": weak}
    for rail, current in currents.items():
        lines += tail(rail, current, sizes)
    for a in (-1, 1):
        lines.append(f"vl{a + 1} l{a + 1} low {a * u:g}")
        lines.append(f"vh{a + 1} h{a + 1} high {a * u:g}")
    end = f"vcn vcp vdd multiplier {sizes.suffix}"
    for rail, level in (("fast", "low"), ("slow", "high")):
        for a in (0, 2):
            for b in (0, 2):
                lines.append(f"x{rail}{a}{b} l{a} low h{b} high o{rail}{a}{b} {rail} {end}")
                lines.append(f"vo{rail}{a}{b} o{rail}{a}{b} {level} 0")
    for a in (0, 2):
        lines.append(f"xg{a} l{a} low og{a} load vcn vcp vdd transconductor {sizes.suffix}")
        lines.append(f"vog{a} og{a} low 0")
    last = simulate(typical, sizes, lines, [".op"])[0].last

    def product(rail: str) -> float:
        four = [last[f"i(vo{rail}{a}{b})"] * (a - 1) * (b - 1) for a in (0, 2) for b in (0, 2)]
        return sum(four) / 4 / u**2

    slope = (last["i(vog2)"] - last["i(vog0)"]) / (2 * u)
    return Gains(product("fast"), product("slow"), slope / weak)
