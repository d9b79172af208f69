"""`pcsim check`: both sides of every threshold, every answer, every exit code."""

import sys

import numpy as np
import pytest
from scipy.stats import binom

from pcsim import check as check_function
from pcsim import cli, config, store
from pcsim.check import CHIP, DIGITS, ROWS, Check, guessing
from pcsim.cli import check as cli_check
from pcsim.cli import exit_codes
from pcsim.errors import ConfigError
from pcsim.store import Result, Variable
from pcsim.verdict import OUTCOMES, Verdict

LABELS = np.arange(400) % 10
SETTING = config.parse(DIGITS)


def chips_of(accuracy, outcome="converged"):
    """Return the result of chips with these accuracies and outcomes."""
    accuracy = np.asarray(accuracy, dtype=float)
    names = np.broadcast_to(np.asarray(outcome), accuracy.shape)
    columns = {name: np.full(accuracy.shape, np.nan) for name in Verdict.__dataclass_fields__}
    columns |= {"accuracy": accuracy, "outcome": names, "floor": np.ones(accuracy.shape)}
    variables = {f"verdict.{n}": Variable(("chip",), v) for n, v in columns.items()}
    variables["accuracy"] = Variable(("chip",), accuracy)
    variables["energy"] = Variable(("chip", "time", "node"), np.ones((len(accuracy), 3, 2)))
    return Result(variables, {"time": np.arange(3.0)})


def checked(accuracy, ideal=0.9, outcome="converged", labels=LABELS):
    ideal_chip = chips_of(np.atleast_1d(ideal))
    runs = {CHIP: chips_of(accuracy, outcome), "iPC, ideal chip": ideal_chip}
    return Check(SETTING, runs, {}, labels)


@pytest.mark.parametrize(("loss", "good"), [(0.0, True), (0.049, True), (0.051, False)])
def test_five_points_may_be_lost(loss, good):
    assert checked([0.9 - loss]).good.tolist() == [good]
    assert checked([0.9 - loss]).outcome == ("trains" if good else "does not train")


@pytest.mark.parametrize(("good", "answer"), [(18, "trains"), (17, "does not train"), (0, None)])
def test_nine_of_ten_chips_must_be_good(good, answer):
    found = checked([0.9] * good + [0.2] * (20 - good))
    assert found.outcome == (answer or "does not train")
    assert found.passed is (answer == "trains")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_chips_whose_energy_came_down_have_trained(outcome):
    """An accuracy alone is not enough."""
    trained = outcome in ("converged", "descending", "rebounded")
    assert checked([0.9] * 4, outcome=outcome).good.all() == trained
    assert checked([0.9] * 4, outcome=outcome).passed == trained
    assert not checked([0.2] * 4, outcome=outcome).passed


def test_a_chance_is_the_commonest_class_with_a_bound():
    """The smallest accuracy that at most one guess in a thousand exceeds, by the exact tail."""
    for labels in (LABELS, np.array([0] * 300 + [1] * 100), np.arange(40) % 2):
        count = len(labels)
        share = np.bincount(labels).max() / count
        right = round(guessing(labels) * count)
        weights = binom.pmf(np.arange(count + 1), count, share)
        assert weights[right + 1 :].sum() <= 1e-3 < weights[right:].sum()
    assert guessing(LABELS) == pytest.approx(0.15, abs=0.003)
    assert guessing(np.array([0] * 300 + [1] * 100)) > 0.8, "shuffled labels teach that much"


@pytest.mark.parametrize(
    ("ideal", "chips", "answer"),
    [
        (0.0, 0.101, "no verdict"),  # what was once called 'trains'
        (0.10, 0.10, "no verdict"),
        (0.15, 0.9, "no verdict"),
        (0.195, 0.195, "no verdict"),  # a guessing chip would be within five points of it
        (0.205, 0.205, "trains"),
        (0.205, 0.10, "does not train"),
        (np.nan, 0.9, "no verdict"),
        ([0.9, 0.9, np.nan], 0.9, "no verdict"),
    ],
)
def test_a_reference_that_learnt_nothing_gives_no_verdict(ideal, chips, answer):
    found = checked([chips] * 4, ideal=ideal)
    assert found.outcome == answer
    assert found.passed is (answer == "trains")
    sentence = found.sentence("a chip")
    start = "no verdict on a chip" if answer == "no verdict" else f"iPC {answer} on a chip"
    assert sentence.startswith(start)
    assert found.result().attrs["outcome"] == answer
    assert found.result().attrs["passed"] == int(answer == "trains")


