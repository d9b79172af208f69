"""Device laws against closed forms: laws 25 and 26, each with a control that must differ."""

import math

import pytest
import torch
from writing import Devices

from hw_models.plasticity import ConstantDevice, LinearDevice
from hw_models.plasticity_rules import PulseTrain, Retention, WriteNoise
from pcsim.limits.writes import soft_bound_weight


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("drive", ["pulsed", "continuous"])
def test_soft_bounds_pull_to_the_folded_normal_fixed_point(noise, drive):
    device = LinearDevice(dw_min=1e-3, drive=drive)
    devices = Devices(device, count=2000, w=0.3)
    alpha, generator = 0.01, torch.Generator().manual_seed(3)
    mean = torch.zeros(())
    for step in range(1600):
        gradient = (
            0.6
            - devices.w
            + noise * torch.randn(devices.w.shape, generator=generator, dtype=torch.float64)
        )
        devices.write(alpha * gradient)
        if step >= 800:
            mean = mean + devices.w.mean() / 800
    assert float(mean) == pytest.approx(soft_bound_weight(0.6, noise), rel=0.01)
    # control: a device without soft bounds finds the target itself
    assert abs(float(mean) - 0.6) > 0.05


def balanced(devices: Devices, dw: float, rounds: int = 400) -> torch.Tensor:
    """Return where up and down pulses in turn lead, in the middle between the two."""
    for _ in range(rounds):
        before = devices.w
        devices.write(dw)
        after = devices.w
        devices.write(-dw)
    return (before + after) / 2


@pytest.mark.slow
def test_balanced_pulses_pull_to_the_symmetry_point():
    device = LinearDevice(
        dw_min=0.02, imbalance=0.3, w_max=1.2, w_min=-0.8, dw_spread=0.1, imbalance_spread=0.05
    )
    devices = Devices(device, count=200, w=-0.7)
    up, down = devices.fixed("gain_up"), devices.fixed("gain_down")
    top, bottom = devices.fixed("top"), devices.fixed("bottom")
    expected = (up - down) / (up / top - down / bottom)
    assert torch.allclose(balanced(devices, 0.02), expected, atol=3e-3)
    assert float(expected.std()) > 0.02  # each device has a point of its own
    flat = Devices(device.model_copy(update={"gamma_up": 0.0, "gamma_down": 0.0}), w=0.0)
    # control: without soft bounds the imbalance drives to the bound
    assert float(balanced(flat, 0.02)) > 1.0


def test_reference_reads_the_symmetry_point_as_zero():
    device = LinearDevice(dw_min=0.02, imbalance=0.4, dw_spread=0.2, reference="symmetry")
    devices = Devices(device, count=100, w=0.3)
    assert float(balanced(devices, 0.02).abs().max()) < 3e-3
    plain = Devices(device.model_copy(update={"reference": "zero"}), count=100, w=0.3)
    assert float(balanced(plain, 0.02).mean()) > 0.1  # control


def test_pulses_have_the_exact_mean_and_the_variance_of_rounding():
    dw, asked = 0.01, 0.0037
    done = Devices(ConstantDevice(dw_min=dw), count=400_000).write(asked)
    assert set((done / dw).round().unique().tolist()) == {0.0, 1.0}
    share = asked / dw
    assert float(done.mean()) == pytest.approx(asked, rel=0.02)
    assert float(done.var()) == pytest.approx(dw**2 * share * (1 - share), rel=0.02)


@pytest.mark.parametrize(("slots", "asked"), [(10, 0.03), (31, 0.004), (4, 0.036)])
def test_pulse_trains_have_the_binomial_mean_and_variance(slots, asked):
    dw = 0.01
    train = PulseTrain(slots=slots, dw=dw)
    done = Devices(train, ConstantDevice(dw_min=dw, drive="continuous"), count=300_000).write(
        -asked
    )
    p = asked / (dw * slots)
    assert float(done.mean()) == pytest.approx(-asked, rel=0.02)
    assert float(done.var()) == pytest.approx(dw * asked * (1 - p), rel=0.02)
    beyond = Devices(train, count=100).write(3 * dw * slots)
    assert torch.allclose(beyond, torch.full_like(beyond, dw * slots))  # clipped at all slots


