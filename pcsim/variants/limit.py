"""Where a verdict changes: the loss that the yield of all chips stay within, and its crossing.

Chip k of K loses ℓ_k against the reference, mean over seeds, with the error e of the seeds that is
common to all chips (`pcsim.check.criterion`). With losses that are normal over chips, of mean m and
deviation s, a share p of all chips there could be loses at most

    q = m + z_p s,      between m + t′(doubt) s/√K − e and m + t′(1 − doubt) s/√K + e

(t′ the noncentral t of K − 1 degrees of freedom with noncentrality z_p √K: the exact interval of a
quantile; both errors at once, so that it is rather too wide). A chip trains where q is at most the
tolerance.

Variants are tried on k of the K chips, the same ones. What is uncertain is then how much q moves,
not what it is: q of the variant is q of all K chips plus the change of q of the k chips. The error
of the change is a jackknife over chips, in quadrature with that of the K chips; the error of the
variant's seeds is added. A change of nothing thus has the interval of the chip as it is.

Along a number, q, and the ends of its interval, are made monotone by isotonic regression
and are linear between values; where they cross the tolerance, the verdict changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import nct, norm, t

from pcsim.check.criterion import Criterion

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval."""

    value: float
    low: float
    high: float

    @property
    def sure(self) -> bool:
        """Whether the interval leaves no doubt about the sign."""
        return self.low > 0 or self.high < 0


def losses(accuracy: Array, reference: Array) -> Array:
    """Return what each training (seed, chip) loses; what diverged has nothing right."""
    right = np.nan_to_num(np.asarray(accuracy, dtype=float))
    return np.asarray(np.asarray(reference, dtype=float)[:, None] - right)


def limit_loss(lost: Array, criterion: Criterion) -> Estimate:
    """Return the loss that the yield of all chips stay within, from losses (seed, chip)."""
    one, error = _of_chips(lost.mean(0), criterion), _of_seeds(lost, criterion)
    return Estimate(one.value, one.low - error, one.high + error)


def moved_limit(lost: Array, before: Array, whole: Array, criterion: Criterion) -> Estimate:
    """Return the limit of a variant: that of the whole population, moved as some of its chips are.

    `lost` and `before` are losses (seed, chip) of the same chips, `whole` those of all chips.
    """
    start, error = _of_chips(whole.mean(0), criterion), _of_seeds(lost, criterion)
    here, there = lost.mean(0), before.mean(0)

    def step(keep: slice | Array) -> float:
        return _quantile(here[keep], criterion) - _quantile(there[keep], criterion)

    chips = len(here)
    value, doubt = start.value + step(slice(None)), 0.0
    if chips > 2:
        left = np.array([step(np.arange(chips) != k) for k in range(chips)])
        scatter = sqrt((chips - 1) / chips * float(((left - left.mean()) ** 2).sum()))
        doubt = float(t.ppf(0.5 + criterion.confidence / 2, chips - 1)) * scatter
    down, up = start.value - start.low, start.high - start.value
    return Estimate(value, value - hypot(down, doubt) - error, value + hypot(up, doubt) + error)


def _quantile(of_chip: Array, criterion: Criterion) -> float:
    """Return the loss that the yield of normal chips stay within."""
    spread = float(of_chip.std(ddof=1)) if len(of_chip) > 1 else 0.0
    return float(of_chip.mean()) + float(norm.ppf(criterion.yield_)) * spread


def _of_chips(of_chip: Array, criterion: Criterion) -> Estimate:
    """Return the quantile with the interval that few chips leave."""
    value, chips = _quantile(of_chip, criterion), len(of_chip)
    if chips == 1:
        return Estimate(value, value, value)
    doubt = (1 - criterion.confidence) / 2
    away, root = float(norm.ppf(criterion.yield_)) * sqrt(chips), sqrt(chips)
    centre, spread = float(of_chip.mean()), float(of_chip.std(ddof=1))
    low, high = (float(nct.ppf(p, chips - 1, away)) / root for p in (doubt, 1 - doubt))
    return Estimate(value, centre + low * spread, centre + high * spread)


def _of_seeds(lost: Array, criterion: Criterion) -> float:
    """Return half the interval that few seeds leave, common to all chips."""
    seeds = len(lost)
    if seeds < 2:
        return inf
    scatter = float(np.median(lost, axis=1).std(ddof=1))
    return float(t.ppf(0.5 + criterion.confidence / 2, seeds - 1)) * scatter / sqrt(seeds)


def paired(gains: Array, confidence: float) -> Estimate:
    """Return the mean of differences (seed, chip), with Student's interval over seeds."""
    of_seed = gains.mean(1)
    centre = float(of_seed.mean())
    if len(of_seed) < 2:
        return Estimate(centre, -inf, inf)
    doubt = (1 - confidence) / 2
    scatter = float(of_seed.std(ddof=1)) / sqrt(len(of_seed))
    error = float(t.ppf(1 - doubt, len(of_seed) - 1)) * scatter
    return Estimate(centre, centre - error, centre + error)


def isotonic(values: Sequence[float]) -> list[float]:
    """Return the nearest numbers that never fall (least squares): max–min of running means."""
    found = []
    for k in range(len(values)):
        least = [
            min(float(np.mean(values[first : last + 1])) for last in range(k, len(values)))
            for first in range(k + 1)
        ]
        found.append(max(least))
    return found


def crossing(places: Sequence[float], values: Sequence[float], level: float) -> float:
    """Return where values that rise along ascending places pass a level; inf: nowhere."""
    rising = isotonic(values)
    if rising[0] > level + 1e-9:  # what is equal on paper is equal here
        return float(places[0])
    for k in range(1, len(places)):
        if rising[k] > level + 1e-9:
            step = (level - rising[k - 1]) / (rising[k] - rising[k - 1])
            return float(places[k - 1] + max(step, 0.0) * (places[k] - places[k - 1]))
    return inf


def change(places: Sequence[float], limits: Sequence[Estimate], level: float) -> Estimate:
    """Return where along ascending places a chip that trains stops training, with its interval."""
    columns = ([one.value for one in limits], [e.high for e in limits], [e.low for e in limits])
    return Estimate(*(crossing(places, column, level) for column in columns))


def rescue(places: Sequence[float], limits: Sequence[Estimate], level: float) -> Estimate:
    """Return where along ascending places a chip that does not train begins to.

    Beyond the best place it may get worse again: that is another question.
    """
    best = min(range(len(limits)), key=lambda k: limits[k].value) + 1
    turned = [Estimate(-one.value, -one.high, -one.low) for one in limits[:best]]
    return change(places[:best], turned, -level)
