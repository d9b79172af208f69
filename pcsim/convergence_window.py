"""Whether the energies of a population still move: `Convergence` applied step by step."""

from __future__ import annotations

import numpy as np

from pcsim.config import Convergence


class ConvergenceWindow:
    """Compares each energy with the one a window before; see `pcsim.config.Convergence`."""

    def __init__(self, criterion: Convergence) -> None:
        self.criterion = criterion
        self._window: list[np.ndarray] = []
        self._start: np.ndarray | None = None

    def moving(self, energy: np.ndarray) -> np.ndarray | None:
        """Return which chips (chip,) have not converged; None while the window fills."""
        self._window.append(energy)
        self._start = energy if self._start is None else self._start
        if len(self._window) <= self.criterion.window:
            return None
        before = self._window.pop(0)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ in a chip that has diverged
            moving = np.abs(before - energy) >= self.criterion.rtol * np.abs(before)
        return np.asarray(moving & (np.abs(energy) > self.criterion.atol * np.abs(self._start)))
