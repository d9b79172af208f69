"""Streams: what a short presentation does to the weights, and what a switch leaves behind."""

import ct_oracle as ct
import energy_oracle as oracle
import numpy as np
import pytest
import torch

from pcsim.energies import Categorical
from pcsim.network import Network

SLOW = 1e6  # weights that hardly move: their change is the average of the text


def ones(value):
    return torch.full((1, 1, 1), value, dtype=ct.F64)


@pytest.mark.parametrize("T", [0.3, 1.0, 5.0])
def test_scalar_closed_form(T):
    w0, w1, u, y, x0 = 0.8, 0.6, 1.2, -0.7, 0.4
    network = Network.mlp([1, 1, 1], "identity", bias=False)
    params = oracle.random_parameters(network, 1)
    params.of[0]["w"].fill_(w0)
    params.of[1]["w"].fill_(w1)
    n = 200
    chips = ct.engine(network, params, T / n, "rk4", tau_w=SLOW)
    chips.load([ones(y), None, ones(u)])
    chips.flow.moving()["x1"].fill_(x0)
    chips.advance(n)
    h = 1 + w0 * w0
    goal = (w1 * u + w0 * y) / h
    E1, E2, D = (1 - np.exp(-h * T)) / h, (1 - np.exp(-2 * h * T)) / (2 * h), x0 - goal
    X1, X2 = goal * T + D * E1, goal**2 * T + 2 * goal * D * E1 + D * D * E2
    change = [float(views["w"]) for views in chips.flow.theta().of[:-1]]
    assert SLOW * (change[0] - w0) == pytest.approx(y * X1 - w0 * X2, rel=1e-4)
    assert SLOW * (change[1] - w1) == pytest.approx(u * (X1 - w1 * u * T), rel=1e-4)


def linear(samples, dt, solver="rk4", tau_x=1.0, seed=1):
    network = Network.mlp([2, 3, 2], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=seed, gain=0.8)
    theta = [views["w"][0].numpy().copy() for views in params.of[:-1]]
    chips = ct.engine(network, params, dt, solver, tau_x=tau_x, tau_w=SLOW, scale=1 / samples)
    return chips, theta


def average(chips, theta, T):
    """Return τ_w·Δθ¹/T."""
    return SLOW * (chips.flow.theta().of[1]["w"][0].numpy() - theta[1]) / T


def stationary(theta, y, u):
    """Return H, x* and ε¹* of every sample."""
    H = np.eye(3) + theta[0].T @ theta[0]
    goal = np.linalg.solve(H, (u @ theta[1].T + y @ theta[0]).T).T
    return H, goal, goal - u @ theta[1].T


def transient(H, T, tau_x=1.0):
    """Φ = (τ_x/T) H⁻¹ (I − e^{−HT/τ_x})."""
    values, vectors = np.linalg.eigh(H)
    return vectors @ np.diag(tau_x / T * (1 - np.exp(-values * T / tau_x)) / values) @ vectors.T


@pytest.mark.parametrize("T", [0.5, 2.0])
def test_a_feedforward_start_only_rescales(T):
    tau_x = 0.7
    chips, theta = linear(50, T / 100, tau_x=tau_x)
    clamps = oracle.clamps_of(chips.network, "supervised", 1, 50, seed=2)
    chips.load(clamps)
    chips.feedforward()
    chips.advance(100)
    y, u = clamps[0][0].numpy(), clamps[2][0].numpy()
    H, _, eps = stationary(theta, y, u)
    settled = eps.T @ u / 50
    expected = (np.eye(3) - transient(H, T, tau_x)) @ settled
    got = average(chips, theta, T)
    assert ct.largest(got - expected) <= 1e-4 * ct.largest(expected)
    assert ct.largest(settled - expected) > 0.05 * ct.largest(settled), "control"


@pytest.mark.parametrize("T", [1.0, 4.0])
def test_carrying_over_biases(T):
    """avg Δθ¹ = E[ε*uᵀ] − Φ Cov(x*, u) for independent samples."""
    samples, switches = 400, 60
    chips, theta = linear(samples, T / 20)
    rng = np.random.default_rng(3)
    rows = []
    for switch in range(switches + 5):
        y, u = rng.standard_normal((samples, 2)), 1 + rng.standard_normal((samples, 2))
        chips.load([torch.as_tensor(y)[None], None, torch.as_tensor(u)[None]])
        before = average(chips, theta, T)
        chips.advance(20)
        H, _, eps = stationary(theta, y, u)
        if switch >= 5:  # the zero start is forgotten
            rows.append((average(chips, theta, T) - before, eps.T @ u / samples))
    got, settled = (np.mean(part, axis=0) for part in zip(*rows, strict=True))
    # y has mean 0 and variance 1, u mean 1 and variance 1, independent of each other
    cov = np.linalg.solve(H, theta[1])
    bias = -transient(H, T) @ cov
    difference = [a - b for a, b in rows]
    error = np.std(difference, axis=0) / np.sqrt(switches)
    assert (np.abs(got - settled - bias) < 4 * error + 1e-4).all()
    assert np.abs(bias / error).max() > 10, "control: the bias stands out of the noise"


