"""Cost of hardware: one step of 64 chips with noise, few bits, mismatch and soft-bound writes."""

from __future__ import annotations

from functools import partial
from typing import Any

from experiments.timing import Job, medians
from pcsim import config as configuration
from pcsim.backends.continuous import Continuous
from pcsim.chip_run import ChipRun

CHIPS, SIZES = 64, (64, 32, 10)
PIECES: dict[str, dict[str, Any]] = {
    "read": {"kind": "array_read_noise", "sigma": 0.005, "reference": "range"},
    "weights": {"kind": "quantized_weights", "bits": 6, "range": 1.5},
    "slow": {"kind": "mismatch", "of": "tau_x", "sigma": 0.2},
    "device": {
        "kind": "linear_device",
        "dw_min": 0.0,
        "drive": "continuous",
        "cycle_noise": 0.0,
        "range": 1.5,
    },
}
"""Read noise, 6-bit reads, mismatch of τ_x, and soft bounds as a rate law."""


def _engine(batch: int, pieces: dict[str, dict[str, Any]], *, fast: bool) -> Continuous:
    run = ChipRun(
        configuration.parse(
            {
                "network": {"sizes": list(SIZES)},
                "schedule": {"T": 8, "gamma": 0.2, "fast": fast},
                "learning": {"alpha": 0.001, "batch": batch},
                "run": {"backend": "continuous"},
                "hardware": {"chips": CHIPS, "pieces": pieces},
            },
            "speed",
        )
    )
    engine = run.engine
    assert isinstance(engine, Continuous)
    engine.load(next(run.task.batches(run.chips, 0, batch)))
    engine.feedforward()
    return engine


def measure(rounds: int = 25) -> list[tuple[str, str, float, float]]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    rows = []
    for batch in (1, 32):
        engines = {
            "ideal, direct products": _engine(batch, {}, fast=False),
            "ideal, inputs followed": _engine(batch, {}, fast=True),
            "on hardware": _engine(batch, PIECES, fast=True),
        }
        jobs: dict[str, Job] = {name: partial(e.advance, 5) for name, e in engines.items()}
        times = medians(jobs, rounds)
        first = next(iter(times.values()))
        case = f"Euler step of {CHIPS} chips {'-'.join(map(str, SIZES))}, {batch} samples"
        rows += [(case, name, 1e3 * t / 5, t / first) for name, t in times.items()]
    return rows
