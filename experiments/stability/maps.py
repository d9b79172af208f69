"""Measured and predicted maps over lag, depth and weight, for `pcsim experiment stability`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pcsim.limits import lags
from pcsim.limits.lags import Floats

from . import measure

POLE_DEPTHS = np.array([2, 4, 10])
LAGS = np.array([0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
ERROR_WEIGHTS = np.array([0.5, 1.0, 2.0])
DEPTHS = np.array([2, 3, 4, 6, 10])
WEIGHTS = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 10.0])
LOOP_DEPTHS = np.array([2, 4])
LOOP_WEIGHTS = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
FEEDBACK_WEIGHTS = np.array([1.1, 1.25, 1.5, 2.0, 3.0])


@dataclass(frozen=True, eq=False)
class Map:
    """One quantity over a grid, measured and predicted."""

    name: str
    label: str
    long_name: str
    dims: tuple[str, str]
    measured: Floats
    predicted: Floats

    @property
    def error(self) -> Floats:
        """Relative error; 0 where both are 0 or both infinite, ∞ where only one is."""
        same = (self.measured == self.predicted) | (np.abs(self.predicted) < 1e-12)
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = np.abs(self.measured / self.predicted - 1)
        return np.where(same, np.abs(np.where(same, 0, self.measured)), relative)


def pole_errors() -> Floats:
    """Return the worst relative distance of a pole, for L = 2, 4, 10 and all lags of (A)."""
    return np.array(
        [
            [
                measure.pole_error(depth, 1.0, tau, lags.error_lag_poles(depth, 1.0, tau))
                for tau in LAGS
            ]
            for depth in POLE_DEPTHS
        ]
    )


def error_lag() -> tuple[Map, Map]:
    """(A): overshoot of a step response, in parts of the step, and damping, over w and τ_e."""
    cells = [[(float(w), float(tau)) for tau in LAGS] for w in ERROR_WEIGHTS]
    dims = ("error_weight", "error_lag")
    overshoot = Map(
        "error_lag_overshoot",
        "A  overshoot",
        "overshoot of x after a step of the output, L = 2, in parts of the step",
        dims,
        np.array([[measure.step_overshoot(w, tau) for w, tau in row] for row in cells]),
        np.array([[lags.overshoot(1 + w * w, tau) for w, tau in row] for row in cells]),
    )
    damping = Map(
        "error_lag_damping",
        "A  damping ζ",
        "damping ratio of x, L = 2, from the poles",
        dims,
        np.array([[measure.damping(w, tau) for w, tau in row] for row in cells]),
        np.array([[lags.damping(1 + w * w, tau) for w, tau in row] for row in cells]),
    )
    return overshoot, damping


def dendritic_lags() -> tuple[Map, Map]:
    """(B) and (C): smallest unstable lag of the apical branch, and of the interneurons."""
    cells = [[(int(depth), float(w)) for w in WEIGHTS] for depth in DEPTHS]
    apical, inter = (
        np.array([[measure.lag_limit(depth, w, name) for depth, w in row] for row in cells])
        for name in ("tau_apical", "tau_inter")
    )
    apical_law, inter_law = (
        np.array([[law(depth, w) for depth, w in row] for row in cells])
        for law in (lags.apical_lag_limit, lags.interneuron_lag_limit)
    )
    dims = ("depth", "weight")
    return (
        Map(
            "apical_lag_limit",
            "B  apical lag",
            "smallest unstable τ_a/τ_x",
            dims,
            apical,
            apical_law,
        ),
        Map(
            "interneuron_lag_limit",
            "C  interneuron lag",
            "smallest unstable τ_I/τ_x",
            dims,
            inter,
            inter_law,
        ),
    )


def delays() -> tuple[Map, Map]:
    """(D): largest stable delay of the whole error loop, and of the feedback branch alone."""
    loop = [measure.delay_limits(int(d), LOOP_WEIGHTS.tolist(), "delay_err") for d in LOOP_DEPTHS]
    loop_law = [[lags.loop_delay_limit(int(d), w) for w in LOOP_WEIGHTS] for d in LOOP_DEPTHS]
    branch = measure.delay_limits(2, FEEDBACK_WEIGHTS.tolist(), "delay_fb")
    branch_law = [lags.feedback_delay_limit(w) for w in FEEDBACK_WEIGHTS]
    return (
        Map(
            "loop_delay_limit",
            "D  loop delay",
            "largest stable d/τ_x, errors late in all their uses",
            ("loop_depth", "loop_weight"),
            np.array(loop),
            np.array(loop_law),
        ),
        Map(
            "feedback_delay_limit",
            "D  feedback delay",
            "largest stable d/τ_x, feedback branch late, L = 2",
            ("feedback_depth", "feedback_weight"),
            branch[None],
            np.array([branch_law]),
        ),
    )
