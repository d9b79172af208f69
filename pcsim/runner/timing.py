"""From a configuration to whole time steps: what the discrete settings mean in continuous time."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from pcsim.circuit import Circuit
from pcsim.config import Config
from pcsim.continuous.delay import whole_steps
from pcsim.errors import ConfigError, UnsupportedError


@dataclass(frozen=True)
class Timing:
    """The resolved times of a configuration, in whole steps of dt."""

    circuit: Circuit
    dt: float
    present: int
    settle: int

    @classmethod
    def of(cls, config: Config) -> Timing:
        """Fill in what follows from the discrete settings: dt = γτ_x, τ_w = dt/α, T steps."""
        circuit, learning, schedule = config.circuit, config.learning, config.schedule
        where = f"run.backend {_backend(config)}"
        if schedule.rule != "ipc":
            raise UnsupportedError(
                f"{where}: schedule.rule {schedule.rule!r} needs a control signal; only 'ipc' flows"
            )
        if learning.optimizer != "sgd":
            raise UnsupportedError(
                f"{where}: learning.optimizer {learning.optimizer!r} is no gradient flow; use 'sgd'"
            )
        if schedule.init == "normal" or schedule.discount < 1 or learning.anneal != "none":
            raise UnsupportedError(
                f"{where}: schedule.init 'normal', schedule.discount and "
                "learning.anneal belong to the discrete backend"
            )
        dt = config.solver.dt or schedule.gamma * circuit.tau_x
        grid = config.grid
        if grid.alpha and circuit.tau_w:
            raise ConfigError("grid.alpha: contradicts circuit.tau_w; give one of them")
        # Lists of one value hold for all chips; longer ones are spread over them by `ChipRun`.
        alpha = grid.alpha[0] if grid.alpha else learning.alpha
        tau_x = dt / grid.gamma[0] if len(grid.gamma) == 1 else circuit.tau_x
        resolved = circuit.model_copy(
            update={
                "tau_x": tau_x,
                "tau_w": circuit.tau_w or weight_time(dt, alpha),
                "weight_decay": _decay(config),
            }
        )
        stream = config.stream
        present = schedule.T
        if stream.t_pres is not None:
            present = max(1, whole_steps("stream.t_pres", stream.t_pres, dt))
        settle = whole_steps("stream.t_settle", stream.t_settle, dt)
        return cls(resolved, dt, present, settle)


def weight_time(dt: float, alpha: float) -> float:
    """Return τ_w = dt/α; infinite for α = 0, where weights never move."""
    return dt / alpha if alpha else inf


def _backend(config: Config) -> str:
    """Return the name of the backend in continuous time: both ask for the same."""
    return "brian" if config.run.backend == "brian" else "continuous"


def _decay(config: Config) -> float:
    circuit, learning, listed = config.circuit, config.learning, config.grid.weight_decay
    if len(listed) > 1:
        raise UnsupportedError("grid.weight_decay: chips share one weight decay")
    given = listed[0] if listed else learning.weight_decay
    if circuit.weight_decay and given not in (0.0, circuit.weight_decay):
        raise ConfigError(
            f"circuit.weight_decay = {circuit.weight_decay} contradicts "
            f"learning.weight_decay = {given}"
        )
    decay = circuit.weight_decay or given
    if decay and learning.decay_bias:
        raise UnsupportedError(
            f"run.backend {_backend(config)}: learning.decay_bias: biases do not decay"
        )
    return decay
