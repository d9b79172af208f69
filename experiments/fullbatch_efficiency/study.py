"""How far does each rule come with the same number of non-parallel matrix products?

`pcsim experiment fullbatch_efficiency` trains small classifiers on 250 images of FashionMNIST, all
in one batch, by BP, PC and iPC. Training loss (squared error of the feed-forward pass) and test
error are recorded over SMMs: groups of matrix products that can be done at once, as counted while
they happen (`pcsim.kernels.counter`). The paper's claim (its Fig. 2, right): in all cases iPC
converges with the fewest.

iPC follows the paper's algorithm: states start at the feed-forward pass once and are never reset.
PC resets its states before each update. The paper does not name its optimiser: Adam, and SGD
summed over the batch, are both run.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pcsim import datasets, metrics
from pcsim.backends.backprop import Backprop
from pcsim.backends.discrete import Discrete
from pcsim.config import Schedule
from pcsim.frozen import Frozen
from pcsim.kernels.counter import Counter
from pcsim.kernels.feedforward import outputs
from pcsim.kernels.optim import Optimizer, OptimizerSpec
from pcsim.kernels.parameters import Parameters, initial_parameters
from pcsim.network import Network
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from . import report

Rate = tuple[Literal["sgd", "adam"], float]


class Setting(Frozen):
    """What is trained, on what, and for how many SMMs."""

    data: str = "fashion_mnist"
    images: int = 250
    test_images: int = 10_000
    depths: tuple[int, ...] = (3, 4, 6)
    """L: weight matrices; the paper's main figure has 4."""
    hidden: int = 64
    gamma: float = 0.5
    pc_steps: tuple[int, ...] = (8, 16)
    """T of PC: inference steps before each update."""
    rates: tuple[Rate, ...] = (("adam", 1e-4), ("adam", 1e-3), ("sgd", 1e-4), ("sgd", 3e-5))
    """Optimiser and α; the first one is judged (the paper: α = 1e-4, no optimiser named)."""
    smms: int
    """SMMs that each rule may use."""
    points: int = 40
    """Measurements on the way."""
    seeds: tuple[int, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        """The contestants as a legend names them."""
        return ("BP", "iPC", *(f"PC, T = {T}" for T in self.pc_steps))


SCALES = {
    "small": Setting(smms=2000, points=20, seeds=(0, 1, 2), test_images=1000),
    "paper": Setting(
        smms=20_000,
        seeds=(0, 1, 2, 3, 4),
        rates=(("adam", 1e-4), ("adam", 3e-4), ("adam", 1e-3), ("sgd", 1e-4), ("sgd", 3e-5)),
        points=100,
    ),
}


def trainer(
    network: Network, params: Parameters, rule: str, rate: Rate, gamma: float, counter: Counter
) -> Backprop | Discrete:
    """Return what makes one weight update (iPC, BP) or one update after T steps (PC) per batch."""
    name, alpha = rate
    optimizer = Optimizer(OptimizerSpec(name), params, alpha, in_place=rule != "BP")
    if rule == "BP":
        return Backprop(network, params, optimizer, counter=counter)
    # Every product of the text is made and counted: no shortcut for what is known.
    if rule == "iPC":
        schedule = Schedule(rule="ipc", T=1, gamma=gamma, init="carry", fast=False)
    else:
        schedule = Schedule(rule="pc", T=int(rule.split("=")[1]), gamma=gamma, fast=False)
    return Discrete(network, params, schedule, optimizer, counter=counter)


def train(setting: Setting, depth: int, rule: str, rate: Rate, images: list[Tensor]) -> Result:
    """Train one rule, all seeds at once; return loss and test error (seed, point) over SMMs."""
    x, y, x_test, y_test = images
    classes = int(max(y.max(), y_test.max())) + 1
    network = Network.mlp([x.shape[1], *[setting.hidden] * (depth - 1), classes])
    params = initial_parameters(network, list(setting.seeds), torch.float32)
    counter = Counter()
    run = trainer(network, params, rule, rate, setting.gamma, counter)
    target = torch.nn.functional.one_hot(y, classes).to(x)
    clamps = [target[None], *[None] * (depth - 1), x[None]]
    if rule == "BP":  # autograd wants the replica axis spelt out
        clamps = [c if c is None else c.expand(params.replicas, -1, -1) for c in clamps]
    rows: dict[str, list[Any]] = {"smm": [], "loss": [], "test_error": []}
    for budget in np.linspace(0, setting.smms, setting.points + 1):
        while counter.smms < budget:
            run.batch(clamps)
        scores = outputs(network, params, x_test).numpy()
        loss = 0.5 * (outputs(network, params, x) - target).square().sum((1, 2)) / len(x)
        rows["smm"].append(counter.smms)
        rows["loss"].append(loss.double().numpy())
        rows["test_error"].append(1 - metrics.accuracy(scores, y_test.numpy()))
    variables = {
        "smm": Variable(("point",), np.array(rows["smm"])),
        "loss": Variable(("seed", "point"), np.stack(rows["loss"], 1)),
        "test_error": Variable(("seed", "point"), np.stack(rows["test_error"], 1)),
        "updates": Variable((), np.array(len(counter.updates))),
    }
    return Result(variables, {"seed": np.array(setting.seeds)})


def sgd_limit(x: Tensor, gamma: float) -> float:
    """Return an α above which iPC with SGD, summed over the batch, cannot be stable.

    Errors of a linear network obey ε ← (I − γAAᵀ − αK)ε, so λ_max(γAAᵀ + αK) must stay below 2.
    The block of the layer next to the input alone has γ + α λ_max(X Xᵀ + 1 1ᵀ).
    """
    gram = x.double() @ x.double().T + 1
    return (2 - gamma) / float(torch.linalg.eigvalsh(gram)[-1])


def load(setting: Setting) -> tuple[list[Tensor], str]:
    """Return training and test images and labels, and where they came from."""
    data = datasets.load(setting.data)
    parts = (
        data.x_train[: setting.images],
        data.y_train[: setting.images],
        data.x_test[: setting.test_images],
        data.y_test[: setting.test_images],
    )
    flat = [torch.as_tensor(p.reshape(len(p), -1) if p.ndim > 1 else p).clone() for p in parts]
    return flat, json.dumps(dict(data.origin))


SHOWN = scaled.Shown(report.tables, {"": report.draw})
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    run = scaled.begin("fullbatch_efficiency", SCALES, scale, out)
    setting = SCALES[scale]
    images, origin = load(setting)
    axes = (setting.depths, setting.rules, setting.rates)
    names = {cell: _name(*cell) for cell in product(*axes)}
    order = sorted(names, key=lambda cell: -cell[0])  # deep networks take longest
    measures = {names[cell]: partial(train, setting, *cell, images) for cell in order}
    found = run.collect(measures, processes=keeping.PROCESSES)
    dims = ("depth", "rule", "rate")
    shape = tuple(map(len, axes))
    variables = {}
    for name, about in report.ABOUT.items():
        rows = [found[cell][name] for cell in names.values()]
        inner = found[names[next(iter(names))]].variables[name].dims
        values = np.reshape(rows, (*shape, *rows[0].shape))
        variables[name] = Variable((*dims, *inner), values, {"long_name": about})
    coords: dict[str, Any] = {
        "depth": np.array(setting.depths),
        "rule": np.array(setting.rules),
        "rate": np.array([f"{name} {alpha:g}" for name, alpha in setting.rates]),
        "seed": np.array(setting.seeds),
    }
    run.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data=setting.data,
        images=setting.images,
        data_origin=origin,
        sgd_limit=sgd_limit(images[0], setting.gamma),
    )


def _name(depth: int, rule: str, rate: Rate) -> str:
    short = rule.replace(", T = ", "")
    return f"L{depth}_{short}_{rate[0]}{rate[1]:g}"
