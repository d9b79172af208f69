"""Remedies are tried and ranked; specifications are found along axes; both refuse in a sentence."""

import json
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from test_margins import CRITERION, TINY, TOLERANCE

import pcsim
from pcsim import config, store
from pcsim.check import CHIP, Criterion
from pcsim.check.physical import REGIMES
from pcsim.cli import main
from pcsim.cli.variants import _axis
from pcsim.errors import ConfigError
from pcsim.hardware import HardwareConfig
from pcsim.run import run
from pcsim.runner.timing import Timing
from pcsim.variants import Remedies, remedies, specs
from pcsim.variants.along_axes import values_of
from pcsim.variants.every_remedy import STREAM, require_known
from pcsim.variants.limit import Estimate
from pcsim.variants.remedies_found import Tried, would_train
from pcsim.variants.specs_found import Specs, need

COARSE = TINY | {
    "hardware": {
        "chips": 2,
        "pieces": {
            "weights": {"kind": "quantized_weights", "bits": 5, "accumulator": False},
            "adc": {"kind": "converter", "where": "product", "bits": 3, "range": 8.0},
        },
    }
}


@pytest.fixture(scope="module")
def check():
    criterion = Criterion(tolerance=0.2)
    return pcsim.check(config.parse(COARSE), criterion=criterion, twins=False, search=False)


@pytest.fixture(scope="module")
def tried(check):
    only = ("dithered converters", "hidden weight", "smooth label", "states reset")
    return remedies(check, only=only)


# -- remedies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ((0.04, 0.03, 0.05), "yes"),
        ((0.05, 0.03, 0.0501), "likely"),
        ((0.0501, 0.05, 0.06), "unlikely"),
        ((0.0501, 0.0501, 0.06), "no"),
        ((0.0, -inf, inf), "likely"),
    ],
)
def test_four_words_say_whether_a_chip_would_train(limit, words):
    assert would_train(Estimate(*limit), TOLERANCE) == words


def test_a_remedy_is_a_run_with_it(check, tried):
    """The gain is that of separate runs, with the pieces or the stream that the remedy says."""
    base = np.nan_to_num(check.accuracy(CHIP))
    pieces = {name: dict(piece) for name, piece in COARSE["hardware"]["pieces"].items()}
    pieces["weights"] |= {"accumulator": True}
    hidden = check.config.model_copy(update={"hardware": HardwareConfig(chips=2, pieces=pieces)})
    changes = REGIMES["smooth-label"](check.config)
    smooth = config.changed(check.config, changes)
    for name, setting in (("hidden weight", hidden), ("smooth label", smooth)):
        one = next(one for one in tried.tried if one.name == name)
        assert one.gain.value == pytest.approx(float((run(setting)["accuracy"] - base).mean()))


def test_remedies_are_ranked_and_stored(tried, tmp_path):
    gains = [one.gain.value for one in tried.ranked]
    assert gains == sorted(gains, reverse=True)
    assert {one.name for one in tried.tried if not one.automatic} == {"states reset"}
    assert len(tried.to_pandas()) == 4
    assert tried.sentence() in repr(tried)
    store.save(tried.result(), tmp_path / "remedies.h5")
    page = pcsim.report(tmp_path / "remedies.h5").read_text(encoding="utf-8")
    assert "<dt>Remedies</dt>" in page
    assert "Remedies of a chip with weights, adc" in page
    tried.plot()


