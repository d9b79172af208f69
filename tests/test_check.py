"""`pcsim check`: the physical case by default, rows, rates, every answer and every exit code."""

import json
import sys
from importlib import import_module

import numpy as np
import pytest

from pcsim import check as check_function
from pcsim import cli, config, store
from pcsim.check import (
    CHIP,
    DIGITS,
    IDEAL,
    PRESENTS,
    REGIMES,
    ROWS,
    SHUFFLED,
    Check,
    physical,
    shortest,
    tuning,
)
from pcsim.check.criterion import Criterion
from pcsim.check.physical import idealisations, stream
from pcsim.cli import exit_codes
from pcsim.errors import ConfigError
from pcsim.store import Result, Variable
from pcsim.verdict import Verdict

LABELS = np.arange(400) % 10
SETTING = config.parse(
    DIGITS | {"hardware": {"pieces": {"noise": {"kind": "white_noise", "sigma": 0.01}}}}
)
BP = "BP, ideal"


def chips_of(accuracy, outcome="converged", held_out=None):
    """Return the result of chips with these accuracies (seed, chip) and outcomes."""
    accuracy = np.atleast_2d(np.asarray(accuracy, dtype=float))
    accuracy = np.repeat(accuracy, 3, axis=0) if len(accuracy) == 1 else accuracy
    names = np.broadcast_to(np.asarray(outcome), accuracy.shape)
    columns = {name: np.full(accuracy.shape, np.nan) for name in Verdict.__dataclass_fields__}
    columns |= {"accuracy": accuracy, "outcome": names, "floor": np.ones(accuracy.shape)}
    dims = ("seed", "chip")
    variables = {f"verdict.{n}": Variable(dims, v) for n, v in columns.items()}
    variables["accuracy"] = Variable(dims, accuracy)
    if held_out is not None:
        variables["validation_accuracy"] = Variable(dims, np.full(accuracy.shape, held_out))
    shape = (*accuracy.shape, 3, 2)
    variables["energy"] = Variable((*dims, "time", "node"), np.ones(shape))
    coords = {"time": np.arange(3.0), "seed": np.arange(3), "chip": np.arange(accuracy.shape[1])}
    return Result(variables, coords)


def checked(accuracy, ideal=0.9, outcome="converged", labels=LABELS, **rows):
    runs = {CHIP: chips_of(accuracy, outcome), IDEAL: chips_of([ideal])}
    return Check(physical(SETTING), runs | rows, {}, labels)


@pytest.mark.parametrize(
    ("accuracy", "ideal", "outcome", "start"),
    [
        (0.9, 0.9, "trains", "automatic iPC trains on it"),
        (0.8, 0.9, "trains with loss", "automatic iPC trains on it with a loss of 10.0 points"),
        (0.1, 0.9, "fails", "automatic iPC fails on it"),
        (0.1, 0.1, "no verdict", "no verdict on it"),
    ],
)
def test_every_answer_has_its_sentence(accuracy, ideal, outcome, start):
    found = checked([accuracy] * 32, ideal=ideal)
    assert found.outcome == outcome
    assert found.sentence("it").startswith(start)
    stored = found.result().attrs
    assert (stored["outcome"], stored["passed"]) == (outcome, int(outcome == "trains"))
    assert json.loads(str(stored["answer"])) == json.loads(json.dumps(found.numbers()))
    assert found.numbers()["criterion"]["tolerance"] == 0.05


def test_the_sentence_counts():
    assert checked([0.9] * 31 + [0.2]).sentence("x") == (
        "marginal: whether automatic iPC trains on x is not decided: 31 of 32 chips, 86–100 % are "
        "within 5 points of the best ideal rule's 90.0 % (median loss 0.0 ± 0.0 points); about 66 "
        "chips would decide [no whole chip: what is not listed is ideal; ideal biases; one chip: "
        "nothing differs from chip to chip]"
    )
    assert "a chip with noise" in checked([0.9] * 4).sentence(), "its pieces, if it has no name"
    assert "not learnt: 32 stall" in checked([0.1] * 32, outcome="stalled").sentence()


