"""Compiled steps: threads, sizes of populations, wide layers, and how long a compiler takes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch

from pcsim.kernels.parameters import initial_parameters
from pcsim.native import library
from pcsim.native.engine import Native
from pcsim.network import Network

from ..common.timing import Job, medians
from .continuous import CIRCUIT, DT, population
from .population import CHIPS, PIECES, SIZES, chips_with_data

Row = tuple[str, str, float, float]
WIDE, FEW = (784, 64, 64, 10), 16
NETWORK = Network.mlp(WIDE)
POPULATIONS = {64: 100, 1: 6400, 1000: 100, 10_000: 100}
"""Chips, and the time steps of one call: a presentation, and for one chip as many as for 64."""


def measure(rounds: int = 15) -> list[Row]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    return _wide(rounds) + _threads(rounds) + _populations(5) + _compiler()


def _rows(case: str, times: dict[str, float]) -> list[Row]:
    first = next(iter(times.values()))
    return [(case, name, 1e3 * seconds, seconds / first) for name, seconds in times.items()]


def _wide(rounds: int) -> list[Row]:
    """A wide input: torch multiplies fast there, and follows an input that stays."""
    native = Native(
        NETWORK, initial_parameters(NETWORK, list(range(FEW)), torch.float32), CIRCUIT, dt=DT
    )
    generator = torch.Generator().manual_seed(0)
    native.load(
        [
            torch.rand(FEW, 1, n, generator=generator) if n in (WIDE[0], WIDE[-1]) else None
            for n in reversed(WIDE)
        ]
    )
    native.feedforward()
    engines = {
        "torch, inputs followed": population(WIDE, FEW, 1),
        "torch, direct products": population(WIDE, FEW, 1, fast=False),
        "compiled": native,
    }
    steps = 20
    jobs: dict[str, Job] = {name: partial(e.advance, steps) for name, e in engines.items()}
    case = f"ideal step of {FEW} chips {'-'.join(map(str, WIDE))}, 1 sample"
    return _rows(case, {name: t / steps for name, t in medians(jobs, rounds).items()})


def _threads(rounds: int) -> list[Row]:
    """Chips over threads."""
    engine = chips_with_data(1, PIECES)
    assert isinstance(engine, Native)

    def by(threads: int) -> None:
        engine.threads = threads
        engine.advance(400)

    jobs: dict[str, Job] = {f"{n} thread{'s' * (n > 1)}": partial(by, n) for n in (1, 2)}
    case = f"400 compiled steps of {CHIPS} chips {'-'.join(map(str, SIZES))} on hardware"
    return _rows(case, medians(jobs, rounds))


def _populations(rounds: int) -> list[Row]:
    """Cost of one step per chip, against the number of chips."""
    engines = {n: chips_with_data(1, {}, chips=n) for n in POPULATIONS}
    jobs = {f"{n}": partial(engines[n].advance, steps) for n, steps in POPULATIONS.items()}
    times = medians(jobs, rounds)
    per_chip = {f"{n} chips, per chip": times[f"{n}"] / (n * s) for n, s in POPULATIONS.items()}
    return _rows(f"ideal compiled step {'-'.join(map(str, SIZES))}", per_chip)


def _compiler() -> list[Row]:
    """One library: compiled, and found in the cache by the next process."""
    engine = chips_with_data(1, PIECES)
    assert isinstance(engine, Native)
    source = engine.program_source()
    with tempfile.TemporaryDirectory() as folder, _cache_in(folder):
        times = {"compiled": _seconds(source), "from the cache": _seconds(source)}
    return _rows("code of a chip on hardware", times)


def _seconds(source: str) -> float:
    library.cache_clear()
    start = time.perf_counter()
    library(source)
    return time.perf_counter() - start


@contextmanager
def _cache_in(folder: str) -> Iterator[None]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = folder
    try:
        yield
    finally:
        library.cache_clear()
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before
