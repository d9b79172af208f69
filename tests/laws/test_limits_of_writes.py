"""Steps, asymmetry, forgetting and noise of many weights at once (laws 24, 25, 40, 41)."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from hw_models.description import Hardware
from hw_models.plasticity import ConstantDevice, LinearDevice
from hw_models.plasticity_rules import Retention, WriteNoise
from hw_models.quantize import QuantizedWeights
from pcsim.backends.continuous import Continuous
from pcsim.circuit import Circuit
from pcsim.kernels.parameters import Parameters
from pcsim.limits import writes
from pcsim.network import Network
from pcsim.substrate import Chips, Seeded

INPUTS, SAMPLES, CHIPS = 8, 64, 100


def world(seed=0):
    """Return inputs whose mean r rᵀ is a matrix with eigenvalues from 1.5 to 0.2, and w*."""
    rng = np.random.default_rng(seed)
    white, _ = np.linalg.qr(rng.normal(size=(SAMPLES, INPUTS)))
    modes, _ = np.linalg.qr(rng.normal(size=(INPUTS, INPUTS)))
    r = white * np.sqrt(SAMPLES * np.geomspace(1.5, 0.2, INPUTS)) @ modes.T
    return r, r.T @ r / SAMPLES, 0.3 * rng.normal(size=INPUTS)


R, C, BEST = world()
ACTIVITY = np.abs(R).mean(0)


def learnt(piece, alpha, presentations, residual=0.0, start=BEST):
    """Show samples one at a time; return the mean excess loss of reads and the mean weights."""
    substrate = Hardware(pieces={"d": piece}).substrate()
    chips = Chips(substrate, range(CHIPS), seed=2, dt=1.0, noise=Seeded(4), dtype=torch.float64)
    network = Network.mlp([INPUTS, 1], "identity", bias=False)
    params = Parameters(network, torch.tensor(start).expand(CHIPS, -1).clone())
    unit = Continuous(network, params, Circuit(tau_w=1 / alpha), dt=1.0, chips=chips, fast=False)
    read = chips.transform("weight", 0, (1, INPUTS))
    rng = np.random.default_rng(7)
    best, losses, mean = torch.tensor(BEST)[:, None], [], np.zeros(INPUTS)
    for number in range(presentations):
        shown = torch.tensor(R[rng.integers(SAMPLES, size=CHIPS)])[:, None]
        label = shown @ best + residual * torch.tensor(rng.normal(size=(CHIPS, 1, 1)))
        unit.load([label, shown])
        unit.advance(1)
        if number >= presentations // 2:
            w = params.flat if read is None else read(params.flat[:, None])[:, 0]
            gap = w.numpy() - BEST
            losses.append(0.5 * np.einsum("ci,ij,cj->c", gap, C, gap).mean())
            mean += w.numpy().mean(0)
    return float(np.mean(losses)), mean / len(losses)


@pytest.mark.slow
@pytest.mark.parametrize(("quantum", "residual", "alpha"), [(0.02, 0.1, 0.02), (0.03, 0.0, 0.04)])
def test_pulses_leave_a_floor_that_no_rate_lowers(quantum, residual, alpha):
    piece = ConstantDevice(dw_min=quantum, w_max=5.0, w_min=-5.0)
    off = BEST + 0.37 * quantum  # w* is on no level
    found, _ = learnt(piece, alpha, 1500, residual, off)
    predicted = writes.excess_of_pulses(quantum, ACTIVITY.sum(), residual)
    assert found == pytest.approx(predicted, rel=0.1)
    single = alpha * residual**2 * np.trace(C) / 4
    assert single < 0.3 * predicted, "control: the noise of single samples is not it"


def test_the_floor_of_pulses_grows_with_steps_inputs_and_residual():
    floor = writes.excess_of_pulses
    assert floor(0.02, 8.0) / floor(0.01, 8.0) == pytest.approx(4)
    assert floor(0.01, 16.0) / floor(0.01, 8.0) == pytest.approx(4)
    assert floor(1e-5, 16.0, 0.3) / floor(1e-5, 8.0, 0.3) == pytest.approx(2, rel=0.01)
    assert floor(1e-5, 8.0, 0.3, 1.0) == pytest.approx(2 * floor(1e-5, 8.0, 0.3), rel=0.01)
    assert floor(0.01, 8.0) == pytest.approx((0.01 * 8) ** 2 / (4 * np.pi))


def test_updates_below_half_a_step_are_counted_as_lost():
    sizes = np.random.default_rng(0).normal(0, 0.01, 4000)
    lsb = writes.step_of(6, 1.0)
    piece = QuantizedWeights(bits=6, range=1.0, accumulator=False)
    chips = Chips(Hardware(pieces={"d": piece}).substrate(), [0], seed=0, dt=1.0, noise=Seeded(0))
    write = chips.transform("write", 0, (1, len(sizes)))
    w = torch.full((1, 1, len(sizes)), 3 * lsb)
    done = write(torch.tensor(sizes, dtype=torch.float32).view(1, 1, -1), w=w, tau_w=1.0)
    lost = float((done.abs() < lsb / 2).double().mean())
    assert writes.share_lost(sizes, lsb) == pytest.approx(lost, abs=2e-3)
    assert lost == pytest.approx(1 - 2 * norm.sf(lsb / 2 / 0.01), abs=0.02)


@pytest.mark.parametrize("update", [0.3, 0.02, 0.0011])
def test_the_least_bits_write_and_one_fewer_does_not(update):
    bits = writes.least_bits(1.0, update)
    assert update >= writes.step_of(bits, 1.0) / 2
    assert bits == 2 or update < writes.step_of(bits - 1, 1.0) / 2
    assert writes.least_bits(1.0, 0.0) == np.inf


def test_rounding_to_nearest_stalls_near_the_estimate_and_below_the_bound():
    bits, span, alpha = 7, 1.0, 0.05
    piece = QuantizedWeights(bits=bits, range=span, accumulator=False)
    found, _ = learnt(piece, alpha, 600, start=np.zeros(INPUTS))
    lsb = writes.step_of(bits, span)
    estimate = writes.excess_of_stalling(lsb, alpha, R)
    assert estimate / 5 < found < 3 * estimate
    untaught = 0.5 * BEST @ C @ BEST
    assert found < 0.5 * untaught, "control: it has learnt"
    stuck, _ = learnt(piece, alpha / 20, 600, start=np.zeros(INPUTS))
    assert stuck == pytest.approx(untaught, rel=0.3), "control: a small rate writes next to nothing"


def test_rounded_reads_of_exact_weights_toggle_between_two_levels():
    piece = QuantizedWeights(bits=5, range=1.5)
    found, _ = learnt(piece, 0.03, 1500)
    predicted = writes.excess_of_rounded_reads(writes.step_of(5, 1.5), np.trace(C))
    assert 0.7 * predicted < found < 1.4 * predicted
    frozen = 0.5 * np.trace(C) * writes.step_of(5, 1.5) ** 2 / 12
    assert found > 1.3 * frozen, "control: it is more than rounding once"


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "imbalance"), [(3.0, 0.0), (1.0, 0.0), (30.0, 0.4)])
def test_asymmetric_devices_settle_where_predicted(bound, imbalance):
    piece = LinearDevice(
        dw_min=1e-4, drive="continuous", w_max=bound, w_min=-bound, imbalance=imbalance
    )
    found, mean = learnt(piece, 0.02, 1600, residual=0.3)
    w, excess = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.3, bound=bound, down=1 - imbalance)
    single = 0.02 * 0.3**2 * np.trace(C) / 4
    assert found - single == pytest.approx(excess, rel=0.25)
    assert np.abs(mean - w).max() < 0.25 * np.abs(w - BEST).max()


def drifted(covariance, activity, residual, up, down, turns=4000):
    """Follow the mean drift of steps without bounds from w*; return the excess loss."""
    gap, dt = np.zeros(len(covariance)), 0.2
    for _ in range(turns):
        size = writes.MEAN_OF_NORMAL * np.sqrt(gap @ covariance @ gap + residual**2)
        gap = gap + dt * (-(up + down) / 2 * covariance @ gap + (up - down) / 2 * size * activity)
    return 0.5 * gap @ covariance @ gap


@pytest.mark.parametrize("imbalance", [0.1, 0.5])
def test_steps_that_are_not_alike_settle_where_their_drift_ends(imbalance):
    down = 1 - imbalance
    found = writes.excess_of_imbalance(C, ACTIVITY, 0.3, down=down)
    assert found == pytest.approx(drifted(C, ACTIVITY, 0.3, 1.0, down), rel=1e-6)
    w, excess = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.3, down=down)
    assert 0.5 * (w - BEST) @ C @ (w - BEST) == pytest.approx(excess) == pytest.approx(found)
    far = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.3, bound=1e6, down=down)[1]
    assert far == pytest.approx(found, rel=1e-4), "bounds far away are none"
    back = writes.tolerable_imbalance(C, ACTIVITY, 0.3, found)
    assert back == pytest.approx(imbalance)


def test_inputs_that_never_fire_or_never_fire_alone_make_nothing_singular():
    """A dead input, or the same one twice, is what it is without it: no ridge is needed."""
    plain = writes.excess_of_imbalance(C, ACTIVITY, 0.3, down=0.5)
    dead = np.pad(C, (0, 1)), np.append(ACTIVITY, 0.0)
    assert writes.excess_of_imbalance(*dead, 0.3, down=0.5) == pytest.approx(plain)
    twice = np.vstack([np.eye(INPUTS), np.eye(INPUTS)[:1]])
    both = twice @ C @ twice.T, twice @ ACTIVITY
    assert np.linalg.matrix_rank(both[0]) == INPUTS
    assert writes.excess_of_imbalance(*both, 0.3, down=0.5) == pytest.approx(plain)
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(dead[0])  # control: there is something to guard against
    w, _ = writes.asymmetric_weights(dead[0], np.append(BEST, 0.2), dead[1], 0.3, down=0.5)
    assert w[-1] == 0.2
    for bound in (0.5, 3.0):
        w, excess = writes.asymmetric_weights(
            dead[0], np.append(BEST, 0.2), dead[1], 0.3, bound=bound
        )
        alone = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.3, bound=bound)
        np.testing.assert_allclose(w[:-1], alone[0])
        assert excess == pytest.approx(alone[1])


def test_a_push_that_outgrows_the_pull_has_no_end():
    strong = 2.0 * ACTIVITY  # signed inputs: E|r| is not bounded by their power
    assert writes.push_of_activity(C, strong) > 1
    assert writes.excess_of_imbalance(C, strong, 0.3, down=0.0) == np.inf
    assert np.isnan(writes.asymmetric_weights(C, BEST, strong, 0.3, down=0.0)[0]).all()
    mild = np.abs(np.random.default_rng(0).normal(size=(50, 4)))
    assert writes.push_of_activity(mild.T @ mild / 50, mild.mean(0)) <= 1
    assert writes.tolerable_imbalance(C, 0 * ACTIVITY, 0.3, 0.1) == np.inf


@pytest.mark.parametrize("bound", [0.3, 1.0, 10.0])
def test_soft_bounds_of_all_sizes_at_once_are_those_of_each(bound):
    goals = np.stack([BEST, -0.5 * BEST[::-1]])
    many = writes.excess_of_soft_bounds(C, goals, ACTIVITY, 0.3)(bound)
    one = [writes.asymmetric_weights(C, w, ACTIVITY, 0.3, bound=bound)[1] for w in goals]
    np.testing.assert_allclose(many, one, rtol=1e-6)
    assert many.min() > 0
    assert many.max() < writes.excess_of_soft_bounds(C, goals, ACTIVITY, 0.3)(bound / 2).max()


def test_without_a_residual_and_asymmetry_nothing_is_lost():
    w, excess = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.0, bound=2.0)
    np.testing.assert_allclose(w, BEST)
    assert excess == pytest.approx(0.0, abs=1e-12)
    same, _ = writes.asymmetric_weights(C, BEST, ACTIVITY, 0.5)
    np.testing.assert_allclose(same, BEST)
    pulled, _ = writes.asymmetric_weights([[1.0]], [0.6], [1.0], 0.5, bound=1.0)
    assert 0.3 < float(pulled[0]) < 0.55, "control"


def test_many_weights_forget_along_their_modes():
    piece = Retention(lifetime=400.0)
    substrate = Hardware(pieces={"d": piece}).substrate()
    chips = Chips(substrate, [0], seed=2, dt=0.05, noise=Seeded(4), dtype=torch.float64)
    network = Network.mlp([INPUTS, 1], "identity", bias=False)
    balance = writes.retained_weights(C, BEST, 50.0, 400.0)
    params = Parameters(network, torch.tensor(balance)[None].clone())
    circuit = Circuit(tau_w=50.0)
    unit = Continuous(network, params, circuit, dt=0.05, chips=chips, scale=1 / SAMPLES, fast=False)
    shown = torch.tensor(R)[None]
    unit.load([shown @ torch.tensor(BEST)[:, None], shown])
    unit.advance(40)
    np.testing.assert_allclose(params.flat[0].numpy(), balance, atol=1e-6)
    gap = balance - BEST
    assert writes.excess_of_retention(C, BEST, 50.0, 400.0) == pytest.approx(0.5 * gap @ C @ gap)
    assert np.abs(gap).max() > 0.05, "control: it has forgotten"
    one = writes.retained_weights([[1.7]], [0.8], 50.0, 400.0)
    assert float(one[0]) == pytest.approx(0.8 / (1 + 50 / (400 * 1.7)))


def test_write_noise_of_many_weights_has_one_best_rate():
    sigma, noise, alpha = 0.004, 0.3, 0.03
    found, _ = learnt(WriteNoise(sigma=sigma), alpha, 1500, residual=noise)
    power = float(np.trace(C))
    predicted = writes.excess_of_write_noise(sigma, noise, alpha, power, INPUTS)
    assert found == pytest.approx(predicted, rel=0.12)
    best = writes.best_rate(sigma, noise, power, INPUTS)
    floor = 0.5 * sigma * noise * np.sqrt(INPUTS * power)

    def at(rate):
        return writes.excess_of_write_noise(sigma, noise, rate, power, INPUTS)

    assert at(best) == pytest.approx(floor, rel=0.05)
    assert at(best) < min(at(best / 2), at(2 * best))
