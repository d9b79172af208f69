"""Modes of linear networks: decay rates, lags, look-ahead, delays, against closed forms."""

from math import cos, exp, factorial, pi, sqrt

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.network import Network

FROZEN = 1e12


def chain(L, w, dt=0.01, solver="rk4", y=0.0, u=0.0, **circuit):
    """L weights of size w between single units, which do not move."""
    network = Network.mlp([1] * (L + 1), "identity", bias=False)
    params = oracle.random_parameters(network, 1)
    params.flat.fill_(w)
    chips = ct.engine(network, params, dt, solver, **{"tau_w": FROZEN, **circuit})
    one = torch.ones(1, 1, 1, dtype=ct.F64)
    chips.load([y * one, *[None] * (L - 1), u * one])
    chips.feedforward()
    return chips


def growth(chips):
    """Return the largest real part of the eigenvalues."""
    return np.linalg.eigvals(ct.jacobian(chips)).real.max()


# -- decay and the first instants ------------------------------------------------------------------


@pytest.mark.parametrize(("L", "w"), [(2, 0.7), (4, 1.0), (6, 1.3)])
def test_modes_of_a_chain_decay_as_computed(L, w):
    """h_k = 1 + w² − 2w cos(kπ/L), and each sine mode decays alone."""
    found = np.sort(-np.linalg.eigvals(ct.jacobian(chain(L, w, tau_x=1.0))).real)
    expected = [1 + w * w - 2 * w * cos(k * pi / L) for k in range(1, L)]
    np.testing.assert_allclose(found, np.sort(expected), atol=1e-12)
    for k, h in enumerate(expected, 1):
        chips = chain(L, w, dt=0.02, tau_x=0.5)
        mode = np.sin(k * pi * np.arange(1, L) / L)
        for layer in range(1, L):
            chips.flow.moving()[f"x{layer}"].fill_(mode[layer - 1])
        chips.advance(25)
        after = [float(chips.flow.moving()[f"x{layer}"]) for layer in range(1, L)]
        rate = -np.log(np.dot(after, mode) / np.dot(mode, mode)) / (25 * 0.02)
        assert rate == pytest.approx(h / 0.5, rel=0.01)


def test_errors_spread_as_powers_of_time():
    """ε^l(t) = (t/τ)^l/l!·δ_BP + O(t^{l+1}): the relative deviation is linear in t."""
    network = Network.mlp([4, 5, 5, 3], "tanh")
    params = oracle.random_parameters(network, 1, seed=1)
    clamps = oracle.clamps_of(network, "supervised", 1, 2, seed=2)
    tau, deviations = 0.5, {}
    for t in (0.02, 0.01, 0.005):
        chips = ct.engine(network, params, t / 20, "rk4", tau_x=tau, tau_w=FROZEN)
        chips.load(clamps)
        chips.feedforward()
        x = [state.clone() for state in chips.flow.field.x]
        w = [views["w"] for views in params.of[:-1]]
        b = [views["b"] for views in params.of[:-1]]
        delta = [clamps[0] - torch.tanh(x[1]) @ w[0].mT - b[0].unsqueeze(1)]
        for k in (1, 2):
            delta.append((1 - torch.tanh(x[k]) ** 2) * (delta[-1] @ w[k - 1]))
        chips.advance(20)
        chips.flow.forces()
        deviations[t] = [
            oracle.largest(chips.flow.states()[f"err{k}"] - (t / tau) ** k / factorial(k) * d)
            / oracle.largest((t / tau) ** k / factorial(k) * d)
            for k, d in enumerate(delta)
        ]
    assert max(deviations[0.005]) < 0.1
    for coarse, fine in ((0.02, 0.01), (0.01, 0.005)):
        ratios = np.divide(deviations[coarse], deviations[fine])
        np.testing.assert_allclose(ratios, 2.0, rtol=0.15)


# -- error units -----------------------------------------------------------------------------------


