"""What a training costs on this chip, beside PC and BP: an estimate, from counts and a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pcsim.check.pulses import Pulses, Rule
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
    pulses: Mapping[Rule, Pulses] | None = None
    """What was counted in trainings, by rule; none: an assumption takes its place."""

    @property
    def sentence(self) -> str:
        """How iPC compares with BP and PC."""
        from hw_models.cost import plainly

        told = plainly(list(self.estimates))
        return f"{told}; pulses were counted" if self.pulses else told

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
            self._moves(),
            *self._counted(),
            Rows("Entries of the estimate, in SI units", columns, told, words=True, folded=True),
        ]

    @property
    def ratios(self) -> dict[str, tuple[float, list[Any]]]:
        """Energy of iPC over that of clocked BP, and what each uncertain entry makes of it."""
        from hw_models.cost import ratio_moves

        by_name = {one.what: one for one in self.estimates}
        bp = by_name[BP]
        return {
            f"{what} : {BP}": (by_name[what].total() / bp.total(), ratio_moves(by_name[what], bp))
            for what in ("automatic iPC, continuous", "automatic iPC, clocked")
        }

    def _moves(self) -> Rows:
        """Return the entries that move the ratio of iPC to BP most."""
        rows = tuple(
            (
                name,
                f"{typical:.3g}",
                moved.entry,
                f"{moved.low:.3g}",
                f"{moved.high:.3g}",
                f"×{moved.factor:.3g}",
            )
            for name, (typical, moves) in self.ratios.items()
            for moved in moves[:SHOWN]
        )
        columns = ("energies", "ratio", "entry", "at its low", "at its high", "moves it")
        caption = (
            "Each entry alone, from low to high, all others typical; the three that move a ratio "
            "most. What both tables have alike moves in both."
        )
        return Rows("What moves the ratio of iPC to BP", columns, rows, caption, words=True)

    def _counted(self) -> list[Rows]:
        """Return the table of what was counted, if anything was."""
        if not self.pulses:
            return []
        rows = tuple(
            (rule, f"{one.rate:.3g}", *(f"{n:.3g}" for n in one.pulses), f"{one.touched:.3g}")
            for rule, one in self.pulses.items()
        )
        columns = ("rule", "rate", "lowest chip", "mean", "highest chip", "writes with a pulse")
        samples = next(iter(self.pulses.values())).samples
        caption = (
            f"Counted while the rules trained on {samples} samples, two chips. Rate: learning rate "
            "per sample, to which pulses are proportional."
        )
        return [Rows("Pulses per device and sample", columns, rows, caption)]

    def _entries(self) -> dict[str, tuple[float, float, float, str]]:
        entries = {}
        for one in self.estimates:
            for name, entry in one.table.entries.items():
                whose = one.what if entry.source == COUNTED else one.table.mode
                key = f"{whose}: {name}"
                entries[key] = (entry.low, entry.typical, entry.high, entry.source)
        return entries

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
                "pulses": one.table.pulses.model_dump(),
                **one.counts.model_dump(),
            }
            for one in self.estimates
        }


BP = "BP, clocked"
SHOWN = 3
"""Entries of a ratio that a table shows."""
COUNTED = "counted in this training, mean of two chips (lowest, highest)"


def cost_of(
    config: Config, samples: int, pulses: Mapping[Rule, Pulses] | None = None
) -> Cost | None:
    """Return the cost of a check's training; None where arrays are not dense, or time is no sum.

    `pulses` are those of `counted_pulses`; without them, an assumption takes their place.
    """
    from hw_models.cost import estimates

    network = config.network.build()
    maps = [node.map for node in network.nodes if node.parents]
    if config.run.automatic or not all(isinstance(one, Dense) for one in maps):
        return None
    timing = Timing.of(config)
    tau, assumed = _time_constant(config)
    learning = config.learning
    batch = learning.batch or samples
    made = estimates(
        config.hardware.preset,
        network,
        steps=timing.present,
        present=timing.present * timing.dt / config.circuit.tau_x,
        tau_x=tau,
        batch=batch,
        batches=max(1, samples // batch) * learning.epochs,
        carry=config.schedule.init == "carry",
        pulses={rule: _entry(one, batch) for rule, one in (pulses or {}).items()},
    )
    return Cost(samples * learning.epochs, tau.typical, assumed, tuple(made), pulses)


def _time_constant(config: Config) -> tuple[Any, bool]:
    """Return the time constant as an entry, and whether nobody knows that of the chip."""
    from hw_models.cost_entries import UNNAMED_TAU, time_constant

    device, tau = config.hardware.device, config.circuit.tau_x
    chip = device.chip if device is not None else None
    if chip is None and "tau_x" not in config.circuit.model_fields_set:
        return UNNAMED_TAU, True
    if chip is None or chip["tau_x"] != tau:
        return time_constant(tau, source="circuit.tau_x of the configuration"), False
    told = next((text for text in chip["assumed"] if text.startswith("somas of")), "")
    return time_constant(tau, told), False


def _entry(counted: Pulses, batch: int) -> Any:
    """Return what was counted as the entry of a table, per device and batch."""
    from hw_models.cost_entries import entry

    low, mean, high = (batch * number for number in counted.pulses)
    return entry(low, mean, high, COUNTED)
