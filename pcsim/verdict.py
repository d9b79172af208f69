"""The verdict: what a recorded run says about each chip, and about the population.

From the energy per sample F(t) of each chip, with its initial value F(0) kept (where samples are
switched or states reset: the mean of the first presentations), and with trends that know their
error (`pcsim.trend`):

    floor        mean of the last tenth of the records
    descended    F(0) − floor > 0.1·|F(0)|, and more than both errors together
    moving       the trend over the last quarter of the record exceeds its error and the tolerance
                 0.05·|F| + 0.001·|F(0)|; where the error of the quarter is larger than the
                 tolerance, the last half is asked too
    settled      not moving
    rebounded    descended, but moving up, or settled more than ¼ of itself (and 4 standard
                 deviations) above the lowest sixteenth of the run
    ringing      the last half of the record repeats itself, by more than 2 % of F
                 (not where samples are switched: there F swings from sample to sample)
    rises        share of steps in which F grew, where F must not grow (full batch, nothing reset,
                 algebraic circuit)

An automatic run is settled, or rings, by its own criterion (`pcsim.runner.convergence_window`)
instead, and each chip by its records up to its own stop.

A chip has *converged* if it descended and settled; it *stalled* if it settled without descending;
it is *descending* if it is still on its way down; it *rebounded* if it came down and went up again;
it is *rising* if it goes up and never came down; it *rings* or has *diverged* otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from pcsim.runner.convergence_window import REBOUND, SCATTERS
from pcsim.store import Result
from pcsim.trend import Trend, block_means, period, swing, trend

Array = npt.NDArray[Any]
OUTCOMES = ("converged", "descending", "stalled", "rebounded", "rising", "ringing", "diverged")
DESCENT = 0.1
"""Part of the initial energy by which a chip must have come down."""
RTOL = 0.05
"""Part of its energy by which a settled chip may move within a quarter of the record,"""
ATOL = 1e-3
"""and part of the initial energy: what has fallen to nothing is settled."""
SWING = 0.02
"""Part of its energy by which a ringing chip swings (root mean square)."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """One entry per chip."""

    outcome: Array
    start: Array
    floor: Array
    spread: Array
    """Standard deviation of the tail: the size of noise, switching and ringing."""
    settled_at: Array
    """First time after which F stays within 10 % of the way from start to floor, in seconds.

    Not a number where F is there for no longer than twice the tail that makes the floor, as a
    straight way down is: such a time would only tell how long the run was.
    """
    diverged_at: Array
    rises: Array
    margin: Array
    """Margin of Euler's joint step at the final weights (`pcsim.stability.margin`): one of the
    integration, not of the chip."""
    accuracy: Array

    def columns(self) -> dict[str, Array]:
        """Return the fields by name."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def converged(self) -> float:
        """Share of the chips that converged."""
        return float(np.mean(self.outcome == "converged"))

    def table(self, title: str = "verdict") -> Table:
        """Return the population's verdict: outcomes, and quantiles of energy and accuracy."""
        table = Table(title=title)
        table.add_column("")
        for name in ("5 %", "median", "95 %"):
            table.add_column(name, justify="right")
        for label, values in (
            ("energy at the start", self.start),
            ("energy floor", self.floor),
            ("spread of the floor", self.spread),
            ("settling time, s", self.settled_at),
            ("margin of Euler's step", self.margin),
            ("test accuracy, %", 100 * self.accuracy),
        ):
            if np.isfinite(values).any():
                quantiles = np.nanquantile(values.astype(float), (0.05, 0.5, 0.95))
                table.add_row(label, *(f"{q:.4g}" for q in quantiles))
        table.caption = self._outcomes
        return table

    @property
    def _outcomes(self) -> str:
        counts = [f"{np.sum(self.outcome == name)} {name}" for name in OUTCOMES]
        shown = ", ".join(text for text in counts if not text.startswith("0 "))
        return f"{len(self.outcome)} chips: {shown}"

    def __repr__(self) -> str:
        return f"<Verdict of {self}>"

    def __str__(self) -> str:
        """Return outcomes, and the median energy and accuracy of the population."""
        energy = f"energy {np.nanmedian(self.start):.4g} → {np.nanmedian(self.floor):.4g}"
        known = np.isfinite(self.accuracy).any()
        accuracy = f", test accuracy {100 * np.nanmedian(self.accuracy):.1f} %" if known else ""
        return f"{self._outcomes} ({energy}{accuracy}; medians)"


def verdict_from(result: Result) -> Verdict:
    """Return the verdict stored in a result, chips in one axis."""
    fields = {name: result[f"verdict.{name}"].reshape(-1) for name in Verdict.__dataclass_fields__}
    return Verdict(**fields)


