"""One always-on linear layer with the inputs and labels of a data set: limits before any run.

It stands for the network in question. Its weights w* are those of least squares, its outputs on
held-out samples say how much disturbance a classifier of these data bears (`margins`), and the laws
say how much disturbance a non-ideality is. What a hidden layer adds is not in it: a guide, with an
error that `docs/automatic.md` measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from pcsim.limits import noise, offsets, writes
from pcsim.limits.lags import Floats
from pcsim.limits.limit import Limit, largest, smallest
from pcsim.limits.margins import tolerable_variance

RIDGE = 1e-3
"""Of the mean square of an input: keeps w* of inputs that hardly fire from running away."""


@dataclass(frozen=True, eq=False)
class Always:
    """A linear layer that learns e·r all the time, one sample at a time, and what it may lose."""

    covariance: Floats
    """C = E[r rᵀ] of the inputs."""
    activity: Floats
    """E|r_j|."""
    rates: Floats
    """Inputs (sample, input)."""
    best: Floats
    """w* (output, input) of least squares."""
    residual: float
    """Root mean square of the error that w* leaves at one output."""
    variance: float
    """Tolerated variance of an output: that at which the tolerated points of accuracy are lost."""
    alpha: float
    """dt/τ_w."""
    gamma: float
    """dt/τ_x."""
    presentation: float
    """Time per sample, seconds."""
    presentations: int
    tau_w: float
    """Seconds."""

    @classmethod
    def of(
        cls,
        inputs: npt.ArrayLike,
        labels: npt.ArrayLike,
        others: npt.ArrayLike,
        their_labels: npt.ArrayLike,
        *,
        points: float,
        dt: float,
        tau_x: float,
        tau_w: float,
        presentation: float,
        passes: int = 1,
    ) -> Self:
        """Fit least squares to samples, and find what `points` of accuracy are worth on others.

        `points` as a fraction (0.05), times in seconds.
        """
        x, classes = np.asarray(inputs, dtype=float), np.asarray(labels)
        targets = np.eye(int(classes.max()) + 1)[classes]
        centre, middle = x.mean(0), targets.mean(0)
        power = (x - centre).T @ (x - centre) / len(x)
        power += RIDGE * (x**2).mean() * np.eye(x.shape[1])
        best = np.linalg.solve(power, (x - centre).T @ (targets - middle) / len(x)).T

        def answer(of: npt.ArrayLike) -> Floats:
            return np.asarray((np.asarray(of, dtype=float) - centre) @ best.T + middle)

        left = targets - answer(x)
        return cls(
            covariance=x.T @ x / len(x),
            activity=np.abs(x).mean(0),
            rates=x,
            best=best,
            residual=float(np.sqrt((left**2).mean())),
            variance=tolerable_variance(answer(others), their_labels, points),
            alpha=dt / tau_w,
            gamma=dt / tau_x,
            presentation=presentation,
            presentations=passes * len(x),
            tau_w=tau_w,
        )

    @property
    def tolerance(self) -> float:
        """Excess loss per output unit that is tolerated."""
        return self.variance / 2

    @cached_property
    def power(self) -> float:
        """Σ E r²: fan-in times the mean square of an input."""
        return float(np.trace(self.covariance))

    # -- limits ------------------------------------------------------------------------------------

    def read_noise(self, per_unit: float = 1.0) -> Limit:
        """Return the largest read noise of an error, or of what adds `per_unit` times it to one.

        Both the read-out (one instant) and the weights feel it.
        """

        def disturbance(s: float) -> float:
            read = self.gamma / (2 - self.gamma) if self.gamma < 2 else np.inf
            power = min(self.power, 1 / self.alpha)  # beyond, single samples overwrite each other
            learnt = noise.weight_variance(1.0, self.alpha, power) * self.power
            return float((per_unit * s) ** 2 * (read + learnt) / 2)

        return Limit(38, "noise of reads", largest(disturbance, self.tolerance))

    def line_noise(self, span: float | None) -> Limit:
        """Return the largest read noise of a device, relative to `span` (None: to its weight)."""
        squares = np.diag(self.covariance)
        each = np.abs(self.best) if span is None else np.full_like(self.best, span)
        line = np.sqrt(np.mean([noise.line_noise(1.0, squares, one) ** 2 for one in each]))
        return self.read_noise(float(line))

    def bits(self, span: float, *, accumulator: bool, stochastic: bool, writes_of: float) -> Limit:
        """Return the fewest bits; `writes_of` is the learning α r of one write in steps of dt."""
        alpha = self.alpha * writes_of

        def excess(lsb: float) -> float:
            if accumulator:
                return writes.excess_of_rounded_reads(lsb, self.power)
            if stochastic:
                return self._pulses(lsb)
            return writes.excess_of_stalling(lsb, alpha, self.rates)

        lsb = largest(excess, self.tolerance)
        number = 24 if accumulator or not stochastic else 40
        value = writes.least_bits(span, lsb / 2) if np.isfinite(lsb) else 0.0
        return Limit(number, "steps of weights", max(2.0, value), at_most=False)

    def granularity(self, cycle_noise: float = 0.0) -> Limit:
        """Return the largest weight that one pulse may change."""
        value = largest(lambda q: self._pulses(q, cycle_noise), self.tolerance)
        return Limit(40, "whole pulses", value)

    def _pulses(self, quantum: float, cycle_noise: float = 0.0) -> float:
        """Return the excess of pulses above that of single samples, which an ideal chip has too."""
        activity = float(self.activity.sum())
        excess = writes.excess_of_pulses(quantum, activity, self.residual, cycle_noise)
        ideal = noise.excess_of_read_noise(
            self.residual, self.alpha, min(self.power, 1 / self.alpha)
        )
        return max(0.0, excess - ideal)

    def imbalance(self, bound: float) -> Limit:
        """Return the largest |imbalance| of a device of given bounds (inf: steps all alike)."""

        def excess(part: float) -> float:
            down = 1 - min(part, 1.0)
            return self._asymmetric(bound, down) - self._asymmetric(bound, 1.0)

        return Limit(41, "asymmetric steps", largest(excess, self.tolerance, 0.1))

    def bounds(self) -> Limit:
        """Return the smallest bound of a device with soft bounds."""
        value = smallest(lambda bound: self._asymmetric(bound, 1.0), self.tolerance)
        return Limit(41, "asymmetric steps", value, at_most=False)

    def _asymmetric(self, bound: float, down: float) -> float:
        found = [
            writes.asymmetric_weights(
                self.covariance, one, self.activity, self.residual, bound=bound, down=down
            )[1]
            for one in self.best
        ]
        return float(np.mean(found))

    def lifetime(self) -> Limit:
        """Return the shortest lifetime of a stored weight, seconds."""

        def excess(lifetime: float) -> float:
            each = [
                writes.excess_of_retention(self.covariance, one, self.tau_w, lifetime)
                for one in self.best
            ]
            return float(np.mean(each))

        value = smallest(excess, self.tolerance, self.tau_w)
        return Limit(25, "retention", value, at_most=False)

    def write_noise(self) -> Limit:
        """Return the largest noise of a write that stays, at a write in every time step."""

        def excess(sigma: float) -> float:
            return writes.excess_of_write_noise(sigma, 0.0, self.alpha, 0.0, len(self.covariance))

        return Limit(25, "noise of writes", largest(excess, self.tolerance))

    def offset(self, full_scale: float = 1.0, gain: float = 1.0) -> Limit:
        """Return the largest spread of the learning multiplier's offset, of its full scale."""
        value = offsets.tolerable_offset(
            self.covariance,
            self.tolerance,
            presentation=self.presentation,
            presentations=self.presentations,
            tau_w=self.tau_w,
            gain=gain,
        )
        return Limit(36, "offset of the learning multiplier", value / full_scale)

    @staticmethod
    def times() -> Limit:
        """Return that mismatch of time constants moves nothing."""
        return Limit(22, "time constants", np.inf)