@pytest.mark.parametrize("kind", ["algebraic", "error_units", "dendritic"])
def test_without_a_label_the_states_settle_to_the_feedforward_pass(kind):
    lag = {"tau_err": 0.1} if kind == "error_units" else {}
    network = Network.mlp([4, 5, 4, 3], "tanh")
    params = oracle.random_parameters(network, 2, seed=1, gain=0.8)
    chips = ct.engine(network, params, 0.1, kind=kind, tau_w=1e13, **lag)
    clamps = oracle.clamps_of(network, "supervised", 2, 3, seed=2)
    chips.load(clamps)
    ct.stir(chips)
    chips.advance(20)
    label = clamps[0].clone()
    chips.load([None, *clamps[1:]])
    assert oracle.largest(chips.flow.states()["x0"] - label) == 0, "it is let go where it was"
    chips.advance(1500)
    assert float(chips.flow.energy_by_node().max()) <= 1e-20
    assert torch.equal(clamps[0], label), "the data itself is not moved"
    settled = {n: s.clone() for n, s in chips.flow.moving().items() if n.startswith("x")}
    chips.feedforward()
    for name, state in settled.items():
        assert oracle.largest(chips.flow.moving()[name] - state) <= 1e-10
    chips.load(clamps)
    chips.advance(3)
    assert oracle.largest(chips.flow.states()["x0"] - label) == 0, "clamped again"


# -- following clamped inputs ----------------------------------------------------------------------

WIDE = Network.mlp([40, 6, 5, 3], "tanh")


def streamed(fast, chips=1, *, shared=False, reset=False, release=False, **options):
    params = oracle.random_parameters(WIDE, chips, seed=1, gain=0.5)
    engine = ct.engine(WIDE, params, 0.1, fast=fast, tau_w=8.0, **options)
    active = 0
    for sample in range(60):
        clamps = oracle.clamps_of(WIDE, "supervised", chips, 1, sample, shared=shared)
        if release:
            engine.load([None, *clamps[1:]], steps=4)
            engine.advance(4)
        engine.load(clamps, steps=12)
        if reset:
            engine.feedforward()
        engine.advance(6)
        if sample % 3 == 0:
            engine.flow.theta()  # a look at the weights in between changes nothing
        if reset:
            engine.feedforward()
        engine.advance(6)
        active += len(engine.flow.inputs.active)
    return engine.flow.theta().flat, engine, active


@pytest.mark.parametrize("chips", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shared": True},
        {"reset": True},
        {"release": True},
        {"delay_err": 0.2},
        {"delay_fb": 0.3},
        {"kind": "error_units", "tau_err": 0.3},
        {"tau_x": 0.5, "look_soma": 0.5},
        {"tau_x": 0.5, "look_soma": 0.3, "release": True},
        {"scale": 0.5},
    ],
    ids=str,
)
def test_following_equals_the_direct_product(options, chips):
    fast, engine, active = streamed(True, chips, **options)
    slow, other, none = streamed(False, chips, **options)
    assert oracle.largest(fast - slow) <= 1e-10 * oracle.largest(slow)
    for name, state in engine.flow.moving().items():
        assert oracle.largest(state - other.flow.moving()[name]) <= 1e-10
    assert active == 60
    assert none == 0


@pytest.mark.parametrize(
    "options",
    [
        {"weight_decay": 0.1},
        {"tau_w_each": torch.full((1, 1), 8.0, dtype=ct.F64)},
        {"transport": "kolen_pollack"},
    ],
    ids=["decay", "per weight", "kolen_pollack"],
)
def test_following_is_not_used_where_it_would_be_wrong(options):
    assert streamed(True, **options)[2] == 0


@pytest.mark.parametrize("solver", ["rk4", "heun", "stochastic_heun"])
def test_following_is_not_used_by_stages(solver):
    params = oracle.random_parameters(WIDE, 1)
    engine = ct.engine(WIDE, params, 0.1, solver)
    engine.load(oracle.clamps_of(WIDE, "supervised", 1, 1), steps=100)
    assert not engine.flow.inputs.active


def test_a_released_input_is_not_followed():
    params = oracle.random_parameters(WIDE, 1)
    engine = ct.engine(WIDE, params, 0.1)
    clamps = oracle.clamps_of(WIDE, "supervised", 1, 1)
    engine.load(clamps, steps=100)
    assert engine.flow.inputs.active
    engine.load([*clamps[:-1], None], steps=100)
    assert not engine.flow.inputs.active
    engine.advance(5)
    assert float(engine.flow.states()[f"x{3}"].sub(clamps[-1]).abs().max()) > 0


def test_a_label_that_moves_is_a_label_at_every_moment():
    """ξ⁰ = −∂E/∂μ of E = −Σ y ln softmax(μ) at the y of the step, a distribution or not."""
    network = Network.mlp([3, 4, 3], "tanh", output=Categorical())
    params = oracle.random_parameters(network, 2, seed=1)
    chips = ct.engine(network, params, 0.1, tau_w=3.0)
    clamps = oracle.clamps_of(network, "supervised", 2, 2, seed=2)
    label = torch.zeros_like(clamps[0])
    chips.load([label, *clamps[1:]])
    sums = []
    for _ in range(4):
        label.lerp_(clamps[0], 0.3)
        x = chips.flow.states()["x1"].clone()
        w, b = (chips.flow.theta().of[0][name].clone() for name in ("w", "b"))
        mu = (torch.tanh(x) @ w.mT + b.unsqueeze(1)).requires_grad_()
        energy = -(label * torch.log_softmax(mu, -1)).sum()
        (slope,) = torch.autograd.grad(energy, mu)
        chips.advance(1)
        assert oracle.largest(chips.flow.states()["err0"] + slope) <= 1e-12
        sums.append(float(label.sum(-1).mean()))
    assert sums[0] < 0.5 < sums[-1], "control: the label was on its way"
