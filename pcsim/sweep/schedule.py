"""Many jobs: where they are computed, how far they are, and what is safe when they are stopped.

A job is a function without arguments. One that is computed elsewhere travels as a `partial` of a
module's function, and its result travels back: this process is the only one that keeps results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pcsim.errors import InterruptedRunError, StoreError
from pcsim.interruption import exit_code
from pcsim.status import Report, Status
from pcsim.sweep import cluster, processes
from pcsim.sweep.processes import Died, Job, Key, Outcome, Outcomes


@dataclass(frozen=True)
class Place:
    """Where jobs are computed: in this process, unless something else is said."""

    workers: int = 0
    """Processes on this machine."""
    cluster: str | None = None
    """Address of a running dask scheduler."""
    security: Path | None = None
    """File with the certificates of that scheduler."""
    insecure: bool = False
    """Trust a scheduler without certificates."""

    @property
    def here(self) -> bool:
        """Whether jobs are computed in this process."""
        return not (self.workers or self.cluster)

    def check(self) -> None:
        """Refuse a scheduler that cannot or should not be used, before any job runs."""
        if self.cluster:
            cluster.certificates(self.cluster, self.security, self.insecure)


HERE = Place()


@dataclass
class Tally:
    """How many points (or cells: `unit`) of a store are done."""

    done: int
    total: int
    unit: str
    where: Path

    def __str__(self) -> str:
        return (
            f"{self.done} of {self.total} {self.unit} are safe in {self.where}, "
            "and the same command goes on from there"
        )


def carry_out(
    jobs: Mapping[Key, Job[Outcome]],
    keep: Callable[[Key, Outcome | Died], int],
    tally: Tally,
    place: Place = HERE,
    report: Report | None = None,
) -> None:
    """Compute all jobs, and keep each outcome when it arrives.

    Main arguments:
        jobs: in the order in which they begin; long ones first, so that no processor waits.
        keep: stores an outcome, and returns how many units it has stored.
        tally: what is done already; it is kept up to date.
    """
    first, start = tally.done, time.monotonic()

    def tell() -> None:
        if report:
            done, left = tally.done - first, tally.total - tally.done
            pace = (time.monotonic() - start) / done if done else 0.0
            words = f"about {spoken(pace * left)} left" if done and left else ""
            report(Status(tally.done, tally.total, tally.unit, words))

    try:
        tell()
        with closing(outcomes(jobs, place)) as arriving:
            for key, outcome in arriving:
                tally.done += keep(key, outcome)
                tell()
    except (KeyboardInterrupt, InterruptedRunError) as error:
        told = f"{error}; " if isinstance(error, InterruptedRunError) else ""
        raise InterruptedRunError(f"{told}{tally}", exit_code(error)) from None
    except StoreError as error:
        raise StoreError(f"{error}; {tally}") from error


def spoken(seconds: float) -> str:
    """Return a duration as one says it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def outcomes(jobs: Mapping[Key, Job[Outcome]], place: Place = HERE) -> Outcomes[Key, Outcome]:
    """Compute jobs at a place."""
    if place.cluster and jobs:
        certificates = cluster.certificates(place.cluster, place.security, place.insecure)
        yield from cluster.compute(jobs, place.cluster, certificates)
    elif place.workers:
        yield from processes.compute(jobs, place.workers)
    else:
        for key, job in jobs.items():
            yield key, job()
