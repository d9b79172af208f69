"""Measurements on simulated scalar chains: poles, step responses, and limits of lags and delays.

Every number here comes from the circuits that `Continuous` runs, with frozen weights: from the
Jacobian of their forces (exact, since they are linear), or from simulated trajectories.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.solvers import Name
from pcsim.kernels.parameters import Parameters
from pcsim.limits.lags import Floats, first_unstable
from pcsim.network import Network

FROZEN = 1e30
"""τ_w in seconds: weights do not move."""
TAU_X = 1.0


def chain(
    depth: int, weights: Sequence[float], dt: float = 0.1, solver: Name = "euler", **circuit: Any
) -> Continuous:
    """Return scalar linear chains of L = `depth` weights, one chip for each weight."""
    network = Network.mlp([1] * (depth + 1), "identity", bias=False)
    flat = torch.tensor(weights, dtype=torch.float64)[:, None].repeat(1, depth)
    tau_x = circuit.pop("tau_x", None)
    return Continuous(
        network,
        Parameters(network, flat),
        Circuit(tau_x=TAU_X, tau_w=FROZEN, **circuit),
        dt=dt,
        solver_name=solver,
        tau_x=tau_x,
    )


def clamp(engine: Continuous, target: float, samples: int = 1) -> None:
    """Clamp the output to `target` and the input to 0."""
    chips, inner = engine.params.replicas, len(engine.network.nodes) - 2
    ones = torch.ones(chips, samples, 1, dtype=torch.float64)
    engine.load([target * ones, *([None] * inner), 0 * ones])


def jacobian(engine: Continuous) -> Floats:
    """Return ∂(ds/dt)/∂s of a chain of one chip: sample k sits at the unit vector of state k."""
    clamp(engine, 0.0)
    names = list(engine.flow.moving())
    clamp(engine, 0.0, samples=len(names))
    for k, name in enumerate(names):
        state = engine.flow.moving()[name]
        state.zero_()
        state[0, k, 0] = 1.0
    rates = {force.name: force.value / force.tau for force in engine.flow.forces()}
    return np.asarray(torch.stack([rates[name][0, :, 0] for name in names]).numpy())


def poles(depth: int, w: float, **circuit: Any) -> npt.NDArray[np.complex128]:
    """Return the eigenvalues of the simulated circuit's Jacobian, in 1/τ_x."""
    return np.asarray(np.linalg.eigvals(jacobian(chain(depth, [w], **circuit))), dtype=complex)


def lag_limit(depth: int, w: float, name: str) -> float:
    """Return the smallest unstable `tau_apical` or `tau_inter` of the dendritic circuit, in τ_x."""

    def abscissa(lag: float) -> float:
        return float(poles(depth, w, kind="dendritic", **{name: lag}).real.max())

    return first_unstable(abscissa)


def pole_error(depth: int, w: float, tau_e: float, expected: npt.NDArray[np.complex128]) -> float:
    """Return the largest distance of a measured pole to the nearest expected one, relative."""
    measured = poles(depth, w, kind="error_units", tau_err=tau_e)
    gaps = np.abs(measured[:, None] - expected[None, :])
    return float((gaps.min(1) / np.abs(measured)).max())


def damping(w: float, tau_e: float) -> float:
    """Return ζ = −(s₁ + s₂)/(2√(s₁s₂)) of the two poles of x (L = 2); the third is −1/τ_e."""
    measured = poles(2, w, kind="error_units", tau_err=tau_e)
    pair = np.delete(measured, np.abs(measured + 1 / tau_e).argmin())
    return float((-pair.sum() / 2 / np.sqrt(pair.prod())).real)


def step_overshoot(w: float, tau_e: float, steps_per_time: int = 60) -> float:
    """Return the overshoot of x (L = 2) after the output jumps from 0 to 1, from a simulation."""
    dt = min(tau_e, TAU_X / (1 + w * w)) / steps_per_time
    engine = chain(2, [w], dt, "rk4", kind="error_units", tau_err=tau_e)
    clamp(engine, 1.0)
    final = w / (1 + w * w)
    # The first peak comes after half a period, π/ω_d, which is below this for overshoots > 0.1 %.
    duration = 12 * max(tau_e, np.sqrt(tau_e / (1 + w * w)))
    highest = 0.0
    for _ in range(int(duration / dt)):
        engine.advance(1)
        x = float(engine.flow.moving()["x1"])
        if x < highest:
            break
        highest = x
    return max(0.0, highest / final - 1)


def delay_limits(
    depth: int, weights: Sequence[float], name: str, *, per_delay: int = 100, halvings: int = 12
) -> Floats:
    """Return the largest stable `delay_err` or `delay_fb` of each chain, in τ_x, by simulation.

    All chains run at once with one delay d; bisection moves their τ_x. A chain is unstable if the
    envelope of its oscillation is larger in the last quarter of a run of 80 d than in the second.
    """
    delay = 1.0
    dt = delay / per_delay
    low, high = np.full(len(weights), 0.02), np.full(len(weights), 6.0)
    for _ in range(halvings):
        ratio = np.sqrt(low * high)
        tau = torch.as_tensor(delay / ratio).view(-1, 1, 1)
        late: dict[str, Any] = {name: delay}
        engine = chain(depth, weights, dt, tau_x=[tau] * (depth + 1), **late)
        grows = _grows(engine, depth, 80 * per_delay)
        low, high = np.where(grows, low, ratio), np.where(grows, ratio, high)
    return np.asarray(np.sqrt(low * high))


def _grows(engine: Continuous, depth: int, steps: int) -> npt.NDArray[np.bool_]:
    clamp(engine, 1.0)
    w = engine.params.of[0]["w"][:, 0, 0]
    x, rest = engine.flow.moving()["x1"][:, 0, 0], equilibrium(depth, w)[0]
    quarter = steps // 4
    envelope = []
    engine.advance(quarter)
    for _ in range(3):
        largest = torch.zeros_like(w)
        for _ in range(quarter):
            engine.advance(1)
            torch.maximum(largest, (x - rest).abs(), out=largest)
        envelope.append(largest)
    return np.asarray((envelope[2] > envelope[0]).numpy() | ~torch.isfinite(envelope[2]).numpy())


def equilibrium(depth: int, w: Tensor) -> Tensor:
    """Return x* (layer, chip) of chains with output 1 and input 0, from H x* = w e_1."""
    h = torch.zeros(len(w), depth - 1, depth - 1, dtype=w.dtype)
    for k in range(depth - 1):
        h[:, k, k] = 1 + w * w
        if k:
            h[:, k, k - 1] = h[:, k - 1, k] = -w
    drive = torch.zeros(len(w), depth - 1, dtype=w.dtype)
    drive[:, 0] = w
    solution: Tensor = torch.linalg.solve(h, drive)
    return solution.T
