"""Temporal noise on any signal: white, thermal, shot, coloured, 1/f and telegraph; and read noise.

A source that is defined in time (all but `ReadNoise` and `ArrayReadNoise`) has the same
distribution for any time step. Read noise is drawn per read: with `t_sample`, the time between two
reads, it has the same effect for any time step; without, every time step is a read, and what a slow
state integrates of it falls as the steps become shorter.
"""

from __future__ import annotations

from math import log, sqrt
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hw_models.clock import Sampled, redrawn
from hw_models.converters import refuse_auto_range
from hw_models.numbers import (
    Finite,
    InState,
    NotNegative,
    OfSignal,
    Positive,
    Seconds,
    Share,
    Weight,
)
from hw_models.order import Place
from hw_models.piece import Fields, Piece
from pcsim.quantity import Unit
from pcsim.substrate import Effect, Memory

Where = Literal["velocity", "membrane", "rate", "error", "product", "feedback", "weight"]
"""Which signal: dx/dt of the somas, potentials, rates, errors, array outputs, or weights."""
BOLTZMANN = 1.380649e-23
"""J/K."""


def _on(where: Where, relative: bool, term: str) -> str:
    """Return s plus a noise term, or s with a relative error."""
    if not relative:
        return f"s + {term}"
    return f"s + x*{term}" if where == "velocity" else f"s*(1 + {term})"


class WhiteNoise(Piece):
    """White noise of a given density: s + σ ξ/√dt; on `velocity` that is dx = … dt + σ dW."""

    kind: Literal["white_noise"] = "white_noise"
    EXAMPLE: ClassVar[Fields] = {"sigma": 0.1, "where": "velocity"}
    PLACE: ClassVar[Place] = "noise"
    sigma: Annotated[NotNegative, Unit("units of the signal per √Hz")]
    """Density: units of the signal per √Hz (per √second of dx for `velocity`)."""
    where: Where = "velocity"
    """Signal that is noisy: dx/dt of the somas, potentials, rates, errors, array sums in either
    direction, or weights."""
    relative: bool = False
    """Relative to the signal itself (on `velocity`: to the potential x)."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + σ ξ/√dt."""
        return (
            Effect(
                name=name,
                site=self.where,
                becomes=_on(self.where, self.relative, "sigma*xi/sqrt(dt)"),
                constants={"sigma": self.sigma},
                noise={"xi": "normal"},
                about="white noise, density sigma per √Hz",
            ),
        )


class ThermalNoise(Piece):
    """kT/C noise of a leaky node: dV = −V/τ dt + √(2kT/(Cτ)) dW, stationary variance kT/C."""

    kind: Literal["thermal_noise"] = "thermal_noise"
    EXAMPLE: ClassVar[Fields] = {"capacitance": "100 fF", "tau": "1 s", "volts_per_unit": "10 mV"}
    PLACE: ClassVar[Place] = "noise"
    capacitance: Annotated[Positive, Unit("F")]
    """Capacitance of the node, farad."""
    tau: Seconds
    """Time constant of the node, seconds of simulated time."""
    volts_per_unit: Annotated[Positive, Unit("V")] = 1.0
    """Volts that stand for one unit of x."""
    temperature: Annotated[NotNegative, Unit("K")] = 300.0
    """Absolute temperature, kelvin."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + √(2kT/(Cτ)) ξ/√dt in units of x."""
        density = sqrt(2 * BOLTZMANN * self.temperature / (self.capacitance * self.tau))
        return (
            Effect(
                name=name,
                site="velocity",
                becomes="s + sigma*xi/sqrt(dt)",
                constants={"sigma": density / self.volts_per_unit},
                noise={"xi": "normal"},
                about="thermal noise of the membrane, variance kT/C of a leaky node",
            ),
        )


