"""Does always-on predictive coding train on this chip? One answer, over a population of chips.

The chips run in continuous time. Beside them run, with the same seed, data and initial weights:
the ideal chip, and the discrete iPC and BP, each ideal and with the same non-idealities. What a
rule has no place for (BP has no somas) is left out there, and said.

The ideal chip is the reference. Where it has learnt nothing there is nothing to compare with, and
the answer is *no verdict*: its accuracy must exceed that of a guess by more than the tolerance,

    ideal − tolerance > guess + bound,     guess = share of the commonest class of the test labels,

with the bound of a guess that is right in a binomial number of n test samples (one in a thousand
guesses is better). Labels that were shuffled teach no more than the commonest class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from rich.table import Table
from scipy.stats import binom

from pcsim import config as configuration
from pcsim.check_rows import KeptRows
from pcsim.config import Config
from pcsim.errors import ConfigError, InterruptedRunError
from pcsim.interruption import exit_code
from pcsim.run import run
from pcsim.store import Attr, Result, Variable
from pcsim.task import Task
from pcsim.timing import Timing
from pcsim.verdict import Verdict, verdict_from

CHIP = "iPC on this chip"
DIGITS: dict[str, Any] = {
    "network": {"sizes": [64, 32, 10]},
    "schedule": {"T": 8, "gamma": 0.2},
    "learning": {"alpha": 0.01, "batch": 8, "epochs": 1},
    "data": {"name": "digits"},
    "run": {"backend": "continuous"},
    "hardware": {"chips": 32},
}
"""Checked when no configuration is given: the embedded digits, eight samples side by side (an
idealisation that saves time: replicas which share weights; batch = 1 is the physical stream)."""
TOLERANCE = 0.05
"""Accuracy that a chip may lose against the ideal one."""
YIELD = 0.9
"""Share of chips that must be good."""
LUCK = 1e-3
"""Probability that a guess does better than the bound on it."""
TRAINED = ("converged", "descending", "rebounded")
"""Outcomes of chips whose energy came down."""
Outcome = Literal["trains", "does not train", "no verdict"]


@dataclass(frozen=True)
class Row:
    """One line of the table: a run that the chip is compared with."""

    rule: str
    backend: str
    on_hardware: bool


ROWS: dict[str, Row] = {
    CHIP: Row("ipc", "continuous", True),
    "iPC, ideal chip": Row("ipc", "continuous", False),
    "discrete iPC, same hardware": Row("ipc", "discrete", True),
    "discrete iPC, ideal": Row("ipc", "discrete", False),
    "discrete BP, same hardware": Row("bp", "discrete", True),
    "discrete BP, ideal": Row("bp", "discrete", False),
}


@dataclass(frozen=True, eq=False)
class Check:
    """What was found."""

    config: Config
    runs: dict[str, Result]
    left_out: dict[str, tuple[str, ...]]
    """Non-idealities that a row could not have."""
    labels: npt.NDArray[np.int64]
    """Classes of the test samples."""

    @property
    def verdict(self) -> Verdict:
        """Return the verdict of every chip."""
        return verdict_from(self.runs[CHIP])

    @property
    def ideal(self) -> float:
        """Return the accuracy of the ideal chip, mean over seeds."""
        return float(np.mean(self.runs["iPC, ideal chip"]["accuracy"]))

    @property
    def chance(self) -> float:
        """Return the accuracy that one guess in a thousand exceeds."""
        return guessing(self.labels)

    @property
    def outcome(self) -> Outcome:
        """Return the answer, or that there is none."""
        if not self.ideal - TOLERANCE > self.chance:  # also where it is no number
            return "no verdict"
        return "trains" if self.good.mean() >= YIELD else "does not train"

    @property
    def good(self) -> npt.NDArray[np.bool_]:
        """Return which chips trained: energy went down, and accuracy is near the ideal."""
        verdict = self.verdict
        trained = np.isin(verdict.outcome, TRAINED)
        return np.asarray(trained & (verdict.accuracy >= self.ideal - TOLERANCE))

    @property
    def passed(self) -> bool:
        """Whether enough chips trained, compared with an ideal one that did."""
        return self.outcome == "trains"

    def sentence(self, name: str | None = None) -> str:
        """Return the answer."""
        accuracy, name = 100 * self.verdict.accuracy, name or self.config.hardware.preset
        if self.outcome == "no verdict":
            return (
                f"no verdict on {name}: the ideal chip reaches {100 * self.ideal:.1f} %, and must "
                f"be more than {100 * TOLERANCE:.0f} points above guessing "
                f"({100 * self.chance:.1f} %); train it longer or change its rates until it learns "
                f"(chips: median {np.median(accuracy):.1f} %)"
            )
        return (
            f"iPC {self.outcome} on {name}: {self.good.sum()} of {len(self.good)} chips are within "
            f"{100 * TOLERANCE:.0f} points of the ideal chip's {100 * self.ideal:.1f} % "
            f"(median {np.median(accuracy):.1f} %)"
        )

    def table(self, name: str | None = None) -> Table:
        """Return accuracies of all rows."""
        shown = name or self.config.hardware.preset
        table = Table(title=f"check of {shown} on {self.config.data.name}")
        table.add_column("")
        for column in ("5 %", "median", "95 %", "of ideal", "chips"):
            table.add_column(column, justify="right")
        for row, result in self.runs.items():
            values = 100 * np.asarray(result["accuracy"], float).reshape(-1)
            low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
            gap = f"{middle - 100 * self.ideal:+.1f}"
            numbers = (f"{low:.1f}", f"{middle:.1f}", f"{high:.1f}", gap, str(len(values)))
            mark = " *" if self.left_out.get(row) else ""
            table.add_row(row + mark, *numbers)
        notes = [f"* without {', '.join(names)}" for names in self.left_out.values() if names]
        outcomes, counts = np.unique(self.verdict.outcome, return_counts=True)
        told = ", ".join(f"{n} {o}" for o, n in zip(outcomes, counts, strict=True))
        table.caption = "; ".join([f"test accuracy, %; chips: {told}", *dict.fromkeys(notes)])
        return table

    def result(self) -> Result:
        """Return the chips' result with the accuracies of the other rows beside it."""
        chip = self.runs[CHIP]
        variables = dict(chip.variables)
        for name, run_ in self.runs.items():
            if name != CHIP:
                accuracy = run_.variables["accuracy"]
                about: dict[str, Attr] = {"long_name": f"test accuracy, {name}", "units": "1"}
                alone = "hardware" not in name
                dims = tuple(f"ideal_{d}" if alone and d == "chip" else d for d in accuracy.dims)
                key = name.replace(", ", ".").replace(" ", "_")
                variables[f"twin.{key}"] = Variable(dims, accuracy.values, about)
        attrs = dict(chip.attrs) | {
            "check": self.sentence(),
            "outcome": self.outcome,
            "passed": int(self.passed),
        }
        return Result(variables, dict(chip.coords), attrs, dict(chip.coord_attrs))


