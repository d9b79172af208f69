"""The studies alexnet, width and robustness at a size of seconds, on digits in colours."""

import sys
from functools import partial
from importlib import import_module

import numpy as np
import picture_world
import pytest
import torch

from pcsim import datasets, store
from pcsim.architectures.cnn import Cnn
from pcsim.errors import InterruptedRunError, UnsupportedError
from pcsim.experiments.alexnet import report as alexnet_report
from pcsim.experiments.alexnet import study as alexnet
from pcsim.experiments.common import (
    claims,
    grid_convergence,
    image_study,
    image_training,
    keeping,
    scaled,
)
from pcsim.experiments.common.claims import Verdict
from pcsim.experiments.common.image_training import Budget, Search, Task
from pcsim.experiments.common.search import Point
from pcsim.experiments.robustness import report as robustness_report
from pcsim.experiments.robustness import study as robustness
from pcsim.experiments.width import report as width_report
from pcsim.experiments.width import study as width
from pcsim.kernels.feedforward import outputs
from pcsim.store import Result, Variable
from pcsim.vision.corruption import CORRUPTIONS, corrupt

BUDGET = Budget(
    limit=300, validation=100, epochs=2, seeds=(0, 1), alphas=(1e-3, 1e-2), batch=50, T=2
)
NARROW = {"channels": (4, 4, 4, 4, 4), "dense": (8,)}
TINY = {
    "alexnet": alexnet.Setting(budget=BUDGET.model_copy(update={"gammas": (0.5, 1.0)}), **NARROW),
    "width": width.Setting(widths=(1, 2), budget=BUDGET),
    "robustness": robustness.Setting(budget=BUDGET, test=100, **NARROW),
}
CELLS = {"alexnet": 2 * (4 + 4 + 2), "width": 2 * 2 * 2, "robustness": 2 * 2}
SHAPES = {"alexnet": (2, 3, 2, 1, 2, 2, 2), "width": (2, 2, 2, 1, 1, 2, 2)}


@pytest.fixture(autouse=True)
def coloured(monkeypatch):
    data = picture_world.pictures()
    monkeypatch.setattr(datasets, "load", lambda name, **given: data)
    monkeypatch.setattr(keeping, "PROCESSES", 1)


@pytest.mark.parametrize("name", TINY)
def test_whole_study_in_two_goes(name, tmp_path, monkeypatch, capsys):
    module = import_module(f"pcsim.experiments.{name}.study")
    monkeypatch.setitem(module.SCALES, "small", TINY[name])
    monkeypatch.setenv("COLUMNS", "240")
    done = []
    train = image_training.trained

    def counted(config):
        if len(done) == 3:
            done.append("interrupted")
            raise KeyboardInterrupt
        done.append(config.to_json())
        return train(config)

    monkeypatch.setattr(image_training, "trained", counted)
    with pytest.raises(InterruptedRunError, match=f"3 of {CELLS[name]} cells are safe"):
        module.main(tmp_path, "small")
    module.main(tmp_path, "small")
    done.remove("interrupted")
    assert len(done) == len(set(done)) == CELLS[name], "every cell once"
    assert {p.name for p in tmp_path.iterdir()} == {
        f"{name}_small.{end}" for end in ("csv", "h5", "png")
    }
    result = store.load(tmp_path / f"{name}_small.h5")
    assert result["test_accuracy"].shape == SHAPES.get(name, (1, 2, 2, 1, 1, 2, 2))
    assert result.attrs["setting"] == TINY[name].model_dump_json()
    assert (tmp_path / f"{name}_small.png").stat().st_size > 10_000
    printed = " ".join(capsys.readouterr().out.split())
    for claim in claims.stored(result):
        assert claim.verdict.value in printed