class ShotNoise(Piece):
    """Charge comes and goes in quanta q: dx = s dt + √(q (I_in + I_out)) dW, currents as dx/dt.

        I_in = |s + x/τ| + b/τ,   I_out = |x|/τ + b/τ

    The net current s = I_in − I_out is zero at equilibrium, both currents are not: the stationary
    variance is q (|x| + b), that of a Poisson count of carriers. With q = e/C and b = kT/e (a node
    in weak inversion, whose standing current is G·kT/e) it is kT/C at x = 0.
    """

    kind: Literal["shot_noise"] = "shot_noise"
    EXAMPLE: ClassVar[Fields] = {"quantum": 0.0001, "tau": "1 s", "bias": 0.026}
    PLACE: ClassVar[Place] = "noise"
    quantum: Annotated[NotNegative, InState]
    """Change of x by one carrier (or one spike, or one photon), units of x; e/C of a capacitor."""
    tau: Seconds
    """Time constant of the node, through which x leaks, seconds."""
    bias: Annotated[NotNegative, InState]
    """Standing current through the node at x = 0, in and out alike, times tau, units of x; the
    thermal voltage kT/e (25.9 mV at 300 K) in weak inversion, 0 where nothing flows at rest."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + √(q (I_in + I_out)/dt) ξ."""
        currents = "(abs(s + x/tau) + (abs(x) + 2*bias)/tau)"
        return (
            Effect(
                name=name,
                site="velocity",
                becomes=f"s + sqrt(quantum*{currents}/dt)*xi",
                constants={"quantum": self.quantum, "tau": self.tau, "bias": self.bias},
                noise={"xi": "normal"},
                about="shot noise of the currents into and out of the membrane",
            ),
        )


class ColouredNoise(Piece):
    """Ornstein–Uhlenbeck noise η: standard deviation σ, correlation time τ_c, exact update."""

    kind: Literal["coloured_noise"] = "coloured_noise"
    EXAMPLE: ClassVar[Fields] = {"sigma": 0.05, "tau_c": "300 ms", "where": "rate"}
    PLACE: ClassVar[Place] = "noise"
    sigma: Annotated[NotNegative, OfSignal]
    """Standard deviation of η, units of the signal (per second on `velocity`)."""
    tau_c: Seconds
    """Correlation time, seconds."""
    where: Where = "velocity"
    """Signal that is noisy: dx/dt of the somas, potentials, rates, errors, array sums in either
    direction, or weights."""
    relative: bool = False
    """Relative to the signal itself (on `velocity`: to the potential x)."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + η, η ← e^{−dt/τ} η + σ√(1 − e^{−2dt/τ}) ξ."""
        return (
            Effect(
                name=name,
                site=self.where,
                becomes=_on(self.where, self.relative, "eta"),
                constants={"sigma": self.sigma, "tau_c": self.tau_c},
                noise={"xi": "normal"},
                memory={"eta": Memory(start="sigma*start_xi", update=_OU)},
                about="coloured noise (Ornstein–Uhlenbeck), stationary from the start",
            ),
        )


_OU = "eta*exp(-dt/tau_c) + sigma*sqrt(1 - exp(-2*dt/tau_c))*xi"


