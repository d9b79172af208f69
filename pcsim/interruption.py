"""Stopping a run from outside: Ctrl-C (SIGINT) and SIGTERM, which schedulers and `kill` send.

A run that is stopped in the middle of a time step has no state that it could go on from. So the
first signal only leaves a note, and the run stops where it is consistent: between two steps. A
second one stops it at once.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

from pcsim.errors import InterruptedRunError

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class TerminationRequest(KeyboardInterrupt):
    """SIGTERM: whoever handles Ctrl-C handles it alike."""


def stop_now(number: int, frame: FrameType | None = None) -> None:
    """Raise what a signal stands for: KeyboardInterrupt, or its kind for SIGTERM."""
    raise TerminationRequest if number == signal.SIGTERM else KeyboardInterrupt


def exit_code(stop: BaseException) -> int:
    """Return the exit code of a process that was stopped: 128 + the number of the signal."""
    if isinstance(stop, InterruptedRunError):
        return stop.exit_code
    terminated = isinstance(stop, TerminationRequest)
    return 128 + (signal.SIGTERM if terminated else signal.SIGINT)


def stop_of(error: InterruptedRunError) -> KeyboardInterrupt:
    """Return what had interrupted a run."""
    terminated = error.exit_code == 128 + signal.SIGTERM
    return TerminationRequest() if terminated else KeyboardInterrupt()


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Let SIGTERM raise where the process is, as Ctrl-C does, until the block ends."""
    before = signal.getsignal(signal.SIGTERM)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGTERM, stop_now)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


class Interruption:
    """While it is entered, a first signal is kept for `check`; a second one acts at once.

    Signals that are ignored (nohup) stay ignored; outside the main thread nothing changes.
    """

    def __init__(self) -> None:
        self.requested: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                handler = signal.getsignal(number)
                if handler is not signal.SIG_IGN and handler is not None:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            stop_now(number)
        self.requested = number

    def check(self) -> None:
        """Stop here if a signal has come."""
        if self.requested is not None:
            stop_now(self.requested)