@pytest.mark.parametrize("name", TINY)
def test_a_search_comes_before_the_seeds_and_sees_other_ones(name, tmp_path, monkeypatch):
    """One seed chooses each rule's point; the others are trained there, and nowhere else."""
    module = import_module(f"pcsim.experiments.{name}.study")
    one = Search(limit=200, validation=50, epochs=1, seed=7, reach=1)
    update = {"alphas": (1e-3, 1e-2), "gammas": (0.2, 0.5), "search": one, "anneal": "cosine"}
    setting = TINY[name].model_copy(update={"budget": BUDGET.model_copy(update=update)})
    monkeypatch.setitem(module.SCALES, "decide", setting)
    done, train = [], image_training.trained
    monkeypatch.setattr(image_training, "trained", lambda c: (done.append(c), train(c))[1])
    module.main(tmp_path, "decide")
    assert len({c.to_json() for c in done}) == len(done), "every cell once"
    result = store.load(tmp_path / f"{name}_decide.h5")
    tasks = result["test_accuracy"].shape[:2]
    assert result["test_accuracy"].shape == (*tasks, 2, 2)
    searches = [c for c in done if c.run.seeds == (7,)]
    reports = [c for c in done if c.run.seeds == (0, 1)]
    assert len(reports) == np.prod(tasks)
    assert len(searches) + len(reports) == len(done)
    assert len(searches) == np.isfinite(result["search_accuracy"]).sum()
    assert {(c.data.limit, c.learning.epochs, c.data.limit_test) for c in searches} == {
        (200, 1, image_training.UNSEEN)
    }
    assert {(c.data.limit, c.learning.epochs) for c in reports} == {(300, 2)}
    chosen = {
        (round(float(a), 9), round(float(g), 9), str(rule))
        for rule, alphas, gammas in zip(
            result["rule"], result["chosen_alpha"].T, result["chosen_gamma"].T, strict=True
        )
        for a, g in zip(alphas, gammas, strict=True)
    }
    rules = {value: key for key, value in image_training.RULES.items()}
    trained_at = {
        (
            c.learning.alpha,
            0.2 if c.schedule.rule == "bp" else c.schedule.gamma,
            rules[c.schedule.rule],
        )
        for c in reports
    }
    assert trained_at == chosen
    best = np.nanmax(result["search_accuracy"], axis=(2, 3, 4))
    axes = [list(result[axis]) for axis in ("alpha", "weight_decay", "gamma")]
    for k in np.ndindex(*tasks):
        at = [result[f"chosen_{axis}"][k] for axis in ("alpha", "weight_decay", "gamma")]
        where = tuple(axis.index(value) for axis, value in zip(axes, at, strict=True))
        assert result["search_accuracy"][k][where] == best[k]
    module.figures(tmp_path)


def test_another_number_of_seeds_repeats_no_search(tmp_path, monkeypatch):
    one = Search(limit=200, validation=50, epochs=1, reach=0)
    begin = BUDGET.model_copy(update={"search": one, "seeds": (0,)})
    done, train = [], image_training.trained
    monkeypatch.setattr(image_training, "trained", lambda c: (done.append(c), train(c))[1])
    counts = []
    for seeds in ((0,), (0, 1)):
        budget = begin.model_copy(update={"seeds": seeds})
        setting = width.Setting(widths=(1,), rules=("BP",), budget=budget)
        begun = scaled.begin("width", {"decide": setting}, "decide", tmp_path)
        task_of = partial(width.task_of, setting)
        image_study.train(begun, {"width": (1,)}, ("BP",), budget, task_of)
        counts.append(len(done))
    assert counts == [2 + 1, 2 + 1 + 1]


@pytest.mark.parametrize("name", ["alexnet", "robustness"])
def test_a_missing_kornia_is_found_before_anything_is_trained(name, tmp_path, monkeypatch):
    def train(config):
        raise AssertionError("trained without kornia")

    monkeypatch.setattr(image_training, "trained", train)
    for module in ("kornia", "kornia.geometry.transform"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnsupportedError, match=f"{name} needs kornia, which is not installed"):
        import_module(f"pcsim.experiments.{name}.study").main(tmp_path, "small")


def test_scales():
    """The published grid has 96 points; BP, which has no γ, is trained at a third of them."""
    for module in (alexnet, width, robustness):
        assert module.SCALES["paper"].budget.device == "cuda"
        assert module.SCALES["paper"].budget.limit == 0
        assert module.SCALES["small"].budget.device == "cpu"
    paper = alexnet.SCALES["paper"]
    for rule, count in (("BP", 32), ("PC", 96), ("iPC", 96)):
        measures = image_training.cells(["none"], [rule], paper.budget, lambda *_: Result({}))
        assert len(measures) == count


