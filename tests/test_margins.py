"""Margins: the limit and its interval, ladders, what changes, and that it agrees with a sweep."""

import json
import sys
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

import hw_models
import pcsim
from pcsim import config, store
from pcsim.check import CHIP, IDEAL, Check, Criterion
from pcsim.check.rows import Rows
from pcsim.errors import ConfigError
from pcsim.fields.chip_number import ChipNumber
from pcsim.hardware import HardwareConfig
from pcsim.run import run
from pcsim.variants import margins
from pcsim.variants.every_number import _ladders, numbers_of
from pcsim.variants.ladder import Ladder
from pcsim.variants.limit import (
    Estimate,
    change,
    crossing,
    isotonic,
    limit_loss,
    losses,
    moved_limit,
    paired,
    rescue,
)
from pcsim.variants.margins_found import Margins, Part
from pcsim.variants.trials import Trials

TOLERANCE = 0.05
CRITERION = Criterion()
TINY = {
    "network": {"sizes": [64, 8, 10]},
    "schedule": {"gamma": 0.4, "init": "carry"},
    "stream": {"t_pres": 2.0},
    "learning": {"batch": 20, "alpha": 0.005, "epochs": 8},
    "data": {"name": "digits", "limit": 250, "limit_test": 200, "validation": 10},
    "run": {"backend": "continuous", "seeds": [0, 1, 2]},
    "hardware": {
        "chips": 2,
        "pieces": {
            "noise": {"kind": "read_noise", "where": "product", "sigma": 0.05},
            "adc": {"kind": "converter", "where": "product", "bits": 7, "range": 8.0},
        },
    },
}


# -- the limit ---------------------------------------------------------------------------------


def test_the_limit_is_the_quantile_of_a_normal_population():
    """Its interval holds the true quantile as often as it says, and its middle is near it."""
    rng = np.random.default_rng(1)
    truth = 0.03 + 0.01 * norm.ppf(0.9)
    inside, middle = [], []
    for _ in range(600):
        lost = np.repeat(rng.normal(0.03, 0.01, (1, 8)), 3, axis=0)  # no error of the seeds
        one = limit_loss(lost, CRITERION)
        inside.append(one.low <= truth <= one.high)
        middle.append(one.value)
    assert 0.87 < np.mean(inside) < 0.93
    assert np.mean(middle) == pytest.approx(truth, abs=1e-3)


def test_few_seeds_widen_the_limit_by_their_error():
    seeds = np.array([[0.01], [0.02], [0.03]])
    one = limit_loss(seeds, CRITERION)  # identical chips: one is all
    error = 2.919986 * 0.01 / sqrt(3)
    assert (one.value, one.high) == (pytest.approx(0.02), pytest.approx(0.02 + error))
    assert limit_loss(np.array([[0.02]]), CRITERION).high == inf
    many = limit_loss(np.repeat(seeds, 4, axis=1), CRITERION)
    assert many.high - many.value == pytest.approx(error), "chips that agree add nothing"


def test_a_change_of_nothing_has_the_interval_of_the_whole_population():
    rng = np.random.default_rng(2)
    whole = rng.normal(0.03, 0.01, (3, 32))
    some, start = whole[:, :8], limit_loss(whole, CRITERION)
    same = moved_limit(some, some, whole, CRITERION)
    seeds = np.median(some, axis=1).std(ddof=1) / np.median(whole, axis=1).std(ddof=1)
    assert same.value == pytest.approx(start.value)
    assert same.high - same.low < (start.high - start.low) * max(1, seeds) + 1e-12
    moved = moved_limit(some + 0.02, some, whole, CRITERION)
    assert moved.value == pytest.approx(start.value + 0.02)
    assert moved.high - moved.low == pytest.approx(same.high - same.low), "all move alike"


def test_the_limit_of_a_variant_has_an_honest_interval():
    """Chips that each respond in their own way: the interval holds the truth of all chips."""
    rng = np.random.default_rng(3)
    truth = 0.05 + norm.ppf(0.9) * sqrt(0.01**2 + 0.01**2)
    inside, middle = [], []
    for _ in range(400):
        before = rng.normal(0.03, 0.01, 32)
        after = before[:8] + rng.normal(0.02, 0.01, 8)
        columns = (np.repeat(one[None], 3, axis=0) for one in (after, before[:8], before))
        one = moved_limit(*columns, CRITERION)
        inside.append(one.low <= truth <= one.high)
        middle.append(one.value)
    assert np.mean(inside) > 0.85
    assert np.mean(middle) == pytest.approx(truth, abs=2e-3)


