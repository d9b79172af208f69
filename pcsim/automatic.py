"""The automatic run: full batch, states and weights flow together, nothing is ever switched.

    x_{t+1} = x_t − γ ∂F/∂x,   θ_{t+1} = optimiser(θ_t, −∂F/∂θ)      for all samples, at every t

until the energy has converged by the criterion of `config.Convergence`; then the run ends by
itself. Each replica stops on its own and leaves the population: its states, weights, devices and
optimiser stay as they were, and the others go on as if it had never been there.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import torch

from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.convergence_window import ConvergenceWindow
from pcsim.errors import ConfigError
from pcsim.results import attributes, final_state
from pcsim.status import Report, Status
from pcsim.store import Result, Variable
from pcsim.training import Training

OUTCOMES = ("running", "converged", "diverged", "ringing")


class Automatic:
    """A full-batch population that runs until its energy has converged."""

    def __init__(self, config: Config) -> None:
        if not config.run.automatic:
            raise ConfigError("run.automatic: must be true for an automatic run")
        self.config = config
        self.training = Training(config)
        assert isinstance(self.training.rule, Discrete)  # the configuration allows nothing else
        self.rule = self.training.rule
        self.energies: list[np.ndarray] = []
        self.steps = np.zeros(len(self.training.replicas), dtype=np.int64)
        self.outcome = np.zeros(len(self.training.replicas), dtype=np.int64)

    def run(self, report: Report | None = None) -> None:
        """Go on until every replica has converged or diverged, or max_steps is reached."""
        criterion, rule, task = self.config.convergence, self.rule, self.training.task
        rule.start(next(task.batches(self.training.replicas, 0, 0)))
        samples = len(task.train.x)
        window = ConvergenceWindow(criterion, len(self.training.replicas))
        for step in range(criterion.max_steps):
            rule.step()
            energy = rule.energy().double().cpu().numpy() / samples
            self.energies.append(energy)
            running = self.outcome == 0
            self.steps[running] = step + 1
            window.add(energy)
            self.outcome[running & window.converged] = OUTCOMES.index("converged")
            self.outcome[running & window.ringing] = OUTCOMES.index("ringing")
            self.outcome[running & ~np.isfinite(energy)] = OUTCOMES.index("diverged")
            if report and step % 50 == 0:
                text = f"energy {energy[0]:.4g} per sample"
                report(Status(step, criterion.max_steps, "steps", text))
            if (self.outcome != 0).all():
                break
            if (self.outcome[running] != 0).any():
                rule.stop(torch.as_tensor(self.outcome != 0))
        rule.finish()

    def result(self) -> Result:
        """Return energies, outcome and accuracy on named axes."""
        replicas = self.training.replicas
        dims, unfold = replicas.dims, replicas.unfold
        energies = np.stack(self.energies, 1)
        # After its end a replica has no energy of its own making: mark, do not repeat.
        energies[np.arange(energies.shape[1])[None] >= self.steps[:, None]] = np.nan
        names = np.asarray(OUTCOMES)[self.outcome]
        variables = {
            "energy": Variable(
                (*dims, "step"),
                unfold(energies),
                {"long_name": "energy F per sample", "units": "1"},
            ),
            "steps": Variable(dims, unfold(self.steps), {"long_name": "steps until the end"}),
            "outcome": Variable(dims, unfold(names)),
        }
        if self.config.data.mode == "supervised":
            for name in ("train", "test"):
                accuracy = self.training.accuracy(getattr(self.training.task, name))
                variables[f"{name}_accuracy"] = Variable(dims, unfold(accuracy))
            variables["accuracy"] = variables["test_accuracy"]
        task = self.training.task
        training = self.training
        predictions = partial(task.predictions, training.readout, training.params)
        variables |= final_state(self.config, training.params, replicas, predictions)
        attrs = attributes(
            self.config,
            train_samples=len(task.train.x),
            data_origin=json.dumps(dict(task.origin)),
        )
        return Result(variables, replicas.coords, attrs)