def test_chance_depends_on_the_classes():
    """Three quarters of one class: 80 % is a guess, though far above one in ten."""
    labels = np.array([0] * 300 + [1] * 100)
    assert checked([0.8] * 4, ideal=0.8, labels=labels).outcome == "no verdict"
    assert checked([0.8] * 4, ideal=0.8).outcome == "trains"


def test_the_ideal_is_the_mean_over_seeds():
    assert checked([0.86], ideal=[0.9, 0.92]).passed
    assert not checked([0.85], ideal=[0.9, 0.92]).passed


def test_the_sentence_counts():
    found = checked([0.9] * 19 + [0.2])
    assert found.sentence("x") == (
        "iPC trains on x: 19 of 20 chips are within 5 points of the ideal chip's 90.0 % "
        "(median 90.0 %)"
    )
    assert "ideal" in found.sentence(), "the preset's name, if none is given"


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ideal", "accuracy", "code"),
    [(0.9, 0.9, 0), (0.9, 0.5, 3), (0.1, 0.1, 4), (0.0, 0.101, 4)],
)
def test_exit_codes(monkeypatch, tmp_path, capsys, ideal, accuracy, code):
    found = checked([accuracy] * 5, ideal=ideal)
    monkeypatch.setattr(cli_check, "run_check", lambda *a, **k: found)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pcsim", "check", "-o", "x.h5"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert (ended.value.code or 0) == code
    printed = " ".join(capsys.readouterr().out.split())
    assert found.sentence().split(":")[0] in printed
    assert store.load(tmp_path / "x.h5").attrs["outcome"] == found.outcome
    assert (exit_codes.DID_NOT_TRAIN, exit_codes.OF_NO_USE) == (3, 4)


TINY = {
    "network": {"sizes": [64, 8, 10]},
    "schedule": {"T": 4, "gamma": 0.2},
    "learning": {"alpha": 0.01, "batch": 10, "epochs": 4},
    "data": {"name": "digits", "limit": 200, "limit_test": 200},
    "run": {"backend": "continuous"},
    "hardware": {"chips": 2, "pieces": {"noise": {"kind": "white_noise", "sigma": 0.01}}},
}


def test_a_whole_check_and_its_rows():
    """The rows are what they are called: rule, backend, hardware; labels are the test's."""
    rows = []
    found = check_function(config.parse(TINY), announce=rows.append)
    assert rows == list(ROWS) == list(found.runs)
    assert found.outcome == "trains", found.sentence()
    for name, result in found.runs.items():
        stored = config.from_json(str(result.attrs["config"]))
        assert stored.schedule.rule == ("bp" if "BP" in name else "ipc")
        assert stored.run.backend == ("discrete" if "discrete" in name else "continuous")
        assert stored.hardware.ideal is ("ideal" in name)
    assert len(found.labels) == 200
    assert "noise" in str(found.left_out["discrete BP, same hardware"])
    assert found.left_out["discrete iPC, same hardware"] == ()


def test_an_untrained_reference_has_no_verdict():
    """Weights that move ten thousand times less: nothing is learnt, by chips and ideal alike."""
    slow = TINY | {"learning": TINY["learning"] | {"alpha": 1e-7}}
    found = check_function(config.parse(slow), twins=False)
    assert list(found.runs) == [CHIP, "iPC, ideal chip"]
    assert found.outcome == "no verdict"
    assert not found.passed


def test_an_automatic_configuration_has_no_bp():
    automatic = TINY | {
        "schedule": {"gamma": 0.2},
        "learning": {"alpha": 0.05, "batch": 0, "reduction": "mean"},
        "run": {"backend": "continuous", "automatic": True},
        "convergence": {"window": 8, "rtol": 0.2, "max_steps": 80},
        "data": {"name": "digits", "limit": 20, "limit_test": 20},
    }
    with pytest.raises(ConfigError, match=r"'discrete BP, .* cannot run .* --no-twins"):
        check_function(config.parse(automatic))
    assert len(check_function(config.parse(automatic), twins=False).runs) == 2


def test_only_classification_is_checked():
    with pytest.raises(ConfigError, match=r"check: data.mode must be 'supervised'"):
        check_function(
            config.parse(
                TINY
                | {
                    "data": {"name": "digits", "mode": "generative"},
                    "network": {"sizes": [10, 8, 64]},
                }
            )
        )


def test_the_chips_run_on_the_backend_that_was_asked_for():
    pytest.importorskip("brian2")
    small = {"data": {"name": "digits", "limit": 10, "limit_test": 20}}
    fields = {"learning": {"alpha": 0.02, "batch": 1, "epochs": 1}, "run": {"backend": "brian"}}
    found = check_function(config.parse(TINY | small | fields), twins=False)
    stored = config.from_json(str(found.runs[CHIP].attrs["config"]))
    assert stored.run.backend == "brian"