def test_what_diverged_has_nothing_right():
    assert losses(np.array([[np.nan, 0.5]]), np.array([0.9])).tolist() == [[0.9, 0.4]]


def test_isotonic_regression_is_that_of_pool_adjacent_violators():
    assert isotonic([1, 3, 2, 4]) == [1, 2.5, 2.5, 4]
    assert isotonic([3, 2, 1]) == [2, 2, 2]
    assert isotonic([0, 1, 2]) == [0, 1, 2]


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([0.0, 0.02, 0.08], 2.0),  # halfway between 1 and 3
        ([0.0, 0.05, 0.05], inf),  # at the level is within it
        ([0.05, 0.05, 0.0500001], 1.0),
        ([0.051, 0.06, 0.2], 0.0),
        ([0.05, 0.07, 0.2], 0.0),
        ([0.0, 0.0, 0.0], inf),
    ],
)
def test_a_level_is_passed_where_the_line_between_two_values_passes_it(values, place):
    assert crossing([0, 1, 3], values, TOLERANCE) == pytest.approx(place, abs=1e-4)


def test_a_margin_ends_where_the_ends_of_the_limit_pass():
    limits = [Estimate(v, v - 0.01, v + 0.01) for v in (0.0, 0.02, 0.1)]
    found = change([0, 1, 2], limits, TOLERANCE)
    assert found.value == pytest.approx(1 + 3 / 8)
    assert (found.low, found.high) == (pytest.approx(1.25), pytest.approx(1.5))
    back = rescue([0, 1, 2], limits[::-1], TOLERANCE)
    assert back.value == pytest.approx(2 - found.value)
    assert back.low < back.value < back.high
    both = [Estimate(v, v - 0.01, v + 0.01) for v in (0.1, 0.02, 0.3)]
    assert rescue([0, 1, 4], both, TOLERANCE).value == pytest.approx(5 / 8), "best in the middle"


def test_paired_differences_have_students_interval():
    one = paired(np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]]), 0.9)
    assert one.value == pytest.approx(0.2)
    assert one.high == pytest.approx(0.2 + 2.919986 * 0.1 / sqrt(3))
    assert one.sure
    assert not paired(np.array([[-0.1], [0.1]]), 0.9).sure


# -- the ladder --------------------------------------------------------------------------------


def ladder(path="noise.sigma", value=0.1, up=True, trains=True, allowed=lambda _: True):
    made = Ladder(ChipNumber(path, value, "", ""), up, TOLERANCE, trains, allowed)
    made.begin(Estimate(0.0 if trains else 0.2, -0.01 if trains else 0.19, 0.01), np.zeros((3, 2)))
    return made


def climbed(one, loss):
    """Try all rungs of a chip whose limit is a known function of the value."""
    for rung in range(3):
        for place in one.more() if rung else one.first():
            value = loss(one.at(place))
            one.add(place, Estimate(value, value - 0.005, value + 0.005), np.full((3, 2), value))
    return one


def test_a_margin_is_found_between_rungs():
    one = climbed(ladder(), lambda sigma: 0.1 * sigma)  # 0.05 at 0.5: five times
    assert one.size(one.found.value) == pytest.approx(5, rel=0.05)
    assert one.size(one.found.low) < 5 < one.size(one.found.high)
    assert len(one.places) <= 1 + 2 + 2 + 2
    shrunk = climbed(ladder(up=False), lambda sigma: 0.005 / sigma)  # 0.05 at 0.1
    assert shrunk.size(shrunk.found.low) < 1.3


def test_what_never_matters_has_no_margin_and_costs_two_rungs():
    one = climbed(ladder(), lambda sigma: 0.0)
    assert one.found.value == inf
    assert one.places == [0, 1, 4]
    assert one.farthest == 16


