"""Replicas: the combinations of grid values and seeds that train at once along the leading axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import torch

from pcsim.config import Config
from pcsim.kernels.optim import Rate


@dataclass(frozen=True)
class Replicas:
    """Axes in the order of the result; the replica index runs through them with seeds fastest."""

    axes: tuple[tuple[str, tuple[float, ...]], ...]
    """Grid axes that were given, without the seeds."""
    seeds: tuple[int, ...]
    alpha: tuple[float, ...]
    weight_decay: tuple[float, ...]
    gamma: tuple[float, ...]
    seed_of: tuple[int, ...]
    """Position in `seeds` of every replica."""

    @classmethod
    def of(cls, config: Config) -> Replicas:
        """Spread a configuration's grid and seeds."""
        defaults = {
            "alpha": config.learning.alpha,
            "weight_decay": config.learning.weight_decay,
            "gamma": config.schedule.gamma,
        }
        given: dict[str, tuple[float, ...]] = {
            name: listed for name in defaults if (listed := getattr(config.grid, name))
        }
        values: dict[str, list[float]] = {name: [] for name in defaults}
        seed_of = []
        for cell in product(*given.values(), range(len(config.run.seeds))):
            named = defaults | dict(zip(given, cell, strict=False))
            for name, value in named.items():
                values[name].append(value)
            seed_of.append(int(cell[-1]))
        return cls(
            axes=tuple(given.items()),
            seeds=config.run.seeds,
            alpha=tuple(values["alpha"]),
            weight_decay=tuple(values["weight_decay"]),
            gamma=tuple(values["gamma"]),
            seed_of=tuple(seed_of),
        )

    def __len__(self) -> int:
        return len(self.seed_of)

    @property
    def each_seed(self) -> list[int]:
        """The seed of every replica."""
        return [self.seeds[k] for k in self.seed_of]

    def rate(self, name: str, dtype: torch.dtype, device: str) -> Rate:
        """Return one number if all replicas agree (the fast case), else a tensor (replica,)."""
        values: tuple[float, ...] = getattr(self, name)
        if len(set(values)) == 1:
            return values[0]
        return torch.tensor(values, dtype=dtype, device=device)

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the axes that the replica axis unfolds into."""
        return (*(name for name, _ in self.axes), "seed")

    @property
    def coords(self) -> dict[str, npt.NDArray[np.generic]]:
        """Labels of those axes."""
        labels: dict[str, npt.NDArray[np.generic]] = {n: np.asarray(v) for n, v in self.axes}
        return labels | {"seed": np.asarray(self.seeds)}

    def unfold(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Turn a leading replica axis into the named axes."""
        shape = [len(v) for _, v in self.axes] + [len(self.seeds)]
        return values.reshape(*shape, *values.shape[1:])