def test_cycle_noise_is_per_pulse():
    """n pulses in one step vary by √n, in both drives; one pulse by cycle_noise itself."""
    for drive in ("pulsed", "continuous"):
        device = ConstantDevice(dw_min=0.01, cycle_noise=0.3, drive=drive)
        for pulses in (1, 9):
            done = Devices(device, count=100_000).write(pulses * 0.01)
            assert float(done.std()) == pytest.approx(0.003 * math.sqrt(pulses), rel=0.02)


def test_additive_noise_stays_where_the_step_vanishes():
    """At the upper bound a soft-bound step is zero: multiplicative noise too, additive not."""
    for reference, expected in (("step", 0.0), ("dw_min", 0.3 * 0.01)):
        device = LinearDevice(dw_min=0.01, cycle_noise=0.3, cycle_reference=reference)
        devices = Devices(device, count=50_000, w=1.0)
        done = devices.write(0.01)
        below = done[done < 0]
        spread = float(below.square().mean().sqrt()) if len(below) else 0.0
        assert spread == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("per", ["second", "update"])
def test_decay_balances_learning(per):
    """w_∞ = w*/(1 + τ_w/(τ_d σ_f²)), for a loss of 1e-7 per step."""
    tau_w, tau_d, power, target, dt = 50.0, 400.0, 1.7, 0.8, 4e-5
    lifetime = tau_d if per == "second" else tau_d / dt
    balance = target / (1 + tau_w / (tau_d * power))
    devices = Devices(Retention(lifetime=lifetime, per=per), w=balance, dt=dt)
    asked = dt / tau_w * power * (target - devices.w)
    assert abs(float(devices.write(asked))) < 1e-6 * float(asked)  # there nothing moves
    devices.w = torch.full_like(devices.w, 1.01 * balance)
    asked = dt / tau_w * power * (target - devices.w)
    assert float(devices.write(asked)) < -1e-3 * float(asked)  # control: above, it falls


@pytest.mark.slow
def test_write_noise_has_an_optimal_learning_rate():
    """N7: excess (σ_w²/α + α s²)/(4(1 − αh/2)), h = 1; the best α is σ_w/s."""

    def excess(alpha: float, sigma: float, noise: float) -> float:
        devices = Devices(WriteNoise(sigma=sigma), count=20_000, w=0.0)
        generator = torch.Generator().manual_seed(5)
        total = 0.0
        steps = int(20 / alpha)
        for step in range(steps):
            error = devices.w - noise * torch.randn(
                devices.w.shape, generator=generator, dtype=torch.float64
            )
            devices.write(-alpha * error)
            if step >= steps // 2:
                total += float(devices.w.square().mean()) / 2
        return total / (steps - steps // 2)

    sigma, noise = 0.01, 0.1
    best = sigma / noise
    measured = {alpha: excess(alpha, sigma, noise) for alpha in (best / 2, best, 2 * best)}
    for alpha, value in measured.items():
        predicted = (sigma**2 / alpha + alpha * noise**2) / (4 * (1 - alpha / 2))
        assert value == pytest.approx(predicted, rel=0.05)
    assert min(measured, key=lambda alpha: measured[alpha]) == best
    # control: without write noise smaller is better
    assert excess(best / 2, 0.0, noise) < excess(best, 0.0, noise)


def test_seen_write_noise_is_redrawn_at_each_touch_and_does_not_walk():
    devices = Devices(WriteNoise(sigma=0.1, mode="seen"), count=50_000, w=0.2)
    first, again = devices.read(), devices.read()
    assert torch.equal(first, again)  # untouched: the same error
    assert float((first - 0.2).std()) == pytest.approx(0.1, rel=0.02)
    for _ in range(20):
        devices.write(0.01)
        seen = devices.read()
    assert float((seen - 0.4).std()) == pytest.approx(0.1, rel=0.02)  # no random walk
    assert abs(float(torch.corrcoef(torch.stack([first, seen]).view(2, -1))[0, 1])) < 0.02
    walk = Devices(WriteNoise(sigma=0.1), count=50_000, w=0.2)
    for _ in range(20):
        walk.write(0.01)
    assert float(walk.w.std()) == pytest.approx(0.1 * math.sqrt(20), rel=0.02)
