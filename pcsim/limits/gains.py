"""Mismatch of gains, and of time constants: what moves the rest of a circuit, and what does not.

    gains g of a soma's own error, k of its feedback, p of an output's error:
        (G + K θᵀ P θ) x* = G μ + K θᵀ P y                                                 (law 43)
    one gain in all uses of an error unit: a precision, G = P of that layer, K = 1
    time constants of somas, each its own: x* stays                                       (law 22)

Where the errors are zero (data that the network explains) no gain moves anything: learning settles
where it would have.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pcsim.limits.lags import Floats


def rest_with_gains(
    theta0: npt.ArrayLike,
    prediction: npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    soma: npt.ArrayLike = 1.0,
    feedback: npt.ArrayLike = 1.0,
    output: npt.ArrayLike = 1.0,
) -> Floats:
    """Return x* of one linear hidden layer: gains g and k per hidden unit, p per output unit."""
    theta = np.atleast_2d(np.asarray(theta0, dtype=float))
    outputs, hidden = theta.shape
    g, k = (np.broadcast_to(np.asarray(one, dtype=float), (hidden,)) for one in (soma, feedback))
    p = np.broadcast_to(np.asarray(output, dtype=float), (outputs,))
    back = k[:, None] * theta.T * p
    drive = g * np.asarray(prediction, dtype=float) + back @ np.asarray(target, dtype=float)
    return np.asarray(np.linalg.solve(np.diag(g) + back @ theta, drive))
