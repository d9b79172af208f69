"""A netlist that ngspice runs: cells of one chip, sources with the data, options, analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from pcsim.spice.elements import Hiss, Wave, folded
from pcsim.spice.netlist import Netlist

LOOK = "look"
"""A source that does nothing but give the solver a point in time."""


@dataclass(frozen=True)
class Span:
    """A piece of time, in seconds from its own start."""

    end: float
    look: float
    """When the last time step of the others begins: what is recorded is seen there."""
    before: float
    """Age of the chip at its start."""
    show: float | None = None
    """From when on points are written; None: from `look` on."""


def tolerances(netlist: Netlist, reltol: float) -> dict[str, float]:
    """Return ngspice's tolerances: all follow from one, relative to 1 V and to the currents.

    Charges count as large from 10 mV on the smallest capacitor; `trtol` is ngspice's own 7 for
    coarse runs, and smaller where the error of single steps would add up to more than is asked.
    """
    volts = min(1e-6, 1e-2 * reltol)
    fastest = min(netlist.taus)
    return {
        "reltol": reltol,
        "vntol": volts,
        "abstol": netlist.gm * volts,
        "chgtol": 0.01 * netlist.gm * fastest,
        "trtol": 7.0 * min(1.0, (reltol / 1e-3) ** 0.7),
    }


def rise(netlist: Netlist, reltol: float) -> float:
    """Return the time that sources take to step: so short that it hides behind the tolerance."""
    return 0.1 * min(reltol, 1e-2) * min(netlist.taus)


def deck(bench: Bench, reltol: float, title: str = "a chip of pcsim") -> str:
    """Return the whole netlist, with a transient analysis from initial conditions."""
    return "\n".join(
        [
            f"* {title}",
            *bench.constants,
            *bench.netlist.definitions(),
            *bench.netlist.instances(bench.starts),
            *bench.sources(reltol),
            *bench.analysis(reltol),
        ]
    )


@dataclass(frozen=True)
class Bench:
    """A chip, what it is shown, and for how long."""

    netlist: Netlist
    starts: Mapping[str, float]
    """Voltages of capacitors at the start, by node."""
    waves: Sequence[Wave | Hiss]
    span: Span

    @property
    def constants(self) -> list[str]:
        """Return the numbers that all cells share."""
        return [f".param gm={self.netlist.gm!r} t_before={self.span.before!r}"]

    def sources(self, reltol: float) -> list[str]:
        """Return the data, and what gives the solver points in time."""
        lines = [wave.text(rise(self.netlist, reltol)) for wave in self.waves]
        look, end = self.span.look, self.span.end
        if look > 0:
            corners = f"0 0 {look!r} 0 {look + 0.5 * (end - look)!r} 1e-9"
            lines.append(f"V{LOOK} {LOOK} 0 PWL({corners})")
        return lines

    def analysis(self, reltol: float) -> list[str]:
        """Return options, the transient analysis, and what is written: all states."""
        span, netlist = self.span, self.netlist
        show = span.look * (1 - 1e-9) if span.show is None else span.show
        longest = min(2.0 * max(netlist.taus[: netlist.somas]), span.end)
        # The first step, a tenth of this, is one of backward Euler that nobody checks.
        first = min(2.0 * sqrt(reltol) * min(netlist.taus), longest)
        values = tolerances(netlist, reltol).items()
        options = " ".join(f"{name}={value!r}" for name, value in values)
        return [
            f".options {options} method=trap",
            f".tran {first!r} {span.end!r} {show!r} {longest!r} uic",
            folded(".save", *(f"v({node})" for *_, node in netlist.capacitors())),
            ".end",
            "",
        ]