def test_bits_are_lost_one_by_one():
    one = climbed(ladder("adc.bits", 9, up=False), lambda bits: 0.3 if bits <= 5 else 0.0)
    assert [one.at(place) for place in one.places][:2] == [9, 8]
    assert all(isinstance(one.at(place), int) for place in one.places)
    assert 5 in [one.at(place) for place in one.places]
    assert 2 < one.size(one.found.value) < 5
    assert ladder("adc.bits", 2, up=False).first() == []


def test_a_chip_that_fails_is_rescued_in_the_other_direction():
    one = climbed(ladder(up=False, trains=False), lambda sigma: 2 * sigma)  # 0.05 at 0.025
    assert one.size(one.found.value) == pytest.approx(4, rel=0.1)


def test_rungs_that_the_description_refuses_are_left_out():
    assert ladder(allowed=lambda value: value < 1).first() == [1]
    assert ladder(allowed=lambda value: value < 0.15).first() == [0.5]
    assert ladder(allowed=lambda value: False).first() == []
    whole = ladder("pair.every", 3, up=False)
    assert [whole.at(place) for place in whole.first()] == [1]


# -- the chip's numbers ------------------------------------------------------------------------


def test_every_number_of_every_preset_can_be_set_by_its_path():
    for name in hw_models.known_presets():
        section = HardwareConfig(preset=name)
        found = section.quantities()
        fields = json.dumps(hw_models.fields_of(section.described()))
        assert bool(found) == any(c.isdigit() for c in fields), name
        again = section.described({one.path: one.value for one in found})
        assert hw_models.fields_of(again) == hw_models.fields_of(section.described())
    section = HardwareConfig(preset="pcm")
    path = next(p.path for p in section.quantities() if p.path.endswith("device.dw_min"))
    other = {one.path: one.value for one in HardwareConfig(preset="pcm").quantities()}
    changed = hw_models.quantities(section.described({path: 0.123}))
    assert {one.path: one.value for one in changed} == other | {path: 0.123}


@pytest.mark.parametrize(
    ("hardware", "only", "sentence"),
    [
        ({}, (), "'ideal' has no numbers"),
        (TINY["hardware"], ("adc.bit",), r"no number 'adc\.bit'; it has noise\.sigma, adc\.bits"),
    ],
)
def test_a_chip_without_such_numbers_is_refused(hardware, only, sentence):
    with pytest.raises(ConfigError, match=sentence):
        numbers_of(HardwareConfig.model_validate(hardware), only)


# -- one population ----------------------------------------------------------------------------


def test_trials_are_the_runs_of_their_chips():
    """A trial gives the numbers of a run of its own, whatever runs beside it."""
    trials = [{}, {"adc.bits": 3}, {"noise.sigma": 0.4, "adc.bits": 5}]
    both = run(config.parse(TINY | {"grid": {"trials": trials}}))["accuracy"]
    assert both.shape == (3, 3, 2)
    for found, changes in zip(both, trials, strict=True):
        pieces = {name: dict(piece) for name, piece in TINY["hardware"]["pieces"].items()}
        for path, value in changes.items():
            piece, field = path.split(".")
            pieces[piece][field] = value
        alone = run(config.parse(TINY | {"hardware": {"chips": 2, "pieces": pieces}}))["accuracy"]
        np.testing.assert_array_equal(found, alone)
    assert not np.array_equal(both[0], both[1])
    with pytest.raises(ConfigError, match=r"noise\.sigma is in grid\.hardware too"):
        config.parse(
            TINY | {"grid": {"hardware": {"noise.sigma": [0.1]}, "trials": [{"noise.sigma": 1.0}]}}
        )


# -- the whole -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    rows = tmp_path_factory.mktemp("margins") / "rows"
    criterion = Criterion(tolerance=0.2)
    made = pcsim.margins(
        config.parse(TINY), criterion=criterion, twins=False, search=False, rows=rows, rounds=1
    )
    return made, rows


