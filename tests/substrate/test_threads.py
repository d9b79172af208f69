"""Chips over threads: each is done once, by whoever is free, and an error is told."""

import math
import threading
import time

import pytest

from pcsim.native.threads import share, takes


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("chips", [1, 3, 97])
def test_every_chip_is_done_once(chips, threads):
    done = []
    share(lambda thread, first, last: done.extend(range(first, last)), chips, threads)
    assert sorted(done) == list(range(chips))


def test_one_whose_chips_are_slow_leaves_the_others_to_somebody_else():
    done = {0: [], 1: []}
    held = threading.Event()

    def work(thread, first, last):
        done[thread] += range(first, last)
        if thread == 0:
            held.wait(10)
        elif len(done[1]) + len(done[0]) == 64:
            held.set()
        while thread == 1 and not done[0]:
            time.sleep(1e-3)

    share(work, 64, 2)
    assert held.is_set()
    assert 0 < len(done[0]) <= 64 // 8, "the caller has what it took first, and no half"


def test_what_goes_wrong_in_a_thread_is_told():
    def work(thread, first, last):
        if first:
            raise ValueError(f"chip {first}")

    with pytest.raises(ValueError, match="chip"):
        share(work, 8, 2)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("chips", [1, 64, 10_000])
def test_takes_are_few_and_the_last_ones_single(chips, threads):
    """Whoever is last waits for one chip; a take for each chip would cost a call for each."""
    found = takes(chips, threads)
    assert [n for first, last in found for n in range(first, last)] == list(range(chips))
    assert found[-1] == (chips - 1, chips)
    assert found[0][1] <= max(1, chips / threads / 4)
    assert len(found) <= 4 * threads * (1 + math.log(chips))
