"""How far a run is, in every unit in which runs are compared.

samples         epochs · batches · B
updates         per batch: BP, PC, Z-IL 1; iPC T; in continuous time one per time step
simulated time  per batch: PC, iPC T γ τ_x; Z-IL L γ τ_x; BP none
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pcsim.config import Config
from pcsim.runner.timing import Timing
from pcsim.store import Attr, Variable

Array = npt.NDArray[Any]

PROGRESS = {
    "samples": "training samples presented (a presentation counts once, however long it is)",
    "updates": "how often each weight was written",
    "simulated_time": "simulated time; a discrete step takes gamma tau_x",
    "epochs": "how often all training samples were presented",
}
"""The ways to say how far a training is."""
UNITS = {"samples": "1", "updates": "1", "simulated_time": "s", "epochs": "1"}


class Pace:
    """How samples, updates and simulated time go on in a run of `train` samples."""

    def __init__(self, config: Config, train: float, gamma: float | None = None) -> None:
        batch = config.learning.batch or train
        self.train, self.batch = train, batch
        self.batches = np.floor(train / batch)
        """Per epoch."""
        schedule, rule = config.schedule, config.schedule.rule
        self.continuous = config.run.backend != "discrete"
        self.automatic = config.run.automatic
        if self.continuous:
            timing = Timing.of(config)
            settle = timing.settle if config.data.mode == "supervised" else 0
            self.steps, self.dt = timing.present + settle, timing.dt
        else:
            depth = config.network.build().depth
            self.steps = {"bp": 0, "zil": depth}.get(rule, schedule.T)
            self.dt = config.solver.dt or (gamma or schedule.gamma) * config.circuit.tau_x
        self.writes = self.steps if self.continuous or rule == "ipc" else 1
        self.has_time = rule != "bp"

    def after_epochs(self, epochs: Array) -> dict[str, Array]:
        """Return the progress after whole epochs."""
        batches = epochs * self.batches
        time = batches * self.steps * self.dt if self.has_time else np.full(epochs.shape, np.nan)
        return {
            "samples": batches * self.batch,
            "updates": batches * self.writes,
            "simulated_time": time,
            "epochs": epochs,
        }

    def after_steps(self, steps: Array) -> dict[str, Array]:
        """Return the progress after steps of a run that writes at every step."""
        shown = np.full(steps.shape, self.train)  # an automatic run presents everything once
        if not self.automatic:
            shown = steps / self.steps * self.batch
        return {
            "samples": shown,
            "updates": steps,
            "simulated_time": steps * self.dt,
            "epochs": shown / self.train,
        }


def coordinates(
    config: Config, train: int, axis: str, after: Callable[[Pace], dict[str, Array]], of: str = ""
) -> dict[str, Variable]:
    """Return samples, updates and simulated time along a running axis of a result.

    `of` begins their names, where a result has a second such axis.
    """
    discrete = config.run.backend == "discrete"
    gammas = config.grid.gamma if discrete else ()
    rows = [after(Pace(config, train, gamma)) for gamma in gammas or (None,)]
    coordinates = {}
    for name in ("samples", "updates", "simulated_time"):
        spread = bool(gammas) and name == "simulated_time"
        values = np.stack([row[name] for row in rows]) if spread else rows[0][name]
        about: dict[str, Attr] = {"long_name": PROGRESS[name], "units": UNITS[name]}
        coordinates[of + name] = Variable(("gamma", axis) if spread else (axis,), values, about)
    return coordinates
