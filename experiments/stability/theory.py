"""Closed forms for linear scalar chains x^1 … x^{L−1} of weight w; times in units of τ_x.

The curvatures of inference are h_k = 1 + w² − 2w cos(kπ/L), k = 1 … L−1.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import acos, cos, exp, inf, pi, sqrt

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LARGEST = 1e3
"""Lags are searched up to this many τ_x."""


def curvatures(depth: int, w: float) -> Floats:
    """Return h_k = 1 + w² − 2w cos(kπ/L)."""
    k = np.arange(1, depth)
    return np.asarray(1 + w * w - 2 * w * np.cos(k * pi / depth))


def error_lag_poles(depth: int, w: float, tau_e: float) -> npt.NDArray[np.complex128]:
    """Return the roots of τ_e s² + s + h = 0 for all h, and −1/τ_e of the one mode x never sees."""
    roots = [np.roots([tau_e, 1.0, h]) for h in curvatures(depth, w)]
    return np.asarray(np.concatenate([*roots, [-1 / tau_e]]), dtype=np.complex128)


def damping(h: float, tau_e: float) -> float:
    """Return ζ = ½ √(τ_x/(h τ_e))."""
    return 0.5 / sqrt(h * tau_e)


def overshoot(h: float, tau_e: float) -> float:
    """Return exp(−πζ/√(1−ζ²)) of a step response, as a fraction of the step; 0 where ζ ≥ 1."""
    zeta = damping(h, tau_e)
    return exp(-pi * zeta / sqrt(1 - zeta * zeta)) if zeta < 1 else 0.0


def apical_lag_abscissa(depth: int, w: float, tau_a: float) -> float:
    """Return max Re s of (PQ + w²)² = (2w cos(kπ/L))² Q, P = 1 + s, Q = 1 + τ_a s."""
    q = np.array([tau_a, 1.0])
    left = np.polyadd(np.polymul([1.0, 1.0], q), [w * w])
    left = np.polymul(left, left)
    couplings = {(2 * w * cos(k * pi / depth)) ** 2 for k in range(1, depth)}
    return max(float(np.roots(np.polysub(left, c * q)).real.max()) for c in couplings)


def apical_lag_limit(depth: int, w: float) -> float:
    """Return the smallest unstable τ_a/τ_x from the polynomial, or ∞."""
    return first_unstable(lambda tau: apical_lag_abscissa(depth, w, tau))


def interneuron_lag_limit(depth: int, w: float) -> float:
    """Return τ_I/τ_x = 1/(2w cos(π/L) − 1), or ∞ where 2w cos(π/L) ≤ 1."""
    excess = 2 * w * cos(pi / depth) - 1
    return 1 / excess if excess > 1e-12 else inf


def loop_delay_limit(depth: int, w: float) -> float:
    """Return d/τ_x = (π/2)/h_max for a delay of errors in all their uses."""
    return float(pi / 2 / curvatures(depth, w).max())


def feedback_delay_limit(w: float) -> float:
    """Return Hayes' d/τ_x = arccos(−1/λ)/√(λ²−1), λ = w² (L = 2), or ∞ where λ ≤ 1."""
    strength = w * w
    return acos(-1 / strength) / sqrt(strength**2 - 1) if strength > 1 else inf


def first_unstable(abscissa: Callable[[float], float], points: int = 60) -> float:
    """Return the smallest lag in (0.01, `LARGEST`) with a pole of Re s > 0: scan, then bisect."""
    lags = np.geomspace(0.01, LARGEST, points)
    for low, high in pairwise(lags.tolist()):
        if abscissa(float(high)) <= 1e-12:
            continue
        for _ in range(40):
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if abscissa(middle) > 0 else (middle, high)
        return float(high)
    return inf
