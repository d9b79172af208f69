"""The task of a transistor network on the torch engine: ideal, or on many chips of a chip file.

The same weights, order and time constants, the dendritic circuit with shared weights. One row per
chip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Dendritic
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.spice.cells.network import PATTERNS, Task
from pcsim.substrate import Chips, Seeded, Substrate

Array = NDArray[np.float64]


def learn(
    task: Task,
    substrate: Substrate | None = None,
    chips: int = 1,
    step: float = 0.1,
    **options: Any,
) -> list[Array]:
    """Return the weights (chip, post, pre + 1) after learning, the bias in the last column.

    Main arguments:
        substrate: what hardware does to signals; None: nothing.
        step: of the integration, in τ_x.
        options: of `Continuous`, such as `solver_name`.
    """
    network = Network.mlp(list(task.layers), "tanh")
    circuit = Dendritic(tau_x=task.tau_x, tau_w=task.tau_w * task.tau_x, tau_inter=0.0)
    flat = torch.zeros(chips, network.parameter_count, dtype=torch.float64)
    params = Parameters(network, flat)
    for views, start in zip(params.of, reversed(task.weights), strict=False):
        views["w"][:] = torch.as_tensor(start[:, :-1])
        views["b"][:] = torch.as_tensor(start[:, -1])
    ids = list(range(chips))
    dt = step * task.tau_x
    made = None
    if substrate is not None:
        noise = Seeded(0, ids)
        made = Chips(substrate, ids, seed=0, dt=dt, noise=noise, dtype=torch.float64)
    engine = Continuous(network, params, circuit, dt=dt, seeds=ids, chips=made, **options)
    for position, shown in enumerate(task.order):
        clamps: list[torch.Tensor | None] = [None] * len(network.nodes)
        clamps[0] = torch.full((chips, 1, 1), float(task.targets[shown]), dtype=torch.float64)
        clamps[-1] = torch.as_tensor(PATTERNS[shown]).expand(chips, 1, -1).clone()
        engine.load(clamps)
        if not position:
            engine.zero_states()
        engine.advance(round(task.present / step))
    found = engine.flow.theta().of
    learnt = []
    for views in reversed(found[: len(task.layers) - 1]):
        learnt.append(torch.cat([views["w"], views["b"][..., None]], dim=-1).numpy().copy())
    return learnt


def distances(weights: list[Array], reference: list[Array]) -> Array:
    """Return the largest difference of a weight of each chip (chip,), inf where one ran away."""
    pairs = zip(weights, reference, strict=True)
    apart = [np.abs(mine - theirs).reshape(len(mine), -1) for mine, theirs in pairs]
    largest = np.concatenate(apart, axis=1).max(axis=1)
    found: Array = np.where(np.isfinite(largest), largest, np.inf)
    return found
