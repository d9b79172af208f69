"""The configuration: TOML in, frozen and validated data out, errors that name the field."""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, model_validator

from pcsim.architectures.choice import NetworkConfig
from pcsim.brian_settings import BrianSettings
from pcsim.circuit import Algebraic, CircuitConfig
from pcsim.datasets import own
from pcsim.engines import ENGINES
from pcsim.errors import ConfigError, DataError
from pcsim.fields.explain import explanations
from pcsim.frozen import AS_STORED, Count, Frozen, NotNegative, Positive, Whole, dotted
from pcsim.hardware import HardwareConfig
from pcsim.meaning import LeftOutWarning, meaningless, of_other_circuits, sentence, without
from pcsim.network import Mode
from pcsim.rows import Rows
from pcsim.spice_settings import SpiceSettings
from pcsim.stream import Record, Solver, StreamConfig

BelowOne = Annotated[float, Field(ge=0, lt=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]
# TOML has lists, not tuples: only there a conversion is wanted.
AsList = Field(strict=False)
Rule = Literal["bp", "pc", "zil", "ipc"]
Reduction = Literal["sum", "mean"]
if TYPE_CHECKING:
    EngineName = str
else:
    EngineName = Literal["auto", *ENGINES]


class Steps(Frozen):
    """When states move, and when weights are written."""

    rule: Rule = "ipc"
    """Learning rule: backpropagation, predictive coding, zero-divergence inference learning, or
    incremental predictive coding (always on)."""
    T: Count = 8
    """Inference steps per batch (Z-IL always uses the depth of the network)."""
    gamma: Positive = 0.5
    """Step size of the states (Z-IL: 1 unless given, which makes it equal to BP)."""
    pc_update_at: Literal["last", "after"] = "last"
    """PC's weight gradient: at the state of the last inference step, or one step later."""
    discount: Annotated[float, Field(gt=0, le=1)] = 1.0
    """gamma is multiplied by this whenever the energy did not fall; reset at each batch."""
    fast: bool = True
    """Skip products whose result is known (exact to round-off); off: every product of the text."""


class Start(Frozen):
    """What states are at the start of a batch."""

    init: Literal["ff", "carry", "zero", "normal"] = "ff"
    """States at the start of a batch: feed-forward pass, kept, zero, or normal(init_sd)."""
    init_sd: NotNegative = 0.1
    """Standard deviation of states that are drawn at the start of a batch."""


class Schedule(Start, Steps):
    """When states move, when they are reset, and when weights are written."""

    @model_validator(mode="after")
    def _zil_defaults_to_bp(self) -> Self:
        if self.rule == "zil" and "gamma" not in self.model_fields_set:
            self.__dict__["gamma"] = 1.0  # frozen, and not set by anyone: a default of this rule
        return self

    @model_validator(mode="after")
    def _zil_needs_ff(self) -> Self:
        if self.rule == "zil" and self.init != "ff":
            raise ValueError("Z-IL needs init = 'ff': its equality with BP rests on it")
        return self


class Updates(Frozen):
    """How weights move."""

    optimizer: Literal["sgd", "momentum", "adam", "adamw"] = "sgd"
    """How gradients become updates."""
    alpha: NotNegative = 1e-3
    """Learning rate; 0 is a control: everything moves but the weights."""
    weight_decay: NotNegative = 0.0
    """Decay of weights λ: each update subtracts alpha·λ·θ."""
    reduction: Reduction = "sum"
    """Weight gradient over the batch: sum, or mean (alpha then differs by a factor B)."""
    momentum: BelowOne = 0.9
    """Share of the last update that is kept (optimizer momentum)."""
    betas: Annotated[tuple[BelowOne, BelowOne], AsList] = (0.9, 0.999)
    """Decay rates of the two moments (optimizers adam and adamw)."""
    eps: Positive = 1e-8
    """Added to the root of the second moment (optimizers adam and adamw)."""
    decay_bias: bool = False
    """Whether biases decay, too."""
    patience: Whole = 0
    """Stop when no replica's validation accuracy improved for this many epochs; 0: never."""
    anneal: Literal["none", "cosine"] = "none"
    """Learning rate over the epochs: constant, or half a cosine down to zero."""


class Passes(Frozen):
    """How many samples are shown at once, and how often."""

    batch: Whole = 128
    """Samples per batch; 0 is the full training set. An incomplete last batch is left out."""
    epochs: Count = 10
    """Passes through the training set."""


class Learning(Passes, Updates):
    """How weights move, by how many samples at once."""


class DataConfig(Frozen):
    """What to train on."""

    name: str = "digits"
    """Data set (`pcsim data list` shows them), or a file of your own, "my.npz" or "my.csv", beside
    the configuration: see docs/own_data.md."""
    mode: Mode = "supervised"
    """What is clamped in training: input and label (supervised), or the datum alone
    (generative)."""
    limit: Whole = 0
    """Use only the first `limit` training samples; 0 is all."""
    validation: Whole = 0
    """Hold out this many training samples (the last ones) to choose the best epoch."""
    limit_test: Whole = 0
    """Measure on the first `limit_test` test samples only; 0 is all."""
    centre: bool = False
    """Shift and scale inputs by the training set's overall mean and standard deviation."""
    augment: bool = False
    """Mirror and shift training pictures at random, anew in each epoch (needs kornia)."""
    shuffled: bool = False
    """A control: training labels are dealt out anew among the samples, so that nothing can be
    learnt but how common each class is."""
    unverified: bool = False
    """Accept local files whose checksum is not the published one; the result says so."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    """Filled in by itself: the checksum of the values of own data, so that a result says what made
    it. Given, data with other values are refused."""

    @model_validator(mode="before")
    @classmethod
    def _read_own(cls, data: Any) -> Any:
        """Look at own data once: what is in a file later is another matter."""
        name = data.get("name") if isinstance(data, Mapping) else None
        if not isinstance(name, str) or not name.endswith(own.SUFFIXES) or data.get("sha256"):
            return data
        try:
            return {**data, "sha256": own.checksum_of_file(name)}
        except DataError as error:
            raise ValueError(str(error).removeprefix("data.name: ")) from None

    @model_validator(mode="after")
    def _of_own_data(self) -> Self:
        if self.sha256 and not own.is_own(self.name):
            raise ValueError(f"sha256: belongs to a file of your own, not to {self.name!r}")
        return self


class RunConfig(Frozen):
    """Where and how often."""

    backend: Literal["discrete", "continuous", "brian"] = "discrete"
    """Discrete steps, continuous time, or continuous time on Brian2."""
    engine: EngineName = "auto"
    """Who takes the steps: torch, C code that is compiled from the circuit's equations (see
    docs/native.md), or, in continuous time, ngspice with a netlist of them (see docs/spice.md);
    auto takes the faster of the first two, and the result says which and why."""
    seeds: Annotated[tuple[Seed, ...], AsList] = (0,)
    """One replica each: initial weights and data order."""
    dtype: Literal["float32", "float64"] = "float32"
    """Precision of the torch engines and of Brian2."""
    device: str = "cpu"
    """Torch device, such as "cpu" or "cuda"."""
    automatic: bool = False
    """Full batch, nothing reset, no control signal; stops by itself (see `Convergence`)."""


class Convergence(Frozen):
    """When an automatic run has converged, per replica.

    The trend of the energy F over the last four windows (or over 8, 16, 32 …), with its error,
    must be less than rtol·|F| + atol·|F(0)| per window, at every test over a quarter of that span;
    F must not lie well above the lowest energy seen, and must not swing with a period. The rate of
    the energy is tested, not its size, so that slow but steady progress goes on. See
    `pcsim.runner.convergence_window` for the whole criterion and how often it errs.
    """

    window: Count = 200
    """Steps in which the energy may change by the tolerance; four of them are seen at least."""
    rtol: Positive = 1e-3
    """Tolerance per window, as part of the present energy."""
    atol: NotNegative = 1e-12
    """Tolerance per window, as part of the initial energy: for energies that fall to zero."""
    max_steps: Count = 100_000
    """A replica that has not stopped by then is judged by its trend: descending, rising, …"""


class Grid(Frozen):
    """Values that become replicas: every combination, times the seeds, trains at once."""

    alpha: Annotated[tuple[NotNegative, ...], AsList] = ()
    """Learning rates, in place of learning.alpha."""
    weight_decay: Annotated[tuple[NotNegative, ...], AsList] = ()
    """Weight decays, in place of learning.weight_decay."""
    gamma: Annotated[tuple[Positive, ...], AsList] = ()
    """Step sizes of the states, in place of schedule.gamma."""
    hardware: Mapping[str, Annotated[tuple[int | float, ...], AsList]] = {}
    """Numbers of the hardware by "piece.field", such as "weights.bits" = [4, 6, 8]."""
    trials: Annotated[tuple[Mapping[str, int | float], ...], AsList] = ()
    """Numbers of the hardware that change together, such as [{"adc.bits" = 6}, {"noise.sigma" =
    0.1}]: one value of the axis `trial` for each table, an empty one changes nothing."""


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
        found = {"network.kind": self.network.kind}
        found |= dotted({"network": self.network.model_dump(exclude_defaults=True)})
        for name, field in type(self).model_fields.items():
            if name != "network":
                usual = dotted({name: field.default.model_dump()})
                given = dotted({name: getattr(self, name).model_dump()})
                found |= {n: v for n, v in given.items() if n not in usual or v != usual[n]}
        return found

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
