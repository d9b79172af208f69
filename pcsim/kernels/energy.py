"""Energies of one node and what follows from them, on (replica, sample, unit) tensors.

ξ   = −∂E/∂μ    the error that is sent to the parents and to the weights
own = −∂E/∂x    the node's own drift
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from pcsim.energies import Categorical, Energy, Gaussian
from pcsim.kernels.dense import accumulate
from pcsim.network import Hold, Node


class EnergyKernel(Protocol):
    """What the field asks of an energy."""

    xi: Tensor

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ξ for this state."""

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift + own, for the state given to `errors` last; overwrites `drift`."""

    def own(self) -> Tensor:
        """Return the own drift in fresh memory."""

    def total(self) -> Tensor:
        """Return the energy (replica,) summed over samples and units, for the last state."""

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Accumulate the gradient of the energy's own parameters."""


class UnitGaussian:
    """E = ½‖ε‖²,  ξ = ε = x − μ,  own = −ε."""

    def __init__(self) -> None:
        self.xi = torch.empty(0)

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""
        self.xi = torch.empty_like(like, memory_format=torch.contiguous_format)

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ε = x − μ."""
        return torch.sub(x, mu, out=self.xi)

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift − ε."""
        return drift.sub_(self.xi)

    def own(self) -> Tensor:
        """Return −ε."""
        return -self.xi

    @property
    def eps(self) -> Tensor:
        """Return ε."""
        return self.xi

    @property
    def variance(self) -> float:
        """Return σ²."""
        return 1.0

    def cost(self, eps: Tensor) -> Tensor:
        """Return ½ Σ ε² (replica,)."""
        return 0.5 * eps.square().sum((1, 2))

    def total(self) -> Tensor:
        """Return the cost of the last errors."""
        return self.cost(self.xi)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


class PrecisionGaussian:
    """E = ½ Σ [ε²/σ² + s],  s = ln σ²,  ξ = ε/σ²,  own = −ξ,  −∂E/∂s = ½(ε²/σ² − 1)."""

    def __init__(self, energy: Gaussian, params: dict[str, Tensor]) -> None:
        self.energy = energy
        self.params = params
        self.eps = self.xi = torch.empty(0)
        self._fixed = torch.as_tensor(energy.variance, dtype=torch.float64).log()

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""
        self.eps = torch.empty_like(like, memory_format=torch.contiguous_format)
        self.xi = torch.empty_like(self.eps)
        self._fixed = self._fixed.to(like)

    @property
    def log_var(self) -> Tensor:
        """Return s, broadcastable to (replica, sample, unit)."""
        return self.params["log_var"].unsqueeze(1) if self.energy.learned else self._fixed

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ξ = (x − μ)/σ²."""
        torch.sub(x, mu, out=self.eps)
        return torch.mul(self.eps, torch.exp(-self.log_var), out=self.xi)

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift − ξ."""
        return drift.sub_(self.xi)

    def own(self) -> Tensor:
        """Return −ξ."""
        return -self.xi

    @property
    def variance(self) -> Tensor:
        """Return σ², broadcastable to (replica, sample, unit)."""
        return self.log_var.exp()

    def cost(self, eps: Tensor) -> Tensor:
        """Return ½ Σ [ε²/σ² + ln σ²] (replica,)."""
        return 0.5 * (eps.square() * torch.exp(-self.log_var) + self.log_var).sum((1, 2))

    def total(self) -> Tensor:
        """Return the cost of the last errors."""
        return self.cost(self.eps)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Accumulate −∂F/∂s = ½ Σ_samples (ε²/σ² − 1)."""
        if self.energy.learned:
            gradient = 0.5 * (self.eps * self.xi - 1).sum(1)
            accumulate(into["log_var"], gradient, alpha, beta)


class CategoricalKL:
    """E = Σ p (ln p − ln q), q = softmax(μ);  ξ = p − q.

    Free node: p = softmax(x), own = −(diag p − p pᵀ)(x − μ). Clamped node: p = x, a distribution.
    """

    def __init__(self, clamped: bool) -> None:
        self.clamped = clamped
        self.xi = self.p = self.log_ratio = torch.empty(0)

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""
        self.xi = torch.empty_like(like, memory_format=torch.contiguous_format)

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ξ = p − softmax(μ)."""
        log_q = torch.log_softmax(mu, -1)
        if self.clamped:
            self.p = x
            # 0·ln 0 = 0 for one-hot labels
            self.log_ratio = torch.where(x > 0, torch.log(x) - log_q, 0.0)
        else:
            log_p = torch.log_softmax(x, -1)
            self.p = log_p.exp()
            self.log_ratio = log_p - log_q
        return torch.sub(self.p, log_q.exp(), out=self.xi)

    def own(self) -> Tensor:
        """Return −J_p (x − μ); J_p ignores a constant shift, so log-ratios stand for x − μ."""
        mean = (self.p * self.log_ratio).sum(-1, keepdim=True)
        return self.p * (mean - self.log_ratio)

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift + own."""
        return drift.add_(self.own())

    def total(self) -> Tensor:
        """Return Σ p (ln p − ln q)."""
        return (self.p * self.log_ratio).sum((1, 2))

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


def energy_kernel(node: Node, hold: Hold, params: dict[str, Tensor]) -> EnergyKernel:
    """Return the kernel for a node's energy."""
    energy: Energy = node.energy
    if isinstance(energy, Categorical):
        return CategoricalKL(clamped=hold == "clamped")
    return UnitGaussian() if energy.unit else PrecisionGaussian(energy, params)
