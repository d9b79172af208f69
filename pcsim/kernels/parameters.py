"""All learnt numbers of a population in one flat tensor (replica, parameter), with named views.

One flat tensor lets an optimiser treat every weight of every replica in a few operations, and makes
a checkpoint one array.
"""

from __future__ import annotations

from math import prod

import numpy as np
import torch
from torch import Tensor

from pcsim.energies import Gaussian
from pcsim.errors import ConfigError
from pcsim.maps import Initial
from pcsim.network import Network

Views = list[dict[str, Tensor]]


class Parameters:
    """`flat` (replica, parameter); `of[l]` names its views: w (replica, post, pre), b, log_var, …

    Names that begin with w are weights; weight decay acts on them alone.
    """

    def __init__(self, network: Network, flat: Tensor) -> None:
        if flat.ndim != 2 or flat.shape[1] != network.parameter_count:
            raise ConfigError(
                f"Parameters.flat: expected shape (replica, {network.parameter_count}), "
                f"got {tuple(flat.shape)}"
            )
        self.network = network
        self.flat = flat
        ends = np.cumsum([sum(map(prod, n.parameters.values())) for n in network.nodes]).tolist()
        self.slices = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
        self.of: Views = self.views(flat)

    def views(self, flat: Tensor) -> Views:
        """Name the parts of any tensor of the same layout (gradients, moments)."""
        views: Views = []
        offset = 0
        for node in self.network.nodes:
            named = {}
            for name, shape in node.parameters.items():
                size = prod(shape)
                named[name] = flat[:, offset : offset + size].view(flat.shape[0], *shape)
                offset += size
            views.append(named)
        return views

    @property
    def replicas(self) -> int:
        """Length of the leading axis."""
        return int(self.flat.shape[0])


def generator(seed: int, *key: int) -> np.random.Generator:
    """Return the one stream that belongs to (seed, key), whatever else is drawn elsewhere."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


INIT_KEY, ORDER_KEY, STATE_KEY = 0, 1, 2
"""First element of the spawn key: initial weights, data order, initial states."""


def initial_states(
    seeds: list[int], batch: int, node: int, sd: float, shape: tuple[int, ...]
) -> np.ndarray:
    """Draw normal(0, sd) states (replica, *shape) of one node at one batch, one stream per seed."""
    draws = [generator(seed, STATE_KEY, batch, node).normal(0, sd, shape) for seed in seeds]
    return np.stack(draws)


def _draw(initial: Initial, rng: np.random.Generator, count: int) -> np.ndarray:
    if initial.kind == "uniform":
        return rng.uniform(-initial.size, initial.size, count)
    if initial.kind == "normal":
        return rng.normal(0, initial.size, count)
    return np.full(count, initial.size)


def initial_parameters(
    network: Network, seeds: list[int], dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Parameters:
    """Draw what is learnt as the maps say (PyTorch's defaults), one stream per seed and node."""
    flat = torch.empty(len(seeds), network.parameter_count, dtype=dtype)
    for row, seed in enumerate(seeds):  # row by row: a population may fill most of the memory
        parts = []
        for index, node in enumerate(network.nodes):
            rng = generator(seed, INIT_KEY, index)
            for name, shape in node.parameters.items():
                if name == "log_var":
                    assert isinstance(node.energy, Gaussian)
                    variance = np.broadcast_to(np.asarray(node.energy.variance), shape)
                    parts.append(np.log(variance).ravel())
                else:
                    assert node.map
                    parts.append(_draw(node.map.initial[name], rng, prod(shape)))
        flat[row] = torch.as_tensor(np.concatenate(parts))
    return Parameters(network, flat.to(device))
