"""What a training costs on this chip, beside PC and BP: an estimate, from counts and a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pcsim.config import Config
from pcsim.maps import Dense
from pcsim.rows import Rows
from pcsim.runner.timing import Timing


@dataclass(frozen=True)
class Cost:
    """Estimates of one training of `samples` samples."""

    samples: int
    tau_x: float
    """Seconds of a time constant on the chip."""
    assumed: bool
    """Whether that number is nobody's: the chip's own is not known."""
    estimates: tuple[Any, ...]
    """One `hw_models.cost.Estimate` for each rule and way to run it."""

    @property
    def sentence(self) -> str:
        """How iPC compares with BP and PC."""
        from hw_models.cost import plainly

        return plainly(list(self.estimates))

    def tables(self) -> list[Rows]:
        """Return the estimates, and where the entries come from."""
        from hw_models.cost import COLUMNS, cells

        tau = f"τ_x = {self.tau_x:.3g} s" + (" (assumption)" if self.assumed else "")
        caption = (
            f"One training, {self.samples} presentations, {tau}. Energy at typical entries, range "
            "at all low and all high ones; last: the entry that moves the energy most, from low to "
            f"high. {self.sentence[:1].upper()}{self.sentence[1:]}."
        )
        rows = tuple(cells(one) for one in self.estimates)
        told = tuple(
            (what, f"{low:.3g}", f"{typical:.3g}", f"{high:.3g}", source)
            for what, (low, typical, high, source) in self._entries().items()
        )
        columns = ("entry", "low", "typical", "high", "source")
        return [
            Rows("Cost: an estimate", COLUMNS, rows, caption),
            Rows("Entries of the estimate, in SI units", columns, told, words=True),
        ]

    def _entries(self) -> dict[str, tuple[float, float, float, str]]:
        found = {}
        for one in self.estimates:
            for name, entry in one.table.entries.items():
                key = f"{one.table.mode}: {name}"
                found[key] = (entry.low, entry.typical, entry.high, entry.source)
        return found

    def to_json(self) -> str:
        """Return the tables as a result keeps them."""
        return json.dumps([json.loads(table.to_json()) for table in self.tables()])

    @property
    def numbers(self) -> dict[str, Any]:
        """Return the estimates as plain data."""
        return {
            one.what: {
                "joules": {level: one.total(level) for level in ("low", "typical", "high")},
                "seconds": one.seconds(),
                **one.counts.model_dump(),
            }
            for one in self.estimates
        }


def cost_of(config: Config, samples: int) -> Cost | None:
    """Return the cost of a check's training; None where arrays are not dense, or time is no sum."""
    from hw_models.cost import UNNAMED_TAU, estimates

    network = config.network.build()
    maps = [node.map for node in network.nodes if node.parents]
    if config.run.automatic or not all(isinstance(one, Dense) for one in maps):
        return None
    timing = Timing.of(config)
    device = config.hardware.device
    whole = device is not None and device.chip is not None
    assumed = not whole and "tau_x" not in config.circuit.model_fields_set
    tau = UNNAMED_TAU if assumed else config.circuit.tau_x
    present = timing.present * timing.dt / config.circuit.tau_x * tau
    learning = config.learning
    batch = learning.batch or samples
    made = estimates(
        config.hardware.preset,
        network,
        steps=timing.present,
        present=present,
        batch=batch,
        batches=max(1, samples // batch) * learning.epochs,
        carry=config.schedule.init == "carry",
    )
    return Cost(samples * learning.epochs, tau, assumed, tuple(made))
