"""Several devices per weight: shares in turn, carries that conserve, residuals that shrink."""

from math import sqrt

import pytest
import torch
from writing import Devices

from hw_models import DeviceGroup, describe, preset
from hw_models.plasticity import ConstantDevice, LinearDevice
from hw_models.remedies import applicable
from pcsim.substrate import Chips, Seeded, Substrate

EXACT = ConstantDevice(dw_min=0.0, w_max=10.0, w_min=-10.0)


def held(devices, k):
    """Return v_k of every device of a weight."""
    memory = devices.chips.state()
    (name,) = (n for n in memory if n.split(".")[1:2] == [f"v_{k}"])
    return memory[name].reshape(-1)


def test_in_turn_each_device_takes_its_share():
    """After as many writes as devices each has moved by s/c_k, and the weight by their sum."""
    devices = Devices(DeviceGroup(device=EXACT, significances=(0.5, 0.3, 0.2)))
    done = [float(devices.write(0.06)) for _ in range(3)]
    assert done == pytest.approx([0.06] * 3)
    for k, c in enumerate((0.5, 0.3, 0.2)):
        assert float(held(devices, k)) == pytest.approx(0.06 / c)


@pytest.mark.parametrize("count", [1, 4, 8])
def test_spread_and_cycle_noise_fall_with_the_root_of_the_number(count):
    """Steps of n devices written in turn: σ/√n of each, from device to device and in a cycle."""
    spread, noise = 0.2, 0.4
    device = ConstantDevice(dw_min=0.001, dw_spread=spread, w_max=100.0, w_min=-100.0)
    share = (1 / count,) * count

    def way(device, request, writes):
        group = DeviceGroup(device=device, significances=share) if count > 1 else device
        devices = Devices(group, count=4000)
        for _ in range(writes):
            devices.write(request)
        return devices.w[0, 0]

    moved = way(device, 0.1, count)  # a hundred pulses and more each
    assert float(moved.std() / moved.mean()) == pytest.approx(spread / sqrt(count), rel=0.05)
    noisy = device.model_copy(update={"dw_spread": 0.0, "cycle_noise": noise})
    pulse = 0.001 * share[0]  # one pulse of one device
    moved = way(noisy, pulse, count)
    assert float(moved.mean()) == pytest.approx(count * pulse, rel=0.03)
    assert float(moved.std()) == pytest.approx(sqrt(count) * noise * pulse, rel=0.05)


def test_four_devices_are_what_the_remedy_puts_in_their_place():
    """One device that is finer and more alike has mean and spread of four that are written."""
    chip = preset("idealized")
    four = describe(chip, applicable(chip)["4 devices per weight"][1]).pieces["device"]
    plain = chip.pieces["device"]
    group = DeviceGroup(device=plain, significances=(0.25,) * 4)
    ways = []
    for piece in (four, group):
        devices = Devices(piece, count=4000)
        for _ in range(80):
            devices.write(0.002)
        ways.append(devices.w[0, 0])
    one, real = ways
    assert float(one.mean()) == pytest.approx(float(real.mean()), rel=0.02)
    assert float(one.std()) == pytest.approx(float(real.std()), rel=0.06)
    single = Devices(plain, count=4000)
    for _ in range(80):
        single.write(0.002)
    assert float(single.w.std()) > 1.7 * float(real.std()), "control"


def test_carrying_moves_what_was_learnt_and_changes_nothing():
    """Behind every tenth write the fine device is empty, the coarse one has it, the sum stays."""
    devices = Devices(
        DeviceGroup(device=EXACT, significances=(1.0, 0.25), scheme="carry", every=10), w=0.2
    )
    assert not devices.w.isnan().any()
    for write in range(1, 31):
        devices.write(0.01)
        assert float(devices.w) == pytest.approx(0.2 + 0.01 * write)
        # a request of the same write is taken by the device that was just erased
        since = write % 10 + 1 if write >= 10 else write
        assert 0.25 * float(held(devices, 1)) == pytest.approx(0.01 * since)


def test_a_fine_device_reaches_beyond_the_steps_of_a_coarse_one():
    """w is off by no more than pulses of the least significant, however coarse the others are."""
    coarse = ConstantDevice(dw_min=0.1, w_max=4.0, w_min=-4.0)
    target = torch.linspace(-0.5, 0.5, 200, dtype=torch.float64)

    def error(piece):
        devices = Devices(piece, count=200)
        left = []
        for k in range(600):
            devices.write(0.1 * (target - devices.w))
            if k >= 400:
                left.append((devices.w - target).square().mean())
        return float(torch.stack(left).mean().sqrt())

    alone = error(coarse)
    errors = [
        error(DeviceGroup(device=coarse, significances=c, scheme="residual", every=20, rate=0.2))
        for c in ((1.0, 0.2), (1.0, 0.2, 0.04))
    ]
    # a tile rounds at random: the error is in proportion to its pulse, and so to its significance
    assert errors[0] < 0.7 * alone
    assert errors[1] < 0.7 * errors[0]


