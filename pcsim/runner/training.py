"""Training in epochs of mini-batches, for all discrete rules and all replicas at once."""

from __future__ import annotations

import time
from math import cos, pi

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.discrete import Discrete
from pcsim.config import Config
from pcsim.errors import ConfigError
from pcsim.hardware import make_chips
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.runner import checkpoint, memory_need
from pcsim.runner.checkpoint import Progress
from pcsim.runner.readout import Readout
from pcsim.runner.replicas import Replicas
from pcsim.runner.results import training_result
from pcsim.runner.resumable import Resumable
from pcsim.runner.rules import about, rule_for
from pcsim.runner.task import Split, Task
from pcsim.status import Status
from pcsim.store import Result


def make_optimizer(
    config: Config, replicas: Replicas, params: Parameters, batch: int, in_place: bool
) -> Optimizer:
    """Build the optimiser of a configuration; `batch` is the number of samples that are summed."""
    learning, dtype, device = config.learning, params.flat.dtype, config.run.device
    spec = OptimizerSpec(
        learning.optimizer, learning.momentum, learning.betas, learning.eps, learning.decay_bias
    )
    scale = 1.0 if learning.reduction == "sum" else 1.0 / batch
    alpha = replicas.rate("alpha", dtype, device)
    decay = replicas.rate("weight_decay", dtype, device)
    return Optimizer(spec, params, alpha, decay, scale, in_place=in_place)


class Training(Resumable):
    """A population in training: configuration, data, weights, rule."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.network: Network = config.network.build()
        check_device(config.run.device)
        self.replicas = Replicas.of(config)
        self.task = Task.load(config, self.network)
        self.batch_size = config.learning.batch or len(self.task.train.x)
        memory_need.check(config, self.network, self.replicas, self.task, self._steps)
        dtype = getattr(torch, config.run.dtype)
        seeds = self.replicas.each_seed
        self.params = initial_parameters(self.network, seeds, dtype, config.run.device)
        bp = config.schedule.rule == "bp"
        self.optimizer = make_optimizer(
            config,
            self.replicas,
            self.params,
            self.batch_size,
            in_place=not bp and not config.run.automatic,  # a lone run and a grid round alike
        )
        self.alpha = self.optimizer.alpha
        step = config.solver.dt or config.schedule.gamma * config.circuit.tau_x
        self.chips = make_chips(config, self.replicas, step, dtype, config.run.device)
        if self.chips and config.run.engine != "torch":
            self.chips.compile(self._steps)
        self.readout = Readout(self.network, self.chips)
        self.rule, self._reason = rule_for(
            config,
            self.network,
            self.params,
            self.optimizer,
            gamma=self.replicas.rate("gamma", dtype, config.run.device),
            seeds=seeds,
            chips=self.chips,
            steps=self._steps,
        )
        self.progress = Progress()
        self._energy = self.params.flat.new_zeros(len(self.replicas))
        """Energy (replica,) of the epoch that is not finished, summed over its batches."""

    @property
    def _steps(self) -> int:
        """Time steps of the whole training, which may end earlier."""
        if self.config.run.automatic:
            return self.config.convergence.max_steps
        batches = len(self.task.train.x) // self.batch_size
        return self.config.learning.epochs * batches * self.config.schedule.T

    def proceed(self) -> None:
        """Train until the last epoch, or until validation accuracy has stopped improving."""
        while self.progress.epoch < self.config.learning.epochs and not self._stalled():
            self._epoch()
            self.between_steps = True
            self.hold()
            if self._report:
                self._report(self.status())
            self.pause()

    def status(self) -> Status:
        """Say how far the training is: means over the replicas that have not diverged."""
        words = []
        for name, short, unit in (("train_energy", "energy", 1), ("test_accuracy", "test %", 100)):
            row = self.progress.history.get(name, [np.empty(0)])[-1]
            finite = row[np.isfinite(row)]
            if len(row):
                words.append(f"{short} {unit * finite.mean() if len(finite) else np.nan:.4g}")
        total = self.config.learning.epochs
        return Status(self.progress.epoch, total, "epochs", ", ".join(words))

    def reached(self) -> str:
        """Say how far the run is."""
        return f"{self.progress.epoch} of {self.config.learning.epochs} epochs"

    def checkpoint(self) -> Result:
        """Return a copy of the training as it stands."""
        return checkpoint.snapshot(self.config, self.tensors(), self.progress)

    def about(self) -> dict[str, str | int]:
        """Return who took the steps, and why."""
        return about(self.rule, self._reason)

    def result(self) -> Result:
        """Return the recorded curves and final weights."""
        return training_result(self)

    def tensors(self) -> dict[str, Tensor | np.ndarray]:
        """Return all that goes on from batch to batch, for a checkpoint."""
        carried = self.rule.carried if isinstance(self.rule, Discrete) else {}
        states = {f"state{index}": x for index, x in carried.items()}
        on_chip = checkpoint.under("chip", self.chips.state() if self.chips else {})
        own = {"flat": self.params.flat, "epoch_energy": self._energy}
        return {**own, **self.optimizer.state(), **states, **on_chip}

    def restore(self, saved: Result) -> None:
        """Go on from a checkpoint."""
        tensors, self.progress = checkpoint.unpacked(saved)
        self._copy = saved
        self.params.flat.copy_(tensors["flat"])
        self._energy = tensors["epoch_energy"].to(self.params.flat.device)
        self.optimizer.restore(tensors)
        if self.chips:
            self.chips.restore(checkpoint.part_of(tensors, "chip"))
        if isinstance(self.rule, Discrete):
            self.rule.batches = self.progress.batches
            self.rule.carried = {
                int(name.removeprefix("state")): x.to(self.params.flat)
                for name, x in tensors.items()
                if name.startswith("state")
            }

    def _epoch(self) -> None:
        learning, epoch = self.config.learning, self.progress.epoch
        if learning.anneal == "cosine":
            self.optimizer.alpha = self.alpha * (0.5 * (1 + cos(pi * epoch / learning.epochs)))
        progress, start = self.progress, time.monotonic()
        for index, clamps in enumerate(self.task.batches(self.replicas, epoch, learning.batch)):
            if index < progress.batch:
                continue
            if index:
                self.pause()
            self.between_steps = False
            self.rule.batch(clamps)
            self._energy = self._energy + self.rule.energy()
            progress.batch += 1
            progress.batches += 1
            progress.seconds, start = progress.seconds + time.monotonic() - start, time.monotonic()
        mean = (self._energy / (progress.batch * self.batch_size)).double().cpu().numpy()
        self._energy = torch.zeros_like(self._energy)
        progress.record(train_energy=mean)
        if self.config.data.mode == "supervised":
            self.progress.record(test_accuracy=self.accuracy(self.task.test))
            if self.task.validation:
                self.progress.record(validation_accuracy=self.accuracy(self.task.validation))
        progress.epoch, progress.batch = epoch + 1, 0

    def accuracy(self, split: Split) -> np.ndarray:
        """Return the fraction right (replica,) by a feed-forward pass."""
        return self.task.accuracy(self.readout, self.params, split)

    def _stalled(self) -> bool:
        patience, history = self.config.learning.patience, self.progress.history
        if not patience or len(history.get("validation_accuracy", ())) <= patience:
            return False
        curve = np.stack(history["validation_accuracy"])
        return bool((curve[-patience:].max(0) <= curve[:-patience].max(0)).all())


def check_device(device: str) -> None:
    """Refuse a device that this torch does not have."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"run.device: {device!r} cannot be used here ({reason})") from None