def check(
    config: Config | None = None,
    hardware: str | None = None,
    *,
    twins: bool = True,
    announce: Callable[[str], None] | None = None,
    rows: Path | None = None,
) -> Check:
    """Run the chips of a configuration, and what they are compared with.

    Main arguments:
        config: a run in continuous time; none: the embedded digits with 32 chips.
        hardware: preset that replaces the configuration's.

    Rarely used:
        twins: also run the discrete rules (the ideal chip always runs).
        announce: called with the name of each row before it runs.
        rows: folder that keeps finished rows; interrupted, the same call goes on from there.
    """
    config = config or configuration.parse(DIGITS, "check")
    if hardware is not None:
        config = configuration.changed(config, {"hardware": {"preset": hardware}})
    _require_chips(config)
    labels = Task.load(config, config.network.build()).test.y.cpu().numpy()
    settings = _settings(config, twins)
    kept = KeptRows(rows) if rows else None
    runs: dict[str, Result] = {}
    for name, setting in settings.items():
        if announce:
            announce(name)
        try:
            runs[name] = kept.run(name, setting) if kept else run(setting)
        except (KeyboardInterrupt, InterruptedRunError) as stop:
            again = f"the same command goes on from {rows}" if rows else "nothing was stored"
            done = f"after {len(runs)} of {len(settings)} rows"
            raise InterruptedRunError(f"{done}; {again}", exit_code(stop)) from None
    left_out = {
        name: setting.hardware.left_out(setting) if ROWS[name].on_hardware else ()
        for name, setting in settings.items()
    }
    return Check(config, runs, left_out, labels)


