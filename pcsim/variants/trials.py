"""Chips that differ from those of a check: trained from the same seeds, at the same working point.

Chip k of seed s has the same initial weights, data, fixed draws and noise in every variant, so that
differences are paired. Variants that differ in numbers alone train as one population.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.check import tuning
from pcsim.check.found import Check
from pcsim.check.physical import adapted
from pcsim.check.rows import CHIP, Rows, settings_of
from pcsim.config import Config
from pcsim.hardware import Device
from pcsim.stability import StabilityWarning
from pcsim.sweep.fuse import MAX_PARAMETERS
from pcsim.variants.limit import Estimate, losses, moved_limit

Array = npt.NDArray[Any]
Changes = Mapping[str, int | float]
"""Numbers by "piece.field"."""
TOGETHER = 600
"""Trainings of one run, at most: what an interruption can cost."""


class Trials:
    """Trains variants of the chips of a check; finished runs are kept by `keep`."""

    def __init__(self, check: Check, chips: int, keep: Rows) -> None:
        self.check = check
        self.keep = keep
        setting = settings_of(check.config, [CHIP])[CHIP]
        if check.rates is not None:
            setting = tuning.with_rate(setting, check.rates[CHIP].value)
        self.chips = min(chips, check.config.hardware.chips)
        self.setting = adapted(
            setting,
            {
                "hardware": {} if check.config.hardware.ideal else {"chips": self.chips},
                "record": {"predictions": False},
            },
        )
        self.reference = np.asarray(check.answer.reference, dtype=float)
        self.base: Array = np.nan_to_num(check.accuracy(CHIP)[:, : self.chips])
        """Accuracies (seed, chip) of the chips as they are."""
        self.whole: Array = losses(check.accuracy(CHIP), self.reference)
        """Losses (seed, chip) of all chips of the check."""

    def losses(self, accuracy: Array) -> Array:
        """Return what variants lose against the reference."""
        return losses(accuracy, self.reference)

    def limit(self, accuracy: Array) -> Estimate:
        """Return the loss that the yield of all chips of a variant stay within."""
        before, criterion = self.losses(self.base), self.check.criterion
        return moved_limit(self.losses(accuracy), before, self.whole, criterion)

    def of_numbers(self, title: str, changes: Sequence[Changes]) -> Array:
        """Return the accuracies (variant, seed, chip) with other numbers."""
        accuracies = np.zeros((len(changes), *self.base.shape))
        runs = list(self._together(changes))
        for number, members in enumerate(runs, 1):
            trials = [dict(changes[k]) for k in members]
            setting = adapted(self.setting, {"grid": {"trials": trials}})
            part = f", {number} of {len(runs)}" if len(runs) > 1 else ""
            words = f"{title}: {len(members)} values{part}"
            accuracies[members] = self._accuracy(words, setting).reshape(
                len(members), *self.base.shape
            )
        return accuracies

    def on(self, hardware: Any) -> Config:
        """Return the configuration with other pieces (`hw_models.Hardware`)."""
        return built(self.setting, hardware)

    def accuracy(self, title: str, setting: Config) -> Array:
        """Return the accuracies (seed, chip) of a configuration."""
        accuracies: Array = self._accuracy(title, setting).reshape(len(self.base), -1)
        if accuracies.shape[1] < self.base.shape[1]:  # one ideal chip stands for all
            accuracies = np.repeat(accuracies, self.base.shape[1], axis=1)
        return accuracies

    def _accuracy(self, title: str, setting: Config) -> Array:
        with warnings.catch_warnings():  # what a number does to stability is what is asked
            warnings.simplefilter("ignore", StabilityWarning)
            result = self.keep.run(title, setting)
        return np.asarray(np.nan_to_num(np.asarray(result["accuracy"], dtype=float)))

    def _together(self, changes: Sequence[Changes]) -> Iterator[list[int]]:
        """Divide variants into runs: equations alike, and few enough."""
        groups: dict[str, list[int]] = {}
        for k, one in enumerate(changes):
            effects = self.setting.hardware.substrate(dict(one)).effects
            groups.setdefault(repr([effect.structure for effect in effects]), []).append(k)
        weights = self.setting.network.build().parameter_count * self.base.size
        most = max(1, min(TOGETHER // self.base.size, MAX_PARAMETERS // weights))
        for members in groups.values():
            for first in range(0, len(members), most):
                yield members[first : first + most]


def built(setting: Config, hardware: Any) -> Config:
    """Return a configuration with other pieces (`hw_models.Hardware`), as many chips as before."""
    section: dict[str, Any] = {"preset": "ideal", "pieces": {}, "chips": 1}
    if hardware.pieces:
        held = Device.holding(hardware)
        section = {"preset": held.name, "device": held, "pieces": {}}
    return adapted(setting, {"hardware": section})
