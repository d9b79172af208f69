"""A cell: one point, its learning rate chosen on held-out samples, then trained and tested."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from pcsim.check import tuning
from pcsim.config import Config
from pcsim.kernels.parameters import Parameters
from pcsim.limits import lags
from pcsim.limits.lags import Floats
from pcsim.run import run
from pcsim.stability import StabilityWarning
from pcsim.store import Result, Variable

from .points import FAULTS, Point, Setting, config

JITTER = 0.2
"""Spread of the inputs of XOR around the four corners."""


def measured(setting: Setting, point: Point) -> Result:
    """Return accuracies (seed, chip) of a point at its rate, on test and on held-out samples."""
    alike = FAULTS[point.fault].alike
    seeds, chips = (setting.alike_seeds, 1) if alike else (setting.seeds, setting.chips)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # That a lag rings or a rate is too high is what the study is about.
        warnings.simplefilter("ignore", StabilityWarning)
        data = point.task if point.task != "xor" else _xor(Path(folder), setting)
        rate = chosen(setting, point, data)
        whole = tuning.with_rate(config(setting, point, data, seeds, chips), rate.value)
        found = run(whole)
    accuracy = np.nan_to_num(found["accuracy"]).reshape(seeds, chips)
    variables = {
        "accuracy": Variable(("seed", "chip"), accuracy),
        "held_out": Variable(
            ("seed", "chip"), np.nan_to_num(found["validation_accuracy"]).reshape(seeds, chips)
        ),
        "rate": Variable((), np.array(rate.value)),
        "at_end": Variable((), np.array(rate.at_end)),
    }
    if point.fault == "ideal":
        variables |= _of_weights(whole, found["parameters"].reshape(seeds, -1))
    return Result(variables)


def chosen(setting: Setting, point: Point, data: str) -> tuning.Rate:
    """Return the rate that is best on held-out samples, as a check finds it, or the given one."""
    if point.rate:
        return tuning.Rate(point.rate, given=True)
    chips = 1 if FAULTS[point.fault].alike else tuning.CHIPS
    fewer = setting.model_copy(update={"train": setting.tuning_train or setting.train})
    small = config(fewer, point, data, setting.tuning_seeds, chips)
    return tuning.search(point.name, small, lambda _, one: run(one))


def _of_weights(whole: Config, flat: Floats) -> dict[str, Variable]:
    """Return what laws need of learnt weights: h_max, lags of interneurons, and θ^0 of seed 0."""
    nodes = Parameters(whole.network.build(), torch.as_tensor(flat)).of
    each = [
        [part["w"][seed].double().numpy() for part in nodes if "w" in part]
        for seed in range(len(flat))
    ]
    if not all(np.isfinite(w).all() for weights in each for w in weights):
        return {}
    return {
        "curvature": Variable(("seed",), np.array([lags.largest_curvature(w) for w in each])),
        "inter_bound": Variable(("seed",), np.array([lags.interneuron_lag_bound(w) for w in each])),
        "theta0": Variable(("output", "hidden"), each[0][0]),
    }


def _xor(folder: Path, setting: Setting) -> str:
    """Write the four corners of a square, jittered, and return the file."""
    rng = np.random.default_rng(0)
    count = setting.train + setting.held_out
    parts = {}
    for name, samples in (("train", count), ("test", 400)):
        corners = rng.integers(0, 2, (samples, 2))
        parts[f"x_{name}"] = 2.0 * corners - 1 + JITTER * rng.normal(size=(samples, 2))
        parts[f"y_{name}"] = corners.sum(1) % 2
    path = folder / "xor.npz"
    np.savez(path, allow_pickle=False, **parts)
    return str(path)
