"""How much disturbance of its outputs a classifier bears: from points of accuracy to a loss.

Independent normal disturbances of variance v at all outputs leave a sample right with probability

    ∫ φ(z) Π_{k ≠ c} Φ(z + m_k/√v) dz,    m_k = (output of the class c) − (output k)

The outputs are those of an undisturbed network on samples it has not learnt. A variance v is an
excess loss of ½ v per output unit.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from pcsim.limits.lags import Floats

POINTS, REACH = 61, 6.0
"""Values of z, evenly spaced within ±REACH standard deviations."""


def accuracy_when_disturbed(
    outputs: npt.ArrayLike, labels: npt.ArrayLike, variance: float
) -> float:
    """Return the expected accuracy; `outputs` (sample, class), `labels` the right classes."""
    scores, right = np.asarray(outputs, dtype=float), np.asarray(labels)
    if variance <= 0:
        return float((scores.argmax(1) == right).mean())
    margin = _margins(scores, right) / sqrt(variance)
    z = np.linspace(-REACH, REACH, POINTS)
    weight = np.exp(-(z**2) / 2)
    others = ndtr(z[:, None, None] + margin).prod(2)
    return float(((weight / weight.sum())[:, None] * others).sum(0).mean())


def tolerable_variance(outputs: npt.ArrayLike, labels: npt.ArrayLike, points: float) -> float:
    """Return the variance of the outputs at which the accuracy has fallen by `points` (0.05)."""
    least = accuracy_when_disturbed(outputs, labels, 0.0) - points
    low, high = 1e-12, 1e6
    if accuracy_when_disturbed(outputs, labels, high) >= least:
        return inf
    for _ in range(60):
        middle = sqrt(low * high)
        good = accuracy_when_disturbed(outputs, labels, middle) >= least
        low, high = (middle, high) if good else (low, middle)
    return low


def _margins(scores: Floats, right: npt.NDArray[np.int64]) -> Floats:
    """Return m_k (sample, other class)."""
    chosen = np.take_along_axis(scores, right[:, None], 1)
    others = np.ones(scores.shape, dtype=bool)
    np.put_along_axis(others, right[:, None], False, 1)
    return np.asarray((chosen - scores)[others].reshape(len(scores), -1))
