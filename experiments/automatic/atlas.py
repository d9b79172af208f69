"""What a stored map says: losses of each point, where they pass a tolerance, and where laws put it.

Losses are paired by seed with the ideal chip of the same network and task; of each seed the mean
over its chips counts, and intervals are Student's over seeds. Sizes between those tried are found
along doublings (or bits), with losses made monotone, as margins are (`pcsim.variants.limit`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, nan

import numpy as np

from pcsim.limits.lags import Floats
from pcsim.store import Result
from pcsim.variants.limit import Estimate, change, paired

from .points import FAULTS, Fault, Point, Setting, presentations, reference

CONFIDENCE = 0.9


@dataclass(frozen=True)
class Fit:
    """loss = 3 points · (damage)^exponent, damage 1 at `size`."""

    size: float
    """Where it loses three points."""
    exponent: float
    """Of the size; per bit a factor of 2^exponent."""
    error: float
    """Root mean square of what the fit misses, as a share of accuracy."""


@dataclass(frozen=True)
class Atlas:
    """A stored result, read."""

    result: Result
    setting: Setting

    @classmethod
    def of(cls, result: Result) -> Atlas:
        """Read a stored result."""
        return cls(result, Setting.model_validate_json(str(result.attrs["setting"])))

    @cached_property
    def present(self) -> float:
        """The presentation time that was chosen, τ_x."""
        return float(self.result["chosen_present"])

    @cached_property
    def rows(self) -> dict[Point, int]:
        """Every point, and where it stands."""
        names = ("fault", "size", "present", "given_rate", "depth", "width", "task", "step")
        columns = zip(*(self.result[name] for name in names), strict=True)
        return {
            Point(str(f), float(s), float(t), float(r), int(d), int(w), str(task), float(dt)): k
            for k, (f, s, t, r, d, w, task, dt) in enumerate(columns)
        }

    def accuracy(self, point: Point) -> Floats:
        """Return accuracies (seed, chip) of a point."""
        values = self.result["accuracy"][self.rows[point]]
        seeds, chips = np.isfinite(values).any(1), np.isfinite(values).any(0)
        return np.asarray(values[seeds][:, chips])

    def loss(self, point: Point, present: float = 0.0) -> Estimate:
        """Return the accuracy lost against the ideal chip, with its interval.

        The ideal chip is shown samples for the chosen time, or for `present`.
        """
        ideal = self.accuracy(reference(self.setting, point, present or self.present)).mean(1)
        here = self.accuracy(point)
        return paired(ideal[: len(here), None] - here, CONFIDENCE)

    def worst(self, point: Point, share: float = 0.9) -> float:
        """Return the loss that this share of chips stays within."""
        ideal = self.accuracy(reference(self.setting, point, self.present)).mean(1)
        here = self.accuracy(point)
        return float(np.quantile(ideal[: len(here), None] - here, share))

    def carrying(self) -> tuple[list[float], list[Estimate]]:
        """Return presentation times from the best on, shorter and shorter, with what they lose.

        The best is that of held-out samples.
        """
        points = [p for p in presentations(self.setting) if p in self.rows]
        best = max(points, key=lambda p: float(self.result["held_out"][self.rows[p]]))
        shorter = sorted((p for p in points if p.present <= best.present), key=lambda p: -p.present)
        ideal = self.accuracy(best).mean(1)
        lost = [paired(ideal[:, None] - self.accuracy(p), CONFIDENCE) for p in shorter]
        return [p.present for p in shorter], lost

    def along(
        self,
        fault: str,
        present: float = 0.0,
        depth: int = 2,
        width: int = 0,
        task: str = "",
        rate: float = 0.0,
        step: float = 0.0,
    ) -> list[Point]:
        """Return the points of a fault in one network, in the order of the damage."""
        time, units = present or self.present, width or self.setting.width
        where = (time, rate, depth, units, task or self.setting.task, step)
        found = [
            one
            for one in self.rows
            if one.fault == fault
            and (one.present, one.rate, one.depth, one.width, one.task, one.step) == where
        ]
        return sorted(found, key=lambda one: FAULTS[fault].place(one.size) if one.size else 0.0)

    def boundary(self, points: Sequence[Point], tolerance: float, present: float = 0.0) -> Estimate:
        """Return the size at which so much accuracy is lost; inf or 0 beyond all sizes."""
        if not points:
            return Estimate(nan, nan, nan)
        fault = FAULTS[points[0].fault]
        places = [fault.place(one.size) for one in points]
        found = change(places, [self.loss(one, present) for one in points], tolerance)
        return Estimate(*(self._size(fault, at) for at in (found.value, found.low, found.high)))

    @staticmethod
    def _size(fault: Fault, place: float) -> float:
        if isfinite(place):
            return fault.size(place)
        return inf if fault.more_is_worse else 0.0

    def predicted(self, points: Sequence[Point], tolerance: float) -> float:
        """Return the size that the law puts there, at the rates of these points; nan: no law."""
        column = list(self.result["tolerance"]).index(tolerance)
        if not points:
            return nan
        fault = FAULTS[points[0].fault]
        limits = [float(self.result["predicted"][self.rows[one]][column]) for one in points]
        if any(np.isnan(limits)):
            return nan
        at = [fault.place(one.size) for one in points]
        to = [fault.place(one) if 0 < one < inf else inf for one in limits]
        beyond = [here - there for here, there in zip(at, to, strict=True)]
        if beyond[0] >= 0:
            return limits[0]
        for k in range(1, len(points)):
            if beyond[k] >= 0:
                low, high = beyond[k - 1], beyond[k]
                if not isfinite(low):
                    return limits[k]
                return fault.size(at[k - 1] + (at[k] - at[k - 1]) * low / (low - high))
        return limits[-1]

    def fit(self, points: Sequence[Point]) -> Fit | None:
        """Fit a power of the size to losses between half a point and forty; None: too few."""
        if not points:
            return None
        fault = FAULTS[points[0].fault]
        losses = np.array([self.loss(one).value for one in points])
        used = (losses > 0.005) & (losses < 0.4)
        if used.sum() < 2:
            return None
        places = np.array([fault.place(one.size) for one in points])[used]
        slope, start = np.polyfit(places, np.log2(losses[used]), 1)
        if slope <= 0:
            return None
        missed = 2 ** (start + slope * places) - losses[used]
        size = fault.size((np.log2(0.03) - start) / slope)
        return Fit(float(size), float(slope), float(np.sqrt((missed**2).mean())))
