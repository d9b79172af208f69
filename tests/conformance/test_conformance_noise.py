"""With noise the agreement is statistical: the same variances and the same mean energy.

In a linear network with fixed weights, dx = −Hx dt/τ_x + σ dW around its equilibrium. By Euler's
rule with γ = dt/τ_x and eigenvalues h of H:

    C = (σ²τ_x/2) H⁻¹ (1 − γH/2)⁻¹          E[F − F*] = (σ²τ_x/4) Σ 1/(1 − γh/2)

Every chip is an independent sample, so that standard errors come from the spread over chips.
"""

from functools import cache

import numpy as np
import pytest
import torch
from brian2 import StateMonitor

from pcsim.backends.brian import RECORD, BrianBackend
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit, Conductances
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Seeded

SIGMA, DT, TAU = 0.4, 0.2, 1.0
CHIPS, BURN_IN, STEPS = 48, 150, 1500
W_HIDDEN = np.array([[0.5, -0.4, 0.3], [0.2, 0.6, -0.5]])
KINDS = {
    "algebraic": {},
    "dendritic": {"kind": "dendritic"},
    "sacramento": {"kind": "sacramento", "conductances": Conductances(g_lk=0.1, g_som=0.5)},
}


def prepared(kind):
    """Return network, weights, circuit and data; all chips are alike, and weights stand still."""
    network = Network.mlp([2, 3, 2], "identity", bias=False)
    circuit = Circuit(tau_x=TAU, tau_w=1e12, sigma_x=SIGMA, **KINDS[kind])
    params = Parameters(network, torch.zeros(CHIPS, network.parameter_count, dtype=torch.float64))
    params.of[0]["w"].copy_(torch.as_tensor(W_HIDDEN))
    params.of[1]["w"].fill_(0.3)
    data = [
        torch.tensor([[[0.8, -0.5]]], dtype=torch.float64),
        None,
        torch.tensor([[[1.0, 0.5]]], dtype=torch.float64),
    ]
    return network, params, circuit, data


WATCHED = {
    "algebraic": ("x1", "err0", "err1"),
    "dendritic": ("x1", "err0", "err1"),
    "sacramento": ("x1", "inter1"),
}


def summarised(states):
    """Return per chip: variances of hidden units and interneurons, and the mean energy."""
    columns = [rows.var(0) for name, rows in states.items() if not name.startswith("err")]
    errors = [rows for name, rows in states.items() if name.startswith("err")]
    if errors:
        energy = sum(0.5 * (rows**2).sum(-1) for rows in errors)
        columns.append(energy.mean(0)[:, None])
    return np.concatenate(columns, 1)


@cache
def by_brian(kind):
    network, params, circuit, data = prepared(kind)
    engine = BrianBackend(network, params, circuit, dt=DT, seeds=[0] * CHIPS, noise=Seeded(11))
    engine.load(data)
    engine.feedforward()
    engine.advance(BURN_IN)
    layers, found = engine.parts.layers, {}
    options = {"record": True, "when": "groups", "order": RECORD, "clock": layers[0].clock}
    for label in WATCHED[kind]:
        variable, k = label[:-1], int(label[-1]) - label.startswith("inter")
        found[label] = StateMonitor(
            layers[k],
            variable,
            name=f"seen_{label}",
            codeobj_class=layers[k].codeobj_class,
            **options,
        )
    engine.net.add(list(found.values()))
    engine.advance(STEPS)
    if kind != "sacramento":
        assert set(layers[0].x[:]) == {0.8, -0.5}, "there is no noise on what is clamped"
    return summarised(
        {
            label: np.asarray(getattr(seen, label[:-1])).T.reshape(STEPS, CHIPS, -1)
            for label, seen in found.items()
        }
    )


@cache
def by_torch(kind):
    network, params, circuit, data = prepared(kind)
    source = torch.Generator().manual_seed(5)

    def draw(state, like):
        return torch.randn(like.shape, generator=source, dtype=like.dtype)

    chips = Continuous(
        network,
        params,
        circuit,
        dt=DT,
        solver_name="maruyama",
        seeds=[0] * CHIPS,
        draw=draw,
        fast=False,
    )
    chips.load(data)
    chips.feedforward()
    chips.advance(BURN_IN)
    rows = {}
    for _ in range(STEPS):
        moving = {name: state.clone() for name, state in chips.flow.moving().items()}
        chips.advance(1)
        now = chips.flow.states() | moving
        for name in WATCHED[kind]:
            rows.setdefault(name, []).append(now[name][:, 0].numpy().copy())
    return summarised({name: np.stack(seen) for name, seen in rows.items()})


def closed_form(correction=True):
    """Return the variances of the hidden units and the mean energy F."""
    hessian = np.eye(3) + W_HIDDEN.T @ W_HIDDEN
    h, modes = np.linalg.eigh(hessian)
    gamma = DT / TAU if correction else 0.0
    spread = SIGMA**2 * TAU / 2 / h / (1 - gamma * h / 2)
    variances = np.einsum("ik,k,ik->i", modes, spread, modes)
    mu = np.full((3, 2), 0.3) @ [1.0, 0.5]
    x = np.linalg.solve(hessian, mu + W_HIDDEN.T @ [0.8, -0.5])
    least = 0.5 * (np.sum((x - mu) ** 2) + np.sum(([0.8, -0.5] - W_HIDDEN @ x) ** 2))
    return np.append(variances, least + SIGMA**2 * TAU / 4 * np.sum(1 / (1 - gamma * h / 2)))


def standard_errors_apart(found, expected):
    """Return how many standard errors the mean over chips lies from what is expected."""
    return np.abs(found.mean(0) - expected) / (found.std(0, ddof=1) / np.sqrt(len(found)))


@pytest.mark.parametrize("kind", ["algebraic", "dendritic"])
@pytest.mark.parametrize("backend", [by_brian, by_torch], ids=["brian", "continuous"])
def test_stationary_variances_and_mean_energy(backend, kind):
    found = backend(kind)
    assert standard_errors_apart(found, closed_form()).max() < 3
    # Controls: continuous time, and five per cent more noise, are both seen to be wrong.
    assert standard_errors_apart(found, closed_form(correction=False)).max() > 3
    assert standard_errors_apart(found, 1.05**2 * closed_form())[:3].max() > 3


@pytest.mark.parametrize("kind", KINDS)
def test_both_backends_agree(kind):
    ours, theirs = by_brian(kind), by_torch(kind)
    spread = np.sqrt((ours.var(0, ddof=1) + theirs.var(0, ddof=1)) / CHIPS)
    assert (np.abs(ours.mean(0) - theirs.mean(0)) / spread).max() < 3
    assert (np.abs(1.1 * ours.mean(0) - theirs.mean(0)) / spread).max() > 3, "control"
