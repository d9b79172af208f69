"""Devices at their corners, remedies, pairs and transfer; nonsense is refused in one sentence."""

import math

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import describe
from hw_models.plasticity import (
    ConstantDevice,
    ExponentialDevice,
    LinearDevice,
    PowerDevice,
    PulseCurveDevice,
)
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.plasticity_device import Device
from hw_models.plasticity_rules import UpdateAccumulator, UpdateThreshold
from pcsim.errors import ConfigError

EXPONENT = {"A_up": -1.2, "A_down": -0.1, "gamma_up": 5.0, "gamma_down": 5.0, "a": -0.5, "b": -0.5}
LAWS = {
    "constant": ConstantDevice(dw_min=0.01),
    "linear": LinearDevice(dw_min=0.01),
    "exponential": ExponentialDevice(dw_min=0.01, **EXPONENT),
    "power": PowerDevice(dw_min=0.01, gamma_up=0.5, gamma_down=1.7),
    "curve": PulseCurveDevice(dw_min=0.01, curvature_up=0.3, curvature_down=0.8),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("drive", ["pulsed", "continuous"])
def test_no_device_leaves_its_bounds(law, drive):
    wide = {"drive": drive, "w_max_spread": 0.6, "w_min_spread": 0.6, "dw_spread": 0.5,
            "cycle_noise": 2.0, "range": 0.7}  # fmt: skip
    devices = Devices(LAWS[law].model_copy(update=wide), count=500)
    top, bottom = 0.7 * devices.fixed("top"), 0.7 * devices.fixed("bottom")
    for asked in (0.3, 5.0, -0.2, -9.0, 0.0):
        for _ in range(5):
            done = devices.write(asked)
        assert bool((devices.w <= top + 1e-12).all())
        assert bool((devices.w >= bottom - 1e-12).all())
        assert asked or not bool(done.any())  # no request, no change
    assert float(devices.w.std()) > 0.05


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("w", [-1.0, 0.0, 1.0])
def test_steps_at_the_bounds_and_at_exactly_zero(law, w):
    up = Devices(LAWS[law], w=w).write(0.01)
    down = Devices(LAWS[law], w=w).write(-0.01)
    assert bool(torch.isfinite(up).all())
    assert bool(torch.isfinite(down).all())
    assert (float(up) == 0) == (w == 1.0)
    assert (float(down) == 0) == (w == -1.0)
    assert float(up) >= 0 >= float(down)


@pytest.mark.parametrize("law", ["constant", "linear", "exponential", "power"])
def test_without_granularity_both_drives_are_one(law):
    outcomes = []
    for drive in ("pulsed", "continuous"):
        device = LAWS[law].model_copy(update={"dw_min": 0.0, "drive": drive})
        outcomes.append(Devices(device, count=10, w=0.2).write(torch.linspace(-0.1, 0.1, 10)))
    assert torch.equal(*outcomes)


def test_constant_device_without_granularity_is_the_ideal_path_to_the_bit():
    device = ConstantDevice(dw_min=0.0)
    asked = torch.randn(1, 1, 1000, dtype=torch.float64) * 0.01
    assert torch.equal(Devices(device, count=1000, w=0.1).write(asked), asked)
    soft = LinearDevice(dw_min=0.0)  # control: a law is not ideal
    assert not torch.equal(Devices(soft, count=1000, w=0.1).write(asked), asked)


def test_pulse_curve_runs_through_its_formula():
    """P up pulses follow G(p) = B(1 − e^{−p/A}) + G_min and end at the bound; down mirrors."""
    pulses, curvature = 50, 0.4
    device = PulseCurveDevice(dw_min=2 / pulses, curvature_up=curvature, curvature_down=curvature)
    devices = Devices(device, w=-1.0)
    reach = 2 / (1 - math.exp(-1 / curvature))
    for p in range(1, pulses + 1):
        devices.write(2 / pulses)
        expected = reach * (1 - math.exp(-p / (curvature * pulses))) - 1
        assert float(devices.w) == pytest.approx(expected, abs=1e-9)
    assert float(devices.w) == pytest.approx(1.0, abs=1e-9)
    for _ in range(pulses):
        devices.write(-2 / pulses)
    assert float(devices.w) == pytest.approx(-1.0, abs=1e-9)


def test_spreads_are_what_they_say():
    device = ConstantDevice(dw_min=0.01, dw_spread=0.4, dw_law="lognormal", w_max_spread=0.1)
    devices = Devices(device, count=100_000)
    assert float(devices.fixed("gain_up").log().std()) == pytest.approx(0.4, rel=0.02)
    assert float(devices.fixed("gain_up").median()) == pytest.approx(1.0, rel=0.02)
    assert float(devices.fixed("top").std()) == pytest.approx(0.1, rel=0.02)
    assert float(devices.fixed("bottom").std()) == 0
    weaker = Devices(ConstantDevice(dw_min=0.01, imbalance=0.25))
    assert float(weaker.fixed("gain_up")) == 1
    assert float(weaker.fixed("gain_down")) == 0.75


def test_threshold_loses_what_the_accumulator_keeps():
    lost = Devices(UpdateThreshold(threshold=0.05))
    kept = Devices(UpdateAccumulator(threshold=0.05))
    events = Devices(UpdateAccumulator(threshold=0.05, release="all"))
    for _ in range(100):
        for devices in (lost, kept, events):
            devices.write(-0.0021)
    assert float(lost.w) == 0
    assert float(kept.w) == pytest.approx(-0.20)  # four whole quanta of 0.05 out of 0.21
    assert abs(float(events.w) + 0.21) < 0.05
    assert float(events.w) == pytest.approx(-4 * 24 * 0.0021)  # every 24th request passes 0.05
    assert float(lost.write(0.06)) == pytest.approx(0.06)


def test_accumulator_rescues_a_device_that_is_too_coarse():
    """Below half a pulse a rounding device stalls; with an accumulator it follows in the mean."""
    coarse = ConstantDevice(dw_min=0.1, drive="continuous")
    blocked = Devices(UpdateThreshold(threshold=0.1), coarse)
    rescued = Devices(UpdateAccumulator(threshold=0.1), coarse)
    for _ in range(70):
        blocked.write(0.011)
        rescued.write(0.011)
    assert float(blocked.w) == 0
    assert float(rescued.w) == pytest.approx(0.7)


PAIR = DevicePair(device=ConstantDevice(dw_min=0.01, w_min=0.0, w_max=1.0))


def test_pair_wears_out_without_refresh_and_not_with_it():
    """Up and down in turn raises both sides; at the bound only a refresh lets it go on."""
    worn = Devices(PAIR.model_copy(update={"refresh_at": 1.0}), w=0.2)
    fresh = Devices(PAIR, w=0.2)
    for _ in range(130):
        worn.write(0.01)
        worn.write(-0.01)
        fresh.write(0.01)
        fresh.write(-0.01)
    assert float(worn.write(0.01)) == pytest.approx(0.0, abs=1e-12)
    assert float(fresh.write(0.01)) == pytest.approx(0.01)
    assert float(fresh.w) == pytest.approx(0.21)


def test_pair_memory_is_the_common_conductance():
    devices = Devices(PAIR, w=-0.3)
    for asked in (0.05, 0.05, -0.02, 0.4, 0.01):
        devices.write(asked)
    g_plus, g_minus = conductances(devices)
    assert g_plus == pytest.approx(0.51)
    assert g_minus == pytest.approx(0.3 + 0.02)
    assert float(devices.w) == pytest.approx(0.51 - 0.32)


def conductances(devices: Devices) -> tuple[float, float]:
    """Return the mean g⁺ and g⁻ of pairs."""
    memory = devices.chips.state()
    plus, minus = (
        next(v for k, v in memory.items() if f".{name}." in k) for name in ("g_plus", "g_minus")
    )
    return float(plus.mean()), float(minus.mean())


@pytest.mark.parametrize(
    ("start", "up", "down", "refreshed"),
    [(0.5, 0.3, 0.3, True), (0.7, 0.2, 0.2, False), (0.2, 0.5, 0.3, False), (0.0, 0.7, 0.7, False)],
)
def test_pair_is_refreshed_only_if_both_are_worn(start, up, down, refreshed):
    """g⁺ above 0.75 and g⁻ above 0.25 of the window; one alone is not enough."""
    devices = Devices(PAIR, w=start)
    devices.write(up)
    devices.write(-down)
    before = float(devices.w)
    devices.write(0.0)
    g_plus, g_minus = conductances(devices)
    assert (g_minus == 0) == refreshed
    if not refreshed:
        assert (g_plus, g_minus) == pytest.approx((start + up, down))
    assert float(devices.w) == pytest.approx(before, abs=0.2 if refreshed else 1e-12)


def test_refresh_is_open_loop_pulses_through_the_device():
    """At most 31 pulses of a device whose steps shrink: the weight is not what it was."""
    device = ConstantDevice(dw_min=0.01, w_min=0.0, w_max=1.0, dw_spread=0.3)
    devices = Devices(DevicePair(device=device), count=4000, w=0.5)
    gain = devices.fixed("gain_up_plus").numpy()
    devices.w = devices.w * 0 + 0.5
    devices.write(0.01 * 30)
    devices.write(-0.01 * 60)
    memory = devices.chips.state()
    plus, minus = (
        next(v for k, v in memory.items() if f".{name}." in k).numpy()
        for name in ("g_plus", "g_minus")
    )
    worn = (np.maximum(plus, minus) > 0.75) & (np.minimum(plus, minus) > 0.25)
    wanted = plus - minus
    devices.write(0.0)
    up = worn & (wanted > 0)
    assert 0.1 < up.mean() < 0.9
    pulses = np.minimum(wanted[up] / 0.01, 31)
    reached = devices.w.numpy()[up]
    assert np.abs(reached - gain[up] * 0.01 * pulses).max() < 0.011 * gain[up].max()
    assert np.abs(reached - wanted[up]).max() > 0.05  # control: nobody looked
    assert np.allclose(devices.w.numpy()[~worn], wanted[~worn])


def test_a_request_waits_for_the_refresh():
    devices = Devices(PAIR, w=0.5)
    devices.write(0.3)
    devices.write(-0.3)
    waiting = devices.write(0.04)  # the refresh takes this write
    assert float(devices.w) == pytest.approx(0.31)
    assert float(waiting) == pytest.approx(-0.19)
    devices.write(0.0)
    assert float(devices.w) == pytest.approx(0.31 + 0.04)


def test_refresh_noise_is_that_of_the_reset():
    """Each device is left at max(0, σξ): their difference has the variance σ²(1 − 1/π)."""
    devices = Devices(PAIR.model_copy(update={"refresh_noise": 0.05}), count=20_000, w=0.5)
    devices.write(0.3)
    devices.write(-0.31)
    assert float(devices.w.std()) < 1e-12
    devices.write(0.0)
    assert float(devices.w.std()) == pytest.approx(0.05 * math.sqrt(1 - 1 / math.pi), rel=0.03)
    spread = float(devices.w.std())
    for _ in range(3):
        devices.write(0.0)
    assert float(devices.w.std()) == pytest.approx(spread)  # once per refresh


def test_an_uncertain_read_refreshes_by_chance():
    """P = Φ((g⁺ − limit)/σ) Φ((g⁻ − least)/σ) per write; without the error, never here."""
    sigma, above, below = 0.05, 0.03, 0.02
    chance = math.prod(0.5 * (1 + math.erf(d / sigma / math.sqrt(2))) for d in (-above, -below))
    for read, expected in ((sigma, chance), (0.0, 0.0)):
        pair = PAIR.model_copy(update={"refresh_read": read})
        devices = Devices(pair, count=20_000, w=0.75 - above)
        devices.write(-0.25 + below)
        devices.write(0.0)
        minus = next(v for k, v in devices.chips.state().items() if ".g_minus." in k)
        found = float((minus == 0).double().mean())
        # the read of the first write finds one device worn at the most: far from both limits
        assert found == pytest.approx(expected, abs=4 * math.sqrt(expected / 20_000))


def test_a_refresh_counts_pulses_by_its_own_step():
    """|w|/refresh_step of them, here a third of |w|/dw_min: a third of the weight comes back."""
    devices = Devices(PAIR.model_copy(update={"refresh_step": 0.03}), w=0.5)
    devices.write(0.4)
    devices.write(-0.3)
    devices.write(0.0)
    assert float(devices.w) == pytest.approx(0.2)


def single_pulses(
    device: Device, g: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Raise devices pulse by pulse, each at the conductance that the last one left: an oracle."""
    gain = np.abs(1 + device.dw_spread * rng.standard_normal(len(g)))
    scale = 2 * device.a / device.w_max
    for _ in range(count):
        step = gain * device.dw_min * (1 - device.A_up * np.exp(device.gamma_up * g * scale))
        noise = device.cycle_noise * (step + device.cycle_add + device.cycle_slope * g)
        g = np.clip(g + step + noise * rng.standard_normal(len(g)), 0, device.w_max)
    return g


def test_held_out_step_response_of_phase_change_pairs():
    """Mean and spread after 1 … 40 pulses against devices pulsed one by one, z ≤ 3."""
    device = describe("pcm", {}).pieces["device"].device
    device = device.model_copy(update={"w_max_spread": 0.0, "imbalance_spread": 0.0})
    devices = Devices(DevicePair(device=device, refresh_noise=0.01), count=4000)
    rng = np.random.default_rng(8)
    count = 0
    for upto in (1, 5, 20, 40):
        for _ in range(upto - count):
            devices.write(device.dw_min)
        count = upto
        expected = single_pulses(device, np.zeros(4000), upto, rng)
        found = devices.w.numpy().ravel()
        error = math.hypot(expected.std(), found.std()) / math.sqrt(4000)
        assert abs(found.mean() - expected.mean()) < 3 * error, upto
        assert found.std() == pytest.approx(expected.std(), rel=0.08), upto


def test_transfer_follows_a_mean_and_averages_noise():
    """The fast array settles where its pull balances the request; the slow one integrates it."""
    fast = LinearDevice(dw_min=0.001, imbalance=0.4, reference="symmetry")
    devices = Devices(FastArray(device=fast, rate=0.02, every=5), count=2000)
    direct = Devices(fast.model_copy(update={"reference": "zero"}), count=2000)
    generator = torch.Generator().manual_seed(2)
    for _ in range(600):
        noise = 0.02 * torch.randn(devices.w.shape, generator=generator, dtype=torch.float64)
        devices.write(noise)
        direct.write(noise)
    # without a mean the slow weight stays, while an asymmetric device alone walks off
    assert abs(float(devices.w.mean())) < 0.02
    assert float(direct.w.mean()) > 0.2
    moved = Devices(FastArray(device=fast, rate=0.02, every=5), count=500)
    for step in range(200):
        done = moved.write(0.003)
        assert bool(done.any()) == (step % 5 == 4)
    assert float(moved.w.min()) > 0.1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"kind": "linear_device", "dw_min": -1.0}, "greater than or equal to 0"),
        ({"kind": "linear_device", "dw_min": 0.1, "w_min": 0.0}, "w_min must be below 0"),
        ({"kind": "linear_device", "dw_min": 0.1, "w_max": -1.0}, "greater than 0"),
        (
            {"kind": "linear_device", "dw_min": 0.1, "gamma_up": 0.0, "reference": "symmetry"},
            "no symmetry point",
        ),
        ({"kind": "constant_device", "dw_min": 0.0, "cycle_add": 0.1}, "dw_min must be above 0"),
        ({"kind": "constant_device", "dw_min": 0.1, "drive": "sometimes"}, "'pulsed'"),
        ({"kind": "constant_device", "dw_min": math.nan}, "finite number"),
        (
            {"kind": "device_pair", "device": {"kind": "constant_device", "dw_min": 0.1}},
            "must be 0 in a pair",
        ),
        ({"kind": "pulse_train", "dw": 0.1, "slots": 0}, "greater than or equal to 1"),
        ({"kind": "update_accumulator", "threshold": 0.0}, "greater than 0"),
        ({"kind": "linear_devise", "dw_min": 0.1}, "did you mean 'linear_device'"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(fields, sentence):
    with pytest.raises(ConfigError, match=r"^hardware\.pieces\.mine") as caught:
        describe("ideal", {"mine": fields})
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
