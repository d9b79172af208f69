"""The study of stability: what counts as stable, other seeds and chips each time, resumable."""

import numpy as np
import pytest

from pcsim import store
from pcsim.errors import InterruptedRunError
from pcsim.experiments.verdict_stability import study
from pcsim.store import Result, Variable

TINY = study.Scale(60, 3, 2, repetitions=2)


@pytest.mark.parametrize(
    ("outcomes", "most", "count"),
    [
        (["trains"] * 8 + ["marginal"] * 2, "trains", 10),
        (["trains"] * 8 + ["marginal", "fails"], "trains", 9),
        (["fails"] * 7 + ["trains"] * 2 + ["marginal"], "fails", 8),
        (["marginal"] * 3, "marginal", 3),
    ],
)
def test_what_agrees(outcomes, most, count):
    assert study.agreeing(outcomes) == (most, count)


def test_every_repetition_is_another_training_of_other_chips():
    one, other = (study.setting("ecram_li", k, TINY) for k in (0, 1))
    assert not set(one.run.seeds) & set(other.run.seeds)
    assert one.hardware.seed != other.hardware.seed
    assert one.solver.noise_seed != other.solver.noise_seed
    assert study.setting(study.SHUFFLED, 0, TINY).data.shuffled
    assert study.setting(study.DEMO, 0, TINY).hardware.pieces.keys() == study.NOISY.keys()


def fake(seen, answers):
    def measured(name, repetition, scale, rows):
        seen.append((name, repetition))
        numbers = ("reference", "floor", "loss", "error", "good")
        variables = {key: Variable((), np.asarray(0.5)) for key in numbers}
        attrs = {"outcome": answers(name, repetition), "threads": 1 + repetition % 2}
        return Result(variables, {}, attrs)

    return measured


def test_the_study_resumes_and_says_what_is_not_stable(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(study.SCALES, "small", TINY)
    seen = []

    def answers(name, repetition):
        if name == "reram_sb" and len(seen) > 9:
            raise KeyboardInterrupt
        return "trains" if (name, repetition) == (study.SHUFFLED, 0) else "fails"

    monkeypatch.setattr(study, "measured", fake(seen, answers))
    with pytest.raises(InterruptedRunError):
        study.main(tmp_path, "small")
    monkeypatch.setattr(
        study, "measured", fake(seen, lambda n, k: "trains" if n == study.SHUFFLED else "fails")
    )
    study.main(tmp_path, "small")
    assert len(seen) == 2 * len(study.CHIPS) + 1, "what is there is not repeated"
    shown = capsys.readouterr().out
    assert shown.count("2 of 2, yes") == len(study.CHIPS) - 1
    assert shown.count("2 of 2, NO") == 1, "shuffled labels must never train"
    result = store.load(tmp_path / "verdict_stability_small.h5")
    assert result["outcome"].shape == (len(study.CHIPS), 2)
    assert set(result["threads"].ravel()) == {1, 2}


def test_one_check_of_the_study(tmp_path):
    result = study.measured(study.SHUFFLED, 1, TINY, tmp_path / "rows")
    assert result.attrs["outcome"] == "no verdict"
    assert result.attrs["threads"] == 2
    assert result["accuracy"].shape == (3, 1)


def test_threads_do_not_change_an_answer(monkeypatch, tmp_path):
    """The demo's chip, whose noise and mismatch differ from device to device, number for number."""
    monkeypatch.setitem(study.DIGITS["network"], "sizes", [64, 8, 10])
    checks = []
    for threads in (1, 2):
        with study.on_threads(threads):
            made = study.check(study.setting(study.DEMO, 0, TINY), twins=False)
        assert made.runs[study.CHIP].attrs["threads"] == threads
        checks.append(made)
    one, two = checks
    assert one.numbers() == two.numbers()
    assert one.rates == two.rates
    np.testing.assert_array_equal(one.accuracy(study.CHIP), two.accuracy(study.CHIP))
