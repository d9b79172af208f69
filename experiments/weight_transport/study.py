"""Does iPC still learn when errors do not travel back through the forward weights?

`pcsim experiment weight_transport` trains the paper's MNIST network as chips in continuous time
(Euler steps, so with shared weights it is discrete iPC exactly), and lets separate arrays B carry
the errors back: fixed random ones, the signs of the forward weights, arrays that learn by
Kolen–Pollack, and none at all (only the output layer is taught). Recorded are test accuracy and
cos∠(θ, B) of every map that carries errors, over time.

The rate α is chosen for each kind of feedback on held-out training images; accuracies are of the
test set. For Kolen–Pollack the gap must shrink as ‖θ − B‖ = (1 − αλ)ⁿ ‖θ − B‖₀ after n steps,
whatever is learnt meanwhile; the measured factor is stored beside that.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pcsim.architectures.mlp import Mlp
from pcsim.circuit import Algebraic, Transport
from pcsim.config import Config, DataConfig, Grid, Learning, RunConfig, Schedule
from pcsim.frozen import Frozen
from pcsim.runner.chip_run import ChipRun
from pcsim.runner.results import chip_result
from pcsim.store import Result, Variable

from ..common import keeping, scaled
from . import report

SILENT = 1e-6
"""Gain at which random feedback teaches nothing: the control without feedback."""


class Way(Frozen):
    """One way back for the errors."""

    name: str
    transport: Transport
    decay: float = 0.0
    """λ of the weights, and of B with Kolen–Pollack."""
    gain: float = 1.0
    """Size of random and Kolen–Pollack initial feedback, relative to the initial weights."""


def ways(decay: float) -> tuple[Way, ...]:
    """Return the contestants: each kind of feedback without decay, and those that use it with."""
    return (
        Way(name="shared", transport="shared"),
        Way(name="sign-symmetric", transport="sign"),
        Way(name="random", transport="random"),
        Way(name="Kolen–Pollack", transport="kolen_pollack"),
        Way(name="no feedback", transport="random", gain=SILENT),
        Way(name="shared, decay", transport="shared", decay=decay),
        Way(name="random, decay", transport="random", decay=decay),
        Way(name="Kolen–Pollack, decay", transport="kolen_pollack", decay=decay),
    )


class Setting(Frozen):
    """Which feedback, on what, for how long."""

    data: str = "mnist"
    network: Mlp = Mlp(sizes=(784, 64, 64, 10), f="leaky_relu")
    ways: tuple[Way, ...] = ways(0.3)
    alphas: tuple[float, ...]
    """Weight rates tried; the best on the validation images is reported."""
    gamma: float = 0.5
    T: int = 8
    batch: int = 16
    limit: int = 0
    """Training images, validation included; 0 is all."""
    validation: int
    epochs: int
    seeds: tuple[int, ...]
    records: int = 100
    """Measurements of the alignment on the way."""


SCALES = {
    "small": Setting(
        alphas=(7e-4, 1.5e-3),
        limit=9000,
        validation=1000,
        epochs=3,
        seeds=(0, 1, 2, 3, 4),
        records=60,
    ),
    "paper": Setting(
        alphas=(3e-4, 7e-4, 1.5e-3), validation=5000, epochs=20, seeds=(0, 1, 2, 3, 4), records=200
    ),
}


def config_of(setting: Setting, way: Way) -> Config:
    """Return the run of one kind of feedback: all rates and seeds are chips side by side."""
    data = DataConfig(name=setting.data, limit=setting.limit, validation=setting.validation)
    drawn = {"feedback_gain": way.gain} if way.transport in ("random", "kolen_pollack") else {}
    return Config(
        network=setting.network,
        schedule=Schedule(rule="ipc", T=setting.T, gamma=setting.gamma),
        learning=Learning(
            weight_decay=way.decay,
            batch=setting.batch,
            epochs=setting.epochs,
        ),
        data=data,
        run=RunConfig(backend="continuous", seeds=setting.seeds),
        grid=Grid(alpha=setting.alphas),
        circuit=Algebraic.model_validate({"transport": way.transport} | drawn),
    )


def train(setting: Setting, way: Way) -> Result:
    """Train one kind of feedback; return accuracies and alignments (alpha, seed, …)."""
    chips = ChipRun(config_of(setting, way))
    before = _gaps(chips)
    chips.run()
    found, unfold = chip_result(chips), chips.chips.unfold
    assert chips.task.validation is not None
    dims = chips.chips.dims
    carrying = len(setting.network.sizes) - 2  # the map of the clamped input carries nothing back
    kept = np.linspace(0, len(found["time"]) - 1, setting.records).round().astype(int)
    alignment = np.ones((*found["accuracy"].shape, len(kept), carrying))
    if "alignment" in found.variables:
        alignment = found["alignment"][..., kept, :carrying]
    shrunk = (_gaps(chips) / before).double().numpy()[:, :carrying]
    return Result(
        {
            "test_accuracy": found.variables["test_accuracy"],
            "validation_accuracy": Variable(dims, unfold(chips.accuracy(chips.task.validation))),
            "diverged": Variable(dims, unfold(np.isfinite(chips.engine.diverged_at.numpy()))),
            "alignment": Variable((*dims, "time", "map"), alignment),
            "gap": Variable((*dims, "map"), unfold(shrunk)),
        },
        {
            **chips.chips.coords,
            "time": found["time"][kept],
            "accuracy_time": found["accuracy_time"],
        },
        {"steps": chips.engine.steps, "data_origin": found.attrs["data_origin"]},
    )


def _gaps(chips: ChipRun) -> Tensor:
    """Return ‖θ − B‖ of every map (chip, map); of a shared array 0."""
    feedback = chips.engine.flow.feedback
    theta = chips.engine.flow.theta().of
    rows = [
        torch.linalg.vector_norm(views["w"] - feedback.of_node(k), dim=(1, 2))
        for k, views in enumerate(theta)
        if "w" in views and feedback is not None
    ]
    return torch.stack(rows, 1).clone()


SHOWN = scaled.Shown(report.tables, {"": report.draw}, title="what the paper leaves open")
figures = partial(scaled.redraw, __file__, SHOWN, SCALES)


def main(out: Path, scale: str) -> None:
    """Train, print, store, draw."""
    run = scaled.begin("weight_transport", SCALES, scale, out)
    setting = SCALES[scale]
    measures = {re.sub(r"\W+", "_", w.name): partial(train, setting, w) for w in setting.ways}
    found = list(run.collect(measures, processes=keeping.PROCESSES).values())
    variables = {
        name: Variable(
            ("way", *first.dims),
            np.stack([one[name] for one in found]),
            {"long_name": report.ABOUT[name]},
        )
        for name, first in found[0].variables.items()
    }
    coords: dict[str, Any] = {**found[0].coords, "way": np.array([w.name for w in setting.ways])}
    variables["decay"] = Variable(("way",), np.array([way.decay for way in setting.ways]))
    attrs = {"data": setting.data, **{k: found[0].attrs[k] for k in ("steps", "data_origin")}}
    claims = report.judge(Result(variables, coords, attrs))
    run.publish(variables, coords, claims, SHOWN, **attrs)
