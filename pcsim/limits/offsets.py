"""How much offset of the learning multiplier an always-on linear layer bears, in closed form.

    τ_w dw/dt = g·E[(y − w·r) r] + o  =  g·C (w* − w) + o,      C = E[r rᵀ] = Σ_k λ_k v_k v_kᵀ

    settled           w∞ − w* = C⁻¹ o/g
    after a time t    w − w* = Σ_k v_k (v_k·o)/(g λ_k)·(1 − e^{−g λ_k t/τ_w}),    from w*
    excess loss       ½ E[(Δw·r)²] = ½ Σ_k (v_k·o)²/(g² λ_k)·(1 − e^{−g λ_k t/τ_w})²

It holds where weights move little within a presentation (τ_w ≫ T). With n presentations of T each,
t = n·T: at first the offset that is tolerated falls as 1/T, and it ends at a value that no
presentation time changes. Weak inputs (small λ_k) pull least on their weights: they decide it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def weight_error(
    covariance: ArrayLike, offset: ArrayLike, gain: float = 1.0, *, turns: float = np.inf
) -> Array:
    """Return Δw of one unit, from the optimum, after `turns` = t/τ_w (settled if infinite).

    `covariance` is E[r rᵀ] of the inputs, `offset` the offset of each of its synapses in units of
    e·r (fraction of full scale times full scale). Inputs that never fire drift without end:
    Δw = o·t/τ_w.
    """
    rates, modes = np.linalg.eigh(np.asarray(covariance, dtype=float))
    along = modes.T @ np.asarray(offset, dtype=float)
    pushed = along != 0
    along[pushed] *= _reach(_kept(rates)[pushed] * gain, turns)
    return np.asarray(modes @ along)


def excess_loss(
    covariance: ArrayLike, sigma: float, gain: float = 1.0, *, turns: float = np.inf
) -> float:
    """Return the mean of ½(Δw·r)² per unit where offsets are independent, of deviation `sigma`."""
    rates = _kept(np.linalg.eigvalsh(np.asarray(covariance, dtype=float)))
    felt = rates[rates > 0]  # what never fires is never felt
    return float(0.5 * sigma**2 * (felt * _reach(felt * gain, turns) ** 2).sum())


def tolerable_offset(
    covariance: ArrayLike,
    tolerance: float,
    *,
    presentation: float,
    presentations: float,
    tau_w: float,
    gain: float = 1.0,
) -> float:
    """Return the largest deviation of independent offsets whose excess loss is `tolerance`.

    `presentation` and `tau_w` in seconds; the loss is that of one unit, ½ mean squared error.
    """
    turns = presentation * presentations / tau_w
    return float(np.sqrt(tolerance / excess_loss(covariance, 1.0, gain, turns=turns)))


def _kept(rates: Array) -> Array:
    """Return the eigenvalues of a covariance, zero where only rounding says otherwise."""
    return np.where(rates > 1e-12 * rates.max(initial=0.0), rates, 0.0)


def _reach(rates: Array, turns: float) -> Array:
    """Return (1 − e^{−λ t/τ_w})/λ, which is t/τ_w where nothing pulls back."""
    if np.isinf(turns):
        with np.errstate(divide="ignore"):
            return np.asarray(1 / rates, dtype=float)
    small = np.abs(rates * turns) < 1e-9
    safe = np.where(small, 1.0, rates)
    return np.where(small, turns, -np.expm1(-safe * turns) / safe)
