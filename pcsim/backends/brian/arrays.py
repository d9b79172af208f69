"""States and weights of a Brian2 population as tensors (chip, sample, unit) and (chip, post, pre).

What a group computes from its states is evaluated without code generation, see `evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from brian2.core.variables import ArrayVariable, Variable
from torch import Tensor

from pcsim.backends.brian.build import Parts
from pcsim.backends.brian.evaluate import Formula

Store = Callable[[Variable, np.ndarray], None]
"""How values get into a variable: this depends on the device that holds it."""


class Arrays:
    """Reads and writes the variables of all layers and maps."""

    def __init__(self, parts: Parts, chips: int, samples: int, store: Store) -> None:
        self.parts, self.chips, self.samples = parts, chips, samples
        self._store = store
        self._formulas: dict[tuple[int, str], Formula] = {}
        self.moving: list[list[Any]] = [
            [layer.variables[name] for name in sorted(layer.equations.diff_eq_names)]
            for layer in parts.layers
        ]
        """The variables of each layer that have an equation of motion."""

    def has(self, k: int, name: str) -> bool:
        """Return whether layer k knows this name."""
        return name in self.parts.layers[k].variables

    def stored(self, k: int, name: str) -> bool:
        """Return whether layer k keeps this name as an array of its own."""
        return isinstance(self.parts.layers[k].variables.get(name), ArrayVariable)

    def read(self, k: int, name: str, instead: Mapping[str, np.ndarray] | None = None) -> Tensor:
        """Return a copy of what layer k stores, or computes from its arrays (or others instead)."""
        if (k, name) not in self._formulas:
            self._formulas[k, name] = Formula(self.parts.layers[k], name)
        numbers = np.array(self._formulas[k, name](instead))
        return torch.from_numpy(numbers).view(self.chips, self.samples, -1)

    def write(self, k: int, name: str, value: Tensor) -> None:
        """Set an array of layer k from what fits (chip, sample, unit)."""
        self.put(self.parts.layers[k].variables[name], value)

    def weights(self, k: int, name: str) -> Tensor:
        """Return a copy of an array of map k as (chip, post, pre)."""
        link = self.parts.plan.connections[k]
        post = self.parts.plan.groups[link.post].units
        numbers = np.array(self.parts.maps[k].variables[name].get_value())
        return torch.from_numpy(numbers).view(self.chips, post, -1)

    def put(self, variable: Any, value: Tensor) -> None:
        """Set a variable from a tensor that can be expanded to it."""
        self._store(variable, self.spread(value, variable.size))

    def spread(self, value: Tensor, size: int) -> np.ndarray:
        """Return a flat copy, expanded over chips and samples where it has one of them."""
        units = size // (self.chips * self.samples)
        if value.ndim == 3 and value.nelement() != size:
            value = value.expand(self.chips, self.samples, units)
        return np.array(value.detach().cpu().numpy()).reshape(-1)

    def changing(self) -> dict[str, Any]:
        """Return every variable that a step or a clamp may change, by a name of its own."""
        return {
            f"{v.owner.name}.{v.name}": v
            for group in self.parts.objects
            for v in own_arrays(group)
            if group in self.parts.layers or not v.constant
        }

    def present(self) -> list[dict[str, np.ndarray]]:
        """Return copies of all that moves, layer by layer."""
        return [{v.name: v.get_value().copy() for v in layer} for layer in self.moving]


def own_arrays(group: Any) -> list[Any]:
    """Return the arrays of a group that its equations name."""
    named = [group.variables[name] for name in sorted(group.equations.names)]
    return [v for v in named if isinstance(v, ArrayVariable) and not v.read_only]
