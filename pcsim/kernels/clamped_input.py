"""A map whose input stays clamped, learnt by plain gradient steps, needs no weights in between.

While r is fixed and W ← W + α Σ δ rᵀ, b ← b + α Σ δ, its drive a = W r + b obeys

    a(t+1) = a(t) + α (r rᵀ + 1) δ(t)         (r rᵀ over samples: the Gram matrix of the batch)
    W(T)   = W(0) + α [Σ_t δ(t)]ᵀ r

which is exact, and cheaper for wide inputs, small batches and more than a few steps.
It may be used only if nothing but this update touches W from step to step: no weight decay, no
momentum, no device between the gradient and the weight.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pcsim.kernels.maps.dense import DenseKernel, add_outer


class ClampedInput:
    """The drive of one dense map, followed through the Gram matrix of its clamped input."""

    def __init__(self, kernel: DenseKernel) -> None:
        self.kernel = kernel
        self.summed = torch.empty(0)
        self._gram: Tensor | None = None
        self._pending = self._dirty = False

    def pays(self, samples: int, steps: int) -> bool:
        """Whether following the drive takes fewer multiplications than `steps` direct steps.

        Direct: a prediction and an outer product per step. Here: the Gram matrix once, a product
        with it per step, one prediction and one outer product.
        """
        n_in, n_out = self.kernel.spec.n_in, self.kernel.spec.n_out
        followed = samples * (n_in + steps * n_out) + 2 * n_in * n_out
        return followed < 2 * steps * n_in * n_out

    def load(self) -> None:
        """A new input was clamped (and `kernel.predict` has set the drive)."""
        self._gram = None
        self._pending = self._dirty = False

    def learn(self) -> None:
        """Remember this step's δ."""
        if self._dirty:
            self.summed.add_(self.kernel.delta)
        elif self.summed.shape == self.kernel.delta.shape:
            self.summed.copy_(self.kernel.delta)
        else:
            self.summed = self.kernel.delta.clone()
        self._pending = self._dirty = True

    def predict(self, alpha: float | Tensor) -> Tensor:
        """Return μ for the weights as they would be now; δ still holds the last step's value."""
        kernel = self.kernel
        if self._pending:
            if self._gram is None:
                self._gram = torch.bmm(kernel.r, kernel.r.mT)
                if kernel.spec.bias:
                    self._gram.add_(1)
            gram = self._gram.expand(len(kernel.delta), -1, -1)
            if isinstance(alpha, Tensor):
                kernel.drive.add_(torch.bmm(gram, kernel.delta).mul_(alpha.view(-1, 1, 1)))
            elif gram.shape[1] == 1:
                kernel.drive.addcmul_(gram, kernel.delta, value=alpha)
            else:
                kernel.drive.baddbmm_(gram, kernel.delta, alpha=alpha)
            self._pending = False
        return kernel.emit()

    def write(self, alpha: float | Tensor) -> None:
        """Write the weights once, from the summed δ."""
        if not self._dirty:
            return
        kernel, summed = self.kernel, self.summed
        if isinstance(alpha, Tensor):
            summed, alpha = summed * alpha.view(-1, 1, 1), 1.0
        add_outer(kernel.params["w"], summed, kernel.rates, alpha)
        if "b" in kernel.params:
            kernel.params["b"].add_(summed.sum(1), alpha=alpha)
        self._dirty = False

    def write_rows(self, alpha: float | Tensor, rows: Tensor) -> None:
        """Write the weights of these replicas alone; the others' changes stay kept back."""
        kernel = self.kernel
        if self.summed.shape != kernel.delta.shape:
            self.summed = torch.zeros_like(kernel.delta)
        summed = self.summed[rows]
        self.summed[rows] = 0
        if not self._dirty:
            return
        if isinstance(alpha, Tensor):
            summed, alpha = summed * alpha[rows].view(-1, 1, 1), 1.0
        rates = kernel.rates if len(kernel.rates) == 1 else kernel.rates[rows]
        weights = kernel.params["w"][rows]
        add_outer(weights, summed, rates, alpha)
        kernel.params["w"][rows] = weights
        if "b" in kernel.params:
            kernel.params["b"][rows] += summed.sum(1) * alpha

    def state(self, index: int) -> dict[str, Tensor]:
        """Return the drive and what is kept back, for a checkpoint."""
        state = {f"followed.drive{index}": self.kernel.drive}
        if self._pending:
            state[f"followed.delta{index}"] = self.kernel.delta
        if self._dirty:
            state[f"followed.summed{index}"] = self.summed
        return state

    def restore(self, index: int, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint, with the input clamped again."""
        self.kernel.drive.copy_(state[f"followed.drive{index}"])
        delta, summed = (state.get(f"followed.{name}{index}") for name in ("delta", "summed"))
        self._pending, self._dirty = delta is not None, summed is not None
        if delta is not None:
            self.kernel.delta = delta.clone()
        if summed is not None:
            self.summed = summed.clone()
