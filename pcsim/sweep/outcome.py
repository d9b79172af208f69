"""What became of a point: done, failed, or diverged; and how far a whole sweep is."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np

from pcsim.store import Result
from pcsim.sweep.folder import SweepFolder
from pcsim.sweep.fuse import plan
from pcsim.sweep.points import Sweep

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
    """Return which replicas have diverged, by name or because their numbers are not finite."""
    marks = [point[n] == "diverged" for n in ("verdict.outcome", "outcome") if n in point.variables]
    if "train_energy" in point.variables:
        marks.append(~np.isfinite(point["train_energy"][..., -1]))
    if "parameters" in point.variables:
        marks.append(~np.isfinite(point["parameters"]).all(-1))
    return np.asarray(np.any(marks, axis=0), dtype=bool) if marks else np.zeros(1, dtype=bool)


@dataclass(frozen=True)
class Survey:
    """How far a sweep is."""

    done: int
    """Points with numbers, diverged ones included."""
    failed: int
    diverged: int
    total: int
    reasons: tuple[str, ...]
    """Why points failed or diverged, the most frequent first."""
    seconds_left: float | None
    """From the pace of the last runs; None if there is none yet, or nothing left to do."""
    busy: bool
    """Whether a process works on it now."""


PACE_RUNS = 50
"""The remaining time is judged from so many of the last runs."""


def survey(sweep: Sweep, folder: SweepFolder) -> Survey:
    """Look at a folder without touching it, also while another process fills it."""
    entries = folder.entries()
    found = {p.index: (FAILED, p.problem) for p in sweep.points if p.config is None}
    found |= {index: outcome_of(result) for index, result in folder.parts(entries)}
    waiting = sum(1 for run in plan(sweep) if not set(run.points) <= set(found))
    times = sorted(entry.path.stat().st_mtime for entry in entries)[-PACE_RUNS:]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The median forgives the pause between two sessions.
    left = median(gaps) * waiting if gaps and waiting else None
    states, reasons = [s for s, _ in found.values()], [r for _, r in found.values()]
    return _survey(states, reasons, len(sweep.points), left, folder.is_busy())


def survey_of(merged: Result) -> Survey:
    """Return how far the sweep of a merged result is."""
    states, reasons = merged["status"].ravel().tolist(), merged["reason"].ravel().tolist()
    return _survey(states, reasons, len(states), None, busy=False)


def _survey(
    states: list[str], reasons: list[str], total: int, left: float | None, busy: bool
) -> Survey:
    return Survey(
        done=states.count(DONE) + states.count(DIVERGED),
        failed=states.count(FAILED),
        diverged=states.count(DIVERGED),
        total=total,
        reasons=tuple(reason for reason, _ in Counter(filter(None, reasons)).most_common()),
        seconds_left=left,
        busy=busy,
    )
