"""Wear, disturbed neighbours, leak and chopping of the multiplier: each by its closed form."""

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models.plasticity import ConstantDevice
from hw_models.plasticity_arrays import FastArray
from hw_models.plasticity_multiplier import LearningMultiplier
from hw_models.plasticity_rules import UpdateAccumulator
from hw_models.plasticity_wear import Endurance, HalfSelect
from pcsim.errors import ConfigError
from pcsim.substrate import Chips, Seeded, Substrate


def test_fading_devices_travel_so_far_and_no_further():
    devices = Devices(Endurance(pulses=50.0, dw=0.01))
    for k in range(2000):
        devices.write(0.01)
        if k + 1 in (25, 50, 200):
            share = (1 - np.exp(-(k + 1) / 50)) / (50 * (1 - np.exp(-1 / 50)))
            assert float(devices.w) == pytest.approx(50 * 0.01 * share, rel=1e-9)
    assert float(devices.w) == pytest.approx(0.01 / (1 - np.exp(-1 / 50)), rel=1e-9)


def test_down_pulses_wear_as_much_as_up_pulses():
    devices = Devices(Endurance(pulses=10.0, dw=0.01, mode="stuck"))
    for k in range(12):
        done = devices.write(0.02 * (-1) ** k)  # two pulses each
        assert float(done) == (0.02 * (-1) ** k if k < 5 else 0)


def test_endurance_differs_between_devices_by_its_law():
    devices = Devices(Endurance(pulses=100.0, dw=1.0, spread=0.5, mode="stuck"), count=4000)
    life = devices.fixed("life").numpy().ravel()
    assert np.median(life) == pytest.approx(100, rel=0.03)
    assert np.log(life).std() == pytest.approx(0.5, rel=0.05)
    for _ in range(400):
        devices.write(1.0)
    # a device stops at the first pulse that finds its life at an end
    np.testing.assert_array_equal(devices.w.numpy().ravel(), np.minimum(np.ceil(life), 400))


def test_half_selected_devices_forget_by_the_number_of_their_neighbours():
    piece = HalfSelect(disturb=1e-3, lines=60, activity=0.5, rest=0.2)
    devices = Devices(piece, w=1.0)
    for _ in range(10):
        devices.write(0.0)
    assert float(devices.w) == pytest.approx(0.2 + 0.8 * (1 - 1e-3) ** 300, rel=1e-12)


def test_half_select_counts_writes_of_its_clock_and_not_time_steps():
    for dt in (0.1, 0.5):
        devices = Devices(HalfSelect(disturb=0.01, lines=10, t_write=1.0), w=1.0, dt=dt)
        for _ in range(round(5 / dt)):
            devices.write(0.0)
        assert float(devices.w) == pytest.approx(0.99**50, rel=1e-12)


def multiplied(piece, seconds, dt, request=lambda t: 0.0):
    """Let a multiplier drive weights for so long, τ_w = 1; return them at every step."""
    devices, seen = Devices(piece, dt=dt), []
    for k in range(round(seconds / dt)):
        devices.write(dt * request(k * dt))
        seen.append(float(devices.w))
    return np.array(seen)


def test_a_leak_bounds_what_an_offset_does():
    """τ_w dw/dt = o − l (w − rest): settles at rest + o/l; without a leak it runs away."""
    leaky = multiplied(LearningMultiplier(offset=0.01, leak=0.1, rest=0.3), 100.0, 0.05)
    assert leaky[-1] == pytest.approx(0.4, rel=5e-3)
    free = multiplied(LearningMultiplier(offset=0.01), 100.0, 0.05)
    assert free[-1] == pytest.approx(1.0, rel=1e-9)
    # a linear unit with E[r²] = c: (c w* + o)/(c + l)
    piece, devices = LearningMultiplier(offset=0.01, leak=0.1), None
    devices = Devices(piece, dt=0.05)
    for _ in range(2000):
        devices.write(0.05 * 0.5 * (1.0 - float(devices.w)))
    assert float(devices.w) == pytest.approx((0.5 + 0.01) / (0.5 + 0.1), rel=5e-3)


@pytest.mark.parametrize("dt", [0.03, 0.5, 1.7, 4.0])
def test_a_chopped_offset_is_a_triangle_however_long_a_step_is(dt):
    period, offset = 4.0, 0.2
    times = dt * np.arange(1, round(40 / dt) + 1)
    found = multiplied(LearningMultiplier(offset=offset, chop=period), 40.0, dt)
    phase = np.mod(times / period, 1.0)
    expected = offset * period * (0.5 - np.abs(phase - 0.5))
    np.testing.assert_allclose(found[: len(times)], expected[: len(found)], atol=1e-12)
    if dt == 0.03:
        assert np.abs(found - found.mean()).max() == pytest.approx(offset * period / 4, rel=0.02)


def test_chopping_leaves_the_signal_alone():
    plain, chopped = (
        multiplied(LearningMultiplier(gain_error=0.2, chop=chop), 4.0, 0.1, np.sin)
        for chop in (None, 1.0)
    )
    np.testing.assert_allclose(plain, chopped, atol=1e-12)


def test_a_rest_without_a_leak_is_refused():
    with pytest.raises(ConfigError, match="rest is where a leak leads"):
        LearningMultiplier(rest=0.5)


def test_a_buffer_behind_the_fast_array_releases_whole_pulses_of_its_share():
    """Tiki-Taka v2: after k transfers of rate·a each, floor of their sum in pulses was written."""
    fast = ConstantDevice(dw_min=0.0, w_max=1.0)
    pieces = (FastArray(device=fast, rate=0.3, every=3), UpdateAccumulator(threshold=0.05))
    devices, a, h = Devices(*pieces), 0.0, 0.0
    for k in range(60):
        a += 0.004
        devices.write(0.004)
        h += 0.3 * a * ((k + 1) % 3 == 0)
        assert float(devices.w) == pytest.approx(0.05 * np.floor(h / 0.05 + 1e-9), abs=1e-12)
    assert h > 0.5, "control: many pulses were written"


def test_columns_in_turn_are_each_transferred_as_often_as_all_at_once():
    fast = ConstantDevice(dw_min=0.0, w_max=1.0)
    effects = FastArray(device=fast, rate=1.0, every=5, in_turn=True).effects("t")
    chips = Chips(
        Substrate(effects=effects), [0], seed=2, dt=1.0, noise=Seeded(0), dtype=torch.float64
    )
    write = chips.transform("write", 0, (3, 40))
    times = []
    for _ in range(50):
        done = write(torch.full((1, 3, 40), 1e-3).double(), w=torch.zeros(1, 3, 40), tau_w=1.0)
        times.append((done != 0).numpy()[0])
        chips.advance()
    moved = np.array(times)
    assert (moved.sum(0) == 10).all(), "the transfer count of every column"
    assert (moved == moved[:, :1]).all(), "rows of one column go together"
    assert len({tuple(column) for column in moved[:, 0].T}) > 1, "and columns do not"
    assert 0 < moved[:, 0].mean(1).min() < moved[:, 0].mean(1).max() < 1
