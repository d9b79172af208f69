"""Replicas: the combinations of grid values, seeds and chips that train at once, one axis."""

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
    """Axes in the order of the result; the replica index runs through the last one fastest."""

    axes: tuple[tuple[str, tuple[float, ...]], ...]
    """Grid axes that were given, without the seeds."""
    seeds: tuple[int, ...]
    alpha: tuple[float, ...]
    weight_decay: tuple[float, ...]
    gamma: tuple[float, ...]
    seed_of: tuple[int, ...]
    """Position in `seeds` of every replica."""
    chips: int = 0
    """Chips per seed; 0: replicas are not told apart by chips."""
    chip_of: tuple[int, ...] = ()
    """Number of the chip that every replica is on."""
    cells: tuple[tuple[tuple[str, float], ...], ...] = ()
    """Hardware numbers of every replica that the grid varies."""

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
        on_hardware = dict(config.grid.hardware)
        trials = config.grid.trials
        several = config.hardware.chips > 1 or not config.hardware.ideal
        several = several or bool(on_hardware or trials)
        axes = given | on_hardware
        if trials:
            axes["trial"] = tuple(range(len(trials)))
        values: dict[str, list[float]] = {name: [] for name in defaults}
        seed_of, chip_of, cells = [], [], []
        numbers = range(len(config.run.seeds)), range(config.hardware.chips)
        for *cell, seed, chip in product(*axes.values(), *numbers):
            named = dict(zip(axes, cell, strict=True))
            for name, default in defaults.items():
                values[name].append(named.get(name, default))
            changed = trials[int(named["trial"])] if trials else {}
            cells.append((*((name, named[name]) for name in on_hardware), *changed.items()))
            seed_of.append(int(seed))
            chip_of.append(int(chip))
        return cls(
            axes=tuple(axes.items()),
            seeds=config.run.seeds,
            alpha=tuple(values["alpha"]),
            weight_decay=tuple(values["weight_decay"]),
            gamma=tuple(values["gamma"]),
            seed_of=tuple(seed_of),
            chips=config.hardware.chips if several else 0,
            chip_of=tuple(chip_of),
            cells=tuple(cells),
        )

    def __len__(self) -> int:
        return len(self.seed_of)

    @property
    def identities(self) -> list[tuple[int, int]]:
        """Seed and chip of every replica: whose noise it gets, whatever the grid varies."""
        return list(zip(self.each_seed, self.chip_of, strict=True))

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
        return (*(name for name, _ in self.axes), "seed", *(["chip"] if self.chips else []))

    @property
    def coords(self) -> dict[str, npt.NDArray[np.generic]]:
        """Labels of those axes."""
        labels: dict[str, npt.NDArray[np.generic]] = {n: np.asarray(v) for n, v in self.axes}
        labels["seed"] = np.asarray(self.seeds)
        return labels | ({"chip": np.arange(self.chips)} if self.chips else {})

    def unfold(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Turn a leading replica axis into the named axes."""
        shape = [len(v) for _, v in self.axes] + [len(self.seeds)]
        return values.reshape(*shape, *([self.chips] if self.chips else []), *values.shape[1:])
