"""Processes that measure side by side: one thread each, and gone with the process that began them.

Their tasks must be module functions, or `partial`s of them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process

import torch

PROCESSES = min(2, os.cpu_count() or 1)
"""Processes of a study whose cells are not timed."""


@contextmanager
def pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool of processes with one thread each, which do not outlive their parent."""
    made = ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=_begin_worker
    )
    try:
        yield made
    finally:
        made.shutdown(cancel_futures=True)  # after an interruption, do not begin what is waiting


def _begin_worker() -> None:
    """Compute with one thread; end with the parent, and at Ctrl-C silently: the parent speaks.

    A parent that is killed cannot stop its workers, which would go on with what they have queued.
    """
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "only workers begin like this"
    parent.join()
    os._exit(1)
