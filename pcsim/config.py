"""The configuration: TOML in, frozen and validated data out, errors that name the field."""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError, ValidationInfo, model_validator

from pcsim.architectures.choice import NetworkConfig
from pcsim.brian_settings import BrianSettings
from pcsim.circuit import Algebraic, CircuitConfig
from pcsim.datasets import own
from pcsim.errors import ConfigError
from pcsim.fields.explain import explanations
from pcsim.frozen import AS_STORED, Frozen, dotted
from pcsim.hardware import HardwareConfig
from pcsim.meaning import LeftOutWarning, meaningless, of_other_circuits, sentence, without
from pcsim.rows import Rows
from pcsim.sections import (
    Convergence,
    DataConfig,
    Grid,
    Learning,
    Passes,
    Reduction,
    Rule,
    RunConfig,
    Schedule,
    Start,
    Steps,
    Updates,
)
from pcsim.spice_settings import SpiceSettings
from pcsim.stream import Record, Solver, StreamConfig

__all__ = [
    "SHOWN",
    "Config",
    "Convergence",
    "DataConfig",
    "Grid",
    "Learning",
    "LeftOutWarning",
    "Passes",
    "Reduction",
    "Rule",
    "RunConfig",
    "Schedule",
    "Start",
    "Steps",
    "Updates",
    "beside",
    "change",
    "changed",
    "from_json",
    "load",
    "parse",
    "pruned",
    "read",
    "unused",
    "value_of",
    "with_changes",
    "with_fields",
]


class Config(Frozen):
    """Everything one run needs."""

    network: NetworkConfig
    """Layers, nonlinearity and energies; its field kind says which architecture (mlp if left
    out)."""
    schedule: Schedule = Schedule()
    """When states move, when they are reset, and when weights are written."""
    learning: Learning = Learning()
    """How weights move."""
    data: DataConfig = DataConfig()
    """What to train on."""
    run: RunConfig = RunConfig()
    """Where and how often."""
    convergence: Convergence = Convergence()
    """When an automatic run stops."""
    grid: Grid = Grid()
    """Values that become replicas of one run."""
    circuit: CircuitConfig = Algebraic()
    """How errors travel, with which time constants (continuous time)."""
    solver: Solver = Solver()
    """How the flow is integrated (continuous time)."""
    stream: StreamConfig = StreamConfig()
    """How long samples are shown, and what happens at a switch (continuous time)."""
    record: Record = Record()
    """What is kept while a chip runs."""
    hardware: HardwareConfig = HardwareConfig()
    """Which chip, and how many of them."""
    brian: BrianSettings = BrianSettings()
    """How Brian2 executes a run."""
    spice: SpiceSettings = SpiceSettings()
    """How ngspice integrates a run."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.run.automatic and (self.schedule.rule != "ipc" or self.learning.batch != 0):
            raise ValueError(
                "run.automatic needs schedule.rule = 'ipc' and learning.batch = 0 (full batch)"
            )
        if self.run.automatic and (self.schedule.discount < 1 or self.learning.anneal != "none"):
            raise ValueError(
                "run.automatic needs schedule.discount = 1 and learning.anneal = 'none': "
                "nothing controls its rates"
            )
        if self.schedule.rule == "bp" and self.data.mode != "supervised":
            raise ValueError("schedule.rule 'bp' needs data.mode = 'supervised'")
        if self.schedule.rule == "bp" and self.grid.gamma:
            raise ValueError("grid.gamma has no meaning for schedule.rule 'bp'")
        if self.data.mode in ("associative", "free"):
            raise ValueError(
                f"data.mode {self.data.mode!r} is inference, not training: use it from Python "
                f"(Discrete or Continuous with mode={self.data.mode!r})"
            )
        if self.data.augment and (self.data.mode != "supervised" or self.learning.batch == 0):
            raise ValueError(
                "data.augment needs data.mode = 'supervised' and mini-batches (learning.batch > 0)"
            )
        if self.learning.patience and not self.data.validation:
            raise ValueError("learning.patience needs data.validation > 0 samples to judge by")
        if len(set(self.run.seeds)) != len(self.run.seeds) or not self.run.seeds:
            raise ValueError(f"run.seeds must be different numbers, got {list(self.run.seeds)}")
        rates = {name: getattr(self.grid, name) for name in ("alpha", "weight_decay", "gamma")}
        for name, values in (rates | dict(self.grid.hardware)).items():
            if len(set(values)) != len(values):
                raise ValueError(f"grid.{name} must be different numbers, got {list(values)}")
        if twice := sorted(
            {n for trial in self.grid.trials for n in trial} & {*self.grid.hardware}
        ):
            raise ValueError(f"grid.trials: {twice[0]} is in grid.hardware too; give it once")
        return self

    @model_validator(mode="after")
    def _nothing_ignored(self, info: ValidationInfo) -> Self:
        if info.context != AS_STORED and (fields := meaningless(self)):
            raise ValueError("; ".join(sentence(*field) for field in fields.items()))
        return self

    def to_json(self) -> str:
        """Return the whole configuration, defaults included, as text."""
        return self.model_dump_json()

    def settings(self) -> dict[str, Any]:
        """Return what differs from the defaults, by dotted names."""
        fields = {"network.kind": self.network.kind}
        fields |= dotted({"network": self.network.model_dump(exclude_defaults=True)})
        for name, field in type(self).model_fields.items():
            if name != "network":
                usual = dotted({name: field.default.model_dump()})
                given = dotted({name: getattr(self, name).model_dump()})
                fields |= {n: v for n, v in given.items() if n not in usual or v != usual[n]}
        return fields

    def __repr__(self) -> str:
        """Return what differs from the defaults, long values cut; `to_json()` has everything."""
        settings = self.settings()
        shown = [f"{name}={_short(value)}" for name, value in settings.items()]
        more = f", and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        return f"<Config {', '.join(shown[:SHOWN])}{more}; settings() has what was set>"

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        rows = tuple((name, _short(value)) for name, value in self.settings().items())
        return Rows("configuration", ("field", "value"), rows, "others: defaults", True).html()


SHOWN = 12
"""So many fields stand in the short form of a configuration."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


