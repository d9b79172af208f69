"""Weights that are written in steps, by devices that are not symmetric, forget, or are noisy.

α = t_write/τ_w per write, g = ε r the mean of what is asked during it, C = E[r rᵀ] of the inputs.

    nearest       an update is lost iff |α g| < LSB/2: no accumulator, and learning stalls (law 24)
    pulses        whole steps q at random, right in the mean: excess ¼ q Σ_j E|g_j|, any α (law 40)
    accumulator   learns exactly, reads LSB/2 off: ½ Σ r² LSB²/6 (law 24)
    asymmetry     drift −(w − w_sp) E|α g|·slope towards the symmetry point (laws 25 and 41)
    retention     C (w* − w) = (τ_w/τ_d) w (law 25)
    write noise   best rate α* = σ_w/s, floor ½ σ_w s (law 25)
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, inf, log2, pi, sqrt

import numpy as np
import numpy.typing as npt

from pcsim.limits.lags import Floats

MEAN_OF_NORMAL = sqrt(2 / pi)
"""E|z| of a standard normal number."""


def step_of(bits: int, span: float) -> float:
    """Return the LSB of 2^bits − 1 levels from −span to span, zero among them."""
    return float(span / (2 ** (bits - 1) - 1))


def share_lost(updates: npt.ArrayLike, lsb: float) -> float:
    """Return the share of updates α g that rounding to the nearest level loses: |α g| < LSB/2."""
    return float((np.abs(np.asarray(updates)) < lsb / 2).mean())


def least_bits(span: float, update: float) -> float:
    """Return the fewest bits that write an update of size `update`: LSB/2 ≤ |α g|.

    A longer time between writes, or a larger α, saves a bit per factor of two. inf for no update.
    """
    return ceil(1 + log2(span / (2 * update) + 1) - 1e-9) if update > 0 else inf


def stall_error(lsb: float, alpha: float, rate: float) -> float:
    """Return the error below which nothing is written any more, LSB/(2 α |r|).

    `rate` is the largest |r_j| of a sample: the last weight to stall.
    """
    return lsb / (2 * alpha * rate)


def excess_of_stalling(lsb: float, alpha: float, rates: npt.ArrayLike) -> float:
    """Return the excess loss at which rounding to nearest stalls: ½ Σ of stall_error²/3.

    Errors end below their thresholds; evenly spread they have a third of the square. Three times
    the value is a bound; unequal samples hold each other down to a quarter of it (measured).
    `rates` (sample, input).
    """
    top = np.abs(np.atleast_2d(np.asarray(rates, dtype=float))).max(1)
    return float((0.5 * (lsb / (2 * alpha * top[top > 0])) ** 2 / 3).mean())


def excess_of_pulses(
    quantum: float, activity: float, residual: float = 0.0, cycle_noise: float = 0.0
) -> float:
    """Return the excess loss of a unit whose weights move by whole pulses, at random.

    ½ E(Δw·r)² = ¼ q (1 + c²) Σ_j E|ε r_j|, with E|ε| = √(2/π)·√(2·excess + residual²):

        a = q (1 + c²) R/√(8π),  R = Σ_j E|r_j|;    excess = a² + √(a⁴ + a² residual²)

    Independent of α and of presentation time; grows with the fan-in, with its square where the
    residual error is small. It holds for |α g| < q and α Σ r² ≪ 2, and has the noise of single
    samples in it. `cycle_noise` c: spread of one pulse, relative to it.
    """
    a = quantum * (1 + cycle_noise**2) * activity * MEAN_OF_NORMAL / 4
    return a * a + sqrt(a**4 + (a * residual) ** 2)


def excess_of_rounded_reads(lsb: float, power: float) -> float:
    """Return the excess loss of exact weights that are read rounded: ½ Σ E r²·LSB²/6.

    In the loop a weight toggles between two levels with the right mean: δ (LSB − δ), LSB²/6 in the
    mean over δ; many weights share their errors (measured: 0.8 to 1.3 times that).
    """
    return 0.5 * power * lsb**2 / 6


def asymmetric_weights(
    covariance: npt.ArrayLike,
    best: npt.ArrayLike,
    activity: npt.ArrayLike,
    residual: float,
    *,
    bound: float = inf,
    up: float = 1.0,
    down: float = 1.0,
) -> tuple[Floats, float]:
    """Return where soft-bounded devices settle, and the excess loss ½ (w − w*)ᵀ C (w − w*).

    Steps up·(1 − w/bound) and down·(1 + w/bound), relative to what is asked. Mean drift

        a(w) C (w* − w) + b(w) ∘ E|ε r| = 0,    a = mean of both steps, b = half their difference

    with E|ε r_j| = √(2/π)·√(2·excess + residual²)·E|r_j|, solved for the excess; independent of α.
    `best` w*, `activity` E|r_j|, `residual` the root mean square of what no weight explains. Inputs
    that never fire ask for nothing: their weights stay. Without bounds the excess is that of
    `excess_of_imbalance`, and weights move only where the inputs feel it; where nothing settles
    they are nan, and the excess inf.
    """
    c, goal = np.asarray(covariance, dtype=float), np.asarray(best, dtype=float)
    each = np.asarray(activity, dtype=float)
    if bound == inf:
        excess = excess_of_imbalance(c, each, residual, up=up, down=down)
        size = MEAN_OF_NORMAL * sqrt(2 * excess + residual**2)
        push = (up - down) / (up + down) * size if up != down else 0.0
        return goal + push * (felt_inverse(c) @ each) if excess < inf else goal + np.nan, excess
    fires = each > 0
    c, each, wanted = c[np.ix_(fires, fires)], each[fires], goal[fires]
    w, excess = wanted, 0.0
    for _ in range(400):
        size = MEAN_OF_NORMAL * sqrt(2 * excess + residual**2)
        mean = (up + down) / 2 + (down - up) / bound * w / 2
        pull = (up + down) / (2 * bound) * each * size
        w = np.linalg.solve(
            mean[:, None] * c + np.diag(pull), mean * (c @ wanted) + (up - down) / 2 * each * size
        )
        before, excess = excess, 0.5 * excess + 0.25 * float((w - wanted) @ c @ (w - wanted))
        if abs(excess - before) <= 1e-12 * excess:
            break
    settled = goal.copy()
    settled[fires] = w
    return settled, excess


def felt_inverse(covariance: npt.ArrayLike) -> Floats:
    """Return C⁻¹ along the directions that inputs have, and nothing along those they never have."""
    return np.asarray(np.linalg.pinv(np.asarray(covariance, dtype=float), 1e-10, hermitian=True))


def push_of_activity(covariance: npt.ArrayLike, activity: npt.ArrayLike) -> float:
    """Return K = E|r|ᵀ C⁻¹ E|r|: at most 1 for inputs that are never negative."""
    each = np.asarray(activity, dtype=float)
    return float(each @ felt_inverse(covariance) @ each)


def excess_of_imbalance(
    covariance: npt.ArrayLike,
    activity: npt.ArrayLike,
    residual: float,
    *,
    up: float = 1.0,
    down: float = 1.0,
) -> float:
    """Return the excess loss of steps up and down that do not depend on the weight.

        w − w* = ρ E|ε| C⁻¹ E|r|,  ρ = (up − down)/(up + down)
        excess = ½ s² a/(1 − a),   a = (2/π) ρ² K,  K as in `push_of_activity`

    inf for a ≥ 1: the larger the error, the harder the push. What never fires drifts and is never
    felt. Independent of w* and of α.
    """
    rho = (up - down) / (up + down)
    a = (MEAN_OF_NORMAL * rho) ** 2 * push_of_activity(covariance, activity)
    return 0.5 * residual**2 * a / (1 - a) if a < 1 else inf


def tolerable_imbalance(
    covariance: npt.ArrayLike, activity: npt.ArrayLike, residual: float, tolerance: float
) -> float:
    """Return the imbalance 1 − down/up whose excess loss is `tolerance`; inf: none is as large."""
    a = tolerance / (tolerance + residual**2 / 2) if residual else 1.0
    push = push_of_activity(covariance, activity)
    rho = sqrt(a / push) / MEAN_OF_NORMAL if push else inf
    return 2 * rho / (1 + rho) if rho <= 1 else inf


def excess_of_soft_bounds(
    covariance: npt.ArrayLike, best: npt.ArrayLike, activity: npt.ArrayLike, residual: float
) -> Callable[[float], Floats]:
    """Return a function from the bound to the excess loss of each output; `best` (output, input).

    Steps 1 ∓ w/bound: (C + κD)(w* − w) = κD w*, D = diag(E|r|), κ = E|ε|/bound. With the modes of
    D^(−½) C D^(−½) = U μ Uᵀ and y = Uᵀ D^(½) w*

        excess = ½ Σ_k μ_k (κ y_k/(μ_k + κ))²

    which is `asymmetric_weights` with steps alike, for all bounds at once.
    """
    c, goal = np.asarray(covariance, dtype=float), np.atleast_2d(np.asarray(best, dtype=float))
    each = np.asarray(activity, dtype=float)
    fires = each > 0
    root = np.sqrt(each[fires])
    mu, modes = np.linalg.eigh(c[np.ix_(fires, fires)] / np.outer(root, root))
    mu = np.maximum(mu, 0.0)
    y = (goal[:, fires] * root) @ modes

    def excess(bound: float) -> Floats:
        lost = np.zeros(len(goal))
        for _ in range(400):
            kappa = (MEAN_OF_NORMAL * np.sqrt(2 * lost + residual**2) / bound)[:, None]
            with np.errstate(invalid="ignore"):  # 0/0 where nothing is felt and nothing pulls
                away = np.nan_to_num(kappa * y / (mu + kappa))
            before, lost = lost, 0.5 * (mu * away**2).sum(1)
            if np.abs(lost - before).max() <= 1e-12 * lost.max():
                break
        return np.asarray(lost)

    return excess


def folded_normal_mean(mean: float, deviation: float) -> float:
    """Return E|g| of a normal g."""
    from scipy.stats import norm

    ratio = mean / deviation
    bulk = deviation * MEAN_OF_NORMAL * float(np.exp(-ratio * ratio / 2))
    return float(bulk + mean * (1 - 2 * norm.cdf(-ratio)))


def soft_bound_weight(target: float, noise: float, bound: float = 1.0) -> float:
    """Return where E[g] = (w/bound)·E|g| for g = (w* − w) + noise: one weight, exactly."""
    return _zero(
        lambda w: (target - w) - w / bound * folded_normal_mean(target - w, noise), 0.0, target
    )


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return (low + high) / 2


def retained_weights(
    covariance: npt.ArrayLike, best: npt.ArrayLike, tau_w: float, lifetime: float
) -> Floats:
    """Return where learning balances forgetting: (C + τ_w/τ_d)⁻¹ C w*.

    `best` (output, input), or of one output: w*/(1 + τ_w/(τ_d λ)) along a direction of power
    λ = σ_f². Weak inputs forget first.
    """
    c = np.asarray(covariance, dtype=float)
    ratio = tau_w / lifetime * np.eye(len(c))
    return np.asarray(np.linalg.solve(c + ratio, c @ np.asarray(best, dtype=float).T).T)


def excess_of_retention(
    covariance: npt.ArrayLike, best: npt.ArrayLike, tau_w: float, lifetime: float
) -> float:
    """Return ½ (w − w*)ᵀ C (w − w*) of the retained weights, mean over outputs if several."""
    c, goal = np.asarray(covariance, dtype=float), np.asarray(best, dtype=float)
    gap = np.atleast_2d(retained_weights(c, goal, tau_w, lifetime) - goal)
    return float(0.5 * np.einsum("oi,ij,oj->o", gap, c, gap).mean())


def excess_of_write_noise(
    sigma: float, noise: float, alpha: float, power: float, count: int = 1
) -> float:
    """Return the excess loss of a unit of `count` weights with noise σ_w at each write.

    (n σ_w²/α + α s² Σ r²)/(4 (1 − α Σ r²/2)): the noise stays (a random walk); s is the noise of
    an error. One input of power h: (σ_w²/α + α s² h)/(4 (1 − α h/2)).
    """
    walk, read = count * sigma**2 / alpha, alpha * noise**2 * power
    return (walk + read) / (4 * (1 - alpha * power / 2))


def best_rate(sigma: float, noise: float, power: float = 1.0, count: int = 1) -> float:
    """Return α* = σ_w √n/(s √(Σ r²)), at which the excess is ½ σ_w s √(n Σ r²)."""
    return sigma * sqrt(count) / (noise * sqrt(power))