def judge(
    times: Array,
    energy: Array,
    diverged_at: Array,
    accuracy: Array | None = None,
    *,
    initial: Array | None = None,
    lyapunov: bool = False,
    settled: Array | None = None,
    ringing: Array | None = None,
    ends: Array | None = None,
    margin: Array | None = None,
    switched: bool = False,
) -> Verdict:
    """Judge every chip from its energy per sample (chip, record).

    Main arguments:
        initial: energies at the beginning (chip, sample of them); None: the first record.
        switched: samples are switched, or states reset, so that F swings by itself.

    Rarely used:
        settled, ringing: (chip,) replace the tests above, where a run had a criterion of its own.
        ends: how many of the records (chip,) belong to a chip that has stopped.
        lyapunov: F must not grow; count how often it did.
    """
    chips, records = energy.shape
    start = energy[:, :1] if initial is None else initial
    never = np.zeros(chips, dtype=bool)
    parts = {
        "energy": energy,
        "diverged": np.isfinite(diverged_at) | ~np.isfinite(energy).all(axis=1),
        "start": start,
        "settled": never if settled is None else settled,
        "ringing": never if ringing is None else ringing,
    }
    own = settled is not None
    columns: dict[str, Array] = {}
    counts = np.full(chips, records) if ends is None else np.clip(ends, 1, records)
    for count in np.unique(counts):
        rows = counts == count
        part = {name: values[rows] for name, values in parts.items()}
        part["energy"] = part["energy"][:, :count]
        found = _columns(times[:count], **part, own=own, switched=switched, lyapunov=lyapunov)
        for name, values in found.items():
            columns.setdefault(name, np.empty(chips, dtype=values.dtype))[rows] = values
    unknown = np.full(chips, np.nan)
    return Verdict(
        diverged_at=np.asarray(diverged_at, dtype=float),
        margin=unknown if margin is None else np.asarray(margin, dtype=float),
        accuracy=unknown if accuracy is None else np.asarray(accuracy, dtype=float),
        **columns,
    )


def _columns(
    times: Array,
    energy: Array,
    diverged: Array,
    start: Array,
    settled: Array,
    ringing: Array,
    *,
    own: bool,
    switched: bool,
    lyapunov: bool,
) -> dict[str, Array]:
    """Judge chips that have equally many records; `own`: `settled` and `ringing` are known."""
    chips, records = energy.shape
    first = start.mean(1)
    # A chip that has diverged has no floor, and its numbers may be too large to square.
    energy = np.where(diverged[:, None], np.nan, energy)
    floor = energy[:, -_tail(records) :].mean(1)
    quarter = trend(block_means(energy[:, -max(2, records // 4) :]))
    half = trend(block_means(energy[:, -max(2, records // 2) :]))
    spread = energy[:, -max(1, records // 4) :].std(axis=1)
    # A single energy is as uncertain as those at the end are.
    scatter = start.std(1) if start.shape[1] > 1 else spread
    first_error = 3 * scatter / np.sqrt(start.shape[1])
    with np.errstate(invalid="ignore"):
        tolerance = RTOL * np.abs(quarter.level) + ATOL * np.abs(first)
        moving = _moving(quarter, tolerance)
        unsure = np.abs(quarter.change) + quarter.error >= tolerance
        moving |= unsure & _moving(half, tolerance)
        if own:
            moving = ~settled
        up = moving & (half.change > 0)
        fall = first - floor
        descended = (fall > DESCENT * np.abs(first)) & (fall > first_error + quarter.level_error)
        lowest = block_means(energy).min(axis=1)
        above = floor > lowest + REBOUND * np.abs(lowest) + SCATTERS * spread + tolerance
    if not own:
        amplitude = SWING * np.abs(quarter.level) + ATOL * np.abs(first)
        tail = energy[:, -(records // 2) :] if records > 1 else energy
        swings = [not switched and _rings(row, a) for row, a in zip(tail, amplitude, strict=True)]
        ringing = np.asarray(swings, dtype=bool)
    outcome = np.full(chips, "descending", dtype="<U10")
    outcome[up & ~descended] = "rising"
    outcome[~moving & ~descended] = "stalled"
    outcome[~moving & descended] = "converged"
    outcome[descended & (up | (~moving & above))] = "rebounded"
    outcome[ringing] = "ringing"
    outcome[diverged] = "diverged"
    rises = np.full(chips, np.nan)
    if lyapunov and records > 1:
        slack = 1e-9 * np.abs(energy[:, :-1])
        rises = np.mean(np.diff(energy, axis=1) > slack, axis=1)
    return {
        "outcome": outcome,
        "start": first,
        "floor": floor,
        "spread": spread,
        "settled_at": _settling(times, energy, first, floor),
        "rises": rises,
    }


def _moving(line: Trend, tolerance: Array) -> Array:
    """Return which trends are beyond doubt and beyond the tolerance."""
    size = np.abs(line.change)
    return np.asarray((size > tolerance) & (size > line.error))


def _rings(tail: Array, amplitude: float) -> bool:
    return bool(period(tail) and swing(tail) > amplitude)


def _tail(records: int) -> int:
    """Return how many of the last records make the floor."""
    return max(1, records // 10)


def _settling(times: Array, energy: Array, start: Array, floor: Array) -> Array:
    band = np.abs(energy - floor[:, None]) <= 0.1 * np.abs(start - floor)[:, None]
    outside = ~band
    last_outside = np.where(
        outside.any(1), outside.shape[1] - 1 - np.argmax(outside[:, ::-1], axis=1), -1
    )
    settled = np.full(len(energy), np.nan)
    ok = last_outside + 1 < len(times) - 2 * _tail(len(times))
    settled[ok] = times[last_outside[ok] + 1]
    return settled