def test_the_reference_is_the_best_ideal_rule_on_held_out_samples():
    """Not the best on test samples, and no row on hardware or with shuffled labels."""
    rows = {
        IDEAL: chips_of([0.9], held_out=0.8),
        BP: chips_of([0.85], held_out=0.95),
        "BP on the array, this chip": chips_of([0.99], held_out=0.99),
        SHUFFLED: chips_of([0.1], held_out=0.99),
    }
    found = checked([0.86] * 32, **rows)
    assert found.reference == BP
    assert found.numbers()["reference"] == {"row": BP, "accuracy": pytest.approx(0.85)}
    assert found.answer.floor == pytest.approx(0.15, abs=0.003)
    assert checked([0.86] * 32, **rows | {SHUFFLED: chips_of([0.4])}).answer.floor == 0.4


# -- the physical case -----------------------------------------------------------------------------


def test_the_physical_case_is_the_default():
    filled = physical(SETTING)
    assert (filled.learning.batch, filled.schedule.init, filled.learning.epochs) == (1, "carry", 1)
    assert filled.stream.t_pres == pytest.approx(20 * filled.circuit.tau_x)
    assert (len(filled.run.seeds), filled.hardware.chips) == (3, 32)
    assert filled.data.validation == 1000 // 6
    assert idealisations(filled) == ()
    assert stream(filled) == "one at a time, nothing reset; 20 τ_x per sample, every sample once"
    assert physical(filled) == filled


@pytest.mark.parametrize(
    ("section", "fields", "words"),
    [
        ("learning", {"batch": 8}, "8 samples side by side"),
        ("learning", {"batch": 0}, "all samples side by side"),
        ("schedule", {"init": "ff"}, "states reset to a forward pass"),
        ("schedule", {"init": "zero"}, "states reset to zero"),
        ("stream", {"t_settle": 0.4}, "label is released"),
    ],
)
def test_an_idealisation_must_be_asked_for_and_is_said(section, fields, words):
    setting = physical(config.changed(SETTING, {section: fields}))
    for name, value in fields.items():
        assert getattr(getattr(setting, section), name) == value
    assert words in idealisations(setting)[0]
    runs = {CHIP: chips_of([0.9] * 32), IDEAL: chips_of([0.9])}
    found = Check(setting, runs, {}, LABELS)
    assert words in found.sentence()
    assert "IDEALISED" in str(found.table().title)
    assert words in found.numbers()["idealisations"][0]


def test_what_is_given_is_kept():
    given = {"data": {"validation": 40}, "hardware": {"chips": 5}, "schedule": {"T": 30}}
    setting = physical(config.changed(SETTING, given | {"run": {"seeds": [3, 4, 5, 6]}}))
    assert (setting.data.validation, setting.hardware.chips) == (40, 5)
    assert (setting.schedule.T, setting.stream.t_pres) == (30, None)
    assert setting.run.seeds == (3, 4, 5, 6)
    with pytest.raises(ConfigError, match=r"check: run\.seeds: 2 tell too little"):
        physical(config.changed(SETTING, {"run": {"seeds": [0, 1]}}))


def test_regimes_are_those_of_the_streaming_study():
    for name, fields in REGIMES.items():
        setting = physical(config.changed(SETTING, fields(SETTING)))
        needs_signal = name in ("reset", "free-label")
        assert bool(idealisations(setting)) is needs_signal, name
    ahead = config.changed(SETTING, REGIMES["look-ahead"](SETTING))
    assert ahead.circuit.look_soma == SETTING.circuit.tau_x
    default = config.parse(DIGITS)  # 3 tau_x are no whole number of its steps of 0.4 tau_x
    freed = physical(config.changed(default, REGIMES["free-label"](default)))
    assert freed.stream.t_settle == pytest.approx(3.2 * default.circuit.tau_x)


