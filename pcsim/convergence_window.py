"""Whether the energies of a population have converged: `Convergence` applied step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pcsim.config import Convergence


class ConvergenceWindow:
    """Compares each energy with the one a window before; see `pcsim.config.Convergence`."""

    def __init__(self, criterion: Convergence) -> None:
        self.criterion = criterion
        self._window: list[np.ndarray] = []
        self._start: np.ndarray | None = None
        self.full = False
        """Whether the last energy could be compared with one a whole window before."""

    def converged(self, energy: np.ndarray) -> np.ndarray:
        """Return which replicas have converged; while the window fills, by size alone."""
        self._window.append(energy)
        self._start = energy if self._start is None else self._start
        small = np.abs(energy) <= self.criterion.atol * np.abs(self._start)
        if len(self._window) <= self.criterion.window:
            return np.asarray(small)
        before, self.full = self._window.pop(0), True
        with np.errstate(invalid="ignore"):  # ∞ − ∞ in a replica that has diverged
            flat = np.abs(before - energy) < self.criterion.rtol * np.abs(before)
        return np.asarray(small | flat)

    def state(self) -> dict[str, np.ndarray]:
        """Return the energies in the window, for a checkpoint."""
        if self._start is None:
            return {}
        return {
            "energies": np.stack(self._window),
            "start": self._start,
            "full": np.array(self.full),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""
        self._window, self._start = list(state.get("energies", ())), state.get("start")
        self.full = bool(state.get("full", False))
