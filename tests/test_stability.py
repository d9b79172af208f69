"""Advice before a run: it names the number, and it is right within a few per cent."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "laws"))

import ct_oracle as ct
import energy_oracle as oracle

from pcsim import config
from pcsim.circuit import Circuit
from pcsim.energies import Categorical, Gaussian
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.runner.chip_run import ChipRun
from pcsim.stability import Linearisation, StabilityWarning, advise, margin

SIZES = [5, 4, 4, 3]


def world(f="tanh", gain=1.0, samples=3, bias=True, chips=2):
    network = Network.mlp(SIZES, f, bias=bias)
    params = oracle.random_parameters(network, chips, seed=1, gain=gain)
    x_top = torch.randn(1, samples, 5, generator=torch.Generator().manual_seed(0), dtype=ct.F64)
    return network, params, x_top


def dense(network, params, x_top, chip, gamma, alpha, scale):
    """γ A Aᵀ + α K, built from Jacobians of the errors by automatic differentiation."""
    samples = x_top.shape[1]
    x = [None] * 4
    x[3] = x_top[0]
    flat = params.flat[chip].clone()
    views = [{n: v[0] for n, v in d.items()} for d in params.views(flat[None])]

    def mu(views, x, k):
        rate = x[k + 1] if k == 2 else torch.tanh(x[k + 1])
        return rate @ views[k]["w"].T + views[k].get("b", 0.0)

    for k in (2, 1, 0):
        x[k] = mu(views, x, k)
    sizes = [samples * 4, samples * 4]

    def errors(states, flat):
        one, two = (part.view(samples, 4) for part in states.split(sizes))
        y = [x[0], one, two, x[3]]
        named = [{n: v[0] for n, v in d.items()} for d in params.views(flat[None])]
        return torch.cat([(y[k] - mu(named, y, k)).ravel() for k in range(3)])

    states = torch.cat([x[1].ravel(), x[2].ravel()])
    A, W = torch.autograd.functional.jacobian(errors, (states, flat))
    return gamma * A @ A.T + alpha * scale * W @ W.T


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("gamma", "alpha", "scale"), [(0.3, 0.0, 1.0), (0.2, 0.05, 1 / 3)])
def test_largest_eigenvalue(gamma, alpha, scale, bias):
    network, params, x_top = world(bias=bias)
    found = Linearisation(network, params, x_top, scale).largest(gamma, alpha)
    for chip in range(2):
        matrix = dense(network, params, x_top, chip, gamma, alpha, scale)
        assert float(found[chip]) == pytest.approx(float(torch.linalg.eigvalsh(matrix)[-1]), 1e-6)


def blows_up(network, params, x_top, dt, steps=4000, **circuit):
    """Start next to the feed-forward state, with its own output as the target: ε = 0 there."""
    chips = ct.engine(network, oracle.copy(params), dt, **circuit)
    chips.load([None, None, None, x_top.expand(params.replicas, -1, -1)])
    chips.feedforward()
    target = chips.flow.states()["x0"].clone()
    chips.load([target, None, None, x_top.expand(params.replicas, -1, -1)])
    chips.feedforward()
    generator = torch.Generator().manual_seed(3)
    for state in chips.flow.moving().values():
        state.add_(1e-9 * torch.randn(state.shape, generator=generator, dtype=ct.F64))
    sizes = []
    for step in range(steps):
        chips.advance(1)
        size = max(float(e.abs().max()) for n, e in chips.flow.states().items() if "err" in n)
        sizes.append(size)
        if not size < 1e-3:  # also when it is not a number
            return True
        if size < 1e-14 and step > 100:  # a delay keeps the first errors back
            return False
    return sizes[-1] > sizes[steps // 4]


def certain(network, params, x_top, dt, **circuit):
    circuit = Circuit(**{"tau_w": 5.0} | circuit)
    return any(a.certain for a in advise(network, params, circuit, dt, x_top))


CASES = {
    "joint": {"tau_w": 3.0},
    "inference": {"tau_w": 1e6},
    "dendritic": {"kind": "dendritic", "tau_w": 1e6},
    "error units": {"kind": "error_units", "tau_err": 0.6, "tau_w": 4.0},
    "quick error units": {"kind": "error_units", "tau_err": 0.02, "tau_w": 1e6},
    "error units, look-ahead": {
        "kind": "error_units",
        "tau_err": 0.3,
        "look_err": 0.2,
        "tau_w": 1e6,
    },
}


def limit(network, params, x_top, **circuit):
    """Return the time step at which the advice changes."""
    low, high = 1e-4, 10.0
    for _ in range(15):
        middle = np.sqrt(low * high)
        if certain(network, params, x_top, middle, **circuit):
            high = middle
        else:
            low = middle
    return high


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_step_size_limit_is_where_it_says(name):
    network, params, x_top = world(chips=1)
    dt = limit(network, params, x_top, **CASES[name])
    assert blows_up(network, params, x_top, 1.03 * dt, **CASES[name])
    assert not blows_up(network, params, x_top, 0.97 * dt, **CASES[name])


@pytest.mark.slow
def test_the_delay_limit_is_where_it_says():
    network, params, x_top = world(chips=1)
    h = float(Linearisation(network, params, x_top, 1.0).largest(1.0, 0.0).max())
    dt = 0.005
    steps = round(np.pi / 2 / h / dt)
    for factor, expected in ((0.96, False), (1.05, True)):
        delay = round(factor * steps) * dt
        setting = {"delay_err": delay, "tau_w": 1e9}
        assert certain(network, params, x_top, dt, **setting) == expected
        assert blows_up(network, params, x_top, dt, **setting) == expected


def test_latent_equilibrium_needs_a_small_curvature():
    for gain, expected in ((0.2, False), (2.0, True)):
        network, params, x_top = world(gain=gain, chips=1)
        h = float(Linearisation(network, params, x_top, 1.0).largest(1.0, 0.0).max())
        assert (h > 2) == expected
        setting = {"look_soma": 1.0, "tau_w": 1e9}
        assert certain(network, params, x_top, 0.01, **setting) == expected
        assert blows_up(network, params, x_top, 0.01, **setting) == expected


def test_words_carry_the_numbers():
    network, params, x_top = world(chips=1)
    (advice,) = advise(network, params, Circuit(tau_w=1e9), 1.5, x_top)
    h = float(Linearisation(network, params, x_top, 1.0).largest(1.0, 0.0).max())
    assert f"= {1.5 * h:.3g} ≥ 2" in advice.message
    lagged = Circuit(tau_w=1e9, kind="error_units", tau_err=1.0)
    (advice,) = advise(network, params, lagged, 0.01, x_top)
    assert not advice.certain
    assert "errors ring" in advice.message
    for name in ("tau_inter", "tau_apical"):
        (advice,) = advise(
            network, params, Circuit(tau_w=1e9, kind="dendritic", **{name: 1.0}), 0.01, x_top
        )
        assert not advice.certain
        assert f"circuit.{name}" in advice.message
        quick = Circuit(tau_w=1e9, kind="dendritic", **{name: 0.2 / h})
        assert advise(network, params, quick, 0.01, x_top) == []


@pytest.mark.parametrize("energies", [{"output": Categorical()}, {"hidden": Gaussian(0.1)}])
def test_silent_where_the_linearisation_does_not_hold(energies):
    """Another energy has another curvature: no number is better than a wrong one."""
    network = Network.mlp(SIZES, "tanh", **energies)
    params = oracle.random_parameters(network, 1)
    x_top = torch.ones(1, 2, 5, dtype=ct.F64)
    assert advise(network, params, Circuit(tau_w=1.0), 100.0, x_top) == []


def chip_run(**sections):
    base = {
        "network": {"sizes": [64, 8, 10]},
        "schedule": {"T": 5, "gamma": 0.2},
        "learning": {"alpha": 1e-4, "batch": 20, "epochs": 1},
        "data": {"limit": 40},
        "run": {"backend": "continuous"},
    }
    return ChipRun(config.changed(config.parse(base), sections))


@pytest.mark.parametrize(
    "sections",
    [
        {"schedule": {"gamma": 5.0}},
        {"grid": {"gamma": [0.2, 5.0]}},
        {"grid": {"gamma": [5.0]}},
        {"grid": {"alpha": [1e-4, 1.0]}},
        {"learning": {"alpha": 1.0}},
    ],
)
def test_a_run_is_warned_of(sections):
    with pytest.warns(StabilityWarning, match=r"will blow up: .* λ_max\(γAAᵀ \+ αK\) = \d"):
        chip_run(**sections).warn()


def test_a_harmless_run_is_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chip_run().warn()
        chip_run(grid={"gamma": [0.1, 0.3], "alpha": [1e-5, 1e-4]}).warn()


def test_margin_is_what_is_left_of_the_limit():
    network, params, x_top = world()
    gammas, alphas = torch.tensor([0.1, 0.4], dtype=ct.F64), torch.tensor([0.05, 0.2], dtype=ct.F64)
    circuit = Circuit(tau_w=1.0)
    found = margin(network, params, circuit, x_top, 0.5, (gammas, alphas))
    for chip in range(2):
        matrix = dense(network, params, x_top, chip, gammas[chip], alphas[chip], 0.5)
        expected = 1 - float(torch.linalg.eigvalsh(matrix)[-1]) / 2
        assert float(found[chip]) == pytest.approx(expected, rel=1e-3)


def by_numpy(theta, x_top, gamma, alpha):
    """1 − λ_max/2 of one chip with one hidden layer and its whole batch, written out by blocks."""
    w0, w1, b1 = (theta.of[k][n][0].double().numpy() for k, n in ((0, "w"), (1, "w"), (1, "b")))
    x = x_top.double().numpy()
    hidden = x @ w1.T + b1
    rate, slope = np.tanh(hidden), 1 / np.cosh(hidden) ** 2
    rows = []
    for i in range(len(x)):
        first = np.concatenate([-w0 * slope[i], np.eye(len(w1))])  # ∂(ε⁰, ε¹)/∂x¹ of sample i
        row = []
        for j in range(len(x)):
            block = gamma * first @ first.T if i == j else np.zeros((len(first), len(first)))
            grams = [rate[i] @ rate[j] + 1] * len(w0) + [x[i] @ x[j] + 1] * len(w1)
            row.append(block + alpha * np.diag(grams))
        rows.append(row)
    return 1 - np.linalg.eigvalsh(np.block(rows))[-1] / 2


@pytest.mark.parametrize("batch", [1, 4, 0])
def test_the_margin_of_a_run_is_never_optimistic(batch):
    """It is that of the worst batch of all that are shown, not of the first."""
    run = chip_run(
        data={"limit": 24},
        learning={"batch": batch, "alpha": 5e-3},
        network={"sizes": [64, 5, 10]},
        run={"dtype": "float64"},
    )
    run.run()
    size, theta = batch or 24, run.engine.flow.theta()
    x, alpha = run.task.train.x, 5e-3 * run.scale
    each = [by_numpy(theta, x[k : k + size], 0.2, alpha) for k in range(0, 24, size)]
    (found,) = run.verdict().margin
    assert found == pytest.approx(min(each), abs=1e-3 * abs(1 - min(each)))
    assert not batch or each[0] - min(each) > 0.02 * (1 - min(each)), "control: the first misleads"


@pytest.mark.parametrize(
    "changes",
    [{"transport": "random"}, {"kind": "error_units", "tau_err": 0.1}, {"delay_err": 1.0}],
)
def test_margin_is_unknown_where_the_linearisation_does_not_hold(changes):
    network, params, x_top = world()
    circuit = Circuit(tau_w=1.0, **changes)
    assert margin(network, params, circuit, x_top, 1.0, (0.1, 0.1)).isnan().all()


def test_errors_without_a_hidden_layer_do_not_ring():
    """h_max = 0: only the weights see the lagged error, and no lag of states is too long."""
    network = Network.mlp([5, 3], "tanh")
    params = oracle.random_parameters(network, 1, seed=1)
    x_top = torch.zeros(1, 2, 5, dtype=ct.F64)
    circuit = Circuit(kind="error_units", tau_err=0.5, tau_w=10.0)
    assert advise(network, params, circuit, 0.1, x_top) == []


def test_advice_on_a_large_network_is_bounded_and_not_silent():
    network = Network.mlp([784, 1024, 1024, 10], "tanh")
    flat = torch.full((1, network.parameter_count), 0.01)
    start = time.monotonic()
    advice = advise(
        network, Parameters(network, flat), Circuit(tau_w=1e3), 5.0, torch.ones(1, 64, 784)
    )
    assert [a.certain for a in advice] == [True]
    assert time.monotonic() - start < 8
    many = torch.full((1, 1), 0.01).expand(40, network.parameter_count)
    (skipped,) = advise(
        network, Parameters(network, many), Circuit(tau_w=1e3), 5.0, torch.ones(1, 1, 784)
    )
    assert "not examined: 74,547,600 weights are too many" in skipped.message
    assert not skipped.certain
