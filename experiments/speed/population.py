"""Cost of hardware: one step of 64 chips with noise, few bits, mismatch and soft-bound writes.

Torch and compiled steps side by side, and the presets by compiled steps, all of them as multiples
of an ideal step of torch with direct products.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pcsim import config as configuration
from pcsim.backends.continuous import Continuous
from pcsim.native import SHORT
from pcsim.runner.chip_run import ChipRun

from ..common.timing import Job, medians

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
PRESETS = ("dynapse2", "brainscales2", "loihi", "ecram_li", "reram_sb", "pcm", "pcm_chip")
COMPILED: dict[str, Any] = {"engine": "native"}


def chips_with_data(
    batch: int,
    pieces: dict[str, dict[str, Any]],
    *,
    fast: bool | None = None,
    preset: str = "ideal",
    sizes: tuple[int, ...] = SIZES,
    chips: int = CHIPS,
) -> Continuous:
    """Return chips with a batch clamped; compiled steps where `fast` has no meaning."""
    taken = COMPILED if fast is None else {"engine": "torch"}
    run = ChipRun(
        configuration.parse(
            {
                "network": {"sizes": list(sizes)},
                "schedule": {"T": 8, "gamma": 0.2} | ({} if fast is None else {"fast": fast}),
                "learning": {"alpha": 0.001, "batch": batch},
                "run": {"backend": "continuous", **taken},
                "hardware": {"preset": preset, "chips": chips, "pieces": pieces},
            },
            "speed",
        )
    )
    engine = run.engine
    assert isinstance(engine, Continuous)
    engine.load(next(run.task.batches(run.chips, 0, batch)))
    engine.feedforward()
    return engine


def _places_compiled(batch: int) -> Continuous:
    """Return chips whose steps torch takes, with compiled code for what hardware does."""
    engine = chips_with_data(batch, PIECES, fast=True)
    assert engine.chips is not None
    engine.chips.compile(SHORT)
    return engine


def measure(rounds: int = 25) -> list[tuple[str, str, float, float]]:
    """Return rows (case, contestant, milliseconds, ratio to the first contestant of the case)."""
    rows = []
    for batch in (1, 32):
        engines = {
            "ideal, direct products": chips_with_data(batch, {}, fast=False),
            "ideal, inputs followed": chips_with_data(batch, {}, fast=True),
            "on hardware": chips_with_data(batch, PIECES, fast=True),
            "on hardware, places compiled": _places_compiled(batch),
            "ideal, compiled": chips_with_data(batch, {}),
            "on hardware, compiled": chips_with_data(batch, PIECES),
        }
        if batch == 1:
            engines |= {
                f"{name}, compiled": chips_with_data(1, {}, preset=name) for name in PRESETS
            }
        jobs: dict[str, Job] = {name: partial(e.advance, 5) for name, e in engines.items()}
        times = medians(jobs, rounds)
        first = next(iter(times.values()))
        case = f"Euler step of {CHIPS} chips {'-'.join(map(str, SIZES))}, {batch} samples"
        rows += [(case, name, 1e3 * t / 5, t / first) for name, t in times.items()]
    return rows
