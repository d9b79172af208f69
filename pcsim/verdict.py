"""The verdict: what a recorded run says about each chip, and about the population.

From the energy per sample F(t) of each chip:

    start, floor   median of the first fiftieth and of the last tenth of the records
    descended      floor < 0.9 · start
    settled        the last two eighths of the record differ by less than 5 % (or by the noise)
    ringing        the tail swings back and forth: its autocorrelation falls below −0.3
                   (not in a stream, where F swings from sample to sample)
    rises          share of steps in which F grew, where F must not grow (full batch, ideal circuit)

An automatic run is settled by its own criterion (`config.Convergence`) instead.

A chip has *converged* if it descended and settled; it *stalled* if it settled without descending;
it is *descending* if it is still on its way, *rising* if it goes the wrong way; it *rings* or has
*diverged* otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from pcsim.store import Result

Array = npt.NDArray[Any]
OUTCOMES = ("converged", "descending", "stalled", "rising", "ringing", "diverged")


@dataclass(frozen=True, eq=False)
class Verdict:
    """One entry per chip."""

    outcome: Array
    start: Array
    floor: Array
    spread: Array
    """Standard deviation of the tail: the size of noise, switching and ringing."""
    settled_at: Array
    """First time after which F stays within 10 % of the way from start to floor, in seconds."""
    diverged_at: Array
    rises: Array
    margin: Array
    """Stability margin of Euler's joint step at the final weights (`pcsim.stability.margin`)."""
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
            ("stability margin", self.margin),
            ("test accuracy, %", 100 * self.accuracy),
        ):
            if np.isfinite(values).any():
                quantiles = np.nanquantile(values.astype(float), (0.05, 0.5, 0.95))
                table.add_row(label, *(f"{q:.4g}" for q in quantiles))
        counts = [f"{np.sum(self.outcome == name)} {name}" for name in OUTCOMES]
        shown = ", ".join(text for text in counts if not text.startswith("0 "))
        table.caption = f"{len(self.outcome)} chips: {shown}"
        return table


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
    lyapunov: bool = False,
    settled: Array | None = None,
    margin: Array | None = None,
    stream: bool = False,
) -> Verdict:
    """Judge every chip from its energy per sample (chip, record); `stream`: samples are switched.

    `settled` (chip,) replaces the test above, where a run had a criterion of its own.
    """
    chips, records = energy.shape
    tenth, eighth = max(1, records // 10), max(1, records // 8)
    start = np.median(energy[:, : max(1, records // 50)], axis=1)
    diverged = np.isfinite(diverged_at) | ~np.isfinite(energy).all(axis=1)
    # A chip that has diverged has no floor, and its numbers may be too large to square.
    energy = np.where(diverged[:, None], np.nan, energy)
    floor = np.median(energy[:, -tenth:], axis=1)
    tail = energy[:, -2 * eighth :]
    spread = tail.std(axis=1)
    last, before = tail[:, -eighth:], tail[:, :eighth]
    moved = np.abs(last.mean(1) - before.mean(1))
    noise = 3 * np.sqrt((last.var(1) + before.var(1)) / eighth)
    if settled is None:
        settled = moved <= np.maximum(0.05 * np.abs(before.mean(1)), noise) + 1e-12 * np.abs(start)
    descended = floor < 0.9 * start
    ringing = np.array([not stream and _rings(row) for row in tail])
    outcome = np.full(chips, "descending", dtype="<U10")
    outcome[settled & descended] = "converged"
    outcome[settled & ~descended] = "stalled"
    outcome[~settled & (last.mean(1) > before.mean(1)) & ~descended] = "rising"
    outcome[ringing] = "ringing"
    outcome[diverged] = "diverged"
    rises = np.full(chips, np.nan)
    if lyapunov and records > 1:
        slack = 1e-9 * np.abs(energy[:, :-1])
        rises = np.mean(np.diff(energy, axis=1) > slack, axis=1)
    return Verdict(
        outcome=outcome,
        start=start,
        floor=floor,
        spread=spread,
        settled_at=_settling(times, energy, start, floor),
        diverged_at=np.asarray(diverged_at, dtype=float),
        rises=rises,
        margin=np.full(chips, np.nan) if margin is None else np.asarray(margin, dtype=float),
        accuracy=np.full(chips, np.nan) if accuracy is None else np.asarray(accuracy, dtype=float),
    )


def _rings(tail: Array) -> bool:
    """Whether the tail swings: significant, and its autocorrelation dips below −0.3."""
    if len(tail) < 12 or not np.isfinite(tail).all():
        return False
    trend = np.polyval(np.polyfit(np.arange(len(tail)), tail, 2), np.arange(len(tail)))
    swing = tail - trend
    if swing.std() < 0.02 * abs(tail.mean()) or swing.std() == 0:
        return False
    lags = np.correlate(swing, swing, "full")[len(swing) - 1 :]
    # White noise dips by about 2/√n at most; a swing dips far and comes back.
    dips = lags[: len(lags) // 2] / lags[0]
    lowest = int(np.argmin(dips))
    return bool(dips[lowest] < -0.3 and dips[lowest:].max() > 0.2)


def _settling(times: Array, energy: Array, start: Array, floor: Array) -> Array:
    band = np.abs(energy - floor[:, None]) <= 0.1 * np.abs(start - floor)[:, None]
    outside = ~band
    last_outside = np.where(
        outside.any(1), outside.shape[1] - 1 - np.argmax(outside[:, ::-1], axis=1), -1
    )
    settled = np.full(len(energy), np.nan)
    ok = last_outside + 1 < len(times)
    settled[ok] = times[last_outside[ok] + 1]
    return settled
