"""The sweep: finished points are kept, the others run, and everything is merged at the end."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pcsim import store
from pcsim.errors import ConfigError, InterruptedRunError, StoreError
from pcsim.status import Report
from pcsim.store import Result
from pcsim.sweep.execute import Finished, execute, execute_afar, failed, job
from pcsim.sweep.folder import MERGED, SweepFolder
from pcsim.sweep.fuse import parts, plan
from pcsim.sweep.merge import merge
from pcsim.sweep.outcome import FAILED, outcome_of
from pcsim.sweep.points import Sweep, make_sweep, read_sweep
from pcsim.sweep.processes import Died
from pcsim.sweep.schedule import Place, Tally, carry_out


class StoreWarning(UserWarning):
    """Something in a store had to be mended."""


def sweep(
    description: Sweep | Mapping[str, Any] | str | Path,
    out: str | Path,
    *,
    workers: int = 0,
    cluster: str | None = None,
    security: str | Path | None = None,
    insecure: bool = False,
    retry: bool = False,
    report: Report | None = None,
) -> Result:
    """Run all points of a sweep that are not in the store yet; return everything, merged.

    Main arguments:
        description: a TOML file, or its content as a mapping: a configuration with `[sweep]`.
        out: folder of the store; if the sweep was started there, it goes on.
        workers: this many processes on this machine; 0: in this process.
        cluster: address of a running dask scheduler; it needs `security` or `insecure`.
        security: file with the certificates of that scheduler (see docs/sweep.md).

    Rarely used:
        insecure: trust a scheduler without certificates, and all who can reach it.
        retry: run failed points again.
        report: called now and then with a `Status`.
    """
    if workers < 0 or (workers and cluster):
        raise ConfigError(f"workers: give a number above 0, or a cluster, got {workers}, {cluster}")
    if cluster is None and (security or insecure):
        raise ConfigError(
            "security: certificates belong to a running scheduler; give its --cluster"
        )
    place = Place(workers, cluster, Path(security) if security else None, insecure)
    place.check()
    if isinstance(description, str | Path):
        description = read_sweep(Path(description))
    elif not isinstance(description, Sweep):
        description = make_sweep(description)
    folder = SweepFolder(Path(out))
    with folder.held_for(description):
        work = _Work(description, folder, retry)
        return work.run(place, report)


def load(path: str | Path) -> Result:
    """Return what a store holds: its merged file, or the points that are finished so far."""
    folder = SweepFolder(Path(path))
    description = folder.description()
    merged = folder.path / MERGED
    entries = folder.entries()
    if merged.exists():
        latest = max((entry.path.stat().st_mtime for entry in entries), default=0.0)
        if merged.stat().st_mtime >= latest:
            return store.load(merged)
    return merge(description, dict(folder.parts(entries)))


class _Work:
    """What is missing in a store, and the keeping of what arrives."""

    def __init__(self, description: Sweep, folder: SweepFolder, retry: bool) -> None:
        self.sweep, self.folder = description, folder
        for entry in folder.sweep_up():
            warnings.warn(
                f"{entry.path}: is damaged; its {entry.size} points will be computed again",
                StoreWarning,
                stacklevel=4,
            )
        self.plan = plan(description)
        self.known: dict[int, Result] = {}
        """Points of this session, which need not be read again for the merged file."""
        if retry:
            self._forget_failed()
        self.missing = {k for run in self.plan for k in run.points} - self._stored()

    def _forget_failed(self) -> None:
        for entry in self.folder.entries():
            for _, point in self.folder.parts([entry]):
                if outcome_of(point)[0] == FAILED:
                    entry.path.unlink(missing_ok=True)

    def _stored(self) -> set[int]:
        """Return the points of all files: those of a whole run, or single ones."""
        whole = {(run.points[0], len(run.points)): run.points for run in self.plan}
        stored: set[int] = set()
        for entry in self.folder.entries():
            if entry.size == 1:
                stored.add(entry.first)
            elif points := whole.get((entry.first, entry.size)):
                stored |= set(points)
            else:  # another pcsim has fused other points
                stored |= {index for index, _ in self.folder.parts([entry])}
        return stored

    def run(self, place: Place, report: Report | None) -> Result:
        """Compute what is missing, then merge; whatever stops it, what is stored stays."""
        compute = execute if place.here else execute_afar
        waiting = [run for run in self.plan if self.missing & set(run.points)]
        jobs = {run.points: partial(compute, job(self.sweep, run, self.missing)) for run in waiting}
        total = sum(len(run.points) for run in self.plan)
        tally = Tally(total - len(self.missing), total, "points", self.folder.path)
        try:
            carry_out(jobs, self.keep, tally, place, report)
        except InterruptedRunError:
            with suppress(StoreError):  # it can be made again at any time
                self.merged()
            raise
        try:
            return self.merged()
        except StoreError as error:
            raise StoreError(f"{error}; {tally}") from error

    def keep(self, points: tuple[int, ...], files: list[Finished] | Died) -> int:
        """Store the files of a run; return how many points they hold."""
        before = len(self.missing)
        if isinstance(files, Died):
            files = [failed(k, files.reason) for k in points if k in self.missing]
        for finished in files:
            entry = self.folder.write(finished)
            self.missing -= set(finished.points)
            if finished.result:
                found = dict(parts(finished.result))
                self.known |= found
            else:
                found = dict(self.folder.parts([entry]))
            self.folder.note(entry, {k: outcome_of(p) for k, p in found.items()})
        return before - len(self.missing)

    def merged(self) -> Result:
        """Write and return everything that is stored."""
        others = [entry for entry in self.folder.entries() if entry.first not in self.known]
        result = merge(self.sweep, self.known | dict(self.folder.parts(others)))
        store.save(result, self.folder.path / MERGED, overwrite=True)
        return result
