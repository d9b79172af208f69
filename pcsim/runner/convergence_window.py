"""Whether the energies of a population have converged: `config.Convergence` applied step by step.

Every quarter of a window the mean energy of that quarter is kept. The trend over the last four
windows, and over 8, 16, 32 … as the run grows (see `pcsim.trend`), is *still* if it is

    flat     |change| + error < rtol·|F| + atol·|F(0)|       per window, F the mean over the span
    low      F ≤ lowest + ¼·|lowest| + 4·scatter             lowest: the smallest quarter seen
    steady   the energy does not swing with a period by more than the tolerance

A chip has *converged* if one of these spans was found still at every test over a quarter of its
length. Noise widens the error, so that it makes a run longer, never shorter; over longer spans the
error shrinks with the power 3/2 of their length. An energy that is flat and low but swings with a
period, and no less than before, for as long, *rings*. Nothing is said before 64 steps.

Each chip is judged from its own energies alone. Measured with `window` = 40 and `rtol` = 0.01 over
2400 steps, with 400 chips of each kind (`tests/test_convergence_window.py` repeats it):

    what settles, converged   1 + 4 e^{−t/150} alone: at step 910; with white noise of 1, 5 and 20 %
                              of the floor: 100 %, at steps 870, 1080 and 1540 (medians);
                              with AR(0.9) of 5 % and AR(0.98) of 1 %: 100 %
    what moves, converged     decays by 2 % per window, without noise or with white noise of 5 and
                              30 %, ramps up and down: 0 %; this decay with AR(0.98) of 2 %: 2 %;
                              random walks of six times the tolerance per window: 4 %
    limit cycles, converged   0 % for periods of 7 and 33 steps, also with white noise of a
                              third of the amplitude
    all the rest, ringing     0 %
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pcsim.config import Convergence
from pcsim.trend import BLOCKS, Array, period, swing, trend

QUARTERS = 4
"""Tests per window."""
AGREEING = 4
"""A span must be found still at all tests over this part of its length."""
STEPS = 64
"""Steps, at least, in which a period is looked for."""
REBOUND = 0.25
"""Part of the lowest energy by which a converged one may lie above it."""
SCATTERS = 4.0
"""Standard deviations by which noise may lift it, besides."""
DYING = 0.9
"""A swing whose second half is smaller than this part of the first dies out by itself."""


class ConvergenceWindow:
    """Watches the energies (chip,) of every step; see `pcsim.config.Convergence`.

    What a chip was once found to do, it is said to do from then on: its run ends there.
    """

    def __init__(self, criterion: Convergence, chips: int) -> None:
        self.criterion = criterion
        self._bin = max(1, criterion.window // QUARTERS)
        self._raw = np.zeros((chips, max(BLOCKS, -(-STEPS // self._bin)) * self._bin))
        self._bins = np.zeros((chips, 4 * BLOCKS))
        self._count = self._filled = 0
        self._start = np.zeros(chips)
        self._lowest = np.full(chips, np.inf)
        self._streaks: dict[int, tuple[Array, Array]] = {}
        self.converged, self.ringing = np.zeros((2, chips), dtype=bool)
        """Which chips (chip,) have converged, and which swing for ever as far as can be seen."""

    def add(self, energy: Array) -> None:
        """Take in the energies (chip,) of one step, the first one at step 0."""
        if self._count == 0:
            self._start = np.abs(energy)
        self._raw[:, self._count % self._raw.shape[1]] = energy
        self._count += 1
        if self._count % self._bin == 0:
            with np.errstate(invalid="ignore", over="ignore"):
                self._keep_bin()
                span = BLOCKS
                while span <= self._filled and self._count >= self._raw.shape[1]:
                    self._test(span)
                    span *= 2

    def state(self) -> dict[str, Array]:
        """Return all that was seen, for a checkpoint."""
        state = {
            "raw": self._raw,
            "bins": self._bins[:, : self._filled],
            "count": np.array(self._count),
            "start": self._start,
            "lowest": self._lowest,
            "converged": self.converged,
            "ringing": self.ringing,
        }
        return state | {f"streak{span}": np.stack(pair) for span, pair in self._streaks.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go on from a checkpoint."""
        self._raw, self._start, self._lowest = state["raw"], state["start"], state["lowest"]
        self._count, self._filled = int(state["count"]), state["bins"].shape[1]
        size = self._bins.shape[1]
        while size < self._filled:
            size *= 2
        self._bins = np.zeros((len(self._start), size))
        self._bins[:, : self._filled] = state["bins"]
        self.converged, self.ringing = state["converged"], state["ringing"]
        self._streaks = {
            int(name.removeprefix("streak")): (pair[0], pair[1])
            for name, pair in state.items()
            if name.startswith("streak")
        }

    def _keep_bin(self) -> None:
        last = (self._count - self._bin) % self._raw.shape[1]
        if self._filled == self._bins.shape[1]:
            self._bins = np.concatenate([self._bins, np.zeros_like(self._bins)], 1)
        mean = self._raw[:, last : last + self._bin].mean(1)
        self._bins[:, self._filled] = mean
        self._filled += 1
        self._lowest = np.fmin(self._lowest, mean)

    def _test(self, span: int) -> None:
        """Count how often in a row the chips were found still, or ringing, over so many bins."""
        recent = self._bins[:, self._filled - span : self._filled]
        tolerance, still = self._still(recent)
        rings = np.zeros_like(still)
        for chip in np.flatnonzero(still & ~self.converged & ~self.ringing):
            swings, dying = self._swings(chip, recent[chip], tolerance[chip])
            still[chip], rings[chip] = not swings, swings and not dying
        none = np.zeros(len(still), dtype=np.int64)
        before = self._streaks.get(span, (none, none))
        streaks = tuple(np.where(x, n + 1, 0) for x, n in zip((still, rings), before, strict=True))
        self._streaks[span] = (streaks[0], streaks[1])
        running = ~self.converged & ~self.ringing
        self.converged = self.converged | (running & (streaks[0] >= span // AGREEING))
        self.ringing = self.ringing | (running & (streaks[1] >= span // AGREEING))
        self.ringing &= ~self.converged

    def _still(self, recent: Array) -> tuple[Array, Array]:
        """Return the tolerance, and which chips are flat and low over these bins (chip, bin)."""
        criterion, span = self.criterion, recent.shape[1]
        line = trend(recent.reshape(len(recent), BLOCKS, -1).mean(2))
        windows = span * self._bin / criterion.window
        tolerance = criterion.rtol * np.abs(line.level) + criterion.atol * self._start
        flat = (np.abs(line.change) + line.error) / windows < tolerance
        above = REBOUND * np.abs(self._lowest) + SCATTERS * recent.std(1) + tolerance
        return tolerance, flat & (line.level <= self._lowest + above)

    def _swings(self, chip: int, recent: Array, tolerance: float) -> tuple[bool, bool]:
        """Return whether a chip swings with a period, and whether that dies out."""
        steps = np.roll(self._raw[chip], -(self._count % self._raw.shape[1]))
        for series in (steps, recent) if len(recent) > BLOCKS else (steps,):
            if swing(series) > tolerance and period(series):
                half = len(series) // 2
                return True, swing(series[-half:]) < DYING * swing(series[:half])
        return False, False
