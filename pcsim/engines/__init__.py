"""The engines of `run.engine` in continuous time: each module of this package is one, or folder.

It has a function `build(order)`, which returns what `pcsim.engine.Engine` asks for, and which is
loaded when a run takes the engine. Modules are found here and listed nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from pcsim.circuit import Circuit
    from pcsim.config import Config
    from pcsim.continuous.flow import Tau
    from pcsim.continuous.solvers import Draw
    from pcsim.engine import Engine
    from pcsim.kernels.parameters import Parameters
    from pcsim.network import Network
    from pcsim.substrate import Chips, Seeded

ENGINES = tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parent)])))
"""Their names."""


@dataclass(frozen=True)
class Order:
    """A population as a run asks an engine for it."""

    config: Config
    network: Network
    params: Parameters
    """Initial weights."""
    circuit: Circuit
    """With the time constants of the run."""
    dt: float
    seeds: Sequence[int]
    """Of each chip."""
    samples: int
    """Shown at once."""
    steps: int
    """Of the whole run, which may end earlier."""
    scale: float
    """1 for a sum over the samples of a batch, 1/B for their mean."""
    tau_x: Sequence[Tau] | None
    tau_w: Tensor | None
    """Where chips differ in them."""
    draw: Draw
    """The circuit's own noise, as torch asks for it."""
    noise: Seeded
    """Where that noise comes from."""
    chips: Chips | None
    """The hardware, one per seed and chip; None is ideal."""
    reason: str = "run.engine asks for it"
    """Why this engine takes the steps."""
    asked: bool = True
    """Whether `run.engine` names it; else it was chosen."""

    @property
    def population(self) -> tuple[Network, Parameters, Circuit]:
        """What every engine is built of."""
        return self.network, self.params, self.circuit

    @property
    def options(self) -> dict[str, Any]:
        """What every engine takes besides, by name."""
        return {
            "dt": self.dt,
            "mode": self.config.data.mode,
            "seeds": self.seeds,
            "scale": self.scale,
            "tau_x": self.tau_x,
            "tau_w": self.tau_w,
            "chips": self.chips,
        }

    @property
    def fast(self) -> bool | None:
        """`schedule.fast`, where it was set."""
        schedule = self.config.schedule
        return schedule.fast if "fast" in schedule.model_fields_set else None


def build(name: str, order: Order) -> Engine:
    """Return the engine of this name, with what was ordered."""
    engine: Engine = import_module(f"pcsim.engines.{name}").build(order)
    return engine