@pytest.mark.parametrize(("needed", "tried"), [(10.0, 2), (1000.0, len(PRESENTS))])
def test_the_shortest_presentation_that_trains(needed, tried):
    spans = []

    def run(setting):
        spans.append(setting.stream.t_pres / setting.circuit.tau_x)
        return checked([0.9 if spans[-1] >= needed else 0.5] * 32)

    found = shortest(SETTING, run)
    assert spans == pytest.approx(list(PRESENTS[:tried]))
    assert found.passed is (needed <= PRESENTS[-1])


# -- rates -----------------------------------------------------------------------------------------


def curve(best, width=1.0):
    """Return a run of all rates with a peak of held-out accuracy at one of them."""
    seen = []

    def run(name, setting):
        rates = np.asarray(setting.grid.alpha) * tuning.writes(setting)
        seen.append((name, tuple(rates)))
        held_out = 0.9 - 0.1 * np.abs(np.log2(rates / best)) / width
        values = np.repeat(held_out[:, None], 3, axis=1)
        dims = ("alpha", "seed")
        return Result(
            {
                "accuracy": Variable(dims, 1 - values),  # test samples say the opposite
                "validation_accuracy": Variable(dims, values),
            }
        )

    return run, seen


@pytest.mark.parametrize(
    ("best", "found", "searches", "at_end"),
    [
        (0.025, 0.025, 1, False),
        (0.2, 0.2, 2, False),
        (0.0016, 0.0015625, 3, False),
        (100.0, 1.6, 3, True),
    ],
)
def test_rates_are_chosen_on_held_out_samples(best, found, searches, at_end):
    run, seen = curve(best)
    rate = tuning.search("x", physical(SETTING), run)
    assert rate.value == pytest.approx(found)
    assert (len(seen), rate.at_end) == (searches, at_end)
    assert ("!" in rate.short) is at_end


def test_rates_of_a_circuit_with_one_tau_w_are_tried_one_by_one():
    run, seen = curve(0.2)
    setting = config.changed(SETTING, {"circuit": {"kind": "dendritic"}})
    assert tuning.search("x", physical(setting), run).value == pytest.approx(0.2)
    assert [len(rates) for _, rates in seen] == [1] * 7
    assert len({name for name, _ in seen}) == 7, "each keeps its own result"


def test_a_rate_is_per_sample():
    """The automatic rule writes in every step of a presentation, the others once."""
    setting = physical(SETTING)
    assert tuning.writes(setting) == 50
    at = tuning.with_rate(setting, 0.05)
    assert at.learning.alpha == pytest.approx(0.001)
    assert tuning.rate_of(at) == pytest.approx(0.05)
    slow = config.changed(setting, {"circuit": {"tau_w": 40.0}})
    assert tuning.rate_of(slow) == pytest.approx(20 * slow.circuit.tau_x / 40)
    assert tuning.with_rate(slow, 0.05).circuit.tau_w is None
    assert tuning.rate_of(tuning.with_rate(slow, 0.05)) == pytest.approx(0.05)


def test_what_diverged_has_nothing_right():
    values = np.array([[0.5, 0.5, 0.5], [0.9, np.nan, np.nan]])
    result = Result({"accuracy": Variable(("alpha", "seed"), values)})
    np.testing.assert_allclose(tuning.scores(result, 2), [0.5, 0.3])


# -- whole checks ----------------------------------------------------------------------------------

TINY = {
    "network": {"sizes": [64, 8, 10]},
    "schedule": {"T": 10, "gamma": 0.5},
    "learning": {"epochs": 2},
    "data": {"name": "digits", "limit": 60, "limit_test": 100},
    "run": {"backend": "continuous"},
    "hardware": {"chips": 2, "pieces": {"noise": {"kind": "white_noise", "sigma": 0.01}}},
}


