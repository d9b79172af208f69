"""Few seeds, honest intervals: means with Student's t, differences paired by seed.

    interval = mean ± t(n − 1, 97.5 %) · SD / √n,      SD with n − 1 in the denominator

Two rules trained with the same seeds share initial weights and the order of the samples, so their
difference is taken seed by seed before it is averaged.

How many seeds? If differences have the mean d and the standard deviation s, the interval of n of
them leaves zero out with the probability (power)

    P(|t'| > t(n − 1, 97.5 %)),      t' noncentral with n − 1 degrees of freedom at d √n / s
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.stats import chi, norm
from scipy.stats import t as student

from .claims import Verdict

Floats = npt.NDArray[np.floating]
QUANTILES = (np.arange(500) + 0.5) / 500
"""Where the spread of a sample is taken to average over it."""


@dataclass(frozen=True)
class Interval:
    """A mean, its standard deviation over seeds, and the half-width of its 95 % interval."""

    mean: float
    sd: float
    half: float

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half

    def percent(self) -> str:
        """Return mean ± SD in percent (or points), and the interval."""
        shown = f"{100 * self.mean:.2f} ± {100 * self.sd:.2f}"
        if not np.isfinite(self.half):
            return f"{shown} [one seed: no interval]"
        return f"{shown} [{100 * self.low:.2f}, {100 * self.high:.2f}]"


def interval(values: Floats) -> Interval:
    """Return the mean over seeds with its interval, which is infinite for a single seed."""
    n = len(values)
    if n < 2:
        return Interval(float(values[0]), 0.0, float("inf"))
    sd = float(np.std(values, ddof=1))
    return Interval(float(np.mean(values)), sd, float(student.ppf(0.975, n - 1)) * sd / n**0.5)


def power(difference: float, sd: float, seeds: int) -> float:
    """Return the probability that so many seeds tell a difference from zero at 95 %."""
    if seeds < 2 or not difference:
        return 0.0
    if not sd:
        return 1.0
    freedom, centre = seeds - 1, abs(difference) / sd * seeds**0.5
    # t' = (z + centre) / w, averaged over w: SciPy's own distribution function of a noncentral t
    # is NaN at many centres.
    edge = float(student.ppf(0.975, freedom)) * chi.ppf(QUANTILES, freedom) / freedom**0.5
    return float(1 - np.mean(norm.cdf(edge - centre) - norm.cdf(-edge - centre)))


def seeds_needed(difference: float, sd: float, wanted: float = 0.8, most: int = 1000) -> int | None:
    """Return the fewest seeds that tell a difference with the wanted power; None: above `most`."""
    return next((n for n in range(2, most + 1) if power(difference, sd, n) >= wanted), None)


def told(sd: float, seeds: int, wanted: float = 0.8) -> float:
    """Return the smallest difference that so many seeds tell from zero with the wanted power."""
    if seeds < 2:
        return float("inf")
    if not sd:
        return 0.0
    return sd * float(brentq(lambda d: power(d, 1.0, seeds) - wanted, 1e-3, 20.0))


def judge_greater(difference: Interval) -> Verdict:
    """Judge a > b from the interval of a − b: undecided while it contains zero."""
    if difference.low > 0:
        return Verdict.HOLDS
    return Verdict.FAILS if difference.high < 0 else Verdict.OPEN


def judge_as_large(difference: Interval, claimed: float) -> Verdict:
    """Judge a > b by as much as is claimed: it fails where the interval lies below that, too."""
    found = judge_greater(difference)
    if found is Verdict.OPEN and difference.high < claimed:
        return Verdict.FAILS
    return found


def judge_comparable(difference: Interval, margin: float) -> Verdict:
    """Judge |a − b| < margin: undecided while the interval of a − b contains an end of ±margin."""
    if -margin < difference.low and difference.high < margin:
        return Verdict.HOLDS
    apart = difference.high < -margin or difference.low > margin
    return Verdict.FAILS if apart else Verdict.OPEN
