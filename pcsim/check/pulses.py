"""Pulses and touched devices of a training, counted while it runs.

The same trainings as the rows of a check (iPC, PC with phases and BP on these chips), on chips
whose devices count what they are asked for. Two chips of one seed; the read-out is one sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pcsim import config as configuration
from pcsim.check.rows import CHIP, Watch, settings_of
from pcsim.config import Config
from pcsim.hardware import shows_several
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.training import Training

Rule = Literal["ipc", "pc", "bp"]
RULES: dict[Rule, str] = {
    "ipc": CHIP,
    "pc": "PC with phases, this chip",
    "bp": "BP on the array, this chip",
}
CHIPS = 2


@dataclass(frozen=True)
class Pulses:
    """What reached the devices of one rule, per device and sample."""

    pulses: tuple[float, float, float]
    """Lowest, mean and highest of the chips."""
    touched: float
    """Writes with a pulse, mean."""
    samples: int
    rate: float
    """Learning rate per sample."""


def counted_pulses(config: Config, watch: Watch) -> dict[Rule, Pulses] | None:
    """Run the trainings of a filled configuration; None where no device is written by pulses."""
    counting = with_counters(config)
    if counting is None:
        return None
    rows = settings_of(counting, list(RULES.values()))
    found: dict[Rule, Pulses] = {}
    for rule, row in RULES.items():
        with watch(f"counting pulses: {row}") as report:
            found[rule] = counted(rows[row], report)
    return found


def with_counters(config: Config) -> Config | None:
    """Return a configuration whose devices count; None where none is written by pulses."""
    hardware = config.hardware.with_counters(side_by_side=shows_several(config))
    if hardware is None:
        return None
    device = type(config.hardware.device).holding(hardware) if config.hardware.device else None
    pieces: dict[str, Any] = {"preset": hardware.name, "device": device, "pieces": {}}
    if device is None:
        pieces = {"pieces": {n: p.model_dump() for n, p in hardware.pieces.items()}}
    changes = {
        "hardware": pieces | {"chips": CHIPS},
        "run": {"seeds": (config.run.seeds[0],)},
        "data": {"limit_test": 1},
    }
    return configuration.changed(config, changes)


def counted(setting: Config, report: Any = None) -> Pulses:
    """Train chips whose devices count, by any rule; return what reached them."""
    run: ChipRun | Training
    if setting.run.backend == "discrete":
        run = Training(setting)
        run.run(report)
        chips, samples = run.chips, len(run.task.train.x)
        rate = setting.learning.alpha
    else:
        run = ChipRun(setting)
        run.run(report)
        chips, samples = run.hardware, len(run.task.train.x)
        rate = setting.learning.alpha * run.timing.present
    assert chips is not None
    samples *= setting.learning.epochs
    sums = {
        name: [v.flatten(1) for key, v in chips.state().items() if f".{name}." in key]
        for name in ("pulses", "touched")
    }
    weights = sum(one.shape[1] for one in sums["pulses"])
    each = {
        name: np.sum([one.double().sum(1).numpy() for one in found], 0) / weights / samples
        for name, found in sums.items()
    }
    pulses = each["pulses"]
    return Pulses(
        (float(pulses.min()), float(pulses.mean()), float(pulses.max())),
        float(each["touched"].mean()),
        samples,
        rate,
    )
