"""The study of rivals: fair settings, refusals by name, costs that follow what each rule has."""

import numpy as np
import pytest

from pcsim import store
from pcsim.check import tuning
from pcsim.experiments.rivals import contestants as who
from pcsim.experiments.rivals import costs, report, study

IDEAL, ECRAM = who.SUBSTRATES[:2]
ONE = next(iter(who.SACRAMENTO.variants))
ALONE = who.SACRAMENTO.model_copy(update={"variants": {ONE: who.SACRAMENTO.variants[ONE]}})
TINY = study.Setting(
    rivals=(who.IPC, who.BP, ALONE),
    substrates=(IDEAL, ECRAM),
    sizes=(64, 4, 10),
    samples=12,
    seeds=(0, 1),
    searched=1,
    chips=2,
    most=50,
)


def config_of(rival, substrate=IDEAL, variant=None):
    variant = next(iter(rival.variants)) if variant is None else variant
    return study.setting_of(TINY, rival, variant, substrate, 1, 2)


@pytest.mark.slow
def test_a_tiny_study(tmp_path, monkeypatch):
    monkeypatch.setattr(study.keeping, "PROCESSES", 1)
    monkeypatch.setattr(tuning, "LADDER", (0.0125, 0.025))
    monkeypatch.setattr(tuning, "TIMES", 0)
    monkeypatch.setitem(study.SCALES, "small", TINY.model_copy(update={"most": 2}))
    study.main(tmp_path, "small")
    result = store.load(tmp_path / "rivals_small.h5")
    accuracy = result["accuracy"]
    assert accuracy.shape == (2, 2, 3, 2, 2)
    assert np.isfinite(accuracy[:, 1, :2]).all()
    assert np.isnan(accuracy[:, :, :, :, 1])[:, 0].all(), "ideal chips are all alike"
    assert np.isnan(accuracy[:, 1, 2]).all()
    assert "sacramento" in result["refused"][1, 2]
    assert (result["refused"] == "").sum() == 5
    assert result["passes"].tolist() == [[1, 1, 1], [1, 2, 1]]
    assert (result["pulses"][0, :2] > 0).all()
    lines = {(one["budget"], one["rule"]): one for one in report.rows(result)}
    assert lines["one pass", ALONE.name]["ecram_li"] == "refused"
    assert lines["one pass", who.IPC.name] == lines["more passes", who.IPC.name] | {
        "budget": "one pass"
    }
    assert (tmp_path / "rivals_small.png").stat().st_size > 5000

    def again(*_):
        raise AssertionError("measured again")

    monkeypatch.setattr(study, "searched", again)
    study.figures(tmp_path)


@pytest.mark.parametrize("rival", who.RIVALS, ids=lambda one: one.name)
def test_every_variant_is_another_setting_of_the_same_task(rival):
    made = [config_of(rival, variant=variant) for variant in rival.variants]
    assert len({one.to_json() for one in made}) == len(made), "no variant loses its meaning"
    for one in made:
        assert one.data == config_of(who.IPC).data
        assert one.run.seeds == (0, 1)
        assert one.learning.batch == 1
        span = one.stream.t_settle + (one.stream.t_pres or who.TOTAL)
        assert span == who.TOTAL, "as much time per sample"


def test_rules_with_phases_write_once_and_see_more_passes():
    passes = {one.name: study.passes_of(TINY, one, "more passes") for one in who.RIVALS}
    assert passes == {
        **dict.fromkeys(passes, 1),
        who.PC.name: 50,
        who.BP.name: 50,
        who.EQUILIBRIUM.name: 2,
    }
    assert {study.passes_of(TINY, one, "one pass") for one in who.RIVALS} == {1}


def test_costs_count_what_a_rule_has_beside_its_forward_arrays():
    def counts(rival):
        return costs.counts_of(rival, config_of(rival), 1, 10)

    plain = counts(who.IPC)
    assert (plain.weights, plain.neurons) == (64 * 4 + 4 * 10, 78)
    assert counts(who.RANDOM).weights == plain.weights + 40
    assert counts(who.RANDOM).changes == plain.changes, "its feedback is never written"
    assert counts(who.KOLEN_POLLACK).changes == plain.changes + 10 * 40
    assert counts(who.SACRAMENTO).weights == plain.weights + 3 * 40
    assert counts(who.SACRAMENTO).neurons == plain.neurons + 10
    assert counts(who.LATENT) == plain
    assert counts(who.BP).simulated == 0
    assert plain.simulated == pytest.approx(10 * 20)
    twice = costs.counts_of(who.EQUILIBRIUM, config_of(who.EQUILIBRIUM), 2, 10)
    assert twice.simulated == pytest.approx(2 * plain.simulated)


def result_of(accuracies):
    """Return a result of two rules on an ideal chip with these accuracies (rule, seed)."""
    values = np.asarray(accuracies, dtype=float)[None, None, :, :, None].repeat(2, 0)
    return store.Result(
        {"accuracy": store.Variable(("budget", "substrate", "rule", "seed", "chip"), values)},
        {
            "budget": np.array(list(study.BUDGETS)),
            "substrate": np.array(["ideal"]),
            "rule": np.array([who.IPC.name, who.BP.name]),
        },
    )


@pytest.mark.parametrize(
    ("gap", "verdict"),
    [(0.0, "holds"), (0.05, "does not hold"), (0.02, "not decided at this scale")],
)
def test_expectations_are_judged_by_pairs_of_seeds(gap, verdict):
    bp = np.array([0.7, 0.8, 0.9])  # seeds differ by more than rules do
    claim, _ = report.judge(result_of([bp + gap + [0.001, 0.0, -0.001], bp]))
    assert (claim.verdict, "paired" in claim.evidence) == (verdict, True)