class PinkNoise(Piece):
    """1/f noise: K Ornstein–Uhlenbeck sources with log-spaced times and equal variances σ²/K.

    One-sided S(f) ≈ σ²/(f ln R), ln R = ln(τ_max/τ_min)·K/(K−1), between 1/(2πτ_max) and
    1/(2πτ_min).
    """

    kind: Literal["pink_noise"] = "pink_noise"
    EXAMPLE: ClassVar[Fields] = {
        "sigma": "2 %",
        "tau_min": "10 ms",
        "tau_max": "100 s",
        "where": "weight",
        "relative": True,
    }
    PLACE: ClassVar[Place] = "noise"
    sigma: Annotated[NotNegative, OfSignal]
    """Standard deviation of the sum, units of the signal (per second on `velocity`)."""
    tau_min: Seconds
    """Shortest correlation time, seconds."""
    tau_max: Seconds
    """Longest correlation time, seconds."""
    sources: Annotated[int, Field(ge=2, le=40)] = 10
    """How many Ornstein–Uhlenbeck sources add up; two per decade of time are enough."""
    where: Where = "velocity"
    """Signal that is noisy: dx/dt of the somas, potentials, rates, errors, array sums in either
    direction, or weights."""
    relative: bool = False
    """Relative to the signal itself (on `velocity`: to the potential x)."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.tau_max <= self.tau_min:
            raise ValueError(f"tau_max must exceed tau_min, got {self.tau_max} ≤ {self.tau_min}")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + Σ η_k."""
        numbers = range(self.sources)
        step = log(self.tau_max / self.tau_min) / (self.sources - 1)
        times = {f"tau_{k}": self.tau_min * 2.718281828459045 ** (k * step) for k in numbers}
        memory = {
            f"eta_{k}": Memory(
                start="each*start_xi",
                update=f"eta_{k}*exp(-dt/tau_{k}) + each*sqrt(1 - exp(-2*dt/tau_{k}))*xi_{k}",
            )
            for k in numbers
        }
        total = "(" + " + ".join(memory) + ")"
        return (
            Effect(
                name=name,
                site=self.where,
                becomes=_on(self.where, self.relative, total),
                constants={"each": self.sigma / sqrt(self.sources)} | times,
                noise={f"xi_{k}": "normal" for k in numbers},
                memory=memory,
                about="1/f noise as a sum of Ornstein–Uhlenbeck sources",
            ),
        )


class TelegraphNoise(Piece):
    """Random telegraph noise: z jumps between 0 and 1 with mean dwell times τ_on and τ_off.

    Exact for any dt: the chance to be in the other state after dt, from the two-state master
    equation with k = 1/τ_on + 1/τ_off, is π_other (1 − e^{−k dt}).
    """

    kind: Literal["telegraph_noise"] = "telegraph_noise"
    EXAMPLE: ClassVar[Fields] = {"amplitude": "5 %", "tau_on": "500 ms", "tau_off": "2 s"}
    PLACE: ClassVar[Place] = "noise"
    amplitude: Annotated[Finite, OfSignal]
    """Height of the jump: units of the signal, or a fraction of it if `relative`."""
    tau_on: Seconds
    """Mean dwell time in the state z = 1, seconds."""
    tau_off: Seconds
    """Mean dwell time in the state z = 0, seconds."""
    where: Where = "weight"
    """Signal that is noisy: dx/dt of the somas, potentials, rates, errors, array sums in either
    direction, or weights."""
    relative: bool = True
    """Relative to the signal itself (on `velocity`: to the potential x)."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + A z, or s (1 + A z)."""
        relax = "(1 - exp(-dt*(1/tau_on + 1/tau_off)))"
        leave = f"{relax}*(z*tau_off + (1 - z)*tau_on)/(tau_on + tau_off)"
        return (
            Effect(
                name=name,
                site=self.where,
                becomes=_on(self.where, self.relative, "amplitude*z"),
                constants={
                    "amplitude": self.amplitude,
                    "tau_on": self.tau_on,
                    "tau_off": self.tau_off,
                },
                noise={"u": "uniform"},
                memory={
                    "z": Memory(
                        start="int(start_u < tau_on/(tau_on + tau_off))",
                        update=f"z + int(u < {leave})*(1 - 2*z)",
                    )
                },
                about="random telegraph noise with exact dwell times",
            ),
        )