def lagged(look=0.0, tau_err=0.6, tau_x=0.8):
    network = Network.mlp([3, 4, 4, 2], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=1)
    circuit = {"kind": "error_units", "tau_err": tau_err, "look_err": look}
    chips = ct.engine(network, params, 0.01, "rk4", tau_x=tau_x, tau_w=FROZEN, **circuit)
    chips.load(oracle.clamps_of(network, "supervised", 1, 1, seed=2))
    plain = ct.engine(network, params, 0.01, "rk4", tau_x=1.0, tau_w=FROZEN)
    plain.load(oracle.clamps_of(network, "supervised", 1, 1, seed=2))
    return chips, -np.linalg.eigvals(ct.jacobian(plain)).real


@pytest.mark.parametrize("look", [0.0, 0.25, 0.6])
def test_poles_of_error_units(look):
    """τ_x τ_e s² + (τ_x + h τ̂) s + h = 0, and −1/τ_e for errors that no state can change."""
    tau_err, tau_x = 0.6, 0.8
    chips, curvatures = lagged(look, tau_err, tau_x)
    poles = [np.roots([tau_x * tau_err, tau_x + h * look, h]) for h in curvatures]
    free = 2  # ten errors, eight states
    expected = np.concatenate([*poles, np.full(free, -1 / tau_err)])
    found = np.linalg.eigvals(ct.jacobian(chips))
    assert len(found) == len(expected)
    for pole in expected:
        assert np.abs(found - pole).min() <= 1e-7 * abs(pole)
    for pole in found:
        assert np.abs(expected - pole).min() <= 1e-7 * abs(pole)
    assert found.real.max() < 0


@pytest.mark.parametrize(("w", "tau_err"), [(1.0, 1.0), (0.5, 2.0), (2.0, 0.3)])
def test_overshoot(w, tau_err):
    """ζ = ½√(τ_x/(h τ_e)); the first swing past the equilibrium is e^{−πζ/√(1−ζ²)}."""
    tau_x, h = 1.0, 1 + w * w
    lag = {"kind": "error_units", "tau_err": tau_err}
    chips = chain(2, w, dt=0.01, solver="heun", y=1.0, tau_x=tau_x, **lag)
    x = chips.flow.moving()["x1"]
    goal = w / h
    x.zero_()
    path = []
    chips.advance(800, lambda: path.append(float(x)))
    zeta = 0.5 * sqrt(tau_x / (h * tau_err))
    expected = exp(-pi * zeta / sqrt(1 - zeta**2))
    assert (max(path) - goal) / goal == pytest.approx(expected, rel=0.03)


def test_no_ringing_below_a_quarter():
    w, tau_x = 1.0, 1.0
    for factor, rings in ((0.98, False), (1.02, True)):
        tau_err = factor * tau_x / (4 * (1 + w * w))
        chips = chain(2, w, tau_x=tau_x, kind="error_units", tau_err=tau_err)
        assert bool(np.abs(np.linalg.eigvals(ct.jacobian(chips)).imag).max() > 1e-6) == rings


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["euler", "rk4"])
def test_full_look_ahead_restores_the_ideal_path(solver):
    network = Network.mlp([4, 5, 4, 3], "tanh")
    paths = {}
    for look in (None, 0.5, 0.4):
        params = oracle.random_parameters(network, 2, seed=1)
        lag = {} if look is None else {"kind": "error_units", "tau_err": 0.5, "look_err": look}
        chips = ct.engine(network, params, 0.02, solver, **lag)
        chips.load(oracle.clamps_of(network, "supervised", 2, 3, seed=2))
        chips.feedforward()
        chips.advance(300)
        parts = [chips.flow.states()[f"x{k}"].flatten(1) for k in (1, 2)]
        paths[look] = torch.cat([chips.flow.theta().flat, *parts], 1)
    assert oracle.largest(paths[0.5] - paths[None]) <= 1e-6
    assert oracle.largest(paths[0.4] - paths[None]) > 1e-3, "control: part of the lag remains"


