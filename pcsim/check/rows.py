"""The rows of a check: their configurations, and their results, kept until all are there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pcsim import config as configuration
from pcsim.check import tuning
from pcsim.check.physical import adapted
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.run import run
from pcsim.runner.timing import Timing
from pcsim.status import Report
from pcsim.store import Result, load
from pcsim.store.parts import Parts

Watch = Callable[[str], AbstractContextManager[Report | None]]
"""Opened with the name of each run while it lasts; gives what its progress is told to."""
CHIP = "automatic iPC, this chip"
IDEAL = "automatic iPC, ideal chip"
SHUFFLED = "automatic iPC, ideal chip, shuffled labels"


@dataclass(frozen=True)
class Row:
    """One line of the table: a run that the chip is compared with."""

    rule: str
    on_hardware: bool
    shuffled: bool = False

    @property
    def in_time(self) -> bool:
        """Whether it runs in continuous time."""
        return self.rule == "ipc"


ROWS: dict[str, Row] = {
    CHIP: Row("ipc", True),
    IDEAL: Row("ipc", False),
    "PC with phases, this chip": Row("pc", True),
    "PC with phases, ideal": Row("pc", False),
    "BP on the array, this chip": Row("bp", True),
    "BP, ideal": Row("bp", False),
    SHUFFLED: Row("ipc", False, shuffled=True),
}


class Rows:
    """Runs rows, each once; in a folder, finished ones are kept, and taken up by their content."""

    def __init__(self, folder: Path | None, watch: Watch | None = None) -> None:
        self.folder = folder
        self.watch: Watch = watch or (lambda _: nullcontext())
        self._finished: dict[str, Result] = {}
        """By configuration: rows that ask for the same are run once."""

    def run(self, name: str, setting: Config) -> Result:
        """Return a row that is there already, or run it; interrupted, it goes on by itself."""
        key = setting.to_json()
        if key not in self._finished:
            path = Parts(self.folder).path(name, key) if self.folder else None
            if path and path.exists():
                self._finished[key] = load(path)
            else:
                with self.watch(name) as report:
                    self._finished[key] = run(setting, path, report=report)
        return self._finished[key]


def settings_of(config: Config, names: list[str]) -> dict[str, Config]:
    """Return the configurations of all rows, so that none is refused when others have run."""
    if config.record.trajectories:
        raise ConfigError(
            "check: record.trajectories: a check keeps statistics only; record the trajectories "
            "of a chip with `pcsim run`"
        )
    settings = {}
    for name in names:
        try:
            settings[name] = _setting(config, ROWS[name])
        except ConfigError as error:
            hint = "" if ROWS[name].in_time else "; leave PC and BP out with --no-twins"
            raise ConfigError(f"check: the row {name!r} cannot run ({error}){hint}") from None
    return settings


def require_chips(config: Config) -> None:
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
            "PC and BP run beside it anyway"
        )
    varied = [name for name in type(config.grid).model_fields if getattr(config.grid, name)]
    if varied:
        raise ConfigError(
            f"check: grid.{varied[0]}: a verdict is about one chip; vary it with `pcsim sweep`"
        )


def _setting(config: Config, row: Row) -> Config:
    """Return the configuration of a row; what has no meaning there is left out."""
    chips = "brian" if config.run.backend == "brian" else "continuous"
    changes: dict[str, dict[str, Any]] = {
        "schedule": {"rule": row.rule},
        "run": {"backend": chips if row.in_time else "discrete"},
    }
    if not row.in_time:
        timed = configuration.changed(config, {"run": {"backend": chips}})
        changes["schedule"] |= {"init": "ff"} | _steps(timed)
        changes["learning"] = _rates(timed)
    if row.shuffled:
        changes["data"] = {"shuffled": True}
    if row.on_hardware:
        changes["hardware"] = {"lenient": not row.in_time}
    else:
        changes["hardware"] = {"preset": "ideal", "pieces": {}, "chips": 1}
    return adapted(config, changes)


def _steps(config: Config) -> dict[str, Any]:
    """Return the times of a chip as the discrete rules have them: γ = dt/τ_x, T = t_pres/dt."""
    if config.run.automatic:
        return {}
    timing = Timing.of(config)
    gamma = {"gamma": timing.dt / config.circuit.tau_x} if config.solver.dt else {}
    return gamma | ({"T": timing.present} if config.stream.t_pres else {})


def _rates(config: Config) -> dict[str, Any]:
    """Return the plasticity of a chip per sample, as rules have it that write once per batch."""
    circuit = config.circuit
    alpha = {} if config.run.automatic else {"alpha": tuning.rate_of(config)}
    return alpha | ({"weight_decay": circuit.weight_decay} if circuit.weight_decay else {})