def guessing(labels: npt.NDArray[np.int64]) -> float:
    """Return the accuracy that guessing the commonest class exceeds with probability `LUCK`."""
    count = len(labels)
    share = np.unique(labels, return_counts=True)[1].max() / count
    return float(binom.isf(LUCK, count, share)) / count


def _settings(config: Config, twins: bool) -> dict[str, Config]:
    """Return the configurations of all rows, so that none is refused when others have run."""
    if config.record.trajectories:
        raise ConfigError(
            "check: record.trajectories: a check keeps statistics only; record the trajectories "
            "of a chip with `pcsim run`"
        )
    settings = {}
    for name, row in ROWS.items():
        if not twins and row.backend == "discrete":
            continue
        try:
            settings[name] = _setting(config, row)
        except ConfigError as error:
            hint = "; leave the discrete rules out with --no-twins"
            hint = hint if row.backend == "discrete" else ""
            raise ConfigError(f"check: the row {name!r} cannot run ({error}){hint}") from None
    return settings


def _require_chips(config: Config) -> None:
    """Refuse settings that the rows would overrule, or that have no answer."""
    if config.data.mode != "supervised":
        raise ConfigError(
            f"check: data.mode must be 'supervised', got {config.data.mode!r}: chips are compared "
            f"by their test accuracy"
        )
    if "backend" in config.run.model_fields_set and config.run.backend == "discrete":
        raise ConfigError(
            "check: run.backend: chips run in continuous time; use 'continuous' or 'brian'"
        )
    if config.schedule.rule != "ipc":
        raise ConfigError(
            f"check: schedule.rule {config.schedule.rule!r}: the question is whether 'ipc' trains; "
            "BP runs beside it anyway"
        )


def _setting(config: Config, row: Row) -> Config:
    """Return the configuration of a row; what has no meaning there is left out."""
    chips = "brian" if config.run.backend == "brian" else "continuous"
    changes: dict[str, dict[str, Any]] = {
        "schedule": {"rule": row.rule},
        "run": {"backend": "discrete" if row.backend == "discrete" else chips},
    }
    if row.backend == "discrete":
        changes["schedule"] |= _steps(configuration.changed(config, {"run": {"backend": chips}}))
        changes["learning"] = _rates(config)
    if row.on_hardware:
        changes["hardware"] = {"lenient": row.backend == "discrete"}
    else:
        changes["hardware"] = {"preset": "ideal", "pieces": {}, "chips": 1}
        changes["grid"] = {"hardware": {}}
    return configuration.pruned(configuration.with_fields(config, changes), "check")[0]


def _steps(config: Config) -> dict[str, Any]:
    """Return the times of a chip as the discrete rules have them: γ = dt/τ_x, T = t_pres/dt."""
    timing = Timing.of(config)
    gamma = {"gamma": timing.dt / config.circuit.tau_x} if config.solver.dt else {}
    return gamma | ({"T": timing.present} if config.stream.t_pres else {})


def _rates(config: Config) -> dict[str, Any]:
    """Return the plasticity of a chip as the discrete rules have it: α = dt/τ_w, and the decay."""
    circuit = config.circuit
    dt = config.solver.dt or config.schedule.gamma * circuit.tau_x
    alpha = {"alpha": dt / circuit.tau_w} if circuit.tau_w else {}
    return alpha | ({"weight_decay": circuit.weight_decay} if circuit.weight_decay else {})
