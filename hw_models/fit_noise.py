"""Two noises of a measured ramp told apart: that of the device stays, that of the reading does not.

    step_p − g·law_p = σ_c·law_p·ξ_p + σ_r·(η_{p+1} − η_p)

What the device does wrong at one pulse is still there at the next: white steps. A reading error
enters two neighbouring steps with opposite signs: lag-1 covariance −σ_r². The covariance of the
steps of a ramp is tridiagonal, and both numbers follow by maximum likelihood, with the gain g of
each device at its best for them; one that the data do not ask for (within two standard errors of
zero) is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]
Ramp = tuple[Floats, Floats]
"""Steps as measured, and those of the law, (device, pulse)."""


@dataclass(frozen=True)
class Noises:
    """Standard deviations: of a pulse relative to its step, and of a reading in device units."""

    cycle: float
    reading: float


def told_apart(ramps: Sequence[Ramp]) -> Noises:
    """Return both noises of some ramps."""
    ramps = [(moved, _floored(steps)) for moved, steps in ramps]
    rests = [_rest(moved, steps) for moved, steps in ramps]
    power = sum(float((rest**2).sum()) for rest in rests)
    if power < 1e-20:
        return Noises(0.0, 0.0)
    alone = np.sqrt(power / sum(float((steps**2).sum()) for _, steps in ramps))
    count = sum(rest.size for rest in rests)
    lagged = sum(float((rest[:, 1:] * rest[:, :-1]).sum()) for rest in rests) / count
    start = np.log([0.5 * alone**2, max(-lagged, 0.01 * power / count)])
    both = minimize(lambda p: _cost(ramps, *np.exp(p)), start, method="Nelder-Mead")
    cycle, reading = np.exp(both.x)
    no_reading = _cost(ramps, alone**2, 0.0)
    white = minimize(lambda p: _cost(ramps, 0.0, np.exp(p[0])), start[1:], method="Nelder-Mead")
    if no_reading - both.fun < 2:
        return Noises(float(alone), 0.0)
    if white.fun - both.fun < 2:
        return Noises(0.0, float(np.exp(white.x[0] / 2)))
    return Noises(float(np.sqrt(cycle)), float(np.sqrt(reading)))


def _floored(steps: Floats) -> Floats:
    """Keep steps away from zero, where a device at its bound has no noise of its own."""
    least = 1e-3 * float(np.sqrt((steps**2).mean()))
    return np.asarray(np.maximum(np.abs(steps), max(least, 1e-12)))


def _rest(moved: Floats, steps: Floats) -> Floats:
    """Return what a factor of each device on the law leaves."""
    gain = (moved * steps).sum(1) / (steps**2).sum(1)
    return np.asarray(moved - gain[:, None] * steps)


def _cost(ramps: Sequence[Ramp], cycle: float, reading: float) -> float:
    """Return −ln likelihood of variances, by elimination along the tridiagonal covariance."""
    total = 0.0
    for moved, steps in ramps:
        diagonal = cycle * steps**2 + 2 * reading
        pivot, left, law = diagonal[:, 0], moved[:, 0], steps[:, 0]
        squares, mixed, own = (np.zeros(len(moved)) for _ in range(3))
        for p in range(moved.shape[1]):
            if p:
                factor = -reading / pivot
                pivot = diagonal[:, p] - factor**2 * pivot
                left, law = moved[:, p] - factor * left, steps[:, p] - factor * law
            total += 0.5 * float(np.log(pivot).sum())
            squares, mixed, own = (
                squares + left**2 / pivot,
                mixed + left * law / pivot,
                own + law**2 / pivot,
            )
        total += 0.5 * float((squares - mixed**2 / own + np.log(own)).sum())
    return total
