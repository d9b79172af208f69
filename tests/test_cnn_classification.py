"""The CNN study at a size of seconds: equal budgets, choice by held-out samples, its own words."""

import numpy as np
import pytest

from pcsim import store
from pcsim.experiments.cnn_classification import report as cnn_report
from pcsim.experiments.cnn_classification import study as cnn_classification
from pcsim.experiments.common import grid_convergence, held_out_choice, image_training, keeping
from pcsim.experiments.common.claims import Verdict
from pcsim.experiments.common.image_training import Budget, Task
from pcsim.experiments.common.search import Point
from pcsim.store import Result, Variable

TINY = cnn_classification.Setting(
    data=("digits",),
    budget=Budget(
        limit=400, validation=100, epochs=2, alphas=(1e-4, 5e-3), seeds=(0, 1), batch=50, T=4
    ),
    channels=(4, 4),
    dense=8,
)


def test_whole_study(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(cnn_classification.SCALES, "small", TINY)
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    monkeypatch.setenv("COLUMNS", "160")
    cnn_classification.main(tmp_path, "small")
    result = store.load(tmp_path / "cnn_classification_small.h5")
    assert result["test_accuracy"].shape == (1, 3, 2, 1, 1, 2, 2)
    assert (tmp_path / "cnn_classification_small.png").stat().st_size > 10_000
    assert "iPC classifies better" in capsys.readouterr().out
    ipc = held_out_choice.chosen_accuracy(result)[0, 2]
    assert ipc.min() > 0.15  # chance is 0.1, after a dozen batches


def test_budgets_are_equal():
    """Rules differ in the rule alone."""
    point = Point(1e-3, 0.0, 0.5)
    runs = [
        image_training.config_of(Task("digits", {"kind": "cnn"}), rule, point, TINY.budget)
        for rule in image_training.RULES
    ]
    rest = [r.model_dump(exclude={"schedule"}) for r in runs]
    assert rest[0] == rest[1] == rest[2]
    schedules = [r.schedule.model_dump(exclude={"rule"}) for r in runs]
    assert schedules[1] == schedules[2]
    assert runs[0].schedule.model_fields_set == {"rule"}, "BP has no states"
    assert [r.schedule.rule for r in runs] == ["bp", "pc", "ipc"]


def synthetic(ipc, bp):
    """One data set, three learning rates, three epochs; the better rate and epoch are known."""
    held, test = (np.full((1, 3, 3, 1, 1, len(ipc), 3), 0.1) for _ in range(2))
    held[0, :, 1, ..., 1] = 0.9
    test[0, 0, 1, ..., 1], test[0, 1, 1, ..., 1], test[0, 2, 1, ..., 1] = bp, 0.3, ipc
    test[0, :, 0] = 0.99  # a rate that validation does not choose
    dims = ("data", "rule", "alpha", "weight_decay", "gamma", "seed", "epoch")
    coords = {
        "data": np.array(["digits"]),
        "rule": np.array(["BP", "PC", "iPC"]),
        "alpha": np.array([1e-4, 1e-3, 1e-2]),
        "weight_decay": np.array([0.0]),
        "gamma": np.array([0.5]),
    }
    variables = {"validation_accuracy": held, "test_accuracy": test}
    learnt = np.zeros(test.shape[:-1])
    learnt[0, :, 1] = 0.5
    found = {n: Variable(dims, v) for n, v in variables.items()}
    return Result({**found, "train_accuracy": Variable(dims[:-1], learnt)}, coords)


@pytest.mark.parametrize(
    ("ipc", "bp", "verdict"),
    [
        ((0.7, 0.72, 0.71), (0.6, 0.61, 0.62), Verdict.HOLDS),
        ((0.6, 0.61, 0.62), (0.7, 0.72, 0.71), Verdict.FAILS),
        ((0.7, 0.5, 0.6), (0.6, 0.61, 0.62), Verdict.OPEN),
        ((0.7,), (0.6,), Verdict.OPEN),
    ],
)
def test_verdicts(ipc, bp, verdict):
    result = synthetic(ipc, bp)
    np.testing.assert_allclose(held_out_choice.chosen_accuracy(result)[0, 2], ipc)
    assert cnn_report.judge(result)[0].verdict == verdict


def test_the_chosen_point_and_the_converged_points_are_told():
    """One rate of three is chosen; beside the 0.99 of another, it counts as failed."""
    result = synthetic((0.7, 0.72, 0.71), (0.95, 0.96, 0.97))
    assert held_out_choice.chosen_row(result, 0) == ["chosen", *["α = 0.001"] * 3]
    assert held_out_choice.train_row(result, 0)[1:] == ["50.00 ± 0.00 %"] * 3
    np.testing.assert_allclose(
        grid_convergence.converged(result)[0], [[2 / 3] * 3, [1 / 3] * 3, [1 / 3] * 3]
    )
    claim = cnn_report.judge(result)[2]
    assert claim.text == "digits: iPC converges at more points of the grid than PC"
    assert claim.verdict is Verdict.OPEN  # as many


def test_a_rule_that_loses_at_the_edge_of_the_grid_has_not_lost():
    """Its rate might be better still beyond; a winner at the edge could only win by more."""
    result = synthetic((0.7, 0.72, 0.71), (0.6, 0.61, 0.62))
    held = result["validation_accuracy"]
    assert cnn_report.judge(result)[0].verdict is Verdict.HOLDS
    held[0, 2, 2, ..., 1] = 0.95  # iPC, the winner, chooses the largest rate
    result["test_accuracy"][0, 2, 2, ..., 1] = 0.8
    assert cnn_report.judge(result)[0].verdict is Verdict.HOLDS
    held[0, 0, 2, ..., 1] = 0.95  # and so does BP, which loses
    claim = cnn_report.judge(result)[0]
    assert claim.verdict is Verdict.OPEN
    assert claim.evidence.endswith("BP has chosen the largest learning rate, 0.01")
