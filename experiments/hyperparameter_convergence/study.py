"""On how much of a grid of hyper-parameters does a rule converge?

`pcsim experiment hyperparameter_convergence` trains classifiers by PC and by iPC at every
combination of α (8 values), weight decay (4) and γ (3), and counts the cells that converge in the
paper's sense: best test accuracy within 10 points of the best of the grid. The paper counts 26 of
96 for PC and 88 of 96 for iPC on AlexNet; here the networks are multilayer perceptrons. A `Trial`
names a data set and any network that a configuration can describe, so that others can be added.

The paper trains to convergence, a small scale cannot: cells that are not there yet but still
improve are told from those that have failed, and a verdict they could turn is left open.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pcsim.architectures.choice import NetworkConfig
from pcsim.architectures.mlp import Mlp
from pcsim.config import Config, DataConfig, Grid, Learning, RunConfig, Schedule
from pcsim.frozen import Frozen
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from ..common.training_cells import train
from . import report

RULES: dict[str, Literal["pc", "ipc"]] = {"PC": "pc", "iPC": "ipc"}


class Trial(Frozen):
    """A network and what it is trained on."""

    name: str
    data: str
    network: NetworkConfig


def perceptron(name: str, data: str) -> Trial:
    """Return the paper's fully connected network (two hidden layers of 64) on 28 × 28 images."""
    network = Mlp(sizes=(784, 64, 64, 10), f="leaky_relu")
    return Trial(name=name, data=data, network=network)


class Setting(Frozen):
    """Which networks, which grid, for how long."""

    trials: tuple[Trial, ...]
    alphas: tuple[float, ...] = (1e-6, 3.7e-6, 1.4e-5, 5.2e-5, 1.9e-4, 7.2e-4, 2.7e-3, 1e-2)
    """Eight values from 1e-6 to 1e-2; the paper names the ends only."""
    weight_decays: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    gammas: tuple[float, ...] = (0.1, 0.5, 1.0)
    optimizer: Literal["sgd", "adamw"] = "adamw"
    T: int = 8
    """Inference steps per batch: PC makes one update with them, iPC makes T."""
    batch: int = 128
    limit: int = 0
    """Training images; 0 is all."""
    epochs: int
    """A multiple of T, so that equal numbers of weight updates can be compared."""
    seed: int = 0


MNIST, FASHION = perceptron("MLP, MNIST", "mnist"), perceptron("MLP, FashionMNIST", "fashion_mnist")
SCALES = {
    "small": Setting(trials=(MNIST,), limit=6000, epochs=8),
    "decide": Setting(trials=(MNIST,), weight_decays=(1e-2,), epochs=16),
    "paper": Setting(trials=(MNIST, FASHION), epochs=40),
}


def config_of(setting: Setting, trial: Trial, rule: str, decay: float, gamma: float) -> Config:
    """Return one row of the grid: all α side by side on the replica axis."""
    return Config(
        network=trial.network,
        schedule=Schedule(rule=RULES[rule], T=setting.T, gamma=gamma),
        learning=Learning(
            optimizer=setting.optimizer,
            weight_decay=decay,
            batch=setting.batch,
            epochs=setting.epochs,
        ),
        data=DataConfig(name=trial.data, limit=setting.limit, centre=True),
        run=RunConfig(seeds=(setting.seed,)),
        grid=Grid(alpha=setting.alphas),
    )


SHOWN = scaled.Shown(report.tables, {"": report.draw}, report.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    run = scaled.begin("hyperparameter_convergence", SCALES, scale, out)
    setting = SCALES[scale]
    axes = (setting.trials, tuple(RULES), setting.weight_decays, setting.gammas)
    names = {cell: _name(*cell) for cell in product(*axes)}
    order = sorted(names, key=lambda cell: cell[1] == "PC")  # iPC takes longest
    measures = {names[cell]: partial(train, config_of(setting, *cell)) for cell in order}
    found = run.collect(measures, processes=keeping.PROCESSES)
    dims = ("trial", "rule", "weight_decay", "gamma", "alpha", "epoch")
    variables = {}
    for name, about in report.ABOUT.items():
        # One seed: (alpha, seed, epoch) without the middle axis.
        rows = np.stack([found[cell][name][:, 0] for cell in names.values()])
        values = rows.reshape(*map(len, axes), *rows.shape[1:])
        variables[name] = Variable(dims, values, {"long_name": about})
    coords: dict[str, Any] = {
        "trial": np.array([trial.name for trial in setting.trials]),
        "rule": np.array(list(RULES)),
        "weight_decay": np.array(setting.weight_decays),
        "gamma": np.array(setting.gammas),
        "alpha": np.array(setting.alphas),
        "epoch": np.arange(1, setting.epochs + 1),
    }
    claims = report.judge(Result(variables, coords, {"updates_per_batch": setting.T}))
    run.publish(variables, coords, claims, SHOWN, updates_per_batch=setting.T)


def _name(trial: Trial, rule: str, decay: float, gamma: float) -> str:
    return f"{trial.name.replace(', ', '_')}_{rule}_decay{decay:g}_gamma{gamma:g}"
