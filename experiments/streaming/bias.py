"""What a switch writes into the weights: average update of a linear network in a stream.

For L = 2, H = I + θ^{0ᵀ}θ^0, Φ = (τ_x/T) H⁻¹ (I − e^{−HT/τ_x}), independent samples of zero mean,
x* = H⁻¹(θ^1 u + θ^{0ᵀ} y), ε* = x* − θ^1 u, the average update of θ^1 over a presentation differs
from E[ε* uᵀ] by

    carry-over            −Φ Cov(x*, u)                          (does not vanish when ε* = 0)
    feed-forward reset    −Φ E[ε* uᵀ]                            (a mere factor I − Φ)
    label free first      −Φ E[ε* uᵀ] − (τ_x/T) H θ^1 Cov(u)     (free for ≫ τ_x, weights plastic)

The last follows from ∫ε^0 = τ_x (y_old − μ^0) and ∫ε^1 = τ_x (x*_old − μ^1) + θ^{0ᵀ}∫ε^0 while the
label is free: whatever moves the state from one sample to the next writes. Where the network is
trained (x* = θ^1 u), it writes H² times what carry-over writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.limits.lags import Floats
from pcsim.network import Network

from .regimes import FROZEN

KINDS = ("carry-over", "feed-forward reset", "label free first")
SIZES = (4, 3, 2)
"""Input u, hidden x, output y."""
SETTLE = 16.0
"""Label-free time in τ_x; the slowest free mode has h = 0.4 or so."""


@dataclass(frozen=True, eq=False)
class World:
    """Weights, and y = M u + noise for u ~ N(0, C)."""

    theta0: Floats
    theta1: Floats
    teacher: Floats
    mixing: Floats
    noise: float = 0.3

    @classmethod
    def make(cls, seed: int = 0) -> World:
        """Draw a world in which the network is half trained."""
        rng = np.random.default_rng(seed)
        n_in, hidden, out = SIZES
        theta0 = rng.normal(0, 1.0, (out, hidden))
        theta1 = rng.normal(0, 0.6, (hidden, n_in))
        teacher = theta0 @ theta1 + rng.normal(0, 0.2, (out, n_in))
        mixing = np.eye(n_in) + rng.normal(0, 0.3, (n_in, n_in))
        return cls(theta0, theta1, teacher, mixing)

    @property
    def curvature(self) -> Floats:
        """H = I + θ^{0ᵀ}θ^0."""
        return np.asarray(np.eye(SIZES[1]) + self.theta0.T @ self.theta0)

    def bias(self, kind: str, t: float) -> Floats:
        """Return the closed form for T = `t` τ_x."""
        values, vectors = np.linalg.eigh(self.curvature)
        phi = vectors @ np.diag(-np.expm1(-values * t) / (values * t)) @ vectors.T
        cov_u = self.mixing @ self.mixing.T
        cov_x = self.cov_x
        if kind == "carry-over":
            return np.asarray(-phi @ cov_x)
        scaled = -phi @ self.update
        if kind == "feed-forward reset":
            return np.asarray(scaled)
        return np.asarray(scaled - self.curvature @ self.theta1 @ cov_u / t)

    @property
    def cov_x(self) -> Floats:
        """Cov(x*, u)."""
        drive = self.theta1 + self.theta0.T @ self.teacher
        return np.asarray(np.linalg.solve(self.curvature, drive @ self.mixing @ self.mixing.T))

    @property
    def update(self) -> Floats:
        """E[ε* uᵀ]."""
        return np.asarray(self.cov_x - self.theta1 @ self.mixing @ self.mixing.T)


def measured_bias(
    world: World, kind: str, t: float, *, streams: int = 4000, presentations: int = 3, seed: int = 1
) -> tuple[Floats, Floats]:
    """Return mean and standard error (hidden, input) of the bias, simulated with frozen weights.

    Every sample of the batch is a stream of its own; the first presentation is left out.
    """
    network = Network.mlp(SIZES, "identity", bias=False)
    flat = np.concatenate([world.theta0.ravel(), world.theta1.ravel()])
    params = Parameters(network, torch.as_tensor(flat)[None].clone())
    dt = min(0.1, t / 40)
    engine = Continuous(network, params, Circuit(tau_w=FROZEN), dt=dt, fast=False)
    generator = torch.Generator().manual_seed(seed)
    h = torch.as_tensor(world.curvature)
    theta0, theta1 = torch.as_tensor(world.theta0), torch.as_tensor(world.theta1)
    found = []
    for index in range(presentations + 1):
        u, y = _draw(world, streams, generator)
        star = torch.linalg.solve(h, (u @ theta1.T + y @ theta0).T).T
        total = torch.zeros(streams, SIZES[1], dtype=torch.float64)
        if kind == "label free first":
            engine.load([None, None, u[None]])
            total += _integral(engine, round(SETTLE / dt))
        engine.load([y[None], None, u[None]])
        if kind == "feed-forward reset":
            engine.feedforward()
        total += _integral(engine, round(t / dt))
        if index:
            gap = total / t - (star - u @ theta1.T)
            found.append(gap[:, :, None] * u[:, None, :])
    mean = torch.stack(found).mean(0)  # presentations of one stream are not independent
    return mean.mean(0).numpy(), (mean.std(0) / streams**0.5).numpy()


def _draw(world: World, streams: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    raw = torch.randn(streams, SIZES[0], dtype=torch.float64, generator=generator)
    noise = torch.randn(streams, SIZES[2], dtype=torch.float64, generator=generator)
    u = raw @ torch.as_tensor(world.mixing.T)
    return u, u @ torch.as_tensor(world.teacher.T) + world.noise * noise


def _integral(engine: Continuous, steps: int) -> Tensor:
    """Return ∫ε^1 dt (stream, hidden) over `steps` steps."""
    total = torch.zeros(1, dtype=torch.float64)
    for _ in range(steps):
        engine.advance(1)
        total = total + engine.flow.states()["err1"][0] * engine.dt
    return total