def parse(data: Mapping[str, Any], source: str = "configuration") -> Config:
    """Validate; one ConfigError sentence names every field at fault."""
    return _validated(data, source, None)


def _validated(data: Mapping[str, Any], source: str, context: Any) -> Config:
    try:
        return Config.model_validate(data, context=context)
    except ValidationError as error:
        problems = "; ".join(explanations(error, Config))
        raise ConfigError(f"{source}: {problems}") from None


def pruned(data: Mapping[str, Any], source: str) -> tuple[Config, dict[str, str]]:
    """Validate without the fields that have no meaning there; return these with what they need."""
    config, fields = _examined(data, source)
    return (parse(without(data, fields), source) if fields else config), fields


def unused(data: Mapping[str, Any], source: str) -> dict[str, str]:
    """Return the fields that have no meaning in a description, each with what it needs."""
    return _examined(data, source)[1]


def _examined(data: Mapping[str, Any], source: str) -> tuple[Config, dict[str, str]]:
    """Validate once, as stored; return the configuration and its fields without a meaning."""
    foreign = of_other_circuits(data)
    config = _validated(without(data, foreign) if foreign else data, source, AS_STORED)
    return config, foreign | meaningless(config)


def load(
    path: Path, overrides: Mapping[str, str] | None = None, backend: str | None = None
) -> Config:
    """Read a TOML file; `overrides` are dotted names with TOML (or bare string) values.

    `backend` is the default of `run.backend` for a command that knows better than the file.
    """
    data = read(path)
    if backend and isinstance(data.setdefault("run", {}), dict):
        data["run"].setdefault("backend", backend)
    if "sweep" in data:
        raise ConfigError(f"{path}: has a [sweep] section; run it with `pcsim sweep`")
    config = with_changes(data, overrides or {}, str(path))
    config.hardware.warn_of_order(f"{path}: hardware.pieces")
    return config


def read(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file, not validated yet; own data lie beside it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from None
    if isinstance(section := data.get("data"), dict) and "name" in section:
        section["name"] = beside(path, section["name"])
    return data


def beside(path: Path, name: Any) -> Any:
    """Return the name of a data set; that of own data starts at the folder of the configuration."""
    own_data = isinstance(name, str) and name.endswith(own.SUFFIXES)
    return str(path.parent / name) if own_data else name


def change(data: dict[str, Any], name: str, text: str) -> None:
    """Set a field by its dotted name, as `--set` does."""
    *parents, last = name.split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise ConfigError(f"--set {name}: {parent!r} is a value, not a section")
    data[last] = value_of(text)


def value_of(text: str) -> Any:
    """Return what a text means in TOML; a bare word is a string."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def with_changes(data: Mapping[str, Any], changes: Mapping[str, str], source: str) -> Config:
    """Return a configuration from data in memory, with `--set` style changes.

    Fields that have a meaning in the data, and lose it by the changes, are left out with a warning:
    `--set schedule.rule=bp` works on a file that sets T.
    """
    copied = without(data, {})
    for name, text in changes.items():
        change(copied, name, text)
    lost = {n: needs for n, needs in unused(copied, source).items() if n not in changes}
    if changes and lost:
        lost = {n: needs for n, needs in lost.items() if n not in _unused_before(data)}
        for name, needs in lost.items():
            words = f"{name} of {source} is left out: with --set, it has no meaning (needs {needs})"
            warnings.warn(words, LeftOutWarning, stacklevel=2)
        copied = without(copied, lost)
    return parse(copied, source)


def _unused_before(data: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the fields without meaning in data that stands alone, as far as it does."""
    try:
        return unused(data, "")
    except ConfigError:
        return {}


def changed(config: Config, changes: Mapping[str, Mapping[str, Any]]) -> Config:
    """Return a configuration with fields of its sections replaced, validated again.

    What the configuration had set before and has no meaning any more is left out; a change without
    meaning is refused.
    """
    data = with_fields(config, changes)
    asked = {f"{section}.{name}" for section, fields in changes.items() for name in fields}
    lost = unused(data, "configuration")
    return parse(without(data, {name: why for name, why in lost.items() if name not in asked}))


def with_fields(config: Config, changes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a configuration has set, with fields of its sections replaced, not validated."""
    data = config.model_dump(exclude_unset=True)
    for section, fields in changes.items():
        data[section] = {**data.get(section, {}), **fields}
        if section == "hardware" and "preset" in fields and "device" not in fields:
            data[section].pop("device", None)  # another preset is read anew
        if section == "data" and "name" in fields:
            data[section].pop("sha256", None)  # and so are other data
    return data


def from_json(text: str) -> Config:
    """Return the configuration stored in a result."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"stored configuration: is not valid JSON: {error}") from None
    return pruned(data, "stored configuration")[0]