def test_the_sentence_tells_what_needs_no_controller(check):
    def one(name, gain, automatic, width=0.01):
        accuracy = np.full((3, 2), 0.5)
        interval = Estimate(gain, gain - width, gain + width)
        limit = Estimate(0.3 - gain, 0.29 - gain, 0.31 - gain)
        return Tried(name, "", 0, "none", "none", automatic, accuracy, interval, limit)

    both = Remedies(check, 8, (one("a", 0.05, True), one("b", 0.2, False)))
    assert both.sentence() == (
        "best remedy of a chip with weights, adc: b (+20.0 points, +19.0 to +21.0; trains: yes); "
        "best without a controller: a (+5.0 points, +4.0 to +6.0; trains: no)"
    )
    gated = Remedies(check, 8, (one("b", 0.2, False), one("a", 0.005, True)))
    assert "none without a controller helps" in gated.sentence()
    idle = Remedies(check, 8, (one("a", 0.01, True), Tried("c", "", 0, "", "", True, reason="no")))
    assert "no remedy of 1 helps" in idle.sentence()
    assert "Not tried: c: no" in idle.tables()[0].caption


def test_every_remedy_of_the_stream_changes_a_run():
    """Also where its times are no whole number of steps (3 τ_x in steps of 0.4 τ_x)."""
    setting = config.parse(TINY)
    offset = {"multiplier": {"kind": "learning_multiplier", "offset_spread": 0.01}}
    for one in STREAM:
        if one.name == "sleep phases":
            assert not one.sections(setting), "no multiplier, no place"
            hardware = setting.hardware.model_copy(update={"pieces": offset})
            setting = setting.model_copy(update={"hardware": hardware})
        changed = config.changed(setting, one.sections(setting))
        assert changed != setting, one.name
        Timing.of(changed)
    assert config.changed(setting, STREAM[2].sections(setting)).stream.t_pres == pytest.approx(4.8)


@pytest.mark.parametrize(
    ("hardware", "only", "sentence"),
    [
        ({}, (), "remedies: 'ideal' needs none"),
        (
            COARSE["hardware"],
            ("prayer",),
            "no place for 'prayer'; what applies: range doubled, range",
        ),
    ],
)
def test_a_remedy_without_a_place_is_refused(hardware, only, sentence):
    with pytest.raises(ConfigError, match=sentence):
        require_known(config.parse(TINY | {"hardware": hardware}), only)


# -- specifications ------------------------------------------------------------------------------


def limits(*values):
    return [Estimate(v, v - 0.01, v + 0.01) for v in values]


def test_at_most_and_at_least_are_told_apart():
    noise = need([0.1, 0.2, 0.4], limits(0.0, 0.02, 0.08), TOLERANCE)
    assert noise.at_most
    assert noise.value.value == pytest.approx(0.2 * 2**0.5)  # halfway, in the logarithm
    assert noise.value.low < noise.value.value < noise.value.high
    bits = need([3, 4, 5], limits(0.2, 0.06, 0.04), TOLERANCE)
    assert not bits.at_most
    assert bits.value.value == pytest.approx(4.5)
    assert bits.words.startswith("≥ 4.5 (4")
    assert isnan(need([3, 4], limits(0.2, 0.06), TOLERANCE).value.value)
    assert need([3, 4], limits(0.2, 0.06), TOLERANCE).words == "none tried"
    assert need([3, 4], limits(0.02, 0.01), TOLERANCE).words == "all tried"
    assert need([0, 1], limits(0.0, 0.1), TOLERANCE).value.value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        ({}, "0 axes: name one or two numbers"),
        (dict.fromkeys(("adc.bits", "adc.range", "weights.bits"), ()), "3 axes"),
        ({"adc.colour": ()}, "specs: this chip has no number 'adc.colour'; it has weights.bits"),
        ({"adc.gain_error": ()}, "adc.gain_error is 0; give its values"),
        ({"adc.bits": (1, 4)}, "adc.bits = 1: .*bits"),
        ({"adc.bits": (3.5, 4)}, "adc.bits takes whole numbers, got 3.5"),
        ({"adc.bits": (4,)}, "adc.bits has one value"),
        ({"adc.range": tuple(range(1, 500))}, "499 combinations are more than 400"),
    ],
)
def test_what_is_no_axis_is_refused(axes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        values_of(HardwareConfig.model_validate(COARSE["hardware"]), axes)


def test_values_are_chosen_about_the_chip():
    chosen = values_of(HardwareConfig.model_validate(COARSE["hardware"]), {"adc.bits": ()})
    assert chosen == {"adc.bits": (2, 3)}
    section = HardwareConfig.model_validate(TINY["hardware"])
    assert values_of(section, {"noise.sigma": ()})["noise.sigma"][2] == 0.05


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b", ()),
        ("a.b=3:6", (3, 4, 5, 6)),
        ("a.b=1,2.5", (1, 2.5)),
        ("a.b=0.01:1:3", pytest.approx((0.01, 0.1, 1.0))),
        ("a.b=1:0:3", None),
        ("a.b=0:1:3", None),
        ("a.b=0.5:1", None),
        ("a.b=x", None),
        ("a.b=1:2:1", None),
    ],
)
def test_an_axis_of_the_command_line(text, values):
    if values is None:
        with pytest.raises(ConfigError, match="write it as NAME=LOW:HIGH"):
            _axis(text)
    else:
        assert _axis(text) == ("a.b", values)


