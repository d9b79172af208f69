"""What became of a point: done, failed, or diverged."""

from __future__ import annotations

import numpy as np

from pcsim.divergence import lost_energy, lost_weights
from pcsim.store import Result

DONE, FAILED, DIVERGED, MISSING = "done", "failed", "diverged", "missing"


def outcome_of(point: Result) -> tuple[str, str]:
    """Return the status of a point and the reason, if there is something to say."""
    if "failure" in point.attrs:
        return FAILED, str(point.attrs["failure"])
    gone = _diverged(point)
    lost, replicas = int(gone.sum()), gone.size
    reason = f"{lost} of {replicas} replicas diverged" if lost else ""
    return (DIVERGED if lost and lost == replicas else DONE), reason


def _diverged(point: Result) -> np.ndarray:
    """Return which replicas have diverged, by name or because their numbers are out of range."""
    marks = [point[n] == "diverged" for n in ("verdict.outcome", "outcome") if n in point.variables]
    if "diverged" in point.variables:
        marks.append(point["diverged"].astype(bool))
    if "train_energy" in point.variables:
        marks.append(lost_energy(point["train_energy"][..., -1]))
    if "parameters" in point.variables:
        marks.append(lost_weights(point["parameters"]))
    return np.asarray(np.any(marks, axis=0), dtype=bool) if marks else np.zeros(1, dtype=bool)
