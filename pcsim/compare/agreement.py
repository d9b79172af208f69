"""Do two runs end with the same weights, and do they predict the same classes?

    distance     |θ − θ_r| / |θ_r|
    cosine       θ·θ_r / (|θ| |θ_r|)
    same way     the cosine between what was learnt, θ − θ(0) and θ_r − θ_r(0)
    predictions  share of the test samples for which both predict the same class

for each seed, the reference marked r. Weights of one seed start from the same θ(0).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from pcsim.compare.contender import Array, Contender
from pcsim.kernels.parameters import initial_parameters

ABOUT = {
    "weight_distance": "|θ − θ_r| / |θ_r| at the end, r: the reference",
    "weight_cosine": "cosine between θ and θ_r at the end",
    "change_cosine": "cosine between what was learnt, θ − θ(0) and θ_r − θ_r(0)",
    "prediction_agreement": "share of test samples with the same predicted class",
}


def agreement(reference: Contender, other: Contender) -> dict[str, Array]:
    """Return each measure for the seeds of `other`; NaN where it cannot be had."""
    measures = {name: np.full(len(other.seeds), np.nan) for name in ABOUT}
    network, data = _agree(reference, other, "network."), _agree(reference, other, "data.name")
    for row, seed in enumerate(other.seeds):
        mates = np.flatnonzero(reference.seeds == seed)
        if not len(mates):
            continue
        theta, theta_r = _row(other.parameters, row), _row(reference.parameters, mates[0])
        if network and theta is not None and theta_r is not None and theta.shape == theta_r.shape:
            size = np.linalg.norm(theta_r)
            measures["weight_distance"][row] = np.linalg.norm(theta - theta_r) / size
            measures["weight_cosine"][row] = _cosine(theta, theta_r)
            start = _start(reference, int(seed))
            if start is not None and other.config is not None:
                measures["change_cosine"][row] = _cosine(theta - start, theta_r - start)
        classes, classes_r = _row(other.predictions, row), _row(reference.predictions, mates[0])
        if data and classes is not None and classes_r is not None:
            same = classes.shape == classes_r.shape
            measures["prediction_agreement"][row] = (
                np.mean(classes == classes_r) if same else np.nan
            )
    return measures


def _row(values: Array | None, index: int) -> npt.NDArray[np.float64] | None:
    return None if values is None else np.asarray(values[index], dtype=np.float64)


def _cosine(a: Array, b: Array) -> float:
    """Return the cosine, exactly 1 for equal vectors; NaN if one has no direction."""
    if np.array_equal(a, b) and np.any(a):
        return 1.0
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else np.nan


def _start(contender: Contender, seed: int) -> Array | None:
    """Return θ(0), which belongs to the seed and the network alone."""
    if contender.config is None:
        return None
    dtype = getattr(torch, contender.config.run.dtype)
    network = contender.config.network.build()
    return initial_parameters(network, [seed], dtype).flat[0].double().numpy()


def _agree(reference: Contender, other: Contender, prefix: str) -> bool:
    """Whether both know something under this name, and the same."""
    shared = reference.fields.keys() & other.fields.keys()
    named = [field for field in shared if field.startswith(prefix)]
    return bool(named) and all(reference.fields[f] == other.fields[f] for f in named)
