"""Laws of the paper's classification studies, at sizes of a second or two."""

from functools import partial

import numpy as np
import pytest

from pcsim.architectures.cnn import Cnn
from pcsim.architectures.mlp import Mlp
from pcsim.config import Grid
from pcsim.errors import StoreError
from pcsim.experiments.common import keeping, scaled, search
from pcsim.experiments.common.claims import Verdict
from pcsim.experiments.common.seed_statistics import (
    Interval,
    interval,
    judge_as_large,
    judge_comparable,
    judge_greater,
    power,
    seeds_needed,
)
from pcsim.experiments.common.seed_statistics import (
    told as told_by_seeds,
)
from pcsim.experiments.common.training_cells import train
from pcsim.experiments.hyperparameter_convergence import report as hyperparameter_report
from pcsim.experiments.hyperparameter_convergence import study as grid
from pcsim.experiments.mlp_classification import probe
from pcsim.experiments.mlp_classification import report as mlp_report
from pcsim.experiments.mlp_classification import study as mlp
from pcsim.experiments.weight_transport import report as weight_transport_report
from pcsim.experiments.weight_transport import study as transport
from pcsim.store import Result, Variable

HOLDS, FAILS, OPEN = Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN
SMALL = Mlp(sizes=(64, 12, 12, 10))


pytestmark = pytest.mark.usefixtures("one_thread")


# statistics


def test_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    found = [interval(row) for row in rng.normal(3.0, 2.0, (4000, 5))]
    assert np.mean([one.low < 3.0 < one.high for one in found]) == pytest.approx(0.95, abs=0.012)
    # Control: the normal quantile in place of Student's misses far more often.
    narrow = [abs(one.mean - 3.0) < 1.96 * one.sd / 5**0.5 for one in found]
    assert np.mean(narrow) < 0.91
    assert interval(np.array([0.5])).half == np.inf


def test_power_is_the_share_of_intervals_that_leave_zero_out():
    rng = np.random.default_rng(1)
    for n, difference in ((3, 2.0), (5, 1.0), (10, 0.5)):
        found = [judge_greater(interval(row)) for row in rng.normal(difference, 1.0, (3000, n))]
        told = np.mean([verdict is not OPEN for verdict in found])
        assert power(difference, 1.0, n) == pytest.approx(told, abs=4 * (0.25 / 3000) ** 0.5)
    assert power(1e-9, 1.0, 5) == pytest.approx(0.05, abs=1e-4), (
        "control: no difference is told at 5 %"
    )
    # Tables of the paired t test: 80 % at effects of 0.5, 1 and 2.
    assert [seeds_needed(d, 2.0) for d in (1.0, -2.0, 4.0)] == [34, 10, 5]
    assert seeds_needed(1e-3, 1.0) is None
    assert power(5.0, 1.0, 10) == pytest.approx(1), "where SciPy's noncentral t is NaN"
    for n in (2, 3, 10):
        assert power(told_by_seeds(0.3, n), 0.3, n) == pytest.approx(0.8, abs=1e-6)
    assert told_by_seeds(0.3, 1) == np.inf
    assert (seeds_needed(0.0, 1.0), seeds_needed(1.0, 0.0)) == (None, 2)


def test_verdicts_wait_for_the_interval():
    def between(low, high):
        return Interval((low + high) / 2, 1.0, (high - low) / 2)

    assert [judge_greater(between(*e)) for e in ((1, 2), (-1, 2), (-2, -1))] == [HOLDS, OPEN, FAILS]
    ends = ((-0.5, 0.5), (-0.5, 1.5), (1.5, 2.5), (-2.5, -1.5), (-3, 3))
    found = [judge_comparable(between(*e), 1.0) for e in ends]
    assert found == [HOLDS, OPEN, FAILS, FAILS, OPEN]
    assert judge_greater(interval(np.array([0.5]))) is OPEN, "one seed decides nothing"
    # As large as claimed: an interval around zero can rule that out, or not.
    ends = ((1, 2), (-1, 2), (-2, -1), (-1, 4))
    assert [judge_as_large(between(*e), 3.0) for e in ends] == [HOLDS, FAILS, FAILS, OPEN]


# weight transport


def small_transport(**changed):
    setting = {
        "data": "digits",
        "network": SMALL,
        "alphas": (2e-3, 5e-3),
        "limit": 420,
        "validation": 100,
        "epochs": 3,
        "seeds": (0, 1),
        "records": 10,
    }
    return transport.Setting(**(setting | changed))


