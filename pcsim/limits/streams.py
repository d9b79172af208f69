"""What always-on learning loses because states travel from one sample to the next.

In a linear network of one hidden layer, H = I + θ^{0ᵀ}θ^0, a presentation of T has the average
update

    E[ε* uᵀ] − Φ Cov(x*, u),    Φ = (τ_x/T) H⁻¹ (I − e^{−HT/τ_x})                       (law 27)

With θ^0 at rest its fixed point answers with (1 − loss) of what it should along each singular
value √λ of θ^0 (h = 1 + λ, φ = Φ of that mode; law 42):

    loss = φ h/(λ + φ) → τ_x/(λ T)

Weak feedback (small λ) needs long presentations. What no output uses is not taught, and only
pulled: there H = 1, and a direction of the inputs of variance v is multiplied by 1 − α φ v with
each sample (law 45). Times in τ_x.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt

from pcsim.limits.lags import Floats


def transient(curvature: npt.ArrayLike, t: float) -> Floats:
    """Return Φ = H⁻¹ (I − e^{−Ht})/t for a presentation of t τ_x."""
    h, modes = np.linalg.eigh(np.atleast_2d(np.asarray(curvature, dtype=float)))
    return np.asarray(modes * share_of_travel(h, t) @ modes.T)


def share_of_travel(h: npt.ArrayLike, t: float) -> Floats:
    """Return φ = (1 − e^{−ht})/(ht): the part of a presentation that a mode spends on its way."""
    way = np.asarray(h, dtype=float) * t
    return np.asarray(-np.expm1(-way) / way)


def bias(curvature: npt.ArrayLike, covariance: npt.ArrayLike, t: float) -> Floats:
    """Return −Φ Cov(x*, u), what carrying over adds to the average update of θ^1."""
    return np.asarray(-transient(curvature, t) @ np.asarray(covariance, dtype=float))


def loss_of_mode(strength: npt.ArrayLike, t: float) -> Floats:
    """Return φ h/(λ + φ), the part of its answer that a mode of feedback power λ loses."""
    power = np.asarray(strength, dtype=float)
    phi = share_of_travel(1 + power, t)
    return np.asarray(phi * (1 + power) / (power + phi))


def excess_of_carrying(theta0: npt.ArrayLike, wanted: npt.ArrayLike, t: float) -> float:
    """Return the excess loss per output unit, ½ E|lost|²/n, of the fixed point of θ^1.

    `theta0` (output, hidden) as reached, `wanted` = E[ŷ ŷᵀ] of the answers without bias. Outputs
    that no hidden unit reaches are no fault of the stream.
    """
    theta = np.atleast_2d(np.asarray(theta0, dtype=float))
    modes, roots, _ = np.linalg.svd(theta, full_matrices=False)
    size = np.einsum("ik,ij,jk->k", modes, np.atleast_2d(np.asarray(wanted, dtype=float)), modes)
    felt = roots > 1e-9 * roots.max(initial=0.0)
    lost = loss_of_mode(roots[felt] ** 2, t) ** 2 * size[felt]
    return float(0.5 * lost.sum() / len(theta))


def shortest_presentation(
    theta0: npt.ArrayLike, wanted: npt.ArrayLike, tolerance: float, most: float = 1e6
) -> float:
    """Return the shortest presentation, in τ_x, whose excess loss is `tolerance`; inf: none."""
    low, high = 1e-3, most
    if excess_of_carrying(theta0, wanted, high) > tolerance:
        return inf
    for _ in range(80):
        middle = sqrt(low * high)
        good = excess_of_carrying(theta0, wanted, middle) <= tolerance
        low, high = (low, middle) if good else (middle, high)
    return high


def kept_unused(variance: npt.ArrayLike, rate: float, samples: float, t: float) -> Floats:
    """Return what is kept of weights that no output uses, of inputs of these variances.

    `rate` per sample; t = ∞ or a feed-forward start keeps all of it.
    """
    pull = rate * share_of_travel(1.0, t) * np.asarray(variance, dtype=float)
    return np.asarray((1 - pull) ** samples)


def samples_until_forgotten(variance: float, rate: float, t: float) -> float:
    """Return after how many samples such weights have fallen to 1/e."""
    return float(-1 / np.log1p(-rate * share_of_travel(1.0, t) * variance))
