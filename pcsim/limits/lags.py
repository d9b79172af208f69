"""Which lags, delays and steps a circuit bears; times in units of τ_x.

Chains x^1 … x^{L−1} of single linear units with equal weights w have closed forms, with curvatures
of inference h_k = 1 + w² − 2w cos(kπ/L), k = 1 … L−1. Networks are given by their weights from the
output up (times the slope of f behind them, where f is not linear), θ^0 first; the weights of the
clamped input play no part. A chain with the norms of a network's weights bounds the network: its
h_max and its λ_max(T) are the larger ones (law 44). So numbers may stand for weights: norms.

    Euler's step          γ h_max < 2
    delay of all errors   d < (π/2) τ_x/h_max
    error units           never unstable; ring above τ_x/(4 h_max)
    interneurons          stable if τ_I (λ_max(T) − 1) < τ_x, sharp for equal chains
    apical dendrites      no closed form beyond chains: eigenvalues, found numerically
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import acos, cos, exp, inf, pi, sqrt
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Branch = Literal["apical", "inter"]
LARGEST = 1e3
"""Lags are searched up to this many τ_x."""


# -- chains of equal weights -----------------------------------------------------------------------


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


# -- networks --------------------------------------------------------------------------------------

Weights = Sequence[npt.ArrayLike]


def error_matrix(weights: Weights) -> Floats:
    """Return A of ε = A x − c over the hidden layers: rows ε^0 … ε^{L−1}, columns x^1 … x^{L−1}."""
    theta = [np.atleast_2d(np.asarray(w, dtype=float)) for w in weights[:-1]]
    outputs = np.atleast_2d(np.asarray(weights[0], dtype=float)).shape[0]
    ends = np.cumsum([0, outputs, *(w.shape[1] for w in theta)])
    a = np.zeros((ends[-1], ends[-1] - outputs))
    a[outputs:] = np.eye(a.shape[1])
    for k, w in enumerate(theta):
        rows = slice(ends[k], ends[k + 1])
        a[rows, ends[k + 1] - outputs : ends[k + 2] - outputs] = -w
    return a


def largest_curvature(weights: Weights) -> float:
    """Return h_max of inference; of norms, a bound on that of any network with these norms."""
    a = error_matrix(weights)
    return float(np.linalg.svd(a, compute_uv=False)[0] ** 2) if a.size else 0.0


def slowest_curvature(weights: Weights) -> float:
    """Return h_min of inference: the slowest mode settles with τ_x/h_min, ∝ L² for w = 1."""
    a = error_matrix(weights)
    return float(np.linalg.svd(a, compute_uv=False)[-1] ** 2)


def norms(weights: Weights) -> list[float]:
    """Return the largest singular value of each weight: the chain that bounds the network."""
    return [float(np.linalg.norm(np.atleast_2d(np.asarray(w, dtype=float)), 2)) for w in weights]


def step_limit(h_max: float) -> float:
    """Return the largest stable γ = dt/τ_x of inference by Euler's method, 2/h_max."""
    return 2 / h_max


def ringing_lag(h_max: float) -> float:
    """Return τ_e/τ_x above which error units ring, 1/(4 h_max); they are stable at any lag."""
    return 1 / (4 * h_max)


def settling_with_error_lag(h: float, tau_e: float) -> float:
    """Return the slowest time constant of a mode with error units, in τ_x: 2 τ_e where it rings."""
    roots = np.roots([tau_e, 1.0, h]) if tau_e else np.array([-h])
    return float(-1 / roots.real.max())


def delay_limit(h_max: float) -> float:
    """Return d/τ_x = (π/2)/h_max, the largest stable delay of errors in all their uses."""
    return pi / 2 / h_max


def interneuron_lag_bound(weights: Weights) -> float:
    """Return τ_I/τ_x = 1/(λ_max(T) − 1), below which no lag of interneurons is unstable; else inf.

    T couples hidden layers by θ^l, both ways. Equal weights w: 1/(2w cos(π/L) − 1), and sharp.
    """
    excess = float(np.linalg.eigvalsh(_coupling(weights)).max(initial=0.0)) - 1
    return 1 / excess if excess > 1e-12 else inf


def growth_with_lag(weights: Weights, branch: Branch, lag: float) -> float:
    """Return the largest real part of the circuit's eigenvalues, in 1/τ_x; unstable above 0.

    `branch` is what is late by `lag` τ_x: the apical dendrite, or the interneurons alone.
    """
    coupling = _coupling(weights)
    one = np.eye(len(coupling))
    a = error_matrix(weights)
    inhibition = a.T @ a - one + coupling  # θ^{(l−1)ᵀ} θ^{l−1} of every hidden layer
    if branch == "inter":
        state = [[coupling - one, -one], [inhibition / lag, -one / lag]]
    else:
        basal = one - np.triu(coupling)
        state = [[-basal, one], [(basal - a.T @ a) / lag, -one / lag]]
    return float(np.linalg.eigvals(np.block(state)).real.max())


def branch_lag_limit(weights: Weights, branch: Branch) -> float:
    """Return the smallest unstable lag of the apical dendrites or the interneurons; inf: none."""
    return first_unstable(lambda lag: growth_with_lag(weights, branch, lag))


def _coupling(weights: Weights) -> Floats:
    """Return T: layer l + 1 drives l by θ^l, and l drives l + 1 by its transpose."""
    a = error_matrix(weights)
    below = a[len(a) - a.shape[1] :] - np.eye(a.shape[1])
    return np.asarray(-below - below.T)


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
