"""Chips that have left a running population: what was theirs stays as it was, bit for bit.

All chips of a population are rows of the same tensors and are computed together. A chip that has
stopped is still computed, but after every step its rows are put back to what they were when it
stopped: states, weights, device memory, moments of an optimiser. No chip ever sees another's rows,
so the chips that go on are those that they would be without it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


class Stopped:
    """The rows of chips that have stopped, in tensors (chip, …) that are known by name."""

    def __init__(self, chips: int) -> None:
        self.chips = torch.zeros(chips, dtype=torch.bool)
        """Which chips have stopped (chip,)."""
        self._rows = torch.zeros(0, dtype=torch.long)
        self._kept: dict[str, Tensor] = {}

    def __bool__(self) -> bool:
        return len(self._rows) > 0

    def add(self, chips: Tensor, tensors: Mapping[str, Tensor]) -> Tensor:
        """Stop these chips (chip,) as they are now; return the rows of those that were running."""
        new = (chips.cpu() & ~self.chips).nonzero().flatten()
        for name, tensor in _with_rows(tensors, len(self.chips)):
            kept = self._kept.get(name)
            if kept is None:
                kept = tensor[self._rows.to(tensor.device)].clone()
            self._kept[name] = torch.cat([kept, tensor[new.to(tensor.device)]])
        self._rows = torch.cat([self._rows, new])
        self.chips[new] = True
        return new

    def hold(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what was theirs."""
        for name, tensor in _with_rows(tensors, len(self.chips)):
            rows = self._rows.to(tensor.device)
            if name not in self._kept:
                self._kept[name] = tensor[rows].clone()
            tensor.index_copy_(0, rows, self._kept[name])


def _with_rows(tensors: Mapping[str, Tensor], chips: int) -> list[tuple[str, Tensor]]:
    """Return the tensors that have a row per chip (the time of a clock has none)."""
    return [(n, t) for n, t in tensors.items() if t.ndim and t.shape[0] == chips]
