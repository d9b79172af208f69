"""How do PC and iPC scale to AlexNet, and at how many points of a grid do they converge?

`pcsim experiment alexnet` trains AlexNet for 32×32 pictures (no dropout) on CIFAR-10 by BP, PC and
iPC, without and with augmentation (training pictures mirrored and shifted by kornia, see
`pcsim.vision.augmentation`). The grid is that of the paper: learning rate × weight decay × γ. A
point has converged if its best test accuracy is less than 10 percentage points below the best of
the same rule (the paper's definition). The paper gives neither its variant of AlexNet, nor the
kind of augmentation, optimiser, batch size, epochs or T.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pcsim.frozen import Frozen
from pcsim.store import Result
from pcsim.vision import library

from ..common import accuracies, image_study, image_training, scaled
from ..common.image_training import DECIDE, PAPER, RULES, SMALL, Budget, Task
from . import report

AUGMENTATIONS = ("none", "augmented")


class Setting(Frozen):
    """Everything that can vary."""

    data: str = "cifar10"
    budget: Budget
    channels: tuple[int, int, int, int, int] = (64, 192, 384, 256, 256)
    dense: tuple[int, ...] = (4096, 4096)


NARROW: tuple[int, int, int, int, int] = (32, 64, 96, 64, 64)
"""Channels of the AlexNet that two cores can train."""

SCALES = {
    "small": Setting(
        budget=SMALL.model_copy(update={"alphas": (1e-4, 1e-3, 1e-2), "gammas": PAPER.gammas}),
        channels=NARROW,
        dense=(256, 256),
    ),
    "decide": Setting(budget=DECIDE, channels=NARROW, dense=(256, 256)),
    "paper": Setting(budget=PAPER),
}
"""`small`: 2048 of 50 000 samples, a narrow network, 9 points. `decide`: 18 000
samples at the points that a search chooses, so nothing about the grid.
`paper` is for a GPU."""


def task_of(setting: Setting, augmentation: str) -> Task:
    """Return what is trained with or without augmentation."""
    network = {"kind": "alexnet", "channels": setting.channels, "dense": setting.dense}
    return Task(setting.data, network, augment=augmentation == "augmented")


SHOWN = scaled.Shown(report.tables, {"": report.draw}, accuracies.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    library.part("geometry.transform", "alexnet")  # before hours of training, not after
    begun = scaled.begin("alexnet", SCALES, scale, out)
    setting, rules = SCALES[scale], list(RULES)
    variables, coords, cells = image_study.train(
        begun, {"augmentation": AUGMENTATIONS}, rules, setting.budget, partial(task_of, setting)
    )
    begun.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data_origin=image_training.origin(cells, AUGMENTATIONS[0]),
    )
