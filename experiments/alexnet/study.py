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

from ..common import image_training, scaled
from ..common.image_training import DECIDE, PAPER, RULES, SMALL, Budget, Point
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
    "decide": Setting(
        budget=DECIDE.model_copy(
            update={"alphas": (1e-5, 1e-4, 1e-3, 1e-2), "gammas": PAPER.gammas}
        ),
        channels=NARROW,
        dense=(256, 256),
    ),
    "paper": Setting(budget=PAPER),
}
"""`small`: 2048 of 50 000 samples, a narrow network, 9 points. `decide`: 20 000 samples, 12 points.
`paper` is for a GPU."""


def measure(setting: Setting, augmentation: str, rule: str, point: Point) -> Result:
    """Train one rule at one point of the grid."""
    network = {"kind": "alexnet", "channels": setting.channels, "dense": setting.dense}
    augment = augmentation == "augmented"
    return image_training.measure_curves(
        setting.data, network, rule, point, setting.budget, augment
    )


SHOWN = scaled.Shown(report.tables, {"": report.draw})
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    library.part("geometry.transform", "alexnet")  # before hours of training, not after
    begun = scaled.begin("alexnet", SCALES, scale, out)
    setting, rules = SCALES[scale], list(RULES)
    measures = image_training.cells(AUGMENTATIONS, rules, setting.budget, partial(measure, setting))
    cells = begun.collect(measures, setting.budget.processes)
    variables, coords = image_training.gathered(
        cells, {"augmentation": AUGMENTATIONS}, rules, setting.budget
    )
    begun.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data_origin=image_training.origin(cells, AUGMENTATIONS[0]),
    )
