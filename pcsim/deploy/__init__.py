"""Train a network, program its weights into chips, wait, read: how accurate are they then?

Weights come from ideal arithmetic or from training on the chip itself. They are programmed by one
write of each device, or by write–verify, or left as training left them (`plan`). Then the chips do
nothing but wait; they are read after each waiting time, with and without one gain per array that
makes up for drift (`arrays`). Reading is one forward pass through the arrays and their periphery.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from pcsim import config as configuration
from pcsim import store
from pcsim.check.physical import adapted, at_chip_time, chip_name
from pcsim.config import Config
from pcsim.deploy.arrays import DeployedArrays, Programmed
from pcsim.deploy.deployment import Deployment
from pcsim.deploy.plan import Plan, Program, require
from pcsim.errors import ConfigError
from pcsim.fields.explain import explanations
from pcsim.hardware import Described
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.recording import Recording
from pcsim.run import run
from pcsim.runner import memory_need
from pcsim.runner.replicas import Replicas
from pcsim.runner.results import attributes
from pcsim.runner.task import Task
from pcsim.simulate import hardware_section
from pcsim.status import Report
from pcsim.store import Attr, Result, Variable
from pcsim.substrate import Seeded

__all__ = ["DIGITS", "Deployment", "Plan", "deploy"]

DIGITS: dict[str, Any] = {
    "network": {"sizes": [64, 32, 10]},
    "data": {"name": "digits"},
    "learning": {"batch": 8, "epochs": 4},
    "run": {"backend": "continuous", "seeds": [0, 1, 2]},
}
"""Trained when nothing else is given: the embedded digits."""
CHIPS = 32
"""Chips per seed, where none are given and chips differ."""
Watch = Callable[[str], AbstractContextManager[Report | None]]


def deploy(
    trained: Config | Result | Path | str | None = None,
    hardware: Described | str | None = None,
    *,
    program: Program = "open-loop",
    train: str = "ideal",
    wait: Sequence[float | str] | None = None,
    tolerance: float | str = 0.02,
    attempts: int = 20,
    range: str = "chip",
    chips: int | None = None,
    watch: Watch | None = None,
) -> Deployment:
    """Train, program, wait and read.

    Main arguments:
        trained: a configuration, which is trained first; or a result of `run` (or its file), whose
            weights are taken. None: the embedded digits.
        hardware: preset or `hw_models.Hardware`; None: that of the configuration.
        program: "open-loop", "write-verify", or "none": nothing is programmed.
        wait: seconds (or "1 h") after programming at which the chips are read.

    Rarely used:
        train: "ideal", or "chip": the weights were, or are, learnt on these chips.
        tolerance, attempts: of write–verify.
        range: "matched" lets the largest weight of each layer be full conductance.
        chips: chips per seed.
        watch: opened with the name of each part while it lasts.
    """
    plan = plan_of(
        program=program,
        train=train,
        tolerance=tolerance,
        attempts=attempts,
        range=range,
        **({} if wait is None else {"wait": list(wait)}),
    )
    weights = None
    if isinstance(trained, Path | str):
        trained = store.load(Path(trained))
    if isinstance(trained, Result):
        weights, config = trained, _config_of(trained)
    else:
        config = trained or configuration.parse(DIGITS, "deploy")
    if weights and hardware is not None and plan.program == "none" and plan.train == "chip":
        raise ConfigError(
            "deploy: --program none leaves the weights of a result in the chips that learnt them; "
            "leave --hardware out, or program them"
        )
    if hardware is not None:
        config = configuration.changed(config, {"hardware": hardware_section(hardware, None)})
    require(plan, config.hardware, waited=wait is not None and any(plan.wait))
    if wait is None and not config.hardware.deployed(plan.program != "none").aging:
        plan = plan.model_copy(update={"wait": (0.0,)})
    config = _population(config, chips, stored=weights is not None)
    _require(config)
    watch = watch or (lambda _: nullcontext())
    if weights is None:
        with watch("training") as report:
            weights = run(_training(config, plan), report=report)
    with watch("programming and reading"):
        return _deployed(config, plan, weights)


def plan_of(**fields: Any) -> Plan:
    """Return a plan from its fields; texts may have units."""
    try:
        return Plan.model_validate(fields)
    except ValidationError as error:
        problems = "; ".join(explanations(error, Plan))
        raise ConfigError(f"deploy: {problems}") from None


def _config_of(result: Result) -> Config:
    if "parameters" not in result.variables or "config" not in result.attrs:
        raise ConfigError(
            "deploy: this result has no weights; give the result of `pcsim run`, or a configuration"
        )
    return Recording.of(result).config


def _population(config: Config, chips: int | None, stored: bool) -> Config:
    """Give a configuration as many chips as were asked for, or as tell something."""
    given = "chips" in config.hardware.model_fields_set
    if chips is None:
        # What is stored of an ideal run says 1, because there was no other.
        if given and (config.hardware.chips > 1 or not stored):
            return config
        chips = 1 if config.hardware.identical else CHIPS
    return configuration.changed(config, {"hardware": {"chips": chips}})


def _require(config: Config) -> None:
    if config.data.mode != "supervised":
        raise ConfigError(
            f"deploy: data.mode must be 'supervised', got {config.data.mode!r}: chips are compared "
            f"by their test accuracy"
        )
    varied = [name for name in type(config.grid).model_fields if getattr(config.grid, name)]
    if varied:
        raise ConfigError(
            f"deploy: grid.{varied[0]}: one network is deployed; vary it with `pcsim sweep`"
        )


def _training(config: Config, plan: Plan) -> Config:
    """Return what is trained before: the same on ideal arithmetic, or on the chips."""
    if plan.train == "chip":
        return at_chip_time(config)
    return adapted(config, {"hardware": {"preset": "ideal", "pieces": {}, "chips": 1}})


def _deployed(config: Config, plan: Plan, weights: Result) -> Deployment:
    network = config.network.build()
    replicas = Replicas.of(config)
    read = adapted(config, {"run": {"dtype": "float64", "device": "cpu"}})
    task = Task.load(read, network)
    memory_need.check(read, network, replicas, task)
    target = Parameters(network, _flat(weights, config, network, replicas, plan))
    arrays = DeployedArrays(
        network,
        config.hardware,
        replicas,
        Seeded(config.solver.noise_seed, replicas.identities),
        plan,
    )
    programmed = arrays.program(target)
    accuracy, left = [], []
    for seconds in plan.wait:
        left.append(arrays.wait(seconds))
        plain = arrays.accuracy(task, task.test)
        arrays.compensate(left[-1])
        accuracy.append(np.stack([plain, arrays.accuracy(task, task.test)], 1))
    values = {"accuracy": np.stack(accuracy, 1), "left": np.stack(left, 1)}
    names = np.array([f"node {k}" for k in arrays.layers])
    return _result(config, plan, weights, replicas, programmed, values, names)


def _flat(
    weights: Result, config: Config, network: Network, replicas: Replicas, plan: Plan
) -> torch.Tensor:
    """Return the weights (replica, parameter) that are to be programmed."""
    variable = weights.variables["parameters"]
    values = torch.as_tensor(np.asarray(variable.values, dtype=float))
    dims, seeds = variable.dims, len(replicas.seeds)
    if set(dims) - {"seed", "chip", "parameter"}:
        raise ConfigError(
            "deploy: this result holds a grid of networks; run the one to be deployed by itself"
        )
    if values.shape[0] != seeds or values.shape[-1] != network.parameter_count:
        raise ConfigError("deploy: the weights of this result do not fit its configuration")
    of_chips = values.shape[1] if "chip" in dims else 0
    if plan.train == "chip" and of_chips != replicas.chips:
        raise ConfigError(
            f"deploy: --train chip: the result has weights of {of_chips or 'no'} chips, and "
            f"{replicas.chips} are to be programmed; give a result of a run on these chips"
        )
    if plan.train == "ideal" and of_chips:
        raise ConfigError(
            "deploy: the weights of this result were learnt on chips; say so by --train chip, or "
            "give the result of an ideal run"
        )
    if not torch.isfinite(values).all():
        raise ConfigError("deploy: the training diverged, so that there are no weights to program")
    each = values if of_chips else values[:, None].expand(-1, max(1, replicas.chips), -1)
    return each.reshape(len(replicas), -1).clone()


def _result(
    config: Config,
    plan: Plan,
    weights: Result,
    replicas: Replicas,
    programmed: Programmed,
    found: dict[str, np.ndarray],
    layers: np.ndarray,
) -> Deployment:
    dims, unfold = replicas.dims, replicas.unfold
    about: dict[str, dict[str, Attr]] = {
        "error": {"long_name": "rms of read minus target, of full conductance"},
        "attempts": {"long_name": "times that a device was written, mean"},
        "missed": {"long_name": "share of devices outside of the tolerance at the end"},
        "clipped": {"long_name": "share of weights above full conductance"},
    }
    variables = {
        "accuracy": Variable(
            (*dims, "wait", "compensation"),
            unfold(found["accuracy"]),
            {"long_name": "fraction of test samples right by a forward pass", "units": "1"},
        ),
        "left": Variable(
            (*dims, "wait", "map"),
            unfold(found["left"]),
            {"long_name": "sum of all currents of an array, of that at once", "units": "1"},
        ),
        "trained_accuracy": weights.variables["accuracy"],
    }
    for name, words in about.items():
        values = unfold(getattr(programmed, name))
        variables[f"programming.{name}"] = Variable((*dims, "map"), values, words | {"units": "1"})
    coords: dict[str, Any] = replicas.coords | {
        "wait": np.array(plan.wait),
        "compensation": np.array(["none", "global"]),
        "map": layers,
    }
    standing = [one for one in config.hardware.standing if one not in TRAINING_ONLY]
    attrs = attributes(
        config,
        kind="deploy",
        chip=chip_name(config),
        plan=plan.model_dump_json(),
        standing="; ".join(standing),
        train_samples=weights.attrs.get("train_samples", 0),
    )
    units: dict[str, dict[str, Attr]] = {"wait": {"units": "s"}}
    made = Deployment(variables, coords, attrs, units)
    attrs |= {"deployment": made.sentence(), "deployment_tables": made.tables_as_json()}
    return Deployment(variables, coords, attrs, units)


TRAINING_ONLY = ("host in the loop", "hidden accumulator")
"""What is said of a chip that learns, and has no meaning for one that is read."""