def test_a_whole_check_and_its_rows():
    """The rows are what they are called: rule, hardware, labels, rate."""
    found = check_function(config.parse(TINY))
    assert list(found.runs) == list(ROWS)
    assert found.rates is not None
    for name, result in found.runs.items():
        stored = config.from_json(str(result.attrs["config"]))
        rule = "bp" if "BP" in name else "pc" if "PC with" in name else "ipc"
        assert stored.schedule.rule == rule
        assert stored.run.backend == ("continuous" if rule == "ipc" else "discrete")
        assert stored.hardware.ideal is ("ideal" in name)
        assert stored.data.shuffled is ("shuffled" in name)
        assert stored.learning.batch == 1
        assert stored.schedule.init == ("carry" if rule == "ipc" else "ff")
        assert tuning.rate_of(stored) == pytest.approx(found.rates[name].value)
    assert found.rates[SHUFFLED] == found.rates[IDEAL]
    assert len(found.labels) == 100
    assert "noise" in str(found.left_out["BP on the array, this chip"])
    assert found.left_out["PC with phases, this chip"] == ()
    assert found.accuracy(SHUFFLED).max() < found.accuracy(found.reference).min()
    twin = found.result()
    assert twin["twin.BP_on_the_array.this_chip"].shape == (3, 2)
    assert twin["twin.BP.ideal"].shape == (3,)
    assert found.cost is not None
    assert found.cost.samples == 2 * int(twin.attrs["train_samples"])
    assert found.cost.estimates[1].counts.writes == 2 * found.cost.samples * 5 * (64 * 8 + 8 * 10)
    assert json.loads(str(twin.attrs["cost"]))[0]["title"] == "Cost: an estimate"
    assert set(found.numbers()["cost_estimate"]) >= {"automatic iPC, clocked", "BP, digital"}


def test_shuffled_labels_never_train():
    """Chips that learn nothing beside a reference that learns nothing: no verdict, ever."""
    longer = TINY | {"data": {"name": "digits", "limit": 60, "shuffled": True}}
    for pieces in ({}, TINY["hardware"]["pieces"]):
        setting = config.parse(longer | {"hardware": {"pieces": pieces}})
        setting = config.changed(setting, {"hardware": {"chips": 2}}) if pieces else setting
        assert check_function(setting, twins=False, search=False).outcome == "no verdict"


def test_shuffled_labels_are_the_same_labels_dealt_out_anew():
    from pcsim.runner.task import Task

    whole = config.changed(SETTING, {"data": {"limit": 0}})
    plain, dealt = (
        Task.load(config.changed(whole, {"data": {"shuffled": on}}), whole.network.build())
        for on in (False, True)
    )
    assert not (plain.train.y == dealt.train.y).all()
    assert (plain.train.y.bincount() == dealt.train.y.bincount()).all()
    assert (plain.train.y == dealt.train.y).float().mean() < 0.2
    assert (plain.test.y == dealt.test.y).all()
    assert (plain.train.x == dealt.train.x).all()


def test_a_given_rate_is_kept():
    given = TINY | {"learning": {"alpha": 0.003, "epochs": 1}}
    found = check_function(config.parse(given), twins=False)
    assert found.rates is not None
    assert found.rates[CHIP] == tuning.Rate(pytest.approx(0.03), given=True)
    assert "0.03 given" in found.rates[CHIP].short


def test_ideal_hardware_is_run_once():
    names = []
    from contextlib import nullcontext

    def watch(name):
        names.append(name)
        return nullcontext()

    plain = {name: part for name, part in TINY.items() if name != "hardware"}
    found = check_function(config.parse(plain), twins=False, search=False, watch=watch)
    assert names == [CHIP, SHUFFLED]
    assert list(found.runs) == [CHIP, IDEAL, SHUFFLED]
    assert found.answer.identical


def test_an_automatic_configuration_has_no_bp():
    automatic = TINY | {
        "schedule": {"gamma": 0.2},
        "learning": {"alpha": 0.05, "batch": 0, "reduction": "mean"},
        "run": {"backend": "continuous", "automatic": True},
        "convergence": {"window": 8, "rtol": 0.2, "max_steps": 80},
        "data": {"name": "digits", "limit": 20, "limit_test": 20},
    }
    with pytest.raises(ConfigError, match=r"'PC with .* cannot run .* --no-twins"):
        check_function(config.parse(automatic))
    found = check_function(config.parse(automatic), twins=False)
    assert len(found.runs) == 3
    assert "all samples side by side" in found.sentence()


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        (
            {"data": {"mode": "generative"}, "network": {"sizes": [10, 8, 64]}},
            "data.mode must be 'supervised'",
        ),
        ({"grid": {"alpha": [0.1, 0.2]}}, r"grid\.alpha: a verdict is about one chip"),
        ({"run": {"backend": "discrete"}}, r"run\.backend: chips run in continuous time"),
        ({"schedule": {"rule": "pc"}, "run": {}}, r"schedule\.rule 'pc': the question is whether"),
    ],
)
def test_what_has_no_answer_is_refused(sections, words):
    setting = {"network": {"sizes": [64, 8, 10]}, "run": {"backend": "continuous"}} | sections
    with pytest.raises(ConfigError, match=f"check: {words}"):
        check_function(config.parse(setting))


