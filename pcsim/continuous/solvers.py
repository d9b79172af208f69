"""Fixed-step solvers that move all chips, samples and weights in place.

    euler        s ← s + (dt/τ) force
    exponential  s ← s + (1 − e^{−dt/τ}) force      exact for inputs held over dt (a clocked chip)
    heun, rk4    the usual two- and four-stage schemes, weights included
    maruyama     euler, plus σ√dt N(0, 1) on the somas
    stochastic_heun  Heun's drift with the same noise in both stages (Stratonovich = Itô here,
                 since the noise is additive)

`exponential` holds weights' inputs too: θ ← θ + dt·dθ/dt. States without a leak (a free top layer
under a flat prior) are integrated by Euler's rule there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, sqrt
from typing import Literal, Protocol

import torch
from torch import Tensor

from pcsim.continuous.flow import Flow, Force, Tau
from pcsim.errors import UnsupportedError

Name = Literal["euler", "exponential", "heun", "rk4", "maruyama", "stochastic_heun"]
Draw = Callable[[str, Tensor], Tensor]
"""Return standard normal numbers for a state, from its name and its tensor."""


def fresh(state: str, like: Tensor) -> Tensor:
    """Return numbers of torch's own generator."""
    return torch.randn_like(like)


class Solver(Protocol):
    """Moves a flow by one time step."""

    def step(self, flow: Flow) -> None:
        """Advance by dt."""

    def look_back(self, flow: Flow) -> None:
        """Let errors and energies of a flow be those from which the last step was taken."""


def _ratio(dt: float, tau: Tau) -> Tau:
    return dt / tau


def _hold_gain(dt: float, tau: Tau) -> Tau:
    return -torch.expm1(-dt / tau) if isinstance(tau, Tensor) else 1 - exp(-dt / tau)


def _move(state: Tensor, force: Tensor, gain: Tau) -> None:
    if isinstance(gain, Tensor):
        state.addcmul_(force, gain)
    else:
        state.add_(force, alpha=gain)


def _kick(force: Force, size: float, draw: Draw) -> Tensor | None:
    """Return white noise over one step, of standard deviation `size`; none where clamped."""
    if not size or not force.noisy:
        return None
    kick = draw(force.name, force.state) * size
    return kick if force.free is None else kick.mul_(force.free)


class Euler:
    """s ← s + (dt/τ) force, θ ← θ + dt dθ/dt, both from one state; optional noise on somas."""

    def __init__(self, dt: float, sigma: float = 0.0, draw: Draw = fresh) -> None:
        self.dt = dt
        self.sigma = sigma
        self.draw = draw

    def gain(self, force: Force) -> Tau:
        """Return what multiplies the force."""
        return _ratio(self.dt, force.tau)

    def step(self, flow: Flow) -> None:
        """Advance by dt."""
        forces = flow.forces()
        flow.learn(self.dt)
        self.move(forces)
        flow.communicate()

    def look_back(self, flow: Flow) -> None:
        """Nothing was computed since."""

    def move(self, forces: Sequence[Force]) -> None:
        """Move the fast states by one step of these forces."""
        for force in forces:
            _move(force.state, force.value, self.gain(force))
            kick = _kick(force, self.sigma * sqrt(self.dt), self.draw)
            if kick is not None:
                force.state.add_(kick)


class Exponential(Euler):
    """s ← s + (1 − e^{−dt/τ}) force: sample and hold, γ = 1 − e^{−dt/τ}."""

    def gain(self, force: Force) -> Tau:
        """Return what multiplies the force."""
        return _hold_gain(self.dt, force.tau) if force.leaky else _ratio(self.dt, force.tau)


def as_before(flow: Flow, origin: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Let errors and energies be those at an earlier state: what moves, and as it was then."""
    present = [target.clone() for target, _ in origin]
    for target, start in origin:
        target.copy_(start)
    if present:
        flow.forces()
    for (target, _), value in zip(origin, present, strict=True):
        target.copy_(value)


class RungeKutta:
    """Explicit Runge–Kutta by its tableau; states and weights are one vector."""

    def __init__(
        self,
        dt: float,
        nodes: tuple[float, ...],
        weights: tuple[float, ...],
        sigma: float = 0.0,
        draw: Draw = fresh,
    ) -> None:
        """`nodes[i]` is how far stage i+1 moves along the derivative of stage i."""
        self.dt, self.nodes, self.weights = dt, nodes, weights
        self.sigma, self.draw = sigma, draw
        self._origin: list[tuple[Tensor, Tensor]] = []
        """What moves, and as it was before the last step."""

    def look_back(self, flow: Flow) -> None:
        """Let errors and energies of a flow be those from which the last step was taken."""
        as_before(flow, self._origin)

    def step(self, flow: Flow) -> None:
        """Advance by dt."""
        stages: list[list[Tensor]] = []
        noise: list[Tensor | None] = []
        targets: list[Tensor] = []
        origin: list[Tensor] = []
        for stage in range(len(self.weights)):
            forces = flow.forces()
            rates = [force.value / force.tau for force in forces] + flow.weight_rates()
            if stage == 0:
                targets = [force.state for force in forces] + flow.weights
                origin = [target.clone() for target in targets]
                self._origin = list(zip(targets, origin, strict=True))
                size = self.sigma * sqrt(self.dt)
                noise = [_kick(force, size, self.draw) for force in forces]
                noise += [None] * len(flow.weights)
            stages.append(rates)
            if stage + 1 < len(self.weights):
                step = self.nodes[stage] * self.dt
                for target, start, rate, kick in zip(targets, origin, rates, noise, strict=True):
                    torch.add(start, rate, alpha=step, out=target)
                    if kick is not None:
                        target.add_(kick, alpha=self.nodes[stage])
        for position, (target, kick) in enumerate(zip(targets, noise, strict=True)):
            target.copy_(origin[position])
            for weight, rates in zip(self.weights, stages, strict=True):
                target.add_(rates[position], alpha=weight * self.dt)
            if kick is not None:
                target.add_(kick)


SINGLE_STAGE = ("euler", "exponential", "maruyama")
STOCHASTIC = ("maruyama", "stochastic_heun")


def solver(name: Name, dt: float, sigma: float = 0.0, draw: Draw = fresh) -> Solver:
    """Build a solver; one that cannot take noise says so here."""
    if sigma and name not in STOCHASTIC:
        raise UnsupportedError(
            f"solver.name {name!r} cannot integrate noise (circuit.sigma_x = {sigma}); "
            f"use {' or '.join(STOCHASTIC)}"
        )
    if name in ("euler", "maruyama"):
        return Euler(dt, sigma, draw)
    if name == "exponential":
        return Exponential(dt)
    if name in ("heun", "stochastic_heun"):
        return RungeKutta(dt, (1.0,), (0.5, 0.5), sigma, draw)
    return RungeKutta(dt, (0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6))
