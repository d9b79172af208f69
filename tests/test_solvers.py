"""Fixed-step solvers: their order, their noise, and what they refuse."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent / "laws"))

import ct_oracle as ct
import energy_oracle as oracle

from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.continuous.solvers import fresh, solver
from pcsim.errors import ConfigError, UnsupportedError
from pcsim.network import Network

SIZES = [4, 5, 4, 3]
T = 1.6


def chips_of(name, dt, **circuit):
    network = Network.mlp(SIZES, "tanh")
    params = oracle.random_parameters(network, 1, seed=3, gain=0.8)
    chips = ct.engine(network, params, dt, name, **{"tau_w": 3.0, "tau_x": 0.7, **circuit})
    clamps = oracle.clamps_of(network, "supervised", 1, 3, seed=4)
    chips.load(clamps)
    ct.stir(chips)
    return chips, clamps


@pytest.fixture(scope="module")
def exact():
    chips, clamps = chips_of("euler", 0.1)
    return ct.integrate(ct.error_rhs(chips, clamps, SIZES[::-1]), ct.read(chips), T)


def slope(name, exact, steps, **circuit):
    """Return the slope of log error against log dt."""
    errors = []
    for n in steps:
        chips, _ = chips_of(name, T / n, **circuit)
        chips.advance(n)
        errors.append(np.linalg.norm(ct.read(chips) - exact))
    return -np.polyfit(np.log(steps), np.log(errors), 1)[0]


@pytest.mark.parametrize(
    ("name", "order", "tolerance", "steps"),
    [
        ("euler", 1, 0.05, (80, 160, 320)),
        ("maruyama", 1, 0.05, (80, 160, 320)),
        ("exponential", 1, 0.1, (80, 160, 320)),
        ("heun", 2, 0.1, (40, 80, 160)),
        ("stochastic_heun", 2, 0.1, (40, 80, 160)),
        ("rk4", 4, 0.1, (40, 80, 160)),
    ],
)
def test_order_of_convergence(name, order, tolerance, steps, exact):
    assert slope(name, exact, steps) == pytest.approx(order, abs=tolerance)


def test_control_the_slope_notices_another_flow(exact):
    """A weight that moves 1 % too slowly leaves an error that no time step removes."""
    assert slope("rk4", exact, (20, 40, 80), tau_w=3.03) < 0.1


# -- noise -----------------------------------------------------------------------------------------


def linear(name, dt, copies, sigma, draw=fresh, tau_x=0.5):
    """A linear network with frozen weights; every sample is one copy of the same noisy system."""
    network = Network.mlp([2, 3, 2], "identity", bias=False)
    params = oracle.random_parameters(network, 1, seed=2, gain=1.0)
    chips = ct.engine(network, params, dt, name, tau_x=tau_x, tau_w=1e12, sigma_x=sigma, draw=draw)
    generator = torch.Generator().manual_seed(0)
    y, u = (torch.randn(1, 1, 2, generator=generator, dtype=ct.F64) for _ in range(2))
    chips.load([y.expand(1, copies, -1), None, u.expand(1, copies, -1)])
    chips.feedforward()
    w = params.of[0]["w"][0].numpy()
    return chips, np.eye(3) + w.T @ w


@pytest.mark.parametrize("name", ["maruyama", "stochastic_heun"])
def test_stationary_covariance(name):
    """C = (σ²τ/2) H⁻¹; Euler's steps make it larger by (I − γH/2)⁻¹, Heun's hardly."""
    sigma, tau, dt = 0.3, 0.5, 0.1
    torch.manual_seed(0)
    chips, H = linear(name, dt, 20_000, sigma)
    chips.advance(60)
    sums, n = np.zeros((3, 3)), 0
    for _ in range(10):
        chips.advance(8)
        sums += np.cov(chips.flow.states()["x1"][0].numpy().T)
        n += 1
    ideal = sigma**2 * tau / 2 * np.linalg.inv(H)
    euler = ideal @ np.linalg.inv(np.eye(3) - dt / tau * H / 2)
    expected = euler if name == "maruyama" else ideal
    assert np.abs(sums / n - expected).max() <= 0.03 * np.abs(expected).max()
    assert np.abs(ideal - euler).max() > 0.1 * np.abs(ideal).max(), "control: they do differ"


def test_maruyama_path_by_path():
    """With the noise frozen, the path is that of an explicit loop."""
    rng = np.random.default_rng(0)
    kicks = rng.standard_normal((50, 4, 3))
    source = iter(kicks)
    chips, _ = linear(
        "maruyama", 0.1, 4, 0.3, lambda state, like: torch.as_tensor(next(source))[None]
    )
    flow = chips.flow
    w0, w1 = (flow.params.of[k]["w"][0].numpy() for k in (0, 1))
    y, u = flow.field.x[0][0].numpy(), flow.field.x[2][0].numpy()
    x = flow.field.x[1][0].numpy().copy()
    for kick in kicks:
        drift = -(x - u @ w1.T) + (y - x @ w0.T) @ w0
        x = x + 0.1 / 0.5 * drift + 0.3 * np.sqrt(0.1) * kick
    chips.advance(50)
    assert ct.largest(flow.field.x[1][0].numpy() - x) <= 1e-10


@pytest.mark.parametrize("name", ["maruyama", "stochastic_heun"])
def test_strong_convergence_on_one_noise_path(name):
    """A linear system with additive noise: coarse steps, fed the summed fine noise, converge."""
    fine = np.random.default_rng(1).standard_normal((640, 200, 3))

    def end(every):
        rows = fine.reshape(-1, every, 200, 3).sum(1) / np.sqrt(every)
        source = iter(rows)
        chips, _ = linear(
            name, every / 640, 200, 0.5, lambda state, like: torch.as_tensor(next(source))[None]
        )
        chips.advance(len(rows))
        return chips.flow.field.x[1][0].numpy()

    best = end(1)
    errors = [np.sqrt(np.mean((end(every) - best) ** 2)) for every in (16, 32)]
    assert errors[1] / errors[0] == pytest.approx(2.0, rel=0.25)
    assert errors[1] < 0.1


@pytest.mark.parametrize("name", ["euler", "exponential", "heun", "rk4"])
def test_noise_is_refused_where_it_cannot_be_integrated(name):
    with pytest.raises(UnsupportedError, match=rf"solver\.name '{name}' cannot integrate noise"):
        solver(name, 0.1, 0.2)
    with pytest.raises(UnsupportedError, match=r"circuit\.sigma_x = 0\.2"):
        chips_of(name, 0.1, sigma_x=0.2)
    chips_of(name, 0.1)  # without noise it is welcome


@pytest.mark.parametrize("name", ["heun", "rk4", "stochastic_heun"])
@pytest.mark.parametrize("circuit", [{"delay_err": 0.1}, {"delay_fb": 0.2}, {"look_soma": 0.7}])
def test_stages_cannot_use_past_steps(name, circuit):
    with pytest.raises(UnsupportedError, match="values of whole past"):
        chips_of(name, 0.1, **circuit)
    chips_of("euler", 0.1, **circuit)


def test_delays_are_whole_steps():
    with pytest.raises(ConfigError, match=r"circuit\.delay_err: 0\.15 s is not a whole number"):
        chips_of("euler", 0.1, delay_err=0.15)


@pytest.mark.parametrize("dt", [0.0, -1.0])
def test_time_runs_forward(dt):
    with pytest.raises(ConfigError, match=r"solver\.dt: must be positive"):
        chips_of("euler", dt)


def test_noise_acts_on_somas_only():
    """Error units, interneurons and apical dendrites get none."""
    network = Network.mlp(SIZES, "tanh")
    for circuit in (
        Circuit(kind="error_units", tau_err=0.2, tau_w=1.0, sigma_x=0.1),
        Circuit(kind="dendritic", tau_inter=0.2, tau_apical=0.1, tau_w=1.0, sigma_x=0.1),
    ):
        params = oracle.random_parameters(network, 1)
        chips = Continuous(network, params, circuit, dt=0.1, solver_name="maruyama")
        chips.load(oracle.clamps_of(network, "supervised", 1, 3))
        noisy = {force.name for force in chips.flow.forces() if force.noisy}
        assert noisy == {"x1", "x2"}


@pytest.mark.parametrize("top", ["flat", "prior"])
def test_a_membrane_that_looks_ahead_relaxes_exponentially(top):
    """u ← u + (1 − e^{−dt/τ})(x̆ + drift − u) in every layer: a membrane always has a leak."""
    network = Network.mlp([2, 3, 2], "tanh", prior=None if top == "flat" else 0.2)
    params = oracle.random_parameters(network, 1, seed=1)
    chips = ct.engine(
        network, params, 0.4, "exponential", mode="generative", look_soma=0.5, tau_w=1e9
    )
    chips.load(oracle.clamps_of(network, "generative", 1, 1, seed=2))
    ct.stir(chips)
    before = {name: state.clone() for name, state in chips.flow.moving().items()}
    chips.advance(1)
    after = chips.flow.moving()
    for k in (1, 2):
        ahead, membrane = before[f"x{k}"], before[f"u{k}"]
        force = (after[f"x{k}"] - membrane) / 0.5  # x̆ of the next step is u + (τ̂/τ)·force
        expected = membrane + (1 - np.exp(-0.4)) * force
        assert oracle.largest(after[f"u{k}"] - expected) < 1e-12
        assert oracle.largest(ahead - membrane) > 1e-2, "control"
