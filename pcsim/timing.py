"""From a configuration to whole time steps: what the discrete settings mean in continuous time."""

from __future__ import annotations

from dataclasses import dataclass

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
        if schedule.rule != "ipc":
            raise UnsupportedError(
                f"run.backend continuous: schedule.rule {schedule.rule!r} needs a control signal; "
                f"only 'ipc' flows"
            )
        if learning.optimizer != "sgd":
            raise UnsupportedError(
                f"run.backend continuous: learning.optimizer {learning.optimizer!r} is no gradient "
                f"flow; use 'sgd'"
            )
        if schedule.init == "normal" or schedule.discount < 1 or learning.anneal != "none":
            raise UnsupportedError(
                "run.backend continuous: schedule.init 'normal', schedule.discount and "
                "learning.anneal belong to the discrete backend"
            )
        dt = config.solver.dt or schedule.gamma * circuit.tau_x
        decay = circuit.weight_decay or learning.weight_decay
        if circuit.weight_decay and learning.weight_decay not in (0.0, circuit.weight_decay):
            raise ConfigError(
                f"circuit.weight_decay = {circuit.weight_decay} contradicts "
                f"learning.weight_decay = {learning.weight_decay}"
            )
        tau_w = circuit.tau_w or dt / learning.alpha
        resolved = circuit.model_copy(update={"tau_w": tau_w, "weight_decay": decay})
        stream = config.stream
        present = schedule.T
        if stream.t_pres is not None:
            present = max(1, whole_steps("stream.t_pres", stream.t_pres, dt))
        settle = whole_steps("stream.t_settle", stream.t_settle, dt)
        return cls(resolved, dt, present, settle)
