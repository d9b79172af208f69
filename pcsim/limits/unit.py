"""One always-on linear layer with the inputs and labels of a data set: limits before any run.

It stands for the network in question. Its weights w* are those of least squares, its outputs on
held-out samples say how much disturbance a classifier of these data bears (`margins`), and the laws
say how much disturbance a non-ideality is. What a hidden layer adds is not in it: a guide, with an
error that `docs/automatic.md` measures.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from pcsim.limits import noise, offsets, streams, writes
from pcsim.limits.lags import Floats
from pcsim.limits.limit import Limit, largest, smallest
from pcsim.limits.margins import tolerable_variance

SAMPLES = 10_000
"""Of more than these, the first ones say what inputs are like."""
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
    rest: Floats
    """Its bias: what outputs are beside w*·r."""
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
        inputs: Floats,
        labels: npt.NDArray[np.int64],
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
        x, classes = np.asarray(inputs[:SAMPLES], dtype=float), np.asarray(labels[:SAMPLES])
        targets = np.eye(int(classes.max()) + 1)[classes]
        centre, middle = x.mean(0), targets.mean(0)
        power = (x - centre).T @ (x - centre) / len(x)
        power += RIDGE * (x**2).mean() * np.eye(x.shape[1])
        best = np.linalg.solve(power, (x - centre).T @ (targets - middle) / len(x)).T

        layer = cls(
            covariance=x.T @ x / len(x),
            activity=np.abs(x).mean(0),
            rates=x,
            best=best,
            rest=middle - best @ centre,
            residual=0.0,
            variance=0.0,
            alpha=dt / tau_w,
            gamma=dt / tau_x,
            presentation=presentation,
            presentations=passes * len(inputs),
            tau_w=tau_w,
        )
        left = targets - layer.answers(x)
        return replace(
            layer,
            residual=float(np.sqrt((left**2).mean())),
            variance=tolerable_variance(layer.answers(others), their_labels, points),
        )

    def answers(self, inputs: npt.ArrayLike) -> Floats:
        """Return the outputs (sample, output) of the best weights."""
        return np.asarray(np.asarray(inputs, dtype=float) @ self.best.T + self.rest)

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

    def cycle_noise(self, quantum: float) -> Limit:
        """Return the largest spread of one pulse of a given size, relative to it.

        q (1 + c²) may be as large as q alone might: c² = (largest q)/q − 1.
        """
        room = self.granularity().value / quantum - 1 if quantum else np.inf
        return Limit(40, "spread of pulses", float(np.sqrt(max(0.0, room))))

    def _pulses(self, quantum: float, cycle_noise: float = 0.0) -> float:
        """Return the excess of pulses above that of single samples, which an ideal chip has too."""
        activity = float(self.activity.sum())
        excess = writes.excess_of_pulses(quantum, activity, self.residual, cycle_noise)
        ideal = noise.excess_of_read_noise(
            self.residual, self.alpha, min(self.power, 1 / self.alpha)
        )
        return max(0.0, excess - ideal)

    def imbalance(self, bound: float = np.inf) -> Limit:
        """Return the largest |imbalance| of a device of given bounds (inf: steps all alike)."""
        if bound == np.inf:
            value = writes.tolerable_imbalance(
                self.covariance, self.activity, self.residual, self.tolerance
            )
            return Limit(41, "asymmetric steps", value)

        alike = self._asymmetric(bound, 1.0)

        def excess(part: float) -> float:
            return self._asymmetric(bound, 1 - min(part, 1.0)) - alike

        return Limit(41, "asymmetric steps", largest(excess, self.tolerance, 0.1))

    def _asymmetric(self, bound: float, down: float) -> float:
        found = [
            writes.asymmetric_weights(
                self.covariance, one, self.activity, self.residual, bound=bound, down=down
            )[1]
            for one in self.best
        ]
        return float(np.mean(found))

    def bounds(self) -> Limit:
        """Return the smallest bound of a device with soft bounds."""
        excess = writes.excess_of_soft_bounds(
            self.covariance, self.best, self.activity, self.residual
        )
        value = smallest(lambda bound: float(excess(bound).mean()), self.tolerance)
        return Limit(41, "asymmetric steps", value, at_most=False)

    def lifetime(self) -> Limit:
        """Return the shortest lifetime of a stored weight, seconds."""

        def excess(lifetime: float) -> float:
            return writes.excess_of_retention(self.covariance, self.best, self.tau_w, lifetime)

        value = smallest(excess, self.tolerance, self.tau_w)
        return Limit(25, "retention", value, at_most=False)

    def shortest(self, theta0: npt.ArrayLike) -> Limit:
        """Return the shortest presentation, τ_x, with learnt weights (output, hidden)."""
        wanted = self.best @ np.cov(self.rates.T) @ self.best.T
        value = streams.shortest_presentation(theta0, wanted, self.tolerance)
        return Limit(42, "carried-over states", value if value < np.inf else np.nan, at_most=False)

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
