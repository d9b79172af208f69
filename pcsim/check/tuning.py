"""The learning rate of a rule, found by a small search on held-out samples.

A rate is told per sample, η: the automatic rule writes in every one of the T time steps of a
presentation and has α = η/T, a rule with phases writes once and has α = η. So one ladder of rates
serves all rules. All its rungs train at once, as an axis of one population; the rung with the
highest accuracy on held-out samples, mean over seeds and chips, is taken, the lower one of equals.
Where that is the end of the ladder, rungs are added beyond it, twice at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pcsim import config as configuration
from pcsim.circuits import PAGES
from pcsim.config import Config
from pcsim.runner.timing import Timing
from pcsim.stability import StabilityWarning
from pcsim.store import Result

LADDER: tuple[float, ...] = (0.00625, 0.0125, 0.025, 0.05, 0.1)
"""Rates per sample that are tried first."""
STEP = 2.0
"""Between rungs."""
MORE, TIMES = 2, 2
"""Rungs that are added beyond an end, and how often."""
CHIPS = 2
"""Chips of each seed that the rates are tried on."""


@dataclass(frozen=True)
class Rate:
    """A learning rate per sample."""

    value: float
    given: bool = False
    """By the configuration: it was not searched."""
    at_end: bool = False
    """Whether even better ones may lie beyond those tried."""

    @property
    def short(self) -> str:
        """A few characters for a table."""
        return f"{self.value:.3g}" + (" given" if self.given else "") + ("!" if self.at_end else "")


def writes(setting: Config) -> int:
    """Return how often a rule writes while it sees a batch."""
    automatic = setting.run.backend != "discrete" and not setting.run.automatic
    return Timing.of(setting).present if automatic else 1


def rate_of(setting: Config) -> float:
    """Return the learning rate of a configuration per sample."""
    if setting.run.backend == "discrete":
        return setting.learning.alpha
    timing = Timing.of(setting)
    return writes(setting) * timing.dt / timing.circuit.weight_time


def with_rate(setting: Config, rate: float) -> Config:
    """Return a configuration that learns with this rate per sample."""
    data = configuration.with_fields(setting, {"learning": {"alpha": rate / writes(setting)}})
    data.get("circuit", {}).pop("tau_w", None)
    return configuration.parse(data, "check")


def score(result: Result) -> float:
    """Return the accuracy on held-out samples (else on test samples), mean over the population."""
    return float(scores(result, 1)[0])


def scores(result: Result, rungs: int) -> np.ndarray:
    """Return the accuracies (rung,) by which rates are chosen; what diverged has none right."""
    variable = result.variables.get("validation_accuracy", result.variables["accuracy"])
    values = np.asarray(variable.values, dtype=float)
    if "epoch" in variable.dims:  # a rule with a controller can stop at its best epoch
        values = values.max(axis=variable.dims.index("epoch"))
    return np.asarray(np.nan_to_num(values).reshape(rungs, -1).mean(1))


def search(name: str, setting: Config, run: Callable[[str, Config], Result]) -> Rate:
    """Return the best rate for a setting; `run` is called with a name and a configuration."""
    tried: dict[float, float] = {}
    rungs = LADDER
    for time in range(TIMES + 1):
        title = f"rates for {name}" + (f", further {time}" if time else "")
        with warnings.catch_warnings():  # that a rate is too high is what a search finds out
            warnings.simplefilter("ignore", StabilityWarning)
            for together, label in _populations(setting, rungs):
                result = run(title + label, at_rates(setting, together))
                tried |= dict(zip(together, scores(result, len(together)), strict=True))
        known = sorted(tried)
        best = max(known, key=lambda rate: (tried[rate], -rate))
        if best not in (known[0], known[-1]):
            return Rate(best)
        factor = STEP if best == known[-1] else 1 / STEP
        rungs = tuple(sorted(best * factor**k for k in range(1, MORE + 1)))
    return Rate(best, at_end=True)


def _populations(setting: Config, rungs: tuple[float, ...]) -> list[tuple[tuple[float, ...], str]]:
    """Return the rungs that train together, with a name: alone where chips share one tau_w."""
    if setting.run.backend == "discrete" or PAGES[setting.circuit.kind].own_tau_w:
        return [(rungs, "")]
    return [((rate,), f", {rate:g}") for rate in rungs]


def at_rates(setting: Config, rates: tuple[float, ...], chips: int = CHIPS) -> Config:
    """Return one population with all rates and so many chips, at most; never on Brian2."""
    per_write = [rate / writes(setting) for rate in rates]
    backend = "discrete" if setting.run.backend == "discrete" else "continuous"
    changes: dict[str, dict[str, Any]] = {
        "run": {"backend": backend},
        "hardware": {"chips": min(chips, setting.hardware.chips)},
        "grid": {"alpha": per_write},
        "record": {"predictions": False},
    }
    data = configuration.with_fields(setting, changes)
    data.get("circuit", {}).pop("tau_w", None)
    data.get("learning", {}).pop("alpha", None)
    return configuration.pruned(data, "check")[0]
