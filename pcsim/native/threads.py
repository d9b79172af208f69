"""Chips over threads: whoever is free takes the next few, as chips differ in what they cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

PARTS = 8
"""Parts of a population that each thread takes, one after the other, if all are alike."""


def share(work: Callable[[int, int, int], None], chips: int, threads: int) -> None:
    """Call `work(thread, first, last)` until all chips are done; the caller is thread 0.

    What is done to a chip does not depend on who does it.
    """
    threads = min(threads, chips)
    if threads <= 1:
        work(0, 0, chips)
        return
    some = max(1, chips // (PARTS * threads))
    firsts = iter(range(0, chips, some))

    def take(thread: int) -> None:
        for first in firsts:
            work(thread, first, min(first + some, chips))

    others = [_pool(threads - 1, os.getpid()).submit(take, n) for n in range(1, threads)]
    try:
        take(0)
    finally:
        for other in others:
            other.result()


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Return threads that stay; a forked process has its own."""
    return ThreadPoolExecutor(threads, "compiled")
