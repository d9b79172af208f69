"""Does a network trained by iPC know better than one trained by BP when it may be wrong?

`pcsim experiment robustness` trains AlexNet on CIFAR-10 by BP and iPC, then corrupts the test
pictures (`pcsim.vision.corruption`: six kinds at five levels) and measures accuracy and adaptive
calibration error (AdaECE, 15 bins of equal count) at each. The weights are those of the epoch at
which most held-out samples were right. The output has the categorical energy (cross-entropy), for
both rules: its softmax is the probability that calibration is about. After squared error it would
not be: a perfect one-hot output has softmax 0.23. The paper does not say which it used.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pcsim import datasets, metrics
from pcsim.frozen import Frozen
from pcsim.kernels.parameters import Parameters
from pcsim.runner.training import Training
from pcsim.store import Result, Variable
from pcsim.vision import library
from pcsim.vision.corruption import CORRUPTIONS, MAX_LEVEL, corrupt

from ..alexnet.study import NARROW
from ..common import image_study, image_training, scaled
from ..common.image_training import DECIDE, PAPER, SMALL, Budget, Task
from . import report

RULES = ("BP", "iPC")
LEVELS = tuple(range(MAX_LEVEL + 1))
"""Level 0 is the test set itself, the same for all kinds."""


class Setting(Frozen):
    """Everything that can vary."""

    data: str = "cifar10"
    budget: Budget
    test: int = 0
    """Test pictures that are corrupted, the first ones; 0 is all."""
    bins: int = 15
    channels: tuple[int, int, int, int, int] = (64, 192, 384, 256, 256)
    dense: tuple[int, ...] = (4096, 4096)


SCALES = {
    "small": Setting(
        budget=SMALL.model_copy(update={"epochs": 5, "seeds": (0, 1, 2, 3)}),
        test=2000,
        channels=NARROW,
        dense=(256, 256),
    ),
    "decide": Setting(
        budget=DECIDE.model_copy(
            update={"limit": 22_000, "epochs": 6, "seeds": (0, 1, 2, 3), "test": 5000}
        ),
        test=5000,
        channels=NARROW,
        dense=(256, 256),
    ),
    "paper": Setting(budget=PAPER.model_copy(update={"weight_decays": (0.0,)})),
}
"""`small`: 2048 of 50 000 samples, a narrow network, 2000 corrupted test pictures. `decide`: 20 000
samples, four seeds, 6 epochs, 5000 test pictures. `paper` is for a GPU."""


def network_of(setting: Setting) -> dict[str, Any]:
    """Return the section `network`."""
    return {
        "kind": "alexnet",
        "channels": setting.channels,
        "dense": setting.dense,
        "output": {"kind": "categorical"},
    }


def task_of(setting: Setting, data: str) -> Task:
    """Return what is trained."""
    return Task(data, network_of(setting))


def tested(setting: Setting, training: Training, weights: Parameters) -> dict[str, Variable]:
    """Return accuracy and AdaECE (seed, corruption, level) of one set of weights."""
    found = datasets.load(setting.data)
    count = setting.test or len(found.x_test)
    pictures, labels = torch.as_tensor(found.x_test[:count]), found.y_test[:count]
    shape = (len(training.replicas), len(CORRUPTIONS), len(LEVELS))
    accuracy, error = np.empty(shape), np.empty(shape)
    for i, kind in enumerate(CORRUPTIONS):
        for j, level in enumerate(LEVELS):
            if i and not level:  # level 0 is the same for all kinds
                accuracy[:, i, j], error[:, i, j] = accuracy[:, 0, 0], error[:, 0, 0]
                continue
            changed = corrupt(pictures, kind, level).flatten(1)
            inputs = ((changed - training.task.mean) / training.task.sd).to(weights.flat)
            scores = training.readout.scores(weights, inputs).cpu().numpy()
            accuracy[:, i, j], error[:, i, j] = calibration(scores, labels, setting.bins)
    dims = ("seed", "corruption", "level")
    about = {"long_name": "adaptive calibration error of the softmax of the output", "units": "1"}
    return {
        "corrupted_accuracy": Variable(dims, accuracy, {"units": "1"}),
        "calibration_error": Variable(dims, error, about),
    }


def calibration(scores: np.ndarray, labels: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray]:
    """Return accuracy and AdaECE (seed,) of scores (seed, sample, class); NaN where diverged."""
    confidence, right = metrics.confidence_and_correct(scores, labels, allow_nan=True)
    error = metrics.adaptive_ece(confidence, right, bins, allow_nan=True)
    return metrics.accuracy(scores, labels), error


SHOWN = scaled.Shown(report.tables, {"": report.draw}, report.rows)
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, test, print, store, draw."""
    library.part("geometry.transform", "robustness")  # before hours of training, not after
    begun = scaled.begin("robustness", SCALES, scale, out)
    setting = SCALES[scale]
    variables, coords, cells = image_study.train(
        begun,
        {"data": [setting.data]},
        RULES,
        setting.budget,
        partial(task_of, setting),
        partial(tested, setting),
    )
    coords |= {"corruption": np.array(list(CORRUPTIONS)), "level": np.array(LEVELS)}
    begun.publish(
        variables,
        coords,
        report.judge(Result(variables, coords)),
        SHOWN,
        data_origin=image_training.origin(cells, setting.data),
    )