def test_a_surface_has_the_accuracies_of_separate_runs(check, tmp_path):
    found = specs(check, axes={"weights.bits": [3, 8], "adc.bits": [2, 3, 6]})
    assert found.shape == (2, 3)
    pieces = {name: dict(piece) for name, piece in COARSE["hardware"]["pieces"].items()}
    pieces["weights"]["bits"], pieces["adc"]["bits"] = 8, 6
    setting = check.config.model_copy(update={"hardware": HardwareConfig(chips=2, pieces=pieces)})
    lost = np.asarray(check.answer.reference)[:, None] - run(setting)["accuracy"]
    np.testing.assert_allclose(found.losses[-1], lost)
    assert [first for first, _ in found.needs()] == [3, 8]
    assert len(found.to_pandas()) == 6
    store.save(found.result(), tmp_path / "specs.h5")
    page = pcsim.report(tmp_path / "specs.h5").read_text(encoding="utf-8")
    assert "<dt>Specifications</dt>" in page
    assert "Where it trains" in page
    found.plot()
    row = Specs(check, 2, {"adc.bits": (3, 4)}, tuple(limits(0.3, 0.1)), np.zeros((2, 3, 2)))
    assert row.sentence().endswith("needs: adc.bits ≥ 3.5 (3.45 to 3.55)")
    row.plot()


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("specs --hardware ecram_li", "name one or two numbers"),
        ("specs --hardware ecram_li --axis device.dw_min=1:0:2", "--axis device.dw_min=1:0:2"),
        ("specs --hardware ideal --axis adc.bits", "has no numbers that could be worse"),
        ("remedies --hardware ideal", "needs none"),
        ("remedies --hardware ecram_li --only prayer", "no place for 'prayer'"),
    ],
)
def test_commands_refuse_before_they_run(command, sentence, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["pcsim", *command.split()])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_check_tells_more_where_it_is_asked(tmp_path, monkeypatch, capsys):
    """`check --remedies` on a chip without a verdict tells the check alone, exit code 4."""
    monkeypatch.chdir(tmp_path)
    sections = {name: dict(fields) for name, fields in TINY.items() if name != "hardware"}
    sections["data"]["limit"], sections["learning"]["epochs"] = 40, 1
    text = "\n".join(
        f"[{name}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in fields.items())
        for name, fields in sections.items()
    )
    noise = '[hardware.pieces.noise]\nkind = "read_noise"\nwhere = "product"\nsigma = 0.1\n'
    Path("tiny.toml").write_text(f"{text}\n[hardware]\nchips = 2\n{noise}")
    command = "pcsim check tiny.toml --no-search --no-twins --remedies --margins --quiet"
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().out
    assert end.value.code == 4
    assert said.count("\n") == 1, "no margins or remedies where there is no verdict"
    assert said.startswith("no verdict")


def test_the_criterion_of_these_tests_is_the_default():
    assert (CRITERION.tolerance, CRITERION.yield_) == (TOLERANCE, 0.9)
