"""The sum of several parents: μ = Σ x; each receives the error as it is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pcsim.kernels.counter import Counter
from pcsim.kernels.hooks import IDEAL, MapHooks
from pcsim.kernels.map_kernel import Params, computes, plain, refuse_hardware
from pcsim.maps import Sum


class SumKernel:
    """One sum of one network."""

    hooks = IDEAL

    def __init__(self) -> None:
        self.params: dict[str, Tensor] = {}
        self._parents: tuple[Tensor, ...] = ()
        self._mu = self._xi = torch.empty(0)

    def read_weights(self) -> None:
        """No array to read."""

    def allocate(self, like: Tensor, shared_input: bool) -> None:
        """Take no room yet: the number of units is the parents'."""

    def activate(self, *parents: Tensor) -> None:
        """Take the terms."""
        self._parents = parents

    def predict(self) -> Tensor:
        """Return μ."""
        first, *others = self._parents
        if self._mu.shape != first.shape:
            self._mu = torch.empty_like(first, memory_format=torch.contiguous_format)
        if others:
            torch.add(first, others[0], out=self._mu)
        else:
            self._mu.copy_(first)
        for other in others[1:]:
            self._mu.add_(other)
        return self._mu

    def receive(self, xi: Tensor) -> None:
        """Take the error at μ."""
        self._xi = xi

    def pull(self, x: Tensor, slot: int = 0, onto: Tensor | None = None) -> Tensor:
        """Return ξ: a copy, since every term receives it and may overwrite it."""
        return self._xi.clone() if onto is None else onto.add_(self._xi)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


@computes(Sum)
def _sum_kernel(spec: Sum, params: Params, counter: Counter | None, hooks: MapHooks) -> SumKernel:
    refuse_hardware(spec, hooks)
    return SumKernel()


@plain(Sum)
def _plain_sum(spec: Sum, params: Params, parents: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(parents)).sum(0)
