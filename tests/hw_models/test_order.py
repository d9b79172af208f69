"""Pieces act by their physical place: the order of a file changes neither chip nor noise."""

from itertools import permutations

import numpy as np
import pytest
from typer.testing import CliRunner

from hw_models import PIECES, describe, known_presets
from hw_models.kind_pages import example
from hw_models.order import PLACES, OrderWarning, arranged, order_words
from hw_models.plasticity import LinearDevice
from hw_models.plasticity_arrays import FastArray
from hw_models.preset_file import load, text
from pcsim import config
from pcsim.cli import app
from pcsim.errors import ConfigError
from pcsim.run import run

DEVICE = {"kind": "linear_device", "dw_min": 0.02, "write_noise": 3.0}
ACCUMULATOR = {"kind": "update_accumulator", "threshold": 0.02}
LEAK = {"kind": "retention", "lifetime": 50.0}
NOISE = {"kind": "read_noise", "where": "weight", "sigma": 0.02}
PIECES_ALL = {"held": ACCUMULATOR, "device": DEVICE, "leak": LEAK, "read": NOISE}


def names(hardware, site):
    return [effect.name for effect in hardware.substrate().effects if effect.site == site]


def setting(pieces, preset="ideal"):
    return config.parse(
        {
            "network": {"sizes": [64, 8, 10]},
            "schedule": {"gamma": 0.4, "init": "carry"},
            "stream": {"t_pres": 4.0},
            "learning": {"batch": 1, "epochs": 1, "alpha": 0.01},
            "data": {"name": "digits", "limit": 20, "limit_test": 20},
            "run": {"backend": "continuous"},
            "hardware": {"chips": 2, "preset": preset, "pieces": pieces},
        }
    )


def test_an_accumulator_appended_behind_the_device_is_the_same_chip():
    """Every number of the training, too: draws and noise do not know the order of writing."""
    front = setting({"held": ACCUMULATOR, "device": DEVICE, "read": NOISE})
    behind = setting({"read": NOISE, "device": DEVICE, "held": ACCUMULATOR})
    one, other = run(front), run(behind)
    for name in ("parameters", "energy", "accuracy"):
        np.testing.assert_array_equal(one[name], other[name])
    only = run(setting({"device": DEVICE, "read": NOISE}))
    assert np.abs(one["parameters"] - only["parameters"]).max() > 1e-3, "it does something"


def test_a_piece_that_is_added_to_a_preset_acts_at_its_place():
    """Nobody can write before a preset: this is no mistake, and no warning is given."""
    chip = describe("reram_sb", {"held": ACCUMULATOR})
    assert list(chip.pieces) == ["held", "device"]
    assert names(chip, "write") == ["held", "device_pulses", "device"]


def test_every_order_of_writing_is_one_chip():
    chips = [describe("ideal", dict(order)) for order in permutations(PIECES_ALL.items())]
    assert len(chips) == 24
    assert all(list(chip.pieces) == ["held", "device", "leak", "read"] for chip in chips)
    assert all(chip.substrate() == chips[0].substrate() for chip in chips)
    assert names(chips[0], "weight") == ["device_seen", "read"]


def test_places_go_from_the_request_to_the_converter():
    """One example of each kind, given backwards."""
    pieces = {name: example(name) for name in reversed(PIECES)}
    order = [piece.PLACE for piece in arranged(pieces).values()]
    assert order == sorted(order, key=PLACES.index)
    assert set(order) == set(PLACES)
    told = ("accumulator", "pulses", "device", "retention", "noise", "converter")
    assert [PLACES.index(place) for place in told] == sorted(PLACES.index(place) for place in told)
    kinds = [piece.kind for piece in arranged(pieces).values()]
    pairs = [
        ("learning_multiplier", "fast_array"),
        ("fast_array", "update_accumulator"),
        ("update_accumulator", "pulse_train"),
        ("pulse_train", "endurance"),
        ("endurance", "linear_device"),
        ("linear_device", "write_noise"),
        ("programming_error", "pcm_drift"),
        ("pcm_drift", "stuck_weights"),
        ("stuck_weights", "mismatch"),
        ("mismatch", "array_read_noise"),
        ("read_noise", "saturation"),
        ("white_noise", "dead_neurons"),
        ("dead_neurons", "converter"),
    ]
    for first, second in pairs:
        assert kinds.index(first) < kinds.index(second), (first, second)


def test_presets_are_in_their_order():
    for one in known_presets().values():
        assert list(arranged(one.pieces)) == list(one.pieces), one.name


# -- another order ---------------------------------------------------------------------------------


