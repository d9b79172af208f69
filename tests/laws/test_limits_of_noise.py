"""Noise of reads: what a read-out, a weight and a deep network show of it (laws 21 and 38)."""

import numpy as np
import pytest
import torch

from hw_models.description import Hardware
from hw_models.noise import ReadNoise, WhiteNoise
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.limits import lags, noise
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

FROZEN = 1e16


def engine(network, flat, piece, *, chips, dt, tau_w, scale=1.0):
    substrate = Hardware(pieces={"n": piece}).substrate()
    made = Chips(substrate, range(chips), seed=1, dt=dt, noise=Seeded(3), dtype=torch.float64)
    params = Parameters(network, torch.tensor(flat).expand(chips, -1).clone())
    return Continuous(
        network, params, Circuit(tau_w=tau_w), dt=dt, chips=made, scale=scale, fast=False
    )


def deep(gain=1.0, seed=0):
    """Return a linear network 3-4-3-2 and its weights from the output up."""
    rng = np.random.default_rng(seed)
    network = Network.mlp((3, 4, 3, 2), "identity", bias=False)
    turns = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(3)]
    return network, [
        gain * turn[:a, :b] for turn, a, b in zip(turns, (2, 3, 4), (3, 4, 3), strict=True)
    ]


@pytest.mark.parametrize("gain", [0.5, 1.2])
def test_a_read_out_has_half_gamma_of_the_noise_whatever_the_weights(gain):
    network, theta = deep(gain)
    gamma, s = 0.1, 0.3
    flat = np.concatenate([one.ravel() for one in theta])
    piece = ReadNoise(sigma=s, where="error")
    chips = engine(network, flat, piece, chips=1, dt=gamma, tau_w=FROZEN)
    top = torch.ones(1, 6000, 3, dtype=torch.float64)
    chips.load([None, None, None, top])
    chips.feedforward()
    settled = chips.flow.states()["x0"].clone()
    chips.advance(200)
    found = (chips.flow.states()["x0"] - settled)[0].numpy().var(0)
    predicted = noise.readout_variance(theta, s, gamma)
    np.testing.assert_allclose(found, predicted, rtol=0.08)
    np.testing.assert_allclose(predicted, gamma * s**2 / 2, rtol=0.2)
    assert not np.allclose(found, s**2, rtol=0.5), "control: one read has all of it"


POWER = 3.0


def inputs(count=5, samples=32, seed=1):
    """Return samples of equal length, Σ r² = `POWER`."""
    r = np.random.default_rng(seed).normal(size=(samples, count)) * np.linspace(0.5, 1.5, count)
    return r * np.sqrt(POWER / (r**2).sum(1, keepdims=True))


def excess(s, alpha, reads, presentations=400, chips=300):
    """Return the mean excess loss of a unit that learns with read noise, one sample at a time."""
    r = inputs()
    best = np.linspace(-0.5, 0.5, r.shape[1])
    network = Network.mlp([r.shape[1], 1], "identity", bias=False)
    piece = ReadNoise(sigma=s, where="error")
    unit = engine(network, best, piece, chips=chips, dt=1.0, tau_w=1 / alpha)
    order = np.random.default_rng(2).integers(len(r), size=presentations)
    found = []
    for number, k in enumerate(order):
        shown = torch.tensor(r[k]).expand(chips, 1, -1)
        unit.load([shown @ torch.tensor(best)[:, None], shown])
        unit.advance(reads)
        if number >= presentations // 2:
            gap = unit.params.flat.numpy() - best
            found.append(0.5 * ((gap @ r.T) ** 2).mean())
    return float(np.mean(found))


@pytest.mark.parametrize(("alpha", "reads"), [(0.05, 1), (0.05, 8), (0.2, 1)])
def test_read_noise_heats_weights_at_any_presentation_time(alpha, reads):
    predicted = noise.excess_of_read_noise(0.3, alpha, POWER)
    assert excess(0.3, alpha, reads) == pytest.approx(predicted, rel=0.06)
    small = alpha * 0.3**2 * POWER / 4
    assert (predicted == pytest.approx(small, rel=0.1)) == (alpha < 0.1), "control: first order"


