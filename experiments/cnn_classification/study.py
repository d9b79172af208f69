"""Do PC and iPC train a convolutional network as well as backpropagation does?

`pcsim experiment cnn_classification` trains the paper's CNN (64-128-64 channels, two dense layers)
by BP, PC and iPC on FashionMNIST, SVHN and CIFAR-10. All rules see the same samples in the same
number of epochs, over the same grid and seeds (PC and iPC also over γ, which BP does not have); the
point of the grid and the epoch are chosen by held-out training samples, the accuracy is that of the
test set. The paper gives neither the optimiser, nor batch size, epochs, T or kernel sizes: Adam,
T = 8 and 3×3 with stride 2 here.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from pcsim.frozen import Frozen
from pcsim.store import Result

from ..common import accuracies, image_study, image_training, scaled
from ..common.image_training import DECIDE, PAPER, RULES, SMALL, Budget, Search, Task
from . import report


class Setting(Frozen):
    """Everything that can vary."""

    data: tuple[str, ...] = ("fashion_mnist", "svhn", "cifar10")
    budget: Budget
    channels: tuple[int, ...] = (64, 128, 64)
    dense: int = 128


SCALES = {
    "small": Setting(budget=SMALL),
    "decide": Setting(
        data=("svhn", "cifar10"),
        budget=DECIDE.model_copy(
            update={
                "limit": 10_000,
                "epochs": 6,
                "batch": 32,
                "search": Search(limit=6_000, validation=2_000, epochs=2),
            }
        ),
    ),
    "paper": Setting(budget=PAPER),
}
"""`small`: 2048 of 50 000 and more samples, 4 epochs. `decide`: 8000, 6 epochs, three seeds
at points that a search chooses, the sets of the paper's table. `paper` is for a GPU."""


def task_of(setting: Setting, name: str) -> Task:
    """Return what is trained on one data set."""
    network = {"kind": "cnn", "channels": setting.channels, "dense": (setting.dense,)}
    return Task(name, network)


SHOWN = scaled.Shown(report.tables, {"": report.draw}, accuracies.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    begun = scaled.begin("cnn_classification", SCALES, scale, out)
    setting, rules = SCALES[scale], list(RULES)
    variables, coords, cells = image_study.train(
        begun, {"data": setting.data}, rules, setting.budget, partial(task_of, setting)
    )
    origin = {name: image_training.origin(cells, name) for name in setting.data}
    begun.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data_origin=json.dumps(origin),
    )
