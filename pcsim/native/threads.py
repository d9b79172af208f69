"""Chips over threads: whoever is free takes the next few, as chips differ in what they cost."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

PARTS = 4
"""Every take is this part of what one thread's share of the rest would be."""


def takes(chips: int, threads: int) -> list[tuple[int, int]]:
    """Return which chips are taken together: many at first, and one by one at the end.

    Few calls, and nobody waits for longer than one chip takes.
    """
    found, first = list[tuple[int, int]](), 0
    while first < chips:
        last = first + max(1, (chips - first) // (PARTS * threads))
        found.append((first, last))
        first = last
    return found


def share(work: Callable[[int, int, int], None], chips: int, threads: int) -> None:
    """Call `work(thread, first, last)` until all chips are done; the caller is thread 0.

    What is done to a chip does not depend on who does it.
    """
    threads = min(threads, chips)
    if threads <= 1:
        work(0, 0, chips)
        return
    left = iter(takes(chips, threads))

    def take(thread: int) -> None:
        for first, last in left:
            work(thread, first, last)

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
