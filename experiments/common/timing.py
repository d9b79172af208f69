"""Fair timing: contestants take turns in one run, so that a busy moment hits all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

Job = Callable[[], object]


def durations(
    jobs: Mapping[str, Job],
    rounds: int,
    repeat: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds per call of each job in every round; a round runs each `repeat` times."""
    for job in jobs.values():  # buffers, thread pools and caches are set up outside the clock
        job()
        job()
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = clock()
            for _ in range(repeat):
                job()
            times[name].append((clock() - start) / repeat)
    return times


def medians(jobs: Mapping[str, Job], rounds: int, repeat: int = 1) -> dict[str, float]:
    """Return the median seconds per call of each job."""
    times = durations(jobs, rounds, repeat)
    return {name: float(np.median(values)) for name, values in times.items()}
