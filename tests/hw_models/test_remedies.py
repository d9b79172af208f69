"""Remedies: each applies where it has a place, and is the chip that its sentence says."""

from math import sqrt

import numpy as np
import pytest
import torch
from writing import Devices

from hw_models import DeviceGroup, Hardware, describe, known_presets, preset
from hw_models.plasticity import LinearDevice
from hw_models.plasticity_arrays import DevicePair, FastArray
from hw_models.quantize import QuantizedWeights
from hw_models.remedies import REMEDIES, applicable
from pcsim.substrate import Chips, Seeded, Substrate

CHIPS = known_presets() | {
    "offset": describe("ideal", {"m": {"kind": "learning_multiplier", "offset_spread": 0.003}}),
    "coarse": Hardware(
        name="coarse", pieces={"weights": QuantizedWeights(bits=4, accumulator=False)}
    ),
}


@pytest.mark.parametrize("name", CHIPS)
def test_what_applies_makes_another_chip_that_can_be_built(name):
    chip = CHIPS[name]
    for remedy, changes in applicable(chip).values():
        better = describe(chip, changes)
        assert better.substrate() != chip.substrate(), remedy.name


def test_every_row_has_a_name_of_its_own_and_applies_to_some_chip():
    names = [remedy.name for remedy in REMEDIES]
    assert len(set(names)) == len(names)
    assert set().union(*(applicable(chip) for chip in CHIPS.values())) == set(names)
    assert not applicable(CHIPS["ideal"])


def test_an_accumulator_releases_what_the_device_can_write():
    made = applicable(preset("reram_sb"))["accumulator of 10 pulses"][1]["accumulator"]
    assert made["threshold"] == pytest.approx(10 * 0.002)
    again = describe(preset("reram_sb"), {"accumulator": made})
    assert not {"accumulator", "accumulator of 10 pulses"} & applicable(again).keys()


def test_a_matched_range_comes_with_its_own_pulses():
    chip = preset("reram_sb")
    better = describe(chip, applicable(chip)["range matched, accumulator of 50 pulses"][1])
    assert better.pieces["device"].range == 0.3
    assert better.pieces["accumulator"].threshold == pytest.approx(50 * 0.002 * 0.3)
    again = applicable(better)
    assert "range matched, accumulator of 50 pulses" not in again


def test_ranges_are_those_of_devices_words_and_pairs():
    for name, piece in (
        ("reram_sb", "device"),
        ("dynapse2_on_chip", "weights"),
        ("sot_mram", "junctions"),
    ):
        chip = preset(name)
        assert describe(chip, applicable(chip)["range halved"][1]).pieces[piece].range == 0.5
        narrow = describe(chip, applicable(chip)["range matched"][1])
        assert narrow.pieces[piece].range == 0.3
        assert "range matched" not in applicable(narrow), "it is no wider than that"
    inside = applicable(preset("pcm"))["range matched"][1]
    assert describe(preset("pcm"), inside).pieces["device"].device.range == 0.3


def test_four_pairs_are_four_times_the_devices():
    chip = preset("sot_mram")
    remedy, changes = applicable(chip)["4 pairs per weight"]
    assert describe(chip, changes).pieces["junctions"].pairs == 4
    assert remedy.devices == 2 * 4 - 2
    assert "4 pairs per weight" not in applicable(describe(chip, changes))
    assert "4 pairs per weight" not in applicable(preset("reram_sb"))


def test_a_buffered_fast_array_writes_whole_pulses_of_the_slow_one():
    changes = applicable(preset("ecram_li"))["fast array with buffer"][1]
    assert changes["buffer"]["threshold"] == pytest.approx(0.002)
    assert changes["transfer"]["in_turn"] is True


def test_remedies_of_the_multiplier_need_one():
    assert "chopped multiplier" not in applicable(preset("ecram_li"))
    offset = {"multiplier": {"kind": "learning_multiplier", "offset_spread": 0.003}}
    found = applicable(describe("ideal", offset))
    assert found["chopped multiplier"][1] == {"multiplier": {"chop": 4.0}}
    assert found["leaking weights"][1] == {"multiplier": {"leak": 0.01}}
    assert all(found[name][0].automatic for name in ("chopped multiplier", "leaking weights"))


