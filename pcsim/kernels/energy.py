"""Energies of one node and what follows from them, on (replica, sample, unit) tensors.

ξ   = −∂E/∂μ    the error that is sent to the parents and to the weights
own = −∂E/∂x    the node's own drift
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.accumulation import accumulate
from pcsim.network import Hold, Node

EXCLUDED = -1e9
"""Logit of what a softmax leaves out: finite, so that differences of logarithms stay finite."""


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
        self.xi = _unknown(like)

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
        self._seen = self._fixed

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""
        self.eps, self.xi = _unknown(like), _unknown(like)
        self._fixed = self._fixed.to(like)

    @property
    def log_var(self) -> Tensor:
        """Return s, broadcastable to (replica, sample, unit)."""
        return self.params["log_var"].unsqueeze(1) if self.energy.learned else self._fixed

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ξ = (x − μ)/σ²."""
        torch.sub(x, mu, out=self.eps)
        # Kept as it is now: `total` may be asked after it has learned.
        self._seen = self.log_var.clone() if self.energy.learned else self._fixed
        return torch.mul(self.eps, torch.exp(-self._seen), out=self.xi)

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift − ξ."""
        return drift.sub_(self.xi)

    def own(self) -> Tensor:
        """Return −ξ."""
        return -self.xi

    def seen_with(self, log_var: Tensor) -> None:
        """Let ξ and the cost be those with this ln σ²: it was learned since."""
        self._seen = log_var
        torch.mul(self.eps, torch.exp(-log_var), out=self.xi)

    @property
    def variance(self) -> Tensor:
        """Return σ², broadcastable to (replica, sample, unit)."""
        return self.log_var.exp()

    def cost(self, eps: Tensor) -> Tensor:
        """Return ½ Σ [ε²/σ² + ln σ²] (replica,), with the variance of the last errors."""
        return 0.5 * (eps.square() * torch.exp(-self._seen) + self._seen).sum((1, 2))

    def total(self) -> Tensor:
        """Return the cost of the last errors."""
        return self.cost(self.eps)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Accumulate −∂F/∂s = ½ Σ_samples (ε²/σ² − 1)."""
        if self.energy.learned:
            gradient = 0.5 * (self.eps * self.xi - 1).sum(1)
            accumulate(into["log_var"], gradient, alpha, beta)


class CategoricalKL:
    """E = Σ p (ln p − ln q), q = softmax(μ) over the last axis of the node's shape.

    Free node: p = softmax(x), ξ = p − q, own = −(diag p − p pᵀ)(x − μ).
    Clamped node: p = x, ξ = p − (Σp) q. Rows are distributions, all zero where nothing is to be
    learnt (a word that is not asked for), or in between while a label follows its target.
    """

    def __init__(self, node: Node, causal: bool, clamped: bool) -> None:
        self.clamped = clamped
        self.xi = self.p = torch.empty(0)
        self._row = node.shape[-2:] if causal else node.shape[-1:]
        self._causal = causal
        self._log_ratio = self._mu = self._x = self._mass = self._later = torch.empty(0)
        self._version = -1

    def allocate(self, like: Tensor) -> None:
        """Make room for states like this one."""
        self.xi = _unknown(like)
        if self._causal:
            self._later = torch.ones(self._row, dtype=torch.bool, device=like.device).triu(1)

    def _rows(self, x: Tensor) -> Tensor:
        rows = x.reshape(*x.shape[:2], -1, *self._row)
        return rows.masked_fill(self._later, EXCLUDED) if self._causal else rows

    def errors(self, x: Tensor, mu: Tensor) -> Tensor:
        """Return ξ."""
        if self.clamped:
            return self._clamped_errors(x, mu)
        log_p, log_q = (torch.log_softmax(self._rows(v), -1) for v in (x, mu))
        self.p = log_p.exp()
        self._log_ratio = log_p.sub_(log_q)
        torch.sub(self.p, log_q.exp_(), out=self.xi.view(self.p.shape))
        return self.xi

    def _clamped_errors(self, x: Tensor, mu: Tensor) -> Tensor:
        p = x.reshape(*x.shape[:2], -1, *self._row)
        if x is not self._x or x._version != self._version:  # a new label, or one that has moved
            self._x, self._version, self._mass = x, x._version, p.sum(-1, keepdim=True)
        self._mu = self._rows(mu)
        q = torch.softmax(self._mu, -1, out=self.xi.view(self._mu.shape))
        torch.addcmul(p, q, self._mass, value=-1, out=q)
        return self.xi

    def own(self) -> Tensor:
        """Return −J_p (x − μ); J_p ignores a constant shift, so log-ratios stand for x − μ."""
        mean = (self.p * self._log_ratio).sum(-1, keepdim=True)
        return (self.p * (mean - self._log_ratio)).view(self.xi.shape)

    def add_own(self, drift: Tensor) -> Tensor:
        """Return drift + own."""
        return drift.add_(self.own())

    def total(self) -> Tensor:
        """Return Σ p (ln p − ln q); for a clamped node only now, since few steps ask for it."""
        if self.clamped:
            log_q = torch.log_softmax(self._mu, -1).view(self._x.shape)
            cost: Tensor = torch.special.xlogy(self._x, self._x) - self._x * log_q
            return cost.sum((1, 2))
        return (self.p * self._log_ratio).flatten(1).sum(1)

    def learn(self, into: dict[str, Tensor], alpha: float, beta: float) -> None:
        """Nothing to learn."""


def _unknown(like: Tensor) -> Tensor:
    """Return room for what is not computed yet: not a number, so that nobody takes it for one."""
    return torch.full_like(like, float("nan"), memory_format=torch.contiguous_format)


def energy_kernel(node: Node, hold: Hold, params: dict[str, Tensor]) -> EnergyKernel | None:
    """Return the kernel for a node's energy; None for what is transparent or never predicted."""
    energy = node.energy
    if node.map is None or energy is None:
        return None
    if isinstance(energy, Categorical):
        return CategoricalKL(node, energy.causal, clamped=hold == "clamped")
    return UnitGaussian() if energy.unit else PrecisionGaussian(energy, params)