def test_residuals_behind_the_first_device_go_to_zero():
    """The fixed point is v_0 = w*/c_0 and v_k = 0: the first device has learnt all of it."""
    group = DeviceGroup(
        device=EXACT, significances=(1.0, 0.3, 0.1), scheme="residual", every=3, rate=0.5
    )
    devices = Devices(group)
    for _ in range(600):
        devices.write(0.5 * (0.7 - devices.w))
    assert float(devices.w) == pytest.approx(0.7, abs=1e-6)
    assert [float(held(devices, k)) for k in range(3)] == pytest.approx([0.7, 0, 0], abs=1e-6)


def test_only_what_is_touched_is_seen_anew():
    """Written in turn, half of the variance is drawn anew at each write, and none of it stays."""
    device = ConstantDevice(dw_min=0.001, w_max=100.0, w_min=-100.0, write_noise=20.0)
    devices = Devices(DeviceGroup(device=device, significances=(0.5, 0.5)), count=20_000)
    errors = []
    for write in range(1, 21):
        devices.write(0.001)
        errors.append(devices.w[0, 0] - 0.001 * write)
    before, last = errors[-2:]
    assert float(last.std()) == pytest.approx(0.02 * sqrt(0.5), rel=0.03)
    assert float((before * last).mean() / last.var()) == pytest.approx(0.5, abs=0.03)
    assert abs(float((errors[-3] * last).mean() / last.var())) < 0.03
    assert abs(float(last.mean())) < 4 * 0.02 / sqrt(40_000)
    before = devices.w.clone()
    devices.write(0.0)
    assert torch.equal(devices.w, before), "nobody is touched where nothing is asked"


def test_transfers_are_counted():
    """Where nothing is asked, a residual is passed on at every fifth write and at no other."""
    group = DeviceGroup(
        device=EXACT, significances=(1.0, 0.5), scheme="residual", every=5, rate=0.2
    )
    devices = Devices(group)
    devices.write(0.1)
    done = [float(devices.write(0.0)) for _ in range(19)]
    assert [k + 2 for k, change in enumerate(done) if change] == [5, 10, 15, 20]
    assert [change for change in done if change] == pytest.approx([0.02] * 4)


def test_what_is_lost_elsewhere_is_lost_by_all_devices():
    devices = Devices(DeviceGroup(device=EXACT, significances=(0.5, 0.5)), w=0.4)
    devices.write(0.0)
    devices.w *= 0.5
    assert float(devices.write(0.0)) == pytest.approx(0, abs=1e-12)
    assert [float(held(devices, k)) for k in range(2)] == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize("scheme", ["turn", "carry", "residual"])
def test_samples_side_by_side_send_pulses_of_their_own(scheme):
    """Up and down cancel in the mean; what they leave behind are steps that lose on the way."""
    device = LinearDevice(dw_min=0.001, cycle_noise=0.5)
    group = DeviceGroup(device=device, significances=(0.5, 0.5), scheme=scheme, every=7)
    substrate = Substrate(effects=group.by_samples("g"))
    chips = Chips(substrate, [0], seed=0, dt=1.0, noise=Seeded(0), dtype=torch.float64)
    write, w = chips.transform("write", 0, (1, 500)), torch.zeros(1, 1, 500, dtype=torch.float64)
    for _ in range(50):
        w = w + write(torch.zeros_like(w), w=w, tau_w=1.0, down=torch.full_like(w, 0.004))
        chips.advance()
    assert abs(float(w.mean())) < 0.003
    assert float(w.std()) > 1e-3, "a sum of zero would write nothing"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"significances": (0.1, 1.0)}, "from the most to the least"),
        ({"significances": (1.0,)}, "at least 2"),
        ({"device": LinearDevice(dw_min=0.01, t_write=1.0)}, "set t_write of the piece"),
    ],
)
def test_what_makes_no_group_is_refused(fields, sentence):
    given = {"device": EXACT, "significances": (1.0, 0.5)}
    with pytest.raises(ValueError, match=sentence):
        DeviceGroup(**given | fields)