def test_at_a_rate_per_presentation_it_is_averaged_and_grows_with_the_fan_in():
    once, often = (noise.excess_of_read_noise(0.3, 0.1 / reads, 3.0) for reads in (1, 100))
    assert once / often == pytest.approx(100, rel=0.2)
    wide = noise.excess_of_read_noise(0.3, 1e-4, 300.0)
    assert wide / noise.excess_of_read_noise(0.3, 1e-4, 3.0) == pytest.approx(100, rel=0.02)
    lines = [noise.line_noise(0.1, np.full(n, 0.25), span=2.0) for n in (16, 64)]
    assert lines == pytest.approx([0.4, 0.8])
    assert noise.line_noise(0.1, [1.0, 4.0], span=[2.0, 0.5]) == pytest.approx(0.1 * 5**0.5)


@pytest.mark.slow
def test_every_layer_of_a_deep_network_is_heated_alike():
    """Full batch at a clamped equilibrium: the mean over N samples has noise s²/N."""
    network, theta = deep(0.9)
    samples, s, alpha, gamma, chips = 6, 0.02, 0.1, 0.2, 150
    rng = np.random.default_rng(5)
    white, _ = np.linalg.qr(rng.normal(size=(samples, 3)))
    top = white * np.sqrt(samples)
    flat = np.concatenate([one.ravel() for one in theta])
    piece = ReadNoise(sigma=s, where="error")
    unit = engine(
        network, flat, piece, chips=chips, dt=gamma, tau_w=gamma / alpha, scale=1 / samples
    )
    x = [top]
    for one in theta[::-1]:
        x.insert(0, x[0] @ one.T)
    clamp = [torch.tensor(one).expand(chips, -1, -1) for one in (x[0], top)]
    unit.load([clamp[0], None, None, clamp[1]])
    unit.feedforward()
    unit.advance(700)
    found = []
    for _ in range(25):
        unit.advance(40)
        now = [v["w"].numpy() for v in unit.params.of[:-1]]
        gap = top[None] @ np.swapaxes(now[0] @ now[1] @ now[2], 1, 2) - x[0]
        found.append((gap**2).sum(2).mean())
    powers = [float((one**2).sum(1).mean()) for one in x[1:]]
    predicted = noise.output_variance_in_depth(theta, powers, s, alpha) / samples
    assert np.mean(found) == pytest.approx(predicted, rel=0.1)
    last = noise.output_variance_in_depth(theta[:1], powers[:1], s, alpha) / samples
    assert last < 0.6 * predicted, "control: the last layer alone is not enough"


def test_energies_are_those_of_the_chain():
    """The sums over modes of law 21, here for n units without coupling, where they are known."""
    assert noise.energy_of_white_noise(0.4, np.ones(7)) == pytest.approx(7 * 0.16 / 4)
    assert noise.energy_of_read_noise(0.4, [1.0], 0.5) == pytest.approx(0.5 * 0.16 / 4 / 0.75)
    h = lags.curvatures(4, 1.0)
    piece, gamma = WhiteNoise(sigma=0.4), 0.3
    network = Network.mlp([1] * 5, "identity", bias=False)
    chain = engine(network, np.ones(4), piece, chips=1, dt=gamma, tau_w=FROZEN)
    zero = torch.zeros(1, 6000, 1, dtype=torch.float64)
    chain.load([zero, None, None, None, zero])
    chain.feedforward()
    chain.advance(300)
    chain.flow.forces()
    energy = float(chain.flow.energy_by_node().sum()) / 6000
    assert energy == pytest.approx(noise.energy_of_white_noise(0.4, h, gamma), rel=0.05)
