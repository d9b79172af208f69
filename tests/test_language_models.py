"""The language-model studies: the paper's numbers, equal budgets, a whole study of seconds."""

from importlib import import_module

import language_world as world
import numpy as np
import pytest
import torch

from pcsim import store
from pcsim.errors import ConfigError
from pcsim.experiments.common import keeping
from pcsim.experiments.common.claims import Verdict, stored
from pcsim.experiments.common.language import report as language_report
from pcsim.experiments.common.language import study as language_study
from pcsim.experiments.common.language import text as language_text
from pcsim.experiments.common.language import training as language_training
from pcsim.experiments.common.language.setting import Method, Search, batches, checks
from pcsim.experiments.common.language.training import Watch, train
from pcsim.store import Result, Variable

STUDIES = {"masked": "masked_lm", "conditional": "conditional_lm"}


@pytest.fixture
def small_language(monkeypatch):
    monkeypatch.setattr(language_text, "load", world.loaded)
    language_text.windows.cache_clear()
    yield
    language_text.windows.cache_clear()


@pytest.mark.parametrize("model", STUDIES)
def test_whole_study(model, small_language, tmp_path, monkeypatch, capsys):
    name = STUDIES[model]
    module = import_module(f"pcsim.experiments.{name}.study")
    monkeypatch.setitem(module.SCALES, "small", world.setting(model))
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    monkeypatch.setenv("COLUMNS", "160")
    module.main(tmp_path, "small")
    kept = {f"{name}_small.{end}" for end in ("csv", "h5", "png")}
    assert {p.name for p in tmp_path.iterdir()} == kept
    result = store.load(tmp_path / f"{name}_small.h5")
    seen, curves = result["windows"], result["dev_perplexity"]
    assert curves.shape == (3, 2, len(seen))
    assert result["test_perplexity"].shape == (3, 2)
    # every rule learns something: it beats the model that holds all tokens for equally likely
    assert (curves[..., 0] > 0.8 * world.TEXT.vocabulary).all()
    assert (result["test_perplexity"] < 0.6 * world.TEXT.vocabulary).all()
    printed = capsys.readouterr().out
    assert "iPC reaches a lower test perplexity than PC" in printed
    assert Verdict.OPEN.value in printed
    assert "three parts" in printed  # where the text came from


def test_a_search_comes_before_the_seeds(small_language, tmp_path, monkeypatch):
    """One seed chooses rate and γ of each rule on less text; BP has no γ."""
    module = import_module("pcsim.experiments.masked_lm.study")
    one = Search(windows=64, seed=7, reach=1)
    setting = world.setting(rates=(0.003, 0.01), search=one, epochs=2)
    monkeypatch.setitem(module.SCALES, "decide", setting)
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    done, train = [], language_study.train

    def counted(setting, method, seed, out):
        done.append((seed, method.name, method.alpha, method.gamma, len(setting.train_windows())))
        return train(setting, method, seed, out)

    monkeypatch.setattr(language_study, "train", counted)
    module.main(tmp_path, "decide")
    assert len(set(done)) == len(done)
    result = store.load(tmp_path / "masked_lm_decide.h5")
    searches = [cell for cell in done if cell[0] == 7]
    assert len(searches) == np.isfinite(result["search_score"]).sum()
    assert {cell[-1] for cell in searches} == {64}
    assert {cell[3] for cell in searches if cell[1] == "BP"} == {1.0}
    assert {0.05, 0.1} < {cell[3] for cell in searches if cell[1] == "PC"}
    reports = [cell for cell in done if cell[0] != 7]
    assert {cell[0] for cell in reports} == {0, 1}
    assert min(cell[-1] for cell in reports) > 64
    at = zip(map(str, result["rule"]), result["chosen_alpha"], result["chosen_gamma"], strict=True)
    assert {cell[1:4] for cell in reports} == set(at)
    assert result["test_perplexity"].shape == (3, 2)
    assert (result["test_perplexity"] < 0.8 * world.TEXT.vocabulary).all()
    module.figures(tmp_path)
    # Without one of the rules, its claims are left out.
    monkeypatch.setitem(
        module.SCALES, "decide", setting.model_copy(update={"methods": setting.methods[1:]})
    )
    module.main(tmp_path, "decide")
    (claim,) = stored(store.load(tmp_path / "masked_lm_decide.h5"))
    assert claim.text.endswith("iPC reaches a lower test perplexity than PC")


