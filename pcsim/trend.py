"""Whether a noisy series moves, stands or swings: a trend with its error, and a test for periods.

A span of the series is cut into sixteen blocks of equal length. Through their means mₖ goes a
straight line, m̂ₖ = level + slope·k, whose residuals tell how well the slope is known:

    s² = Σ (mₖ − m̂ₖ)² / (n − 2)              scatter of the block means
    ρ  = lag-1 autocorrelation of the residuals, not below 0
    change = n · slope,   error = t · n · s/√Σ(k − k̄)² · √((1 + ρ)/(1 − ρ))

with t the quantile of Student's distribution (n − 2 degrees of freedom) that a one-sided error of
one in a thousand leaves. Block means forget correlations shorter than a block; ρ accounts for
longer ones. Everything is per row: no chip's answer depends on another chip.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

Array = npt.NDArray[Any]

BLOCKS = 16
DOUBT = 1e-3
"""Probability that a change of pure noise exceeds its error, on one side."""
RESOLVED = 0.5
"""Residuals that are correlated more strongly than this belong to blocks that are too short to
tell how long they are correlated,"""
UNRESOLVED = 0.95
"""and count as correlated by this much."""


@dataclass(frozen=True, eq=False)
class Trend:
    """One entry per row."""

    level: Array
    level_error: Array
    change: Array
    """From the beginning to the end of the span."""
    error: Array


def block_means(series: Array, blocks: int = BLOCKS) -> Array:
    """Return the means (row, block) of equal blocks; what does not fit is left out at the start."""
    rows, length = series.shape
    blocks = min(blocks, length)
    size = length // blocks
    return np.asarray(series[:, length - blocks * size :].reshape(rows, blocks, size).mean(2))


def trend(means: Array) -> Trend:
    """Fit a line through block means (row, block); with fewer than three there is no error."""
    count = means.shape[1]
    place = np.arange(count) - (count - 1) / 2
    weight = float(place @ place) or 1.0
    level = means.mean(1)
    slope = (means - level[:, None]) @ place / weight
    if count < 3:
        nothing = np.zeros(len(means))
        return Trend(level, nothing, count * slope, nothing)
    residual = means - level[:, None] - slope[:, None] * place
    power = (residual**2).sum(1)
    scatter = np.sqrt(power / (count - 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        lag = (residual[:, 1:] * residual[:, :-1]).sum(1) / power
    # A fitted line takes about 2/n from the autocorrelation of its residuals.
    rho = np.clip(np.nan_to_num(lag) + 2 / count, 0, None)
    rho = np.where(rho > RESOLVED, UNRESOLVED, rho)
    doubt = _quantile(count - 2) * scatter * np.sqrt((1 + rho) / (1 - rho))
    return Trend(level, doubt / np.sqrt(count), count * slope, count * doubt / np.sqrt(weight))


@cache
def _quantile(freedom: int) -> float:
    return float(stdtrit(freedom, 1 - DOUBT))


def swing(series: Array) -> float:
    """Return the root mean square of a series around its parabola."""
    return float(np.sqrt(np.mean(_detrended(series) ** 2)))


def period(series: Array) -> int:
    """Return the period of a series that repeats itself, in its own steps; 0: it does not.

    Its autocorrelation r must fall below −0.3 and come back to more than 0.5 at a lag P of at most
    a quarter of the series, and again at 2P. Noise, correlated or not, and random walks do not.
    """
    length = len(series)
    if length < 12 or not np.isfinite(series).all():
        return 0
    around = _detrended(series)
    power = float(around @ around)
    if power <= (1e-12 * np.abs(series).max()) ** 2 * length:
        return 0
    spectrum = np.fft.rfft(around, 2 * length)
    products = np.fft.irfft(spectrum * spectrum.conj())[: length // 2 + 1]
    r = products / (length - np.arange(len(products))) * length / power
    below = np.flatnonzero(r < -0.3)
    if not len(below) or below[0] >= length // 4:
        return 0
    first = int(below[0])
    lag = first + int(np.argmax(r[first : length // 4 + 1]))
    again = r[2 * lag - lag // 4 : min(2 * lag + lag // 4, len(r) - 1) + 1]
    return lag if r[lag] > 0.5 and again.max(initial=-1) > 0.5 else 0


def _detrended(series: Array) -> Array:
    basis = _parabolas(len(series))
    return np.asarray(series - basis @ (series @ basis))


@cache
def _parabolas(length: int) -> Array:
    """Return an orthonormal basis (length, 3) of parabolas."""
    place = np.linspace(-1, 1, length)
    return np.asarray(np.linalg.qr(np.stack([np.ones_like(place), place, place**2], 1))[0])
