"""Where runs are computed: in this process, in several on this machine, or on a dask cluster."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcsim.errors import InterruptedRunError, PcsimError, UnsupportedError
from pcsim.sweep import security
from pcsim.sweep.execute import Finished, execute, execute_afar, failed

CONNECT_SECONDS = 10.0
LOCAL_PORT = "127.0.0.1:0"
"""Any free port of this machine, seen by nobody else."""

Results = Generator[list[Finished], None, None]
"""The files of one job after the other; closing it stops the workers."""


@dataclass(frozen=True)
class Place:
    """Which dask scheduler takes the jobs: one of this run's own, or one that is running."""

    workers: int = 0
    """Processes on this machine."""
    cluster: str | None = None
    """Address of a running scheduler."""
    security: Path | None = None
    """File with the certificates of that scheduler."""
    insecure: bool = False
    """Trust a scheduler without certificates."""


def in_process(jobs: Sequence[str]) -> Results:
    """Run one job after the other, here."""
    for job in jobs:
        yield execute(job)


def by_dask(jobs: Sequence[str], place: Place) -> Results:
    """Run the jobs on a scheduler, in the order in which they are finished.

    The scheduler gives the jobs of a worker that was killed to another one. A job that has killed
    several workers (by asking for more memory than there is, say) is recorded as failed.
    """
    distributed = _distributed()
    with ExitStack() as stack:
        client = stack.enter_context(_client(distributed, stack, place))
        futures = {
            # Not pure: dask must not take the result of an earlier sweep from its memory.
            client.submit(execute_afar, job, pure=False): job
            for job in jobs
        }
        for future in distributed.as_completed(list(futures)):
            job = futures.pop(future)
            yield _outcome(distributed, future, job)
            future.release()


def check_place(place: Place) -> None:
    """Refuse a scheduler that cannot or should not be used, before any point runs."""
    if place.workers:
        security.for_one_run(_distributed())
    if place.cluster:
        security.of_cluster(_distributed(), place.cluster, place.security, place.insecure)


def _outcome(distributed: Any, future: Any, job: str) -> list[Finished]:
    try:
        return [Finished(points, content) for points, content in future.result()]
    except distributed.KilledWorker:
        reason = "each worker that took it died; is there enough memory for it?"
        return [failed(int(point), reason) for point in json.loads(job)["singles"]]
    except distributed.CancelledError:
        raise InterruptedRunError(
            "the dask scheduler has gone; what was finished is stored, "
            "and the same command goes on when there is one again"
        ) from None
    except PcsimError:
        raise
    except Exception as error:
        # Points record their own errors: what arrives here is a worker that cannot work at all.
        raise UnsupportedError(
            f"a dask worker could not take a job ({type(error).__name__}: {error}); "
            "is the same pcsim installed there?"
        ) from error


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise UnsupportedError(
            "--workers and --cluster need dask: pip install 'pcsim[sweep]'"
        ) from None
    return distributed


def local_cluster(distributed: Any, workers: int) -> Any:
    """Return processes on this machine that only this run's own client can talk to."""
    return distributed.LocalCluster(
        # The nannies of dask give each process one thread, and start it again when it dies.
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        protocol="tls://",
        security=security.for_one_run(distributed),
        # None would be dask's usual port, open to the network and in the way of a second sweep.
        dashboard_address=LOCAL_PORT,
        # That a worker died and is started again is not for the user to mend.
        silence_logs=logging.CRITICAL,
    )


def _client(distributed: Any, stack: ExitStack, place: Place) -> Any:
    if place.cluster is None:
        return distributed.Client(stack.enter_context(local_cluster(distributed, place.workers)))
    certificates = security.of_cluster(distributed, place.cluster, place.security, place.insecure)
    try:
        return distributed.Client(place.cluster, timeout=CONNECT_SECONDS, security=certificates)
    except (OSError, ValueError, TimeoutError) as error:
        raise UnsupportedError(
            f"--cluster {place.cluster}: there is no dask scheduler that answers ({error})"
        ) from None
