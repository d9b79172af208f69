"""Which of two falling curves is faster: how much effort each needs to reach the same level."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


def effort_to_reach(effort: Floats, curve: Floats, level: float) -> float:
    """Return the first effort at which the curve is at or below the level; inf if never."""
    below = np.nonzero(np.asarray(curve) <= level)[0]
    return float(effort[below[0]]) if len(below) else float("inf")


def speed_up(effort: Floats, curve: Floats, rival_effort: Floats, rival: Floats) -> float:
    """Return (effort of the rival) / (effort of the curve) to the rival's lowest level.

    Above 1 the curve is faster. A curve that never gets there has 0, a rival that never left its
    start (or diverged everywhere) has inf, since any curve is as good without effort.
    """
    finite = np.where(np.isfinite(rival), rival, np.inf)
    level = float(finite.min())
    if not np.isfinite(level) or level >= finite[0]:
        return float("inf")
    own = effort_to_reach(effort, np.where(np.isfinite(curve), curve, np.inf), level)
    if np.isinf(own):
        return 0.0
    needed = effort_to_reach(rival_effort, finite, level)
    return needed / own if own else float("inf")
