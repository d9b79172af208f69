"""Several pulses in one write lead where as many writes of one pulse lead."""

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import preset
from hw_models.plasticity import (
    ConstantDevice,
    ExponentialDevice,
    LinearDevice,
    PowerDevice,
    PulseCurveDevice,
)

EXPONENT = {"A_up": -1.2, "A_down": -0.1, "gamma_up": 5.0, "gamma_down": 5.0, "a": -0.5, "b": -0.5}
SPREAD = {"dw_spread": 0.2, "imbalance": 0.2, "imbalance_spread": 0.05, "w_max_spread": 0.1}
AFFINE = {
    "constant": ConstantDevice(dw_min=0.01, **SPREAD),
    "linear": LinearDevice(dw_min=0.01, **SPREAD),
    "nearly linear": LinearDevice(dw_min=0.01, gamma_up=0.1, gamma_down=1e-9, **SPREAD),
    "coarse": LinearDevice(dw_min=0.4, dw_spread=0.3),
    "reference": LinearDevice(dw_min=0.02, reference="symmetry", **SPREAD),
    "curve": PulseCurveDevice(dw_min=0.02, curvature_up=0.3, curvature_down=0.8, range=0.7),
}
CURVED = {
    "exponential": ExponentialDevice(dw_min=0.01, **EXPONENT, **SPREAD),
    "saturating": ExponentialDevice(
        dw_min=0.01, A_up=0.15, A_down=0.3, gamma_up=1.6, gamma_down=1.1
    ),
    "flat": ExponentialDevice(dw_min=0.01, A_up=-0.3, A_down=0.2, gamma_up=0.0, gamma_down=0.0),
    "power": PowerDevice(dw_min=0.02, gamma_up=0.5, gamma_down=1.7, **SPREAD),
    "soft power": PowerDevice(dw_min=0.02, gamma_up=1.0, gamma_down=1.0, range=0.7),
}
COUNT = 200
PCM = preset("pcm").pieces["device"].device.model_copy(update={"w_min": -1e-9})


def one_by_one(device, pulses, w=0.1):
    devices = Devices(device, count=COUNT, w=w)
    for _ in range(abs(pulses)):
        devices.write(np.sign(pulses) * device.quantum)
    return (devices.w - w).numpy().ravel()


def at_once(device, pulses, w=0.1):
    devices = Devices(device, count=COUNT, w=w)
    return devices.write(pulses * device.quantum).numpy().ravel()


@pytest.mark.parametrize("pulses", [1, -1, 7, -7, 60, -60])
@pytest.mark.parametrize("law", AFFINE)
def test_affine_laws_are_exact(law, pulses):
    """Without noise, to rounding: u* + (u − u*)(1 − λ)^n, clipped at the own bounds."""
    device = AFFINE[law]
    expected, found = one_by_one(device, pulses), at_once(device, pulses)
    limit = 0.001 if law == "coarse" else 2e-6
    np.testing.assert_allclose(found, expected, atol=limit)
    assert np.abs(expected).min() > 0


@pytest.mark.parametrize("pulses", [1, -1, 7, -7, 60, -60])
@pytest.mark.parametrize("law", CURVED)
def test_other_laws_follow_their_flow(law, pulses):
    """One pulse is exact; sixty are right to 3 % of the way where one is a hundredth of it."""
    device = CURVED[law]
    expected, found = one_by_one(device, pulses), at_once(device, pulses)
    np.testing.assert_allclose(found, expected, rtol=1e-9 if abs(pulses) == 1 else 0.03)
    if abs(pulses) == 60 and law != "flat":
        first = pulses / abs(pulses) * at_once(device, 1 if pulses > 0 else -1) * 60
        assert (
            np.abs(np.abs(first) - np.abs(expected)).max() > 0.03
        )  # control: the law at the start


@pytest.mark.parametrize("pulses", [2, 3, 10, 31, 60])
@pytest.mark.parametrize("start", [0.0, 0.6])
def test_coarse_pulses_of_phase_change_memory_are_followed_to_one_per_cent(pulses, start):
    """From zero the first pulses are a good part of the range; the plain flow is 13 % off."""
    device = PCM.model_copy(update={"cycle_noise": 0.0, "cycle_add": 0.0, "cycle_slope": 0.0})
    expected, found = (f(device, pulses, w=start) for f in (one_by_one, at_once))
    assert found.mean() == pytest.approx(expected.mean(), rel=0.01)
    if pulses == 31 and not start:
        law = 1 - device.A_up  # at zero
        first = 0.01 * law
        pace = np.log(1 - (1 - np.exp(2.5 * first)) / law)
        plain = np.log(law * np.exp(31 * pace) + device.A_up) / 2.5  # e^{−cu} − B = law·Eⁿ
        assert plain > 1.1 * expected.mean(), "control"


@pytest.mark.parametrize("law", [*AFFINE, *CURVED])
def test_a_continuous_drive_is_the_flow_of_its_law(law):
    """One long request is a thousand short ones: dw/dt = rate·step(w)."""
    device = (AFFINE | CURVED)[law].model_copy(update={"drive": "continuous"})
    for asked in (0.3, -0.3):
        short = Devices(device, count=COUNT, w=0.1)
        for _ in range(1000):
            short.write(asked / 1000)
        once = Devices(device, count=COUNT, w=0.1).write(asked) + 0.1
        np.testing.assert_allclose(once.numpy(), short.w.numpy(), atol=4e-4)


@pytest.mark.parametrize("reference", ["step", "dw_min"])
def test_noise_of_several_pulses_is_that_of_one_after_the_other(reference):
    device = LinearDevice(dw_min=0.03, cycle_noise=0.5, cycle_reference=reference, w_max=2.0)
    single = Devices(device, count=40_000)
    for _ in range(12):
        single.write(0.03)
    once = Devices(device, count=40_000).write(12 * 0.03)
    assert float(once.mean()) == pytest.approx(float(single.w.mean()), rel=0.003)
    assert float(once.std()) == pytest.approx(float(single.w.std()), rel=0.02)


def test_single_precision_keeps_small_steps():
    """Steps of a hundred-thousandth of the range are not lost to rounding in float32."""
    from pcsim.substrate import Chips, Seeded, Substrate

    bent = ExponentialDevice(dw_min=1e-5, **EXPONENT)
    for device in (LinearDevice(dw_min=1e-5, gamma_up=1e-3), bent):
        chips = {}
        for dtype in (torch.float32, torch.float64):
            substrate = Substrate(effects=device.effects("d"))
            made = Chips(substrate, [0], seed=0, dt=1.0, noise=Seeded(0), dtype=dtype)
            write = made.transform("write", 0, (1, 5))
            w = torch.full((1, 1, 5), 0.25, dtype=dtype)
            chips[dtype] = write(torch.full_like(w, 3e-5), w=w).double().numpy()
        np.testing.assert_allclose(chips[torch.float32], chips[torch.float64], rtol=2e-3)
