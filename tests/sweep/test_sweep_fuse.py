"""Fusing: points computed together are the points computed alone."""

import json

import numpy as np
import pytest
from sweep_world import assert_same_numbers, small, unfused

from pcsim import config
from pcsim.run import run
from pcsim.sweep import execute as module
from pcsim.sweep import make_sweep, sweep
from pcsim.sweep.fuse import plan

ALPHAS, DECAYS, GAMMAS = [2e-3, 7e-3], [0.0, 0.05], [0.3, 0.1]
RATES = {"learning.alpha": ALPHAS, "learning.weight_decay": DECAYS, "schedule.gamma": GAMMAS}


def sizes(data):
    return sorted(len(one.points) for one in plan(make_sweep(data)))


def swept(axes, **sections):
    data = small(**sections)
    data["sweep"] = {"axes": axes, "leave_out": []}
    return data


def assert_equal_to_lone_runs(data, out, names, tolerance=1e-12):
    """Compare every point with `pcsim.run` of its own configuration, relative to the largest."""
    described = make_sweep(data)
    merged = sweep(described, out)
    assert (merged["status"] == "done").all(), merged["reason"]
    assert (merged["run_size"] > 1).all()  # something was fused
    seen = []
    for point in described.points:
        alone = run(point.config)
        for name in names:
            expected, found = alone[name], merged[name][point.cell]
            found = found[..., : expected.shape[-1]]
            scale = np.nanmax(np.abs(expected))
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
        seen.append(np.asarray(alone[names[0]]).ravel())
        assert json.loads(str(merged["config"][point.cell])) == json.loads(point.config.to_json())
    # The control: no two points have the same numbers.
    for k, one in enumerate(seen):
        for other in seen[:k]:
            assert len(one) != len(other) or np.abs(one - other).max() > 1e-6


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("rule", ["bp", "pc", "zil", "ipc"])
def test_fused_training_equals_separate_runs(tmp_path, rule, optimizer):
    axes = dict(list(RATES.items())[:2]) if rule == "bp" else RATES
    schedule = {"rule": rule} | ({"T": None} if rule in ("bp", "zil") else {})
    schedule |= {"gamma": None} if rule == "bp" else {}
    data = swept(axes, schedule=schedule, learning={"optimizer": optimizer})
    assert sizes(data) == [4 if rule == "bp" else 8]
    names = ("parameters", "train_energy", "test_accuracy", "accuracy")
    assert_equal_to_lone_runs(data, tmp_path / "s", names)


def test_fused_automatic_run_ends_where_the_lone_one_does(tmp_path):
    data = swept(
        {"learning.alpha": [2e-3, 2e-2], "schedule.gamma": [0.3, 0.1]},
        schedule={"T": None},
        learning={"batch": 0, "reduction": "mean", "epochs": None},
        run={"automatic": True, "seeds": [0]},
        convergence={"window": 8, "rtol": 0.05, "max_steps": 300},
    )
    assert sizes(data) == [4]
    assert_equal_to_lone_runs(data, tmp_path / "s", ("energy", "steps", "test_accuracy"))
    merged = sweep(data, tmp_path / "s")
    ends = np.isfinite(merged["energy"]).sum(-1)
    np.testing.assert_array_equal(ends, merged["steps"])
    assert len(set(merged["steps"].ravel().tolist())) > 1


def test_fused_chips_equal_lone_chips(tmp_path):
    data = swept(
        {"learning.alpha": ALPHAS},
        run={"backend": "continuous"},
        learning={"batch": 10, "epochs": 1},
    )
    assert sizes(data) == [2]
    names = ("parameters", "energy", "test_accuracy", "verdict.floor", "verdict.margin")
    assert_equal_to_lone_runs(data, tmp_path / "s", names)
    merged = sweep(data, tmp_path / "s")
    assert "tau_w" not in merged.variables  # it was that of no point
    assert "time_step" in merged.variables


