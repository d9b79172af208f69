"""Fit the device laws to a measured pulse curve; the lowest AIC wins.

    u_{p+1} = u_p ± dw·law(u_p),   AIC = n ln(RSS/n) + 2k

A ramp has its own step, shape and start. Device-to-device spread comes from fits of the step of
each device, cycle-to-cycle noise from single steps around the fitted law; the noise of the reading
is told apart by how it correlates steps (`fit_noise`) and becomes a piece of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log

import numpy as np
from scipy.optimize import brentq, least_squares

from hw_models.description import Hardware
from hw_models.fit_noise import Noises, told_apart
from hw_models.noise import ReadNoise
from hw_models.piece import Piece
from hw_models.plasticity import (
    ConstantDevice,
    ExponentialDevice,
    LinearDevice,
    PowerDevice,
)
from hw_models.plasticity_device import Device
from hw_models.pulse_curve import FEWEST, Direction, Floats, PulseCurve, read_curve

__all__ = ["Fit", "fit_curve", "read_curve"]
_SIDES: tuple[Direction, Direction] = ("up", "down")
Step = Callable[[float, list[float]], float]


@dataclass(frozen=True)
class Shape:
    """A law as the fit sees it: step towards +1 at u, from (dw, shape parameters).

    With a parameter `bound`, the device may go beyond what was measured; else the bound is 1.
    """

    step: Step
    names: tuple[str, ...]
    start: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def bound(self, parameters: Sequence[float]) -> float:
        """Return the upper bound, given (dw, shape parameters)."""
        return parameters[1 + self.names.index("bound")] if "bound" in self.names else 1.0


def _power(u: float, p: list[float]) -> float:
    return p[0] * float(max((p[2] - u) / 2, 0.0) ** p[1])


def _exponential(u: float, p: list[float]) -> float:
    return p[0] * max(0.0, 1 - p[1] * exp(min(p[2] * u, 50.0)))


SHAPES: dict[str, Shape] = {
    "constant_device": Shape(lambda u, p: p[0], (), (), (), ()),
    "linear_device": Shape(lambda u, p: p[0] * (1 - p[1] * u), ("gamma",), (0.5,), (0.0,), (1.2,)),
    "power_device": Shape(_power, ("gamma", "bound"), (1.0, 1.1), (0.0, 1.0), (8.0, 3.0)),
    "exponential_device": Shape(
        _exponential, ("A", "gamma"), (0.1, 1.0), (-20.0, -8.0), (1.0, 8.0)
    ),
}
"""Laws that the fit compares. A pulse curve in the sense of NeuroSim is a linear law whose ramp
ends at the bound; `linear_device` covers it."""


@dataclass(frozen=True)
class Ranked:
    """One law with its fit to all ramps."""

    law: str
    residual: float
    """Root mean square, relative to the range of the conductance."""
    aic: float
    parameters: Mapping[str, tuple[float, float]]
    """Value and standard error by name: dw_up, gamma_up, …"""
    starts: Mapping[Direction, float] = field(default_factory=dict)
    """Fitted first conductance of each ramp, as if it went up."""

    def step(self, side: Direction, u: float) -> float:
        """Return the size of the step of a side at conductance u; a side not measured mirrors."""
        known = side if f"dw_{side}" in self.parameters else ("down" if side == "up" else "up")
        shape = SHAPES[self.law]
        p = [self.parameters[f"{name}_{known}"][0] for name in ("dw", *shape.names)]
        return shape.step(u if side == "up" else -u, p)

    def curve(self, side: Direction, points: int) -> Floats:
        """Return the fitted ramp of a side that was measured."""
        shape = SHAPES[self.law]
        p = [self.parameters[f"{name}_{side}"][0] for name in ("dw", *shape.names)]
        return _upwards(ramp(shape, self.starts[side], p, points), side)


@dataclass(frozen=True, eq=False)
class Fit:
    """The laws in the order of their AIC, and the noise and spreads of the best."""

    curve: PulseCurve
    ranking: tuple[Ranked, ...]
    cycle_noise: float
    """Standard deviation of a pulse, relative to its step."""
    read_noise: float
    """Standard deviation of a reading, device units (half the range is one)."""
    dw_spread: float
    bound_spread: float

    @property
    def about(self) -> str:
        """What was measured and how it varies, in one line."""
        return (
            f"{self.curve.devices} device(s), {self.curve.low:g} … {self.curve.high:g}, "
            f"cycle-to-cycle noise {self.cycle_noise:.3g} of a step, "
            f"reading noise {50 * self.read_noise:.3g} % of the range, "
            f"device-to-device spread of the step {self.dw_spread:.3g}"
        )

    @property
    def states(self) -> tuple[float, float]:
        """Steps of the size in the middle that the range has room for, up and down."""
        best = self.ranking[0]
        return 2 / best.step("up", 0.0), 2 / best.step("down", 0.0)

    @property
    def asymmetry(self) -> float:
        """(up − down)/(up + down) of the steps in the middle of the range."""
        up, down = (self.ranking[0].step(side, 0.0) for side in _SIDES)
        return (up - down) / (up + down)

    @property
    def symmetry_point(self) -> float | None:
        """Conductance at which up and down steps are alike, −1 … 1; None if there is none."""
        best = self.ranking[0]

        def excess(u: float) -> float:
            return best.step("up", u) - best.step("down", u)

        low, high = excess(-0.999), excess(0.999)
        alike = abs(low - high) < 1e-9 * best.step("up", 0.0)
        return None if alike or low * high > 0 else float(brentq(excess, -0.999, 0.999))

    def hardware(self, name: str, source: str) -> Hardware:
        """Return the best law as a preset: a piece `device`, and `reading` if reads are noisy."""
        best = self.ranking[0]
        about = f"fit to {source}: {best.law}, residual {100 * best.residual:.2g} % of the range"
        sources = (f"{source}, conductance {self.curve.low:g} to {self.curve.high:g} is −1 to 1",)
        pieces: dict[str, Piece] = {"device": self.device(best)}
        if self.read_noise:
            pieces["reading"] = ReadNoise(where="weight", sigma=self.read_noise)
        return Hardware(name=name, about=about, sources=sources, pieces=pieces)

    def device(self, ranked: Ranked) -> Device:
        """Return a device with the fitted numbers; a ramp not measured mirrors the other."""
        value = {name: v for name, (v, _) in ranked.parameters.items()}
        for side, other in (("up", "down"), ("down", "up")):
            for name in ("dw", *SHAPES[ranked.law].names):
                value.setdefault(f"{name}_{side}", value.get(f"{name}_{other}", 0.0))
        up, down = value.pop("dw_up"), value.pop("dw_down")
        top, bottom = value.pop("bound_up", 1.0), value.pop("bound_down", 1.0)
        if ranked.law == "power_device":  # its distance to the bound is relative to both bounds
            up *= ((top + bottom) / 2) ** value["gamma_up"]
            down *= ((top + bottom) / 2) ** value["gamma_down"]
        dw_min = max(up, down)
        kind: dict[str, type[Device]] = {
            "constant_device": ConstantDevice,
            "linear_device": LinearDevice,
            "power_device": PowerDevice,
            "exponential_device": ExponentialDevice,
        }
        return kind[ranked.law].model_validate(
            value
            | {
                "dw_min": dw_min,
                "imbalance": (up - down) / dw_min,
                "cycle_noise": self.cycle_noise,
                "dw_spread": self.dw_spread,
                "w_max": top,
                "w_min": -bottom,
                "w_max_spread": self.bound_spread,
                "w_min_spread": self.bound_spread,
            }
        )


def ramp(shape: Shape, start: float, parameters: list[float], points: int) -> Floats:
    """Return u behind each pulse of a ramp upwards, clipped at the bound."""
    u, values, top = start, np.empty(points), shape.bound(parameters)
    for p in range(points):
        values[p] = u
        u = min(max(u + shape.step(u, parameters), -4.0), top)
    return values


def fit_curve(curve: PulseCurve) -> Fit:
    """Fit every law to every ramp, rank them, and measure noise and spreads around the best."""
    ranking = sorted((_fit_law(law, curve) for law in SHAPES), key=lambda one: one.aic)
    best = ranking[0]
    noises, spread = _variation(best, curve)
    tops = [curve.per_device(_upwards(r, side)[:, -1]) for side, r in curve.ramps.items()]
    bound = float(np.mean([t.std(ddof=1) for t in tops])) if curve.devices > 1 else 0.0
    return Fit(curve, tuple(ranking), noises.cycle, noises.reading, spread, bound)


def _upwards(values: Floats, side: Direction) -> Floats:
    """Return a ramp as if it went up; down steps at u are up steps at −u."""
    return values if side == "up" else -values


def _fit_law(law: str, curve: PulseCurve) -> Ranked:
    shape = SHAPES[law]
    total, count, free = 0.0, 0, 0
    starts: dict[Direction, float] = {}
    parameters: dict[str, tuple[float, float]] = {}
    for side, ramps in curve.ramps.items():
        measured = _upwards(ramps, side).mean(0)
        points = len(measured)

        def misfit(p: Floats, target: Floats = measured, points: int = points) -> Floats:
            return ramp(shape, p[0], [exp(p[1]), *p[2:]], points) - target

        guess = max((measured.max() - measured[0]) / points, 1e-6)
        found = least_squares(
            misfit,
            [measured[0], log(guess), *shape.start],
            bounds=([-1.5, log(guess) - 7, *shape.low], [1.5, log(guess) + 7, *shape.high]),
            x_scale="jac",
            max_nfev=200,
        )
        squares = float(found.fun @ found.fun)
        variance = squares / max(points - len(found.x), 1)
        errors = np.sqrt(np.diag(np.linalg.pinv(found.jac.T @ found.jac)) * variance)
        dw = exp(found.x[1])
        starts[side] = float(found.x[0])
        parameters[f"dw_{side}"] = (dw, dw * float(errors[1]))
        for k, name in enumerate(shape.names, 2):
            parameters[f"{name}_{side}"] = (float(found.x[k]), float(errors[k]))
        total, count, free = total + squares, count + points, free + len(found.x)
    mean = max(total / count, 1e-20)  # a curve without noise: rounding decides no ranking
    return Ranked(law, mean**0.5 / 2, count * log(mean) + 2 * free, parameters, starts)


def _before_bound(best: Ranked, side: Direction, points: int) -> int:
    """Return how many points of a ramp lie well before its bound, where steps are cut off.

    Single devices arrive there earlier than the mean: the last fifth of the way is left out.
    """
    shape = SHAPES[best.law]
    p = [best.parameters[f"{name}_{side}"][0] for name in ("dw", *shape.names)]
    curve = ramp(shape, best.starts[side], p, points)
    arrived = np.flatnonzero(curve >= shape.bound(p))
    return max(int(0.8 * arrived[0]), FEWEST) if len(arrived) else points


def _variation(best: Ranked, curve: PulseCurve) -> tuple[Noises, float]:
    """Return the noises of pulses and readings, and the spread of the step over devices."""
    shape = SHAPES[best.law]
    left, gains = [], []
    for side, ramps in curve.ramps.items():
        p = [best.parameters[f"{name}_{side}"][0] for name in ("dw", *shape.names)]
        ups = _upwards(ramps, side)[:, : _before_bound(best, side, ramps.shape[1])]
        inner = ups[:, :-1]
        steps = np.vectorize(lambda u, p=p: shape.step(float(u), p))(inner)
        moved = np.diff(ups, axis=1)
        # each device has its own step: the best factor on the law, then what is left
        gain = (moved * steps).sum(1) / np.maximum((steps**2).sum(1), 1e-30)
        left.append((moved, steps))
        gains.append(gain / gain.mean())
    per_device = curve.per_device(np.mean(gains, axis=0))
    spread = float(per_device.std(ddof=1)) if curve.devices > 1 else 0.0
    return told_apart(left), spread
