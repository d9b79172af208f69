"""What laws say beforehand about the numbers of a chip that was checked, with their known error.

The laws of `pcsim.limits` speak of one always-on linear layer with the inputs and labels of the
check, at its presentation, time step and learning rate, and of one number at a time on an
otherwise ideal chip. What is tolerated are the criterion's points of accuracy, against that layer;
its margins are those of held-out samples (of test samples, where none are held out).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

from pcsim.check import tuning
from pcsim.check.found import Check
from pcsim.check.rows import CHIP, settings_of
from pcsim.limits import Always, Limit
from pcsim.limits.axes import Ground, axis_of
from pcsim.limits.errors import Error, error_of
from pcsim.maps import Dense
from pcsim.runner.task import Task
from pcsim.runner.timing import Timing

NO_LAW = "no closed form"
ABOUT = (
    "law: what a linear layer with these inputs bears of this number alone, by a closed form "
    "(docs/theory.md); off: how far that law was from the simulated map of the digits "
    "(docs/automatic.md)."
)


@dataclass(frozen=True)
class Quote:
    """What a law says about a number."""

    path: str
    """Where the number stands: "adc.bits"."""
    limit: Limit | None
    """None: there is no closed form, for a `reason`."""
    error: Error | None = None
    """How far the law was from the map; None: the map does not know."""
    reason: str = ""

    @property
    def words(self) -> str:
        """Say the limit in a cell of a table."""
        return self.limit.words if self.limit else self.reason

    @property
    def off(self) -> str:
        """Say the error of the law in a cell of a table."""
        if self.limit is None or self.limit.value == float("inf"):
            return "–"
        return self.error.words if self.error else "not on the map"

    def data(self) -> dict[str, Any]:
        """Return it as JSON has it; a limit of null with `at_most` is none at all."""
        if self.limit is None:
            return {"limit": None, "reason": self.reason}
        value = self.limit.value
        return {
            "law": self.limit.law,
            "name": self.limit.name,
            "limit": value if isfinite(value) else None,
            "at_most": self.limit.at_most,
            "words": self.limit.words,
            "map": self.error
            and {
                "value": self.error.value,
                "unit": "bits" if self.error.by_bits else "factor",
                "points": 100 * self.error.level,
                "words": self.error.words,
            },
        }


class Laws:
    """Quotes laws for the numbers of the chip of a check."""

    def __init__(self, check: Check) -> None:
        self.check = check

    def of(self, path: str, changes: Mapping[str, int | float] | None = None) -> Quote:
        """Return what its law says about a number, beside other numbers that are changed."""
        name, _, rest = path.partition(".")
        fields = self.check.config.hardware.fields(changes).get(name, {})
        kind = str(fields.get("kind", ""))
        axis = None if "." in rest else axis_of(kind, rest, fields)
        if axis is None:
            return Quote(path, None, reason=NO_LAW)
        if isinstance(self.ground, str):
            return Quote(path, None, reason=self.ground)
        limit = axis.limit(self.ground, fields)
        return Quote(path, limit, error_of(axis.name, self.check.criterion.tolerance))

    @cached_property
    def ground(self) -> Ground | str:
        """The layer that the laws speak of; or why there is none."""
        config = settings_of(self.check.config, [CHIP])[CHIP]
        network = config.network.build()
        if not all(isinstance(node.map, Dense) for node in network.nodes if node.map is not None):
            return "its laws speak of dense layers"
        if config.learning.batch != 1:
            return "its laws speak of one sample at a time"
        task, timing = Task.load(config, network), Timing.of(config)
        rate = self.check.rates[CHIP].value if self.check.rates else tuning.rate_of(config)
        others = task.validation or task.test
        (x, y), (x_held, y_held) = (
            (part.x.double().cpu().numpy(), part.y.cpu().numpy()) for part in (task.train, others)
        )
        layer = Always.of(
            x,
            y,
            x_held,
            y_held,
            points=self.check.criterion.tolerance,
            dt=timing.dt,
            tau_x=timing.circuit.tau_x,
            tau_w=timing.dt * tuning.writes(config) / rate,
            presentation=timing.present * timing.dt,
            passes=config.learning.epochs,
        )
        return Ground(layer, dt=timing.dt, tau_x=timing.circuit.tau_x)