@pytest.mark.parametrize(
    ("axis", "sections"),
    [
        ("learning.alpha", {"learning": {"patience": 1}, "data": {"validation": 20}}),
        ("schedule.gamma", {"schedule": {"rule": "bp"}, "hardware": {"preset": "ecram_li"}}),
        ("schedule.gamma", {"run": {"backend": "continuous"}}),
        ("learning.weight_decay", {"run": {"backend": "continuous"}}),
        (
            "learning.alpha",
            {
                "run": {"backend": "continuous", "automatic": True},
                "learning": {"batch": 0, "epochs": None},
                "schedule": {"T": None},
            },
        ),
        ("schedule.T", {}),
    ],
)
def test_what_would_change_the_numbers_is_not_fused(axis, sections):
    data = swept({axis: [2, 3]}, **sections)
    assert sizes(data) == [1, 1]


def test_only_what_differs_in_rates_alone_is_fused():
    assert sizes(small()) == [3, 3, 3, 3]
    assert sizes(unfused()) == [1] * 12


def test_a_run_has_no_more_points_than_allowed_and_none_is_lost():
    data = swept({**RATES, "schedule.T": [2, 3]})
    data["sweep"]["fuse"] = 3
    runs = plan(make_sweep(data))
    assert max(len(one.points) for one in runs) <= 3
    assert sorted(k for one in runs for k in one.points) == list(range(16))


def test_large_networks_are_not_fused_into_a_population_that_fills_the_memory():
    data = swept({"learning.alpha": {"log": [1e-4, 1e-1, 16]}}, network={"sizes": [64, 15000, 10]})
    assert max(sizes(data)) == 3  # 2 seeds × 1.1 million weights each


def test_paired_rates_are_no_grid(tmp_path):
    """Three pairs of (alpha, gamma) must not become nine points, nor be mixed up."""
    data = small()
    data["sweep"] = {
        "axes": {"learning.weight_decay": DECAYS},
        "paired": [{"learning.alpha": [1e-3, 2e-3, 3e-3], "schedule.gamma": [0.3, 0.2, 0.1]}],
        "leave_out": [],
    }
    assert sizes(data) == [2, 2, 2]
    assert_equal_to_lone_runs(data, tmp_path / "s", ("parameters", "train_energy"))


def test_a_fused_run_that_fails_is_taken_apart(tmp_path, monkeypatch):
    """One point at fault must not take the others with it, nor change the store's next visit."""
    original = module.run_config

    def fragile(one):
        if 7e-3 in (*one.grid.alpha, one.learning.alpha):
            raise RuntimeError("the chip\nmelted")
        return original(one)

    monkeypatch.setattr(module, "run_config", fragile)
    data = swept({"learning.alpha": [1e-3, 7e-3, 2e-3]})
    merged = sweep(data, tmp_path / "s")
    assert merged["status"].tolist() == ["done", "failed", "done"]
    assert merged["reason"].tolist() == ["", "RuntimeError: the chip melted", ""]
    assert merged["run_size"].tolist() == [1, 1, 1]
    assert np.isnan(merged["train_energy"][1]).all()
    lone = original(make_sweep(data).points[2].config)
    np.testing.assert_array_equal(merged["train_energy"][2], lone["train_energy"])

    monkeypatch.setattr(module, "run_config", original)
    assert_same_numbers(sweep(data, tmp_path / "s"), merged)  # failed is an answer, too
    mended = sweep(data, tmp_path / "s", retry=True)
    assert mended["status"].tolist() == ["done"] * 3
    np.testing.assert_array_equal(mended["train_energy"][2], lone["train_energy"])


def test_seeds_are_paired(tmp_path):
    """A field that plays no part gives the same weights and order at every point."""
    data = unfused()
    data["sweep"]["axes"] = {"data.limit_test": [10, 20, 30]}
    merged = sweep(data, tmp_path / "s")
    for name in ("parameters", "train_energy"):
        for k in (1, 2):
            np.testing.assert_array_equal(merged[name][0], merged[name][k])
        assert np.abs(merged[name][:, 0] - merged[name][:, 1]).max() > 1e-3  # seeds do differ
    lone = run(config.parse({k: v for k, v in small(run={"seeds": [1]}).items() if k != "sweep"}))
    np.testing.assert_allclose(merged["parameters"][0, 1], lone["parameters"][0], atol=1e-13)