def test_four_devices_are_finer_and_more_alike():
    chip = describe(preset("reram_sb"), applicable(preset("reram_sb"))["4 devices per weight"][1])
    one, four = preset("reram_sb").pieces["device"], chip.pieces["device"]
    assert four.quantum == pytest.approx(one.quantum / 4)
    assert four.dw_spread == pytest.approx(one.dw_spread / 2)
    # what is seen of a write, network units: the mean of four independent errors
    assert four.write_noise * four.quantum == pytest.approx(one.write_noise * one.quantum / sqrt(4))
    inside = applicable(preset("pcm"))["4 devices per weight"][1]
    pair = describe(preset("pcm"), inside).pieces["device"]
    assert isinstance(pair, DevicePair)
    assert pair.device.dw_min == pytest.approx(0.0025)
    assert pair.device.gamma_up == 2.5


def test_groups_take_the_place_and_the_clock_of_a_device():
    chip = preset("reram_sb_chip")
    found = applicable(chip)
    for name, count in (
        ("two significances, carried", 2),
        ("residual learning over three tiles", 3),
    ):
        remedy, changes = found[name]
        made, device = describe(chip, changes).pieces["device"], chip.pieces["device"]
        assert isinstance(made, DeviceGroup)
        assert len(made.significances) == count == remedy.devices + 1
        assert made.t_write == device.t_write == 400e-9
        assert made.device == device.model_copy(update={"t_write": None})
        assert not remedy.automatic, "somebody has to start the transfers"
        assert remedy.sources
    assert not {"two significances, carried"} & applicable(preset("pcm")).keys()


def test_a_fast_array_is_for_devices_with_a_symmetry_point():
    assert "fast array with transfer" in applicable(preset("ecram_li"))
    assert "fast array with transfer" not in applicable(preset("reram_es"))
    assert not next(r for r in REMEDIES if r.name == "fast array with transfer").automatic


IMBALANCED = LinearDevice(dw_min=0.001, drive="continuous", imbalance=0.3)
"""Its symmetry point is not at zero: balanced requests pull it there, and it says so for ever."""


def transferred(push=0.0, writes=400, **fields):
    """Return what a fast array has asked for by each write: as much up as down, and a push."""
    device = LinearDevice(dw_min=0.001, drive="continuous") if push else IMBALANCED
    effects = FastArray(device=device, rate=0.1, **fields).by_samples("fast")
    substrate = Substrate(effects=effects)
    chips = Chips(substrate, [0], seed=0, dt=1.0, noise=Seeded(0), dtype=torch.float64)
    write, zero = chips.transform("write", 0, (1, 1)), torch.zeros(1, 1, 1, dtype=torch.float64)
    done = []
    for _ in range(writes):
        done.append(float(write(zero + push, w=zero, tau_w=1.0, down=zero + 0.05)))
        chips.advance()
    return np.cumsum(done)


def test_a_chopped_fast_array_adds_up_its_own_offset_to_nothing():
    plain, chopped = transferred(), transferred(chop=20)
    offset = plain[-1] - plain[-2]
    assert plain[-1] - plain[-201] == pytest.approx(200 * offset), "control: it runs away"
    assert abs(offset) > 1e-3
    # Two halves of 20 transfers cancel; what is left is the ripple of one of them.
    assert np.ptp(chopped[200:]) == pytest.approx(20 * abs(offset), rel=0.01)
    assert chopped[-1] == pytest.approx(chopped[-41], abs=1e-9)


def test_a_dynamic_reference_leaves_no_ripple():
    followed = transferred(chop=20, follow_reference=True)[200:]
    assert np.ptp(followed) < 0.01 * np.ptp(transferred(chop=20)[200:])


@pytest.mark.parametrize("fields", [{"chop": 20}, {"chop": 20, "follow_reference": True}])
def test_what_is_asked_for_is_transferred_all_the_same(fields):
    up, down = (transferred(push=push, **fields)[-1] for push in (0.002, -0.002))
    assert up > 0.02
    assert down < -0.02


def test_transfers_are_counted():
    devices = Devices(FastArray(device=IMBALANCED, rate=0.1, every=5, chop=3))
    done = [float(devices.write(0.02)) for _ in range(60)]
    when = [k for k, change in enumerate(done) if change]
    assert np.diff(when).tolist() == [5] * (len(when) - 1)
    assert len(when) == 12


def test_a_reference_that_is_followed_needs_a_chopper():
    with pytest.raises(ValueError, match="set chop"):
        FastArray(device=IMBALANCED, rate=0.1, follow_reference=True)