def test_margins_of_a_tiny_chip(found, tmp_path):
    made, _ = found
    paths = [one.path for one in made.numbers]
    assert paths == ["noise.sigma", "adc.bits", "adc.range", "adc.gain_error", "adc.offset_error"]
    assert made.sensitivity("adc.gain_error") is None, "0 has no factor"
    assert made.of("adc.gain_error") is None
    assert [part.name for part in made.parts] == ["noise", "adc"]
    assert made.sentence() in repr(made)
    frame = made.to_pandas()
    assert set(frame["number"]) == {"adc.bits", "adc.range", "noise.sigma"}
    store.save(made.result(), tmp_path / "margins.h5")
    page = pcsim.report(tmp_path / "margins.h5").read_text(encoding="utf-8")
    assert "Sensitivity and margins" in page
    assert "Bottleneck: leave one out" in page
    assert "<dt>Margins</dt>" in page
    made.plot()


def test_rungs_are_those_of_a_sweep(found):
    """Every value that was tried has the accuracy of a run with this value alone."""
    made, _ = found
    trained = made.check.runs[CHIP]["accuracy"]
    reference = made.check.answer.reference
    for one in made.ladders:
        np.testing.assert_allclose(one.losses[0], losses(trained, reference))
        piece, field = one.number.path.split(".")
        pieces = {name: dict(fields) for name, fields in TINY["hardware"]["pieces"].items()}
        pieces[piece][field] = one.at(one.places[-1])
        setting = made.check.config.model_copy(
            update={"hardware": HardwareConfig(chips=2, pieces=pieces)}
        )
        alone = losses(run(setting)["accuracy"], reference)
        np.testing.assert_allclose(one.losses[-1], alone)


def test_sensitivity_is_the_slope_over_doublings_and_lost_bits(found):
    made, _ = found
    for path in ("noise.sigma", "adc.bits"):
        slopes = []
        for one in made.ladders:
            if one.number.path == path and one.place_of_one is not None:
                k = one.place_of_one
                start, moved = float(one.number.value), float(one.at(one.places[k]))
                way = start - moved if path == "adc.bits" else np.log2(moved / start)
                slopes.append((one.losses[k] - one.losses[0]) / way)
        assert slopes
        assert made.sensitivity(path).value == pytest.approx(float(np.mean(slopes)))
        mirrored = [replace(one, up=not one.up) for one in made.ladders if one.number.path == path]
        other = SimpleNamespace(ladders=mirrored, check=made.check)
        turned = type(made).sensitivity(other, path)
        assert turned.value == pytest.approx(-made.sensitivity(path).value)
    assert made.sensitivity("adc.bits").value > 0, "control: fewer bits cost accuracy here"


def test_a_part_made_ideal_is_a_run_without_it(found):
    made, _ = found
    base = np.nan_to_num(made.check.accuracy(CHIP))
    pieces = {"adc": TINY["hardware"]["pieces"]["adc"]}
    setting = made.check.config.model_copy(
        update={"hardware": HardwareConfig(chips=2, pieces=pieces)}
    )
    gain = run(setting)["accuracy"] - base
    part = next(part for part in made.parts if part.name == "noise")
    assert part.gain.value == pytest.approx(float(gain.mean()))


def test_finished_runs_are_taken_up_again(found, monkeypatch):
    made, rows = found

    def refuse(*_, **__):
        raise AssertionError("trained twice")

    monkeypatch.setattr(sys.modules["pcsim.check.rows"], "run", refuse)
    again = margins(
        config.parse(TINY),
        criterion=made.check.criterion,
        twins=False,
        search=False,
        rows=rows,
        rounds=1,
    )
    assert again.data() == made.data()


def test_a_check_that_was_made_is_the_working_point(found):
    made, rows = found
    with pytest.raises(ConfigError, match="twins: a check that was made has these already"):
        margins(made.check, twins=False)
    low = Check(made.check.config, made.check.runs, {}, made.check.labels, Criterion(tolerance=0.9))
    assert low.outcome == "no verdict"
    with pytest.raises(ConfigError, match="margins: no verdict"):
        margins(low, rows=rows)


# -- worse is never better -----------------------------------------------------------------------


