"""When numbers have left the range in which they mean something.

|x|, |θ| ≥ LIMIT,   F per sample ≥ LIMIT²/2,   or not a number
"""

from __future__ import annotations

import numpy as np

LIMIT = 1e6
"""A state or a weight beyond this is called diverged, long before numbers overflow."""


def lost_energy(energy: np.ndarray) -> np.ndarray:
    """Return which energies per sample cannot be those of states within the limit."""
    return np.asarray(~(np.abs(energy) < LIMIT**2 / 2))


def lost_weights(weights: np.ndarray) -> np.ndarray:
    """Return which sets of weights (…, parameter) hold one beyond the limit."""
    if not weights.shape[-1]:
        return np.zeros(weights.shape[:-1], dtype=bool)
    # The largest and the smallest number need no copy of all of them, as |θ| does.
    return np.asarray(~((weights.max(-1) < LIMIT) & (weights.min(-1) > -LIMIT)))
