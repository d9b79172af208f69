"""What it takes to reach a target accuracy: samples, updates, simulated time."""

from __future__ import annotations

import numpy as np

from pcsim.compare.contender import Array, Contender
from pcsim.runner.progress import PROGRESS

DEFAULT_SHARE = 0.95
"""Without a target: this share of the reference's mean final accuracy."""


def default_target(reference: Contender) -> float:
    """Return a target that the reference itself passes on its way."""
    return DEFAULT_SHARE * float(np.mean(reference.accuracy))


def to_target(contender: Contender, target: float) -> dict[str, Array]:
    """Return the progress (seed,) at the first record at or above the target; NaN if never.

    Accuracy is known at records only (usually once per epoch), so these are upper limits.
    """
    curve = contender.accuracy_curve
    above = curve.values >= target
    first = np.argmax(above, axis=1)[:, None]
    reached = above.any(axis=1)
    return {
        name: np.where(reached, np.take_along_axis(curve.progress[name], first, 1)[:, 0], np.nan)
        for name in PROGRESS
    }
