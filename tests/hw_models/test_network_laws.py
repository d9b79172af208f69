"""Laws of whole networks on hardware: noise floors, offsets, the thermal learning law."""

import numpy as np
import pytest
import torch

from hw_models.description import Hardware
from hw_models.mismatch import Mismatch, Offset
from hw_models.noise import ReadNoise, WhiteNoise
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

SIZES = (3, 4, 3, 2)  # input … output
NETWORK = Network.mlp(SIZES, "identity", bias=False)
FREE = (1, 2)


def weights(seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(2, 3), (3, 4), (4, 3)]  # node 0 from 1, 1 from 2, 2 from 3
    return [0.6 * rng.normal(size=shape) for shape in shapes]


def jacobian(theta):
    """A of ε = A x − c for x = (x¹, x²): rows l = 0, 1, 2."""
    n0, n1, n2 = 2, 3, 4
    a = np.zeros((n0 + n1 + n2, n1 + n2))
    a[:n0, :n1] = -theta[0]
    a[n0 : n0 + n1, :n1] = np.eye(n1)
    a[n0 : n0 + n1, n1:] = -theta[1]
    a[n0 + n1 :, n1:] = np.eye(n2)
    return a


def settled(pieces, *, gamma=0.2, samples=4000, steps=150, seed=0, learn=False):
    """Run inference of a linear network with frozen weights; return engine and θ."""
    theta = weights(seed)
    flat = torch.tensor(np.concatenate([t.ravel() for t in theta]))[None]
    params = Parameters(NETWORK, flat)
    substrate = Hardware(pieces=pieces).substrate()
    chips = Chips(substrate, (0,), seed=1, dt=gamma, noise=Seeded(seed), dtype=torch.float64)
    circuit = Circuit(tau_x=1.0, tau_w=1e16)
    engine = Continuous(NETWORK, params, circuit, dt=gamma, chips=chips)
    rng = np.random.default_rng(9)
    top, label = rng.normal(size=3), rng.normal(size=2)
    clamp = [torch.tensor(np.tile(v, (1, samples, 1))) for v in (label, top)]
    engine.load([clamp[0], None, None, clamp[1]])
    engine.feedforward()
    engine.advance(steps)
    return engine, theta


def excess(pieces, **options):
    """Mean energy above the minimum, over samples."""
    engine, _ = settled(pieces, **options)
    ideal, _ = settled({}, samples=1, gamma=0.2, steps=400)
    engine.flow.forces()
    samples = engine.flow.moving()["x1"].shape[1]
    energy = float(engine.flow.energy_by_node().sum()) / samples
    ideal.flow.forces()
    return energy - float(ideal.flow.energy_by_node().sum())


def modes(theta):
    a = jacobian(theta)
    return np.linalg.eigvalsh(a.T @ a)


@pytest.mark.parametrize("gamma", [0.3, 0.1])
def test_white_noise_lifts_the_energy_by_its_temperature(gamma):
    """N1: E[F − F*] = (σ²τ/4) Σ_k 1/(1 − γh_k/2), nσ²τ/4 in continuous time."""
    sigma = 0.4
    found = excess({"n": WhiteNoise(sigma=sigma)}, gamma=gamma, steps=round(40 / gamma))
    h = modes(weights())
    assert found == pytest.approx(sigma**2 / 4 * (1 / (1 - gamma * h / 2)).sum(), rel=0.03)


@pytest.mark.parametrize("gamma", [0.3, 0.1])
def test_noise_per_read_of_the_errors_is_averaged_by_slow_integration(gamma):
    """N4: E[F − F*] = (γs²/4) Σ_k h_k/(1 − γh_k/2)."""
    s = 0.4
    piece = ReadNoise(sigma=s, where="error")
    found = excess({"n": piece}, gamma=gamma, steps=round(40 / gamma))
    h = modes(weights())
    assert found == pytest.approx(gamma * s**2 / 4 * (h / (1 - gamma * h / 2)).sum(), rel=0.03)


def test_offsets_of_errors_shift_the_equilibrium():
    """Law 22: Δx* = −H⁻¹Aᵀo."""
    engine, theta = settled({"o": Offset(of="error", sigma=0.2)}, samples=1, steps=2000)
    ideal, _ = settled({}, samples=1, steps=2000)
    a = jacobian(theta)
    chips = engine.flow.chips
    effect = chips.substrate.effects[0]
    sizes = {0: 2, 1: 3, 2: 4}
    o = np.concatenate(
        [0.2 * chips.fixed(effect, k, (n,))["o"].numpy().ravel() for k, n in sizes.items()]
    )
    shift = np.concatenate(
        [
            (engine.flow.moving()[f"x{k}"] - ideal.flow.moving()[f"x{k}"]).numpy().ravel()
            for k in FREE
        ]
    )
    np.testing.assert_allclose(shift, -np.linalg.solve(a.T @ a, a.T @ o), atol=1e-10)
    energy = float(engine.flow.energy_by_node().sum() - ideal.flow.energy_by_node().sum())
    moved = a @ np.linalg.solve(a.T @ a, a.T @ o)
    assert energy == pytest.approx(0.5 * o @ moved, abs=1e-10)


