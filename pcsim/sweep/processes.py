"""Jobs in several processes of this machine: one thread each, replaced when they die.

They talk to the process that began them alone, through a pipe, and do not outlive it.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process
from typing import Any, TypeVar

Key = TypeVar("Key", bound=Hashable)
Outcome = TypeVar("Outcome")
Job = Callable[[], Outcome]

ATTEMPTS = 3
"""A job that has killed so many processes is given up."""


@dataclass(frozen=True)
class Died:
    """What is left of a job on which every process died."""

    reason: str = "each worker that took it died; is there enough memory for it?"


Outcomes = Generator[tuple[Key, Outcome | Died], None, None]
"""Jobs that are over, in the order in which they end; closing it stops what is under way."""


def compute(jobs: Mapping[Key, Job[Outcome]], count: int) -> Outcomes[Key, Outcome]:
    """Give each process one job at a time; one that dies is replaced, and its job tried again."""
    waiting = deque((key, job, 1) for key, job in jobs.items())
    with _room() as processes:
        at_work: dict[connection.Connection, tuple[Key, Job[Outcome], int]] = {}
        while waiting or at_work:
            while waiting and len(at_work) < count:
                idle = next((line for line in processes if line not in at_work), None)
                line = idle or _started(processes)
                at_work[line] = waiting.popleft()
                with suppress(BrokenPipeError):  # it has just died: `recv` will tell
                    line.send(at_work[line][1])
            ended = set(connection.wait(list(at_work)))
            for line in [line for line in at_work if line in ended]:
                key, job, attempt = at_work.pop(line)
                try:
                    outcome, error = line.recv()
                except (EOFError, ConnectionResetError):
                    _end(line, processes.pop(line))
                    if attempt < ATTEMPTS:
                        waiting.append((key, job, attempt + 1))
                        continue
                    outcome, error = Died(), None
                if error is not None:
                    raise error
                yield key, outcome


Processes = dict[connection.Connection, Any]
"""Processes by the line to them."""


@contextmanager
def _room() -> Iterator[Processes]:
    """Give room for processes; at the end they are killed, whatever they do."""
    processes: Processes = {}
    try:
        yield processes
    finally:
        for line, process in processes.items():
            _end(line, process)


def _end(line: connection.Connection, process: Any) -> None:
    process.kill()
    process.join()
    line.close()


def _started(processes: Processes) -> connection.Connection:
    context = get_context("spawn")
    line, far_end = context.Pipe()
    process = context.Process(target=_serve, args=(far_end,), daemon=True)
    process.start()
    far_end.close()  # so that the line ends with the process
    processes[line] = process
    return line


def _serve(line: connection.Connection) -> None:
    """Compute what arrives, with one thread; Ctrl-C is for the parent, which kills its processes.

    A parent that is killed itself cannot do so: its processes end with it.
    """
    import torch

    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(BrokenPipeError):  # the parent has gone
        while True:
            try:
                line.send((line.recv()(), None))
            except Exception as error:
                error.add_note(traceback.format_exc())
                line.send((None, error))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "only processes of a pool serve"
    parent.join()
    os._exit(1)
