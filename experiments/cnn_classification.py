"""Do PC and iPC train a convolutional network as well as backpropagation does?

`pcsim experiment cnn_classification` trains the paper's CNN (64-128-64 channels, two dense layers)
by BP, PC and iPC on FashionMNIST, SVHN and CIFAR-10. All rules see the same samples in the same
number of epochs, over the same learning rates and seeds; the learning rate and the epoch are chosen
by held-out training samples, the accuracy is that of the test set. The paper gives neither the
optimiser, nor batch size, epochs, T or kernel sizes: Adam, 128, T = 8 and 3×3 with stride 2 here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import cnn_report as report
from experiments import study
from pcsim import config, datasets
from pcsim.frozen import Frozen
from pcsim.run import run
from pcsim.store import Result, Variable

RULES = {"BP": "bp", "PC": "pc", "iPC": "ipc"}
STAND_IN_ALLOWED = ("svhn",)
"""Sets of which another copy than the published file will do; the result says which was read."""


class Setting(Frozen):
    """Everything that can vary."""

    data: tuple[str, ...] = ("fashion_mnist", "svhn", "cifar10")
    limit: int
    """Training samples that are used, held-out ones included; 0 is all."""
    validation: int
    """Held-out training samples, which choose learning rate and epoch."""
    epochs: int
    alphas: tuple[float, ...]
    seeds: tuple[int, ...]
    batch: int = 128
    T: int = 8
    gamma: float = 0.5
    channels: tuple[int, ...] = (64, 128, 64)
    dense: int = 128
    device: str = "cpu"


SCALES = {
    "small": Setting(limit=2548, validation=500, epochs=6, alphas=(3e-4, 1e-3), seeds=(0, 1)),
    "paper": Setting(
        limit=0,
        validation=5000,
        epochs=50,
        alphas=(1e-6, 5e-6, 1e-5, 5e-5, 1e-4, 5e-4, 1e-3, 1e-2),
        seeds=(0, 1, 2, 3, 4),
        device="cuda",
    ),
}
"""`small`: 2048 of 50 000 and more samples, 6 epochs. `paper` is for a GPU."""


def settings_of(name: str, rule: str, setting: Setting) -> config.Config:
    """Return the run of one data set and one rule: all learning rates and seeds at once."""
    allowed = name in STAND_IN_ALLOWED
    data = datasets.load(name, unverified=allowed)
    sections: Mapping[str, Any] = {
        "network": {
            "kind": "cnn",
            "image": data.shape,
            "channels": setting.channels,
            "dense": (setting.dense,),
            "classes": data.classes,
        },
        "schedule": {"rule": RULES[rule], "T": setting.T, "gamma": setting.gamma},
        "learning": {
            "optimizer": "adam",
            "batch": setting.batch,
            "epochs": setting.epochs,
            "reduction": "sum",
        },
        "data": {
            "name": name,
            "limit": setting.limit,
            "validation": setting.validation,
            "centre": True,
            "unverified": allowed,
        },
        "grid": {"alpha": setting.alphas},
        "run": {"seeds": setting.seeds, "device": setting.device},
    }
    return config.parse(sections)


def measure(name: str, rule: str, setting: Setting) -> Result:
    """Train one rule on one data set."""
    found = run(settings_of(name, rule, setting))
    wanted = ("train_energy", "validation_accuracy", "test_accuracy")
    return Result({n: found.variables[n] for n in wanted}, found.coords, found.attrs)


def gathered(cells: Mapping[str, Result], setting: Setting) -> tuple[dict[str, Variable], Any]:
    """Join the cells along the axes data and rule."""
    dims = ("data", "rule", "alpha", "seed", "epoch")
    variables = {}
    for n in ("train_energy", "validation_accuracy", "test_accuracy"):
        rows = [[cells[f"{d}_{r}"][n] for r in RULES] for d in setting.data]
        variables[n] = Variable(dims, np.asarray(rows), {"units": "1"})
    coords = {
        "data": np.array(setting.data),
        "rule": np.array(list(RULES)),
        "alpha": np.array(setting.alphas),
        "seed": np.array(setting.seeds),
        "epoch": np.arange(1, setting.epochs + 1),
    }
    return variables, coords


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    begun = study.begin("cnn_classification", SCALES, scale, out)
    setting = SCALES[scale]
    order = sorted(RULES, key=["iPC", "PC", "BP"].index)  # long cells first
    measures = {
        f"{name}_{rule}": partial(measure, name, rule, setting)
        for rule in order
        for name in setting.data
    }
    processes = study.PROCESSES if setting.device == "cpu" else 1
    cells = begun.collect(measures, processes)
    variables, coords = gathered(cells, setting)
    claims = report.judge(Result(variables, coords))
    origin = {name: str(cells[f"{name}_BP"].attrs["data_origin"]) for name in setting.data}
    begun.publish(
        variables,
        coords,
        claims,
        report.tables,
        {"": report.draw},
        data_origin=json.dumps(origin),
    )