# -- lags of parts of the dendritic circuit --------------------------------------------------------


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize(("L", "w"), [(3, 1.5), (4, 1.0), (6, 2.0), (10, 0.8)])
def test_interneuron_lag_threshold(L, w, learned):
    """Unstable from τ_x/(2w cos(π/L) − 1) on."""
    tau_x = 0.7
    limit = tau_x / (2 * w * cos(pi / L) - 1)
    lag = {"kind": "dendritic", "inter_learned": learned, "tau_x": tau_x}
    assert growth(chain(L, w, tau_inter=0.99 * limit, **lag)) < 0
    assert growth(chain(L, w, tau_inter=1.01 * limit, **lag)) > 0


@pytest.mark.parametrize(("L", "w"), [(2, 3.0), (4, 0.6)])
def test_no_interneuron_lag_is_dangerous_below_one(L, w):
    assert 2 * w * cos(pi / L) <= 1
    for lag in (0.1, 1.0, 10.0, 100.0):
        assert growth(chain(L, w, kind="dendritic", tau_inter=lag)) < 0


def test_a_matching_look_ahead_cures_the_interneurons():
    lag = {"kind": "dendritic", "tau_inter": 5.0}
    assert growth(chain(6, 2.0, **lag)) > 0
    assert growth(chain(6, 2.0, look_inter=5.0, **lag)) < 0


def apical_growth(L, w, lag):
    """The largest real part of s in (PQ + w²)² = (2w cos(kπ/L))² Q, P = 1 + s, Q = 1 + lag·s."""
    Q = np.polynomial.Polynomial([1, lag])
    PQ = np.polynomial.Polynomial([1, 1]) * Q + w * w
    roots = [(PQ**2 - (2 * w * cos(k * pi / L)) ** 2 * Q).roots() for k in range(1, L)]
    return max(root.real.max() for root in roots)


# Thresholds found on a coarse scan: the true one lies a few per cent below at most.
APICAL = {(3, 10): 0.74, (4, 3): 2.05, (4, 10): 0.34, (6, 1.5): 8.98, (6, 2): 2.14, (10, 3): 0.74}


@pytest.mark.parametrize(("L", "w"), APICAL)
def test_apical_lag_threshold(L, w):
    low, high = 0.5 * APICAL[L, w], APICAL[L, w]
    assert apical_growth(L, w, high) > 0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if apical_growth(L, w, middle) > 0 else (middle, high)
    assert high > 0.9 * APICAL[L, w]
    assert growth(chain(L, w, kind="dendritic", tau_apical=0.995 * high)) < 0
    assert growth(chain(L, w, kind="dendritic", tau_apical=1.005 * high)) > 0
    lag = APICAL[L, w]
    assert growth(chain(L, w, kind="dendritic", tau_apical=lag, look_apical=lag)) < 0


@pytest.mark.slow
@pytest.mark.parametrize(("L", "w"), [(2, 10), (3, 3), (4, 2), (6, 1), (10, 1)])
def test_chains_that_no_apical_lag_upsets(L, w):
    for lag in np.geomspace(0.01, 1000, 26):
        assert growth(chain(L, w, kind="dendritic", tau_apical=lag)) < 1e-9


# -- delay -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "grows"), [(0.97, False), (1.03, True)])
def test_delay_threshold(factor, grows):
    """τ_x dx/dt = −h x(t − d) is stable for h d/τ_x < π/2."""
    w, steps = 1.0, 200
    delay = factor * (pi / 2) / (1 + w * w)
    dt = delay / steps
    chips = chain(2, w, dt=dt, solver="euler", delay_err=delay)
    x = chips.flow.moving()["x1"]
    x.fill_(1.0)
    path = []
    chips.advance(60 * steps, lambda: path.append(abs(float(x))))
    early, late = max(path[10 * steps : 20 * steps]), max(path[50 * steps :])
    assert (late > early) == grows
