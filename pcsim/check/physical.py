"""The physical case: how a chip runs that nobody controls, and how to say what is idealised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pcsim import config as configuration
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.runner.task import Task
from pcsim.runner.timing import Timing

DIGITS: dict[str, Any] = {
    "network": {"sizes": [64, 32, 10]},
    "schedule": {"gamma": 0.4},
    "data": {"name": "digits", "limit": 1000},
    "run": {"backend": "continuous"},
}
"""Checked when no configuration is given: 1000 of the embedded digits, in steps of 0.4 τ_x (which
give the accuracies of 0.2 τ_x); the rest as in `physical`."""
PRESENT = 20.0
"""Time per sample in τ_x, where none is given: the shortest that lost nothing on the digits by
carrying states over (`docs/streaming.md`; a task like XOR needs 50)."""
PRESENTS = (5.0, 10.0, 20.0, 50.0)
"""What `shortest` tries, in τ_x."""
CHIPS, SEEDS, EPOCHS = 32, 3, 1
"""Chips of the population, seeds of each and passes through the data, where none are given."""
HELD_OUT = 6
"""One training sample in so many is held out to choose learning rates by."""
RELEASED = 3.0
"""Time without the label at the start of a sample, in τ_x."""
REGIMES: dict[str, Callable[[Config], dict[str, dict[str, Any]]]] = {
    "carry": lambda config: {},
    "look-ahead": lambda config: {"circuit": {"look_soma": config.circuit.tau_x}},
    "smooth-label": lambda config: {"stream": {"tau_label": config.circuit.tau_x}},
    "free-label": lambda config: {"stream": {"t_settle": _released(config)}},
    "reset": lambda config: {"schedule": {"init": "ff"}},
}
"""What may happen at a switch of samples, by name (`docs/streaming.md`)."""


def physical(config: Config) -> Config:
    """Fill in what a configuration leaves open: the physical case, seeds, chips, held-out samples.

    One sample at a time, states carried over, `PRESENT` τ_x each. What was set is kept.
    """
    config = at_chip_time(config)
    given = {name: getattr(config, name).model_fields_set for name in Config.model_fields}
    open_: dict[str, dict[str, Any]] = {"run": {"seeds": tuple(range(SEEDS))}}
    if not config.run.automatic:
        open_["learning"] = {"batch": 1, "epochs": EPOCHS}
        open_["schedule"] = {"init": "carry"}
        if "T" not in given["schedule"]:
            open_["stream"] = {"t_pres": PRESENT * config.circuit.tau_x}
    if not config.hardware.identical:
        open_["hardware"] = {"chips": CHIPS}
    changes = {
        section: {name: value for name, value in fields.items() if name not in given[section]}
        for section, fields in open_.items()
    }
    filled = adapted(config, {section: fields for section, fields in changes.items() if fields})
    if len(filled.run.seeds) < SEEDS:
        raise ConfigError(
            f"check: run.seeds: {len(filled.run.seeds)} tell too little about chance; give "
            f"{SEEDS} or more, or leave them out"
        )
    if "validation" in given["data"]:
        return filled
    samples = len(Task.load(filled, filled.network.build()).train.x)
    return adapted(filled, {"data": {"validation": samples // HELD_OUT}})


def at_chip_time(config: Config) -> Config:
    """Give the somas the time constant of a whole chip, where a configuration names no times."""
    device = config.hardware.device
    circuit, stream = config.circuit.model_fields_set, config.stream.model_fields_set
    named = any(n.startswith(("tau", "delay", "look", "sigma")) for n in circuit)
    named |= any(n.startswith(("t_", "tau_")) for n in stream)
    if device is None or device.chip is None or named:
        return config
    return adapted(config, {"circuit": {"tau_x": device.chip["tau_x"]}})


def _released(config: Config) -> float:
    """Return about 3 τ_x without the label, in whole time steps."""
    dt = config.solver.dt or config.schedule.gamma * config.circuit.tau_x
    return round(RELEASED * config.circuit.tau_x / dt) * dt


def adapted(config: Config, changes: dict[str, dict[str, Any]]) -> Config:
    """Return a configuration with fields replaced, without those that have no meaning there."""
    return configuration.pruned(configuration.with_fields(config, changes), "check")[0]


def idealisations(config: Config) -> tuple[str, ...]:
    """Return what a run has that a chip without a controller does not."""
    words = []
    if config.run.automatic:
        words.append("all samples side by side, sharing weights")
    elif config.learning.batch != 1:
        many = config.learning.batch or "all"
        words.append(f"{many} samples side by side, sharing weights")
    if config.schedule.init != "carry" and not config.run.automatic:
        how = {"ff": "to a forward pass", "zero": "to zero"}[config.schedule.init]
        words.append(f"states reset {how} at every sample")
    if config.stream.t_settle:
        words.append("the label is released at the start of every sample")
    return tuple(words)


def chip_name(config: Config) -> str:
    """Return what the chip is called: its preset, and the pieces that were added or changed."""
    hardware = config.hardware
    pieces = ", ".join(hardware.pieces)
    if hardware.preset == "ideal" and pieces:
        return f"a chip with {pieces}"
    return f"{hardware.preset} with {pieces}" if pieces else hardware.preset


def stream(config: Config) -> str:
    """Say how samples are shown."""
    if config.run.automatic:
        return "; ".join(idealisations(config))
    timing = Timing.of(config)
    span = timing.present * timing.dt / config.circuit.tau_x
    ideal = "; ".join(idealisations(config))
    case = f"IDEALISED ({ideal})" if ideal else "one at a time, nothing reset"
    times = config.learning.epochs
    passes = "once" if times == 1 else f"{times} times"
    return f"{case}; {span:.3g} τ_x per sample, every sample {passes}"
