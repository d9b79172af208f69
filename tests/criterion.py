"""The stated criterion of convergence once more, one chip at a time, in plain words of NumPy.

It leaves out the test for periods: use it for series that have none.
"""

import numpy as np
from scipy import stats

STUDENT = stats.t.ppf(0.999, 14)


def stop_of(series, window, rtol, atol=1e-12):
    """Return the step after which the criterion ends this series; None: never."""
    size = max(1, window // 4)
    quarters: list[float] = []
    rows: dict[int, int] = {}
    for step in range(size, len(series) + 1, size):
        quarters.append(float(np.mean(series[step - size : step])))
        span = 16
        while span <= len(quarters) and step >= 64:
            recent = np.array(quarters[-span:])
            still = _still(recent, quarters, series[0], size / window, rtol, atol)
            rows[span] = rows.get(span, 0) + 1 if still else 0
            if rows[span] >= span // 4:
                return step
            span *= 2
    return None


def _still(recent, quarters, initial, share, rtol, atol):
    means = recent.reshape(16, -1).mean(1)
    place = np.arange(16)
    slope, intercept = np.polyfit(place, means, 1)
    residual = means - intercept - slope * place
    power = residual @ residual
    spread = np.sqrt(power / 14 / np.sum((place - 7.5) ** 2))
    rho = max(0.0, (residual[1:] @ residual[:-1] / power if power else 0.0) + 1 / 8)
    rho = 0.95 if rho > 0.5 else rho
    error = 16 * spread * STUDENT * np.sqrt((1 + rho) / (1 - rho))
    windows = len(recent) * share
    tolerance = rtol * abs(means.mean()) + atol * abs(initial)
    lowest = min(quarters)
    low = means.mean() <= lowest + 0.25 * abs(lowest) + 4 * recent.std() + tolerance
    return (abs(16 * slope) + error) / windows < tolerance and low