def test_shared_chips_are_discrete_ipc():
    setting = small_transport()
    way = setting.ways[0]
    config = transport.config_of(setting, way)
    chips = transport.train(setting, way)
    run = config.run.model_copy(update={"backend": "discrete"})
    discrete = train(config.model_copy(update={"run": run}))
    np.testing.assert_allclose(chips["test_accuracy"], discrete["test_accuracy"], atol=0.003)
    assert np.ptp(chips["test_accuracy"]) > 0.1, "control: there was something to agree on"


def test_feedback_teaches_and_kolen_pollack_closes_its_gap():
    setting = small_transport(alphas=(5e-3,), ways=transport.ways(2.0))
    by_name = {way.name: way for way in setting.ways}
    found = {
        name: transport.train(setting, by_name[name])
        for name in ("no feedback", "random", "Kolen–Pollack", "Kolen–Pollack, decay")
    }
    final = {name: one["test_accuracy"][0, :, -1] for name, one in found.items()}
    for name in ("random", "Kolen–Pollack"):
        assert np.all(final[name] > final["no feedback"] + 0.05)
    # B is fixed: what alignment random feedback has, the forward weights have grown.
    cosine = found["random"]["alignment"][0]
    assert np.all(cosine[:, -1] > cosine[:, 0] + 0.1)
    steps = int(found["random"].attrs["steps"])
    assert steps == 3 * 20 * 8
    left = (1 - 5e-3 * 2.0) ** steps
    np.testing.assert_allclose(found["Kolen–Pollack, decay"]["gap"], left, rtol=1e-3)
    np.testing.assert_allclose(found["Kolen–Pollack"]["gap"], 1, rtol=1e-3)
    assert np.all(np.abs(found["random"]["gap"] - 1) > 0.01), "control: elsewhere the gap moves"


def test_rates_are_chosen_by_validation_and_reported_by_test():
    validation = np.array([[[0.9, 0.8], [0.6, 0.7]]])
    test = np.array([[[0.1, 0.2], [0.98, 0.99]]])[..., None]
    result = Result(
        {
            "validation_accuracy": Variable(("way", "alpha", "seed"), validation),
            "test_accuracy": Variable(("way", "alpha", "seed", "accuracy_time"), test),
        },
        {"way": np.array(["shared"])},
    )
    assert weight_transport_report.accuracy(result, "shared").tolist() == [0.1, 0.2]


# convergence over the grid


def grid_result(pc, ipc, T=2):
    """A grid of one weight decay, one γ and some α from accuracies (alpha, epoch)."""
    accuracy = np.array([[pc, ipc]], dtype=float)[:, :, None, None]
    energy = np.ones_like(accuracy)
    dims = ("trial", "rule", "weight_decay", "gamma", "alpha", "epoch")
    coords = {
        "trial": np.array(["net"]),
        "rule": np.array(["PC", "iPC"]),
        "alpha": np.arange(1, len(pc) + 1),
    }
    variables = {"test_accuracy": accuracy, "train_energy": energy}
    named = {name: Variable(dims, values) for name, values in variables.items()}
    return Result(named, coords, {"updates_per_batch": T})


HIGH, LOW, RISING, LATE = [0.9, 0.9], [0.1, 0.1], [0.1, 0.3], [0.1, 0.9]


def test_a_cell_has_converged_has_failed_or_is_on_its_way():
    result = grid_result([HIGH, LOW, RISING, [0.81, 0.7], [0.79, 0.79]], [LATE] * 5)
    cells = hyperparameter_report.cells_of(result, 0, "PC")
    assert cells.converged[0, 0].tolist() == [True, False, False, True, False]
    assert cells.learning[0, 0].tolist() == [False, False, True, False, False]
    assert cells.failed[0, 0].tolist() == [False, True, False, False, True]
    # An energy that still falls is a cell on its way, one that is no number is not.
    for energy, expected in ((0.9, True), (1.1, False), (np.nan, False)):
        result["train_energy"][0, 0, 0, 0, 1, -1] = energy
        cells = hyperparameter_report.cells_of(result, 0, "PC")
        assert cells.learning[0, 0, 1] == expected


