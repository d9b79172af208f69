"""The gap between two runs with its confidence interval over seeds.

Paired, d_s = a_s − r_s of the same seed s:      mean(d) ± t_{n−1} · SD(d)/√n
Unpaired (Welch):                                mean(a) − mean(r) ± t_ν · √(s_a²/n_a + s_r²/n_r)

Beside the t interval stands a bootstrap one (bias-corrected and accelerated), which needs no normal
distribution, but enough seeds: below `BOOTSTRAP_SEEDS` it is too narrow, and is not given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[Any]

BOOTSTRAP_SEEDS = 10
BOOTSTRAP_DRAWS = 9999


@dataclass(frozen=True)
class Gap:
    """Mean difference and its limits; NaN where too few seeds allow none."""

    mean: float
    low: float
    high: float
    bootstrap_low: float
    bootstrap_high: float
    pairs: int
    """Pairs, or the smaller of the two numbers of seeds."""


def paired_gap(difference: Array, confidence: float) -> Gap:
    """Return the gap from the differences of each seed (seed,)."""
    n = len(difference)
    mean = float(np.mean(difference))
    if n < 2:
        return Gap(mean, np.nan, np.nan, np.nan, np.nan, n)
    sd = float(np.std(difference, ddof=1))
    half = float(stats.t.ppf(0.5 + confidence / 2, n - 1)) * sd / np.sqrt(n)
    low, high = _bootstrap((difference,), np.mean, confidence)
    return Gap(mean, mean - half, mean + half, low, high, n)


def unpaired_gap(reference: Array, other: Array, confidence: float) -> Gap:
    """Return the gap between the means of two groups of seeds, by Welch's interval."""
    n = min(len(reference), len(other))
    mean = float(np.mean(other) - np.mean(reference))
    if n < 2:
        return Gap(mean, np.nan, np.nan, np.nan, np.nan, n)
    parts = np.array([np.var(g, ddof=1) / len(g) for g in (reference, other)])
    if not parts.sum():
        return Gap(mean, mean, mean, *_bootstrap((other, reference), _difference, confidence), n)
    freedom = parts.sum() ** 2 / np.sum(parts**2 / (np.array([len(reference), len(other)]) - 1))
    half = float(stats.t.ppf(0.5 + confidence / 2, freedom) * np.sqrt(parts.sum()))
    low, high = _bootstrap((other, reference), _difference, confidence)
    return Gap(mean, mean - half, mean + half, low, high, n)


def _difference(other: Array, reference: Array, axis: int = -1) -> Array:
    return np.asarray(np.mean(other, axis=axis) - np.mean(reference, axis=axis))


def _bootstrap(groups: tuple[Array, ...], statistic: Any, confidence: float) -> tuple[float, float]:
    if min(len(g) for g in groups) < BOOTSTRAP_SEEDS:
        return np.nan, np.nan
    if all(np.ptp(g) == 0 for g in groups):  # nothing to draw from
        exact = float(statistic(*groups))
        return exact, exact
    interval = stats.bootstrap(
        groups,
        statistic,
        n_resamples=BOOTSTRAP_DRAWS,
        vectorized=True,
        confidence_level=confidence,
        method="BCa",
        random_state=np.random.default_rng(0),
    )
    return float(interval.confidence_interval.low), float(interval.confidence_interval.high)