def test_dev_perplexities_choose_the_learning_rate():
    """Test perplexities say the opposite, and are not asked."""
    setting = world.setting(rates=(0.5,), seeds=(0, 1))
    better = {"BP": 0.01, "PC": 0.5, "iPC": 0.003}
    cells = {}
    for method in setting.methods:
        for tried in setting.tried(method):
            good = tried.alpha == better[method.name]
            for seed in setting.seeds:
                curve = np.array([30.0, 10.0 + seed, 20.0] if good else [30.0, 12.0, np.nan])
                values = {
                    "dev_perplexity": Variable(("windows",), curve),
                    "test_perplexity": Variable((), np.array(99.0 if good else 1.0)),
                    "best_windows": Variable((), np.array(32)),
                }
                name = language_study.cell_name(tried, seed)
                cells[name] = Result(values, {"windows": np.array([0, 32, 64])})
    variables, _ = language_study.gathered(cells, setting)
    assert variables["alpha"].values.tolist() == list(better.values())
    assert (variables["test_perplexity"].values == 99).all()
    np.testing.assert_array_equal(variables["dev_perplexity"].values[1, 1], [30, 11, 20])
    assert variables["tried_test_perplexity"].values.tolist() == [
        [[99, 99], [1, 1]], [[1, 1], [99, 99]], [[99, 99], [1, 1]]
    ]  # fmt: skip


def test_budgets_are_equal(small_language):
    """Methods of different batch sizes are asked the same questions in the same order."""
    setting = world.setting()
    asked = {}
    for method in setting.methods:
        found = list(batches(setting, method, 1))
        assert {len(q) for q in found} == {method.batch}
        asked[method.name] = np.concatenate([np.stack((q.inputs, q.targets), 1) for q in found])
    np.testing.assert_array_equal(asked["BP"], asked["iPC"])
    np.testing.assert_array_equal(asked["PC"], asked["iPC"])
    total = setting.epochs * len(setting.train_windows())
    assert len(asked["BP"]) == total == checks(setting)[-1]
    other = np.concatenate([q.targets for q in batches(setting, setting.methods[0], 2)])
    assert (other != asked["BP"][:, 1]).any()


def test_a_run_is_the_same_each_time_and_another_by_seed(small_language):
    setting = world.setting(epochs=1)
    first, second, other = (train(setting, setting.methods[2], seed) for seed in (0, 0, 1))
    for name in first.variables:
        np.testing.assert_array_equal(first[name], second[name])
    assert (first["dev_perplexity"] != other["dev_perplexity"]).all()