@pytest.mark.parametrize(
    ("pc", "ipc", "verdicts"),
    [
        ([HIGH, LOW, LOW], [HIGH, HIGH, LOW], (HOLDS, HOLDS, HOLDS)),
        ([HIGH, HIGH, LOW], [LOW, HIGH, LOW], (FAILS, FAILS, FAILS)),
        ([HIGH, RISING, LOW], [HIGH, HIGH, LOW], (OPEN, HOLDS, HOLDS)),
        ([HIGH, LOW, LOW], [HIGH, LATE, LOW], (HOLDS, HOLDS, FAILS)),
        ([HIGH, LOW, LOW], [RISING, HIGH, LOW], (OPEN, OPEN, HOLDS)),
    ],
)
def test_claims_about_the_grid(pc, ipc, verdicts):
    found = [claim.verdict for claim in hyperparameter_report.judge(grid_result(pc, ipc))]
    if verdicts[2] is HOLDS and ipc[0] is RISING:
        verdicts = (*verdicts[:2], FAILS)  # after its first epoch iPC has one cell, as PC
    assert tuple(found) == verdicts


def test_the_grid_takes_any_network_and_every_cell():
    network = Cnn(kind="cnn", image=(1, 8, 8), channels=(4,), dense=(12,), classes=10)
    trial = grid.Trial(name="CNN, digits", data="digits", network=network)
    setting = grid.Setting(trials=(trial,), alphas=(1e-5, 1e-2), batch=100, epochs=2, T=3)
    row = train(grid.config_of(setting, trial, "iPC", 1e-3, 0.5))
    assert row["test_accuracy"].shape == (2, 1, 2)
    assert row["test_accuracy"][1, 0, -1] > row["test_accuracy"][0, 0, -1] + 0.2
    paper = grid.SCALES["paper"]
    assert len(paper.alphas) * len(paper.weight_decays) * len(paper.gammas) == 96
    assert paper.epochs % paper.T == 0


# perceptrons beside Table 1


def small_mlp():
    return mlp.Setting(
        data=("digits",),
        network=SMALL,
        alphas=(1e-4, 1e-2),
        weight_decays=(1e-2,),
        gammas=(0.1, 0.5),
        batch=100,
        patience=1,
        search=mlp.Stage(limit=600, validation=100, epochs=2, seeds=(0,)),
        report=mlp.Stage(validation=200, epochs=4, seeds=(0, 1)),
    )


def test_search_finds_the_rate_that_learns_and_leaves_bp_without_gamma():
    setting = small_mlp()
    probes = mlp.first_probes(setting)
    assert len(probes) == 1 + 2 + 2
    found = {}
    for data, name, one_grid in probes:
        job = mlp.config_of(setting, setting.search, data, name, one_grid)
        assert job.grid.gamma == (() if name == "BP" else one_grid.gamma)
        cells = probe.Probe(data, name, one_grid).read(train(job))
        assert len(cells) == 2
        found.setdefault(name, {}).update(cells)
    for name, cells in found.items():
        assert len({cell.gamma for cell in cells}) == (1 if name == "BP" else 2)
        cell = search.best_point(cells)
        assert cell.alpha == 1e-2
        (config,) = mlp.report_jobs(setting, {("digits", name): cell}).values()
        assert config.grid.gamma == (() if name == "BP" else (cell.gamma,))
        assert (config.data.validation, config.learning.patience) == (200, 1)


def test_the_choice_sees_no_test_image():
    """The best validation cell is taken although another is best on the test images."""
    curves = np.array([[[0.5, 0.9]], [[0.8, 0.8]]])[:, :, None]
    one = Result(
        {
            "validation_accuracy": Variable(("alpha", "weight_decay", "seed", "epoch"), curves),
            "test_accuracy": Variable(("alpha", "weight_decay", "seed", "epoch"), 1 - curves),
        }
    )
    one_probe = probe.Probe(
        "digits", "BP", Grid(alpha=(1e-4, 1e-2), weight_decay=(0.1,), gamma=(1.0,))
    )
    found = one_probe.read(one)
    assert list(found.values()) == [0.9, 0.8]
    assert search.best_point(found).alpha == 1e-4