class ReadNoise(Sampled):
    """Noise of each read of a signal: s + σ ξ, or s (1 + σ ξ).

    Signals of units are read for each sample of a batch on its own. Weights are read once for all
    samples, unless `batch = "independent"`: then each sample reads the array again, as an array
    that is shown one sample after the other does, and the noise of a line is added to its sum
    (√(Σ_j σ_ij² r_j²), exact in distribution, both directions independent; see `array_read_noise`).
    """

    kind: Literal["read_noise"] = "read_noise"
    EXAMPLE: ClassVar[Fields] = {
        "sigma": "1 %",
        "where": "weight",
        "relative": True,
        "t_sample": "100 ms",
    }
    PLACE: ClassVar[Place] = "noise"
    sigma: Annotated[NotNegative, OfSignal]
    """Standard deviation per read: units of the signal, or a fraction of it if `relative`."""
    where: Literal["membrane", "rate", "error", "product", "feedback", "weight", "output"]
    """Signal that is read: potentials, rates, errors, array sums in either direction, weights, or
    the read-out."""
    relative: bool = False
    """Whether sigma is a fraction of the signal itself."""
    auto_range: bool = False
    """Whether sigma is relative to the largest error that enters the array, as behind drivers that
    scale it to their range. For `where = "feedback"`."""
    batch: Literal["shared", "independent"] = "shared"
    """For `where = "weight"`: whether all samples of a batch see one draw, or each its own."""

    @model_validator(mode="after")
    def _of_weights(self) -> Self:
        if self.batch == "independent" and self.where != "weight":
            raise ValueError(
                f'batch = "independent" is for where = "weight"; {self.where} differs between '
                "samples anyway"
            )
        if self.auto_range:
            refuse_auto_range(self.where)
        if self.auto_range and self.relative:
            raise ValueError("relative and auto_range: sigma is relative to one of them")
        return self

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + σ ξ."""
        if self.batch == "independent":
            spread = "sqrt(squared_power)" if self.relative else "sqrt(power)"
            return _on_lines(name, spread, {"sigma": self.sigma}, self.t_sample)
        size = "peak*" if self.auto_range else ""
        made = Effect(
            name=name,
            site=self.where,
            becomes="s*(1 + sigma*xi)" if self.relative else f"s + {size}sigma*xi",
            constants={"sigma": self.sigma},
            noise={"xi": "normal"},
            about="noise per read",
        )
        return (redrawn(made, self.t_sample),)


class ArrayReadNoise(Sampled):
    """Independent read noise of every device, added up on the output line, exact in distribution.

        y_i + ξ_i √(Σ_j σ_ij² r_j²),   σ_ij = σ |w_ij|, σ √(|w_ij| range) or σ range

    Forward and backward reads are independent, and so are the samples of a batch.
    """

    kind: Literal["array_read_noise"] = "array_read_noise"
    EXAMPLE: ClassVar[Fields] = {"sigma": "1 %", "reference": "range", "t_sample": "100 ms"}
    PLACE: ClassVar[Place] = "noise"
    sigma: Share
    """Standard deviation per device and read, relative to what `reference` says."""
    reference: Literal["weight", "root_weight", "range"] = "weight"
    """Relative to the weight, to √(weight·range), or to the range."""
    range: Weight = 1.0
    """Weight at full conductance, network units."""

    def effects(self, name: str) -> tuple[Effect, ...]:
        """Return s + σ √(row sum) ξ in both directions."""
        spread = {
            "weight": "sqrt(squared_power)",
            "root_weight": "sqrt(weighted_power*range)",
            "range": "range*sqrt(power)",
        }[self.reference]
        constants = {"sigma": self.sigma}
        if self.reference != "weight":
            constants["range"] = self.range
        return _on_lines(name, spread, constants, self.t_sample)


def _on_lines(
    name: str, spread: str, constants: dict[str, float], period: float | None
) -> tuple[Effect, ...]:
    """Return noise of this spread on both sums of an array."""
    sites: tuple[Literal["product", "feedback"], ...] = ("product", "feedback")
    return tuple(
        redrawn(
            Effect(
                name=f"{name}_{site}",
                site=site,
                becomes=f"s + sigma*{spread}*xi",
                constants=constants,
                noise={"xi": "normal"},
                about="read noise of all devices of a line, per read",
            ),
            period,
        )
        for site in sites
    )
