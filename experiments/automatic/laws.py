"""What the laws of `pcsim.limits` predict for a point: the size of its fault that loses so much.

They speak of one always-on linear layer with the same data (`pcsim.limits.Always`), taken at the
learning rate and the presentation time of the point; of the lags and delays, of the weights that
an ideal chip has learnt. Sizes are those of `points.FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import Self

import numpy as np

from pcsim.limits import Always, lags, streams, writes
from pcsim.limits.lags import Floats
from pcsim.limits.margins import tolerable_variance
from pcsim.limits.unit import RIDGE
from pcsim.runner.task import Task
from pcsim.store import Result

from .points import Point, Setting, config

TOLERANCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3)
"""Losses of accuracy for which sizes are predicted."""
OF_WEIGHTS = ("delay", "inter_lag")
"""Faults whose law needs the weights of an ideal chip."""
GRID = 24
"""Sizes at which the excess of asymmetric devices is computed."""

LAWS: dict[str, int] = {
    "noise": 38,
    "line": 38,
    "accumulated": 24,
    "nearest": 24,
    "stochastic": 40,
    "pulse": 40,
    "imbalance": 41,
    "bound": 41,
    "tau": 22,
    "offset": 36,
    "retention": 25,
    "delay": 15,
    "inter_lag": 44,
    "present": 42,
}
"""Number of the law of each axis in `docs/theory.md`; others have a fitted one."""

SIZES: dict[str, Callable[[Always], float]] = {
    "noise": lambda layer: layer.read_noise().value,
    "line": lambda layer: layer.line_noise(None).value,
    "accumulated": lambda layer: _bits(layer, accumulator=True),
    "nearest": lambda layer: _bits(layer),
    "stochastic": lambda layer: _bits(layer, stochastic=True),
    "pulse": lambda layer: layer.granularity().value,
    "tau": lambda layer: layer.times().value,
    "offset": lambda layer: layer.offset().value,
    "retention": lambda layer: layer.lifetime().value,
}
"""The predicted size, of faults whose law needs a layer alone."""


def _bits(layer: Always, *, accumulator: bool = False, stochastic: bool = False) -> float:
    limit = layer.bits(1.0, accumulator=accumulator, stochastic=stochastic, writes_of=1.0)
    return limit.value


@dataclass(frozen=True)
class Layer:
    """A linear layer with the data of the study, and what losses of accuracy are worth."""

    base: Always
    variances: Mapping[float, float]
    """Tolerated variance of an output by loss of accuracy."""

    @classmethod
    def of(cls, task: str, setting: Setting, tolerances: Sequence[float] = TOLERANCES) -> Self:
        """Fit a layer to the training samples of a task; its margins are those of held-out ones."""
        whole = config(setting, Point("ideal", 0.0, 1.0, task=task), task, 1, 1)
        data = Task.load(whole, whole.network.build())
        assert data.validation is not None
        (x, y), (others, labels) = (
            (part.x.double().numpy().reshape(len(part.x), -1), part.y.numpy())
            for part in (data.train, data.validation)
        )
        base = Always.of(
            x,
            y,
            others,
            labels,
            points=tolerances[0],
            dt=setting.gamma,
            tau_x=1.0,
            tau_w=1.0,
            presentation=1.0,
        )
        # Outputs as `Always.of` has them: the mean over samples is not learnt from the inputs.
        middle = np.bincount(y, minlength=int(y.max()) + 1) / len(y)
        outputs = (others - x.mean(0)) @ base.best.T + middle
        found = {one: tolerable_variance(outputs, labels, one) for one in tolerances}
        return cls(base, found)

    def at(self, tolerance: float, rate: float, present: float, gamma: float) -> Always:
        """Return the layer that learns with a rate per sample, and may lose so much."""
        alpha = rate / round(present / gamma)
        return replace(
            self.base,
            variance=self.variances[tolerance],
            alpha=alpha,
            tau_w=gamma / alpha,
            presentation=present,
        )

    def size(
        self, fault: str, tolerance: float, rate: float, present: float, gamma: float
    ) -> float:
        """Return the size of a fault at which so much accuracy is lost; nan: no law says it."""
        if fault in ("imbalance", "bound"):
            return self._asymmetric(fault, tolerance)
        if fault not in SIZES:
            return nan
        return float(SIZES[fault](self.at(tolerance, rate, present, gamma)))

    def _asymmetric(self, fault: str, tolerance: float) -> float:
        sizes, excess = getattr(self, f"_of_{fault}")
        wanted = self.variances[tolerance] / 2
        worse = np.maximum.accumulate(excess)
        if wanted >= worse[-1]:
            return inf if fault == "imbalance" else 0.0
        return float(np.exp(np.interp(wanted, worse, np.log(sizes))))

    @cached_property
    def _of_imbalance(self) -> tuple[Floats, Floats]:
        sizes = np.geomspace(0.01, 1.0, GRID)
        return sizes, np.array([self._excess(inf, 1 - size) for size in sizes])

    @cached_property
    def _of_bound(self) -> tuple[Floats, Floats]:
        sizes = np.geomspace(30.0, 0.03, GRID)
        return sizes, np.array([self._excess(bound, 1.0) for bound in sizes])

    def _excess(self, bound: float, down: float) -> float:
        layer, each = self.base, np.diag(self.base.covariance).mean()
        # Inputs that never fire leave the weights of steps without bounds anywhere: the same ridge
        # as that of the best weights.
        covariance = layer.covariance + RIDGE * each * np.eye(len(layer.covariance))
        found = [
            writes.asymmetric_weights(
                covariance, one, layer.activity, layer.residual, bound=bound, down=down
            )[1]
            for one in layer.best
        ]
        return float(np.mean(found))

    def shortest(self, theta0: Floats, tolerance: float) -> float:
        """Return the shortest presentation, τ_x, with the output weights of a trained chip."""
        wanted = self.base.best @ np.cov(self.base.rates.T) @ self.base.best.T
        return streams.shortest_presentation(theta0, wanted, self.variances[tolerance] / 2)


def of_lags(point: Point, ideal: Result) -> float:
    """Return the lag or delay at which the weights of an ideal chip become unstable, in τ_x."""
    if point.fault == "delay" and "curvature" in ideal.variables:
        return lags.delay_limit(float(np.median(ideal["curvature"])))
    if point.fault == "inter_lag" and "inter_bound" in ideal.variables:
        return float(np.median(ideal["inter_bound"]))
    return nan
