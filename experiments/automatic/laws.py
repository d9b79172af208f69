"""What the laws of `pcsim.limits` predict for a point: the size of its fault that loses so much.

They speak of one always-on linear layer with the same data (`pcsim.limits.Always`), taken at the
learning rate and the presentation time of the point; of lags and delays, of the weights that an
ideal chip has learnt. Which law speaks of which fault is said by `pcsim.limits.axes`, as for every
command. Sizes are those of `points.FAULTS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import nan
from typing import Any, Self

import numpy as np

from hw_models import fields_of
from pcsim.limits import Always
from pcsim.limits.axes import Axis, Fields, Ground, axis_of
from pcsim.limits.margins import tolerable_variance
from pcsim.runner.task import Task
from pcsim.store import Result

from .points import FAULTS, PRESENTATION, Fault, Point, Setting, config

TOLERANCES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3)
"""Losses of accuracy for which sizes are predicted."""
ANY = Setting(
    train=1, held_out=1, seeds=1, chips=1, alike_seeds=1, presents=(1.0,), sizes={}
)  # fmt: skip
"""A setting of which only the chip is asked."""


@cache
def axis(name: str) -> tuple[Axis, Fields] | None:
    """Return the law of a fault (or `present`), and the other fields beside its number."""
    fault = PRESENTATION if name == "present" else FAULTS[name]
    section, _, number = fault.number.rpartition(".")
    if not section:
        return None
    fields = _fields(name, fault, section)
    found = axis_of(str(fields.get("kind", section)), number, fields)
    found = found or axis_of(section, number, fields)
    return (found, fields) if found else None


def _fields(name: str, fault: Fault, section: str) -> dict[str, Any]:
    if section == "stream":
        return {}
    point = Point(name, 6 if fault.by_bits else 0.1, 1.0)
    whole = config(ANY, point, "digits", 1, 1)
    if section == "circuit":
        return whole.circuit.model_dump()
    return fields_of(whole.hardware.described())[section]


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
        outputs = base.answers(others)
        return cls(base, {one: tolerable_variance(outputs, labels, one) for one in tolerances})

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
        self,
        fault: str,
        tolerance: float,
        rate: float,
        present: float,
        gamma: float,
        ideal: Result | None = None,
    ) -> float:
        """Return the size of a fault at which so much accuracy is lost; nan: no law says it.

        `ideal` is the ideal chip of the same network, whose weights some laws need.
        """
        law = axis(fault)
        if law is None:
            return nan
        one, fields = law
        return one.limit(
            ground(self.at(tolerance, rate, present, gamma), ideal, gamma), fields
        ).value


def ground(layer: Always, ideal: Result | None, gamma: float) -> Ground:
    """Return what laws stand on: times in τ_x, weights those of an ideal chip."""
    weights = ideal if ideal is not None and "theta0" in ideal.variables else None
    if weights is None:
        return Ground(layer, dt=gamma)
    return Ground(
        layer,
        dt=gamma,
        curvature=float(np.median(weights["curvature"])),
        inter_bound=float(np.median(weights["inter_bound"])),
        theta0=weights["theta0"],
    )
