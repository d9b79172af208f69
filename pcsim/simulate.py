"""One call for a network, a stream and a chip; a file is the same nouns written down.

    recording = simulate(
        Network.mlp([64, 32, 10]),
        Stream.of("digits", present=20.0),
        circuit=Dendritic(tau_inter=0.2),
        hardware=hw_models.preset("ecram_li"), chips=32, seeds=3)
    print(recording.verdict())

`config_of` puts nouns together to the configuration that a file would give, `nouns` takes one apart
again, so that `simulate(**read(file))` is `pcsim run file`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, PrivateAttr

from pcsim import config as configuration
from pcsim.architectures.choice import NetworkConfig, section_of
from pcsim.brian_settings import BrianSettings
from pcsim.circuit import Circuit
from pcsim.config import (
    Config,
    Convergence,
    DataConfig,
    Grid,
    Learning,
    Passes,
    Schedule,
    Start,
    Steps,
    Updates,
)
from pcsim.datasets import Dataset, own
from pcsim.engines import ENGINES
from pcsim.frozen import Count, Whole
from pcsim.hardware import Described, Device, HardwareConfig
from pcsim.meaning import without
from pcsim.network import Network
from pcsim.recording import Recording
from pcsim.run import run
from pcsim.status import Report
from pcsim.stream import Record, Solver, StreamConfig

DISCRETE = {
    "discrete torch": ("discrete", "torch"),
    "discrete native": ("discrete", "native"),
}
TAKERS = {name: ("continuous", name) for name in ENGINES} | DISCRETE
"""Backend and engine, where it is said who takes the steps."""
if TYPE_CHECKING:
    Engine = str
else:
    Engine = Literal["auto", "discrete", "continuous", "brian", *TAKERS]


class Learner(Steps, Updates):
    """Which weights move when, and how: always on (ipc), or pc, zil and bp in discrete steps."""


class Stream(DataConfig, Start, Passes, StreamConfig):
    """What is shown to a chip, for how long, how often, and what is reset (nothing).

    One sample at a time flows by once with nothing reset, as on a chip, unless fields say otherwise
    (a batch is an idealisation: copies of a chip that share their weights).
    """

    init: Literal["ff", "carry", "zero", "normal"] = "carry"
    """States at a switch: kept, set by a feed-forward pass, zero, or normal(init_sd)."""
    batch: Whole = 1
    """Samples that are shown at once, side by side; 0 is the full training set."""
    epochs: Count = 1
    """Passes through the training set."""
    _held: Dataset | None = PrivateAttr(None)

    @classmethod
    def of(cls, name: str, *, present: float | None = None, **fields: Any) -> Stream:
        """Return a stream of a data set by name, or of a file .npz or .csv of your own.

        Main arguments:
            name: see `pcsim data list` and docs/own_data.md.
            present: seconds per presentation (`t_pres`); none: as many steps as the learner says.
            fields: all others of `Stream`, such as batch, epochs, t_settle, tau_label or limit.
        """
        return cls(name=name, **_present(present), **fields)

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any = None,
        *,
        x_test: Any = None,
        y_test: Any = None,
        present: float | None = None,
        **fields: Any,
    ) -> Stream:
        """Return a stream of arrays: x (sample, feature …) and classes y (sample,) from 0.

        Main arguments:
            x_test, y_test: test samples; without them a fifth of x is kept for the test.
            present: seconds per presentation (`t_pres`); none: as many steps as the learner says.
            fields: all others of `Stream`, such as batch, epochs, t_settle, tau_label or limit.

        The values are named by their checksum; they are in memory as long as the stream is.
        """
        data, digest = own.from_arrays(x, y, x_test, y_test)
        stream = cls(name=own.ARRAYS, sha256=digest, **_present(present), **fields)
        stream._held = data
        return stream


def _present(seconds: float | None) -> dict[str, Any]:
    return {} if seconds is None else {"t_pres": seconds}


SECTIONS: dict[str, tuple[type[BaseModel], ...]] = {
    "schedule": (Schedule,),
    "learning": (Learning,),
    "data": (DataConfig,),
    "stream": (StreamConfig,),
}
"""The sections of a file whose fields streams and learners hold."""
OF_STREAMS = ("init", "batch", "epochs")
"""Fields whose defaults differ from those of a file."""


def simulate(
    network: Network | NetworkConfig,
    stream: Stream,
    *,
    circuit: Circuit | None = None,
    hardware: Described | HardwareConfig | str | None = None,
    chips: int | None = None,
    seeds: int | Sequence[int] = 1,
    learner: Learner | None = None,
    solver: Solver | None = None,
    record: Record | None = None,
    engine: Engine = "auto",
    until: Convergence | None = None,
    grid: Grid | None = None,
    brian: BrianSettings | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    device: str = "cpu",
    out: Path | str | None = None,
    overwrite: bool = False,
    report: Report | None = None,
) -> Recording:
    """Simulate a population of chips that sees a stream, and return what was recorded.

    Main arguments:
        network: `Network.mlp([64, 32, 10])`, or any graph of nodes.
        stream: `Stream.of("digits", present=20.0)`, or `Stream.from_arrays(x, y)`.
        circuit: `Algebraic` (the default), `ErrorUnits`, `Dendritic`, `Sacramento`,
            `Equilibrium` or `Spiking`.
        hardware: a `hw_models.Hardware`, the name of a preset or the file of a device.
        chips, seeds: chips per seed, and how many seeds (or which).
        learner: `Learner(rule="ipc", alpha=0.01)`; pc, zil and bp are discrete.

    Rarely used:
        solver, record: how the flow is integrated, and what is kept.
        engine: auto is continuous time, or discrete steps where the learner needs them; `native`
            takes the steps of continuous time in compiled code, `spice` by ngspice; `discrete
            torch` and `discrete native` say it of discrete steps.
        until: the full batch, nothing switched, until the energy has converged.
        grid: values that become chips of one population.
        brian, dtype, device: how an engine computes.
        out, overwrite, report: as in `run`.
    """
    config = config_of(
        network,
        stream,
        circuit=circuit,
        hardware=hardware,
        chips=chips,
        seeds=seeds,
        learner=learner,
        solver=solver,
        record=record,
        engine=engine,
        until=until,
        grid=grid,
        brian=brian,
        dtype=dtype,
        device=device,
    )
    result = run(config, Path(out) if out else None, overwrite=overwrite, report=report)
    return Recording.of(result)


def config_of(
    network: Network | NetworkConfig,
    stream: Stream,
    *,
    circuit: Circuit | None = None,
    hardware: Described | HardwareConfig | str | None = None,
    chips: int | None = None,
    seeds: int | Sequence[int] = 1,
    learner: Learner | None = None,
    solver: Solver | None = None,
    record: Record | None = None,
    engine: Engine = "auto",
    until: Convergence | None = None,
    grid: Grid | None = None,
    brian: BrianSettings | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    device: str = "cpu",
) -> Config:
    """Return the configuration that nouns make together, for `run`, `check`, `sweep`, `compare`."""
    section = section_of(network) if isinstance(network, Network) else network
    learner = learner or Learner()
    if engine == "auto":
        engine = "continuous" if learner.rule == "ipc" else "discrete"
    run_section: dict[str, Any] = {"backend": engine, "seeds": _seeds(seeds)}
    if (taken := TAKERS.get(engine)) is not None:
        run_section |= {"backend": taken[0], "engine": taken[1]}
    run_section |= {"dtype": dtype} if dtype != "float32" else {}
    run_section |= {"device": device} if device != "cpu" else {}
    described = _set(section) | {"kind": section.kind}
    data: dict[str, Any] = {"network": described, "run": run_section}
    for name, noun in (("circuit", circuit), ("solver", solver), ("record", record)):
        data |= {name: _set(noun)} if noun is not None else {}
    data |= {"grid": _set(grid)} if grid is not None else {}
    data |= {"brian": _set(brian)} if brian is not None else {}
    if until is not None:
        run_section["automatic"] = True
        data["convergence"] = _set(until)
    if circuit is not None:
        data["circuit"]["kind"] = circuit.kind
    data["hardware"] = hardware_section(hardware, chips)
    asked = _spread(data, (stream, learner))
    assumed = {f"{_section(name)}.{name}": getattr(stream, name) for name in OF_STREAMS}
    if until is not None:
        assumed["learning.batch"] = 0
    assumed = {field: value for field, value in assumed.items() if field not in asked}
    for field, value in assumed.items():
        part, _, name = field.partition(".")
        data.setdefault(part, {})[name] = value
    unused = configuration.unused(data, "simulate")
    left_out = {field: why for field, why in unused.items() if field in assumed}
    return configuration.parse(without(data, left_out), "simulate")


def _set(noun: BaseModel) -> dict[str, Any]:
    return noun.model_dump(exclude_unset=True)


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    return list(range(seeds)) if isinstance(seeds, int) else list(seeds)


def _section(name: str) -> str:
    """Return the section of a file that a field of a stream or learner stands in."""
    return next(s for s, models in SECTIONS.items() if name in models[0].model_fields)


def _spread(data: dict[str, Any], nouns: Sequence[BaseModel]) -> set[str]:
    """Put what nouns have set into the sections of a file; return these fields."""
    asked = set()
    for noun in nouns:
        for name, value in _set(noun).items():
            data.setdefault(_section(name), {})[name] = value
            asked.add(f"{_section(name)}.{name}")
    return asked


def hardware_section(
    hardware: Described | HardwareConfig | str | None, chips: int | None
) -> dict[str, Any]:
    """Return the section of a preset, a file, a section, or an object with its pieces."""
    own_chips = {} if chips is None else {"chips": chips}
    if hardware is None:
        return own_chips
    if isinstance(hardware, str):
        return {"preset": hardware, **own_chips}
    if isinstance(hardware, HardwareConfig):
        return _set(hardware) | own_chips
    if not hardware.pieces:
        return {"preset": "ideal", **own_chips}
    held = Device.holding(hardware)
    return {"preset": held.name, "device": held, **own_chips}


def nouns(config: Config) -> dict[str, Any]:
    """Return the arguments of `simulate` (or `config_of`) that give this configuration."""
    arguments: dict[str, Any] = {
        "network": config.network,
        "hardware": config.hardware,
        "seeds": config.run.seeds,
        "engine": _engine(config),
        "dtype": config.run.dtype,
        "device": config.run.device,
        "stream": _gathered(Stream, config),
        "learner": _gathered(Learner, config),
        "until": config.convergence if config.run.automatic else None,
    }
    for name in ("circuit", "solver", "record", "grid", "brian"):
        section = getattr(config, name)
        arguments[name] = section if section.model_fields_set else None
    return arguments


def _engine(config: Config) -> str:
    """Return who computes: a backend, or who takes its steps where that is said."""
    run = config.run
    if "engine" not in run.model_fields_set or run.engine == "auto":
        return run.backend
    return next(name for name, taken in TAKERS.items() if taken == (run.backend, run.engine))


def _gathered(noun: type[Any], config: Config) -> Any:
    """Return a stream or learner from the sections of a configuration, as set there."""
    values, asked = {}, set()
    for name in noun.model_fields:
        section = getattr(config, _section(name))
        values[name] = getattr(section, name)
        asked |= {name} if name in section.model_fields_set else set()
    return noun.model_construct(_fields_set=asked, **values)


def read(path: Path | str, changes: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the nouns of a file: `simulate(**read(file))` is `pcsim run file`."""
    return nouns(configuration.load(Path(path), changes))
