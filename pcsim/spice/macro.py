"""Transconductors as a chip has them: offset, one pole, a limit, output resistance, noise.

    I = gm·lim(lag(V_in) + os),  parallel to r_out;   lag: τ dV/dt = V_in − V, τ = 1/(2π bandwidth)

A soma's transconductor gives at most gm·slew_rate·τ_x, so that |dx/dt| ≤ slew_rate. Capacitors have
the noise current of a conductance gm, of density 4kT·gm: a leaky node then has the variance kT/C.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import pi, sqrt

from pcsim.spice_settings import Macro

BOLTZMANN = 1.380649e-23
CELL, DRIVER = "transconductor", "driver"
"""Of sums, errors and weights; and of somas, whose current has a limit."""


def lag(macro: Macro) -> float:
    """Return the time constant of the pole, seconds; 0: none."""
    return 1 / (2 * pi * macro.bandwidth) if macro.bandwidth else 0.0


def cells(macro: Macro, dt: float) -> Iterator[str]:
    """Yield the sub-circuits; `dt`: time between the numbers of the noise."""
    seen = "v(lag)" if macro.bandwidth else "v(in)"
    pole = ["R1 in lag {1/gm}", f"C1 lag 0 {{gm*{lag(macro)!r}}}"] if macro.bandwidth else []
    out = [f"Rout out 0 {macro.output_resistance!r}"] if macro.output_resistance else []
    whole = f"({seen}+{{os}})"
    currents = {CELL: ("os=0", whole)}
    if macro.slew_rate:
        currents[DRIVER] = ("os=0 most=0", f"max(min({whole},{{most}}),-{{most}})")
    for name, (params, current) in currents.items():
        head = f".subckt {name} in out {params}"
        yield "\n".join([head, *pole, f"Bout 0 out I={current} m={{gm}}", *out, ".ends", ""])
    if macro.temperature:
        # The mean square of white noise over one dt; density 4kT·gm has two sides.
        ampere = sqrt(2 * BOLTZMANN * macro.temperature * macro.gm / dt) / macro.unit
        source = f"I1 0 out DC 0 TRNOISE({ampere!r} {dt!r} 0 0)"
        yield "\n".join([".subckt thermal out", source, ".ends", ""])


def transconductor(name: str, expression: str, *, limited: bool) -> list[str]:
    """Return what drives a node of a cell by gm times an expression; its offset is `os_NAME`."""
    kind, most = (DRIVER, f" most={{most_{name}}}") if limited else (CELL, "")
    return [
        f"B{name} in_{name} 0 V={expression}",
        f"X{name} in_{name} {name} {kind} os={{os_{name}}}{most}",
    ]


def beside_capacitor(macro: Macro, name: str, *, learnt: bool) -> list[str]:
    """Return what a capacitor loses, where it holds a weight, and its noise."""
    leak = [f"Rleak_{name} {name} 0 {{{macro.lifetime!r}/c_{name}}}"]
    noise = [f"Xthermal_{name} {name} thermal"]
    return (leak if learnt and macro.lifetime else []) + (noise if macro.temperature else [])
