"""What every run does besides its steps: it stops where it can go on later, and does go on.

    restore;  while there is something to do:  step, pause

A pause lies between two steps, where a run is consistent: there it reports, writes a checkpoint if
one is due, and ends if it was asked to.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from pathlib import Path

from pcsim import store
from pcsim.config import Config
from pcsim.interruption import Interruption
from pcsim.runner.checkpoint import Clock, load_own, path_for
from pcsim.status import Report
from pcsim.store import Result


class Resumable(ABC):
    """One run of whatever kind."""

    config: Config

    def __init__(self) -> None:
        self.between_steps = False
        """Whether the run is at a point that it could go on from."""
        self._kept_at: Path | None = None
        """Where its checkpoint is."""
        self._copy: Result | None = None
        self._report: Report | None = None
        self._clock = Clock()
        self._stop = Interruption()
        self._finished = False
        """Whether all steps were taken, and what is left is to read out."""
        self._seconds = 0.0
        self._since: float | None = None

    @abstractmethod
    def proceed(self) -> None:
        """Take all steps that are left; `between_steps` is false while one is under way."""

    @abstractmethod
    def checkpoint(self) -> Result:
        """Return a copy of all that the next step depends on, and of what was recorded."""

    @abstractmethod
    def restore(self, saved: Result) -> None:
        """Go on from a checkpoint of the same configuration."""

    @abstractmethod
    def reached(self) -> str:
        """Say how far the run is."""

    @abstractmethod
    def result(self) -> Result:
        """Return what the run has come to."""

    def own(self, path: Path) -> Result | None:
        """Return the checkpoint at a path, if there is one; that of another run is refused."""
        return load_own(path, self.config) if path.exists() else None

    def close(self, failed: bool) -> None:  # noqa: B027 (most runs write none)
        """Finish files that were written during the run."""

    @property
    def seconds(self) -> float:
        """What the run has taken so far, interruptions not counted."""
        running = 0.0 if self._since is None else time.monotonic() - self._since
        return self._seconds + running

    def run(self, report: Report | None = None, out: Path | None = None) -> None:
        """Go on to the end; with `out`, keep a checkpoint beside it, and use one if there."""
        self._report, self._kept_at = report, path_for(out) if out else None
        self._clock, self._since = Clock(), time.monotonic()
        with Interruption() as self._stop:
            try:
                if self._kept_at and (saved := self.own(self._kept_at)):
                    self._seconds = float(saved.attrs["seconds"])
                    self.restore(saved)
                self.proceed()
            except BaseException as error:
                if self._stop.requested is not None or isinstance(error, KeyboardInterrupt):
                    self.save()
                self.close(failed=True)
                if isinstance(error, Exception):
                    self._stop.check()  # a program of ours may die of the same Ctrl-C
                raise
            self.close(failed=False)
        self._seconds, self._since = self.seconds, None
        self._finished = True

    def pause(self) -> None:
        """Between two steps: write a checkpoint if it is time, and stop here if that was asked."""
        self.between_steps = True
        if self._kept_at and self._clock.due:
            self.save()
            self._clock.written()
        self._stop.check()

    def hold(self) -> None:
        """Hold a copy of this point in memory: what a stop within a later step goes back to."""
        if self._kept_at:
            self._copy = self.checkpoint()

    def save(self) -> None:
        """Write a checkpoint, if there is a file for it: of now, or within a step what is held."""
        if self._kept_at is None:
            return
        saved = self.checkpoint() if self.between_steps else self._copy
        if saved:
            store.save(saved, self._kept_at, overwrite=True)
        if self._copy:
            self._copy = saved

    def interrupted(self) -> str:
        """Say how far the run is; one that was at its end can be asked again for its result."""
        if self._finished:
            self.save()
        return self.reached()
