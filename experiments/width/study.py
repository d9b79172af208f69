"""Does a convolutional network get better with width, by BP and by iPC?

`pcsim experiment width` trains, on CIFAR-10, three convolutions of 8C, 16C and 8C channels, each
followed by max pooling, and a dense layer of 128C units, for several widths C. The paper gives
neither kernel sizes, nor optimiser, batch size, epochs, T or learning rates: 3×3 with stride 1,
pools of 2×2, Adam and T = 8 here. Learning rate, γ and epoch are chosen by held-out samples.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from pcsim.frozen import Frozen
from pcsim.store import Result

from ..common import accuracies, image_study, image_training, scaled
from ..common.image_training import DECIDE, PAPER, SMALL, Budget, Task
from . import report

RULES = ("BP", "iPC")


class Setting(Frozen):
    """Everything that can vary."""

    data: str = "cifar10"
    widths: tuple[int, ...]
    """The factor C."""
    rules: tuple[str, ...] = RULES
    budget: Budget


SCALES = {
    "small": Setting(
        widths=(1, 2, 4),
        budget=SMALL.model_copy(update={"epochs": 3}),
    ),
    "decide": Setting(
        widths=(1, 4),
        rules=("BP",),
        budget=DECIDE.model_copy(update={"limit": 10_000, "epochs": 6}),
    ),
    "paper": Setting(
        widths=(1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 20),
        budget=PAPER.model_copy(update={"epochs": 40, "weight_decays": (0.0,)}),
    ),
}
"""`small`: 2048 of 50 000 samples, widths up to 4. `decide`: 8000, C = 1 and 4, BP alone, which
takes minutes where iPC takes hours. `paper` is for a GPU."""


def network_of(width: int) -> dict[str, Any]:
    """Return the section `network` for one factor C."""
    return {
        "kind": "cnn",
        "channels": (8 * width, 16 * width, 8 * width),
        "stride": 1,
        "pool": "max",
        "dense": (128 * width,),
    }


def task_of(setting: Setting, width: int) -> Task:
    """Return what is trained at one width."""
    return Task(setting.data, network_of(width))


SHOWN = scaled.Shown(report.tables, {"": report.draw}, accuracies.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    begun = scaled.begin("width", SCALES, scale, out)
    setting = SCALES[scale]
    variables, coords, cells = image_study.train(
        begun, {"width": setting.widths}, setting.rules, setting.budget, partial(task_of, setting)
    )
    begun.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data_origin=image_training.origin(cells, setting.widths[0]),
        train_samples=image_training.train_samples(cells, setting.widths[0]),
    )
