"""The automatic run: full batch, states and weights flow together, nothing is ever switched.

    x_{t+1} = x_t − γ ∂F/∂x,   θ_{t+1} = optimiser(θ_t, −∂F/∂θ)      for all samples, at every t

until the energy has converged by the criterion of `config.Convergence`; then the run ends by
itself. Each replica stops on its own and leaves the population: its states, weights, devices and
optimiser stay as they were, and the others go on as if it had never been there.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.divergence import lost_energy, lost_weights
from pcsim.errors import ConfigError
from pcsim.runner.checkpoint import part_of, snapshot, under
from pcsim.runner.convergence_window import ConvergenceWindow
from pcsim.runner.progress import Pace, coordinates
from pcsim.runner.results import attributes, final_state
from pcsim.runner.resumable import Resumable
from pcsim.runner.training import Training
from pcsim.status import Status
from pcsim.store import Result, Variable
from pcsim.verdict import Verdict, judge


class Automatic(Resumable):
    """A full-batch population that runs until its energy has converged."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        if not config.run.automatic:
            raise ConfigError("run.automatic: must be true for an automatic run")
        self.config = config
        self.training = Training(config)
        assert isinstance(self.training.rule, Discrete)  # the configuration allows nothing else
        self.rule = self.training.rule
        self.energies: list[np.ndarray] = []
        self.steps = np.zeros(len(self.training.replicas), dtype=np.int64)
        self.diverged = np.zeros(len(self.training.replicas), dtype=bool)
        self.window = ConvergenceWindow(config.convergence, len(self.training.replicas))

    def proceed(self) -> None:
        """Go on until every replica has converged or diverged, or max_steps is reached."""
        steps = self.config.convergence.max_steps
        if not self.energies:
            self.rule.start(next(self.training.task.batches(self.training.replicas, 0, 0)))
        while len(self.energies) < steps and self._running.any():
            self.between_steps = False
            self._step()
            self.between_steps = True
            if self._report and (len(self.energies) - 1) % 50 == 0:
                text = f"energy {self.energies[-1][0]:.4g} per sample"
                self._report(Status(len(self.energies) - 1, steps, "steps", text))
            self.pause()
        self.rule.finish()

    def _step(self) -> None:
        """Take one step, and let those leave whose energy has converged, rings or is lost."""
        self.rule.step()
        samples = len(self.training.task.train.x)
        energy = self.rule.energy().double().cpu().numpy() / samples
        self.energies.append(energy)
        running = self._running
        self.steps[running] = len(self.energies)
        self.window.add(energy)
        self.diverged |= running & self._lost(energy)
        still = self._running
        if (running & ~still).any() and still.any():
            self.rule.stop(torch.as_tensor(~still))

    @property
    def _running(self) -> np.ndarray:
        """Which replicas have neither converged, nor ring, nor are lost."""
        return np.asarray(~(self.window.converged | self.window.ringing | self.diverged))

    def _lost(self, energy: np.ndarray) -> np.ndarray:
        """Return which replicas have left the range in which their numbers mean something."""
        return np.asarray(
            lost_energy(energy) | lost_weights(self.training.params.flat.cpu().numpy())
        )

    def reached(self) -> str:
        """Say how far the run is."""
        return f"{len(self.energies)} steps"

    def checkpoint(self) -> Result:
        """Return a copy of the run as it stands."""
        tensors = self.training.tensors() | under("rule", self.rule.state())
        arrays = {"energies": np.stack(self.energies), "steps": self.steps}
        arrays["diverged"] = self.diverged
        tensors |= under("run", arrays) | under("window", self.window.state())
        return snapshot(self.config, tensors, self.training.progress)

    def restore(self, saved: Result) -> None:
        """Go on from a checkpoint."""
        self.training.restore(saved)
        arrays = {name: t.numpy() for name, t in part_of(saved, "run").items()}
        self.energies = list(arrays["energies"])
        self.steps, self.diverged = arrays["steps"].copy(), arrays["diverged"].copy()
        self.window.restore({n: t.numpy() for n, t in part_of(saved, "window").items()})
        self.rule.restore(part_of(saved, "rule", self.config.run.device))

    def result(self) -> Result:
        """Return energies, verdict and accuracy on named axes."""
        replicas = self.training.replicas
        dims, unfold = replicas.dims, replicas.unfold
        energies = np.stack(self.energies, 1)
        # After its end a replica has no energy of its own making: mark, do not repeat.
        energies[np.arange(energies.shape[1])[None] >= self.steps[:, None]] = np.nan
        variables = {
            "energy": Variable(
                (*dims, "step"),
                unfold(energies),
                {"long_name": "energy F per sample", "units": "1"},
            ),
            "steps": Variable(dims, unfold(self.steps), {"long_name": "steps until the end"}),
        }
        train = len(self.training.task.train.x)
        counts = np.arange(1.0, energies.shape[1] + 1)
        variables |= coordinates(self.config, train, "step", lambda pace: pace.after_steps(counts))
        if self.config.data.mode == "supervised":
            for name in ("train", "test"):
                accuracy = self.training.accuracy(getattr(self.training.task, name))
                variables[f"{name}_accuracy"] = Variable(dims, unfold(accuracy))
            variables["accuracy"] = variables["test_accuracy"]
        read = variables["accuracy"].values.reshape(-1) if "accuracy" in variables else None
        for name, value in self.verdict(read).columns().items():
            variables[f"verdict.{name}"] = Variable(dims, unfold(value))
        task = self.training.task
        training = self.training
        predictions = partial(task.predictions, training.readout, training.params)
        variables |= final_state(self.config, training.params, replicas, predictions)
        attrs = attributes(
            self.config,
            "automatic",
            train_samples=train,
            data_origin=json.dumps(dict(task.origin)),
            **training.about(),
        )
        return Result(variables, replicas.coords, attrs)

    def verdict(self, accuracy: np.ndarray | None = None) -> Verdict:
        """Judge every replica by its energies, as a chip in continuous time is judged."""
        energies, config = np.stack(self.energies, 1), self.config
        train, gammas = len(self.training.task.train.x), self.training.replicas.gamma
        steps = np.arange(energies.shape[1])
        judged = judge(
            steps.astype(float),
            energies,
            np.where(self.diverged, self.steps, np.nan),
            accuracy,
            lyapunov=config.learning.optimizer == "sgd",
            settled=self.window.converged,
            ringing=self.window.ringing,
            ends=self.steps,
        )
        dt = np.asarray([Pace(config, train, gamma).dt for gamma in gammas])
        settled, diverged = judged.settled_at * dt, judged.diverged_at * dt
        return replace(judged, settled_at=settled, diverged_at=diverged)