def test_a_search_ends_where_every_neighbour_was_tried():
    """The chosen cell is better than all one step away, beyond the ends of an axis as well."""
    given = {"alpha": (1e-4, 1e-3, 1e-2), "weight_decay": (0.1,), "gamma": (0.1, 0.5, 1.0)}

    def climbed(peak, gamma, reach=9):
        """Search a hill over (log α, log γ) from all α at γ = 0.5."""
        setting = small_mlp().model_copy(
            update={"alphas": given["alpha"], "gammas": given["gamma"], "weight_decays": (0.1,)}
            | {"reach": reach, "grid": False}
        )

        def height(cell):
            return -(np.log10(cell.alpha / peak) ** 2) - np.log10(cell.gamma / gamma) ** 2

        (start,) = [p for p in mlp.first_probes(setting) if p.contestant == "PC"]
        assert (start.grid.alpha, start.grid.gamma) == (given["alpha"], (0.5,))
        at = {"weight_decay": 0.1, "gamma": 0.5}
        found = {c: height(c) for c in (search.Point(alpha=a, **at) for a in given["alpha"])}
        while cells := search.further_points(found, given, reach):
            found |= {cell: height(cell) for cell in cells}
        return found

    inside = climbed(1e-3, 0.5)
    assert len(inside) == 5, "three α and two more γ"
    for peak, gamma in ((1e-3, 0.5), (1e-1, 0.5), (1e-6, 0.1), (3e-2, 0.02)):
        found = climbed(peak, gamma)
        best = search.best_point(found)
        assert search.neighbours(found, given) == []
        # The next smaller and larger value of each axis were tried at the best of the other.
        beside_alpha = sorted(c.alpha for c in found if c.gamma == best.gamma)
        beside_gamma = sorted(c.gamma for c in found if c.alpha == best.alpha)
        assert beside_alpha[0] < best.alpha < beside_alpha[-1]
        assert beside_gamma[0] < best.gamma < beside_gamma[-1]
        assert best.alpha == pytest.approx(peak, rel=2.5)
    # Control: without reach the best lies at an end, and says so.
    stopped = climbed(1e-1, 0.5, reach=0)
    assert search.best_point(stopped).alpha == 1e-2
    assert [cell.alpha for cell in search.neighbours(stopped, given)] == [pytest.approx(0.1)]
    alone = {search.Point(alpha=1e-3, weight_decay=0.1, gamma=0.5): 0.9}
    one = {"alpha": (1e-3,), "weight_decay": (0.1,), "gamma": (0.5,)}
    assert search.neighbours(alone, one) == [], "a single value is given, not searched"


def test_a_cell_is_known_by_its_configuration(tmp_path, monkeypatch):
    """Another report or another contestant repeats nothing; another search does."""
    setting, trained = small_mlp(), []
    monkeypatch.setattr(mlp, "train", partial(counted, trained))
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    run = scaled.begin("mlp_classification", {"small": setting}, "small", tmp_path)
    first = mlp.settings_of(run, setting)
    assert len(trained) == 5
    stage = setting.report.model_copy(update={"epochs": 9})
    other = setting.model_copy(update={"report": stage, "contestants": mlp.FOUR[:2]})
    assert mlp.settings_of(run, other)["digits", "PC"] == first["digits", "PC"]
    assert len(trained) == 5
    stage = setting.search.model_copy(update={"epochs": 1})
    mlp.settings_of(run, other.model_copy(update={"search": stage}))
    assert len(trained) == 8


def counted(trained, config):
    trained.append(config)
    return train(config)


def test_contestants_differ_in_what_their_names_say():
    setting = mlp.SCALES["decide"]
    one_grid = Grid(alpha=(1e-3,), weight_decay=(0.1,), gamma=(0.5,))
    runs = {
        one.name: mlp.config_of(setting, setting.report, "mnist", one.name, one_grid)
        for one in setting.contestants
    }
    squared = {name for name, run in runs.items() if run.network.output.kind == "gaussian"}
    assert squared == {"PC, squared error, γ 0.5"}
    post = {name for name, run in runs.items() if run.network.convention == "post"}
    assert post == {"iPC, post-activation nodes"}
    updates = {
        name: run.schedule.T / run.learning.batch if name.startswith("iPC") else 1 / 128
        for name, run in runs.items()
    }
    assert updates["iPC, as many updates"] == updates["BP"] == updates["iPC"] / 8


def test_zil_trains_as_bp_does():
    setting = small_mlp()
    cell = Grid(alpha=(1e-2,), weight_decay=(1e-2,), gamma=(0.5,))
    runs = {
        rule: train(mlp.config_of(setting, setting.report, "digits", rule, cell))
        for rule in ("BP", "Z-IL", "PC")
    }
    bp, zil, pc = (runs[rule]["train_energy"] for rule in ("BP", "Z-IL", "PC"))
    assert runs["BP"]["accuracy"].min() > 0.6
    np.testing.assert_allclose(runs["Z-IL"]["accuracy"], runs["BP"]["accuracy"], atol=0.01)
    epochs = min(pc.shape[-1], bp.shape[-1], zil.shape[-1])
    assert np.abs(pc[..., :epochs] - bp[..., :epochs]).max() > 1e-3, "control: PC differs"