def test_before_and_after_move_a_piece():
    chip = describe("ideal", {**PIECES_ALL, "leak": {**LEAK, "before": "device"}})
    assert list(chip.pieces) == ["held", "leak", "device", "read"]
    chip = describe("reram_sb", {"held": {**ACCUMULATOR, "after": "device"}})
    assert names(chip, "write") == ["device_pulses", "device", "held"]
    assert order_words(chip.pieces) == (
        "order, by physical place: device (device) → held (after device)"
    )


def test_neighbours_of_one_piece_keep_their_own_order():
    """Also with neighbours of their own, in whatever order all are written."""
    pieces = {
        "device": DEVICE,
        "a": {**LEAK, "after": "device"},
        "b": {**LEAK, "after": "a"},
        "c": {**LEAK, "after": "device"},
        "d": {**LEAK, "before": "device"},
    }
    assert list(describe("ideal", pieces).pieces) == ["d", "device", "a", "b", "c"]
    turned = {name: pieces[name] for name in ("b", "a", "d", "device", "c")}
    assert list(describe("ideal", turned).pieces) == ["d", "device", "a", "b", "c"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"before": "devcie"}, r"held: before = 'devcie': there is no such other piece; there are"),
        ({"after": "held"}, r"held: after = 'held': there is no such other piece"),
        ({"after": "adc"}, r"it acts at product, and held at write: their order changes nothing"),
        ({"after": "leak", "before": "device"}, r"held: .*give one of them"),
        ({"after": ""}, r"held: after"),
        ({"after": "leak"}, r"held, leak stand before or after each other in a circle"),
    ],
)
def test_what_makes_no_order_is_refused(fields, words):
    adc = {"kind": "converter", "where": "product", "bits": 8}
    leak = {**LEAK, "after": "held"}
    pieces = {"held": {**ACCUMULATOR, **fields}, "device": DEVICE, "leak": leak, "adc": adc}
    with pytest.raises(ConfigError, match=words):
        describe("ideal", pieces)


def test_a_device_inside_another_piece_has_no_neighbours():
    device = LinearDevice(dw_min=0.01, before="x")
    with pytest.raises(ValueError, match=r"device\.before, device\.after: set them for the piece"):
        FastArray(device=device, rate=0.1)


# -- files -----------------------------------------------------------------------------------------

FILE = """
name = "turned"
[pieces.device]
kind = "linear_device"
dw_min = 0.02
[pieces.held]
kind = "update_accumulator"
threshold = 0.02
"""


def test_a_file_in_another_order_warns_and_is_shown_as_it_acts(tmp_path):
    path = tmp_path / "turned.toml"
    path.write_text(FILE)
    words = "held is written behind device and acts before it: pieces act by their physical place"
    with pytest.warns(OrderWarning, match=words):
        chip = load(path)
    assert list(chip.pieces) == ["held", "device"]
    for verb in ("show", "check"):
        with pytest.warns(OrderWarning, match=r"turned\.toml: held is written behind device"):
            shown = CliRunner().invoke(app, ["hardware", verb, str(path)])
        assert shown.exit_code == 0
        assert "order, by physical place: held (accumulator) → device (device)" in shown.output
    # what pcsim writes is in order, and gives the same chip without a word
    path.write_text(text(chip))
    assert load(path) == chip
    path.write_text(FILE + 'after = "device"\n')
    assert list(load(path).pieces) == ["device", "held"], "who asks for an order is not warned"
    again = tmp_path / "again.toml"
    again.write_text(text(load(path)))
    assert load(again).pieces == load(path).pieces


def test_a_configuration_in_another_order_warns(tmp_path):
    """Pieces of the file itself; what is changed in a preset, or added to it, has no order."""
    path = tmp_path / "run.toml"
    head = '[network]\nsizes = [64, 8, 10]\n[run]\nbackend = "continuous"\n'
    pieces = FILE.replace('name = "turned"', "").replace("[pieces.", "[hardware.pieces.")
    path.write_text(head + pieces)
    with pytest.warns(OrderWarning, match=r"run\.toml: hardware\.pieces: held is written behind"):
        config.load(path)
    changed = '[hardware]\npreset = "reram_sb"\n' + pieces.replace('kind = "linear_device"\n', "")
    path.write_text(head + changed)
    assert list(config.load(path).hardware.described().pieces) == ["held", "device"]


def test_a_file_with_an_impossible_neighbour_is_refused(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(FILE + 'after = "nobody"\n')
    with pytest.raises(ConfigError, match="there is no such other piece"):
        load(path)


def test_pieces_that_never_meet_may_be_written_in_any_order():
    """A converter of the rates and a device share no site."""
    dac = {"kind": "converter", "where": "rate", "bits": 8}
    assert list(describe("ideal", {"dac": dac, "device": DEVICE}).pieces) == ["device", "dac"]