def test_an_interrupted_run_goes_on_as_if_nothing_had_happened(
    small_language, tmp_path, monkeypatch
):
    setting = world.setting(epochs=1)
    measured = language_training.perplexity
    monkeypatch.setattr(language_training.checkpoint, "SECONDS", -1.0)
    for method in setting.methods:
        out, left = tmp_path / f"{method.name}.h5", iter(range(4))
        kept = language_training.checkpoint.path_for(out)

        def interrupted(*arguments, left=left):
            if next(left) == 3:
                raise KeyboardInterrupt
            return measured(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(language_training, "perplexity", interrupted)
            with pytest.raises(KeyboardInterrupt):
                train(setting, method, 0, out)
        again = language_training.Run(setting, method, 0)
        again.restore(again.own(kept))
        assert again.seen == 3 * setting.check_windows - method.batch
        resumed, whole = train(setting, method, 0, out), train(setting, method, 0)
        for name in whole.variables:
            np.testing.assert_array_equal(resumed[name], whole[name])
        assert language_training.Run(setting, method, 1).own(kept) is None


def test_training_stops_early_and_tests_the_best_weights(small_language, monkeypatch):
    """With dev perplexities that are made up, the test sees the weights of the lowest."""
    setting = world.setting(patience=2, epochs=20)
    made_up = iter([9.0, 7.0, 5.0, 6.0, 8.0])
    noted = []

    def measured(network, params, asked):
        noted.append(params.flat.clone())
        return next(made_up, 123.0)

    monkeypatch.setattr(language_training, "perplexity", measured)
    result = train(setting, setting.methods[0], 0)
    assert result["dev_perplexity"][:5].tolist() == [9, 7, 5, 6, 8]
    assert np.isnan(result["dev_perplexity"][5:]).all()
    assert int(result["best_windows"]) == 2 * setting.check_windows
    assert float(result["test_perplexity"]) == 123
    assert torch.equal(noted[5], noted[2])
    assert not torch.equal(noted[4], noted[2])


def test_a_diverged_run_stops_at_once_and_keeps_its_best():
    watch = Watch(patience=10)
    for value, weight in ((50.0, 1.0), (20.0, 2.0), (float("nan"), 3.0)):
        assert not watch.curve or not watch.stopped
        watch.note(value, torch.tensor([weight]))
    assert watch.stopped
    assert (watch.best, watch.best_at, float(watch.weights)) == (20, 1, 2)


def test_budgets_that_cannot_be_equal_are_refused(small_language):
    odd = Method(name="BP", batch=12, alpha=0.01, layer_norm=True)
    setting = world.setting()
    for changed in (
        world.setting(methods=(odd, setting.methods[1])),
        world.setting(check_windows=24),
    ):
        with pytest.raises(ConfigError, match="different numbers of windows"):
            changed.train_windows()
    big = Method(name="BP", batch=1 << 14, alpha=0.01, layer_norm=True)
    with pytest.raises(ConfigError, match="do not fill one batch of 16384"):
        world.setting(methods=(big,), check_windows=1 << 14).train_windows()


def test_the_paper_scale_has_the_papers_hyper_parameters():
    def rows(name):
        setting = import_module(f"pcsim.experiments.{name}.study").SCALES["paper"]
        text = setting.text
        assert (text.train, text.dev, text.vocabulary) == (200_000, 10_000, 8001)
        assert (setting.blocks, setting.heads, setting.features) == (2, 1, 128)
        assert (setting.epochs, setting.check_windows, len(setting.seeds)) == (16, 12_800, 10)
        return [
            (m.name, m.batch, m.alpha, m.T, m.gamma, m.discount, m.layer_norm)
            for m in setting.methods
        ]

    assert rows("masked_lm") == [
        ("BP", 256, 0.0032, 1, 1.0, 1.0, True),
        ("PC", 128, 0.0004, 8, 0.03125, 0.9, False),
        ("iPC", 128, 0.0008, 6, 0.5, 1.0, False),
    ]
    assert rows("conditional_lm") == [
        ("BP", 64, 0.0016, 1, 1.0, 1.0, True),
        ("PC", 128, 0.0004, 10, 0.0078125, 0.9, False),
        ("iPC", 128, 0.0032, 4, 0.5, 1.0, True),
    ]


@pytest.mark.parametrize(
    ("model", "rule", "mean", "spread", "count"),
    [
        ("masked", "BP", 120.02, 13.19, 7),
        ("masked", "PC", 523.08, 12.3, 3),
        ("masked", "iPC", 106.19, 10.54, 10),
        ("conditional", "BP", 113.32, 0.36, 10),
        ("conditional", "PC", 206.34, 6.46, 10),
        ("conditional", "iPC", 142.54, 4.23, 7),
    ],
)
def test_seeds_of_the_paper_give_its_table(model, rule, mean, spread, count):
    values = np.array(language_report.PAPER[model][rule])
    below = values[language_report.converged(rule, values)]
    assert (len(values), len(below)) == (10, count)
    assert below.mean() == pytest.approx(mean, abs=0.006)
    assert below.std() / 2 == pytest.approx(spread, abs=0.03)  # its ± is half an SD


def judged(model, scale, **perplexities):
    setting = import_module(f"pcsim.experiments.{STUDIES[model]}.study").SCALES[scale]
    setting = setting.model_copy(update={"seeds": tuple(range(len(perplexities["iPC"])))})
    values = np.array([perplexities[rule] for rule in ("BP", "PC", "iPC")])
    result = Result(
        {"test_perplexity": Variable(("rule", "seed"), values)},
        {"rule": np.array(["BP", "PC", "iPC"])},
    )
    return [claim.verdict for claim in language_report.judge(result, setting)]


def test_verdicts():
    holds, fails, undecided = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
    paper = language_report.PAPER
    assert judged("conditional", "paper", **paper["conditional"]) == [holds, holds, holds]
    # iPC against BP: the paper's own ten seeds spread too far for a 95 % interval.
    assert judged("masked", "paper", **paper["masked"]) == [holds, undecided, holds]
    reverse = {"BP": (90.0, 91.0, 92.0), "PC": (80.0, 81.0, 82.0), "iPC": (300.0, 301.0, 302.0)}
    assert judged("masked", "paper", **reverse) == [fails, fails, fails]
    assert judged("masked", "small", **reverse) == [fails, fails, undecided]
    alike = dict.fromkeys(reverse, (90.0, 91.0, 92.0))
    assert judged("conditional", "small", **alike) == [undecided] * 3