def table_one(edge=(False,) * 4, **means):
    """Five seeds that scatter by 0.1 points around the means, in percent."""
    noise = np.array([-0.1, -0.05, 0.0, 0.05, 0.1])
    rules = [one.name for one in mlp.FOUR]
    values = np.array([[(means[rule.replace("-", "")] + noise) / 100 for rule in rules]])
    coords = {
        "data": np.array(["fashion_mnist"]),
        "rule": np.array(rules),
    }
    variables = {
        "accuracy": Variable(("data", "rule", "seed"), values),
        "edge": Variable(("data", "rule"), np.array([edge])),
    }
    return Result(variables, coords)


def test_claims_follow_table_one():
    as_printed = table_one(BP=88.54, PC=85.12, iPC=89.13, ZIL=88.54)
    assert [c.verdict for c in mlp_report.judge(as_printed)] == [HOLDS] * 4
    other_way = table_one(BP=89.5, PC=89.13, iPC=88.0, ZIL=80.0)
    assert [c.verdict for c in mlp_report.judge(other_way)] == [FAILS] * 4
    even = table_one(BP=88.0, PC=88.0, iPC=88.0, ZIL=88.0)
    assert [c.verdict for c in mlp_report.judge(even)] == [HOLDS, FAILS, FAILS, HOLDS]
    # A rule whose best rate lies at the edge of the search was not tuned: here PC.
    means = {"BP": 88.54, "PC": 85.12, "iPC": 89.13, "ZIL": 88.54}
    edge = table_one(edge=(False, True, False, False), **means)
    assert [c.verdict for c in mlp_report.judge(edge)] == [HOLDS, HOLDS, OPEN, HOLDS]


def test_a_table_is_kept_beside_the_result_and_replaces_only_its_own(tmp_path):
    begin = partial(scaled.begin, "mlp_classification", mlp.SCALES, "small", tmp_path)
    lines = [{"rule": "PC, γ 0.5", "mean": "98.1"}]
    shown = scaled.Shown(lambda _: [], {}, lambda _: lines)
    begin().publish({}, {}, [], shown)
    path = tmp_path / "mlp_classification_small.csv"
    assert path.read_text(encoding="utf-8").splitlines() == [
        "# pcsim experiment mlp_classification --scale small",
        "rule,mean",
        '"PC, γ 0.5",98.1',
    ]
    begin().publish({}, {}, [], shown)  # replaces its own
    path.write_text("mine,1\n", encoding="utf-8")
    with pytest.raises(StoreError, match="was not made by pcsim"):
        begin()


def test_the_evidence_says_how_many_seeds_the_papers_difference_needs():
    claims = mlp_report.judge(table_one(BP=88.54, PC=85.12, iPC=89.13, ZIL=88.54))
    # Paired differences without spread: two seeds tell any.
    assert "2 seeds tell the paper's +0.59" in claims[0].evidence
    assert "+4.01" in claims[2].evidence


def test_trainings_that_end_early_are_filled_with_nan():
    setting = small_mlp()
    cell = mlp.Point(alpha=1e-2, weight_decay=1e-2, gamma=0.5)
    chosen = {("digits", one.name): cell for one in mlp.FOUR}
    lower = cell._replace(alpha=1e-3)
    found = {("digits", name): {lower: 0.5, cell: 0.9} for name in setting.searched}

    def ended(epochs):
        dims = ("alpha", "weight_decay", "seed", "epoch")
        curve = Variable(dims, np.full((1, 1, 2, epochs), 0.5))
        last = Variable(dims[:3], np.full((1, 1, 2), 0.5))
        return Result({"test_accuracy": curve, "validation_accuracy": curve, "accuracy": last})

    variables, coords = mlp.assemble(setting, found, chosen, [ended(n) for n in (4, 3, 2, 4)])
    there = np.isfinite(variables["test_accuracy"].values[0, :, 0]).sum(-1)
    assert there.tolist() == [4, 3, 2, 4]
    assert coords["alpha"].tolist() == [1e-3, 1e-2]
    assert variables["search_accuracy"].values[0, 2].ravel().tolist() == [0.5, 0.9]
    assert variables["edge"].values.all(), "0.01 is the largest tried"
