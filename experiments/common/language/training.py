"""Training of one language model by one rule from one seed, with early stopping.

Every so many windows the dev perplexity is measured; the weights with the lowest are kept, and
their test perplexity is the result. Weights follow AdamW, states plain gradient descent on F_KL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pcsim import store
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.runner import checkpoint
from pcsim.runner.resumable import Resumable
from pcsim.runner.training import check_device
from pcsim.store import Result, Variable

from .questions import clamps, perplexity
from .setting import DEV, TEST, Method, Setting, batches, checks
from .text import windows


@dataclass
class Watch:
    """Dev perplexities so far, and the weights with the lowest."""

    patience: int
    curve: list[float] = field(default_factory=list)
    best: float = float("inf")
    best_at: int = -1
    weights: Tensor | None = None

    def note(self, value: float, flat: Tensor) -> None:
        """Take note of one more measurement."""
        if self.weights is None or value < self.best:
            self.best, self.best_at, self.weights = value, len(self.curve), flat.clone()
        self.curve.append(value)

    @property
    def stopped(self) -> bool:
        """Whether to go on is useless: no new best for long, or no number any more."""
        stale = len(self.curve) - 1 - self.best_at >= self.patience
        return stale or not np.isfinite(self.curve[-1])


def rule_of(
    method: Method, network: Network, params: Parameters, decay: float
) -> Backprop | Discrete:
    """Return what trains on a batch."""
    spec = OptimizerSpec("adamw")
    optimizer = Optimizer(spec, params, method.alpha, decay, in_place=False)
    if method.name == "BP":
        return Backprop(network, params, optimizer)
    rule: Literal["pc", "ipc"] = "pc" if method.name == "PC" else "ipc"
    schedule = Schedule(rule=rule, T=method.T, gamma=method.gamma, discount=method.discount)
    return Discrete(network, params, schedule, optimizer)


class Run(Resumable):
    """One model in training. Questions belong to (seed, epoch): no generator is to be kept."""

    def __init__(self, setting: Setting, method: Method, seed: int) -> None:
        super().__init__()
        check_device(setting.device)
        self.setting, self.method, self.seed = setting, method, seed
        self.network = setting.network(method.layer_norm)
        self.params = initial_parameters(self.network, [seed], torch.float32, setting.device)
        self.rule = rule_of(method, self.network, self.params, setting.weight_decay)
        self.due = checks(setting)
        self.watch = Watch(setting.patience)
        self.seen = 0
        self._dev = setting.ask(windows(setting.text).dev, 0, DEV)
        self._name = f"{method.model_dump_json()} {seed} {setting.model_dump_json()}"

    def proceed(self) -> None:
        """Go on to the last epoch, or until the dev perplexity has stopped falling."""
        if not self.watch.curve:
            self._measure()
        done = self.seen // self.method.batch
        for asked in islice(batches(self.setting, self.method, self.seed), done, None):
            if self.watch.stopped:
                break
            self.between_steps = False
            self.rule.batch(clamps(self.network, asked, self.params.flat))
            self.seen += len(asked)
            if self.seen == self.due[len(self.watch.curve)]:
                self._measure()
            self.pause()

    def reached(self) -> str:
        """Say how far the training is."""
        return f"{self.seen} windows"

    def _measure(self) -> None:
        self.watch.note(perplexity(self.network, self.params, self._dev), self.params.flat)

    def result(self) -> Result:
        """Return the dev curve, and the test perplexity of the best weights."""
        text, watch = windows(self.setting.text), self.watch
        assert watch.weights is not None
        best = Parameters(self.network, watch.weights)
        test = perplexity(self.network, best, self.setting.ask(text.test, 0, TEST))
        curve = np.full(len(self.due), np.nan)
        curve[: len(watch.curve)] = watch.curve
        variables = {
            "dev_perplexity": Variable(("windows",), curve, {"units": "1"}),
            "test_perplexity": Variable((), np.array(test), {"units": "1"}),
            "best_windows": Variable((), np.array(self.due[watch.best_at]), {"units": "1"}),
        }
        return Result(variables, {"windows": np.array(self.due)}, {"data_origin": text.origin})

    def checkpoint(self) -> Result:
        """Return all that is needed to go on as if nothing had happened."""
        assert self.watch.weights is not None
        tensors = {
            "flat": self.params.flat,
            "best": self.watch.weights,
            "curve": torch.tensor(self.watch.curve, dtype=torch.float64),
            **self.rule.optimizer.state(),
        }
        return checkpoint.packed(
            tensors,
            run=self._name,
            seen=self.seen,
            best_at=self.watch.best_at,
            seconds=self.seconds,
        )

    def own(self, path: Path) -> Result | None:
        """Return the checkpoint at a path, if this very run has written it."""
        saved = store.load(path) if path.exists() else None
        return saved if saved and saved.attrs.get("run") == self._name else None

    def restore(self, saved: Result) -> None:
        """Go on from a checkpoint."""
        tensors = {name: torch.as_tensor(v.values) for name, v in saved.variables.items()}
        self.params.flat.copy_(tensors["flat"])
        self.rule.optimizer.restore(tensors)
        self.seen = int(saved.attrs["seen"])
        best_at, curve = int(saved.attrs["best_at"]), tensors["curve"].tolist()
        weights = tensors["best"].to(self.params.flat)
        self.watch = Watch(self.setting.patience, curve, curve[best_at], best_at, weights)


def train(setting: Setting, method: Method, seed: int, out: Path | None = None) -> Result:
    """Train one model; with `out`, a checkpoint beside it is kept up to date, and used if there."""
    run = Run(setting, method, seed)
    run.run(out=out)
    return run.result()
