"""What the cells of a process are like: gains, offsets, saturation, noise, speed, current.

Every draw is a copy of a cell in one netlist, with the foundry's mismatch of its own. A multiplier
is measured on a grid of both inputs and fitted by

    I = K (a + o_a)(b + o_b) + I_0

so that o_a and o_b are the input offsets (units of the network) and I_0 the rest, over K·unit².
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pcsim.errors import ConfigError
from pcsim.spice.cells.library import CELLS, LEARNING, Sizes, tail
from pcsim.spice.cells.process import process
from pcsim.spice.cells.trim import corner_levels, simulate, supplies, typical_gains

Array = NDArray[np.float64]
COPIES = 40
"""Cells in one netlist."""
WORST = ("ss", "ff", "sf", "fs")


@dataclass(frozen=True)
class Measured:
    """One cell of one process: a row per draw, and what one typical cell shows."""

    cell: str
    draws: dict[str, Array]
    """Quantities by name, one value per draw, network units or relative."""
    typical: dict[str, float]
    """Quantities of a cell without mismatch."""
    corners: dict[str, dict[str, float]]
    """The same at the corners."""

    def mean(self, name: str) -> float:
        """Return the mean over draws."""
        return float(self.draws[name].mean())

    def spread(self, name: str) -> float:
        """Return the standard deviation over draws."""
        return float(self.draws[name].std(ddof=1))


def characterize(
    name: str, sizes: Sizes, draws: int, tau_x: float, tau_w: float, cells: tuple[str, ...] = CELLS
) -> dict[str, Measured]:
    """Measure cells: with mismatch where the process has it, typical, and at its corners.

    Main arguments:
        draws: of the foundry's mismatch.
        tau_x, tau_w: seconds; loads and capacitors that a network of these times has.
    """
    unknown = [cell for cell in cells if cell not in CELLS]
    if unknown:
        raise ConfigError(f"cells: {unknown[0]!r} is unknown; there are {', '.join(CELLS)}")
    if draws < 2:
        raise ConfigError(f"monte-carlo: must be at least 2 draws, got {draws}")
    base = process(name)
    family = base.typical.partition(":")[0]
    statistical = f"{family}:tt_mm" if family == "sky130" else name
    found = {}
    asked = [*cells, *(["learning"] if "multiplier" in cells else [])]
    for cell in asked:
        rows: dict[str, list[Array]] = {}
        for part in range(-(-draws // COPIES)):
            copies = min(COPIES, draws - part * COPIES)
            for key, values in _static(statistical, sizes, cell, copies, seed=part).items():
                rows.setdefault(key, []).append(values)
        together = {key: np.concatenate(parts) for key, parts in rows.items()}
        typical = _one(base.typical, sizes, cell) | _dynamic(
            base.typical, sizes, cell, tau_x, tau_w
        )
        corners = {}
        if family == "sky130":
            corners = {at: _one(f"sky130:{at}", sizes, cell) for at in WORST}
        found[cell] = Measured(cell, together, typical, corners)
    return found


def _one(name: str, sizes: Sizes, cell: str) -> dict[str, float]:
    return {key: float(values[0]) for key, values in _static(name, sizes, cell, 1, 0).items()}


def _bench(name: str, sizes: Sizes, cell: str) -> tuple[list[str], str]:
    """Return rails and inputs, and the tail current of the cell."""
    at, gains = corner_levels(name, sizes), typical_gains(name, sizes)
    load = gains.multiplier * sizes.unit / gains.transconductance
    current = {"multiplier": sizes.current, "learning": sizes.current * LEARNING}.get(cell, load)
    lines = [*supplies(at), *tail("bias", current, sizes)]
    lines += ["va la low 0 ac 1", "vb hb high 0"]
    return lines, f"{current:.6g}"


def _static(name: str, sizes: Sizes, cell: str, copies: int, seed: int) -> dict[str, Array]:
    """Return gains and offsets of copies, from a grid of inputs."""
    u, end = sizes.unit, f"vcn vcp vdd {{}} {sizes.suffix}"
    lines, current = _bench(name, sizes, cell)
    level = "high" if cell == "learning" else "low"
    for k in range(copies):
        if cell in ("multiplier", "learning"):
            lines.append(f"x{k} la low hb high o{k} bias {end.format('multiplier')}")
        elif cell == "transconductor":
            lines.append(f"x{k} la low o{k} bias {end.format(cell)}")
        elif cell == "buffer":
            lines.append(f"x{k} la o{k} bias {end.format(cell)}")
        else:
            lines.append(f"i{k} n{k} 0 {current}")
            lines.append(f"x{k} n{k} o{k} vcp vdd mirror {sizes.suffix}")
        if cell != "buffer":
            lines.append(f"vo{k} o{k} {level} 0")
    grid = f"va {-u:g} {u:g} {u:g}"
    both = cell in ("multiplier", "learning")
    plot = simulate(
        process(name),
        sizes,
        lines,
        [f".dc {grid}" + (f" vb {-u:g} {u:g} {u:g}" if both else "")],
        seed,
    )[0]
    out = [f"v(o{k})" if cell == "buffer" else f"i(vo{k})" for k in range(copies)]
    measured = np.stack([plot[node].real for node in out], axis=1)
    supply = -plot["i(vdd)"].real.mean() / copies
    rest = {"supply": np.full(copies, supply - float(current) / copies)}
    if both:
        return _bilinear(measured, sizes, name, cell) | rest
    if cell == "mirror":
        return {"gain": measured.mean(axis=0) / float(current)} | rest
    slope = (measured[2] - measured[0]) / (2 * u)
    if cell == "buffer":
        low = corner_levels(name, sizes).low
        return {"gain": slope, "offset": (measured[1] - low) / u} | rest
    nominal = typical_gains(name, sizes).multiplier * u
    return {"gain": slope / nominal, "offset": measured[1] / slope / u} | rest


def _bilinear(measured: Array, sizes: Sizes, name: str, cell: str) -> dict[str, Array]:
    """Fit K (a + o_a)(b + o_b) + I_0 to a 3 × 3 grid; the inner loop is that of a."""
    values = measured.reshape(3, 3, -1)  # b, a, copy
    both = (values[2, 2] - values[2, 0] - values[0, 2] + values[0, 0]) / 4
    of_a = (values[:, 2] - values[:, 0]).mean(axis=0) / 2
    of_b = (values[2] - values[0]).mean(axis=0) / 2
    rest = values[1, 1] - of_a * of_b / both
    gains = typical_gains(name, sizes)
    nominal = gains.learning if cell == "learning" else gains.multiplier
    return {
        "gain": both / (nominal * sizes.unit**2),
        "offset_a": of_b / both,
        "offset_b": of_a / both,
        "offset_out": rest / both,
    }


def _dynamic(name: str, sizes: Sizes, cell: str, tau_x: float, tau_w: float) -> dict[str, float]:
    """Return saturation, speed, noise and leakage of a typical cell, at its load."""
    if cell == "mirror":
        return {}
    gains = typical_gains(name, sizes)
    lines, _ = _bench(name, sizes, cell)
    u, end = sizes.unit, f"vcn vcp vdd {{}} {sizes.suffix}"
    lines += tail("load", gains.multiplier * u / gains.transconductance, sizes)
    lines = [line.replace("vb hb high 0", f"vb hb high {u:g}") for line in lines]
    pins = {
        "multiplier": f"la low hb high out bias {end.format('multiplier')}",
        "learning": f"la low hb high out bias {end.format('multiplier')}",
        "transconductor": f"la out out bias {end.format('transconductor')}",
        "buffer": f"la out bias {end.format('buffer')}",
    }[cell]
    lines.append(f"x1 {pins}")
    if cell == "multiplier":
        lines.append(f"xl low out out load {end.format('transconductor')}")
    elif cell == "transconductor":
        lines.append(f"c1 out 0 {tau_x * gains.multiplier * u:.6g}")
    analyses = [".ac dec 40 0.01 10meg"]
    found: dict[str, float] = {}
    if cell == "learning":
        lines.append("vout out high 0")
        wide = [".dc vout -0.05 0.05 0.05"]
        leak = simulate(process(name), sizes, lines, wide)[0]["i(vout)"].real
        conductance = -(leak[2] - leak[0]) / 0.1
        found["lifetime"] = tau_w * gains.learning * u / max(conductance, 1e-18)
        swept = simulate(process(name), sizes, lines, [".dc va -0.4 0.4 0.05"])[0]
        current = swept["i(vout)"].real
        found["limit"] = float(np.ptp(current) / 2 / (gains.learning * u * u))
        return found
    noise = [".noise v(out) va dec 10 0.1 10meg"]
    plots = simulate(process(name), sizes, lines, analyses)
    response = np.abs(plots[0]["v(out)"])
    frequency = plots[0]["frequency"].real
    corner = float(np.interp(-response[0] / np.sqrt(2), -response, frequency))
    found["gain_ac"] = float(response[0])
    found["tau"] = 1 / (2 * np.pi * corner)
    spectra = simulate(process(name), sizes, lines, noise)
    found["noise"] = spectra[1].last["v(onoise_total)"] / u
    return found