@pytest.mark.parametrize("factor", width_report.PAPER_WIDTHS)
def test_networks_have_the_stated_widths(factor):
    network = Cnn.model_validate(width.network_of(factor)).build()
    nodes = list(reversed(network.nodes))  # from the input
    expected = [(3, 32, 32)]
    for channels, side in ((8, 32), (16, 16), (8, 8)):
        expected += [(channels * factor, side, side), (channels * factor, side // 2, side // 2)]
    expected += [(128 * factor,), (10,)]
    assert [node.shape for node in nodes] == expected
    assert [node.map.kind for node in nodes[2:7:2]] == ["max"] * 3
    assert width.SCALES["paper"].widths == width_report.PAPER_WIDTHS


def test_weights_of_the_best_epoch_are_kept():
    budget = BUDGET.model_copy(update={"epochs": 5})
    network = {"kind": "cnn", "channels": (4,), "dense": (8,)}
    config = image_training.config_of(
        Task("cifar10", network), "iPC", Point(3e-2, 0.0, 0.5), budget
    )
    training, best = image_training.trained(config)
    history = np.stack(training.progress.history["validation_accuracy"])
    assert history[-1].min() < history.max(0).max(), "else the last epoch would do as well"
    kept = training.task.accuracy(training.readout, best, training.task.validation)
    np.testing.assert_array_equal(kept, history.max(0))
    learnt = image_training.recorded(training, best)["train_accuracy"]
    scores = outputs(training.network, best, training.task.train.x).argmax(-1)
    np.testing.assert_allclose(learnt, (scores == training.task.train.y).double().mean(-1))


def test_corrupted_accuracy_and_calibration_are_those_of_the_metrics():
    setting = TINY["robustness"].model_copy(update={"test": 0})
    network = robustness.network_of(setting)
    point = Point(1e-2, 0.0, 0.5)
    config = image_training.config_of(Task("cifar10", network), "BP", point, BUDGET)
    training, best = image_training.trained(config)
    found = robustness.tested(setting, training, best)
    accuracy, error = (found[n].values for n in ("corrupted_accuracy", "calibration_error"))
    assert accuracy.shape == error.shape == (2, 6, 6)
    # Level 0 is the test set as the training sees it, for all corruptions.
    task = training.task
    clean = task.accuracy(training.readout, best, task.test)
    np.testing.assert_allclose(accuracy[:, :, 0], np.repeat(clean[:, None], 6, 1))
    assert np.ptp(error[:, :, 0], axis=1).max() == 0
    # One other place, by hand.
    data = datasets.load("cifar10")
    changed = corrupt(torch.as_tensor(data.x_test), "contrast", 4).flatten(1)
    scores = training.readout.scores(best, (changed - task.mean) / task.sd)
    right = (scores.argmax(-1) == torch.as_tensor(data.y_test)).double().numpy()
    sure = scores.double().softmax(-1).max(-1)[0].numpy()
    kind = list(CORRUPTIONS).index("contrast")
    np.testing.assert_allclose(accuracy[:, kind, 4], right.mean(1))
    for seed in range(2):
        bins = np.array_split(np.argsort(sure[seed]), setting.bins)
        gaps = [abs((right - sure)[seed, b].mean()) * len(b) / len(data.y_test) for b in bins]
        assert error[seed, kind, 4] == pytest.approx(sum(gaps), rel=1e-4)


def logits(confidence, classes=10):
    """Return scores whose softmax is `confidence` for class 0 and equal for all others."""
    p = np.asarray(confidence)[..., None]
    rest = np.repeat((1 - p) / (classes - 1), classes - 1, -1)
    return np.log(np.concatenate([p, rest], -1))


def test_calibration_of_known_logits():
    labels = np.array([0] * 7 + [1] * 3)
    accuracy, error = robustness.calibration(logits(np.full((2, 10), 0.9)), labels, bins=5)
    np.testing.assert_allclose(accuracy, 0.7)
    np.testing.assert_allclose(error, 0.2)  # 0.9 sure, 0.7 right
    # Half are 0.6 sure and half of those right, half are 0.9 sure and all of those right.
    sure = np.array([[0.6] * 10 + [0.9] * 10])
    labels = np.array([0, 1] * 5 + [0] * 10)
    accuracy, error = robustness.calibration(logits(sure), labels, bins=2)
    assert (accuracy[0], error[0]) == (pytest.approx(0.75), pytest.approx(0.1))
    broken = np.full((1, 20, 10), np.nan)
    accuracy, error = robustness.calibration(broken, labels, bins=2)
    assert accuracy[0] == 0
    assert np.isnan(error[0])


# reports, from made-up results

GRID = ("alpha", "weight_decay", "gamma", "seed", "epoch")


def result_of(lead, labels, rules, test, **more):
    dims = (lead, "rule", *GRID)
    coords = {lead: np.array(labels), "rule": np.array(rules)}
    coords |= {axis: np.arange(1.0, n + 1) for axis, n in zip(GRID, test.shape[2:5], strict=False)}
    coords |= more.pop("coords", {})
    variables = {n: Variable(dims, test) for n in ("test_accuracy", "validation_accuracy")}
    learnt = {"train_accuracy": Variable(dims[:-1], test[..., -1])}
    return Result({**variables, **learnt, **more}, coords)


def verdicts(found):
    return {claim.text: claim.verdict for claim in found}


def test_converged_points_and_where_others_failed():
    """iPC fails at the largest of four rates, PC at all but one; seeds differ by little."""
    test = np.empty((2, 3, 4, 1, 1, 3, 1))
    test[:, 0] = 0.80
    test[:, 1] = np.array([0.3, 0.3, 0.6, 0.3]).reshape(4, 1, 1, 1, 1)
    test[:, 2] = np.array([0.65, 0.70, 0.7, 0.1]).reshape(4, 1, 1, 1, 1)
    test += 0.01 * np.arange(3).reshape(3, 1)
    test[1] += 0.05 + 0.001 * np.arange(3).reshape(3, 1)
    rates = {"alpha": np.array([1e-4, 5e-4, 1e-3, 1e-2]), "gamma": np.array([0.5])}
    rules = ["BP", "PC", "iPC"]
    made = result_of("augmentation", alexnet.AUGMENTATIONS, rules, test, coords=rates)
    np.testing.assert_allclose(grid_convergence.converged(made)[0].mean(-1), [1, 0.25, 0.75])
    found = verdicts(alexnet_report.judge(made))
    assert len(found) == 11
    text = "none: iPC fails to converge only at the largest learning rate, 0.01"
    assert found[text] is Verdict.HOLDS
    assert found["none: BP classifies better than iPC"] is Verdict.HOLDS
    assert found["augmentation improves PC"] is Verdict.HOLDS
    more = "none: iPC converges at more points of the grid than PC"
    assert found[more] is Verdict.HOLDS
    guessing = result_of("augmentation", alexnet.AUGMENTATIONS, rules, test / 6, coords=rates)
    found = verdicts(alexnet_report.judge(guessing))
    assert (found[text], found[more]) == (Verdict.OPEN, Verdict.OPEN)
    test[0, 2, 1] = 0.2  # now iPC fails at 5e-4 too
    assert verdicts(alexnet_report.judge(made))[text] is Verdict.FAILS
    rates = {**rates, "alpha": rates["alpha"] / 10}
    made = result_of("augmentation", alexnet.AUGMENTATIONS, rules, test, coords=rates)
    other = verdicts(alexnet_report.judge(made))
    assert other[text] is Verdict.OPEN, "a grid without the largest rate cannot tell"


def width_result(widths, bp, ipc):
    noise = 0.001 * np.arange(3)
    test = np.stack([np.asarray(bp), np.asarray(ipc)], 1)[:, :, None, None, None, None, None]
    return result_of("width", widths, ["BP", "iPC"], test + noise[:, None])


def test_claims_about_width_hold_for_the_papers_numbers_and_fail_for_their_reverse():
    paper = {rule: np.array(values) / 100 for rule, values in width_report.PAPER.items()}
    made = width_result(width_report.PAPER_WIDTHS, paper["BP"], paper["iPC"])
    # Equal differences for all seeds have no spread: every comparison is decided.
    assert {c.verdict for c in width_report.judge(made)} == {Verdict.HOLDS}
    made = width_result(width_report.PAPER_WIDTHS, paper["iPC"][::-1], paper["BP"])
    found = verdicts(width_report.judge(made))
    assert found["C = 1: iPC classifies better than BP"] is Verdict.FAILS
    assert found["iPC gets worse again beyond a certain width"] is Verdict.FAILS
    assert found["BP gains from the width: C = 20 is better than C = 1"] is Verdict.FAILS
    made = width_result([1, 3], [0.1, 0.2], [0.3, 0.2])
    found = verdicts(width_report.judge(made))
    assert found["iPC gets worse again beyond a certain width"] is Verdict.OPEN
    assert [v for k, v in found.items() if "fewer parameters" in k] == [Verdict.OPEN]


@pytest.mark.parametrize(
    ("bp", "ipc", "expected"),
    [
        ((0.12, 0.15, 0.3), (0.05, 0.06, 0.11), [Verdict.HOLDS] * 3),
        ((0.05, 0.06, 0.11), (0.12, 0.15, 0.3), [Verdict.FAILS] * 3),
        ((0.12, 0.25, 0.5), (0.05, 0.15, 0.2), [Verdict.HOLDS, Verdict.FAILS, Verdict.HOLDS]),
    ],
)
def test_claims_about_calibration(bp, ipc, expected):
    """Errors at level 0, at 1 to 3, and at 4 and 5."""
    error = np.stack([np.repeat(one, (1, 3, 2)) for one in (bp, ipc)])
    error = error[None, :, None, None, None, None, None, :] + np.zeros((1, 2, 1, 1, 1, 3, 6, 6))
    error += 0.001 * np.arange(3)[:, None, None]
    error[..., 0, 1:] += 0.3  # one bad corruption does not move a median
    dims = ("data", "rule", "alpha", "weight_decay", "gamma", "seed", "corruption", "level")
    made = result_of(
        "data",
        ["cifar10"],
        ["BP", "iPC"],
        np.zeros((1, 2, 1, 1, 1, 3, 1)),
        calibration_error=Variable(dims, error),
        corrupted_accuracy=Variable(dims, 1 - error),
    )
    found = [claim.verdict for claim in robustness_report.judge(made)]
    assert found[:3] == expected
    made["corrupted_accuracy"][:] = 0.1  # control: networks that guess decide nothing
    assert {claim.verdict for claim in robustness_report.judge(made)} == {Verdict.OPEN}
