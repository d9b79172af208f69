"""Training of one language model by one rule from one seed, with early stopping.

Every so many windows the dev perplexity is measured; the weights with the lowest are kept, and
their test perplexity is the result. Weights follow AdamW, states plain gradient descent on F_KL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from experiments.language_questions import Questions, clamps, conditional, masked, perplexity
from experiments.language_text import Text, Tokens, windows
from pcsim.architectures.fields import Count
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.errors import ConfigError
from pcsim.frozen import Frozen, Positive
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import ORDER_KEY, Parameters, generator, initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable
from pcsim.training import check_device

HIDING_KEY = 9
"""Spawn key of the streams that choose hidden tokens."""
DEV, TEST = 1 << 20, 1 << 21
"""What stands in their key in place of the epoch; the same for all rules and seeds."""


class Method(Frozen):
    """One rule with its hyper-parameters."""

    name: Literal["BP", "PC", "iPC"]
    batch: Count
    alpha: Positive
    layer_norm: bool
    T: Count = 1
    gamma: Positive = 1.0
    discount: Positive = 1.0


class Setting(Frozen):
    """Everything that can vary."""

    model: Literal["masked", "conditional"]
    text: Text
    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    epochs: Count
    check_windows: Count
    """Training windows between two measurements of the dev perplexity."""
    patience: Count
    """Measurements without a new best after which training stops."""
    blocks: Count = 2
    heads: Count = 1
    features: Count = 128
    intermediate: Count = 512
    share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Share of the tokens that the masked model hides."""
    weight_decay: float = 0.01
    device: str = "cpu"

    def network(self, layer_norm: bool) -> Network:
        """Return the network of a method."""
        return Network.transformer(
            vocabulary=self.text.vocabulary,
            positions=self.text.positions,
            features=self.features,
            blocks=self.blocks,
            heads=self.heads,
            intermediate=self.intermediate,
            causal=self.model == "conditional",
            layer_norm=layer_norm,
        )

    def ask(self, tokens: Tokens, *key: int) -> Questions:
        """Return the questions of some windows; `key` says which tokens are hidden."""
        if self.model == "conditional":
            return conditional(tokens)
        return masked(tokens, self.share, generator(key[0], HIDING_KEY, *key[1:]))

    def train_windows(self) -> Tokens:
        """Return as many windows as fill whole batches of every method: equal budgets."""
        batches = [method.batch for method in self.methods]
        largest = max(batches)
        if self.check_windows % largest or any(largest % batch for batch in batches):
            raise ConfigError(
                f"Setting.methods: batches of {batches} windows must divide the largest of them, "
                f"and that must divide check_windows = {self.check_windows}; else the methods "
                "would see different numbers of windows"
            )
        found = windows(self.text).train
        whole = len(found) // largest * largest
        if whole == 0:
            raise ConfigError(
                f"Setting.methods: {len(found)} training windows do not fill one batch of {largest}"
            )
        return found[:whole]


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


def batches(setting: Setting, method: Method, seed: int) -> Iterator[Questions]:
    """Go through all epochs; order and hidden tokens belong to (seed, epoch), not to the method."""
    tokens = setting.train_windows()
    for epoch in range(setting.epochs):
        asked = setting.ask(tokens, seed, epoch)
        order = generator(seed, ORDER_KEY, epoch).permutation(len(asked))
        for start in range(0, len(order), method.batch):
            yield asked.at(order[start : start + method.batch])


def checks(setting: Setting) -> list[int]:
    """Return after how many windows the dev perplexity is measured: start, on the way, end."""
    total = setting.epochs * len(setting.train_windows())
    return sorted({*range(0, total, setting.check_windows), total})


def train(setting: Setting, method: Method, seed: int) -> Result:
    """Train until the last epoch, or until the dev perplexity has stopped falling."""
    check_device(setting.device)
    text = windows(setting.text)
    network = setting.network(method.layer_norm)
    params = initial_parameters(network, [seed], torch.float32, setting.device)
    rule = rule_of(method, network, params, setting.weight_decay)
    dev, test = (setting.ask(part, 0, key) for part, key in ((text.dev, DEV), (text.test, TEST)))
    due, watch, seen = checks(setting), Watch(setting.patience), 0
    watch.note(perplexity(network, params, dev), params.flat)
    for asked in batches(setting, method, seed):
        rule.batch(clamps(network, asked, params.flat))
        seen += len(asked)
        if seen == due[len(watch.curve)]:
            watch.note(perplexity(network, params, dev), params.flat)
            if watch.stopped:
                break
    assert watch.weights is not None
    best = Parameters(network, watch.weights)
    curve = np.full(len(due), np.nan)
    curve[: len(watch.curve)] = watch.curve
    variables = {
        "dev_perplexity": Variable(("windows",), curve, {"units": "1"}),
        "test_perplexity": Variable((), np.array(perplexity(network, best, test)), {"units": "1"}),
        "best_windows": Variable((), np.array(due[watch.best_at]), {"units": "1"}),
    }
    return Result(variables, {"windows": np.array(due)}, {"data_origin": text.origin})
