"""The map: what is chosen where, limits read off, laws beside them, figures drawn again."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from pcsim import store
from pcsim.datasets import locate
from pcsim.errors import InterruptedRunError
from pcsim.experiments.automatic import corners, judging, laws, predictions, report, study
from pcsim.experiments.automatic.atlas import Atlas
from pcsim.experiments.automatic.points import (
    FAULTS,
    NO_AXES,
    Point,
    Setting,
    config,
    points,
    presentations,
    reference,
)
from pcsim.experiments.common import keeping
from pcsim.experiments.common.claims import Verdict, stored
from pcsim.limits import errors
from pcsim.store import Result, Variable

TINY = Setting(
    train=20,
    held_out=20,
    seeds=2,
    chips=2,
    alike_seeds=2,
    worst=1.0,
    width=4,
    presents=(0.8, 1.6),
    sizes={"noise": (0.1, 30.0), "accumulated": (3, 8)},
    tasks=("fashion_mnist",),
    task_faults={"noise": 0.1},
)


def losing(setting, lost, present=8.0):
    """Return a map in which a fault of size x loses `lost(x)`, exactly, of every seed and chip."""
    wanted = [*presentations(setting), *points(setting, present)]
    found = {}
    for point in wanted:
        ideal = 0.9 + 0.01 * np.arange(3)
        drop = lost(point.size) if point.size else 0.0
        found[point] = Result(
            {
                "accuracy": Variable(("seed", "chip"), np.tile(ideal[:, None] - drop, (1, 2))),
                "held_out": Variable(("seed", "chip"), np.full((3, 2), 0.9)),
                "rate": Variable((), np.array(0.1)),
                "at_end": Variable((), np.array(False)),
                "curvature": Variable(("seed",), np.full(3, 2.0)),
                "inter_bound": Variable(("seed",), np.full(3, np.inf)),
                "theta0": Variable(("output", "hidden"), np.eye(10, 4)),
            }
        )
    variables, coords = study.as_variables(setting, present, found)
    return Result(variables, coords, {"setting": setting.model_dump_json()})


NOISE = Setting(
    train=60,
    held_out=60,
    seeds=3,
    chips=2,
    alike_seeds=3,
    presents=(4.0, 8.0),
    sizes={"noise": (0.05, 0.1, 0.2, 0.4)},
)


def test_a_limit_stands_where_the_loss_passes_it_and_moves_with_it():
    """Losses of 0.1 x: three points are lost at 0.3; of twice that, at 0.15."""
    for slope in (0.1, 0.2):
        atlas = Atlas.of(losing(NOISE, lambda x, slope=slope: slope * x))
        edge = atlas.boundary(atlas.along("noise"), 0.03)
        low = {0.1: 0.2, 0.2: 0.1}[slope]
        between = (0.03 - slope * low) / (slope * low)  # linear in doublings
        assert edge.value == pytest.approx(low * 2**between)
        assert edge.low == pytest.approx(edge.high, rel=1e-4), "seeds that agree leave no doubt"
        fit = atlas.fit(atlas.along("noise"))
        assert fit.exponent == pytest.approx(1.0, rel=1e-3)
        assert fit.size == pytest.approx(0.03 / slope, rel=1e-3)
        assert fit.error < 1e-5


def test_what_loses_nothing_has_no_limit_and_what_always_loses_is_said():
    never = Atlas.of(losing(NOISE, lambda x: 0.0))
    line = never.along("noise")
    assert report.tolerated(never, line, 0.03) == "beyond 0.4"
    always = Atlas.of(losing(NOISE, lambda x: 0.5))
    line = always.along("noise")
    assert report.tolerated(always, line, 0.03) == "below 0.05"
    assert np.isnan(report.error(always, line, 0.03)), "a law is not compared with what is unknown"


def test_predicted_limits_are_those_of_the_layer_and_fall_with_the_rate():
    layer = laws.Layer.of("digits", NOISE, (0.01, 0.03))
    slow, fast = (layer.size("noise", 0.03, rate, 8.0, 0.4) for rate in (0.01, 0.1))
    assert slow > fast > 0
    assert layer.size("noise", 0.01, 0.1, 8.0, 0.4) < fast, "less may be lost"
    assert layer.size("tau", 0.03, 0.1, 8.0, 0.4) == np.inf
    assert np.isnan(layer.size("gain", 0.03, 0.1, 8.0, 0.4)), "no law, no number"
    assert layer.size("imbalance", 0.03, 0.1, 8.0, 0.4) > 0, "though some pixels never fire"
    result = losing(NOISE, lambda x: 0.1 * x)
    atlas = Atlas.of(result)
    line = atlas.along("noise")
    assert atlas.predicted(line, 0.03) == pytest.approx(
        laws.Layer.of("digits", NOISE).size("noise", 0.03, 0.1, 8.0, 0.4)
    ), "one rate: the crossing is the law's own number"


def test_laws_and_faults_meet_in_one_table():
    """The map asks the table of `pcsim.limits` as commands do: by piece and field."""
    for name in (*FAULTS, "present"):
        law = laws.axis(name)
        assert law is None or law[0].name == name
    assert {name for name in FAULTS if laws.axis(name) is None} == {*NO_AXES, "gain", "drift"}


def test_errors_that_commands_quote_are_those_of_the_kept_map():
    kept = store.load(Path(study.__file__).with_name("automatic_small.h5"))
    with errors.FILE.open(encoding="utf-8", newline="") as lines:
        assert next(lines).strip() == "# pcsim experiment automatic --scale small"
        assert list(csv.DictReader(lines)) == report.errors(kept)


def test_a_few_points_on_full_sets_have_a_table_and_a_figure_of_their_own(tmp_path):
    """A row for each point, ideal ones first; what is judged is what was predicted for them."""
    setting = NOISE.model_copy(
        update={"corners": True, "sizes": {"noise": (0.2,)}, "presents": (4.0, 8.0)}
    )
    result = losing(setting, lambda x: 0.25 * x)
    lines = corners.rows(result)
    assert [(one["chip"], one["T/τ_x"]) for one in lines[:2]] == [("ideal", "4"), ("ideal", "8")]
    noisy = next(one for one in lines if one["chip"] == "noise of each error 0.2")
    assert noisy["lost, points"] == "5.0 (5.0 to 5.0)"
    assert study.shown(result) is study.CORNERS
    assert study.shown(losing(NOISE, lambda x: x)) is study.MAP
    assert corners.draw(result, tmp_path / "c.png").stat().st_size > 5000
    verdicts = {c.text: c.verdict for c in judging.judge(result)}
    assert len(verdicts) == len(predictions.CORNERS)
    (noise,) = (v for text, v in verdicts.items() if text.startswith("noise of each error 0.2"))
    assert noise is Verdict.OPEN, "exactly the five points that were said"


def test_bits_that_do_not_depend_on_the_rate(monkeypatch):
    """Losses that know no rate: the same bits; losses that double with it: not."""
    sizes = {"stochastic": (4, 6, 8, 10)}
    setting = NOISE.model_copy(
        update={"sizes": sizes, "rate_sizes": sizes, "cut_rates": (0.025, 0.4)}
    )
    monkeypatch.setattr(predictions, "PREDICTIONS", (predictions.Steady("stochastic", 1.0, "a"),))
    steady = losing(setting, lambda bits: 2.0 ** (-bits + 2))
    assert [c.verdict for c in judging.judge(steady)] == [Verdict.HOLDS]
    atlas = Atlas.of(steady)
    worse = [atlas.rows[p] for p in atlas.along("stochastic", rate=0.4)]
    steady["accuracy"][worse] -= 0.1
    assert [c.verdict for c in judging.judge(steady)] == [Verdict.OPEN], "beyond all bits tried"
    steady["accuracy"][worse] += 0.1
    ends = [atlas.rows[p] for p in atlas.along("stochastic", rate=0.4) if p.size in (6, 8)]
    steady["accuracy"][ends] -= 0.05
    assert [c.verdict for c in judging.judge(steady)] == [Verdict.FAILS]


def test_predictions_are_judged_by_numbers(monkeypatch):
    wanted = (
        predictions.Loses("noise", 0.2, 1.0, True, "a"),
        predictions.Loses("noise", 0.2, 1.0, False, "b"),
        predictions.Loses("tau", 0.4, 1.0, True, "c"),
    )
    monkeypatch.setattr(predictions, "PREDICTIONS", wanted)
    verdicts = [c.verdict for c in judging.judge(losing(NOISE, lambda x: 0.1 * x))]
    assert verdicts == [Verdict.FAILS, Verdict.HOLDS, Verdict.OPEN]
    mild = [c.verdict for c in judging.judge(losing(NOISE, lambda x: 0.01 * x))]
    assert mild == [Verdict.HOLDS, Verdict.FAILS, Verdict.OPEN]


@pytest.mark.parametrize(("slope", "verdict"), [(0.1, Verdict.HOLDS), (0.9, Verdict.OPEN)])
def test_what_a_longer_presentation_changes_is_open_below_all_sizes(monkeypatch, slope, verdict):
    """Losses that know no time: a factor of one, unless the mildest size loses too much already."""
    setting = NOISE.model_copy(
        update={"presents": (4.0, 8.0, 20.0), "cut_presents": (4.0, 20.0), "cut_sizes": NOISE.sizes}
    )
    same = predictions.Moves("noise", 0.9, 1.1, "a")
    more = predictions.Moves("noise", 1.5, 3.0, "b")
    monkeypatch.setattr(predictions, "PREDICTIONS", (same, more))
    verdicts = [c.verdict for c in judging.judge(losing(setting, lambda x: slope * x))]
    assert verdicts == [verdict, Verdict.FAILS if verdict is Verdict.HOLDS else Verdict.OPEN]


def test_scales_on_full_sets_try_the_same_presentations():
    """The shorter one is the beginning of the longer: the same trainings."""
    short, long = study.SCALES["decide"], study.SCALES["corners"]
    assert presentations(short) == presentations(long)
    assert short.training == long.training
    assert [p.fault for p in points(short, 8.0)] == ["reset"]
    assert {"reset", "ecram_li", "noise"} <= {p.fault for p in points(long, 8.0)}
    assert {p.task for p in presentations(short)} == {"mnist"}
    assert short.train + short.held_out == 60000


def test_the_time_is_the_shortest_that_is_good_enough():
    def cell(value):
        return Result({"held_out": Variable(("seed", "chip"), np.full((2, 1), value))})

    setting = NOISE.model_copy(update={"presents": (2.0, 8.0, 40.0)})
    found = dict(zip(presentations(setting), (0.70, 0.895, 0.90), strict=True))
    cells = {p.name: cell(v) for p, v in found.items()}
    assert study.time_needed(setting, cells) == 8.0
    strict = setting.model_copy(update={"worst": 0.001})
    assert study.time_needed(strict, cells) == 40.0


def test_choices_are_made_on_held_out_samples_and_points_are_all_different():
    setting = study.SCALES["small"]
    wanted = points(setting, 8.0)
    assert len({p.name for p in wanted}) == len(wanted)
    assert {p.fault for p in wanted} == set(FAULTS)
    for point in wanted:
        if point.task == "digits":
            data = config(setting, point, point.task, 2, 2).data
            assert (data.limit, data.validation) == (
                setting.train + setting.held_out,
                setting.held_out,
            )
    deep = Point("inter_lag", 1.0, 8.0, depth=4)
    assert reference(setting, deep, 8.0) == Point("ideal", 0.0, 8.0, depth=4)


@pytest.mark.slow
def test_a_tiny_map_resumes_leaves_out_what_is_absent_and_draws_again(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setitem(study.SCALES, "small", TINY)
    monkeypatch.setattr(keeping, "PROCESSES", 1)
    monkeypatch.setattr(locate, "places", list)
    assert study.there("digits"), "what comes with pcsim is there"
    few = {name: study.MAP.figures[name] for name in ("", "_noise")}
    monkeypatch.setattr(study, "MAP", replace(study.MAP, figures=few))
    kept = []

    def broken(setting, point):
        if point.fault == "accumulated":
            raise KeyboardInterrupt
        kept.append(point)
        return study_measured(setting, point)

    study_measured = study.measured
    monkeypatch.setattr(study, "measured", broken)
    with pytest.raises(InterruptedRunError):
        study.main(tmp_path, "small")
    done = len(kept)
    monkeypatch.setattr(study, "measured", lambda *a: kept.append(a[1]) or study_measured(*a))
    study.main(tmp_path, "small")
    assert len(kept) == len(set(kept)) > done, "no cell is measured twice"
    assert "fashion_mnist: left out" in capsys.readouterr().out
    result = store.load(tmp_path / "automatic_small.h5")
    atlas = Atlas.of(result)
    assert set(atlas.rows) == set(kept)
    quiet, loud = (atlas.accuracy(p).mean() for p in atlas.along("noise"))
    assert quiet > loud, "noise of thirty times the errors leaves nothing"
    assert len(stored(result)) == len(predictions.PREDICTIONS)
    path, table = tmp_path / "automatic_small_noise.png", tmp_path / "automatic_small.csv"
    pixels, text = imread(path), table.read_text(encoding="utf-8")
    path.unlink()
    table.unlink()
    study.figures(tmp_path)
    np.testing.assert_array_equal(imread(path), pixels)
    assert table.read_text(encoding="utf-8") == text