def test_a_chip_made_worse_in_every_number_is_not_better():
    """The whole population loses accuracy, beyond what six seeds leave open; a small change does
    not (control)."""
    setting = config.parse(TINY | {"run": TINY["run"] | {"seeds": [0, 1, 2, 3, 4, 5]}})
    worse = {"adc.bits": 3, "adc.range": 64.0, "noise.sigma": 3.2}
    trials = [{}, {"noise.sigma": 0.0501}, worse]
    accuracy = run(
        config.with_changes(setting.model_dump(exclude_unset=True), {}, "worse").model_copy(
            update={"grid": config.Grid(trials=tuple(trials))}
        )
    )["accuracy"]
    reference = np.full(6, 0.6)
    limits = [limit_loss(losses(one, reference), CRITERION).value for one in accuracy]
    assert limits[2] >= limits[0]
    assert paired(accuracy[2] - accuracy[0], 0.99).high < 0
    assert not paired(accuracy[1] - accuracy[0], 0.99).sure


# -- the command line ------------------------------------------------------------------------------


def test_the_ladders_of_a_chip_that_trains_go_where_it_gets_worse(found):
    made, _ = found
    trials = Trials(made.check, 2, Rows(None))
    ways = {(one.number.path, one.up) for one in _ladders(made.check, trials, made.numbers)}
    both = {("adc.range", True), ("adc.range", False)}
    assert made.trains
    assert ways == {("adc.bits", False), ("noise.sigma", True)} | both
    strict = Check(
        made.check.config, made.check.runs, {}, made.check.labels, Criterion(tolerance=0.001)
    )
    ways = {(one.number.path, one.up) for one in _ladders(strict, trials, made.numbers)}
    assert ways == {("adc.bits", True), ("noise.sigma", False)} | both


def test_the_sentence_names_the_tightest_margin_and_the_bottleneck(found):
    made, _ = found
    ladders = [
        climbed(ladder(), lambda sigma: 0.1 * sigma),
        climbed(ladder("b.x", 1.0), lambda _: 0.0),
    ]
    parts = (
        Part("noise", "read_noise", Estimate(0.1, 0.05, 0.15), None, "it cannot"),
        Part("adc", "converter", Estimate(0.02, -0.01, 0.05), Estimate(0.0, -0.1, 0.1)),
    )
    numbers = tuple(one.number for one in ladders)
    one = Margins(made.check, 8, numbers, tuple(ladders), parts)
    sentence = one.sentence()
    assert "noise.sigma may grow ×5" in sentence
    assert "1 of 2 numbers change nothing" in sentence
    assert "bottleneck: noise (10.0 points, 5.0 to 15.0)" in sentence
    assert one.of("noise.sigma").value == pytest.approx(5, rel=0.05)
    assert one.of("b.x").value == inf
    unsure = Margins(made.check, 8, numbers, tuple(ladders), parts[1:])
    assert "no single piece is a bottleneck" in unsure.sentence()
    tables = one.tables()
    assert [row[0] for row in tables[0].rows] == ["noise.sigma", "b.x"]
    assert "it cannot" in tables[1].caption


def test_the_command_says_the_same(tmp_path, monkeypatch, capsys):
    from pcsim.cli import main

    monkeypatch.chdir(tmp_path)
    pieces = "\n".join(
        f"[hardware.pieces.{name}]\n"
        + "\n".join(f"{k} = {json.dumps(v)}" for k, v in piece.items())
        for name, piece in TINY["hardware"]["pieces"].items()
    )
    sections = "\n".join(
        f"[{name}]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in TINY[name].items())
        for name in TINY
        if name != "hardware"
    )
    Path("tiny.toml").write_text(f"{sections}\n[hardware]\nchips = 2\n{pieces}\n")
    command = "pcsim margins tiny.toml --only noise.sigma --no-bottleneck --no-twins --tries 2"
    monkeypatch.setattr("sys.argv", [*command.split(), "--tolerance", "20", "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    said = json.loads(capsys.readouterr().out)
    assert said["stored"] == "out/margins_ideal.h5"
    assert {one["number"] for one in said["margins"]["margins"]} == {"noise.sigma"}
    assert end.value.code == {"trains": 0, "marginal": 4, "no verdict": 4}.get(said["outcome"], 3)
    assert IDEAL in said["rows"]
    monkeypatch.setattr("sys.argv", ["pcsim", "margins", "--hardware", "ideal"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "has no numbers that could be worse" in capsys.readouterr().err