@pytest.mark.slow
def test_mismatched_time_constants_do_not_move_the_equilibrium():
    """P1; and a gain of the errors does (negative control: P2 changes precisions)."""
    reference, _ = settled({}, samples=1, steps=4000)
    for of, sigma, moves in (("tau_x", 0.5, False), ("error_gain", 0.5, True)):
        engine, _ = settled({"m": Mismatch(of=of, sigma=sigma)}, samples=1, steps=8000, gamma=0.05)
        gap = (engine.flow.moving()["x1"] - reference.flow.moving()["x1"]).abs().max()
        assert (gap > 1e-3) == moves
        if not moves:
            assert gap < 1e-10


@pytest.mark.slow
def test_thermal_learning_law():
    """N6: with noise of temperature T = σ²τ/2, E[ε fᵀ] = −∂/∂θ [F* + (T/2) ln det H].

    The samples are an ensemble of Langevin runs; the derivative is taken by finite differences.
    """
    temperature, gamma, samples = 0.3, 0.02, 20_000
    sigma = np.sqrt(2 * temperature)
    engine, theta = settled({"n": WhiteNoise(sigma=sigma)}, gamma=gamma, samples=samples, steps=500)
    flow = engine.flow
    flow.forces()
    x1, x2 = (flow.moving()[f"x{k}"][0].numpy() for k in FREE)
    eps1 = x1 - x2 @ theta[1].T
    products = eps1[:, :, None] * x2[:, None, :]
    mean, error = products.mean(0), products.std(0) / np.sqrt(samples)
    label, top = flow.field.x[0][0, 0].numpy(), flow.field.x[3][0, 0].numpy()

    def free_energy(middle):
        t = [theta[0], middle, theta[2]]
        a = jacobian(t)
        c = np.concatenate([-label, np.zeros(3), t[2] @ top])
        h = a.T @ a
        x = np.linalg.solve(h, a.T @ c)
        residual = a @ x - c
        return 0.5 * residual @ residual + temperature / 2 * np.linalg.slogdet(h)[1]

    expected = np.zeros_like(theta[1])
    for index in np.ndindex(*theta[1].shape):
        step = np.zeros_like(theta[1])
        step[index] = 1e-5
        up, down = free_energy(theta[1] + step), free_energy(theta[1] - step)
        expected[index] = -(up - down) / 2e-5
    # Euler's own bias is of order γ; it is far below three standard errors here.
    assert (np.abs(mean - expected) < 4 * error + 0.02 * temperature).all()
    without = expected.copy()
    for index in np.ndindex(*theta[1].shape):
        step = np.zeros_like(theta[1])
        step[index] = 1e-5
        logs = [
            np.linalg.slogdet(
                jacobian([theta[0], theta[1] + s * step, theta[2]]).T
                @ jacobian([theta[0], theta[1] + s * step, theta[2]])
            )[1]
            for s in (1, -1)
        ]
        without[index] += temperature / 2 * (logs[0] - logs[1]) / 2e-5
    # Negative control: without the ln det H term the law fails.
    assert (np.abs(mean - without) > 4 * error + 0.02 * temperature).any()


def test_presynaptic_noise_acts_as_a_ridge():
    """N5: noise shared by prediction and Hebbian factor gives θ C (C + s²I)⁻¹."""
    rng = np.random.default_rng(3)
    network = Network.mlp((3, 1), "identity", bias=False)
    samples, s, truth = 400, 0.8, np.array([0.7, -0.4, 0.2])
    top = rng.normal(size=(samples, 3))
    label = top @ truth[:, None]
    flat = torch.zeros(40, 3, dtype=torch.float64)
    params = Parameters(network, flat)
    substrate = Hardware(pieces={"n": ReadNoise(sigma=s, where="rate")}).substrate()
    chips = Chips(substrate, range(40), seed=0, dt=1.0, noise=Seeded(4), dtype=torch.float64)
    engine = Continuous(
        network, params, Circuit(tau_x=1.0, tau_w=20.0), dt=1.0, scale=1 / samples, chips=chips
    )
    engine.load([torch.tensor(label)[None], torch.tensor(top)[None]])
    total = torch.zeros(3, dtype=torch.float64)
    for _ in range(400):
        engine.advance(1)
    for _ in range(200):
        engine.advance(1)
        total += params.flat.mean(0)
    cov = top.T @ top / samples
    expected = truth @ cov @ np.linalg.inv(cov + s**2 * np.eye(3))
    np.testing.assert_allclose(total.numpy() / 200, expected, atol=0.01)
    assert np.abs(expected - truth).max() > 0.15