def test_the_chips_run_on_the_backend_that_was_asked_for():
    pytest.importorskip("brian2")
    small = {"data": {"name": "digits", "limit": 10, "limit_test": 20}}
    fields = {"learning": {"alpha": 0.02, "epochs": 1}, "run": {"backend": "brian"}}
    found = check_function(config.parse(TINY | small | fields), twins=False)
    stored = config.from_json(str(found.runs[CHIP].attrs["config"]))
    assert stored.run.backend == "brian"


# -- the command line ------------------------------------------------------------------------------


@pytest.fixture
def call(monkeypatch, tmp_path, capsys):
    """Return a call of `pcsim check` with a check that is made up; it gives code and output."""
    monkeypatch.chdir(tmp_path)

    def called(found, *arguments):
        seen = {}

        def run(setting, **options):
            seen.update(options, setting=setting)
            return found

        monkeypatch.setattr(import_module("pcsim.check"), "check", run)
        monkeypatch.setattr(sys, "argv", ["pcsim", "check", "-o", "x.h5", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        return int(ended.value.code or 0), capsys.readouterr(), seen

    return called


@pytest.mark.parametrize(
    ("ideal", "accuracy", "code"),
    [
        (0.9, [0.9] * 32, 0),
        (0.9, [0.8] * 32, 3),
        (0.9, [0.1] * 32, 3),
        (0.9, [0.9] * 30 + [0.8] * 2, 4),
        (0.1, [0.1] * 32, 4),
    ],
)
def test_exit_codes(call, tmp_path, ideal, accuracy, code):
    found = checked(accuracy, ideal=ideal)
    ended, printed, _ = call(found)
    assert ended == code
    assert found.sentence().split(":")[0] in " ".join(printed.out.split())
    assert store.load(tmp_path / "x.h5").attrs["outcome"] == found.outcome
    assert (exit_codes.DID_NOT_TRAIN, exit_codes.OF_NO_USE) == (3, 4)


def test_json_and_quiet_print_the_answer_only(call):
    found = checked([0.9] * 32)
    _, printed, _ = call(found, "--json")
    assert json.loads(printed.out)["outcome"] == "trains"
    assert json.loads(printed.out)["stored"] == "x.h5"
    _, printed, _ = call(found, "--quiet", "--overwrite")
    assert printed.out == found.sentence() + "\n"


def test_the_options_reach_the_check(call):
    options = ["--tolerance", "3", "--yield", "80", "--seeds", "5", "--chips", "7"]
    _, _, seen = call(checked([0.9] * 32), *options, "--present", "30", "--regime", "look-ahead")
    assert seen["criterion"] == Criterion(tolerance=0.03, yield_=0.8)
    setting = seen["setting"]
    assert (setting.run.seeds, setting.hardware.chips) == (tuple(range(5)), 7)
    assert setting.stream.t_pres == pytest.approx(30 * setting.circuit.tau_x)
    assert setting.circuit.look_soma == setting.circuit.tau_x


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--tolerance", "0", "tolerance"),
        ("--yield", "100", "yield"),
        ("--present", "long", "must be a number of tau_x, or auto; got 'long'"),
        ("--regime", "magic", "there is no 'magic'; use carry"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(call, option, value, words):
    code, printed, seen = call(checked([0.9] * 32), option, value)
    assert (code, seen) == (2, {})
    assert words in printed.err
    assert len(printed.err.splitlines()) == 1
